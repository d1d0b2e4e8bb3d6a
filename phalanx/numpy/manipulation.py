"""Other shapes and orders of the same elements: reshape, transpose, flip, roll, broadcast."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from phalanx import primitives as ops
from phalanx.base import dtypes
from phalanx.base.broadcasting import check_fills, common_shape
from phalanx.base.errors import ShapeError
from phalanx.base.kinds import SEQUENCE, TUPLE
from phalanx.base.lengths import Length, integer, symbolic
from phalanx.control.one_program import one_program
from phalanx.core.trace import ROOT, current, is_known
from phalanx.core.types import Array, ShapeLike
from phalanx.lax.layout import takes_out_sharding
from phalanx.numpy.promotion import (
    ArrayLike,
    as_array,
    as_shape,
    convert,
    dim,
    dims,
    operand,
    shape_entries,
)


def shape(a: Any) -> tuple[int, ...]:
    """The lengths of the dimensions of ``a``, an array, a number, nested lists, or whatever tells.

    None has none, as in NumPy.

    Args:
        a: an array, or a number.

    Returns:
        A tuple of integers.

    >>> jnp.shape(jnp.zeros((2, 3)))
    (2, 3)
    """
    own = getattr(a, "shape", None)
    if isinstance(own, TUPLE) or a is None:
        return own or ()
    if isinstance(a, SEQUENCE):  # nothing is put on a device to know its shape
        return (len(a), *_inner_shape(a)) if a else (0,)
    a = operand("shape", a)
    return a.shape if isinstance(a, Array) else ()


def _inner_shape(a: Sequence[Any]) -> tuple[int, ...]:
    shapes = {shape(x) for x in a}
    if len(shapes) > 1:
        listed = " and ".join(map(str, sorted(shapes)))
        raise ValueError(f"shape: the entries of a list must have one shape, got {listed}")
    return shapes.pop()


def ndim(a: Any) -> int:
    """The number of dimensions of ``a``.

    Args:
        a: an array, or a number.

    Returns:
        A Python integer.

    >>> jnp.ndim(jnp.zeros((2, 3)))
    2
    """
    return len(shape(a))


def size(a: Any, axis: int | Sequence[int] | None = None) -> int:
    """The number of elements of ``a``, or the length along ``axis``.

    Args:
        a: an array, or a number.
        axis: the axis whose length is asked for; None for the number of all elements.

    Returns:
        A Python integer, also of what is traced.

    Raises:
        AxisError: there is no dimension ``axis``.

    >>> jnp.size(jnp.zeros((2, 3))), jnp.size(jnp.zeros((2, 3)), 1)
    (6, 3)
    """
    lengths = shape(a)
    if axis is None:
        return math.prod(lengths)
    return math.prod(lengths[d] for d in ops.dimensions("size", axis, len(lengths)))


# ---- reshape --------------------------------------------------------------------------------


@takes_out_sharding
def reshape(
    a: ArrayLike,
    shape: ShapeLike,
    order: str = "C",
    *,
    copy: bool | None = None,
    out_sharding: Any = None,
) -> Array:
    """The elements of ``a`` in another shape, in which one length may be -1, for the rest.

    Args:
        a: the array.
        shape: an integer or a sequence of integers.
        order: "C" counts the last dimension fastest, "F" the first.
        copy: has no meaning: arrays are immutable.
        out_sharding: the ``NamedSharding`` or ``P`` of the result; None: the compiler decides.

    Returns:
        An array of that shape, of the dtype of ``a``.

    Raises:
        ValueError: the numbers of elements differ.

    >>> print(jnp.reshape(jnp.arange(6), (2, -1)))
    [[0 1 2]
     [3 4 5]]
    """
    x = as_array("reshape", a)
    lengths = completed("reshape", x, shape)
    if isinstance(a, np.ndarray) and _is_constant_in(a, lengths):
        a = a.reshape(lengths, order="F" if order == "F" else "C")
        x, order = as_array("reshape", a), "C" if order == "F" else order
    return _reshape(x, lengths, order)


def _is_constant_in(a: np.ndarray, lengths: tuple[int, ...]) -> bool:
    """Whether ``a`` in another shape is a constant to what is traced, as ``a`` is itself."""
    return current() is not ROOT and not symbolic(lengths) and math.prod(lengths) == a.size


def _reshape(x: Any, shape: tuple[int, ...], order: str) -> Any:
    if order == "F":
        turned = ops.reshape(transpose(x), shape=shape[::-1])
        return transpose(turned)
    if order not in ("C", "K", "A"):
        raise ValueError(f"reshape: order must be 'C' or 'F', got {order!r}")
    return x if x.aval.shape == shape else ops.reshape(x, shape=shape)


def completed(who: str, x: Any, shape: Any) -> tuple[int, ...]:
    """``shape`` with -1 replaced by the length that makes it fit the array ``x``."""
    entries = shape_entries(shape)
    if len(entries) == 1:
        entries = shape_entries(entries[0])
    free = [i for i, s in enumerate(entries) if isinstance(s, (int, np.integer)) and s == -1]
    if len(free) > 1:
        raise ValueError(f"{who}: one length can be -1, got shape {entries}")
    known = as_shape(who, tuple(s for i, s in enumerate(entries) if i not in free))
    if not free:
        return known
    count, rest = math.prod(known), x.aval.size
    if count == 0 or rest % count:
        raise ShapeError(
            f"{who}: the {rest} elements of an array {x.aval} do not fill shape {entries}: "
            f"{rest} is not divisible by {count}"
        )
    return (*known[: free[0]], rest // count, *known[free[0] :])


@takes_out_sharding
def ravel(a: ArrayLike, order: str = "C", *, out_sharding: Any = None) -> Array:
    """The elements of ``a`` as a vector, in row-major order (or column-major, "F").

    Args:
        a: an array, or a number.
        order: "C" for row-major order, "F" for column-major.
        out_sharding: the ``NamedSharding`` or ``P`` of the result; None: the compiler decides.

    Returns:
        A vector of the dtype of ``a``.

    >>> print(jnp.ravel(jnp.array([[1, 2], [3, 4]])))
    [1 2 3 4]
    """
    x = as_array("ravel", a)
    return _reshape(x, (x.aval.size,), order)


@one_program
def expand_dims(a: ArrayLike, axis: int | Sequence[int]) -> Array:
    """``a`` with dimensions of length 1 at the positions ``axis`` of the result.

    Args:
        a: an array, or a number.
        axis: where the new dimensions stand in the result.

    Returns:
        An array of the dtype of ``a``, with those dimensions more.

    Raises:
        AxisError: there is no dimension ``axis``.

    >>> jnp.expand_dims(jnp.arange(3), 0).shape
    (1, 3)
    """
    x = as_array("expand_dims", a)
    return ops.expand_dims(x, ops.dimensions("expand_dims", axis, x.ndim + np.size(axis)))


@one_program
def squeeze(a: ArrayLike, axis: int | Sequence[int] | None = None) -> Array:
    """``a`` without its dimensions of length 1, or without those at ``axis``.

    Args:
        a: an array, or a number.
        axis: the dimensions to be left out, which must have length 1; None for all that have.

    Returns:
        An array of the dtype of ``a`` without those axes.

    Raises:
        ValueError: a dimension at ``axis`` has another length.

    >>> jnp.squeeze(jnp.zeros((1, 3, 1))).shape
    (3,)
    """
    x = as_array("squeeze", a)
    if axis is None:
        return ops.reshape(x, shape=tuple(n for n in x.shape if n != 1))
    removed = dims("squeeze", axis, x)
    if any(x.shape[d] != 1 for d in removed):
        raise ValueError(
            f"squeeze: the dimensions {removed} of an array {x.aval} must have length 1 to be "
            "removed"
        )
    return ops.squeeze(x, removed)


def _at_least_1d(x: Any) -> Any:
    return ops.reshape(x, shape=(1,)) if x.ndim == 0 else x


@one_program
def atleast_1d(*arys: ArrayLike) -> Any:
    """The arrays with at least one dimension.

    Args:
        *arys: arrays, or numbers.

    Returns:
        An array, or of several arguments a list of arrays. What has one already keeps its shape.

    >>> jnp.atleast_1d(3.0).shape
    (1,)
    """
    return _at_least(arys, _at_least_1d)


@one_program
def atleast_2d(*arys: ArrayLike) -> Any:
    """The arrays with at least two dimensions; new ones come first.

    Args:
        *arys: arrays, or numbers.

    Returns:
        An array, or of several arguments a list of arrays. What has two already keeps its shape.

    >>> jnp.atleast_2d(jnp.arange(3)).shape
    (1, 3)
    """

    def two(x: Any) -> Any:
        return x if x.ndim >= 2 else ops.reshape(x, shape=(1,) * (2 - x.ndim) + x.shape)

    return _at_least(arys, two)


@one_program
def atleast_3d(*arys: ArrayLike) -> Any:
    """The arrays with at least three dimensions: n becomes 1, n, 1 and n, m becomes n, m, 1.

    Args:
        *arys: arrays, or numbers.

    Returns:
        An array, or of several arguments a list of arrays. What has three already keeps its shape.

    >>> jnp.atleast_3d(jnp.arange(3)).shape
    (1, 3, 1)
    """

    def three(x: Any) -> Any:
        if x.ndim >= 3:
            return x
        return ops.reshape(x, shape=(*x.shape, 1) if x.ndim == 2 else (1, x.size, 1))

    return _at_least(arys, three)


def _at_least(arys: Sequence[Any], widen: Any) -> Any:
    out = [widen(as_array("atleast", a)) for a in arys]
    return out[0] if len(out) == 1 else out


# ---- transpose ------------------------------------------------------------------------------


@one_program
def transpose(a: ArrayLike, axes: Sequence[int] | None = None) -> Array:
    """``a`` with its dimensions in the order ``axes``, by default reversed.

    Args:
        a: an array, or a number.
        axes: for each dimension of the result the one of the array that it is; None reverses them.

    Returns:
        An array of the dtype of ``a``, with the same dimensions in another order.

    Raises:
        ValueError: ``axes`` does not name each dimension once.

    >>> jnp.transpose(jnp.zeros((2, 3, 4))).shape
    (4, 3, 2)
    """
    x = as_array("transpose", a)
    order = range(x.ndim)[::-1] if axes is None else dims("transpose", axes, x)
    if len(order) != x.ndim:
        raise ValueError(
            f"transpose: axes must name each of the {x.ndim} dimensions of an array {x.aval} "
            f"once, got {axes}"
        )
    return ops.reorder(x, order)


permute_dims = transpose


@one_program
def matrix_transpose(x: ArrayLike, /) -> Array:
    """Matrices [..., n, m] as [..., m, n].

    Args:
        x: an array, or a number.

    Returns:
        An array of the dtype of ``x``.

    Raises:
        ValueError: ``x`` has fewer than 2 dimensions.

    >>> jnp.matrix_transpose(jnp.zeros((2, 3, 4))).shape
    (2, 4, 3)
    """
    x = as_array("matrix_transpose", x)
    if x.ndim < 2:
        raise ValueError(f"matrix_transpose: at least 2 dimensions are needed, got {x.aval}")
    return swapaxes(x, -1, -2)


@one_program
def swapaxes(a: ArrayLike, axis1: int, axis2: int) -> Array:
    """``a`` with two dimensions exchanged.

    Args:
        a: an array, or a number.
        axis1: a dimension; negative ones count from the last.
        axis2: the dimension with which it changes places.

    Returns:
        An array of the dtype of ``a``, with the same dimensions in another order.

    Raises:
        AxisError: there is no such dimension.

    >>> jnp.swapaxes(jnp.zeros((2, 3, 4)), 0, 2).shape
    (4, 3, 2)
    """
    x = as_array("swapaxes", a)
    i, j = dim("swapaxes", axis1, x), dim("swapaxes", axis2, x)
    order = list(range(x.ndim))
    order[i], order[j] = j, i
    return ops.reorder(x, order)


@one_program
def moveaxis(a: ArrayLike, source: int | Sequence[int], destination: int | Sequence[int]) -> Array:
    """``a`` with the dimensions ``source`` at ``destination``, the others in order.

    Args:
        a: an array, or a number.
        source: an axis, or several.
        destination: where they go, in the same order.

    Returns:
        An array of the dtype of ``a``, with the same dimensions in another order.

    Raises:
        ValueError: there are more sources than destinations, or fewer.

    >>> jnp.moveaxis(jnp.zeros((2, 3, 4)), 0, -1).shape
    (3, 4, 2)
    """
    x = as_array("moveaxis", a)
    origin, target = dims("moveaxis", source, x), dims("moveaxis", destination, x)
    if len(origin) != len(target):
        raise ValueError(
            f"moveaxis: as many destinations as sources are needed, got {origin} and {target}"
        )
    order = [d for d in range(x.ndim) if d not in origin]
    for place, d in sorted(zip(target, origin, strict=True)):
        order.insert(place, d)
    return ops.reorder(x, order)


def rollaxis(a: ArrayLike, axis: int, start: int = 0) -> Array:
    """``a`` with dimension ``axis`` moved in front of dimension ``start``; see ``moveaxis``.

    Args:
        a: an array, or a number.
        axis: the axis along which it works, counted from the end if negative.
        start: the axis before which it comes to stand.

    Returns:
        An array of the dtype of ``a``, with the same dimensions in another order.

    Raises:
        ValueError: ``start`` is out of bounds.

    >>> jnp.rollaxis(jnp.zeros((2, 3, 4)), 2).shape
    (4, 2, 3)
    """
    x = as_array("rollaxis", a)
    origin = dim("rollaxis", axis, x)
    if not -x.ndim <= start <= x.ndim:
        raise ValueError(f"rollaxis: start {start} is out of bounds for an array {x.aval}")
    target = start + x.ndim if start < 0 else start
    return ops.move(x, origin, target - (origin < target))


# ---- broadcast ------------------------------------------------------------------------------


@takes_out_sharding
def broadcast_to(array: ArrayLike, shape: ShapeLike, *, out_sharding: Any = None) -> Array:
    """``array`` repeated to ``shape``: its dimensions are aligned with the last ones there.

    Args:
        array: an array, or a number.
        shape: the shape of the result: a tuple of integers, or an integer.
        out_sharding: the ``NamedSharding`` or ``P`` of the result; None: the compiler decides.

    Returns:
        An array of that shape, of the dtype of ``array``.

    Raises:
        ValueError: a length in ``shape`` is negative.

    >>> print(jnp.broadcast_to(jnp.arange(3), (2, 3)))
    [[0 1 2]
     [0 1 2]]
    """
    x = as_array("broadcast_to", array)
    target = as_shape("broadcast_to", shape)
    check_fills("broadcast_to", "an array", x.shape, target)
    return ops.broadcast_to(x, target)


def broadcast_arrays(*args: ArrayLike) -> tuple[Array, ...]:
    """The arrays, broadcast to one shape.

    Args:
        args: arrays, or numbers, whose shapes go together: aligned at the last dimension, lengths
            are equal or 1.

    Returns:
        A tuple of arrays of one shape, each of its own dtype.

    Raises:
        ShapeError: they do not broadcast to one shape.

    >>> [x.shape for x in jnp.broadcast_arrays(jnp.zeros((2, 1)), jnp.zeros(3))]
    [(2, 3), (2, 3)]
    """
    xs = [as_array("broadcast_arrays", a) for a in args]
    if not xs:
        return ()
    target = common_shape("broadcast_arrays", *(x.shape for x in xs))
    return tuple(ops.broadcast_to(x, target) for x in xs)


def broadcast_shapes(*shapes: Any) -> tuple[int, ...]:
    """The shape that arrays of ``shapes`` broadcast to.

    Args:
        shapes: tuples of integers, or integers.

    Returns:
        A tuple of integers.

    >>> jnp.broadcast_shapes((2, 1), (3,))
    (2, 3)
    """
    return common_shape("broadcast_shapes", *(as_shape("broadcast_shapes", s) for s in shapes))


# ---- flip and roll --------------------------------------------------------------------------


@one_program
def flip(m: ArrayLike, axis: int | Sequence[int] | None = None) -> Array:
    """``m`` with the order of its elements reversed along ``axis``, or along all.

    Args:
        m: an array of any shape and dtype.
        axis: the axis, or several, that are reversed; None for all.

    Returns:
        An array of the shape and dtype of ``m``.

    Raises:
        AxisError: there is no such dimension.

    >>> print(jnp.flip(jnp.arange(3)))
    [2 1 0]
    """
    x = as_array("flip", m)
    return ops.reverse(x, dims=dims("flip", axis, x))


@one_program
def fliplr(m: ArrayLike) -> Array:
    """``m`` reversed from left to right: along its second dimension.

    Args:
        m: an array of at least two dimensions.

    Returns:
        An array of the shape and dtype of ``m``.

    Raises:
        ValueError: it has fewer.

    >>> print(jnp.fliplr(jnp.array([[1, 2], [3, 4]])))
    [[2 1]
     [4 3]]
    """
    return flip(m, 1)


@one_program
def flipud(m: ArrayLike) -> Array:
    """``m`` reversed from top to bottom: along its first dimension.

    Args:
        m: an array of at least one dimension.

    Returns:
        An array of the shape and dtype of ``m``.

    Raises:
        ValueError: it has none.

    >>> print(jnp.flipud(jnp.array([[1, 2], [3, 4]])))
    [[3 4]
     [1 2]]
    """
    return flip(m, 0)


@one_program
def rot90(m: ArrayLike, k: int = 1, axes: tuple[int, int] = (0, 1)) -> Array:
    """``m`` turned by k right angles in the plane of two axes, from the first to the second.

    Args:
        m: an array.
        k: how many quarter turns.
        axes: the two axes of the plane; turns go from the first to the second.

    Returns:
        An array of the dtype of ``m``; for odd ``k`` with the two dimensions exchanged.

    Raises:
        AxisError: there is no dimension ``axes``.

    >>> print(jnp.rot90(jnp.array([[1, 2], [3, 4]])))
    [[2 4]
     [1 3]]
    """
    x = as_array("rot90", m)
    first, second = dims("rot90", axes, x)
    quarters = integer("rot90", "k", k) % 4
    if quarters == 0:
        return x
    if quarters == 2:
        return flip(x, (first, second))
    if quarters == 1:
        return swapaxes(flip(x, second), first, second)
    return flip(swapaxes(x, first, second), second)


@one_program
def roll(
    a: ArrayLike, shift: ArrayLike | Sequence[ArrayLike], axis: int | Sequence[int] | None = None
) -> Array:
    """``a`` moved by ``shift`` places along ``axis``; what leaves at the end comes first.

    Without ``axis`` the array is rolled as a vector. The shift may be traced.

    Args:
        a: an array, or a number.
        shift: by how many places, forwards if positive; several, for as many axes.
        axis: the axis, or several; None rolls the array as a vector.

    Returns:
        An array of the shape of ``a``.

    Raises:
        AxisError: there is no dimension ``axis``.

    >>> print(jnp.roll(jnp.arange(5), 2))
    [3 4 0 1 2]
    """
    x = as_array("roll", a)
    if axis is None:
        flat = ops.reshape(x, shape=(x.size,))
        return ops.reshape(roll(flat, shift, 0), shape=x.shape)
    shifts = _shifts(shift)
    over = [dim("roll", d, x) for d in shape_entries(axis)]
    (count,) = np.broadcast_shapes((len(over),), (len(shifts),))
    over, shifts = (each * count if len(each) == 1 else each for each in (over, shifts))
    for d, s in zip(over, shifts, strict=True):
        x = _rolled(x, s, d)
    return x


def _shifts(shift: Any) -> list[Any]:
    """Each by itself: an int, a length, or an array without dimensions."""
    if isinstance(shift, Length):
        return [shift]
    if isinstance(shift, SEQUENCE):
        return [s for each in shift for s in _shifts(each)]
    if is_known(shift):
        return [int(s) for s in np.ravel(np.asarray(shift))]
    return [ops.reshape(s, shape=()) for s in ops.split(ravel(shift), (1,) * shift.size, 0)]


def _rolled(x: Any, shift: Any, d: int) -> Any:
    n = x.shape[d]
    if not n:
        return x
    if isinstance(shift, (int, Length)):
        cut = -shift % n
        if not cut:
            return x
        if x.aval.layout[d]:  # axes divide two copies, but perhaps no part of one
            return ops.slice_dim(ops.concatenate(x, x, dim=d), cut, cut + n, d)
        return ops.concatenate(ops.slice_dim(x, cut, n, d), ops.slice_dim(x, 0, cut, d), dim=d)
    starts: list[Any] = [np.int32(0)] * x.ndim
    starts[d] = _first_place(shift, n)
    return ops.dynamic_slice(ops.concatenate(x, x, dim=d), *starts, sizes=x.shape)


def _first_place(shift: Any, n: int) -> Any:
    """Where of two copies of ``n`` elements, side by side, the rolled ones begin."""
    narrow = shift.aval.dtype not in dtypes.INTEGERS or shift.aval.dtype.itemsize < 4
    shift = convert(shift, np.dtype("int32")) if narrow else shift
    rest = convert(ops.rem(shift, ops.value_of(n, shift.aval.dtype)), np.dtype("int32"))
    whole = ops.value_of(n, rest.aval.dtype)
    return ops.rem(ops.sub(whole, rest), whole)


def resize(a: ArrayLike, new_shape: Any) -> Array:
    """The elements of ``a`` in a new shape, cut off or repeated from the beginning to fill it.

    Args:
        a: an array, or a number.
        new_shape: the shape of the result; elements are repeated, or left out at the end.

    Returns:
        An array of that shape, of the dtype of ``a``.

    >>> print(jnp.resize(jnp.arange(3), (2, 2)))
    [[0 1]
     [2 0]]
    """
    x = as_array("resize", a)
    target = as_shape("resize", new_shape)
    count = math.prod(target)
    if not count or not x.size:
        return ops.full(target, 0, x.aval.dtype)
    flat = ops.reshape(x, shape=(x.size,))
    copies = len(range(0, count, x.size))
    flat = ops.concatenate(*[flat] * copies, dim=0) if copies > 1 else flat
    return ops.reshape(ops.slice_dim(flat, 0, count, 0), shape=target)
