"""Random keys that are used twice."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from phalanx.core.runs import Loop
from phalanx.insight.checks.findings import Code, Finding
from phalanx.insight.checks.subject import Subject
from phalanx.insight.flow import Marks
from phalanx.insight.keys import GENERATORS, KeyFlow, KeyUse

__all__ = ["P106", "reused_keys"]

P106 = Code(
    "P106",
    "a random key that is used twice",
    "random.normal(key) + random.uniform(key)",
    "Split the key, key, subkey = random.split(key), and use each of its children once; in a "
    "loop carry the key along, or use random.fold_in with the number of the iteration.",
)


def reused_keys(subject: Subject) -> Iterator[Finding]:
    """Keys with which numbers are drawn that are used for something else, too."""
    if not GENERATORS & subject.primitives:
        return
    flow = KeyFlow()
    program = subject.program
    flow.run(program, [flow.number(("input", v)) for v in program.inputs])
    for key, uses in flow.uses.items():
        yield from _again(flow, key, uses)
        yield from _in_every_iteration(flow, key, uses)


def _again(flow: KeyFlow, key: Any, uses: Sequence[KeyUse]) -> Iterator[Finding]:
    split = {u for u in uses if u.children and not flow.is_whole(key, u.children)}
    for i, use in enumerate(uses):
        others = [u for u in uses[:i] if not (u.excludes(use) or use.repeats(u))]
        if use in split:
            others = [u for u in others if u not in split]  # whose children are keys like others
        before = next(iter(others), None)
        if before is not None:
            where = "the same line" if str(before.place) == str(use.place) else before.place
            yield P106.at(
                use.place,
                f"the key is used here for the second time, after {where}: the numbers are the "
                "same, or depend on each other",
            )
            return


def _in_every_iteration(flow: KeyFlow, key: Marks, uses: Sequence[KeyUse]) -> Iterator[Finding]:
    for use in uses:
        if use.children is not None:
            continue
        for e, _ in use.path:
            runs = e.prim.frame(e.params).runs
            if isinstance(runs, Loop) and runs.length != 1 and e not in flow.sources(key):
                yield P106.at(
                    use.place,
                    "the same key is used in every iteration of a loop: each of them has the same "
                    "random numbers",
                )
                return
