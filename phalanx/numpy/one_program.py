"""Functions of several operations that run as one program, also where they are called eagerly."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

import numpy as np

from phalanx.base import dtypes, tree
from phalanx.base.config import config
from phalanx.base.recent import Recent, key_of
from phalanx.control.staged import PROGRAMS
from phalanx.core.trace import ROOT, current
from phalanx.core.types import SCALARS, ArrayType, typeof
from phalanx.run.array import DeviceArray, default_sharding, from_host, from_scalar
from phalanx.run.execute import compile_program
from phalanx.transforms.stage import stage

Function = TypeVar("Function", bound=Callable[..., Any])
_OPERAND = ("ArrayLike", "ArrayLike | None")  # the annotations of operands
_BY_POSITION = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def one_program(function: Function) -> Function:
    """``function``, compiled as a whole where it is called outside of all transformations.

    Its operands are the parameters that are annotated as ``ArrayLike``, numbers included: another
    number needs no other program. All other parameters are static. Inside a transformation the
    function itself runs, as it does for arguments that it alone can judge: what is no array, what
    cannot be hashed, and integers that a dtype may not hold.
    """
    callers: Recent[Callable[..., Any]] = Recent(PROGRAMS)
    parameters = inspect.signature(function).parameters.values()
    marks = {p.name: p.annotation in _OPERAND for p in parameters}
    in_order = [marks[p.name] for p in parameters if p.kind in _BY_POSITION]
    every = [marks[p.name] for p in parameters if p.kind is p.VAR_POSITIONAL] or [False]

    @functools.wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        if current() is not ROOT or config.disable_jit:
            return function(*args, **kwargs)
        arrays: list[DeviceArray] = []
        large: list[int] = []
        key = [config.key, len(args), *kwargs]
        operands = in_order + every * (len(args) - len(in_order))
        for x, is_operand in zip(args, operands, strict=False):
            key.append(_part(x, is_operand, arrays, large))
        for name, x in kwargs.items():
            key.append(_part(x, marks.get(name, False), arrays, large))
        if large and not _hold(arrays, large):
            return function(*args, **kwargs)
        try:
            caller = callers[tuple(key)]
        except TypeError:  # a static argument cannot be hashed
            return function(*args, **kwargs)
        if caller is None:
            if None in key:
                return function(*args, **kwargs)
            named = [marks.get(name, False) for name in kwargs]
            caller = _compile(function, args, operands, kwargs, named, arrays)
            callers[tuple(key)] = caller
        return caller(arrays)

    return run  # type: ignore[return-value]


_SMALL = range(128)  # the integers that every integer dtype holds


def _part(x: Any, is_operand: bool, arrays: list[DeviceArray], large: list[int]) -> Any:
    """What of an argument belongs to the key; those that are operands join the ``arrays``.

    None stands for one that the function must see as it is.
    """
    if not is_operand or x is None:
        return key_of(x)
    if type(x) is not DeviceArray:
        if type(x) is int and x not in _SMALL:
            large.append(x)
        x = _on_device(x)
        if x is None:
            return None
    arrays.append(x)
    return x._sig


def _on_device(x: Any) -> DeviceArray | None:
    """A number or an array of NumPy as an operand; None for anything else."""
    if isinstance(x, np.ndarray):
        return from_host(x) if x.dtype in dtypes.ALL else None
    if not isinstance(x, (*SCALARS, np.generic)):
        return None
    kind = typeof(x)
    if type(x) is int and not _holds(kind.dtype, x):
        return None
    plain = ArrayType((), kind.dtype, kind.weak)
    return from_scalar(dtypes.scalar(x, kind.dtype), default_sharding(), plain)


def _hold(arrays: Sequence[DeviceArray], large: Sequence[int]) -> bool:
    """Whether every dtype that the operands may be promoted to holds all integers ``large``."""
    every = {a.aval.dtype for a in arrays}
    return np.dtype(bool) not in every and all(
        _holds(d, x) for d in every & dtypes.INTEGERS for x in large
    )


def _holds(dtype: np.dtype, x: int) -> bool:
    info = dtypes.iinfo(dtype)
    return bool(info.min <= x <= info.max)


def _compile(
    function: Callable[..., Any],
    args: tuple[Any, ...],
    operands: Sequence[bool],
    kwargs: dict[str, Any],
    named: Sequence[bool],
    arrays: Sequence[DeviceArray],
) -> Callable[[Sequence[DeviceArray]], Any]:
    """What runs ``function`` on arrays like these, in the place of its operands."""
    trees: list[Any] = []

    def flat(*traced: Any) -> list[Any]:
        values = iter(traced)
        in_place = _replaced(args, operands, values)
        by_name = _replaced(kwargs.values(), named, values)
        out = function(*in_place, **dict(zip(kwargs, by_name, strict=True)))
        leaves, treedef = tree.flatten(out)
        trees.append(treedef)
        return leaves

    program, _ = stage(flat, [a.aval for a in arrays], function.__name__)
    return compile_program(program, [a._sig for a in arrays]).caller(trees[0])


def _replaced(given: Iterable[Any], marks: Iterable[bool], values: Iterator[Any]) -> list[Any]:
    """``given`` with the next of ``values`` in the place of each operand."""
    pairs = zip(given, marks, strict=False)
    return [next(values) if is_operand and x is not None else x for x, is_operand in pairs]
