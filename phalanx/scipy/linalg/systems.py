"""Triangles, and linear systems of equations."""

from __future__ import annotations

from typing import Any, Literal, overload

from phalanx import ops
from phalanx.base import dtypes
from phalanx.base.errors import ShapeError
from phalanx.control.one_program import one_program
from phalanx.core.types import Array
from phalanx.lax.linalg import hermitian
from phalanx.numpy.linalg.decompositions import cholesky as _cholesky
from phalanx.numpy.linalg.decompositions import matrices
from phalanx.numpy.linalg.equations import batched, pair, square
from phalanx.numpy.linalg.equations import det as _det
from phalanx.numpy.linalg.equations import inv as _inv
from phalanx.numpy.linalg.equations import solve as _solve
from phalanx.numpy.matrices import eye, tril, triu
from phalanx.numpy.promotion import ArrayLike
from phalanx.ops import linalg as prims
from phalanx.ops.linalg.algebra import take_rows

# ---- triangles ------------------------------------------------------------------------------

_LETTERS = {0: "N", "N": "N", 1: "T", "T": "T", 2: "C", "C": "C"}


def _letter(who: str, trans: Any) -> str:
    if isinstance(trans, (int, str)) and trans in _LETTERS:
        return _LETTERS[trans]
    raise ValueError(f"{who}: trans must be 0, 1, 2, 'N', 'T' or 'C', got {trans!r}")


def _columns(who: str, a: Any, b: Any) -> tuple[Array, Array, bool]:
    """Square matrices, right sides [..., n, k], and whether those were vectors.

    They are one vector [n], or a vector for every matrix: [..., n], of one dimension less than a.
    """
    x, y = pair(who, a, b)
    square(who, x)
    vector = y.ndim in (1, x.ndim - 1)
    columns = ops.expand_dims(y, (y.ndim,)) if vector else y
    if y.ndim < 1 or columns.shape[-2] != x.shape[-1]:
        raise ShapeError(
            f"{who}: b must be [..., n, k] or [..., n] for matrices [..., n, n], "
            f"got {y.aval} for {x.aval}"
        )
    return *batched(who, x, columns), vector


def _shaped(x: Array, vector: bool) -> Array:
    return x[..., 0] if vector else x


@one_program
def solve_triangular(
    a: ArrayLike,
    b: ArrayLike,
    trans: int | str = 0,
    lower: bool = False,
    unit_diagonal: bool = False,
    overwrite_b: bool = False,
    debug: Any = None,
    check_finite: bool = True,
) -> Array:
    """Solution x of op(a) x = b, for triangular matrices a.

    Args:
        a: matrices [..., n, n], of which one triangle is read.
        b: right sides [..., n, k]; or vectors, one [n], or [..., n] with one for each matrix.
        trans: op(a): 0 or "N" for a, 1 or "T" for its transpose, 2 or "C" for its conjugate
            transpose.
        lower: whether the lower triangle is read, or the upper one.
        unit_diagonal: whether the diagonal counts as ones, and is not read.
        overwrite_b: accepted, and ignored: arrays are immutable.
        debug: accepted, and ignored.
        check_finite: accepted, and ignored: no check for NaN and infinities is made.

    Returns:
        x, of the shape of ``b``; with ``b`` one vector [n], of [..., n].

    Raises:
        ShapeError: the shapes of ``a`` and ``b`` do not fit.
        ValueError: ``trans`` is not valid.

    >>> a = jnp.array([[2.0, 0.0], [1.0, 4.0]])
    >>> print(scipy.linalg.solve_triangular(a, jnp.array([2.0, 9.0]), lower=True))
    [1. 2.]
    """
    op = _letter("solve_triangular", trans)
    x, y, vector = _columns("solve_triangular", a, b)
    out = prims.triangular_solve(x, y, left=True, low=lower, op=op, unit=unit_diagonal)
    return _shaped(out, vector)


@one_program
def cholesky(
    a: ArrayLike, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> Array:
    """Cholesky factor of Hermitian positive definite matrices: the upper triangle u with uᴴ u = a.

    Args:
        a: matrices [..., n, n], of which the triangle on the side of the result is read; the factor
            of one that is not positive definite is NaN, where SciPy raises an error.
        lower: whether the result is the lower triangle l with l lᴴ = a.
        overwrite_a: accepted, and ignored: arrays are immutable.
        check_finite: accepted, and ignored: no check for NaN and infinities is made.

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
        overwrite_a: accepted, and ignored: arrays are immutable.
        check_finite: accepted, and ignored: no check for NaN and infinities is made.

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


def cho_solve(
    c_and_lower: tuple[ArrayLike, bool],
    b: ArrayLike,
    overwrite_b: bool = False,
    check_finite: bool = True,
) -> Array:
    """Solution x of a x = b, from the Cholesky factor of a.

    Args:
        c_and_lower: the result of ``cho_factor(a)``.
        b: right sides [..., n, k]; or vectors, one [n], or [..., n] with one for each matrix.
        overwrite_b: accepted, and ignored: arrays are immutable.
        check_finite: accepted, and ignored: no check for NaN and infinities is made.

    Returns:
        x, of the shape of ``b``; with ``b`` one vector [n], of [..., n].

    Raises:
        ShapeError: the shapes of the factor and ``b`` do not fit.

    >>> factor = scipy.linalg.cho_factor(jnp.array([[4.0, 2.0], [2.0, 5.0]]))
    >>> print(scipy.linalg.cho_solve(factor, jnp.array([8.0, 12.0])))
    [1. 2.]
    """
    factor, lower = c_and_lower
    return _cho_solve(factor, b, bool(lower))


@one_program
def _cho_solve(factor: ArrayLike, b: ArrayLike, lower: bool) -> Array:
    x, y, vector = _columns("cho_solve", factor, b)
    for op in ("N", "C") if lower else ("C", "N"):
        y = prims.triangular_solve(x, y, left=True, low=lower, op=op, unit=False)
    return _shaped(y, vector)


# ---- lu -------------------------------------------------------------------------------------


@one_program
def lu_factor(
    a: ArrayLike, overwrite_a: bool = False, check_finite: bool = True
) -> tuple[Array, Array]:
    """LU factorization with partial pivoting, in the form that ``lu_solve`` takes.

    Args:
        a: matrices [..., m, n].
        overwrite_a: accepted, and ignored: arrays are immutable.
        check_finite: accepted, and ignored: no check for NaN and infinities is made.

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


def lu_solve(
    lu_and_piv: tuple[ArrayLike, ArrayLike],
    b: ArrayLike,
    trans: int = 0,
    overwrite_b: bool = False,
    check_finite: bool = True,
) -> Array:
    """Solution x of op(a) x = b, from the LU factorization of a.

    Args:
        lu_and_piv: the result of ``lu_factor(a)``.
        b: right sides [..., n, k]; or vectors, one [n], or [..., n] with one for each matrix.
        trans: op(a): 0 or "N" for a, 1 or "T" for its transpose, 2 or "C" for its conjugate
            transpose.
        overwrite_b: accepted, and ignored: arrays are immutable.
        check_finite: accepted, and ignored: no check for NaN and infinities is made.

    Returns:
        x, of the shape of ``b``; with ``b`` one vector [n], of [..., n].

    Raises:
        ShapeError: the shapes of the factor and ``b`` do not fit.

    >>> factors = scipy.linalg.lu_factor(jnp.array([[0.0, 2.0], [4.0, 0.0]]))
    >>> print(scipy.linalg.lu_solve(factors, jnp.array([4.0, 4.0])))
    [1. 2.]
    """
    factors, pivots = lu_and_piv
    return _lu_solve(factors, pivots, b, _letter("lu_solve", trans))


@one_program
def _lu_solve(factors: ArrayLike, pivots: ArrayLike, b: ArrayLike, op: str) -> Array:
    x, y, vector = _columns("lu_solve", factors, b)
    n = x.shape[-1]
    order = prims.lu_pivots_to_permutation(pivots, size=n)
    order = ops.broadcast_to(order, (*x.shape[:-2], n))
    return _shaped(prims.lu_solve(x, order, y, op=op), vector)


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
        overwrite_a: accepted, and ignored: arrays are immutable.
        check_finite: accepted, and ignored: no check for NaN and infinities is made.

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


# ---- systems of equations -------------------------------------------------------------------


@one_program
def solve(
    a: ArrayLike,
    b: ArrayLike,
    lower: bool = False,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    debug: bool = False,
    check_finite: bool = True,
    assume_a: str = "gen",
) -> Array:
    """Solution x of the linear equations a x = b.

    Args:
        a: square matrices [..., n, n].
        b: right sides [..., n, k], or one vector [n]; with ``assume_a="pos"`` also a vector for
            each matrix, [..., n].
        lower: with ``assume_a="pos"``, whether the lower triangle of a is read, or the upper one.
        overwrite_a: accepted, and ignored: arrays are immutable.
        overwrite_b: accepted, and ignored: arrays are immutable.
        debug: accepted, and ignored.
        check_finite: accepted, and ignored: no check for NaN and infinities is made.
        assume_a: what is known of a: "gen", nothing; "sym" or "her", symmetric or Hermitian, which
            is solved as "gen"; "pos", Hermitian positive definite, which is solved by a Cholesky
            factor.

    Returns:
        x: [..., n, k]; or [..., n] if ``b`` is one vector or several.

    Raises:
        ValueError: ``assume_a`` is another word.

    >>> a = jnp.array([[4.0, 2.0], [2.0, 5.0]])
    >>> print(scipy.linalg.solve(a, jnp.array([8.0, 12.0]), assume_a="pos"))
    [1. 2.]
    """
    if assume_a not in ("gen", "sym", "her", "pos"):
        raise ValueError(f"solve: assume_a must be 'gen', 'sym', 'her' or 'pos', got {assume_a!r}")
    if assume_a != "pos":
        return _solve(a, b)
    x, y, vector = _columns("solve", a, b)
    factor = prims.cholesky(hermitian("solve", x, lower, False))
    for op in ("N", "C"):
        y = prims.triangular_solve(factor, y, left=True, low=True, op=op, unit=False)
    return _shaped(y, vector)


def inv(a: ArrayLike, overwrite_a: bool = False, check_finite: bool = True) -> Array:
    """Inverses of square matrices.

    To solve equations, ``solve`` is faster and more accurate than a product with the inverse.

    Args:
        a: square matrices [..., n, n]; where one is singular, the result has infinities or NaN, and
            SciPy raises an error.
        overwrite_a: accepted, and ignored: arrays are immutable.
        check_finite: accepted, and ignored: no check for NaN and infinities is made.

    Returns:
        Matrices [..., n, n].

    Raises:
        ShapeError: the matrices are not square.

    >>> print(scipy.linalg.inv(jnp.array([[2.0, 0.0], [0.0, 4.0]])))
    [[0.5  0.  ]
     [0.   0.25]]
    """
    return _inv(a)


def det(a: ArrayLike, overwrite_a: bool = False, check_finite: bool = True) -> Array:
    """Determinants of square matrices.

    Args:
        a: square matrices [..., n, n].
        overwrite_a: accepted, and ignored: arrays are immutable.
        check_finite: accepted, and ignored: no check for NaN and infinities is made.

    Returns:
        Numbers [...].

    Raises:
        ShapeError: the matrices are not square.

    >>> print(scipy.linalg.det(jnp.array([[1.0, 2.0], [3.0, 4.0]])))
    -2.0
    """
    return _det(a)
