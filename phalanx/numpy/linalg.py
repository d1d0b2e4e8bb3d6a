"""Linear algebra of matrices [..., m, n], with NumPy's names: dimensions in front are a batch.

What is singular, or not finite, gives NaN or infinities, and no error.
"""

from __future__ import annotations

import operator
import sys
from typing import Any

from phalanx import ops
from phalanx.base.boundary import bound
from phalanx.core.types import Array
from phalanx.numpy.contraction import cross as _cross
from phalanx.numpy.contraction import matmul, outer, tensordot, vecdot
from phalanx.numpy.einstein import multi_dot
from phalanx.numpy.factorizations import (
    cholesky,
    eig,
    eigh,
    eigvals,
    eigvalsh,
    qr,
    svd,
    svdvals,
)
from phalanx.numpy.norms import matrix_norm, norm, vector_norm
from phalanx.numpy.promotion import ArrayLike, as_array
from phalanx.numpy.shaping import matrix_transpose
from phalanx.numpy.structured import diagonal as _diagonal
from phalanx.numpy.structured import eye
from phalanx.numpy.structured import trace as _trace
from phalanx.numpy.systems import (
    cond,
    det,
    inv,
    lstsq,
    matrix_rank,
    pinv,
    slogdet,
    solve,
    square,
    tensorinv,
    tensorsolve,
)

__all__ = [
    "cholesky",
    "cond",
    "cross",
    "det",
    "diagonal",
    "eig",
    "eigh",
    "eigvals",
    "eigvalsh",
    "inv",
    "lstsq",
    "matmul",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "matrix_transpose",
    "multi_dot",
    "norm",
    "outer",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "svd",
    "svdvals",
    "tensordot",
    "tensorinv",
    "tensorsolve",
    "trace",
    "vecdot",
    "vector_norm",
]


def matrix_power(a: ArrayLike, n: int) -> Array:
    """The product of n copies of square matrices [..., m, m]; of none, the identity; of a
    negative number of them, that of inverses.

    Args:
        a: square matrices [..., n, n].
        n: the exponent, an integer; negative for powers of the inverse.

    Returns:
        Matrices [..., n, n].

    >>> print(jnp.linalg.matrix_power(jnp.array([[1, 1], [0, 1]]), 3))
    [[1 3]
     [0 1]]
    """
    x = square("matrix_power", as_array("matrix_power", a))
    count = operator.index(n)
    if count < 0:
        x, count = inv(x), -count
    if count == 0:
        return ops.broadcast_to(eye(x.shape[-1], dtype=x.aval.dtype), x.shape)
    out: Any = None
    while True:
        if count % 2:
            out = x if out is None else matmul(out, x)
        count //= 2
        if not count:
            return out
        x = matmul(x, x)


def diagonal(x: ArrayLike, /, *, offset: int = 0) -> Array:
    """Diagonal ``offset`` of the matrices [..., n, m].

    Args:
        x: matrices [..., n, m].
        offset: which diagonal: 0 for the main one, positive above it, negative below.

    Returns:
        Vectors [..., min(n, m)], if the diagonal is the main one.

    >>> print(jnp.linalg.diagonal(jnp.array([[1, 2], [3, 4]])))
    [1 4]
    """
    return _diagonal(x, offset, -2, -1)


def trace(x: ArrayLike, /, *, offset: int = 0, dtype: Any = None) -> Array:
    """The sum of diagonal ``offset`` of the matrices [..., n, m].

    Args:
        x: matrices [..., n, m].
        offset: which diagonal: 0 for the main one, positive above it, negative below.
        dtype: the dtype of the result, and in which it is computed; None for that of ``x``, but at
            least 32 bits of integers.

    Returns:
        Numbers [...]; small integers are summed in 32 bits.

    >>> print(jnp.linalg.trace(jnp.array([[1, 2], [3, 4]])))
    5
    """
    return _trace(x, offset, -2, -1, dtype)


def cross(x1: ArrayLike, x2: ArrayLike, /, *, axis: int = -1) -> Array:
    """The vector product of vectors of length 3 along ``axis``.

    Args:
        x1: vectors of length 3 along ``axis``; the two broadcast.
        x2: vectors of length 3 along ``axis``; the two broadcast.
        axis: the axis along which it works, counted from the end if negative.

    Returns:
        Vectors along ``axis``, of the dtype to which both are promoted.

    >>> print(jnp.linalg.cross(jnp.array([1, 0, 0]), jnp.array([0, 1, 0])))
    [0 0 1]
    """
    return _cross(x1, x2, axis=axis)


bound(sys.modules[__name__])
