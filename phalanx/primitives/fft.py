"""Fourier transforms over the last dimensions.

``kind`` is "FFT", "IFFT" (with 1 / n), "RFFT" of real numbers, of which the last dimension of the
result is cut to n // 2 + 1, or its inverse, "IRFFT".
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from phalanx.base import dtypes
from phalanx.base.errors import ShapeError
from phalanx.core.axes import Axis
from phalanx.core.builder import Builder, Value
from phalanx.core.correspond import alike
from phalanx.core.primitive import Batched, Example, LowerRule
from phalanx.core.types import ArrayType, Shape, typeof
from phalanx.primitives.basis import broadcast, move, mul, structural
from phalanx.primitives.complex import c64, complex, conj
from phalanx.primitives.domains import check_domain, f32, part_of_complex
from phalanx.primitives.shape import zeros_like

KINDS = ("FFT", "IFFT", "RFFT", "IRFFT")
MOST = 3  # dimensions of one transform; XLA has none of more


def _type(x: ArrayType, kind: str, lengths: Shape) -> ArrayType:
    if kind not in KINDS:
        raise ValueError(f"fft: the kind must be one of {KINDS}, got {kind!r}")
    count = len(lengths)
    if not 1 <= count <= min(MOST, x.ndim):
        raise ValueError(
            f"fft: from 1 to {MOST} of the last dimensions of {x} can be transformed, got lengths "
            f"{lengths}"
        )
    real = kind == "RFFT"
    check_domain(f"fft: {kind}", x, part_of_complex if real else dtypes.is_complex)
    half = (*lengths[:-1], lengths[-1] // 2 + 1)
    needed = half if kind == "IRFFT" else lengths
    if x.shape[-count:] != needed:
        raise ShapeError(
            f"fft: {kind} of lengths {lengths} needs an array whose last dimensions are {needed}, "
            f"got {x}"
        )
    shape = (*x.shape[:-count], *(half if real else lengths))
    if real:
        return ArrayType(shape, dtypes.to_complex(x.dtype))
    return ArrayType(shape, dtypes.to_real(x.dtype) if kind == "IRFFT" else x.dtype)


def _is_empty(b: Builder, lengths: Shape) -> bool:
    return 0 in (*b.ins[0].shape, *lengths)


def _lower(b: Builder, x: Value, kind: str, lengths: Shape) -> Value:
    if _is_empty(b, lengths):
        return b.constant(0, b.outs[0].dtype, b.outs[0].shape)
    return b.fft(x, kind, lengths)


def _row_by_row(b: Builder, x: Value, kind: str, lengths: Shape) -> Value:
    """The rule for CPUs, where XLA fails on what a mesh parts and a transposition has moved, or
    will move."""
    if _is_empty(b, lengths):
        return _lower(b, x, kind, lengths)
    return b.by_rows(x, len(lengths), lambda rows: b.fft(rows, kind, lengths))


def _by_dimensions(*kinds: str) -> LowerRule:
    """The rule for GPUs, which transform the last dimension by itself in ``kinds``.

    The inverse of real transforms reads half of the numbers twice along that dimension alone;
    libraries of GPUs take them for Hermitian along all. rocFFT mistakes its tables, besides, where
    real numbers are transformed along several.
    """

    def lower(b: Builder, x: Value, kind: str, lengths: Shape) -> Value:
        *outer, last = lengths
        if kind not in kinds or not outer or _is_empty(b, lengths):
            return _lower(b, x, kind, lengths)
        if kind == "RFFT":
            return _transformed(b, b.fft(x, kind, (last,)), "FFT", outer)
        return b.fft(_transformed(b, x, "IFFT", outer), kind, (last,))

    return lower


def _transformed(b: Builder, x: Value, kind: str, outer: Sequence[int]) -> Value:
    """``x``, transformed along the dimensions before its last one."""
    ndim, count = b.type(x).ndim, len(outer)
    before, along = range(ndim - 1 - count), range(ndim - 1 - count, ndim - 1)
    moved = b.fft(b.transpose(x, (*before, ndim - 1, *along)), kind, tuple(outer))
    return b.transpose(moved, (*before, *range(ndim - count, ndim), ndim - 1 - count))


def _transpose(ct: Any, x: ArrayType, kind: str, lengths: Shape) -> Any:
    """The matrix of FFT and of IFFT is symmetric. RFFT drops what is conjugate to what it keeps."""
    if kind in ("FFT", "IFFT"):
        return fft(ct, kind=kind, lengths=lengths)
    total = math.prod(lengths)
    if kind == "RFFT":
        once = _times_last(conj(ct), total * _shares(lengths[-1], 0.5))
        return fft(once, kind="IRFFT", lengths=lengths)
    twice = fft(ct, kind="RFFT", lengths=lengths)
    return conj(_times_last(twice, _shares(lengths[-1], 2.0) / max(total, 1)))


def _shares(n: int, share: float) -> np.ndarray:
    """1 for the frequencies that are their own conjugates, ``share`` for those of which RFFT
    keeps one of two."""
    shares = np.full(n // 2 + 1, share)
    shares[0] = 1
    if n % 2 == 0:
        shares[-1] = 1
    return shares


def _times_last(x: Any, factors: np.ndarray) -> Any:
    kind = typeof(x)
    values = factors.astype(dtypes.to_real(kind.dtype))
    spread = broadcast(values, shape=kind.shape, dims=(kind.ndim - 1,))
    return mul(x, complex(spread, zeros_like(spread)))


def _operations(results: Sequence[ArrayType], x: ArrayType, *, kind: str, lengths: Shape) -> float:
    """5 n log2 n of each transform of n complex numbers, half of them for real ones
    (Cooley and Tukey 1965)."""
    size = max(x.size, results[0].size)
    return (5 if kind in ("FFT", "IFFT") else 2.5) * size * math.log2(max(math.prod(lengths), 2))


def _batch(axis: Axis, x: Any, dim: int, kind: str, lengths: Shape) -> Batched:
    if dim > typeof(x).ndim - 1 - len(lengths):
        x, dim = move(x, dim, 0), 0
    return fft(x, kind=kind, lengths=lengths), dim


fft = structural(
    "fft",
    _type,
    _lower,
    transpose=_transpose,
    batch=_batch,
    dims=alike,
    lower_on={
        "cpu": _row_by_row,
        "gpu": _by_dimensions("IRFFT"),
        "rocm": _by_dimensions("IRFFT", "RFFT"),
    },
    fused=False,
    operations=_operations,
    doc="Σ x[j] exp(-2πi jk / n) over j, and its relatives, over last dimensions; stablehlo.fft",
    examples=[
        Example((c64(2, 3),), {"kind": "FFT", "lengths": (3,)}),
        Example((c64(4, 3),), {"kind": "IFFT", "lengths": (4, 3)}),
        Example((f32(2, 3, 4),), {"kind": "RFFT", "lengths": (3, 4)}),
        Example((f32(5),), {"kind": "RFFT", "lengths": (5,)}),
        Example((c64(2, 3),), {"kind": "IRFFT", "lengths": (4,)}),
        Example((c64(3, 3),), {"kind": "IRFFT", "lengths": (3, 5)}),
    ],
)
