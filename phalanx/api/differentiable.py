"""What is differentiated: functions of chosen arguments, whose results may come with data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from phalanx.api.arguments import (
    NO_STATIC,
    Flat,
    LeafNames,
    as_tuple,
    check_leaf,
    name_of,
)
from phalanx.base import dtypes, tree
from phalanx.base.errors import ArgumentError
from phalanx.core.program import plain
from phalanx.core.trace import carried, trace_of
from phalanx.core.types import typeof
from phalanx.ops.basis import full
from phalanx.transforms.linearize import DualTracer
from phalanx.transforms.stage import is_value


def flattened(fun: Callable, args: Sequence[Any], who: str) -> tuple[Flat, list[Any], LeafNames]:
    leaves, treedef = tree.flatten((tuple(args), {}))
    names = LeafNames(fun, args, {}, range(len(args)))
    for i, x in enumerate(leaves):
        if not is_value(x):
            check_leaf(x, names[i], who)
    return Flat(fun, treedef, NO_STATIC, who), leaves, names


def differentiable(x: Any) -> bool:
    return dtypes.is_inexact(typeof(x).dtype)


def as_array(x: Any) -> Any:
    """A result as an array: constants become arrays of no dimension."""
    if isinstance(x, (np.generic, int, float, complex)):
        return full((), x, typeof(x).dtype)
    return x


class WithAux:
    """``fun`` without its second result, which is kept aside, cut off from differentiation."""

    def __init__(self, fun: Callable, has_aux: bool, who: str) -> None:
        self.fun = fun
        self.has_aux = has_aux
        self.who = who
        self.__wrapped__ = fun
        self.__name__ = name_of(fun)
        self._data: Any = None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        out = self.fun(*args, **kwargs)
        if not self.has_aux:
            return out
        if not isinstance(out, (tuple, list)) or len(out) != 2:
            raise TypeError(
                f"{self.who}: with has_aux the function must return a pair (result, data), "
                f"got {out!r}"
            )
        self._data = out[1]
        return out[0]

    def aux(self) -> Any:
        """The data, with traced values replaced by their primal parts."""
        return tree.map(_primal, self._data)


def _primal(x: Any) -> Any:
    while isinstance(x, DualTracer) and not trace_of(x).alive:
        x = carried(x)
    return x


def check_input(
    x: Any, names: LeafNames, i: int, holomorphic: bool, allow_int: bool, who: str
) -> None:
    if not is_value(x):
        check_leaf(x, names[i], who)
    dtype = typeof(x).dtype
    if holomorphic and not dtypes.is_complex(dtype):
        raise TypeError(
            f"{who}: holomorphic=True needs complex arguments, but {names[i]} is {typeof(x)}"
        )
    if not dtypes.is_inexact(dtype) and not allow_int:
        raise TypeError(
            f"{who}: {names[i]} is {plain(typeof(x))}, and only floating-point and complex "
            "arguments have a gradient; convert it with .astype(float), choose others with "
            "argnums, or set allow_int=True"
        )


def of_chosen(fun: Callable, args: tuple, kwargs: dict, argnums: Any, who: str) -> tuple:
    """The function of the chosen arguments alone, they, where they are, and what makes of a tuple
    of results for them the result for ``argnums``, which may name one of them more than once."""
    wanted = _positions(as_tuple(argnums, who, "argnums"), len(args), who)
    where = list(dict.fromkeys(wanted))

    def partial(*chosen: Any) -> Any:
        full = list(args)
        for i, x in zip(where, chosen, strict=True):
            full[i] = x
        return fun(*full, **kwargs)

    def unpack(each: tuple) -> Any:
        return each[0] if single else tuple([each[where.index(i)] for i in wanted])

    single = isinstance(argnums, (int, np.integer))
    return partial, tuple([args[i] for i in where]), where, unpack


def _positions(positions: tuple, count: int, who: str) -> list[int]:
    normalized = []
    for p in positions:
        if not hasattr(p, "__index__"):
            raise TypeError(f"{who}: argnums must be positions of arguments, got {p!r}")
        if not -count <= p < count:
            raise ArgumentError(
                f"{who}: argnums asks for positional argument {p}, but the call has {count}; "
                "arguments passed by keyword are not differentiated"
            )
        normalized.append(p % count)
    return normalized
