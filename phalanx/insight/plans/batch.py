"""The batch of a training step: the rows that chips divide, and where arguments have them; and
weights that stay as they are, which an optimizer does not update."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from itertools import islice

from msgspec import Struct

from phalanx.base.dtypes import is_inexact
from phalanx.base.errors import ArgumentError
from phalanx.core.program import Program
from phalanx.core.types import ArrayType
from phalanx.insight.keys import keys_drawn
from phalanx.insight.plans.dimension_notes import DimensionNotes
from phalanx.insight.plans.matrix_products import Mark, walk
from phalanx.insight.plans.weight_dimensions import sides_of
from phalanx.transforms.storage import size_in_bytes

__all__ = ["LANES_ALONE", "BatchRows", "batch_of"]

_MOST_LISTED = 3  # arguments that begin with other numbers of rows
_TRIED = 8  # candidates for the rows
_ALL = 10  # tenths of the operations of products
_MANY = 5  # of them: if more lose the rows, that is told
_SUMMED = 0.25  # of the operations: where more sum over a dimension, it is a side of weights

Along = Mapping[int, int]  # by the number of an input the dimension in which it has the rows
Sizes = Set[tuple[int, int]]


class BatchRows(Struct, frozen=True):
    """What is taken for the batch.

    Attributes:
        rows: how many it has.
        along: the dimension in which an input has them, by the number of the input.
        said: these, by name.
        doubt: why it may be something else, and how to say so; "" if nothing speaks for that.
        frozen: the numbers of the inputs that are weights which stay as they are.
    """

    rows: int
    along: Mapping[int, int]
    text: str
    doubt: str
    frozen: frozenset[int] = frozenset()


LANES_ALONE = BatchRows(1, {}, "", "")  # of a step that is written for one example


def batch_of(
    program: Program, state: Set[int], names: Sequence[str], sizes: Sizes,
    arguments: Sequence[Sequence[int]], asked: int = 0,
) -> BatchRows:  # fmt: skip
    """What the batch of a step is.

    Of the dimensions with which arrays begin that are neither state nor keys, or which are their
    second, its rows are the one that products keep. They do not keep the times that a loop takes
    one after the other, nor the sides of weights that stay as they are. Of several it is one that
    no product needs all of, as attention does of a sequence; then that of most arrays.

    Args:
        program: the step.
        state: the numbers of those of its inputs that are state.
        names: those of the inputs.
        sizes: those of weights, whose gradients are sums over rows.
        arguments: the numbers of the inputs that each argument has.
        asked: how many rows there are; 0: that is open.

    Raises:
        ArgumentError: no argument has a dimension of ``asked`` rows.
    """
    keys = [key.inputs for key in keys_drawn(program)]
    others = sorted(set(range(len(program.inputs))).difference(state, *keys))
    arrays = {i: t for i in others if (t := program.input_types[i]).ndim}
    arguments = [[i for i in numbers if i in arrays] for numbers in arguments]
    tried: list[tuple[int, bool, int]] = []
    candidates = [*islice(_candidates(arrays, asked), _TRIED)]
    for n, along in enumerate(candidates):
        notes = _followed(program, along, state, sizes)
        tried.append((round(_ALL * _lost_share(notes)), notes.exchanged > 0, n))
        if tried[-1] == (0, False, n):
            break
    lost, _, best = min(tried, default=(_ALL, False, 0))

    def is_other() -> bool:
        return batch_of(program, state, names, sizes, arguments).rows != asked

    if asked and lost == _ALL and (not tried or is_other()):
        shapes = ", ".join([f"{names[i]} {t.shape}" for i, t in arrays.items()])
        raise ArgumentError(
            f"plan: batch={asked:,}: of the arguments that are no state none has a dimension of "
            f"{asked:,} that chips can divide: {shapes or 'there is none'}"
        )
    if not tried:
        return LANES_ALONE
    found = _without_weights(program, candidates[best], state, sizes, arguments)
    rows = next(arrays[i].shape[d] for i, d in found.items())
    text = ", ".join([f"dimension {d} of {names[i]}" for i, d in found.items()])
    frozen = _frozen(program, arrays, state, found, sizes, arguments)
    beginning = {i: t.shape[0] for i, t in arrays.items() if i not in frozen}
    doubt = "" if asked else _doubt(rows, names, beginning, lost > _MANY)
    return BatchRows(rows, found, text, doubt, frozen)


# ---- which dimension -----------------------------------------------------------------------------


def _candidates(arrays: Mapping[int, ArrayType], asked: int) -> Iterator[Along]:
    """Where arrays may have the rows, the likeliest first: in their first dimension or, of those of
    which that has another size, in their second; or the other way round."""
    found: list[Along] = []
    for first in (0, 1):
        for rows in [asked] if asked else _sizes_by_votes(arrays.values(), first):
            at = {i: [d for d, n in enumerate(t.shape[:2]) if n == rows] for i, t in arrays.items()}
            begin = {i: first for i, dims in at.items() if first in dims}
            either = {i: first if first in dims else dims[0] for i, dims in at.items() if dims}
            found += [along for along in (begin, either) if along and along not in found]
    if asked and not found:
        anywhere = {i: t.shape.index(asked) for i, t in arrays.items() if asked in t.shape}
        found += [anywhere] if anywhere else []
    yield from found


def _sizes_by_votes(types: Iterable[ArrayType], dimension: int) -> list[int]:
    """The sizes of a dimension: that of most arrays first, then that of the largest one."""
    having = [(t.shape[dimension], size_in_bytes(t)) for t in types if t.ndim > dimension]
    times, largest = Counter([n for n, _ in having]), dict(sorted(having))
    return sorted(times, key=lambda n: (times[n], largest[n], n), reverse=True)


def _followed(program: Program, along: Along, state: Set[int], sizes: Sizes) -> DimensionNotes:
    """What products do with the rows, if inputs have them ``along`` these dimensions."""
    marks = [
        Mark(i not in state, i in state, sequence=(along[i],) if i in along else ())
        for i in range(len(program.inputs))
    ]
    notes = DimensionNotes(sizes)
    walk(program, marks, 1.0, notes)
    return notes


def _lost_share(notes: DimensionNotes) -> float:
    """The share of operations whose results have no rows, of products that are no gradients."""
    lost = notes.by_weights.lost + notes.others.lost
    return lost / ((notes.by_weights.along + notes.others.along + lost) or 1.0)


def _without_weights(
    program: Program, along: Along, state: Set[int], sizes: Sizes,
    arguments: Sequence[Sequence[int]],
) -> Along:  # fmt: skip
    """``along`` without arrays whose side happens to be as long: those of an argument that has
    others, too, if products sum over that side."""
    found = dict(along)
    for numbers in arguments:
        own = {i: along[i] for i in numbers if i in along}
        if own and len(own) < len(along) and len(own) < len(numbers):
            notes = _followed(program, own, state, sizes)
            summed = notes.by_weights.summed + notes.others.summed
            if summed > _SUMMED * (notes.by_weights.along + notes.others.along + summed):
                found = {i: d for i, d in found.items() if i not in own}
    return found or along


def _frozen(
    program: Program, arrays: Mapping[int, ArrayType], state: Set[int], along: Along, sizes: Sizes,
    arguments: Sequence[Sequence[int]],
) -> frozenset[int]:  # fmt: skip
    """The weights that stay as they are: numbers of arguments that have no rows, some of which
    products multiply with something else."""
    frozen = [
        {i for i in numbers if is_inexact(arrays[i].dtype)}
        for numbers in arguments
        if along.keys().isdisjoint(numbers)
    ]
    multiplied = (
        sides_of(program, {*state}.union(*frozen), sizes).keys() if any(frozen) else set[int]()
    )
    return frozenset[int]().union(*[numbers for numbers in frozen if numbers & multiplied])


# ---- what is said of it --------------------------------------------------------------------------


def _doubt(rows: int, names: Sequence[str], beginning: Mapping[int, int], is_lost: bool) -> str:
    """Why the batch may be something else, and how to say so."""
    differing = [f"{names[i]} begins with {n:,}" for i, n in beginning.items() if n != rows]
    if differing:
        differing[_MOST_LISTED:] = (
            [f"{len(differing) - _MOST_LISTED} more with others"]
            if differing[_MOST_LISTED:]
            else []
        )
        doubt = f"{rows:,} rows are taken for the batch, and {', '.join(differing)}"
    elif is_lost:
        doubt = (
            f"Most products do not keep the {rows:,} rows that are taken for the batch, as where a "
            "loop runs over them"
        )
    else:
        return ""
    return doubt + "; if something else is the batch, say how many rows it has: batch=N, --batch N."
