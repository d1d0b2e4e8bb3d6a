"""The sequences of a batch, such as those of tokens, of which chips can have parts.

They lie along a dimension that products by weights keep, as they do rows. What a product has along
two such dimensions, as scores of queries and keys, is divided along one of them: all chips need the
operand that has the other, such as keys and values (as Liu et al. 2023 pass them around), or they
add up a result.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence, Set

from msgspec import Struct

from phalanx.core.program import Equation, Program
from phalanx.insight.plans.dimensions import ATTENTION, dims_of
from phalanx.insight.plans.matrix_products import Mark, Notes, has_size, walk
from phalanx.primitives.contract import dot_general
from phalanx.transforms.products import PRODUCTS
from phalanx.transforms.storage import size_in_bytes
from phalanx.transforms.work import operations

__all__ = ["NO_SEQUENCES", "Sequences", "sequences_of"]

_MOST_LOST = 0.1  # of the operations of products by weights: what of them has no sequences


class Sequences(Struct, frozen=True):
    """What is taken for the sequences of a batch.

    Attributes:
        length: how long they are; 1 if there are none.
        along: the dimension in which an input has them, by the number of the input.
        said: these, by name.
        exchanged: bytes of what chips gather, or add up, that have parts of each sequence, for the
            whole batch.
        largest: the bytes of that for one product.
        count: how many exchanges these are.
    """

    length: int
    along: Mapping[int, int]
    said: str
    exchanged: float
    largest: float
    count: float


NO_SEQUENCES = Sequences(1, {}, "", 0.0, 0.0, 0.0)


def sequences_of(
    program: Program, state: Sequence[bool], rows: Mapping[int, int], names: Sequence[str],
    sizes: Set[tuple[int, int]],
) -> Sequences:  # fmt: skip
    """The sequences of a step: the length that most arrays of the batch share and nearly all
    products by weights keep.

    Args:
        program: the step.
        state: which of its inputs are state.
        rows: the dimension in which an input has the rows of the batch, by number.
        names: those of the inputs.
        sizes: those of weights, whose gradients chips add up as copies of the model do: how many
            elements, and matrices in one product.
    """
    shapes = {i: program.input_types[i].shape for i in rows}
    others = {i: [d for d in range(len(s)) if d != rows[i] and s[d] > 1] for i, s in shapes.items()}
    lengths = Counter([n for i, dims in others.items() for n in {shapes[i][d]: 0 for d in dims}])
    for length, _ in lengths.most_common():
        found = {i: [d for d in dims if shapes[i][d] == length] for i, dims in others.items()}
        along = {i: dims[0] for i, dims in found.items() if dims}
        marks = [
            Mark(not s, s, sequence=(along[i],) if i in along else ()) for i, s in enumerate(state)
        ]
        notes = _Exchanges(sizes)
        walk(program, marks, 1.0, notes)
        if notes.lost <= _MOST_LOST * notes.kept:
            said = ", ".join([f"dimension {d} of {names[i]}" for i, d in along.items()])
            return Sequences(length, along, said, notes.exchanged, notes.largest, notes.count)
    return NO_SEQUENCES


class _Exchanges(Notes):
    """Notes what chips exchange that have parts of sequences, and how many operations of products
    by weights keep these, or lose them."""

    products = (*PRODUCTS, *ATTENTION)

    def __init__(self, sizes: Set[tuple[int, int]]) -> None:
        self.sizes = sizes
        self.kept = self.lost = 0.0
        self.exchanged = self.largest = self.count = 0.0

    def product(self, e: Equation, marks: Sequence[Mark], often: float) -> bool:
        """Nothing is partial: what chips add up over sequences is noted here."""
        dims = dims_of(e)
        operands = [()] * len(e.inputs) if dims is None else dims.operands
        results = [()] * len(e.outputs) if dims is None else dims.results
        labelled = zip(marks, operands, strict=False)
        found = {labels[d] for m, labels in labelled for d in m.sequence if d < len(labels)} - {
            None
        }
        arrays = [
            (size_in_bytes(a.type), found.intersection(labels))
            for a, labels in zip((*e.inputs, *e.outputs), (*operands, *results), strict=False)
        ]
        keeps = any(has for _, has in arrays[len(e.inputs) :])
        if any(m.state and not m.batch for m in marks):
            if any(m.batch for m in marks):
                # windows of convolutions reach beyond a part
                self._by_weight(often * operations(e), keeps and e.prim is dot_general)
        elif len(found) > 1:
            self._two(arrays, found, often)
        elif found and not keeps and not has_size(e, self.sizes):
            (size, _) = arrays[len(e.inputs)]
            self._note(2 * size, 1, often)  # added up for all: scattered, and gathered
        return False

    def _by_weight(self, count: float, keeps: bool) -> None:
        if keeps:
            self.kept += count
        else:
            self.lost += count

    def _two(
        self, arrays: Sequence[tuple[int, Set[Hashable]]], found: Set[Hashable], often: float
    ) -> None:
        """Arrays that have sequences along two dimensions: divided along that for which the others
        are smaller."""
        others = [[size for size, has in arrays if has and label not in has] for label in found]
        least = min(others, key=sum)
        self._note(sum(least), len(least), often)

    def _note(self, size: float, count: int, often: float) -> None:
        self.exchanged += often * size
        self.count += often * count
        self.largest = max(self.largest, size)
