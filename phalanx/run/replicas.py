"""Replicas: values that several processes have are compared before they compute with them.

What is not mapped, and what each process puts on devices of all, must be the same in all of them,
and no launch would show that it is not: each computes with its own. So digests are compared where
processes meet before the first launch of a program, and, by the option ``debug_replicated``, again
before some of those that follow.
"""

# What an array holds is private to users, not to what looks at it.
# pyright: reportPrivateUsage=false

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import Struct

from phalanx.base import dtypes
from phalanx.base.config import config
from phalanx.base.errors import ProgramMismatch
from phalanx.base.numpy_kinds import is_ndarray
from phalanx.base.on_demand import OnDemand
from phalanx.base.source import user_location, warn_user
from phalanx.core.blocks import Blocks
from phalanx.core.types import typeof
from phalanx.run.array import DeviceArray
from phalanx.run.guards import unwatched
from phalanx.run.runtime import backend
from phalanx.spmd.named import unreduced_along

if TYPE_CHECKING:
    from phalanx.processes.group import Differing, Group
    from phalanx.run.backend import Executable

hashlib = OnDemand("hashlib", "slow, and only several processes compare")
_SAMPLE = 128  # elements
_COMPARED_ROWS = 16  # processes that tell all what rows they have


class Replica(Struct, frozen=True):
    """A value, or a part of one, that other processes have, too.

    Attributes:
        number: which argument it is, the same in all processes, as its name may not be.
        name: what messages call the argument.
        part: which part of it, in words that are the same in all processes; "" for all.
        elements: its elements on the host, fetched when they are asked for.
        start: where in the value it begins.
        step: how far apart the elements are that are looked at.
        rank: how many dimensions the value has, which for keys are fewer than those of elements.
    """

    number: int
    name: str
    part: str
    elements: Callable[[], np.ndarray]
    start: tuple[int, ...] = ()
    step: int = 1
    rank: int = 0

    @property
    def key(self) -> str:
        return f"{self.number}/{self.part}"

    def element(self, number: int) -> list[str]:
        """Where the element of that ``number`` is in the value, what it is, and its bits."""
        value = self.elements()
        found = np.ascontiguousarray(value).reshape(-1)[number : number + 1]
        return [self._place(value.shape, number), str(found[0]), found.tobytes().hex()]

    def _place(self, shape: tuple[int, ...], number: int) -> str:
        if self.step > 1 or not self.rank:
            return self.name
        index = map(int, np.unravel_index(number, shape)[: self.rank])
        start = self.start or (0,) * self.rank
        return f"{self.name}{[i + first for i, first in zip(index, start, strict=True)]}"


class MappedRows(Struct, frozen=True):
    """What one process passes to be mapped.

    Attributes:
        name: what messages call the argument.
        values: all that is passed.
        dim: the dimension of rows.
    """

    name: str
    values: Any
    dim: int

    @property
    def differ(self) -> bool:
        """Whether they would be other ones in other processes, as far as one can see.

        Copies of one row, such as weights for each device, are the same everywhere on purpose.
        """
        x, dim = self.values, self.dim
        if not is_ndarray(x) or x.size < 2:
            return False
        first = x.take([0], dim) if x.shape[dim] > 1 else x.reshape(-1)[0]
        return bool(np.any(x != first))


class Comparison:
    """What processes compare before launches: the first one, and later if ``debug_replicated``.

    Args:
        executable: what is launched, over several processes.
        names: what messages call its inputs.
        rows: the inputs of which each process has rows of its own, and in which dimension.
        unused: the inputs that it does not need.
        captured: the arrays over processes that it captured, by what messages call them.
    """

    def __init__(
        self,
        executable: Executable,
        names: Sequence[str],
        rows: Mapping[int, int],
        unused: frozenset[int],
        captured: Mapping[str, DeviceArray],
    ) -> None:
        self._executable, self._names, self._rows = executable, names, rows
        self._unused, self._captured = unused, captured
        self._passed = False

    def __call__(self, operands: Sequence[Any]) -> None:
        """Before a launch on ``operands``, as the user passed them.

        Raises:
            ProgramMismatch: one of them must be the same in all processes, and is not.
            PeerLost: a process is gone.
        """
        if self._passed and not config.debug_replicated:
            return
        with unwatched():
            self._executable.meet(partial(self._compare, operands))
        self._passed = True

    def _compare(self, operands: Sequence[Any], group: Group, topic: str) -> None:
        named: list[tuple[str, Any]] = [
            *zip(self._names, operands, strict=True),
            *self._captured.items(),
        ]
        used = [(i, name, x) for i, (name, x) in enumerate(named) if i not in self._unused]
        mine = [r for each in used if each[0] not in self._rows for r in _replicas(*each)]
        mapped = [MappedRows(name, x, self._rows[i]) for i, name, x in used if i in self._rows]
        mapped = [rows for rows in mapped if rows.differ]
        digests = {r.key: [digest(x := r.elements()), x.size] for r in mine}
        rows = [f"{m.values.shape}: {digest(m.values)}" for m in mapped]
        order = sorted(group.processes)
        compared = order[:: Blocks(len(order), _COMPARED_ROWS).length]
        ours = _joined(rows) if group.member.process in compared else None
        differing, of_order = group.compare(topic, digests, ours)
        if differing:
            self._find(mine, differing, group, topic)
        same = {e for p, e in zip(order, of_order, strict=True) if p in compared and e is not None}
        if rows and len(same) == 1 and _joined(rows) in same:
            _warn_of_same_rows(topic, mapped, len(group.processes))

    def _find(
        self, mine: Sequence[Replica], differing: dict[str, Differing], group: Group, topic: str
    ) -> None:
        """Raise ProgramMismatch about the first replica that differs between those that have it.

        One process may have such as another has not: parts of arrays.
        """
        key = min(differing, key=lambda key: int(key.partition("/")[0]))
        (_, (_, size)), *_ = differing[key]
        replica = next((r for r in mine if r.key == key), None)
        others = len({k.partition("/")[0] for k in differing}) - 1
        raise _differs(topic, _first_difference(replica, size, group, topic), others)


def _replicas(number: int, name: str, x: Any) -> Iterator[Replica]:
    """What other processes must have, too, of the operand ``x``.

    Of an array over processes these are the parts that several of them hold. Where a program has
    computed it, of what was compared, only ``debug_replicated`` asks for them.
    """
    if not isinstance(x, DeviceArray) or x.sharding.is_fully_addressable:
        yield Replica(number, name, "", partial(_elements, x), rank=np.ndim(x))
        return
    if hasattr(x, "_sample"):
        sample, step = x._sample
        yield Replica(number, name, "sample", lambda: sample, step=step)
    if backend().is_in_parts(x._raw) or config.debug_replicated:
        yield from _parts_of_several(number, name, x)


def _parts_of_several(number: int, name: str, x: DeviceArray) -> Iterator[Replica]:
    """The parts of ``x`` that this process holds, and another one, too."""
    sharding = x._sig.sharding
    if unreduced_along(sharding):  # each device has another part of a sum
        return
    holders: dict[tuple[int, ...], set[int]] = {}
    for position, device in enumerate(sharding.device_list):
        holders.setdefault(sharding.tile_at(position), set()).add(device.process_index)
    local_tiles = {sharding.tile_at(p): p for p in sharding.local_positions}
    for tile, position in local_tiles.items():
        if len(holders[tile]) > 1:
            part = x._part(position)
            start = tuple([i.start or 0 for i in sharding.indices(x.shape)[position]])
            elements = partial(_elements, part)
            yield Replica(number, name, f"part {tile}", elements, start, rank=x.ndim)


def keep_sample(into: Any, value: Any) -> None:
    """Keep with ``into`` some elements of ``value``; each process puts a part of it on devices.

    Parts that only one process holds do not tell that the values differed. What is traced, over
    processes already, or not in the memory of the host tells nothing.
    """
    if not isinstance(into, DeviceArray):
        return
    if isinstance(value, DeviceArray):
        sharding = value.sharding
        if not sharding.is_fully_addressable or value.platform() != "cpu":
            return
        value = value._fetched()
    host = np.asarray(value)
    flat = host.reshape(-1) if host.flags.c_contiguous else host.flat  # neither is a copy
    step = host.size // _SAMPLE + 1
    into._sample = flat[::step].astype(into.aval.physical.dtype), step


def _elements(x: Any) -> np.ndarray:
    """The elements of ``x`` as devices hold them: of keys the words."""
    if isinstance(x, DeviceArray):
        return x._fetched()
    return dtypes.as_held(np.asarray(x), typeof(x).dtype)


def digest(x: np.ndarray) -> int:
    """A checksum of the bits of ``x``: a NaN is what it is.

    CRC-32 takes 0.4 s for 1 GB, a third of what SHA-256 does, and notices other orders.
    """
    if dtypes.itemsize_bits(x.dtype) < 8:  # what else is in their bytes does not count
        x = x.astype(np.float32)
    return zlib.crc32(np.ascontiguousarray(x).reshape(-1).view(np.uint8).data)


def _joined(digests: Sequence[Any]) -> str:
    """One digest of many, so that processes tell each other little; "" of none."""
    return hashlib.sha256(repr([*digests]).encode()).hexdigest()[:16] if digests else ""


def _first_difference(
    mine: Replica | None, size: int, group: Group, topic: str
) -> dict[int, list[str]]:
    """The first element in which processes differ, as each of those has it that have ``mine``."""
    start, stop = 0, size
    flat = None if mine is None else np.ascontiguousarray(mine.elements()).reshape(-1)
    while stop - start > 1:
        length = Blocks(stop - start, _PIECES).length
        pieces = [slice(i, min(i + length, stop)) for i in range(start, stop, length)]
        own = None if flat is None else [digest(flat[piece]) for piece in pieces]
        gathered = [text for text in group.gather(f"{topic}, where they differ", own) if text]
        columns = zip(*gathered, strict=True)
        at = next(i for i, digests in enumerate(columns) if len({*digests}) > 1)
        start, stop = pieces[at].start, pieces[at].stop
    own = None if mine is None else mine.element(start)
    gathered = group.gather(f"{topic}, which differ", own)
    pairs = zip(sorted(group.processes), gathered, strict=True)
    return {process: element for process, element in pairs if element}


_PIECES = 1024  # of which the first one is searched that differs


def _differs(topic: str, found: dict[int, list[str]], others: int) -> ProgramMismatch:
    """The error about an element that processes have ``found`` to differ."""
    (place, *_), *_ = found.values()
    texts = {text for _, text, _ in found.values()}
    by_value: dict[str, list[int]] = {}
    for process, (_, text, bits) in found.items():
        by_value.setdefault(text if len(texts) > 1 else f"{text} (0x{bits})", []).append(process)
    phrases = [f"{text} in process{'es' * (len(ps) > 1)} {', '.join(map(str, ps))}"
            for text, ps in by_value.items()]  # fmt: skip
    shown = [*phrases[:_SHOWN], *["other values elsewhere"] * (len(phrases) > _SHOWN)]
    more = f" ({others} more argument{'s differ' if others > 1 else ' differs'})" if others else ""
    name, _, _ = place.partition("[")
    return ProgramMismatch(
        f"{topic}: {place} must be the same in all processes, and is {', '.join(shown[:-1])} and "
        f"{shown[-1]}{more}, at {user_location()}. Give all of them the value of one, "
        f"multihost_utils.broadcast_one_to_all({name if name.isidentifier() else ''}). If each has "
        "rows of its own, let pmap map them, without mesh=, or make an array over processes with "
        "make_array_from_process_local_data"
    )


_SHOWN = 4  # values


def _warn_of_same_rows(topic: str, mapped: Sequence[MappedRows], count: int) -> None:
    first, names = mapped[0], ", ".join(m.name for m in mapped)
    x, dim = first.name if first.name.isidentifier() else "x", first.dim
    size = f"{x}.shape[{dim}]" if dim else f"len({x})"
    warn_user(
        f"{topic}: all {count} processes pass the same {first.values.shape[dim]} rows as {names}, "
        f"so each row counts {count} times. Pass to each process its own: "
        f"{x}[{':, ' * dim}phalanx.process_rows({size})]"
    )
