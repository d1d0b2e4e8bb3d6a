"""Shapes in words, with lengths that are not known: ``symbolic_shape``."""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

from phalanx.api.aot import ShapeDtypeStruct
from phalanx.base import lengths, tree
from phalanx.base.lengths import Length, Lengths
from phalanx.base.source import user_location
from phalanx.core.types import Types


class SymbolicScope:
    """Lengths that can occur together in expressions, and their constraints.

    Args:
        constraints_str: what holds of them, such as "n >= 2": one text, or several.

    Attributes:
        known: the lengths, and what is known of them.

    Raises:
        ValueError: a text is no comparison of lengths, or holds of none.

    >>> scope = SymbolicScope("n >= 4")
    >>> n, = symbolic_shape("n", scope=scope)
    >>> n >= 3, symbolic_dim_bounds(n)
    (True, (4, inf))
    """

    def __init__(self, constraints_str: str | Sequence[str] = ()) -> None:
        one = isinstance(constraints_str, str)
        self.known = Lengths((constraints_str,) if one else tuple(constraints_str))
        for text in self.known.constraints:
            _assume(self.known, text)

    def __repr__(self) -> str:
        return f"SymbolicScope({', '.join(self.known.constraints)})"


def symbolic_shape(
    shape_spec: str | None,
    *,
    constraints: str | Sequence[str] = (),
    scope: SymbolicScope | None = None,
    like: Sequence[int | None] | None = None,
) -> tuple[Any, ...]:
    """The shape that ``shape_spec`` spells, of integers and of lengths that are not known.

    A length is at least 1, unless more is said. It takes part in arithmetic with integers and
    other lengths, and can be used wherever a shape is. Two that may differ count as different; an
    order that is not known for all lengths is refused.

    Args:
        shape_spec: lengths between commas, such as "b, 2*n + 1, 3". A length is an integer, a name,
            or made of such by + - *, ``floordiv``, ``mod``, ``max`` and ``min``. "_" and "..."
            stand for lengths of ``like``, None for "...".
        constraints: what is said of lengths: "n >= 4", "a <= b" or "mod(n, 8) == 0".
        scope: a scope, to whose lengths names refer; by default a new one.
        like: a shape.

    Returns:
        A tuple of lengths.

    Raises:
        ValueError: the words are no shape, or do not go with ``like``; there are both a scope and
            constraints.

    >>> b, n = symbolic_shape("b, n")
    >>> b * (n + 1) - b, (4 * n) // 2, n // 2
    (b*n, 2*n, floordiv(n, 2))
    >>> symbolic_shape("_, n, ...", like=(2, None, 4, 5))
    (2, n, 4, 5)
    """
    if scope is not None and constraints:
        raise ValueError(
            "symbolic_shape: constraints belong to a scope from its beginning; give them to "
            f"SymbolicScope, got {constraints!r} and a scope, at {user_location()}"
        )
    within = (SymbolicScope(constraints) if scope is None else scope).known
    sizes = None if like is None else tuple(like)
    words = _shape_words(shape_spec, sizes)
    if sizes is not None and len(sizes) != len(words):
        raise ValueError(
            f"symbolic_shape: {shape_spec!r} has {len(words)} dimensions, `like` {len(sizes)}"
        )
    rest = sizes or (None,) * len(words)
    return tuple([_length(within, w, n, shape_spec) for w, n in zip(words, rest, strict=True)])


def _shape_words(spec: str | None, like: Sequence[Any] | None) -> list[ast.expr]:
    """An expression for every dimension; for those that are as in ``like`` the name ``_``."""
    parsed = _parsed("..." if spec is None else spec.strip() or "()", "symbolic_shape")
    words = [*parsed.elts] if isinstance(parsed, ast.Tuple) else [parsed]
    dots = [i for i, w in enumerate(words) if _is(w, ...)]
    if not dots:
        return words
    if dots != [len(words) - 1]:
        raise ValueError(f"symbolic_shape: '...' must come last, got {spec!r}")
    if like is None:
        raise ValueError("symbolic_shape: '...' stands for lengths of `like`, which is missing")
    placeholder = ast.Name("_")
    return [*words[:-1], *[placeholder] * (len(like) - len(words) + 1)]


def _parsed(text: str, who: str) -> ast.expr:
    try:
        return ast.parse(text.strip().replace("^", "**"), mode="eval").body
    except SyntaxError:
        _refuse(text, who)


def _is(node: ast.expr, value: Any) -> bool:
    return isinstance(node, ast.Constant) and node.value is value


def _refuse(text: Any, who: str) -> NoReturn:
    raise ValueError(
        f"{who}: {text!r} is not understood, at {user_location()}; lengths are integers, names, "
        "and what is made of them by + - *, floordiv, mod, max and min, such as 'b, 2*n + 1, "
        "floordiv(n, 2)'; constraints compare two by >=, <= or =="
    )


def _length(scope: Lengths, word: ast.expr, like: int | None, spec: Any) -> Any:
    if isinstance(word, ast.Name) and word.id == "_":
        if like is None:
            raise ValueError("symbolic_shape: '_' stands for a length of `like`, which has none")
        return lengths.length(like)
    n = _evaluated(scope, word, spec)
    if isinstance(n, int) and like is not None and n != like:
        raise ValueError(f"symbolic_shape: {n} stands where `like` has {like}")
    return n


_BINARY: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul,
    ast.FloorDiv: lengths.quotient, ast.Mod: lengths.remainder, ast.Pow: lambda x, n: x**n,
}  # fmt: skip
_NAMED: Mapping[str, Callable[[Any, Any], Any]] = {
    "floordiv": lengths.quotient, "mod": lengths.remainder,
    "max": lengths.larger, "min": lengths.smaller,
}  # fmt: skip


def _evaluated(scope: Lengths, node: ast.expr, spec: Any) -> Any:
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return node.value
    if isinstance(node, ast.Name):
        return scope.variable(node.id)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_evaluated(scope, node.operand, spec)
    if isinstance(node, ast.BinOp) and type(node.op) in _BINARY:
        sides = [_evaluated(scope, side, spec) for side in (node.left, node.right)]
        return _BINARY[type(node.op)](*sides)
    if isinstance(node, ast.Call) and len(node.args) == 2:
        function = _NAMED.get(getattr(node.func, "id", ""))
        if function is not None:
            return function(*[_evaluated(scope, side, spec) for side in node.args])
    _refuse(spec, "symbolic_shape")


def _assume(scope: Lengths, text: str) -> None:
    """Tell ``scope`` what ``text`` says."""
    parsed = _parsed(text, "SymbolicScope")
    if not isinstance(parsed, ast.Compare) or len(parsed.ops) != 1:
        _refuse(text, "SymbolicScope")
    low, high = [_evaluated(scope, side, text) for side in (parsed.left, *parsed.comparators)]
    if isinstance(parsed.ops[0], ast.Eq):
        scope.assume_equal(low, high)
    elif isinstance(parsed.ops[0], (ast.GtE, ast.LtE)):
        scope.assume(*((low, high) if isinstance(parsed.ops[0], ast.LtE) else (high, low)))
    else:
        _refuse(text, "SymbolicScope")


def symbolic_args_specs(
    args: Any,
    shapes_specs: Any,
    constraints: str | Sequence[str] = (),
    scope: SymbolicScope | None = None,
) -> Any:
    """``args`` as shapes and dtypes, with the shapes that are spelled, in one scope.

    Args:
        args: a tree of arrays, or of what has a shape and a dtype.
        shapes_specs: None, where shapes are those of ``args``; a string for all of them, as
            ``symbolic_shape`` takes it; or a tree of strings and None that is a prefix of ``args``.
        constraints: what is known of the lengths, such as "n >= 2"; see ``symbolic_shape``.
        scope: the scope to which the names belong; None: a new one.

    Returns:
        A tree of ``ShapeDtypeStruct``.

    Raises:
        ValueError: a string is no shape, or does not go with its argument.

    >>> import numpy as np
    >>> symbolic_args_specs((np.ones((2, 3), "float32"),), "n, _")
    (ShapeDtypeStruct(shape=(n, 3), dtype=float32),)
    """
    within = SymbolicScope(constraints) if scope is None else scope
    if isinstance(shapes_specs, (str, type(None))):
        specs = [shapes_specs] * len(tree.leaves(args))
    else:
        specs = tree.broadcast_prefix(shapes_specs, args, is_leaf=lambda x: x is None)
    leaves, treedef = tree.flatten(args)

    def spelled(x: Any, spec: str | None) -> ShapeDtypeStruct:
        struct = ShapeDtypeStruct.like(x)
        words = _shape_words(spec, struct.shape)
        places = [n if _named(w, "_") else None for w, n in zip(words, struct.shape, strict=False)]
        like = [*places, *struct.shape[len(places) :]]
        return struct.update(shape=symbolic_shape(spec, scope=within, like=like))

    return treedef.unflatten([spelled(x, s) for x, s in zip(leaves, specs, strict=True)])


def _named(word: ast.expr, name: str) -> bool:
    return isinstance(word, ast.Name) and word.id == name


def constraints_of(types: Types) -> list[str]:
    """The constraints of the symbolic lengths in ``types``."""
    symbolic = [n for t in types for n in t.shape if isinstance(n, Length)]
    return [*symbolic[0].scope.constraints] if symbolic else []


def is_symbolic_dim(p: Any) -> bool:
    """Whether ``p`` is a length that is not known.

    Args:
        p: a length: an integer, or a symbolic one.

    >>> is_symbolic_dim(3), is_symbolic_dim(symbolic_shape("n")[0])
    (False, True)
    """
    return isinstance(p, Length)


def symbolic_dim_bounds(dimension: Any) -> tuple[float, float]:
    """The least and the greatest length that ``dimension`` may be, as far as it is known.

    Args:
        dimension: a length: an integer, or a symbolic one.

    Returns:
        A pair of integers, or infinities.

    >>> n, = symbolic_shape("n", constraints="n <= 9")
    >>> symbolic_dim_bounds(2 * n + 1)
    (3, 19)
    """
    low, high = dimension.bounds if isinstance(dimension, Length) else (dimension, dimension)
    return _whole(low), _whole(high)


def _whole(n: float) -> float:
    return n if math.isinf(n) else int(n)
