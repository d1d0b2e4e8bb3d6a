"""Arrays on a disk, in zarr's format 3, written and read in parallel by tensorstore."""

from __future__ import annotations

import errno
import json
import math
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from phalanx.base.kinds import is_list
from phalanx.experimental.checkpoint.remote import Remote

tensorstore: Any
try:
    import tensorstore
except ImportError:
    tensorstore = None

_METADATA = "zarr.json"
_OS_ERROR = re.compile(r"os_error_code='(\d+)'")


def check_installed(who: str) -> None:
    """Raise ImportError if tensorstore is not there."""
    if tensorstore is None:
        raise ImportError(
            f"{who}: checkpoints are written and read by tensorstore, which is not installed; "
            "pip install 'phalanx[checkpoint]'"
        )


def create(
    folder: Path | Remote, shape: Sequence[int], dtype: np.dtype, chunk: Sequence[int]
) -> Any:
    """The future of an array in ``folder``, which is made if it is not there."""
    options = {"metadata": _metadata(shape, dtype, chunk), "store_data_equal_to_fill_value": True}
    return tensorstore.open(_spec(folder) | options, open=True, create=True)


def existing(folder: Path | Remote, shape: Sequence[int], dtype: np.dtype) -> Any:
    """The future of the array in ``folder``; chunks that are lost are errors, and no zeros.

    Its metadata are those that ``create`` has written: tensorstore ends the process where a shape
    is impossible, so it does not see what is in the file.

    Raises:
        ValueError: what is in the file is not of that ``shape`` and ``dtype``.
        OSError: it cannot be read.
    """
    options = {
        "metadata": _metadata(shape, dtype, _chunk(folder, shape, dtype)),
        "assume_metadata": True,
        "fill_missing_data_reads": False,
    }
    return tensorstore.open(_spec(folder) | options, open=True)


def _metadata(shape: Sequence[int], dtype: np.dtype, chunk: Sequence[int]) -> dict[str, Any]:
    return {
        "shape": list(shape),
        "data_type": dtype.name,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": list(chunk)}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "."}},
        "codecs": [
            {"name": "bytes", "configuration": {"endian": "little"}},
            {"name": "crc32c"},  # what the disk has changed is an error
        ],
    }


def _chunk(folder: Path | Remote, shape: Sequence[int], dtype: np.dtype) -> list[int]:
    """The shape of the chunks of the array in ``folder``, as its metadata tell.

    Raises:
        ValueError: they tell of something else, or of more elements than there are.
    """
    file = folder / _METADATA
    metadata, there = _metadata_in(folder)
    try:
        found = json.loads(metadata)
        shown = found["shape"], found["data_type"]
        chunk = found["chunk_grid"]["configuration"]["chunk_shape"]
        if shown != (list(shape), dtype.name):
            raise ValueError(f"it tells of {shown}, and the index of {(list(shape), dtype.name)}")
        if not _cuts(chunk, shape):
            raise ValueError(f"chunks of shape {chunk!r:.80} do not cut an array of {list(shape)}")
    except (KeyError, TypeError, ValueError, RecursionError) as e:
        raise ValueError(f"{file} does not tell of such an array: {e}") from None
    if there is not None and there < math.prod(shape) * dtype.itemsize:
        raise ValueError(f"{folder} has {there} bytes, too few for {dtype.name}{list(shape)}")
    return chunk


def _metadata_in(folder: Path | Remote) -> tuple[bytes, int | None]:
    """What the metadata of the array in ``folder`` are, and how many bytes it has, if it is known.

    Raises:
        FileNotFoundError: there are none.
        OSError: they cannot be read.
    """
    if not isinstance(folder, Remote):
        with os.scandir(folder) as entries:
            there = sum(map(_size_of_file, entries))
        return (folder / _METADATA).read_bytes(), there
    store = done(tensorstore.KvStore.open(folder.kvstore()), folder, "opening")
    read = done(store.read(_METADATA), folder, f"reading {_METADATA}")
    if read.state != "value":
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), f"{folder}/{_METADATA}")
    return read.value, None


def _size_of_file(entry: os.DirEntry[str]) -> int:
    """How many bytes a file has.

    Raises:
        ValueError: it is none; to read a pipe would wait for somebody at its other end.
    """
    if not entry.is_file():
        raise ValueError(f"{entry.path} is no file, and an array consists of files")
    return entry.stat().st_size


def _cuts(chunk: Any, shape: Sequence[int]) -> bool:
    """Whether an array of that ``shape`` may have been written in chunks of this one."""
    return (
        is_list(chunk)
        and len(chunk) == len(shape)
        and all(type(c) is int and 1 <= c <= max(n, 1) for c, n in zip(chunk, shape, strict=True))
    )


def _spec(folder: Path | Remote) -> dict[str, Any]:
    if isinstance(folder, Remote):
        return {"driver": "zarr3", "kvstore": folder.kvstore()}
    return {"driver": "zarr3", "kvstore": {"driver": "file", "path": f"{folder}{os.sep}"}}


def write(array: Any, start: Sequence[int], data: np.ndarray) -> Any:
    """Begin to write ``data``, which must not change until the future that this gives is done."""
    return _at(array, start, data.shape).write(data, can_reference_source_data_indefinitely=True)


def read(array: Any, rows: Sequence[range]) -> Any:
    """Begin to read some rows; gives a future of a NumPy array."""
    return _at(array, [r.start for r in rows], [len(r) for r in rows]).read()


def _at(array: Any, start: Sequence[int], shape: Sequence[int]) -> Any:
    return array[tuple(slice(a, a + n) for a, n in zip(start, shape, strict=True))]


def done(future: Any, folder: Path | Remote, doing: str) -> Any:
    """The result of a future.

    Raises:
        OSError: the system refuses, with its reason.
        ValueError: what is on the disk is no such array, or is damaged.
    """
    try:
        return future.result()
    except ValueError as e:
        message = str(e)
        if isinstance(folder, Remote) and (refused := folder.refusal(message, doing)):
            raise refused from None
        found = _OS_ERROR.search(message)
        if found or message.startswith("RESOURCE_EXHAUSTED"):
            number = int(found[1]) if found else 28  # no space left
            why = f"checkpoint: {doing}: {os.strerror(number)}"
            raise OSError(number, why, str(folder)) from None
        short = message.partition(" [")[0]
        raise ValueError(f"checkpoint: {doing} in {folder}: {short}") from None
