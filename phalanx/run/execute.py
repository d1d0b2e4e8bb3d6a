"""Compiled programs: choosing devices and layouts, and calling with arrays."""

# What an array holds is private to users, not to what runs programs on arrays.
# pyright: reportPrivateUsage=false

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from phalanx.base import dtypes, log, tree
from phalanx.base.config import config, settings
from phalanx.base.dump import dump
from phalanx.base.errors import DeletedArray, DeviceError, NonFiniteError
from phalanx.base.extended import is_key
from phalanx.base.keys import key_of
from phalanx.base.source import user_location
from phalanx.core.program import Literal, Program
from phalanx.core.types import ArrayType
from phalanx.run.agree import agree
from phalanx.run.array import (
    DeletedSignature,
    DeviceArray,
    Signature,
    default_sharding,
    from_host,
    moved,
)
from phalanx.run.backend import Executable, Module, Single
from phalanx.run.calls import Prepared, Run
from phalanx.run.fit import compile_fitting
from phalanx.run.guards import unwatched
from phalanx.run.launched import launched
from phalanx.run.planning import (
    RequestedShardings,
    check_devices,
    constraints,
    make_plan,
    of_whole_keys,
    told_outputs,
)
from phalanx.run.runtime import backend
from phalanx.spmd.constraint import closed, is_abstract, over, settled
from phalanx.spmd.memory import memories_of_results
from phalanx.spmd.named import NamedSharding, P, unreduced_along
from phalanx.spmd.naming import in_full, known_names, named, named_results
from phalanx.spmd.plan import Plan
from phalanx.spmd.sharding import Sharding
from phalanx.transforms.derive import keep
from phalanx.transforms.passes import ready
from phalanx.transforms.storage import size_in_bytes, taken_over


class Runnable(Prepared):
    """An executable that runs on arrays: its constants, how inputs must lie, what it gives."""

    __slots__ = (
        "checked", "constants", "donate", "executable", "fixed", "gone", "in_shardings", "inputs",
        "misplaced", "moves", "name", "names", "out_sigs",
    )  # fmt: skip

    def __init__(
        self,
        program: Program,
        executable: Executable,
        constants: Sequence[DeviceArray],
        sigs: Sequence[Signature],
        in_shardings: Sequence[Sharding],
        out_shardings: Sequence[Sharding],
        wanted: Sequence[Sharding | None],
        donate: tuple[int, ...],
        names: Sequence[NamedSharding],
        inputs: Sequence[str],
    ) -> None:
        """``inputs`` are what messages call the inputs, where something is donated."""
        self.name, self.inputs = program.name, inputs
        self.names = names
        self.executable = executable
        self.constants = count = len(constants)
        where = zip(constants, in_shardings, strict=False) if executable.is_here else ()
        with unwatched():
            self.fixed = [(c if c._sig.sharding.plain is s else moved(c, s))._raw for c, s in where]
        self.in_shardings = in_shardings[count:]
        self.misplaced = [
            i for i, s in enumerate(self.in_shardings) if sigs[i].sharding.plain is not s.plain
        ]
        self.donate = _reused(donate, program, self.in_shardings, executable.out_shardings)
        self.gone = [  # with what is donated; of others, a copy that was made for it
            i for i in self.donate if sigs[i].sharding.meets(self.in_shardings[i])
        ]
        self.checked = config.looks_for_nonfinite
        self.moves = {  # of results that do not come as they are wanted
            i: want
            for i, (want, s) in enumerate(zip(wanted, out_shardings, strict=True))
            if want is not None and want is not s
        }
        self.out_sigs = [
            Signature.of(t, s) for t, s in zip(program.output_types, out_shardings, strict=True)
        ]

    def __call__(self, arrays: Sequence[DeviceArray]) -> list[DeviceArray]:
        """Run on arrays of the signatures that it was compiled for."""
        raws = [a._raw for a in arrays]
        for i in self.misplaced:
            raws[i] = moved(arrays[i], self.in_shardings[i])._raw
        if self.donate:
            self._refuse_twice(raws)
        results = self.executable(self.fixed + raws)
        for i in self.gone:
            arrays[i]._forget("was donated to a function, which may have reused its memory")
        out = list(map(DeviceArray, results, self.out_sigs))
        for i, sharding in self.moves.items():
            out[i] = moved(out[i], sharding)
        if self.checked:
            check_finite(self.name, out)
        return out

    def _refuse_twice(self, raws: Sequence[Any]) -> None:
        """Raise DeletedArray for what would be deleted while it is used as another input."""
        if len(set(map(id, raws))) == len(raws):
            return
        for i in self.donate:
            again = next((n for n, r in enumerate(raws) if r is raws[i] and n != i), None)
            if again is not None:
                raise DeletedArray(
                    f"{self.name}: {self.inputs[i]} is donated and passed a second time, as "
                    f"{self.inputs[again]}, at {user_location()}; pass a copy, x.copy(), or do "
                    "not donate it"
                )

    def returning(self, out_tree: Any, placed: Sequence[int] = ()) -> Run:
        """The function from the arrays of a call to the tree of results.

        Those at the positions ``placed`` are where they must be. Where nothing has to be moved,
        donated or checked it does nothing but run.
        """
        build, sigs = tree.builder(out_tree), self.out_sigs
        if set(self.misplaced).difference(placed) or self.moves or self.donate or self.checked:
            return lambda arrays: build(self(arrays))
        if out_tree == _ONE_LEAF:
            return self.executable.launcher(self.fixed, Single(DeviceArray, *sigs))
        return self.executable.launcher(
            self.fixed, lambda raws: build(map(DeviceArray, raws, sigs))
        )


def _reused(
    donate: tuple[int, ...],
    program: Program,
    ins: Sequence[Sharding],
    outs: Sequence[Sharding],
) -> tuple[int, ...]:
    """The inputs among those that are donated into whose memory a result fits, on each device."""
    given = {i: _bytes_held(program.input_types[i], ins[i]) for i in donate}
    return taken_over(given, map(_bytes_held, program.output_types, outs))


def _bytes_held(type: ArrayType, sharding: Sharding) -> int:
    """How many bytes of an array each device holds."""
    return size_in_bytes(type.update(shape=sharding.shard_shape(type.shape)))


_ONE_LEAF = tree.structure(0)


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
        made = ready(program)
        values = [_on_device(c.value) for c in made.constants]
        pairs = list(zip(made.program.inputs, values, strict=False))
        written = {v: x for v, x in pairs if _is_written(x)}
        if not written:
            return None if made.program is program else _Ready(made.program, tuple(values), ())
        # a copy, since memory that NumPy looks at cannot be donated
        literals = {v: Literal(np.array(x._fetched())) for v, x in written.items()}
        inputs = [v for v in made.program.inputs if v not in written]
        taken = tuple([x for v, x in pairs if v not in written])
        renamed = made.program.renamed(literals).update(inputs=inputs)
        return _Ready(renamed, taken, tuple(written.values()))

    return keep(program, "ready", make) or _Ready(program, (), ())


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


def compile_program(
    program: Program,
    sigs: Sequence[Signature],
    donate: tuple[int, ...] = (),
    options: dict[str, Any] | None = None,
    lowered: Module | None = None,
    places: RequestedShardings | None = None,
    name_of_input: Callable[[int], str] = "operand {}".format,
) -> Prepared:
    """Compile ``program`` for inputs of the signatures ``sigs``.

    What was compiled for the same layout is used again; ``lowered`` may give the module, and
    ``places`` where inputs and outputs are to lie.

    Raises:
        DevicesDiffer: inputs are committed to devices that differ, and nothing says which to use.
        DeviceError: something in it has to be launched by itself.
    """
    donate = _donated(donate)
    launch = launched(program, compiled=places is not None)
    if launch is not None:
        return launch(program, sigs, donate)
    taking = _ready(program)
    every = [*(c._sig for c in taking.constants), *sigs]
    places = places or RequestedShardings.anywhere(program)
    check_devices(program, sigs, places, name_of_input)
    plan, committed = _planned(program, taking, every, places)
    places = places.over(plan.devices)

    said = [s for s in (*places.outs, *places.ins) if s is not None]
    inside = [_within(closed(over(s, plan.devices))) for s, _ in constraints(program)]
    given = [s.sharding for s in every]
    known = known_names(program, plan.mesh, [*said, *inside, *given, default_sharding()])

    def lower(plan: Plan) -> Module:
        given = lowered is not None and not plan.halvings
        module: Any = lowered if given else _lowered(taking, plan, donate)
        dump(program.name, "module", partial(module.as_text, locations=True))
        captured = [*taking.constants, *taking.written]
        agree(program, module, plan.devices, captured, options or {})
        return module

    def make() -> Executable:
        if config.log_compiles:
            types = ", ".join(str(s.type) for s in sigs)
            log.warn("Compiling %s for arguments (%s)", program.name, types)
        made = compile_fitting(program, plan, lower, options)
        for watcher, type, plain in made.inspected:
            watcher.function(named(plain, type, known))
        return made

    key = (plan, donate, config.key, option_key(options or {}, "compile"))
    executable = keep(program, key, make)
    results = [s if committed else s.freed() for s in executable.out_shardings]
    told = named_results(program, plan.mesh, known, results)
    placed = [s or sig.sharding for s, sig in zip(places.ins, sigs, strict=True)]
    by_others = told_outputs(program, placed, plan.devices)
    told = [
        s if by is None else _named_as(by, s, t.ndim)
        for s, by, t in zip(told, by_others, program.output_types, strict=True)
    ]
    results = [
        want if want is not None and want.plain is s.plain else s
        for s, want in zip(told, places.outs, strict=True)
    ]
    kinds = zip(places.outs, results, memories_of_results(program), strict=True)
    wanted = [s.in_memory(kind) if kind and want is None else want for want, s, kind in kinds]
    count = len(taking.constants)
    ins = [
        *executable.in_shardings[:count],
        *map(_as_sum, placed, executable.in_shardings[count:]),
    ]
    inputs = [name_of_input(i) for i in range(len(sigs))] if donate else ()
    return Runnable(
        program, executable, taking.constants, sigs, ins, results, wanted, donate, known, inputs
    )


def _as_sum(said: Sharding, lying: Sharding) -> Sharding:
    """``lying``, as ``said`` names it where that is of a sum: no whole value is put so."""
    return said if unreduced_along(said) and said.plain is lying else lying


def _within(said: Sharding) -> Sharding:
    """The name by which ``said`` inside a program tells a result.

    It is over the mesh that is set where only types of axes differ, and has no entries for what is
    whole at the end, as where nobody says how a result lies.
    """
    if not isinstance(said, NamedSharding):
        return said
    said = said.update(spec=P.of(said.spec.layout))
    around = settings().mesh
    if around is None or not said.mesh.has_devices:
        return said
    same = said.mesh.update(axis_types=around.axis_types) if said.mesh.axes == around.axes else None
    return said.update(mesh=around) if same == around else said


def _named_as(said: Sharding, lying: Sharding, ndim: int) -> Sharding:
    """``lying``, which may have several names, as a type or an argument has ``said``."""
    name = settled(over(said, lying.device_list), lying, ndim).in_memory(None)
    if is_abstract(name) or name.plain is not lying.plain.in_memory(None):
        return lying
    name = in_full(name.in_memory(lying.memory), ndim)
    return name.commit() if lying.committed else name.freed()


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


def lower_program(
    program: Program,
    sigs: Sequence[Signature],
    donate: tuple[int, ...] = (),
    places: RequestedShardings | None = None,
    platforms: Sequence[str] = (),
) -> Module:
    """The module that ``compile_program`` compiles for inputs of the signatures ``sigs``.

    If ``platforms`` are given, it is for such devices in place of those that are used.

    Raises:
        ValueError: there are several platforms, and several devices.
        DeviceError: something in it has to be launched by itself.
    """
    launched(program, compiled=True)
    taking = _ready(program)
    plan, _ = _planned(program, taking, [*(c._sig for c in taking.constants), *sigs], places)
    if len(platforms) < 2:
        plan = replace(plan, platform=next(iter(platforms), None))
        return _lowered(taking, plan, _donated(donate))
    if len(plan.devices) > 1:
        raise ValueError(
            f"{program.name}: over {len(plan.devices)} devices it is lowered for one platform at a "
            f"time, got {', '.join(platforms)}"
        )
    return backend().lower_for_each(taking.program, plan, platforms)


def compile_for(
    program: Program, lowered: Module, donate: tuple[int, ...], devices: Sequence[Any]
) -> Executable:
    """``lowered``, the module of ``program``, compiled for others than it is planned for: those of
    ``devices`` that have the same numbers.

    Raises:
        DeviceError: there are too few.
    """
    numbers = [d.id for d in lowered.plan.devices]
    if max(numbers) >= len(devices):
        raise DeviceError(
            f"{program.name} is for {max(numbers) + 1} devices, and there are {len(devices)} of "
            f"platform {devices[0].platform}; describe more of them"
        )
    others = tuple([devices[n] for n in numbers])

    def lower(plan: Plan) -> Module:
        here = replace(lowered.plan, halvings=plan.halvings)
        again = _lowered(_ready(program), here, _donated(donate)) if plan.halvings else lowered
        return again.over(others)

    return compile_fitting(program, lowered.plan, lower, devices=others)


def _lowered(taking: _Ready, plan: Plan, donate: tuple[int, ...]) -> Module:
    count = len(taking.constants)
    return backend().lower(taking.program, plan, tuple([i + count for i in donate]))


def _donated(donate: tuple[int, ...]) -> tuple[int, ...]:
    # where NaNs are looked for, the arguments are needed again to find what made one
    return () if config.looks_for_nonfinite else donate


def _planned(
    program: Program, taking: _Ready, sigs: Sequence[Signature], places: RequestedShardings | None
) -> tuple[Plan, bool]:
    for sig in sigs:
        if isinstance(sig, DeletedSignature):
            raise DeletedArray(
                f"{program.name}: Array has been deleted. An argument, {sig.type}, {sig.why}; its "
                f"value is no longer there, at {user_location()}. Keep a copy (x.copy()) if it is "
                "needed again, or do not donate it"
            )
    shardings = [s.sharding for s in sigs]
    plan, committed = make_plan(taking.program, shardings, places, len(taking.constants))
    return of_whole_keys(plan, [s.type for s in sigs], program.output_types), committed


def check_finite(name: str, outputs: Sequence[DeviceArray]) -> None:
    """Raise ``NonFiniteError`` if an output has a NaN, or an infinity where they are looked for.

    The error names the line that is being executed.
    """
    for output in outputs:
        if not dtypes.is_inexact(output.dtype):
            continue
        if config.debug_infs and np.isinf(output._value).any():
            raise NonFiniteError(
                f"{name}: an infinity in a result {output.aval} at {user_location()} (debug_infs "
                "is set); its operands hold one, or what it does with them overflows"
            )
        if config.debug_nans and np.isnan(output._value).any():
            raise NonFiniteError(
                f"{name}: NaN in a result {output.aval} at {user_location()} (debug_nans "
                "is set); its operands hold a NaN, or what it does with them has no value, such "
                "as 0/0, log(-1) or inf - inf"
            )
