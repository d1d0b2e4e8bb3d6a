"""Signatures as a reader wants them: on one line, in types that are known outside."""

from __future__ import annotations

import functools
import importlib
import inspect
import re
import types
import typing
from typing import Any

WIDE = 60  # characters; a longer type goes by the name that it has
SHOWN = {"DeviceArray": "Array", "Entries": "BCOO"}  # classes behind the public ones
KNOWN = {"ArrayLike", "DTypeLike", "PrecisionLike", "Array"}  # names of types that are public


def written(home: str, found: inspect.Signature, skipped: str = "") -> str:
    """A signature that module ``home`` declares, as Python, without the parameter ``skipped``."""
    shown = [
        parameter.replace(
            annotation=_Text.of(_annotation(home, parameter.annotation)),
            default=_Text.of(_default(parameter.default)),
        )
        for parameter in found.parameters.values()
        if not parameter.name.startswith("_") and parameter.name != skipped
    ]
    result = _Text.of(_annotation(home, found.return_annotation))
    return str(found.replace(parameters=shown, return_annotation=result))


class _Text(str):
    """What a signature shows as it is."""

    __repr__ = str.__str__

    @classmethod
    def of(cls, text: str) -> Any:
        """``text``; where there is none, what a signature has for nothing."""
        return cls(text) if text else inspect.Signature.empty


def _default(value: Any) -> str:
    """A default as a user would write it; empty where there is none."""
    if value is inspect.Parameter.empty:
        return ""
    text = getattr(value, "__qualname__", "<>") if callable(value) else repr(value)
    return "..." if "<" in text else text


def _annotation(home: str, annotation: Any) -> str:
    """A type as it is written; empty where it says nothing."""
    if annotation in (inspect.Signature.empty, Any, "Any"):
        return ""
    if not isinstance(annotation, str):
        name = getattr(annotation, "__name__", str(annotation))
        annotation = getattr(annotation, "__forward_arg__", name)  # of fields of named tuples
    text = re.sub(r"[A-Za-z_]\w*", lambda name: _meant(home, name[0]), annotation)
    text = re.sub(r"\w+", lambda name: SHOWN.get(name[0], name[0]), text)
    return "" if text == "Any" else " ".join(text.split())


@functools.cache
def _meant(home: str, name: str) -> str:
    """The type behind a name that our own code has for it."""
    value = vars(importlib.import_module(home)).get(name)
    if isinstance(value, typing.TypeVar):
        value = value.__bound__
        value = getattr(value, "__forward_arg__", getattr(value, "__name__", None))
        return value or "Any"
    if value is Any and name not in KNOWN:
        return "Any"
    if name in KNOWN or not isinstance(value, types.UnionType | types.GenericAlias | _ALIASES):
        return name
    either = typing.get_args(value) if isinstance(value, _UNION) else (value,)
    text = " | ".join(one.__name__ if isinstance(one, type) else str(one) for one in either)
    text = re.sub(r"\b(?:[a-z_]\w*\.)+", "", text).replace("NoneType", "None")
    return text if len(text) <= WIDE and "~" not in text else name


_UNION = (types.UnionType, type(typing.Optional[int]))  # noqa: UP045  (not the same everywhere)
_ALIASES = type(typing.Optional[int]) | type(typing.Callable[..., Any])  # noqa: UP045
