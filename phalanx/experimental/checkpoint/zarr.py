"""Arrays on a disk, in zarr's format 3, written and read in parallel by tensorstore."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

tensorstore: Any
try:
    import tensorstore
except ImportError:
    tensorstore = None

_OS_ERROR = re.compile(r"os_error_code='(\d+)'")


def check_installed(who: str) -> None:
    """Raise ImportError if tensorstore is not there."""
    if tensorstore is None:
        raise ImportError(
            f"{who}: checkpoints are written and read by tensorstore, which is not installed; "
            "pip install 'phalanx[checkpoint]'"
        )


def create(folder: Path, shape: Sequence[int], dtype: np.dtype, chunk: Sequence[int]) -> Any:
    """The future of an array in ``folder``, which is made if it is not there."""
    metadata = {
        "shape": list(shape),
        "data_type": dtype.name,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": list(chunk)}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "."}},
        "codecs": [
            {"name": "bytes", "configuration": {"endian": "little"}},
            {"name": "crc32c"},  # what the disk has changed is an error
        ],
    }
    return tensorstore.open(
        _spec(folder) | {"metadata": metadata, "store_data_equal_to_fill_value": True},
        open=True,
        create=True,
    )


def existing(folder: Path) -> Any:
    """The future of the array in ``folder``; chunks that are lost are errors, and no zeros."""
    return tensorstore.open(_spec(folder) | {"fill_missing_data_reads": False}, open=True)


def _spec(folder: Path) -> dict[str, Any]:
    return {"driver": "zarr3", "kvstore": {"driver": "file", "path": f"{folder}{os.sep}"}}


def write(array: Any, start: Sequence[int], data: np.ndarray) -> Any:
    """Begin to write ``data``, which must not change until the future that this gives is done."""
    return _at(array, start, data.shape).write(data, can_reference_source_data_indefinitely=True)


def read(array: Any, rows: Sequence[range]) -> Any:
    """Begin to read some rows; gives a future of a NumPy array."""
    return _at(array, [r.start for r in rows], [len(r) for r in rows]).read()


def _at(array: Any, start: Sequence[int], shape: Sequence[int]) -> Any:
    return array[tuple(slice(a, a + n) for a, n in zip(start, shape, strict=True))]


def done(future: Any, folder: Path, doing: str) -> Any:
    """The result of a future.

    Raises:
        OSError: the system refuses, with its reason.
        ValueError: what is on the disk is no such array, or is damaged.
    """
    try:
        return future.result()
    except ValueError as e:
        told = str(e)
        found = _OS_ERROR.search(told)
        if found or told.startswith("RESOURCE_EXHAUSTED"):
            number = int(found[1]) if found else 28  # no space left
            why = f"checkpoint: {doing}: {os.strerror(number)}"
            raise OSError(number, why, str(folder)) from None
        short = told.partition(" [")[0]
        raise ValueError(f"checkpoint: {doing} in {folder}: {short}") from None
