"""Functions of the library that run as one program, where they are called eagerly, too."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from phalanx.base.config import config
from phalanx.control.call import call
from phalanx.core.program import Program, plain
from phalanx.core.types import typeof
from phalanx.transforms.stage import stage


def staged(function: Callable[..., Any]) -> Callable[..., Any]:
    """``function``, traced once for each combination of types and static arguments.

    Args:
        function: of arrays, by position, and hashable static arguments, by keyword; it
            returns an array or a tuple of them. It must not use arrays that are not arguments.
    """
    programs: dict[tuple, Program] = {}
    name = function.__name__.strip("_")

    @functools.wraps(function)
    def run(*arrays: Any, **static: Any) -> Any:
        types = tuple([plain(typeof(a)) for a in arrays])
        key = (types, config.key, *static.items())
        program = programs.get(key)
        if program is None:
            program = programs[key] = _trace(function, types, static, name)
        out = call(*arrays, program=program)
        return out if len(out) > 1 else out[0]

    return run


def _trace(function: Callable, types: tuple, static: dict[str, Any], name: str) -> Program:
    def flat(*arrays: Any) -> tuple:
        out = function(*arrays, **static)
        return out if isinstance(out, tuple) else (out,)

    program, captured = stage(flat, types, name)
    if captured:
        raise TypeError(f"{name}: a staged function used arrays that are not arguments")
    return program
