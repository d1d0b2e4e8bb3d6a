"""Running sums, products and extrema along a dimension.

They are lowered as a window that reaches from the first element to the current one. XLA turns
such windows into a scan by blocks: linear work, no quadratic memory.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from phalanx.base import dtypes, wide
from phalanx.core.axes import Axis
from phalanx.core.builder import Builder, Combine
from phalanx.core.correspond import ALL, alike_but
from phalanx.core.primitive import (
    Active,
    Batched,
    Cotangents,
    Derivative,
    Elements,
    Example,
    LaneDims,
    LinearizeRule,
    NoRule,
    Of,
    Operands,
    Operations,
    Primitive,
)
from phalanx.core.types import ArrayType, typeof
from phalanx.primitives.basis import add, linear_in_first, mul
from phalanx.primitives.bits import or_
from phalanx.primitives.compare import (
    greater_of,
    max,
    min,
    share_of_greater,
    share_of_smaller,
    smaller_of,
)
from phalanx.primitives.complex import c64
from phalanx.primitives.domains import BOOL, Domain, check_domain, f32, i32, number, number_or_bool
from phalanx.primitives.elementwise import logaddexp, logaddexp_body, logaddexp_share
from phalanx.primitives.length import need_numbers
from phalanx.primitives.reduce import Identity, highest, lowest
from phalanx.primitives.shape import concatenate, pad, reverse, slice_dim

# ---- the family -----------------------------------------------------------------------------


def _cumulative(
    name: str,
    combine: Combine,
    identity: Identity,
    *,
    on: Domain,
    linearize: LinearizeRule,
    transpose: Of[Cotangents] | NoRule,
    operations: Operations = 3,
    doc: str,
    examples: Sequence[Example],
) -> Primitive:
    def type_rule(x: ArrayType, *, dim: int, reverse: bool) -> ArrayType:
        check_domain(name, x, on)
        if not 0 <= dim < x.ndim:
            raise ValueError(f"{name}: there is no dimension {dim} in an array {x}")
        return ArrayType(x.shape, x.dtype, x.weak)

    def lower(b: Builder, x: Any, dim: int, reverse: bool) -> Any:
        shape, dtype = b.outs[0].shape, b.outs[0].dtype
        if shape[dim] == 0:
            return x
        ones = (1,) * len(shape)
        reach = shape[dim] - 1
        window = (*ones[:dim], shape[dim], *ones[dim + 1 :])
        padding = [(0, 0)] * len(shape)
        padding[dim] = (0, reach) if reverse else (reach, 0)
        init = b.constant(identity(dtype), dtype)
        return b.reduce_window(
            [x], [init], window, ones, ones, ones, padding, lambda b, x, y: [combine(b, x, y)]
        )[0]

    def batch(axis: Axis, values: Operands, dims: LaneDims, *, dim: int, reverse: bool) -> Batched:
        return prim(values[0], dim=dim + (dim >= dims[0]), reverse=reverse), dims[0]

    prim = Primitive(
        name,
        type_rule,
        lower,
        linearize=linearize,
        transpose=transpose,
        batch=batch,
        dims=alike_but("elements are taken in one after the other"),
        linear=ALL if callable(transpose) else (),
        elements=Elements(operations=operations, short="running"),
        doc=doc,
        examples=examples,
    )
    return prim


_Step = tuple[Any, Callable[..., Any]]  # a result, and the linear function of its tangents


def _by_pairs(
    name: str,
    combine: Callable[[Any, Any], Any],
    slopes: Callable[[Any, Any, Any], tuple[Any, Any]],
) -> LinearizeRule:
    """Linearize the scan of pairs, with the slopes of each combination: linear work, too.

    ``slopes`` are those of ``combine`` in its operands, from (result, earlier, later).
    """

    def combined(x: Any, y: Any) -> _Step:
        out = combine(x, y)
        by_x, by_y = slopes(out, x, y)

        def linear(t: Any, u: Any) -> Any:
            return add(mul(t, by_x), mul(u, by_y))

        return out, linear

    def scan(x: Any, dim: int) -> _Step:
        steps: list[Callable[..., Any]] = []

        def primal_of(step: _Step) -> Any:
            steps.append(step[1])
            return step[0]

        def pair(x: Any, y: Any) -> Any:
            return primal_of(combined(x, y))

        def linear(t: Any) -> Any:
            return _scan_pairs(t, dim, *steps) if steps else t

        return _scan_pairs(x, dim, pair, lambda x: primal_of(scan(x, dim)), pair), linear

    def rule(active: Active, x: Any, *, dim: int, reverse: bool) -> Derivative:
        what, remedy = "the length it is differentiated along", "export it for a length in numbers"
        need_numbers(name, what, typeof(x).shape[dim : dim + 1], remedy)
        out, linear = scan(_flipped(x, dim, reverse), dim)
        out = _flipped(out, dim, reverse)
        return out, lambda t: _flipped(linear(_flipped(t, dim, reverse)), dim, reverse)

    return rule


def _scan_pairs(
    x: Any,
    dim: int,
    pair: Callable[[Any, Any], Any],
    scan: Callable[[Any], Any],
    between: Callable[[Any, Any], Any],
) -> Any:
    """Neighbours are combined, and scanned, which gives every second element; the others are
    combined with what is before them (Blelloch, 1990).
    """
    n = typeof(x).shape[dim]
    if n < 2:
        return x
    half, rest = n // 2, (n - 1) // 2
    even, odd = slice_dim(x, 0, n, dim, 2), slice_dim(x, 1, n, dim, 2)
    odd = scan(pair(slice_dim(even, 0, half, dim), odd))
    later = between(slice_dim(odd, 0, rest, dim), slice_dim(even, 1, rest + 1, dim))
    even = concatenate(slice_dim(even, 0, 1, dim), later, dim=dim)
    return interleaved(even, odd, dim)


def interleaved(even: Any, odd: Any, dim: int) -> Any:
    """The elements of ``even``, which may be one more, and of ``odd`` in turn."""
    dtype = typeof(even).dtype
    more = typeof(even).shape[dim] - typeof(odd).shape[dim]
    join = or_ if dtype == BOOL else add
    zero = dtypes.scalar(0, dtype)
    if dtypes.is_inexact(dtype):
        # 0.0 added to -0.0 would be 0.0; added to 0.0, -0.0 is nothing
        zero = wide.constant(np.negative(zero))

    def spread(x: Any, low: int, high: int) -> Any:
        edges = [(low, high, 1) if d == dim else (0, 0, 0) for d in range(typeof(x).ndim)]
        return pad(x, zero, config=tuple(edges))

    return join(spread(even, 0, 1 - more), spread(odd, 1, more))


def _flipped(x: Any, dim: int, reversed: bool) -> Any:
    return reverse(x, dims=(dim,)) if reversed else x


# ---- the members ----------------------------------------------------------------------------


def _examples(*more: Example) -> list[Example]:
    return [
        Example((f32(2, 5),), {"dim": 1, "reverse": False}),
        Example((f32(3, 2),), {"dim": 0, "reverse": True}),
        *more,
    ]


def _shares_of_both(
    share: Callable[[Any, Any, Any], Any],
) -> Callable[[Any, Any, Any], tuple[Any, Any]]:
    def shares(out: Any, x: Any, y: Any) -> tuple[Any, Any]:
        return share(out, x, y), share(out, y, x)

    return shares


_INTS = Example((i32(5),), {"dim": 0, "reverse": False})
_COMPLEX = Example((c64(4),), {"dim": 0, "reverse": False})
_NOT_LINEAR = NoRule("it is not linear")

cumsum = _cumulative(
    "cumsum",
    lambda b, x, y: b.add(x, y),
    lambda dtype: 0,
    on=number,
    linearize=linear_in_first(lambda: cumsum),
    transpose=lambda ct, x, dim, reverse: [cumsum(ct, dim=dim, reverse=not reverse)],
    doc="out[i] = Σ x[j] over j ≤ i, or j ≥ i in reverse; stablehlo.reduce_window with add",
    examples=_examples(_INTS, _COMPLEX),
)

cumprod = _cumulative(
    "cumprod",
    lambda b, x, y: b.multiply(x, y),
    lambda dtype: 1,
    on=number,
    linearize=_by_pairs("cumprod", mul, lambda out, x, y: (y, x)),
    transpose=_NOT_LINEAR,
    doc="out[i] = Π x[j] over j ≤ i, or j ≥ i in reverse; stablehlo.reduce_window with multiply",
    examples=_examples(_INTS, _COMPLEX),
)

cummax = _cumulative(
    "cummax",
    greater_of,
    lowest,
    on=number_or_bool,
    linearize=_by_pairs("cummax", max, _shares_of_both(share_of_greater)),
    transpose=_NOT_LINEAR,
    operations=(3, 40),
    doc="the greatest so far, or from here on in reverse; stablehlo.reduce_window with maximum",
    examples=_examples(_INTS, _COMPLEX),
)

cummin = _cumulative(
    "cummin",
    smaller_of,
    highest,
    on=number_or_bool,
    linearize=_by_pairs("cummin", min, _shares_of_both(share_of_smaller)),
    transpose=_NOT_LINEAR,
    operations=(3, 40),
    doc="the smallest so far, or from here on in reverse; stablehlo.reduce_window with minimum",
    examples=_examples(_INTS, _COMPLEX),
)

cumlogsumexp = _cumulative(
    "cumlogsumexp",
    logaddexp_body,
    lowest,
    on=dtypes.is_floating,
    linearize=_by_pairs(
        "cumlogsumexp",
        logaddexp,
        lambda out, x, y: (logaddexp_share(x, y), logaddexp_share(y, x)),
    ),
    transpose=_NOT_LINEAR,
    operations=40,
    doc="log Σ exp x[j] over j ≤ i, or j ≥ i in reverse; stablehlo.reduce_window",
    examples=_examples(),
)
