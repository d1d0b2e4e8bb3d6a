"""Where the checkpoints of a run are: in a directory, or in a folder of an object store."""

# Users' arguments are looked at, whatever their types should be.
# pyright: reportUnnecessaryIsInstance=false

from __future__ import annotations

import errno
import os
import re
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

from phalanx.base.plain import brief
from phalanx.base.source import user_location
from phalanx.experimental.checkpoint.bucket import Bucket
from phalanx.experimental.checkpoint.folder import Directory
from phalanx.experimental.checkpoint.remote import Remote


class Committed(Protocol):
    """A checkpoint that is written into a folder, until it is committed."""

    @property
    def name(self) -> str:
        """The folder in which arrays are written, in that of the run; no other writer has it."""
        ...

    @property
    def data(self) -> str:
        """The folder of arrays in that of the complete checkpoint, if it is another one."""
        ...

    def commit(self, index: str) -> None:
        """Make it complete for all who look."""
        ...

    def abandon(self) -> None:
        """Remove what has been written."""
        ...


class Place(Protocol):
    """Where the checkpoints of a run are."""

    @property
    def folder(self) -> Path | Remote:
        """Its path or address."""
        ...

    def exists(self) -> bool:
        """Whether there is such a place."""
        ...

    def at(self, name: str) -> Path | Remote:
        """The folder of that name in it."""
        ...

    def steps(self) -> list[int]:
        """The steps of complete checkpoints, in order."""
        ...

    def reading(self, step: int) -> AbstractContextManager[bytes]:
        """A block in which a checkpoint is read; gives its index."""
        ...

    def writing(self, step: int) -> Committed:
        """A checkpoint that begins to be written."""
        ...

    def remove(self, step: int) -> None:
        """Remove a complete checkpoint."""
        ...


def place_of(directory: str | os.PathLike[str]) -> Place:
    """The place of a path or an address; a directory may not be there yet.

    Raises:
        TypeError: ``directory`` is no path.
        ValueError: it is the address of a store that is not known.
        NotADirectoryError: something else is there.
    """
    if not isinstance(directory, (str, os.PathLike)):
        raise TypeError(
            f"checkpoint: directory must be a path, got {brief(directory)}, at {user_location()}. "
            "It comes first, as in save(directory, step, tree)"
        )
    address = os.fspath(directory)
    remote = Remote.of(address)
    if remote is not None:
        return Bucket(remote)
    if re.match(r"\w+:/[^/]", address) or "://" in address:
        raise ValueError(
            f"checkpoint: directory must be one of a file system, or an address as in "
            f"'s3://bucket/run' or 'gs://bucket/run', got {address!r}, at {user_location()}; a "
            "Path leaves out a slash of it, so give text; mount other stores"
        )
    path = Path(directory).absolute()
    if path.exists() and not path.is_dir():
        why = "is a file, and checkpoints need a directory; choose another path"
        raise NotADirectoryError(errno.ENOTDIR, f"checkpoint: {why}", str(path))
    return Directory(path)
