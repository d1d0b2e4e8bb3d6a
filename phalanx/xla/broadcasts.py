"""What is the same along a dimension because it was broadcast, and whether a sum keeps that."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import func

_ELEMENTWISE: Final = frozenset(
    f"stablehlo.{name}"
    for name in [
        *("abs", "add", "and", "cbrt", "ceil", "clamp", "compare", "convert", "cosine", "divide"),
        *("exponential", "exponential_minus_one", "floor", "is_finite", "log", "log_plus_one"),
        *("logistic", "maximum", "minimum", "multiply", "negate", "not", "or", "power"),
        *("remainder", "rsqrt", "select", "sign", "sine", "sqrt", "subtract", "tan", "tanh", "xor"),
    ]
)


def sums_keep_broadcasts(module: ir.Module) -> bool:
    """Whether a reduction of ``module`` may keep a dimension along which its operand, or something
    from which that is computed, was broadcast.

    Numbers that were broadcast do not count: the compiler broadcasts what is computed from them.
    Where dimensions cannot be followed the answer is yes.
    """
    functions: list[Any] = [op for op in module.body.operations if isinstance(op, func.FuncOp)]
    return any(_keeps(block, f.name.value == "main") for f in functions for block in f.body.blocks)


def _keeps(block: Any, is_main: bool = False) -> bool:
    same: dict[Any, frozenset[int]] = {}  # the dimensions along which a value was broadcast
    for op in block.operations:
        dims = frozenset[int]().union(*[same.get(x, ()) for x in op.operands])
        if _remains(op, dims, is_main):
            return True
        if after := _after(op, dims):
            same.update((x, after) for x in op.results)
    return False


def _remains(op: Any, dims: frozenset[int], is_main: bool) -> bool:
    """Whether ``op`` sums, or hands to where it is not followed, what was broadcast along
    ``dims``."""
    name = op.operation.name
    if name == "stablehlo.reduce":
        return not dims <= {*op.attributes["dimensions"]}
    if name == "func.return":
        return bool(dims) and not is_main
    if name in ("func.call", "stablehlo.return") or list(op.regions):
        inner = [block for region in op.regions for block in region.blocks]
        return bool(dims) or any(map(_keeps, inner))
    return False


def _after(op: Any, dims: frozenset[int]) -> frozenset[int]:
    """The dimensions along which the results of ``op`` were broadcast; its operands: ``dims``."""
    name = op.operation.name
    if name == "stablehlo.broadcast_in_dim":
        lengths = op.operands[0].type.shape
        if all(n == 1 for n in lengths):
            return frozenset()
        places = enumerate(op.attributes["broadcast_dimensions"])
        return _long(op.results[0], [d for i, d in places if lengths[i] != 1 and i not in dims])
    if name == "stablehlo.iota":
        return _long(op.results[0], [op.attributes["iota_dimension"].value])
    if name == "stablehlo.reduce":
        return frozenset()
    if dims and name not in _ELEMENTWISE:
        return frozenset[int]().union(*map(_long, op.results))
    return dims


def _long(x: Any, but: Iterable[int] = ()) -> frozenset[int]:
    """The dimensions of ``x`` that are longer than 1, ``but`` some."""
    return frozenset(d for d, n in enumerate(x.type.shape) if n != 1).difference(but)
