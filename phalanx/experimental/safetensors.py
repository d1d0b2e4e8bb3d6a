"""Files of named arrays in the safetensors format, for exchange with other libraries.

A file is the length of a header in 8 bytes, the header, a JSON object that tells of each array its
dtype, shape and place, and the elements, row by row, in little-endian order. Nothing in it is code.
Format: https://huggingface.co/docs/safetensors, "Format".
"""

from __future__ import annotations

import json
import math
import mmap
import os
import secrets
import struct
import sys
from collections.abc import Mapping
from typing import Any

import numpy as np

from phalanx.api.parts import make_array_from_callback
from phalanx.base import dtypes
from phalanx.base.boundary import bound
from phalanx.base.errors import ShapeError
from phalanx.base.extended import ADVICE, is_key
from phalanx.base.kinds import is_dict, is_mapping
from phalanx.base.source import user_location
from phalanx.run.array import DeviceArray, default_sharding
from phalanx.spmd.constraint import sharding_for
from phalanx.spmd.named import PartitionSpec
from phalanx.spmd.sharding import Sharding

__all__ = ["load_file", "load_metadata", "save_file"]

_NAMES = {
    "bool": "BOOL",
    **{f"{kind}{n}": f"{kind[0].upper()}{n}" for kind in ("int", "uint") for n in (8, 16, 32, 64)},
    **{f"float{n}": f"F{n}" for n in (16, 32, 64)},
    "bfloat16": "BF16",
    "float8_e4m3fn": "F8_E4M3",
    "float8_e5m2": "F8_E5M2",
    "float8_e8m0fnu": "F8_E8M0",
    "complex64": "C64",
}
_DTYPES = {name: dtypes.as_dtype(dtype) for dtype, name in _NAMES.items()}
_METADATA = "__metadata__"
_LONGEST = 100_000_000  # bytes of a header, as the format says


def save_file(
    tensors: Mapping[str, Any],
    filename: str | os.PathLike[str],
    metadata: Mapping[str, str] | None = None,
) -> None:
    """Write named arrays to a file; what was there before is replaced as a whole.

    Args:
        tensors: arrays by name, Phalanx's, wherever they lie, or NumPy's.
        filename: where.
        metadata: texts by name that the file is to hold, too.

    Raises:
        TypeError: a name or a text is none, something is no array, or the format has no name for
            its dtype.
        OSError: the file cannot be written.

    >>> import os, tempfile, phalanx.numpy as jnp
    >>> path = os.path.join(tempfile.mkdtemp(), "weights.safetensors")
    >>> save_file({"w": jnp.ones(2, "bfloat16")}, path)
    >>> load_file(path)
    {'w': Array([1, 1], dtype=bfloat16)}
    """
    _check_names(tensors, metadata)
    arrays = {name: _array(name, tensors[name]) for name in tensors}
    header: dict[str, Any] = {_METADATA: dict(metadata)} if metadata else {}
    end = 0
    for name, array in arrays.items():
        begin, end = end, end + array.nbytes
        entry = {"dtype": _NAMES[array.dtype.name], "shape": list(array.shape)}
        header[name] = entry | {"data_offsets": [begin, end]}
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)  # so that elements are aligned
    beside = f"{os.fspath(filename)}.writing-{secrets.token_hex(8)}"  # nobody else's
    try:
        with open(beside, "xb") as file:
            file.write(struct.pack("<Q", len(text)) + text)
            for array in arrays.values():
                file.write(array.reshape(-1).view(np.uint8).data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, filename)
    except OSError as e:
        raise OSError(e.errno, f"save_file: {e.strerror}", os.fspath(filename)) from None
    finally:
        if os.path.exists(beside):
            os.remove(beside)


def _check_names(tensors: Any, metadata: Any) -> None:
    texts: dict[Any, Any] = metadata or {}
    for what, names in (("tensors", tensors), ("metadata", texts)):
        if not is_mapping(names) or not all(isinstance(name, str) for name in names):
            raise TypeError(
                f"save_file: {what} must be a dict with names as keys, got {names!r:.80}, at "
                f"{user_location()}; name the leaves of a tree with tree.flatten_with_path"
            )
    if _METADATA in tensors:
        raise ValueError(f"save_file: {_METADATA!r} is the name of no array, at {user_location()}")
    wrong = [name for name, text in texts.items() if not isinstance(text, str)]
    if wrong:
        raise TypeError(f"save_file: metadata {wrong[0]!r} must be text, at {user_location()}")


_ARRAYS: tuple[type, ...] = (DeviceArray, np.ndarray, np.generic)


def _array(name: str, x: Any) -> np.ndarray:
    """What is written of an array, in little-endian order."""
    if not isinstance(x, _ARRAYS):
        raise TypeError(
            f"save_file: {name!r} must be an array, got {type(x).__name__}, at {user_location()}"
        )
    if is_key(x.dtype):
        raise TypeError(f"save_file: {name!r} holds random keys, at {user_location()}; {ADVICE}")
    array = np.asarray(x)
    array = array.astype(array.dtype.newbyteorder("<"), order="C", copy=False)
    if array.dtype.name not in _NAMES:
        raise TypeError(
            f"save_file: {name!r} has dtype {array.dtype}, for which the format has no name, at "
            f"{user_location()}; it has {', '.join(_NAMES)}"
        )
    return array


def load_file(
    filename: str | os.PathLike[str],
    shardings: Sharding | PartitionSpec | Mapping[str, Any] | None = None,
) -> dict[str, DeviceArray]:
    """The arrays of a file, by name. Each device reads what it is to hold.

    Args:
        filename: where the file is.
        shardings: how the arrays are to lie: one sharding for all, or some by name; the others, and
            all if this is not given, lie whole on the default device.

    Returns:
        A dict of arrays.

    Raises:
        ValueError: the file is not of this format, or damaged.
        KeyError: a sharding has a name that the file does not.
        OSError: it cannot be read.

    >>> import tempfile
    >>> from phalanx.experimental import safetensors
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     safetensors.save_file({"w": jnp.ones(3)}, f"{folder}/weights")
    ...     print(safetensors.load_file(f"{folder}/weights")["w"])
    [1. 1. 1.]
    """
    with open(filename, "rb") as file:
        header, begin = _header(file, filename)
        header.pop(_METADATA, None)
        if isinstance(shardings, Mapping):
            for name in shardings.keys() - header.keys():
                raise KeyError(f"load_file: {filename} has no array {name!r}; it has {[*header]}")
        who = f"load_file: {filename}:"
        places = {name: _place(entry, f"{who} {name!r}") for name, entry in header.items()}
        size = os.fstat(file.fileno()).st_size
        _check_whole(places, size - begin, filename)
        with mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ) as held:
            loaded: dict[str, Any] = {}
            for name, place in places.items():
                asked = shardings.get(name) if isinstance(shardings, Mapping) else shardings
                array = _within(held, begin, place, f"{who} {name!r}")
                loaded[name] = _placed(array, asked, name)
                del array  # the file is closed when nobody looks into it
            return loaded


def load_metadata(filename: str | os.PathLike[str]) -> dict[str, str]:
    """The texts by name that a file holds beside its arrays.

    Args:
        filename: the path of the file.

    Returns:
        A dict of strings.

    Raises:
        ValueError: the file is not of this format.
        OSError: it cannot be read.

    >>> import tempfile
    >>> from phalanx.experimental import safetensors
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     safetensors.save_file({"w": jnp.ones(3)}, f"{folder}/weights", {"step": "7"})
    ...     safetensors.load_metadata(f"{folder}/weights")
    {'step': '7'}
    """
    with open(filename, "rb") as file:
        return dict(_header(file, filename)[0].get(_METADATA, {}))


def _header(file: Any, filename: Any) -> tuple[dict[str, Any], int]:
    """The header of a file, and where it ends.

    Raises:
        ValueError: it has none.
    """
    length = int.from_bytes(file.read(8), "little")
    text = file.read(length) if length <= _LONGEST else b""
    try:
        whole = len(text) == length
        header: Any = json.loads(text, object_pairs_hook=_once) if whole else None
    except _NamedTwice as e:
        raise ValueError(f"load_file: {filename} is told of in two ways: {e}") from None
    except (ValueError, RecursionError):
        header = None
    if not is_dict(header) or not _are_texts(header.get(_METADATA, {})):
        raise ValueError(f"load_file: {filename} is no safetensors file: it has no header")
    return header, 8 + length


class _NamedTwice(ValueError):
    """A name stands twice in an object of JSON."""


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object, each name of which stands there once.

    Raises:
        _NamedTwice: one stands there twice, of which readers take this or that.
    """
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise _NamedTwice(f"{twice!r:.80} stands in its header twice")
    return found


def _are_texts(metadata: Any) -> bool:
    return is_dict(metadata) and all(isinstance(text, str) for text in metadata.values())


Place = tuple[np.dtype, tuple[int, ...], int, int]  # dtype, shape, first byte, and the one after


def _place(entry: Any, what: str) -> Place:
    """What is told of an array.

    Raises:
        ValueError: it cannot be.
    """
    try:
        dtype, shape = _DTYPES[entry["dtype"]], tuple(map(_size, entry["shape"]))
        first, last = map(_size, entry["data_offsets"])
    except (KeyError, TypeError, ValueError):
        raise ValueError(f"{what} is told as {entry!r:.80}, which is not understood") from None
    needed = math.prod(shape) * dtype.itemsize
    if last - first != needed:
        raise ValueError(
            f"{what} is told to be {dtype.name}{list(shape)}, {needed} bytes, in bytes {first} to "
            f"{last}"
        )
    return dtype, shape, first, last


def _size(number: Any) -> int:
    """The same number, which counts elements or bytes."""
    if type(number) is not int or not 0 <= number <= sys.maxsize:
        raise ValueError(number)
    return number


def _check_whole(places: Mapping[str, Place], size: int, filename: Any) -> None:
    """Raise an error if the arrays are not all of what follows the header, each byte once."""
    end = 0
    for first, last, name in sorted((*place[2:], name) for name, place in places.items()):
        if first != end:
            raise ValueError(
                f"load_file: {filename}: {name!r} is told to be in bytes {first} to {last} of what "
                f"follows the header, and those before it end at byte {end}"
            )
        end = last
    if end != size:
        raise ValueError(
            f"load_file: {filename} has {size} bytes of elements, and tells of {end}: it is not "
            "whole, or has been changed"
        )


def _within(held: Any, begin: int, place: Place, what: str) -> np.ndarray:
    """An array in the memory of a file."""
    dtype, shape, first, _ = place
    little = dtype.newbyteorder("<") if dtype.isbuiltin == 1 else dtype
    try:
        return np.ndarray(shape, little, held, begin + first)
    except ValueError as e:  # of sizes so large that another one, 0, does not help
        raise ValueError(f"{what} is told to be {dtype.name}{list(shape)}: {e}") from None


def _placed(array: np.ndarray, asked: Any, name: str) -> DeviceArray:
    who = f"load_file: {name!r}"
    sharding = default_sharding() if asked is None else sharding_for(asked, who)
    try:
        sharding.shard_shape(array.shape)
    except ValueError as e:
        raise ShapeError(f"{who}: {e}, at {user_location()}") from None
    with dtypes.enabled(array.dtype):
        return make_array_from_callback(
            array.shape, sharding, lambda index: array[index].copy(), array.dtype
        )


bound(sys.modules[__name__])
