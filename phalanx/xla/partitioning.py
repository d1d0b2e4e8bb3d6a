"""What the partitioner asks: what each device computes of operations that are run by block."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxlib import _hlo

from phalanx.core.builder import Builder, Factors
from phalanx.core.platforms import AnyDevice
from phalanx.core.primitive import REGISTRY
from phalanx.core.types import ArrayType
from phalanx.spmd.plan import Plan
from phalanx.transforms.derive import trace_closed
from phalanx.xla.block_calls import BY_BLOCK
from phalanx.xla.jaxlib_versions import in_tiles, xc
from phalanx.xla.lower import build

_REPLICATED, _MANUAL = _hlo.OpSharding.Type.REPLICATED, _hlo.OpSharding.Type.MANUAL


def register(interface: Any = None) -> None:
    """Let the partitioner ask, which is that of a plugin if its ``interface`` is given."""
    more = {} if interface is None else {"c_api": interface}
    xc.register_custom_call_partitioner(BY_BLOCK, _as_requested, _partition, _unknown, True, **more)


def _as_requested(sharding: Any, *_: Any) -> Any:
    return sharding


def _unknown(*_: Any) -> Any:
    return _hlo.HloSharding.unknown()


def _partition(
    in_shapes: Sequence[Any],
    in_shardings: Sequence[Any],
    out_shape: Any,
    out_sharding: Any,
    config: bytes,
) -> tuple[bytes, Sequence[Any], Any]:
    """The module of one device, and how it wants operands and results to be cut."""
    fields = json.loads(config)
    factors = Factors(fields["operands"], fields["results"], fields["sizes"])
    several = out_shape.is_tuple()
    out_shardings = out_sharding.tuple_elements() if several else [out_sharding]
    names = [*factors.operands, *factors.results]
    grid = _grid(names, list(map(in_tiles, [*in_shardings, *out_shardings])), factors.sizes)
    shardings = [_sharding(n, grid, list(factors.sizes)) for n in names]
    count = len(in_shapes)
    sums = [_groups(n, grid, list(factors.sizes)) for n in factors.results]
    module = _module_of_block(fields, map(_block, shardings, in_shapes), sums)
    outs = shardings[count:]
    result_sharding = _hlo.HloSharding.tuple_sharding(out_shape, outs) if several else outs[0]
    return module, shardings[:count], result_sharding


def _block(sharding: Any, shape: Any) -> ArrayType:
    part = sharding.tile(shape)
    return ArrayType(tuple(part.dimensions()), part.numpy_dtype())


def _module_of_block(fields: dict[str, Any], ins: Any, sums: Sequence[np.ndarray]) -> bytes:
    """The operation on operands of types ``ins``; results are summed over groups of devices."""
    prim = REGISTRY[fields["operation"]]
    traced = trace_closed(lambda *xs: (prim(*xs, **fields["params"]), None), list(ins), prim.name)
    program = traced.program

    def emit(b: Builder, *values: Any) -> list[Any]:
        own = b.inline(program, *values)
        return [
            x if groups.shape[1] == 1 else b.all_reduce([x], groups.tolist(), _sum)[0]
            for x, groups in zip(own, sums, strict=True)
        ]

    plan = Plan((AnyDevice(fields["platform"]),))
    return build(program.input_types, program.output_types, plan, emit).bytecode


def _sum(b: Builder, x: Any, y: Any) -> Any:
    return b.add(x, y)


# ---- which devices have which blocks ------------------------------------------------------------


def _grid(names: Sequence[Sequence[str]], shardings: Sequence[Any], sizes: Any) -> np.ndarray:
    """The devices: an axis for each letter, one for those that do the same, one for manual axes.

    What cuts the most of those that have all letters is what the others follow.
    """
    with_all_factors = [
        (n, s) for n, s in zip(names, shardings, strict=True) if set("".join(n)) == set(sizes)
    ]
    grids = [_grid_of(n, s, sizes) for n, s in with_all_factors if not s.is_replicated()]
    alone = np.zeros((1,) * (len(sizes) + 2), np.int64)
    return max(grids, key=lambda g: math.prod(g.shape[: len(sizes)]), default=alone)


def _grid_of(names: Sequence[str], sharding: Any, sizes: dict[str, int]) -> np.ndarray:
    """That of an array: what its sharding cuts otherwise than a factor may be is not cut."""
    dims = sharding.tile_assignment_dimensions()
    kinds = list(sharding.subgroup_types())
    if sharding.replicate_on_last_tile_dim():
        kinds = [_REPLICATED]
    cuts = list(zip(names, dims, strict=False)) + list(zip(kinds, dims[len(names) :], strict=True))
    lengths: list[int] = []
    axes: dict[Any, list[int]] = {key: [] for key in (*sizes, _REPLICATED, _MANUAL)}
    for of, count in cuts:
        factors = _factor_cuts(count, of, sizes) if isinstance(of, str) else None
        for key, n in (factors or {_MANUAL if of == _MANUAL else _REPLICATED: count}).items():
            axes[key].append(len(lengths))
            lengths.append(n)
    devices = np.array(sharding.tile_assignment_devices(), np.int64).reshape(lengths)
    shape = [math.prod(lengths[i] for i in own) for own in axes.values()]
    return devices.transpose([i for own in axes.values() for i in own]).reshape(shape)


def _factor_cuts(count: int, letters: str, sizes: dict[str, int]) -> dict[str, int] | None:
    """Into how many each of the factors of a dimension is cut, that is into ``count``.

    None if that cannot be: an inner one is only cut where the outer one is into single places.
    """
    factors: dict[str, int] = {}
    for letter in letters:
        factors[letter] = math.gcd(count, sizes[letter])
        count //= factors[letter]
        if count > 1 and factors[letter] != sizes[letter]:
            return None
    return factors if count == 1 else None


def _axes(names: Sequence[str], letters: list[str]) -> tuple[list[int], list[int]]:
    """The axes of the grid that cut an array, and those along which it is whole."""
    own = [letters.index(x) for name in names for x in name]
    return own, [i for i in range(len(letters) + 1) if i not in own]


def _sharding(names: Sequence[str], grid: np.ndarray, letters: list[str]) -> Any:
    """How an array lies by the ``grid``."""
    own, rest = _axes(names, letters)
    cuts = [math.prod(grid.shape[letters.index(x)] for x in name) for name in names]
    manual = grid.shape[-1]
    if math.prod(cuts) * manual == 1:
        return _hlo.HloSharding.replicate()
    devices = grid.transpose([*own, *rest, -1]).reshape([*cuts, -1, manual])
    kinds = [_REPLICATED, _MANUAL]
    return _hlo.HloSharding.subgroup_with_device_ordering(np.ascontiguousarray(devices), kinds)


def _groups(names: Sequence[str], grid: np.ndarray, letters: list[str]) -> np.ndarray:
    """The devices, those in a row that have different terms of a result."""
    own, (*terms, alike) = _axes(names, letters)
    count = math.prod(grid.shape[i] for i in terms)
    return grid.transpose([*own, alike, -1, *terms]).reshape(-1, count)
