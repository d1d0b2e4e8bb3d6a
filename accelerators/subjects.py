"""What is compiled: every operation, every function of the library, programs over many devices."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import phalanx
import phalanx.numpy as jnp
from accelerators.programs import programs
from phalanx import primitives as ops
from phalanx.api.stages import Traced
from phalanx.core.primitive import REGISTRY
from phalanx.errors import MissingRule
from phalanx.laws.primitives import Case
from tests.laws.arguments import calls

DEVICES = 8  # unless others are asked for


@dataclass(frozen=True)
class Subject:
    """Something that compiles.

    Attributes:
        kind: "operation", "function" or "program".
        name: which one.
        make: gives what ``jit`` or ``pmap`` gave, and operands.
    """

    kind: str
    name: str
    make: Callable[[], tuple[Any, list[Any]]]

    def trace(self) -> Traced | None:
        """Its program for the operands; None if it has none.

        A function of strings or files has none, nor one that needs the values of its operands; an
        operation may have no derivative. Other tests tell that from a fault.
        """
        f, operands = self.make()
        expected = {"operation": MissingRule, "function": (TypeError, ValueError, IndexError)}
        try:
            return f.trace(*operands)
        except expected.get(self.kind, ()):
            return None


def subjects(devices: int = DEVICES) -> Iterator[Subject]:
    """All of them; programs are over so many ``devices``."""
    for module in pkgutil.walk_packages(ops.__path__, "phalanx.primitives."):
        importlib.import_module(module.name)
    for prim in REGISTRY.values():
        for i, example in enumerate(prim.examples):
            case = Case(prim, example)
            yield Subject("operation", f"{prim.name} {i}", lambda case=case: _compiled(case))
            if i == 0:
                name = f"{prim.name}, derivative"
                yield Subject("operation", name, lambda case=case: _derivative(case))
    for call in calls():
        if call.args is not None and str(call) not in _NO_PROGRAM:
            yield Subject("function", str(call), lambda call=call: _compiled(call))
    for name, make in programs(devices).items():
        yield Subject("program", name, make)


def _compiled(case: Any) -> tuple[Any, list[Any]]:
    return phalanx.jit(case), case.operands()


def _derivative(case: Case) -> tuple[Any, list[Any]]:
    """Cotangents of the operands that have some."""
    operands = case.operands()
    inexact = [i for i, x in enumerate(operands) if jnp.issubdtype(x.dtype, jnp.inexact)]

    def of_inexact(every: list[Any], given: Sequence[Any]) -> list[Any]:
        for i, x in zip(inexact, given, strict=True):
            every[i] = x
        results = phalanx.tree.leaves(case(*every))
        return [r for r in results if jnp.issubdtype(r.dtype, jnp.inexact)]

    def pulled(*operands: Any) -> Any:
        primals = [operands[i] for i in inexact]
        results, pull = phalanx.vjp(lambda *xs: of_inexact([*operands], xs), *primals)
        return pull([jnp.ones_like(r) for r in results])

    return phalanx.jit(pulled), operands


_NO_PROGRAM = ("experimental.checkify.check", "experimental.checkify.check_error")
