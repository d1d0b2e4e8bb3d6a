"""Traced values that outlive their transformation: the option ``check_tracer_leaks``."""

from __future__ import annotations

import functools
import gc
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from phalanx.base.config import config
from phalanx.base.errors import EscapedTracer
from phalanx.core.trace import Tracer, describe, trace_of

P = ParamSpec("P")
T = TypeVar("T")


def leaving_nothing(transform: Callable[P, T]) -> Callable[P, T]:
    """``transform``, which runs a function in a trace.

    If the option ``check_tracer_leaks`` says so, it is looked afterwards for values that the
    function kept, in a variable, list or attribute outside. Those that were kept before do not
    count. A program leaves nothing, so that its derivatives and lanes need no look.
    """

    @functools.wraps(transform)
    def run(*args: P.args, **kwargs: P.kwargs) -> T:
        if not config.check_tracer_leaks:
            return transform(*args, **kwargs)
        before = _live_tracers()  # held, so that nothing new has the id of one of them
        out = transform(*args, **kwargs)
        _refuse_new(before)
        return out

    return run


def _live_tracers() -> dict[int, Tracer]:
    """The values whose transformation has ended."""
    objects = gc.get_objects()
    return {id(x): x for x in objects if isinstance(x, Tracer) and not trace_of(x).alive}


def _refuse_new(before: dict[int, Tracer]) -> None:
    if _live_tracers().keys() <= before.keys():
        return
    gc.collect()  # what refers to itself in a circle is not kept by anybody
    leaked = [x for i, x in _live_tracers().items() if i not in before]
    if leaked:
        listed = "; ".join(map(describe, leaked[:3]))
        raise EscapedTracer(
            f"Leaked {listed}: {len(leaked)} traced values outlived their transformations, in a "
            "variable, list or attribute outside; return them from the function instead"
        )
