"""Eigenvalues of Hermitian matrices."""

from __future__ import annotations

from typing import Any, Literal, overload

from phalanx import primitives as ops
from phalanx.base.errors import ShapeError
from phalanx.control.one_program import one_program
from phalanx.core.types import Array
from phalanx.lax.linalg import hermitian
from phalanx.numpy.linalg.operands import in_lapack, pair
from phalanx.numpy.promotion import ArrayLike
from phalanx.primitives import linalg as prims
from phalanx.primitives.linalg.algebra import adjoint, diagonal_matrix, of_lower_triangle, padded


@overload
def eigh(
    a: ArrayLike,
    b: ArrayLike | None = None,
    lower: bool = True,
    eigvals_only: Literal[False] = False,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    turbo: bool = True,
    eigvals: None = None,
    type: int = 1,
    check_finite: bool = True,
) -> tuple[Array, Array]: ...


@overload
def eigh(
    a: ArrayLike,
    b: ArrayLike | None = None,
    lower: bool = True,
    *,
    eigvals_only: Literal[True],
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    turbo: bool = True,
    eigvals: None = None,
    type: int = 1,
    check_finite: bool = True,
) -> Array: ...


@overload
def eigh(
    a: ArrayLike,
    b: ArrayLike | None = None,
    lower: bool = True,
    eigvals_only: bool = False,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    turbo: bool = True,
    eigvals: None = None,
    type: int = 1,
    check_finite: bool = True,
) -> Any: ...


@one_program
def eigh(
    a: ArrayLike,
    b: ArrayLike | None = None,
    lower: bool = True,
    eigvals_only: bool = False,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    turbo: bool = True,
    eigvals: None = None,
    type: int = 1,
    check_finite: bool = True,
) -> Any:
    """Eigenvalues and eigenvectors of Hermitian matrices: a v = b v diag(w), where b may be the
    identity.

    Args:
        a: matrices [..., n, n], of which one triangle is read.
        b: Hermitian positive definite matrices [..., n, n], for the generalized problem; None for
            the identity. Eigenvectors are normalized so that vᴴ b v is the identity.
        lower: whether the lower triangles are read, or the upper ones.
        eigvals_only: whether the result is w alone.
        overwrite_a: accepted, and ignored: arrays are immutable.
        overwrite_b: accepted, and ignored: arrays are immutable.
        turbo: accepted, and ignored.
        eigvals: must be None: all eigenvalues are computed.
        type: the problem: 1 for a v = b v diag(w), 2 for a b v = v diag(w), 3 for b a v = v
            diag(w).
        check_finite: accepted, and ignored: no check for NaN and infinities is made.

    Returns:
        A tuple w [..., n], real, in ascending order, and v [..., n, n], eigenvectors in columns;
        with ``eigvals_only`` w alone.

    Raises:
        ValueError: ``type`` is not 1, 2 or 3, or ``eigvals`` is given.

    >>> w, v = scipy.linalg.eigh(jnp.array([[0.0, 2.0], [2.0, 0.0]]))
    >>> print(w)
    [-2.  2.]
    """
    if eigvals is not None or type not in (1, 2, 3):
        raise ValueError(
            f"eigh: eigvals must be None and type 1, 2 or 3, got {eigvals!r} and {type!r}"
        )
    if b is None:
        x = hermitian("eigh", in_lapack("eigh", a), lower, False)
        return _values_first(prims.eigh(x, vectors=not eigvals_only))
    x, y = (hermitian("eigh", m, lower, False) for m in pair("eigh", a, b))
    x, factor = of_lower_triangle(x), prims.cholesky(y)
    inner = _twice_solved(factor, x) if type == 1 else adjoint(factor) @ x @ factor
    *vectors, w = prims.eigh(inner, vectors=not eigvals_only)
    back = [factor @ v if type == 3 else _solved(factor, v, "C") for v in vectors]
    return _values_first([*back, w])


def _solved(factor: Any, x: Any, op: str = "N") -> Any:
    return prims.triangular_solve(factor, x, left=True, low=True, op=op, unit=False)


def _twice_solved(factor: Any, x: Any) -> Any:
    """l⁻¹ x l⁻ᴴ of Hermitian x."""
    return _solved(factor, adjoint(_solved(factor, x)))


def _values_first(out: Any) -> Any:
    return out[0] if len(out) == 1 else (out[1], out[0])


@one_program
def eigh_tridiagonal(
    d: ArrayLike,
    e: ArrayLike,
    *,
    eigvals_only: bool = False,
    select: str = "a",
    select_range: tuple[int, int] | None = None,
    tol: float | None = None,
    key: Array | None = None,
) -> Any:
    """Eigenvalues and eigenvectors of real symmetric or Hermitian tridiagonal matrices.

    Args:
        d: the main diagonals [..., n], real.
        e: the diagonals below the main one [..., n - 1].
        eigvals_only: whether the result is the eigenvalues alone.
        select: "a" for all eigenvalues, "i" for those of the indices in ``select_range``.
        select_range: with ``select="i"``, the first and the last index, from 0, in ascending order.
        tol: accepted, and ignored.
        key: accepted, and ignored.

    Returns:
        A tuple of the eigenvalues [..., n], in ascending order, and the eigenvectors in columns
        [..., n, n]; with ``eigvals_only`` the eigenvalues alone.

    Raises:
        ValueError: ``select`` and ``select_range`` are not as above.

    >>> print(scipy.linalg.eigh_tridiagonal(jnp.zeros(2), 2 * jnp.ones(1), eigvals_only=True))
    [-2.  2.]
    """
    diagonal, beside = pair("eigh_tridiagonal", d, e)
    n = diagonal.shape[-1] if diagonal.ndim else 0
    if not n or beside.shape != (*diagonal.shape[:-1], n - 1):
        raise ShapeError(
            f"eigh_tridiagonal: d [..., n] and e [..., n - 1] are needed, got {diagonal.aval} and "
            f"{beside.aval}"
        )
    if select not in ("a", "i") or (select == "i") != (select_range is not None):
        raise ValueError(
            "eigh_tridiagonal: select must be 'a', or 'i' with a select_range, got "
            f"{select!r} and {select_range!r}"
        )
    below = padded(diagonal_matrix(beside), (n, n))
    below = ops.concatenate(below[..., n - 1 :, :], below[..., : n - 1, :], dim=below.ndim - 2)
    *v, w = prims.eigh(below + diagonal_matrix(diagonal), vectors=not eigvals_only)
    first, last = select_range or (0, n - 1)
    selected = slice(first, last + 1)
    return w[..., selected] if eigvals_only else (w[..., selected], v[0][..., selected])
