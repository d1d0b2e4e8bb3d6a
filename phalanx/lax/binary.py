"""Functions of several arrays, element by element: out[i] = f(x[i], y[i]).

Operands have one dtype and one shape; scalars fit, as ``phalanx.lax.operands`` says.
"""

from __future__ import annotations

from typing import Any

from phalanx import primitives as ops
from phalanx.base import dtypes
from phalanx.core.types import Array, ArrayLike, DTypeLike, typeof
from phalanx.lax.operands import accept, alike, dtype_of, is_python, one, same_shape
from phalanx.lax.operands import elementwise as operands
from phalanx.primitives.contract import as_dtype
from phalanx.primitives.elementwise import integer_power

# ---- arithmetic -----------------------------------------------------------------------------


def add(x: ArrayLike, y: ArrayLike) -> Array:
    """The sum x + y, elementwise; of booleans, x ∨ y.

    Args:
        x, y: arrays of one shape and dtype, or numbers.

    Returns:
        An array of the shape and dtype of the operands.

    Raises:
        ShapeError: the operands have different shapes, in more than lengths of 1.
        TypeError: the dtypes differ.

    >>> lax.add(np.float32([1.0, 2.0]), 3)
    Array([4., 5.], dtype=float32)
    """
    return ops.add(*operands("add", x, y))


def sub(x: ArrayLike, y: ArrayLike) -> Array:
    """The difference x - y.

    Args:
        x, y: arrays of one shape and dtype, or numbers.

    Returns:
        An array of the shape and dtype of the operands.

    Raises:
        ShapeError: the operands have different shapes, in more than lengths of 1.
        TypeError: the dtypes differ.

    >>> lax.sub(np.float32([1.0, 2.0]), 3)
    Array([-2., -1.], dtype=float32)
    """
    return ops.sub(*operands("sub", x, y))


def mul(x: ArrayLike, y: ArrayLike, *, out_dtype: DTypeLike | None = None) -> Array:
    """The product x y; of booleans, x ∧ y.

    With ``out_dtype``, the operands are converted to that first.

    Args:
        x, y: arrays of one shape and dtype, or numbers.
        out_dtype: the dtype of the result, to which the operands are converted first.

    Returns:
        An array of the shape and dtype of the operands, or of ``out_dtype``.

    Raises:
        ShapeError: the operands have different shapes, in more than lengths of 1.
        TypeError: the dtypes differ.

    >>> lax.mul(np.float32([1.0, 2.0]), 3)
    Array([3., 6.], dtype=float32)
    >>> lax.mul(np.int8([100]), np.int8([2]), out_dtype=np.int32)
    Array([200], dtype=int32)
    """
    x, y = operands("mul", x, y)
    dtype = dtype_of(out_dtype)
    return ops.mul(x, y) if dtype is None else ops.mul(as_dtype(x, dtype), as_dtype(y, dtype))


def mulhi(x: ArrayLike, y: ArrayLike, /) -> Array:
    """The upper half of the bits of x y, of integers.

    Args:
        x, y: arrays of one shape and dtype, or numbers.

    Returns:
        An array of the shape and dtype of the operands.

    Raises:
        TypeError: they are no integers, or of two dtypes.

    >>> lax.mulhi(np.uint8([200, 3]), np.uint8([200, 4]))
    Array([156,   0], dtype=uint8)
    """
    x, y = alike("mulhi", x, y)
    dtype = typeof(x).dtype
    if not dtypes.is_integer(dtype):
        raise TypeError(f"lax.mulhi: integers are needed, got {typeof(x)}")
    return _upper_half(x, y, dtypes.iinfo(dtype).bits // 2, dtypes.is_signed(dtype))


def _upper_half(x: Any, y: Any, half: int, signed: bool) -> Array:
    """By products of halves of the bits; H. S. Warren, Hacker's Delight, section 8-2."""
    upper = ops.shift_right_arithmetic if signed else ops.shift_right_logical
    low = (1 << half) - 1
    (x0, y0), (x1, y1) = ([ops.and_(v, low) for v in (x, y)], [upper(v, half) for v in (x, y)])
    carried = ops.shift_right_logical(ops.mul(x0, y0), half)
    middle = ops.add(ops.mul(x1, y0), carried)
    rest = ops.add(ops.mul(x0, y1), ops.and_(middle, low))
    return ops.add(ops.mul(x1, y1), ops.add(upper(middle, half), upper(rest, half)))


def div(x: ArrayLike, y: ArrayLike) -> Array:
    """The quotient x / y; of integers, rounded towards 0.

    Args:
        x, y: arrays of one shape and dtype, or numbers.

    Returns:
        An array of the shape and dtype of the operands.

    Raises:
        ShapeError: the operands have different shapes, in more than lengths of 1.
        TypeError: the dtypes differ.

    >>> lax.div(np.int32([-7, 7]), 2)
    Array([-3,  3], dtype=int32)
    """
    return ops.div(*operands("div", x, y))


def rem(x: ArrayLike, y: ArrayLike) -> Array:
    """The remainder of ``div``; it has the sign of x.

    Args:
        x, y: real numbers, as arrays of one shape and dtype, or numbers.

    Returns:
        An array of the shape and dtype of the operands.

    Raises:
        ShapeError: the operands have different shapes, in more than lengths of 1.
        TypeError: the dtypes differ.

    >>> lax.rem(np.int32([-7, 7]), 4)
    Array([-3,  3], dtype=int32)
    """
    return ops.rem(*operands("rem", x, y))


def pow(x: ArrayLike, y: ArrayLike) -> Array:
    """The power xʸ; an integer y goes with any x.

    Args:
        x, y: arrays of one shape and dtype, or numbers.

    Returns:
        An array of the shape and dtype of the operands.

    Raises:
        ShapeError: the operands have different shapes, in more than lengths of 1.
        TypeError: the dtypes differ; or integers, to a negative power that is a Python integer.

    >>> lax.pow(np.float32([2.0, 3.0]), 2)
    Array([4., 9.], dtype=float32)
    >>> lax.pow(np.float32([2.0, 3.0]), np.float32([0.5, -1.0]))
    Array([1.4142135 , 0.33333334], dtype=float32)
    """
    accept("pow", x)
    accept("pow", y)
    if isinstance(y, int) and not is_python(x):
        return integer_power("pow", one("pow", x), int(y))
    if dtypes.is_integer(typeof(y).dtype) and dtypes.is_inexact(typeof(x).dtype):
        y = ops.convert(y, dtype=typeof(x).dtype, weak=typeof(y).weak)
    return ops.pow(*operands("pow", x, y))


def atan2(x: ArrayLike, y: ArrayLike) -> Array:
    """The angle of the point with ordinate x and abscissa y, in [-π, π].

    Args:
        x, y: arrays of one shape and dtype, or numbers.

    Returns:
        An array of the shape and dtype of the operands.

    Raises:
        ShapeError: the operands have different shapes, in more than lengths of 1.
        TypeError: the dtypes differ.

    >>> lax.atan2(np.float32([0.0, 1.0]), np.float32([1.0, 0.0]))
    Array([0.       , 1.5707964], dtype=float32)
    """
    return ops.atan2(*operands("atan2", x, y))


def nextafter(x1: ArrayLike, x2: ArrayLike) -> Array:
    """The number after x1 on the way to x2.

    Args:
        x1: floating-point numbers.
        x2: in which direction to go.

    Returns:
        An array of the shape and dtype of the operands.

    Raises:
        ShapeError: the operands have different shapes, in more than lengths of 1.
        TypeError: the dtypes differ.

    >>> lax.nextafter(np.float32([1.0]), 2.0)
    Array([1.0000001], dtype=float32)
    """
    return ops.nextafter(*operands("nextafter", x1, x2))


def complex(x: ArrayLike, y: ArrayLike) -> Array:
    """The complex numbers x + i y, of two real operands.

    Args:
        x, y: arrays of one shape and dtype, or numbers.

    Returns:
        Complex numbers of the shape of the operands: complex64 of float32, complex128 of float64.

    Raises:
        ShapeError: the operands have different shapes, in more than lengths of 1.
        TypeError: the dtypes differ.

    >>> lax.complex(np.float32([1.0]), np.float32([2.0]))
    Array([1.+2.j], dtype=complex64)
    """
    return ops.complex(*operands("complex", x, y))


# ---- comparisons ----------------------------------------------------------------------------


def eq(x: ArrayLike, y: ArrayLike) -> Array:
    """Whether x = y.

    Args:
        x, y: arrays of one shape and dtype, or numbers.

    Returns:
        Booleans of the broadcast shape.

    Raises:
        ShapeError: the operands have different shapes, in more than lengths of 1.
        TypeError: the dtypes differ.

    >>> lax.eq(np.int32([1, 2, 3]), 2)
    Array([False,  True, False], dtype=bool)
    """
    return ops.eq(*operands("eq", x, y))


def ne(x: ArrayLike, y: ArrayLike) -> Array:
    """Whether x ≠ y.

    Args:
        x, y: arrays of one shape and dtype, or numbers.

    Returns:
        Booleans of the broadcast shape.

    Raises:
        ShapeError: the operands have different shapes, in more than lengths of 1.
        TypeError: the dtypes differ.

    >>> lax.ne(np.int32([1, 2, 3]), 2)
    Array([ True, False,  True], dtype=bool)
    """
    return ops.ne(*operands("ne", x, y))


def lt(x: ArrayLike, y: ArrayLike) -> Array:
    """Whether x < y.

    Args:
        x, y: real numbers, as arrays of one shape and dtype, or numbers.

    Returns:
        Booleans of the broadcast shape.

    Raises:
        ShapeError: the operands have different shapes, in more than lengths of 1.
        TypeError: the dtypes differ.

    >>> lax.lt(np.int32([1, 2, 3]), 2)
    Array([ True, False, False], dtype=bool)
    """
    return ops.lt(*operands("lt", x, y))


def le(x: ArrayLike, y: ArrayLike) -> Array:
    """Whether x ≤ y.

    Args:
        x, y: real numbers, as arrays of one shape and dtype, or numbers.

    Returns:
        Booleans of the broadcast shape.

    Raises:
        ShapeError: the operands have different shapes, in more than lengths of 1.
        TypeError: the dtypes differ.

    >>> lax.le(np.int32([1, 2, 3]), 2)
    Array([ True,  True, False], dtype=bool)
    """
    return ops.le(*operands("le", x, y))


def gt(x: ArrayLike, y: ArrayLike) -> Array:
    """Whether x > y.

    Args:
        x, y: real numbers, as arrays of one shape and dtype, or numbers.

    Returns:
        Booleans of the broadcast shape.

    Raises:
        ShapeError: the operands have different shapes, in more than lengths of 1.
        TypeError: the dtypes differ.

    >>> lax.gt(np.int32([1, 2, 3]), 2)
    Array([False, False,  True], dtype=bool)
    """
    return ops.gt(*operands("gt", x, y))


def ge(x: ArrayLike, y: ArrayLike) -> Array:
    """Whether x ≥ y.

    Args:
        x, y: real numbers, as arrays of one shape and dtype, or numbers.

    Returns:
        Booleans of the broadcast shape.

    Raises:
        ShapeError: the operands have different shapes, in more than lengths of 1.
        TypeError: the dtypes differ.

    >>> lax.ge(np.int32([1, 2, 3]), 2)
    Array([False,  True,  True], dtype=bool)
    """
    return ops.ge(*operands("ge", x, y))


def max(x: ArrayLike, y: ArrayLike) -> Array:
    """The greater of x and y; NaN if one of them is.

    Args:
        x, y: arrays of one shape and dtype, or numbers.

    Returns:
        An array of the shape and dtype of the operands.

    Raises:
        ShapeError: the operands have different shapes, in more than lengths of 1.
        TypeError: the dtypes differ.

    >>> lax.max(np.float32([-1.0, 2.0]), 0)
    Array([0., 2.], dtype=float32)
    """
    return ops.max(*operands("max", x, y))


def min(x: ArrayLike, y: ArrayLike) -> Array:
    """The smaller of x and y; NaN if one of them is.

    Args:
        x, y: arrays of one shape and dtype, or numbers.

    Returns:
        An array of the shape and dtype of the operands.

    Raises:
        ShapeError: the operands have different shapes, in more than lengths of 1.
        TypeError: the dtypes differ.

    >>> lax.min(np.float32([-1.0, 2.0]), 0)
    Array([-1.,  0.], dtype=float32)
    """
    return ops.min(*operands("min", x, y))


# ---- choices --------------------------------------------------------------------------------


def select(pred: ArrayLike, on_true: ArrayLike, on_false: ArrayLike) -> Array:
    """``on_true`` where ``pred`` holds, ``on_false`` elsewhere.

    Args:
        pred: booleans, of the shape of the others or without dimensions.
        on_true: elements where it holds.
        on_false: elements where it does not.

    Returns:
        An array of the shape of the cases.

    Raises:
        ShapeError: the operands have different shapes, in more than lengths of 1.

    >>> lax.select(np.array([True, False]), np.int32([1, 2]), np.int32([3, 4]))
    Array([1, 4], dtype=int32)
    """
    on_true, on_false = operands("select", on_true, on_false)
    return ops.select(*same_shape("select", accept("select", pred), on_true, on_false))


def select_n(which: ArrayLike, *cases: ArrayLike) -> Array:
    """``cases[which]``, element by element; ``which`` is boolean or an integer.

    Args:
        which: the number of the case for each element; booleans for two cases.
        cases: arrays of one shape and dtype.

    Returns:
        An array of the shape of the cases.

    Raises:
        ValueError: there is no case, or there are more than two for a boolean ``which``.

    >>> lax.select_n(np.int32([2, 0]), np.int32([1, 2]), np.int32([3, 4]), np.int32([5, 6]))
    Array([5, 2], dtype=int32)
    """
    boolean = dtypes.is_bool(typeof(accept("select_n", which)).dtype)
    if not cases or (boolean and len(cases) > 2):
        raise ValueError(
            f"lax.select_n: one case or more are needed, at most 2 for a boolean `which`, got "
            f"{len(cases)}"
        )
    cases = operands("select_n", *cases)
    out: Any = cases[0]
    for i, case in enumerate(cases[1:], 1):
        chosen = which if boolean else ge(which, i)
        out = select(chosen, case, out)
    return out


def clamp(min: ArrayLike, x: ArrayLike, max: ArrayLike) -> Array:
    """The elements of x, but ``min`` where they are smaller and ``max`` where they are greater.

    Args:
        min: the lower limit, a number or an array of the shape of ``x``.
        x: an array; complex numbers are in lexicographic order.
        max: the upper limit, a number or an array of the shape of ``x``.

    Returns:
        An array of the shape of ``x``.

    Raises:
        TypeError: the dtypes differ.

    >>> lax.clamp(0.0, np.float32([-1.0, 0.5, 2.0]), 1.0)
    Array([0. , 0.5, 1. ], dtype=float32)
    """
    min, x, max = operands("clamp", min, x, max)
    if any(dtypes.is_complex(typeof(v).dtype) for v in (min, x, max)):
        return ops.min(ops.max(x, min), max)
    return ops.clamp(min, x, max)


# ---- bits -----------------------------------------------------------------------------------


def bitwise_and(x: ArrayLike, y: ArrayLike) -> Array:
    """The conjunction x ∧ y, bit by bit, of integers and booleans.

    Args:
        x, y: arrays of one shape and dtype, or numbers.

    Returns:
        An array of the shape and dtype of the operands.

    Raises:
        ShapeError: the operands have different shapes, in more than lengths of 1.

    >>> lax.bitwise_and(np.int32([6, 3]), 5)
    Array([4, 1], dtype=int32)
    """
    return ops.and_(*operands("bitwise_and", x, y))


def bitwise_or(x: ArrayLike, y: ArrayLike) -> Array:
    """The disjunction x ∨ y, bit by bit, of integers and booleans.

    Args:
        x, y: arrays of one shape and dtype, or numbers.

    Returns:
        An array of the shape and dtype of the operands.

    Raises:
        ShapeError: the operands have different shapes, in more than lengths of 1.

    >>> lax.bitwise_or(np.int32([6, 3]), 5)
    Array([7, 7], dtype=int32)
    """
    return ops.or_(*operands("bitwise_or", x, y))


def bitwise_xor(x: ArrayLike, y: ArrayLike) -> Array:
    """The exclusive disjunction x ⊕ y, bit by bit, of integers and booleans.

    Args:
        x, y: arrays of one shape and dtype, or numbers.

    Returns:
        An array of the shape and dtype of the operands.

    Raises:
        ShapeError: the operands have different shapes, in more than lengths of 1.

    >>> lax.bitwise_xor(np.int32([6, 3]), 5)
    Array([3, 6], dtype=int32)
    """
    return ops.xor(*operands("bitwise_xor", x, y))


def shift_left(x: ArrayLike, y: ArrayLike) -> Array:
    """x with its bits moved left y places.

    Args:
        x: integers, as an array, or a number.
        y: integers, of the same shape and dtype, or a number.

    Returns:
        An array of the shape and dtype of the operands.

    Raises:
        ShapeError: the operands have different shapes, in more than lengths of 1.

    >>> lax.shift_left(np.int32([1, 3]), 2)
    Array([ 4, 12], dtype=int32)
    """
    return ops.shift_left(*operands("shift_left", x, y))


def shift_right_arithmetic(x: ArrayLike, y: ArrayLike) -> Array:
    """x with its bits moved right y places, copies of the sign coming in.

    Args:
        x: integers, as an array, or a number.
        y: integers, of the same shape and dtype, or a number.

    Returns:
        An array of the shape and dtype of the operands.

    Raises:
        ShapeError: the operands have different shapes, in more than lengths of 1.

    >>> lax.shift_right_arithmetic(np.int32([-8, 8]), 1)
    Array([-4,  4], dtype=int32)
    """
    return ops.shift_right_arithmetic(*operands("shift_right_arithmetic", x, y))


def shift_right_logical(x: ArrayLike, y: ArrayLike) -> Array:
    """x with its bits moved right y places, zeros coming in.

    Args:
        x: integers, as an array, or a number.
        y: integers, of the same shape and dtype, or a number.

    Returns:
        An array of the shape and dtype of the operands.

    Raises:
        ShapeError: the operands have different shapes, in more than lengths of 1.

    >>> lax.shift_right_logical(np.int32([-8, 8]), 1)
    Array([2147483644,          4], dtype=int32)
    """
    return ops.shift_right_logical(*operands("shift_right_logical", x, y))
