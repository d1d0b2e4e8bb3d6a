"""``plan(...).apply()``: a training step as a plan divides it, compiled for the devices here."""

# What a traced function holds is private to users, not to the analyses of it.
# pyright: reportPrivateUsage=false

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from phalanx.api.devices import devices as all_devices
from phalanx.api.jit import jit
from phalanx.api.stages import Compiled, Lowered, Traced, TracedCall
from phalanx.base import tree
from phalanx.base.config import settings
from phalanx.base.errors import (
    ArgumentError,
    DeviceCountError,
    DevicesDiffer,
    MeshesDiffer,
    ShardingTypeError,
)
from phalanx.insight.plans.microbatches import Constraint
from phalanx.insight.plans.performance_model import Load, Parting
from phalanx.insight.plans.sharding_code import JitOptions, code_of
from phalanx.insight.plans.shardings import Divided, divide, mesh_of
from phalanx.insight.systems import Machine
from phalanx.run.array import DeviceArray, moved
from phalanx.spmd.mesh import Mesh
from phalanx.transforms.stage import evaluate

__all__ = ["AppliedStep", "applied"]


class AppliedStep:
    """A training step over the mesh of a plan: called, it moves its arguments there, and runs.

    Args:
        step: the step, compiled with shardings.
        compiled: the same for the arguments of the plan.
        mesh: the mesh.
        constraints: where values inside of it are told how they lie.
        code: the lines that do the same.

    Attributes:
        mesh: the mesh, with the axes data, fsdp and tensor, and sequence where sequences are
            divided; of a ``pmap`` with lanes and copies.
        in_shardings: those of the arguments: for each of them a tree.
        out_shardings: those of the results.
        constraints: where values inside of it are told how they lie: lines, types and shardings.
        code: Python that does the same, to copy; constraints are comments in it.
        compiled: what runs, with ``collectives()`` and ``memory_analysis()``.

    >>> import phalanx, phalanx.numpy as jnp
    >>> def step(w, x):
    ...     return w - 0.1 * phalanx.grad(lambda w: jnp.mean((x @ w) ** 2))(w)
    >>> w, x = jnp.ones((64, 64)), jnp.ones((128, 64))
    >>> train = phalanx.plan(step, on="h100:1")(w, x).apply()
    >>> train(w, x).shape
    (64, 64)
    >>> train.mesh.shape, [s.spec for s in train.in_shardings]
    ({'data': 1, 'fsdp': 1, 'tensor': 1}, [P(), P()])
    """

    def __init__(
        self, step: Any, compiled: Compiled, mesh: Mesh, constraints: Sequence[Constraint],
        code: str,
    ) -> None:  # fmt: skip
        self._step = step
        self.compiled = compiled
        self.mesh = mesh
        self.constraints = tuple(constraints)
        self.code = code
        self.in_shardings: tuple[Any, ...] = compiled.input_shardings[0]
        self.out_shardings: Any = compiled.output_shardings

    def __repr__(self) -> str:
        return f"<{self.compiled.fun_name} over {self.mesh}>"

    def __call__(self, *args: Any) -> Any:
        """The results of the step. State that was there before is donated.

        Args:
            *args: arguments of the shapes and dtypes of the plan.

        Raises:
            TypeError: their structure, a shape or a dtype is another one.
        """
        leaves, structure = tree.flatten(args)
        wanted = tree.leaves(self.in_shardings)
        if len(leaves) == len(wanted):  # otherwise what is compiled says what is wrong
            pairs = zip(leaves, wanted, strict=True)
            leaves = [moved(x, s) if isinstance(x, DeviceArray) else x for x, s in pairs]
        return self.compiled(*structure.unflatten(leaves))

    def trace(self, *args: Any) -> Traced:
        """The step traced, as ``jit(f).trace`` does: what ``verify`` and ``explain`` look at.

        Args:
            *args: arguments as for a call, or ``ShapeDtypeStruct`` in their place.
        """
        return self._step.trace(*args)

    def lower(self, *args: Any) -> Lowered:
        """The step lowered, as ``jit(f).lower`` does.

        Args:
            *args: arguments as for a call, or ``ShapeDtypeStruct`` in their place.
        """
        return self._step.lower(*args)


def applied(
    traced: Traced, load: Load, chips: Machine, parting: Parting, devices: Sequence[Any] | None
) -> AppliedStep:
    """A step that was ``traced`` over the mesh of a plan.

    Raises:
        ArgumentError: it takes or captures what cannot be divided.
        DeviceCountError: there are fewer devices than chips.
    """
    start = f"plan: {traced.fun_name} cannot be applied"
    _check(traced._traced, load, parting, start)
    mesh = mesh_of(load, parting, _devices(chips, devices, start))
    divided = divide(traced, load, mesh)
    step, options = _step(traced._traced, divided)
    try:
        made = jit(
            step,
            in_shardings=options.in_shardings,
            out_shardings=options.out_shardings,
            donate_argnums=options.donate_argnums,
        )
        compiled = made.lower(*traced.in_avals[0]).compile()
    except (DevicesDiffer, MeshesDiffer, ShardingTypeError) as e:
        raise ArgumentError(
            f"{start}: it says itself over which mesh it runs, and cannot be divided over another "
            f"one ({e}). Leave out its shard_map and its shardings, or call it without apply"
        ) from None
    code = code_of(traced, options, mesh, divided.constraints, devices is not None)
    return AppliedStep(made, compiled, mesh, divided.constraints, code)


def _check(call: TracedCall, load: Load, parting: Parting, start: str) -> None:
    """Raise ArgumentError if a step cannot be divided as a plan says."""
    if call.captured or call.stored:
        what = call.captured[0].aval if call.captured else call.names[call.stored[0]]
        raise ArgumentError(
            f"{start}: it reads or writes a reference, {what}, whose value stays on its device; "
            "take what it holds as an argument, and return the new value"
        )
    if named := call.in_tree.children()[1].num_leaves:
        names = ", ".join(call.names.all()[-named:])
        raise ArgumentError(
            f"{start}: shardings are those of arguments by position, but {names} is given by "
            "name; pass every argument by position"
        )
    fixed = [*call.static.positional, *call.static.keywords]
    if fixed:
        values = ", ".join([f"{name}={value!r}" for name, value in fixed])
        raise ArgumentError(
            f"{start}: it has static arguments, {values}; fix them before, as by functools."
            "partial, and plan what that gives"
        )
    there, types = settings().mesh, [t for t in call.types if t.spec is not None]
    if types or (there is not None and there.explicit_axes):
        what = f"arguments of type {types[0]}" if types else f"the mesh {there} is set"
        raise ArgumentError(
            f"{start}: {what}, whose axes are of type Explicit: then types say how it is divided. "
            "Plan it for arrays, or types, over no mesh, outside of set_mesh"
        )
    if load.lanes > 1 and parting.data < parting.chips:
        raise ArgumentError(
            f"{start} over {parting}: it is a pmap of {load.lanes} lanes, of which each has all of "
            f"the state. Plan it with data={parting.chips}; without pmap the state can be divided"
        )


def _devices(chips: Machine, devices: Sequence[Any] | None, start: str) -> list[Any]:
    found = list(all_devices() if devices is None else devices)
    if len(found) < chips.chips:
        kind = f"{found[0].platform} " if found else ""
        there = f"is 1 {kind}device" if len(found) == 1 else f"are {len(found)} {kind}devices"
        raise DeviceCountError(
            f"{start}: it is planned for the {chips.chips:,} chips of {chips.name}, and there "
            f"{there}; plan it on a machine of as many, or call apply where the chips are"
        )
    return found


def _step(call: TracedCall, divided: Divided) -> tuple[Callable[..., Any], JitOptions]:
    """The step as a function of its arguments, and with what ``jit`` compiles it."""

    @functools.wraps(call.names.fun, updated=())
    def step(*args: Any) -> Any:
        return call.out_tree.unflatten(evaluate(divided.program, tree.leaves(args)))

    step.__name__ = call.program.name
    ins, _ = call.in_tree.unflatten(divided.ins)
    donated, _ = call.in_tree.unflatten(divided.donated)
    positions = [
        i for i, is_donated in enumerate(donated) if all(tree.leaves(is_donated) or [False])
    ]
    outs = call.out_tree.unflatten(call.results(divided.outs))
    return step, JitOptions(ins, outs, tuple(positions), call.results(divided.outs))
