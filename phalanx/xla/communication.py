"""What devices exchange in a compiled program, read from its text as HLO."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from phalanx.run.backend import Exchange
from phalanx.xla.hlo_text import HloModule, place_of

Groups = tuple[tuple[int, ...], ...]

_OPERATION = re.compile(
    r" = (?P<type>.+?) (?P<operation>(?:all-reduce|all-gather|reduce-scatter|all-to-all"
    r"|ragged-all-to-all|collective-permute|collective-broadcast))(?P<start>-start)?\("
)
_ACROSS = re.compile(  # between slices, each of which has a module of its own
    r" = (?P<type>.+?) recv\(.*_xla_megascale_target=(?P<target>\"[^\"]*\"|\{\{.*?\}\})"
    r".*_xla_megascale_transfer_type=\"(?P<operation>\w+)\""
)
_IN_EACH = re.compile(r"\"\{([\d,]+)\}x\{(\d+):(\d+)\}\"")  # slices, and chips of each
_SLICE = 100_000  # chips of slice n, from 1 on, have the numbers from n times this on
_ARRAY = re.compile(r"([a-z]+)(\d*)\w*\[([\d,]*)\]")
_LISTED = re.compile(r"replica_groups=\{(.*?\})?\}")
_TURNED = r"\[([\d,]+)\](?:T\(([\d,]+)\))?"  # numbers row by row, whose dimensions change places
_IOTA = re.compile(rf"replica_groups=\[([\d,]+)\]<={_TURNED}")
_OVER_AXES = re.compile(
    rf"replica_groups=mesh\[([^\]]*)\](?:, device_ids=\({_TURNED}\))? \{{([^}}]*)\}}"
)
_PROMOTED = re.compile(r"to_apply=%\S*_promoted\b")  # what has 16 bits is added in 32 on CPUs
_PAIRS = re.compile(r"source_target_pairs=\{(.*?\})?\}")


def exchanges(module: HloModule, devices: Sequence[Any]) -> list[Exchange]:
    """What ``devices`` exchange in a compiled program.

    In a loop of known length an operation counts for every iteration, in others once. Bytes are
    those that the program asks for. Of several slices the module is that of one of them: its
    partitions are the devices of each, and what it exchanges with others has the devices' numbers.
    """
    partitions = int((re.search(r"num_partitions=(\d+)", module.text) or [0, 1])[1])
    slices = _slices(devices) if partitions < len(devices) else [range(partitions)]
    found: list[Exchange] = []
    for name, computation in reversed(module.computations.items()):
        for line in computation.lines:
            if match := _OPERATION.search(line):
                operation, size = match["operation"], _bytes(match)
                size //= 2 if _PROMOTED.search(line) else 1
                groups, pairs = _groups(line, partitions), _pairs(line)
                groups, pairs = _in_each(groups, slices), _in_each(pairs, slices)
            elif match := _ACROSS.search(line):
                operation, groups, pairs = _across(match, devices)
                *arrays, _, _ = _ARRAY.findall(match["type"])
                size = sum([size_of(*array) for array in arrays])
            else:
                continue
            place = place_of(line, module.places)
            found.append(Exchange(operation, groups, pairs, size, module.runs[name], place))
    return [e for e in found if e.pairs is None or any(a != b for a, b in e.pairs)]


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


def _slices(devices: Sequence[Any]) -> list[Sequence[int]]:
    """The positions of the devices of each slice."""
    of = [getattr(device, "slice_index", None) for device in devices]
    return [[i for i, s in enumerate(of) if s == one] for one in dict.fromkeys(of)]


def _in_each(groups: Groups | None, slices: Sequence[Sequence[int]]) -> Groups | None:
    """The positions of the devices that are these partitions of a slice, of every slice."""
    if groups is None:
        return None
    return tuple([tuple([part[i] for i in group]) for part in slices for group in groups])


def _across(
    match: re.Match[str], devices: Sequence[Any]
) -> tuple[str, Groups | None, Groups | None]:
    """What slices do with each other; the positions of the devices that do, in groups or pairs."""
    position = {device.id: i for i, device in enumerate(devices)}
    if each := _IN_EACH.fullmatch(match["target"]):
        first, last = int(each[2]), int(each[3])
        firsts = [_SLICE * n for n in integers(each[1])]
        numbers = [[n + chip for n in firsts] for chip in range(first, last + 1)]
    else:
        listed = re.findall(r"\{([\d,>-]+)\}", match["target"])
        numbers = [integers(part.replace("->", ",")) for part in listed]
    complete = position.keys() >= {n for group in numbers for n in group}
    who = tuple([tuple([position[n] for n in g]) for g in numbers]) if complete else None
    if match["operation"] == "ONE_TO_ONE":
        return "collective-permute", None, who
    return match["operation"].lower().replace("_", "-"), who, None


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
