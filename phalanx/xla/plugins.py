"""Plugins of the runtime, each for a platform.

A plugin is a shared library that offers PJRT's interface. Packages that bring one are looked for,
never imported: what they do when they are imported needs the package jax.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct, field

from phalanx.base.errors import DeviceError
from phalanx.base.on_demand import OnDemand

_metadata = OnDemand("importlib.metadata", "slow, and few platforms need plugins")
_NAMED = "PJRT_NAMES_AND_LIBRARY_PATHS"
_FAMILIES = re.compile(r"xla_(cuda|rocm)(\d*)")  # the name of a package, with a version


class Plugin(Struct, frozen=True):
    """A shared library.

    Attributes:
        platform: what it is for.
        path: where it is.
        version: of what it is built for, where the name of its package tells; 0 otherwise.
        options: what its client is to be made with.
    """

    platform: str
    path: str
    version: int = 0
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])


def installed() -> dict[str, list[Plugin]]:
    """The plugins that there are, by platform; one that the environment names is the only one.

    Packages that only announce one are not among them: to look for those takes longer than all
    else that is done until a program runs.

    Raises:
        DeviceError: what the environment says is not of the form that is expected.
    """
    below = [above / name for above in folders("jax_plugins") for name in _names_in(above)]
    named = _by_platform(*_named_by_the_environment())
    return {**named, **_by_platform(*_of_libtpu(), *_in(below)), **named}


def announced() -> dict[str, list[Plugin]]:
    """The plugins of packages that call themselves one of jax, by platform."""
    places: list[Path] = []
    for point in _metadata.entry_points(group="jax_plugins"):
        package, *below = point.value.partition(":")[0].split(".")
        places += [folder.joinpath(*below) for folder in folders(package)]
    return _by_platform(*_in(places))


def _by_platform(*plugins: Plugin) -> dict[str, list[Plugin]]:
    found: dict[str, list[Plugin]] = {}
    for plugin in plugins:
        found.setdefault(plugin.platform, []).append(plugin)
    return found


def _named_by_the_environment() -> Iterator[Plugin]:
    """``name:path`` with commas between; the path of a JSON file has options besides."""
    for entry in filter(None, os.environ.get(_NAMED, "").split(",")):
        name, _, path = entry.partition(":")
        if not name or not path:
            raise DeviceError(
                f"{_NAMED}: entries name:path with commas between are needed, got {entry!r}"
            )
        if not path.endswith(".json"):
            yield Plugin(name, path)
            continue
        try:
            manifest = json.loads(Path(path).read_text())
            yield Plugin(name, manifest["library_path"], options=manifest.get("create_options", {}))
        except (OSError, ValueError, KeyError) as e:
            raise DeviceError(
                f"{_NAMED}: {path} should be a JSON file with library_path, and create_options if "
                f"there are any: {e!r}"
            ) from None


def _of_libtpu() -> Iterator[Plugin]:
    named = os.environ.get("TPU_LIBRARY_PATH")
    if named:
        yield Plugin("tpu", named)
        return
    for folder in folders("libtpu"):
        path = folder / "libtpu.so"
        if path.exists():
            yield Plugin("tpu", str(path))


def _in(places: Sequence[Path]) -> Iterator[Plugin]:
    for folder in dict.fromkeys(places):
        shared_libraries = [name for name in _names_in(folder) if name.endswith(".so")]
        libraries = [name for name in shared_libraries if "plugin" in name] or shared_libraries
        if libraries:
            family = _FAMILIES.fullmatch(folder.name)
            name = family[1] if family else folder.name.removeprefix("xla_")
            version = int(family[2] or 0) if family else 0
            yield Plugin(name, str(folder / libraries[-1]), version)


def _names_in(folder: Path) -> list[str]:
    """What ``folder`` holds, if it is one: patterns take longer than all else that is done here."""
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []


def folders(package: str) -> list[Path]:
    """Where a package lies, which is not imported; none if it is not there."""
    spec = importlib.util.find_spec(package)
    return [Path(p) for p in (spec.submodule_search_locations if spec else None) or ()]
