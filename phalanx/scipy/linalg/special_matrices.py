"""Matrices that are told by a vector, or by their size."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from phalanx import primitives as ops
from phalanx.base import dtypes
from phalanx.base.errors import ShapeError
from phalanx.control.one_program import one_program
from phalanx.core.types import Array
from phalanx.numpy.complex_numbers import conj
from phalanx.numpy.creation import asarray, ones, zeros
from phalanx.numpy.manipulation import flip
from phalanx.numpy.matrices import diag
from phalanx.numpy.promotion import ArrayLike, as_array, inexact, promote_arrays

# ---- of vectors -----------------------------------------------------------------------------


def _vector(who: str, x: Any, least: int = 0) -> Array:
    x = as_array(who, x)
    if x.ndim != 1 or x.shape[0] < least:
        raise ShapeError(f"{who}: a vector of at least {least} elements is needed, got {x.aval}")
    return x


@one_program
def block_diag(*arrs: ArrayLike) -> Array:
    """Block diagonal matrix of the given matrices, zero elsewhere.

    Args:
        arrs: matrices; a vector counts as one row, a number as one element.

    Returns:
        A matrix of the promoted dtype, as high and as wide as all of them together.

    Raises:
        ShapeError: an array has more than 2 dimensions.

    >>> print(scipy.linalg.block_diag(jnp.ones((1, 2)), 3 * jnp.ones((1, 1))))
    [[1. 1. 0.]
     [0. 0. 3.]]
    """
    blocks = promote_arrays("block_diag", arrs or (zeros((1, 0)),))
    for x in blocks:
        if x.ndim > 2:
            raise ShapeError(f"block_diag: matrices, vectors or numbers are needed, got {x.aval}")
    blocks = [ops.reshape(x, shape=(1,) * (2 - x.ndim) + x.shape) for x in blocks]
    width = sum(x.shape[1] for x in blocks)
    rows: list[Any] = []
    left = 0
    for x in blocks:
        right = width - left - x.shape[1]
        config = ((0, 0, 0), (left, right, 0))
        rows.append(ops.pad(x, dtypes.scalar(0, x.dtype), config=config))
        left += x.shape[1]
    return ops.concatenate(*rows, dim=0)


@one_program
def toeplitz(c: ArrayLike, r: ArrayLike | None = None) -> Array:
    """Toeplitz matrices, constant along diagonals: c[i - j] where i ≥ j, and r[j - i] above.

    Args:
        c: the first columns [..., m].
        r: the first rows [..., n], whose first element is ignored; None for conj(c).

    Returns:
        Matrices [..., m, n].

    >>> print(scipy.linalg.toeplitz(jnp.array([1, 2, 3]), jnp.array([1, 4])))
    [[1 4]
     [2 1]
     [3 2]]
    """
    x, y = promote_arrays("toeplitz", (c, conj(c) if r is None else r))
    x, y = _edges(x, y)
    rows, columns = x.shape[-1], y.shape[-1]
    if not rows or not columns:
        return zeros((*x.shape, columns), x.dtype)
    values = ops.concatenate(flip(x, -1), y[..., 1:], dim=x.ndim - 1)
    return values[..., np.arange(columns) - np.arange(rows)[:, None] + rows - 1]


def _edges(column: Array, row: Array) -> list[Array]:
    """The first column and an edge row of matrices, with the same dimensions in front."""
    edges = [ops.reshape(v, shape=(1,)) if not v.ndim else v for v in (column, row)]
    front = np.broadcast_shapes(*[v.shape[:-1] for v in edges])
    return [ops.broadcast_to(v, (*front, v.shape[-1])) for v in edges]


@one_program
def hankel(c: ArrayLike, r: ArrayLike | None = None) -> Array:
    """Hankel matrices, constant along antidiagonals.

    Args:
        c: the first columns [..., m].
        r: the last rows [..., n], whose first element is ignored; None for zeros.

    Returns:
        Matrices [..., m, n].

    >>> print(scipy.linalg.hankel(jnp.array([1, 2]), jnp.array([2, 3, 4])))
    [[1 2 3]
     [2 3 4]]
    """
    x = as_array("hankel", c)
    x, y = promote_arrays("hankel", (x, ops.zeros_like(x) if r is None else r))
    x, y = _edges(x, y)
    rows, columns = x.shape[-1], y.shape[-1]
    if not rows or not columns:
        return zeros((*x.shape, columns), x.dtype)
    values = ops.concatenate(x, y[..., 1:], dim=x.ndim - 1)
    return values[..., np.arange(columns) + np.arange(rows)[:, None]]


@one_program
def circulant(c: ArrayLike) -> Array:
    """Circulant matrices, whose element i, j is c[(i - j) mod n].

    Args:
        c: the first columns [..., n].

    Returns:
        Matrices [..., n, n].

    >>> print(scipy.linalg.circulant(jnp.array([1, 2, 3])))
    [[1 3 2]
     [2 1 3]
     [3 2 1]]
    """
    x = as_array("circulant", c)
    x = ops.reshape(x, shape=(1,)) if not x.ndim else x
    n = x.shape[-1]
    if not n:
        return zeros((*x.shape[:-1], 0, 0), x.dtype)
    return x[..., (np.arange(n)[:, None] - np.arange(n)) % n]


@one_program
def companion(a: ArrayLike) -> Array:
    """Companion matrix of the polynomial a[0] xⁿ + ... + a[n]: its eigenvalues are the roots.

    Args:
        a: the coefficients [n + 1], highest power first; the first is not zero.

    Returns:
        A matrix [n, n].

    Raises:
        ShapeError: ``a`` is no vector.

    >>> print(scipy.linalg.companion(jnp.array([2.0, -4.0, 6.0])))
    [[ 2. -3.]
     [ 1.  0.]]
    """
    x = inexact("companion", _vector("companion", a, 2))
    first = -x[1:] / x[0]
    n = first.shape[0]
    below = diag(ones(n, x.dtype))[: n - 1]
    return ops.concatenate(ops.expand_dims(first, (0,)), below, dim=0)


@one_program
def convolution_matrix(a: ArrayLike, n: int, mode: str = "full") -> Array:
    """Matrix that convolves: its product with v is ``jnp.convolve(a, v, mode)``, for v of length n.

    Args:
        a: the kernel, a vector [m].
        n: the length of the vectors v.
        mode: "full", "same" or "valid", as in ``jnp.convolve``.

    Returns:
        A matrix [k, n], where k is m + n - 1 if ``mode`` is "full", max(m, n) if "same", and the
        larger less the smaller plus 1 if "valid".

    Raises:
        ValueError: ``mode`` is another word.

    >>> print(scipy.linalg.convolution_matrix(jnp.array([1, 2]), 2))
    [[1 0]
     [2 1]
     [0 2]]
    """
    if mode not in ("full", "valid", "same"):
        raise ValueError(
            f"convolution_matrix: mode must be 'full', 'valid' or 'same', got {mode!r}"
        )
    x, n = _vector("convolution_matrix", a, 1), _size("convolution_matrix", n, 1)
    m = x.shape[0]
    full = toeplitz(
        ops.pad(x, dtypes.scalar(0, x.dtype), config=((0, n - 1, 0),)), zeros(n, x.dtype)
    )
    if mode == "full":
        return full
    count = max(m, n) if mode == "same" else max(m, n) - min(m, n) + 1
    first = (m + n - 1 - count) // 2
    return full[first : first + count]


@one_program
def fiedler(a: ArrayLike) -> Array:
    """Fiedler matrix, symmetric, of the distances |a[i] - a[j]|.

    Args:
        a: a vector [n].

    Returns:
        A matrix [n, n].

    Raises:
        ShapeError: ``a`` is no vector.

    >>> print(scipy.linalg.fiedler(jnp.array([1, 3])))
    [[0 2]
     [2 0]]
    """
    x = _vector("fiedler", a)
    return abs(x[:, None] - x)


@one_program
def fiedler_companion(a: ArrayLike) -> Array:
    """Fiedler companion matrix of the polynomial a[0] xⁿ + ... + a[n]: pentadiagonal, its
    eigenvalues are the roots.

    (Fiedler, A note on companion matrices, 2003.)

    Args:
        a: the coefficients [n + 1], highest power first; the first is not zero.

    Returns:
        A matrix [n, n].

    Raises:
        ShapeError: ``a`` is no vector.

    >>> print(scipy.linalg.fiedler_companion(jnp.array([1.0, -3.0, 2.0])))
    [[ 3. -2.]
     [ 1.  0.]]
    """
    x = inexact("fiedler_companion", _vector("fiedler_companion", a))
    if x.shape[0] < 2:
        return zeros((0, 0), x.dtype)
    x = x / x[0]
    n = x.shape[0] - 1
    out = zeros((n, n), x.dtype).at[0, 0].set(-x[1])
    if n == 1:
        return out
    # Fiedler 2003: -a[k] and 1 alternate on the first diagonals beside the main one
    one = ops.full((), 1, x.dtype)
    out = out.at[0, 1].set(-x[2]).at[1, 0].set(one)
    for k in range(2, n):
        row, column = (k - 2, k) if k % 2 == 0 else (k, k - 2)
        out = out.at[row, column].set(one)
    for k in range(2, n):
        row, column = (k, k - 1) if k % 2 == 0 else (k - 1, k)
        out = out.at[row, column].set(-x[k + 1])
    return out


@one_program
def leslie(f: ArrayLike, s: ArrayLike) -> Array:
    """Leslie matrix of a population by age: fecundities in the first row, survival below the
    diagonal.

    Args:
        f: the fecundities, offspring of each age [n].
        s: the survival rates, from each age to the next [n - 1].

    Returns:
        A matrix [n, n].

    Raises:
        ShapeError: ``s`` is not shorter than ``f`` by one.

    >>> print(scipy.linalg.leslie(jnp.array([1.0, 2.0]), jnp.array([0.5])))
    [[1.  2. ]
     [0.5 0. ]]
    """
    x, y = promote_arrays("leslie", (_vector("leslie", f, 2), _vector("leslie", s, 1)))
    n = x.shape[0]
    if y.shape[0] != n - 1:
        raise ShapeError(f"leslie: s must be shorter than f by one, got {x.aval} and {y.aval}")
    below = ops.pad(diag(y), dtypes.scalar(0, x.dtype), config=((0, 0, 0), (0, 1, 0)))
    return ops.concatenate(ops.expand_dims(x, (0,)), below, dim=0)


# ---- of a size ------------------------------------------------------------------------------


_LARGEST = 1 << 16  # of which a matrix takes many gigabytes


def _size(who: str, n: Any, least: int = 0) -> int:
    n = operator.index(n)
    if not least <= n <= _LARGEST:
        raise ValueError(f"{who}: n must be from {least} to {_LARGEST}, got {n}")
    return n


def _floats(values: Any) -> Array:
    return asarray(np.asarray(values), dtype=dtypes.default_float())


def dft(n: int, scale: str | None = None, *, dtype: Any = None) -> Array:
    """Matrix of the discrete Fourier transform, exp(-2πi jk / n).

    Args:
        n: the number of rows and columns.
        scale: a factor: None for 1, "sqrtn" for 1 / √n, which makes it unitary, "n" for 1 / n.
        dtype: a complex dtype; None for complex64, or complex128 under ``enable_x64``.

    Returns:
        A complex matrix [n, n].

    Raises:
        ValueError: ``scale`` is another word, or ``dtype`` is not complex.

    >>> print(scipy.linalg.dft(4).round(3)[1])
    [ 1.+0.j  0.-1.j -1.-0.j -0.+1.j]
    """
    n = _size("dft", n)
    if scale not in (None, "sqrtn", "n"):
        raise ValueError(f"dft: scale must be None, 'sqrtn' or 'n', got {scale!r}")
    factor = {None: 1.0, "sqrtn": math.sqrt(max(n, 1)), "n": float(max(n, 1))}[scale]
    counts = np.outer(np.arange(n), np.arange(n)) % max(n, 1)
    values = np.exp(-2j * np.pi * counts / max(n, 1)) / factor
    kind = dtypes.default_complex() if dtype is None else dtypes.requested(dtype)
    if not dtypes.is_complex(kind):
        raise ValueError(f"dft: dtype must be complex, got {kind}")
    return asarray(values, dtype=kind)


def hadamard(n: int, dtype: Any = int) -> Array:
    """Hadamard matrix by Sylvester's construction: of 1 and -1, symmetric, with orthogonal rows.

    Args:
        n: the number of rows and columns, a power of 2.
        dtype: the dtype of the result.

    Returns:
        A matrix [n, n].

    Raises:
        ValueError: ``n`` is not a power of 2.

    >>> print(scipy.linalg.hadamard(4))
    [[ 1  1  1  1]
     [ 1 -1  1 -1]
     [ 1  1 -1 -1]
     [ 1 -1 -1  1]]
    """
    n = _size("hadamard", n, 1)
    if n & (n - 1):
        raise ValueError(f"hadamard: n must be a power of 2, got {n}")
    out = np.ones((1, 1), np.int8)
    while len(out) < n:
        out = np.block([[out, out], [out, -out]])
    return asarray(out, dtype=dtypes.requested(dtype))


def helmert(n: int, full: bool = False) -> Array:
    """Helmert matrix of order n, whose rows are orthonormal contrasts.

    Args:
        n: the number of columns.
        full: whether the first row, all 1 / √n, is there.

    Returns:
        A matrix [n - 1, n]; with ``full`` [n, n].

    >>> print(scipy.linalg.helmert(3).round(4))
    [[ 0.7071 -0.7071  0.    ]
     [ 0.4082  0.4082 -0.8165]]
    """
    n = _size("helmert", n, 1)
    out = np.tril(np.ones((n, n)), -1) - np.diag(np.arange(n))
    out[0] = 1
    counts = np.arange(n)
    scales = np.sqrt(np.where(counts == 0, n, counts * (counts + 1)))
    out = out / scales[:, None]
    return _floats(out if full else out[1:])


def hilbert(n: int) -> Array:
    """Hilbert matrix, of elements 1 / (i + j + 1), an example of an ill-conditioned one.

    Args:
        n: the number of rows and columns.

    Returns:
        A matrix [n, n].

    >>> print(scipy.linalg.hilbert(3).round(4))
    [[1.     0.5    0.3333]
     [0.5    0.3333 0.25  ]
     [0.3333 0.25   0.2   ]]
    """
    counts = np.arange(_size("hilbert", n))
    return _floats(1.0 / (counts[:, None] + counts + 1))


def invhilbert(n: int) -> Array:
    """Inverse of the Hilbert matrix, whose elements are integers, as floating-point numbers.

    Args:
        n: the number of rows and columns.

    Returns:
        A matrix [n, n].

    >>> print(scipy.linalg.invhilbert(3))
    [[   9.  -36.   30.]
     [ -36.  192. -180.]
     [  30. -180.  180.]]
    """
    n = _size("invhilbert", n)

    def element(i: int, j: int) -> float:
        sign = -1 if (i + j) % 2 else 1
        product = math.comb(n + i, n - j - 1) * math.comb(n + j, n - i - 1)
        return float(sign * (i + j + 1) * product * math.comb(i + j, i) ** 2)

    return _floats([[element(i, j) for j in range(n)] for i in range(n)])


def _pascal(who: str, n: Any, kind: str | None, sign: int) -> np.ndarray:
    n = _size(who, n)
    kind = "symmetric" if kind is None else kind
    if kind not in ("symmetric", "lower", "upper"):
        raise ValueError(f"{who}: kind must be 'symmetric', 'lower' or 'upper', got {kind!r}")
    lower = [[math.comb(i, j) * sign ** (i + j) for j in range(n)] for i in range(n)]
    triangle = np.array(lower, dtype=float).reshape(n, n)
    if kind == "symmetric":
        return triangle @ triangle.T if sign > 0 else triangle.T @ triangle
    return triangle if kind == "lower" else triangle.T


def pascal(n: int, kind: str | None = None) -> Array:
    """Pascal matrix of binomial coefficients.

    Args:
        n: the number of rows and columns.
        kind: "symmetric", or None: of i + j over i; "lower": of i over j, or "upper", its
            transpose.

    Returns:
        A matrix [n, n].

    Raises:
        ValueError: ``kind`` is another word.

    >>> print(scipy.linalg.pascal(3))
    [[1. 1. 1.]
     [1. 2. 3.]
     [1. 3. 6.]]
    """
    return _floats(_pascal("pascal", n, kind, 1))


def invpascal(n: int, kind: str | None = None) -> Array:
    """Inverse of the Pascal matrix, whose elements are integers, as floating-point numbers.

    Args:
        n: the number of rows and columns.
        kind: that of ``pascal``: "symmetric", or None, "lower" or "upper".

    Returns:
        A matrix [n, n].

    Raises:
        ValueError: ``kind`` is another word.

    >>> print(scipy.linalg.invpascal(3))
    [[ 3. -3.  1.]
     [-3.  5. -2.]
     [ 1. -2.  1.]]
    """
    return _floats(_pascal("invpascal", n, kind, -1))
