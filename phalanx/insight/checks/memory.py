"""Memory: constants that are captured, donations that are of no use, state that is not donated."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import chain

import numpy as np

from phalanx.core.program import Literal
from phalanx.core.types import Array, ArrayType
from phalanx.insight.checks.findings import Code, Finding
from phalanx.insight.checks.subject import Subject
from phalanx.insight.state import is_updated
from phalanx.transforms.storage import size_in_bytes, taken_over

__all__ = ["memory_faults"]

P109 = Code(
    "P109",
    "a large array that a function closes over",
    "jit(lambda w: loss(w, whole_dataset))",
    "Pass it as an argument: then it can be placed, sharded, donated or freed, and another "
    "array of its shape needs no other program.",
)
P110 = Code(
    "P110",
    "a donated argument whose memory no result can use",
    "jit(lambda x: x.sum(), donate_argnums=0)",
    "Donate what holds as many bytes as a result, such as parameters and optimizer state, and "
    "nothing else.",
)
P111 = Code(
    "P111",
    "large state that is returned but not donated",
    "step = jit(step)  # of params, state, batch to params, state",
    "Donate it, jit(step, donate_argnums=...): the new values reuse the memory of the old "
    "ones, which must not be used any more.",
)

LARGE = 4 << 20  # bytes


def memory_faults(subject: Subject) -> Iterator[Finding]:
    """Arrays that take memory, or hold it for longer, without need."""
    yield from _large_constants(subject)
    yield from _useless_donations(subject)
    yield from _state_to_donate(subject)


def _large_constants(subject: Subject) -> Iterator[Finding]:
    seen: set[int] = set()
    for e in chain.from_iterable(p.equations for p in subject.programs):
        for a in e.inputs:
            if type(a) is not Literal or a.type.shape == () or id(a.value) in seen:
                continue
            if isinstance(a.value, (np.ndarray, Array)) and _bytes(a.type) >= LARGE:
                seen.add(id(a.value))
                yield P109.at(
                    e.location or subject.place,
                    f"{subject.name} closes over an array {a.type} of {_shown(_bytes(a.type))}, "
                    "used here: it stays in memory with the function, on every device that runs it",
                )


def _useless_donations(subject: Subject) -> Iterator[Finding]:
    call = subject.call
    if not any(call.donated):
        return
    donated = {
        i: size_in_bytes(call.types[i]) for i, is_donated in enumerate(call.donated) if is_donated
    }
    taken = taken_over(donated, map(size_in_bytes, call.program.output_types))
    spared = [f"{call.names[i]} {call.types[i]}" for i in donated if i not in taken]
    if spared:
        yield P110.at(
            subject.place,
            f"{subject.name}: {', '.join(spared[:3])}{' and others' if len(spared) > 3 else ''} "
            f"{'is' if len(spared) == 1 else 'are'} donated, but no other result holds as "
            "many bytes: the memory is not used",
        )


def _state_to_donate(subject: Subject) -> Iterator[Finding]:
    call, first = subject.call, subject.first_input
    inputs, outputs = call.program.input_types, call.program.output_types
    results = call.results(range(len(outputs)))  # references, besides, have memory of their own
    returned = [(i, o) for i, o in subject.state if o in results]
    alike = [(i, o) for i, o in returned if inputs[i] is outputs[o] and not call.donated[i - first]]
    if sum(_bytes(inputs[i]) for i, _ in alike) < LARGE:
        return
    body = subject.lanes.body if subject.lanes else subject.program
    undonated = [i for i, o in alike if is_updated(body, i, o)]
    total = sum(_bytes(inputs[i]) for i in undonated)
    if total >= LARGE:
        names = dict.fromkeys(_argument(subject.input_name(i)) for i in undonated)
        yield P111.at(
            subject.place,
            f"{subject.name}: {', '.join(names)} ({_shown(total)}) is returned with new values "
            "and not donated: while the function runs, both are in memory",
        )


def _argument(name: str) -> str:
    """The argument of which ``name`` is a leaf.

    >>> _argument("params['layers'][0]"), _argument("x")
    ('params', 'x')
    """
    return name.partition("[")[0].partition(".")[0]


def _bytes(type: ArrayType) -> int:
    return math.prod(type.shape) * type.dtype.itemsize


def _shown(count: float) -> str:
    """Bytes as one reads them.

    >>> _shown(5 << 20)
    '5.0 MiB'
    """
    return f"{count / 2**20:.1f} MiB"
