"""``x.at[index]``: new arrays that differ from ``x`` in a part."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn, TypedDict, Unpack

import numpy as np

from phalanx import primitives as ops
from phalanx.base import dtypes, lattice, registry
from phalanx.base.boundary import hiding
from phalanx.base.errors import DtypeError
from phalanx.base.kinds import TUPLE
from phalanx.base.numpy_kinds import NDARRAY
from phalanx.core.trace import is_known, known_value
from phalanx.core.types import Array, ArrayLike
from phalanx.lax.branches import cond
from phalanx.lax.layout import takes_out_sharding
from phalanx.lax.loops import scan
from phalanx.numpy import arithmetic
from phalanx.numpy.promotion import convert, kind_of, operand
from phalanx.numpy.subscripts import READ_MODES, WRITE_MODES, mode_of, read, write, written


class At:
    """``x.at``: reads and writes parts of an immutable array. ``x.at[index]`` names a part."""

    __slots__ = ("array",)

    def __init__(self, array: Any) -> None:
        self.array = array

    def __getitem__(self, index: Any) -> Part:
        return Part(self.array, index)

    if not TYPE_CHECKING:  # for a type checker there is neither

        @hiding
        def __setitem__(self, index: Any, value: Any) -> NoReturn:
            raise TypeError(
                "arrays are immutable, so x.at[index] = value is not possible; use "
                "x = x.at[index].set(value)"
            )

        @hiding
        def __call__(self, *_: Any, **__: Any) -> NoReturn:
            raise TypeError("x.at(index) is not possible; a part is named in brackets, x.at[index]")

        @hiding
        def __getattr__(self, name: str) -> NoReturn:
            if hasattr(Part, name):
                words = f"x.at.{name} is not there: a part is named before, x.at[index].{name}"
                raise AttributeError(words)
            raise AttributeError(f"x.at has no attribute {name!r}")

    def __repr__(self) -> str:
        return f"At({self.array!r})"


class PartOptions(TypedDict, total=False):
    """How a part of an array is written: see ``Part``."""

    mode: str | None
    indices_are_sorted: bool
    unique_indices: bool
    wrap_negative_indices: bool


class Part:
    """The part of an array that an index names: each method returns a new array.

    Where an index names an element twice, ``add`` and the like apply every value; ``set``
    applies one of them. ``mode`` says what happens outside the array: "drop" (or "fill", or
    None) writes nothing there, "clip" takes the nearest element, "promise_in_bounds" asserts
    that there is no such index. ``indices_are_sorted`` and ``unique_indices`` are promises
    about arrays of integers that make the work faster on some devices. Negative integers count
    from the end; where ``wrap_negative_indices`` is False, they lie outside. ``out_sharding`` says
    how the result is to lie over devices.
    """

    __slots__ = ("array", "index")

    def __init__(self, array: Any, index: Any) -> None:
        self.array = array
        self.index = index

    def __repr__(self) -> str:
        return f"Part({self.array!r}, {self.index!r})"

    @takes_out_sharding
    def get(
        self,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: str | None = None,
        fill_value: Any = None,
        wrap_negative_indices: bool = True,
        out_sharding: Any = None,
    ) -> Array:
        """``x[index]``; with mode "fill", ``fill_value`` (default nan) outside the array.

        >>> print(jnp.arange(3.0).at[jnp.array([1, 7])].get(mode="fill", fill_value=-1))
        [ 1. -1.]
        """
        return read(
            self.array,
            self.index,
            mode_of("at[].get", mode, READ_MODES),
            fill_value,
            from_end=wrap_negative_indices,
            indices_are_sorted=indices_are_sorted,
            unique_indices=unique_indices,
        )

    @takes_out_sharding
    def set(
        self, values: ArrayLike, *, out_sharding: Any = None, **options: Unpack[PartOptions]
    ) -> Array:
        """``x`` with ``values`` in this part.

        >>> print(jnp.arange(4).at[1:3].set(7))
        [0 7 7 3]
        """
        return self._update("set", values, **options)

    @takes_out_sharding
    def add(
        self, values: ArrayLike, *, out_sharding: Any = None, **options: Unpack[PartOptions]
    ) -> Array:
        """``x`` with ``values`` added in this part.

        >>> print(jnp.arange(4).at[jnp.array([0, 0])].add(5))
        [10  1  2  3]
        """
        return self._update("add", values, **options)

    @takes_out_sharding
    def subtract(
        self, values: ArrayLike, *, out_sharding: Any = None, **options: Unpack[PartOptions]
    ) -> Array:
        """``x`` with ``values`` subtracted in this part.

        >>> print(jnp.arange(4).at[0].subtract(5))
        [-5  1  2  3]
        """
        if self.array.aval.dtype == np.bool_:
            raise DtypeError(
                "at[].subtract: booleans have no difference; convert the array with astype, or "
                "take at[].apply(jnp.logical_not)"
            )
        return self._update("add", arithmetic.negative(written(self.array, values)), **options)

    @takes_out_sharding
    def multiply(
        self, values: ArrayLike, *, out_sharding: Any = None, **options: Unpack[PartOptions]
    ) -> Array:
        """``x`` with this part multiplied by ``values``.

        >>> print(jnp.arange(4).at[1:].multiply(10))
        [ 0 10 20 30]
        """
        return self._update("multiply", values, **options)

    mul = multiply

    @takes_out_sharding
    def divide(
        self, values: ArrayLike, *, out_sharding: Any = None, **options: Unpack[PartOptions]
    ) -> Array:
        """``x`` with this part divided by ``values``, in floating-point numbers: those of the
        dtype of ``x``, if it has such.

        >>> print(jnp.arange(3.0).at[1:].divide(2))
        [0.  0.5 1. ]
        """
        out = arithmetic.true_divide(self.array, self._factors("divide", values, options))
        return self._in_dtype(out, dtypes.to_inexact(self.array.aval.dtype))

    @takes_out_sharding
    def power(
        self, values: ArrayLike, *, out_sharding: Any = None, **options: Unpack[PartOptions]
    ) -> Array:
        """``x`` with this part raised to the power ``values``; booleans give int32.

        >>> print(jnp.arange(4).at[2:].power(2))
        [0 1 4 9]
        """
        out = arithmetic.power(self.array, self._factors("power", values, options))
        dtype = self.array.aval.dtype
        return self._in_dtype(out, dtypes.default_int() if dtype == np.bool_ else dtype)

    def _in_dtype(self, out: Any, dtype: np.dtype) -> Any:
        """``out`` in ``dtype``, as weak as the array: what is written does not change either."""
        weak = self.array.aval.weak
        return convert(written(ops.full((), 0, dtype), out), dtype, weak)

    def _factors(self, how: str, values: Any, options: PartOptions) -> Any:
        """``values`` in this part, multiplied where they meet, and 1 elsewhere."""
        mode_of(f"at[].{how}", options.get("mode"), WRITE_MODES)
        kind = lattice.promote(kind_of(self.array), kind_of(operand("at", values)))[0]
        ones = ops.full(self.array.aval.shape, 1, kind)
        return Part(ones, self.index).multiply(values, **options)

    @takes_out_sharding
    def min(
        self, values: ArrayLike, *, out_sharding: Any = None, **options: Unpack[PartOptions]
    ) -> Array:
        """``x`` with the minimum of this part and ``values`` in it.

        >>> print(jnp.arange(4).at[1:].min(2))
        [0 1 2 2]
        """
        return self._update("min", values, **options)

    @takes_out_sharding
    def max(
        self, values: ArrayLike, *, out_sharding: Any = None, **options: Unpack[PartOptions]
    ) -> Array:
        """``x`` with the maximum of this part and ``values`` in it.

        >>> print(jnp.arange(4).at[1:].max(2))
        [0 2 2 3]
        """
        return self._update("max", values, **options)

    @takes_out_sharding
    def apply(
        self,
        function: Callable[[Any], Any],
        *,
        out_sharding: Any = None,
        **options: Unpack[PartOptions],
    ) -> Array:
        """``x`` with ``function``, of each element alone, applied to this part.

        Where an index names an element twice, it is applied twice.

        >>> print(jnp.arange(4).at[2:].apply(lambda v: v * v))
        [0 1 4 9]
        >>> print(jnp.arange(4).at[jnp.array([3, 3])].apply(lambda v: v * v))
        [ 0  1  2 81]
        """
        mode, wrap = options.get("mode"), options.get("wrap_negative_indices", True)
        inside = "clip" if mode in (None, "drop", "fill") else mode
        reading = PartOptions(mode=inside, wrap_negative_indices=wrap)
        first = self.get(**reading)
        once = self._update("set", function(first), **options)
        if options.get("unique_indices") or not _may_repeat(self.index):
            return once
        zeros = ops.full(self.array.aval.shape, 0, np.dtype("int32"))
        counts = Part(zeros, self.index).add(1, mode=mode, wrap_negative_indices=wrap)
        if not is_known(counts):
            return cond(
                ops.le(ops.reduce_max(counts, dims=tuple(range(counts.ndim))), np.int32(1)),
                lambda: once,
                lambda: self._apply_in_turn(function, mode, wrap),
            )
        for done in range(1, int(np.max(np.asarray(known_value(counts)), initial=0))):
            more = ops.gt(counts, np.int32(done))
            once = self._apply_again(function, once, more, first, reading)
        return once

    def _apply_again(
        self, function: Callable[[Any], Any], x: Any, more: Any, first: Any, reading: PartOptions
    ) -> Any:
        """``x`` with ``function`` applied in this part where ``more`` holds.

        Elsewhere the function sees what it saw ``first``, for which it is defined.
        """
        now, here = (Part(v, self.index).get(**reading) for v in (x, more))
        values = function(ops.select(here, now, first))
        return ops.select(more, Part(x, self.index).set(values, **reading), x)

    def _apply_in_turn(self, function: Callable[[Any], Any], mode: str | None, wrap: bool) -> Any:
        """One index after the other, for indices of which nobody knows whether they repeat."""
        shape, size = self.array.aval.shape, self.array.aval.size
        places = ops.reshape(ops.iota(dtype=np.dtype("int32"), shape=(size,), dim=0), shape=shape)
        outside = "fill" if mode in (None, "drop", "fill") else mode
        places = Part(places, self.index).get(
            mode=outside, fill_value=size, wrap_negative_indices=wrap
        )

        def step(line: Array, place: Array) -> tuple[Array, None]:
            value = function(Part(line, place).get(mode="clip"))
            return Part(line, place).set(value, mode="drop"), None

        line = ops.reshape(self.array, shape=(size,))
        line, _ = scan(step, line, ops.reshape(places, shape=(places.aval.size,)))
        return ops.reshape(line, shape=shape)

    def _update(
        self,
        how: str,
        values: Any,
        *,
        mode: str | None = None,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        wrap_negative_indices: bool = True,
    ) -> Any:
        hints = {"indices_are_sorted": indices_are_sorted, "unique_indices": unique_indices}
        chosen = mode_of(f"at[].{how}", mode, WRITE_MODES)
        return write(self.array, self.index, how, values, chosen, hints, wrap_negative_indices)


def _parts(part: Part) -> tuple[tuple[Any, Any], None]:
    return (part.array, part.index), None


registry.register_pytree_node(Part, _parts, lambda _, children: Part(*children))


def _may_repeat(index: Any) -> bool:
    """Whether an index may name an element twice: through an array of integers."""
    entries = index if isinstance(index, TUPLE) else (index,)
    arrays = [e for e in entries if isinstance(e, (Array, NDARRAY)) and e.size > 1]
    return any(e.dtype != np.bool_ for e in arrays)
