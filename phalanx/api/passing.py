"""What is passed to compiled functions: what stands for it in keys, and its way to devices."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from phalanx.api.arguments import LeafNames, check_leaf
from phalanx.base import dtypes
from phalanx.base.source import user_location
from phalanx.core.program import Program, plain
from phalanx.core.trace import Tracer, refuse_escaped
from phalanx.core.types import SCALARS, typeof
from phalanx.run.array import DeviceArray, Signature, default_sharding, from_scalar, placing
from phalanx.run.eager import as_array
from phalanx.run.pieces import Prepared
from phalanx.spmd.sharding import Sharding
from phalanx.transforms.simplify import used

_NUMBERS = frozenset(SCALARS)


def signature(x: Any) -> Hashable:
    """What stands for the type of ``x`` in a key, and for where it lies; None if nothing does.

    Python's numbers of one type, and NumPy's arrays of one dtype and shape, have the same.
    """
    kind = type(x)
    if kind is DeviceArray:
        return x._sig
    if kind is np.ndarray:
        return (x.dtype, x.shape) if dtypes.holds_numbers(x.dtype) else None
    if kind in _NUMBERS:
        return kind
    if isinstance(x, np.generic):
        return (x.dtype, ()) if dtypes.holds_numbers(x.dtype) else None
    return None


def known(leaves: Sequence[Any], names: LeafNames, who: str) -> Sequence[Any]:
    """``leaves``, of which those that have no signature became arrays that hold data.

    Raises:
        TypeError: a leaf is no array and no number.
        EscapedTracer: a leaf belongs to a transformation that has ended.
    """
    signs = [signature(x) for x in leaves]
    if None not in signs:
        return leaves
    return [
        _converted(x, names, i, who) if s is None else x
        for i, (x, s) in enumerate(zip(leaves, signs, strict=True))
    ]


def _converted(x: Any, names: LeafNames, i: int, who: str) -> DeviceArray:
    if isinstance(x, Tracer):
        refuse_escaped(x)
    check_leaf(x, names[i], who)
    return as_array(x)


@dataclass(frozen=True, slots=True)
class Passed:
    """What of the leaves of a call a program takes.

    Attributes:
        program: on those leaves alone.
        kept: which ones they are.
        donate: which of its inputs give their memory to the results.
    """

    program: Program
    kept: Sequence[int]
    donate: tuple[int, ...]

    @classmethod
    def of(
        cls, program: Program, donated: Sequence[bool], names: LeafNames, who: str, every: bool
    ) -> Passed:
        """What ``program`` takes: of ``donated`` leaves the memory where a result fits into it.

        ``every``: also the leaves that it does not need.
        """
        kept: Sequence[int] = range(len(donated))
        if not every:
            program, kept = used(program)
        free = Counter((t.shape, t.dtype) for t in program.output_types)
        donate, spared = [], []
        for n, i in enumerate(kept):
            kind = program.inputs[n].type.shape, program.inputs[n].type.dtype
            if donated[i]:
                (donate if free[kind] > 0 else spared).append(n)
                free[kind] -= 1
        made = cls(program, kept, tuple(donate))
        made.warn_of_spared(spared, names, who)
        return made

    def warn_of_spared(self, inputs: Sequence[int], names: LeafNames, who: str) -> None:
        """Warn that the memory of those ``inputs`` of the program is not used, if there are any."""
        if not inputs:
            return
        place, types = user_location(), self.program.input_types
        listed = ", ".join(f"{names[self.kept[n]]} {types[n]}" for n in inputs)
        warnings.warn_explicit(
            f"{who}: Some donated buffers were not usable: {listed}; no result has such a shape "
            "and dtype, cut into parts of such a size, so they stay alive",
            UserWarning,
            place.file,
            place.line,
        )


def signatures(leaves: Sequence[Any], passed: Passed) -> list[Signature]:
    """Those of the arrays that a program takes; what comes from the host may go anywhere."""
    taken = [leaves[i] for i in passed.kept]
    return [
        x._sig if type(x) is DeviceArray else Signature.of(plain(typeof(x)), default_sharding())
        for x in taken
    ]


def caller(
    compiled: Prepared, leaves: Sequence[Any], passed: Passed, out_tree: Any
) -> Callable[[Sequence[Any]], Any]:
    """The function from such leaves of a call to the tree of results of ``compiled``.

    What comes from the host is put where it is taken. What is donated is not shared with others.
    """
    ways: list[tuple[int, Callable[[Any], DeviceArray] | None]] = []
    for n, (i, home) in enumerate(zip(passed.kept, compiled.in_shardings, strict=True)):
        x = leaves[i]
        way = None if type(x) is DeviceArray else _way(x, home, n in passed.donate)
        ways.append((i, way))
    put = [n for n, (_, way) in enumerate(ways) if way is not None]
    run = compiled.caller(out_tree, put)
    if len(ways) == len(leaves) and not put:
        return run
    return lambda leaves: run([leaves[i] if way is None else way(leaves[i]) for i, way in ways])


def _way(x: Any, home: Sharding, alone: bool) -> Callable[[Any], DeviceArray]:
    """What puts arrays or numbers like ``x`` into ``home``; ``alone``: each time a new array."""
    kind = plain(typeof(x))
    if isinstance(x, np.ndarray):
        return placing(kind, home)
    dtype = kind.dtype
    if alone:
        put = placing(kind, home)
        return lambda x: put(np.asarray(dtypes.scalar(x, dtype)))
    return lambda x: from_scalar(dtypes.scalar(x, dtype), home, kind)
