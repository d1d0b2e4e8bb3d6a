"""What the distributions of a family share: where they lie, and how they are moved and scaled.

A function of a distribution is written for its standard form, in which ``loc`` is 0 and ``scale``
is 1, for parameters that are valid and elements inside of the support. A ``Family`` makes it the
public one: operands of one dtype and one shape, elements in standard units, what holds outside of
the support, and NaN where a parameter is not valid. Elements for which the body is not meant are
replaced before it sees them, so that no derivative is NaN for their sake.
"""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec import Struct

from phalanx import primitives as ops
from phalanx.control.one_program import one_program
from phalanx.core.types import Array
from phalanx.numpy.creation import ones_like, zeros_like
from phalanx.numpy.promotion import real
from phalanx.numpy.searching import where

if TYPE_CHECKING:
    ArrayLike = Any  # users give whatever becomes an array, a body sees arrays
else:
    from phalanx.numpy.promotion import ArrayLike  # noqa: F401

Function = TypeVar("Function", bound=Callable[..., Array])
OfShape = (  # a function of the parameters of the shape
    Callable[[Array], Any] | Callable[[Array, Array], Any] | Callable[[Array, Array, Array], Any]
)
Bound = float | OfShape


class Family(Struct, frozen=True):
    """The distributions that differ in ``loc``, ``scale`` and parameters of their shape.

    Attributes:
        low: the lower end of the support, in standard units.
        high: the upper end.
        inner: a point inside of the support, away from its ends.
        valid: of the parameters of the shape, whether there is such a distribution.
        typical: valid parameters.
        whole: whether there is probability at whole numbers alone.
    """

    low: Bound = -math.inf
    high: Bound = math.inf
    inner: Bound = 0.5
    valid: OfShape | None = None
    typical: tuple[float, ...] = ()
    whole: bool = False

    def log_density(self, body: Function) -> Function:
        """The logarithm of the density, or of the probability of a whole number."""
        return self._public(body, -math.inf, -math.inf, density=True)

    def distribution(self, body: Function) -> Function:
        """The probability of what is not greater."""
        return self._public(body, 0, 1)

    def log_distribution(self, body: Function) -> Function:
        """Its logarithm."""
        return self._public(body, -math.inf, 0)

    def survival(self, body: Function) -> Function:
        """The probability of what is greater."""
        return self._public(body, 1, 0)

    def log_survival(self, body: Function) -> Function:
        """Its logarithm."""
        return self._public(body, 0, -math.inf)

    def quantile(self, body: Function) -> Function:
        """The inverse of the distribution function."""
        return self._inverse(body, self.low, self.high)

    def upper_quantile(self, body: Function) -> Function:
        """The inverse of the survival function."""
        return self._inverse(body, self.high, self.low)

    def _public(
        self, body: Function, below: float, above: float, *, density: bool = False
    ) -> Function:
        def at(x: Array, loc: Array, scale: Array, shape: list[Array]) -> Array:
            valid = self._valid(scale, shape)
            scale, shape = self._usable(valid, scale, shape)
            z = (x - loc) / scale
            if self.whole and not density:
                z = ops.floor(z)
            under, over, inside = self._places(z, shape, closed=density)
            if density and self.whole:
                inside = inside & (ops.floor(z) == z)
            out = body(where(inside, z, _at(self.inner, shape)), *shape)
            if density:
                out = out - ops.log(scale)
            elsewhere = where(under, below, where(over, above, math.nan))
            if density and self.whole:
                elsewhere = where(z == z, -math.inf, math.nan)
            return where(valid, where(inside, out, elsewhere), math.nan)

        return _function(body, at)

    def _inverse(self, body: Function, at_zero: Bound, at_one: Bound) -> Function:
        def at(q: Array, loc: Array, scale: Array, shape: list[Array]) -> Array:
            valid = self._valid(scale, shape)
            scale, shape = self._usable(valid, scale, shape)
            inside = (q > 0) & (q < 1)
            z = body(where(inside, q, 0.5), *shape)
            ends = where(q == 1, _at(at_one, shape), math.nan)
            ends = where(q == 0, _at(at_zero, shape), ends)
            return where(valid, loc + scale * where(inside, z, ends), math.nan)

        return _function(body, at)

    def _valid(self, scale: Array, shape: list[Array]) -> Array:
        positive = scale > 0
        return positive if self.valid is None else positive & self.valid(*shape)

    def _usable(self, valid: Array, scale: Array, shape: list[Array]) -> tuple[Array, list[Array]]:
        pairs = zip(shape, self.typical, strict=True)
        return where(valid, scale, 1), [where(valid, p, typical) for p, typical in pairs]

    def _places(self, z: Array, shape: list[Array], *, closed: bool) -> tuple[Array, Array, Array]:
        """Which elements lie below, above and inside of the support.

        Its ends are inside for a density. A distribution function is known there, but that whole
        numbers are probable at the lower end, too.
        """
        low, high = _at(self.low, shape), _at(self.high, shape)
        under = z < low if closed or self.whole else z <= low
        over = z > high if closed else z >= high
        under, over = under | (z == -math.inf), over | (z == math.inf)
        return under, over, ~(under | over) & (z == z)


def _at(bound: Bound, shape: list[Array]) -> Any:
    return bound(*shape) if callable(bound) else bound


_STANDARD = {"loc": zeros_like, "scale": ones_like}


def _lost(out: Array, *operands: Array) -> Array:
    """``out``, and NaN with derivatives that are NaN where an operand is NaN."""
    unknown = functools.reduce(ops.or_, [x != x for x in operands])
    total = functools.reduce(ops.add, [where(unknown, x, 0) for x in operands])
    return where(unknown, total * total, out)


def _function(body: Function, at: Callable[..., Array]) -> Function:
    """The public function with the signature of ``body``, whose arguments ``at`` sees sorted."""
    signature = inspect.signature(body)
    who = f"{body.__module__.rpartition('.')[2]}.{body.__name__}"

    @one_program
    @functools.wraps(body)
    def public(*args: Any, **kwargs: Any) -> Array:
        try:
            bound = signature.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{who}: {error}") from None
        bound.apply_defaults()
        values = real(who, *bound.arguments.values())
        by_name = dict(zip(bound.arguments, values, strict=True))
        loc, scale = (by_name.pop(name, like(values[0])) for name, like in _STANDARD.items())
        x, *shape = by_name.values()
        return _lost(at(x, loc, scale, shape), x, loc, scale, *shape)

    return public  # type: ignore[return-value]
