"""How exactly products of float32 are computed: three words, and what users say for them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from phalanx.base import dtypes
from phalanx.base.config import config
from phalanx.base.precision import PRECISIONS, DotAlgorithmPreset, Precision


class DotAlgorithm(NamedTuple):
    """A way of multiplying in full; see ``DotAlgorithmPreset``.

    Attributes:
        lhs_precision_type: the dtype of the parts of lhs.
        rhs_precision_type: that of the parts of rhs.
        accumulation_type: that of the sums.
        lhs_component_count: into how many parts each element of lhs falls.
        rhs_component_count: the same of rhs.
        num_primitive_operations: how many products of parts there are.
        allow_imprecise_accumulation: whether sums may be coarser than their dtype.

    Args:
        lhs_precision_type: the dtype to which the left operand is rounded.
        rhs_precision_type: that of the right one.
        accumulation_type: the dtype in which products are added up.
        lhs_component_count: into how many numbers of that dtype an element of the left one is
            split.
        rhs_component_count: the same of the right one.
        num_primitive_operations: how many products of such parts are made.
        allow_imprecise_accumulation: whether hardware may add up in fewer bits.

    >>> from phalanx import lax
    >>> half, full = jnp.bfloat16, jnp.float32
    >>> three = lax.DotAlgorithm(half, half, full, num_primitive_operations=3)
    >>> lax.dot(jnp.ones(2), jnp.ones(2), precision=three).dtype
    dtype('float32')
    """

    lhs_precision_type: Any
    rhs_precision_type: Any
    accumulation_type: Any
    lhs_component_count: int = 1
    rhs_component_count: int = 1
    num_primitive_operations: int = 1
    allow_imprecise_accumulation: bool = False


def canonical_precision(who: str, precision: Any) -> tuple[str, str] | None:
    """``precision``, one for both operands or a pair, as words; None is the configured default.

    Raises:
        ValueError: it names no precision.
    """
    if precision is None:
        precision = config.default_matmul_precision
        if precision is None:
            return None
    several = isinstance(precision, (tuple, list)) and not isinstance(precision, DotAlgorithm)
    pair: list[Any] = [*precision] if several else [precision] * 2
    words = [_word(p) for p in pair]
    if len(words) != 2 or None in words:
        raise ValueError(
            f"{who}: precision must be None, 'default', 'high', 'highest', a Precision, a "
            f"DotAlgorithmPreset, a DotAlgorithm or a pair of these, got {precision!r}"
        )
    first, second = words
    return str(first), str(second)


def _word(p: Any) -> str | None:
    if p is None:
        return "default"
    if isinstance(p, Precision):
        return p.name.lower()
    if isinstance(p, DotAlgorithm):
        return _of_algorithm(p)
    name = p.name if isinstance(p, DotAlgorithmPreset) else p
    return PRECISIONS.get(name.lower()) if isinstance(name, str) else None


def _of_algorithm(p: DotAlgorithm) -> str:
    """The precision of a way of multiplying, by the bits of the mantissas of its parts."""
    parts = (p.lhs_precision_type, p.rhs_precision_type)
    bits = min(dtypes.finfo(np.dtype(t)).nmant + 1 for t in parts)
    if bits >= 24 or p.num_primitive_operations >= 6:
        return "highest"
    return "high" if p.num_primitive_operations >= 3 else "default"
