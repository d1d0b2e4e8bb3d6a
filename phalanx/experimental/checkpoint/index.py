"""The index of a checkpoint: the structure of its tree, and what its leaves are, as JSON."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict

from phalanx.experimental.checkpoint.folder import INDEX
from phalanx.experimental.checkpoint.leaves import Leaf
from phalanx.experimental.checkpoint.outline import Node, check, numbers
from phalanx.experimental.checkpoint.remote import Remote

_FORMAT = "phalanx checkpoint 2"
_DATA = re.compile("([0-9a-f]{8})?")


def index_of(step: int, outline: Node, leaves: Sequence[Leaf], data: str = "") -> str:
    """The text of an index; ``data`` is the folder of the arrays, if they are not beside it."""
    fields = {
        "format": _FORMAT,
        "step": step,
        "tree": outline,
        "leaves": [asdict(leaf) for leaf in leaves],
    }
    fields |= {"data": data} if data else {}
    return json.dumps(fields | {"checksum": _checksum(fields)}, indent=1)


def _checksum(fields: dict[str, Any]) -> str:
    """What stands for all that an index tells, its checksum left out."""
    content = {name: part for name, part in fields.items() if name != "checksum"}
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()


class Stored(Struct, frozen=True):
    """A checkpoint that is there: where, the structure of its tree, and what its leaves are."""

    folder: Path | Remote
    outline: Node
    leaves: list[Leaf]
    data: str = ""

    @classmethod
    def of(cls, folder: Path | Remote, index: bytes) -> Stored:
        """What an index tells.

        Raises:
            ValueError: it is none, or has changed since it was written.
        """
        try:
            fields = json.loads(index.decode())
            _check(fields)
            check(fields["tree"])
            leaves = [Leaf.of_json(leaf) for leaf in fields["leaves"]]
            stored = cls(folder, fields["tree"], leaves, fields.get("data", ""))
            if sorted(numbers(stored.outline)) != [*range(len(stored.leaves))]:
                raise ValueError("its tree and its leaves do not belong together")
            return stored
        except (KeyError, TypeError, ValueError, RecursionError) as e:
            file = folder / INDEX
            raise ValueError(f"checkpoint: {file} is no index that can be read: {e}") from None

    def folder_of(self, number: int) -> Path | Remote:
        """Where the array is that is leaf ``number``."""
        return (self.folder / self.data if self.data else self.folder) / str(number)


def _check(fields: dict[str, Any]) -> None:
    """Raise an error if an index is of another format, or has changed since it was written."""
    if fields["format"] != _FORMAT:
        raise ValueError(f"its format is {fields['format']!r}, and this reads {_FORMAT!r}")
    if not _DATA.fullmatch(fields.get("data", "")):
        raise ValueError(f"it says that arrays are in {fields['data']!r:.80}")
    if fields["checksum"] != _checksum(fields):
        raise ValueError("its checksum differs, so it has changed since it was written")
