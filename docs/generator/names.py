"""Which public name a word in code font means."""

from __future__ import annotations

import functools
import re

from docs.generator import public

ALIASES = {"jnp": "phalanx.numpy", "np": "numpy"}  # by which programs know modules
SEARCHED = ("phalanx", "phalanx.lax", "phalanx.numpy", "phalanx.sharding", "phalanx.errors")
_NAME = re.compile(r"[A-Za-z_][\w.]*(\(\))?")


@functools.cache
def named(text: str, module: str = "", listed: bool = False) -> public.Entry | None:
    """What ``text`` names, if it is public.

    Args:
        text: words in code font.
        module: the module of which the page or section speaks.
        listed: whether the section lists names of the module: then the name of a parameter of
            some function, such as ``where``, is a name too, which elsewhere means the parameter.
    """
    if not _NAME.fullmatch(text):
        return None
    name = text.removesuffix("()")
    head, dot, rest = name.partition(".")
    if dot:
        full = name if head == "phalanx" else f"{ALIASES.get(head, f'phalanx.{head}')}.{rest}"
        return public.by_name().get(full)
    if name in _parameters():
        return public.by_name().get(f"{module}.{name}") if listed else None
    places = [f"{place}.{name}" for place in (module, *SEARCHED)]
    return next((public.by_name()[full] for full in places if full in public.by_name()), None)


@functools.cache
def _parameters() -> set[str]:
    """The names of all parameters."""
    signatures = (public.signature(entry.value) for entry in public.entries())
    return {name for found in signatures if found for name in found.parameters}


@functools.cache
def errors() -> set[str]:
    """The names of our errors."""
    return {entry.short for entry in public.entries() if entry.module == "phalanx.errors"}


def defined(code: str) -> set[str]:
    """The names that the code of a page defines, and by which its text means these."""
    return set(re.findall(r"^(?:def |class )?(\w+)(?: = |\(.*\):$|:$)", code, re.MULTILINE))
