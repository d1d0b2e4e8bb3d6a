"""Changes of factorized and of symmetric matrices."""

from __future__ import annotations

from typing import Any

from phalanx import ops
from phalanx.base.errors import ShapeError
from phalanx.core.types import Array, typeof
from phalanx.lax.index import dynamic_index_in_dim, dynamic_update_index_in_dim
from phalanx.lax.loops import fori_loop
from phalanx.lax.operands import accept
from phalanx.ops.linalg.algebra import lower_part, matmul, matrix_transposed, upper
from phalanx.ops.linalg.family import check_square


def cholesky_update(r_matrix: Any, w_vector: Any) -> Array:
    """The upper triangle s with sᵀ s = rᵀ r + w wᵀ, in time n².

    Args:
        r_matrix: an upper triangle [n, n] with a positive diagonal, real.
        w_vector: [n].

    Returns:
        Triangles [..., n, n].

    Raises:
        ShapeError: the shapes are others.
        TypeError: the dtypes differ, or are not float32 or float64.

    >>> print(lax.linalg.cholesky_update(np.float32([[3]]), np.float32([4])))
    [[5.]]
    """
    r, w = accept("linalg.cholesky_update", r_matrix), accept("linalg.cholesky_update", w_vector)
    kind = typeof(r)
    check_square("cholesky_update", kind)
    n = kind.shape[-1]
    if kind.ndim != 2 or typeof(w).shape != (n,) or typeof(w).dtype != kind.dtype:
        raise ShapeError(
            f"cholesky_update: a matrix [n, n] and a vector [n] of one dtype are needed, got "
            f"{kind} and {typeof(w)}"
        )

    def rotate(k: Any, state: tuple[Any, Any]) -> tuple[Any, Any]:
        """Turn row k and w so that element k of w becomes 0; Golub and Van Loan, section 6.5."""
        r, w = state
        row = dynamic_index_in_dim(r, k, 0, keepdims=False)
        a, b = (dynamic_index_in_dim(x, k, 0, keepdims=False) for x in (row, w))
        length = ops.sqrt(ops.add(ops.mul(a, a), ops.mul(b, b)))
        cos, sin = (ops.broadcast(ops.div(x, length), shape=(n,), dims=()) for x in (a, b))
        turned = ops.add(ops.mul(row, cos), ops.mul(w, sin))
        w = ops.sub(ops.mul(w, cos), ops.mul(row, sin))
        return dynamic_update_index_in_dim(r, turned, k, 0), w

    return fori_loop(0, n, rotate, (upper(r), w))[0] if n else r


def symmetric_product(
    a_matrix: Any,
    c_matrix: Any,
    *,
    alpha: float = 1.0,
    beta: float = 0.0,
    symmetrize_output: bool = False,
) -> Array:
    """alpha a aᵀ + beta c, of symmetric c.

    Args:
        a_matrix: [..., n, k].
        c_matrix: [..., n, n].
        alpha: the factor of the product.
        beta: a number, by which ``c_matrix`` is multiplied.
        symmetrize_output: whether the upper triangle is that of the lower one.

    Returns:
        Matrices of the shape of ``c_matrix``.

    Raises:
        TypeError: the dtypes differ.
        ValueError: ``permutation`` does not name each dimension once.

    >>> a = np.float32([[1], [2]])
    >>> print(lax.linalg.symmetric_product(a, np.eye(2, dtype=np.float32), beta=1.0))
    [[2. 2.]
     [2. 5.]]
    """
    who = "linalg.symmetric_product"
    a, c = accept(who, a_matrix), accept(who, c_matrix)
    out = ops.add(ops.mul(matmul(a, matrix_transposed(a)), alpha), ops.mul(c, beta))
    if not symmetrize_output:
        return out
    return ops.add(lower_part(out), matrix_transposed(lower_part(out, 1)))
