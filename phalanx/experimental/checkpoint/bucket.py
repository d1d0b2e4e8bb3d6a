"""The folders of checkpoints in an object store, where nothing can be renamed or locked.

    s3://bucket/runs/a/step-120/checkpoint.json     written last: it makes the checkpoint complete
    s3://bucket/runs/a/step-120/5f3a9c01/0/...      the array that is leaf 0

No two writers write one object but the index, which the second one finds there. Whoever begins to
write removes what is there without an index, which somebody left who was killed; so one program at
a time writes to a folder. Whoever removes a checkpoint removes its index first.
"""

from __future__ import annotations

import contextlib
import errno
import re
import secrets
from collections.abc import Generator
from typing import Any

from phalanx.experimental.checkpoint import zarr
from phalanx.experimental.checkpoint.folder import INDEX, exists
from phalanx.experimental.checkpoint.remote import Remote

_OBJECT = re.compile(r"step-(0|[1-9]\d*)/(.*)", re.DOTALL)


class Bucket:
    """A folder of a store, in which the checkpoints of a run are.

    Raises:
        ImportError: tensorstore is not installed.
    """

    def __init__(self, folder: Remote) -> None:
        zarr.check_installed("checkpoint")
        self.folder = folder

    def __str__(self) -> str:
        return str(self.folder)

    def exists(self) -> bool:
        """A store has no folders, so that one may have nothing in it, but is not missing."""
        return True

    def at(self, name: str) -> Remote:
        """The folder of that name."""
        return self.folder / name

    def steps(self) -> list[int]:
        """The steps of complete checkpoints, in order.

        Raises:
            OSError: the store does not answer, or refuses; or there is no such bucket.
        """
        return sorted(step for step, complete in self.found().items() if complete)

    def found(self) -> dict[int, bool]:
        """The steps of which there is anything, each with whether it is complete."""
        found: dict[int, bool] = {}
        for key in self._done(self.store().list(), "listing"):
            if known := _OBJECT.fullmatch(key.decode()):
                step = int(known[1])
                found[step] = found.get(step, False) or known[2] == INDEX
        return found

    def store(self) -> Any:
        """The objects, by their names in this folder."""
        spec = self.folder.kvstore()
        return self._done(zarr.tensorstore.KvStore.open(spec), "opening")

    def _done(self, future: Any, doing: str) -> Any:
        return done(future, self.folder, doing)

    @contextlib.contextmanager
    def reading(self, step: int) -> Generator[bytes]:
        """A block for reading the checkpoint of ``step``; gives its index.

        Raises:
            FileNotFoundError: it is not there.
            OSError: the store does not answer, or refuses.
        """
        read = self._done(self.store().read(_index_of(step)), f"reading step {step}")
        if read.state != "value":
            raise FileNotFoundError(errno.ENOENT, "checkpoint: it is not there", str(self.folder))
        yield read.value

    def writing(self, step: int) -> Upload:
        """A checkpoint of ``step`` that begins to be written."""
        return Upload(self, step)

    def remove(self, step: int) -> None:
        """Remove a checkpoint, the index first: from then on nobody begins to read it."""
        store = self.store()
        self._done(store.write(_index_of(step), None), f"removing step {step}")
        empty(store, self.folder, f"step-{step}")


def done(future: Any, folder: Remote, doing: str) -> Any:
    """The result of what was asked of a store.

    Raises:
        OSError: it does not answer, or refuses; or there is no such bucket.
    """
    try:
        return future.result()
    except ValueError as e:
        refused = folder.refusal(str(e), doing)
        why = f"checkpoint: {doing}: {str(e).partition(' [')[0]}"
        raise refused or OSError(errno.ENOENT, why, str(folder)) from None


def _index_of(step: int) -> str:
    return f"step-{step}/{INDEX}"


def empty(store: Any, folder: Remote, name: str) -> None:
    """Remove all objects whose names begin with ``name`` and a slash, and none that a store lists
    besides.

    Raises:
        OSError: the store does not answer, or refuses.
    """
    first, last = f"{name}/", f"{name}0"  # which comes after the slash
    keys = done(store.list(zarr.tensorstore.KvStore.KeyRange(first, last)), folder, "listing")
    removed = [store.write(key, None) for key in keys if key.startswith(first.encode())]
    for each in removed:
        done(each, folder, f"removing {name}")


class Upload:
    """The objects of a checkpoint of ``step``, which its index makes complete.

    Raises:
        FileExistsError: there is a checkpoint of that step.
        OSError: the store does not answer, or refuses.
    """

    def __init__(self, bucket: Bucket, step: int) -> None:
        self._step, self.path, self.data = step, bucket.at(f"step-{step}"), secrets.token_hex(4)
        self.name = f"step-{step}/{self.data}"
        self._store = bucket.store()
        found = bucket.found()
        if found.get(step):
            raise exists(self.path, step)
        for left in (left for left, complete in found.items() if not complete):
            empty(self._store, bucket.folder, f"step-{left}")
        nobody = done(self._store.read(_index_of(step)), self.path, "beginning")
        self._absent = nobody.stamp.generation

    def commit(self, index: str) -> None:
        """Write the index, if nobody else has.

        Raises:
            FileExistsError: somebody else has committed a checkpoint of that step.
            OSError: the store does not answer, or refuses.
        """
        content = index.encode()
        writing = self._store.write(_index_of(self._step), content, if_equal=self._absent)
        if not done(writing, self.path, "writing the index").generation:
            raise exists(self.path, self._step)

    def abandon(self) -> None:
        """Remove what has been written, as far as the store lets; the next writer does, too."""
        with contextlib.suppress(OSError):
            empty(self._store, self.path, self.name)
