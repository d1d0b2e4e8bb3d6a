"""Arrays of positions, as indices of other arrays."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Literal, cast, overload

import numpy as np

from phalanx import primitives as ops
from phalanx.base import dtypes, lattice
from phalanx.base.lengths import integer
from phalanx.control.one_program import one_program
from phalanx.core.types import Array
from phalanx.numpy.arithmetic import remainder
from phalanx.numpy.matrices import as_matrices
from phalanx.numpy.promotion import (
    ArrayLike,
    DTypeLike,
    as_array,
    as_shape,
    broadcast,
    convert,
    from_host,
    literal,
    promote_arrays,
    value_of,
)
from phalanx.numpy.ranges import arange
from phalanx.numpy.searching import nonzero


def tril_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Array, Array]:
    """The rows and the columns of the elements on and below diagonal ``k`` of an n by m matrix.

    Args:
        n: the number of rows.
        k: which diagonal: 0 for the main one, positive above it, negative below.
        m: the number of columns; None for as many as rows.

    Returns:
        Two vectors of int32.

    >>> [i.tolist() for i in jnp.tril_indices(2)]
    [[0, 1, 1], [0, 0, 1]]
    """
    return _index_arrays(np.tril_indices(*_triangle("tril_indices", n, k, m)))


def triu_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Array, Array]:
    """The rows and the columns of the elements on and above diagonal ``k`` of an n by m matrix.

    Args:
        n: the number of rows.
        k: which diagonal: 0 for the main one, positive above it, negative below.
        m: the number of columns; None for as many as rows.

    Returns:
        Two vectors of int32.

    >>> [i.tolist() for i in jnp.triu_indices(2)]
    [[0, 0, 1], [0, 1, 1]]
    """
    return _index_arrays(np.triu_indices(*_triangle("triu_indices", n, k, m)))


def mask_indices(
    n: int, mask_func: Callable[..., Any], k: int = 0, *, size: int | None = None
) -> tuple[Array, ...]:
    """The indices of the elements of an n by n matrix that ``mask_func(ones, k)`` leaves.

    ``size`` is how many there are at most, where that must be known; missing ones are 0.

    Args:
        n: the number of rows, and of columns.
        mask_func: a function ``mask_func(matrix, k)``, such as ``triu``.
        k: what the function gets as its second argument.
        size: the length of the result, which is cut or filled up to it. Needed under ``jit``, where
            lengths must not depend on values.

    Returns:
        A tuple of vectors of int32, one per dimension.

    >>> [i.tolist() for i in jnp.mask_indices(3, jnp.triu, 1)]
    [[0, 0, 1], [1, 2, 2]]
    """
    count = integer("mask_indices", "n", n)
    return nonzero(mask_func(ops.full((count, count), 1, np.dtype("int32")), k), size=size)


def tril_indices_from(arr: ArrayLike, k: int = 0) -> tuple[Array, Array]:
    """``tril_indices`` for the shape of a matrix.

    Args:
        arr: a matrix.
        k: which diagonal: 0 for the main one, positive above it, negative below.

    Returns:
        Two vectors of int32.

    Raises:
        ValueError: ``arr`` has other than 2 dimensions.

    >>> [i.tolist() for i in jnp.tril_indices_from(jnp.zeros((2, 2)))]
    [[0, 1, 1], [0, 0, 1]]
    """
    n, m = _matrix("tril_indices_from", arr).shape
    return tril_indices(n, k, m)


def triu_indices_from(arr: ArrayLike, k: int = 0) -> tuple[Array, Array]:
    """``triu_indices`` for the shape of a matrix.

    Args:
        arr: a matrix.
        k: which diagonal: 0 for the main one, positive above it, negative below.

    Returns:
        Two vectors of int32.

    Raises:
        ValueError: ``arr`` has other than 2 dimensions.

    >>> [i.tolist() for i in jnp.triu_indices_from(jnp.zeros((2, 2)))]
    [[0, 0, 1], [0, 1, 1]]
    """
    n, m = _matrix("triu_indices_from", arr).shape
    return triu_indices(n, k, m)


def diag_indices(n: int, ndim: int = 2) -> tuple[Array, ...]:
    """The indices of the main diagonal of an array with ``ndim`` dimensions of length n.

    Args:
        n: the length of each dimension.
        ndim: the number of dimensions of the array.

    Returns:
        A tuple of vectors of int32, one per dimension.

    >>> [i.tolist() for i in jnp.diag_indices(2)]
    [[0, 1], [0, 1]]
    """
    count = integer("diag_indices", "ndim", ndim)
    return (arange(integer("diag_indices", "n", n)),) * count


def diag_indices_from(arr: ArrayLike) -> tuple[Array, ...]:
    """``diag_indices`` for the shape of an array whose dimensions have one length.

    Args:
        arr: an array whose dimensions have one length.

    Returns:
        A tuple of vectors of int32, one per dimension.

    Raises:
        ValueError: the dimensions of ``arr`` have different lengths.

    >>> [i.tolist() for i in jnp.diag_indices_from(jnp.zeros((2, 2)))]
    [[0, 1], [0, 1]]
    """
    x = as_matrices("diag_indices_from", arr)
    if len(set(x.shape)) != 1:
        raise ValueError(f"diag_indices_from: all lengths must be equal, got {x.aval}")
    return diag_indices(x.shape[0], x.ndim)


def _triangle(who: str, n: Any, k: Any, m: Any) -> tuple[int, int, int | None]:
    """What says where a triangle is, as integers."""
    columns = None if m is None else integer(who, "m", m)
    return integer(who, "n", n), integer(who, "k", k), columns


def _index_arrays(indices: Any) -> Any:
    return tuple(from_host(i.astype(dtypes.default_int())) for i in indices)


@overload
def indices(
    dimensions: Any, dtype: DTypeLike | None = None, sparse: Literal[False] = False
) -> Array: ...


@overload
def indices(
    dimensions: Any, dtype: DTypeLike | None = None, *, sparse: Literal[True]
) -> tuple[Array, ...]: ...


@overload
def indices(dimensions: Any, dtype: DTypeLike | None = None, sparse: bool = False) -> Any: ...


def indices(dimensions: Any, dtype: DTypeLike | None = None, sparse: bool = False) -> Any:
    """The indices of an array of shape ``dimensions``: [ndim, *dimensions], or a tuple.

    Args:
        dimensions: the lengths of the grid.
        dtype: the dtype of the coordinates.
        sparse: whether each array has length 1 along the axes in which it is constant.

    Returns:
        An int32 array of shape [ndim, *dimensions]; with ``sparse`` a tuple of arrays that
        broadcast to it.

    >>> print(jnp.indices((2, 2))[0])
    [[0 0]
     [1 1]]
    """
    shape = as_shape("indices", dimensions)
    kind = dtypes.default_int() if dtype is None else dtypes.requested(dtype)
    if sparse:
        thin = [tuple(n if i == d else 1 for i, n in enumerate(shape)) for d in range(len(shape))]
        return tuple(ops.iota(dtype=kind, shape=s, dim=d) for d, s in enumerate(thin))
    grids = [ops.iota(dtype=kind, shape=shape, dim=d) for d in range(len(shape))]
    return ops.stack(grids, 0) if grids else ops.full((0,), 0, kind)


def ix_(*args: ArrayLike) -> tuple[Array, ...]:
    """Index arrays that select the product of several lists of indices: x[ix_(rows, columns)].

    Args:
        args: vectors of integers or booleans, one for each dimension.

    Returns:
        A tuple of arrays, one per argument, that broadcast to the product.

    Raises:
        ValueError: an argument is no vector.

    >>> print(jnp.arange(9).reshape(3, 3)[jnp.ix_(jnp.array([0, 2]), jnp.array([1, 2]))])
    [[1 2]
     [7 8]]
    """
    out: list[Any] = []
    for i, a in enumerate(args):
        x = as_array("ix_", a)
        if x.ndim != 1:
            raise ValueError(f"ix_: vectors are needed, got {x.aval}")
        if x.aval.dtype == np.bool_:
            x = from_host(np.flatnonzero(np.asarray(x)).astype(np.int32))
        shape = [1] * len(args)
        shape[i] = x.size
        out.append(ops.reshape(x, shape=tuple(shape)))
    return tuple(out)


@one_program
def unravel_index(indices: ArrayLike, shape: Any) -> tuple[Array, ...]:
    """The index in each dimension of positions in an array of ``shape``, counted row by row.

    Args:
        indices: positions in the array as a vector.
        shape: the shape of the array.

    Returns:
        A tuple of arrays of int32, one per dimension, of the shape of ``indices``.

    Raises:
        TypeError: the positions are no integers.

    >>> [int(i) for i in jnp.unravel_index(5, (2, 3))]
    [1, 2]
    """
    lengths = as_shape("unravel_index", shape)
    rest = as_array("unravel_index", indices)
    if not dtypes.is_integer(rest.aval.dtype):
        raise TypeError(f"unravel_index: integers are needed, got {rest.aval}")
    count = math.prod(lengths)
    rest = ops.select(ops.lt(rest, literal(rest, 0)), ops.add(rest, literal(rest, count)), rest)
    rest = ops.clamp(literal(rest, 0), rest, literal(rest, max(count - 1, 0)))
    out: list[Any] = []
    for n in reversed(lengths):
        size = literal(rest, max(n, 1))
        out.append(ops.rem(rest, size))
        rest = ops.div(rest, size)
    return tuple(reversed(out))


_ravel_multi_index = cast(Callable[..., Any], np.ravel_multi_index)  # typed for constants


def ravel_multi_index(
    multi_index: Sequence[ArrayLike],
    dims: Any,
    mode: str = "raise",
    order: str = "C",
    *,
    dtype: DTypeLike | None = None,
) -> Array:
    """The position, counted row by row, of an index into an array of shape ``dims``.

    ``mode`` "clip" or "wrap" says what indices outside mean; "raise" needs known indices. The
    result is of ``dtype``, of integers; by default of that of the indices, if it holds all
    positions, else of the default one.

    Args:
        multi_index: an array of positions for each dimension.
        dims: the shape of the array that they are positions in.
        mode: what positions outside mean: "raise", which needs known ones, "wrap" or "clip".
        order: "C" counts the last dimension fastest, "F" the first.
        dtype: the integer dtype of the result.

    Returns:
        Integers of the shape to which the indices broadcast.

    Raises:
        ValueError: an index is outside under "raise", or the dtype does not hold all positions.

    >>> print(jnp.ravel_multi_index((jnp.array([1]), jnp.array([2])), (2, 3)))
    [5]
    """
    lengths = as_shape("ravel_multi_index", dims)
    xs = broadcast("ravel_multi_index", [as_array("ravel_multi_index", x) for x in multi_index])
    if len(xs) != len(lengths):
        raise ValueError(
            f"ravel_multi_index: {len(lengths)} index arrays are needed, got {len(xs)}"
        )
    kind = None if dtype is None else dtypes.requested(dtype)
    if kind is not None and not dtypes.is_integer(kind):
        raise TypeError(f"ravel_multi_index: a dtype of integers is needed, got {kind}")
    if not xs:
        return ops.full((), 0, kind or dtypes.default_int())
    xs = promote_arrays("ravel_multi_index", xs)
    if not dtypes.is_integer(xs[0].aval.dtype):
        raise TypeError(f"ravel_multi_index: integers are needed, got {xs[0].aval}")
    own, last = xs[0].aval.dtype, math.prod(lengths) - 1
    if kind is None:
        kind = own if last <= dtypes.iinfo(own).max else dtypes.default_int()
    if last > dtypes.iinfo(kind).max:
        raise ValueError(
            f"ravel_multi_index: positions up to {last}, in an array of shape {lengths}, do not "
            f"fit {kind}; use a wider dtype"
        )
    if mode == "raise":
        known = [value_of("ravel_multi_index", x, "use mode='clip' or 'wrap'") for x in xs]
        flat_index = _ravel_multi_index(tuple(known), lengths, mode="raise", order=order)
        return from_host(np.asarray(flat_index).astype(kind))
    if mode not in ("clip", "wrap"):
        raise ValueError(f"ravel_multi_index: mode must be raise, clip or wrap, got {mode!r}")
    xs = [convert(x, lattice.promote_types(own, kind)) for x in xs]
    pairs = list(zip(broadcast("ravel_multi_index", xs), lengths, strict=True))
    total: Any = None
    for x, n in pairs if order == "C" else reversed(pairs):
        clipped = mode == "clip"
        x = ops.clamp(literal(x, 0), x, literal(x, n - 1)) if clipped else remainder(x, n)
        total = x if total is None else ops.add(ops.mul(total, literal(total, n)), x)
    return convert(total, kind)


def _matrix(who: str, x: Any) -> Any:
    x = as_array(who, x)
    if x.ndim != 2:
        raise ValueError(f"{who}: a matrix is needed, got {x.aval}")
    return x
