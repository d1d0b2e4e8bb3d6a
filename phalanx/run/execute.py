"""Programs on their way to devices: planned, lowered and compiled."""

# What an array holds is private to users, not to what runs programs on arrays.
# pyright: reportPrivateUsage=false

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from phalanx.base import log
from phalanx.base.config import config, settings
from phalanx.base.dump import dump
from phalanx.base.errors import DeletedArray, DeviceError
from phalanx.base.extended import is_key
from phalanx.base.keys import key_of
from phalanx.base.phases import phase
from phalanx.base.source import user_location
from phalanx.core.memoize import memoize_on
from phalanx.core.program import Literal, Program
from phalanx.run.agree import agree
from phalanx.run.array import (
    DeletedSignature,
    DeviceArray,
    Signature,
    default_sharding,
    from_host,
)
from phalanx.run.backend import Executable, Module
from phalanx.run.calls import LoadedProgram
from phalanx.run.guards import unwatched
from phalanx.run.launched import launched
from phalanx.run.oom_retry import compile_with_oom_retry
from phalanx.run.planning import (
    Planning,
    RequestedShardings,
    check_devices,
    constraints,
    inferred_outputs,
    make_plan,
    of_whole_keys,
)
from phalanx.run.runnable import Runnable
from phalanx.run.runtime import backend
from phalanx.spmd.constraint import is_abstract, over, resolve_open_dims, without_open_dims
from phalanx.spmd.memory_kinds import memories_of_results
from phalanx.spmd.named import NamedSharding, P, unreduced_along
from phalanx.spmd.naming import candidate_shardings, in_full, named, named_results
from phalanx.spmd.plan import Plan
from phalanx.spmd.sharding import Sharding
from phalanx.transforms.passes import ready


class _Ready(Struct, frozen=True):
    """A program as it is lowered, the constants that it takes first, and those written into it."""

    program: Program
    constants: tuple[DeviceArray, ...]
    written: tuple[DeviceArray, ...]


# Elements of an array that is written into a program which captured it. An operand takes each
# launch a microsecond and a compiler does not know its value, so settings and tables of a method
# are no operands. What is larger is rather data or parameters: with other values of these, what was
# compiled and stored is used again.
_FEW = 256


def _ready(program: Program) -> _Ready:
    def make() -> _Ready | None:
        """None where the program is ready as it is."""
        dump(program.name, "traced", partial(str, program))
        prepared = ready(program)
        values = [_on_device(c.value) for c in prepared.constants]
        pairs = list(zip(prepared.program.inputs, values, strict=False))
        written = {v: x for v, x in pairs if _is_written(x)}
        if not written:
            return (
                None if prepared.program is program else _Ready(prepared.program, tuple(values), ())
            )
        # a copy, since memory that NumPy looks at cannot be donated
        literals = {v: Literal(np.array(x._fetched())) for v, x in written.items()}
        inputs = [v for v in prepared.program.inputs if v not in written]
        taken = tuple([x for v, x in pairs if v not in written])
        renamed = prepared.program.renamed(literals).update(inputs=inputs)
        return _Ready(renamed, taken, tuple(written.values()))

    return memoize_on(program, "ready", make) or _Ready(program, (), ())


def _on_device(value: Any) -> DeviceArray:
    if isinstance(value, DeviceArray):
        return value
    with unwatched():
        return from_host(value)


def _is_written(x: DeviceArray) -> bool:
    """Whether ``x`` is small, of numbers, in the host's memory, and where nobody put it."""
    if x.size > _FEW or x.committed or is_key(x.dtype):
        return False
    return len(x.sharding.device_list) == 1 and x.platform() == "cpu"


class Planned:
    """A program on the devices and in the layouts that are chosen for inputs of certain signatures.

    From here it is lowered, ``module``, and compiled, as often as there are options of compilers.

    Attributes:
        program: what the user wrote.
        plan: the devices, the mesh, and how inputs and outputs lie.
        donate: the inputs whose memory results may take.
        places: where inputs and outputs are to lie, over those devices.
        name_of_input: what messages call an input.
    """

    def __init__(
        self,
        program: Program,
        sigs: Sequence[Signature],
        donate: tuple[int, ...],
        places: RequestedShardings | None,
        name_of_input: Callable[[int], str],
    ) -> None:
        self.program, self.sigs, self.name_of_input = program, sigs, name_of_input
        self.donate = _donated(donate)
        self._ready = _ready(program)
        places = places or RequestedShardings.anywhere(program)
        check_devices(program, sigs, places, name_of_input)
        input_sigs = [*(c._sig for c in self._ready.constants), *sigs]
        planning = _plan(program, self._ready, input_sigs, places)
        self.plan, self.places = planning.plan, planning.places
        self._committed = planning.committed

    @functools.cached_property
    def module(self) -> Module:
        """The program as XLA takes it."""
        return self._lowered(self.plan)

    def lowered_for(self, platforms: Sequence[str]) -> Module:
        """The module for ``platforms`` in place of that of the devices.

        Raises:
            ValueError: there are several platforms, and several devices.
        """
        if len(platforms) == 1:
            return self._lowered(replace(self.plan, platform=platforms[0]))
        if len(self.plan.devices) > 1:
            raise ValueError(
                f"{self.program.name}: over {len(self.plan.devices)} devices it is lowered for one "
                f"platform at a time, got {', '.join(platforms)}"
            )
        return backend().lower_for_each(self._ready.program, self.plan, platforms)

    def compile(self, options: dict[str, Any] | None = None) -> Runnable:
        """Compile with those ``options`` of the compiler, or use what was compiled so before."""
        options = options or {}
        key = (self.plan, self.donate, config.key, option_key(options, "compile"))
        candidates = self._candidates()
        executable = memoize_on(self.program, key, lambda: self._compiled(options, candidates))
        program, count = self.program, len(self._ready.constants)
        results, targets = self._results(executable, candidates)
        ins = [
            *executable.in_shardings[:count],
            *map(_as_sum, self._placed, executable.in_shardings[count:]),
        ]
        names = [self.name_of_input(i) for i in range(len(self.sigs))] if self.donate else ()
        return Runnable(
            program, executable, self._ready.constants, self.sigs, ins, results, targets,
            self.donate, candidates, names,
        )  # fmt: skip

    def compile_for(self, devices: Sequence[Any], lowered: Module) -> Executable:
        """``lowered``, a module of this, compiled for others than it is planned for: those of
        ``devices`` that have the same numbers.

        Raises:
            DeviceError: there are too few.
        """
        numbers = [d.id for d in lowered.plan.devices]
        if max(numbers) >= len(devices):
            raise DeviceError(
                f"{self.program.name} is for {max(numbers) + 1} devices, and there are "
                f"{len(devices)} of platform {devices[0].platform}; describe more of them"
            )
        others = tuple([devices[n] for n in numbers])

        def lower(plan: Plan) -> Module:
            local_plan = replace(lowered.plan, halvings=plan.halvings)
            return (self._lowered(local_plan) if plan.halvings else lowered).over(others)

        return compile_with_oom_retry(self.program, lowered.plan, lower, devices=others)

    def _lowered(self, plan: Plan) -> Module:
        count = len(self._ready.constants)
        return backend().lower(self._ready.program, plan, tuple([i + count for i in self.donate]))

    def _compiled(self, options: dict[str, Any], candidates: Sequence[NamedSharding]) -> Executable:
        program, ready = self.program, self._ready

        def lower(plan: Plan) -> Module:
            module: Any = self._lowered(plan) if plan.halvings else self.module
            dump(program.name, "module", partial(module.as_text, locations=True))
            agree(program, module, plan.devices, [*ready.constants, *ready.written], options)
            return module

        if config.log_compiles:
            types = ", ".join(str(s.type) for s in self.sigs)
            log.warn("Compiling %s for arguments (%s)", program.name, types)
        executable = compile_with_oom_retry(program, self.plan, lower, options)
        for watcher, type, plain in executable.inspected:
            watcher.function(named(plain, type, candidates))
        return executable

    # ---- how inputs and results lie, by name ----

    def _candidates(self) -> Sequence[NamedSharding]:
        """The names that the user has for how arrays lie, where it is compiled."""
        devices = self.plan.devices
        requested = [s for s in (*self.places.outs, *self.places.ins) if s is not None]
        inside = [
            _within(without_open_dims(over(s, devices))) for s, _ in constraints(self.program)
        ]
        shardings = [s.sharding for s in (*(c._sig for c in self._ready.constants), *self.sigs)]
        named_by = [*requested, *inside, *shardings, default_sharding()]
        return candidate_shardings(self.program, self.plan.mesh, named_by)

    @property
    def _placed(self) -> list[Sharding]:
        """Where each input is when it is passed."""
        return [s or sig.sharding for s, sig in zip(self.places.ins, self.sigs, strict=True)]

    def _results(
        self, executable: Executable, candidates: Sequence[NamedSharding]
    ) -> tuple[Sequence[Sharding], Sequence[Sharding | None]]:
        """How the results lie, and where each is to be moved then; None: nowhere.

        A result has the name that the user asks for, or else that of its type or of the input that
        it is, or else one by which the program is known. What comes otherwise than planned, as
        compilers leave what has no elements, is moved to where it should be.
        """
        program, plan, requested = self.program, self.plan, self.places.outs
        out_shardings = executable.out_shardings
        settled = [s or m for s, m in zip(plan.out_shardings, out_shardings, strict=True)]
        actual = [s if self._committed else s.freed() for s in settled]
        actual = named_results(program, plan.mesh, candidates, actual)
        inferred = inferred_outputs(program, self._placed, plan.devices)
        ranks = [t.ndim for t in program.output_types]
        results = list(map(_named_by, actual, requested, inferred, ranks))
        kinds = zip(requested, results, memories_of_results(program), strict=True)
        targets = [s.in_memory(m) if m and want is None else want for want, s, m in kinds]
        for i, (s, m) in enumerate(zip(settled, out_shardings, strict=True)):
            if s is not m:
                targets[i], results[i] = targets[i] or results[i], m
        return results, targets


def compile_program(
    program: Program,
    sigs: Sequence[Signature],
    donate: tuple[int, ...] = (),
    options: dict[str, Any] | None = None,
    places: RequestedShardings | None = None,
    name_of_input: Callable[[int], str] = "operand {}".format,
) -> LoadedProgram:
    """Compile ``program`` for inputs of the signatures ``sigs``.

    What was compiled for the same layout is used again. ``places`` may say where inputs and outputs
    are to lie.

    Raises:
        DevicesDiffer: inputs are committed to devices that differ, and nothing says which to use.
        DeviceError: something in it has to be launched by itself.
    """
    launch = launched(program, compiled=places is not None)
    if launch is not None:
        return launch(program, sigs, _donated(donate))
    with phase("lowering"):
        return Planned(program, sigs, donate, places, name_of_input).compile(options)


def plan_program(
    program: Program,
    sigs: Sequence[Signature],
    donate: tuple[int, ...],
    places: RequestedShardings,
    name_of_input: Callable[[int], str],
) -> Planned:
    """``program`` planned for inputs of the signatures ``sigs``, to be lowered and compiled.

    Raises:
        DevicesDiffer, DeviceError: as ``compile_program``.
    """
    launched(program, compiled=True)
    return Planned(program, sigs, donate, places, name_of_input)


def _as_sum(expected: Sharding, actual: Sharding) -> Sharding:
    """``expected`` if it names an unreduced result in the layout ``actual``, as
    ``P(unreduced={"x"})`` does, else ``actual``. The layout alone does not tell a sum from copies.
    """
    return expected if unreduced_along(expected) and expected.plain is actual else actual


def _within(expected: Sharding) -> Sharding:
    """The name that a result gets from ``expected``, a constraint inside of the program.

    It is over the mesh that is set, if only the types of axes differ, and has no entries for whole
    dimensions at the end, as names of results have that no constraint names.
    """
    if not isinstance(expected, NamedSharding):
        return expected
    expected = expected.update(spec=P.of(expected.spec.layout))
    context_mesh = settings().mesh
    if context_mesh is None or not expected.mesh.has_devices:
        return expected
    mesh = expected.mesh
    same = (
        mesh.update(axis_types=context_mesh.axis_types) if mesh.axes == context_mesh.axes else None
    )
    return expected.update(mesh=context_mesh) if same == context_mesh else expected


def _named_by(
    actual: Sharding, requested: Sharding | None, by: Sharding | None, ndim: int
) -> Sharding:
    """``actual`` under the name of ``requested``, if that means the same, or else the name that it
    has ``by`` its type or the input that it is."""
    name = actual if by is None else _named_as(by, actual, ndim)
    return requested if requested is not None and requested.plain is name.plain else name


def _named_as(expected: Sharding, actual: Sharding, ndim: int) -> Sharding:
    """``actual``, which may have several names, as a type or an argument has ``expected``."""
    name = resolve_open_dims(over(expected, actual.device_list), actual, ndim).in_memory(None)
    if is_abstract(name) or name.plain is not actual.plain.in_memory(None):
        return actual
    name = in_full(name.in_memory(actual.memory), ndim)
    return name.commit() if actual.committed else name.freed()


def option_key(options: dict[str, Any], who: str) -> frozenset[Any]:
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


def _donated(donate: tuple[int, ...]) -> tuple[int, ...]:
    # where NaNs are looked for, the arguments are needed again to find what made one
    return () if config.looks_for_nonfinite else donate


def _plan(
    program: Program, taking: _Ready, sigs: Sequence[Signature], places: RequestedShardings
) -> Planning:
    for sig in sigs:
        if isinstance(sig, DeletedSignature):
            raise DeletedArray(
                f"{program.name}: Array has been deleted. An argument, {sig.type}, {sig.why}; its "
                f"value is no longer there, at {user_location()}. Keep a copy (x.copy()) if it is "
                "needed again, or do not donate it"
            )
    shardings = [s.sharding for s in sigs]
    planning = make_plan(taking.program, shardings, places, len(taking.constants))
    types = [s.type for s in sigs], program.output_types
    return replace(planning, plan=of_whole_keys(planning.plan, *types))
