"""Calls of compiled functions that touch mutable references."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from phalanx.api.dispatch import KEPT, TracedFunction
from phalanx.base.recent import Recent
from phalanx.core.refs import AbstractRef, Ref, refuse_aliases
from phalanx.core.trace import refuse_escaped
from phalanx.run.calls import Call, signature
from phalanx.transforms.stage import loaded


def leaf_types(leaves: Sequence[Any], typed: Callable[[Any], Any]) -> tuple[Any, ...]:
    """The types of ``leaves`` for the key of a traced function, references told from arrays."""
    return tuple([x.aval if type(x) is Ref else typed(x) for x in leaves])


def array_types(types: Sequence[Any]) -> list[Any]:
    """The same, as what a program takes."""
    return [t.inner_aval if type(t) is AbstractRef else t for t in types]


class RefCall:
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
        for x in traced.captured:
            if type(x) is not Ref:
                refuse_escaped(x)
        self._traced = traced
        self._who = who
        self._compile = compile
        self._calls: Recent[Call] = Recent(KEPT)

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
