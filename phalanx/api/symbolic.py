"""Shapes in words: of constants. Lengths that are not known have no place in programs here.

Every type in a program has a shape of integers, and rules compute with them. A function is exported
for each shape that is needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import index
from typing import Any, NoReturn

from phalanx.api.aot import ShapeDtypeStruct
from phalanx.base import tree
from phalanx.base.errors import InconclusiveDimensionOperation
from phalanx.base.source import user_location

_INSTEAD = (
    "all lengths are integers here: export the function once for each shape that is needed, or for "
    "the largest, with padding"
)


def _refuse(who: str, what: str) -> NoReturn:
    raise InconclusiveDimensionOperation(f"{who}: {what}, at {user_location()}; {_INSTEAD}")


class SymbolicScope:
    """Refused: it would hold what is said of lengths that are not known.

    Args:
        constraints_str: what holds of its lengths, such as "n >= 2": one text, or several.

    >>> SymbolicScope()  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    phalanx.errors.InconclusiveDimensionOperation: SymbolicScope: there are no ...
    """

    def __init__(self, constraints_str: Sequence[str] = ()) -> None:
        _refuse("SymbolicScope", "there are no symbolic dimensions")


def symbolic_shape(
    shape_spec: str | None,
    *,
    constraints: Sequence[str] = (),
    scope: Any = None,
    like: Sequence[int | None] | None = None,
) -> tuple[int, ...]:
    """The shape that ``shape_spec`` spells: integers between commas.

    Args:
        shape_spec: such as "2, 3"; "_" and "..." stand for lengths of ``like``, None for "...".
        constraints: what is said of lengths that are not known: nothing.
        scope: refused.
        like: a shape.

    Returns:
        A tuple of integers.

    Raises:
        InconclusiveDimensionOperation: a length is not known.
        ValueError: the words are no shape, or do not go with ``like``.

    >>> symbolic_shape("2, _, ...", like=(2, 3, 4, 5))
    (2, 3, 4, 5)
    >>> symbolic_shape("batch, 3")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    phalanx.errors.InconclusiveDimensionOperation: symbolic_shape: 'batch' is not known, ...
    """
    if constraints or scope is not None:
        _refuse("symbolic_shape", "there is nothing to say of symbolic dimensions")
    known = None if like is None else tuple(like)
    words = ["..."] if shape_spec is None else _words(shape_spec)
    if "..." in words:
        if words.index("...") != len(words) - 1:
            raise ValueError(f"symbolic_shape: '...' must come last, got {shape_spec!r}")
        if known is None:
            raise ValueError("symbolic_shape: '...' stands for lengths of `like`, which is missing")
        before = len(words) - 1
        words = [*words[:before], *["_"] * (len(known) - before)]
    if known is not None and len(known) != len(words):
        raise ValueError(
            f"symbolic_shape: {shape_spec!r} has {len(words)} dimensions, `like` {len(known)}"
        )
    rest = known or (None,) * len(words)
    return tuple([_length(word, n) for word, n in zip(words, rest, strict=True)])


def _words(spec: str) -> list[str]:
    inside = spec.strip()
    if inside.startswith("(") and inside.endswith(")"):
        inside = inside[1:-1]
    return [word.strip() for word in inside.rstrip(", ").split(",") if word.strip()]


def _length(word: str, like: int | None) -> int:
    if word == "_":
        if like is None:
            raise ValueError("symbolic_shape: '_' stands for a length of `like`, which has none")
        return index(like)
    if not word.isdecimal():
        _refuse("symbolic_shape", f"{word!r} is not known")
    if like is not None and int(word) != like:
        raise ValueError(f"symbolic_shape: {word} stands where `like` has {like}")
    return int(word)


def symbolic_args_specs(
    args: Any, shapes_specs: Any, constraints: Sequence[str] = (), scope: Any = None
) -> Any:
    """``args`` as shapes and dtypes, with the shapes that are spelled.

    Args:
        args: a tree of arrays, or of what has a shape and a dtype.
        shapes_specs: None, where shapes are those of ``args``; a string for all of them, as
            ``symbolic_shape`` takes it; or a tree of strings and None that is a prefix of ``args``.
        constraints: as for ``symbolic_shape``.
        scope: as for ``symbolic_shape``.

    Returns:
        A tree of ``ShapeDtypeStruct``.

    Raises:
        InconclusiveDimensionOperation: a length is not known.
        ValueError: a string is no shape, or does not go with its argument.

    >>> import numpy as np
    >>> symbolic_args_specs((np.ones((2, 3), "float32"),), "_, 4")
    (ShapeDtypeStruct(shape=(2, 4), dtype=float32),)
    """
    if isinstance(shapes_specs, (str, type(None))):
        specs = [shapes_specs] * len(tree.leaves(args))
    else:
        specs = tree.broadcast_prefix(shapes_specs, args, is_leaf=lambda x: x is None)
    leaves, treedef = tree.flatten(args)

    def spelled(x: Any, spec: str | None) -> ShapeDtypeStruct:
        given = ShapeDtypeStruct.like(x)
        words = _words(spec) if spec is not None else ["..."]
        pairs = zip(words, given.shape, strict=False)
        places = [n if w in ("_", "...") else None for w, n in pairs]
        wanted = [*places, *given.shape[len(places) :]]
        shape = symbolic_shape(spec, constraints=constraints, scope=scope, like=wanted)
        return given.update(shape=shape)

    return treedef.unflatten([spelled(x, s) for x, s in zip(leaves, specs, strict=True)])


def is_symbolic_dim(p: Any) -> bool:
    """Whether ``p`` is a length that is not known: none is.

    Args:
        p: a length: an integer, or a symbolic one.

    >>> is_symbolic_dim(3)
    False
    """
    return False


def symbolic_dim_bounds(dimension: Any) -> tuple[int, int]:
    """The least and the greatest length that ``dimension`` may be: itself.

    Args:
        dimension: a symbolic length.

    Returns:
        A pair of integers.

    >>> symbolic_dim_bounds(3)
    (3, 3)
    """
    return index(dimension), index(dimension)
