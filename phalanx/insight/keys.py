"""Random keys that a program uses up, and what they are made of.

Values that make up keys are numbered: what is computed alike of the same has the same number, on
whatever way. So a key is known again where it was taken apart and put together, and made anew.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
from msgspec import Struct

from phalanx.base.extended import is_key
from phalanx.base.recent import memoized
from phalanx.base.source import Location
from phalanx.core.memoize import memoize_on
from phalanx.core.program import Atom, Equation, Frame, Literal, Program
from phalanx.core.roles import CARRY, CHOICE, FIXED
from phalanx.core.types import ArrayType
from phalanx.insight.flow import NOTHING, Flow, Marks, Once
from phalanx.primitives.basis import broadcast, convert, random_unwrap, random_wrap, reshape
from phalanx.primitives.dynamic import dynamic_slice
from phalanx.primitives.generators import rng_bit_generator
from phalanx.primitives.random_bits import threefry2x32
from phalanx.primitives.shape import concatenate, iota, slice

__all__ = ["GENERATORS", "KeyDrawn", "KeyFlow", "KeyUse", "keys_drawn"]

GENERATORS = frozenset({threefry2x32, rng_bit_generator})
_SAME = (reshape, broadcast, random_wrap, random_unwrap)  # in other shapes, the same words
_SMALL = 64


class KeyUse(Struct, frozen=True):
    """A key used at ``place``, on a way through the programs of operations; ``children`` are what
    it was split into, if that is the use."""

    place: Location
    path: tuple[tuple[Equation, Program], ...]
    children: tuple[Marks, ...] | None = None

    def excludes(self, other: KeyUse) -> bool:
        """Whether the two are in branches of which only one is taken."""
        pairs = zip(self.path, other.path, strict=False)
        return any(e is f and p is not q for (e, p), (f, q) in pairs)

    def repeats(self, other: KeyUse) -> bool:
        """Whether the two are the same: one computation, or splits into the same children, of which
        each is looked at by itself."""
        split_alike = self.children is not None and self.children == other.children
        return split_alike or self.lines == other.lines

    @property
    def lines(self) -> frozenset[int]:
        """The lines that it comes from, as they were taken once: what is computed anew for a
        derivative has those of what it repeats."""
        return frozenset([id(e.location) for e, _ in self.path] + [id(self.place)])


class KeyDrawn(Struct, frozen=True):
    """A key that a program uses up: the numbers of the ``inputs`` of which it is made, whether it
    ``is_external``, as one of them, and whether it ``is_split``, and nothing else."""

    inputs: frozenset[int]
    is_external: bool
    is_split: bool


def keys_drawn(program: Program) -> list[KeyDrawn]:
    """The keys with which a program draws numbers, or makes others."""

    def found() -> list[KeyDrawn]:
        if not GENERATORS & program.primitives:
            return []
        flow = KeyFlow()
        marks = [flow.number(("input", v)) for v in program.inputs]
        flow.run(program, marks)
        drawn: list[KeyDrawn] = []
        for key, uses in flow.uses.items():
            every = flow.ancestors(key)
            inputs = frozenset([i for i, m in enumerate(marks) if m <= every])
            is_external = not any([flow.numbered[n][2] in GENERATORS for n in every])
            drawn.append(KeyDrawn(inputs, is_external, all([u.children for u in uses])))
        return drawn

    return memoize_on(program, "keys drawn", found)


class KeyFlow(Flow):
    """Numbers for words and keys: marks are the number of a value, or several that it may have."""

    def __init__(self) -> None:
        super().__init__()
        self.numbers: dict[Hashable, Marks] = {}
        self.numbered: list[tuple[frozenset[int], set[Equation], Any]] = []
        self.uses: dict[Any, list[KeyUse]] = {}
        self.integers: dict[Marks, int] = {}  # what is known of numbers
        self.words: dict[Marks, tuple[Any, Marks]] = {}  # of what is made by a key and a counter
        self.children: dict[Marks, Any] = {}  # of arrays of keys, of which key they are children
        self.whole: set[Marks] = set()  # those that are used otherwise than one by one

    def number(
        self, what: Hashable, of: Sequence[Marks] = (), source: Equation | None = None,
        prim: Any = None,
    ) -> Marks:  # fmt: skip
        """The number of what is known as ``what``, made of values of numbers ``of``; in each run of
        ``source`` it is another value."""
        known = self.numbers.get(what)
        if known is None:
            known = self.numbers[what] = frozenset({len(self.numbered)})
            self.numbered.append((frozenset[int]().union(*of), set[Equation](), prim))
        if source is not None:
            n: int = min(known)
            self.numbered[n][1].add(source)
        return known

    def sources(self, key: Any) -> set[Equation]:
        """The operations in each run of which the values are others."""
        return set[Equation]().union(*[self.numbered[n][1] for n in self.ancestors(key)])

    def ancestors(self, key: Any) -> set[int]:
        """The numbers of all values of which a key is made."""
        waiting, seen = [*frozenset[int]().union(*key)], set[int]()
        while waiting:
            n = waiting.pop()
            if n not in seen:
                seen.add(n)
                waiting += self.numbered[n][0]
        return seen

    def step(self, e: Equation, operands: Sequence[Marks]) -> Marks | Sequence[Marks]:
        if not any([_may_be_words(v.type) for v in e.outputs]):
            return NOTHING
        operand_keys = [self._of(a, m) for a, m in zip(e.inputs, operands, strict=True)]
        if e.prim in _SAME and operand_keys[0]:
            return operand_keys[0]
        if e.prim in GENERATORS:
            self._note(e, operand_keys)
        child = self._child(e, operand_keys)
        if child is not None:
            return child
        what = e.prim, _key_of(e.params), *operand_keys
        numbered = [
            self.number((*what, i), operand_keys, prim=e.prim) for i in range(len(e.outputs))
        ]
        if e.params.get("once"):
            self.words |= {m: (tuple(operand_keys[:2]), operand_keys[3]) for m in numbered}
        if e.prim is convert and operand_keys[0] in self.integers:
            self.integers[numbered[0]] = self.integers[operand_keys[0]]
        return numbered if e.prim.multi else numbered[0]

    # ---- children ----

    def _child(self, e: Equation, operand_keys: Sequence[Marks]) -> Marks | None:
        """The number of the words that ``e`` makes or takes out, if they are a child of a key: the
        one of so many, or what a number was folded into the key to make; these are the same."""
        if e.prim is concatenate and operand_keys[0] in self.words:
            words, counter = self.words[operand_keys[0]]
            if self._counts(counter):
                found = self.number(("children", words, counter), operand_keys)
                self.children[found] = words
                return found
            return self._number_of_child(words, counter, operand_keys)
        words = self.children.get(operand_keys[0]) if operand_keys else None
        if words is None:
            return None
        index = self._index(e, operand_keys)
        if index is None:
            self.whole.update(m for m in operand_keys if m in self.children)
            return None
        return self._number_of_child(words, index, operand_keys)

    def _index(self, e: Equation, operand_keys: Sequence[Marks]) -> Marks | int | None:
        """Which row of its first operand an operation takes out, if it is one."""
        if e.prim is dynamic_slice and e.params["sizes"][0] == 1:
            return operand_keys[1]
        if e.prim is slice and e.params["limit"][0] == e.params["start"][0] + 1:
            return e.params["start"][0]
        return None

    def _number_of_child(
        self, words: Any, index: Marks | int, operand_keys: Sequence[Marks]
    ) -> Marks:
        known = index if isinstance(index, int) else self.integers.get(index, index)
        return self.number(("child", words, known), operand_keys, prim=threefry2x32)

    def is_whole(self, words: Any, counter: tuple[Marks, ...]) -> bool:
        """Whether the children of a key are used otherwise than one by one."""
        children = self.numbers.get(("children", words, counter[-1]))
        return children is None or children in self.whole  # none: no array of keys was made of them

    def _of(self, atom: Atom, marks: Marks) -> Marks:
        """The number of an operand, which may be a constant."""
        if type(atom) is not Literal:
            return marks
        value = atom.value
        small = isinstance(value, (np.generic, np.ndarray)) and value.size <= _SMALL
        held = (value.dtype.str, value.shape, value.tobytes()) if small else id(value)
        number = self.number(("constant", held))
        if small and value.shape == () and value.dtype.kind in "iu":
            self.integers[number] = int(value)
        return number

    def _note(self, e: Equation, operand_keys: Sequence[Marks]) -> None:
        """Note that a key is used up: by drawing numbers, or by splitting it."""
        place = self.place(e)
        words = tuple(operand_keys[:2]) if e.prim is threefry2x32 else (operand_keys[0],)
        once = bool(e.params.get("once"))
        splits = once and self._counts(operand_keys[3])
        folds = once and type(e.inputs[-1]) is not Literal  # which a function of the library has
        if place is None or (folds and not splits):
            return
        children = tuple(operand_keys[2:]) if splits else None
        self.uses.setdefault(words, []).append(KeyUse(place, tuple(self.path), children))

    def _counts(self, counter: Marks) -> bool:
        """Whether a counter has all numbers from 0 on: not so where one is folded in."""
        return any(self.numbered[n][2] is iota for n in counter)

    # ---- sub-programs ----

    def _through(self, e: Equation, operands: Sequence[Marks]) -> Marks | Sequence[Marks]:
        draws = any([not GENERATORS.isdisjoint(p.primitives) for p in e.programs])
        if draws or any([_may_be_words(v.type) for v in e.outputs]):
            return super()._through(e, operands)
        return NOTHING

    def enter(self, e: Equation, frame: Frame, operands: Sequence[Marks]) -> list[Marks]:
        pairs = zip(frame.ins, operands, strict=True)
        self.whole.update(m for r, m in pairs if r is not FIXED and m in self.children)
        return [
            self._of(a, m)
            if r in (FIXED, CARRY, CHOICE)
            else self.number(("row", r, m) if m else ("row", e, i), [m], e)
            for i, (r, a, m) in enumerate(zip(frame.ins, e.inputs, operands, strict=True))
        ]

    def carry(self, e: Equation, frame: Frame, start: Sequence[Marks], once: Once) -> list[Marks]:
        first = frame.carried_in(start)
        inside = [self.number(("carry", e, i), [m], source=e) for i, m in enumerate(first)]
        if not inside:
            return inside
        before = {key: len(uses) for key, uses in self.uses.items()}
        after = frame.carried_out(once(inside))
        self.uses = {key: uses[: before.get(key, 0)] for key, uses in self.uses.items()}
        triples = [*zip(first, inside, after, strict=True)]  # what comes out as it went in stays so
        once([m if a == i else a for m, i, a in triples])  # with what one iteration leaves the next
        return [m if a == i else i for m, i, a in triples]

    def leave(
        self, e: Equation, frame: Frame, operands: Sequence[Marks], carry: Sequence[Marks],
        results: Sequence[Marks],
    ) -> list[Marks]:  # fmt: skip
        return [
            m if r is FIXED else self.number(("result", e, i, m), [m])
            for i, (r, m) in enumerate(zip(frame.outs, results, strict=True))
        ]


@memoized(1024)
def _may_be_words(type: ArrayType) -> bool:
    return is_key(type.dtype) or type.dtype.kind in "iu"


def _key_of(params: dict[str, Any]) -> Hashable:
    return tuple([(name, str(value)) for name, value in params.items()])
