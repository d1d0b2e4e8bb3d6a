"""The batch of a training step: the rows that chips divide, and where arguments have them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence, Set

from msgspec import Struct

from phalanx.base.errors import ArgumentError
from phalanx.core.program import Equation, Frame, Program
from phalanx.core.types import ArrayType
from phalanx.insight.flow import NOTHING, Flow, Marks
from phalanx.insight.keys import keys_drawn
from phalanx.transforms.storage import size_in_bytes

__all__ = ["LANES_ALONE", "BatchRows", "batch_of"]

_TOLD = 3  # arguments that begin with other numbers of rows


class BatchRows(Struct, frozen=True):
    """What is taken for the batch.

    Attributes:
        rows: how many it has.
        along: the dimension in which an input has them, by the number of the input.
        said: these, by name.
        doubt: why it may be something else, and how to say so; "" if nothing speaks for that.
    """

    rows: int
    along: Mapping[int, int]
    said: str
    doubt: str


LANES_ALONE = BatchRows(1, {}, "", "")  # of a step that is written for one example


def batch_of(program: Program, state: Set[int], names: Sequence[str], asked: int = 0) -> BatchRows:
    """What the batch of a step is, whose inputs with these numbers are ``state``: ``asked`` rows,
    or as many as most arrays begin with that are neither state nor keys.

    A loop takes the rows of what it runs over one after the other. They are times rather than
    examples, if there is an array that no loop runs over; and then cannot be parted.

    Raises:
        ArgumentError: no argument has a dimension of ``asked`` rows.
    """
    keys = [key.inputs for key in keys_drawn(program)]
    others = sorted(set(range(len(program.inputs))).difference(state, *keys))
    arrays = {i: t for i in others if (t := program.input_types[i]).ndim}
    scanned = _scanned(program).intersection(arrays)
    first = {i: int(i in scanned and bool(arrays.keys() - scanned)) for i in arrays}
    rows = asked or _most([t for i, t in arrays.items() if not first[i]])
    found = {i: d for i, d in first.items() if arrays[i].shape[d : d + 1] == (rows,)}
    if not found:  # where else
        behind = {i: t.shape[first[i] :] for i, t in arrays.items()}
        found = {i: first[i] + s.index(rows) for i, s in behind.items() if rows in s}
    if asked and not found:
        shapes = ", ".join([f"{names[i]} {t.shape}" for i, t in arrays.items()])
        raise ArgumentError(
            f"plan: batch={asked:,}: of the arguments that are no state none has a dimension of "
            f"{asked:,} that chips can divide: {shapes or 'there is none'}"
        )
    said = ", ".join([f"dimension {d} of {names[i]}" for i, d in found.items()])
    differing = {} if asked else {i: t.shape[0] for i, t in arrays.items() if t.shape[0] != rows}
    doubt = ""
    if differing:
        sizes = [f"{names[i]} begins with {n:,}" for i, n in differing.items()]
        sizes[_TOLD:] = [f"{len(sizes) - _TOLD} more with others"] if sizes[_TOLD:] else []
        doubt = f"{rows:,} rows are taken for the batch, and {', '.join(sizes)}"
    elif not asked and scanned.intersection(found):
        doubt = f"A loop runs over the {rows:,} rows that are taken for the batch"
    if doubt:
        doubt += "; if something else is the batch, say how many rows it has: batch=N, --batch N."
    return BatchRows(rows, found, said, doubt)


def _most(types: Sequence[ArrayType]) -> int:
    times = Counter([t.shape[0] for t in types])
    order = [(times[t.shape[0]], size_in_bytes(t), t.shape[0]) for t in types]
    return max(order, default=(0, 0, 1))[-1]


def _scanned(program: Program) -> set[int]:
    """The numbers of the inputs whose first dimension a loop runs over."""
    flow = _Scanned()
    flow.run(program, [frozenset({n}) for n in range(len(program.inputs))])
    return flow.found


class _Scanned(Flow):
    """Marks are the numbers of inputs of which a value is made, element by element."""

    def __init__(self) -> None:
        super().__init__()
        self.found: set[int] = set()

    def step(self, e: Equation, operands: Sequence[Marks]) -> Marks:
        return NOTHING.union(*operands) if e.prim.elements.fused else NOTHING

    def enter(self, e: Equation, frame: Frame, operands: Sequence[Marks]) -> list[Marks]:
        if not frame.is_loop:
            return super().enter(e, frame, operands)
        rows = [bool(role.layout and role.layout[0]) for role in frame.ins]
        self.found.update(*[v for v, r in zip(operands, rows, strict=True) if r])
        return [NOTHING if r else v for v, r in zip(operands, rows, strict=True)]

    def leave(
        self, e: Equation, frame: Frame, operands: Sequence[Marks], carry: Sequence[Marks],
        results: Sequence[Marks],
    ) -> list[Marks]:  # fmt: skip
        """What runs of a loop stack begins with these runs, whatever it is made of."""
        outs = super().leave(e, frame, operands, carry, results)
        stacked = [frame.is_loop and bool(role.layout) for role in frame.outs]
        return [NOTHING if s else v for v, s in zip(outs, stacked, strict=True)]
