"""``foreign_call``: a function of another language that is registered with XLA.

What has a side effect takes a boolean before its operands: whether to call at all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from msgspec.structs import replace

from phalanx.base.errors import MissingRule
from phalanx.base.source import Location
from phalanx.control.sequential import sequential
from phalanx.core.axes import Axis
from phalanx.core.builder import Builder, Value
from phalanx.core.ffi_records import ForeignFunction, Layouts
from phalanx.core.primitive import (
    CALLS,
    Active,
    Batched,
    Derivative,
    Effects,
    Elements,
    LaneDims,
    NoRule,
    Operands,
    Primitive,
    no_results,
)
from phalanx.core.types import ArrayType, Types
from phalanx.primitives.basis import broadcast_lanes, move
from phalanx.primitives.domains import I32
from phalanx.primitives.lanes import leading, without_padding


@dataclass(frozen=True, slots=True)
class Foreign:
    """A foreign function, and how it is called.

    Attributes:
        function: what is called.
        out_types: the types of the results.
        vmap_method: how the lanes of ``vmap`` are called: None for not at all. Those of ``pmap``,
            which is how a device may have several, are then called one by one.
        has_side_effect: whether it is called where nobody needs its results.
        location: where the user called it.
    """

    function: ForeignFunction
    out_types: Types
    vmap_method: str | None
    has_side_effect: bool
    location: Location = field(compare=False)

    def __repr__(self) -> str:
        return self.function.target


def _type(*types: ArrayType, foreign: Foreign) -> Types:
    return foreign.out_types


def _lower(b: Builder, *xs: Value, foreign: Foreign) -> list[Value]:
    if not foreign.has_side_effect:
        return b.foreign_call(foreign.function, xs, foreign.out_types, False)
    called, *operands = xs

    def nothing(b: Builder) -> list[Value]:
        return [b.broadcast_in_dim(b.constant(0, t.dtype), t.shape, ()) for t in foreign.out_types]

    def call(b: Builder) -> list[Value]:
        return b.foreign_call(foreign.function, operands, foreign.out_types, True)

    return b.case(b.convert(called, I32), [nothing, call])


def _linearize(active: Active, *primals: Any, foreign: Foreign) -> Derivative:
    if foreign.out_types:
        raise ValueError(
            f"ffi_call({foreign}): a foreign function has no derivative, and the arguments of this "
            f"one, at {foreign.location}, depend on what a derivative is taken by. Give the "
            "function that contains the call a derivative with custom_jvp or custom_vjp, or stop "
            "the derivative before it with lax.stop_gradient"
        )
    return foreign_call(*primals, foreign=foreign), no_results


# ---- vectorization --------------------------------------------------------------------------


def _batch(axis: Axis, values: Operands, dims: LaneDims, *, foreign: Foreign) -> Batched:
    if foreign.vmap_method is None and axis.rest is None:
        raise MissingRule(
            f"ffi_call({foreign}): vmap has to know how to call a foreign function for many lanes, "
            f"at {foreign.location}; give vmap_method: 'sequential' calls it once per lane, "
            "'expand_dims' and 'broadcast_all' once with the lanes as leading dimension"
        )
    several = foreign.has_side_effect and (axis.padding or dims[0] is not None)
    if foreign.vmap_method not in ("sequential", None) and not several:
        return _at_once(axis, values, dims, foreign)
    if foreign.has_side_effect and axis.padding:
        called = without_padding(axis, leading(values[0], dims[0], axis.size), False)
        values, dims = (called, *values[1:]), (0, *dims[1:])
    return _sequential(axis, values, dims, foreign=foreign)


_sequential = sequential(lambda: foreign_call)


def _at_once(axis: Axis, values: Operands, dims: LaneDims, foreign: Foreign) -> Batched:
    """One call for all lanes, which lead every argument that has some, and every result."""
    repeats = {"expand_dims": 1, "broadcast_all": axis.size}.get(str(foreign.vmap_method))
    first = int(foreign.has_side_effect)

    def alone(v: Any) -> Any:
        return v if repeats is None else broadcast_lanes(v, 0, repeats)

    pairs = list(zip(values, dims, strict=True))
    placed = [alone(v) if d is None else move(v, d, 0) for v, d in pairs[first:]]
    leads = [d is not None or repeats is not None for d in dims[first:]]
    types = [t.update(shape=(axis.size, *t.shape)) for t in foreign.out_types]
    function = replace(
        foreign.function,
        in_layouts=_with_lanes(foreign.function.in_layouts, leads),
        out_layouts=_with_lanes(foreign.function.out_layouts, [True] * len(types)),
    )
    batched = Foreign(
        function, tuple(types), foreign.vmap_method, foreign.has_side_effect, foreign.location
    )
    return foreign_call(*values[:first], *placed, foreign=batched), (0,) * len(types)


def _with_lanes(layouts: Layouts, leads: Sequence[bool]) -> Layouts:
    """How elements lie, with the lanes outermost where there are some."""
    pairs = zip(layouts, leads, strict=True)
    return tuple([(0, *[d + 1 for d in order]) if lanes else order for order, lanes in pairs])


def _called(*, foreign: Foreign) -> str:
    return f"ffi_call({foreign})"


def _effects(*, foreign: Foreign) -> frozenset[Any]:
    return frozenset({CALLS}) if foreign.has_side_effect else frozenset()


foreign_call: Primitive = Primitive(
    "foreign_call",
    _type,
    _lower,
    linearize=_linearize,
    transpose=NoRule("a foreign function is not known to be linear"),
    batch=_batch,
    effects=Effects(_effects, called=_called),
    multi=True,
    elements=Elements(short="bits"),
    doc="function(operands), of another language; stablehlo.custom_call",
)


def call_foreign(foreign: Foreign, args: Sequence[Any]) -> Operands:
    """Call ``foreign`` with ``args``."""
    first = [np.bool_(True)] if foreign.has_side_effect else []
    return foreign_call(*first, *args, foreign=foreign)
