"""Clients of the XLA runtime: one per platform, started at the first use."""

from __future__ import annotations

import functools
import gc
import os
import threading
import warnings
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from jaxlib import utils, version, xla_client

from phalanx.base.config import config
from phalanx.base.errors import ConfigError, DeviceError, suggest
from phalanx.base.source import warn_user
from phalanx.core.platforms import GPUS, NO_HARDWARE
from phalanx.processes import hardware
from phalanx.processes.dealing import OfHost
from phalanx.processes.joined import joined_member
from phalanx.xla import cuda, gpu_calls, plugins, rocm
from phalanx.xla.jaxlib_versions import xc
from phalanx.xla.plugins import Plugin
from phalanx.xla.processes import cpu_arguments, distributed_client, gpu_arguments

_lock = threading.RLock()
_clients: dict[str, Any] = {}


def client(platform: str | None = None) -> Any:
    """The client of ``platform``, or of the best one there is.

    Raises:
        DeviceError: the platform is not there; the message says why.
    """
    with _lock:
        return _named(_canonical(platform), platform) if platform else _preferred()


def started() -> list[str]:
    """The platforms whose clients have started."""
    return list(_clients)


def plugin_of(client: Any) -> str | None:
    """The platform whose plugin brings ``client``, as it is asked for; None: none does."""
    names = [name for name, one in _clients.items() if one is client]
    return next(iter(names), client.platform) if names != ["cpu"] else None


@functools.cache
def _preferred() -> Any:
    """The client of the first platform that is asked for, or of the best that there is."""
    requested = _requested_platforms()
    for name in requested:
        why = _absence(name)
        if why:
            raise DeviceError(
                f"Unable to initialize backend {name!r}: {why} (set JAX_PLATFORMS='' to "
                "automatically choose an available backend)"
            )
    name = requested[0] if requested else _best()
    try:
        client = _named(name)
    except DeviceError as e:
        if requested:
            raise
        raise DeviceError(
            f"{str(e).rstrip('.')}. To compute on the CPU all the same, set JAX_PLATFORMS=cpu in "
            "the environment"
        ) from None
    config.freeze("platforms", f"the client of platform {name} has started", name)
    return client


def _requested_platforms() -> list[str]:
    platforms = config.platforms or ""
    return [_canonical(n.strip()) for n in platforms.split(",") if n.strip()]


def are_cpus() -> bool:
    """Whether the devices that are used are those of CPUs, which no plugin brings."""
    return {*(_requested_platforms() or [_best()])} == {"cpu"}


def _best() -> str:
    """The first platform whose plugin and hardware are there; one that lacks a plugin is told."""
    there = plugins.installed()
    for name in dict.fromkeys((*hardware.DEVICE_FILES, *there)):
        if not hardware.has_hardware(name):
            if name == "cuda" and name in there:
                _warn_of_containers()
            continue
        if name in there:
            return name
        warn_user(
            f"this machine has {_HARDWARE[name]}, and XLA's plugin for it is not installed, so the "
            f"CPU computes: {_REMEDIES[name]}; or say JAX_PLATFORMS=cpu",
            RuntimeWarning,
        )
    return "cpu"


def _warn_of_containers() -> None:
    """Warn in one that was made for GPUs, with all that they need, and was given none."""
    if hardware.is_container() and not hardware.hiding("cuda") and cuda.are_here():
        warn_user(
            "this container has NVIDIA's libraries and no GPU, so the CPU computes: its host gives "
            "it GPUs with docker run --gpus all; or say JAX_PLATFORMS=cpu",
            RuntimeWarning,
        )


def _absence(name: str) -> str | None:
    """Why ``name`` cannot be had here, if it cannot."""
    if name == "cpu":
        return None
    hiding = hardware.hiding(name)
    if hiding:
        return f"{hiding}={os.environ[hiding]} hides every one from this process"
    if not hardware.has_hardware(name):
        advice = (
            f"; this is a container, {_CONTAINER_ADVICE[name]}" if hardware.is_container() else ""
        )
        return f"{NO_HARDWARE} {_HARDWARE[name].split(' ', 1)[1]}{advice}"
    if _plugins(name):
        return None
    if name in _HARDWARE:
        return f"XLA's plugin for it is not installed: {_REMEDIES[name]}"
    platforms = dict.fromkeys(("cpu", "gpu", *_HARDWARE, *plugins.installed()))
    return suggest(name, platforms) or f"There are {', '.join(platforms)}"


def absences() -> dict[str, str]:
    """The accelerators that cannot be had here, each with the reason."""
    names = dict.fromkeys((*_HARDWARE, *plugins.installed(), *plugins.announced()))
    return {name: why for name in names if (why := _absence(name)) is not None}


def libraries(platform: str) -> str:
    """What the client of ``platform`` uses of its makers', with versions; empty: nobody knows."""
    return _libraries.get(platform, "")


def local_device_ids(process: OfHost) -> Sequence[int] | None:
    """The GPUs of this machine for one of its processes, if the others have their own.

    Raises:
        ConfigError: they cannot be dealt out.
    """
    requested = _requested_platforms()
    names = [n for n in requested or _HARDWARE if n in _HARDWARE and _absence(n) is None]
    if not names:
        return None
    if names[0] == "tpu":
        if process.count == 1 or os.environ.keys() & _PARTS_OF_A_HOST:
            return None
        raise ConfigError(
            f"{process.count} processes on this machine are to share its TPU, of which one process "
            "takes all chips; start one process on each machine, or say in TPU_VISIBLE_CHIPS and "
            "TPU_PROCESS_BOUNDS which are whose"
        )
    own = _visible_devices(names[0])
    if own is not None:
        mine = process.local_device_ids(len(own), are_assigned=True)
        return None if mine is None else [own[i] for i in mine]
    count = hardware.count_of_gpus(names[0])
    assigned = hardware.gpus_are_assigned()
    return None if count is None else process.local_device_ids(count, assigned)


_PARTS_OF_A_HOST: Final = {"TPU_VISIBLE_CHIPS", "TPU_VISIBLE_DEVICES", "TPU_PROCESS_BOUNDS"}


def _plugins(name: str) -> list[Plugin]:
    return plugins.installed().get(name) or plugins.announced().get(name, [])


def _canonical(name: str) -> str:
    """``gpu`` is whatever kind there is."""
    if name != "gpu":
        return name
    ready = [kind for kind in GPUS if _absence(kind) is None]
    return [*ready, *filter(hardware.has_hardware, GPUS), *GPUS][0]


_HARDWARE: Final = {"tpu": "a TPU", "cuda": "an NVIDIA GPU", "rocm": "an AMD GPU"}
_CONTAINER_ADVICE: Final = {
    "tpu": "to which its host gives a TPU with docker run --privileged",
    "cuda": "to which its host gives GPUs with docker run --gpus all",
    "rocm": "to which its host gives GPUs with docker run --device /dev/kfd --device /dev/dri",
}
_REMEDIES: Final = {
    "tpu": "pip install 'phalanx[tpu]'",
    "cuda": "pip install 'phalanx[cuda13]', or [cuda12] for a driver before 580",
    "rocm": "install AMD's plugin, such as jax-rocm7-plugin and jax-rocm7-pjrt",
}


def _named(name: str, asked: str = "") -> Any:
    if name not in _clients:
        why = _absence(name)
        if why:
            raise DeviceError(f"devices: Unknown backend {asked or name!r}. {why}")
        be_quiet()
        _clients[name] = _start_cpu() if name == "cpu" else _start(_plugins(name))
        _watch_forks()
        _watch_collections()
        _warn_of_being_alone()
    return _clients[name]


@functools.cache
def _warn_of_being_alone() -> None:
    """Warn, once, where one of several processes that were launched together has joined none."""
    count = os.environ.get("PHALANX_NUM_PROCESSES", "1")
    if "PHALANX_COORDINATOR_STARTED" in os.environ and count != "1" and joined_member() is None:
        warn_user(
            f"phalanx launch started {count} processes, and this one uses devices before it has "
            "joined the others: it computes by itself, with its own devices alone. Begin with "
            "phalanx.distributed.initialize()",
            RuntimeWarning,
        )


def be_quiet() -> None:
    """Let the runtime tell of warnings and errors alone, where the user said nothing."""
    if _LEVEL not in os.environ:
        utils.absl_set_min_log_level(1)


_LEVEL: Final = "TF_CPP_MIN_LOG_LEVEL"


@functools.cache
def _watch_forks() -> None:
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=_warn_of_fork)


@functools.cache
def _watch_collections() -> None:
    """Let go of the host's arrays that programs have read, whenever Python collects garbage.

    The runtime has done with them where it may not drop them, and keeps them for a later call.
    """
    drop = xc.collect_garbage

    def collected(phase: str, info: dict[str, int]) -> None:
        drop()

    gc.callbacks.append(collected)


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
    text = (flags or "").lstrip()
    if _PATIENCE in text or (text and not text.startswith("--")):  # the name of a file of flags
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
        f"the CPU client has started with {count}. Set it before the first array is made (in a "
        "notebook, after restarting the kernel), or as PHALANX_NUM_CPU_DEVICES in the environment",
    )
    return started


def _start(candidates: Sequence[Plugin]) -> Any:
    """The client of a plugin; of several for CUDA that which fits the driver, else of the first."""
    platform = candidates[0].platform
    try:
        plugin = cuda.fitting(candidates) if platform == "cuda" else candidates[0]
        options, distributed = _arguments(plugin)
        if platform == "cuda":
            _libraries[platform] = cuda.prepare(plugin, options.get("visible_devices", ()))
        elif platform == "rocm":
            rocm.prepare()
        load(plugin)
        return xla_client.make_c_api_client(platform, options, distributed)
    except (RuntimeError, ValueError, OSError) as e:
        advice = f" {_OF_ONE_PROCESS}" if "TPU initialization failed" in str(e) else ""
        raise DeviceError(f"Unable to initialize backend {platform!r}: {e}{advice}") from None


_OF_ONE_PROCESS: Final = (
    "One process at a time uses a TPU, and it has to be allowed to open /dev/accel* or /dev/vfio/*"
)


def load(plugin: Plugin) -> Any:
    """The interface of a plugin, which is ready; what it calls is registered.

    None if it was another library in this process that loaded it, and did all that.

    Raises:
        DeviceError: it cannot be loaded, as where it is built for another version of jaxlib.
    """
    name = plugin.platform
    be_quiet()
    if not xla_client.pjrt_plugin_loaded(name):
        if _LEVEL not in os.environ:
            os.putenv(_LEVEL, "1")  # plugins read it when they are loaded
        with _explained(plugin):
            loaded[name] = xla_client.load_pjrt_plugin_dynamically(name, plugin.path)
            _versions[name] = plugin.version
        if name in GPUS:
            gpu_calls.register(plugin, loaded[name])
    if not xla_client.pjrt_plugin_initialized(name):
        if name == "tpu" and not hardware.has_hardware(name):
            for variable in _NO_TPU_HERE.keys() - os.environ.keys():
                os.putenv(variable, _NO_TPU_HERE[variable])
        with _explained(plugin):
            xla_client.initialize_pjrt_plugin(name)
    return loaded.get(name)


def data_directory(platform: str) -> str | None:
    """Where compilers for GPUs find what their makers' tools bring."""
    if platform == "cuda":
        return cuda.data_directory(_versions.get(platform, 0))
    return rocm.data_directory() if platform == "rocm" else None


@contextmanager
def _explained(plugin: Plugin) -> Generator[None]:
    """What keeps a plugin from being loaded is told in words."""
    try:
        yield
    except RuntimeError as e:
        remedy = _REMEDIES.get(plugin.platform, "install the one for this version")
        other = (
            f". If it is for another version of jaxlib than {version.__version__}, which is here: "
            f"{remedy}"
        )
        raise DeviceError(
            f"the plugin for {plugin.platform} cannot be loaded: {e}"
            f"{other if os.path.exists(plugin.path) else ''}"
        ) from None


def is_of_others(platform: str) -> bool:
    """Whether the plugin for ``platform`` was loaded by another library in this process."""
    return platform not in loaded and xla_client.pjrt_plugin_loaded(platform)


# A TPU library looks for the machine that it is on: it would ask Google's cloud for minutes, and
# complain of what it did not find.
_NO_TPU_HERE: Final = {
    "TPU_SKIP_MDS_QUERY": "1",
    "TPU_ACCELERATOR_TYPE": "v5litepod-8",
    "TPU_WORKER_HOSTNAMES": "localhost",
    "ALLOW_MULTIPLE_LIBTPU_LOAD": "true",  # nobody holds what is not there
}


def _arguments(plugin: Plugin) -> tuple[dict[str, Any], Any]:
    """The options of a client, and what it speaks through to other processes."""
    options = dict(plugin.options)
    name = plugin.platform
    if name in GPUS:
        options |= _of_their_memory()
        options["platform_name"] = name
        visible = _visible_devices(name)
        options |= {} if visible is None else {"visible_devices": list(visible)}
        options |= gpu_arguments()
    return options | (config.pjrt_client_create_options or {}), distributed_client()


def _of_their_memory() -> dict[str, Any]:
    """What the environment says of how clients for GPUs use memory.

    Raises:
        ConfigError: something that means nothing.
    """
    variables = {n: os.environ[n] for n in os.environ if n.startswith(_OF_CLIENTS)}
    try:
        for name in variables.keys() - _CLIENT_VARIABLES:
            raise ValueError(suggest(name, _CLIENT_VARIABLES) or f"nothing reads {name}")
        if variables.get(_AT_ONCE, "").lower() not in ("", "true", "false", "1", "0"):
            raise ValueError(f"{_AT_ONCE} is true or false")
        return xla_client.generate_pjrt_gpu_plugin_options()
    except ValueError as e:
        assignments = ", ".join(f"{name}={value}" for name, value in variables.items())
        raise ConfigError(f"the environment has {assignments}: {e}") from None


_OF_CLIENTS: Final = ("XLA_PYTHON_CLIENT_", "XLA_CLIENT_")
_AT_ONCE: Final = "XLA_PYTHON_CLIENT_PREALLOCATE"
_CLIENT_VARIABLES: Final = {
    _AT_ONCE, "XLA_PYTHON_CLIENT_ALLOCATOR", "XLA_PYTHON_CLIENT_MEM_FRACTION",
    "XLA_CLIENT_MEM_FRACTION", "XLA_PYTHON_CLIENT_COLLECTIVE_MEM_SIZE_MB",
    "XLA_PYTHON_CLIENT_ABORT_COLLECTIVES_ON_FAILURE", "XLA_PYTHON_CLIENT_USE_TFRT_GPU_CLIENT",
}  # fmt: skip


def _visible_devices(name: str) -> Sequence[int] | None:
    """Those of the GPUs that the user lets this process see, if not all."""
    return getattr(config, f"{name}_visible_devices")


loaded: dict[str, Any] = {}  # the interfaces of plugins, for the profiler
_versions: dict[str, int] = {}  # of what they are built for
_libraries: dict[str, str] = {}  # that they use
