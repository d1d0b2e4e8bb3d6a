"""What the rest of Phalanx needs from a compiler and runtime.

Everything here is about *raw* arrays: handles of the runtime, opaque to all but the backend. A
raw array holds the shards of an array on the addressable devices of its sharding, those that this
process can reach. It knows neither its type nor its sharding: whoever holds it passes them along.
Of random keys devices and host hold the words (``ArrayType.physical``), split as the keys are.
"""

# What an array holds is private to users, not to what runs programs on arrays.
# pyright: reportPrivateUsage=false

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from msgspec import Struct

from phalanx.core.program import Program
from phalanx.core.types import ArrayType, Types
from phalanx.processes.dealing import OfHost
from phalanx.spmd.plan import Plan
from phalanx.spmd.sharding import Sharding

if TYPE_CHECKING:
    from phalanx.processes.group import Group
    from phalanx.processes.member import Member

Raw = Any


class Device(ABC):
    """A device: what ``devices`` gives, and arrays lie on.

    Attributes:
        id: its number; no other device of its platform has it, in any process.
        platform: ``"cpu"``, ``"gpu"`` or ``"tpu"``.
        device_kind: its model, such as ``"NVIDIA H100 80GB HBM3"``.
        client: the runtime's connection to the devices of the platform.
        process_index: the process that computes on it.
        local_hardware_id: its number on its host, as CUDA counts; None of CPUs.
        slice_index: of TPUs and of GPUs over several hosts, those among which it has fast links.
        coords: of TPUs, where it is in their grid.
        core_on_chip: of TPUs, which core of its chip it is.

    >>> import phalanx
    >>> device = phalanx.devices()[0]
    >>> isinstance(device, phalanx.Device), device.platform, device.id
    (True, 'cpu', 0)
    """

    id: int
    platform: str
    device_kind: str
    client: Any
    process_index: int
    host_id: int  # former names of process_index
    task_id: int
    local_hardware_id: int | None
    slice_index: int
    coords: tuple[int, ...]
    core_on_chip: int

    @abstractmethod
    def memory_stats(self) -> dict[str, int] | None:
        """What the allocator counts, such as ``bytes_in_use``; None where it counts nothing.

        >>> import phalanx
        >>> phalanx.devices("cpu")[0].memory_stats() is None
        True
        """

    @abstractmethod
    def memory(self, kind: str, /) -> Any:
        """The memory of a kind that the device reaches.

        Args:
            kind: such as ``"device"`` or ``"pinned_host"``.
        """

    @abstractmethod
    def addressable_memories(self) -> list[Any]:
        """All memories that the device reaches."""

    @abstractmethod
    def default_memory(self) -> Any:
        """The memory in which arrays lie that nobody puts elsewhere."""

    @abstractmethod
    def live_buffers(self) -> list[Any]:
        """The runtime's buffers that lie on the device."""

    @abstractmethod
    def get_stream_for_external_ready_events(self) -> int:
        """The stream of a GPU on which to wait for what others compute on it."""


class Held(Protocol):
    """Whatever holds a raw array of the type and sharding ``_sig``."""

    _raw: Raw
    _sig: Any


class Single(Struct, frozen=True):
    """Makes of the only output a ``kind`` with ``sig``; callers write it out: a call is felt."""

    kind: type[Held]
    sig: Any

    def __call__(self, raws: Sequence[Raw]) -> Held:
        array = object.__new__(self.kind)
        array._raw, array._sig = raws[0], self.sig
        return array


class Exchange(Struct, frozen=True):
    """An operation of a compiled program in which devices exchange data.

    Attributes:
        operation: its name in HLO, such as ``all-reduce``.
        groups: the devices that exchange with each other, by position, if they do so in groups
            and that can be told.
        pairs: (source, target) devices, if it is a permutation.
        bytes: the size of the result on each device.
        count: how often a call runs it.
        line: the user's line.
    """

    operation: str
    groups: tuple[tuple[int, ...], ...] | None
    pairs: tuple[tuple[int, ...], ...] | None
    bytes: int
    count: int
    line: str


class Kernel(Struct, frozen=True):
    """An instruction of a compiled program that runs as one.

    Attributes:
        name: what it is called in the program.
        operation: what it does, in HLO, such as ``fusion`` or ``dot``.
        fused: how many operations it does at once.
        count: how often a call runs it.
        line: the user's line.
        module: the name of the program.
        products: how many operations of arithmetic the products in it take, each time.
        moved: the bytes of the main memory that it reads and writes, each time.
        text: the instruction as HLO writes it, without layouts and lines.
    """

    name: str
    operation: str
    fused: int
    count: int
    line: str
    module: str = ""
    products: float = 0.0
    moved: float = 0.0
    text: str = ""


class Executable(Protocol):
    """A compiled program, on the devices it was compiled for."""

    devices: tuple[Device, ...]
    is_here: bool  # false: they are only described, and it does not run
    group: Group | None  # the processes that launch it together; None: this one alone

    @property
    def in_shardings(self) -> tuple[Sharding, ...]:
        """How the inputs must lie."""
        ...

    @property
    def out_shardings(self) -> tuple[Sharding, ...]:
        """How the outputs lie."""
        ...

    @property
    def inspected(self) -> Sequence[tuple[Any, ArrayType, Sharding]]:
        """Who asked about values in the program, their types, and how they lie."""
        ...

    def __call__(self, raws: list[Raw], /) -> list[Raw]:
        """Start the program; the outputs may not be ready yet.

        The inputs must lie as the plan says and have the types of the program: nothing checks
        that. Donated inputs are deleted.

        Raises:
            DeletedArray: an input was deleted or donated before, or is donated twice.
            OutOfMemory, RuntimeFailure: the runtime failed. Failures of a program that runs
                asynchronously surface where its outputs are used.
        """
        ...

    def launcher(
        self, fixed: list[Raw], finish: Callable[[list[Raw]], Any]
    ) -> Callable[[Sequence[Held]], Any]:
        """The function that calls this on the raw arrays of what it is given, after ``fixed``.

        It returns what ``finish`` makes of the outputs. This is one function, not several that
        call each other, because a call costs as much as all that most of them do.
        """
        ...

    def for_parts(self, results: Sequence[tuple[ArrayType, Sharding]], who: str) -> Executable:
        """The same, which takes and gives this process's parts of arrays, as arrays.

        ``results`` says of what types those that it gives are, and how they lie; ``who`` is what
        its launches are called.
        """
        ...

    def meet(self, compare: Callable[[Any, str], None]) -> None:
        """What ``Group.meet`` does, before a launch of this."""
        ...

    def as_text(self) -> str:
        """The program as StableHLO, before optimization."""
        ...

    def hlo_text(self) -> str:
        """The program as HLO, as optimized for the devices."""
        ...

    def exchanges(self) -> list[Exchange]:
        """What devices exchange while it runs."""
        ...

    def kernels(self) -> list[Kernel]:
        """What each device runs, one after the other."""
        ...

    def cost_analysis(self) -> dict[str, Any]:
        """Estimates by the compiler, such as ``flops`` and ``bytes accessed``."""
        ...

    def memory_analysis(self) -> dict[str, int]:
        """Bytes per device: ``arguments``, ``outputs``, ``aliased``, ``temporaries``, ``code``.

        Each also ``on the host``: of what waits in its memory.
        """
        ...


class Module(Protocol):
    """A program in StableHLO, not compiled yet."""

    @property
    def plan(self) -> Plan:
        """For which devices it is, and where its values lie."""
        ...

    def over(self, devices: tuple[Device, ...]) -> Module:
        """The same for other ``devices``, which take the places of those that were planned."""
        ...

    @property
    def largest(self) -> int:
        """How many bytes the largest array in it takes."""
        ...

    @property
    def is_for_its_devices(self) -> bool:
        """Whether it was written for the platform of the devices that it was planned for."""
        ...

    def as_text(self, locations: bool = False, dialect: str = "stablehlo") -> str:
        """The program in a dialect, "stablehlo" or "hlo"; on request with the user's lines."""
        ...

    def ir(self, dialect: str = "stablehlo") -> Any:
        """The program as an object of the compiler's Python bindings."""
        ...


class Coordination(Protocol):
    """The service through which the runtimes of many processes find each other."""

    socket: str

    def close(self) -> None: ...


class Backend(Protocol):
    """A compiler, the devices it compiles for, and the arrays on them."""

    # ---- devices ----

    def devices(self, platform: str | None = None) -> tuple[Device, ...]:
        """All devices of a platform ('cpu', 'gpu', 'tpu'), those of other processes included.

        Raises:
            DeviceError: the platform is not there; the message says why.
        """
        ...

    def local_devices(self, platform: str | None = None) -> tuple[Device, ...]:
        """Those of ``devices`` that this process can reach."""
        ...

    def platform(self) -> str:
        """The platform that is used where none is given."""
        ...

    def started(self) -> list[str]:
        """The platforms whose devices have been used."""
        ...

    def version(self) -> str:
        """That of the runtime, which must be the same in processes that compute together."""
        ...

    def coordinate(self, count: int) -> Coordination:
        """Start what the runtimes of ``count`` processes need to find each other."""
        ...

    def local_device_ids(self, process: OfHost) -> Sequence[int] | None:
        """The GPUs of this machine for one of its processes, if the others have their own.

        Raises:
            ConfigError: they cannot be dealt out.
        """
        ...

    def meet(self, member: Member, gpus: Sequence[int] | None) -> None:
        """Let clients know the other processes; of GPUs they see those with such numbers, or all.

        It comes before the first use of devices.
        """
        ...

    def client_for_libraries(self) -> Any:
        """What libraries for JAX speak through to other processes; None if there are none."""
        ...

    def complete(self) -> None:
        """Wait until what this process does with others is done.

        Raises:
            PeerLost, ProgramMismatch: it never will be.
        """
        ...

    def end_anyway(self) -> None:
        """Let this process end, at its exit, also with a launch that waits for others in vain."""
        ...

    def part(self) -> None:
        """Let clients know the other processes no more."""
        ...

    def process_index(self) -> int: ...

    def process_count(self) -> int: ...

    # ---- programs ----

    def lower(
        self,
        program: Program,
        plan: Plan,
        donate: tuple[int, ...] = (),
        name: str | None = None,
    ) -> Module:
        """``program`` as a module laid out by ``plan``; inputs ``donate`` give their memory."""
        ...

    def lower_for_each(self, program: Program, plan: Plan, platforms: Sequence[str]) -> Module:
        """``program`` for one device of any of ``platforms``, whose number it takes first."""
        ...

    def export(
        self,
        program: Program,
        constants: Sequence[np.ndarray],
        plans: Sequence[Plan],
        name: str,
    ) -> bytes:
        """``program`` for the devices of any of ``plans``, as a portable artifact.

        Its first inputs are the ``constants``. What is for several plans, each of a platform, takes
        the number of that which is carried out before everything else.
        """
        ...

    def refined(self, artifact: bytes, types: Types) -> bytes:
        """A portable artifact with symbolic lengths, for operands of ``types``, which are known.

        Raises:
            ValueError: something in it is only known when it runs.
        """
        ...

    def try_exported(self, artifacts: Sequence[bytes]) -> str:
        """Read portable artifacts that come from elsewhere, where nothing is lost if that ends a
        process; why one that can be read could not be compiled, or "".

        Raises:
            ValueError: one cannot be read.
        """
        ...

    def check_exported(
        self, artifact: bytes, ins: Types, outs: Types, foreign: Collection[str]
    ) -> None:
        """Look at a portable artifact that comes from elsewhere, described as a function of ``ins``
        to ``outs`` that calls the ``foreign`` functions of other languages.

        Raises:
            ValueError: it is something else than described, or than ``export`` writes.
        """
        ...

    def exported_text(self, artifact: bytes) -> str:
        """The module of a portable artifact, as StableHLO.

        Raises:
            ValueError: it is none, or one of a later version.
        """
        ...

    def register_foreign(
        self, name: str, function: Any, platform: str, version: int, options: dict[str, Any]
    ) -> None:
        """Let programs for ``platform`` call ``function``, of another language, by ``name``."""
        ...

    def register_foreign_type(self, name: str, registration: Any, platform: str) -> None:
        """Let such functions keep states of a type between their stages."""
        ...

    def register_foreign_batched(self, name: str) -> None:
        """Let the partitioner cut such a function along leading dimensions of all it takes."""
        ...

    def foreign_headers(self) -> str:
        """The directory of the headers that such functions are written with."""
        ...

    def compile(self, lowered: Any, options: dict[str, Any] | None = None) -> Executable:
        """Compile for the devices of the plan.

        Raises:
            ValueError: the compiler has no such option, or not with such a value.
            RuntimeFailure: the compiler failed.
        """
        ...

    def ends_the_compiler(self, type: ArrayType, platform: str) -> bool:
        """Whether the compiler ends the process where a program computes an array of ``type``."""
        ...

    def absences(self) -> dict[str, str]:
        """The accelerators that cannot be had here, each with the reason."""
        ...

    def libraries(self, platform: str) -> str:
        """What started devices use of their makers', with versions; empty: nobody knows."""
        ...

    def topology(self, platform: str, name: str, options: dict[str, Any]) -> tuple[Device, ...]:
        """Devices that are only described; ``compile`` takes them, and the result does not run.

        Raises:
            DeviceError: nothing here knows the platform or the topology.
        """
        ...

    def free_memory(self, devices: Sequence[Device]) -> float:
        """How many bytes are free on each of ``devices``; infinity: nobody knows."""
        ...

    def wait_for_callbacks(self) -> None:
        """Wait until the programs underway that call Python are over."""
        ...

    # ---- arrays ----

    def put(self, host: Any, type: ArrayType, sharding: Sharding) -> Raw:
        """Copy an array of the host to devices, as ``type`` says; later writes do not show."""
        ...

    def putting(self, type: ArrayType, sharding: Sharding) -> Callable[[np.ndarray], Raw]:
        """``put`` for many arrays of one type and sharding, without looking at their shapes."""
        ...

    def fetch(self, raw: Raw, type: ArrayType, sharding: Sharding) -> np.ndarray:
        """The whole array, read-only; on one CPU device a view of its memory. Waits for it."""
        ...

    def shards(self, raw: Raw, type: ArrayType, sharding: Sharding) -> list[Raw]:
        """The parts on the addressable devices as raw arrays, in local order; no copy.

        Part ``i`` is that of ``sharding.local_devices[i]``, padding included.
        """
        ...

    def assemble(self, parts: Sequence[Raw], type: ArrayType, sharding: Sharding) -> Raw:
        """The inverse of ``shards``; ``type`` is that of the whole."""
        ...

    def move(self, raw: Raw, type: ArrayType, source: Sharding, target: Sharding) -> Raw:
        """The same array laid out otherwise; ``raw`` itself where both are the same."""
        ...

    def delete(self, raw: Raw) -> None:
        """Free the memory now. Deleting twice is allowed."""
        ...

    def is_deleted(self, raw: Raw) -> bool: ...

    def is_in_parts(self, raw: Raw) -> bool:
        """Whether an array over several devices was made part by part, and not by a program."""
        ...

    def is_ready(self, raw: Raw) -> bool: ...

    def block(self, raws: Sequence[Raw]) -> None:
        """Wait until all are ready.

        Raises:
            RuntimeFailure: a program that was to make one of them failed.
        """
        ...

    def start_fetch(self, raw: Raw) -> None:
        """Begin to copy the parts to the host, for a later ``fetch``."""
        ...

    def pointer(self, raw: Raw) -> int:
        """The address of a single-device array in the memory of its device."""
        ...

    def to_dlpack(
        self,
        raw: Raw,
        stream: int | None = None,
        max_version: tuple[int, int] | None = None,
        copied: bool = False,
    ) -> Any:
        """A DLPack capsule that shares the memory of a single-device array; ``copied`` says
        whether this was made for the consumer."""
        ...

    def dlpack_device(self, device: Device) -> tuple[int, int] | None:
        """What DLPack calls ``device``; None: it has no name for it."""
        ...

    def from_dlpack(
        self, external: Any, device: Device, copy: bool | None = None
    ) -> tuple[Raw, ArrayType]:
        """What has ``__dlpack__`` and lies on ``device`` as an array that shares its memory.

        Where that cannot be it is copied, unless ``copy`` is False.

        Raises:
            BufferError: the runtime has no such arrays, or cannot share their memory.
        """
        ...
