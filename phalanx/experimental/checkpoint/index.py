"""The index of a checkpoint: the structure of its tree, and what its leaves are, as JSON."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from phalanx.experimental.checkpoint.leaves import Leaf
from phalanx.experimental.checkpoint.outline import Node, numbers

_FORMAT = "phalanx checkpoint 1"


def index_of(step: int, outline: Node, leaves: Sequence[Leaf]) -> str:
    """The text of an index."""
    told = {
        "format": _FORMAT,
        "step": step,
        "tree": outline,
        "leaves": [dataclasses.asdict(leaf) for leaf in leaves],
    }
    return json.dumps(told, indent=1)


@dataclass(frozen=True)
class Stored:
    """A checkpoint that is there: where, the structure of its tree, and what its leaves are."""

    folder: Path
    outline: Node
    leaves: list[Leaf]

    @classmethod
    def of(cls, folder: Path, index: str) -> Stored:
        """What an index tells.

        Raises:
            ValueError: it is none.
        """
        try:
            told = json.loads(index)
            if told["format"] != _FORMAT:
                raise ValueError(f"its format is {told['format']!r}, and this reads {_FORMAT!r}")
            stored = cls(folder, told["tree"], [Leaf.of_json(leaf) for leaf in told["leaves"]])
            if sorted(numbers(stored.outline)) != [*range(len(stored.leaves))]:
                raise ValueError("its tree and its leaves do not belong together")
            for leaf in stored.leaves:
                _ = leaf.number if leaf.is_number else None
            return stored
        except (KeyError, TypeError, ValueError) as e:
            raise ValueError(f"checkpoint: {folder} has no index that can be read: {e}") from None

    def folder_of(self, number: int) -> Path:
        """Where the array is that is leaf ``number``."""
        return self.folder / str(number)
