"""Lanes over processes: each process has some of the lanes of an axis, and their rows.

Arrays of the user's are local: they lie on devices of this process. To a program that spans
processes they are this process's parts of arrays over all devices, and so are its results. Every
device runs as many lanes as the one that has most of them; what it has fewer is padding. Where that
makes no difference to an array of this process, it is its part as it is.
"""

# What an array holds is private to users, not to what runs programs on arrays.
# pyright: reportPrivateUsage=false

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import Struct

from phalanx.base.errors import DeviceError, NonFiniteError, ProgramMismatch
from phalanx.base.source import user_location
from phalanx.core.blocks import Blocks, UnevenBlocks
from phalanx.core.program import Program
from phalanx.core.trace import ROOT, entering
from phalanx.core.types import ArrayType
from phalanx.primitives.basis import move
from phalanx.primitives.lanes import lanes_at
from phalanx.primitives.shape import slice_dim
from phalanx.run.array import DeviceArray, Signature, moved
from phalanx.run.calls import LoadedProgram
from phalanx.run.execute import compile_program
from phalanx.run.runnable import Runnable, check_finite
from phalanx.run.runtime import backend
from phalanx.spmd.mesh import Mesh, row
from phalanx.spmd.named import PartitionSpec, PmapSharding
from phalanx.spmd.placement import Placement
from phalanx.spmd.sharding import Sharding

if TYPE_CHECKING:
    from phalanx.processes.group import Group


class LaneShard(Struct, frozen=True):
    """Which lanes of an axis this process has, and which devices run them.

    Attributes:
        devices: of all processes, those that have lanes.
        lane_blocks: how many lanes each of them has.
        local: which of them are of this process.
        axis: the name of the axis.
    """

    devices: tuple[Any, ...]
    lane_blocks: UnevenBlocks
    local: range
    axis: Any

    @classmethod
    def of(
        cls, axis: Any, rows: Sequence[int], devices: Sequence[Sequence[Any]], me: int
    ) -> LaneShard:
        """That of process ``me``, where process ``p`` has ``rows[p]`` lanes and ``devices[p]``."""
        length = max(Blocks(n, len(d)).length for n, d in zip(rows, devices, strict=True))
        counts: list[int] = []
        used: list[Any] = []
        starts = [0]
        for n, own in zip(rows, devices, strict=True):
            full, rest = divmod(n, length)
            mine = [length] * full + [rest] * bool(rest)
            counts += mine
            used += own[: len(mine)]
            starts.append(len(counts))
        local = range(starts[me], starts[me + 1])
        return cls(tuple(used), UnevenBlocks.of(tuple(counts)), local, axis)

    @property
    def local_devices(self) -> tuple[Any, ...]:
        return self.devices[self.local.start : self.local.stop]

    @property
    def rows(self) -> int:
        """How many lanes this process has."""
        return sum(self.lane_blocks.counts[self.local.start : self.local.stop])

    @property
    def lanes_in_words(self) -> str:
        """How many lanes each process has, in words."""
        rows = Counter[int]()
        for device, count in zip(self.devices, self.lane_blocks.counts, strict=True):
            rows[device.process_index] += count
        return f"{', '.join(str(n) for _, n in sorted(rows.items()))} rows"

    @property
    def fits(self) -> bool:
        """Whether its rows, dealt out over its devices, are what these run."""
        return Blocks(self.rows, len(self.local)).length == self.lane_blocks.length

    @property
    def part(self) -> int:
        """How many rows its part of an array has, but for padding that the array has by itself."""
        return self.rows if self.fits else len(self.local) * self.lane_blocks.length

    @property
    def placement(self) -> Placement:
        """Where the lanes of this process run."""
        length, devices = self.lane_blocks.length, self.local_devices
        spare = len(devices) * length - self.rows
        return Placement(self.axis, self.rows, devices, length, spare)

    def whole(self, type: ArrayType, dim: int | None) -> ArrayType:
        """The type over all processes of what has the local ``type`` and is cut in ``dim``."""
        return _with_rows(type, dim, self.lane_blocks.padded)

    def everywhere(self, dim: int | None) -> Sharding:
        """How the whole lies on all devices."""
        return Sharding(self.devices, () if dim is None else (*[1] * dim, len(self.devices)))

    def sharding_along(self, dim: int | None) -> Sharding:
        """How the part of this process lies on its devices."""
        mesh = Mesh(row(self.local_devices), (str(self.axis),))
        entries = () if dim is None else (*[None] * dim, str(self.axis))
        return PmapSharding(mesh, PartitionSpec(*entries))


class SpannedAxis:
    """The lanes of ``axis``: this process has ``rows``, others have some.

    How many those have they tell each other when somebody asks. What does not depend on it needs
    nobody else.

    Attributes:
        who: the function that is mapped.
        group: the processes.
        devices: those that run the lanes, in this order; None: all that there are.
        axis: the name of the axis.
        rows: how many lanes this process has.
    """

    def __init__(
        self, who: str, group: Group, devices: tuple[Any, ...] | None, axis: Any, rows: int
    ) -> None:
        self.who, self.group, self.devices = who, group, devices
        self.axis, self.rows = axis, rows

    @functools.cached_property
    def lane_counts(self) -> tuple[int, ...]:
        """How many lanes each process has; all processes must ask.

        One that has as many rows as before does not, since nothing tells it to: it launches what
        it has compiled.

        Raises:
            PeerLost, ProgramMismatch: they do not.
        """
        mine = f"with {self.rows} row{'s' if self.rows != 1 else ''}"
        try:
            return tuple(self.group.gather(f"calling {self.who}", self.rows, detail=mine))
        except ProgramMismatch as e:
            e.add_note(_ADVICE)
            raise

    @functools.cached_property
    def shard(self) -> LaneShard:
        """Which of the lanes those of this process are."""
        devices = backend().devices() if self.devices is None else self.devices
        order = sorted(self.group.processes)
        own = [[d for d in devices if d.process_index == p] for p in order]
        me = order.index(backend().process_index())
        return LaneShard.of(self.axis, self.lane_counts, own, me)

    @property
    def local_devices(self) -> tuple[Any, ...] | None:
        """Those of ``devices`` that are of this process."""
        if self.devices is None:
            return None
        me = backend().process_index()
        return tuple([d for d in self.devices if d.process_index == me])

    def __index__(self) -> int:
        """How many lanes there are in all."""
        return sum(self.lane_counts)

    def __repr__(self) -> str:
        return f"{self.rows} here, over processes {self.group.key}"


_ADVICE = (
    "A process that calls with as many rows as before launches what it has compiled. Where others' "
    'rows change, tell all how many each has, as a static argument of the function: see "When the '
    'rows of one process change" in docs/processes.md'
)


def _with_rows(type: ArrayType, dim: int | None, rows: int) -> ArrayType:
    if dim is None:
        return type
    return type.update(shape=(*type.shape[:dim], rows, *type.shape[dim + 1 :]))


class MultiProcessExecutable(LoadedProgram):
    """A program over processes, to be called with the arrays of this one.

    Of each operand and result the dimension is given in which the axis cuts it; None: it does not.
    The operands ``unused`` it does not need.
    """

    def __init__(
        self,
        program: Program,
        shard: LaneShard,
        ins: Sequence[int | None],
        outs: Sequence[int | None],
        donate: tuple[int, ...],
        unused: frozenset[int],
    ) -> None:
        types = zip(program.input_types, map(shard.everywhere, ins), strict=True)
        compiled = compile_program(program, [Signature.of(t, s) for t, s in types], donate)
        assert isinstance(compiled, Runnable), "nothing in it is launched by itself"
        self._shard, self._ins, self._outs, self.donate = shard, ins, outs, compiled.donate
        self._places = [shard.sharding_along(dim) for dim in ins]
        first = Sharding(shard.local_devices[:1])
        places = zip(self._places, ins, strict=True)
        self.in_shardings = [p if dim is None or shard.fits else first for p, dim in places]
        results = zip(program.output_types, outs, strict=True)
        self.out_sigs = [
            Signature.of(_with_rows(t, dim, shard.part), shard.sharding_along(dim))
            for t, dim in results
        ]
        self.executable, self.names = compiled.executable, compiled.names
        self.rows = {i: dim for i, dim in enumerate(ins) if dim is not None}
        self.unused = unused
        self.compared = self._launched = compiled.executable.for_parts(
            [(sig.type, sig.sharding) for sig in self.out_sigs],
            f"{compiled.name} of {shard.lanes_in_words}",
        )
        self._fixed, self._checked, self._name = compiled.fixed, compiled.checked, compiled.name

    def __call__(self, arrays: Sequence[DeviceArray]) -> list[DeviceArray]:
        """Run in all processes together."""
        with entering(ROOT):
            return self._called(arrays)

    def _called(self, arrays: Sequence[DeviceArray]) -> list[DeviceArray]:
        operands = zip(arrays, self._ins, self._places, strict=True)
        results = self._launched(self._fixed + [self._part(*each)._raw for each in operands])
        for i in self.donate:
            if self._is_taken(arrays[i], i):
                arrays[i]._forget("was donated to a function, which may have reused its memory")
        shards = map(DeviceArray, results, self.out_sigs)
        own = [self._own(y, dim) for y, dim in zip(shards, self._outs, strict=True)]
        if self._checked:
            self._check_finite(own)
        return own

    def _check_finite(self, own: Sequence[DeviceArray]) -> None:
        try:
            check_finite(self._name, own)
        except NonFiniteError as e:
            e.repeatable = False  # other processes have none, and do not run again
            raise

    def _is_taken(self, x: DeviceArray, i: int) -> bool:
        """Whether operand ``i`` is ``x`` itself, on some device, and not a copy made of it."""
        as_it_is = self._ins[i] is None or self._shard.fits
        return as_it_is and x.sharding.overlaps(self._places[i])

    def _part(self, x: DeviceArray, dim: int | None, place: Sharding) -> DeviceArray:
        """What the devices of this process have of ``x``.

        Raises:
            DeviceError: it has parts in other processes, and is no row or value of this one.
        """
        shard = self._shard
        if not x.sharding.is_fully_addressable and (dim is not None or not x.is_fully_replicated):
            raise DeviceError(
                f"{self._name}: the pmap at {user_location()} maps rows of each process, and takes "
                f"or captures {x.aval}, an array over processes. Give mesh=, with which arrays "
                "over processes are mapped, or gather it (multihost_utils.process_allgather)"
            )
        if dim is None or shard.fits:
            return moved(x, place)
        rows = np.minimum(np.arange(shard.part), shard.rows - 1)
        alone = moved(x, Sharding(shard.local_devices[:1]))
        return moved(move(lanes_at(move(alone, dim, 0), rows.tolist()), 0, dim), place)

    def _own(self, y: DeviceArray, dim: int | None) -> DeviceArray:
        """The rows of the part ``y`` that are no padding."""
        if dim is None or self._shard.fits:
            return y
        return slice_dim(y, 0, self._shard.rows, dim)
