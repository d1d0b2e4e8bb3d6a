"""Linear systems of equations, inverses, determinants and ranks of matrices [..., m, n]."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from phalanx import primitives as ops
from phalanx.base import dtypes
from phalanx.base.broadcasting import common_shape
from phalanx.base.errors import ShapeError
from phalanx.control.one_program import one_program
from phalanx.core.types import Array, typeof
from phalanx.numpy.creation import asarray
from phalanx.numpy.extrema import max
from phalanx.numpy.linalg.decompositions import in_lapack, matrices, svd
from phalanx.numpy.linalg.norms import norm
from phalanx.numpy.logic import isnan
from phalanx.numpy.products import matmul
from phalanx.numpy.promotion import ArrayLike, as_array, promote_arrays
from phalanx.numpy.reductions import any, count_nonzero
from phalanx.numpy.searching import where
from phalanx.primitives import linalg as prims
from phalanx.primitives.linalg.algebra import adjoint, identity_like


class SlogdetResult(NamedTuple):
    """The result of ``slogdet``: the determinants are ``sign * exp(logabsdet)``."""

    sign: Array
    logabsdet: Array


def square(who: str, x: Array) -> Array:
    """``x``, if its matrices are square.

    Raises:
        ShapeError: they are not.
    """
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        raise ShapeError(f"{who}: square matrices [..., n, n] are needed, got {x.aval}")
    return x


def pair(who: str, a: Any, b: Any) -> tuple[Array, Array]:
    """Two operands as arrays of one floating-point or complex dtype."""
    x, y = promote_arrays(who, (a, b))
    return in_lapack(who, x), in_lapack(who, y)


def batched(who: str, x: Array, y: Array) -> tuple[Array, Array]:
    """Matrices with the dimensions in front repeated to their common shape."""
    front = common_shape(who, x.shape[:-2], y.shape[:-2])
    return tuple(ops.broadcast_to(m, (*front, *m.shape[-2:])) for m in (x, y))  # type: ignore


# ---- systems of equations -------------------------------------------------------------------


@one_program
def solve(a: ArrayLike, b: ArrayLike) -> Array:
    """Solution x of the linear equations a x = b.

    Args:
        a: square matrices [..., n, n]; where one is singular, the result has infinities or NaN, and
            NumPy raises an error.
        b: right sides [..., n, k], or one vector [n], which is solved for with every matrix.

    Returns:
        x: [..., n, k]; or [..., n] if ``b`` is a vector.

    Raises:
        ShapeError: the shapes of ``a`` and ``b`` do not fit, or ``a`` is not square.

    >>> print(jnp.linalg.solve(jnp.array([[2.0, 0.0], [0.0, 4.0]]), jnp.array([2.0, 8.0])))
    [1. 2.]
    """
    x, y = pair("solve", a, b)
    square("solve", x)
    if y.ndim == 1:
        columns = ops.expand_dims(y, (1,))
        return ops.squeeze(prims.solve(*batched("solve", x, columns)), (x.ndim - 1,))
    if y.ndim < 1:
        raise ShapeError(f"solve: b must be [..., n, k] or [n], got {y.aval}")
    return prims.solve(*batched("solve", x, y))


@one_program
def inv(a: ArrayLike) -> Array:
    """Inverses of square matrices.

    To solve equations, ``solve`` is faster and more accurate than a product with the inverse.

    Args:
        a: square matrices [..., n, n]; where one is singular, the result has infinities or NaN, and
            NumPy raises an error.

    Returns:
        Matrices [..., n, n].

    Raises:
        ShapeError: the matrices are not square.

    >>> print(jnp.linalg.inv(jnp.array([[2.0, 0.0], [0.0, 4.0]])))
    [[0.5  0.  ]
     [0.   0.25]]
    """
    x = square("inv", in_lapack("inv", a))
    return prims.solve(x, identity_like(x))


@one_program
def pinv(
    a: ArrayLike,
    rtol: ArrayLike | None = None,
    hermitian: bool = False,
    *,
    rcond: ArrayLike | None = None,
) -> Array:
    """Moore-Penrose pseudo-inverses of matrices, by the singular value decomposition.

    Args:
        a: matrices [..., m, n].
        rtol: singular values up to ``rtol`` times the largest count as zero; None for 10 max(m, n)
            times the machine epsilon of the dtype. An array has one for each matrix.
        hermitian: accepted: whether a is known to be Hermitian; the result is the same.
        rcond: the older name of ``rtol``.

    Returns:
        Matrices [..., n, m].

    Raises:
        ShapeError: ``a`` has fewer than two dimensions.

    >>> print(jnp.linalg.pinv(jnp.array([[2.0, 0.0], [0.0, 0.0]])))
    [[0.5 0. ]
     [0.  0. ]]
    """
    x = matrices("pinv", a)
    bound = rcond if rtol is None else rtol
    if bound is None:
        bound = 10 * _max(x.shape[-2:]) * float(dtypes.finfo(x.dtype).eps)
    tolerance = asarray(bound, dtype=_real(x.dtype))
    return prims.pinv(x, ops.broadcast_to(tolerance, x.shape[:-2]))


def _max(lengths: Sequence[int]) -> int:
    return sorted(lengths)[-1]


def _real(dtype: np.dtype) -> np.dtype:
    return dtypes.to_real(dtype) if dtypes.is_complex(dtype) else dtype


def lstsq(
    a: ArrayLike, b: ArrayLike, rcond: float | None = None, *, numpy_resid: bool = False
) -> tuple[Array, Array, Array, Array]:
    """Least-squares solution of a x = b: the x of least norm among those that minimize |b - a x|.

    Args:
        a: a matrix [m, n].
        b: the right side, [m] or [m, k].
        rcond: singular values up to ``rcond`` times the largest count as zero; None for max(m, n)
            times the machine epsilon of the dtype, negative for the epsilon.
        numpy_resid: whether residuals are empty where m ≤ n or the rank is less than n, as in
            NumPy. Their shape then depends on values, so this does not work under ``jit``.

    Returns:
        A tuple: x [n] or [n, k]; the squared norms of the residuals, [1] or [k]; the rank of a, an
        integer; the singular values of a, [min(m, n)].

    Raises:
        ShapeError: ``a`` is not a matrix, or the shapes do not fit.

    >>> a, b = jnp.array([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]]), jnp.array([1.0, 3.0, 5.0])
    >>> print(jnp.linalg.lstsq(a, b)[0].round(4))
    [1. 2.]
    """
    x, residuals, rank, s = _lstsq(a, b, rcond)
    rows, columns = typeof(a).shape
    if numpy_resid and (rows <= columns or int(rank) < columns):
        residuals = residuals[:0]
    return x, residuals, rank, s


@one_program
def _lstsq(a: ArrayLike, b: ArrayLike, rcond: float | None) -> tuple[Any, Any, Any, Any]:
    x, y = pair("lstsq", a, b)
    if x.ndim != 2 or y.ndim not in (1, 2) or x.shape[0] != y.shape[0]:
        raise ShapeError(f"lstsq: a [m, n] and b [m] or [m, k] are needed, got {x.aval}, {y.aval}")
    columns = y if y.ndim == 2 else ops.expand_dims(y, (1,))
    eps = float(dtypes.finfo(x.dtype).eps)
    bound = eps * _max(x.shape) if rcond is None else eps if rcond < 0 else rcond
    u, s, vh = svd(x, full_matrices=False)
    is_large = s > bound * s[:1]
    inverse = where(is_large, 1 / where(is_large, s, 1), 0)
    scaled = ops.expand_dims(inverse, (1,)) * matmul(adjoint(u), columns)
    solution = matmul(adjoint(vh), scaled)
    residuals = norm(columns - matmul(x, solution), axis=0) ** 2
    return solution if y.ndim == 2 else solution[:, 0], residuals, count_nonzero(is_large), s


@one_program
def tensorsolve(a: ArrayLike, b: ArrayLike, axes: Sequence[int] | None = None) -> Array:
    """Solution x of the tensor equation ``tensordot(a, x, x.ndim) == b``.

    Args:
        a: the coefficients, of shape ``b.shape + x.shape``, with as many elements in ``b`` as in
            ``x``.
        b: the right side.
        axes: axes of a that are moved to the end first; None for none.

    Returns:
        x, of the shape that ``a`` has beyond the dimensions of ``b``.

    Raises:
        ShapeError: there are not as many equations as unknowns.

    >>> a = jnp.eye(4).reshape(2, 2, 4)
    >>> print(jnp.linalg.tensorsolve(a, jnp.ones((2, 2))))
    [1. 1. 1. 1.]
    """
    x, y = pair("tensorsolve", a, b)
    if axes is not None:
        last = [operator.index(d) % x.ndim for d in axes]
        x = ops.reorder(x, [d for d in range(x.ndim) if d not in last] + last)
    unknowns = x.shape[y.ndim :]
    size = math.prod(unknowns)
    if x.size != size * size or y.size != size:
        raise ShapeError(
            f"tensorsolve: as many equations as unknowns are needed, got a {x.aval} and b {y.aval}"
        )
    matrix = ops.reshape(x, shape=(size, size))
    return ops.reshape(solve(matrix, ops.reshape(y, shape=(size,))), shape=unknowns)


@one_program
def tensorinv(a: ArrayLike, ind: int = 2) -> Array:
    """Inverse of an array under ``tensordot``: that of the matrix whose rows are the first ``ind``
    axes.

    Args:
        a: an array whose first ``ind`` dimensions have as many elements in all as the others.
        ind: how many of the first axes count as rows.

    Returns:
        An array of shape ``a.shape[ind:] + a.shape[:ind]``; ``tensordot(tensorinv(a, ind), b,
        ind)`` solves equations as ``tensorsolve(a, b)`` does.

    Raises:
        ShapeError: the first ``ind`` dimensions do not have as many elements as the others.
        ValueError: ``ind`` is not positive.

    >>> a = 2 * jnp.eye(4).reshape(4, 2, 2)
    >>> inverse = jnp.linalg.tensorinv(a, ind=1)
    >>> print(inverse.shape)
    (2, 2, 4)
    >>> print(jnp.tensordot(inverse, jnp.arange(4.0), 1))
    [[0.  0.5]
     [1.  1.5]]
    """
    x = in_lapack("tensorinv", a)
    count = operator.index(ind)
    if count < 1:
        raise ValueError(f"tensorinv: ind must be at least 1, got {ind}")
    rows, columns = x.shape[:count], x.shape[count:]
    if math.prod(rows) != math.prod(columns):
        raise ShapeError(
            f"tensorinv: the first {count} dimensions must have as many elements as the others, "
            f"got {x.aval}"
        )
    matrix = ops.reshape(x, shape=(math.prod(rows), math.prod(columns)))
    return ops.reshape(inv(matrix), shape=(*columns, *rows))


# ---- determinants and ranks -----------------------------------------------------------------


@one_program
def det(a: ArrayLike) -> Array:
    """Determinants of square matrices.

    It overflows easily for large matrices; ``slogdet`` does not.

    Args:
        a: square matrices [..., n, n].

    Returns:
        Numbers [...], of the dtype of the matrices; of integers, float16 and bfloat16, for which
        there is no LU decomposition, float32.

    Raises:
        ValueError: the matrices are not square.

    >>> print(jnp.linalg.det(jnp.array([[1.0, 2.0], [3.0, 4.0]])))
    -2.0
    """
    x = square("det", in_lapack("det", a))
    if x.shape[-1] == 2:
        return x[..., 0, 0] * x[..., 1, 1] - x[..., 0, 1] * x[..., 1, 0]
    if x.shape[-1] == 3:
        rows = [[x[..., i, j] for j in range(3)] for i in range(3)]
        (a0, a1, a2), (b0, b1, b2), (c0, c1, c2) = rows
        return a0 * (b1 * c2 - b2 * c1) - a1 * (b0 * c2 - b2 * c0) + a2 * (b0 * c1 - b1 * c0)
    return prims.det(x)


@one_program
def slogdet(a: ArrayLike, *, method: str | None = None) -> SlogdetResult:
    """Sign and logarithm of the absolute value of the determinants of square matrices.

    Args:
        a: the matrices [..., n, n].
        method: None, "lu" or "qr", for compatibility: determinants come from the LU decomposition.

    Returns:
        A named tuple of arrays [...]: ``sign``, 1 or -1, or of complex matrices a number of
        absolute value 1, and ``logabsdet``, real. Of a singular matrix 0 and -inf.

    Raises:
        ValueError: ``method`` is another word.

    >>> sign, size = jnp.linalg.slogdet(jnp.array([[1.0, 0.0], [0.0, -1.0]]))
    >>> print(sign, size)
    -1.0 0.0
    """
    if method not in (None, "lu", "qr"):
        raise ValueError(f"slogdet: method must be None, 'lu' or 'qr', got {method!r}")
    return SlogdetResult(*prims.slogdet(square("slogdet", in_lapack("slogdet", a))))


@one_program
def cond(x: ArrayLike, p: Any = None) -> Array:
    """Condition number of matrices: |a| |a⁻¹|, in the norm ``p``.

    It bounds by how much the relative error of b may grow in the solution of a x = b.

    Args:
        x: matrices [..., m, n]; square unless ``p`` is None, 2 or -2.
        p: the norm, as ``ord`` of ``norm``. None or 2: the largest over the smallest singular
            value; -2: its inverse.

    Returns:
        Real numbers [...]; infinite for singular matrices.

    Raises:
        ShapeError: ``x`` has fewer than two dimensions.

    >>> print(jnp.linalg.cond(jnp.array([[2.0, 0.0], [0.0, 4.0]])))
    2.0
    """
    a = matrices("cond", x)
    if p in (None, 2, -2):
        (s,) = prims.svd(a, full=False, vectors=False)
        return s[..., -1] / s[..., 0] if p == -2 else s[..., 0] / s[..., -1]
    square("cond", a)
    over = (-2, -1)
    size = norm(a, ord=p, axis=over) * norm(inv(a), ord=p, axis=over)
    unknown = any(isnan(a), axis=over)
    return where(isnan(size) & ~unknown, np.inf, size)  # of a singular matrix


@one_program
def matrix_rank(
    M: ArrayLike,
    rtol: ArrayLike | None = None,
    *,
    hermitian: bool = False,
    tol: ArrayLike | None = None,
) -> Array:
    """Rank of matrices: the number of singular values above a tolerance.

    Args:
        M: matrices [..., m, n].
        rtol: the tolerance relative to the largest singular value; None for max(m, n) times the
            machine epsilon of the dtype.
        hermitian: whether M is known to be Hermitian, so that the cheaper decomposition by
            eigenvalues can be used.
        tol: an absolute tolerance, in place of ``rtol``.

    Returns:
        Integers [...]; of a vector or number 1, or 0 if all its elements are zero.

    >>> print(jnp.linalg.matrix_rank(jnp.array([[1.0, 2.0], [2.0, 4.0]])))
    1
    """
    x = in_lapack("matrix_rank", M)
    if x.ndim < 2:
        return where(any(x), 1, 0)
    s = svd(x, full_matrices=False, compute_uv=False, hermitian=hermitian)
    if tol is None:
        least = _max(x.shape[-2:]) * float(dtypes.finfo(x.dtype).eps)
        bound = as_array("matrix_rank", least if rtol is None else rtol)
        bound = bound * max(s, axis=-1, initial=0)
    else:
        bound = as_array("matrix_rank", tol)
    return count_nonzero(s > ops.expand_dims(bound, (bound.ndim,)), axis=-1)
