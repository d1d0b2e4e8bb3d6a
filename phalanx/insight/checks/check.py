"""``check``: what is probably wrong with a program, found out by looking at it."""

# What a traced function holds is private to users, not to the analyses of it.
# pyright: reportPrivateUsage=false

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from phalanx.api.arguments import check_callable, wrap
from phalanx.api.jit import jit
from phalanx.api.stages import Traced
from phalanx.api.transformed import P
from phalanx.base import tree
from phalanx.base.boundary import boundary
from phalanx.base.config import config
from phalanx.base.source import Location, lines_of_users, user_location
from phalanx.insight.checks.findings import CODES, Finding, is_silenced
from phalanx.insight.checks.lanes.results import between_lanes
from phalanx.insight.checks.logarithms import careless_logarithms
from phalanx.insight.checks.loops import host_calls_in_loops, loops_written_out
from phalanx.insight.checks.memory import memory_faults
from phalanx.insight.checks.nan_derivatives import singular_derivatives
from phalanx.insight.checks.padding import wasted_lanes
from phalanx.insight.checks.promotions import accidental_promotions
from phalanx.insight.checks.reused_keys import reused_keys
from phalanx.insight.checks.scatters import repeated_indices
from phalanx.insight.checks.subject import Subject
from phalanx.transforms.reach import TRACED_ONCE

__all__ = ["ANALYSES", "CODES", "OF_VALUES", "check", "findings_in"]

Analyses = tuple[Callable[[Subject], Iterator[Finding]], ...]

OF_VALUES: Analyses = (
    between_lanes,
    reused_keys,
    repeated_indices,
    singular_derivatives,
    careless_logarithms,
)
ANALYSES: Analyses = (
    *OF_VALUES,
    memory_faults,
    accidental_promotions,
    host_calls_in_loops,
    loops_written_out,
    wasted_lanes,
)


@boundary
def check(
    fun: Callable[P, Any],
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Sequence[str] | None = None,
) -> Callable[..., list[Finding]]:
    """Find probable mistakes in a function without running it.

    The function is traced, and its program is searched for mistakes: lanes that do not agree on
    what they reduce, random keys that are used twice, derivatives that are NaN somewhere, and so
    on; the documentation lists all codes. Certain mistakes are errors of tracing, as always. A
    comment ``# phalanx: ok P103`` in a line silences findings of that code there.

    Args:
        fun: a function of trees of arrays, or what ``jit``, ``pmap`` or ``shard_map`` made of one.
        static_argnums: positions of arguments that are Python values; not for a function that
            ``jit`` or ``pmap`` returned, which knows its own.
        static_argnames: names of such arguments.

    Returns:
        A function of the arguments of ``fun``, arrays or ``ShapeDtypeStruct``, that returns a list
        of findings, which have ``code``, ``message``, ``file``, ``line``, and ``remedy``.

    Raises:
        TypeError: ``fun`` is not callable, or has static arguments of its own and gets others;
            besides, whatever tracing ``fun`` raises.

    >>> import phalanx
    >>> def step(w, x):
    ...     loss = lambda w: phalanx.lax.psum((w * x).sum(), "i")
    ...     return phalanx.lax.psum(phalanx.grad(loss)(w), "i")
    >>> step = phalanx.pmap(step, "i", in_axes=(None, 0), out_axes=None)
    >>> x = phalanx.ShapeDtypeStruct((4, 3), "float32")
    >>> [finding] = phalanx.check(step)(x.update(shape=()), x)
    >>> finding.code
    'P104'
    """
    check_callable(fun, "check")
    is_traced = getattr(fun, TRACED_ONCE, False)
    if is_traced and not (static_argnums is None and static_argnames is None):
        raise TypeError(
            "check: static arguments are those of the function that is given, so leave "
            "static_argnums and static_argnames out"
        )
    traced: Any = fun
    if not is_traced:
        traced = jit(fun, static_argnums=static_argnums, static_argnames=static_argnames)

    def find(*args: Any, **kwargs: Any) -> list[Finding]:
        with config.override(keep_lanes=True), lines_of_users():
            leaves = tree.leaves((args, kwargs))
            return findings_in(traced.trace(*args, **kwargs), user_location(), leaves=leaves)

    return wrap(find, fun)


def findings_in(
    traced: Traced, place: Location, analyses: Analyses = ANALYSES, leaves: Sequence[Any] = ()
) -> list[Finding]:
    """What is found in a traced function, which was called at ``place``, if ``leaves`` leaves of
    arguments, by file and line."""
    subject = Subject(traced._traced, place, leaves)
    found = dict.fromkeys(finding for analysis in analyses for finding in analysis(subject))
    wanted = [finding for finding in found if not is_silenced(finding)]
    return sorted(wanted, key=lambda f: (f.file, f.line, f.code))
