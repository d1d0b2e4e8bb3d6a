"""Triangles, and linear systems of equations."""

from __future__ import annotations

from typing import Any

from phalanx import ops
from phalanx.base import dtypes
from phalanx.base.errors import ShapeError
from phalanx.control.one_program import one_program
from phalanx.core.types import Array
from phalanx.lax.linalg import hermitian
from phalanx.numpy.factorizations import cholesky as _cholesky
from phalanx.numpy.factorizations import matrices
from phalanx.numpy.promotion import ArrayLike
from phalanx.numpy.structured import eye, tril, triu
from phalanx.numpy.systems import batched, pair, square
from phalanx.numpy.systems import det as _det
from phalanx.numpy.systems import inv as _inv
from phalanx.numpy.systems import solve as _solve
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
    """x with op(a) x = b, a a triangle.

    Args:
        a: matrices [..., n, n], of which one triangle is read.
        b: [..., n, k], or vectors: one [n], or [..., n] with one for each matrix.
        trans: whether a is taken as it is (0 or "N"), transposed (1, "T"), or conjugated and
            transposed (2, "C").
        lower: whether the lower triangle is read, or the upper one.
        unit_diagonal: whether the diagonal is taken for ones.
        overwrite_b: changes nothing.
        debug: changes nothing.
        check_finite: changes nothing.

    Returns:
        An array of the shape of ``b``.

    Raises:
        ShapeError: the shapes do not fit.

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
    """The triangle u with uᴴ u = a, or l with l lᴴ = a; NaN unless a is positive definite.

    Args:
        a: Hermitian positive definite matrices [..., n, n].
        lower: whether the result is the lower triangle, and not the upper.
        overwrite_a: has no meaning: arrays are immutable.
        check_finite: has no meaning: nan and infinities are not looked for.

    Returns:
        Triangles [..., n, n].

    >>> print(scipy.linalg.cholesky(jnp.array([[4.0, 2.0], [2.0, 5.0]])))
    [[2. 1.]
     [0. 2.]]
    """
    return _cholesky(a, upper=not lower, symmetrize_input=False)


def cho_factor(
    a: ArrayLike, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> tuple[Array, bool]:
    """The Cholesky factor of ``a``, and whether it is the lower one, for ``cho_solve``.

    Args:
        a: Hermitian positive definite matrices [..., n, n].
        lower: whether the result is the lower triangle, and not the upper.
        overwrite_a: has no meaning: arrays are immutable.
        check_finite: has no meaning: nan and infinities are not looked for.

    Returns:
        A pair: a triangle [..., n, n], and a bool.

    >>> print(scipy.linalg.cho_factor(jnp.array([[4.0]])))
    (Array([[2.]], dtype=float32), False)
    """
    return cholesky(a, lower=lower), lower


def cho_solve(
    c_and_lower: tuple[ArrayLike, bool],
    b: ArrayLike,
    overwrite_b: bool = False,
    check_finite: bool = True,
) -> Array:
    """x with a x = b, from what ``cho_factor`` gave of a.

    Args:
        c_and_lower: what ``cho_factor`` gave.
        b: [..., n, k], or vectors: one [n], or [..., n] with one for each matrix.
        overwrite_b: has no meaning: arrays are immutable.
        check_finite: has no meaning: nan and infinities are not looked for.

    Returns:
        An array of the shape of ``b``.

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
    """l below the diagonal and u, and the pivots: row i was exchanged with row pivots[i].

    Args:
        a: matrices [..., m, n].
        overwrite_a: has no meaning: arrays are immutable.
        check_finite: has no meaning: nan and infinities are not looked for.

    Returns:
        l and u as one matrix [..., m, n], and int32 [..., min(m, n)].

    >>> factors, pivots = scipy.linalg.lu_factor(jnp.array([[1.0, 3.0], [2.0, 4.0]]))
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
    """x with op(a) x = b, from what ``lu_factor`` gave of a; for ``trans`` see
    ``solve_triangular``.

    Args:
        lu_and_piv: what ``lu_factor`` gave.
        b: [..., n, k], or vectors: one [n], or [..., n] with one for each matrix.
        trans: whether a is taken as it is (0 or "N"), transposed (1, "T"), or conjugated and
            transposed (2, "C").
        overwrite_b: changes nothing.
        check_finite: changes nothing.

    Returns:
        An array of the shape of ``b``.

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


@one_program
def lu(
    a: ArrayLike, permute_l: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> Any:
    """The decomposition a = p l u: p exchanges rows and is real, l and u are triangles.

    Args:
        a: matrices [..., m, n].
        permute_l: whether to give p l and u alone.
        overwrite_a: changes nothing.
        check_finite: changes nothing.

    Returns:
        p, l and u; with ``permute_l`` the product p l, and u.

    >>> p, l, u = scipy.linalg.lu(jnp.array([[1.0, 3.0], [2.0, 4.0]]))
    >>> print(u)
    [[2. 4.]
     [0. 1.]]
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
    """x with a x = b.

    Args:
        a: matrices [..., n, n].
        b: [..., n, k], or one vector [n]; with "pos", also a vector for each matrix, [..., n].
        lower: where a is assumed to be positive definite, the triangle that is read.
        overwrite_a: changes nothing.
        overwrite_b: changes nothing.
        debug: changes nothing.
        check_finite: changes nothing.
        assume_a: "gen", "sym", "her", or "pos", which is solved by a Cholesky factor.

    Returns:
        An array of the shape of ``b``.

    Raises:
        ValueError: ``assume_a`` is none of these.

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
    """The inverses of square matrices [..., n, n].

    Args:
        a: square matrices [..., n, n].
        overwrite_a: has no meaning: arrays are immutable.
        check_finite: has no meaning: nan and infinities are not looked for.

    Returns:
        Matrices [..., n, n].

    >>> print(scipy.linalg.inv(jnp.array([[2.0, 0.0], [0.0, 4.0]])))
    [[0.5  0.  ]
     [0.   0.25]]
    """
    return _inv(a)


def det(a: ArrayLike, overwrite_a: bool = False, check_finite: bool = True) -> Array:
    """The determinants of square matrices [..., n, n].

    Args:
        a: square matrices [..., n, n].
        overwrite_a: has no meaning: arrays are immutable.
        check_finite: has no meaning: nan and infinities are not looked for.

    Returns:
        Numbers [...].

    >>> print(scipy.linalg.det(jnp.array([[1.0, 2.0], [3.0, 4.0]])))
    -2.0
    """
    return _det(a)
