"""What is public: modules in the order of the reference, and the names in them by subject."""

from __future__ import annotations

import functools
import importlib
import inspect
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any, NewType

import numpy as np

import phalanx
from docs.generator.subjects import SUBJECTS
from phalanx.base.set_module import MODULES
from phalanx.core.absent import ABSENT
from phalanx.run.array import DeviceArray

PAGES = {  # each page of the reference that lists names: its title, and the modules on it
    "phalanx": ("transformations, devices, meshes", ["phalanx"]),
    "phalanx.numpy": ("functions of arrays, as NumPy's", ["phalanx.numpy"]),
    "phalanx.numpy.linalg": ("linear algebra", ["phalanx.numpy.linalg"]),
    "phalanx.numpy.fft": ("Fourier transforms", ["phalanx.numpy.fft"]),
    "phalanx.lax": ("loops, branches, collectives, operations", ["phalanx.lax"]),
    "phalanx.lax.linalg": ("factorizations", ["phalanx.lax.linalg"]),
    "phalanx.nn": ("neural networks", ["phalanx.nn", "phalanx.nn.initializers"]),
    "phalanx.random": ("random numbers", ["phalanx.random"]),
    "phalanx.scipy": (
        "SciPy's functions",
        [
            "phalanx.scipy.linalg",
            "phalanx.scipy.fft",
            "phalanx.scipy.signal",
            "phalanx.scipy.integrate",
            "phalanx.scipy.interpolate",
            "phalanx.scipy.ndimage",
            "phalanx.scipy.optimize",
            "phalanx.scipy.sparse.linalg",
            "phalanx.scipy.spatial.transform",
            "phalanx.scipy.cluster.vq",
        ],
    ),
    "phalanx.scipy.special": ("special functions", ["phalanx.scipy.special"]),
    "phalanx.scipy.stats": ("probability distributions", ["phalanx.scipy.stats"]),
    "phalanx.training": ("losses, means, batches, states", ["phalanx.training"]),
    "phalanx.image": ("images", ["phalanx.image"]),
    "phalanx.ops": ("sums over segments", ["phalanx.ops"]),
    "phalanx.tree": (
        "trees of arrays (pytrees)",
        ["phalanx.tree", "phalanx.tree_util", "phalanx.flatten_util"],
    ),
    "phalanx.sharding": (
        "meshes, shardings, memories",
        ["phalanx.sharding", "phalanx.memory", "phalanx.experimental.layout"],
    ),
    "phalanx.distributed": (
        "many processes",
        [
            "phalanx.distributed",
            "phalanx.experimental.multihost_utils",
            "phalanx.experimental.mesh_utils",
        ],
    ),
    "phalanx.ref": ("mutable references", ["phalanx.ref"]),
    "phalanx.custom_derivatives": (
        "rules of your own for grad and vmap",
        ["phalanx.custom_derivatives", "phalanx.custom_batching"],
    ),
    "phalanx.ad_checkpoint": (
        "rematerialization",
        ["phalanx.ad_checkpoint", "phalanx.ad_checkpoint.checkpoint_policies"],
    ),
    "phalanx.primitives": ("operations of your own", ["phalanx.primitives"]),
    "phalanx.stages": ("compiled functions", ["phalanx.stages"]),
    "phalanx.export": ("portable functions", ["phalanx.export"]),
    "phalanx.ffi": ("functions of other languages", ["phalanx.ffi"]),
    "phalanx.debug": ("debugging", ["phalanx.debug", "phalanx.experimental.checkify"]),
    "phalanx.profiler": ("profiling and monitoring", ["phalanx.profiler", "phalanx.monitoring"]),
    "phalanx.insight": ("findings", ["phalanx.insight"]),
    "phalanx.test_util": ("checks of your functions", ["phalanx.test_util", "phalanx.laws"]),
    "phalanx.dtypes": (
        "dtypes and types for annotations",
        ["phalanx.dtypes", "phalanx.typing", "phalanx.dlpack"],
    ),
    "phalanx.experimental": (
        "checkpoints, sparse arrays, differential equations",
        [
            "phalanx.experimental",
            "phalanx.experimental.checkpoint",
            "phalanx.experimental.elastic",
            "phalanx.experimental.ray",
            "phalanx.experimental.safetensors",
            "phalanx.experimental.sparse",
            "phalanx.experimental.ode",
            "phalanx.experimental.jet",
            "phalanx.experimental.topologies",
            "phalanx.experimental.serialize_executable",
        ],
    ),
    "phalanx.example_libraries": (
        "small optimizers and layers",
        ["phalanx.example_libraries.optimizers", "phalanx.example_libraries.stax"],
    ),
    "phalanx.errors": ("errors", ["phalanx.errors"]),
}


@dataclass(frozen=True)
class Entry:
    """A public function, class or value, and where it is found.

    Attributes:
        name: the name under which its page stands, with the module.
        value: what it is.
        home: the module that defines it.
        others: its other public names.
    """

    name: str
    value: Any = field(compare=False, repr=False)
    home: str
    others: tuple[str, ...] = ()

    @property
    def module(self) -> str:
        """The public module."""
        return self.name.rpartition(".")[0]

    @property
    def short(self) -> str:
        """The name without the module."""
        return self.name.rpartition(".")[2]

    @property
    def page(self) -> str:
        """The name of its file: names that differ in capitals alone differ in more."""
        clash = [other for other in _folded()[self.name.casefold()] if other != self.name]
        return self.name + ("-class" if clash and self.short[:1].isupper() else "")


def names_of(module: types.ModuleType) -> list[str]:
    """The public names of a module that are no modules, in the order in which it has them."""
    listed = getattr(module, "__all__", None) or [n for n in dir(module) if n[0] != "_"]
    values = {name: getattr(module, name) for name in listed}
    return [name for name, value in values.items() if _is_offered(module, value)]


def _is_offered(module: types.ModuleType, value: Any) -> bool:
    """Whether it is something of ours that users call, or a class of theirs."""
    if isinstance(value, types.ModuleType) or not callable(value):
        return False
    if _home(value).startswith("phalanx"):
        return hasattr(module, "__all__") or _belongs(module.__name__, _home(value))
    return isinstance(value, type) and (getattr(value, "__module__", "") or "").startswith("jaxlib")


def _belongs(module: str, home: str) -> bool:
    """Whether what ``home`` defines is offered by a module that does not say what it offers."""
    inside = home == module or home.startswith(f"{module}.")
    return inside or module in {"phalanx", "phalanx.numpy", "phalanx.lax"}


def _home(value: Any) -> str:
    """The module that defines ``value``; empty if none tells."""
    made = value.func if isinstance(value, functools.partial) else inspect.unwrap(value)
    code = getattr(made, "__code__", None)
    if code is not None:
        path = Path(code.co_filename)
        if not path.is_relative_to(_PACKAGE):
            return ""
        return ".".join(path.relative_to(_PACKAGE.parent).with_suffix("").parts)
    kind = value if isinstance(value, type) else type(value)
    return MODULES.get(id(kind)) or getattr(value, "__module__", None) or kind.__module__ or ""


_PACKAGE = Path(inspect.getfile(phalanx)).parent


@functools.cache
def modules() -> dict[str, types.ModuleType]:
    """The public modules by name, in the order of the reference."""
    named = [name for _, own in PAGES.values() for name in own]
    stats = importlib.import_module("phalanx.scipy.stats")
    named += [f"{stats.__name__}.{name}" for name in distributions()]
    return {name: _module(name) for name in named}


@functools.cache
def distributions() -> list[str]:
    """The modules of ``phalanx.scipy.stats``."""
    stats = importlib.import_module("phalanx.scipy.stats")
    return [name for name in stats.__all__ if isinstance(getattr(stats, name), types.ModuleType)]


def _module(name: str) -> types.ModuleType:
    package, _, last = name.rpartition(".")
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError:  # an attribute of its package
        return getattr(_module(package), last)


@functools.cache
def entries() -> tuple[Entry, ...]:
    """Everything public, each once, under the name by which it is known best."""
    places: dict[Any, list[tuple[str, Any]]] = {}
    for module, found in modules().items():
        for name in names_of(found):
            value = getattr(found, name)
            places.setdefault(_identity(value), []).append((f"{module}.{name}", value))
    return tuple(_entry(same) for same in places.values())


def _identity(value: Any) -> Any:
    same = inspect.unwrap(value) if isinstance(value, types.FunctionType) else value
    return id(same), getattr(value, "__doc__", None)


def _entry(places: list[tuple[str, Any]]) -> Entry:
    value = places[0][1]
    names = [name for name, _ in places]
    made = inspect.unwrap(value) if isinstance(value, types.FunctionType) else value
    called = f".{getattr(made, '__name__', '')}"
    own, home = f"{getattr(value, '__module__', '')}{called}", _home(value)

    def rank(name: str) -> tuple[bool, ...]:  # what __module__ says follows from who imports first
        at_home = home.startswith(f"{name.rpartition('.')[0]}.")
        return not at_home, name != own, not name.endswith(called)

    best = min(names, key=rank)
    return Entry(best, value, home, tuple(name for name in names if name != best))


@functools.cache
def by_name() -> dict[str, Entry]:
    """The entry of each public name, its other names included."""
    return {name: entry for entry in entries() for name in (entry.name, *entry.others)}


def entry_of(value: Any) -> Entry | None:
    """The entry of something public."""
    return _by_identity().get(_identity(value))


@functools.cache
def _by_identity() -> dict[Any, Entry]:
    return {_identity(entry.value): entry for entry in entries()}


@functools.cache
def _folded() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for entry in entries():
        found.setdefault(entry.name.casefold(), []).append(entry.name)
    for name in PAGES:
        found.setdefault(name, []).append(f"{name} as a list")
    return found


def subjects(module: str) -> Iterator[tuple[str, list[Entry]]]:
    """The entries of a public module, grouped: a title, and what belongs to it."""
    here = [entry for name, entry in by_name().items() if name.rpartition(".")[0] == module]
    titles = SUBJECTS.get(module, {})
    groups: dict[str, list[Entry]] = {title: [] for title in titles}
    for entry in dict.fromkeys(here):
        groups.setdefault(_subject(module, entry, titles), []).append(entry)
    for title, group in groups.items():
        if group:
            yield title, sorted(group, key=lambda entry: entry.short.casefold())


def group_of(entry: Entry) -> tuple[str, list[Entry]]:
    """The subject that an entry belongs to, and all entries of that."""
    return _groups(entry.module).get(entry, ("", []))


@functools.cache
def _groups(module: str) -> dict[Entry, tuple[str, list[Entry]]]:
    found: dict[Entry, tuple[str, list[Entry]]] = {}
    for title, group in subjects(module):
        for entry in group:
            found.setdefault(entry, (title, group))
    return found


@functools.cache
def by_short_name() -> dict[str, list[Entry]]:
    """The entries that have the same name in different modules, by that name."""
    found: dict[str, list[Entry]] = {}
    for entry in entries():
        found.setdefault(entry.short, []).append(entry)
    return found


def near(entry: Entry, most: int) -> list[Entry]:
    """Entries of the same subject: all, or of more than ``most`` those written next to it."""
    _, group = group_of(entry)
    others = [one for one in group if one is not entry]
    if len(others) > most:
        written = sorted(group, key=_written)
        start = max(0, min(written.index(entry) - most // 2, len(written) - most - 1))
        beside = written[start : start + most + 1]
        others = [one for one in others if one in beside]
    return others


def _written(entry: Entry) -> tuple[str, int]:
    """In which module, and at which line."""
    code = getattr(inspect.unwrap(entry.value) if callable(entry.value) else None, "__code__", None)
    return entry.home, code.co_firstlineno if code else 0


def _subject(module: str, entry: Entry, titles: dict[str, list[str]]) -> str:
    for title, homes in titles.items():
        if any(entry.home == home or entry.home.startswith(f"{home}.") for home in homes):
            return title
    return ""


def signature(value: Any) -> inspect.Signature | None:
    """The parameters, if it has any that a user gives."""
    if isinstance(value, type) and issubclass(value, (BaseException, Enum, np.generic)):
        return None
    if isinstance(value, NewType) or getattr(value, "_is_protocol", False):
        return None
    try:
        found = inspect.signature(value)
    except (TypeError, ValueError):
        return None
    return found if is_ours(value) else None


def members(kind: type) -> Iterator[tuple[str, Any]]:
    """The public methods and properties of a class of ours, as they stand in it.

    Of arrays they are those of arrays with data. Names that only tell what is used instead, as an
    array has them, are none of these.
    """
    kind = DeviceArray if kind is phalanx.Array else kind
    for name in sorted(dir(kind)):
        held = inspect.getattr_static(kind, name)
        if not name.startswith("_") and isinstance(held, _MEMBERS) and not _is_absent(kind, name):
            yield name, held


def _is_absent(kind: type, name: str) -> bool:
    """Whether a name of arrays only tells what is used instead."""
    return kind is DeviceArray and name in ABSENT


_MEMBERS: tuple[type, ...] = (
    types.FunctionType,
    property,
    functools.cached_property,
    classmethod,
    staticmethod,
)


def function_of(held: Any) -> Callable[..., Any]:
    """The function that stands behind a member of a class."""
    if isinstance(held, property):
        return held.fget  # type: ignore[return-value]
    return getattr(held, "__func__", None) or getattr(held, "func", None) or held


def is_property(held: Any) -> bool:
    """Whether a member of a class is read, and not called."""
    return isinstance(held, property | functools.cached_property)


def is_ours(value: Any) -> bool:
    """Whether it is defined in this package."""
    return _home(value).startswith("phalanx")
