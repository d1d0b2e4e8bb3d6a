"""The index of a checkpoint: the structure of its tree, and what its leaves are, as JSON."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict

from phalanx.experimental.checkpoint.folder import INDEX
from phalanx.experimental.checkpoint.leaves import Leaf
from phalanx.experimental.checkpoint.outline import Node, check, numbers

_FORMAT = "phalanx checkpoint 2"


def index_of(step: int, outline: Node, leaves: Sequence[Leaf]) -> str:
    """The text of an index."""
    told = {
        "format": _FORMAT,
        "step": step,
        "tree": outline,
        "leaves": [asdict(leaf) for leaf in leaves],
    }
    return json.dumps(told | {"checksum": _checksum(told)}, indent=1)


def _checksum(told: dict[str, Any]) -> str:
    """What stands for all that an index tells, its checksum left out."""
    content = {name: part for name, part in told.items() if name != "checksum"}
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()


class Stored(Struct, frozen=True):
    """A checkpoint that is there: where, the structure of its tree, and what its leaves are."""

    folder: Path
    outline: Node
    leaves: list[Leaf]

    @classmethod
    def of(cls, folder: Path, index: bytes) -> Stored:
        """What an index tells.

        Raises:
            ValueError: it is none, or has changed since it was written.
        """
        try:
            told = json.loads(index.decode())
            _check(told)
            check(told["tree"])
            stored = cls(folder, told["tree"], [Leaf.of_json(leaf) for leaf in told["leaves"]])
            if sorted(numbers(stored.outline)) != [*range(len(stored.leaves))]:
                raise ValueError("its tree and its leaves do not belong together")
            return stored
        except (KeyError, TypeError, ValueError, RecursionError) as e:
            file = folder / INDEX
            raise ValueError(f"checkpoint: {file} is no index that can be read: {e}") from None

    def folder_of(self, number: int) -> Path:
        """Where the array is that is leaf ``number``."""
        return self.folder / str(number)


def _check(told: dict[str, Any]) -> None:
    """Raise an error if an index is of another format, or has changed since it was written."""
    if told["format"] != _FORMAT:
        raise ValueError(f"its format is {told['format']!r}, and this reads {_FORMAT!r}")
    if told["checksum"] != _checksum(told):
        raise ValueError("its checksum differs, so it has changed since it was written")
