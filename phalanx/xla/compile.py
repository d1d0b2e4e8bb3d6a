"""From a module to something that runs."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

from phalanx import xla
from phalanx.base.errors import NoMesh
from phalanx.core.platforms import AnyDevice
from phalanx.processes.joined import group_over
from phalanx.spmd.sharding import Sharding
from phalanx.xla import mmap_limit, topology
from phalanx.xla.compiler_options import QUICK_ON_CPU, default_options, settings_for
from phalanx.xla.executables import (
    CompileOnly,
    Independent,
    TooLarge,
    XlaExecutable,
    launched_together,
)
from phalanx.xla.failures import check_fits, check_slice, refused_option, translated
from phalanx.xla.flight import compiling
from phalanx.xla.jaxlib_versions import device_list, is_described, xc
from phalanx.xla.lacking import lacking
from phalanx.xla.memory import of_the_host
from phalanx.xla.module import XlaModule
from phalanx.xla.stored import LoadedExecutable, load, load_or_compile, serialized

_SURELY_FITS = 1 << 20  # all arrays of a program none of which takes more bytes


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
        result, on_each = _load_on_each(lowered, devices, options)
        large = _exceeds_the_host(lowered, result.loaded)
        executable = TooLarge(lowered, result.loaded) if large else Independent(lowered, on_each)
    else:
        result = _load(lowered, devices, options)
        large = _exceeds_the_host(lowered, result.loaded)
        kind = TooLarge if large else launched_together
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


def _load(
    lowered: XlaModule, devices: tuple[Any, ...], options: dict[str, Any]
) -> LoadedExecutable:
    """The executable for ``devices``, from the cache if it is there."""
    settings = settings_for(devices, [s is None for s in lowered.plan.in_shardings])
    options = default_options(lowered, devices[0].platform) | options

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
            quick = QUICK_ON_CPU.items() & options.items()
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
    settings = settings_for(devices, [s is None for s in lowered.plan.in_shardings])

    def compiled(options: dict[str, Any]) -> Any:
        settings.env_option_overrides = list((default_options(lowered, "") | options).items())
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


def _load_on_each(
    lowered: XlaModule, devices: tuple[Any, ...], options: dict[str, Any]
) -> tuple[LoadedExecutable, list[Any]]:
    """Compiled once, and loaded for every device by itself; compiled for it where that fails."""
    first = _load(lowered, devices[:1], options)
    content = first.content or serialized(first.loaded)

    def elsewhere(device: Any) -> Any:
        if content is not None:
            with suppress(RuntimeError, ValueError, TypeError):
                return load(content, (device,), settings_for((device,), []))
        return _load(lowered, (device,), options).loaded

    return first, [first.loaded, *map(elsewhere, devices[1:])]
