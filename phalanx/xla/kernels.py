"""What a compiled program runs, read from its text as HLO: its instructions, and what they fuse."""

from __future__ import annotations

import re

from phalanx.run.backend import Kernel
from phalanx.xla.hlo_text import Computation, HloModule, place_of
from phalanx.xla.instruction_work import INSTRUCTION, Work

_NAMED = re.compile(r"HloModule ([^\s,]+)")
_BY = re.compile(r"(?:calls|to_apply)=%([^\s,)]+)")
# layouts, and what does not say what an instruction computes
_ASIDE = re.compile(
    r"(?<=\])\{[^}]*\}|%|, (?:kind|channel_id|use_global_device_ids|calls|to_apply)=[^,\s]+"
    r"|, (?:frontend_attributes|metadata|backend_config)=.*"
)
_NOT_RUN = ("parameter", "constant", "tuple", "get-tuple-element", "bitcast")
_FREE = frozenset((*_NOT_RUN, "while", "call", "conditional"))  # what these run is listed itself


def kernels(module: HloModule) -> list[Kernel]:
    """The instructions that a program runs; those inside of a fusion are one."""
    computations, often, head = module.computations, module.runs, _NAMED.search(module.text)
    named = head[1] if head else ""
    inside = {name for c in computations.values() for line in c.lines for name in _within(line)}
    found: list[Kernel] = []
    work = Work(module)
    for name, computation in computations.items():
        if name in inside or not often[name]:
            continue
        for line in computation.lines:
            match = _running(line)
            if match is not None:
                fused = sum([_count(computations[c]) for c in _within(line)]) or 1
                where = place_of(line, module.places)
                found.append(
                    Kernel(
                        match[1], match[3], fused, often[name], where, named,
                        *work.of(name, match[1]), _shortened(line),
                    )
                )  # fmt: skip
    return found


def _running(line: str) -> re.Match[str] | None:
    """The name and the operation of an instruction that runs."""
    match = INSTRUCTION.match(line)
    return None if match is None or match[3] in _FREE else match


def _shortened(line: str) -> str:
    return _ASIDE.sub("", line).strip().removeprefix("ROOT ")


def _within(line: str) -> list[str]:
    """The computations by which a fusion, or a reduction, makes its elements."""
    return [] if " call(" in line else _BY.findall(line)


def _count(computation: Computation) -> int:
    """How many instructions of a fusion compute something."""
    return sum([_running(line) is not None for line in computation.lines])
