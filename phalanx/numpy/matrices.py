"""Matrices with structure: identities, diagonals, triangles, Vandermonde."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from phalanx import primitives as ops
from phalanx.base import dtypes
from phalanx.base.lengths import Length, integer, length
from phalanx.control.one_program import one_program
from phalanx.core.types import Array
from phalanx.numpy.arithmetic import subtract
from phalanx.numpy.creation import created_on
from phalanx.numpy.promotion import ArrayLike, DTypeLike, as_array, as_shape, convert, literal
from phalanx.numpy.reductions import sum


def _places(n: int, m: int) -> tuple[Any, Any]:
    """The row and the column of each element of an n by m matrix."""
    index = np.dtype("int32")
    return tuple(ops.iota(dtype=index, shape=(n, m), dim=d) for d in (0, 1))  # type: ignore


def eye(
    N: int,
    M: int | None = None,
    k: ArrayLike = 0,
    dtype: DTypeLike | None = None,
    *,
    device: Any = None,
) -> Array:
    """The N by M matrix with 1 on diagonal ``k`` (above the main one if positive), else 0.

    Args:
        N: the number of rows.
        M: the number of columns; None for as many as rows.
        k: which diagonal: 0 for the main one, positive above it, negative below.
        dtype: the dtype of the result; None for float32, or float64 under ``enable_x64``.
        device: a device or a sharding: where the result lies; None for the default device.

    Returns:
        A matrix [N, M], by default of float32.

    >>> print(jnp.eye(2))
    [[1. 0.]
     [0. 1.]]
    """
    n, m = as_shape("eye", (N, N if M is None else M))
    kind = dtypes.default_float() if dtype is None else dtypes.requested(dtype)
    offset = as_array("eye", k) if isinstance(k, Length) else k
    return created_on(device, _eye, n, m, offset, kind)


@one_program
def _eye(n: int, m: int, k: ArrayLike, dtype: np.dtype) -> Array:
    row, column = _places(n, m)
    return convert(ops.eq(ops.add(row, _offset("eye", k, row)), column), dtype)


def identity(n: int, dtype: DTypeLike | None = None) -> Array:
    """The n by n matrix with 1 on the diagonal, else 0.

    Args:
        n: the number of rows, and of columns.
        dtype: the dtype of the result; None for float32, or float64 under ``enable_x64``.

    Returns:
        A matrix [n, n], by default of float32.

    >>> print(jnp.identity(2, dtype=int))
    [[1 0]
     [0 1]]
    """
    return eye(n, dtype=dtype)


@one_program
def tri(N: int, M: int | None = None, k: ArrayLike = 0, dtype: DTypeLike | None = None) -> Array:
    """The N by M matrix with 1 on and below diagonal ``k``, else 0.

    Args:
        N: the number of rows.
        M: the number of columns; None for as many as rows.
        k: which diagonal: 0 for the main one, positive above it, negative below.
        dtype: the dtype of the result; None for float32, or float64 under ``enable_x64``.

    Returns:
        A matrix [N, M], by default of float32.

    >>> print(jnp.tri(2, 3, dtype=int))
    [[1 0 0]
     [1 1 0]]
    """
    kind = dtypes.default_float() if dtype is None else dtypes.requested(dtype)
    return convert(_below("tri", (N, N if M is None else M), k), kind)


def _below(who: str, shape: Sequence[int], k: ArrayLike) -> Any:
    row, column = _places(*as_shape(who, tuple(shape)))
    return ops.ge(ops.add(row, _offset(who, k, row)), column)


def _offset(who: str, k: Any, places: Any) -> Any:
    """The number of a diagonal, an integer that may be traced, to be added to ``places``."""
    if not isinstance(k, Array):
        return np.int32(operator.index(k))
    if k.ndim or not dtypes.is_integer(k.dtype):
        raise TypeError(f"{who}: the number of a diagonal must be an integer, got {k.aval}")
    return ops.broadcast_to(convert(k, np.dtype("int32")), places.shape)


@one_program
def tril(m: ArrayLike, k: ArrayLike = 0) -> Array:
    """Matrices [..., n, m] with the elements above diagonal ``k`` set to 0.

    Args:
        m: matrices [..., n, m].
        k: which diagonal: 0 for the main one, positive above it, negative below.

    Returns:
        An array of the shape and dtype of ``m``.

    Raises:
        ValueError: ``m`` has fewer than two dimensions.

    >>> print(jnp.tril(jnp.ones((2, 2), dtype=int)))
    [[1 0]
     [1 1]]
    """
    x = as_matrices("tril", m)
    return ops.select(_spread(_below("tril", x.shape[-2:], k), x), x, literal(x, 0))


@one_program
def triu(m: ArrayLike, k: ArrayLike = 0) -> Array:
    """Matrices [..., n, m] with the elements below diagonal ``k`` set to 0.

    Args:
        m: matrices [..., n, m].
        k: which diagonal: 0 for the main one, positive above it, negative below.

    Returns:
        An array of the shape and dtype of ``m``.

    Raises:
        ValueError: ``m`` has fewer than two dimensions.

    >>> print(jnp.triu(jnp.ones((2, 2), dtype=int)))
    [[1 1]
     [0 1]]
    """
    x = as_matrices("triu", m)
    return ops.select(_spread(_below("triu", x.shape[-2:], subtract(k, 1)), x), literal(x, 0), x)


def as_matrices(who: str, x: Any) -> Any:
    """``x`` as an array, whose last two dimensions are those of matrices."""
    x = as_array(who, x)
    if x.ndim < 2:
        raise ValueError(f"{who}: an array with at least 2 dimensions is needed, got {x.aval}")
    return x


def _spread(x: Any, like: Any) -> Any:
    return ops.broadcast_to(x, like.shape)


@one_program
def diag(v: ArrayLike, k: int = 0) -> Array:
    """The matrix with the vector ``v`` on diagonal ``k``; or diagonal ``k`` of the matrix ``v``.

    Args:
        v: a vector that becomes the diagonal; or a matrix, whose diagonal is the result.
        k: which diagonal: 0 for the main one, positive above it, negative below.

    Returns:
        A matrix of a vector, a vector of a matrix.

    Raises:
        ValueError: ``v`` has other than 1 or 2 dimensions.

    >>> print(jnp.diag(jnp.array([1, 2])), jnp.diag(jnp.array([[1, 2], [3, 4]])))
    [[1 0]
     [0 2]] [1 4]
    """
    x = as_array("diag", v)
    if x.ndim == 2:
        return diagonal(x, integer("diag", "k", k))
    if x.ndim != 1:
        raise ValueError(f"diag: an array of 1 or 2 dimensions is needed, got {x.aval}")
    return _on_diagonal(x, integer("diag", "k", k))


def _on_diagonal(x: Any, k: int) -> Any:
    """In row-major order, neighbours on a diagonal of an n by n matrix are n + 1 apart."""
    n = x.shape[0] + abs(k)
    if not x.shape[0]:
        return ops.full((n, n), 0, x.aval.dtype)
    before = k if k >= 0 else -k * n
    after = n * n - before - ((x.shape[0] - 1) * (n + 1) + 1)
    flat = ops.pad(x, literal(x, 0), config=((before, after, n),))
    return ops.reshape(flat, shape=(n, n))


@one_program
def diagflat(v: ArrayLike, k: int = 0) -> Array:
    """The matrix with the elements of ``v`` on diagonal ``k``, else 0.

    Args:
        v: the elements of the diagonal, taken as a vector.
        k: which diagonal: 0 for the main one, positive above it, negative below.

    Returns:
        A matrix.

    >>> print(jnp.diagflat(jnp.array([[1, 2]])))
    [[1 0]
     [0 2]]
    """
    x = as_array("diagflat", v)
    return _on_diagonal(ops.reshape(x, shape=(x.size,)), integer("diagflat", "k", k))


@one_program
def diagonal(a: ArrayLike, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Array:
    """Diagonal ``offset`` of the matrices along two axes, as the last dimension of the result.

    Args:
        a: an array, or a number.
        offset: which diagonal: 0 for the main one, positive above it, negative below.
        axis1: the dimension of the rows of the matrices.
        axis2: the dimension of their columns.

    Returns:
        An array of the other dimensions of ``a``, and the diagonal as the last one.

    Raises:
        ValueError: ``a`` has fewer than two dimensions, or both axes are the same one.

    >>> print(jnp.diagonal(jnp.arange(6).reshape(2, 3), 1))
    [1 5]
    """
    x = as_matrices("diagonal", a)
    offset = integer("diagonal", "offset", offset)
    rows, columns = ops.dimensions("diagonal", (axis1, axis2), x.ndim)
    remaining = [d for d in range(x.ndim) if d not in (rows, columns)]
    x = ops.reorder(x, (*remaining, rows, columns))
    *outer, n, m = x.shape
    count = max(0, min(n, m - offset) if offset >= 0 else min(n + offset, m))
    if not count:
        return ops.full((*outer, 0), 0, x.aval.dtype)
    first = offset if offset >= 0 else -offset * m
    flat = ops.reshape(x, shape=(*outer, n * m))
    return ops.slice_dim(flat, first, first + (count - 1) * (m + 1) + 1, len(outer), m + 1)


@one_program
def trace(
    a: ArrayLike,
    offset: int = 0,
    axis1: int = 0,
    axis2: int = 1,
    dtype: DTypeLike | None = None,
    out: None = None,
) -> Array:
    """The sum of diagonal ``offset`` of the matrices along two axes.

    Args:
        a: an array, or a number.
        offset: which diagonal: 0 for the main one, positive above it, negative below.
        axis1: the dimension of the rows of the matrices.
        axis2: the dimension of their columns.
        dtype: of computation and result; None for that of ``a``, but at least 32 bits of integers.
        out: must be None: arrays are immutable, and results are returned.

    Returns:
        An array of the dimensions that are left; small integers are summed in 32 bits.

    Raises:
        ValueError: ``a`` has fewer than two dimensions, or both axes are the same one.

    >>> print(jnp.trace(jnp.array([[1, 2], [3, 4]])))
    5
    """
    return sum(diagonal(a, offset, axis1, axis2), -1, dtype, out)


@one_program
def vander(x: ArrayLike, N: int | None = None, increasing: bool = False) -> Array:
    """The powers of the elements of a vector: column j holds x^(N - 1 - j), or x^j.

    Args:
        x: a vector.
        N: the number of columns; None for as many as rows.
        increasing: whether powers rise from left to right.

    Returns:
        A matrix [n, N], of n elements.

    Raises:
        ValueError: ``x`` is no vector.

    >>> print(jnp.vander(jnp.array([2, 3]), 3))
    [[4 2 1]
     [9 3 1]]
    """
    x = as_array("vander", x)
    if x.ndim != 1:
        raise ValueError(f"vander: a vector is needed, got {x.aval}")
    count = x.shape[0] if N is None else length(N)
    if x.aval.dtype == np.bool_:
        x = convert(x, dtypes.default_int())
    rows = x.shape[0]
    one = ops.full((rows, min(count, 1)), 1, x.aval.dtype)
    factors = ops.broadcast(x, shape=(rows, max(count - 1, 0)), dims=(0,))
    powers = ops.cumprod(ops.concatenate(one, factors, dim=1), dim=1, reverse=False)
    return powers if increasing else ops.reverse(powers, dims=(1,))
