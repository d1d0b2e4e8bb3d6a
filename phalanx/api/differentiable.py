"""What is differentiated: functions of chosen arguments, whose results may come with data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from msgspec import Struct

from phalanx.api.arguments import NO_STATIC, Flat, LeafNames, as_tuple, check_leaf
from phalanx.api.ref_calls import with_copies
from phalanx.base import dtypes, tree
from phalanx.base.errors import ArgumentError
from phalanx.base.kinds import is_sequence
from phalanx.base.source import name_of, user_location
from phalanx.core.refs import refuse_aliases
from phalanx.core.trace import carried, trace_of
from phalanx.core.types import typeof
from phalanx.primitives.basis import full
from phalanx.transforms.linearize import DualTracer
from phalanx.transforms.stage import is_value


def flattened(
    fun: Callable[..., Any], args: Sequence[Any], who: str, refs: Sequence[int] = ()
) -> tuple[Flat, Sequence[Any], LeafNames]:
    """``fun`` of flat leaves, the leaves of ``args``, and their names.

    They must be arrays, but for those numbered ``refs``: references, given as what they hold.
    """
    values, treedef = tree.flatten((tuple(args), {}))
    names = LeafNames(fun, args, {}, range(len(args)))
    refuse_aliases(values, (), who)
    leaves = with_copies(values, refs)
    for i, x in enumerate(leaves):
        if not is_value(x):
            check_leaf(x, names[i], who)
    return Flat(fun, treedef, NO_STATIC, who, refs), leaves, names


def differentiable(x: Any) -> bool:
    """Whether ``x`` has a dtype with derivatives."""
    return dtypes.is_inexact(typeof(x).dtype)


def result_as_array(x: Any) -> Any:
    """A result as an array: constants become arrays of no dimension."""
    if isinstance(x, (np.generic, int, float, complex)):
        return full((), x, typeof(x).dtype)
    return x


class WithAux:
    """``fun`` without its second result, which is kept aside, cut off from differentiation."""

    def __init__(self, fun: Callable[..., Any], has_aux: bool, who: str) -> None:
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
        if not is_sequence(out) or len(out) != 2:
            raise TypeError(
                f"{self.who}: with has_aux the function must return a pair (result, data), "
                f"got {out!r}"
            )
        self._data = out[1]
        return out[0]

    def aux(self) -> Any:
        """The data, with traced values replaced by their primal parts."""
        return tree.map(_primal, self._data)

    def with_data(self, result: Any) -> Any:
        """``result``, and the data if there are some."""
        return (result, self.aux()) if self.has_aux else result


def _primal(x: Any) -> Any:
    while isinstance(x, DualTracer) and not trace_of(x).alive:
        x = carried(x)
    return x


def _check_input(
    x: Any, names: LeafNames, i: int, holomorphic: bool, allow_int: bool | None, who: str
) -> None:
    if not is_value(x):
        check_leaf(x, names[i], who)
    dtype = typeof(x).dtype
    if holomorphic and not dtypes.is_complex(dtype):
        raise TypeError(
            f"{who}: holomorphic=True needs complex arguments, but {names[i]} is {typeof(x)}"
        )
    if not dtypes.is_inexact(dtype) and not allow_int:
        way = f"pass {float(x)}" if isinstance(x, int) else "convert it with .astype(float)"
        others = "choose others with argnums"
        others = f"or {others}" if allow_int is None else f"{others}, or set allow_int=True"
        raise TypeError(
            f"{who}: {names[i]} is {typeof(x)}, and only floating-point and complex "
            f"arguments have a gradient; {way}, {others}"
        )


def check_result(y: Any, holomorphic: bool, who: str) -> None:
    """Raise TypeError unless ``y``, a result, has gradients: complex ones only if holomorphic."""
    kind = typeof(y)
    if not dtypes.is_inexact(kind.dtype):
        raise TypeError(
            f"{who}: the function returned {kind}, which has no derivative; it must return "
            "floating-point numbers (has_aux=True for others), or see vjp"
        )
    if holomorphic:
        check_complex(y, who)
    elif dtypes.is_complex(kind.dtype):
        raise TypeError(
            f"{who}: the function returned {kind}, which is complex, at {user_location()}; take "
            "its real part or magnitude, set holomorphic=True if it is complex-differentiable, or "
            "see vjp"
        )


def check_complex(y: Any, who: str) -> None:
    """Raise TypeError unless ``y``, a result of a holomorphic function, is complex."""
    kind = typeof(y)
    if not dtypes.is_complex(kind.dtype):
        raise TypeError(
            f"{who}: holomorphic=True needs complex results, but the function returned {kind}, at "
            f"{user_location()}; leave holomorphic out, or see vjp and jvp"
        )


class Argnums(Struct, frozen=True):
    """The arguments of a call by which its function is differentiated.

    Attributes:
        body: the function of them alone.
        args: they, each of them once.
        leaves: theirs.
        in_tree: the structure of ``(args, {})``.
        argnums: which of ``args`` results are for; several may be for one.
    """

    body: WithAux
    args: tuple[Any, ...]
    leaves: list[Any]
    in_tree: Any
    argnums: int | tuple[int, ...]

    @classmethod
    def of(
        cls, fun: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], argnums: Any,
        who: str, has_aux: bool, holomorphic: bool, allow_int: bool | None = None,
    ) -> Argnums:  # fmt: skip
        """Those at the positions ``argnums``; ``allow_int`` is None where users cannot set it.

        Raises:
            ArgumentError: there is no such position.
            TypeError: an argument has no derivative.
        """
        positions = _positions(as_tuple(argnums, who, "argnums"), len(args), who)
        where = list(dict.fromkeys(positions))
        chosen = tuple([args[i] for i in where])

        def partial(*chosen: Any) -> Any:
            full = list(args)
            for i, x in zip(where, chosen, strict=True):
                full[i] = x
            return fun(*full, **kwargs)

        leaves, in_tree = tree.flatten((chosen, {}))
        names = LeafNames(fun, chosen, {}, where)
        for i, x in enumerate(leaves):
            _check_input(x, names, i, holomorphic, allow_int, who)
        places = tuple([where.index(i) for i in positions])
        single = isinstance(argnums, (int, np.integer))
        body = WithAux(partial, has_aux, who)
        return cls(body, chosen, leaves, in_tree, places[0] if single else places)

    def arguments(self, leaves: Sequence[Any]) -> tuple[Any, ...]:
        """``leaves`` in the places of those of ``args``."""
        return self.in_tree.unflatten(leaves)[0]

    def results(self, leaves: Sequence[Any]) -> Any:
        """``leaves``, each for one of ``args``, as the result for ``argnums``."""
        each = self.arguments(leaves)
        if isinstance(self.argnums, int):
            return each[self.argnums]
        return tuple([each[i] for i in self.argnums])


def _positions(positions: tuple[Any, ...], count: int, who: str) -> list[int]:
    normalized: list[int] = []
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
