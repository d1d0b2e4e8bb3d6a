"""Functions written as formulas: numbers with Python's operators, in loops and with derivatives.

A formula is a Python function of ``Number``: an array of the module that is being written, one
element standing for all. ``special`` declares the primitive that computes it. Where no closed form
of a derivative is given, it is that of the formula itself, on dual numbers: so a series and its
derivative by a parameter are one text.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypedDict

import numpy as np

from phalanx.base import dtypes
from phalanx.core.builder import Builder, Value
from phalanx.core.primitive import Example, Of, Operations, Primitive
from phalanx.primitives.basis import pointwise

Formula = Callable[..., Any]  # of numbers, dual or not: one such
_BOOL = np.dtype("bool")
_I32 = np.dtype("int32")
_F32 = np.dtype("float32")


# ---- numbers --------------------------------------------------------------------------------


class _Arithmetic:
    """The operators that follow from others."""

    __slots__ = ()

    def __radd__(self: Any, other: Any) -> Any:
        return self + other

    def __rmul__(self: Any, other: Any) -> Any:
        return self * other

    def __rsub__(self: Any, other: Any) -> Any:
        return -self + other

    def __neg__(self: Any) -> Any:
        return self * -1.0

    def __lt__(self, other: Any) -> Number:
        return _compare(self, other, "LT")

    def __le__(self, other: Any) -> Number:
        return _compare(self, other, "LE")

    def __gt__(self, other: Any) -> Number:
        return _compare(self, other, "GT")

    def __ge__(self, other: Any) -> Number:
        return _compare(self, other, "GE")


def _operator(method: str, swapped: bool = False) -> Callable[[Any, Any], Any]:
    def apply(self: Number, other: Any) -> Any:
        if isinstance(other, DualNumber):
            return NotImplemented
        x, y = self.value, self.like(other).value
        return Number(self.b, getattr(self.b, method)(*((y, x) if swapped else (x, y))))

    return apply


class Number(_Arithmetic):
    """An array in a formula: of numbers, or of truth values."""

    __slots__ = ("b", "value")
    __add__ = _operator("add")
    __sub__ = _operator("subtract")
    __mul__ = _operator("multiply")
    __truediv__ = _operator("divide")
    __rtruediv__ = _operator("divide", swapped=True)
    __and__ = _operator("and_")
    __or__ = _operator("or_")

    def __init__(self, b: Builder, value: Value) -> None:
        self.b = b
        self.value = value

    def __invert__(self) -> Number:
        return Number(self.b, self.b.not_(self.value))

    def like(self, x: Any) -> Number:
        """``x``, a Python number perhaps, as an array like this one."""
        if isinstance(x, Number):
            return x
        kind = self.b.type(self.value)
        return Number(self.b, self.b.constant(x, kind.dtype, kind.shape))


class DualNumber(_Arithmetic):
    """``value`` + ε ``tangent``, where ε² = 0. There is an ε for each level."""

    __slots__ = ("level", "tangent", "value")

    def __init__(self, value: Any, tangent: Any, level: int) -> None:
        self.value = value
        self.tangent = tangent
        self.level = level

    def __add__(self, other: Any) -> DualNumber:
        x, tx, y, ty, level = _parts(self, other)
        return DualNumber(x + y, _plus(tx, ty), level)

    def __sub__(self, other: Any) -> DualNumber:
        return self + -1.0 * other

    def __mul__(self, other: Any) -> DualNumber:
        x, tx, y, ty, level = _parts(self, other)
        return DualNumber(x * y, _plus(_times(tx, y), _times(ty, x)), level)

    def __truediv__(self, other: Any) -> DualNumber:
        return _quotient(self, other)

    def __rtruediv__(self, other: Any) -> DualNumber:
        return _quotient(other, self)


def _quotient(x: Any, y: Any) -> DualNumber:
    x, tx, y, ty, level = _parts(x, y)
    out = x / y
    top = _plus(tx, _times(ty, -1.0 * out))
    return DualNumber(out, _times(top, 1.0 / y), level)


def _parts(x: Any, y: Any) -> tuple[Any, Any, Any, Any, int]:
    """Values and tangents of two numbers at the higher one of their levels, and that level."""
    level = max(z.level for z in (x, y) if isinstance(z, DualNumber))
    return *_part(x, level), *_part(y, level), level


def _part(x: Any, level: int) -> tuple[Any, Any]:
    dual = isinstance(x, DualNumber) and x.level == level
    return (x.value, x.tangent) if dual else (x, 0.0)


def _is_zero(x: Any) -> bool:
    return isinstance(x, float) and x == 0.0


def _plus(x: Any, y: Any) -> Any:
    return y if _is_zero(x) else x if _is_zero(y) else x + y


def _times(tangent: Any, factor: Any) -> Any:
    return 0.0 if _is_zero(tangent) else tangent * factor


def primal(x: Any) -> Any:
    """The number that is left of ``x`` where every ε is 0."""
    while isinstance(x, DualNumber):
        x = x.value
    return x


def _compare(x: Any, y: Any, direction: str) -> Number:
    x, y = primal(x), primal(y)
    return Number(x.b, x.b.compare(x.value, x.like(y).value, direction))


def _mapped(linear: Callable[[Number], Number], x: Any) -> Any:
    """``linear`` of the value and of the tangents of ``x``."""
    if isinstance(x, DualNumber):
        tangent = 0.0 if _is_zero(x.tangent) else _mapped(linear, x.tangent)
        return DualNumber(_mapped(linear, x.value), tangent, x.level)
    return linear(x)


# ---- functions of numbers -------------------------------------------------------------------


def with_slope(formula: Callable[[Number], Number], slope: Callable[[Any, Any], Any]) -> Formula:
    """``formula`` as a function of duals, too: its derivative is ``slope(x, y)`` at y = f(x)."""

    def function(x: Any) -> Any:
        if isinstance(x, DualNumber):
            y = function(x.value)
            return DualNumber(y, _times(x.tangent, slope(x.value, y)), x.level)
        return formula(x)

    return function


def _function(method: str, slope: Callable[[Any, Any], Any]) -> Formula:
    """The function ``method`` of the builder."""
    return with_slope(lambda x: Number(x.b, getattr(x.b, method)(x.value)), slope)


def _linear(method: str) -> Formula:
    """The function ``method`` of the builder, which is linear."""
    return partial(_mapped, lambda x: Number(x.b, getattr(x.b, method)(x.value)))


def polygamma_of(order: int, x: Any) -> Any:
    """The derivative of an order from 1 on of the digamma function."""
    if isinstance(x, DualNumber):
        slope = polygamma_of(order + 1, x.value)
        return DualNumber(polygamma_of(order, x.value), _times(x.tangent, slope), x.level)
    return Number(x.b, x.b.polygamma(x.like(float(order)).value, x.value))


def hurwitz_of(s: Number, q: Number) -> Number:
    """ζ(s, q) for q > 0, as XLA computes it; it is not differentiated."""
    return Number(q.b, q.b.zeta(s.value, q.value))


exp = _function("exponential", lambda x, y: y)
expm1 = _function("exponential_minus_one", lambda x, y: exp(x))
log = _function("log", lambda x, y: 1.0 / x)
log1p = with_slope(lambda x: _log1p(x), lambda x, y: 1.0 / (x + 1.0))
sqrt = _function("sqrt", lambda x, y: 0.5 / y)
sin = _function("sine", lambda x, y: cos(x))
cos = _function("cosine", lambda x, y: -sin(x))
erf = _function("erf", lambda x, y: exp(-x * x) * (2 / np.sqrt(np.pi)))
erfc = _function("erfc", lambda x, y: exp(-x * x) * (-2 / np.sqrt(np.pi)))
erf_inv = _function("erf_inv", lambda x, y: exp(y * y) * (np.sqrt(np.pi) / 2))
floor = _function("floor", lambda x, y: 0.0)
rounded = _function("round_nearest_even", lambda x, y: 0.0)
sign = _function("sign", lambda x, y: 0.0)
_size = _function("abs", lambda x, y: sign(x))


real = _linear("real")
imag = _linear("imag")
conj = _linear("conj")


def complex_of(re: Any, im: Any) -> Any:
    """``re`` + i ``im``."""
    if isinstance(re, DualNumber) or isinstance(im, DualNumber):
        re, tr, im, ti, level = _parts(re, im)
        return DualNumber(complex_of(re, im), complex_of(tr, ti), level)
    if not isinstance(re, Number) and not isinstance(im, Number):
        return complex(re, im)
    model = re if isinstance(re, Number) else im
    b = model.b
    return Number(b, b.complex(model.like(re).value, model.like(im).value))


def _log1p(x: Number) -> Number:
    """That of the builder near 0; from 0.3 on it may lose digits, and 1 + x does not."""
    primal = Number(x.b, x.b.log_plus_one(x.value))
    return primal if is_complex(x) else where(absolute(x) < 0.3, primal, log(x + 1.0))


def is_complex(x: Any) -> bool:
    """Whether ``x`` is of a complex dtype."""
    x = primal(x)
    return dtypes.is_complex(x.b.type(x.value).dtype)


def absolute(x: Any) -> Any:
    """|x|; of complex numbers the magnitude, for comparisons alone."""
    if is_complex(x):
        x = primal(x)
        return Number(x.b, x.b.abs(x.value))
    return _size(x)


def power(x: Any, y: Any) -> Any:
    """x to the power y."""
    if isinstance(x, DualNumber) or isinstance(y, DualNumber):
        x, tx, y, ty, level = _parts(x, y)
        out = power(x, y)
        by_base = 0.0 if _is_zero(tx) else tx * y * power(x, y - 1.0)
        by_exponent = 0.0 if _is_zero(ty) else ty * out * log(x)
        return DualNumber(out, _plus(by_base, by_exponent), level)
    return Number(x.b, x.b.power(x.value, x.like(y).value))


def where(mask: Number, x: Any, y: Any) -> Any:
    """``x`` where ``mask`` holds, ``y`` elsewhere."""
    if isinstance(x, DualNumber) or isinstance(y, DualNumber):
        x, tx, y, ty, level = _parts(x, y)
        tangent = 0.0 if _is_zero(tx) and _is_zero(ty) else where(mask, tx, ty)
        return DualNumber(where(mask, x, y), tangent, level)
    b = mask.b
    model = x if isinstance(x, Number) else y
    return Number(b, b.select(mask.value, model.like(x).value, model.like(y).value))


def within(mask: Number, x: Any, other: complex) -> Any:
    """``x`` where ``mask`` holds; elsewhere ``other``, whose results are not used."""
    if isinstance(x, DualNumber):
        return DualNumber(within(mask, x.value, other), x.tangent, x.level)
    return where(mask, x, other)


def greater(x: Any, y: Any) -> Any:
    """The greater of two numbers."""
    return where(x < y, y, x)


def lesser(x: Any, y: Any) -> Any:
    """The lesser of two numbers."""
    return where(x < y, x, y)


def equal(x: Any, y: Any) -> Number:
    """Whether ``x`` is ``y``; zeros of either sign are the same."""
    return _compare(x, y, "EQ")


def is_nan(x: Any) -> Number:
    """Whether ``x`` is no number."""
    return _compare(x, x, "NE")


def unless_nan(out: Any, *xs: Any) -> Any:
    """``out``, or NaN where one of ``xs`` is: a formula may take the wrong way there, or none."""
    for x in xs:
        out = where(is_nan(x), x, out)
    return out


def isolated(x: Any) -> Any:
    """``x``, computed by itself: what is long is then not compiled again with what uses it."""
    return _mapped(lambda x: Number(x.b, *x.b.optimization_barrier([x.value])), x)


def precision(x: Any) -> float:
    """The distance from 1 to the next number in the dtype of ``x``."""
    x = primal(x)
    return float(dtypes.finfo(x.b.type(x.value).dtype).eps)


def polynomial(x: Any, coefficients: Sequence[float]) -> Any:
    """c₀ + c₁ x + c₂ x² + ..., by Horner's rule."""
    total: Any = coefficients[-1]
    for c in reversed(coefficients[:-1]):
        total = total * x + c
    return total


def chebyshev(x: Any, coefficients: Sequence[float]) -> Any:
    """c₀ + c₁ T₁(x) + c₂ T₂(x) + ..., by Clenshaw's rule (DLMF 3.11.15)."""
    double, total, before = x * 2.0, x * 0.0, x * 0.0
    for c in reversed(coefficients[1:]):
        total, before = double * total - before + c, total
    return x * total - before + coefficients[0]


def chebyshev_series(f: Callable[[np.ndarray], np.ndarray], eps: float) -> list[float]:
    """The coefficients of ``chebyshev`` for f on [-1, 1], by interpolation; the last ones up to
    ``eps`` are left out."""
    count = 48
    odd = np.arange(1, 2 * count, 2)
    waves = np.cos(np.outer(np.arange(count), odd) % (4 * count) * (math.pi / (2 * count)))
    found = waves @ f(waves[1]) * np.where(np.arange(count), 2, 1) / count
    return found[: np.flatnonzero(np.abs(found) > eps)[-1] + 1].tolist()


def economized(
    coefficients: Sequence[float], low: float, high: float, eps: float
) -> Sequence[float]:
    """Fewer coefficients that say the same, to ``eps`` of the first one, for low ≤ x ≤ high.

    The last Chebyshev polynomials are left out (Lanczos, Applied Analysis, 1956, section 7.5).
    """
    power, chebyshev = np.polynomial.Polynomial, np.polynomial.Chebyshev
    chebyshev_series: Any = power(coefficients).convert(kind=chebyshev, domain=[low, high])
    left_out = np.cumsum(np.abs(chebyshev_series.coef[::-1]))[::-1]
    count = np.count_nonzero(left_out > eps * abs(coefficients[0]))
    return chebyshev_series.truncate(count).convert(kind=power, domain=[-1, 1]).coef.tolist()


def summed(term: Callable[..., Any], *tables: Any, of: Sequence[Any]) -> Any:
    """The sum of ``term(*row, *of)`` over the rows of ``tables`` of constants, as one reduction."""
    model: Number = primal(of[0])
    b, kind = model.b, model.b.type(model.value)
    shape = (*kind.shape, len(tables[0]))
    dims = tuple(range(len(kind.shape)))

    def repeated(x: Number) -> Number:
        return Number(b, b.broadcast_in_dim(x.value, shape, dims))

    def total(x: Number) -> Number:
        nothing = b.constant(0, kind.dtype)
        (out,) = b.reduce([x.value], [nothing], (len(dims),), lambda b, x, y: [b.add(x, y)])
        return Number(b, out)

    rows = [b.constant(np.asarray(t, kind.dtype), kind.dtype, (len(t),)) for t in tables]
    columns = [Number(b, b.broadcast_in_dim(r, shape, (len(dims),))) for r in rows]
    return _mapped(total, term(*columns, *[_mapped(repeated, x) for x in of]))


# ---- loops ----------------------------------------------------------------------------------


def iterate(step: Callable[..., Any], state: Sequence[Any], limit: int) -> list[Any]:
    """``state`` after the steps that it takes until it is settled, at most ``limit``.

    ``step(n, *state)`` counts from n = 1 and gives the next state, and whether that is settled.
    Each element stays as it is once it is settled, whatever the elements beside it still need.
    """
    *after, settled = step(1.0, *state)  # it tells what depends on which ε, and is never run
    levels = sorted({d for x in (*state, *after) for d in _levels(x)}, reverse=True)
    b = settled.b
    model = next(primal(x) for x in after if not isinstance(x, float))
    kind = b.type(model.value)
    dims = tuple(range(len(kind.shape)))

    def more(b: Builder, n: Value, busy: Value, *_: Value) -> list[Value]:
        nobody = b.constant(False, _BOOL)
        (some,) = b.reduce([busy], [nobody], dims, lambda b, x, y: [b.or_(x, y)])
        return [b.and_(some, b.compare(n, b.constant(limit, _I32), "LT"))]

    def body(b: Builder, n: Value, busy: Value, *leaves: Value) -> list[Value]:
        n = b.add(n, b.constant(1, _I32))
        count = b.broadcast_in_dim(b.convert(n, kind.dtype), kind.shape, ())
        *new, settled = step(Number(b, count), *_assembled(b, leaves, levels))
        moved = _leaves(new, levels, model)
        new_leaves = [b.select(busy, y, x) for x, y in zip(leaves, moved, strict=True)]
        return [n, b.and_(busy, b.not_(settled.value)), *new_leaves]

    busy = b.constant(True, _BOOL, kind.shape)
    starts = [b.constant(0, _I32), busy, *_leaves(state, levels, model)]
    _, _, *leaves = b.while_(starts, more, body)
    return _assembled(b, leaves, levels)


def _levels(x: Any) -> set[int]:
    """The levels of the ε on which ``x`` depends."""
    return {x.level} | _levels(x.value) | _levels(x.tangent) if isinstance(x, DualNumber) else set()


def _leaves(xs: Sequence[Any], levels: Sequence[int], model: Number) -> list[Value]:
    """The coefficients of ``xs``, for every product of the ε of ``levels``."""
    if not levels:
        return [model.like(x).value for x in xs]
    parts = [_part(x, levels[0]) for x in xs]
    values, tangents = zip(*parts, strict=True)
    return _leaves(values, levels[1:], model) + _leaves(tangents, levels[1:], model)


def _assembled(b: Builder, leaves: Sequence[Value], levels: Sequence[int]) -> list[Any]:
    """The numbers whose coefficients are ``leaves``."""
    if not levels:
        return [Number(b, x) for x in leaves]
    half = len(leaves) // 2
    values, tangents = (_assembled(b, x, levels[1:]) for x in (leaves[:half], leaves[half:]))
    return [DualNumber(x, t, levels[0]) for x, t in zip(values, tangents, strict=True)]


def together(function: Formula, xs: Sequence[Any]) -> list[Any]:
    """``function`` of each of ``xs``, all computed by one text.

    They lie side by side in memory before and after: loops that put them together on the way, or
    take them apart, would not be vectorized.
    """
    levels = sorted({d for x in xs for d in _levels(x)}, reverse=True)
    model = next(primal(x) for x in xs)
    b, shape = model.b, model.b.type(model.value).shape

    def stacked(*each: Value) -> Value:
        return b.concatenate([b.reshape(v, (1, *shape)) for v in each], 0)

    columns = zip(*[_leaves([x], levels, model) for x in xs], strict=True)
    (all_of_them,) = _assembled(b, [stacked(*c) for c in columns], levels)
    out = isolated(function(isolated(all_of_them)))

    def row(i: int, x: Number) -> Number:
        limit, strides = (i + 1, *shape), (1,) * (len(shape) + 1)
        part = b.slice(x.value, (i, *[0] * len(shape)), limit, strides)
        return Number(b, b.reshape(part, shape))

    return [_mapped(partial(row, i), out) for i in range(len(xs))]


def small(change: Any, total: Any) -> Number:
    """Whether ``total`` does not notice a ``change``, in any of its derivatives, or is NaN."""
    if isinstance(change, DualNumber) or isinstance(total, DualNumber):
        x, tx, y, ty, _ = _parts(change, total)
        settled = small(x, y)
        return settled if _is_zero(tx) else settled & small(tx, _plus(ty, y))
    x, y = change, total
    return ~(absolute(x) > absolute(y) * (0.5 * precision(y)))


def series(term: Any, following: Callable[[Any, Any], Any], limit: int = 500) -> Any:
    """term₀ + term₁ + ..., where term_n = ``following(n, term_(n-1))``."""

    def step(n: Any, term: Any, total: Any) -> tuple[Any, Any, Number]:
        term = following(n, term)
        total = total + term
        return term, total, small(term, total)

    return iterate(step, [term, term], limit)[1]


def continued_fraction(
    first: Any, numerator: Callable[[Any], Any], denominator: Callable[[Any], Any], limit: int = 500
) -> Any:
    """b₀ + a₁ / (b₁ + a₂ / (b₂ + ...)), with a_n = ``numerator(n)``, b_n = ``denominator(n)``.

    The modified Lentz algorithm (Press et al., Numerical Recipes, section 5.2).
    """
    tiny = 1e-30

    def step(n: Any, total: Any, c: Any, d: Any) -> tuple[Any, Any, Any, Number]:
        a, b = numerator(n), denominator(n)
        d = 1.0 / _not_zero(b + a * d, tiny)
        c = _not_zero(b + a / c, tiny)
        change = c * d
        return total * change, c, d, small(change - 1.0, change)

    return iterate(step, [first, first, 0.0], limit)[0]


def _not_zero(x: Any, tiny: float) -> Any:
    return where(absolute(primal(x)) < tiny, tiny, x)


# ---- primitives -----------------------------------------------------------------------------


class Differentiated(TypedDict, total=False):
    """The parameter of what a formula computes: in order, by which operands to differentiate it."""

    by: tuple[int, ...]


def special(
    name: str,
    formula: Formula,
    *,
    partials: Sequence[Of[Any] | None],
    doc: str,
    examples: Sequence[Example],
    on: Callable[[np.dtype], bool] = dtypes.is_floating,
    params: type[Any] = Differentiated,
    operations: Operations = 100,
    on_accelerators: Formula | None = None,
) -> Primitive:
    """Declare the primitive that computes ``formula``, in float32 at least.

    Args:
        name: its name.
        formula: of a number for each operand, and of parameters.
        partials: per operand its partial derivative in closed form, a function of arrays,
            ``(out, *operands, **params)``; or None, and it is that of the formula.
        doc: the mathematics and its source.
        examples: for the tests.
        on: the dtypes of the operands; the derivative by a complex one is that of an analytic
            function.
        params: the parameters, a TypedDict that extends ``Differentiated``.
        operations: how many of arithmetic an element takes, about.
        on_accelerators: a formula in place of the first one, for its values there.
    """

    def lowered(by_value: Formula) -> Callable[..., Value]:
        """The lowering by one formula for values, and by the first one for derivatives."""

        def lower(b: Builder, *xs: Value, by: tuple[int, ...] = (), **params: Any) -> Value:
            dtype = b.type(xs[0]).dtype
            wide = dtype if dtype.itemsize >= 4 else _F32
            numbers = [Number(b, b.convert(x, wide)) for x in xs]
            chosen = formula if by else by_value
            out = unless_nan(_differentiated(partial(chosen, **params), numbers, by), *numbers)
            return b.convert(numbers[0].like(out).value, dtype)

        return lower

    def slope(i: int) -> Callable[..., Any]:
        def rule(out: Any, *xs: Any, by: tuple[int, ...] = (), **params: Any) -> Any:
            closed = partials[i] if not by else None
            if closed is not None:
                return closed(out, *xs, **params)
            return prim(*xs, by=tuple(sorted((*by, i))), **params)

        return rule

    on_others = lowered(on_accelerators) if on_accelerators else None
    prim = pointwise(
        name,
        lowered(formula),
        lower_on={"gpu": on_others, "tpu": on_others} if on_others else {},
        on=on,
        partials=[slope(i) for i in range(len(partials))],
        operations=operations,
        params=params,
        doc=doc,
        examples=examples,
    )
    return prim


def _differentiated(formula: Formula, xs: Sequence[Any], by: Sequence[int]) -> Any:
    """The derivative of ``formula`` at ``xs`` by each of the operands numbered in ``by``."""
    dual = list(xs)
    for level, i in enumerate(by, 1):
        dual[i] = DualNumber(dual[i], primal(dual[i]).like(1.0), level)
    out = formula(*dual)
    for level in range(len(by), 0, -1):
        out = _part(out, level)[1]
    return out
