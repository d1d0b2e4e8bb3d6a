"""The checkpoints of a run: the newest are kept, and written while the program goes on."""

# Users' arguments are looked at, whatever their types should be.
# pyright: reportUnnecessaryIsInstance=false

from __future__ import annotations

import os
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Self, overload

from phalanx.base.source import user_location
from phalanx.experimental.checkpoint import together
from phalanx.experimental.checkpoint.place import place_of
from phalanx.experimental.checkpoint.restoring import AS_SAVED, Like, restore
from phalanx.experimental.checkpoint.saving import Saving


def steps(directory: str | os.PathLike[str]) -> list[int]:
    """The steps of the complete checkpoints in a directory, in order; none if it is not there.

    Args:
        directory: where a ``Manager`` has saved.

    Returns:
        A list of integers.

    Raises:
        NotADirectoryError: it is a file.

    >>> steps("no/such/directory")
    []
    """
    return place_of(directory).steps()


def latest(directory: str | os.PathLike[str]) -> int | None:
    """The newest step of which a complete checkpoint is in a directory; None if there is none.

    Args:
        directory: where a ``Manager`` has saved.

    Returns:
        The number of a step, or None.

    >>> latest("no/such/directory") is None
    True
    """
    return next(reversed(steps(directory)), None)


class Manager:
    """Saves the checkpoints of a run in a directory, one after the other, and keeps the newest.

    Args:
        directory: where they are; made if it is not there. An address as in "s3://bucket/run" or
            "gs://bucket/run" is a place in a store.
        keep: how many to keep, and to remove older ones; None keeps all. Those of later steps than
            the one that is saved, which lie there where a run begins anew, are neither counted nor
            removed.
        background: whether ``save`` returns when it has copied the arrays, and writes meanwhile.

    Raises:
        ValueError: ``keep`` is less than 1.

    >>> import tempfile, phalanx
    >>> from phalanx.experimental import checkpoint
    >>> with checkpoint.Manager(tempfile.mkdtemp(), keep=2) as manager:
    ...     for step in range(4):
    ...         manager.save(step, {"w": phalanx.numpy.arange(step)})
    ...     manager.wait()
    ...     print(manager.steps(), manager.restore())
    [2, 3] {'w': Array([0, 1, 2], dtype=int32)}
    """

    def __init__(
        self,
        directory: str | os.PathLike[str],
        keep: int | None = None,
        background: bool = True,
    ) -> None:
        if keep is not None and (not isinstance(keep, int) or keep < 1):
            raise ValueError(
                f"checkpoint.Manager: keep must be 1 or more, or None, got {keep!r}, at "
                f"{user_location()}"
            )
        self._place = place_of(directory)
        self.directory = self._place.folder
        self._keep = keep
        self._background = background
        self._thread = ThreadPoolExecutor(1, "checkpoint")
        self._writing: Future[None] | None = None
        self._closed = False

    def __repr__(self) -> str:
        return f"Manager({str(self.directory)!r}, keep={self._keep})"

    def save(self, step: int, tree: Any) -> None:
        """Save ``tree`` as ``checkpoint.save`` does; first waits for the one before.

        Args:
            step: the number of the step.
            tree: a tree of arrays and numbers.

        Raises:
            OSError: this cannot be written; or, in the background, the one before.
            ValueError: the manager is closed.
        """
        self.wait()
        if self._closed:
            raise ValueError(f"checkpoint.Manager: save after close, at {user_location()}")
        saving = Saving(self.directory, step, tree, copy=self._background)
        self._writing = self._thread.submit(self._finish, saving)
        if not self._background:
            self.wait()

    def _finish(self, saving: Saving) -> None:
        saving.complete()
        if self._keep is not None and together.process() == 0:
            until_now = [step for step in self._place.steps() if step <= saving.step]
            for step in until_now[: -self._keep]:
                self._place.remove(step)

    def wait(self) -> None:
        """Wait until all that is saved is on the disk.

        Raises:
            OSError: it could not be written.
            PeerLost: some process is gone that was writing its part.
        """
        writing, self._writing = self._writing, None
        if writing is not None:
            writing.result()

    @overload
    def restore(self, like: Like, step: int | None = None) -> Like: ...
    @overload
    def restore(self, like: Any = AS_SAVED, step: int | None = None) -> Any: ...
    def restore(self, like: Any = AS_SAVED, step: int | None = None) -> Any:
        """``checkpoint.restore`` from the directory, after what is being saved.

        Args:
            like: a tree like the one that was saved, of arrays or of what tells their shapes and
                shardings.
            step: the number of the step; None for the newest.
        """
        self.wait()
        return restore(self.directory, like, step)

    def steps(self) -> list[int]:
        """The steps of the complete checkpoints, in order."""
        return steps(self.directory)

    def latest(self) -> int | None:
        """The newest step of which there is a complete checkpoint; None if there is none."""
        return latest(self.directory)

    def close(self) -> None:
        """Wait for what is being saved; nothing is saved afterwards."""
        try:
            self.wait()
        finally:
            self._closed = True
            self._thread.shutdown()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()
