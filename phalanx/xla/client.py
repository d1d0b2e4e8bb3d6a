"""Clients of the XLA runtime: one per platform, started at the first use."""

from __future__ import annotations

import functools
import glob
import importlib.util
import os
import threading
import warnings
from collections.abc import Callable, Mapping
from typing import Any

from jaxlib import (
    utils,  # type: ignore[attr-defined]  (no stubs)
    xla_client,
)

from phalanx.base.config import config
from phalanx.base.errors import DeviceError, suggest
from phalanx.xla.processes import cpu_arguments, gpu_arguments
from phalanx.xla.runtime import xc

_lock = threading.RLock()
_clients: dict[str, Any] = {}


def client(platform: str | None = None) -> Any:
    """The client of ``platform``, or of the best one there is.

    Raises:
        DeviceError: the platform is not there; the message says why.
    """
    with _lock:
        return _named(_ALIASES.get(platform, platform)) if platform else _preferred()


def started() -> list[str]:
    """The platforms whose clients have started."""
    return list(_clients)


@functools.cache
def _preferred() -> Any:
    given = config.platforms
    names = [n.strip() for n in given.split(",") if n.strip()] if given else ["tpu", "cuda", "cpu"]
    reasons = []
    for name in names:
        try:
            client = _named(_ALIASES.get(name, name))
        except DeviceError as e:
            reasons.append(str(e))
        else:
            config.freeze("platforms", f"the client of platform {name} has started", name)
            return client
    raise DeviceError(f"devices: no platform of {', '.join(names)} is usable: {'; '.join(reasons)}")


def _named(name: str) -> Any:
    if name not in _clients:
        if name not in _STARTERS:
            hint = suggest(name, _STARTERS) or f"There are {', '.join(_STARTERS)}."
            raise DeviceError(f"devices: Unknown backend {name!r}. {hint}")
        if "TF_CPP_MIN_LOG_LEVEL" not in os.environ:
            utils.absl_set_min_log_level(1)
        _clients[name] = _STARTERS[name]()
        _watch_forks()
    return _clients[name]


@functools.cache
def _watch_forks() -> None:
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=_warn_of_fork)


@functools.cache
def _warn_of_fork() -> None:
    """Warn, once: a forked process has the locks of the runtime's threads, and not the threads."""
    warnings.warn(
        "os.fork: this process has used phalanx, which has threads that the new process will not "
        "have: using phalanx there may wait for ever. Start processes that use it with "
        "multiprocessing.get_context('spawn'), or fork before phalanx is used first",
        RuntimeWarning,
        stacklevel=2,
    )


# XLA ends the process when a device has waited for others in a collective for a minute. They may
# be busy for longer, with work of their own or with a function of the user's: let it wait a day.
_PATIENCE = "--xla_cpu_collective_call_terminate_timeout_seconds"
_A_DAY = 86_400


def _let_collectives_wait() -> None:
    """Set XLA's flag, which it reads once in a process, from the environment: only for so long.

    There it needs to be, since as an option of a compilation it has no effect. Clients start one at
    a time, and ``os.environ``, which other threads may read meanwhile, never has it.
    """
    flags = os.environ.get("XLA_FLAGS")
    if flags is not None and _PATIENCE in flags:
        return
    os.putenv("XLA_FLAGS", f"{flags or ''} {_PATIENCE}={_A_DAY}")
    try:
        _ = xc.CompileOptions().executable_build_options.debug_options
    finally:
        if flags is None:
            os.unsetenv("XLA_FLAGS")
        else:
            os.putenv("XLA_FLAGS", flags)


def _start_cpu() -> Any:
    _let_collectives_wait()
    count = config.num_cpu_devices
    started = xla_client.make_cpu_client(num_devices=count, **cpu_arguments())
    config.update("num_cpu_devices", count)
    config.freeze(
        "num_cpu_devices",
        f"the CPU client has started with {count}. Set it before the first array is made, or as "
        "PHALANX_NUM_CPU_DEVICES in the environment",
    )
    return started


def _start_cuda() -> Any:
    plugin = _find_plugin("jax_plugins", "xla_cuda*/xla_cuda_plugin.so")
    if plugin is None:
        raise DeviceError(
            "Unknown backend cuda: XLA's plugin is not installed; see the extras of this package"
        )
    if not glob.glob("/dev/nvidia[0-9]*") and not glob.glob("/dev/dxg"):
        raise DeviceError("Unknown backend cuda: this machine has no NVIDIA GPU")
    options, distributed = gpu_arguments()
    options |= xla_client.generate_pjrt_gpu_plugin_options()
    return _start_plugin("cuda", plugin, options, distributed)


def _start_tpu() -> Any:
    plugin = _find_plugin("libtpu", "libtpu.so")
    if plugin is None:
        raise DeviceError("Unknown backend tpu: the package libtpu is not installed")
    if not glob.glob("/dev/accel*") and not glob.glob("/dev/vfio/[0-9]*"):
        raise DeviceError("Unknown backend tpu: this machine has no TPU")
    return _start_plugin("tpu", plugin, {})


def _find_plugin(package: str, pattern: str) -> str | None:
    """The path of a plugin, without importing the package that holds it."""
    spec = importlib.util.find_spec(package)
    for folder in (spec.submodule_search_locations if spec else None) or ():
        paths = sorted(glob.glob(os.path.join(folder, pattern)))
        if paths:
            return paths[-1]
    return None


def _start_plugin(
    name: str, path: str, options: Mapping[str, Any], distributed: Any = None
) -> Any:
    try:
        if not xla_client.pjrt_plugin_loaded(name):
            plugins[name] = xla_client.load_pjrt_plugin_dynamically(name, path)
        if not xla_client.pjrt_plugin_initialized(name):
            xla_client.initialize_pjrt_plugin(name)
        return xla_client.make_c_api_client(name, options, distributed)
    except RuntimeError as e:
        raise DeviceError(f"{name} failed to initialize: the plugin {path} says {e}") from None


plugins: dict[str, Any] = {}  # those that were loaded, for the profiler
_ALIASES: dict[Any, str] = {"gpu": "cuda"}
_STARTERS: dict[str, Callable[[], Any]] = {
    "tpu": _start_tpu,
    "cuda": _start_cuda,
    "cpu": _start_cpu,
}
