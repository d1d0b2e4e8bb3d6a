"""A directory of compiled programs that processes share: the second one does not compile again.

An entry is a file named by its key. Nothing here raises because of the directory or of what lies
in it: an entry that cannot be read is not there, and one that cannot be written is left out.

Writers never wait for each other: an entry appears under its name when it is complete. Because a
compiled program is code that will run, the directory and its files belong to the user alone, and
where others could have written there nothing is read.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import random
import re
import stat
import time
import warnings
import zlib
from collections.abc import Iterator
from typing import Any

from msgspec import Struct

from phalanx.base.config import OPTIONS, config
from phalanx.base.recent import memoized

_MAGIC = b"phalanx compiled program 1\n"
_SUFFIX = ".compiled"
_NAME = re.compile(rf"[0-9a-f]{{64}}{re.escape(_SUFFIX)}")
_TEMPORARY = "writing-"
_ABANDONED = 3600.0  # seconds after which nobody is still writing a file
# without waiting for somebody to write, where it is a pipe
_OPEN = os.O_RDONLY | sum(
    getattr(os, f"O_{flag}", 0) for flag in ("NOFOLLOW", "NONBLOCK", "BINARY")
)
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
# After about this part of the limit was written, by whichever processes, one of them looks at the
# whole directory: nobody keeps accounts, and the limit is exceeded by about as much.
_PARTS = 64
_chance = random.SystemRandom()  # `random.random()` would change what the user draws next


class Entry(Struct, frozen=True):
    """A file of the cache: its size in bytes and when it was used last, in seconds."""

    path: str
    size: int
    used: float


class Cache:
    """The entries in ``folder``, of at most about ``limit`` bytes; None is no limit."""

    def __init__(self, folder: str, limit: int | None = None) -> None:
        self.folder = folder
        self.limit = limit

    def read(self, key: str) -> bytes | None:
        """What was written under ``key``, if it is there and undamaged."""
        path = self._path(key)
        try:
            content = _content(path)
            if content is None:
                return None
            with contextlib.suppress(OSError):  # where nothing can be written, nothing is evicted
                os.utime(path)
        except OSError:
            return None
        head = len(_MAGIC) + hashlib.sha256().digest_size
        packed = content[head:]
        if content[:head] == _MAGIC + _checksum(key, packed):
            with contextlib.suppress(zlib.error):
                return zlib.decompress(packed)
        self.remove(key)
        return None

    def write(self, key: str, content: bytes) -> None:
        """Keep ``content`` under ``key``, and drop what was not used for longest if need be."""
        packed = zlib.compress(content, 1)
        if self.limit is not None and len(packed) > self.limit:
            return
        temporary = os.path.join(self.folder, f"{_TEMPORARY}{os.urandom(8).hex()}")
        try:
            with open(os.open(temporary, _CREATE, 0o600), "wb") as file:
                file.write(_MAGIC + _checksum(key, packed))
                file.write(packed)
            os.replace(temporary, self._path(key))
        except OSError:
            _delete(temporary)
        if self.limit is not None and _chance.random() * self.limit < _PARTS * len(packed):
            self.trim()

    def remove(self, key: str) -> None:
        """Drop what was written under ``key``."""
        _delete(self._path(key))

    def entries(self) -> list[Entry]:
        """All entries, in no order."""
        present = (_entry(file) for file in self._files() if _NAME.fullmatch(file.name))
        return [entry for entry in present if entry is not None]

    def trim(self) -> None:
        """Drop what was not used for longest until less than the limit is left."""
        if self.limit is None:
            return
        entries = self.entries()
        total = sum(e.size for e in entries)
        if total > self.limit:
            enough = self.limit - self.limit // _PARTS
            for entry in sorted(entries, key=lambda e: e.used):
                if total <= enough:
                    break
                _delete(entry.path)
                total -= entry.size
        self._sweep(time.time() - _ABANDONED)

    def clear(self) -> int:
        """Drop everything; how many entries there were."""
        entries = self.entries()
        for entry in entries:
            _delete(entry.path)
        self._sweep(time.time())
        return len(entries)

    def _path(self, key: str) -> str:
        return os.path.join(self.folder, key + _SUFFIX)

    def _files(self) -> Iterator[os.DirEntry[str]]:
        with contextlib.suppress(OSError), os.scandir(self.folder) as files:
            yield from files

    def _sweep(self, before: float) -> None:
        """Drop what processes that have ended have left half written."""
        for file in self._files():
            entry = _entry(file) if file.name.startswith(_TEMPORARY) else None
            if entry is not None and entry.used <= before:
                _delete(entry.path)


def cache() -> Cache | None:
    """The cache that the options ask for, or None: switched off, or its directory is unusable."""
    folder, limit = config.compilation_cache_dir, config.compilation_cache_max_size
    if folder is None or limit == 0 or not config.enable_compilation_cache:
        return None
    return _opened(folder, None if limit < 0 else limit)


@memoized(16)
def _opened(folder: str, limit: int | None) -> Cache | None:
    reason = unusable(folder)
    if reason is None:
        return Cache(folder, limit)
    if folder != OPTIONS["compilation_cache_dir"].default:
        warnings.warn(
            f"compilation_cache_dir: {folder} is not used, so programs are compiled anew in every "
            f"process: {reason}",
            stacklevel=2,
        )
    return None


def unusable(folder: str) -> str | None:
    """Why ``folder`` cannot hold a cache, or None where it can; makes it where it is not there."""
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        status = os.stat(folder)
    except OSError as e:
        return f"it cannot be made: {e.strerror}"
    if not _private(status):
        return "others own it or can write to it; make it yours alone with chmod 700"
    return None


def _private(status: os.stat_result) -> bool:
    """Whether nobody but the user of this process can have written there."""
    if not hasattr(os, "geteuid"):
        return True  # profiles of users are private where there are no such bits
    writable = status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    return status.st_uid == os.geteuid() and not writable


def _content(path: str) -> bytes | None:
    """What a file of this user's alone holds; None of anything else, such as a pipe."""
    descriptor = os.open(path, _OPEN)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or not _private(status):
            return None
        with open(descriptor, "rb", closefd=False) as file:
            return file.read()
    finally:
        os.close(descriptor)


def _checksum(key: str, packed: bytes) -> bytes:
    return hashlib.sha256(key.encode() + packed).digest()


def _entry(file: os.DirEntry[str]) -> Entry | None:
    try:
        status: Any = file.stat(follow_symlinks=False)
    except OSError:
        return None
    return Entry(file.path, status.st_size, status.st_mtime)


def _delete(path: str) -> None:
    with contextlib.suppress(OSError):
        os.unlink(path)
