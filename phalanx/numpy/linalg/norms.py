"""Norms of vectors and matrices, and other numbers of a matrix: determinant, condition, rank."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from phalanx import primitives as ops
from phalanx.base import dtypes
from phalanx.base.dtypes import COMPLEXES, accumulator
from phalanx.control.one_program import one_program
from phalanx.core.types import Array
from phalanx.numpy.arithmetic import absolute as abs
from phalanx.numpy.arithmetic import power
from phalanx.numpy.extrema import max, min
from phalanx.numpy.linalg.decompositions import svd, svdvals
from phalanx.numpy.linalg.operands import in_lapack, matrices, square
from phalanx.numpy.logic import isnan
from phalanx.numpy.manipulation import moveaxis
from phalanx.numpy.promotion import ArrayLike, as_array, convert, dims, inexact, literal
from phalanx.numpy.reductions import any, count_nonzero, sum
from phalanx.numpy.searching import where
from phalanx.primitives import linalg as prims
from phalanx.primitives.linalg.algebra import identity_like


class SlogdetResult(NamedTuple):
    """The result of ``slogdet``: the determinants are ``sign * exp(logabsdet)``."""

    sign: Array
    logabsdet: Array


@one_program
def norm(
    x: ArrayLike,
    ord: Any = None,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
) -> Array:
    """Norm of vectors along one axis, of matrices along two, or of all elements.

    Args:
        x: the array.
        ord: of vectors p for (Σ |x|^p)^(1/p), by default 2; inf or -inf for the largest or smallest
            absolute value, 0 for the number of nonzero elements; of matrices "fro" for the root of
            the sum of squares (the default), "nuc" for the sum of the singular values, 2 or -2 for
            the largest or smallest of them, 1 or -1 for the largest or smallest sum of absolute
            values of a column, inf or -inf of a row.
        axis: the axis of vectors, or the two axes of matrices. None: with ``ord`` the whole array,
            of one or two dimensions; without it all elements as one vector.
        keepdims: whether the reduced axes stay, with length 1.

    Returns:
        Real numbers, in the dimensions of ``x`` that are left.

    Raises:
        ValueError: ``ord`` or ``axis`` is not valid.

    >>> x = jnp.array([[3.0, 4.0], [6.0, 8.0]])
    >>> print(jnp.linalg.norm(x, axis=1))
    [ 5. 10.]
    >>> print(jnp.linalg.norm(x, ord=jnp.inf))
    14.0
    """
    x = inexact("norm", x)
    return _as_of(x, _norm(_widened(x), ord, axis, keepdims))


def _widened(x: Any) -> Any:
    return convert(x, accumulator(x.aval.dtype), x.aval.weak)


def _as_of(x: Any, size: Any) -> Any:
    """``size`` in the dtype that the norm of ``x`` has."""
    return convert(size, dtypes.to_real(x.aval.dtype), size.aval.weak)


def _norm(x: Any, ord: Any, axis: Any, keepdims: bool) -> Any:
    if axis is None and ord is None:
        over = tuple(range(x.ndim))
        return _euclidean(x, over, keepdims)
    over = dims("norm", axis, x)
    if len(over) == 1:
        return _vector_norm(x, 2 if ord is None else ord, over, keepdims)
    if len(over) == 2:
        return _matrix_norm(x, "fro" if ord is None else ord, (over[0], over[1]), keepdims)
    raise ValueError(f"norm: one axis or two are needed, got {over} of an array {x.aval}")


def _euclidean(x: Any, over: tuple[int, ...], keepdims: bool) -> Any:
    if x.aval.dtype in COMPLEXES:
        squares = ops.add(ops.square(ops.real(x)), ops.square(ops.imag(x)))
    else:
        squares = ops.square(x)
    return ops.sqrt(sum(squares, over, keepdims=keepdims))


def _vector_norm(x: Any, ord: Any, over: tuple[int, ...], keepdims: bool) -> Any:
    if isinstance(ord, str):
        raise ValueError(f"norm: of vectors, ord must be a number, got {ord!r}")
    if ord == 2:
        return _euclidean(x, over, keepdims)
    size = abs(x)
    if ord == np.inf:
        return max(size, over, keepdims=keepdims)
    if ord == -np.inf:
        return min(size, over, keepdims=keepdims)
    if ord == 1:
        return sum(size, over, keepdims=keepdims)
    if ord == 0:
        count = ops.convert(ops.ne(size, literal(size, 0)), dtype=size.aval.dtype, weak=False)
        return sum(count, over, keepdims=keepdims)
    return power(sum(power(size, ord), over, keepdims=keepdims), 1.0 / ord)


def _matrix_norm(x: Any, ord: Any, over: tuple[int, int], keepdims: bool) -> Any:
    if ord in ("fro", "f"):
        return _euclidean(x, over, keepdims)
    of_values = {2: max, -2: min, "nuc": sum}.get(ord)
    if of_values is not None:
        out = of_values(svdvals(moveaxis(x, over, (-2, -1))), -1)
        return ops.expand_dims(out, over) if keepdims else out
    choose = {1: max, np.inf: max, -1: min, -np.inf: min}.get(ord)
    if choose is None:
        raise ValueError(
            f"norm: of matrices, ord must be 'fro', 'nuc', 1, -1, 2, -2, inf or -inf, got {ord!r}"
        )
    first, second = over if ord in (1, -1) else (over[1], over[0])
    totals = sum(abs(x), first, keepdims=True)
    extreme = choose(totals, second, keepdims=True)
    return extreme if keepdims else ops.squeeze(extreme, over)


@one_program
def vector_norm(
    x: ArrayLike,
    /,
    *,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
    ord: Any = 2,
) -> Array:
    """Norm of vectors that lie along one or several axes.

    Args:
        x: the array.
        axis: the axis, or several, whose elements together are a vector; None for all.
        keepdims: whether the reduced axes stay, with length 1.
        ord: p for (Σ |x|^p)^(1/p), by default 2; inf or -inf for the largest or smallest absolute
            value, 0 for the number of nonzero elements.

    Returns:
        Real numbers, in the dimensions of ``x`` that are left.

    Raises:
        AxisError: there is no dimension ``axis``.

    >>> print(jnp.linalg.vector_norm(jnp.array([[3.0, 4.0], [6.0, 8.0]]), axis=-1))
    [ 5. 10.]
    """
    x = inexact("vector_norm", x)
    over = dims("vector_norm", axis, x)
    return _as_of(x, _vector_norm(_widened(x), ord, over, keepdims))


@one_program
def matrix_norm(x: ArrayLike, /, *, keepdims: bool = False, ord: Any = "fro") -> Array:
    """Norm of matrices [..., m, n].

    Args:
        x: matrices [..., m, n].
        keepdims: whether the reduced axes stay, with length 1.
        ord: "fro" for the root of the sum of squares (the default), "nuc" for the sum of the
            singular values, 2 or -2 for the largest or smallest of them, 1 or -1 for the largest or
            smallest sum of absolute values of a column, inf or -inf of a row.

    Returns:
        Real numbers [...]; with ``keepdims`` [..., 1, 1].

    Raises:
        ValueError: ``x`` has fewer than 2 dimensions, or ``ord`` is not valid.

    >>> print(jnp.linalg.matrix_norm(jnp.array([[3.0, 0.0], [0.0, 4.0]])))
    5.0
    >>> print(jnp.linalg.matrix_norm(jnp.array([[3.0, 0.0], [0.0, 4.0]]), ord=2))
    4.0
    """
    x = inexact("matrix_norm", x)
    if x.ndim < 2:
        raise ValueError(f"matrix_norm: at least 2 dimensions are needed, got {x.aval}")
    over = x.ndim - 2, x.ndim - 1
    return _as_of(x, _matrix_norm(_widened(x), ord, over, keepdims))


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
    size = norm(a, ord=p, axis=over) * norm(prims.solve(a, identity_like(a)), ord=p, axis=over)
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
        least = sorted(x.shape[-2:])[-1] * float(dtypes.finfo(x.dtype).eps)
        bound = as_array("matrix_rank", least if rtol is None else rtol)
        bound = bound * max(s, axis=-1, initial=0)
    else:
        bound = as_array("matrix_rank", tol)
    return count_nonzero(s > ops.expand_dims(bound, (bound.ndim,)), axis=-1)
