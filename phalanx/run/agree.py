"""Processes agree about a program before they compile it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from phalanx.base.config import config
from phalanx.base.errors import ProgramMismatch
from phalanx.base.extended import is_key
from phalanx.base.on_demand import OnDemand
from phalanx.core.program import Program
from phalanx.processes.forms import first_of
from phalanx.processes.joined import group_over
from phalanx.run.array import DeviceArray, words_of
from phalanx.run.backend import Module
from phalanx.run.runtime import backend

hashlib = OnDemand("hashlib", "slow, and only several processes agree")


def agree(
    program: Program,
    module: Module,
    devices: Sequence[Any],
    constants: Sequence[DeviceArray],
    options: dict[str, Any],
) -> None:
    """Go on when all processes of ``devices`` are about to compile the same for ``program``.

    That is the same ``module`` with the same captured ``constants``, for the same devices in the
    same order, by the same ``options`` of the compiler.

    Raises:
        ProgramMismatch: one of them has another; it tells the first line or thing that differs.
        PeerLost: one of them is gone.
    """
    group = group_over(devices, program.name)
    if group is None:
        return
    what = f"compiling {program.name}"
    captured = [f"captured constant {i}, {_content(c)}" for i, c in enumerate(constants)]
    options = {"disable_most_optimizations": config.disable_most_optimizations} | options
    others = {
        "devices": [f"the devices {', '.join(str(d.id) for d in devices)}"],
        "options": [f"the compiler's options {sorted(options.items())}"],
        "constants": captured,
    }
    digests = {name: _digest(repr(lines).encode()) for name, lines in others.items()}
    differing, _ = group.compare(what, {"equations": _digest(module.as_text().encode()), **digests})
    if not differing:
        return
    name = next(name for name in ("equations", *others) if name in differing)
    firsts = {first_of(processes): processes for processes, _ in differing[name]}
    lines = others[name] if name in others else [*program.lines(), *captured]
    mine = lines if group.member.process in firsts else None
    by_process = dict(
        zip(sorted(group.processes), group.gather(f"{what}, which differs", mine), strict=True)
    )
    have = {processes: by_process[first] for first, processes in firsts.items()}
    raise ProgramMismatch.of(_first_difference(have)).at(what)


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _content(constant: DeviceArray) -> str:
    """The type of a constant, and what stands for its value if all of that is here."""
    words = words_of(constant) if is_key(constant.dtype) else constant
    if not words.is_fully_addressable:
        return str(constant.aval)
    value = np.asarray(words)
    if value.size <= _SHOWN:
        return f"{constant.aval} of {value.tolist()}"
    return f"{constant.aval} of content {_digest(value.tobytes())[:16]}"


_SHOWN = 4  # numbers


def _first_difference(have: Mapping[str, Sequence[str]]) -> str:
    """The first line that is not the same in all of the programs that some processes ``have``."""
    for i in range(max(map(len, have.values()))):
        lines = {ps: lines[i] if i < len(lines) else "nothing more" for ps, lines in have.items()}
        if len({*lines.values()}) > 1:
            return "; ".join(
                f"processes {ps} have: {line}" if "," in ps else f"process {ps} has: {line}"
                for ps, line in lines.items()
            )
    return "their equations are alike, and how arrays lie or what is donated differs"


def least_free(devices: Sequence[Any], who: str) -> float:
    """How many bytes are free on each of ``devices``, in whichever process there are fewest."""
    group = group_over(devices, who)
    if group is None:
        return backend().free_memory(devices)
    own = set(backend().local_devices(devices[0].platform))
    free = backend().free_memory([d for d in devices if d in own])
    return min(group.gather("how much memory is free", free))
