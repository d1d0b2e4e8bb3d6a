"""Sparse linear algebra: direct solution, and eigenvalues of large symmetric matrices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import phalanx.numpy as jnp
from phalanx import lax
from phalanx.experimental.sparse.bcsr import BCSR

__all__ = ["lobpcg_standard", "spsolve"]


def spsolve(
    data: Any, indices: Any, indptr: Any, b: Any, tol: float = 1e-6, reorder: int = 1
) -> Any:
    """Solution x of a x = b, for a square matrix a in row format.

    The matrix is made dense and solved by LU decomposition, so it must fit into memory as a dense
    one. For large matrices use ``phalanx.scipy.sparse.linalg.cg`` or ``gmres``, which need products
    alone.

    Args:
        data: the entries of a, as ``BCSR.data``.
        indices: their columns, as ``BCSR.indices``.
        indptr: where each row begins, as ``BCSR.indptr``.
        b: the right side, a vector [n].
        tol: accepted, and ignored.
        reorder: accepted, and ignored.

    Returns:
        x, a dense vector [n].

    >>> import phalanx.numpy as jnp
    >>> m = BCSR.fromdense(jnp.array([[2.0, 0.0], [1.0, 4.0]]))
    >>> print(spsolve(m.data, m.indices, m.indptr, jnp.array([2.0, 9.0])))
    [1. 2.]
    """
    n = len(indptr) - 1
    return jnp.linalg.solve(BCSR((data, indices, indptr), shape=(n, n)).todense(), b)


def lobpcg_standard(
    A: Any | Callable[[Any], Any], X: Any, m: int = 100, tol: float | None = None
) -> tuple[Any, Any, Any]:
    """Largest eigenvalues and eigenvectors of a symmetric matrix, by products with it alone.

    The LOBPCG method without a preconditioner (Knyazev, Toward the optimal preconditioned
    eigensolver, 2001): each step takes the best vectors in the span of the present ones, their
    residuals and the last change.

    Args:
        A: a symmetric matrix [n, n], dense or sparse, or a function that multiplies blocks of
            vectors [n, k] by it.
        X: the initial vectors [n, k], linearly independent, with 5 k < n.
        m: the largest number of steps.
        tol: it ends when the residuals, relative to the largest eigenvalue and to n, are smaller;
            None for the precision of the dtype.

    Returns:
        A tuple: the k largest eigenvalues, in descending order; their eigenvectors [n, k]; the
        number of steps taken.

    Raises:
        ValueError: ``X`` is of another shape.

    >>> import numpy as np
    >>> a = jnp.diag(jnp.arange(20.0))
    >>> values, _, _ = lobpcg_standard(a, jnp.eye(20)[:, 18:] + 0.1)
    >>> print(jnp.round(values, 3))
    [19. 18.]
    """
    first = jnp.asarray(X)
    if first.ndim != 2 or 5 * first.shape[1] >= first.shape[0]:
        raise ValueError(
            "lobpcg_standard: X must be a few vectors, expected search dim * 5 < matrix dim, got "
            f"{first.aval}"
        )
    n, k = first.shape
    eps = float(jnp.finfo(first.dtype).eps)
    bound = (eps if tol is None else tol) * n

    def times(v: Any) -> Any:
        return A(v) if callable(A) else A @ v

    def best(space: Any) -> tuple[Any, Any, Any]:
        """The best vectors in a space, their eigenvalues, and what they leave over."""
        basis = jnp.linalg.qr(space)[0]
        small = basis.T @ times(basis)
        values, vectors = jnp.linalg.eigh((small + small.T) / 2)
        values, found = values[::-1][:k], basis @ vectors[:, ::-1][:, :k]
        return values, found, times(found) - found * values

    def unfinished(state: Any) -> Any:
        step, values, _, _, rest = state
        left = jnp.linalg.norm(rest, axis=0)
        return (step < m) & jnp.any(left > bound * jnp.max(jnp.abs(values)))

    def advance(state: Any) -> Any:
        step, _, x, change, rest = state
        values, found, after = best(jnp.concatenate([x, rest, change], axis=1))
        return step + 1, values, found, found - x @ (x.T @ found), after

    values, x, rest = best(first)
    start = (jnp.zeros((), int), values, x, jnp.zeros_like(x), rest)
    step, values, x, _, _ = lax.while_loop(unfinished, advance, start)
    return values, x, step
