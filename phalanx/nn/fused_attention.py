"""Attention by fused kernels: what they take, and how arguments become that."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from phalanx import numpy as jnp
from phalanx.base import dtypes
from phalanx.base.broadcasting import check_fills
from phalanx.base.errors import ArgumentError, ShapeError
from phalanx.control.one_program import one_program
from phalanx.core.types import Array
from phalanx.numpy.promotion import ArrayLike, as_array
from phalanx.primitives.attention import attention

_WIDEST = 256  # heads
_I32 = np.dtype("int32")
_NEVER = {"bfloat16": -(2.0**41), "float16": -(2.0**15)}  # what is added for keys that are not seen


def check_attention(q: Any, k: Any, v: Any) -> None:
    """Raise unless queries, keys and values go together."""
    listed = f"query {q.aval}, key {k.aval} and value {v.aval}"
    if not q.ndim == k.ndim == v.ndim or q.ndim not in (3, 4):
        raise ShapeError(f"dot_product_attention: each needs 3 or 4 dimensions, got {listed}")
    if not q.dtype == k.dtype == v.dtype or not dtypes.is_floating(q.dtype):
        raise ArgumentError(
            f"dot_product_attention: one floating-point dtype is needed, got {listed}"
        )
    batches_differ = q.ndim == 4 and q.shape[0] != k.shape[0]
    if batches_differ or k.shape != v.shape or q.shape[-1] != k.shape[-1]:
        raise ShapeError(
            f"dot_product_attention: batches, heads of keys and values, and the last dimension "
            f"must agree, got {listed}"
        )
    if not k.shape[-2] or q.shape[-2] % k.shape[-2]:
        raise ShapeError(
            "dot_product_attention: the number of heads of queries must be a multiple of that of "
            f"keys, got {listed}"
        )


def fitting(what: str, value: Any, shape: tuple[int, ...]) -> Any:
    """``value`` as an array, which must broadcast to ``shape``."""
    x = as_array("dot_product_attention", value)
    check_fills("dot_product_attention", what, x.shape, shape)
    return x


def fused_attention(
    query: ArrayLike,
    key: ArrayLike,
    value: ArrayLike,
    bias: ArrayLike | None,
    mask: ArrayLike | None,
    scale: ArrayLike | None,
    query_lengths: ArrayLike | None,
    key_lengths: ArrayLike | None,
    causal: bool,
    window: tuple[int, int] | None,
    residual: bool,
) -> Any:
    """``dot_product_attention`` by fused kernels.

    Raises:
        ValueError: there is none for what is asked.
    """
    factor = None
    if scale is None or isinstance(scale, (int, float)):  # a kernel has it as a constant
        scale, factor = None, scale
    return _fused(
        query, key, value, bias, mask, scale, query_lengths, key_lengths,
        factor=factor, causal=causal, window=_reach(window, causal), residual=residual,
    )  # fmt: skip


def _reach(window: tuple[int, int] | None, causal: bool) -> int:
    """How many keys a query sees up to its own; 0: all."""
    if window is None:
        return 0
    before, behind = window
    if behind and not causal:
        raise ArgumentError(
            "dot_product_attention: with implementation='cudnn' a window ends at the query's own "
            f"place, got local_window_size={window}; give ({before}, 0), or is_causal=True"
        )
    return before + 1


@one_program
def _fused(
    query: ArrayLike,
    key: ArrayLike,
    value: ArrayLike,
    bias: ArrayLike | None,
    mask: ArrayLike | None,
    scale: ArrayLike | None,
    query_lengths: ArrayLike | None,
    key_lengths: ArrayLike | None,
    factor: float | None,
    causal: bool,
    window: int,
    residual: bool,
) -> Any:
    q, k, v = (as_array("dot_product_attention", x) for x in (query, key, value))
    check_attention(q, k, v)
    batched = q.ndim == 4
    if not batched:
        q, k, v = q[None], k[None], v[None]
    _check_kernel(q)
    batch, t, heads, h = q.shape
    s = k.shape[1]
    if scale is not None:
        q = (q * as_array("dot_product_attention", scale)).astype(q.dtype)
        factor = 1.0
    added = _added(bias, mask, (batch, heads, t, s), q.dtype)
    lengths = []
    if query_lengths is not None or key_lengths is not None:
        pairs = ((query_lengths, t), (key_lengths, s))
        lengths = [_lengths(batch, most if n is None else n) for n, most in pairs]
    out, sums = attention(
        q, k, v, *([] if added is None else [added]), *lengths,
        scale=float(1 / math.sqrt(h) if factor is None else factor),
        causal=causal or bool(window), window=window, biased=added is not None,
    )  # fmt: skip
    results = [out, jnp.moveaxis(sums, 1, 2).astype(q.dtype)]
    results = results if batched else [x[0] for x in results]
    return tuple(results) if residual else results[0]


def _check_kernel(q: Any) -> None:
    h = q.shape[3]
    if q.dtype.name not in _NEVER or h % 8 or not 0 < h <= _WIDEST:
        raise ArgumentError(
            "dot_product_attention: implementation='cudnn' is for float16 and bfloat16, and for "
            f"heads of a multiple of 8 numbers up to {_WIDEST}, got query {q.aval}; convert it, or "
            "take implementation='xla'"
        )


def _lengths(batch: int, value: Any) -> Any:
    lengths = as_array("dot_product_attention", value).astype(_I32)
    return jnp.broadcast_to(lengths, (batch,))


def _added(bias: Any, mask: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    """What is added to scores for a bias and a mask, [batch, heads or 1, t, s]; None: nothing."""
    terms: list[Array] = []
    if bias is not None:
        terms.append(fitting("bias", bias, shape).astype(dtype))
    if mask is not None:
        seen = fitting("mask", mask, shape)
        if not dtypes.is_bool(seen.dtype):
            raise ArgumentError(f"dot_product_attention: mask must be bools, got {seen.aval}")
        terms.append(jnp.where(seen, 0, jnp.asarray(_NEVER[dtype.name], dtype)))
    if not terms:
        return None
    whole = terms[0] if len(terms) == 1 else terms[0] + terms[1]
    heads = 1 if whole.ndim < 3 or whole.shape[-3] == 1 else shape[1]
    return jnp.broadcast_to(whole, (shape[0], heads, *shape[2:]))
