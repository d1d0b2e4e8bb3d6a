"""Arrays that hold data, on one device or over several."""

# What an array holds is private to users, not to what runs programs on arrays.
# pyright: reportPrivateUsage=false

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np

from phalanx.base import dtypes, wide
from phalanx.base.boundary import boundary, hiding
from phalanx.base.config import option_source, settings
from phalanx.base.errors import DeletedArray, DeviceError, ShardingTypeError
from phalanx.base.extended import ADVICE, KeyType, is_key
from phalanx.base.phases import phase
from phalanx.base.recent import InternTable, Recent, memoized
from phalanx.base.source import user_location
from phalanx.core.types import Array, ArrayType, LiteralType
from phalanx.primitives.basis import convert
from phalanx.primitives.shape import slice_dim
from phalanx.run.guards import watch
from phalanx.run.runtime import backend
from phalanx.spmd.formats import Format, format_of
from phalanx.spmd.named import NamedSharding, PartitionSpec, unreduced_along
from phalanx.spmd.naming import of_keys, of_words
from phalanx.spmd.sharding import Sharding
from phalanx.spmd.shardings_of_types import spec_of, type_of

_DLPACK_CPU = 1


class Signature:
    """The type of an array and where it lies; interned, so that it is a fast cache key.

    The sharding is the one that was asked for, or the one in which a program named its result:
    what compiles and what moves looks at its ``plain`` form alone. As an operand, an array that is
    made of a number is one.
    """

    __slots__ = ("__weakref__", "operand_type", "sharding", "type")
    _interned: ClassVar[InternTable[Signature]] = InternTable(4096)

    def __init__(self, type: ArrayType, sharding: Sharding) -> None:
        self.operand_type = type
        self.type = type.of_array
        self.sharding = sharding

    @classmethod
    def of(cls, type: ArrayType, sharding: Sharding) -> Signature:
        """The signature of arrays of ``type`` laid out as ``sharding``."""
        key = (type, sharding)
        cached = cls._interned[key]
        if cached is None:
            sharded_type = type_of(type, sharding)
            cached = cls._interned.add((sharded_type, sharding), cls(sharded_type, sharding))
            cls._interned[key] = cached
        return cached

    @hiding
    def __reduce__(self) -> tuple[Any, ...]:
        return Signature.of, (self.operand_type, self.sharding)

    def __repr__(self) -> str:
        return f"{self.type} on {self.sharding}"


class DeletedSignature(Signature):
    """The signature of an array whose buffers are deleted. Equal to no other: no cache hits."""

    __slots__ = ("why",)

    def __init__(self, before: Signature, why: str) -> None:
        super().__init__(before.operand_type, before.sharding)
        self.why = why


class Shard:
    """The part of an array on one device.

    Attributes:
        device: the device.
        index: per dimension the slice of the whole array that is here.
        data: the part, an array on that device; None where another process holds it.
        replica_id: which copy of this part it is, from 0.
    """

    __slots__ = ("data", "device", "index", "replica_id")

    def __init__(self, device: Any, index: tuple[Any, ...], data: Any, replica_id: int) -> None:
        self.device = device
        self.index = index
        self.data = data
        self.replica_id = replica_id

    def __repr__(self) -> str:
        return f"Shard(device={self.device!r}, index={self.index}, replica_id={self.replica_id})"


class DeviceArray(Array):
    """An immutable array whose data lies on devices."""

    # users' attributes, which libraries set on arrays as on their own variables
    __slots__ = ("__dict__", "_blocks", "_host", "_raw", "_sample", "_sig")
    _sample: tuple[np.ndarray, int]  # of what processes cut it out of, and the step

    def __init__(self, raw: Any, sig: Signature) -> None:
        self._raw = raw
        self._sig = sig

    # ---- what it is and where it lies ----

    @property
    def aval(self) -> ArrayType:  # pyright: ignore[reportIncompatibleVariableOverride]: nobody sets it
        """The type: shape, dtype, and how the array lies along axes of type Explicit."""
        return self._sig.type

    @property
    def sharding(self) -> Sharding:
        """How the array is laid out over devices, whether or not the user chose that."""
        return self._sig.sharding.commit()

    @property
    def format(self) -> Format:
        """The sharding, and the order of dimensions in memory: the last one is fastest."""
        return format_of(self.sharding, self.ndim)

    def devices(self) -> set[Any]:
        """The devices that hold the array or a part of it."""
        return self._sig.sharding.device_set

    @property
    def device(self) -> Any:
        """The device that holds the array, or the sharding if there are several."""
        holders = self._sig.sharding.device_list
        return holders[0] if len(holders) == 1 else self._sig.sharding

    def platform(self) -> str:
        """The kind of the devices: "cpu", "gpu" or "tpu"."""
        return self._sig.sharding.device_list[0].platform

    def on_device_size_in_bytes(self) -> int:
        """The memory that the array takes on all devices together, padding included."""
        held = self.aval.update(shape=self.sharding.shard_shape(self.shape)).physical
        return held.size * held.dtype.itemsize * len(self.sharding.device_list)

    def unsafe_buffer_pointer(self) -> int:
        """The address of the elements in the memory of the one device that holds them."""
        self._check_alive()
        if len(self.sharding.device_list) > 1:
            raise ValueError(
                f"unsafe_buffer_pointer: array {self.aval} lies on {self.sharding.num_devices} "
                "devices; ask its parts, x.addressable_shards[i].data"
            )
        return backend().pointer(self._raw)

    @property
    def committed(self) -> bool:
        """Whether the user chose where the array lies."""
        return self._sig.sharding.committed

    @property
    def is_fully_replicated(self) -> bool:
        """Whether every device holds the whole array."""
        return self._sig.sharding.is_fully_replicated

    @property
    def is_fully_addressable(self) -> bool:
        """Whether this process can read every part."""
        return self._sig.sharding.is_fully_addressable

    @property
    def addressable_shards(self) -> list[Shard]:
        """The parts on the devices of this process."""
        shards = self.global_shards
        return [shards[p] for p in self.sharding.local_positions]

    @property
    def global_shards(self) -> list[Shard]:
        """The parts on all devices; those of other processes have no ``data``."""
        sharding = self.sharding
        local = set(sharding.local_positions)
        parts = zip(
            sharding.device_list, sharding.indices(self.shape), sharding.replica_ids, strict=True
        )
        return [
            Shard(device, index, self._part(p) if p in local else None, replica)
            for p, (device, index, replica) in enumerate(parts)
        ]

    def addressable_data(self, index: int) -> DeviceArray:
        """The part that one of the devices of this process holds.

        Args:
            index: the position of the device among those, in their order.

        Returns:
            An array on that device.
        """
        return self._part(self.sharding.local_positions[index])

    def _part(self, position: int) -> DeviceArray:
        """The part on ``sharding.device_list[position]``; no copy unless padding is cut off.

        Raises:
            DeviceError: that device belongs to another process.
        """
        block = self._block(position)
        if not self.sharding.tiles:
            return block
        for dim, size in enumerate(self.sharding.real_shape(self.shape, position)):
            block = slice_dim(block, 0, size, dim)
        return block

    def _block(self, position: int) -> DeviceArray:
        """What ``sharding.device_list[position]`` holds, padding included, without a copy."""
        sharding = self.sharding
        if len(sharding.device_list) == 1:
            self._check_alive()
            return self
        return self._local_block(sharding.local_of(position))

    def _local_block(self, local: int) -> DeviceArray:
        """The same of the device ``sharding.local_devices[local]``, where there are several."""
        self._check_alive()
        try:
            return self._blocks[local]
        except AttributeError:
            sharding = self.sharding
            type = self.aval.update(shape=sharding.shard_shape(self.shape), spec=None)
            raws = backend().shards(self._raw, self.aval, sharding.plain)
            self._blocks = [
                DeviceArray(raw, Signature.of(type, sharding.on(device)))
                for raw, device in zip(raws, sharding.local_devices, strict=True)
            ]
            return self._blocks[local]

    # ---- life ----

    def _check_alive(self) -> None:
        """Raise ``DeletedArray`` if the buffers are deleted."""
        if type(self._sig) is DeletedSignature:
            raise DeletedArray(
                # "Array has been deleted." is the field's, for matching
                f"Array has been deleted. {self.aval} {self._sig.why}; its value is no longer "
                f"there, at {user_location()}. Keep a copy (x.copy()) if it is needed again, or "
                "do not donate it"
            )
        if backend().is_deleted(self._raw):
            self._forget("was deleted, or donated under another name")
            self._check_alive()

    def _check_summed(self) -> None:
        """Raise ShardingTypeError if each device has a part of a sum that is still to be taken."""
        over = sorted(unreduced_along(self._sig.sharding))
        if over:
            raise ShardingTypeError(
                f"an array {self.aval} has no value yet, at {user_location()}: the sum over "
                f"{' and '.join(map(repr, over))} is still to be taken. Take it, "
                f"phalanx.reshard(x, {spec_of(self.aval).update(unreduced=set())}); what each "
                "device has is in x.addressable_shards"
            )

    def _forget(self, why: str) -> None:
        """Let go of the buffers; any further use raises ``DeletedArray`` that says ``why``."""
        if not isinstance(self._sig, DeletedSignature):
            self._sig = DeletedSignature(self._sig, why)
            if hasattr(self, "_host"):
                del self._host

    def delete(self) -> None:
        """Free the memory now. Deleting twice is allowed."""
        if not isinstance(self._sig, DeletedSignature):
            backend().delete(self._raw)
            self._forget("has been deleted")

    def is_deleted(self) -> bool:
        """Whether the memory has been freed or donated."""
        return isinstance(self._sig, DeletedSignature) or backend().is_deleted(self._raw)

    def copy_to_host_async(self) -> None:
        """Begin to copy the elements to the host, where they are then found at once."""
        self._check_alive()
        backend().start_fetch(self._raw)

    def block_until_ready(self) -> DeviceArray:
        """Wait until the value has been computed; returns the array itself."""
        self._wait()
        return self

    def _wait(self) -> None:
        """Wait until the value has been computed."""
        if type(self._sig) is DeletedSignature:
            self._check_alive()
        try:  # whether the memory is still there the runtime looks anyway
            with phase("waiting for results"):
                backend().block((self._raw,))
        except DeletedArray:
            self._check_alive()
            raise

    def is_ready(self) -> bool:
        """Whether the value has been computed."""
        self._check_alive()
        return backend().is_ready(self._raw)

    # ---- the value, on the host ----

    @property
    def _value(self) -> np.ndarray:
        """The elements as a read-only NumPy array; kept, so that it is fetched once."""
        host = getattr(self, "_host", None)
        if host is None:
            if is_key(self.aval.dtype):
                raise TypeError(f"an array {self.aval} has no value as numbers: {ADVICE}")
            host = self._host = self._fetched()
        return host

    def _fetched(self) -> np.ndarray:
        """What devices hold: the elements, or the words of keys."""
        self._check_alive()
        self._check_summed()
        if settings().transfer_guard_device_to_host is not None and self.platform() != "cpu":
            watch("device_to_host", self.aval)  # what a CPU device holds is on the host already
        with phase("waiting for results"):
            return backend().fetch(self._raw, self.aval, self.sharding.plain)

    @hiding
    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        value = self._value
        if dtype is not None and np.dtype(dtype) != value.dtype:
            return value.astype(dtype)
        return value.copy() if copy else value

    def __dlpack__(
        self,
        *,
        stream: int | None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """The array for another library, by the DLPack protocol.

        Args:
            stream: that of the consumer, on a GPU, which is to wait for the value: its address, or
                -1 if none has to. Otherwise this thread waits.
            max_version: the newest version of the protocol that the consumer knows.
            dl_device: where it wants the array; the CPU, with a copy, or where the array lies.
            copy: whether it wants memory of its own; None leaves that open.

        Raises:
            BufferError: this array, or that device, cannot be exported.
        """
        self._check_alive()
        if is_key(self.aval.dtype):
            raise BufferError(f"__dlpack__: {self.aval} cannot be exported: {ADVICE}")
        if len(self.sharding.device_list) > 1:
            raise BufferError(
                f"__dlpack__: array {self.aval} lies on {self.sharding.num_devices} devices; "
                "export one part, x.addressable_shards[i].data, or gather it with device_put"
            )
        if stream is not None and self.platform() != "gpu":
            raise BufferError(
                f"__dlpack__: there are streams on GPUs alone, and {self.aval} lies on a "
                f"{self.platform().upper()}; leave stream={stream} out"
            )
        exported = self._on_dlpack_device(dl_device, copy)
        return backend().to_dlpack(exported._raw, stream, max_version, exported is not self)

    def _on_dlpack_device(self, device: tuple[int, int] | None, copy: bool | None) -> DeviceArray:
        """This array, or a copy, where a consumer wants it."""
        source = self.__dlpack_device__()
        if device is None or tuple(map(int, device)) == source:
            return convert(self, dtype=self.aval.dtype, weak=self.aval.weak) if copy else self
        if copy is False or int(device[0]) != _DLPACK_CPU:
            raise BufferError(
                f"__dlpack__: {self.aval} lies on DLPack's device {source}, and cannot be exported "
                f"to {tuple(map(int, device))} with copy={copy}; move it with device_put"
            )
        to = Sharding((backend().local_devices("cpu")[0],))
        return place(self._value, self.aval, to)

    def __dlpack_device__(self) -> tuple[int, int]:
        device = self.sharding.device_list[0]
        pair = backend().dlpack_device(device)
        if pair is None:
            raise BufferError(
                f"__dlpack_device__: DLPack knows no devices like {device}, on which {self.aval} "
                "lies; hand over numpy.asarray(x)"
            )
        return pair

    @boundary
    def item(self, *args: int) -> Any:
        """The element as a Python number.

        Args:
            args: the index of the element, an integer for each dimension, or its position, counted
                row by row; none for an array of one element.

        Returns:
            A Python number.

        Raises:
            ValueError: no index is given, and there is not just one element.
        """
        if not args and self.size != 1:
            raise ValueError(
                f"item: an array of one element is needed, got {self.aval}; x[index] gives one of "
                "them, x.tolist() gives all"
            )
        return self._value.item(*args)

    def tolist(self) -> Any:
        """The elements as nested Python lists."""
        return self._value.tolist()

    def tobytes(self, order: str = "C") -> bytes:
        """The bytes of the elements.

        Args:
            order: "C" for row by row, "F" for column by column.
        """
        return self._value.tobytes(order)  # type: ignore[arg-type]

    @hiding
    def __bool__(self) -> bool:
        if self.aval.size != 1:
            raise ValueError(
                f"the truth of an array {self.aval} with {self.aval.size} elements is ambiguous; "
                "use .any() or .all()"
            )
        return bool(self._value.reshape(())[()])

    def _scalar(self, what: str) -> Any:
        if self.aval.ndim:
            raise TypeError(
                f"an array {self.aval} cannot be {what}: Only scalar arrays can be converted to "
                "Python scalars; choose an element, x[0], or, where there is one, x.item()"
            )
        return self._value[()]

    @hiding
    def __int__(self) -> int:
        return int(self._scalar("an int"))

    @hiding
    def __float__(self) -> float:
        return float(self._scalar("a float"))

    @hiding
    def __complex__(self) -> complex:
        return complex(self._scalar("a complex"))

    @hiding
    def __index__(self) -> int:
        if self.aval.ndim or not (dtypes.is_integer(self.dtype) or dtypes.is_bool(self.dtype)):
            raise TypeError(
                f"an array {self.aval} cannot be an index: it must be an integer without dimensions"
            )
        return int(self._value)

    @hiding
    def __iter__(self) -> Any:
        if not self.aval.ndim:
            raise TypeError("iteration over an array without dimensions")
        return (self[i] for i in range(self.aval.shape[0]))

    @hiding
    def __format__(self, spec: str) -> str:
        if not spec and isinstance(self._sig, DeletedSignature):
            return repr(self)  # as it is printed
        summed = not unreduced_along(self.sharding)
        if is_key(self.aval.dtype) or not self.sharding.is_whole_here or not summed:
            return format(repr(self), spec)
        if not self.aval.ndim:
            return format(self._value[()], spec)
        if spec:
            raise TypeError(
                f"an array {self.aval} does not take the format {spec!r}; format its elements, or "
                "print jnp.round(x, digits)"
            )
        return format(self._value)

    def __repr__(self) -> str:
        if isinstance(self._sig, DeletedSignature):
            return f"<array {self.aval}: {self._sig.why}>"
        if not self.sharding.is_whole_here or unreduced_along(self.sharding):
            summed = f", sharding={self.sharding}" if unreduced_along(self.sharding) else ""
            return f"Array(shape={self.shape}, dtype={self.dtype.name}{summed})"
        if is_key(self.aval.dtype):
            return f"Array({self.shape}, dtype={self.dtype.name}) overlaying:\n{self._fetched()}"
        head = "Array("
        weak = ", weak_type=True" if self.aval.weak else ""
        text = np.array2string(self._value, separator=", ", prefix=head)
        if not self.aval.size and self.aval.ndim > 1:
            text += f", shape={self.aval.shape}"
        return f"{head}{text}, dtype={self.dtype.name}{weak})"

    def __str__(self) -> str:
        shown = not isinstance(self._sig, DeletedSignature) and self.sharding.is_whole_here
        shown = shown and not unreduced_along(self.sharding)
        return str(self._value) if shown and not is_key(self.aval.dtype) else repr(self)

    @hiding
    def __reduce__(self) -> tuple[Any, ...]:
        if is_key(self.aval.dtype):
            return _unpickle_keys, (self._fetched(), self.aval)
        return _unpickle, (self._value, self.aval.weak)

    def __copy__(self) -> Array:
        return self.copy()  # which outlives a donation of this one

    @hiding
    def __deepcopy__(self, memo: dict[Any, Any]) -> Array:
        if unreduced_along(self._sig.sharding):
            return self.copy()
        return place(self._fetched(), self.aval, self._sig.sharding)


DeviceArray.__name__ = Array.__name__  # in messages of Python's, such as that of x + None


class OfData:
    """A name of arrays with data, told by the class of all arrays; called, it asks the array.

    A traced array has no such attribute.
    """

    def __init__(self, name: str) -> None:
        member = vars(DeviceArray)[name]
        self.__name__ = name
        self.__doc__ = member.__doc__
        self.__wrapped__ = member

    def __get__(self, array: Array | None, owner: type) -> Any:
        if array is None:
            return self
        raise AttributeError(self.__name__)

    def __call__(self, array: Array, *args: Any, **options: Any) -> Any:
        member = getattr(array, self.__name__)
        return member if isinstance(self.__wrapped__, property) else member(*args, **options)


for _name in vars(DeviceArray):
    if not (_name.startswith("_") or hasattr(Array, _name)):
        setattr(Array, _name, OfData(_name))


def default_sharding() -> Sharding:
    """Where arrays lie that nobody placed, free to follow others: each device of the mesh that is
    set has all of them, or else one device."""
    current = settings()
    nowhere = current.mesh is None or not current.mesh.has_devices
    if nowhere or current.default_device is not None:
        return _free_on(current.default_device)
    return _free_over(current.mesh)


@memoized(256)  # devices do not change once the client has started
def _free_on(device: Any) -> Sharding:
    if device is None:
        device = backend().local_devices(None)[0]
    elif isinstance(device, str):
        device = _first_of(device)
    return Sharding((device,), committed=False)


def _first_of(platform: str) -> Any:
    """The first device of the platform that is the default.

    Raises:
        DeviceError: there is none; it says who named the platform.
    """
    try:
        return backend().local_devices(platform)[0]
    except DeviceError as e:
        who = option_source("default_device", platform) or "default_device"
        raise DeviceError(f"{who} must be a platform with devices, got {platform!r}: {e}") from None


@memoized(256)
def _free_over(mesh: Any) -> Sharding:
    """Over ``mesh``; over one device where some belong to other processes, which may do others'."""
    replicated = NamedSharding(mesh, PartitionSpec()).freed()
    return replicated if replicated.is_fully_addressable else _free_on(None)


def from_host(host: Any, weak: bool = False, sharding: Sharding | None = None) -> DeviceArray:
    """A copy of the NumPy array ``host`` on devices, in its canonical dtype.

    Raises:
        TypeError: its dtype cannot be represented (objects, strings, dates).
        ValueError: it is a masked array.
    """
    dtypes.refuse_masked(host)
    value = np.asarray(host)
    type = ArrayType(value.shape, dtypes.held_as(host if wide.is_wide(host) else value), weak)
    return place(value, type, default_sharding() if sharding is None else sharding)


def with_value(host: np.ndarray) -> DeviceArray:
    """A copy of ``host`` on devices that keeps ``host``, which nobody changes, as its value."""
    array = from_host(host)
    array._host = host
    return array


def place(value: np.ndarray, type: ArrayType, sharding: Sharding) -> DeviceArray:
    """The NumPy array ``value``, or the words of keys, on devices as an array of ``type``."""
    _check_whole(type, sharding)
    if settings().transfer_guard_host_to_device is not None:
        watch("host_to_device", type)
    raw = backend().put(value, type, sharding.plain)
    return DeviceArray(raw, Signature.of(type, sharding))


def _check_whole(type: ArrayType, sharding: Sharding) -> None:
    """Raise ShardingTypeError if ``sharding`` is unreduced, so that each device has a summand."""
    if unreduced_along(sharding):
        raise ShardingTypeError(
            f"an array {type} is whole, at {user_location()}, and cannot be put as {sharding}: "
            "which device has what of the sum, phalanx.reshard says"
        )


def placing(type: ArrayType, sharding: Sharding) -> Callable[[np.ndarray], DeviceArray]:
    """``place`` for many arrays of one type and sharding."""
    _check_whole(type, sharding)
    put, sig = backend().putting(type, sharding.plain), Signature.of(type, sharding)

    def placed(value: np.ndarray) -> DeviceArray:
        if settings().transfer_guard_host_to_device is not None:
            watch("host_to_device", type)
        return DeviceArray(put(value), sig)

    return placed


_scalars: Recent[DeviceArray] = Recent(2048)


def from_scalar(value: Any, sharding: Sharding, type: ArrayType) -> DeviceArray:
    """The scalar ``value`` on devices as an array of ``type``; equal ones are put there once."""
    key = (type, value.tobytes(), sharding)
    cached = _scalars[key]
    if cached is None:
        cached = _scalars[key] = place(np.asarray(value), type, sharding)
    elif settings().transfer_guard_host_to_device is not None:
        watch("host_to_device", type)  # whether another call has put it there does not count
    return cached


def shared_scalars() -> list[DeviceArray]:
    """The scalars that calls share, which no user has."""
    return _scalars.all_values()


def moved(x: DeviceArray, sharding: Sharding) -> DeviceArray:
    """``x`` laid out as ``sharding``; ``x`` itself if it is already.

    Under another name of the layout that it has, it is the same buffers.
    """
    if x._sig.sharding is sharding:
        return x
    x._check_alive()
    if unreduced_along(x._sig.sharding) != unreduced_along(sharding):
        x._check_summed()
        _check_whole(x.aval, sharding)
    if type(x._sig.operand_type) is LiteralType:
        return from_scalar(x._value[()], sharding, x._sig.operand_type)
    if settings().transfer_guard_device_to_device is not None and _elsewhere(x.sharding, sharding):
        watch("device_to_device", x.aval)
    raw = backend().move(x._raw, x.aval, x.sharding.plain, sharding.plain)
    return DeviceArray(raw, Signature.of(x.aval, sharding))


def _elsewhere(one: Sharding, other: Sharding) -> bool:
    """Whether arrays are elsewhere by ``other``; parts exchanged among the same devices are not."""
    return (one.device_set, one.memory_kind) != (other.device_set, other.memory_kind)


def assemble(parts: Sequence[DeviceArray], type: ArrayType, sharding: Sharding) -> DeviceArray:
    """One array of parts that lie on ``sharding.local_devices``, in order, without a copy."""
    raw = backend().assemble([p._raw for p in parts], type, sharding.plain)
    return DeviceArray(raw, Signature.of(type, sharding))


def wait_for(arrays: Sequence[DeviceArray]) -> None:
    """Wait until the values of ``arrays`` have been computed.

    Raises:
        DeletedArray: the memory of one is not there any more.
    """
    for x in arrays:
        if type(x._sig) is DeletedSignature:
            x._check_alive()
    try:  # whether the memory is still there the runtime looks anyway
        backend().block([x._raw for x in arrays])
    except DeletedArray:
        for x in arrays:
            x._check_alive()
        raise


def words_of(keys: DeviceArray) -> DeviceArray:
    """The words of keys, in the same memory."""
    keys._check_alive()
    sharding = of_words(keys._sig.sharding, keys.ndim)
    return DeviceArray(keys._raw, Signature.of(keys.aval.physical, sharding))


def keys_of(words: DeviceArray, dtype: KeyType) -> DeviceArray:
    """The keys of ``words``, in the same memory; no key may be split over devices."""
    words._check_alive()
    type = ArrayType(words.aval.shape[:-1], dtype)
    sharding = of_keys(words._sig.sharding, type.ndim)
    return DeviceArray(words._raw, Signature.of(type, sharding))


def _unpickle_keys(words: np.ndarray, type: ArrayType) -> DeviceArray:
    return place(words, type, default_sharding())


def _unpickle(value: np.ndarray, weak: bool) -> DeviceArray:
    return from_host(value, weak)
