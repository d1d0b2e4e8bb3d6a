"""Over which axes values differ: of loops in loops, and where lanes may miss each other."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

import phalanx
import phalanx.numpy as jnp
from phalanx import lax
from phalanx.core.program import Program
from phalanx.transforms import replication


def nested(depth: int, inside: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A function with loops, ``depth`` of them inside each other, around ``inside``."""
    if depth == 0:
        return inside
    body = nested(depth - 1, inside)

    def loop(x: Any) -> Any:
        # the first of what is carried differs after one run, the last after three
        def step(state: tuple) -> tuple:
            a, b, _, n = state
            return body(a + x), a, b, n + 1

        return lax.while_loop(lambda s: s[3] < 3, step, (0.0, 0.0, 0.0, 0))[2]

    return loop


def body_of(f: Callable[[Any], Any]) -> Program:
    """What each lane runs, as the analysis sees it."""
    mapped = phalanx.make_program(phalanx.pmap(f, axis_name="i"))(jnp.ones(3)).equations[0]
    (program,) = mapped.programs
    return program


def looked_at(depth: int, monkeypatch: pytest.MonkeyPatch) -> int:
    """How many programs are looked at, for loops that ``depth`` says."""
    count, interpret = 0, replication.interpret

    def counting(*args: Any) -> Any:
        nonlocal count
        count += 1
        return interpret(*args)

    with monkeypatch.context() as patch:
        patch.setattr(replication, "interpret", counting)
        replication.varying_outputs(body_of(nested(depth, jnp.sin)), [frozenset({"i"})])
    return count


def test_loops_in_loops_are_looked_at_a_few_times_each(monkeypatch):
    counts = [looked_at(depth, monkeypatch) for depth in (1, 2, 3, 4)]
    steps = [b - a for a, b in pairwise(counts)]
    assert steps[0] == steps[1] == steps[2] > 0, counts


def test_where_lanes_may_miss_each_other_is_found_at_any_depth_and_once():
    def inside(x: Any) -> Any:
        return lax.cond(x > 1, lambda: lax.psum(x, "i"), lambda: x)

    program = body_of(nested(3, inside))
    conditions = [e for e in program.walk() if e.prim.name == "cond"]
    assert len(conditions) == 1
    found = replication.divergences(program, [frozenset({"i"})])
    assert [(e.prim.name, over) for e, over in found] == [("cond", {"i"})]
    assert found[0][0] is conditions[0]
    assert not replication.divergences(program, [frozenset()])


def test_a_loop_about_which_lanes_differ_counts_where_it_communicates_or_where_it_could():
    def f(x: Any) -> Any:
        return lax.while_loop(lambda y: y < x, lambda y: y + 1, 0.0)

    program = body_of(f)
    assert not replication.divergences(program, [frozenset({"i"})])
    anywhere = replication.divergences(program, [frozenset({"i"})], anywhere=True)
    assert [over for _, over in anywhere] == [{"i"}]
