"""Eigenvalues and eigenvectors of matrices [..., n, n]."""

from __future__ import annotations

from typing import NamedTuple

from phalanx.control.one_program import one_program
from phalanx.core.types import Array
from phalanx.lax import linalg as lax
from phalanx.numpy.linalg.operands import in_lapack
from phalanx.numpy.promotion import ArrayLike
from phalanx.primitives import linalg as prims


class EighResult(NamedTuple):
    """The result of ``eigh``: eigenvalues [..., n], and eigenvectors in columns [..., n, n]."""

    eigenvalues: Array
    eigenvectors: Array


class EigResult(NamedTuple):
    """The result of ``eig``: eigenvalues [..., n], and eigenvectors in columns [..., n, n]."""

    eigenvalues: Array
    eigenvectors: Array


def _is_lower(who: str, uplo: str | None) -> bool:
    if uplo is None:
        return True
    if uplo not in ("L", "U"):
        raise ValueError(f"{who}: UPLO must be 'L', 'U' or None, got {uplo!r}")
    return uplo == "L"


@one_program
def eigh(a: ArrayLike, UPLO: str | None = None, symmetrize_input: bool = True) -> EighResult:
    """Eigenvalues and eigenvectors of Hermitian (or real symmetric) matrices.

    Args:
        a: matrices [..., n, n].
        UPLO: the triangle that is read if ``symmetrize_input`` is False: "L" or "U"; None for "L".
        symmetrize_input: whether a is replaced by (a + aᴴ) / 2 first; NumPy reads one triangle.

    Returns:
        A named tuple: ``eigenvalues``, real [..., n] in ascending order, and ``eigenvectors``,
        orthonormal columns [..., n, n].

    Raises:
        ShapeError: the matrices are not square.

    >>> w, v = jnp.linalg.eigh(jnp.array([[2.0, 1.0], [1.0, 2.0]]))
    >>> print(w.round(4))
    [1. 3.]
    >>> print(abs(v).round(4))
    [[0.7071 0.7071]
     [0.7071 0.7071]]
    """
    x = lax.hermitian("eigh", in_lapack("eigh", a), _is_lower("eigh", UPLO), symmetrize_input)
    v, w = prims.eigh(x, vectors=True)
    return EighResult(w, v)


@one_program
def eigvalsh(a: ArrayLike, UPLO: str | None = "L", *, symmetrize_input: bool = True) -> Array:
    """Eigenvalues of Hermitian (or real symmetric) matrices, in ascending order.

    Args:
        a: matrices [..., n, n].
        UPLO: the triangle that is read if ``symmetrize_input`` is False: "L" or "U"; None for "L".
        symmetrize_input: whether a is replaced by (a + aᴴ) / 2 first; NumPy reads one triangle.

    Returns:
        Real numbers [..., n].

    Raises:
        ShapeError: the matrices are not square.

    >>> print(jnp.linalg.eigvalsh(jnp.array([[0.0, 2.0], [2.0, 0.0]])))
    [-2.  2.]
    """
    lower = _is_lower("eigvalsh", UPLO)
    x = lax.hermitian("eigvalsh", in_lapack("eigvalsh", a), lower, symmetrize_input)
    return prims.eigh(x, vectors=False)[0]


@one_program
def eig(a: ArrayLike) -> EigResult:
    """Eigenvalues and eigenvectors of square matrices, always complex, in no particular order.

    Args:
        a: square matrices [..., n, n].

    Returns:
        A named tuple: ``eigenvalues`` [..., n], and ``eigenvectors`` [..., n, n], columns of norm
        1.

    Raises:
        ShapeError: ``a`` has fewer than two dimensions.

    >>> w, v = jnp.linalg.eig(jnp.array([[0.0, 1.0], [0.0, 4.0]]))
    >>> print(w)
    [0.+0.j 4.+0.j]
    """
    return EigResult(*prims.eig(in_lapack("eig", a), left=False, right=True))


@one_program
def eigvals(a: ArrayLike) -> Array:
    """Eigenvalues of square matrices, always complex, in no particular order.

    Args:
        a: square matrices [..., n, n].

    Returns:
        Complex numbers [..., n].

    Raises:
        ShapeError: ``a`` has fewer than two dimensions.

    >>> print(jnp.linalg.eigvals(jnp.array([[0.0, 1.0], [0.0, 4.0]])))
    [0.+0.j 4.+0.j]
    """
    return prims.eig(in_lapack("eigvals", a), left=False, right=False)[0]
