"""State: what a function takes and gives anew, such as parameters and what an optimizer keeps."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any

from msgspec import Struct, field

from phalanx.api.stages import TracedCall
from phalanx.base.dtypes import is_floating
from phalanx.core.memoize import memoize_on
from phalanx.core.program import Equation, Program
from phalanx.core.types import ArrayType
from phalanx.insight.flow import NOTHING, Flow, Marks
from phalanx.transforms.simplify import depending

__all__ = ["Pairs", "arguments_of", "is_updated", "state_of"]

Pairs = list[tuple[int, int]]
Part = tuple[range, Any]  # of arguments or results: the numbers of its leaves, and its structure


def state_of(call: TracedCall, program: Program) -> Pairs:
    """Pairs of an input and an output of ``program``, which is what ``call`` runs or what each of
    its lanes does, by number: the one is what the other is now.

    What a reference holds is state if it is written. An argument is, if some part of the results
    has its structure and its shapes; if none has, those of its parts are that a result is like, in
    dtypes too. A single array of another dtype has new values in the same places; a number alone,
    of which results have many, is made of what it was.
    """
    first, results = len(program.inputs) - len(call.types), len(call.written)
    behind = len(program.outputs) - len(call.stored)
    pairs = [(i, o) for o, i in enumerate(call.written) if i is not None]
    pairs += [(first + i, behind + n) for n, i in enumerate(call.stored)]
    pairing = _Pairing(program, program.input_types, pairs)
    pairing.offer(_parts(call.out_tree, results))
    for argument in _arguments(call.in_tree, first):
        pairing.match(argument, True)
    return pairing.pairs


class _Pairing(Struct):
    """Parts of results, of which each is what one part of the arguments is now, at most."""

    program: Program
    types: Sequence[ArrayType]  # of its inputs
    pairs: Pairs
    _offered: dict[Any, list[range]] = field(default_factory=lambda: defaultdict(list))
    _inputs: set[int] = field(default_factory=set[int])  # of the pairs
    _outputs: set[int] = field(default_factory=set[int])

    def __post_init__(self) -> None:
        self._inputs.update([i for i, _ in self.pairs])
        self._outputs.update([o for _, o in self.pairs])

    def offer(self, parts: Iterator[Part]) -> None:
        """Take ``parts`` of the results to be new values."""
        types = self.program.output_types
        for leaves, structure in parts:
            self._offered[_kind(leaves, structure, types)].append(leaves)

    def match(self, part: Part, is_argument: bool) -> None:
        """Find what a ``part`` of the arguments is now, or else what its parts are."""
        leaves, structure = part
        kind = _kind(leaves, structure, self.types)
        offered = self._offered.get(kind, [])
        for results in [*offered] if self._inputs.isdisjoint(leaves) else ():
            pairs = [*zip(leaves, results, strict=True)]
            if not self._outputs.isdisjoint(results):
                offered.remove(results)  # it was taken, as a part of another or its whole
            elif pairs and self._are_new(pairs, is_argument):
                self.pairs += pairs
                self._inputs.update(leaves)
                self._outputs.update(results)
                return
        for inner in _children(part):
            self.match(inner, False)

    def _are_new(self, pairs: Pairs, is_argument: bool) -> bool:
        old, new = self.program.inputs, self.program.outputs
        dtypes_of = [(old[i].type.dtype, new[o].type.dtype) for i, o in pairs]
        changed = [pair for pair in dtypes_of if pair[0] != pair[1]]
        if changed and not (is_argument and all(map(is_floating, chain(*changed)))):
            return False
        (i, o), *others = pairs
        if others:
            return True
        if old[i].type.shape == ():
            return new[o] in depending(self.program, [old[i]])
        return not changed or is_updated(self.program, i, o)


def arguments_of(call: TracedCall, count: int) -> list[range]:
    """The numbers of the inputs that each argument has, of a program of ``count`` inputs."""
    return [leaves for leaves, _ in _arguments(call.in_tree, count - call.in_tree.num_leaves)]


def is_updated(program: Program, i: int, o: int) -> bool:
    """Whether output ``o`` is input ``i`` with other elements in the same places."""

    def found() -> list[Marks]:
        return _Places().run(program, [frozenset({n}) for n in range(len(program.inputs))])

    return (
        program.inputs[i] is not program.outputs[o]
        and i in memoize_on(program, "updated", found)[o]
    )


class _Places(Flow):
    """Marks are the numbers of inputs of which a value is made, element by element."""

    def step(self, e: Equation, operands: Sequence[Marks]) -> Marks:
        is_passed_on = e.prim.elements.fused or e.prim.elements.copied
        return NOTHING.union(*operands) if is_passed_on else NOTHING


def _kind(leaves: range, structure: Any, types: Sequence[ArrayType]) -> Any:
    return structure, *[types[i].shape for i in leaves]


def _arguments(in_tree: Any, start: int) -> Iterator[Part]:
    """Each argument, by position or name, of which the first leaf is input number ``start``."""
    args, kwargs = _children((range(start, start + in_tree.num_leaves), in_tree))
    yield from _children(args)
    yield from _children(kwargs)


def _parts(structure: Any, start: int) -> Iterator[Part]:
    """A tree of results, whose first leaf is output number ``start``, and its parts: the whole
    before its parts."""
    waiting: list[Part] = [(range(start, start + structure.num_leaves), structure)]
    for part in waiting:
        yield part
        waiting += _children(part)


def _children(part: Part) -> Iterator[Part]:
    start, structure = part[0].start, part[1]
    for child in structure.children():
        yield range(start, start + child.num_leaves), child
        start += child.num_leaves
