"""Linear algebra that needs products with a matrix alone, or its entries."""

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
    """x, where a @ x = b for a square matrix a of ``BCSR``, as an array.

    The matrix is made dense and factorized.

    Args:
        data: the entries.
        indices: their columns.
        indptr: where each row begins.
        b: the right side.
        tol: accepted.
        reorder: accepted.

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
    """The largest eigenvalues of a symmetric matrix, by products with it alone.

    Knyazev, "Toward the optimal preconditioned eigensolver", 2001, without a preconditioner: in
    each step the best vectors are sought in the space of the last ones, of what these leave over,
    and of the last change.

    Args:
        A: a symmetric matrix, also a ``BCOO``, or a function of blocks of vectors.
        X: vectors to begin with, [n, k], with 5 k < n.
        m: after how many steps it ends at the latest.
        tol: what is left over, against the largest eigenvalue and for each row of the matrix, at
            which it ends; by default the precision of the dtype.

    Returns:
        The k eigenvalues, the largest first; the eigenvectors; how many steps were taken.

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
