"""Attention by cuDNN's fused kernels, which hold no matrix of scores.

They are functions that XLA's compiler for CUDA knows by name. A description in JSON says what they
compute: dimensions of the products, which scores count, the factor.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from phalanx.core.builder import Builder, Value
from phalanx.core.types import ArrayType, Shape

_ELEMENTS: Final = {"bfloat16": "BF16", "float16": "F16"}
_HEADS_OUTSIDE: Final = (0, 2, 1, 3)  # [b, t, n, h] as [b, n, t, h], and back
_ROWS, _QUERIES_FIRST = (0, 1, 2, 3), (0, 2, 1, 3)  # dimensions in memory, the outermost first
_SCRATCH: Final = ArrayType((0,), np.dtype(np.uint8))  # memory whose size the compiler chooses

# Of each product the dimensions that are summed over, and those of the batch and of the heads, of
# both operands; queries, keys and values are [b, t, n, h], scores [b, n, t, s].
_SCORES, _MIXED = ((3, 3), ((0, 2), (0, 2))), ((3, 1), ((0, 1), (0, 2)))
_BACK: Final = ((2, 1), ((0, 1), (0, 2)))
_FORWARD_PRODUCTS: Final = {"bmm1": _SCORES, "bmm2": _MIXED}
_BACKWARD_PRODUCTS: Final = {
    "bmm1_grad_gemm1": _BACK,
    "bmm1_grad_gemm2": _MIXED,
    "bmm2_grad_gemm1": _BACK,
    "bmm2_grad_gemm2": _SCORES,
}


def has_kernel(types: Sequence[ArrayType]) -> bool:
    """Whether there is a kernel for operands of ``types``."""
    return types[0].dtype.name in _ELEMENTS and all(t.size for t in types)


def forward(
    b: Builder, *args: Value, scale: float, causal: bool, window: int, biased: bool
) -> list[Value]:
    """The means of values, [b, t, n, h], and the logarithms of sums of exponentials, [b, n, t].

    ``args`` are queries, keys, values, a bias if there is one, and how many queries and keys
    there are, if that is told.
    """
    out, sums = b.outs
    types = [_outside(out), sums, _SCRATCH]
    backend_config = config(*_of(b, args), scale, causal, window, len(args) > 3 + biased, False)
    layouts = [_QUERIES_FIRST, (0, 1, 2), (0,)]
    name = f"__cudnn$fmha{_KINDS[biased]}"
    mixed, logs, _ = b.expanded_call(name, args, types, backend_config, layouts)
    return [b.transpose(mixed, _HEADS_OUTSIDE), logs]


def backward(
    b: Builder,
    *values: Value,
    scale: float,
    causal: bool,
    window: int,
    biased: bool,
    for_bias: bool,
) -> list[Value]:
    """The cotangents of queries, keys, values, and of the bias if they are wanted.

    ``values`` are those of ``forward``, its results, and the cotangent of the first.
    """
    *args, out, sums, ct = values
    bias, lengths = args[3 : 3 + biased], args[3 + biased :]
    types = [_outside(t) for t in b.outs[:3]] + list(b.outs[3:]) + [_SCRATCH]
    layouts = [_QUERIES_FIRST] * 3 + [_ROWS] * for_bias + [(0,)]
    backend_config = config(*_of(b, args), scale, causal, window, bool(lengths), True)
    operands = [*args[:3], sums, ct, *bias, out, *lengths]
    name = f"__cudnn$fmha{_KINDS[biased]}Backward"
    results = b.expanded_call(name, operands, types, backend_config, layouts)[:-1]
    return [*[b.transpose(x, _HEADS_OUTSIDE) for x in results[:3]], *results[3:]]


_KINDS: Final = {False: "Softmax", True: "ScaleBiasSoftmax"}
KERNEL: Final = re.compile(rf"__cudnn\$fmha({'|'.join(_KINDS.values())})(Backward)?")


def _outside(kind: ArrayType) -> ArrayType:
    return kind.update(shape=tuple(kind.shape[d] for d in _HEADS_OUTSIDE))


def _of(b: Builder, args: Sequence[Value]) -> tuple[list[Shape], str]:
    """The shapes of queries and keys, and what elements of such a dtype are called."""
    q, k = b.type(args[0]), b.type(args[1])
    return [q.shape, k.shape], _ELEMENTS[q.dtype.name]


def config(
    shapes: Sequence[Sequence[int]],
    element: str,
    scale: float,
    causal: bool,
    window: int,
    lengths: bool,
    backward: bool,
) -> str:
    """What the kernel is told of queries and keys of such ``shapes``, as JSON.

    ``lengths`` says whether it is given how many of them there are.
    """
    q, k = shapes
    scores = (q[0], q[2], q[1], k[1])
    products: Mapping[str, Any] = _BACKWARD_PRODUCTS if backward else _FORWARD_PRODUCTS
    counted = [word for word, applies in (("PADDING", lengths), ("CAUSAL", causal)) if applies]
    described = {
        "algorithm": {"algo_id": 0, "math_type": "TENSOR_OP_MATH", "is_cudnn_frontend": True},
        "fmha_scale": scale,
        "intermediate_tensor_shape": _shape(element, scores),
        "is_flash_attention": True,
        "mask_type": "_".join(counted) or "NO_MASK",
        "sliding_window_length": window,
        "max_seg_per_batch": 1,
        **{f"{name}_dot_dimension_numbers": _dimensions(of) for name, of in products.items()},
    }
    return json.dumps({"operation_queue_id": 0, "cudnn_fmha_backend_config": described})


def _shape(element: str, shape: Shape) -> dict[str, Any]:
    return {
        "element_type": element,
        "dimensions": list(shape),
        "layout": {"minor_to_major": [3, 2, 1, 0]},
        "is_dynamic_dimension": [False] * 4,
    }


def _dimensions(product: Any) -> dict[str, list[int]]:
    (left, right), (batch_left, batch_right) = product
    return {
        "lhs_contracting_dimensions": [left],
        "rhs_contracting_dimensions": [right],
        "lhs_batch_dimensions": list(batch_left),
        "rhs_batch_dimensions": list(batch_right),
    }
