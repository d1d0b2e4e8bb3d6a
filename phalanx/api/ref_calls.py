"""Calls of compiled functions that touch mutable references."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from phalanx.api.aot import abstract
from phalanx.api.arguments import LeafNames
from phalanx.api.dispatch import CAPACITY
from phalanx.api.traced_function import TracedFunction
from phalanx.base.recent import Recent
from phalanx.core.refs import AbstractRef, Ref, load, refuse_aliases, store_all
from phalanx.core.trace import Tracer
from phalanx.primitives.basis import convert
from phalanx.run.calls import CachedCall, Call, signature
from phalanx.transforms.stage import loaded


def leaf_types(leaves: Sequence[Any], typed: Callable[[Any], Any]) -> tuple[Any, ...]:
    """The types of ``leaves`` for the key of a traced function, references told from arrays."""
    return tuple([AbstractRef(typed(load(x))) if type(x) is Ref else typed(x) for x in leaves])


def array_types(types: Sequence[Any]) -> list[Any]:
    """The same, as what a program takes."""
    return [t.inner_aval if type(t) is AbstractRef else t for t in types]


def ref_numbers(types: Sequence[Any]) -> tuple[int, ...]:
    """Which of the leaves, of such ``types``, are references."""
    return tuple([i for i, t in enumerate(types) if type(t) is AbstractRef])


def abstract_types(leaves: Sequence[Any], names: LeafNames, who: str) -> tuple[Any, ...]:
    """The types of ``leaves``, some of which may stand for arrays, as in ``leaf_types``."""
    kinds = [
        abstract(load(x) if type(x) is Ref else x, names, i, who) for i, x in enumerate(leaves)
    ]
    return tuple(
        [AbstractRef(k) if type(x) is Ref else k for k, x in zip(kinds, leaves, strict=True)]
    )


def with_copies(leaves: Sequence[Any], refs: Sequence[int]) -> Sequence[Any]:
    """``leaves``, with copies of what those numbered ``refs`` hold: results may be the same arrays,
    of which the user disposes."""
    return [_copied(load(x)) if i in refs else x for i, x in enumerate(leaves)] if refs else leaves


def store_copies(
    refs: Sequence[Ref], outputs: Sequence[Any], arguments: Sequence[Any]
) -> Sequence[Any]:
    """Store the last ``outputs`` in ``refs``, copies of those that are among the ``arguments``.

    Returns:
        The other outputs.
    """
    last, argument_ids = len(outputs) - len(refs), [*map(id, arguments)]
    after = [_copied(x) if id(x) in argument_ids else x for x in outputs[last:]]
    return store_all({}, refs, [*outputs[:last], *after])


def _copied(x: Any) -> Any:
    """``x`` in memory of its own; what is traced has that anyway."""
    return x if isinstance(x, Tracer) else convert(x, dtype=x.aval.dtype, weak=x.aval.weak)


class RefCall(CachedCall):
    """A compiled call whose operands are what references hold, besides arrays.

    Args:
        traced: the function.
        who: the function in messages.
        compile: from the operands and the structure of what the program gives, to the call.
    """

    __slots__ = ("_calls", "_compile", "_traced", "_who")

    def __init__(
        self, traced: TracedFunction, who: str, compile: Callable[[Sequence[Any], Any], Call]
    ) -> None:
        self._traced = traced
        self._who = who
        self._compile = compile
        self._calls: Recent[Call] = Recent(CAPACITY)

    def refs(self, leaves: Sequence[Any]) -> Sequence[Ref]:
        return [*self._traced.written, *(leaves[i] for i in self._traced.stored)]

    def run(self, leaves: Sequence[Any]) -> Any:
        """What the function returns; references are written when it has come to its end."""
        traced = self._traced
        refuse_aliases(leaves, traced.captured, self._who)
        operands = loaded([*traced.captured, *leaves])
        key = tuple(map(signature, operands))
        call = self._calls[key]
        if call is None:
            call = self._calls[key] = self._compile(operands, traced.flat_tree)
        return traced.out_tree.unflatten(traced.store(leaves, call.run(operands)))
