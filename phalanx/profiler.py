"""Recording what a program spends its time and memory on.

What is recorded is read with XProf or TensorBoard, or in a browser by Perfetto: the folder
``plugins/profile`` of the one that is given holds a folder for each recording.
"""

from __future__ import annotations

import functools
import os
import shutil
import sys
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from phalanx.base.boundary import bound
from phalanx.base.errors import ArgumentError, RuntimeFailure
from phalanx.xla import profile
from phalanx.xla.profile import Annotation as TraceAnnotation
from phalanx.xla.profile import Data as ProfileData
from phalanx.xla.profile import Event as ProfileEvent
from phalanx.xla.profile import Line as ProfileLine
from phalanx.xla.profile import Options as ProfileOptions
from phalanx.xla.profile import Plane as ProfilePlane

__all__ = [
    "ProfileData",
    "ProfileEvent",
    "ProfileLine",
    "ProfileOptions",
    "ProfilePlane",
    "StepTraceAnnotation",
    "TraceAnnotation",
    "annotate_function",
    "device_memory_profile",
    "save_device_memory_profile",
    "start_server",
    "start_trace",
    "stop_server",
    "stop_trace",
    "trace",
]

F = TypeVar("F", bound=Callable[..., Any])


class _Recording:
    """What runs: there is one recording, and one server, in a process."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.session: Any = None
        self.folder = Path()
        self.perfetto = False
        self.server: Any = None


_running = _Recording()


def start_trace(
    log_dir: str | os.PathLike[str],
    create_perfetto_link: bool = False,
    create_perfetto_trace: bool = False,
    profiler_options: Any = None,
) -> None:
    """Begin to record what host and devices do, until ``stop_trace``.

    Args:
        log_dir: the folder to write to.
        create_perfetto_link: must be false: nothing is served. Open the file that
            ``create_perfetto_trace`` writes on https://ui.perfetto.dev.
        create_perfetto_trace: whether to write ``perfetto_trace.json.gz``, too.
        profiler_options: a ``ProfileOptions`` that says how much is recorded.

    Raises:
        RuntimeFailure: something is being recorded.
        ValueError: a link is asked for.

    >>> import phalanx, tempfile, os, phalanx.numpy as jnp
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     phalanx.profiler.start_trace(folder)
    ...     _ = jnp.sin(1.0).block_until_ready()
    ...     _ = phalanx.profiler.stop_trace()
    ...     os.listdir(folder)
    ['plugins']
    """
    if create_perfetto_link:
        raise ArgumentError(
            "start_trace: nothing is served that a link could lead to; pass "
            "create_perfetto_trace=True and open the file on https://ui.perfetto.dev"
        )
    with _running.lock:
        if _running.session is not None:
            raise RuntimeFailure(
                "start_trace: Profile has already been started; only one profile may be run at a "
                "time, call stop_trace first"
            )
        _running.session = profile.session(profiler_options)
        _running.folder, _running.perfetto = Path(log_dir), create_perfetto_trace


def stop_trace() -> Any:
    """Stop recording, and write what was recorded.

    Returns:
        It, as a ``ProfileData``.

    Raises:
        RuntimeFailure: nothing is being recorded.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     start_trace(folder)
    ...     recorded = stop_trace()
    >>> type(recorded).__name__
    'ProfileData'
    """
    with _running.lock:
        session = _running.session
        if session is None:
            raise RuntimeFailure("stop_trace: No profile started; call start_trace first")
        _running.session = None
        recorded = session.stop()
        session.export(recorded, str(_running.folder))
        if _running.perfetto:
            _write_for_perfetto(_running.folder)
    return ProfileData.from_serialized_xspace(recorded)


def _write_for_perfetto(folder: Path) -> None:
    """Copy the newest recording to the name under which it is looked for."""
    files = (folder / "plugins" / "profile").glob("*/*.trace.json.gz")
    newest = max(files, key=lambda file: file.stat().st_mtime)
    shutil.copyfile(newest, newest.with_name("perfetto_trace.json.gz"))


@contextmanager
def trace(
    log_dir: str | os.PathLike[str],
    create_perfetto_link: bool = False,
    create_perfetto_trace: bool = False,
    profiler_options: Any = None,
) -> Generator[None]:
    """Record what a block does: ``start_trace`` and ``stop_trace`` around it.

    Args:
        log_dir: the folder to write to.
        create_perfetto_link: must be false: nothing is served. Open the file that
            ``create_perfetto_trace`` writes on https://ui.perfetto.dev.
        create_perfetto_trace: whether to write ``perfetto_trace.json.gz``, too.
        profiler_options: a ``ProfileOptions`` that says how much is recorded.

    Returns:
        A context manager.

    >>> import os, tempfile
    >>> from phalanx import profiler
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with profiler.trace(folder):
    ...         _ = jnp.ones(3).sum().block_until_ready()
    ...     os.listdir(folder)
    ['plugins']
    """
    start_trace(log_dir, create_perfetto_link, create_perfetto_trace, profiler_options)
    try:
        yield
    finally:
        stop_trace()


class StepTraceAnnotation(TraceAnnotation):
    """A block that is a step of a training loop in what is recorded.

    Args:
        name: what the recording shows.
        kwargs: what it shows besides, such as ``step_num``.

    >>> import phalanx
    >>> with phalanx.profiler.StepTraceAnnotation("train", step_num=3):
    ...     pass
    """

    def __init__(self, name: str, **kwargs: Any) -> None:
        TraceAnnotation.__init__(self, name, _r=1, **kwargs)


def annotate_function(func: F, name: str | None = None, **decorator_kwargs: Any) -> F:
    """``func``, whose calls have a name in what is recorded.

    Args:
        func: a function.
        name: the name; default that of the function.
        decorator_kwargs: what else to tell of each call, as ``TraceAnnotation`` takes it.

    Returns:
        A function with the parameters and results of ``func``.

    >>> import phalanx
    >>> phalanx.profiler.annotate_function(abs, name="magnitude")(-1)
    1
    """
    label = name or getattr(func, "__qualname__", None) or getattr(func, "__name__", repr(func))

    @functools.wraps(func)
    def annotated(*args: Any, **kwargs: Any) -> Any:
        with TraceAnnotation(label, **decorator_kwargs):
            return func(*args, **kwargs)

    return annotated  # type: ignore[return-value]


def device_memory_profile(backend: str | None = None) -> bytes:
    """What the memory of the devices holds: a profile that ``pprof`` reads, compressed by gzip.

    Args:
        backend: the platform; default that of the first device.

    >>> from phalanx import profiler
    >>> len(profiler.device_memory_profile()) > 0
    True
    """
    return profile.memory_profile(backend)


def save_device_memory_profile(
    filename: str | os.PathLike[str], backend: str | None = None
) -> None:
    """Write ``device_memory_profile`` to a file.

    Args:
        filename: the file to write.
        backend: the platform; default that of the first device.

    >>> import os, tempfile
    >>> from phalanx import profiler
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     profiler.save_device_memory_profile(f"{folder}/memory.prof")
    ...     os.listdir(folder)
    ['memory.prof']
    """
    Path(filename).write_bytes(device_memory_profile(backend))


def start_server(port: int, requires_backend: bool = True) -> Any:
    """Let others, such as TensorBoard, record what this process does.

    Args:
        port: where to listen.
        requires_backend: has no meaning: devices start when they are used.

    Returns:
        The server, which runs until ``stop_server``.

    Raises:
        RuntimeFailure: there is a server.
    """
    with _running.lock:
        if _running.server is not None:
            raise RuntimeFailure("start_server: Only one profiler server can be active at a time")
        _running.server = profile.serve(port)
        return _running.server


def stop_server() -> None:
    """Stop the server.

    Raises:
        RuntimeFailure: there is none.
    """
    with _running.lock:
        if _running.server is None:
            raise RuntimeFailure("stop_server: No active profiler server")
        _running.server = None


bound(sys.modules[__name__])
