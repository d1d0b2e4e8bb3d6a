"""Functions of the library that run as one program, also where they are called eagerly."""

from __future__ import annotations

import functools
import inspect
import math
from bisect import bisect
from collections.abc import Callable, Hashable, Sequence
from itertools import islice, takewhile
from types import NoneType
from typing import Any, TypeVar, cast

import numpy as np

from phalanx.base import dtypes
from phalanx.base.boundary import with_boundary
from phalanx.base.config import config, settings
from phalanx.base.keys import PLAIN, key_of
from phalanx.base.recent import Recent
from phalanx.base.source import NotedWarning, noting_warnings, warn_user
from phalanx.control.call import call
from phalanx.core.program import Program
from phalanx.core.trace import ROOT, entered_trace
from phalanx.core.types import ArrayType, typeof
from phalanx.run.array import DeviceArray, Signature
from phalanx.run.calls import Call, calls, operand_signatures, signature, with_watchers
from phalanx.run.eager import as_array
from phalanx.run.execute import compile_program
from phalanx.transforms.stage import stage_tree

Kind = Callable[[Any], Hashable]  # of arguments: what of one belongs to the key
Function = TypeVar("Function", bound=Callable[..., Any])
# by function, settings, what is static, and types; each holds what was compiled for it
_programs: Recent[tuple[Program, Any, Sequence[NotedWarning]]] = Recent(4096)
_OPERAND = ("ArrayLike", "ArrayLike | None")  # the annotations of operands
_DTYPE = ("DTypeLike", "DTypeLike | None")  # those of dtypes
_OPERANDS = ("Sequence[ArrayLike]", "ArrayLike | Sequence[ArrayLike]")  # and of several of them


def one_program(function: Function) -> Function:
    """``function``, compiled as a whole where it is called outside of all transformations.

    Its operands are the parameters that are annotated as ``ArrayLike``, or as a sequence of them,
    numbers included: another number needs no other program. All other parameters are static.
    Inside a transformation the function itself runs, as it does for arguments that it alone can
    judge: what is no array, what cannot be hashed, and integers that a dtype may not hold.
    """
    parameters = _Parameters(function)
    most, with_static = parameters.operands, _with_static(function, parameters)
    # local variables are found fast, and calls are short
    root, current_settings, array = ROOT, settings, cast(Any, DeviceArray)

    def make(explain: Callable[..., None], hide: Callable[[Exception], None]) -> Any:
        @functools.wraps(function)
        def run(*args: Any, **kwargs: Any) -> Any:
            try:
                try:
                    if entered_trace() is not root:
                        return function(*args, **kwargs)
                    if kwargs or len(args) > most:
                        return with_static(args, kwargs)
                    static = (), current_settings().key, function
                    if len(args) == 1:  # as most have, and a list takes a third of a microsecond
                        x = args[0]
                        found = calls[x._sig if type(x) is array else _sign(x), *static]
                    else:
                        signs = [x._sig if type(x) is array else _sign(x) for x in args]
                        found = calls[*signs, *static]
                    return with_static(args, kwargs) if found is None else found.run(args)
                except Exception as error:
                    explain(error, function, args, kwargs)
                    raise
            except Exception as error:
                hide(error)
                raise

        return run

    return with_boundary(make)


def _with_static(function: Callable[..., Any], parameters: _Parameters) -> Callable[..., Any]:
    """The call of ``function`` with arguments, some of them static or by name."""
    cached, whole = parameters.cache, parameters.whole
    current_settings, array = settings, cast(Any, DeviceArray)  # found fast: calls are short
    static, plain = STATIC, PLAIN

    def run(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        values, names = ((*args, *kwargs.values()), (*kwargs,)) if kwargs else (args, ())
        marks = cached[len(args), names] or parameters.marks(len(args), names)
        pairs = zip(values, marks, strict=True)
        signs = [
            x._sig if type(x) is array else x if sign is static and type(x) in plain else sign(x)
            for x, sign in pairs
        ]
        key = (*signs, names, current_settings().key, function)
        try:
            found = calls[key]
        except TypeError:  # a static argument cannot be hashed
            return function(*args, **kwargs)
        if found is not None:
            return found.run(values if whole else _leaves(values, marks))
        arguments = _Arguments(values, marks, names)
        if _Unknown not in key and arguments.can_be_held:
            found = _compiled(function, arguments, key)
        if found is None:
            return function(*args, **kwargs)
        calls[key] = found
        return found.run(arguments.leaves)

    return run


def _kind(annotation: Any) -> Kind:
    if annotation in _OPERANDS:
        return OPERANDS
    if annotation in _DTYPE:
        return DTYPE
    return OPERAND if annotation in _OPERAND else STATIC


class _Parameters:
    """What the parameters of a function are.

    Attributes:
        operands: so many arguments by position are operands, of one array each.
        whole: whether no argument is a sequence of operands.
        cache: the results of ``marks``.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        plain = inspect.unwrap(function)  # an inspect.signature of it takes ten times as long
        code, annotations = plain.__code__, plain.__annotations__
        by_position, named = code.co_argcount, code.co_argcount + code.co_kwonlyargcount
        kinds = [(name, _kind(annotations.get(name))) for name in code.co_varnames[: named + 1]]
        self._named = dict(kinds[:named])
        self._in_order = [kind for _, kind in kinds[:by_position]]
        self._rest: list[Kind] = [kinds[named][1]] if code.co_flags & inspect.CO_VARARGS else []
        self.cache: Recent[tuple[Kind, ...]] = Recent(64)
        marks = self._in_order + self._rest
        first = len([*takewhile(lambda mark: mark is OPERAND, marks)])
        self.operands = math.inf if self._rest and first == len(marks) else first
        self.whole = OPERANDS not in (*self._named.values(), *self._rest)

    def marks(self, count: int, names: tuple[str, ...]) -> tuple[Kind, ...]:
        """Those of ``count`` arguments by position, and of others by ``names``.

        Of what the function does not take, anything: it refuses it.
        """
        by_position = self._in_order + (self._rest or [STATIC]) * count
        named = [self._named.get(name, STATIC) for name in names]
        kinds = self.cache[count, names] = (*by_position[:count], *named)
        return kinds


def _leaves(arguments: Sequence[Any], marks: Sequence[Kind]) -> list[Any]:
    """Arguments, with what is in a sequence of operands in its place."""
    leaves: list[Any] = []
    for x, mark in zip(arguments, marks, strict=True):
        leaves += x if _is_sequence(x, mark) else (x,)
    return leaves


def _is_sequence(x: Any, mark: Kind) -> bool:
    return mark is OPERANDS and type(x) in (list, tuple)


class _Arguments:
    """The arguments of a call that is new, the last of them by ``names``.

    Attributes:
        leaves: they, with what is in a sequence of operands in its place.
        kept: which leaves are operands.
        can_be_held: whether their signs tell what they are: not where an array is static.
    """

    __slots__ = ("can_be_held", "leaves", "names", "positions", "sequences")

    def __init__(
        self, arguments: Sequence[Any], marks: Sequence[Kind], names: tuple[str, ...]
    ) -> None:
        self.names = names
        self.leaves = _leaves(arguments, marks)
        self.sequences: list[tuple[type[Any], int] | None] = []  # of each argument, if it is one
        self.positions: list[int] = []
        self.can_be_held = True
        last = 0
        for x, mark in zip(arguments, marks, strict=True):
            is_sequence = _is_sequence(x, mark)
            self.sequences.append((cast(Any, type(x)), len(x)) if is_sequence else None)
            first, last = last, last + (len(x) if is_sequence else 1)
            if mark in (OPERAND, OPERANDS):
                self.positions += [i for i in range(first, last) if self.leaves[i] is not None]
            elif type(x) is DeviceArray:
                self.can_be_held = False
            elif mark is DTYPE and x is not None:  # of one that is not to be had, its sign told
                self.leaves[first] = dtypes.canonical(x)

    def applied(self, function: Callable[..., Any], operands: Sequence[Any]) -> Any:
        """``function`` of these arguments, with others in the place of the operands."""
        leaves = list(self.leaves)
        for i, x in zip(self.positions, operands, strict=True):
            leaves[i] = x
        rest, args = iter(leaves), list[Any]()
        for sequence in self.sequences:
            if sequence is None:
                args.append(next(rest))
            else:
                kind, length = sequence
                args.append(kind(islice(rest, length)))
        count = len(args) - len(self.names)
        return function(*args[:count], **dict(zip(self.names, args[count:], strict=True)))


class _Unknown:
    """In place of the signature of an argument that the function must see as it is."""


# Integers between two of them are held by the same integer dtypes.
_RANGES = [dtypes.iinfo(d) for d in dtypes.INTEGERS]
_BOUNDS = sorted({bound for r in _RANGES for bound in (r.min, r.max + 1)})


def _sign(x: Any) -> Hashable:
    """What of an operand belongs to the key."""
    if type(x) is int:
        return int, bisect(_BOUNDS, x)
    if x is None:
        return None
    return signature(x) or _Unknown


def _signs(x: Any) -> Hashable:
    """What of several operands belongs to the key."""
    if type(x) not in (list, tuple):
        return _sign(x)
    signs = tuple([cast(Any, y)._sig if type(y) is DeviceArray else _sign(y) for y in x])
    return _Unknown if _Unknown in signs else (cast(Any, type(x)), signs)


def _dtype(x: Any) -> Hashable:
    """The dtype that ``x`` names; warns at each call if arrays cannot have it."""
    return None if x is None else dtypes.requested(x)


STATIC, OPERAND, OPERANDS, DTYPE = key_of, _sign, _signs, _dtype  # what arguments are


def _compiled(
    function: Callable[..., Any], arguments: _Arguments, key: Sequence[Hashable]
) -> Call | None:
    """The call of ``function`` with such arguments; None where it must see one as it is."""
    operands = [arguments.leaves[i] for i in arguments.positions]
    if config.disable_jit or not _integers_fit(operands):
        return None
    of_types = tuple(map(_of_type, key))
    traced = _programs[of_types]  # also where operands lie otherwise
    if traced is None:
        traced = _programs[of_types] = _traced(function, arguments)
    program, out_tree, noted = traced
    prepared = compile_program(program, operand_signatures(operands))
    return _with_warnings(
        with_watchers(Call(prepared, arguments.leaves, out_tree, arguments.positions), program),
        noted,
    )


def _with_warnings(call: Call, noted: Sequence[NotedWarning]) -> Call:
    """``call``, which gives each time the warnings ``noted`` when its function was traced."""
    if not noted:
        return call
    run = call.run

    def warning(leaves: Sequence[Any]) -> Any:
        for message, category in noted:
            warn_user(message, category)
        return run(leaves)

    call.run = warning
    return call


def _of_type(part: Any) -> Hashable:
    """A part of a key that says of arrays their types alone."""
    if type(part) is tuple:
        return tuple(map(_of_type, cast(Any, part)))
    return part.type if isinstance(part, Signature) else part


def _traced(
    function: Callable[..., Any], arguments: _Arguments
) -> tuple[Program, Any, Sequence[NotedWarning]]:
    """The program of ``function``, the structure of what it returns, and of what it warns."""
    types = [typeof(arguments.leaves[i]) for i in arguments.positions]
    with noting_warnings() as noted:
        program, _, out_tree = stage_tree(
            lambda *operands: arguments.applied(function, operands), types, function.__name__
        )
    return program, out_tree, noted


def _integers_fit(operands: Sequence[Any]) -> bool:
    """Whether every dtype to which the ``operands`` may be promoted holds all integers in them."""
    large = [x for x in operands if type(x) is int and not 0 <= x < 128]  # the others fit anywhere
    dtypes_of_operands: set[np.dtype[Any]] = {typeof(x).dtype for x in operands} if large else set()
    return np.dtype(bool) not in dtypes_of_operands and all(
        dtypes.iinfo(d).min <= x <= dtypes.iinfo(d).max
        for d in dtypes_of_operands & dtypes.INTEGERS
        for x in large
    )


# ---- with a program that transformations see --------------------------------------------------


def staged(function: Function) -> Function:
    """``function``, traced once for each combination of types and static arguments.

    Args:
        function: of arrays, and hashable static arguments that are given by keyword alone; it
            returns an array or a tuple of them. An array that is None stays None. It must
            not use arrays that are not arguments.
    """
    name = function.__name__.strip("_")
    code = inspect.unwrap(function).__code__
    names = code.co_varnames[: code.co_argcount]

    @functools.wraps(function)
    def run(*arrays: Any, **static: Any) -> Any:
        if len(arrays) < len(names):  # the others are given by keyword
            arrays += tuple([static.pop(n) for n in names[len(arrays) :] if n in static])
        if entered_trace() is ROOT:
            return at_once(arrays, static)
        program, _ = program_of(arrays, static)
        out = call(*[a for a in arrays if a is not None], program=program)
        return out if len(out) > 1 else out[0]

    def at_once(arrays: Sequence[Any], static: dict[str, Any]) -> Any:
        held = DeviceArray, NoneType
        leaves: list[Any] = [a if type(a) in held else as_array(a) for a in arrays]
        signs = [None if a is None else a._sig for a in leaves]
        key = (*signs, *static, *map(key_of, static.values()), settings().key, function)
        found = calls[key]
        if found is None:
            program, out_tree = program_of(arrays, static)
            indices = [i for i, a in enumerate(leaves) if a is not None]
            prepared = compile_program(program, [leaves[i]._sig for i in indices])
            found = calls[key] = with_watchers(Call(prepared, leaves, out_tree, indices), program)
        return found.run(leaves)

    def program_of(arrays: Sequence[Any], static: dict[str, Any]) -> tuple[Program, Any]:
        types = tuple([None if a is None else typeof(a) for a in arrays])
        key = (*types, *static, *map(key_of, static.values()), settings().key, function)
        traced = _programs[key]
        if traced is None:
            traced = _programs[key] = *_trace(function, types, static, name), ()
        return traced[:2]

    return cast(Function, run)


def _trace(
    function: Callable[..., Any],
    types: Sequence[ArrayType | None],
    static: dict[str, Any],
    name: str,
) -> tuple[Program, Any]:
    """The program of ``function``, and the structure of what it returns."""

    def with_absent(*operands: Any) -> Any:
        arrays = iter(operands)
        return function(*[None if t is None else next(arrays) for t in types], **static)

    present = [t for t in types if t is not None]
    program, captured, out_tree = stage_tree(with_absent, present, name)
    if captured:
        raise TypeError(f"{name}: a staged function used arrays that are not arguments")
    return program, out_tree
