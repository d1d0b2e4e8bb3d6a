"""What calls by name are told besides arrays: whether it is what writing tells them.

Letters of LAPACK and numbers go to functions that do not look at them, and descriptions to
compilers that end the process where one is wrong.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Sequence
from typing import Any, Final

from jaxlib.mlir import ir as mlir_ir
from msgspec import convert

from phalanx.core.builder import Factors
from phalanx.primitives.attention import BackwardHow, How
from phalanx.primitives.cudnn import KERNEL, config
from phalanx.xla.block_calls import BY_BLOCK

ir: Any = mlir_ir  # of which much is asked here that is used nowhere else
Operation = Any
Shape = Sequence[int]

_LETTERS: Final = {
    "uplo": "LU",
    "side": "LR",
    "trans_x": "NTC",
    "diag": "NU",
    "mode": "ASNV",
    "sort": "N",
    "compute_left": "NV",
    "compute_right": "NV",
}
_TRUTHS: Final = frozenset(
    ["left", "right", "lower", "transpose", "transposed", "full_matrices", "compute_uv"]
)
_NUMBERS: Final[dict[str, Callable[[int, int], bool]]] = {  # each, where there are so many rows
    "algorithm": lambda n, _: n == 0,
    "low": lambda n, _: n == 1,
    "high": lambda n, rows: n == rows,
}
# how XLA is to find eigenvalues on TPUs
_ROTATIONS: Final = re.compile(r"[01],[01],[0-9]{1,4},1e-[0-9]{1,2}")
_TEXTS: Final = {"magma": "auto"}
_BLOCKS: Final = {"attention": How, "attention_backward": BackwardHow}  # cut by asking us


def check(name: str, operation: Operation) -> None:
    """Look at what a call of ``name``, a function that is known, is told.

    Raises:
        ValueError: something in it cannot be.
    """
    config = operation.attributes.get("backend_config")
    shapes = [_shape(x) for x in operation.operands]
    if isinstance(config, ir.DictAttr):
        for one in [config[i] for i in range(len(config))]:
            if not _is_option(one.name, one.attr, shapes):
                raise ValueError(f"{name} is told {one.name} = {one.attr}"[:200])
        return
    text = "" if config is None else ir.StringAttr(config).value
    if name == BY_BLOCK:
        _check_block(json.loads(text), [*shapes, *map(_shape, operation.results)], len(shapes))
    elif KERNEL.fullmatch(name):
        _check_kernel(name, json.loads(text), shapes)
    elif text and not (name == "Eigh" and _ROTATIONS.fullmatch(text)):
        raise ValueError(f"{name} is told {text!r:.100}")


def _shape(x: Any) -> Shape:
    kind = ir.RankedTensorType(x.type)
    return [-1 if kind.is_dynamic_dim(i) else kind.get_dim_size(i) for i in range(kind.rank)]


def _is_option(name: str, value: Any, shapes: Sequence[Shape]) -> bool:
    if name in _TRUTHS:
        return isinstance(value, ir.BoolAttr)
    if name in _TEXTS:
        return isinstance(value, ir.StringAttr) and value.value == _TEXTS[name]
    if not isinstance(value, ir.IntegerAttr):
        return False
    if name in _LETTERS:
        return value.value in _LETTERS[name].encode()
    return name in _NUMBERS and _NUMBERS[name](value.value, shapes[0][-1])


def _check_kernel(name: str, fields: Any, shapes: Sequence[Shape]) -> None:
    """Raise ValueError if cuDNN is told else than ``ops.cudnn`` tells it of such operands."""
    how = fields["cudnn_fmha_backend_config"]
    scale, window, words = how["fmha_scale"], how["sliding_window_length"], str(how["mask_type"])
    expected = config(
        shapes[:2],
        how["intermediate_tensor_shape"]["element_type"],
        float(scale),
        "CAUSAL" in words,
        int(window),
        "PADDING" in words,
        name.endswith("Backward"),
    )
    if json.loads(expected) != fields or not math.isfinite(scale) or window < 0:
        raise ValueError(f"{name} is told {json.dumps(fields):.100}")


def _check_block(fields: dict[str, Any], shapes: Sequence[Shape], count: int) -> None:
    """Raise ValueError if what is told of an operation on blocks is not of it or of ``shapes``,
    of ``count`` operands and then of results."""
    operation, params, platform = (
        fields.pop("operation"),
        fields.pop("params"),
        fields.pop("platform"),
    )
    if operation not in _BLOCKS or platform not in ("cuda", "rocm", "tpu", "cpu"):
        raise ValueError(f"a part of {operation!r:.80}, for {platform!r:.80}, is to be computed")
    convert(params, _BLOCKS[operation])
    parts_of = tuple[tuple[str, ...], ...]
    operands, results = convert(fields["operands"], parts_of), convert(fields["results"], parts_of)
    factors = Factors(operands, results, convert(fields["sizes"], dict[str, int]))
    names = [*factors.operands, *factors.results]
    if len(factors.operands) != count or len(names) != len(shapes):
        raise ValueError(f"it is told of {len(names)} arrays, and has {len(shapes)}")
    for letters, shape in zip(names, shapes, strict=True):
        parts = [math.prod(factors.sizes[x] for x in name) for name in letters]
        if any(n < 1 or size < 0 or size % n for n, size in zip(parts, shape, strict=True)):
            raise ValueError(f"it is told to cut {list(shape)} in {parts}")
