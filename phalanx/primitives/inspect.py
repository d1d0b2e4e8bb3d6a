"""``inspect_sharding``: tells a Python function how the compiler lays out a value. No results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import Struct

from phalanx.base.source import Location
from phalanx.core.axes import Axis
from phalanx.core.builder import Builder, Value
from phalanx.core.primitive import (
    Active,
    Batched,
    Derivative,
    Effects,
    Execution,
    LaneDims,
    NoRule,
    Operands,
    Primitive,
    no_results,
)
from phalanx.core.types import ArrayType

INSPECTS = frozenset({"inspects"})


class Watcher(Struct, frozen=True, eq=False):
    """Who is told, and where that was asked for."""

    function: Callable[[Any], None]
    location: Location

    def __repr__(self) -> str:
        return getattr(self.function, "__name__", "callback")


def _type(x: ArrayType, *, watcher: Watcher) -> tuple[()]:
    return ()


def _lower(b: Builder, x: Value, watcher: Watcher) -> list[Value]:
    if b.manual:
        raise ValueError(
            f"inspect_array_sharding, at {watcher.location}: inside pmap and shard_map each device "
            "holds what the program says, and the compiler chooses nothing; look at the results "
            "with visualize_array_sharding, or inspect outside of them"
        )
    b.inspect_sharding(x, watcher)
    return []


def _run(x: Any, watcher: Watcher) -> tuple[()]:
    watcher.function(x.sharding)
    return ()


def _linearize(active: Active, x: Any, watcher: Watcher) -> Derivative:
    inspect_sharding(x, watcher=watcher)
    return (), no_results


def _batch(axis: Axis, values: Operands, dims: LaneDims, watcher: Watcher) -> Batched:
    inspect_sharding(*values, watcher=watcher)
    return (), ()


def _carry_state(rewrite: Any, state: Any, x: Any, watcher: Watcher) -> tuple[Any, tuple[()]]:
    inspect_sharding(x, watcher=watcher)
    return state, ()


def _effects(*, watcher: Watcher) -> frozenset[str]:
    return INSPECTS


inspect_sharding: Primitive = Primitive(
    "inspect_sharding",
    _type,
    _lower,
    linearize=_linearize,
    transpose=NoRule("it has no results"),
    batch=_batch,
    effects=Effects(_effects, _carry_state),
    execution=Execution(run=_run),
    multi=True,
    doc="tells a Python function how x lies; a custom call that the partitioner answers",
)
