"""Attention, and products of matrices with scales for blocks of their elements."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from phalanx import numpy as jnp
from phalanx.base import dtypes, lattice
from phalanx.base.errors import ArgumentError, ShapeError
from phalanx.control.one_program import one_program
from phalanx.core.types import Array
from phalanx.nn.fused_attention import check_attention, fitting, fused_attention
from phalanx.nn.normalize import logsumexp, softmax
from phalanx.numpy.promotion import ArrayLike, as_array

_F32 = np.dtype("float32")


def dot_product_attention(
    query: ArrayLike,
    key: ArrayLike,
    value: ArrayLike,
    bias: ArrayLike | None = None,
    mask: ArrayLike | None = None,
    *,
    scale: ArrayLike | None = None,
    is_causal: bool = False,
    query_seq_lengths: ArrayLike | None = None,
    key_value_seq_lengths: ArrayLike | None = None,
    local_window_size: int | tuple[int, int] | None = None,
    implementation: str | None = None,
    return_residual: bool = False,
) -> Array:
    """Attention: softmax(scale query key^T + bias) value, for each head (Vaswani et al., 2017).

    Args:
        query: [batch, t, heads, h], or without the batch.
        key: [batch, s, k, h]; ``heads`` is a multiple of k: each of these serves a group of heads.
        value: as ``key``.
        bias: broadcasts to [batch, heads, t, s].
        mask: the same, of bools: whether a query sees a key. One that sees none gets the mean.
        scale: default 1 / sqrt(h).
        is_causal: whether query i sees no key behind i.
        query_seq_lengths: [batch]: how many queries there are; results of others are zero.
        key_value_seq_lengths: [batch]: how many keys there are.
        local_window_size: how many keys before and behind its own place a query sees: one number
            or two.
        implementation: None or "xla", or "cudnn": the fused kernels of cuDNN on CUDA's GPUs, which
            hold no matrix of scores; the same by products of matrices elsewhere. For these dtypes
            are float16 or bfloat16, and h is a multiple of 8 up to 256, up to 128 before Hopper.
        return_residual: whether to return the logarithms of the sums of exponentials, too.

    Returns:
        [batch, t, heads, h] in the dtype of ``query``; and the logarithms, [batch, t, heads].

    Raises:
        ValueError: shapes or dtypes do not go together, the implementation is another, or cuDNN
            has no kernel for what is asked.

    >>> import phalanx, phalanx.numpy as jnp
    >>> x = jnp.ones((2, 5, 4, 8))
    >>> phalanx.nn.dot_product_attention(x, x, x, is_causal=True).shape
    (2, 5, 4, 8)
    """
    if implementation not in (None, "xla", "cudnn"):
        raise ArgumentError(
            "dot_product_attention: implementation must be None, 'xla' or 'cudnn', got "
            f"{implementation!r}"
        )
    window = local_window_size
    window = (window, window) if isinstance(window, int) else window
    by = fused_attention if implementation == "cudnn" else _attention
    return by(
        query, key, value, bias, mask, scale, query_seq_lengths, key_value_seq_lengths,
        causal=is_causal, window=window, residual=return_residual,
    )  # fmt: skip


@one_program
def _attention(
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
    q, k, v = (as_array("dot_product_attention", x) for x in (query, key, value))
    check_attention(q, k, v)
    if q.ndim == 3:
        q, k, v = q[None], k[None], v[None]
        batched = False
    else:
        batched = True
    batch, t, heads, h = q.shape
    s, served = k.shape[1:3]
    grouped = q.reshape(batch, t, served, heads // served, h)
    wide = lattice.common((q.dtype, False), (_F32, False))[0]
    logits = jnp.einsum("btkgh,bskh->bkgts", grouped, k, preferred_element_type=wide)
    logits = logits.reshape(batch, heads, t, s)
    logits = logits * jnp.asarray(1 / math.sqrt(h) if scale is None else scale, wide)
    if bias is not None:
        logits = logits + fitting("bias", bias, logits.shape).astype(wide)
    seen = _seen(logits.shape, mask, causal, window, query_lengths, key_lengths)
    if seen is not None:
        logits = jnp.where(seen, logits, -0.7 * float(jnp.finfo(wide).max))
    weights = softmax(logits, axis=-1).astype(k.dtype)
    weights = weights.reshape(batch, served, heads // served, t, s)
    out = jnp.einsum("bkgts,bskh->btkgh", weights, v).reshape(q.shape[:3] + v.shape[-1:])
    if query_lengths is not None:
        there = jnp.arange(t) < as_array("dot_product_attention", query_lengths)[:, None]
        out = jnp.where(there[:, :, None, None], out, 0)
    results = [out.astype(q.dtype)]
    if residual:
        results.append(jnp.moveaxis(logsumexp(logits, axis=-1), 1, 2).astype(q.dtype))
    results = results if batched else [x[0] for x in results]
    return tuple(results) if residual else results[0]


def _seen(
    shape: tuple[int, ...],
    mask: Any,
    causal: bool,
    window: tuple[int, int] | None,
    query_lengths: Any,
    key_lengths: Any,
) -> Any:
    """Which queries see which keys; None where all see all."""
    rows, columns = jnp.arange(shape[2])[:, None], jnp.arange(shape[3])
    marks: list[Array] = []
    if mask is not None:
        fitted = fitting("mask", mask, shape)
        if not dtypes.is_bool(fitted.dtype):
            raise ArgumentError(f"dot_product_attention: mask must be bools, got {fitted.aval}")
        marks.append(fitted)
    if causal:
        marks.append(rows >= columns)
    if window is not None:
        before, behind = window
        marks.append((columns >= rows - before) & (columns <= rows + behind))
    for lengths, places in ((query_lengths, rows), (key_lengths, columns)):
        if lengths is not None:
            known = as_array("dot_product_attention", lengths)
            marks.append(places < known.reshape(-1, 1, 1, 1))
    seen: Array | None = None
    for mark in marks:
        seen = mark if seen is None else seen & mark
    return seen


@one_program
def scaled_matmul(
    lhs: ArrayLike,
    rhs: ArrayLike,
    lhs_scales: ArrayLike,
    rhs_scales: ArrayLike,
    preferred_element_type: Any = np.float32,
) -> Array:
    """The product lhs rhs^T of matrices whose rows are scaled in blocks.

    Args:
        lhs: [batch, m, k].
        rhs: [batch, n, k].
        lhs_scales: [batch, m, i], where i divides k: a factor for each block of k / i elements.
        rhs_scales: [batch, n, j], the same.
        preferred_element_type: the dtype of the result.

    Returns:
        [batch, m, n].

    Raises:
        ShapeError: the shapes are others.

    >>> import phalanx, phalanx.numpy as jnp
    >>> a, b, half = jnp.array([[[1, 2, 3]]]), jnp.array([[[4, 5, 6]]]), jnp.array([[[0.5]]])
    >>> print(phalanx.nn.scaled_matmul(a, b, half, half))
    [[[8.]]]
    """
    sides = [
        _scaled(as_array("scaled_matmul", x), as_array("scaled_matmul", factors))
        for x, factors in ((lhs, lhs_scales), (rhs, rhs_scales))
    ]
    a, b = sides
    if a.shape[0] != b.shape[0] or a.shape[2] != b.shape[2]:
        raise ShapeError(
            f"scaled_matmul: [batch, m, k] and [batch, n, k] are needed, got {a.shape}, {b.shape}"
        )
    out = jnp.einsum("bmk,bnk->bmn", a, b, precision="highest")
    return out.astype(dtypes.requested(preferred_element_type))


def _scaled(x: Any, factors: Any) -> Any:
    if (
        x.ndim != 3
        or factors.ndim != 3
        or x.shape[:2] != factors.shape[:2]
        or (not factors.shape[2] or x.shape[2] % factors.shape[2])
    ):
        raise ShapeError(
            "scaled_matmul: [batch, m, k] and scales [batch, m, i], where i divides k, are needed, "
            f"got {x.aval} and {factors.aval}"
        )
    blocks = x.astype(_F32).reshape(*factors.shape, -1)
    return (blocks * factors.astype(_F32)[..., None]).reshape(x.shape)
