"""What devices exchange in a compiled program, read from its text as HLO."""

from __future__ import annotations

import math
import re

import numpy as np

from phalanx.run.backend import Exchange
from phalanx.xla.hlo_text import HloModule, place_of

Groups = tuple[tuple[int, ...], ...]

_OPERATION = re.compile(
    r" = (?P<type>.+?) (?P<operation>(?:all-reduce|all-gather|reduce-scatter|all-to-all"
    r"|ragged-all-to-all|collective-permute|collective-broadcast))(?P<start>-start)?\("
)
_ARRAY = re.compile(r"([a-z]+)(\d*)\w*\[([\d,]*)\]")
_LISTED = re.compile(r"replica_groups=\{(.*?\})?\}")
_TURNED = r"\[([\d,]+)\](?:T\(([\d,]+)\))?"  # numbers row by row, whose dimensions change places
_IOTA = re.compile(rf"replica_groups=\[([\d,]+)\]<={_TURNED}")
_OVER_AXES = re.compile(
    rf"replica_groups=mesh\[([^\]]*)\](?:, device_ids=\({_TURNED}\))? \{{([^}}]*)\}}"
)
_PROMOTED = re.compile(r"to_apply=%\S*_promoted\b")  # what has 16 bits is added in 32 on CPUs
_PAIRS = re.compile(r"source_target_pairs=\{(.*?\})?\}")


def exchanges(module: HloModule) -> list[Exchange]:
    """What devices exchange in a compiled program.

    In a loop of known length an operation counts for every iteration, in others once. Bytes are
    those that the program asks for.
    """
    partitions = int((re.search(r"num_partitions=(\d+)", module.text) or [0, 1])[1])
    found: list[Exchange] = []
    for name, computation in reversed(module.computations.items()):
        for line in computation.lines:
            match = _OPERATION.search(line)
            if match is not None:
                found.append(
                    Exchange(
                        match["operation"],
                        _groups(line, partitions),
                        _pairs(line),
                        _bytes(match) // (2 if _PROMOTED.search(line) else 1),
                        module.runs[name],
                        place_of(line, module.places),
                    )
                )
    return found


# ---- who takes part, and with how much ----------------------------------------------------------


def _groups(line: str, partitions: int) -> Groups | None:
    """The partitions that exchange with each other; None if that is written in another way."""
    if listed := _LISTED.search(line):
        return _lists(listed[1]) or (tuple(range(partitions)),)
    if iota := _IOTA.search(line):
        shape, sizes, order = iota.groups()
        return _rows(_turned(sizes, order).reshape(integers(shape)))
    if mesh := _OVER_AXES.search(line):
        return _over_axes(*mesh.groups())
    return None


def _turned(sizes: str, order: str | None) -> np.ndarray:
    shape = integers(sizes)
    ids = np.arange(math.prod(shape)).reshape(shape)
    return ids.transpose(integers(order)) if order else ids


def _over_axes(mesh: str, listed: str | None, order: str | None, over: str) -> Groups | None:
    axes = re.findall(r"'([^']*)'=(\d+)", mesh)
    names, sizes = [name for name, _ in axes], [int(n) for _, n in axes]
    chosen = re.findall(r"'([^']*)'(:)?", over)
    if any(part for _, part in chosen):
        return None
    last = [names.index(name) for name, _ in chosen]
    first = [i for i in range(len(names)) if i not in last]
    ids = _turned(listed or str(math.prod(sizes)), order).reshape(sizes).transpose(first + last)
    return _rows(ids.reshape(-1, math.prod(sizes[i] for i in last)))


def _pairs(line: str) -> Groups | None:
    pairs = _PAIRS.search(line)
    return _lists(pairs[1]) if pairs else None


def _lists(text: str | None) -> Groups:
    return tuple(integers(part) for part in re.findall(r"\{([\d,]*)\}", text or ""))


def integers(text: str | None) -> tuple[int, ...]:
    """Those that are listed."""
    return tuple(int(n) for n in (text or "").split(",") if n)


def _rows(ids: np.ndarray) -> Groups:
    return tuple(map(tuple, ids.tolist()))


def _bytes(match: re.Match[str]) -> int:
    """The size of the result on one device; what starts an operation has operands beside it."""
    arrays = [size_of(*array) for array in _ARRAY.findall(match["type"])]
    if match["start"] and match["operation"] == "collective-permute":
        return arrays[1]
    if match["start"] and match["operation"] == "all-gather":
        return sum(arrays[len(arrays) // 2 :])
    return sum(arrays)


def size_of(kind: str, bits: str, shape: str) -> int:
    """The bytes of an array."""
    width = 8 if kind == "pred" else int(bits or 0)
    return -(-math.prod(integers(shape)) * width // 8)
