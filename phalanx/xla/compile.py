"""From a module to something that runs."""

# What an array holds is private to users, not to what makes it.
# pyright: reportPrivateUsage=false

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from threading import Event
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from jaxlib import _hlo

from phalanx import xla
from phalanx.base import dialect
from phalanx.base.config import config
from phalanx.base.errors import DeletedArray, NoMesh, RuntimeFailure
from phalanx.base.source import user_location
from phalanx.core.platforms import AnyDevice, platform_of
from phalanx.core.types import ArrayType
from phalanx.processes.joined import group_over, joined_member
from phalanx.run.backend import Exchange, Kernel, Single
from phalanx.spmd.plan import Plan
from phalanx.spmd.sharding import Sharding
from phalanx.xla import host_transfers, mmap_limit, topology
from phalanx.xla.broadcasts import sums_keep_broadcasts
from phalanx.xla.client import client, data_directory
from phalanx.xla.communication import exchanges
from phalanx.xla.failures import (
    check_fits,
    check_slice,
    deleted,
    only_described,
    out_of_memory,
    refused_option,
    translated,
)
from phalanx.xla.flight import (
    compiling,
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
from phalanx.xla.jaxlib_versions import (
    OLD,
    device_list,
    from_xla_sharding,
    is_described,
    result_handler,
    xc,
)
from phalanx.xla.kernels import kernels
from phalanx.xla.lacking import lacking
from phalanx.xla.memory import of_the_host
from phalanx.xla.module import XlaModule, number_of
from phalanx.xla.packed import Packed, check_made_here, contents_of, made_by
from phalanx.xla.sharded import Parts, is_deleted, parts_of, sharded_type, wholes_of
from phalanx.xla.stored import LoadedExecutable, load, load_or_compile, serialized

if TYPE_CHECKING:
    from phalanx.processes.member import Group

# XLA's CPU compiler may fuse a product of matrices with what stands around it and then read memory
# that was never written (seen in 0.10 to 0.12, tests/units/xla/test_products.py). Where there are
# none, such fusions make sums and long chains of elementwise operations several times as fast.
_PRODUCTS = (b"dot_general", b"convolution")
# A sum of products it takes for one, and gives other numbers where all factors are the same along a
# dimension of the result (seen in 0.12). Quotients and powers may become products.
_FACTORS = (b"multiply", b"divide", b"power")
_SAFE = {"xla_cpu_experimental_ynn_fusion_type": ""}
# XLA's CPU runtime hands operations that wait to other threads, and orders them so that many wait.
# Those on arrays of so few bytes are done before another thread is awake, so they come in the order
# that needs least memory, in which few wait.
_DONE_AT_ONCE = 1 << 13
_SURELY_FITS = 1 << 20  # all arrays of a program none of which takes more bytes
_IN_TURN = {"xla_cpu_scheduler_type": "CPU_SCHEDULER_TYPE_MEMORY_OPTIMIZED"}
# In 0.10 it takes barriers away before it fuses, so that what stands behind one is made again, and
# it cannot write them into the functions that it makes of small loops.
_MOVES_BARRIERS = ("cse_barrier_expander", "small-while-loop-hoisting")
# It makes products of quotients where it has seen already that divisors are the same, and functions
# of loops over few bytes, in which it rounds otherwise.
_REARRANGES = ("algsimp", "small-while-loop-hoisting")
# Most of the compiler's time goes to optimizing code, and on CPU to that of fusions; later than
# 0.10 it has no other way to make this, and in 0.10 the other way lacks operations on booleans.
_QUICK = {"xla_backend_optimization_level": 0, "xla_llvm_disable_expensive_passes": True}
_QUICK_ON_CPU = {"xla_cpu_use_fusion_emitters": False} if OLD else {}
# That other way makes one module, and code of its parts apart; without optimization, some parts
# have fused multiply-adds and others, of the same operations, none.
_QUICK_ALIKE = {"xla_cpu_parallel_codegen_split_count": 1} if OLD else {}


def compile(lowered: XlaModule, options: dict[str, Any] | None = None) -> XlaExecutable:
    """Compile a module for the devices of its plan."""
    devices = lowered.plan.devices
    options = options or {}
    if type(devices[0]) is AnyDevice:
        raise NoMesh(  # "device_assignment ... compilation" is the field's, for matching
            f"{lowered.name} was lowered over a mesh without devices, and device_assignment cannot "
            "be `None` during compilation: lower it for arguments over a mesh that has devices, or "
            "describe some: phalanx.experimental.topologies"
        )
    if not lowered.plan.independent:
        check_slice(lowered.name, devices)
    if is_described(devices[0]):
        described = CompileOnly(lowered, _compile_only(lowered, devices, options))
        memory = topology.sizes.get(devices[0].client)
        if memory is not None:
            check_fits(lowered.name, described.memory_analysis(), memory, devices[0])
        return described
    mmap_limit.leave_some(len(devices))
    if lowered.plan.independent:
        result, every = _load_on_each(lowered, devices, options)
        large = _exceeds_the_host(lowered, result.loaded)
        executable = TooLarge(lowered, result.loaded) if large else Independent(lowered, every)
    else:
        result = _load(lowered, devices, options)
        large = _exceeds_the_host(lowered, result.loaded)
        kind = TooLarge if large else _launched_together
        executable = kind(lowered, result.loaded)
    executable.read, executable.anew = result.read, result.anew
    return executable


def _exceeds_the_host(lowered: XlaModule, loaded: Any) -> bool:
    """Whether a program for CPUs makes arrays of more bytes than there is memory.

    Its inputs are not counted: devices of one host share them.
    """
    devices = lowered.plan.devices
    if devices[0].platform != "cpu" or lowered.largest < _SURELY_FITS:
        return False
    sizes = loaded.get_compiled_memory_stats()
    size = sizes.output_size_in_bytes + sizes.temp_size_in_bytes - sizes.alias_size_in_bytes
    return size * len(Sharding(devices).local_devices) > of_the_host()


def _text_of(loaded: Any) -> str:
    return "\n".join(m.to_string() for m in loaded.hlo_modules())


def _launched_together(lowered: XlaModule | Packed, loaded: Any) -> XlaExecutable:
    if lowered.callbacks.entries:
        return (Stopping if lowered.callbacks.stops else CallingBack)(lowered, loaded)
    first, *others = lowered.plan.devices
    if others:
        return OnSeveralDevices(lowered, loaded)
    make = OnWaitingDevice if first.platform in host_transfers.SENDING else OnOneDevice
    return make(lowered, loaded)


def _load(
    lowered: XlaModule, devices: tuple[Any, ...], options: dict[str, Any]
) -> LoadedExecutable:
    """The executable for ``devices``, from the cache if it is there."""
    settings = _settings(devices, [s is None for s in lowered.plan.in_shardings])
    options = _default_options(lowered, devices[0].platform) | options

    def build() -> Any:
        return _from_module(lowered.module, lowered.callbacks, devices, settings)

    def compiled(options: dict[str, Any]) -> Any:
        settings.env_option_overrides = list(options.items())
        group = group_over(devices, lowered.name)
        return build() if group is None else compiling(group.member, build, lowered.name)

    def anew() -> Any:
        try:
            return compiled(options)
        except xc.JaxRuntimeError as e:
            quick = _QUICK_ON_CPU.items() & options.items()
            if not quick or "UNIMPLEMENTED" not in str(e):
                raise
            return compiled({name: options[name] for name in options.keys() - dict(quick)})

    try:
        found = load_or_compile(lowered, devices, settings, options, anew)
    except (RuntimeError, ValueError, TypeError) as e:
        raise (
            refused_option(e, options) or lacking(e, lowered) or translated(e, "compile")
        ) from None
    if found.read is None or group_over(devices, lowered.name) is not None:
        return found
    return found._replace(anew=_again(lowered, devices, settings, options))


def _from_module(module: Any, callbacks: Any, devices: tuple[Any, ...], settings: Any) -> Any:
    client = devices[0].client
    functions = callbacks.attached(client)
    return client.compile_and_load(module, device_list(devices), settings, functions)


def _again(
    lowered: XlaModule, devices: tuple[Any, ...], settings: Any, options: dict[str, Any]
) -> Callable[[], Any]:
    """What compiles a module that was not, for its lines; it keeps no more of it than its code."""
    code, callbacks = lowered.bytecode, lowered.callbacks

    def again() -> Any:
        settings.env_option_overrides = list(options.items())
        return _from_module(xla.lower.module_of(code), callbacks, devices, settings)

    return again


def _compile_only(lowered: XlaModule, devices: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """The executable for devices that are not here; that of one of them where each is by itself."""
    devices = devices[:1] if lowered.plan.independent else devices
    settings = _settings(devices, [s is None for s in lowered.plan.in_shardings])

    def compiled(options: dict[str, Any]) -> Any:
        settings.env_option_overrides = list((_default_options(lowered, "") | options).items())
        return devices[0].client.compile(lowered.module, device_list(devices), settings)

    try:
        try:
            return compiled(options)
        except xc.JaxRuntimeError as e:
            if _NO_GPU not in str(e):
                raise
            return compiled(_WITHOUT_A_GPU | options)
    except (RuntimeError, ValueError, TypeError) as e:
        raise (
            refused_option(e, options) or lacking(e, lowered) or translated(e, "compile")
        ) from None


# Of sorts by radix the compiler asks a GPU how much memory they take; it has others.
_NO_GPU = "cudaErrorInvalidDevice"
_WITHOUT_A_GPU = {"xla_gpu_enable_cub_radix_sort": False}


def _default_options(lowered: XlaModule, platform: str) -> dict[str, Any]:
    """The options of the compiler where the user gives no others."""
    on_cpu = platform == "cpu"
    options: dict[str, Any] = {}
    code = lowered.bytecode if on_cpu else b""
    fuses = any(product in code for product in _PRODUCTS) or _may_sum_products(lowered, code)
    if fuses or (on_cpu and lowered.isolated):
        options |= _SAFE
    if on_cpu and lowered.largest <= _DONE_AT_ONCE and not lowered.isolated:
        options |= _IN_TURN
    moves = _MOVES_BARRIERS if OLD and b"optimization_barrier" in code else ()
    rearranges = _REARRANGES if on_cpu and lowered.isolated else ()
    if without := ",".join(dict.fromkeys((*moves, *rearranges))):
        options["xla_disable_hlo_passes"] = without
    if config.disable_most_optimizations:
        alike = _QUICK_ALIKE if lowered.isolated else {}
        options = options | _QUICK | (_QUICK_ON_CPU | alike if on_cpu else {})
    return options


def _may_sum_products(lowered: XlaModule, code: bytes) -> bool:
    """Whether there may be a sum of products of what is the same along a dimension of the sum."""
    if b"\0reduce\0" not in code or not any(factor in code for factor in _FACTORS):
        return False
    return sums_keep_broadcasts(lowered.module)


def _load_on_each(
    lowered: XlaModule, devices: tuple[Any, ...], options: dict[str, Any]
) -> tuple[LoadedExecutable, list[Any]]:
    """Compiled once, and loaded for every device by itself; compiled for it where that fails."""
    first = _load(lowered, devices[:1], options)
    content = first.content or serialized(first.loaded)

    def elsewhere(device: Any) -> Any:
        if content is not None:
            with suppress(RuntimeError, ValueError, TypeError):
                return load(content, (device,), _settings((device,), []))
        return _load(lowered, (device,), options).loaded

    return first, [first.loaded, *map(elsewhere, devices[1:])]


def _settings(devices: tuple[Any, ...], free: list[bool]) -> Any:
    """Options of the compiler; it chooses how the parameters lie that are ``free``."""
    count = len(devices)
    settings = xc.CompileOptions()
    settings.num_replicas = 1
    settings.num_partitions = count
    settings.device_assignment = xc.DeviceAssignment.create(
        np.array([[d.id for d in devices]], dtype=np.int32)
    )
    build = settings.executable_build_options
    build.num_replicas = 1
    build.num_partitions = count
    build.device_assignment = settings.device_assignment
    folder = data_directory(platform_of(devices[0]))
    if folder:
        build.debug_options.xla_gpu_cuda_data_dir = folder
    if count > 1:
        build.use_spmd_partitioning = True
        build.use_shardy_partitioner = True
        build.allow_spmd_sharding_propagation_to_output = [True]
        if any(free):
            build.allow_spmd_sharding_propagation_to_parameters = free
    return settings


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
            else _given(lowered, loaded.get_output_shardings())
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
            self._independent, made_by(self.devices),
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
        return _text_of(self._loaded)

    def _looked_into(self) -> HloModule:
        """What was compiled, with the lines of the user's; made once."""
        if self._module is None:
            self._module = HloModule(_text_of(self._loaded if self.anew is None else self.anew()))
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
    check_made_here(packed)

    def on(devices: tuple[Any, ...]) -> Any:
        return load(packed.contents, devices, _settings(devices, []))

    try:
        if packed.independent:
            executable = Independent(packed, [on((device,)) for device in packed.devices])
        else:
            executable = _launched_together(packed, on(packed.devices))
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


def _given(lowered: XlaModule | Packed, chosen: Sequence[Any] | None) -> tuple[Sharding, ...]:
    """How results lie, which is as it was asked for: an array made of other parts is another.

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
