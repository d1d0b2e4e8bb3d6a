"""``jax.interpreters.partial_eval``: programs of functions, and what of them is known."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from phalanx.api.contexts import ensure_compile_time_eval
from phalanx.compat.extend.linear_util import WrappedFun
from phalanx.compat.jaxprs import ClosedJaxpr, Jaxpr, dce_jaxpr
from phalanx.core.trace import Tracer
from phalanx.core.types import ArrayType, typeof
from phalanx.transforms.stage import StagedTracer, stage

__all__ = [
    "DynamicJaxprTracer",
    "JaxprTracer",
    "PartialVal",
    "close_jaxpr",
    "convert_constvars_jaxpr",
    "dce_jaxpr",
    "trace_to_jaxpr_dynamic",
    "trace_to_jaxpr_nounits",
]

DynamicJaxprTracer = StagedTracer
JaxprTracer = Tracer


class PartialVal(tuple[Any, ...]):
    """A value that is known, or a type: ``(None, value)`` or ``(type, None)``."""

    @classmethod
    def known(cls, value: Any) -> PartialVal:
        return cls((None, value))

    @classmethod
    def unknown(cls, aval: ArrayType) -> PartialVal:
        return cls((aval, None))

    def is_known(self) -> bool:
        return self[0] is None

    def get_known(self) -> Any:
        return self[1] if self.is_known() else None

    def get_aval(self) -> ArrayType:
        return typeof(self[1]) if self.is_known() else self[0]


def trace_to_jaxpr_dynamic(
    fun: WrappedFun, in_avals: Sequence[ArrayType], *_: Any, **__: Any
) -> tuple[Jaxpr, list[ArrayType], list[Any]]:
    """The program of ``fun`` at these types, the types of its results, and its constants."""
    program, captured = stage(fun.call_wrapped, in_avals, fun.__name__)
    closed = ClosedJaxpr.of(program, captured)
    return closed.jaxpr, closed.out_avals, list(closed.consts)


def trace_to_jaxpr_nounits(
    fun: WrappedFun, pvals: Sequence[PartialVal], instantiate: bool | Sequence[bool] = False
) -> tuple[Jaxpr, list[PartialVal], list[Any]]:
    """What ``fun`` computes of known values is computed; the rest is the program.

    Returns:
        The program of the unknown values, the results, and the constants of the program. It gives
        the results that are not known, and those for which ``instantiate`` says so.
    """
    known: dict[int, Any] = {}

    def rest(*unknown: Any) -> list[Any]:
        values = iter(unknown)
        with ensure_compile_time_eval():
            arguments = [p.get_known() if p.is_known() else next(values) for p in pvals]
            out = list(fun.call_wrapped(*arguments))
        asked = [instantiate] * len(out) if isinstance(instantiate, bool) else instantiate
        for i, (y, wanted) in enumerate(zip(out, asked, strict=True)):
            if not isinstance(y, Tracer) and not wanted:
                known[i] = y
        counts.append(len(out))
        return [y for i, y in enumerate(out) if i not in known]

    counts: list[int] = []
    types = [p.get_aval() for p in pvals if not p.is_known()]
    program, captured = stage(rest, types, fun.__name__)
    closed = ClosedJaxpr.of(program, captured)
    left = iter(closed.out_avals)
    out = [
        PartialVal.known(known[i]) if i in known else PartialVal.unknown(next(left))
        for i in range(counts[0])
    ]
    return closed.jaxpr, out, list(closed.consts)


def convert_constvars_jaxpr(jaxpr: Jaxpr) -> Jaxpr:
    """``jaxpr`` with its constants as first variables."""
    return jaxpr.replace(constvars=[], invars=[*jaxpr.constvars, *jaxpr.invars])


def close_jaxpr(jaxpr: Jaxpr) -> ClosedJaxpr:
    """``jaxpr``, which has no constants, with the values of all of them."""
    return ClosedJaxpr(jaxpr, ())
