"""Comparisons, logic, and kinds of numbers, element by element; arrays that are equal or close."""

from __future__ import annotations

from typing import Any

import numpy as np

from phalanx import primitives as ops
from phalanx.base import dtypes, lattice
from phalanx.base.dtypes import COMPLEXES, INEXACT
from phalanx.base.extended import is_key
from phalanx.base.kinds import SEQUENCE
from phalanx.control.one_program import one_program
from phalanx.core.types import Array, typeof
from phalanx.numpy.arithmetic import add, multiply
from phalanx.numpy.complex_numbers import imag
from phalanx.numpy.creation import asarray
from phalanx.numpy.promotion import (
    ArrayLike,
    arrays,
    as_array,
    boolean,
    broadcast,
    kind_of,
    literal,
    no_out,
    operands,
    pair,
)
from phalanx.numpy.ufunc_methods import with_methods
from phalanx.primitives.domains import check_domain, number_or_bool

# ---- comparisons ----------------------------------------------------------------------------


@one_program
def equal(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Whether x = y, elementwise.

    Args:
        x, y: arrays, or numbers, that broadcast.

    Returns:
        Booleans of the broadcast shape.

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
        x, y: arrays, or numbers, that broadcast.

    Returns:
        Booleans of the broadcast shape.

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
        x, y: arrays, or numbers, that broadcast.

    Returns:
        Booleans of the broadcast shape.

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
        x, y: arrays, or numbers, that broadcast.

    Returns:
        Booleans of the broadcast shape.

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
        x, y: arrays, or numbers, that broadcast.

    Returns:
        Booleans of the broadcast shape.

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
        x, y: arrays, or numbers, that broadcast.

    Returns:
        Booleans of the broadcast shape.

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


# ---- logic ----------------------------------------------------------------------------------


@with_methods(True)
@one_program
def logical_and(x: ArrayLike, y: ArrayLike, /, *, out: None = None, where: None = None) -> Array:
    """Whether both x and y are not zero, elementwise.

    Args:
        x, y: arrays, or numbers, that broadcast.
        out, where: must be None: arrays are immutable, and results are returned.

    Returns:
        Booleans of the broadcast shape.

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
        x, y: arrays, or numbers, that broadcast.
        out, where: must be None: arrays are immutable, and results are returned.

    Returns:
        Booleans of the broadcast shape.

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
        x, y: arrays, or numbers, that broadcast.
        out, where: must be None: arrays are immutable, and results are returned.

    Returns:
        Booleans of the broadcast shape.

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
    arrays = as_array(who, x), as_array(who, y)
    lattice.check_strictly(*map(kind_of, arrays))
    return broadcast(who, [boolean(who, each) for each in arrays])


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


# ---- arrays that are equal or close ---------------------------------------------------------


@one_program
def isclose(
    a: ArrayLike,
    b: ArrayLike,
    rtol: ArrayLike = 1e-05,
    atol: ArrayLike = 1e-08,
    equal_nan: bool = False,
) -> Array:
    """Whether elements are close, |a - b| ≤ atol + rtol |b|; infinities are to themselves.

    Random keys, which have no distance, are close where they are equal.

    Args:
        a: an array, or a number.
        b: the values that are compared with, to which ``rtol`` is relative.
        rtol: by how much of ``b`` they may differ.
        atol: by how much they may differ besides, as a number.
        equal_nan: whether nan counts as equal to nan.

    Returns:
        Booleans, of the shape to which ``a`` and ``b`` broadcast.

    Raises:
        ShapeError: the arguments do not broadcast to one shape.

    >>> print(jnp.isclose(jnp.array([1.0, 2.0]), jnp.array([1.000001, 2.1])))
    [ True False]
    """
    if is_key(getattr(a, "dtype", None)):
        return equal(a, b)
    x, y = arrays("isclose", a, b, to=dtypes.to_inexact)
    finite = ops.and_(isfinite(x), isfinite(y))
    gap, limit = ops.abs(ops.sub(x, y)), add(atol, multiply(rtol, ops.abs(y)))
    near = ops.le(*operands("isclose", gap, limit))
    out = ops.select(finite, near, ops.eq(x, y))
    return ops.or_(out, ops.and_(isnan(x), isnan(y))) if equal_nan else out


@one_program
def allclose(
    a: ArrayLike,
    b: ArrayLike,
    rtol: ArrayLike = 1e-05,
    atol: ArrayLike = 1e-08,
    equal_nan: bool = False,
) -> Array:
    """Whether ``isclose`` holds for all elements.

    Args:
        a: an array, or a number.
        b: the values that are compared with, to which ``rtol`` is relative.
        rtol: by how much of ``b`` they may differ.
        atol: by how much they may differ besides, as a number.
        equal_nan: whether nan counts as equal to nan.

    Returns:
        A boolean, as an array without dimensions.

    Raises:
        ShapeError: the arguments do not broadcast to one shape.

    >>> bool(jnp.allclose(jnp.ones(3), 1.0))
    True
    """
    return _all(isclose(a, b, rtol, atol, equal_nan))


@one_program
def array_equal(a1: ArrayLike, a2: ArrayLike, equal_nan: bool = False) -> Array:
    """Whether two arrays, or nested lists, have the same shape and the same elements.

    Args:
        a1: an array, a number, or nested lists.
        a2: what it is compared with.
        equal_nan: whether nan counts as equal to nan.

    Returns:
        A boolean, as an array without dimensions.

    >>> bool(jnp.array_equal(jnp.arange(3), [0, 1, 2]))
    True
    >>> bool(jnp.array_equal(jnp.arange(3), jnp.arange(4)))  # no error: the shapes differ
    False
    """
    x, y = asarray(a1), asarray(a2)
    if x.shape != y.shape:
        return ops.full((), False, np.dtype(bool))
    same = equal(x, y)
    if equal_nan and x.aval.dtype in INEXACT and y.aval.dtype in INEXACT:
        same = ops.or_(same, ops.and_(isnan(x), isnan(y)))
    return _all(same)


@one_program
def array_equiv(a1: ArrayLike, a2: ArrayLike) -> Array:
    """Whether two arrays broadcast to one shape and are equal there.

    Args:
        a1: an array, a number, or nested lists.
        a2: what it is compared with.

    Returns:
        A boolean, as an array without dimensions; False where shapes do not broadcast.

    >>> bool(jnp.array_equiv(jnp.ones((2, 3)), 1.0))
    True
    """
    x, y = asarray(a1), asarray(a2)
    try:
        return _all(equal(x, y))
    except ValueError:
        return ops.full((), False, np.dtype(bool))


def _all(x: Any) -> Any:
    return ops.reduce_and(x, dims=tuple(range(x.aval.ndim)))
