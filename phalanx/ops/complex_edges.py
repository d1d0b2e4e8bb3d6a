"""Functions of complex numbers at zeros, infinities and NaN, as C has them.

The compiler's functions are exact between. Where a part of z = x + i y is 0, infinite or NaN, C
(ISO C, Annex G) says what the parts of the result are, with their signs, and the array API standard
says the same. Functions here take x, y and the parts of the compiler's result.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from phalanx.base import dtypes
from phalanx.core.builder import Builder
from phalanx.ops.formula import (
    Number,
    absolute,
    complex_of,
    cos,
    equal,
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


def _call(method: str) -> Callable[..., Number]:
    """The function ``method`` of the builder, of real numbers."""

    def function(x: Number, *others: Number) -> Number:
        return Number(x.b, getattr(x.b, method)(x.value, *(y.value for y in others)))

    return function


_INVERSES = ("acos", "acosh", "asin", "asinh", "atan", "atanh")
_acos, _acosh, _asin, _asinh, _atan, _atanh = map(_call, _INVERSES)
_sinh, _cosh, _tanh = map(_call, ("sinh", "cosh", "tanh"))
_atan2, _finite = _call("atan2"), _call("is_finite")


def _negative(x: Number) -> Number:
    """Whether the sign of ``x`` is minus; that of -0.0 is."""
    return (x < 0.0) | (1.0 / x < 0.0)


def _copysign(size: Any, x: Number) -> Any:
    """``size``, which is not negative, with the sign of ``x``."""
    size = x.like(size)
    return where(_negative(x), -size, size)


def _infinite(x: Number) -> Number:
    return equal(absolute(x), _INF)


def at_edges(method: str, edges: _Edges) -> Callable[[Builder, Any], Any]:
    """The function ``method`` of the builder, whose complex results are right at the edges, too."""

    def lower(b: Builder, z: Any) -> Any:
        out = getattr(b, method)(z)
        if not dtypes.is_complex(b.type(z).dtype):
            return out
        given, found = Number(b, z), Number(b, out)
        return complex_of(*edges(real(given), imag(given), real(found), imag(found))).value

    return lower


def turned(edges: _Edges) -> _Edges:
    """Those of g(z) = -i f(i z), of those of f: sin of sinh, asin of asinh, and the like."""

    def of(x: Number, y: Number, re: Number, im: Number) -> _Parts:
        along, up = edges(-y, x, -im, re)
        return up, -along

    return of


def turned_within(edges: _Edges) -> _Edges:
    """Those of g(z) = f(i z), of those of f: cos of cosh."""
    return lambda x, y, re, im: edges(-y, x, re, im)


# ---- exponentials, logarithms, roots --------------------------------------------------------


def exp_edges(x: Number, y: Number, re: Number, im: Number) -> _Parts:
    """Of e^z."""
    lost, beyond = equal(x, -_INF) & ~_finite(y), equal(x, _INF) & ~_finite(y)
    re = where(lost, 0.0, where(beyond, _INF, re))
    return re, where(equal(y, 0.0), y, where(lost, _copysign(0.0, y), im))


def expm1_edges(x: Number, y: Number, re: Number, im: Number) -> _Parts:
    """Of e^z - 1."""
    re, im = exp_edges(x, y, re, im)
    lost = equal(x, -_INF) & ~_finite(y)
    return where(equal(y, 0.0), expm1(x), where(lost, -1.0, re)), im


def log_edges(x: Number, y: Number, re: Number, im: Number) -> _Parts:
    """Of log z and log(1 + z)."""
    beyond = _infinite(x) | _infinite(y)
    return where(beyond, _INF, re), where(beyond, _atan2(y, x), im)


def sqrt_edges(x: Number, y: Number, re: Number, im: Number) -> _Parts:
    """Of √z."""
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
    given = Number(b, z)
    beyond = _infinite(real(given)) | _infinite(imag(given))
    return where(beyond, _INF, Number(b, size)).value


# ---- hyperbolic functions -------------------------------------------------------------------


def sinh_edges(x: Number, y: Number, re: Number, im: Number) -> _Parts:
    """Of sinh z = sinh x cos y + i cosh x sin y."""
    flat, upright, wide = equal(y, 0.0), equal(x, 0.0), _infinite(x)
    along = where(_finite(y), x * cos(y), x)
    re = where(flat, _sinh(x), where(upright | wide, along, re))
    return re, where(flat, y, where(wide, absolute(x) * sin(y), im))


def cosh_edges(x: Number, y: Number, re: Number, im: Number) -> _Parts:
    """Of cosh z = cosh x cos y + i sinh x sin y."""
    flat, upright, wide = equal(y, 0.0), equal(x, 0.0), _infinite(x)
    along = where(_finite(y), absolute(x) * cos(y), _INF)
    up = where(upright & ~_finite(y), x, x * sin(y))
    re = where(flat, _cosh(x), where(wide, along, re))
    return re, where(flat, where(_negative(x), -y, y), where(upright | wide, up, im))


def tanh_edges(x: Number, y: Number, re: Number, im: Number) -> _Parts:
    """Of tanh z, which is 1 at the far right, and tan y / i up the axis."""
    flat, upright, wide = equal(y, 0.0), equal(x, 0.0), _infinite(x)
    re = where(flat, _tanh(x), where(upright, x, where(wide, _copysign(1.0, x), re)))
    far = _copysign(0.0, where(_finite(y), sin(y * 2.0), y))
    return re, where(flat, y, where(wide, far, im))


# ---- inverse functions ----------------------------------------------------------------------


def asinh_edges(x: Number, y: Number, re: Number, im: Number) -> _Parts:
    """Of arsinh z."""
    flat, upright, beyond = equal(y, 0.0), equal(x, 0.0), _infinite(x) | _infinite(y)
    near, height = absolute(y) <= 1.0, absolute(y)
    along = where(near, 0.0, _acosh(height))
    up = where(near, _asin(y), _copysign(math.pi / 2, y) + y * 0.0)
    far = _atan2(y, absolute(x))
    re = where(flat, _asinh(x), where(upright, _copysign(along, x), re))
    im = where(flat, y, where(upright, up, im))
    return where(beyond, _copysign(_INF, x), re), where(beyond, far, im)


def acos_edges(x: Number, y: Number, re: Number, im: Number) -> _Parts:
    """Of arccos z."""
    flat, upright, beyond = equal(y, 0.0), equal(x, 0.0), _infinite(x) | _infinite(y)
    near = absolute(x) <= 1.0
    along = where(near, _acos(x), where(x < 0.0, math.pi, x * 0.0))
    down = where(near, 0.0, _acosh(absolute(x)))
    re = where(beyond, _atan2(absolute(y), x), where(flat, along, where(upright, math.pi / 2, re)))
    im = where(flat, _copysign(down, -y), where(upright, -_asinh(y), im))
    return re, where(beyond, _copysign(_INF, -y), im)


def acosh_lower(b: Builder, z: Any) -> Any:
    """Arcosh z, which is arccos z turned to the right."""
    if not dtypes.is_complex(b.type(z).dtype):
        return b.acosh(z)
    turned_down = Number(b, at_edges("acos", acos_edges)(b, z))
    return complex_of(
        absolute(imag(turned_down)), _copysign(real(turned_down), imag(Number(b, z)))
    ).value


def atanh_edges(x: Number, y: Number, re: Number, im: Number) -> _Parts:
    """Of artanh z."""
    flat, upright, beyond = equal(y, 0.0), equal(x, 0.0), _infinite(x) | _infinite(y)
    near, quarter, nan = absolute(x) <= 1.0, _copysign(math.pi / 2, y), is_nan(x) | is_nan(y)
    along = _atanh(where(near, x, 1.0 / x))
    up = where(near, y, quarter + x * 0.0)
    far = where(is_nan(y), y, quarter)
    re = where(flat, along, where(upright, x, where(nan, math.nan, re)))
    im = where(flat, up, where(upright, _atan(y), where(nan, math.nan, im)))
    return where(beyond, _copysign(0.0, x), re), where(beyond, far, im)
