"""Attention as one operation: a kernel of cuDNN on CUDA's GPUs, products of matrices elsewhere.

Queries are [b, t, n, h], keys and values [b, s, k, h], where n is a multiple of k. Then come a
bias, [b, n or 1, t, s], if it is ``biased``, and how many queries and keys there are, [b]
each, if that is told. ``causal``: no query sees a key behind it; ``window``: only so many keys up
to its own, 0 for all. A kernel keeps no scores, so what derivatives need of them is computed anew,
from the logarithms of the sums of their exponentials (Dao et al. 2022).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple, TypedDict

import numpy as np

from phalanx.base import dtypes
from phalanx.base.errors import ShapeError
from phalanx.core.axes import Axis
from phalanx.core.builder import Builder, Factors, Value
from phalanx.core.primitive import (
    ZERO,
    Active,
    Batched,
    Cotangents,
    Derivative,
    Elements,
    Example,
    LaneDims,
    Linear,
    NoRule,
    Operands,
    Operations,
    Primitive,
)
from phalanx.core.types import ArrayType, Types, typeof
from phalanx.primitives import cudnn
from phalanx.primitives.basis import (
    add,
    broadcast,
    broadcast_lanes,
    instantiate,
    move,
    mul,
    reduce_sum,
    sub,
    transpose,
)
from phalanx.primitives.bits import and_
from phalanx.primitives.compare import ge, lt, select
from phalanx.primitives.contract import as_dtype, dot_general
from phalanx.primitives.domains import I32, check_domain, f32
from phalanx.primitives.elementwise import exp, log
from phalanx.primitives.reduce import reduce_max
from phalanx.primitives.shape import expand_dims, iota, merge_dims, split_dim

_F32: Final = np.dtype(np.float32)
_UNSEEN: Final = -1e30  # the score of a key that is not seen


class How(TypedDict):
    scale: float
    causal: bool
    window: int
    biased: bool


class BackwardHow(How):
    for_bias: bool


# ---- what it is, in operations ------------------------------------------------------------------


class _Whole(NamedTuple):
    """Operands in float32 with the heads outside, [b, n, t, h]; keys once for each head."""

    q: Any
    k: Any
    v: Any
    bias: Any
    seen: Any


def _whole(args: Sequence[Any], how: How) -> _Whole:
    q, k, v = args[:3]
    bias = as_dtype(args[3], _wide(args[3])) if how["biased"] else None
    heads = typeof(q).shape[2]
    k, v = (_for_each_head(x, heads) for x in (k, v))
    q, k, v = map(_heads_outside, (q, k, v))
    shape = (*typeof(q).shape[:3], typeof(k).shape[2])
    return _Whole(q, k, v, bias, _seen(shape, args[3 + how["biased"] :], how))


def _heads_outside(x: Any) -> Any:
    return transpose(as_dtype(x, _wide(x)), perm=(0, 2, 1, 3))


def _wide(x: Any) -> np.dtype:
    """The dtype in which is computed."""
    return np.promote_types(typeof(x).dtype, _F32)


def _for_each_head(x: Any, heads: int) -> Any:
    b, s, k, h = typeof(x).shape
    several = broadcast(x, shape=(b, s, k, heads // k, h), dims=(0, 1, 2, 4))
    return merge_dims(several, 2)


def _seen(shape: tuple[int, ...], lengths: Sequence[Any], how: How) -> Any:
    """Which queries see which keys; None where all see all."""
    rows, columns = (iota(dtype=I32, shape=shape, dim=d) for d in (2, 3))
    marks = [ge(rows, columns)] if how["causal"] else []
    if how["window"]:
        marks.append(lt(sub(rows, columns), how["window"]))
    for places, length in zip((rows, columns), lengths, strict=False):
        marks.append(lt(places, broadcast(length, shape=shape, dims=(0,))))
    seen = None
    for mark in marks:
        seen = mark if seen is None else and_(seen, mark)
    return seen


def _product(x: Any, y: Any, contract: tuple[int, int]) -> Any:
    """The product of two [b, n, ., .], summed over one dimension of each."""
    left, right = contract
    return dot_general(x, y, contract=((left,), (right,)), batch=((0, 1), (0, 1)))


def _scores(whole: _Whole, how: How) -> Any:
    scores = mul(_product(whole.q, whole.k, (3, 3)), how["scale"])
    if whole.bias is not None:
        scores = add(scores, _for_heads(whole.bias, scores))
    return scores if whole.seen is None else select(whole.seen, scores, _UNSEEN)


def _for_heads(bias: Any, scores: Any) -> Any:
    shape = typeof(scores).shape
    return bias if typeof(bias).shape == shape else broadcast(bias, shape=shape, dims=(0, 1, 2, 3))


def _along_keys(x: Any, like: Any) -> Any:
    return broadcast(x, shape=typeof(like).shape, dims=(0, 1, 2))


def _weights(whole: _Whole, sums: Any, how: How) -> Any:
    """The share that each key has of the mean; none where it is not seen."""
    scores = _scores(whole, how)
    weights = exp(sub(scores, _along_keys(sums, scores)))
    return weights if whole.seen is None else select(whole.seen, weights, 0)


def _forward(args: Sequence[Any], how: How) -> list[Any]:
    whole = _whole(args, how)
    scores = _scores(whole, how)
    most = reduce_max(scores, dims=(3,))
    total = reduce_sum(exp(sub(scores, _along_keys(most, scores))), dims=(3,))
    sums = add(log(total), most)
    mixed = _product(_weights(whole, sums, how), whole.v, (3, 2))
    return [as_dtype(transpose(mixed, perm=(0, 2, 1, 3)), typeof(args[0]).dtype), sums]


def _tangent(
    args: Sequence[Any], out: Any, sums: Any, tangents: Sequence[Any], how: How
) -> list[Any]:
    whole, moved = _whole(args, how), _whole(tangents, how)
    weights = _weights(whole, sums, how)
    turned = add(_product(moved.q, whole.k, (3, 3)), _product(whole.q, moved.k, (3, 3)))
    turned = mul(turned, how["scale"])
    if how["biased"]:
        turned = add(turned, _for_heads(moved.bias, turned))
    changed = mul(weights, turned)
    tsums = reduce_sum(changed, dims=(3,))
    turned = add(_product(changed, whole.v, (3, 2)), _product(weights, moved.v, (3, 2)))
    out = _heads_outside(out)
    turned = sub(turned, mul(out, _along_keys(tsums, out)))
    return [as_dtype(transpose(turned, perm=(0, 2, 1, 3)), typeof(args[0]).dtype), tsums]


def _backward(
    args: Sequence[Any], residuals: Sequence[Any], how: How, for_bias: bool, of_sums: Any = ZERO
) -> list[Any]:
    """``of_sums`` is the cotangent of the second result, for which there is no kernel."""
    whole = _whole(args, how)
    out, sums, ct = residuals
    out, ct = map(_heads_outside, (out, ct))
    weights = _weights(whole, sums, how)
    turned = _product(ct, whole.v, (3, 3))
    own = reduce_sum(mul(ct, out), dims=(3,))
    own = own if of_sums is ZERO else sub(own, of_sums)
    turned = sub(turned, _along_keys(own, turned))
    turned = mul(weights, turned)
    scaled = mul(turned, how["scale"])
    cts = [
        _product(scaled, whole.k, (3, 2)),
        _product(scaled, whole.q, (2, 2)),
        _product(weights, ct, (2, 2)),
    ]
    cts = [_of_heads(x, typeof(arg)) for x, arg in zip(cts, args, strict=False)]
    return [*cts, _summed_to(turned, typeof(args[3]))] if for_bias else cts


def _of_heads(x: Any, kind: ArrayType) -> Any:
    """A cotangent with the heads outside, for queries, or for keys that serve several heads."""
    x = transpose(x, perm=(0, 2, 1, 3))
    heads = typeof(x).shape[2]
    grouped = split_dim(x, 2, (kind.shape[2], heads // max(kind.shape[2], 1)))
    return as_dtype(reduce_sum(grouped, dims=(3,)), kind.dtype)


def _summed_to(x: Any, kind: ArrayType) -> Any:
    if kind.shape[1] != typeof(x).shape[1]:
        x = expand_dims(reduce_sum(x, dims=(1,)), (1,))
    return as_dtype(x, kind.dtype)


# ---- lowering -----------------------------------------------------------------------------------


def _lower(b: Builder, *args: Value, **how: Any) -> list[Value]:
    return b.traced(lambda *xs: _forward(xs, how), *args)  # type: ignore[arg-type]


def _lower_on_cuda(b: Builder, *args: Value, **how: Any) -> list[Value]:
    if not cudnn.has_kernel(b.ins):
        return _lower(b, *args, **how)

    def run(b: Builder, *xs: Value) -> list[Value]:
        return cudnn.forward(b, *xs, **how)

    return b.by_block(_factors(b.ins, how), run, *args)


def _lower_tangent(b: Builder, *values: Value, **how: Any) -> list[Value]:
    def tangent(*xs: Any) -> list[Any]:
        count = 3 + how["biased"]
        args, residuals, tangents = xs[: -2 - count], xs[-2 - count : -count], xs[-count:]
        return _tangent(args, *residuals, tangents, how)  # type: ignore[arg-type]

    return b.traced(tangent, *values)


def _lower_backward(b: Builder, *values: Value, for_bias: bool, **how: Any) -> list[Value]:
    def cotangents(*xs: Any) -> list[Any]:
        return _backward(xs[:-3], xs[-3:], how, for_bias)  # type: ignore[arg-type]

    return b.traced(cotangents, *values)


def _lower_backward_on_cuda(b: Builder, *values: Value, for_bias: bool, **how: Any) -> list[Value]:
    if not cudnn.has_kernel(b.ins):
        return _lower_backward(b, *values, for_bias=for_bias, **how)
    args, residuals, sizes = _factors(b.ins[:-3], how)
    factors = Factors((*args, *residuals, residuals[0]), args[: 3 + for_bias], sizes)

    def run(b: Builder, *xs: Value) -> list[Value]:
        return cudnn.backward(b, *xs, for_bias=for_bias, **how)

    return b.by_block(factors, run, *values)


def _factors(args: Types, how: dict[str, Any]) -> Factors:
    """What devices can compute by itself: of the batch, of heads with their keys and values.

    Of queries, too, where all see the same keys.
    """
    q, k = args[:2]
    biases, lengths = args[3 : 3 + how["biased"]], args[3 + how["biased"] :]
    alike = not (how["causal"] or how["window"] or biases or lengths)
    heads = {"k": k.shape[2], "g": q.shape[2] // k.shape[2]}
    counts = {"b": q.shape[0], "t": q.shape[1] if alike else 1, **heads}
    sizes = {letter: n for letter, n in counts.items() if n > 1}
    b, t, k, g = (letter if letter in sizes else "" for letter in "btkg")
    queries, keys = (b, t, k + g, ""), (b, "", k, "")
    own = [(b, k + g if x.shape[1] == q.shape[2] else "", "", "") for x in biases]
    own += [(b,) for _ in lengths]
    return Factors((queries, keys, keys, *own), (queries, (b, k + g, t)), sizes)


# ---- rules --------------------------------------------------------------------------------------


def _type(q: ArrayType, k: ArrayType, v: ArrayType, *others: ArrayType, **how: Any) -> Types:
    check_domain("attention", q, dtypes.is_floating)
    if not q.dtype == k.dtype == v.dtype:
        raise TypeError(f"attention: one dtype is needed, got {q}, {k}, {v}")
    if q.ndim != 4 or k.shape != v.shape or q.shape[0] != k.shape[0] or q.shape[3] != k.shape[3]:
        raise ShapeError(f"attention: [b, t, n, h] and [b, s, k, h] are needed, got {q}, {k}, {v}")
    if not k.shape[2] or q.shape[2] % k.shape[2]:
        raise ShapeError(f"attention: heads of {q} must be a multiple of those of {k}")
    sums = ArrayType((q.shape[0], q.shape[2], q.shape[1]), np.promote_types(q.dtype, _F32))
    return q.update(weak=False), sums


def _linearize(active: Active, *args: Any, **how: Any) -> Derivative:
    out, sums = attention(*args, **how)
    count = 3 + how["biased"]

    def linear(*tangents: Any) -> Any:
        pairs = zip(tangents[:count], args[:count], strict=True)
        dense = [instantiate(t, typeof(x)) for t, x in pairs]
        for_bias = how["biased"] and tangents[3] is not ZERO
        return attention_tangent(*args, out, sums, *dense, for_bias=for_bias, **how)

    return (out, sums), linear


def _tangent_type(*types: ArrayType, for_bias: bool, **how: Any) -> Types:
    count = 3 + how["biased"]
    return _checked(types[:-count], types[-2 - count : -count])


def _checked(args: Sequence[ArrayType], outs: Sequence[ArrayType]) -> Types:
    """The types of the results; TypeError unless those of ``outs`` are the same."""
    results = _type(*args[:3])
    if [(t.shape, t.dtype) for t in outs] != [(t.shape, t.dtype) for t in results]:
        raise TypeError(f"attention: the results are {results}, got {outs}")
    return results


def _tangent_transpose(
    cts: tuple[Any, ...], *operands: Any, for_bias: bool, **how: Any
) -> Cotangents:
    ct, of_sums = cts
    count = 3 + how["biased"]
    residuals, moved = operands[:-count], operands[-count:]
    ct = instantiate(ct, typeof(residuals[-2]))
    if of_sums is ZERO:
        found = attention_backward(*residuals, ct, for_bias=for_bias, **how)
    else:
        found = _backward(residuals[:-2], [*residuals[-2:], ct], how, for_bias, of_sums)  # type: ignore[arg-type]
    cotangents = [*found, None][:count]
    return [None] * len(residuals) + [
        x if isinstance(m, Linear) else None for x, m in zip(cotangents, moved, strict=True)
    ]


def _backward_type(*types: ArrayType, for_bias: bool, **how: Any) -> Types:
    if for_bias and (types[3].shape[2] % 2 or types[3].shape[3] % 2):
        raise ShapeError(
            f"dot_product_attention: with implementation='cudnn' even numbers of queries and keys "
            f"are needed to differentiate with a bias, got {types[3]}"
        )
    _checked(types[:3], types[-3:-1])
    return tuple(t.update(weak=False) for t in types[: 3 + for_bias])


def _lanes_in_batch(prim: Callable[[], Primitive]) -> Any:
    """The batching rule: lanes are more of the batch."""

    def rule(axis: Axis, values: Operands, dims: LaneDims, **how: Any) -> Batched:
        fronted = [
            broadcast_lanes(x, 0, axis.size) if d is None else move(x, d, 0)
            for x, d in zip(values, dims, strict=True)
        ]
        pair = typeof(fronted[0]).shape[:2]
        out = prim()(*[merge_dims(x, 0) for x in fronted], **how)
        return tuple([split_dim(x, 0, pair) for x in out]), (0,) * len(out)

    return rule


_PLAIN: Final = {"scale": 0.5, "causal": False, "window": 0, "biased": False}
_ONCE: Final = NoRule("cuDNN has its first derivative alone; take implementation='xla'")
_QKV: Final = (f32(1, 2, 2, 8), f32(1, 4, 1, 8), f32(1, 4, 1, 8))
_RESULTS: Final = (f32(1, 2, 2, 8), f32(1, 2, 2))


def _products(count: int) -> Operations:
    """``count`` matrix products of queries [..., t, n, h] with keys, and softmax between them."""

    def rule(results: Sequence[ArrayType], q: ArrayType, k: ArrayType, *_: Any, **__: Any) -> float:
        pairs = q.size // max(q.shape[-1], 1) * k.shape[1]
        return pairs * (2 * count * q.shape[-1] + 10)

    return rule


attention = Primitive(
    "attention",
    _type,
    _lower,
    lower_on={"cuda": _lower_on_cuda},
    params=How,
    linearize=_linearize,
    transpose=NoRule("it is not linear"),
    batch=_lanes_in_batch(lambda: attention),
    multi=True,
    elements=Elements(operations=_products(2)),
    doc="softmax(scale q kᵀ + bias) v for each head, and the logarithms of the sums; cuDNN fmha",
    examples=[
        Example(_QKV, _PLAIN, order=1),
        Example((*_QKV, f32(1, 1, 2, 4)), {**_PLAIN, "causal": True, "biased": True}, order=1),
    ],
)
attention_tangent = Primitive(
    "attention_tangent",
    _tangent_type,
    _lower_tangent,
    params=BackwardHow,
    linearize=_ONCE,
    transpose=_tangent_transpose,
    batch=_lanes_in_batch(lambda: attention_tangent),
    multi=True,
    elements=Elements(operations=_products(5)),
    doc="of attention: operands, results, tangents of queries, keys, values and bias, to tangents",
    examples=[Example((*_QKV, *_RESULTS, *_QKV), {**_PLAIN, "for_bias": False})],
)
attention_backward = Primitive(
    "attention_backward",
    _backward_type,
    _lower_backward,
    lower_on={"cuda": _lower_backward_on_cuda},
    params=BackwardHow,
    linearize=_ONCE,
    transpose=_ONCE,
    batch=_lanes_in_batch(lambda: attention_backward),
    multi=True,
    elements=Elements(operations=_products(5)),
    doc="of attention: operands, results, a cotangent of the first, to those of the operands",
    examples=[Example((*_QKV, *_RESULTS, f32(1, 2, 2, 8)), {**_PLAIN, "for_bias": False})],
)
