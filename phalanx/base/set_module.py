"""By what place functions and classes of ours are known: the public one, where users find them."""

from __future__ import annotations

import inspect
from types import FunctionType
from typing import Any, ForwardRef

from msgspec import StructMeta

MODULES: dict[int, str] = {}  # by id, of what is known by a public place: what module defines it


def set_module(place: str, name: str, value: Any) -> None:
    """Let a function or class of ours be known by the public ``place`` where users find it.

    That is what ``repr``, pickles and tracebacks name then, and not the module that it is in. A
    package goes before modules in it; else the place that comes first stays. Records are left out:
    their signatures are read from annotations, with the names of their module.
    """
    if not isinstance(value, (FunctionType, type)) or not value.__module__.startswith("phalanx."):
        return
    if isinstance(value, StructMeta) or value.__name__ != name.rpartition(".")[2]:
        return  # or a second name
    placed = id(value) in MODULES or value.__module__ == "phalanx.errors"  # as all errors are
    if placed and not value.__module__.startswith(f"{place}."):
        return
    module = MODULES.setdefault(id(value), value.__module__)
    if isinstance(value, FunctionType):
        value.__qualname__ = name
        within = inspect.unwrap(value)  # which others ask for the place in its stead
        if within.__name__ == value.__name__:
            within.__module__, within.__qualname__ = place, name
    elif value.__module__ != place and "__firstlineno__" in vars(value):
        del value.__firstlineno__  # a line of another file
    if isinstance(value, type) and "__annotations__" in vars(value):
        _name_module(value.__annotations__, module)
    value.__module__ = place


def _name_module(annotations: dict[str, Any], module: str) -> None:
    """Let strings among ``annotations`` of a class be read where the class was written."""
    for name, annotation in annotations.items():
        if isinstance(annotation, ForwardRef):  # of a named tuple
            annotation = annotation.__forward_arg__
        if isinstance(annotation, str):
            annotations[name] = ForwardRef(annotation, module=module, is_class=True)
