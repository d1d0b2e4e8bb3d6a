"""Elementwise trigonometric and hyperbolic functions.

Integers and booleans are converted to the default floating-point dtype.
"""

from __future__ import annotations

import builtins
import math
from typing import Any

import numpy as np

from phalanx import primitives as ops
from phalanx.base import dtypes, lattice
from phalanx.base.dtypes import COMPLEXES
from phalanx.control.one_program import one_program
from phalanx.core.types import Array
from phalanx.numpy.arithmetic import add, remainder, subtract
from phalanx.numpy.cumulative import cumsum
from phalanx.numpy.differences import diff
from phalanx.numpy.extrema import maximum
from phalanx.numpy.logic import equal, greater, less, logical_and
from phalanx.numpy.promotion import (
    ArrayLike,
    arrays,
    as_array,
    convert,
    dim,
    inexact,
    inexact_pair,
    is_python_scalar,
    literal,
)
from phalanx.numpy.searching import where
from phalanx.primitives.hypot import hypot as _hypot

# ---- trigonometric functions --------------------------------------------------------------


@one_program
def sin(x: ArrayLike, /) -> Array:
    """The sine of x in radians, elementwise.

    Args:
        x: an array, or a number.

    Returns:
        An array of the shape and dtype of ``x``; integers give float32.

    >>> float(jnp.sin(0.0))
    0.0
    """
    return ops.sin(inexact("sin", x))


@one_program
def cos(x: ArrayLike, /) -> Array:
    """The cosine of x in radians, elementwise.

    Args:
        x: an array, or a number.

    Returns:
        An array of the shape and dtype of ``x``; integers give float32.

    >>> float(jnp.cos(0.0))
    1.0
    """
    return ops.cos(inexact("cos", x))


@one_program
def tan(x: ArrayLike, /) -> Array:
    """The tangent of x in radians, elementwise.

    Args:
        x: an array, or a number.

    Returns:
        An array of the shape and dtype of ``x``; integers give float32.

    >>> float(jnp.tan(0.0))
    0.0
    """
    return ops.tan(inexact("tan", x))


@one_program
def arcsin(x: ArrayLike, /) -> Array:
    """The angle in [-π/2, π/2] whose sine is x, elementwise.

    Args:
        x: an array, or a number.

    Returns:
        An array of the shape and dtype of ``x``; integers give float32.

    >>> float(jnp.arcsin(0.0))
    0.0
    """
    return ops.asin(inexact("arcsin", x))


@one_program
def arccos(x: ArrayLike, /) -> Array:
    """The angle in [0, π] whose cosine is x, elementwise.

    Args:
        x: an array, or a number.

    Returns:
        An array of the shape and dtype of ``x``; integers give float32.

    >>> float(jnp.arccos(1.0))
    0.0
    """
    return ops.acos(inexact("arccos", x))


@one_program
def arctan(x: ArrayLike, /) -> Array:
    """The angle in [-π/2, π/2] whose tangent is x, elementwise.

    Args:
        x: an array, or a number.

    Returns:
        An array of the shape and dtype of ``x``; integers give float32.

    >>> float(jnp.arctan(0.0))
    0.0
    """
    return ops.atan(inexact("arctan", x))


@one_program
def arctan2(y: ArrayLike, x: ArrayLike, /) -> Array:
    """The angle in [-π, π] of the point (x, y), elementwise.

    Args:
        y: an array, or a number; the two broadcast.
        x: an array, or a number.

    Returns:
        An array of the broadcast shape; integers give float32.

    Raises:
        ShapeError: the arguments do not broadcast to one shape.

    >>> round(float(jnp.arctan2(1.0, -1.0)), 4)
    2.3562
    """
    return ops.atan2(*inexact_pair("arctan2", y, x))


@one_program
def hypot(x: ArrayLike, y: ArrayLike, /) -> Array:
    """The square root of x² + y², elementwise, without overflow.

    Args:
        x, y: arrays, or numbers, that broadcast.

    Returns:
        Real numbers of the broadcast shape.

    Raises:
        ShapeError: the arguments do not broadcast to one shape.

    >>> float(jnp.hypot(3.0, 4.0))
    5.0
    """
    x, y = (
        ops.abs(v) if v.dtype in COMPLEXES else v
        for v in arrays("hypot", x, y, to=dtypes.to_inexact)
    )
    return _hypot(x, y)


@one_program
def deg2rad(x: ArrayLike, /) -> Array:
    """Degrees in radians, elementwise.

    Args:
        x: an array, or a number.

    Returns:
        An array of the shape and dtype of ``x``; integers give float32.

    >>> round(float(jnp.deg2rad(180.0)), 4)
    3.1416
    """
    x = inexact("deg2rad", x)
    return ops.mul(x, literal(x, math.pi / 180))


@one_program
def rad2deg(x: ArrayLike, /) -> Array:
    """Radians in degrees, elementwise.

    Args:
        x: an array, or a number.

    Returns:
        An array of the shape and dtype of ``x``; integers give float32.

    >>> round(float(jnp.rad2deg(jnp.pi)), 4)
    180.0
    """
    x = inexact("rad2deg", x)
    return ops.mul(x, literal(x, 180 / math.pi))


radians = deg2rad
degrees = rad2deg


# ---- hyperbolic functions -----------------------------------------------------------------


@one_program
def sinh(x: ArrayLike, /) -> Array:
    """The hyperbolic sine, elementwise.

    Args:
        x: an array, or a number.

    Returns:
        An array of the shape and dtype of ``x``; integers give float32.

    >>> float(jnp.sinh(0.0))
    0.0
    """
    return ops.sinh(inexact("sinh", x))


@one_program
def cosh(x: ArrayLike, /) -> Array:
    """The hyperbolic cosine, elementwise.

    Args:
        x: an array, or a number.

    Returns:
        An array of the shape and dtype of ``x``; integers give float32.

    >>> float(jnp.cosh(0.0))
    1.0
    """
    return ops.cosh(inexact("cosh", x))


@one_program
def tanh(x: ArrayLike, /) -> Array:
    """The hyperbolic tangent, elementwise.

    Args:
        x: an array, or a number.

    Returns:
        An array of the shape and dtype of ``x``; integers give float32.

    >>> float(jnp.tanh(0.0))
    0.0
    """
    return ops.tanh(inexact("tanh", x))


@one_program
def arcsinh(x: ArrayLike, /) -> Array:
    """The inverse of the hyperbolic sine, elementwise.

    Args:
        x: an array, or a number.

    Returns:
        An array of the shape and dtype of ``x``; integers give float32.

    >>> float(jnp.arcsinh(0.0))
    0.0
    """
    return ops.asinh(inexact("arcsinh", x))


@one_program
def arccosh(x: ArrayLike, /) -> Array:
    """The inverse of the hyperbolic cosine, not negative, elementwise.

    Args:
        x: an array, or a number.

    Returns:
        An array of the shape and dtype of ``x``; integers give float32.

    >>> float(jnp.arccosh(1.0))
    0.0
    """
    return ops.acosh(inexact("arccosh", x))


@one_program
def arctanh(x: ArrayLike, /) -> Array:
    """The inverse of the hyperbolic tangent, elementwise.

    Args:
        x: an array, or a number.

    Returns:
        An array of the shape and dtype of ``x``; integers give float32.

    >>> float(jnp.arctanh(0.0))
    0.0
    """
    return ops.atanh(inexact("arctanh", x))


asin, acos, atan, atan2 = arcsin, arccos, arctan, arctan2
asinh, acosh, atanh = arcsinh, arccosh, arctanh


@one_program
def unwrap(
    p: ArrayLike,
    discont: ArrayLike | None = None,
    axis: int = -1,
    period: ArrayLike = 2 * np.pi,
) -> Array:
    """Angles along ``axis`` with periods added so that no step is longer than half of one.

    Args:
        p: angles, or other real numbers with a period.
        discont: how long a step must be to be taken for a jump; at least half of the period.
        axis: the axis along which it works, counted from the end if negative.
        period: the period, a number or an array that broadcasts with the steps.

    Returns:
        An array of the shape of ``p``.

    Raises:
        AxisError: there is no dimension ``axis``.
        TypeError: ``p`` is complex.

    >>> print(jnp.unwrap(jnp.array([0.0, 2.0, 4.0, 0.0, 2.0]), period=6.0))
    [0. 2. 4. 6. 8.]
    """
    x = as_array("unwrap", p)
    kind = lattice.result_type(x, period)
    x = convert(x, kind, x.aval.weak and dtypes.is_weak(period))
    d = dim("unwrap", axis, x)
    steps = diff(x, axis=d)
    number = is_python_scalar(period)
    whole: Any = period if number else convert(as_array("unwrap", period), kind)
    # of an odd number, one less on one side
    half: Any = whole // 2 if dtypes.is_integer(kind) else whole / 2
    wrapped = subtract(remainder(add(steps, half), whole), half)
    on_edge = logical_and(equal(wrapped, -half), equal(2 * half, whole))
    wrapped = where(logical_and(on_edge, greater(steps, 0)), half, wrapped)
    least = whole / 2 if discont is None else maximum(discont, whole / 2)
    change = where(less(abs(steps), least), 0, subtract(wrapped, steps))
    n = x.shape[d]
    one = builtins.min(n, 1)
    start, rest = ops.slice_dim(x, 0, one, d), ops.slice_dim(x, one, n, d)
    return ops.concatenate(start, add(rest, cumsum(change, d)), dim=d)
