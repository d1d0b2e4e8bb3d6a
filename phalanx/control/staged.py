"""Functions of the library that run as one program, where they are called eagerly, too."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from types import NoneType
from typing import Any

from phalanx.base import tree
from phalanx.base.config import config
from phalanx.base.recent import Recent
from phalanx.control.call import call
from phalanx.core.program import Program, plain
from phalanx.core.trace import ROOT, current
from phalanx.core.types import Array, ArrayType, typeof
from phalanx.run.array import DeviceArray
from phalanx.run.eager import as_array
from phalanx.run.execute import compile_program
from phalanx.transforms.stage import stage

PROGRAMS = 512  # of each function; each holds what was compiled for it


def staged(function: Callable[..., Any]) -> Callable[..., Any]:
    """``function``, traced once for each combination of types and static arguments.

    Args:
        function: of arrays, and hashable static arguments that are given by keyword alone; it
            returns an array or a tuple of them. An array that is None stays None. It must
            not use arrays that are not arguments.
    """
    programs: Recent[Program] = Recent(PROGRAMS)
    callers: Recent[Callable[..., Any]] = Recent(PROGRAMS)
    name = function.__name__.strip("_")
    parameters = inspect.signature(function).parameters.values()
    names = [p.name for p in parameters if p.kind is not p.KEYWORD_ONLY]

    @functools.wraps(function)
    def run(*arrays: Any, **static: Any) -> Any:
        if len(arrays) < len(names):  # the others are given by keyword
            arrays += tuple([static.pop(n) for n in names[len(arrays) :] if n in static])
        if current() is ROOT:
            return at_once(arrays, static)
        out = call(*[a for a in arrays if a is not None], program=program_of(arrays, static))
        return out if len(out) > 1 else out[0]

    def at_once(arrays: Sequence[Any], static: dict[str, Any]) -> Any:
        held = DeviceArray, NoneType
        given: list[Any] = [a if type(a) in held else as_array(a) for a in arrays]
        key = (config.key, *[None if a is None else a._sig for a in given], *static.items())
        caller = callers[key]
        operands = [a for a in given if a is not None]
        if caller is None:
            program = program_of(arrays, static)
            count = len(program.outputs)
            runnable = compile_program(program, [a._sig for a in operands])
            results = tree.structure(0 if count == 1 else (0,) * count)
            caller = callers[key] = runnable.caller(results)
        return caller(operands)

    def program_of(arrays: Sequence[Any], static: dict[str, Any]) -> Program:
        types = tuple([None if a is None else plain(typeof(a)) for a in arrays])
        key = (types, config.key, *static.items())
        program = programs[key]
        if program is None:
            program = programs[key] = _trace(function, types, static, name)
        return program

    return run


def _trace(
    function: Callable[..., Any],
    types: Sequence[ArrayType | None],
    static: dict[str, Any],
    name: str,
) -> Program:
    def flat(*given: Any) -> tuple[Any, ...]:
        arrays = iter(given)
        out = function(*[None if t is None else next(arrays) for t in types], **static)
        return (out,) if isinstance(out, Array) else out

    program, captured = stage(flat, [t for t in types if t is not None], name)
    if captured:
        raise TypeError(f"{name}: a staged function used arrays that are not arguments")
    return program
