"""The folders of checkpoints: which are complete, how one becomes so, and what others left.

    runs/a/step-120/              complete: it got this name when all was there
    runs/a/.writing-140-5f3a9c01/ being written, or left by a writer that was killed
    runs/a/.removed-100-77b0e2d4/ being removed, or left by somebody who was killed

Each holds its index, ``checkpoint.json``. Who writes or removes a folder holds a lock on its index,
and who reads it shares one: the system lets go of a lock when its process ends, however it ends,
so what can be locked belongs to nobody.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import re
import secrets
import shutil
import stat
from collections.abc import Generator
from pathlib import Path
from typing import Any

from phalanx.experimental.checkpoint.remote import Remote

INDEX = "checkpoint.json"
_STEP = re.compile(r"step-(0|[1-9]\d*)")
_PASSING = re.compile(r"\.(writing|removed)-\d+-[0-9a-f]{8}")


class Directory:
    """A directory in which the checkpoints of a run are; it may not be there yet."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __str__(self) -> str:
        return str(self.folder)

    def exists(self) -> bool:
        """Whether it is there."""
        return self.folder.exists()

    def at(self, name: str) -> Path:
        """The folder of that name in it."""
        return self.folder / name

    def steps(self) -> list[int]:
        """The steps of complete checkpoints, in order."""
        try:
            names = os.listdir(self.folder)
        except FileNotFoundError:
            return []
        return sorted(int(found[1]) for found in map(_STEP.fullmatch, names) if found)

    @contextlib.contextmanager
    def reading(self, step: int) -> Generator[bytes]:
        """A block in which nobody removes the checkpoint of ``step``; gives its index.

        Raises:
            FileNotFoundError: it is not there.
        """
        descriptor = _locked(self.at(f"step-{step}"), fcntl.LOCK_SH)
        assert descriptor is not None, "it has been waited for"
        with open(descriptor, "rb") as index:
            yield index.read()

    def writing(self, step: int) -> Writing:
        """A checkpoint of ``step`` that begins to be written."""
        return Writing(self.folder, step)

    def remove(self, step: int) -> None:
        """Remove a complete checkpoint, at once for all who look; not while somebody reads it."""
        _clear(self.at(f"step-{step}"), self.at(f".removed-{step}-{secrets.token_hex(4)}"))


def _locked(folder: Path, how: int) -> int | None:
    """A descriptor of the index of ``folder`` that holds a lock; None if others hold one.

    Raises:
        FileNotFoundError: the folder is not there, or no more.
        ValueError: the index is no file; to open a pipe would wait for somebody at its other end.
        OSError: it is a link, where it is to be written.
    """
    writes = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW if how & fcntl.LOCK_EX else os.O_RDONLY
    descriptor = os.open(folder / INDEX, writes | os.O_NONBLOCK, 0o666)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise ValueError(f"checkpoint: {folder / INDEX} is no file")
        fcntl.flock(descriptor, how)
        if not os.path.samestat(os.fstat(descriptor), os.stat(folder / INDEX)):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(folder))
    except BlockingIOError:
        os.close(descriptor)
        return None
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def sweep(place: Path) -> None:
    """Remove what writers and removers left that were killed."""
    for name in os.listdir(place):
        if _PASSING.fullmatch(name) and not (place / name).is_symlink():
            with contextlib.suppress(ValueError, OSError):  # nobody of ours has made it
                _clear(place / name)


def _clear(folder: Path, aside: Path | None = None) -> None:
    """Remove ``folder``, first by taking it ``aside``; not if somebody is there."""
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        descriptor = _locked(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if descriptor is not None:
            with open(descriptor):
                shutil.rmtree(folder.rename(aside) if aside else folder, ignore_errors=True)


class Writing:
    """A folder in which the checkpoint of ``step`` is written, until it is committed.

    Raises:
        FileExistsError: there is a checkpoint of that step.
        OSError: the folder cannot be made.
    """

    data = ""  # arrays are beside the index

    def __init__(self, place: Path, step: int) -> None:
        self.final = place / f"step-{step}"
        place.mkdir(parents=True, exist_ok=True)
        sweep(place)
        if self.final.exists():
            raise exists(self.final, step)
        self._step = step
        self.path, self._descriptor = self._created(place, step)
        self.name = self.path.name

    @staticmethod
    def _created(place: Path, step: int) -> tuple[Path, int]:
        while True:
            path = place / f".writing-{step}-{secrets.token_hex(4)}"
            path.mkdir()
            with contextlib.suppress(FileNotFoundError):  # swept before it was locked
                descriptor = _locked(path, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if descriptor is not None:
                    return path, descriptor

    def commit(self, index: str) -> None:
        """Write the index, and give the folder its final name when all is on the disk.

        Raises:
            FileExistsError: somebody else has committed a checkpoint of that step.
            OSError: the disk is full, or gone.
        """
        with open(self._descriptor, "w", encoding="utf-8", closefd=False) as file:
            file.write(index)
        os.fsync(self._descriptor)
        for folder, _, _ in os.walk(self.path):
            _fsync(folder)
        try:
            self.path.rename(self.final)
        except OSError as e:
            if e.errno in (errno.ENOTEMPTY, errno.EEXIST):
                raise exists(self.final, self._step) from None
            raise
        _fsync(self.final.parent)
        os.close(self._descriptor)

    def abandon(self) -> None:
        """Remove what has been written."""
        shutil.rmtree(self.path, ignore_errors=True)
        os.close(self._descriptor)


def exists(final: Path | Remote, step: int) -> FileExistsError:
    """The error of a step that is there."""
    why = f"checkpoint: step {step} is saved already; choose another step, or remove this folder"
    return FileExistsError(errno.EEXIST, why, str(final))


def _fsync(folder: Any) -> None:
    """Let the names in ``folder`` reach the disk."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
