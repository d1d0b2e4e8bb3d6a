"""Functions of square matrices: exponentials, roots and others; Sylvester's equation."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal, overload

import numpy as np

from phalanx import primitives as ops
from phalanx.base import dtypes
from phalanx.base.errors import ShapeError
from phalanx.control.one_program import one_program
from phalanx.core.types import Array
from phalanx.lax.branches import cond, switch
from phalanx.lax.loops import fori_loop, scan
from phalanx.numpy.creation import zeros_like
from phalanx.numpy.exponents import log2
from phalanx.numpy.extrema import max, min
from phalanx.numpy.functional import vectorize
from phalanx.numpy.linalg.operands import in_lapack, pair, square
from phalanx.numpy.logic import isfinite
from phalanx.numpy.matrices import diagonal, eye, triu
from phalanx.numpy.promotion import ArrayLike
from phalanx.numpy.ranges import arange
from phalanx.numpy.reductions import all, sum
from phalanx.numpy.searching import where
from phalanx.primitives import linalg as prims
from phalanx.primitives.linalg.algebra import adjoint, as_complex

# ---- exponentials ---------------------------------------------------------------------------

# Of a degree of Padé's approximation, the largest norm for which it is exact to rounding; Higham
# 2005, in double and in single precision.
_NORMS_64 = {
    3: 1.495585217958292e-2,
    5: 2.539398330063230e-1,
    7: 9.504178996162932e-1,
    9: 2.097847961257068,
    13: 5.371920351148152,
}
_NORMS_32 = {3: 4.258730016922831e-1, 5: 1.880152677804762, 7: 3.925724783138660}


@one_program
def expm(A: ArrayLike, *, upper_triangular: bool = False, max_squarings: int = 16) -> Array:
    """Matrix exponential Σ Aᵏ / k!.

    By scaling and squaring of Padé approximations (Higham, The scaling and squaring method for the
    matrix exponential revisited, 2005).

    Args:
        A: square matrices [..., n, n].
        upper_triangular: whether A is known to be upper triangular.
        max_squarings: the largest number of squarings; a matrix that needs more, because its norm
            is about 2 to this power or larger, gives NaN.

    Returns:
        Matrices [..., n, n].

    Raises:
        ShapeError: the matrices are not square.

    >>> print(scipy.linalg.expm(jnp.array([[0.0, 1.0], [0.0, 0.0]])))
    [[1. 1.]
     [0. 1.]]
    >>> print(scipy.linalg.expm(jnp.diag(jnp.array([0.0, 1.0]))).round(4))
    [[1.     0.    ]
     [0.     2.7183]]
    """
    x = square("expm", in_lapack("expm", A))

    def one(x: Array) -> Array:
        return _expm(x, upper_triangular, max_squarings)

    return vectorize(one, signature="(n,n)->(n,n)")(x) if x.shape[-1] else x


def _squared(x: Array) -> Array:
    return x @ x


def _itself(x: Array) -> Array:
    return x


def _expm(x: Array, triangular: bool, most: int) -> Array:
    norms = _NORMS_64 if dtypes.finfo(x.dtype).bits == 64 else _NORMS_32
    bounds = [*norms.values()]
    size = max(sum(abs(x), axis=0))
    count = max(ops.ceil(log2(ops.max(size, bounds[-1]) / bounds[-1])))
    x = x / 2 ** ops.min(count, float(most))
    which = sum(np.asarray(bounds[:-1], size.dtype) < size, dtype=np.int32)

    def of_degree(degree: int) -> Callable[[Array], Array]:
        return lambda x: _pade(x, degree, triangular)

    result = switch(which, [of_degree(d) for d in norms], x)

    def step(result: Array, i: Array) -> tuple[Array, None]:
        return cond(i < count, _squared, _itself, result), None

    result, _ = scan(step, result, arange(most, dtype=size.dtype))
    return where(count > most, np.nan, result)


def _pade(x: Array, degree: int, triangular: bool) -> Array:
    """(v - u)⁻¹ (v + u), u the odd and v the even terms of the approximation's numerator."""
    factors = [
        math.factorial(2 * degree - k)
        / (math.factorial(degree - k) * math.factorial(k))
        * (math.factorial(degree) / math.factorial(2 * degree))
        for k in range(degree + 1)
    ]
    power = one = eye(x.shape[-1], dtype=x.dtype)
    square = x @ x
    u, v = one * factors[1], one * factors[0]
    for k in range(2, degree, 2):
        power = power @ square if k > 2 else square
        v, u = v + power * factors[k], u + power * factors[k + 1]
    u = x @ u
    if triangular:
        return prims.triangular_solve(v - u, v + u, left=True, low=False, op="N", unit=False)
    return prims.solve(v - u, v + u)


@overload
def expm_frechet(
    A: ArrayLike, E: ArrayLike, *, method: str | None = None, compute_expm: Literal[True] = True
) -> tuple[Array, Array]: ...
@overload
def expm_frechet(
    A: ArrayLike, E: ArrayLike, *, method: str | None = None, compute_expm: Literal[False]
) -> Array: ...
@overload
def expm_frechet(
    A: ArrayLike, E: ArrayLike, *, method: str | None = None, compute_expm: bool = True
) -> Any: ...
def expm_frechet(
    A: ArrayLike, E: ArrayLike, *, method: str | None = None, compute_expm: bool = True
) -> Any:
    """Matrix exponential of A, and its Fréchet derivative in the direction E.

    Args:
        A: square matrices [..., n, n].
        E: the directions, [..., n, n].
        method: None, "SPS" or "blockEnlarge", for compatibility: there is one method, by the
            exponential of a block matrix (Mathias, A chain rule for matrix functions, 1996).
        compute_expm: whether the exponential is part of the result.

    Returns:
        A tuple of the exponential and the derivative, each [..., n, n]; without ``compute_expm``
        the derivative alone.

    Raises:
        ValueError: ``method`` is another word.

    >>> a, e = jnp.zeros((2, 2)), jnp.array([[0.0, 1.0], [0.0, 0.0]])
    >>> value, derivative = scipy.linalg.expm_frechet(a, e)
    >>> print(derivative)
    [[0. 1.]
     [0. 0.]]
    """
    if method not in (None, "SPS", "blockEnlarge"):
        raise ValueError(
            f"expm_frechet: method must be None, 'SPS' or 'blockEnlarge', got {method!r}"
        )
    value, slope = _expm_frechet(A, E)
    return (value, slope) if compute_expm else slope


@one_program
def _expm_frechet(A: ArrayLike, E: ArrayLike) -> tuple[Array, Array]:
    """The exponential of [[a, e], [0, a]] has the derivative in its corner; Mathias 1996."""
    a, e = (square("expm_frechet", x) for x in pair("expm_frechet", A, E))
    last, n = a.ndim - 1, a.shape[-1]
    above = ops.concatenate(a, e, dim=last)
    below = ops.concatenate(zeros_like(a), a, dim=last)
    whole = expm(ops.concatenate(above, below, dim=last - 1))
    return whole[..., :n, :n], whole[..., :n, n:]


# ---- by the Schur form ----------------------------------------------------------------------


def _by_columns(n: int, column: Callable[[Any, Any], Any], start: Array) -> Array:
    """A matrix made column by column: ``column(j, matrix)`` gives column j."""

    def step(j: Any, matrix: Array) -> Array:
        here = arange(n) == j
        return where(here, ops.expand_dims(column(j, matrix), (1,)), matrix)

    return fori_loop(0, n, step, start)


def _solve_above(triangle: Array, right: Array, j: Any) -> Array:
    """x with triangle x = right in the rows above row ``j``, zeros below; where an element of the
    diagonal is zero, it counts as one."""
    n = triangle.shape[-1]
    above = arange(n) < j
    one = eye(n, dtype=triangle.dtype)
    on = diagonal(triangle)
    triangle = triangle + one * where(on == 0, 1, 0)
    triangle = where(above[:, None] & above, triangle, one)
    right = ops.expand_dims(where(above, right, 0), (1,))
    return prims.triangular_solve(triangle, right, left=True, low=False, op="N", unit=False)[:, 0]


def _of_triangle(who: str, a: Any, function: Callable[[Array], Array]) -> Array:
    """``function`` of the complex Schur triangle, turned back."""
    x = square(who, in_lapack(who, a))
    if not x.shape[-1]:
        return x
    t, z = prims.schur(as_complex(x), vectors=True)
    return z @ vectorize(function, signature="(n,n)->(n,n)")(t) @ adjoint(z)


@one_program
def sqrtm(A: ArrayLike, blocksize: int = 1) -> Array:
    """Principal square root of matrices: the r with r r = A whose eigenvalues have no negative real
    part.

    By the Schur form (Björck and Hammarling, A Schur method for the square root of a matrix, 1983).
    The result is always complex, where SciPy's is real if it can be.

    Args:
        A: square matrices [..., n, n].
        blocksize: must be 1.

    Returns:
        Complex matrices [..., n, n].

    Raises:
        ValueError: ``blocksize`` is not 1.

    >>> root = scipy.linalg.sqrtm(jnp.array([[5.0, 4.0], [4.0, 5.0]]))
    >>> print(root.real.round(4))
    [[2. 1.]
     [1. 2.]]
    """
    if blocksize != 1:
        raise ValueError(f"sqrtm: blocksize must be 1, got {blocksize!r}")
    return _of_triangle("sqrtm", A, _root)


def _root(t: Array) -> Array:
    n = t.shape[-1]
    roots = ops.sqrt(diagonal(t))
    one = eye(n, dtype=t.dtype)

    def column(j: Any, r: Array) -> Array:
        here = arange(n) == j
        root = sum(where(here, roots, 0))
        above = _solve_above(r + one * root, t @ where(here, 1, 0).astype(t.dtype), j)
        return above + where(here, roots, 0)

    return _by_columns(n, column, zeros_like(t))


def funm(A: ArrayLike, func: Callable[[Array], Array], disp: bool = True) -> Any:
    """Function of a matrix, as of its eigenvalues, by the Schur form and the recurrence of Parlett.

    (Parlett, A recurrence among the elements of functions of triangular matrices, 1976.) It is poor
    where eigenvalues are close to each other.

    Args:
        A: a matrix [n, n].
        func: an analytic function of arrays, elementwise, that takes complex ones.
        disp: if False, an estimate of the error is part of the result.

    Returns:
        A complex matrix [n, n]; without ``disp`` a tuple of it and the estimated error, relative to
        its norm.

    Raises:
        ShapeError: the matrices are not square.

    >>> print(scipy.linalg.funm(jnp.diag(jnp.array([1.0, 4.0])), jnp.sqrt).real)
    [[1. 0.]
     [0. 2.]]
    """
    x = square("funm", in_lapack("funm", A))
    t, z = prims.schur(as_complex(x), vectors=True)
    values = func(diagonal(t))
    n = t.shape[-1]
    one = eye(n, dtype=t.dtype)

    def column(j: Any, f: Array) -> Array:
        here = arange(n) == j
        mine, own = (sum(where(here, v, 0)) for v in (values, diagonal(t)))
        right = (f - one * mine) @ (t @ where(here, 1, 0).astype(t.dtype))
        return _solve_above(t - one * own, right, j) + where(here, values, 0)

    f = _by_columns(n, column, zeros_like(t)) if n else t
    out = z @ f @ adjoint(z)
    return out if disp else (out, _estimate(t, out))


def _estimate(t: Array, out: Array) -> Array:
    n = t.shape[-1]
    on, tolerance = diagonal(t), float(dtypes.finfo(t.dtype).eps)
    distances = abs(on[:, None] - on) + where(eye(n, dtype=bool), np.inf, 0)
    least = min(distances, initial=np.inf)
    least = where(least == 0, tolerance, least)
    beyond = max(sum(abs(triu(t, 1)), axis=0), initial=0)
    error = ops.clamp(tolerance, tolerance / least * beyond, 1.0)
    return where(all(isfinite(out)), error, np.inf)


@one_program
def solve_sylvester(
    A: ArrayLike, B: ArrayLike, C: ArrayLike, *, method: str = "schur", tol: float = 1e-8
) -> Array:
    """Solution x of the Sylvester equation A x + x B = C.

    Args:
        A: a matrix [m, m].
        B: a matrix [n, n].
        C: a matrix [m, n].
        method: "schur" (Bartels and Stewart, Solution of the matrix equation AX + XB = C, 1972), or
            "eigen", by eigenvectors, which is less accurate and has derivatives.
        tol: if a sum of eigenvalues of A and B is not larger in absolute value than this, there is
            no unique solution, and the result is NaN.

    Returns:
        x, a matrix [m, n].

    Raises:
        ValueError: ``method`` is another word.

    >>> a, b, c = jnp.array([[1.0, 0.0], [0.0, 2.0]]), jnp.array([[2.0]]), jnp.array([[6.0], [8.0]])
    >>> print(scipy.linalg.solve_sylvester(a, b, c))
    [[2.]
     [2.]]
    """
    if method not in ("schur", "eigen"):
        raise ValueError(f"solve_sylvester: method must be 'schur' or 'eigen', got {method!r}")
    a, c = pair("solve_sylvester", A, C)
    a, b = pair("solve_sylvester", a, B)
    c, _ = pair("solve_sylvester", c, b)
    _check_right_side(square("solve_sylvester", a), square("solve_sylvester", b), c)
    is_complex = dtypes.is_complex(c.dtype)
    a, b, right = as_complex(a), as_complex(b), as_complex(c)
    out, sums = (_by_schur if method == "schur" else _by_eigenvalues)(a, b, right)
    out = where(min(abs(sums), initial=np.inf) > tol, out, np.nan)
    return out if is_complex else ops.real(out)


def _check_right_side(a: Array, b: Array, c: Array) -> None:
    if a.ndim != 2 or b.ndim != 2 or c.shape != (a.shape[0], b.shape[0]):
        raise ShapeError(
            f"solve_sylvester: A [m, m], B [n, n] and C [m, n] are needed, got {a.aval}, {b.aval} "
            f"and {c.aval}"
        )


def _by_schur(a: Array, b: Array, c: Array) -> tuple[Array, Array]:
    """The solution, and all sums of eigenvalues; Bartels and Stewart 1972."""
    (r, u), (s, v) = prims.schur(a, vectors=True), prims.schur(b, vectors=True)
    right = adjoint(u) @ c @ v
    one = eye(r.shape[0], dtype=r.dtype)
    own = diagonal(s)

    def column(j: Any, y: Array) -> Array:
        here = where(arange(s.shape[0]) == j, 1, 0).astype(s.dtype)
        rest = ops.expand_dims((right - y @ s) @ here, (1,))
        triangle = r + one * sum(own * here)
        x = prims.triangular_solve(triangle, rest, left=True, low=False, op="N", unit=False)
        return x[:, 0]

    y = _by_columns(s.shape[0], column, zeros_like(right)) if right.size else right
    return u @ y @ adjoint(v), diagonal(r)[:, None] + own


def _by_eigenvalues(a: Array, b: Array, c: Array) -> tuple[Array, Array]:
    (w, u), (x, v) = (prims.eig(m, left=False, right=True) for m in (a, b))
    sums = w[:, None] + x
    return u @ (prims.solve(u, c @ v) / sums) @ prims.solve(v, eye(v.shape[0], dtype=v.dtype)), sums
