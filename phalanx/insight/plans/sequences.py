"""The sequences of a batch, such as those of tokens, of which chips can have parts.

They lie along a dimension that products by weights keep, as they do rows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence, Set

from msgspec import Struct

from phalanx.core.program import Program
from phalanx.insight.plans.dimension_notes import DimensionNotes
from phalanx.insight.plans.matrix_products import Mark, walk

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
    text: str
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
        notes = DimensionNotes(sizes)
        walk(program, marks, 1.0, notes)
        if notes.by_weights.along and notes.by_weights.lost <= _MOST_LOST * notes.by_weights.along:
            text = ", ".join([f"dimension {d} of {names[i]}" for i, d in along.items()])
            return Sequences(length, along, text, notes.exchanged, notes.largest, notes.count)
    return NO_SEQUENCES
