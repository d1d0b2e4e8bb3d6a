"""``constrain``: a value as it is, which lies over devices as the user says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from phalanx.base import dtypes
from phalanx.base.errors import ShardingTypeError
from phalanx.base.extended import is_key
from phalanx.base.source import user_location
from phalanx.core.axes import Axis
from phalanx.core.builder import Builder, Value
from phalanx.core.primitive import (
    Active,
    Batched,
    Cotangents,
    Derivative,
    Elements,
    Execution,
    LaneDims,
    OnDevices,
    Operands,
    Primitive,
)
from phalanx.core.program import Atom, Equation, Program, Var
from phalanx.core.types import ArrayType
from phalanx.run.array import DeviceArray, moved
from phalanx.run.eager import as_array, run_compiled
from phalanx.spmd.constraint import resolve_devices, resolve_open_dims, sharding_of_lanes
from phalanx.spmd.named import NamedSharding, unreduced_along
from phalanx.spmd.naming import in_full
from phalanx.spmd.sharding import Sharding
from phalanx.spmd.shardings_of_types import mesh_spec_of


def _type(x: ArrayType, *, sharding: Sharding) -> ArrayType:
    constrained = x.update(spec=mesh_spec_of(sharding, x.ndim, x.spec))
    if constrained.unreduced and not is_number(constrained.dtype):
        raise ShardingTypeError(
            f"{x} cannot be left as a sum, {constrained.spec}, at {user_location()}: only numbers "
            "are summed up"
        )
    return constrained


def is_number(dtype: Any) -> bool:
    """Whether what is of ``dtype`` can be added."""
    return not is_key(dtype) and not dtypes.is_bool(dtype)


def _linearize(active: Active, x: Any, *, sharding: Sharding) -> Derivative:
    return constrain(x, sharding=sharding), lambda t: constrain(t, sharding=sharding)


def _transpose(ct: Any, x: Any, sharding: Sharding) -> Cotangents:
    if isinstance(sharding, NamedSharding) and sharding.spec.has_sums:
        return [ct]  # what is taken up of a cotangent lies as its primal
    return [constrain(ct, sharding=sharding.in_memory(None))]  # where x is


def _batch(axis: Axis, values: Operands, dims: LaneDims, *, sharding: Sharding) -> Batched:
    (x,), (dim,) = values, dims
    along = axis.explicit_axes or None if axis.over is None else axis.over
    return constrain(x, sharding=sharding_of_lanes(sharding, dim, along)), dim


def _lower(b: Builder, x: Value, sharding: Sharding) -> Value:
    before, spec = (t.spec and t.spec.explicit for t in (*b.ins, *b.outs))
    left, requested = (frozenset[str]() if y is None else y.unreduced for y in (before, spec))
    if b.manual and before is not None and left - requested:
        x = b.summed(x, before)
    if spec is not None and requested - left:
        x = b.left_as_sum(x, spec)
    return b.in_memory(b.constrained(x, sharding), sharding.memory)


def _run(x: Any, *, sharding: Sharding) -> DeviceArray:
    array = as_array(x)
    if unreduced_along(array.sharding) or unreduced_along(sharding):
        return run_compiled(constrain, (array,), {"sharding": sharding})
    who = f"with_sharding_constraint at {user_location()}"
    sharding = resolve_devices(sharding, array.sharding.device_list, who)
    target = in_full(resolve_open_dims(sharding, array.sharding, array.ndim), array.ndim)
    check_fits(array.aval, target, "with_sharding_constraint")
    return moved(array, target)


def check_fits(type: ArrayType, sharding: Sharding, who: str) -> None:
    """Raise ValueError, in the name of ``who``, if no array of ``type`` can lie so."""
    try:
        sharding.check_asked(type.shape)
    except ValueError as e:
        plain = type.update(spec=None)
        raise ValueError(f"{who}: {plain} cannot lie as asked, at {user_location()}: {e}") from None


def _requested(*, sharding: Sharding) -> Sharding:
    return sharding


def _memory(*, sharding: Sharding) -> str | None:
    return sharding.memory


constrain = Primitive(
    "with_sharding_constraint",
    _type,
    _lower,
    linearize=_linearize,
    transpose=_transpose,
    batch=_batch,
    on_devices=OnDevices(
        requested_sharding=_requested,
        memory=_memory,
    ),
    execution=Execution(run=_run),
    elements=Elements(copied=True),
    doc="x, laid out as a sharding says; sdy.sharding_constraint",
)


def with_result_shardings(program: Program, shardings: Sequence[Sharding | None]) -> Program:
    """``program``, whose results lie as ``shardings`` say, where they say something."""
    after: list[Equation] = []
    outputs: list[Atom] = []
    for atom, sharding in zip(program.outputs, shardings, strict=True):
        outputs.append(atom)
        if sharding is not None:
            params = {"sharding": sharding}
            outputs[-1] = Var(constrain.result_type([atom.type], params))
            after.append(Equation(constrain, [atom], params, (outputs[-1],), user_location()))
    if not after:
        return program
    return program.update(equations=[*program.equations, *after], outputs=outputs)
