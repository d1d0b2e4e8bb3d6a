"""Compiled programs on their devices: what runs them, and what they tell of themselves."""

# What an array holds is private to users, not to what makes it.
# pyright: reportPrivateUsage=false

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Sequence
from threading import Event
from typing import TYPE_CHECKING, Any, Final

from jaxlib import _hlo

from phalanx import xla
from phalanx.base import dialect
from phalanx.base.errors import DeletedArray, RuntimeFailure
from phalanx.base.source import user_location
from phalanx.core.types import ArrayType
from phalanx.processes.joined import group_over, joined_member
from phalanx.run.backend import Exchange, Kernel, Single
from phalanx.spmd.plan import Plan
from phalanx.spmd.sharding import Sharding
from phalanx.xla import host_transfers
from phalanx.xla.client import client
from phalanx.xla.communication import exchanges
from phalanx.xla.compiler_options import settings_for
from phalanx.xla.failures import deleted, only_described, out_of_memory, translated
from phalanx.xla.flight import (
    in_flight,
    is_windowed,
    launching,
    make_room,
    over_processes,
    waiting_in_another_thread,
)
from phalanx.xla.hlo_text import HloModule
from phalanx.xla.host_callbacks import (
    Launch,
    Stopped,
    end,
    refuse_in_callback,
    refuse_where_devices_wait,
    underway,
)
from phalanx.xla.jaxlib_versions import OLD, from_xla_sharding, result_handler, xc
from phalanx.xla.kernels import kernels
from phalanx.xla.memory import of_the_host
from phalanx.xla.module import XlaModule, number_of
from phalanx.xla.packed import Packed, check_origin, contents_of, origin
from phalanx.xla.sharded import Parts, is_deleted, parts_of, sharded_type, wholes_of
from phalanx.xla.stored import load

if TYPE_CHECKING:
    from phalanx.processes.group import Group


class XlaExecutable:
    """A compiled program, on the devices it was compiled for."""

    __slots__ = (
        "_bytecode",
        "_callbacks",
        "_device_count",
        "_donated",
        "_execute",
        "_handlers",
        "_independent",
        "_loaded",
        "_module",
        "_name",
        "_one_here",
        "_out_types",
        "_program",
        "_tokens",
        "_windowed",
        "anew",
        "devices",
        "group",
        "in_shardings",
        "inspected",
        "out_shardings",
        "read",
    )

    is_here = True
    devices: tuple[Any, ...]
    group: Group | None
    in_shardings: tuple[Sharding, ...]
    anew: Callable[[], Any] | None
    inspected: list[tuple[Any, ArrayType, Sharding]]
    out_shardings: tuple[Sharding, ...]

    def __init__(self, lowered: XlaModule | Packed, loaded: Any) -> None:
        self._bytecode = lowered.bytecode  # the module itself would keep 250 KB alive
        self._callbacks = lowered.callbacks  # lives as long as it may be called
        self.devices = lowered.plan.devices
        self._device_count = len(self.devices)
        self._independent = lowered.plan.independent
        self.group = group_over(self.devices, lowered.name)
        self._program = number_of(self.as_text()) if self.group is not None else 0
        self._one_here = len(Sharding(self.devices).local_devices) == 1
        self._windowed = is_windowed(self.devices)
        self._tokens = self._windowed or self.group is not None or bool(self._callbacks.entries)
        self._donated = lowered.donate
        self._name = lowered.name
        self._loaded = loaded
        self._module: HloModule | None = None  # once somebody looks into it
        self.read: Callable[[], bytes | None] | None = None  # its content, where it was loaded
        self.anew = None  # what compiles it, where it was loaded, and so has lines of other code
        self._execute: Any = getattr(loaded, "execute_sharded", None)  # none if it cannot run here
        plan, count = lowered.plan, len(lowered.out_types)
        self.in_shardings = _settled(
            plan.in_shardings, lambda: _chosen(loaded.get_parameter_shardings(), plan)
        )
        self.out_shardings = (
            (Sharding(plan.devices),) * count
            if len(plan.devices) == 1
            else checked_outputs(lowered, loaded.get_output_shardings())
        )
        self.inspected = [
            (i.watcher, i.type, i.sharding(plan.devices)) for i in lowered.inspections
        ]
        self._out_types = [
            sharded_type(t.physical, s)
            for t, s in zip(lowered.out_types, self.out_shardings, strict=True)
        ]
        self._handlers = [result_handler(t.whole, t.whole_layout) for t in self._out_types]

    def __call__(self, raws: list[Any], /) -> list[Any]:
        raise NotImplementedError

    def __reduce__(self) -> tuple[Any, ...]:
        if self._callbacks.entries or self.group is not None:
            raise RuntimeFailure(
                f"{self._name} cannot be serialized: it calls Python, or spans processes; export "
                "the function, phalanx.export"
            )
        packed = Packed(
            self._name, contents_of(self._loaded, self.read, self._name), self._bytecode,
            Sharding(self.devices), self.in_shardings, self.out_shardings,
            tuple([t.whole for t in self._out_types]), self._donated,
            self._independent, origin(self.devices),
        )  # fmt: skip
        return _unpacked, (packed,)

    def __copy__(self) -> XlaExecutable:
        """Another of the same, whatever it calls: what is pickled is less."""
        other = object.__new__(type(self))
        kinds: list[Any] = [*type(self).__mro__[:-1]]
        for kind in kinds:
            for name in kind.__slots__:
                setattr(other, name, getattr(self, name))
        return other

    def launcher(
        self, fixed: list[Any], finish: Callable[[list[Any]], Any]
    ) -> Callable[[Sequence[Any]], Any]:
        return _launcher(self.__call__, fixed, finish)

    def for_parts(self, results: Sequence[tuple[ArrayType, Sharding]], who: str) -> XlaExecutable:
        types = [sharded_type(t.physical, s) for t, s in results]
        local = copy.copy(self)
        local._handlers = [result_handler(t.whole, t.whole_layout) for t in types]
        local._name = who
        return local

    def meet(self, compare: Callable[[Any, str], None]) -> None:
        if self.group is not None:
            self.group.meet(self._program, self._name, compare)

    def _launch(self, raws: list[Any]) -> tuple[list[Any], Any]:
        """The outputs, and the token of the launch; over CPU devices within the window."""
        if self._device_count == 1:
            return self._executed(raws)
        refuse_in_callback(self._name)
        # Before the runtime, which starts on those devices that have their parts, where they wait
        # for the others until the process is aborted.
        wholes = wholes_of(raws, self._name)
        if not self._windowed and self.group is None:
            return waiting_in_another_thread(lambda: self._executed(wholes), self._name)
        with launching:
            make_room(self._name)
            if self.group is None:
                outs, token = waiting_in_another_thread(lambda: self._executed(wholes), self._name)
                in_flight.append((token,))
            else:
                group, name = self.group, self._name
                first = group.launch(self._program, name)
                outs, token = over_processes(
                    group.member, lambda: self._executed(wholes), self._one_here, first, name
                )
        return outs, token

    def _executed(self, wholes: list[Any]) -> tuple[list[Any], Any]:
        results = self._execute(wholes, self._tokens)
        outs = results.consume_with_handlers(self._handlers)
        return outs, results.consume_token() if self._tokens else None

    def as_text(self) -> str:
        return xla.lower.text_of(self._bytecode)

    def hlo_text(self) -> str:
        return text_of(self._loaded)

    def _looked_into(self) -> HloModule:
        """What was compiled, with the lines of the user's; made once."""
        if self._module is None:
            self._module = HloModule(text_of(self._loaded if self.anew is None else self.anew()))
        return self._module

    def exchanges(self) -> list[Exchange]:
        return exchanges(self._looked_into(), self.devices)

    def kernels(self) -> list[Kernel]:
        return kernels(self._looked_into())

    def cost_analysis(self) -> dict[str, Any]:
        """The compiler's, or, since some plugins give none, the host's of what they made."""
        try:
            return dict(self._loaded.cost_analysis())
        except RuntimeError:
            (module,) = self._loaded.hlo_modules()
            return dict(xc.hlo_module_cost_analysis(client("cpu"), module))

    def memory_analysis(self) -> dict[str, int]:
        stats = self._loaded.get_compiled_memory_stats()
        device = {key: getattr(stats, f"{name}_size_in_bytes") for key, name in _SIZES.items()}
        host = {key: getattr(stats, f"host_{name}_size_in_bytes") for key, name in _SIZES.items()}
        return device | {f"{key} on the host": size for key, size in host.items()}

    def _check(self, raws: list[Any]) -> None:
        """Raise DeletedArray for arrays that would be deleted while they are used.

        Also for deleted ones, where the runtime does not: 0.10 crashes.
        """
        for i in self._donated:
            if sum(r is raws[i] for r in raws) > 1:
                raise DeletedArray(
                    f"{self._name}: an argument is donated and passed a second time; pass a copy"
                )
        if OLD and any(map(is_deleted, raws)):
            raise deleted(self._name)


_SIZES: Final = {
    "arguments": "argument", "outputs": "output", "aliased": "alias", "temporaries": "temp",
    "code": "generated_code",
}  # fmt: skip


class CompileOnly(XlaExecutable):
    """For devices that are only described: it is looked at, and does not run."""

    __slots__ = ()
    is_here = False

    def __call__(self, raws: list[Any], /) -> list[Any]:
        raise only_described(self.devices[0], self._name)


class TooLarge(XlaExecutable):
    """For CPUs, of more memory than there is: it is looked at, and does not run.

    The system promises that memory, and ends a process that uses it.
    """

    __slots__ = ()

    def __call__(self, raws: list[Any], /) -> list[Any]:
        devices = len(Sharding(self.devices).local_devices)
        who = f"{self._name}, at {user_location()}:"
        where = "this machine" if devices == 1 else f"each of {devices} devices of this machine"
        raise out_of_memory(who, self.memory_analysis(), where, of_the_host() / devices)


class OnOneDevice(XlaExecutable):
    """Runs on one device: no lock, nothing counted."""

    __slots__ = ()

    def __call__(self, raws: list[Any], /) -> list[Any]:
        if OLD or self._donated:
            self._check(raws)
        try:
            return self._execute(raws).consume_with_handlers(self._handlers)
        except RuntimeError as e:
            raise translated(e, self._name) from None

    def launcher(
        self, fixed: list[Any], finish: Callable[[list[Any]], Any]
    ) -> Callable[[Sequence[Any]], Any]:
        if OLD or self._donated:
            return super().launcher(fixed, finish)
        execute, handlers, name, fail = self._execute, self._handlers, self._name, RuntimeError

        if isinstance(finish, Single) and not fixed:
            make, kind, sig = object.__new__, finish.kind, finish.sig

            def one(held: Sequence[Any]) -> Any:
                try:
                    outs = execute([x._raw for x in held]).consume_with_handlers(handlers)
                except fail as e:
                    raise translated(e, name) from None
                array = make(kind)
                array._raw = outs[0]
                array._sig = sig
                return array

            return one

        def several(held: Sequence[Any]) -> Any:
            try:
                outs = execute(fixed + [x._raw for x in held]).consume_with_handlers(handlers)
            except fail as e:
                raise translated(e, name) from None
            return finish(outs)

        return several


class OnWaitingDevice(OnOneDevice):
    """On a device that does nothing else while it waits for a function that it called."""

    __slots__ = ()

    def __call__(self, raws: list[Any], /) -> list[Any]:
        refuse_where_devices_wait(self._name, self.devices[0])
        return super().__call__(raws)

    def launcher(
        self, fixed: list[Any], finish: Callable[[list[Any]], Any]
    ) -> Callable[[Sequence[Any]], Any]:
        launch, name, device = super().launcher(fixed, finish), self._name, self.devices[0]

        def checked(held: Sequence[Any]) -> Any:
            refuse_where_devices_wait(name, device)
            return launch(held)

        return checked


class OnSeveralDevices(XlaExecutable):
    """Runs on several devices, within the window of launches in flight."""

    __slots__ = ()

    def __call__(self, raws: list[Any], /) -> list[Any]:
        self._check(raws)
        try:
            return self._launch(raws)[0]
        except RuntimeError as e:
            raise translated(e, self._name) from None

    def launcher(
        self, fixed: list[Any], finish: Callable[[list[Any]], Any]
    ) -> Callable[[Sequence[Any]], Any]:
        if OLD or self._donated:
            return super().launcher(fixed, finish)
        launch, name, fail = self._launch, self._name, RuntimeError

        def call(held: Sequence[Any]) -> Any:
            try:
                outs, _ = launch(fixed + [x._raw for x in held])
            except fail as e:
                raise translated(e, name) from None
            return finish(outs)

        return call


class CallingBack(XlaExecutable):
    """Calls Python while it runs; a call returns when all is done, or raises what was raised."""

    __slots__ = ()

    def __call__(self, raws: list[Any], /) -> list[Any]:
        self._check(raws)
        return self._run(raws)

    def launcher(
        self, fixed: list[Any], finish: Callable[[list[Any]], Any]
    ) -> Callable[[Sequence[Any]], Any]:
        return _launcher(self.__call__ if OLD or self._donated else self._run, fixed, finish)

    def _run(self, raws: list[Any]) -> list[Any]:
        if self._device_count > 1:
            refuse_in_callback(self._name)
        refuse_where_devices_wait(self._name, self.devices[0])
        failure, outs = None, []
        with Launch(self._callbacks) as launch:
            try:
                outs, token = self._launch(raws)
                waiting_in_another_thread(token.block_until_ready, self._name)
            except RuntimeError as e:
                failure = translated(e, self._name)
            if launch.raised:
                failure = launch.raised[0]
        if failure is None:
            return outs
        try:
            raise dialect.spoken.failure(failure)
        finally:
            del failure, launch  # or the exception would hold itself, through its frames


class Stopping(CallingBack):
    """The same on a device where a program stops that calls what raises.

    This is a small part of small programs, so it calls few functions.
    """

    __slots__ = ()

    def _run(self, raws: list[Any]) -> list[Any]:
        waiting: list[Event] = []
        underway[id(waiting)] = waiting
        try:
            results = self._execute(raws, True)
            outs = results.consume_with_handlers(self._handlers)
            wait = results.consume_token().block_until_ready
            if joined_member() is None:
                wait()
            else:
                waiting_in_another_thread(wait, self._name)
            return outs
        except RuntimeError as e:
            failure = Stopped.cause(e) or translated(e, self._name)
        finally:
            end(waiting)
        try:
            raise dialect.spoken.failure(failure)
        finally:
            del failure  # or the exception would hold itself, through its frames


class Independent(XlaExecutable):
    """Runs on several devices, on each by itself: a launch that spans them costs more than all."""

    __slots__ = ("_each",)

    def __init__(self, lowered: XlaModule | Packed, loaded: list[Any]) -> None:
        super().__init__(lowered, loaded[0])
        self._each = [
            (
                one.execute_sharded,
                [result_handler(t.part, t.part_layouts[i]) for t in self._out_types],
            )
            for i, one in enumerate(loaded)
        ]

    def __call__(self, raws: list[Any], /) -> list[Any]:
        self._check(raws)
        if self._donated and any(map(is_deleted, raws)):  # or the first devices would lose theirs
            raise deleted(self._name)
        taken = zip(*map(parts_of, raws), strict=True) if raws else [()] * len(self._each)
        launch = self._counted if self._windowed else self._uncounted
        refuse_in_callback(self._name)
        try:
            results = launch(taken)
        except RuntimeError as e:
            raise translated(e, self._name) from None
        return list(map(Parts, self._out_types, zip(*results, strict=True)))

    def _counted(self, taken: Iterable[Sequence[Any]]) -> list[list[Any]]:
        outputs: list[list[Any]] = []
        tokens: list[Any] = []
        with launching:
            make_room(self._name)
            in_flight.append(tokens)
            for (execute, handlers), parts in zip(self._each, taken, strict=True):
                results = execute(parts, True)
                outputs.append(results.consume_with_handlers(handlers))
                tokens.append(results.consume_token())
        return outputs

    def _uncounted(self, taken: Iterable[Sequence[Any]]) -> list[list[Any]]:
        pairs = zip(self._each, taken, strict=True)
        return [
            execute(parts).consume_with_handlers(handlers) for (execute, handlers), parts in pairs
        ]


def text_of(loaded: Any) -> str:
    return "\n".join(m.to_string() for m in loaded.hlo_modules())


def launched_together(lowered: XlaModule | Packed, loaded: Any) -> XlaExecutable:
    if lowered.callbacks.entries:
        return (Stopping if lowered.callbacks.stops else CallingBack)(lowered, loaded)
    first, *others = lowered.plan.devices
    if others:
        return OnSeveralDevices(lowered, loaded)
    make = OnWaitingDevice if first.platform in host_transfers.SENDING else OnOneDevice
    return make(lowered, loaded)


def _launcher(
    run: Callable[[list[Any]], list[Any]], fixed: list[Any], finish: Callable[[list[Any]], Any]
) -> Callable[[Sequence[Any]], Any]:
    """What ``finish`` makes of the results of ``run``, as a function of arrays."""
    if not isinstance(finish, Single) or fixed:
        return lambda held: finish(run(fixed + [x._raw for x in held]))
    make, kind, sig = object.__new__, finish.kind, finish.sig

    def one(held: Sequence[Any]) -> Any:
        array = make(kind)
        array._raw = run([x._raw for x in held])[0]
        array._sig = sig
        return array

    return one


def _unpacked(packed: Packed) -> XlaExecutable:
    """What was pickled, on the devices for which it was compiled."""
    check_origin(packed)

    def on(devices: tuple[Any, ...]) -> Any:
        return load(packed.contents, devices, settings_for(devices, []))

    try:
        if packed.independent:
            executable = Independent(packed, [on((device,)) for device in packed.devices])
        else:
            executable = launched_together(packed, on(packed.devices))
        executable.read = lambda: packed.contents
        return executable
    except (RuntimeError, ValueError, TypeError) as e:
        raise translated(e, f"{packed.name}: load") from None


def _settled(
    requested: Sequence[Sharding | None], chosen: Callable[[], Sequence[Sharding]]
) -> tuple[Sharding, ...]:
    """The ``requested`` shardings, and for those left open what the compiler has chosen."""
    if None not in requested:
        return tuple(requested)  # type: ignore[arg-type]
    pairs = zip(requested, chosen(), strict=True)
    return tuple([has if want is None else want for want, has in pairs])


def _chosen(protos: Sequence[Any], plan: Plan | Packed) -> list[Sharding]:
    return [from_xla_sharding(_hlo.HloSharding.from_proto(proto), plan.devices) for proto in protos]


def _has_parts_of(want: Sharding, has: Sharding, type: ArrayType) -> bool:
    """Whether an array of ``type`` has the same parts by both shardings."""
    if (want.tiles, want.assignment) == (has.tiles, has.assignment):
        return True
    return not type.size and want.shard_shape(type.shape) == has.shard_shape(type.shape)


def checked_outputs(
    lowered: XlaModule | Packed, chosen: Sequence[Any] | None
) -> tuple[Sharding, ...]:
    """The shardings of results, those asked for: an array made of other parts is another one.

    Those without elements the compiler of jaxlib 0.10 leaves whole: whoever runs it moves them.
    Nothing is ``chosen`` in a module of one device, which all run, and something where there are
    no results.
    """
    plan = lowered.plan
    if plan.independent or chosen is None or not plan.out_shardings:
        return tuple(plan.out_shardings)  # type: ignore[arg-type]
    results = zip(plan.out_shardings, _chosen(chosen, plan), lowered.out_types, strict=True)
    shardings: list[Sharding] = []
    for number, (want, has, type) in enumerate(results):
        if want is None or _has_parts_of(want, has, type):
            shardings.append(want or has)
        elif not type.size:
            shardings.append(has)
        else:
            raise RuntimeFailure(
                f"{lowered.name}, at {user_location()}: the compiler cuts the dimensions of result "
                f"{number} into {has.tiles or (1,)} parts where {want.tiles or (1,)} were asked "
                "for, or deals them out to other devices: leave out what it is told in "
                "compiler_options= and XLA_FLAGS"
            )
    return tuple(shardings)
