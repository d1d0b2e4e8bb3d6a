"""Restoring a tree: as it was saved, or laid out as a tree says. Each part is read for itself."""

# What an array holds is private to users, not to what stores it.
# pyright: reportPrivateUsage=false

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any, ClassVar, Protocol, TypeVar, overload

import numpy as np

from phalanx.api.parts import make_array_from_callback
from phalanx.base import dtypes
from phalanx.base.errors import ShapeError
from phalanx.base.source import user_location
from phalanx.core.types import Array, ArrayType
from phalanx.experimental.checkpoint import together, zarr
from phalanx.experimental.checkpoint.folder import INDEX
from phalanx.experimental.checkpoint.index import Stored
from phalanx.experimental.checkpoint.leaves import stored_dtype
from phalanx.experimental.checkpoint.outline import build
from phalanx.experimental.checkpoint.place import Place, place_of
from phalanx.experimental.checkpoint.saving import check_step
from phalanx.experimental.checkpoint.wanted import WHO, RestoredAs, Wanted
from phalanx.run.array import DeviceArray, Signature
from phalanx.spmd.sharding import Index, Sharding


class AsSaved:
    """In place of an argument that is not given."""

    def __repr__(self) -> str:
        return "as it was saved"


AS_SAVED: Any = AsSaved()


class _Dataclass(Protocol):
    __dataclass_fields__: ClassVar[dict[str, Any]]


class _NamedTuple(Protocol):
    def _asdict(self) -> dict[str, Any]: ...


Like = TypeVar("Like", bound="_Dataclass | _NamedTuple | Array")
"""What is restored as the type that its declaration says, whatever its leaves are asked by."""


@overload
def restore(directory: str | os.PathLike[str], like: Like, step: int | None = None) -> Like: ...
@overload
def restore(
    directory: str | os.PathLike[str], like: Any = AS_SAVED, step: int | None = None
) -> Any: ...
def restore(
    directory: str | os.PathLike[str], like: Any = AS_SAVED, step: int | None = None
) -> Any:
    """The tree that was saved as the checkpoint of ``step``.

    Each device gets what it is to hold, and only that is read, so a checkpoint can be restored on
    other devices, and more or fewer, than it was saved from. In a program of several processes all
    of them call it.

    Args:
        directory: where the checkpoints are: a path, or an address of a store as in ``save``.
        like: what is wanted, a tree like the one that was saved. In the place of a leaf stands an
            array, or a ``ShapeDtypeStruct`` that may have a sharding, for an array of that shape
            and dtype that lies so; a NumPy array for another one; a number of Python's for a
            scalar of that kind, or of a narrower one, as an integer is; a sharding, or a
            ``PartitionSpec`` about the mesh that is set, for whatever is stored there, so laid out,
            a leaf or a subtree; or ``...`` for what is not to be read, and stays ``...``.
            If not given: all, as it was saved, in dicts, lists and tuples, with arrays whole on the
            default device.
        step: which; default is the newest.

    Returns:
        A tree like ``like``.

    Raises:
        FileNotFoundError: there is no such checkpoint.
        TreeError: ``like`` asks for leaves that are not stored, or not for some that are.
        ShapeError, ArgumentError: a leaf has another shape, or is of another dtype or kind.
        ValueError: a file is damaged.
        OSError: a store refuses, or does not answer.
        ImportError: tensorstore is not installed.

    >>> import tempfile, phalanx
    >>> from phalanx.experimental import checkpoint
    >>> directory = tempfile.mkdtemp()
    >>> checkpoint.save(directory, 1, {"w": phalanx.numpy.arange(4), "b": 0.5})
    >>> rows = phalanx.NamedSharding(phalanx.make_mesh((1,), ("x",)), phalanx.P("x"))
    >>> tree = checkpoint.restore(directory, {"w": rows, "b": ...})
    >>> tree["w"].sharding == rows, tree["b"]
    (True, Ellipsis)
    """
    zarr.check_installed(WHO)
    place = place_of(directory)
    with _held(place, None if step is None else check_step(step, WHO)) as stored:
        if like is AS_SAVED:
            targets = {n: RestoredAs.as_saved(leaf) for n, leaf in enumerate(stored.leaves)}
            return build(stored.outline, read(stored, targets, OnDisk).__getitem__)
        wanted = Wanted(stored, like)
        return wanted.tree_of(read(stored, wanted.targets, OnDisk))


@contextlib.contextmanager
def _held(place: Place, step: int | None) -> Generator[Stored]:
    """A checkpoint, which nobody removes meanwhile."""
    with contextlib.ExitStack() as stack:
        while True:
            every = place.steps()
            chosen = step if step is not None else every[-1] if every else -1
            chosen = together.gather(f"restoring from {place}", chosen)[0]
            folder = place.at(f"step-{chosen}")
            try:
                index = stack.enter_context(place.reading(chosen))
                break
            except (FileNotFoundError, NotADirectoryError):
                if chosen in place.steps():
                    raise ValueError(f"{WHO}: {folder} has no index, {INDEX}") from None
                if step is not None or chosen < 0 or together.others():
                    raise _absent(place, step) from None
                # it was removed just now, so there is a newer one
        yield Stored.of(folder, index)


def _absent(place: Place, step: int | None) -> FileNotFoundError:
    there = place.steps()[-8:]
    if not place.exists():
        why = "there is no such directory"
    elif not there:
        why = "the directory has no checkpoint"
    else:
        numbers = f"step{'s' * (len(there) > 1)} {', '.join(map(str, there))}"
        why = f"the directory has no checkpoint of step {step}, but of {numbers}"
    return FileNotFoundError(errno.ENOENT, f"{WHO}: {why}", str(place))


class StoredArray(Protocol):
    """An array that is stored, of which rows are read."""

    def begin(self, rows: Sequence[range]) -> Callable[[], np.ndarray]:
        """Begin to read some rows of each dimension; gives a function that waits for them."""
        ...


def read(
    stored: Stored, targets: Mapping[int, RestoredAs], opened: Callable[[Stored, int], StoredArray]
) -> dict[int, Any]:
    """The leaves of those numbers, each as is wanted, of arrays that are ``opened``."""
    begins = _rows_before(stored, targets)
    numbers_of_arrays = [n for n in targets if not stored.leaves[n].is_number]
    arrays = {n: opened(stored, n) for n in numbers_of_arrays}
    begun = [
        (n, _begin(stored, n, target, arrays.get(n), begins.get(n, 0)))
        for n, target in targets.items()
    ]
    return {n: finish() for n, finish in begun}


def _rows_before(stored: Stored, targets: Mapping[int, RestoredAs]) -> dict[int, int]:
    """How many rows other processes have before this one, of arrays that are divided among them.

    Raises:
        ShapeError: all together do not have as many as are stored.
    """
    joined = {
        n: (t.type.shape, t.joined)
        for n, t in targets.items()
        if t.type is not None and t.joined is not None
    }
    if not joined:
        return {}
    mine = {str(n): shape[dim] for n, (shape, dim) in joined.items()}
    every = together.gather("restoring the rows of all processes", mine)
    for n, (shape, dim) in joined.items():
        leaf, rows = stored.leaves[n], [one.get(str(n), 0) for one in every]
        whole = (*shape[:dim], sum(rows), *shape[dim + 1 :])
        if whole != leaf.shape:
            raise ShapeError(
                f"{WHO}: tree{leaf.path} is stored as {leaf}, and asked for with {rows} rows of "
                f"the processes, a whole of shape {whole}, at {user_location()}"
            )
    me = together.process()
    return {n: sum(one[str(n)] for one in every[:me]) for n in joined}


def _begin(
    stored: Stored, number: int, target: RestoredAs, array: StoredArray | None, before: int
) -> Callable[[], Any]:
    """Begin to read a leaf; gives a function that waits for it."""
    leaf, type = stored.leaves[number], target.type
    if type is None:
        return lambda: leaf.number if target.number is None else target.number(leaf.number)
    if array is None:
        return lambda: _from_parts(type, target, lambda index: np.asarray(leaf.number, type.dtype))
    held = type.physical
    parts: dict[Any, Callable[[], np.ndarray]] = {}
    for index in _indices(target.sharding, held.shape):
        rows = [range(*s.indices(n)) for s, n in zip(index, held.shape, strict=True)]
        if target.joined is not None:
            mine = rows[target.joined]
            rows[target.joined] = range(mine.start + before, mine.stop + before)
        parts[_key(index)] = array.begin(rows)

    def part(index: Index) -> np.ndarray:
        return parts[_key(index)]().view(held.dtype)

    return lambda: _from_parts(type, target, part)


class OnDisk:
    """The array that is leaf ``number`` of a checkpoint, which begins to be opened.

    Raises:
        ValueError: what is on the disk is none, or another one.
        OSError: it cannot be read.
    """

    def __init__(self, stored: Stored, number: int) -> None:
        leaf, self._folder = stored.leaves[number], stored.folder_of(number)
        self._doing = f"reading tree{leaf.path}"
        held = leaf.type.physical
        try:
            self._opening = zarr.existing(self._folder, held.shape, stored_dtype(held.dtype))
        except FileNotFoundError as e:
            raise ValueError(f"checkpoint: {self._doing}: {e.filename} is not there") from None
        except ValueError as e:
            raise ValueError(f"checkpoint: {self._doing}: {e}") from None

    def begin(self, rows: Sequence[range]) -> Callable[[], np.ndarray]:
        """Begin to read some rows of each dimension; gives a function that waits for them."""
        array = zarr.done(self._opening, self._folder, self._doing)
        future = zarr.read(array, rows)
        return lambda: zarr.done(future, self._folder, self._doing)


def _indices(sharding: Sharding | None, shape: tuple[int, ...]) -> list[Index]:
    """The different parts of an array that devices of this process hold; on the host the whole."""
    if sharding is None:
        return [(slice(None),) * len(shape)]
    every = sharding.indices(shape)
    return list({_key(every[p]): every[p] for p in sharding.local_positions}.values())


def _key(index: Index) -> tuple[Any, ...]:
    return tuple((s.start, s.stop) for s in index)


def _from_parts(type: ArrayType, target: RestoredAs, part: Callable[[Index], np.ndarray]) -> Any:
    """The array of its parts, where it is to be."""
    held = type.physical
    if target.sharding is None:
        value = part((slice(None),) * len(held.shape))
        scalar = value[()] if target.scalar else value
        return scalar if target.number is None else target.number(scalar)
    with dtypes.enabled(held.dtype):
        array = make_array_from_callback(held.shape, target.sharding, part, held.dtype)
    return DeviceArray(array._raw, Signature.of(type, array._sig.sharding))
