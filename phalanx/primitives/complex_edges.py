"""Functions of complex numbers at zeros, infinities and NaN, as C has them.

Between, most of the compiler's functions are accurate in both parts; sines and cosines, hyperbolic
ones too, lose all digits of a part that is near 0, and are formulas of real functions here, as is
the exponential, of which all of this takes as few operations. Where a
part of z = x + i y is 0, infinite or NaN, C (ISO C, Annex G) says what the parts of the result are,
with their signs, and the array API standard says the same. Functions of edges take x, y and the
parts of the compiler's result.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from phalanx.base import dtypes
from phalanx.core.builder import Builder
from phalanx.primitives.formula import (
    Number,
    absolute,
    complex_of,
    cos,
    equal,
    exp,
    expm1,
    imag,
    is_nan,
    real,
    sin,
    sqrt,
    where,
)

_Parts = tuple[Any, Any]
_Edges = Callable[[Number, Number, Number, Number], _Parts]
_INF = math.inf


def _finite(x: Number) -> Number:
    return Number(x.b, x.b.is_finite(x.value))


def _negative(x: Number) -> Number:
    """Whether the sign of ``x`` is minus; that of -0.0 is."""
    return Number(x.b, x.b.compare(x.value, x.like(0.0).value, "LT", total=True))


def _copysign(size: Any, x: Number) -> Any:
    """``size``, which is not negative, with the sign of ``x``."""
    size = x.like(size)
    return where(_negative(x), -size, size)


def _infinite(x: Number) -> Number:
    return equal(absolute(x), _INF)


def _direction(x: Number, y: Number) -> Any:
    """The angle from 0 to π between the real axis and where x + i y lies, infinitely far away."""
    quarter, zero = x.like(math.pi / 4), x.like(0.0)
    up = where(_infinite(y), where(_infinite(x), quarter, quarter * 2.0), zero)
    return where(is_nan(x) | is_nan(y), math.nan, where(x < 0.0, math.pi - up, up))


def at_edges(method: str, edges: _Edges) -> Callable[[Builder, Any], Any]:
    """The function ``method`` of the builder, whose complex results are right at the edges, too."""

    def lower(b: Builder, z: Any) -> Any:
        out = getattr(b, method)(z)
        if not dtypes.is_complex(b.type(z).dtype):
            return out
        number, found = Number(b, z), Number(b, out)
        return complex_of(*edges(real(number), imag(number), real(found), imag(found))).value

    return lower


def in_parts(method: str, formula: Callable[[Number, Number], _Parts]) -> Callable[..., Any]:
    """The function ``method`` of the builder for real numbers, a formula for complex ones."""

    def lower(b: Builder, z: Any) -> Any:
        if not dtypes.is_complex(b.type(z).dtype):
            return getattr(b, method)(z)
        number = Number(b, z)
        return complex_of(*formula(real(number), imag(number))).value

    return lower


def turned(f: Callable[..., _Parts]) -> Callable[..., _Parts]:
    """g(z) = -i f(i z) of f, with what the compiler found if f takes it: sin of sinh, and such."""

    def of(x: Number, y: Number, *found: Number) -> _Parts:
        along, up = f(-y, x, *((-found[1], found[0]) if found else ()))
        return up, -along

    return of


# ---- exponentials, logarithms, roots --------------------------------------------------------


def _exp(x: Number, y: Number) -> _Parts:
    """e^x (cos y + i sin y), where e^x may be too large by itself. At infinite x it is infinite, or
    0, in the direction of the real axis if y gives none."""
    angle = where(_finite(x) | _finite(y), y, 0.0)
    root = exp(x * 0.5)
    im = where(equal(y, 0.0), y, root * sin(angle) * root)
    return root * cos(angle) * root, im


exp_lower = in_parts("exponential", _exp)


def expm1_edges(x: Number, y: Number, re: Number, im: Number) -> _Parts:
    """Edges of e^z - 1, whose compiled imaginary part is that of (e^x - 1) + 1."""
    far, im = _exp(x, y)
    return where(equal(y, 0.0), expm1(x), where(_infinite(x), far - 1.0, re)), im


def log_edges(x: Number, y: Number, re: Number, im: Number) -> _Parts:
    """Edges of log z and log(1 + z)."""
    beyond = _infinite(x) | _infinite(y)
    return where(beyond, _INF, re), where(beyond, _copysign(_direction(x, y), y), im)


def sqrt_edges(x: Number, y: Number, re: Number, im: Number) -> _Parts:
    """Edges of √z."""
    flat, wide, tall, root = equal(y, 0.0), _infinite(x), _infinite(y), sqrt(absolute(x))
    edge, back = flat | wide, x < 0.0
    nan = is_nan(x) | is_nan(y)
    along = where(back, where(is_nan(y), y, 0.0), root)
    up = where(back, _copysign(root, y), where(nan, x * y, _copysign(0.0, y)))
    return (
        where(tall, _INF, where(edge, along, re)),
        where(tall, y, where(edge, up, im)),
    )


def abs_lower(b: Builder, z: Any) -> Any:
    """|z|: infinite where a part is, whatever the other one is."""
    size = b.abs(z)
    if not dtypes.is_complex(b.type(z).dtype):
        return size
    number = Number(b, z)
    beyond = _infinite(real(number)) | _infinite(imag(number))
    return where(beyond, _INF, Number(b, size)).value


# ---- sines, cosines, tangents ---------------------------------------------------------------


def _halves(x: Number) -> tuple[Number, Number]:
    """sinh x/2 and 2 cosh x/2, of which sinh x and cosh x are made without loss near 0, and
    overflow in no product that does not."""
    above, below = expm1(x * 0.5), expm1(x * -0.5)
    return (above - below) * 0.5, above + below + 2.0


def _sinh(x: Number, y: Number) -> _Parts:
    """sinh z = sinh x cos y + i cosh x sin y."""
    half, other = _halves(x)
    along, up = cos(y), sin(y)
    alone = equal(x + x, x) & is_nan(along)  # x is 0 or infinite, and y is neither
    re = where(alone, x, along * half * other)
    return re, where(equal(y, 0.0), y, up + up * half * half * 2.0)


def _cosh(x: Number, y: Number) -> _Parts:
    """cosh z = cosh x cos y + i sinh x sin y."""
    half, other = _halves(x)
    along, up = cos(y), sin(y)
    lost = is_nan(along)
    re = where(_infinite(x) & lost, _INF, along + along * half * half * 2.0)
    im = where(equal(x, 0.0) & lost, x, up * half * other)
    return re, where(equal(y, 0.0), where(_negative(x) & ~is_nan(x), -y, y), im)


def _sin(x: Number, y: Number) -> _Parts:
    """sin z = -i sinh iz."""
    along, up = _sinh(y, x)
    return up, along


def _cos(x: Number, y: Number) -> _Parts:
    """cos z = cosh iz."""
    return _cosh(-y, x)


sinh_lower, cosh_lower = in_parts("sinh", _sinh), in_parts("cosh", _cosh)
sin_lower, cos_lower = in_parts("sine", _sin), in_parts("cosine", _cos)


def tanh_edges(x: Number, y: Number, re: Number, im: Number) -> _Parts:
    """Edges of tanh z, which is 1 at the far right, and tan y / i up the axis."""
    flat, upright, wide = equal(y, 0.0), equal(x, 0.0), _infinite(x)
    re = where(upright, x, where(wide, _copysign(1.0, x), re))
    far = _copysign(0.0, where(_finite(y), sin(y) * cos(y), y))
    return re, where(flat, y, where(wide, far, im))


# ---- inverse functions ----------------------------------------------------------------------


def asinh_edges(x: Number, y: Number, re: Number, im: Number) -> _Parts:
    """Edges of arsinh z, which lies in the quadrant of z."""
    beyond = _infinite(x) | _infinite(y)
    re = _copysign(where(beyond, _INF, absolute(re)), x)
    im = _copysign(where(beyond, _direction(absolute(x), y), absolute(im)), y)
    return re, where(equal(y, 0.0), y, im)


def acos_edges(x: Number, y: Number, re: Number, im: Number) -> _Parts:
    """Edges of arccos z, which is never on the left, and has the sign of y turned."""
    beyond, upright = _infinite(x) | _infinite(y), equal(x, 0.0)
    re = where(beyond, _direction(x, y), where(upright, math.pi / 2, re))
    return re, _copysign(where(beyond, _INF, absolute(im)), -y)


def acosh_lower(b: Builder, z: Any) -> Any:
    """Arcosh z, which is arccos z turned to the right."""
    if not dtypes.is_complex(b.type(z).dtype):
        return b.acosh(z)
    turned_down = Number(b, at_edges("acos", acos_edges)(b, z))
    return complex_of(
        absolute(imag(turned_down)), _copysign(real(turned_down), imag(Number(b, z)))
    ).value


def atanh_edges(x: Number, y: Number, re: Number, im: Number) -> _Parts:
    """Edges of artanh z, which lies in the quadrant of z."""
    beyond, upright = _infinite(x) | _infinite(y), equal(x, 0.0)
    nan = is_nan(x) | is_nan(y)
    far = where(is_nan(y), y, math.pi / 2)
    re = where(upright | beyond, 0.0, where(nan, math.nan, absolute(re)))
    im = where(beyond, far, where(nan, math.nan, absolute(im)))
    return _copysign(re, x), _copysign(im, y)
