"""Matrices with structure, diagonals and triangles of matrices, grids of coordinates."""

from __future__ import annotations

import builtins
import operator
from collections.abc import Callable, Sequence
from typing import Any, Literal, overload

import numpy as np

from phalanx import ops
from phalanx.base import dtypes
from phalanx.base.kinds import SEQUENCE
from phalanx.base.lengths import Length, integer, length
from phalanx.control.one_program import one_program
from phalanx.core.types import Array
from phalanx.numpy.arithmetic import literal, subtract
from phalanx.numpy.choice import nonzero
from phalanx.numpy.creation import arange, created_on
from phalanx.numpy.promotion import ArrayLike, DTypeLike, as_array, as_shape, convert, from_host
from phalanx.numpy.reductions import sum
from phalanx.ops.bessel import bessel_i0e

# ---- diagonals and triangles ----------------------------------------------------------------


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
    x = _matrices("tril", m)
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
    x = _matrices("triu", m)
    return ops.select(_spread(_below("triu", x.shape[-2:], subtract(k, 1)), x), literal(x, 0), x)


def _matrices(who: str, x: Any) -> Any:
    x = as_array(who, x)
    if x.ndim < 2:
        raise ValueError(f"{who}: an array with at least 2 dimensions is needed, got {x.aval}")
    return x


def _matrix(who: str, x: Any) -> Any:
    x = as_array(who, x)
    if x.ndim != 2:
        raise ValueError(f"{who}: a matrix is needed, got {x.aval}")
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
    x = _matrices("diagonal", a)
    offset = integer("diagonal", "offset", offset)
    rows, columns = ops.dimensions("diagonal", (axis1, axis2), x.ndim)
    kept = [d for d in range(x.ndim) if d not in (rows, columns)]
    x = ops.reorder(x, (*kept, rows, columns))
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
        dtype: the dtype of the result, and in which it is computed; None for that of ``a``, but at
            least 32 bits of integers.
        out: must be None: arrays are immutable, and results are returned.

    Returns:
        An array of the dimensions that are left; small integers are summed in 32 bits.

    Raises:
        ValueError: ``a`` has fewer than two dimensions, or both axes are the same one.

    >>> print(jnp.trace(jnp.array([[1, 2], [3, 4]])))
    5
    """
    return sum(diagonal(a, offset, axis1, axis2), -1, dtype, out)


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
    x = _matrices("diag_indices_from", arr)
    if len(set(x.shape)) != 1:
        raise ValueError(f"diag_indices_from: all lengths must be equal, got {x.aval}")
    return diag_indices(x.shape[0], x.ndim)


def _triangle(who: str, n: Any, k: Any, m: Any) -> tuple[int, int, int | None]:
    """What says where a triangle is, as integers."""
    columns = None if m is None else integer(who, "m", m)
    return integer(who, "n", n), integer(who, "k", k), columns


def _index_arrays(indices: Any) -> Any:
    return tuple(from_host(i.astype(dtypes.default_int())) for i in indices)


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


# ---- windows --------------------------------------------------------------------------------


def _points(m: Any) -> Any:
    """How many points a window has: what ``m`` is without its fraction, if it is no integer."""
    return m if isinstance(m, Length) else int(m)


def _window(m: Any, *weights: float) -> Any:
    """Σ weights[k] cos(2πk i / (m - 1)) for i below m; of one element, 1."""
    count = _points(m)
    real = dtypes.default_float()
    if count <= 1:
        return ops.full((builtins.max(count, 0),), 1, real)
    step = ops.iota(dtype=real, shape=(count,), dim=0)
    angle = ops.mul(step, literal(step, 2 * np.pi / (count - 1)))
    out = ops.full((count,), weights[0], real)
    for k, weight in enumerate(weights[1:], 1):
        wave = ops.cos(ops.mul(angle, literal(angle, k)))
        out = ops.add(out, ops.mul(wave, literal(wave, weight)))
    return out


@one_program
def hanning(M: float) -> Array:
    """The Hann window of M points: 0.5 - 0.5 cos.

    Args:
        M: the number of points; a fraction does not count.

    Returns:
        float32 [M].

    >>> print(jnp.hanning(3).round(3))
    [0. 1. 0.]
    """
    return _window(M, 0.5, -0.5)


@one_program
def hamming(M: float) -> Array:
    """The Hamming window of M points: 0.54 - 0.46 cos.

    Args:
        M: the number of points; a fraction does not count.

    Returns:
        float32 [M].

    >>> [round(w, 2) for w in jnp.hamming(3).tolist()]
    [0.08, 1.0, 0.08]
    """
    return _window(M, 0.54, -0.46)


@one_program
def blackman(M: float) -> Array:
    """The Blackman window of M points, from two cosines.

    Args:
        M: the number of points; a fraction does not count.

    Returns:
        float32 [M].

    >>> print(abs(jnp.blackman(3)).round(3))
    [0. 1. 0.]
    """
    return _window(M, 0.42, -0.5, 0.08)


@one_program
def bartlett(M: float) -> Array:
    """The triangular window of M points, zero at both ends.

    Args:
        M: the number of points; a fraction does not count.

    Returns:
        float32 [M].

    >>> print(jnp.bartlett(5))
    [0.  0.5 1.  0.5 0. ]
    """
    count = _points(M)
    if count <= 1:
        return _window(M)
    return 1 - abs(2 * indices((count,), dtypes.default_float())[0] / (count - 1) - 1)


@one_program
def kaiser(M: float, beta: ArrayLike) -> Array:
    """The Kaiser window of M points: I0(beta sqrt(1 - x^2)) / I0(beta) for x from -1 to 1.

    Args:
        M: the number of points; a fraction does not count.
        beta: how narrow the window is; 0 for a rectangle.

    Returns:
        float32 [M].

    >>> print(jnp.kaiser(3, 5.0).round(4))
    [0.0367 1.     0.0367]
    """
    count = _points(M)
    if count <= 1:
        return _window(M)
    x = 2 * indices((count,), dtypes.default_float())[0] / (count - 1) - 1
    width = convert(as_array("kaiser", beta), x.aval.dtype)
    inside = width * ops.sqrt(1 - x * x)
    return bessel_i0e(inside) / bessel_i0e(width) * ops.exp(inside - width)


# ---- grids ----------------------------------------------------------------------------------


def meshgrid(
    *xi: ArrayLike, copy: bool = True, sparse: bool = False, indexing: str = "xy"
) -> tuple[Array, ...]:
    """The coordinates of the points of a grid, from the coordinates along each axis.

    Args:
        xi: a vector for each axis.
        copy: has no meaning: arrays are immutable.
        sparse: whether to leave the dimensions in which a result is constant at length 1.
        indexing: "xy" lets the second dimension follow the first vector; "ij" does not.

    Returns:
        A tuple of arrays, one per argument: of one shape, or with ``sparse`` of shapes that
        broadcast.

    Raises:
        ValueError: an argument has 2 dimensions or more, or there is no such indexing.

    >>> x, y = jnp.meshgrid(jnp.arange(3), jnp.arange(2))
    >>> print(x)
    [[0 1 2]
     [0 1 2]]
    """
    vectors = [as_array("meshgrid", x) for x in xi]
    if indexing not in ("xy", "ij"):
        raise ValueError(f"meshgrid: indexing must be 'xy' or 'ij', got {indexing!r}")
    for x in vectors:
        if x.ndim > 1:
            raise ValueError(f"meshgrid: vectors are needed, got {x.aval}")
    order = list(range(len(vectors)))
    if indexing == "xy" and len(order) > 1:
        order[:2] = 1, 0
    shape = [1] * len(vectors)
    for d, x in zip(order, vectors, strict=True):
        shape[d] = x.size
    out: list[Any] = []
    for d, x in zip(order, vectors, strict=True):
        thin = ops.reshape(x, shape=tuple(n if i == d else 1 for i, n in enumerate(shape)))
        out.append(thin if sparse else ops.broadcast_to(thin, tuple(shape)))
    return tuple(out)


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


def fromfunction(
    function: Callable[..., Any], shape: Any, *, dtype: DTypeLike = float, **kwargs: Any
) -> Any:
    """``function`` of the indices of an array of ``shape``, one array of them per dimension.

    Args:
        function: a function of as many arrays as there are dimensions, the coordinates.
        shape: the shape of the result: a tuple of integers, or an integer.
        dtype: the dtype of the indices that ``function`` gets.
        kwargs: keyword arguments of the function.

    Returns:
        What ``function`` returns.

    Raises:
        ValueError: a length in ``shape`` is negative.

    >>> print(jnp.fromfunction(lambda i, j: 10 * i + j, (2, 3), dtype=int))
    [[ 0  1  2]
     [10 11 12]]
    """
    return function(*indices(shape, dtype), **kwargs)


class _Grid:
    """Grids by slices: ``mgrid[0:3, 0:2]``; an imaginary step is a number of points."""

    def __init__(self, host: Any, doc: str) -> None:
        self._host = host
        self.__doc__ = doc

    def __getitem__(self, key: Any) -> Any:
        value = self._host[key]
        if isinstance(value, SEQUENCE):
            return tuple(from_host(x) for x in value)
        return from_host(value)


mgrid = _Grid(np.mgrid, "A full grid of coordinates, as one array, by slices.")
ogrid = _Grid(np.ogrid, "A grid of coordinates that broadcast, one array per axis, by slices.")
