"""Factors of matrices: triangular, orthonormal, singular vectors, Schur's forms."""

from __future__ import annotations

from typing import Any, Literal, overload

from phalanx import primitives as ops
from phalanx.base import dtypes
from phalanx.base.dtypes import finfo
from phalanx.base.errors import ShapeError
from phalanx.control.one_program import one_program
from phalanx.core.types import Array
from phalanx.lax.linalg import SvdAlgorithm, qdwh
from phalanx.lax.linalg import svd as _svd
from phalanx.lax.loops import fori_loop
from phalanx.numpy.arithmetic import sqrt
from phalanx.numpy.complex_numbers import conj
from phalanx.numpy.creation import array
from phalanx.numpy.fft import resized
from phalanx.numpy.functional import vectorize
from phalanx.numpy.linalg.decompositions import cholesky as _cholesky
from phalanx.numpy.linalg.operands import in_lapack, matrices, pair, square
from phalanx.numpy.matrices import eye, tril, triu
from phalanx.numpy.products import matmul
from phalanx.numpy.promotion import ArrayLike
from phalanx.numpy.ranges import arange
from phalanx.numpy.searching import where
from phalanx.primitives import linalg as prims
from phalanx.primitives.linalg.algebra import adjoint, as_complex, take_rows

# ---- orthonormal columns --------------------------------------------------------------------


@overload
def svd(
    a: ArrayLike,
    full_matrices: bool = True,
    compute_uv: Literal[True] = True,
    overwrite_a: bool = False,
    check_finite: bool = True,
    lapack_driver: str = "gesdd",
) -> tuple[Array, Array, Array]: ...
@overload
def svd(
    a: ArrayLike,
    full_matrices: bool = True,
    *,
    compute_uv: Literal[False],
    overwrite_a: bool = False,
    check_finite: bool = True,
    lapack_driver: str = "gesdd",
) -> Array: ...
@overload
def svd(
    a: ArrayLike,
    full_matrices: bool = True,
    compute_uv: bool = True,
    overwrite_a: bool = False,
    check_finite: bool = True,
    lapack_driver: str = "gesdd",
) -> Any: ...
@one_program
def svd(
    a: ArrayLike,
    full_matrices: bool = True,
    compute_uv: bool = True,
    overwrite_a: bool = False,
    check_finite: bool = True,
    lapack_driver: str = "gesdd",
) -> Any:
    """Singular value decomposition a = u diag(s) vᴴ, with s in descending order.

    Args:
        a: matrices [..., m, n].
        full_matrices: whether u and vᴴ are square; otherwise they have k = min(m, n) columns and
            rows.
        compute_uv: whether u and vᴴ are computed; otherwise the result is s alone.
        overwrite_a, check_finite: accepted, and ignored.
        lapack_driver: "gesdd" or "gesvd", which is slower, and more accurate for some matrices.

    Returns:
        A tuple u [..., m, m], s [..., k], vᴴ [..., n, n]; without ``compute_uv`` s alone.

    Raises:
        ValueError: ``lapack_driver`` is another word.

    >>> a = jnp.array([[0.0, 2.0], [1.0, 0.0], [0.0, 0.0]])
    >>> u, s, vh = scipy.linalg.svd(a, full_matrices=False)
    >>> print(s)
    [2. 1.]
    """
    drivers = {"gesdd": SvdAlgorithm.DEFAULT, "gesvd": SvdAlgorithm.QR}
    if lapack_driver not in drivers:
        raise ValueError(f"svd: lapack_driver must be 'gesdd' or 'gesvd', got {lapack_driver!r}")
    return _svd(
        matrices("svd", a),
        full_matrices=full_matrices,
        compute_uv=compute_uv,
        algorithm=drivers[lapack_driver],
    )


@overload
def qr(
    a: ArrayLike,
    overwrite_a: bool = False,
    lwork: Any = None,
    mode: Literal["full", "economic"] = "full",
    pivoting: Literal[False] = False,
    check_finite: bool = True,
) -> tuple[Array, Array]: ...
@overload
def qr(
    a: ArrayLike,
    overwrite_a: bool = False,
    lwork: Any = None,
    mode: str = "full",
    pivoting: bool = False,
    check_finite: bool = True,
) -> Any: ...
@one_program
def qr(
    a: ArrayLike,
    overwrite_a: bool = False,
    lwork: Any = None,
    mode: str = "full",
    pivoting: bool = False,
    check_finite: bool = True,
) -> Any:
    """QR factorization a = q r: q with orthonormal columns, r upper triangular.

    With ``pivoting`` it is that of a with its columns in another order, ``a[..., p]``.

    Args:
        a: matrices [..., m, n].
        overwrite_a: accepted, and ignored: arrays are immutable.
        lwork: accepted, and ignored.
        mode: "full": q [..., m, m] and r [..., m, n]; "economic": q [..., m, k] and r [..., k, n],
            with k = min(m, n); "r": without q; "raw": a pair of the Householder vectors and their
            factors, as LAPACK gives them, in place of q.
        pivoting: whether columns are reordered so that the absolute values on the diagonal of r
            descend.
        check_finite: accepted, and ignored: no check for NaN and infinities is made.

    Returns:
        A tuple (q, r), or (q, r, p) with ``pivoting``, where p is the order of the columns, int32
        [..., n]; in mode "r" without q.

    Raises:
        ValueError: ``mode`` is another word.

    >>> q, r = scipy.linalg.qr(jnp.array([[3.0, 1.0], [4.0, 2.0]]), mode="economic")
    >>> print((q @ r).round(4))
    [[3. 1.]
     [4. 2.]]
    """
    x = matrices("qr", a)
    if mode == "raw":
        factors, *order, taus = (prims.geqp3 if pivoting else prims.geqrf)(x)
        r = triu(factors[..., : min(x.shape[-2:]), :])
        return (factors, taus), r, *order
    if mode not in ("full", "economic", "r"):
        raise ValueError(f"qr: mode must be 'full', 'economic', 'r' or 'raw', got {mode!r}")
    out = prims.qr(x, full=mode != "economic", pivoting=pivoting)
    return tuple(out[1:]) if mode == "r" else tuple(out)


@one_program
def qr_multiply(
    a: ArrayLike,
    c: ArrayLike,
    mode: str = "right",
    pivoting: bool = False,
    conjugate: bool = False,
    overwrite_a: bool = False,
    overwrite_c: bool = False,
) -> Any:
    """Product of the matrix q of a QR factorization a = q r with another one, without forming q.

    Args:
        a: matrices [..., m, n].
        c: with k = min(m, n): [..., k, p] for q c, or [..., p, m] for c q; or a vector.
        mode: "left" for q c, "right" for c q.
        pivoting: whether columns of a are reordered, as in ``qr``.
        conjugate: whether q is replaced by its complex conjugate.
        overwrite_a: accepted, and ignored: arrays are immutable.
        overwrite_c: accepted, and ignored: arrays are immutable.

    Returns:
        A tuple (product, r), or (product, r, p) with ``pivoting``.

    Raises:
        ShapeError: the shapes do not fit.
        ValueError: ``mode`` is another word.

    >>> product, r = scipy.linalg.qr_multiply(jnp.array([[0.0, 1.0], [2.0, 0.0]]), jnp.eye(2))
    >>> print(abs(product))
    [[0. 1.]
     [1. 0.]]
    """
    if mode not in ("left", "right"):
        raise ValueError(f"qr_multiply: mode must be 'left' or 'right', got {mode!r}")
    x, y = pair("qr_multiply", a, c)
    left, vector = mode == "left", y.ndim == 1
    if vector:
        y = ops.expand_dims(y, (1 if left else 0,))
    rows, least = (x.shape[-2], min(x.shape[-2:])) if x.ndim > 1 else (0, 0)
    if x.ndim < 2 or y.ndim < 2 or y.shape[-2 if left else -1] != (least if left else rows):
        raise ShapeError(
            f"qr_multiply: with a [..., m, n], c must be [..., min(m, n), p] on the right of q, or "
            f"[..., p, m] on its left, got a {x.aval} and c {y.aval}"
        )
    factors, *order, taus = (prims.geqp3 if pivoting else prims.geqrf)(x)
    if left:
        y = resized(y, y.ndim - 2, rows)
    y = conj(y) if conjugate else y
    product = prims.ormqr(factors, taus, y, left=left, transpose=False)
    product = conj(product) if conjugate else product
    product = product if left else product[..., :least]
    if vector:
        product = product[..., 0] if left else product[..., 0, :]
    return product, triu(factors[..., :least, :]), *order


@one_program
def polar(
    a: ArrayLike,
    side: str = "right",
    *,
    method: str = "qdwh",
    eps: float | None = None,
    max_iterations: int | None = None,
) -> tuple[Array, Array]:
    """Polar decomposition: u with orthonormal columns or rows, and p Hermitian positive
    semidefinite.

    Args:
        a: matrices [..., m, n].
        side: "right" for a = u p, "left" for a = p u.
        method: "qdwh", an iteration (Nakatsukasa, Bai and Gygi, Optimizing Halley's iteration for
            computing the matrix polar decomposition, 2010), or "svd". Where p is the larger of the
            two square sizes, the singular value decomposition is used in any case.
        eps: the relative error at which the iteration ends; None for the precision of the dtype.
        max_iterations: the largest number of iterations; None for as many as needed.

    Returns:
        A tuple: u, of the shape of ``a``, and p, square.

    Raises:
        ValueError: ``side`` or ``method`` is another word.

    >>> u, p = scipy.linalg.polar(jnp.array([[0.0, -2.0], [1.0, 0.0]]), method="svd")
    >>> print(p.round(3))
    [[1. 0.]
     [0. 2.]]
    """
    if side not in ("right", "left") or method not in ("qdwh", "svd"):
        raise ValueError(
            "polar: side must be 'right' or 'left' and method 'qdwh' or 'svd', got "
            f"{side!r} and {method!r}"
        )
    x = matrices("polar", a)
    if side == "left":
        x = adjoint(x)
    if method == "svd" or x.shape[-2] < x.shape[-1]:
        u, s, vh = _svd(x, full_matrices=False)
        unitary, p = u @ vh, adjoint(vh) @ (s[..., None] * vh)
    else:
        unitary, p, *_ = qdwh(x, eps=eps, max_iterations=max_iterations)
    return (adjoint(unitary) if side == "left" else unitary), p


# ---- similar matrices -----------------------------------------------------------------------


@one_program
def schur(a: ArrayLike, output: str = "real") -> tuple[Array, Array]:
    """Schur decomposition a = z t zᴴ: z unitary, t upper triangular.

    Of a real matrix t is real and quasi-triangular: it has 2 by 2 blocks on the diagonal for pairs
    of complex eigenvalues.

    Args:
        a: matrices [..., n, n].
        output: "real", or "complex" for a complex triangular t of a real matrix.

    Returns:
        A tuple t, z, each [..., n, n].

    Raises:
        ValueError: ``output`` is another word.

    >>> t, z = scipy.linalg.schur(jnp.array([[2.0, 1.0], [0.0, 3.0]]))
    >>> print(t)
    [[2. 1.]
     [0. 3.]]
    >>> print((z @ t @ z.T).round(4))
    [[2. 1.]
     [0. 3.]]
    """
    if output not in ("real", "complex"):
        raise ValueError(f"schur: output must be 'real' or 'complex', got {output!r}")
    x = square("schur", in_lapack("schur", a))
    return tuple(prims.schur(as_complex(x) if output == "complex" else x, vectors=True))


@one_program
def rsf2csf(T: ArrayLike, Z: ArrayLike, check_finite: bool = True) -> tuple[Array, Array]:
    """Complex Schur form of a matrix whose real Schur form Z T Zᵀ is known.

    Args:
        T: the real Schur form, upper quasi-triangular [..., n, n].
        Z: the orthogonal matrix that belongs to it.
        check_finite: accepted, and ignored: no check for NaN and infinities is made.

    Returns:
        A tuple t, z: t upper triangular and complex, with Z T Zᵀ = z t zᴴ.

    Raises:
        ShapeError: the matrices are not square.

    >>> t, z = scipy.linalg.rsf2csf(jnp.array([[0.0, 1.0], [-1.0, 0.0]]), jnp.eye(2))
    >>> print(abs(t[1, 0]))
    0.0
    """
    t, z = (as_complex(square("rsf2csf", x)) for x in pair("rsf2csf", T, Z))
    if t.shape[-1] < 2:
        return t, z
    return vectorize(_triangular, signature="(n,n),(n,n)->(n,n),(n,n)")(t, z)


def _triangular(t: Array, z: Array) -> tuple[Array, Array]:
    """t and z turned in planes of two neighbouring axes, from the last to the first."""
    last = t.shape[0] - 2

    def step(i: Array, tz: tuple[Array, Array]) -> tuple[Array, Array]:
        t, z = tz
        plane = last - i + arange(2)
        turn = _turn(t[plane[:, None], plane])
        back = adjoint(turn)
        t = t.at[plane].set(matmul(turn, t[plane], precision="highest"))
        t = t.at[:, plane].set(matmul(t[:, plane], back, precision="highest"))
        return t, z.at[:, plane].set(matmul(z[:, plane], back, precision="highest"))

    t, z = fori_loop(0, last + 1, step, (t, z))
    return triu(t), z


def _turn(block: Array) -> Array:
    """The unitary matrix that brings an eigenvector of a 2 x 2 matrix to the first axis; that of no
    turn where the matrix is triangular already."""
    (a, b), (c, d) = block
    small = abs(c) <= finfo(c.dtype).eps * (abs(a) + abs(d))  # not so of NaN, which must be seen
    below = (c != 0) & ~small
    half = (a - d) / 2
    x = where(below, half + sqrt(where(below, half * half + b * c, 1)), 1)
    y = where(below, c, 0)
    return array([[conj(x), conj(y)], [-y, x]]) / sqrt(abs(x) ** 2 + abs(y) ** 2)


@overload
def hessenberg(
    a: ArrayLike,
    *,
    calc_q: Literal[False] = False,
    overwrite_a: bool = False,
    check_finite: bool = True,
) -> Array: ...
@overload
def hessenberg(
    a: ArrayLike, *, calc_q: Literal[True], overwrite_a: bool = False, check_finite: bool = True
) -> tuple[Array, Array]: ...
@overload
def hessenberg(
    a: ArrayLike, *, calc_q: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> Any: ...
@one_program
def hessenberg(
    a: ArrayLike, *, calc_q: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> Any:
    """Hessenberg form h of a = q h qᴴ: q unitary, h zero below the first subdiagonal.

    Args:
        a: matrices [..., n, n].
        calc_q: whether q is part of the result.
        overwrite_a, check_finite: accepted, and ignored.

    Returns:
        h [..., n, n]; with ``calc_q`` a tuple h, q.

    Raises:
        ShapeError: the matrices are not square.

    >>> a = jnp.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 10.0]])
    >>> h, q = scipy.linalg.hessenberg(a, calc_q=True)
    >>> print(h[2, 0], jnp.allclose(q @ h @ q.T, a, atol=1e-4))
    0.0 True
    """
    x = square("hessenberg", in_lapack("hessenberg", a))
    factors, taus = prims.hessenberg(x)
    h = triu(factors, -1)
    if not calc_q:
        return h
    n, batch = x.shape[-1], x.shape[:-2]
    one = ops.broadcast_to(eye(n, dtype=x.dtype), (*batch, n, n))
    if n < 2:
        return h, one
    inner = prims.householder_product(factors[..., 1:, :-1], taus)
    rest = ops.concatenate(one[..., 1:, :1], inner, dim=x.ndim - 1)
    return h, ops.concatenate(one[..., :1, :], rest, dim=x.ndim - 2)


# ---- triangular factors ---------------------------------------------------------------------


@one_program
def cholesky(
    a: ArrayLike, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> Array:
    """Cholesky factor of Hermitian positive definite matrices: the upper triangle u with uᴴ u = a.

    Args:
        a: matrices [..., n, n], of which the triangle on the side of the result is read; the factor
            of one that is not positive definite is NaN, where SciPy raises an error.
        lower: whether the result is the lower triangle l with l lᴴ = a.
        overwrite_a, check_finite: accepted, and ignored.

    Returns:
        Triangular matrices [..., n, n], zero on the other side of the diagonal.

    Raises:
        ShapeError: the matrices are not square.

    >>> print(scipy.linalg.cholesky(jnp.array([[4.0, 2.0], [2.0, 5.0]])))
    [[2. 1.]
     [0. 2.]]
    """
    return _cholesky(a, upper=not lower, symmetrize_input=False)


def cho_factor(
    a: ArrayLike, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> tuple[Array, bool]:
    """Cholesky factor of ``a``, in the form that ``cho_solve`` takes.

    Args:
        a: Hermitian positive definite matrices [..., n, n], of which one triangle is read.
        lower: whether the factor is the lower triangle, or the upper one.
        overwrite_a, check_finite: accepted, and ignored.

    Returns:
        A tuple: the factor [..., n, n], and ``lower``. Unlike in SciPy the other triangle is zero.

    Raises:
        ShapeError: the matrices are not square.

    >>> a = jnp.array([[4.0, 2.0], [2.0, 5.0]])
    >>> factor = scipy.linalg.cho_factor(a)
    >>> print(scipy.linalg.cho_solve(factor, jnp.array([8.0, 12.0])))
    [1. 2.]
    """
    return cholesky(a, lower=lower), lower


@one_program
def lu_factor(
    a: ArrayLike, overwrite_a: bool = False, check_finite: bool = True
) -> tuple[Array, Array]:
    """LU factorization with partial pivoting, in the form that ``lu_solve`` takes.

    Args:
        a: matrices [..., m, n].
        overwrite_a, check_finite: accepted, and ignored.

    Returns:
        A tuple: the factors in one matrix [..., m, n], u on and above the diagonal, and l, whose
        diagonal is 1, below; and the pivots, int32 [..., min(m, n)]: row i was exchanged with row
        ``pivots[i]``.

    Raises:
        ShapeError: ``a`` has fewer than two dimensions.

    >>> factors, pivots = scipy.linalg.lu_factor(jnp.array([[1.0, 3.0], [2.0, 4.0]]))
    >>> print(factors)
    [[2.  4. ]
     [0.5 1. ]]
    >>> print(pivots)
    [1 1]
    """
    factors, pivots, _ = prims.lu(matrices("lu_factor", a))
    return factors, pivots


@overload
def lu(
    a: ArrayLike,
    permute_l: Literal[False] = False,
    overwrite_a: bool = False,
    check_finite: bool = True,
) -> tuple[Array, Array, Array]: ...


@overload
def lu(
    a: ArrayLike, permute_l: Literal[True], overwrite_a: bool = False, check_finite: bool = True
) -> tuple[Array, Array]: ...


@overload
def lu(
    a: ArrayLike, permute_l: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> Any: ...


@one_program
def lu(
    a: ArrayLike, permute_l: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> Any:
    """LU factorization a = p l u: p a permutation, l lower triangular with ones on the diagonal, u
    upper triangular.

    Args:
        a: matrices [..., m, n].
        permute_l: whether the result is the product p l, and u.
        overwrite_a, check_finite: accepted, and ignored.

    Returns:
        A tuple p [..., m, m], l [..., m, k], u [..., k, n], with k = min(m, n); with ``permute_l``
        p l and u.

    Raises:
        ShapeError: ``a`` has fewer than two dimensions.

    >>> p, l, u = scipy.linalg.lu(jnp.array([[1.0, 3.0], [2.0, 4.0]]))
    >>> print(u)
    [[2. 4.]
     [0. 1.]]
    >>> print(p @ l @ u)
    [[1. 3.]
     [2. 4.]]
    """
    x = matrices("lu", a)
    factors, _, order = prims.lu(x)
    rows, columns = x.shape[-2:]
    least = min(rows, columns)
    left = tril(factors[..., :least], -1) + eye(rows, least, dtype=x.dtype)
    right = triu(factors[..., :least, :])
    # row i of a is row order⁻¹[i] of l u: columns of the identity, taken as rows of pᵀ
    one = eye(rows, dtype=dtypes.to_real(x.dtype))
    back = take_rows(ops.broadcast_to(one, (*x.shape[:-2], rows, rows)), order).mT
    return (back.astype(x.dtype) @ left, right) if permute_l else (back, left, right)
