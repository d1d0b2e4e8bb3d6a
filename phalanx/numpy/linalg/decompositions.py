"""Factorizations of matrices [..., m, n]: triangles, orthonormal columns, singular values."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, overload

from phalanx.control.one_program import one_program
from phalanx.core.types import Array
from phalanx.lax import linalg as lax
from phalanx.numpy.arithmetic import abs, sign
from phalanx.numpy.indexing import take_along_axis
from phalanx.numpy.linalg.operands import in_lapack
from phalanx.numpy.manipulation import expand_dims, matrix_transpose
from phalanx.numpy.promotion import ArrayLike
from phalanx.numpy.sorting import argsort
from phalanx.primitives import linalg as prims
from phalanx.primitives.linalg.algebra import adjoint


class QRResult(NamedTuple):
    """The result of ``qr``: ``Q``, with orthonormal columns, and ``R``, upper triangular."""

    Q: Array
    R: Array


class SVDResult(NamedTuple):
    """The result of ``svd``: ``U``, whose columns are left singular vectors, ``S``, and ``Vh``."""

    U: Array
    S: Array
    Vh: Array


@one_program
def cholesky(a: ArrayLike, *, upper: bool = False, symmetrize_input: bool = True) -> Array:
    """Cholesky factor of Hermitian positive definite matrices: the lower triangle l with l lᴴ = a.

    Args:
        a: matrices [..., n, n]; the factor of one that is not positive definite is NaN, where NumPy
            raises an error.
        upper: whether the result is the upper triangle u with uᴴ u = a.
        symmetrize_input: whether a is replaced by (a + aᴴ) / 2 first; otherwise the triangle on the
            side of the result is read alone.

    Returns:
        Triangular matrices [..., n, n], zero on the other side of the diagonal.

    Raises:
        ShapeError: the matrices are not square.

    >>> print(jnp.linalg.cholesky(jnp.array([[4.0, 2.0], [2.0, 5.0]])))
    [[2. 0.]
     [1. 2.]]
    """
    x = lax.hermitian("cholesky", in_lapack("cholesky", a), not upper, symmetrize_input)
    factor = prims.cholesky(x)
    return adjoint(factor) if upper else factor


@overload
def qr(a: ArrayLike, mode: Literal["reduced", "complete"] = "reduced") -> QRResult: ...
@overload
def qr(a: ArrayLike, mode: Literal["r"]) -> Array: ...
@overload
def qr(a: ArrayLike, mode: str = "reduced") -> Any: ...
@one_program
def qr(a: ArrayLike, mode: str = "reduced") -> Any:
    """QR factorization a = q r: q with orthonormal columns, r upper triangular.

    Args:
        a: matrices [..., m, n].
        mode: "reduced": q [..., m, k] and r [..., k, n] with k = min(m, n); "complete": q [..., m,
            m] and r [..., m, n]; "r": r alone; "raw": the Householder vectors, transposed, and
            their factors, as LAPACK gives them.

    Returns:
        A named tuple ``Q``, ``R``; in mode "r" ``R`` alone, in mode "raw" a pair.

    Raises:
        ValueError: there is no such mode.

    >>> q, r = jnp.linalg.qr(jnp.array([[3.0, 1.0], [4.0, 2.0]]))
    >>> print((q @ r).round(4))
    [[3. 1.]
     [4. 2.]]
    >>> print((q.T @ q).round(4) + 0.0)
    [[1. 0.]
     [0. 1.]]
    """
    x = in_lapack("qr", a)
    if mode == "raw":
        reflections, taus = prims.geqrf(x)
        return matrix_transpose(reflections), taus
    if mode not in ("reduced", "complete", "full", "r"):
        raise ValueError(f"qr: mode must be 'reduced', 'complete', 'r' or 'raw', got {mode!r}")
    q, r = prims.qr(x, full=mode in ("complete", "full"), pivoting=False)
    return r if mode == "r" else QRResult(q, r)


@overload
def svd(
    a: ArrayLike,
    full_matrices: bool = True,
    compute_uv: Literal[True] = True,
    hermitian: bool = False,
    subset_by_index: tuple[int, int] | None = None,
) -> SVDResult: ...
@overload
def svd(
    a: ArrayLike,
    full_matrices: bool = True,
    *,
    compute_uv: Literal[False],
    hermitian: bool = False,
    subset_by_index: tuple[int, int] | None = None,
) -> Array: ...
@overload
def svd(
    a: ArrayLike,
    full_matrices: bool = True,
    compute_uv: bool = True,
    hermitian: bool = False,
    subset_by_index: tuple[int, int] | None = None,
) -> Any: ...
@one_program
def svd(
    a: ArrayLike,
    full_matrices: bool = True,
    compute_uv: bool = True,
    hermitian: bool = False,
    subset_by_index: tuple[int, int] | None = None,
) -> Any:
    """Singular value decomposition a = u diag(s) vᴴ, with s in descending order.

    Args:
        a: matrices [..., m, n].
        full_matrices: whether u and vᴴ are square; otherwise they have min(m, n) vectors.
        compute_uv: whether u and vᴴ are computed; otherwise the result is s alone.
        hermitian: whether a is known to be Hermitian, so that the cheaper decomposition by
            eigenvalues can be used.
        subset_by_index: the range (first, end) of the singular values that are wanted, with
            ``full_matrices=False``; None for all.

    Returns:
        A named tuple ``U`` [..., m, m], ``S`` [..., k] and ``Vh`` [..., n, n], with k = min(m, n);
        without ``full_matrices`` ``U`` [..., m, k] and ``Vh`` [..., k, n]; without ``compute_uv``
        ``S`` alone.

    Raises:
        ValueError: ``subset_by_index`` is out of range, or given with ``full_matrices``.

    >>> a = jnp.array([[0.0, 2.0], [1.0, 0.0], [0.0, 0.0]])
    >>> u, s, vh = jnp.linalg.svd(a, full_matrices=False)
    >>> print(s)
    [2. 1.]
    >>> print(jnp.allclose(u * s @ vh, a))
    True
    """
    x = in_lapack("svd", a)
    if not hermitian:
        out = lax.svd(
            x,
            full_matrices=full_matrices,
            compute_uv=compute_uv,
            subset_by_index=subset_by_index,
        )
        return SVDResult(*out) if compute_uv else out
    s, u, vh = _of_hermitian(x)
    first, end = subset_by_index or (0, s.shape[-1])
    s, u, vh = s[..., first:end], u[..., first:end], vh[..., first:end, :]
    return SVDResult(u, s, vh) if compute_uv else s


def _of_hermitian(x: Any) -> tuple[Any, Any, Any]:
    """Singular values are the sizes of eigenvalues, whose signs join one of the vectors."""
    v, w = prims.eigh(lax.hermitian("svd", x, True, True), vectors=True)
    order = argsort(abs(w), axis=-1, descending=True)
    w = take_along_axis(w, order, -1)
    v = take_along_axis(v, expand_dims(order, -2), -1)
    return abs(w), v, adjoint(v * expand_dims(sign(w), -2))


@one_program
def svdvals(x: ArrayLike, /) -> Array:
    """Singular values of matrices, in descending order.

    Args:
        x: matrices [..., m, n].

    Returns:
        Real numbers [..., min(m, n)].

    Raises:
        ShapeError: ``x`` has fewer than two dimensions.

    >>> print(jnp.linalg.svdvals(jnp.array([[0.0, 2.0], [1.0, 0.0]])))
    [2. 1.]
    """
    return prims.svd(in_lapack("svdvals", x), full=False, vectors=False)[0]
