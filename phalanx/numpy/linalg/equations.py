"""Linear systems of equations and inverses of matrices [..., m, n]."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from phalanx import primitives as ops
from phalanx.base import dtypes
from phalanx.base.errors import ShapeError
from phalanx.control.one_program import one_program
from phalanx.core.types import Array, typeof
from phalanx.numpy.creation import asarray
from phalanx.numpy.linalg.decompositions import svd
from phalanx.numpy.linalg.norms import norm
from phalanx.numpy.linalg.operands import batched, in_lapack, matrices, pair, square
from phalanx.numpy.products import matmul
from phalanx.numpy.promotion import ArrayLike
from phalanx.numpy.reductions import count_nonzero
from phalanx.numpy.searching import where
from phalanx.primitives import linalg as prims
from phalanx.primitives.linalg.algebra import adjoint, identity_like

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
        bound = 10 * max(x.shape[-2:]) * float(dtypes.finfo(x.dtype).eps)
    tolerance = asarray(bound, dtype=_real(x.dtype))
    return prims.pinv(x, ops.broadcast_to(tolerance, x.shape[:-2]))


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
    bound = eps * max(x.shape) if rcond is None else eps if rcond < 0 else rcond
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
