"""Linear algebra with NumPy's names, of batches of matrices [..., m, n].

Singular matrices, and those that are not finite, give infinities or NaN where NumPy raises
``LinAlgError``, because values are not known while a function is traced.
"""

from __future__ import annotations

import operator
import sys
from typing import Any

from phalanx import primitives as ops
from phalanx.base.boundary import bound
from phalanx.core.types import Array
from phalanx.numpy.einsums import multi_dot
from phalanx.numpy.linalg.decompositions import cholesky, qr, svd, svdvals
from phalanx.numpy.linalg.eigenvalues import eig, eigh, eigvals, eigvalsh
from phalanx.numpy.linalg.equations import inv, lstsq, pinv, solve, tensorinv, tensorsolve
from phalanx.numpy.linalg.norms import (
    cond,
    det,
    matrix_norm,
    matrix_rank,
    norm,
    slogdet,
    vector_norm,
)
from phalanx.numpy.linalg.operands import square
from phalanx.numpy.manipulation import matrix_transpose
from phalanx.numpy.matrices import diagonal as _diagonal
from phalanx.numpy.matrices import eye
from phalanx.numpy.matrices import trace as _trace
from phalanx.numpy.products import cross as _cross
from phalanx.numpy.products import matmul, outer, tensordot, vecdot
from phalanx.numpy.promotion import ArrayLike, as_array

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
    """Square matrices to an integer power; of a negative one the inverse is taken first.

    Args:
        a: square matrices [..., n, n].
        n: the exponent, an integer, not traced; of 0 the result is the identity.

    Returns:
        Matrices [..., n, n].

    Raises:
        ShapeError: the matrices are not square.

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
    """Diagonals of matrices.

    Args:
        x: matrices [..., m, n].
        offset: which diagonal: 0 for the main one, positive above it, negative below.

    Returns:
        Vectors [..., k], with k = min(m, n) for the main diagonal.

    Raises:
        ValueError: ``x`` has fewer than two dimensions.

    >>> print(jnp.linalg.diagonal(jnp.array([[1, 2], [3, 4]])))
    [1 4]
    """
    return _diagonal(x, offset, -2, -1)


def trace(x: ArrayLike, /, *, offset: int = 0, dtype: Any = None) -> Array:
    """Sums of the diagonals of matrices.

    Args:
        x: matrices [..., m, n].
        offset: which diagonal: 0 for the main one, positive above it, negative below.
        dtype: the dtype in which elements are added up, and of the result; None for that of ``x``,
            or 32 bits for smaller integers.

    Returns:
        Numbers [...].

    Raises:
        ValueError: ``x`` has fewer than two dimensions.

    >>> print(jnp.linalg.trace(jnp.array([[1, 2], [3, 4]])))
    5
    """
    return _trace(x, offset, -2, -1, dtype)


def cross(x1: ArrayLike, x2: ArrayLike, /, *, axis: int = -1) -> Array:
    """Cross product of vectors of length 3.

    Args:
        x1: vectors of length 3 along ``axis``.
        x2: others; the remaining axes broadcast.
        axis: the axis of both along which vectors lie; negative from the end.

    Returns:
        Vectors of length 3 along ``axis``, of the promoted dtype.

    Raises:
        AxisError: there is no dimension ``axis``.
        ValueError: the vectors have other lengths than 2 and 3.

    >>> print(jnp.linalg.cross(jnp.array([1, 0, 0]), jnp.array([0, 1, 0])))
    [0 0 1]
    """
    return _cross(x1, x2, axis=axis)


bound(sys.modules[__name__])
