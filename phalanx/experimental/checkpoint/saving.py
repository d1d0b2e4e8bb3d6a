"""Saving a tree: every process writes the parts that it owns, and process 0 commits."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from phalanx.base import tree as trees
from phalanx.base.plain import brief
from phalanx.base.source import user_location
from phalanx.core.types import ArrayType
from phalanx.experimental.checkpoint import together, zarr
from phalanx.experimental.checkpoint.index import index_of
from phalanx.experimental.checkpoint.leaves import (
    Content,
    StoredRows,
    chunk_of,
    content,
    stored_dtype,
)
from phalanx.experimental.checkpoint.outline import outline
from phalanx.experimental.checkpoint.place import Committed, place_of
from phalanx.experimental.checkpoint.remote import Remote

if TYPE_CHECKING:
    from phalanx.processes.group import Differing

_WHO = "checkpoint.save"


def save(directory: str | os.PathLike[str], step: int, tree: Any) -> None:
    """Save a tree of arrays and numbers as the checkpoint of ``step``; returns when it is there.

    It is there as a whole or not at all, whatever ends the program: readers see no checkpoint that
    is being written. In a program of several processes all of them call it, with the same tree;
    each writes what its devices hold. Of arrays that one process has whole, process 0 writes its
    own, and of results of ``pmap`` over processes each writes its rows.

    Args:
        directory: where the checkpoints of a run are; made if it is not there. An address as in
            "s3://bucket/run" or "gs://bucket/run" is a place in a store.
        step: a number from 0 up.
        tree: nested dicts, lists, tuples and registered classes. Its leaves are Phalanx arrays,
            wherever they lie, NumPy arrays, and numbers.

    Raises:
        FileExistsError: that step is saved already.
        TypeError: a leaf is neither an array nor a number; the message names it.
        OSError: the directory cannot be written, or the disk is full; a store refuses, or does not
            answer.
        ImportError: tensorstore is not installed.

    >>> import tempfile, phalanx
    >>> from phalanx.experimental import checkpoint
    >>> directory = tempfile.mkdtemp()
    >>> checkpoint.save(directory, 100, {"w": phalanx.numpy.ones(3), "epoch": 2})
    >>> checkpoint.restore(directory)
    {'epoch': 2, 'w': Array([1., 1., 1.], dtype=float32)}
    """
    Saving(directory, step, tree, copy=False).complete()


def check_step(step: Any, who: str) -> int:
    """Raise an error if ``step`` is no number from 0 up."""
    try:
        number = step.__index__()
    except (AttributeError, TypeError):
        number = None
    if number is None or isinstance(step, bool):
        swapped = who == _WHO and not isinstance(step, (int, float, str))
        order = ". The order is save(directory, step, tree)" if swapped else ""
        raise TypeError(
            f"{who}: step must be an int, got {brief(step)}, at {user_location()}{order}"
        )
    if number < 0:
        raise ValueError(f"{who}: step must be 0 or more, got {number}, at {user_location()}")
    return number


class Saving:
    """A checkpoint that is being saved: what is to be written is known, ``complete`` writes it.

    With ``copy``, nothing that happens to the arrays of the tree changes what is written.
    """

    def __init__(self, directory: str | os.PathLike[str], step: int, tree: Any, copy: bool) -> None:
        zarr.check_installed(_WHO)
        self.place, self.step = place_of(directory), check_step(step, _WHO)
        self._outline, leaves = outline(tree, _WHO)
        contents = [content(trees.keystr(path), leaf, copy, _WHO) for path, leaf in leaves]
        self._folder: Committed | None = None
        failure = None
        if together.process() == 0:
            try:
                self._folder = self.place.writing(self.step)
            except OSError as e:
                failure = e
        self._agree(contents, failure)

    def _agree(self, contents: Sequence[Content], error: OSError | None) -> None:
        """Learn from the others where to write, and of which rows of the whole they have."""
        mine = {
            "folder": self._folder and self._folder.name,
            "failure": error and together.failure_of(error),
            "rows": rows_of(contents),
        }
        try:
            topic = f"saving step {self.step} in {self.place}"
            differing, every = together.compare(topic, by_number(map(alike, contents)), mine)
            if error is not None:
                raise error
            if every[0]["failure"]:
                raise together.raised(every[0]["failure"], 0, str(self.place))
            check_alike(differing, _WHO)
            self._contents = as_wholes(contents, [one["rows"] for one in every])
        except BaseException:
            self._abandon()
            raise
        self._path = self.place.at(every[0]["folder"])

    def complete(self) -> None:
        """Write what this process owns, and wait until the checkpoint is committed.

        Raises:
            OSError: some process cannot write.
            PeerLost: some process is gone.
        """
        name, me = f"checkpoint/{self._path}", together.process()
        try:
            failure = None
            try:
                self._write()
            except Exception as e:
                failure = e
            if me == 0:
                self._commit(name, failure)
                return
            together.report(name, str(me), failure and together.failure_of(failure))
            if failure is not None:
                raise failure
            ended = together.reported(name, "committed")
            if ended is not None:
                raise together.raised(ended, 0, str(self.place))
        finally:
            self._contents = []  # what they hold may be large
            self._abandon()

    def _write(self) -> None:
        """Write all parts, many at a time, and wait for them."""
        opening = [
            (number, c, zarr.create(self._folder_of(number), *_form(c)))
            for number, c in enumerate(self._contents)
            if not c.leaf.is_number and is_written(c)
        ]
        writing: list[tuple[int, Content, Any]] = []
        for number, c, future in opening:
            array = zarr.done(future, self._folder_of(number), f"writing tree{c.leaf.path}")
            writing += [(number, c, zarr.write(array, p.start, p.data)) for p in c.parts]
        for number, c, future in writing:
            zarr.done(future, self._folder_of(number), f"writing tree{c.leaf.path}")

    def _folder_of(self, number: int) -> Path | Remote:
        return self._path / str(number)

    def _commit(self, name: str, failure: Exception | None) -> None:
        """Let the checkpoint be seen, if all have written their parts; then tell them."""
        for other in together.others():
            ended = together.reported(name, str(other))
            if ended is not None and failure is None:
                failure = together.raised(ended, other, str(self.place))
        try:
            if failure is not None:
                raise failure
            assert self._folder is not None
            leaves = [c.leaf for c in self._contents]
            self._folder.commit(index_of(self.step, self._outline, leaves, self._folder.data))
            self._folder = None
        except Exception as e:
            together.report(name, "committed", together.failure_of(e))
            raise
        together.report(name, "committed", None)

    def _abandon(self) -> None:
        """Remove what is not committed."""
        if self._folder is not None:
            self._folder.abandon()
            self._folder = None


def is_written(c: Content) -> bool:
    """Whether this process writes of a leaf what it has; what all have whole, process 0 writes."""
    return together.process() == 0 or not c.local or c.joined is not None


def _form(c: Content) -> tuple[Sequence[int], Any, Sequence[int]]:
    """The shape, the dtype and the chunks in which a leaf is stored."""
    type: ArrayType = c.leaf.type.physical
    dtype = stored_dtype(type.dtype)
    return type.shape, dtype, chunk_of(type.shape, c.grain, dtype.itemsize)


def rows_of(contents: Sequence[Content]) -> list[tuple[int, int]]:
    """How many rows this process has of each leaf of which all have some, and in what pieces."""
    return [(c.leaf.shape[c.joined], c.grain[c.joined]) for c in contents if c.joined is not None]


def as_wholes(
    contents: Sequence[Content], rows: Sequence[Sequence[tuple[int, int]]]
) -> list[Content]:
    """The contents as parts of whole arrays, of which ``rows`` tells what each process has."""
    of_all = zip(*rows, strict=True)
    return [c if c.joined is None else _joined(c, next(of_all)) for c in contents]


def by_number(leaves: Iterable[Any]) -> dict[str, Any]:
    """What is compared of leaves, by their numbers; after the last one there is none."""
    entries = [*leaves, None]
    return {str(i): one for i, one in enumerate(entries)}


def alike(c: Content) -> list[Any]:
    """What all processes say of a leaf; of an axis over processes each may have as many rows."""
    shape = ["rows" if dim == c.joined else size for dim, size in enumerate(c.leaf.shape)]
    return [c.leaf.path, f"{c.leaf.dtype}[{', '.join(map(str, shape))}]"]


def check_alike(differing: Mapping[str, Differing], who: str) -> None:
    """Raise an error about the first leaf of which processes say different things, if any."""
    if not differing:
        return
    (some, one), (others, other), *_ = differing[min(differing, key=int)]
    if one is None or other is None or one[0] != other[0]:
        here, there = (f"tree{path[0]}" if path else "nothing" for path in (one, other))
        raise trees.TreeError(
            f"{who}: the processes save trees that differ: where process {some} has {here}, "
            f"process {others} has {there}"
        )
    if one[1] == other[1]:
        (*_, value), (*_, its) = one, other
        raise trees.TreeError(
            f"{who}: tree{one[0]} must be the same in all processes, and is {value} in process "
            f"{some} and {its} in process {others}; multihost_utils.broadcast_one_to_all gives all "
            "what process 0 has"
        )
    raise trees.TreeError(
        f"{who}: tree{one[0]} differs: it is {one[1]} in process {some}, and {other[1]} in "
        f"process {others}"
    )


def _joined(c: Content, of_all: Sequence[tuple[int, int]]) -> Content:
    """The content as rows of the whole array, of which each process has some."""
    dim = c.joined
    assert dim is not None
    rows = [count for count, _ in of_all]
    before = sum(rows[: together.process()])
    grain = list(c.grain)
    grain[dim] = math.gcd(*rows, *(length for _, length in of_all)) or 1
    shape = (*c.leaf.shape[:dim], sum(rows), *c.leaf.shape[dim + 1 :])
    if len(of_all) == 1:
        grain[dim] = c.grain[dim]
    parts = [
        StoredRows((*p.start[:dim], p.start[dim] + before, *p.start[dim + 1 :]), p.data)
        for p in c.parts
    ]
    return replace(c, leaf=c.leaf.with_shape(shape), parts=tuple(parts), grain=tuple(grain))
