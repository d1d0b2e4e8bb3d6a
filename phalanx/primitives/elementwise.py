"""Arithmetic, rounding, powers, exponentials, trigonometry, one element at a time.

A partial derivative is a function of the result and the operands: ``lambda y, x: ...``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, TypedDict

import numpy as np

from phalanx.base import dtypes
from phalanx.core.builder import Body, Builder
from phalanx.core.primitive import (
    ZERO,
    Active,
    Cotangents,
    Derivative,
    Example,
    Linear,
    Operations,
    Primitive,
)
from phalanx.core.types import ArrayType, typeof
from phalanx.primitives import complex_edges as edges
from phalanx.primitives.basis import add, add_tangents, full, mul, neg, pointwise, sub
from phalanx.primitives.bits import and_
from phalanx.primitives.compare import eq, ne, select
from phalanx.primitives.complex import c64, complex, conj, imag, real
from phalanx.primitives.domains import Domain, anything, f32, i32, number, real_number
from phalanx.primitives.formula import Number, complex_of
from phalanx.primitives.formula import imag as imag_of
from phalanx.primitives.formula import real as real_of

_F = Example((f32(2, 3),))
_C = Example((c64(3),))
_I = Example((i32(3),))
_POSITIVE = Example((f32(2, 3),), low=0.25, high=2.0)
_OPEN = Example((f32(2, 3),), low=-0.75, high=0.75)
_FF = Example((f32(2, 3), f32(2, 3)))
_II = Example((i32(3), i32(3)), low=1, high=9)


def filled(x: Any, out: Any) -> Any:
    """A scalar operand ``x`` repeated to the shape of ``out``; arrays as they are."""
    return full(out.shape, x, out.dtype) if isinstance(x, np.generic) else x


def _inverse(x: Any) -> Any:
    return div(1, x)


# ---- sign and rounding ----------------------------------------------------------------------


def _abs_linearize(active: Active, x: Any) -> Derivative:
    direction = sign(x)
    if not dtypes.is_complex(typeof(x).dtype):
        return abs(x), lambda t: mul(t, direction)
    direction = conj(direction)
    return abs(x), lambda t: real(mul(t, direction))


def _sign_lower(b: Builder, x: Any) -> Any:
    kind = b.type(x)
    if dtypes.is_unsigned(kind.dtype):
        return b.minimum(x, b.constant(1, kind.dtype, kind.shape))
    return b.sign(x)


def _sign_linearize(active: Active, x: Any) -> Derivative:
    out = sign(x)
    if not dtypes.is_complex(typeof(x).dtype):
        return out, lambda t: ZERO
    size = abs(x)
    rotation = mul(complex(0.0, div(1, select(eq(size, 0), 1, size))), out)
    back = conj(out)

    def linear(t: Any) -> Any:
        return mul(rotation, complex(imag(mul(back, t)), 0.0))

    return out, linear


abs = pointwise(
    "abs",
    lambda b, x: x if dtypes.is_unsigned(b.type(x).dtype) else edges.abs_lower(b, x),
    on=number,
    result=dtypes.to_real,
    linearize=_abs_linearize,
    copied=True,
    operations=(1, 8),
    doc="|x|, with derivative 0 at 0; stablehlo.abs",
    examples=[_F, _C, _I],
)

sign = pointwise(
    "sign",
    _sign_lower,
    on=number,
    linearize=_sign_linearize,
    doc="x / |x|, and 0 at 0; stablehlo.sign",
    examples=[_F, _C, _I],
)

_STEPS = "it is piecewise constant"


def _round_lower(b: Builder, x: Any, mode: str) -> Any:
    return b.round_nearest_even(x) if mode == "even" else b.round_nearest_afz(x)


floor = pointwise(
    "floor",
    lambda b, x: b.floor(x),
    on=dtypes.is_floating,
    partials=_STEPS,
    doc="⌊x⌋; stablehlo.floor",
    examples=[Example((f32(2, 3),), low=-3.0, high=3.0)],
)

ceil = pointwise(
    "ceil",
    lambda b, x: b.ceil(x),
    on=dtypes.is_floating,
    partials=_STEPS,
    doc="⌈x⌉; stablehlo.ceil",
    examples=[Example((f32(2, 3),), low=-3.0, high=3.0)],
)


class _Halves(TypedDict):
    mode: str


round = pointwise(
    "round",
    _round_lower,
    on=dtypes.is_floating,
    partials=_STEPS,
    params=_Halves,
    doc="the nearest integer; halves to the 'even' one or 'away' from 0; stablehlo.round_nearest",
    examples=[
        Example((f32(2, 3),), {"mode": "even"}, low=-3.0, high=3.0),
        Example((f32(2, 3),), {"mode": "away"}, low=-3.0, high=3.0),
    ],
)

is_finite = pointwise(
    "is_finite",
    lambda b, x: b.is_finite(x),
    on=dtypes.is_floating,
    result=np.dtype(bool),
    partials="a truth value is piecewise constant",
    doc="whether x is neither infinite nor NaN; stablehlo.is_finite",
    examples=[_F],
)

stop_gradient = pointwise(
    "stop_gradient",
    lambda b, x: x,
    on=anything,
    partials="stopping derivatives is its purpose",
    copied=True,
    doc="x, as a constant to derivatives",
    examples=[_F, _I],
)

nextafter = pointwise(
    "nextafter",
    lambda b, x, y: b.next_after(x, y),
    on=dtypes.is_floating,
    partials="a step between neighbouring numbers is no number to differentiate",
    operations=23,
    short="bits",
    doc="the number after x on the way to y; chlo.next_after",
    examples=[_FF],
)


def _reduce_precision_lower(b: Builder, x: Any, exponent_bits: int, mantissa_bits: int) -> Any:
    return b.reduce_precision(x, exponent_bits, mantissa_bits)


def _rounded_alike(active: Active, x: Any, **bits: int) -> Derivative:
    return reduce_precision(x, **bits), lambda t: reduce_precision(t, **bits)


def _rounded_back(ct: Any, x: Any, **bits: int) -> Cotangents:
    return [reduce_precision(ct, **bits)]


class _Format(TypedDict):
    exponent_bits: int
    mantissa_bits: int


reduce_precision = pointwise(
    "reduce_precision",
    _reduce_precision_lower,
    on=dtypes.is_floating,
    linearize=_rounded_alike,
    transpose=_rounded_back,
    linear=(),
    params=_Format,
    doc="x rounded to a format with so many bits, its tangents alike; stablehlo.reduce_precision",
    examples=[Example((f32(2, 3),), {"exponent_bits": 11, "mantissa_bits": 52})],
)


# ---- quotients ------------------------------------------------------------------------------


def _div_linearize(active: Active, x: Any, y: Any) -> Derivative:
    out = div(x, y)

    def linear(tx: Any, ty: Any) -> Any:  # (tx - ty x/y) / y: keeps no more than what is there
        return div(add_tangents(tx, ZERO if ty is ZERO else neg(mul(ty, out))), y)

    return out, linear


div = pointwise(
    "div",
    lambda b, x, y: b.divide(x, y),
    on=number,
    linearize=_div_linearize,
    transpose=lambda ct, x, y: [div(ct, y) if isinstance(x, Linear) else None, None],
    linear=((0,),),
    doc="x / y, towards 0 for integers; stablehlo.divide",
    examples=[
        Example((f32(2, 3), f32(2, 3)), low=0.5, high=2.0),
        Example((c64(3), c64(3)), low=0.5, high=2.0),
        _II,
    ],
)

rem = pointwise(
    "rem",
    lambda b, x, y: b.remainder(x, y),
    on=real_number,
    partials=[
        lambda out, x, y: full(out.shape, 1, out.dtype),
        lambda out, x, y: round(div(sub(out, x), y), mode="even"),
    ],
    doc="x - y trunc(x / y), with the sign of x; stablehlo.remainder",
    examples=[Example((f32(2, 3), f32(2, 3)), low=0.5, high=2.0), _II],
)


# ---- powers and roots -----------------------------------------------------------------------


def _power_by_squaring(b: Builder, x: Any, y: int) -> Any:
    out = None
    while y:
        if y & 1:
            out = x if out is None else b.multiply(out, x)
        y >>= 1
        if y:
            x = b.multiply(x, x)
    return out


def _integer_pow_lower(b: Builder, x: Any, y: int) -> Any:
    if y > 0:
        return _power_by_squaring(b, x, y)
    one = b.constant(1, b.outs[0].dtype, b.outs[0].shape)
    return b.divide(one, _power_by_squaring(b, x, -y)) if y else one


def _integer_pow_linearize(active: Active, x: Any, y: int) -> Derivative:
    out = integer_pow(x, y=y)
    if y == 0:
        return out, lambda t: ZERO
    slope = mul(integer_pow(x, y=y - 1), y)
    return out, lambda t: mul(t, slope)


def _pow_lower(b: Builder, x: Any, y: Any) -> Any:
    return _power_of_integers(b, x, y) if dtypes.is_integer(b.type(x).dtype) else b.power(x, y)


def _power_of_integers(b: Builder, x: Any, y: Any) -> Any:
    """Modulo 2ⁿ in n bits; at negative powers 1 / x, rounded towards 0.

    By squaring for the low bits of y, up to 2ᵗ ≥ n, where powers of even x vanish. Of odd x,
    x^2ᵗ is 1 + c with c divisible by 2^(t + 2): two terms in c are left of its m-th power.
    """
    kind = b.type(x)
    bits = dtypes.iinfo(kind.dtype).bits
    low = max(math.ceil(math.log2(bits)), math.ceil(bits / 3) - 2)

    def like(value: int) -> Any:
        return b.constant(value, kind.dtype, kind.shape)

    def is_odd(x: Any) -> Any:
        return b.compare(b.and_(x, like(1)), like(0), "NE")

    out, square = like(1), x
    for i in range(low):
        factor = b.select(is_odd(b.shift_right_logical(y, like(i))), square, like(1))
        out, square = b.multiply(out, factor), b.multiply(square, square)
    m, c = b.shift_right_logical(y, like(low)), b.subtract(square, like(1))
    pairs = b.shift_right_logical(b.multiply(m, b.subtract(m, like(1))), like(1))
    high = b.multiply(c, b.add(m, b.multiply(pairs, c)))
    vanishes = b.and_(b.compare(m, like(0), "NE"), b.not_(is_odd(x)))
    out = b.select(vanishes, like(0), b.multiply(out, b.add(like(1), high)))
    if dtypes.is_unsigned(kind.dtype):
        return out
    unit = b.or_(b.compare(x, like(1), "EQ"), b.compare(x, like(-1), "EQ"))
    return b.select(b.or_(b.compare(y, like(0), "GE"), unit), out, like(0))


def _pow_slope(x: Any, y: Any) -> Any:
    """y x^(y-1), and 0 where both are 0. Elsewhere at y = 0, too, its slope in y is x^(y-1)."""
    undefined = and_(eq(y, 0), eq(x, 0))
    return mul(y, pow(x, select(undefined, 1, sub(y, 1))))


def _pow_operations(results: Sequence[ArrayType], *types: ArrayType) -> float:
    """Integers are squared and multiplied, once for each bit."""
    return results[0].size * (75 if dtypes.is_integer(results[0].dtype) else 1)


def _pow_exponent_slope(out: Any, x: Any) -> Any:
    """x^y log x, and 0 where x is 0."""
    return mul(out, log(select(eq(x, 0), 1, x)))


class _Exponent(TypedDict):
    y: int


integer_pow = pointwise(
    "integer_pow",
    _integer_pow_lower,
    on=number,
    linearize=_integer_pow_linearize,
    params=_Exponent,
    doc="x^y for an integer y, by repeated squaring",
    examples=[
        Example((f32(2, 3),), {"y": 3}),
        Example((f32(3),), {"y": -2}, low=0.5, high=2.0),
        Example((c64(3),), {"y": 5}),
        Example((f32(3),), {"y": 0}),
        Example((i32(3),), {"y": 2}),
    ],
)


def integer_power(who: str, x: Any, y: int) -> Any:
    """``integer_pow`` of what a user gives to ``who``.

    Raises:
        TypeError: integers, to a negative power.
    """
    dtype = typeof(x).dtype
    if y < 0 and dtypes.is_integer(dtype):
        raise TypeError(
            f"{who}: integers cannot be raised to the negative power {y}; make the base a "
            f"floating-point number, as in x.astype(float) ** {y}"
        )
    return integer_pow(x, y=y)


square = pointwise(
    "square",
    lambda b, x: b.multiply(x, x),
    on=number,
    partials=[lambda out, x: mul(x, 2)],
    doc="x²",
    examples=[_F, _C, _I],
)

pow = pointwise(
    "pow",
    _pow_lower,
    on=number,
    partials=[
        lambda out, x, y: _pow_slope(filled(x, out), filled(y, out)),
        lambda out, x, y: _pow_exponent_slope(out, filled(x, out)),
    ],
    operations=_pow_operations,
    doc="x^y; derivatives at x = 0 are limits or 0; stablehlo.power, but of integers products",
    examples=[
        Example((f32(2, 3), f32(2, 3)), low=0.5, high=2.0),
        Example((c64(3), c64(3)), low=0.5, high=2.0),
        Example((i32(3), i32(3)), low=0, high=4),
    ],
)

sqrt = pointwise(
    "sqrt",
    edges.at_edges("sqrt", edges.sqrt_edges),
    on=dtypes.is_inexact,
    partials=[lambda y, x: div(0.5, y)],
    operations=(1, 100),
    doc="√x; stablehlo.sqrt",
    examples=[_POSITIVE, _C],
)

rsqrt = pointwise(
    "rsqrt",
    lambda b, x: b.rsqrt(x),
    on=dtypes.is_inexact,
    partials=[lambda y, x: mul(div(y, x), -0.5)],
    doc="1 / √x; stablehlo.rsqrt",
    examples=[_POSITIVE, Example((c64(3),), low=0.25, high=2.0)],
)


def _cbrt_lower(b: Builder, x: Any) -> Any:
    """Where a platform takes subnormal numbers for 0, it may know nothing of their sign."""
    kind = b.type(x)
    zero = b.compare(x, b.constant(0, kind.dtype, kind.shape), "EQ")
    return b.select(zero, x, b.cbrt(x))


cbrt = pointwise(
    "cbrt",
    _cbrt_lower,
    on=dtypes.is_floating,
    partials=[lambda y, x: div(1 / 3, square(y))],
    doc="the real cube root of x; stablehlo.cbrt",
    examples=[_POSITIVE],
)


# ---- exponentials and logarithms ------------------------------------------------------------


def _function(
    name: str,
    lower: Body,
    slope: Callable[[Any, Any], Any],
    doc: str,
    *examples: Example,
    on: Domain = dtypes.is_inexact,
    operations: Operations = (1, 40),
) -> Primitive:
    """A differentiable function of one variable; ``slope`` is that of (result, operand)."""
    tested = examples or (_F, _C)
    return pointwise(
        name, lower, on=on, partials=[slope], operations=operations, doc=doc, examples=tested
    )


def _exp2_lower(b: Builder, x: Any) -> Any:
    return b.power(b.constant(2, b.outs[0].dtype, b.outs[0].shape), x)


exp = _function(
    "exp",
    edges.exp_lower,
    lambda y, x: y,
    "e^x; stablehlo.exponential",
)
exp2 = _function(
    "exp2",
    _exp2_lower,
    lambda y, x: mul(y, math.log(2)),
    "2^x; stablehlo.power",
    operations=1,
)
expm1 = _function(
    "expm1",
    edges.at_edges("exponential_minus_one", edges.expm1_edges),
    lambda y, x: exp(x),  # 1 + y has no digits where y is close to -1
    "e^x - 1, exact near 0; stablehlo.exponential_minus_one",
)


def _logarithm(
    name: str, lower: Body, inside: Callable[[Any], Any], doc: str, *examples: Example
) -> Primitive:
    """A logarithm of ``inside(x)``, by which tangents are divided: its inverse may underflow."""

    def linearize(active: Active, x: Any) -> Derivative:
        divisor = inside(x)
        return prim(x), lambda t: div(t, divisor)

    prim = pointwise(
        name, lower, on=dtypes.is_inexact, linearize=linearize, operations=(1, 80), doc=doc,
        examples=examples,
    )  # fmt: skip
    return prim


log = _logarithm(
    "log",
    edges.at_edges("log", edges.log_edges),
    lambda x: x,
    "the natural logarithm; stablehlo.log",
    _POSITIVE,
    Example((c64(3),), low=0.25, high=2.0),
)
log1p = _logarithm(
    "log1p",
    edges.at_edges("log_plus_one", edges.log_edges),
    lambda x: add(x, 1),
    "log(1 + x), exact near 0; stablehlo.log_plus_one",
    _OPEN,
    Example((c64(3),), low=-0.5, high=0.5),
)


def _bell(b: Builder, x: Any, of_middle: float) -> Any:
    """Such a multiple of u / (1 + u)² of u = e^-|x|, which is as large at -x, that it is
    ``of_middle`` at 0. Functions that go to 1 have no digits of their distance from it, of which
    their derivatives could be made."""
    kind = b.type(x)
    one, down = b.constant(1, kind.dtype, kind.shape), b.negate(x)
    if dtypes.is_complex(kind.dtype):
        along = b.real(x)
        zero = b.constant(0, b.type(along).dtype, kind.shape)
        inward = b.select(b.compare(along, zero, "LT"), x, down)
    else:
        inward = b.negate(b.abs(x))
    u = b.exponential(inward)
    above_one = b.add(one, u)
    above = (
        u if of_middle == 0.25 else b.multiply(u, b.constant(4 * of_middle, kind.dtype, kind.shape))
    )
    return b.divide(above, b.multiply(above_one, above_one))


logistic_slope: Primitive = _function(
    "logistic_slope",
    lambda b, x: _bell(b, x, 0.25),
    lambda y, x: neg(mul(y, tanh(mul(x, 0.5)))),
    "e^x / (1 + e^x)², the derivative of logistic",
    operations=(6, 40),
)
logistic = _function(
    "logistic",
    lambda b, x: b.logistic(x),
    lambda y, x: logistic_slope(x),
    "1 / (1 + e^-x); stablehlo.logistic",
    operations=(3, 4),
)


def logaddexp_body(b: Builder, x: Any, y: Any) -> Any:
    """log(e^x + e^y): the greater one, and what the gap between them adds."""
    gap = b.subtract(x, y)
    tail = b.log_plus_one(b.exponential(b.negate(b.abs(gap))))
    equal_infinities = b.compare(gap, gap, "NE")
    return b.select(equal_infinities, b.add(x, y), b.add(b.maximum(x, y), tail))


def logaddexp_share(x: Any, y: Any) -> Any:
    """e^x / (e^x + e^y): a half where both are the same infinity."""
    gap = sub(x, y)
    return logistic(select(and_(eq(x, y), ne(gap, gap)), 0, gap))


logaddexp = pointwise(
    "logaddexp",
    logaddexp_body,
    on=dtypes.is_floating,
    partials=[
        lambda out, x, y: logaddexp_share(x, y),
        lambda out, x, y: logaddexp_share(y, x),
    ],
    operations=10,
    doc="log(e^x + e^y), without overflow; stablehlo.log_plus_one",
    examples=[_FF],
)


# ---- trigonometric and hyperbolic functions -------------------------------------------------


def _one_minus_square_lower(b: Builder, x: Any) -> Any:
    one = b.constant(1, b.outs[0].dtype, b.outs[0].shape)
    return b.multiply(b.subtract(one, x), b.add(one, x))


one_minus_square = pointwise(
    "one_minus_square",
    _one_minus_square_lower,
    on=number,
    partials=[lambda out, x: mul(x, -2)],
    doc="1 - x², exact near ±1",
    examples=[_F, _C, _I],
)


def _at_one(inverse: Callable[[Any], Any], x: Any) -> Any:
    """``inverse`` of 1 - x², which complex numbers may be too large for."""
    if not dtypes.is_complex(typeof(x).dtype):
        return inverse(one_minus_square(x))
    return mul(inverse(sub(1, x)), inverse(add(x, 1)))


def _by_factors(b: Builder, x: Any, inverse: Callable[[Builder, Any], Any]) -> Any:
    """``inverse`` of 1 + z² of complex z, by those of 1 + iz and 1 - iz: z² may be too large."""
    number = Number(b, x)
    up, along = imag_of(number), real_of(number)
    first, second = complex_of(1.0 - up, along), complex_of(up + 1.0, -along)
    return b.multiply(inverse(b, first.value), inverse(b, second.value))


def _asinh_slope_lower(b: Builder, x: Any) -> Any:
    """1/√(1 + x²), and 1/|x| where 1 is lost beside x², which may be too large."""
    kind = b.type(x)
    if dtypes.is_complex(kind.dtype):
        return _by_factors(b, x, lambda b, z: b.rsqrt(z))
    size, one = b.abs(x), b.constant(1, kind.dtype, kind.shape)
    far = b.constant(float(dtypes.finfo(kind.dtype).eps) ** -0.75, kind.dtype, kind.shape)
    near = b.rsqrt(b.add(b.multiply(x, x), one))
    return b.select(b.compare(size, far, "GT"), b.divide(one, size), near)


def _atan_slope_lower(b: Builder, x: Any) -> Any:
    kind = b.type(x)
    one = b.constant(1, kind.dtype, kind.shape)
    if dtypes.is_complex(kind.dtype):
        return _by_factors(b, x, lambda b, z: b.divide(one, z))
    return b.divide(one, b.add(one, b.multiply(x, x)))


asinh_slope: Primitive = _function(
    "asinh_slope",
    _asinh_slope_lower,
    lambda y, x: mul(mul(mul(x, y), neg(y)), y),  # x y is at most 1
    "1 / √(1 + x²), the derivative of asinh",
    _F,
    Example((c64(3),), low=-0.5, high=0.5),
    operations=(7, 12),
)
atan_slope: Primitive = _function(
    "atan_slope",
    _atan_slope_lower,
    lambda y, x: mul(mul(mul(x, y), -2), y),
    "1 / (1 + x²), the derivative of atan",
    _F,
    Example((c64(3),), low=-0.5, high=0.5),
    operations=(3, 40),
)


def _tan_slope(y: Any, x: Any) -> Any:
    """1 + y², which has no digits where y is near i: 1 / cosh² iz there."""
    if dtypes.is_complex(typeof(x).dtype):
        return tanh_slope(mul(x, 1j))
    return add(1, square(y))


sin: Primitive = _function("sin", edges.sin_lower, lambda y, x: cos(x), "sin x; stablehlo.sine")
cos = _function("cos", edges.cos_lower, lambda y, x: neg(sin(x)), "cos x; stablehlo.cosine")
tan = _function(
    "tan",
    edges.at_edges("tan", edges.turned(edges.tanh_edges)),
    _tan_slope,
    "stablehlo.tan",
)
asin = _function(
    "asin",
    edges.at_edges("asin", edges.turned(edges.asinh_edges)),
    lambda y, x: _at_one(rsqrt, x),
    "arcsin x; chlo.asin",
    _OPEN,
    _C,
    operations=(5, 230),
)
acos = _function(
    "acos",
    edges.at_edges("acos", edges.acos_edges),
    lambda y, x: neg(_at_one(rsqrt, x)),
    "arccos x; chlo.acos",
    _OPEN,
    _C,
    operations=(5, 230),
)
atan = _function(
    "atan",
    edges.at_edges("atan", edges.turned(edges.atanh_edges)),
    lambda y, x: atan_slope(x),
    "arctan x; chlo.atan",
    _F,
    Example((c64(3),), low=-0.5, high=0.5),
)
sinh: Primitive = _function(
    "sinh",
    edges.sinh_lower,
    lambda y, x: cosh(x),
    "sinh x; chlo.sinh",
    operations=(13, 40),
)
cosh = _function(
    "cosh",
    edges.cosh_lower,
    lambda y, x: sinh(x),
    "cosh x; chlo.cosh",
    operations=(5, 40),
)
tanh = _function(
    "tanh",
    edges.at_edges("tanh", edges.tanh_edges),
    lambda y, x: tanh_slope(x),
    "tanh x; stablehlo.tanh",
)
tanh_slope: Primitive = _function(
    "tanh_slope",
    lambda b, x: _bell(b, b.add(x, x), 1),
    lambda y, x: mul(mul(y, tanh(x)), -2),
    "1 / cosh² x, the derivative of tanh",
    operations=(8, 40),
)
asinh = _function(
    "asinh",
    edges.at_edges("asinh", edges.asinh_edges),
    lambda y, x: asinh_slope(x),
    "arsinh x; chlo.asinh",
    _F,
    Example((c64(3),), low=-0.5, high=0.5),
    operations=(14, 240),
)
acosh = _function(
    "acosh",
    edges.acosh_lower,
    lambda y, x: mul(rsqrt(sub(x, 1)), rsqrt(add(x, 1))),
    "arcosh x; chlo.acosh",
    Example((f32(2, 3),), low=1.5, high=3.0),
    Example((c64(3),), low=1.5, high=3.0),
    operations=(11, 240),
)
atanh = _function(
    "atanh",
    edges.at_edges("atanh", edges.atanh_edges),
    lambda y, x: _at_one(_inverse, x),
    "artanh x; chlo.atanh",
    _OPEN,
    Example((c64(3),), low=-0.5, high=0.5),
    operations=(8, 80),
)


def _atan2_slope_lower(b: Builder, x: Any, y: Any) -> Any:
    """1 / (x + y (y / x)): no square is too large, or too small, where the result is not."""
    kind = b.type(x)
    one = b.constant(1, kind.dtype, kind.shape)
    out = b.divide(one, b.add(x, b.multiply(y, b.divide(y, x))))
    if not dtypes.is_complex(kind.dtype):
        return out
    zero = b.constant(0, kind.dtype, kind.shape)
    return b.select(b.compare(x, zero, "EQ"), b.divide(x, b.multiply(y, y)), out)


def _atan2_slope_by_x(out: Any, x: Any, y: Any) -> Any:
    other = atan2_slope(y, x)
    return mul(sub(other, out), add(other, out))


_NEAR_ONE = Example((f32(2, 3), f32(2, 3)), low=0.25, high=1.0)

atan2_slope: Primitive = pointwise(
    "atan2_slope",
    _atan2_slope_lower,
    on=dtypes.is_inexact,
    partials=[
        _atan2_slope_by_x,
        lambda out, x, y: mul(mul(out, atan2_slope(y, x)), -2),
    ],
    operations=(4, 40),
    doc="x / (x² + y²), the derivative of atan2(y, x) by y",
    examples=[_NEAR_ONE],
)

atan2 = pointwise(
    "atan2",
    lambda b, y, x: b.atan2(y, x),
    on=dtypes.is_inexact,
    partials=[
        lambda out, y, x: atan2_slope(x, y),
        lambda out, y, x: neg(atan2_slope(y, x)),
    ],
    doc="the angle of the point (x, y), given as (y, x); stablehlo.atan2",
    examples=[_NEAR_ONE],
)
