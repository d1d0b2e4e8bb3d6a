"""``custom_vmap``: a function, and a rule for what ``vmap`` makes of it."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from functools import partial
from types import MethodType
from typing import Any

from phalanx.api.arguments import check_callable, check_leaf
from phalanx.api.custom import defined_at, lines_of, positional, same_kind
from phalanx.base import tree
from phalanx.base.boundary import hiding
from phalanx.base.errors import MissingRule, TreeError
from phalanx.base.kinds import is_sequence
from phalanx.base.source import name_of, user_location
from phalanx.base.tree import shown
from phalanx.control.custom_derivatives import as_type, bind_program
from phalanx.control.custom_vmap_call import VmapRule
from phalanx.control.custom_vmap_call import custom_vmap as custom_vmap_primitive
from phalanx.core.trace import ROOT, current
from phalanx.core.types import ArrayType, typeof
from phalanx.lax.bodies import flatten_results
from phalanx.lax.loops import map as over_rows
from phalanx.transforms.batch import lane_type
from phalanx.transforms.stage import is_value


class custom_vmap:
    """``fun``, which ``vmap`` vectorizes by a rule that is given with ``def_vmap``.

    The rule is used wherever lanes of an axis lie in arrays, so by ``pmap``, too, where several
    lanes run on a device. Derivatives of ``fun`` are its own, and ``vmap`` of them is the
    derivative of what the rule gives; to it, what is differentiated has lanes if its tangents or
    cotangents have some. Only where no argument has lanes is it that of ``fun``, and where
    derivatives are by what ``fun`` closes over.

    Args:
        fun: a function of trees of arrays. Arguments by keyword and defaults are put into the
            order of its parameters.

    Raises:
        MissingRule: it is vectorized and has no rule.
        TypeError: an argument is no array, or the rule returns something else than it must.

    >>> import phalanx
    >>> @phalanx.custom_batching.custom_vmap
    ... def total(x, y):
    ...     return x + y
    >>> @total.def_vmap
    ... def rule(axis_size, in_batched, xs, ys):
    ...     print(axis_size, in_batched)
    ...     return xs + ys, True
    >>> phalanx.vmap(total, in_axes=(0, None))(jnp.arange(3), 2)
    3 [True, False]
    Array([2, 3, 4], dtype=int32)
    """

    rule: Callable[..., Any] | None = None

    def __init__(self, fun: Callable[..., Any]) -> None:
        check_callable(fun, "custom_vmap")
        self.fun = fun
        self.who = f"custom_vmap({name_of(fun)})"
        functools.update_wrapper(self, fun, updated=())

    def def_vmap(self, vmap_rule: Callable[..., Any]) -> Callable[..., Any]:
        """Give the rule: ``vmap_rule(axis_size, in_batched, *args)`` to (results, out_batched).

        Args:
            vmap_rule: ``in_batched`` is a list with a tree for each argument, of booleans: whether
                an array has lanes, as its first dimension. ``out_batched`` says the same of the
                results; a boolean stands for a whole tree.

        Returns:
            ``vmap_rule``, so that this is a decorator.
        """
        check_callable(vmap_rule, f"{self.who}.def_vmap")
        self.rule = vmap_rule
        return vmap_rule

    @hiding
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        arguments = positional(self.fun, args, kwargs, self.who)
        if current() is ROOT:
            return self.fun(*arguments)
        leaves, treedef = tree.flatten(arguments)
        for x in leaves:
            if not is_value(x):
                check_leaf(x, "an argument", self.who)
        call = _Call(self, treedef)
        results = bind_program(
            custom_vmap_primitive,
            call.function,
            leaves,
            partial(VmapRule, call.name, call.on_lanes, len(leaves)),
            (self.fun, self.rule),
            name_of(self.fun),
        )
        return call.out_tree.unflatten(results)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else MethodType(self, instance)

    def __repr__(self) -> str:
        return f"<{self.who}>"


class _Call:
    """One call: the structures of its arguments and of its results, and the types of the latter.

    Its rule outlives the call, and so holds none of its arguments.
    """

    out_tree: Any
    out_types: list[ArrayType]

    def __init__(self, custom: custom_vmap, structure: Any) -> None:
        self.fun, self.rule, self.who = custom.fun, custom.rule, custom.who
        self.name = name_of(custom.rule) if custom.rule else "none"
        self.tree = structure

    def function(self, *leaves: Any) -> list[Any]:
        """The results of the function as leaves."""
        out = self.fun(*self.tree.unflatten(leaves))
        results, self.out_tree = flatten_results(out, self.who)
        self.out_types = [typeof(y) for y in results]
        return results

    def on_lanes(
        self, size: int, moving: Sequence[bool], leaves: Sequence[Any]
    ) -> tuple[list[Any], list[bool]]:
        """What the rule gives, and which of it has lanes."""
        if self.rule is None:
            raise MissingRule(
                f"{self.who}: it is vectorized, at {user_location()}, before it has a rule; give "
                "one with def_vmap"
            )
        in_batched = list(self.tree.unflatten(list(moving)))
        with lines_of(self.rule):
            pair = self.rule(size, in_batched, *self.tree.unflatten(leaves))
        who = f"{self.who}: {defined_at(self.rule)} must return"
        if not is_sequence(pair) or len(pair) != 2:
            raise TypeError(f"{who} a pair (results, out_batched), got {pair!r}")
        results, out_tree = flatten_results(pair[0], self.who)
        if out_tree != self.out_tree:
            raise TypeError(
                f"{who} what the function does, {shown(self.out_tree)}, got {shown(out_tree)}"
            )
        try:
            marks = [bool(m) for m in tree.broadcast_prefix(pair[1], pair[0], "out_batched")]
        except TreeError as error:
            raise TypeError(f"{who} booleans like the results as out_batched: {error}") from None
        for x, mark, expected in zip(results, marks, self.out_types, strict=True):
            kind = typeof(x)
            fits = not mark or kind.shape[:1] == (size,)
            if not fits or not same_kind(lane_type(kind, 0) if mark else kind, expected):
                lanes = f"{size} lanes of {expected}" if mark else str(expected)
                raise TypeError(f"{who} {lanes}, as out_batched says, got {kind}")
        fitted = zip(results, self.out_types, strict=True)
        return [as_type(x, expected) for x, expected in fitted], marks


def sequential_vmap(f: Callable[..., Any]) -> custom_vmap:
    """``f``, which ``vmap`` runs for one lane after the other: ``custom_vmap`` with ``lax.map``.

    Args:
        f: a function of trees of arrays. Without it, a decorator is returned.

    Returns:
        A ``custom_vmap``, which is called as ``f`` is.

    >>> import phalanx
    >>> @phalanx.custom_batching.sequential_vmap
    ... def shown(x):
    ...     phalanx.debug.print("{}", x)
    ...     return x + 1
    >>> phalanx.vmap(shown)(jnp.arange(2))
    0
    1
    Array([1, 2], dtype=int32)
    """
    function = custom_vmap(f)

    @function.def_vmap
    def rule(axis_size: int, in_batched: list[Any], *args: Any) -> tuple[Any, Any]:
        leaves, treedef = tree.flatten(args)
        marks = tree.leaves(in_batched)
        rows = [x for x, m in zip(leaves, marks, strict=True) if m]

        def one(row: list[Any]) -> Any:
            rest = iter(row)
            operands = [next(rest) if m else x for x, m in zip(leaves, marks, strict=True)]
            return f(*treedef.unflatten(operands))

        return over_rows(one, rows), True

    return function
