"""Iterative solvers of linear equations, which need products with the matrix and nothing else.

Vectors are trees of arrays; inside, they are one array. Derivatives are those of the equation
(``lax.custom_linear_solve``), and solve it again, or its transpose.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import phalanx.numpy as jnp
from phalanx import lax
from phalanx.base import dtypes, tree
from phalanx.base.boundary import bound
from phalanx.core.types import Array, typeof

__all__ = ["bicgstab", "cg", "gmres"]

Product = Callable[[Any], Any]


def cg(
    A: Any,
    b: Any,
    x0: Any = None,
    *,
    tol: float = 1e-5,
    atol: float = 0.0,
    maxiter: int | None = None,
    M: Any = None,
) -> tuple[Any, None]:
    """The x with A x = b for a Hermitian positive definite A, by conjugate gradients.

    Hestenes and Stiefel (1952).

    Args:
        A: a matrix [n, n], dense or sparse, or a linear function from a tree of arrays to one
            like it.
        b: the right side, a vector [n] or a tree of arrays.
        x0: where the iteration starts, a tree like ``b``; zeros if not given.
        tol: the relative tolerance: the norm of the residual b - A x that is small enough, as a
            fraction of that of ``b``.
        atol: the absolute tolerance of that norm; the larger of the two counts.
        maxiter: the largest number of steps; ten times the size of ``b`` if not given.
        M: a preconditioner: an approximation of the inverse of A, a matrix or a function.

    Returns:
        The solution, like b, and None.

    Raises:
        TypeError: A is neither, or x0 or a product is not like b.

    >>> import phalanx
    >>> x, _ = phalanx.scipy.sparse.linalg.cg(jnp.array([[2.0, 1.0], [1.0, 3.0]]), jnp.ones(2))
    >>> print(x.round(4))
    [0.4 0.2]
    """
    return _solved("cg", _cg, A, b, x0, tol, atol, maxiter, M, symmetric=True)


def bicgstab(
    A: Any,
    b: Any,
    x0: Any = None,
    *,
    tol: float = 1e-5,
    atol: float = 0.0,
    maxiter: int | None = None,
    M: Any = None,
) -> tuple[Any, None]:
    """The x with A x = b for any regular A, by stabilized biconjugate gradients.

    H. A. van der Vorst, SIAM J. Sci. Stat. Comput. 13 (1992). The parameters are those of ``cg``.

    Args:
        A: a matrix [n, n], dense or sparse, or a linear function from a tree of arrays to one
            like it.
        b: the right side, a vector [n] or a tree of arrays.
        x0: where the iteration starts, a tree like ``b``; zeros if not given.
        tol: the relative tolerance: the norm of the residual b - A x that is small enough, as a
            fraction of that of ``b``.
        atol: the absolute tolerance of that norm; the larger of the two counts.
        maxiter: the largest number of steps; ten times the size of ``b`` if not given.
        M: a preconditioner: an approximation of the inverse of A, a matrix or a function.

    Returns:
        x, a tree like ``b``, and None.

    Raises:
        ShapeError: the lengths that are summed over differ.

    >>> import phalanx
    >>> a = jnp.array([[2.0, 1.0], [0.0, 3.0]])
    >>> x, _ = phalanx.scipy.sparse.linalg.bicgstab(a, jnp.ones(2))
    >>> print(x.round(4))
    [0.3333 0.3333]
    """
    return _solved("bicgstab", _bicgstab, A, b, x0, tol, atol, maxiter, M)


def gmres(
    A: Any,
    b: Any,
    x0: Any = None,
    *,
    tol: float = 1e-5,
    atol: float = 0.0,
    restart: int = 20,
    maxiter: int | None = None,
    M: Any = None,
    solve_method: str = "batched",
) -> tuple[Any, Array]:
    """The x with A x = b for any regular A, by generalized minimal residuals.

    Saad and Schultz, SIAM J. Sci. Stat. Comput. 7 (1986). The parameters are those of ``cg``,
    but for ``restart``, ``maxiter`` and ``solve_method``.

    Args:
        A: a regular matrix [n, n], dense or sparse, or a linear function from a tree of arrays
            to one like it.
        b: the right side, a vector [n] or a tree of arrays.
        x0: where the iteration starts, a tree like ``b``; zeros if not given.
        tol: the relative tolerance: the norm of the residual b - A x that is small enough, as a
            fraction of that of ``b``.
        atol: the absolute tolerance of that norm; the larger of the two counts.
        restart: the dimension of the Krylov subspace: after so many steps the method restarts from
            what it has found. So many vectors are stored.
        maxiter: how many restarts there are at most.
        M: a preconditioner: an approximation of the inverse of A, a matrix or a function.
        solve_method: 'batched' or 'incremental'; both are the same here.

    Returns:
        x, and 0, or -1 where x has nan.

    Raises:
        ValueError: there is no such method.

    >>> import phalanx
    >>> a = jnp.array([[2.0, 1.0], [0.0, 3.0]])
    >>> x, _ = phalanx.scipy.sparse.linalg.gmres(a, jnp.ones(2))
    >>> print(x.round(4))
    [0.3333 0.3333]
    """
    if solve_method not in ("batched", "incremental"):
        raise ValueError(
            f"gmres: solve_method must be 'batched' or 'incremental', got {solve_method!r}"
        )
    x, _ = _solved("gmres", partial(_gmres, restart), A, b, x0, tol, atol, maxiter, M)
    failed = sum((jnp.isnan(v).any() for v in tree.leaves(x)), jnp.array(False))
    return x, jnp.where(failed, -1, 0)


# ---- trees as vectors -----------------------------------------------------------------------


def _solved(
    who: str,
    method: Callable[..., Any],
    A: Any,
    b: Any,
    x0: Any,
    tol: float,
    atol: float,
    maxiter: int | None,
    M: Any,
    symmetric: bool = False,
) -> tuple[Any, None]:
    b = tree.map(_inexact, b)
    product, preconditioner = _function(who, "A", A), _function(who, "M", M)
    start = tree.map(jnp.zeros_like, b) if x0 is None else x0
    size = sum(typeof(x).size for x in tree.leaves(b))
    steps = 10 * size if maxiter is None else maxiter

    def solve(begin: Any, product: Product, b: Any) -> Any:
        vector, whole = _raveled(who, b)
        limit = jnp.maximum(tol * _norm(vector), atol)

        def multiply(v: Any) -> Any:
            return _raveled(who, product(whole(v)), b)[0]

        def precondition(v: Any) -> Any:
            return _raveled(who, preconditioner(whole(v)), b)[0]

        found = method(
            multiply,
            vector,
            _raveled(who, begin, b)[0],
            precondition,
            limit,
            steps,
        )
        return whole(found)

    real = not any(dtypes.is_complex(typeof(x).dtype) for x in tree.leaves(b))
    again = partial(solve, tree.map(jnp.zeros_like, b))
    x = lax.custom_linear_solve(
        product, b, partial(solve, start), again, symmetric=symmetric and real
    )
    return x, None


def _inexact(x: Any) -> Any:
    x = jnp.asarray(x)
    return x if dtypes.is_inexact(x.dtype) else x.astype(dtypes.to_inexact(x.dtype))


def _function(who: str, name: str, A: Any) -> Product:
    if A is None:
        return lambda x: x
    if callable(A):
        return A
    if getattr(A, "ndim", None) == 2 and A.shape[0] == A.shape[1]:
        # a sparse matrix, which is a tree of arrays, has a product of its own
        matrix = jnp.asarray(A) if tree.is_leaf(A) else A
        return lambda x: matrix @ x
    raise TypeError(f"{who}: {name} must be a square matrix or a function, got {A!r}")


def _raveled(who: str, x: Any, like: Any = None) -> tuple[Any, Callable[[Any], Any]]:
    """The leaves of ``x`` one after the other, and the function that takes them apart again.

    Raises:
        TypeError: ``x`` has not the structure and the shapes of ``like``.
    """
    leaves, structure = tree.flatten(x)
    types = [typeof(leaf) for leaf in leaves]
    if like is not None:
        wanted, its = tree.flatten(like)
        if structure != its or [t.shape for t in types] != [typeof(w).shape for w in wanted]:
            raise TypeError(
                f"{who}: x0 and products must be like b, {tree.map(typeof, like)}, got "
                f"{structure.unflatten(types)}"
            )
    parts = [jnp.ravel(leaf) for leaf in leaves]
    vector = jnp.concatenate(parts) if parts else jnp.zeros(0)

    def whole(v: Any) -> Any:
        taken: list[Any] = []
        first = 0
        for t in types:
            part = v[first : first + t.size].reshape(t.shape)
            taken.append(part if dtypes.is_complex(t.dtype) else jnp.real(part).astype(t.dtype))
            first += t.size
        return structure.unflatten(taken)

    return vector, whole


def _norm(v: Any) -> Any:
    return jnp.sqrt(jnp.sum(jnp.real(v * jnp.conj(v))))


def _quotient(a: Any, b: Any) -> Any:
    """a / b, and 0 where b is 0."""
    return jnp.where(b == 0, 0, a / jnp.where(b == 0, 1, b))


# ---- the methods ----------------------------------------------------------------------------


def _begun(product: Product, b: Any, x: Any) -> tuple[Any, Any]:
    """Where to begin, and the residual there; NaN where that has no length, as no step is taken."""
    r = b - product(x)
    return x + 0 * _norm(r), r


def _cg(product: Product, b: Any, x: Any, M: Product, limit: Any, maxiter: int) -> Any:
    x, r = _begun(product, b, x)
    z = M(r)

    def go_on(state: tuple[Any, ...]) -> Any:
        k, _, r, _, _ = state
        return (k < maxiter) & (_norm(r) > limit)

    def step(state: tuple[Any, ...]) -> tuple[Any, ...]:
        k, x, r, p, rz = state
        ap = product(p)
        alpha = _quotient(rz, jnp.vdot(p, ap))
        x, r = x + alpha * p, r - alpha * ap
        z = M(r)
        new = jnp.vdot(r, z)
        return k + 1, x, r, z + _quotient(new, rz) * p, new

    return lax.while_loop(go_on, step, (0, x, r, z, jnp.vdot(r, z)))[1]


def _bicgstab(product: Product, b: Any, x: Any, M: Product, limit: Any, maxiter: int) -> Any:
    x, first = _begun(product, b, x)
    one = jnp.ones((), first.dtype)

    def go_on(state: tuple[Any, ...]) -> Any:
        k, _, r, _, _, rho, _, omega = state
        return (k < maxiter) & (_norm(r) > limit) & (rho != 0) & (omega != 0)

    def step(state: tuple[Any, ...]) -> tuple[Any, ...]:
        k, x, r, p, v, rho, alpha, omega = state
        new = jnp.vdot(first, r)
        p = r + _quotient(new, rho) * _quotient(alpha, omega) * (p - omega * v)
        ahead = M(p)
        v = product(ahead)
        alpha = _quotient(new, jnp.vdot(first, v))
        s = r - alpha * v
        aside = M(s)
        t = product(aside)
        omega = _quotient(jnp.vdot(t, s), jnp.vdot(t, t))
        return k + 1, x + alpha * ahead + omega * aside, s - omega * t, p, v, new, alpha, omega

    start = (0, x, first, 0 * first, 0 * first, one, one, one)
    return lax.while_loop(go_on, step, start)[1]


def _gmres(
    restart: int, product: Product, b: Any, x: Any, M: Product, limit: Any, maxiter: int
) -> Any:
    steps = max(1, min(restart, b.size))

    def go_on(state: tuple[Any, ...]) -> Any:
        k, _, r = state
        return (k < maxiter) & (_norm(r) > limit)

    def step(state: tuple[Any, ...]) -> tuple[Any, ...]:
        k, x, r = state
        x = x + M(_least_residual(lambda v: product(M(v)), r, steps))
        return k + 1, x, b - product(x)

    return lax.while_loop(go_on, step, (0, *_begun(product, b, x)))[1]


def _least_residual(product: Product, r: Any, steps: int) -> Any:
    """The x in the span of r, A r, A² r, ... for which r - A x is shortest."""
    length = _norm(r)
    basis = jnp.zeros((steps + 1, r.size), r.dtype).at[0].set(_quotient(r, length))

    def extend(k: Any, state: tuple[Any, Any]) -> tuple[Any, Any]:
        """Arnoldi's step; orthogonal twice, so that it is so after rounding."""
        basis, columns = state
        w = product(basis[k])
        before, h = _norm(w), jnp.zeros(steps + 1, r.dtype)
        for _ in range(2):
            share = jnp.conj(basis) @ w
            w, h = w - share @ basis, h + share
        rest = _norm(w)
        rest = jnp.where(rest > 8 * dtypes.finfo(r.dtype).eps * before, rest, 0)
        basis = basis.at[k + 1].set(_quotient(w, rest))
        return basis, columns.at[:, k].set(h.at[k + 1].set(rest))

    columns = jnp.zeros((steps + 1, steps), r.dtype)
    basis, columns = lax.fori_loop(0, steps, extend, (basis, columns))
    side = jnp.zeros(steps + 1, r.dtype).at[0].set(length)
    return _hessenberg_least_squares(columns, side) @ basis[:-1]


def _hessenberg_least_squares(h: Any, side: Any) -> Any:
    """The y for which side - h y is shortest, by Givens' rotations; Golub and Van Loan, 5.2.5."""
    steps = h.shape[1]

    def rotate(k: Any, state: tuple[Any, Any]) -> tuple[Any, Any]:
        h, side = state
        a, b = h[k, k], h[k + 1, k]
        size = jnp.sqrt(jnp.real(a * jnp.conj(a) + b * jnp.conj(b)))
        c, s = jnp.where(size == 0, 1, _quotient(a, size)), _quotient(b, size)
        upper, lower = h[k], h[k + 1]
        h = h.at[k].set(jnp.conj(c) * upper + jnp.conj(s) * lower)
        h = h.at[k + 1].set(c * lower - s * upper)
        first, second = side[k], side[k + 1]
        side = side.at[k].set(jnp.conj(c) * first + jnp.conj(s) * second)
        return h, side.at[k + 1].set(c * second - s * first)

    h, side = lax.fori_loop(0, steps, rotate, (h, side))
    triangle, side = h[:-1], side[:-1]
    diagonal = jnp.diagonal(triangle)
    scale = jnp.max(jnp.abs(diagonal), initial=0)
    found = jnp.abs(diagonal) > dtypes.finfo(jnp.real(h).dtype).eps * scale
    triangle = jnp.where(jnp.diag(~found), 1, triangle)
    y = lax.linalg.triangular_solve(
        triangle, jnp.where(found, side, 0)[:, None], left_side=True, lower=False
    )
    return y[:, 0]


bound(sys.modules[__name__])
