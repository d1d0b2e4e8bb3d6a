"""`python -m accelerators.attention`: which attention is computed by cuDNN's fused kernels.

Lowers calls of `nn.dot_product_attention` for each platform, compiles nothing, and prints a table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import numpy as np

import phalanx
import phalanx.numpy as jnp
from phalanx import nn
from phalanx.errors import PhalanxError

KERNEL, PRODUCTS, REFUSED = "kernel", "products", "refused"
FORWARD, BACKWARD = "__cudnn$fmha", "SoftmaxBackward("  # in the names of the kernels
ELSEWHERE = ("rocm", "tpu", "cpu")
_QKV = (2, 64, 8, 64)
_SCORES = (2, 8, 64, 64)


class Call(msgspec.Struct, frozen=True):
    """A call, by the shapes of its arrays; of a bias, and what is differentiated."""

    words: str
    dtype: str = "bfloat16"
    query: tuple[int, ...] = _QKV
    key: tuple[int, ...] = _QKV
    bias: tuple[int, ...] = ()
    mask: tuple[int, ...] = ()
    for_bias: bool = False
    options: dict[str, Any] = {}
    implementation: str | None = "cudnn"


def _wide(words: str, h: int) -> Call:
    return Call(words, query=(2, 64, 8, h), key=(2, 64, 8, h))


_LENGTHS = np.array([40, 64], np.int32)
CALLS = (
    Call('no `implementation`, or `"xla"`', implementation=None),
    Call("`bfloat16`"),
    Call("`float16`", "float16"),
    Call("`float32`", "float32"),
    Call("`float8_e4m3fn`", "float8_e4m3fn"),
    Call("without a batch, [t, heads, h]", query=_QKV[1:], key=_QKV[1:]),
    Call("grouped queries, 8 heads for 2", key=(2, 64, 2, 64)),
    _wide("h = 8", 8),
    _wide("h = 256", 256),
    _wide("h = 100, no multiple of 8", 100),
    _wide("h = 264, more than 256", 264),
    Call("1 query, 512 keys", query=(2, 1, 8, 64), key=(2, 512, 8, 64)),
    Call("odd lengths, 63 queries, 65 keys", query=(2, 63, 8, 64), key=(2, 65, 8, 64)),
    Call("`query_seq_lengths`", options={"query_seq_lengths": _LENGTHS}),
    Call("`key_value_seq_lengths`", options={"key_value_seq_lengths": _LENGTHS}),
    Call("`scale`, a number", options={"scale": 0.5}),
    Call("`scale`, an array", options={"scale": np.float32(0.5)}),
    Call("`is_causal=True`", options={"is_causal": True}),
    Call("`local_window_size=(32, 0)`", options={"local_window_size": (32, 0)}),
    Call("`local_window_size=32`, causal", options={"local_window_size": 32, "is_causal": True}),
    Call("`local_window_size=32`, not causal", options={"local_window_size": 32}),
    Call("`mask`", mask=_SCORES),
    Call("`bias`", bias=_SCORES),
    Call("`bias` and `mask`, causal", bias=_SCORES, mask=_SCORES, options={"is_causal": True}),
    Call("`bias`, with its gradient", bias=_SCORES, for_bias=True),
    Call("`bias` for all heads, with its gradient", bias=(1, 1, 64, 64), for_bias=True),
    Call(
        "`bias` of odd lengths, with its gradient",
        query=(2, 63, 8, 64),
        key=(2, 65, 8, 64),
        bias=(2, 8, 63, 65),
        for_bias=True,
    ),
    Call("`return_residual=True`, with its gradient", options={"return_residual": True}),
)


def table() -> Iterator[str]:
    yield "| call | CUDA, forward | CUDA, backward | ROCm, TPUs, CPUs |"
    yield "|---|---|---|---|"
    yield from map(row, CALLS)


def row(call: Call) -> str:
    """What computes it on CUDA, and elsewhere: once, if that is one thing forward and backward."""
    arrays, forward, backward = _functions(call)
    found = [_by(forward, arrays, "cuda", FORWARD), _by(backward, arrays, "cuda", BACKWARD)]
    elsewhere = dict.fromkeys(
        _by(f, arrays, p, FORWARD) for f in (forward, backward) for p in ELSEWHERE
    )
    return f"| {call.words} | {' | '.join(found)} | {', '.join(elsewhere)} |"


def _functions(call: Call) -> tuple[list[Any], Callable[..., Any], Callable[..., Any]]:
    shapes = [call.query, call.key, call.key, *([call.bias] if call.bias else [])]
    arrays = [phalanx.ShapeDtypeStruct(s, jnp.dtype(call.dtype)) for s in shapes]
    mask = np.ones(call.mask, bool) if call.mask else None

    def forward(*xs: Any) -> Any:
        return nn.dot_product_attention(
            *xs, mask=mask, implementation=call.implementation, **call.options
        )

    def total(*xs: Any) -> Any:
        return sum(x.astype(jnp.float32).sum() for x in phalanx.tree.leaves(forward(*xs)))

    return arrays, forward, phalanx.grad(total, range(3 + call.for_bias))


def _by(f: Callable[..., Any], arrays: list[Any], platform: str, mark: str) -> str:
    try:
        text = phalanx.jit(f).trace(*arrays).lower(lowering_platforms=(platform,)).as_text()
    except PhalanxError:
        return REFUSED
    return KERNEL if mark in text else PRODUCTS


if __name__ == "__main__":
    print("\n".join(table()))
