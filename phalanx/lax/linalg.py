"""Factorizations of matrices [..., m, n] and systems of equations, as LAPACK has them.

Dimensions in front are a batch. The dtypes are float32, float64, complex64 and complex128. What is
singular, or not finite, gives NaN or infinities, and no error. ``phalanx.numpy.linalg`` and
``phalanx.scipy.linalg`` are the friendlier faces of this.
"""

from __future__ import annotations

import operator
import sys
from typing import Any

import numpy as np

from phalanx import primitives as ops
from phalanx.base import dtypes
from phalanx.base.boundary import bound
from phalanx.base.choices import Choice
from phalanx.base.errors import ShapeError
from phalanx.core.types import Array, typeof
from phalanx.lax.loops import fori_loop
from phalanx.lax.operands import accept
from phalanx.lax.slicing import dynamic_index_in_dim, dynamic_update_index_in_dim
from phalanx.primitives import linalg as prims
from phalanx.primitives.basis import convert
from phalanx.primitives.domains import I32
from phalanx.primitives.linalg.algebra import (
    adjoint,
    conjugate,
    lower_part,
    matmul,
    matrix_transposed,
    real_part,
    symmetrized,
    upper,
)
from phalanx.primitives.linalg.family import check_matrices, check_square
from phalanx.primitives.linalg.matrix_sign import rounding_error, scaled
from phalanx.primitives.linalg.polar import newton, step, weights
from phalanx.primitives.shape import expand_dims, slice_dim, squeeze

__all__ = [
    "EigImplementation",
    "EighImplementation",
    "SvdAlgorithm",
    "cholesky",
    "cholesky_update",
    "eig",
    "eigh",
    "hessenberg",
    "householder_product",
    "lu",
    "lu_pivots_to_permutation",
    "ormqr",
    "qdwh",
    "qr",
    "schur",
    "svd",
    "symmetric_product",
    "triangular_solve",
    "tridiagonal",
    "tridiagonal_solve",
]


class SvdAlgorithm(Choice):
    """How singular values are found: on CPUs by LAPACK's gesdd (``DEFAULT``) or gesvd (``QR``).

    >>> lax.linalg.SvdAlgorithm.DEFAULT.name
    'DEFAULT'
    """

    DEFAULT = "default"
    QR = "QR"
    JACOBI = "Jacobi"
    POLAR = "polar"


class EigImplementation(Choice):
    """What computes eigenvalues: on CPUs LAPACK, whatever is asked for elsewhere.

    >>> from phalanx.lax import linalg
    >>> w, *_ = linalg.eig(jnp.eye(2), implementation=linalg.EigImplementation.LAPACK)
    >>> print(w.real)
    [1. 1.]
    """

    CUSOLVER = "cusolver"
    MAGMA = "magma"
    LAPACK = "lapack"


class EighImplementation(Choice):
    """How eigenvalues of Hermitian matrices are found: on CPUs by LAPACK's syevd, ``QR``.

    >>> from phalanx.lax import linalg
    >>> v, w = linalg.eigh(jnp.eye(2), implementation=linalg.EighImplementation.QR)
    >>> print(w)
    [1. 1.]
    """

    QR = "qr"
    JACOBI = "jacobi"
    QDWH = "qdwh"


def _only(who: str, what: str, value: Any, *allowed: Any) -> None:
    if value is not None and value not in allowed:
        names = " or ".join(map(str, (None, *allowed)))
        raise ValueError(f"lax.linalg.{who}: {what} must be {names} on CPUs, got {value!r}")


# ---- positive definite, triangular and tridiagonal ------------------------------------------


def cholesky(x: Any, *, symmetrize_input: bool = True) -> Array:
    """The lower triangle l with l lᴴ = x, of Hermitian positive definite matrices [..., n, n].

    Args:
        x: the matrices; where one is not positive definite, its factor is NaN.
        symmetrize_input: whether to take (x + xᴴ) / 2; without it, the lower triangle is read.

    Returns:
        Triangles [..., n, n].

    Raises:
        ShapeError: the matrices are not square.

    >>> print(lax.linalg.cholesky(np.float32([[4, 2], [2, 5]])))
    [[2. 0.]
     [1. 2.]]
    """
    x = accept("linalg.cholesky", x)
    return prims.cholesky(hermitian("cholesky", x, True, symmetrize_input))


def hermitian(who: str, x: Any, lower: bool, symmetrize: bool) -> Any:
    """Matrices whose lower triangles are those of the Hermitian matrices that ``x`` stands for."""
    shape = typeof(x).shape
    if len(shape) < 2 or shape[-1] != shape[-2]:
        raise ShapeError(f"{who}: square matrices [..., n, n] are needed, got {typeof(x)}")
    if symmetrize:
        return symmetrized(x)
    return x if lower else adjoint(x)


def triangular_solve(
    a: Any,
    b: Any,
    *,
    left_side: bool = False,
    lower: bool = False,
    transpose_a: bool = False,
    conjugate_a: bool = False,
    unit_diagonal: bool = False,
) -> Array:
    """x with op(a) x = b, or x op(a) = b, where a is a triangle.

    Args:
        a: matrices [..., n, n], of which one triangle is read.
        b: [..., n, k] with ``left_side``, otherwise [..., k, n]; or [..., n].
        left_side: whether a stands to the left of x.
        lower: whether a is the lower triangle.
        transpose_a: whether op transposes.
        conjugate_a: whether op conjugates.
        unit_diagonal: whether the diagonal is taken for ones, and not read.

    Returns:
        An array of the shape of ``b``. Of dtypes of half precision it is computed in float32.

    Raises:
        ShapeError: the shapes do not fit.

    >>> a = np.float32([[2, 0], [1, 4]])
    >>> print(lax.linalg.triangular_solve(a, np.float32([2, 9]), left_side=True, lower=True))
    [1. 2.]
    """
    a, b = accept("linalg.triangular_solve", a), accept("linalg.triangular_solve", b)
    half = typeof(b).dtype
    if half == typeof(a).dtype and dtypes.itemsize_bits(half) == 16 and dtypes.is_floating(half):
        wide = [convert(x, dtype=np.dtype(np.float32), weak=False) for x in (a, b)]
        how: dict[str, bool] = {
            "left_side": left_side, "lower": lower, "transpose_a": transpose_a,
            "conjugate_a": conjugate_a, "unit_diagonal": unit_diagonal,
        }  # fmt: skip
        return convert(triangular_solve(*wide, **how), dtype=half, weak=False)
    op = ("C" if conjugate_a else "T") if transpose_a else ("R" if conjugate_a else "N")
    params = {"left": left_side, "low": lower, "op": op, "unit": unit_diagonal}
    ndim = typeof(b).ndim
    if ndim != typeof(a).ndim - 1:
        return prims.triangular_solve(a, b, **params)
    new_dim = ndim if left_side else ndim - 1
    return squeeze(prims.triangular_solve(a, expand_dims(b, (new_dim,)), **params), (new_dim,))


def tridiagonal_solve(dl: Any, d: Any, du: Any, b: Any, *, perturb_singular: bool = False) -> Array:
    """x with dl[i] x[i - 1] + d[i] x[i] + du[i] x[i + 1] = b[i].

    Args:
        dl: the lower diagonals [..., n]; the first element is not read.
        d: the diagonals [..., n].
        du: the upper diagonals [..., n]; the last element is not read.
        b: the right sides [..., n, k].
        perturb_singular: whether pivots that are zero become tiny, so that x is finite.

    Returns:
        An array of the shape of ``b``.

    Raises:
        ShapeError: the shapes do not fit.

    >>> ones = np.ones(3, np.float32)
    >>> b = np.float32([[1], [3], [3]])
    >>> print(lax.linalg.tridiagonal_solve(ones, 2 * ones, ones, b)[:, 0])
    [0. 1. 1.]
    """
    operands = [accept("linalg.tridiagonal_solve", x) for x in (dl, d, du, b)]
    return prims.tridiagonal_solve(*operands, perturbed=perturb_singular)


# ---- lu and qr ------------------------------------------------------------------------------


def lu(x: Any) -> tuple[Array, Array, Array]:
    """The decomposition x[permutation] = l u, with ones on the diagonal of l.

    Args:
        x: matrices [..., m, n].

    Returns:
        l below the diagonal and u on and above it, [..., m, n]; the pivots [..., min(m, n)]: row i
        was exchanged with row pivots[i], one after the other; the permutation [..., m].

    Raises:
        ShapeError: ``x`` has fewer than two dimensions.

    >>> factors, pivots, permutation = lax.linalg.lu(np.float32([[1, 3], [2, 4]]))
    >>> print(factors, permutation)
    [[2.  4. ]
     [0.5 1. ]] [1 0]
    """
    return prims.lu(accept("linalg.lu", x))


def lu_pivots_to_permutation(pivots: Any, permutation_size: int) -> Array:
    """The order of rows after row i was exchanged with row pivots[..., i], for each i in turn.

    Args:
        pivots: with which row each row was exchanged, [..., k].
        permutation_size: how many rows there are.

    Returns:
        int32 [..., permutation_size].

    >>> print(lax.linalg.lu_pivots_to_permutation(np.int32([2, 2]), 3))
    [2 0 1]
    """
    size = operator.index(permutation_size)
    pivots = accept("linalg.lu_pivots_to_permutation", pivots)
    return prims.lu_pivots_to_permutation(pivots, size=size)


def qr(
    x: Any, *, pivoting: bool = False, full_matrices: bool = True, use_magma: bool | None = None
) -> tuple[Array, Array] | tuple[Array, Array, Array]:
    """The decomposition x = q r, q with orthonormal columns and r an upper triangle.

    Args:
        x: matrices [..., m, n].
        pivoting: whether columns are exchanged, so that the diagonal of r falls; then the third
            result is the order of the columns, and x[..., order] = q r.
        full_matrices: whether q is square, [..., m, m], or [..., m, min(m, n)].
        use_magma: for GPUs; None or False.

    Returns:
        q [..., m, k] and r [..., k, n], where k is m with ``full_matrices``, else the least of m
        and n; with ``pivoting`` also the order of the columns, int32 [..., n].

    Raises:
        ShapeError: ``x`` has fewer than two dimensions.

    >>> q, r = lax.linalg.qr(np.float32([[3], [4]]), full_matrices=False)
    >>> print(abs(r))
    [[5.]]
    """
    _only("qr", "use_magma", use_magma, False)
    return prims.qr(accept("linalg.qr", x), full=full_matrices, pivoting=pivoting)


def householder_product(a: Any, taus: Any) -> Array:
    """The first n columns of the product of reflections 1 - taus[i] v vᴴ.

    Args:
        a: [..., m, n]; v is 0 above row i, 1 there, and below it column i of a.
        taus: [..., k], k at most n.

    Returns:
        Matrices [..., m, n], of the shape of ``a``.

    Raises:
        ShapeError: the shapes of ``a`` and ``taus`` do not fit, or ``a`` has fewer than two
            dimensions.

    >>> print(lax.linalg.householder_product(np.float32([[0], [1]]), np.float32([1])))
    [[ 0.]
     [-1.]]
    """
    who = "linalg.householder_product"
    return prims.householder_product(accept(who, a), accept(who, taus))


def ormqr(a: Any, taus: Any, c: Any, *, left: bool = True, transpose: bool = False) -> Array:
    """q c, or c q, q the square product of the reflections of ``householder_product``.

    Args:
        a: [..., m, n].
        taus: [..., k].
        c: [..., m, p], or [..., p, m] if not ``left``.
        left: whether q stands to the left of c.
        transpose: whether to take qᴴ.

    Returns:
        An array of the shape of ``c``.

    Raises:
        ShapeError: the shapes of ``a`` and ``taus`` do not fit, or ``a`` has fewer than two
            dimensions.

    >>> c = np.eye(2, dtype=np.float32)
    >>> print(lax.linalg.ormqr(np.float32([[0], [1]]), np.float32([1]), c))
    [[ 0. -1.]
     [-1.  0.]]
    """
    operands = [accept("linalg.ormqr", x) for x in (a, taus, c)]
    return prims.ormqr(*operands, left=left, transpose=transpose)


# ---- singular values and eigenvalues --------------------------------------------------------


def svd(
    x: Any,
    *,
    full_matrices: bool = True,
    compute_uv: bool = True,
    subset_by_index: tuple[int, int] | None = None,
    algorithm: SvdAlgorithm | None = None,
) -> Array | tuple[Array, Array, Array]:
    """The decomposition x = u diag(s) vᴴ, with s descending.

    Args:
        x: matrices [..., m, n].
        full_matrices: whether u and vᴴ are square.
        compute_uv: without it, s alone is the result.
        subset_by_index: the first and the end of the singular values that are wanted; not with
            full matrices.
        algorithm: ``DEFAULT`` or ``QR``, which is slower, and right where the former fails.

    Returns:
        u [..., m, m], s [..., k] and vᴴ [..., n, n], with k = min(m, n); without ``full_matrices``
        u [..., m, k] and vᴴ [..., k, n]; without ``compute_uv`` s alone.

    Raises:
        ValueError: ``subset_by_index`` is given together with ``full_matrices``.

    >>> u, s, vh = lax.linalg.svd(np.float32([[0, 2], [1, 0]]))
    >>> print(s)
    [2. 1.]
    """
    _only("svd", "algorithm", algorithm, SvdAlgorithm.DEFAULT, SvdAlgorithm.QR)
    x = accept("linalg.svd", x)
    least = min(typeof(x).shape[-2:], default=0)
    if subset_by_index is not None and full_matrices and compute_uv:
        raise ValueError(
            "lax.linalg.svd: subset_by_index is of the singular values and their vectors; pass "
            "full_matrices=False"
        )
    routine = "gesvd" if algorithm is SvdAlgorithm.QR else "gesdd"
    out = prims.svd(x, full=full_matrices, vectors=compute_uv, routine=routine)
    if subset_by_index is not None:
        dims = [typeof(x).ndim - d for d in ((1, 2, 2) if compute_uv else (2,))]
        out = [_part("svd", y, subset_by_index, least, d) for y, d in zip(out, dims, strict=True)]
    return tuple(out) if compute_uv else out[0]


def _part(who: str, x: Any, chosen: tuple[int, int], count: int, dim: int) -> Any:
    first, end = chosen
    if not 0 <= first <= end <= count:
        raise ValueError(
            f"lax.linalg.{who}: subset_by_index must be (first, end) within the {count} values, "
            f"got {chosen}"
        )
    return slice_dim(x, first, end, dim)


def eigh(
    x: Any,
    *,
    lower: bool = True,
    symmetrize_input: bool = True,
    sort_eigenvalues: bool = True,
    subset_by_index: tuple[int, int] | None = None,
    implementation: EighImplementation | None = None,
) -> tuple[Array, Array]:
    """Eigenvectors v and eigenvalues w of Hermitian matrices: x v = v diag(w).

    Args:
        x: matrices [..., n, n].
        lower: whether the lower triangle is read, or the upper one.
        symmetrize_input: whether to take (x + xᴴ) / 2.
        sort_eigenvalues: they are sorted in any case, ascending.
        subset_by_index: the first and the end of the eigenvalues that are wanted.
        implementation: None or ``QR``.

    Returns:
        v [..., n, n], with orthonormal columns, and w [..., n], real.

    Raises:
        ShapeError: the matrices are not square.

    >>> v, w = lax.linalg.eigh(np.float32([[0, 2], [2, 0]]))
    >>> print(w)
    [-2.  2.]
    """
    _only("eigh", "implementation", implementation, EighImplementation.QR)
    x = accept("linalg.eigh", x)
    v, w = prims.eigh(hermitian("eigh", x, lower, symmetrize_input), vectors=True)
    if subset_by_index is not None:
        ndim = typeof(x).ndim
        v = _part("eigh", v, subset_by_index, typeof(x).shape[-1], ndim - 1)
        w = _part("eigh", w, subset_by_index, typeof(x).shape[-1], ndim - 2)
    return v, w


def eig(
    x: Any,
    *,
    compute_left_eigenvectors: bool = True,
    compute_right_eigenvectors: bool = True,
    enable_eigvec_derivs: bool = False,
    implementation: EigImplementation | None = None,
    use_magma: bool | None = None,
) -> list[Array]:
    """Eigenvalues and eigenvectors of square matrices, all complex.

    Args:
        x: matrices [..., n, n].
        compute_left_eigenvectors: whether to give the v with vᴴ x = w vᴴ.
        compute_right_eigenvectors: whether to give the v with x v = w v.
        enable_eigvec_derivs: eigenvectors have derivatives in any case.
        implementation: None or ``LAPACK``.
        use_magma: for GPUs; None or False.

    Returns:
        The eigenvalues [..., n], then left and right eigenvectors [..., n, n] in columns, as
        wanted. Each has norm 1, and its largest component is real.

    Raises:
        ShapeError: ``x`` has fewer than two dimensions.

    >>> w, v = lax.linalg.eig(np.float32([[0, 1], [0, 4]]), compute_left_eigenvectors=False)
    >>> print(w.real)
    [0. 4.]
    """
    _only("eig", "implementation", implementation, EigImplementation.LAPACK)
    _only("eig", "use_magma", use_magma, False)
    left, right = compute_left_eigenvectors, compute_right_eigenvectors
    return list(prims.eig(accept("linalg.eig", x), left=left, right=right))


# ---- similar matrices of other forms --------------------------------------------------------


def schur(
    x: Any,
    *,
    compute_schur_vectors: bool = True,
    sort_eig_vals: bool = False,
    select_callable: Any = None,
) -> tuple[Array, ...]:
    """The Schur form x = q t qᴴ: t is an upper triangle, if x is real with 2x2 blocks on it.

    Args:
        x: matrices [..., n, n].
        compute_schur_vectors: whether to give q.
        sort_eig_vals: must be False: eigenvalues are in no order.
        select_callable: must be None.

    Returns:
        t, and q if it is wanted.

    Raises:
        ValueError: the eigenvalues are to be sorted.

    >>> t, q = lax.linalg.schur(np.float32([[2, 1], [0, 3]]))
    >>> print(t)
    [[2. 1.]
     [0. 3.]]
    """
    if sort_eig_vals or select_callable is not None:
        raise ValueError("lax.linalg.schur: eigenvalues cannot be sorted; leave it to the caller")
    return tuple(prims.schur(accept("linalg.schur", x), vectors=compute_schur_vectors))


def hessenberg(a: Any) -> tuple[Array, Array]:
    """The Hessenberg form h of a = q h qᴴ: zero below the first diagonal under the main one.

    Args:
        a: square matrices [..., n, n].

    Returns:
        [..., n, n]: h, and in place of its zeros the reflections whose product is q, from row 1
        on; and their taus [..., n - 1], see ``householder_product``.

    Raises:
        ShapeError: ``a`` has fewer than two dimensions.

    >>> h, taus = lax.linalg.hessenberg(np.float32([[1, 2], [3, 4]]))
    >>> print(h, taus)
    [[1. 2.]
     [3. 4.]] [0.]
    """
    return prims.hessenberg(accept("linalg.hessenberg", a))


def tridiagonal(a: Any, *, lower: bool = True) -> tuple[Array, Array, Array, Array]:
    """The tridiagonal form t of Hermitian matrices a = q t qᴴ.

    Args:
        a: matrices [..., n, n], of which one triangle is read.
        lower: whether it is the lower one.

    Returns:
        [..., n, n]: t, and in place of its zeros the reflections whose product is q; its diagonal
        [..., n] and the one beside it [..., n - 1], both real; the taus [..., n - 1].

    Raises:
        ShapeError: ``a`` has fewer than two dimensions.

    >>> _, d, e, _ = lax.linalg.tridiagonal(np.float32([[1, 2], [2, 3]]))
    >>> print(d, e)
    [1. 3.] [2.]
    """
    return prims.tridiagonal(accept("linalg.tridiagonal", a), low=lower)


def cholesky_update(r_matrix: Any, w_vector: Any) -> Array:
    """The upper triangle s with sᵀ s = rᵀ r + w wᵀ, in time n².

    Args:
        r_matrix: an upper triangle [n, n] with a positive diagonal, real.
        w_vector: [n].

    Returns:
        Triangles [..., n, n].

    Raises:
        ShapeError: the shapes are others.
        TypeError: the dtypes differ, or are not float32 or float64.

    >>> print(lax.linalg.cholesky_update(np.float32([[3]]), np.float32([4])))
    [[5.]]
    """
    r, w = accept("linalg.cholesky_update", r_matrix), accept("linalg.cholesky_update", w_vector)
    kind = typeof(r)
    check_square("cholesky_update", kind)
    n = kind.shape[-1]
    if kind.ndim != 2 or typeof(w).shape != (n,) or typeof(w).dtype != kind.dtype:
        raise ShapeError(
            f"cholesky_update: a matrix [n, n] and a vector [n] of one dtype are needed, got "
            f"{kind} and {typeof(w)}"
        )

    def rotate(k: Any, state: tuple[Any, Any]) -> tuple[Any, Any]:
        """Turn row k and w so that element k of w becomes 0; Golub and Van Loan, section 6.5."""
        r, w = state
        row = dynamic_index_in_dim(r, k, 0, keepdims=False)
        a, b = (dynamic_index_in_dim(x, k, 0, keepdims=False) for x in (row, w))
        length = ops.sqrt(ops.add(ops.mul(a, a), ops.mul(b, b)))
        cos, sin = (ops.broadcast(ops.div(x, length), shape=(n,), dims=()) for x in (a, b))
        turned = ops.add(ops.mul(row, cos), ops.mul(w, sin))
        w = ops.sub(ops.mul(w, cos), ops.mul(row, sin))
        return dynamic_update_index_in_dim(r, turned, k, 0), w

    return fori_loop(0, n, rotate, (upper(r), w))[0] if n else r


def symmetric_product(
    a_matrix: Any,
    c_matrix: Any,
    *,
    alpha: float = 1.0,
    beta: float = 0.0,
    symmetrize_output: bool = False,
) -> Array:
    """alpha a aᵀ + beta c, of symmetric c.

    Args:
        a_matrix: [..., n, k].
        c_matrix: [..., n, n].
        alpha: the factor of the product.
        beta: a number, by which ``c_matrix`` is multiplied.
        symmetrize_output: whether the upper triangle is that of the lower one.

    Returns:
        Matrices of the shape of ``c_matrix``.

    Raises:
        TypeError: the dtypes differ.
        ValueError: ``permutation`` does not name each dimension once.

    >>> a = np.float32([[1], [2]])
    >>> print(lax.linalg.symmetric_product(a, np.eye(2, dtype=np.float32), beta=1.0))
    [[2. 2.]
     [2. 5.]]
    """
    who = "linalg.symmetric_product"
    a, c = accept(who, a_matrix), accept(who, c_matrix)
    out = ops.add(ops.mul(matmul(a, matrix_transposed(a)), alpha), ops.mul(c, beta))
    if not symmetrize_output:
        return out
    return ops.add(lower_part(out), matrix_transposed(lower_part(out, 1)))


def qdwh(
    x: Any,
    *,
    is_hermitian: bool = False,
    max_iterations: int | None = None,
    eps: float | None = None,
    dynamic_shape: tuple[Any, Any] | None = None,
) -> tuple[Array, Array, Array, Array]:
    """The polar decomposition x = u h.

    Args:
        x: matrices [..., m, n], with m at least n.
        is_hermitian: whether x is Hermitian; the result is the same.
        max_iterations: of which there are at most so many, 10 if it is not given.
        eps: the relative error that is wanted; by default that of the dtype.
        dynamic_shape: (m, n), which may be traced: the part of x that counts, zeros elsewhere.

    Returns:
        u [..., m, n], h [..., n, n], how many iterations there were, and whether they converged.

    Raises:
        ShapeError: there are more columns than rows.

    >>> u, h, _, _ = lax.linalg.qdwh(np.float32([[0, -2], [1, 0]]))
    >>> print(h.round(3) + 0.0)
    [[1. 0.]
     [0. 2.]]
    """
    x = accept("linalg.qdwh", x)
    kind = typeof(x)
    check_matrices("qdwh", kind)
    if kind.shape[-2] < kind.shape[-1]:
        raise ShapeError(f"qdwh: there must be as many rows as columns, or more, got {kind}")
    if dynamic_shape is not None:
        x = _corner(x, dynamic_shape)
    error = rounding_error(kind) if eps is None else float(eps)
    steps = list(weights(error, 10 if max_iterations is None else operator.index(max_iterations)))
    u = before = scaled(x)
    for weight in steps:
        before, u = u, step(u, *weight)
    u = newton(u)
    close = ops.le(_norm(ops.sub(u, before)), (5 * error) ** (1 / 3))
    return u, symmetrized(matmul(adjoint(u), x)), ops.full((), len(steps), I32), close


def _norm(x: Any) -> Any:
    last = typeof(x).ndim - 1
    squares = real_part(ops.mul(x, conjugate(x)))
    return ops.sqrt(ops.reduce_sum(squares, dims=(last - 1, last)))


def _corner(x: Any, shape: tuple[Any, Any]) -> Any:
    kind = typeof(x)
    for dim, length in zip((kind.ndim - 2, kind.ndim - 1), shape, strict=True):
        places = ops.iota(dtype=I32, shape=kind.shape, dim=dim)
        end = ops.broadcast(ops.convert(length, dtype=I32, weak=False), shape=kind.shape, dims=())
        x = ops.select(ops.lt(places, end), x, 0)
    return x


bound(sys.modules[__name__])
