"""Keys become words: a program on arrays of keys, as one on the words that devices hold.

Devices hold an array of keys as an array of words, with one dimension more: the last. To an
operation that moves elements this is one more axis of lanes, so its batching rule gives the
operation on words. To one that runs programs it is nothing at all: rows, lanes and blocks are
counted from the first dimension, so the same operation runs the programs on words.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from msgspec import Struct

from phalanx.base.extended import WORD, KeyType, is_key
from phalanx.core.axes import Axis
from phalanx.core.interpret import interpret
from phalanx.core.memoize import memoize_on
from phalanx.core.primitive import Primitive
from phalanx.core.program import Equation, Literal, Program
from phalanx.core.trace import ROOT, current, entering
from phalanx.core.types import ArrayType, typeof
from phalanx.primitives.basis import move, random_unwrap, random_wrap
from phalanx.primitives.compare import eq, ne
from phalanx.primitives.reduce import reduce_and, reduce_or
from phalanx.primitives.shape import slice_dim, squeeze
from phalanx.transforms.derive import derive


class KeyWords(Struct, frozen=True):
    """In place of an array of keys: their words, in dimension ``dim`` of ``value``."""

    value: Any
    dim: int

    @property
    def last(self) -> Any:
        """The words, in the last dimension."""
        return move(self.value, self.dim, typeof(self.value).ndim - 1)


def on_words(program: Program) -> Program:
    """``program`` with words, in a last dimension, in place of keys; itself if it has none."""
    if not _has_keys(program):
        return program

    def run(*inputs: Any) -> tuple[list[Any], None]:
        pairs = zip(program.input_types, inputs, strict=True)
        results = interpret(program, [_words_of(t, x) for t, x in pairs], _step, _constant)
        return [y.last if isinstance(y, KeyWords) else y for y in results], None

    types = [t.physical for t in program.input_types]
    return derive(program, "on words", run, types).program


def _has_keys(program: Program) -> bool:
    def look() -> bool:
        atoms = [a for e in program.walk() for a in (*e.inputs, *e.outputs)]
        return any([is_key(a.type.dtype) for a in (*program.inputs, *atoms, *program.outputs)])

    return memoize_on(program, "has keys", look)


def _words_of(type: ArrayType, x: Any) -> Any:
    """What stands for a value of ``type`` that is given as ``x``, words last."""
    return KeyWords(x, type.ndim) if is_key(type.dtype) else x


def _constant(literal: Literal) -> Any:
    if not is_key(literal.type.dtype):
        return literal.value
    with entering(ROOT):
        return _words_of(literal.type, random_unwrap(literal.value))


def _step(e: Equation, operands: tuple[Any, ...]) -> Any:
    """The results of an equation, words in place of keys among them and its operands."""
    frame = e.frame
    if frame is not None and any(map(_has_keys, frame.subprograms)):
        values = [x.last if isinstance(x, KeyWords) else x for x in operands]
        results = e.prim(*values, **frame.rewritten(on_words).to_params(e.params))
        return [_words_of(v.type, y) for v, y in zip(e.outputs, results, strict=True)]
    if any([is_key(a.type.dtype) for a in (*e.inputs, *e.outputs)]):
        return _RULES.get(e.prim, _move_lanes)(e, operands)
    return current().process(e.prim, operands, e.params)


# ---- operations -----------------------------------------------------------------------------


def _move_lanes(e: Equation, operands: Sequence[Any]) -> Any:
    """An operation that moves keys as wholes moves each of their words likewise."""
    pairs = [(x.value, x.dim) if isinstance(x, KeyWords) else (x, None) for x in operands]
    words = next(typeof(x).shape[dim] for x, dim in pairs if dim is not None)
    values, dims = zip(*pairs, strict=True)
    params = {name: WORD if isinstance(x, KeyType) else x for name, x in e.params.items()}
    out, at = e.prim.rule("batch")(Axis(None, words), values, dims, **params)
    if not e.prim.multi:
        return _moved(e.outputs[0].type, out, at)
    return [_moved(v.type, x, dim) for v, x, dim in zip(e.outputs, out, at, strict=True)]


def _moved(type: ArrayType, x: Any, dim: int | None) -> Any:
    """The value in place of a result of ``type``; ``dim`` has its words, or its lanes."""
    if dim is None:
        return x
    return KeyWords(x, dim) if is_key(type.dtype) else squeeze(slice_dim(x, 0, 1, dim), (dim,))


def _compare(reduce: Callable[..., Any]) -> Callable[[Equation, Sequence[KeyWords]], Any]:
    """Keys are equal where all of their words are."""

    def rule(e: Equation, operands: Sequence[KeyWords]) -> Any:
        x, y = (words.last for words in operands)
        return reduce(e.prim(x, y), dims=(typeof(x).ndim - 1,))

    return rule


def _wrap(e: Equation, operands: Sequence[Any]) -> KeyWords:
    (words,) = operands
    return KeyWords(words, typeof(words).ndim - 1)


def _unwrap(e: Equation, operands: Sequence[KeyWords]) -> Any:
    return operands[0].last


_RULES: dict[Primitive, Callable[[Equation, Sequence[Any]], Any]] = {
    random_wrap: _wrap,
    random_unwrap: _unwrap,
    eq: _compare(reduce_and),
    ne: _compare(reduce_or),
}
