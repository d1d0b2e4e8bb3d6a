"""Compiled programs: choosing devices and layouts, and calling with arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from phalanx.base import dtypes, tree
from phalanx.base.config import config
from phalanx.base.errors import DeletedArray, DevicesDiffer, NonFiniteError
from phalanx.base.extended import is_key
from phalanx.base.recent import key_of
from phalanx.base.source import user_location
from phalanx.core.program import Program
from phalanx.core.region import Layout
from phalanx.core.types import ArrayType
from phalanx.run.array import (
    DeletedSignature,
    DeviceArray,
    Signature,
    default_sharding,
    from_host,
    moved,
)
from phalanx.run.backend import Executable, Module, Single
from phalanx.run.runtime import backend
from phalanx.spmd import placement
from phalanx.spmd.layout import axes_of, from_axes, prime_axes
from phalanx.spmd.naming import named_results
from phalanx.spmd.plan import Plan
from phalanx.spmd.sharding import Sharding
from phalanx.transforms.derive import keep
from phalanx.transforms.passes import ready


class Runnable:
    """An executable that runs on arrays: its constants, how inputs must lie, what it gives."""

    __slots__ = (
        "checked", "donate", "executable", "fixed", "in_shardings", "misplaced", "name", "out_sigs"
    )  # fmt: skip

    def __init__(
        self,
        program: Program,
        executable: Executable,
        constants: Sequence[DeviceArray],
        sigs: Sequence[Signature],
        in_shardings: Sequence[Sharding],
        out_shardings: Sequence[Sharding],
        donate: tuple[int, ...],
    ) -> None:
        self.name = program.name
        self.executable = executable
        count = len(constants)
        self.fixed = [moved(c, s)._raw for c, s in zip(constants, in_shardings, strict=False)]
        self.in_shardings = in_shardings[count:]
        self.misplaced = [
            i for i, s in enumerate(self.in_shardings) if sigs[i].sharding.plain is not s
        ]
        self.donate = donate
        self.checked = config.debug_nans
        self.out_sigs = [
            Signature.of(t, s) for t, s in zip(program.output_types, out_shardings, strict=True)
        ]

    def __call__(self, arrays: Sequence[DeviceArray]) -> list[DeviceArray]:
        """Run on arrays of the signatures that it was compiled for."""
        raws = [a._raw for a in arrays]
        for i in self.misplaced:
            raws[i] = moved(arrays[i], self.in_shardings[i])._raw
        results = self.executable(self.fixed + raws)
        for i in self.donate:
            arrays[i]._forget("was donated to a function, which may have reused its memory")
        out = list(map(DeviceArray, results, self.out_sigs))
        if self.checked:
            check_finite(self.name, out)
        return out

    def caller(self, out_tree: Any) -> Callable[[Any], Any]:
        """The function from the arrays of a call to the tree of results.

        Where nothing has to be moved, donated or checked it does nothing but run.
        """
        build, sigs = tree.builder(out_tree), self.out_sigs
        if self.misplaced or self.donate or self.checked:
            return lambda arrays: build(self(arrays))
        if out_tree == _ONE_LEAF:
            return self.executable.caller(self.fixed, Single(DeviceArray, *sigs))
        return self.executable.caller(
            self.fixed, lambda raws: build(map(DeviceArray, raws, sigs))
        )


_ONE_LEAF = tree.structure(0)


@dataclass(frozen=True, slots=True)
class _Ready:
    """A program as it is lowered, and the constants that it takes first."""

    program: Program
    constants: tuple[DeviceArray, ...]


def _ready(program: Program) -> _Ready:
    def make() -> _Ready | None:
        """None where the program is ready as it is."""
        made = ready(program)
        constants = tuple([_on_device(c.value) for c in made.constants])
        return None if made.program is program else _Ready(made.program, constants)

    return keep(program, "ready", make) or _Ready(program, ())


def _on_device(value: Any) -> DeviceArray:
    return value if isinstance(value, DeviceArray) else from_host(value)


def compile_program(
    program: Program,
    sigs: Sequence[Signature],
    donate: tuple[int, ...] = (),
    options: dict[str, Any] | None = None,
    lowered: Module | None = None,
    home: Sharding | None = None,
    name_of_input: Callable[[int], str] = "operand {}".format,
) -> Runnable:
    """Compile ``program`` for inputs of the signatures ``sigs``.

    What was compiled for the same layout is used again; ``lowered`` may give the module, and
    ``home`` the device.

    Raises:
        DevicesDiffer: inputs are committed to devices that differ, and nothing says which to use.
    """
    donate = _donated(donate)
    taking = _ready(program)
    every = [*(c._sig for c in taking.constants), *sigs]
    _check_devices(program, sigs, home, name_of_input)
    plan, committed = _planned(program, taking, every, home)

    def make() -> Executable:
        module = lower_program(program, sigs, donate, home) if lowered is None else lowered
        return backend().compile(module, options)

    key = (plan, donate, config.key, option_key(options or {}, "compile"))
    executable = keep(program, key, make)
    in_shardings = plan.in_shardings
    if len(plan.devices) == 1:
        sharding = Sharding(plan.devices, committed=committed)
        in_shardings = tuple(
            s.sharding.plain if s.sharding.devices == plan.devices else sharding for s in every
        )
    results = [
        s if committed else Sharding(s.devices, committed=False) for s in executable.out_shardings
    ]
    results = named_results(program, plan.mesh, [s.sharding for s in sigs], results)
    return Runnable(program, executable, taking.constants, sigs, in_shardings, results, donate)


def option_key(options: dict[str, Any], who: str) -> frozenset:
    """Options of the compiler as part of a key.

    Raises:
        ValueError: a value cannot be hashed.
    """
    try:
        return frozenset((name, key_of(value)) for name, value in options.items())
    except TypeError:  # not hashable
        raise ValueError(
            f"{who}: compiler options are strings, numbers or booleans by name, got {options!r}"
        ) from None


def lower_program(
    program: Program,
    sigs: Sequence[Signature],
    donate: tuple[int, ...] = (),
    home: Sharding | None = None,
) -> Module:
    """The module that ``compile_program`` compiles for inputs of the signatures ``sigs``."""
    taking = _ready(program)
    plan, _ = _planned(program, taking, [*(c._sig for c in taking.constants), *sigs], home)
    count = len(taking.constants)
    return backend().lower(taking.program, plan, tuple([i + count for i in _donated(donate)]))


def _donated(donate: tuple[int, ...]) -> tuple[int, ...]:
    # where NaNs are looked for, the arguments are needed again to find what made one
    return () if config.debug_nans else donate


def _planned(
    program: Program, taking: _Ready, sigs: Sequence[Signature], home: Sharding | None
) -> tuple[Plan, bool]:
    for sig in sigs:
        if isinstance(sig, DeletedSignature):
            raise DeletedArray(
                f"{program.name}: Array has been deleted. An argument, {sig.type}, {sig.why}; its "
                "value is no longer there. Keep a copy (x.copy()) if it is needed again, or do not "
                "donate it"
            )
    plan, committed = make_plan(
        taking.program, [s.sharding for s in sigs], home, len(taking.constants)
    )
    return _of_whole_keys(plan, program.output_types), committed


def _check_devices(
    program: Program,
    sigs: Sequence[Signature],
    home: Sharding | None,
    name_of_input: Callable[[int], str],
) -> None:
    """Raise ``DevicesDiffer`` unless the devices of one committed input include all others.

    Where ``home`` or the program itself names devices, its inputs are brought there.
    """
    placed = [(i, s) for i, s in enumerate(sigs) if s.sharding.committed]
    if home is not None or len({s.sharding.devices for _, s in placed}) < 2:
        return
    first, widest = max(placed, key=lambda p: len(p[1].sharding.devices))
    within = widest.sharding.device_set
    apart = next((p for p in placed if not within.issuperset(p[1].sharding.devices)), None)
    if apart is None or placement.mesh_of(program, tuple(backend().local_devices())) is not None:
        return
    given = [
        f"{name_of_input(i)}, {s.type}, lies on {', '.join(map(str, s.sharding.devices))}"
        for i, s in sorted([(first, widest), apart], key=lambda p: p[0])
    ]
    raise DevicesDiffer(
        f"{program.name}: Received incompatible devices for jitted computation, at "
        f"{user_location()}: arrays that were placed on different devices do not combine, and "
        f"{'; '.join(given)}. Move one of them: phalanx.device_put(x, device)"
    )


def _of_whole_keys(plan: Plan, types: Sequence[ArrayType]) -> Plan:
    """``plan``, where XLA does not choose to part the words of the keys among the outputs."""
    if not any(is_key(t.dtype) for t in types):
        return plan
    open_dims = [(None,) * t.ndim if is_key(t.dtype) else None for t in types]
    chosen = [
        dims if layout is None else layout
        for layout, dims in zip(plan.out_layouts, open_dims, strict=True)
    ]
    return replace(plan, out_layouts=tuple(chosen))


def make_plan(
    program: Program,
    shardings: Sequence[Sharding],
    home: Sharding | None = None,
    constants: int = 0,
) -> tuple[Plan, bool]:
    """Devices, mesh and layouts for ``program`` on inputs laid out as ``shardings``.

    ``home``, if the user gave one, is the device to run on. Also whether the results belong on
    those devices because the user said so. The first inputs, as many as there are ``constants``,
    follow the others.
    """
    local = tuple(backend().local_devices())
    first = local[:1]
    mesh = placement.mesh_of(program, local)
    if mesh is not None and mesh.axes:
        return _region_plan(program, mesh, shardings), True
    widest = max(shardings, key=lambda s: len(s.devices), default=None)
    if home is not None or widest is None or len(widest.devices) == 1:
        prescribed = [] if home is None else [home]
        if mesh is not None and mesh.devices != first:
            prescribed.append(Sharding(mesh.devices))
        own = [*shardings[constants:], *shardings[:constants], default_sharding()]
        chosen = next((s for s in [*prescribed, *own] if s.committed), own[0])
        whole: tuple[Layout, ...] = ((),) * len(shardings)
        return Plan(chosen.devices, (), whole, ((),) * len(program.outputs)), chosen.committed
    return _partitioned_plan(program, widest.devices, shardings), True


def _region_plan(
    program: Program, mesh: placement.ProgramMesh, shardings: Sequence[Sharding]
) -> Plan:
    in_layouts = tuple(
        _layout_over(s, mesh.devices, v.type.ndim, mesh.axes) or () if wanted is None else wanted
        for v, s, wanted in zip(
            program.inputs, shardings, placement.wanted_inputs(program, mesh), strict=True
        )
    )
    out_layouts = tuple(placement.given_outputs(program, mesh))
    independent = placement.is_independent(program, mesh)
    reachable = Sharding(mesh.devices).is_fully_addressable
    return Plan(
        mesh.devices, mesh.axes, in_layouts, out_layouts, mesh.levels, independent and reachable
    )


def _partitioned_plan(program: Program, devices: tuple, shardings: Sequence[Sharding]) -> Plan:
    here = [s for s in shardings if s.devices == devices]
    axes = prime_axes(len(devices), *here)
    in_layouts = tuple(
        _layout_over(s, devices, v.type.ndim, axes) or ()
        for v, s in zip(program.inputs, shardings, strict=True)
    )
    return Plan(devices, axes, in_layouts, (None,) * len(program.outputs))


def _layout_over(sharding: Sharding, devices: tuple, ndim: int, axes: Any) -> Layout | None:
    return axes_of(sharding, ndim, axes) if sharding.devices == devices else None


def replicated(devices: tuple) -> Sharding:
    """The whole array on each of ``devices``."""
    return from_axes(devices, (), ()) if len(devices) == 1 else Sharding(devices)


def check_finite(name: str, outputs: Sequence[DeviceArray]) -> None:
    """Raise ``NonFiniteError`` if an output has a NaN; names the line that is being executed."""
    for output in outputs:
        if dtypes.is_inexact(output.dtype) and np.isnan(output._value).any():
            raise NonFiniteError(
                f"{name}: NaN in a result {output.aval} at {user_location()} (debug_nans "
                "is set); its operands hold a NaN, or what it does with them has no value, such "
                "as 0/0, log(-1) or inf - inf"
            )
