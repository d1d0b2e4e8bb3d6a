"""Executables that outlive the process: what tells them apart, and bringing them back.

The runtime loads whatever it is given, also what another version wrote or what was compiled for
another machine. So the key holds all that a compilation depends on, and only that: not the lines
of the user's code, so that a comment may change, and no addresses.
"""

from __future__ import annotations

import functools
import hashlib
import os
import platform
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from jaxlib import version

from phalanx.base.config import config
from phalanx.base.phases import phase
from phalanx.base.recent import memoized
from phalanx.run.cache import cache
from phalanx.xla.jaxlib_versions import device_list, xc
from phalanx.xla.module import XlaModule

# What the compiler reads besides its options.
_VARIABLES = ("XLA_FLAGS", "LIBTPU_INIT_ARGS", "NVIDIA_TF32_OVERRIDE", "PJRT_NPROC")


def load_or_compile(
    lowered: XlaModule,
    devices: tuple[Any, ...],
    settings: Any,
    overrides: dict[str, Any],
    compile: Callable[[], Any],
) -> LoadedExecutable:
    """What ``compile()`` gives, from the cache if it is there, and there afterwards.

    ``settings`` are the compiler's options for ``devices`` without the ``overrides``.
    """
    store = cache()
    # only compiling dumps, or answers questions
    if store is None or lowered.inspections or "xla_dump" in os.environ.get("XLA_FLAGS", ""):
        with phase("compiling"):
            return LoadedExecutable(compile())
    key = _name_of_executable(lowered, devices, settings.SerializeAsString(), overrides)
    content = store.read(key)
    if content is not None:
        try:
            functions = lowered.callbacks.attached(devices[0].client)
            with phase("loading from the cache"):
                loaded = load(content, devices, settings, functions)
            return LoadedExecutable(loaded, content, lambda: store.read(key))
        except (RuntimeError, ValueError, TypeError):
            store.remove(key)
    start = time.perf_counter()
    with phase("compiling"):
        loaded, content = compile(), None
    if time.perf_counter() - start >= config.persistent_cache_min_compile_time_secs:
        content = serialized(loaded)
        if content is not None:
            store.write(key, content)
    return LoadedExecutable(loaded, content)


class LoadedExecutable(NamedTuple):
    """An executable.

    Attributes:
        loaded: the runtime's object.
        content: what was read or written of it.
        read: gives its content again, where it was loaded: that cannot be serialized again.
        anew: compiles it, where it was loaded: what was has other lines of the user's.
    """

    loaded: Any
    content: bytes | None = None
    read: Callable[[], bytes | None] | None = None
    anew: Callable[[], Any] | None = None


def load(
    content: bytes, devices: tuple[Any, ...], settings: Any, callbacks: Sequence[Any] = ()
) -> Any:
    """The executable that ``content`` holds, for ``devices``."""
    client = devices[0].client
    return client.deserialize_executable(content, device_list(devices), settings, list(callbacks))


def _name_of_executable(
    lowered: XlaModule, devices: tuple[Any, ...], settings: bytes, overrides: dict[str, Any]
) -> str:
    """The name of the executable of ``lowered``: 64 hexadecimal digits."""
    parts = (
        surroundings(devices),
        settings,
        repr(sorted((name, repr(value)) for name, value in overrides.items())).encode(),
        str(len(lowered.callbacks.entries)).encode(),
        lowered.as_text().encode(),
    )
    digest = hashlib.sha256()
    for part in parts:
        digest.update(b"%d " % len(part))
        digest.update(part)
    return digest.hexdigest()


@memoized(64)
def surroundings(devices: tuple[Any, ...]) -> bytes:
    """The compiler and the machine, and the place of ``devices`` among those of all processes."""
    client = devices[0].client
    kinds = [(d.id, d.device_kind, d.process_index) for d in devices]
    words = (
        version.__version__,
        client.platform,
        client.platform_version,
        client.process_index(),
        kinds,
        _topology(devices),
        host(),
        [os.environ.get(name, "") for name in _VARIABLES],
    )
    return repr(words).encode()


def _topology(devices: tuple[Any, ...]) -> bytes:
    """What the runtime says of the devices; for a CPU the instructions that it has."""
    try:
        return xc.get_topology_for_devices(list(devices)).serialize()
    except (AttributeError, RuntimeError, NotImplementedError):  # 0.10, and some plugins
        return b""


@functools.cache
def host() -> tuple[str, ...]:
    """The model of the CPU and its features, as far as the system tells."""
    words = (platform.system(), platform.machine())
    try:
        described = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return (*words, platform.processor())  # on Linux that would start a process
    first = described.split("\n\n", 1)[0]
    prefixes = ("vendor_id", "cpu family", "model", "stepping", "flags", "Features", "CPU ")
    return (*words, *(line for line in first.splitlines() if line.startswith(prefixes)))


def serialized(loaded: Any) -> bytes | None:
    """The content of an executable, where it can be had."""
    try:
        return loaded.serialize()
    except (RuntimeError, NotImplementedError):  # not every plugin can
        return None
