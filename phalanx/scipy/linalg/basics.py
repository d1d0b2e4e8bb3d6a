"""Linear systems of equations, inverses and determinants."""

from __future__ import annotations

from typing import Any

from phalanx import primitives as ops
from phalanx.base.errors import ShapeError
from phalanx.control.one_program import one_program
from phalanx.core.types import Array
from phalanx.lax.linalg import hermitian
from phalanx.numpy.linalg.equations import inv as _inv
from phalanx.numpy.linalg.equations import solve as _solve
from phalanx.numpy.linalg.norms import det as _det
from phalanx.numpy.linalg.operands import batched, pair, square
from phalanx.numpy.promotion import ArrayLike
from phalanx.primitives import linalg as prims

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
        overwrite_a, check_finite: accepted, and ignored.

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
        overwrite_a, check_finite: accepted, and ignored.

    Returns:
        Numbers [...].

    Raises:
        ShapeError: the matrices are not square.

    >>> print(scipy.linalg.det(jnp.array([[1.0, 2.0], [3.0, 4.0]])))
    -2.0
    """
    return _det(a)
