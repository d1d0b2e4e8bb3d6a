"""Polynomials, element by element."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from phalanx import primitives as ops
from phalanx.core.types import Array, is_scalar, typeof
from phalanx.lax.loops import scan
from phalanx.lax.operands import elementwise
from phalanx.lax.values import stage
from phalanx.primitives.basis import full

_MOST_WRITTEN_OUT = 8


def polynomial(x: Any, coeffs: Sequence[Any], *, unroll: int | None = None) -> Array:
    """The value of a polynomial, a₀ + a₁ x + a₂ x² + ..., by Horner's rule.

    Args:
        x: an array.
        coeffs: a₀, a₁, ...: scalars, or arrays of the shape of x; none give 0.
        unroll: how many terms are written out in the program, 8 if not given; more are a loop.

    Returns:
        An array of the shape and dtype of ``x``.

    Raises:
        TypeError: the dtypes differ, or the shapes.

    >>> lax.polynomial(np.float32([3, 0]), [1.0, 5.0, 2.0])
    Array([34.,  1.], dtype=float32)
    """
    x, *terms = elementwise("polynomial", stage(x), *coeffs)
    type = typeof(x)
    filled = [full(type.shape, t, type.dtype) if is_scalar(t) else t for t in terms or [0]]
    total, rest = filled[-1], filled[:-1]
    if len(rest) <= (_MOST_WRITTEN_OUT if unroll is None else unroll):
        for term in reversed(rest):
            total = ops.add(ops.mul(total, x), term)
        return total

    def step(total: Array, term: Array) -> tuple[Array, None]:
        return ops.add(ops.mul(total, x), term), None

    return scan(step, total, ops.stack(rest, 0), reverse=True)[0]
