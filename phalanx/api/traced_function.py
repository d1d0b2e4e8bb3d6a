"""Functions traced at types: programs, what they close over, and the trees of their results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from phalanx.base import tree
from phalanx.core.program import Program
from phalanx.core.refs import Ref, is_lasting, store_all
from phalanx.run.planning import RequestedShardings


class TracedFunction(Struct):
    """A function traced at types: the program, what it closes over, its tree.

    Before its results, the program gives the final values of the references in ``written``; after
    them, those of the references among its arguments, whose numbers are in ``stored``. What is
    ``requested`` are the shardings of its arguments and of all that it gives; None: no shardings.
    """

    program: Program
    captured: list[Any]
    out_tree: Any
    written: dict[Ref, Any]
    stored: tuple[int, ...]
    requested: RequestedShardings | None = None

    @property
    def reusable(self) -> bool:
        """Whether another call may use it: not where it holds values of a transformation."""
        return all(type(x) is Ref and is_lasting(x) for x in self.captured)

    @property
    def rewritten(self) -> tuple[int | None, ...]:
        """The position in ``captured`` of each reference that it writes; None: it is not there, as
        where it is written and not read."""
        places = {id(x): i for i, x in enumerate(self.captured)}
        return tuple([places.get(id(ref)) for ref in self.written])

    @property
    def flat_tree(self) -> Any:
        """The structure of all that the program gives."""
        return tree.structure([0] * len(self.program.outputs))

    def store(self, leaves: Sequence[Any], outputs: Sequence[Any]) -> Sequence[Any]:
        """The results among ``outputs``, for a call with ``leaves``; the rest go to references."""
        return store_all(self.written, [leaves[i] for i in self.stored], outputs)
