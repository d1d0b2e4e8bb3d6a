"""The unitary factor of the polar decomposition by products alone; of Hermitian matrices, the sign.

A QR factorization of a large matrix takes the compiler for TPUs minutes to write out, and waits for
column after column. Products of matrices are what TPUs are made for.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from phalanx.base import dtypes
from phalanx.core.builder import Builder, Value
from phalanx.core.types import ArrayType, typeof
from phalanx.primitives.basis import add, broadcast, mul, reduce_sum
from phalanx.primitives.compare import eq, select
from phalanx.primitives.elementwise import abs, div, sqrt
from phalanx.primitives.linalg.algebra import adjoint, complex_as, matmul
from phalanx.primitives.linalg.family import real_of
from phalanx.primitives.linalg.row_loops import repeated, row_of
from phalanx.primitives.reduce import reduce_max


def cubics(least: float, error: float) -> Iterator[tuple[float, float]]:
    """a and b of each step x (a + b xᴴx), which take singular values from ``least`` to 1 near to 1.

    Of the odd cubics each is the one that stays nearest to 1 between the singular values that there
    may be (Chen and Chow 2014). Those would take the greatest ones as low as the least, and drown
    them in rounding; so the least are taken to be no less than a tenth of the greatest.
    """
    low, high = least, 1.0
    while 1 - low > max(error, 1e-15):  # what can be told of numbers here
        bottom = max(low, high / 10)
        scale = np.sqrt(3 / (high * high + bottom * high + bottom * bottom))
        height = 4 / (2 + bottom * high * (bottom + high) * scale**3)
        a, b = 1.5 * height * scale, -0.5 * height * scale**3
        yield float(a), float(b)
        low, high = min(x * (a + b * x * x) for x in (low, high)), height


def polar_factor(b: Builder, x: Value, least: float) -> Value:
    """The unitary factor of ``x``, whose singular values are from ``least`` to 1.

    Those that are less come to lie between 0 and 1, with the same vectors.
    """
    dtype = real_of(b.type(x).dtype)
    factors = np.asarray([*cubics(least, float(np.finfo(dtype).eps))], dtype)
    table = b.constant(factors, dtype, factors.shape)

    def step(b: Builder, i: Value, x: Value) -> list[Value]:
        row = row_of(b, table, i)
        each = [b.reshape(b.slice(row, (k,), (k + 1,), (1,)), ()) for k in range(2)]
        return [b.traced(_stepped, x, *each)]

    return repeated(b, len(factors), [x], step)[0]


def _stepped(x: Any, a: Any, b: Any) -> Any:
    cube = matmul(matmul(x, adjoint(x)), x)
    whole = (complex_as(broadcast(k, shape=typeof(x).shape, dims=()), x) for k in (a, b))
    return add(*(mul(k, power) for k, power in zip(whole, (x, cube), strict=True)))


# ---- sizes ----------------------------------------------------------------------------------


def rounding_error(type: ArrayType) -> float:
    """How far numbers of the dtype are apart, at 1."""
    return float(dtypes.finfo(type.dtype).eps)


def scaled(x: Any) -> Any:
    """``x``, divided so that no singular value is above 1."""
    shape, dims = typeof(x).shape, tuple(range(typeof(x).ndim - 2))
    return div(x, complex_as(broadcast(norm_bound(x), shape=shape, dims=dims), x))


def norm_bound(x: Any) -> Any:
    """At least the largest singular value, and at most √n times that; 1 for matrices of zeros."""
    size, last = abs(x), typeof(x).ndim - 1
    columns, rows = (reduce_sum(size, dims=(d,)) for d in (last - 1, last))
    if not typeof(x).shape[-1]:
        return reduce_sum(rows, dims=(last - 1,))
    both = [sqrt(reduce_max(each, dims=(last - 1,))) for each in (columns, rows)]
    most = mul(*both)
    return select(eq(most, 0), 1, most)
