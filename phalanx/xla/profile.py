"""The runtime's profiler: sessions that record what host and devices do, and a server for them."""

from __future__ import annotations

import zlib
from typing import Any

from jaxlib import _profile_data, _profiler

from phalanx.xla.client import are_cpus, be_quiet, client, loaded

Annotation: Any = _profiler.TraceMe
Options: Any = _profiler.ProfileOptions
Data: Any = _profile_data.ProfileData
Plane: Any = _profile_data.ProfilePlane
Line: Any = _profile_data.ProfileLine
Event: Any = _profile_data.ProfileEvent
GZIP = 31  # what zlib calls this format, with the largest window
_watched: set[str] = set()


def session(options: Any = None) -> Any:
    """Begin to record; ``stop`` gives the bytes of what was recorded, ``export`` writes such."""
    be_quiet()
    if not are_cpus():  # what a plugin brings is recorded once it has started
        client()  # CPUs start later, for processes that are yet to join others
    for name, plugin in loaded.items():
        if name not in _watched:
            _watched.add(name)
            _profiler.register_plugin_profiler(plugin)
    return _profiler.ProfilerSession() if options is None else _profiler.ProfilerSession(options)


def serve(port: int) -> Any:
    """A server that records when others ask for it, while what this returns is kept."""
    return _profiler.start_server(port)


def memory_profile(platform: str | None) -> bytes:
    """What the memory of the devices holds, in the form of pprof, which is compressed by gzip."""
    return zlib.compress(client(platform).heap_profile(), wbits=GZIP)
