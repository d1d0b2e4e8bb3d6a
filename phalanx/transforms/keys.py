"""Keys become words: a program on arrays of keys, as one on the words that devices hold.

Devices hold an array of keys as an array of words, with one dimension more: the last. To an
operation that moves elements this is one more axis of lanes, so its batching rule gives the
operation on words. To one that runs programs it is nothing at all: rows, lanes and blocks are
counted from the first dimension, so the same operation runs the programs on words.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from phalanx.base.extended import WORD, KeyType, is_key
from phalanx.base.source import replaying
from phalanx.core.axes import Axis
from phalanx.core.primitive import Primitive
from phalanx.core.program import Atom, Equation, Literal, Program, Var
from phalanx.core.trace import ROOT, current, entering
from phalanx.core.types import typeof
from phalanx.ops.basis import move, random_unwrap, random_wrap
from phalanx.ops.compare import eq, ne
from phalanx.ops.reduce import reduce_and, reduce_or
from phalanx.ops.shape import slice_dim, squeeze
from phalanx.transforms.derive import derive, keep
from phalanx.transforms.stage import Stage

Held = tuple[Any, int | None]  # a value, and the dimension of its words if it stands for keys


def on_words(program: Program) -> Program:
    """``program`` with words, in a last dimension, in place of keys; itself if it has none."""
    if not _has_keys(program):
        return program

    def run(*inputs: Any) -> tuple[list[Any], None]:
        return _Writing(current()).run(program, inputs), None  # type: ignore[arg-type]

    types = [t.physical for t in program.input_types]
    return derive(program, "on words", run, types).program


def _has_keys(program: Program) -> bool:
    def look() -> bool:
        atoms = [a for e in program.equations for a in (*e.inputs, *e.outputs)]
        types = {a.type for a in (*program.inputs, *atoms, *program.outputs)}
        inner = (p for e in program.equations if e.prim.frame is not None for p in e.programs)
        return any([is_key(t.dtype) for t in types]) or any(map(_has_keys, inner))

    return keep(program, "has keys", look)


def _runs_on_keys(e: Equation) -> bool:
    return e.prim.frame is not None and any(map(_has_keys, e.programs))


class _Writing:
    """A program on words under construction, in ``stage``."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.words: dict[Atom, Held] = {}  # of the keys in the old program
        self.renamed: dict[Atom, Atom] = {}  # what has another name in the new one

    def run(self, program: Program, inputs: Sequence[Any]) -> list[Any]:
        """The results of ``program``, which takes ``inputs``."""
        for var, value in zip(program.inputs, inputs, strict=True):
            self._define(var, (value, var.type.ndim))
        with replaying() as at:
            for e in program.equations:
                at(e.location)
                self._write(e)
        return [self.stage.tracer(self._whole(a)) for a in program.outputs]

    def _write(self, e: Equation) -> None:
        if _runs_on_keys(e):
            operands = [self._whole(a) for a in e.inputs]
            outputs = tuple(map(self._result, e.outputs))
            self.stage.write(Equation(e.prim, operands, _on_words(e), outputs, e.location))
        elif any([is_key(a.type.dtype) for a in (*e.inputs, *e.outputs)]):
            rule = _RULES.get(e.prim, _move_lanes)
            results = rule(e, [self._held(a) for a in e.inputs])
            for var, held in zip(e.outputs, results, strict=True):
                self._define(var, held)
        else:
            self.stage.write(e.renamed(self.renamed))

    def _result(self, var: Var) -> Var:
        """What stands for a result of an operation that gives words in the last dimension."""
        if not is_key(var.type.dtype):
            return var
        words = Var(var.type.physical)
        self.words[var] = self.stage.tracer(words), var.type.ndim
        return words

    def _define(self, var: Var, held: Held) -> None:
        if is_key(var.type.dtype):
            self.words[var] = held
        else:
            self.renamed[var] = self.stage.atom(held[0])

    def _held(self, atom: Atom) -> Held:
        if type(atom) is Literal and is_key(atom.type.dtype):
            with entering(ROOT):
                return random_unwrap(atom.value), atom.type.ndim
        if atom in self.words:
            return self.words[atom]
        return self.stage.tracer(self.renamed.get(atom, atom)), None

    def _whole(self, atom: Atom) -> Atom:
        """What stands for ``atom``, the words of keys in the last dimension."""
        if not is_key(atom.type.dtype):
            return self.renamed.get(atom, atom)
        return self.stage.atom(_words_last(*self._held(atom)))


def _on_words(e: Equation) -> dict[str, Any]:
    """The parameters of an operation that runs its programs on words."""
    frame = e.prim.frame(e.params)  # type: ignore[misc]
    programs = tuple(map(on_words, frame.programs))
    condition = frame.condition and on_words(frame.condition)
    return e.prim.rule("reframe")(e.params, replace(frame, programs=programs, condition=condition))


def _words_last(value: Any, dim: int | None) -> Any:
    return value if dim is None else move(value, dim, typeof(value).ndim - 1)


# ---- operations -----------------------------------------------------------------------------


def _move_lanes(e: Equation, operands: Sequence[Held]) -> list[Held]:
    """An operation that moves keys as wholes moves each of their words likewise."""
    words = next(typeof(x).shape[dim] for x, dim in operands if dim is not None)
    values, dims = zip(*operands, strict=True)
    rule = e.prim.rule("batch")
    params = {name: WORD if isinstance(x, KeyType) else x for name, x in e.params.items()}
    results, at = rule(Axis(None, words), values, dims, **params)
    held = zip(results, at, strict=True) if e.prim.multi else [(results, at)]
    return [
        (x, dim) if is_key(var.type.dtype) else _same_in_all(x, dim)
        for var, (x, dim) in zip(e.outputs, held, strict=True)
    ]


def _same_in_all(x: Any, dim: int | None) -> Held:
    """The value that all lanes have."""
    return x if dim is None else squeeze(slice_dim(x, 0, 1, dim), (dim,)), None


def _compare(reduce: Callable[..., Any]) -> Callable[[Equation, Sequence[Held]], list[Held]]:
    """Keys are equal where all of their words are."""

    def rule(e: Equation, operands: Sequence[Held]) -> list[Held]:
        x, y = (_words_last(*held) for held in operands)
        return [(reduce(e.prim(x, y), dims=(typeof(x).ndim - 1,)), None)]

    return rule


def _wrap(e: Equation, operands: Sequence[Held]) -> list[Held]:
    ((words, _),) = operands
    return [(words, typeof(words).ndim - 1)]


def _unwrap(e: Equation, operands: Sequence[Held]) -> list[Held]:
    return [(_words_last(*operands[0]), None)]


_RULES: dict[Primitive, Callable[[Equation, Sequence[Held]], list[Held]]] = {
    random_wrap: _wrap,
    random_unwrap: _unwrap,
    eq: _compare(reduce_and),
    ne: _compare(reduce_or),
}
