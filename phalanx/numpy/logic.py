"""Elementwise comparisons, logic, bits, kinds of numbers, and the parts of complex ones."""

from __future__ import annotations

from typing import Any

import numpy as np

from phalanx import ops
from phalanx.base import dtypes, lattice
from phalanx.base.dtypes import COMPLEXES, INEXACT
from phalanx.base.kinds import SEQUENCE
from phalanx.control.one_program import one_program
from phalanx.core.types import Array, typeof
from phalanx.numpy.arithmetic import literal, number_pair
from phalanx.numpy.attached import with_methods
from phalanx.numpy.promotion import (
    ArrayLike,
    arrays,
    as_array,
    boolean,
    broadcast,
    convert,
    kind_of,
    no_out,
    number_array,
    pair,
)
from phalanx.ops.domains import check_domain, number_or_bool

# ---- comparisons ----------------------------------------------------------------------------


@one_program
def equal(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Whether x = y, elementwise.

    Args:
        x: an array, or a number.
        y: an array, or a number; the two broadcast.

    Returns:
        Booleans, of the shape to which the arguments broadcast.

    Raises:
        ShapeError: the arguments do not broadcast to one shape.

    >>> print(jnp.equal(jnp.arange(3), 1))
    [False  True False]
    """
    return ops.eq(*pair("equal", x, y))


@one_program
def not_equal(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Whether x ≠ y, elementwise.

    Args:
        x: an array, or a number.
        y: an array, or a number; the two broadcast.

    Returns:
        Booleans, of the shape to which the arguments broadcast.

    Raises:
        ShapeError: the arguments do not broadcast to one shape.

    >>> print(jnp.not_equal(jnp.arange(3), 1))
    [ True False  True]
    """
    return ops.ne(*pair("not_equal", x, y))


@one_program
def less(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Whether x < y, elementwise; complex numbers compare by real part, then imaginary part.

    Args:
        x: an array, or a number.
        y: an array, or a number; the two broadcast.

    Returns:
        Booleans, of the shape to which the arguments broadcast.

    Raises:
        ShapeError: the arguments do not broadcast to one shape.

    >>> print(jnp.less(jnp.arange(3), 1))
    [ True False False]
    """
    return _ordered("less", ops.lt, ops.lt, x, y)


@one_program
def less_equal(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Whether x ≤ y, elementwise; complex numbers compare by real part, then imaginary part.

    Args:
        x: an array, or a number.
        y: an array, or a number; the two broadcast.

    Returns:
        Booleans, of the shape to which the arguments broadcast.

    Raises:
        ShapeError: the arguments do not broadcast to one shape.

    >>> print(jnp.less_equal(jnp.arange(3), 1))
    [ True  True False]
    """
    return _ordered("less_equal", ops.lt, ops.le, x, y)


@one_program
def greater(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Whether x > y, elementwise; complex numbers compare by real part, then imaginary part.

    Args:
        x: an array, or a number.
        y: an array, or a number; the two broadcast.

    Returns:
        Booleans, of the shape to which the arguments broadcast.

    Raises:
        ShapeError: the arguments do not broadcast to one shape.

    >>> print(jnp.greater(jnp.arange(3), 1))
    [False False  True]
    """
    return _ordered("greater", ops.gt, ops.gt, x, y)


@one_program
def greater_equal(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Whether x ≥ y, elementwise; complex numbers compare by real part, then imaginary part.

    Args:
        x: an array, or a number.
        y: an array, or a number; the two broadcast.

    Returns:
        Booleans, of the shape to which the arguments broadcast.

    Raises:
        ShapeError: the arguments do not broadcast to one shape.

    >>> print(jnp.greater_equal(jnp.arange(3), 1))
    [False  True  True]
    """
    return _ordered("greater_equal", ops.gt, ops.ge, x, y)


def _ordered(who: str, strictly: Any, compare: Any, x: Any, y: Any) -> Any:
    x, y = pair(who, x, y)
    if typeof(x).dtype not in COMPLEXES:
        return compare(x, y)
    x, y = arrays(who, x, y)
    (a, b), (c, d) = ((ops.real(v), ops.imag(v)) for v in (x, y))
    return ops.or_(strictly(a, c), ops.and_(ops.eq(a, c), compare(b, d)))


# ---- logic and bits -------------------------------------------------------------------------


@with_methods(True)
@one_program
def logical_and(x: ArrayLike, y: ArrayLike, /, *, out: None = None, where: None = None) -> Array:
    """Whether both x and y are not zero, elementwise.

    Args:
        x: an array, or a number.
        y: an array, or a number; the two broadcast.
        out: must be None: arrays are immutable, and results are returned.
        where: must be None: there is no result to be left as it is.

    Returns:
        Booleans, of the shape to which the arguments broadcast.

    Raises:
        ShapeError: the arguments do not broadcast to one shape.

    >>> print(jnp.logical_and(jnp.arange(3), jnp.array([1, 1, 0])))
    [False  True False]
    """
    no_out("logical_and", out, where)
    return ops.and_(*_truths("logical_and", x, y))


@with_methods(False)
@one_program
def logical_or(x: ArrayLike, y: ArrayLike, /, *, out: None = None, where: None = None) -> Array:
    """Whether x or y is not zero, elementwise.

    Args:
        x: an array, or a number.
        y: an array, or a number; the two broadcast.
        out: must be None: arrays are immutable, and results are returned.
        where: must be None: there is no result to be left as it is.

    Returns:
        Booleans, of the shape to which the arguments broadcast.

    Raises:
        ShapeError: the arguments do not broadcast to one shape.

    >>> print(jnp.logical_or(jnp.arange(3), 0))
    [False  True  True]
    """
    no_out("logical_or", out, where)
    return ops.or_(*_truths("logical_or", x, y))


@with_methods(False)
@one_program
def logical_xor(x: ArrayLike, y: ArrayLike, /, *, out: None = None, where: None = None) -> Array:
    """Whether exactly one of x and y is not zero, elementwise.

    Args:
        x: an array, or a number.
        y: an array, or a number; the two broadcast.
        out: must be None: arrays are immutable, and results are returned.
        where: must be None: there is no result to be left as it is.

    Returns:
        Booleans, of the shape to which the arguments broadcast.

    Raises:
        ShapeError: the arguments do not broadcast to one shape.

    >>> print(jnp.logical_xor(jnp.arange(3), 1))
    [ True False False]
    """
    no_out("logical_xor", out, where)
    return ops.xor(*_truths("logical_xor", x, y))


@one_program
def logical_not(x: ArrayLike, /) -> Array:
    """Whether x is zero, elementwise.

    Args:
        x: an array, or a number.

    Returns:
        Booleans of the shape of ``x``.

    >>> print(jnp.logical_not(jnp.arange(3)))
    [ True False False]
    """
    return ops.not_(boolean("logical_not", x))


def _truths(who: str, x: Any, y: Any) -> list[Any]:
    given = as_array(who, x), as_array(who, y)
    lattice.check_strictly(*map(kind_of, given))
    return broadcast(who, [boolean(who, each) for each in given])


@with_methods(-1)
@one_program
def bitwise_and(x: ArrayLike, y: ArrayLike, /, *, out: None = None, where: None = None) -> Array:
    """The bits that are set in both of two integers, elementwise; of booleans, x and y.

    Args:
        x: integers or booleans, as an array, or a number.
        y: integers or booleans, as an array, or a number; the two broadcast.
        out: must be None: arrays are immutable, and results are returned.
        where: must be None: there is no result to be left as it is.

    Returns:
        An array of the shape to which the arguments broadcast, of their promoted dtype.

    Raises:
        ShapeError: the arguments do not broadcast to one shape.

    >>> print(jnp.bitwise_and(jnp.arange(4), 2))
    [0 0 2 2]
    """
    no_out("bitwise_and", out, where)
    return ops.and_(*pair("bitwise_and", x, y))


@with_methods(0)
@one_program
def bitwise_or(x: ArrayLike, y: ArrayLike, /, *, out: None = None, where: None = None) -> Array:
    """The bits that are set in either of two integers, elementwise; of booleans, x or y.

    Args:
        x: integers or booleans, as an array, or a number.
        y: integers or booleans, as an array, or a number; the two broadcast.
        out: must be None: arrays are immutable, and results are returned.
        where: must be None: there is no result to be left as it is.

    Returns:
        An array of the shape to which the arguments broadcast, of their promoted dtype.

    Raises:
        ShapeError: the arguments do not broadcast to one shape.

    >>> print(jnp.bitwise_or(jnp.arange(4), 2))
    [2 3 2 3]
    """
    no_out("bitwise_or", out, where)
    return ops.or_(*pair("bitwise_or", x, y))


@with_methods(0)
@one_program
def bitwise_xor(x: ArrayLike, y: ArrayLike, /, *, out: None = None, where: None = None) -> Array:
    """The bits that are set in exactly one of two integers, elementwise.

    Args:
        x: integers or booleans, as an array, or a number.
        y: integers or booleans, as an array, or a number; the two broadcast.
        out: must be None: arrays are immutable, and results are returned.
        where: must be None: there is no result to be left as it is.

    Returns:
        An array of the shape to which the arguments broadcast, of their promoted dtype.

    Raises:
        ShapeError: the arguments do not broadcast to one shape.

    >>> print(jnp.bitwise_xor(jnp.arange(4), 2))
    [2 3 0 1]
    """
    no_out("bitwise_xor", out, where)
    return ops.xor(*pair("bitwise_xor", x, y))


@one_program
def bitwise_not(x: ArrayLike, /) -> Array:
    """An integer with all bits flipped, elementwise; of booleans, not x.

    Args:
        x: integers or booleans, as an array, or a number.

    Returns:
        An array of the shape and dtype of ``x``.

    >>> print(jnp.bitwise_not(jnp.arange(3)))
    [-1 -2 -3]
    """
    return ops.not_(as_array("bitwise_not", x))


invert = bitwise_invert = bitwise_not


@one_program
def bitwise_count(x: ArrayLike, /) -> Array:
    """The number of bits that are set in |x|, elementwise, as uint8.

    Args:
        x: integers or booleans, as an array, or a number.

    Returns:
        uint8, of the shape of ``x``.

    >>> print(jnp.bitwise_count(jnp.array([0, 1, 7])))
    [0 1 3]
    """
    x = as_array("bitwise_count", x)
    if x.aval.dtype == np.bool_:
        return convert(x, np.dtype("uint8"))
    size = ops.abs(x) if dtypes.is_signed(x.aval.dtype) else x
    return convert(ops.population_count(size), np.dtype("uint8"))


@one_program
def left_shift(x: ArrayLike, y: ArrayLike, /) -> Array:
    """The bits of integers moved up by y places, elementwise: x 2^y.

    Args:
        x: integers or booleans, as an array, or a number.
        y: integers or booleans, as an array, or a number; the two broadcast.

    Returns:
        An array of the shape to which the arguments broadcast, of their promoted integer dtype.

    Raises:
        ShapeError: the arguments do not broadcast to one shape.

    >>> print(jnp.left_shift(jnp.arange(3), 2))
    [0 4 8]
    """
    return ops.shift_left(*number_pair("left_shift", x, y))


bitwise_left_shift = left_shift


@one_program
def right_shift(x: ArrayLike, y: ArrayLike, /) -> Array:
    """The bits of integers moved down by y places, elementwise: x / 2^y, rounded down.

    Args:
        x: integers or booleans, as an array, or a number.
        y: integers or booleans, as an array, or a number; the two broadcast.

    Returns:
        An array of the shape to which the arguments broadcast, of their promoted integer dtype.

    Raises:
        ShapeError: the arguments do not broadcast to one shape.

    >>> print(jnp.right_shift(jnp.array([8, -8]), 2))
    [ 2 -2]
    """
    x, y = number_pair("right_shift", x, y)
    if dtypes.is_unsigned(typeof(x).dtype):
        return ops.shift_right_logical(x, y)
    return ops.shift_right_arithmetic(x, y)


bitwise_right_shift = right_shift

# ---- kinds of numbers -----------------------------------------------------------------------


@one_program
def isnan(x: ArrayLike, /) -> Array:
    """Whether x is not a number, elementwise.

    Args:
        x: an array, or a number.

    Returns:
        Booleans of the shape of ``x``.

    >>> print(jnp.isnan(jnp.array([1.0, jnp.nan])))
    [False  True]
    """
    x = as_array("isnan", x)
    return ops.ne(x, x) if x.aval.dtype in INEXACT else _everywhere("isnan", x, False)


@one_program
def isfinite(x: ArrayLike, /) -> Array:
    """Whether x is neither infinite nor nan, elementwise.

    Args:
        x: an array, or a number.

    Returns:
        Booleans of the shape of ``x``.

    >>> print(jnp.isfinite(jnp.array([1.0, jnp.inf, jnp.nan])))
    [ True False False]
    """
    x = as_array("isfinite", x)
    dtype = x.aval.dtype
    if dtype in COMPLEXES:
        return ops.and_(ops.is_finite(ops.real(x)), ops.is_finite(ops.imag(x)))
    return ops.is_finite(x) if dtype in INEXACT else _everywhere("isfinite", x, True)


@one_program
def isinf(x: ArrayLike, /) -> Array:
    """Whether x is infinite, elementwise.

    Args:
        x: an array, or a number.

    Returns:
        Booleans of the shape of ``x``.

    >>> print(jnp.isinf(jnp.array([1.0, -jnp.inf, jnp.nan])))
    [False  True False]
    """
    x = as_array("isinf", x)
    dtype = x.aval.dtype
    if dtype in COMPLEXES:
        return ops.or_(isinf(ops.real(x)), isinf(ops.imag(x)))
    if dtype not in INEXACT:
        return _everywhere("isinf", x, False)
    return ops.eq(ops.abs(x), literal(x, np.inf))


@one_program
def isposinf(x: ArrayLike, /, out: None = None) -> Array:
    """Whether x is plus infinity, elementwise.

    Args:
        x: real numbers, as an array, or a number.
        out: must be None: arrays are immutable, and results are returned.

    Returns:
        Booleans of the shape of ``x``.

    Raises:
        TypeError: ``x`` is complex.

    >>> print(jnp.isposinf(jnp.array([jnp.inf, -jnp.inf])))
    [ True False]
    """
    no_out("isposinf", out)
    return _is_infinity("isposinf", x, np.inf)


@one_program
def isneginf(x: ArrayLike, /, out: None = None) -> Array:
    """Whether x is minus infinity, elementwise.

    Args:
        x: real numbers, as an array, or a number.
        out: must be None: arrays are immutable, and results are returned.

    Returns:
        Booleans of the shape of ``x``.

    Raises:
        TypeError: ``x`` is complex.

    >>> print(jnp.isneginf(jnp.array([jnp.inf, -jnp.inf])))
    [False  True]
    """
    no_out("isneginf", out)
    return _is_infinity("isneginf", x, -np.inf)


def _is_infinity(who: str, x: Any, infinity: float) -> Any:
    x = as_array(who, x)
    if x.aval.dtype in COMPLEXES:
        raise TypeError(f"{who}: real numbers are needed, got {x.aval}")
    if x.aval.dtype not in INEXACT:
        return _everywhere(who, x, False)
    return ops.eq(x, literal(x, infinity))


def _everywhere(who: str, x: Any, truth: bool) -> Any:
    check_domain(who, x.aval, number_or_bool)
    return ops.full(x.aval.shape, truth, np.dtype(bool))


@one_program
def iscomplex(x: ArrayLike) -> Array:
    """Whether the imaginary part is not zero, elementwise.

    Args:
        x: an array, or a number.

    Returns:
        Booleans of the shape of ``x``.

    >>> print(jnp.iscomplex(jnp.array([1 + 1j, 1])))
    [ True False]
    """
    return ops.ne(imag(x), dtypes.scalar(0, imag(x).dtype))


@one_program
def isreal(x: ArrayLike) -> Array:
    """Whether the imaginary part is zero, elementwise.

    Args:
        x: an array, or a number.

    Returns:
        Booleans of the shape of ``x``.

    >>> print(jnp.isreal(jnp.array([1 + 1j, 1])))
    [False  True]
    """
    return ops.not_(iscomplex(x))


def iscomplexobj(x: Any) -> bool:
    """Whether the dtype of ``x`` is complex.

    Args:
        x: an array, or a number.

    Returns:
        A Python bool: elements with zero imaginary parts are complex, too.

    >>> jnp.iscomplexobj(jnp.array([1 + 1j, 1]))
    True
    """
    if isinstance(x, SEQUENCE):
        return any(map(iscomplexobj, x))
    return dtypes.dtype_of(x) in COMPLEXES


def isrealobj(x: Any) -> bool:
    """Whether the dtype of ``x`` is not complex.

    Args:
        x: an array, or a number.

    Returns:
        A Python bool: it says nothing of the values, only of the dtype.

    >>> jnp.isrealobj(jnp.array([1.0]))
    True
    """
    return not iscomplexobj(x)


def isscalar(element: Any) -> bool:
    """Whether ``element`` is a number, or an array without dimensions.

    Args:
        element: anything.

    Returns:
        A Python bool. Unlike NumPy's function it is true of arrays without dimensions.

    >>> jnp.isscalar(1.0), jnp.isscalar(jnp.array(1.0)), jnp.isscalar(jnp.array([1.0]))
    (True, True, False)
    """
    if isinstance(element, (Array, np.ndarray)):
        return element.ndim == 0
    return bool(np.isscalar(element)) and not isinstance(element, (str, bytes))


# ---- complex numbers ------------------------------------------------------------------------


def real(x: ArrayLike, /) -> Array:
    """The real part, elementwise.

    Args:
        x: an array, or a number.

    Returns:
        Real numbers of the shape of ``x``: float32 of complex64.

    >>> print(jnp.real(jnp.array([1 + 2j, 3])))
    [1. 3.]
    """
    x = number_array("real", x)
    return ops.real(x) if x.aval.dtype in COMPLEXES else x


@one_program
def imag(x: ArrayLike, /) -> Array:
    """The imaginary part, elementwise; of real numbers 0.

    Args:
        x: an array, or a number.

    Returns:
        Real numbers of the shape of ``x``: float32 of complex64.

    >>> print(jnp.imag(jnp.array([1 + 2j, 3])))
    [2. 0.]
    """
    x = number_array("imag", x)
    if x.aval.dtype in COMPLEXES:
        return ops.imag(x)
    return convert(ops.zeros_like(x), x.aval.dtype, x.aval.weak)


def conjugate(x: ArrayLike, /) -> Array:
    """The complex conjugate, elementwise.

    Args:
        x: an array, or a number.

    Returns:
        An array of the shape and dtype of ``x``.

    >>> print(jnp.conjugate(jnp.array([1 + 2j])))
    [1.-2.j]
    """
    x = number_array("conjugate", x)
    return ops.conj(x) if x.aval.dtype in COMPLEXES else x


conj = conjugate


@one_program
def angle(z: ArrayLike, deg: bool = False) -> Array:
    """The angle of complex numbers in the plane, elementwise, in radians or degrees.

    Args:
        z: complex or real numbers.
        deg: whether the angle is in degrees, not in radians.

    Returns:
        Real numbers of the shape of ``z``.

    >>> float(jnp.angle(1j, deg=True))
    90.0
    """
    z = as_array("angle", z)
    if z.aval.dtype not in INEXACT:
        z = convert(z, dtypes.default_float())
    out = ops.atan2(imag(z), real(z))
    return ops.mul(out, literal(out, 180 / np.pi)) if deg else out
