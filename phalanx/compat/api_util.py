"""Flat functions and what is told of arguments, as ``jax.api_util`` has them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from msgspec import Struct

from phalanx.base import tree
from phalanx.base.source import name_of
from phalanx.compat.extend import linear_util as lu
from phalanx.core.types import ArrayType, typeof


class DebugInfo(Struct, frozen=True):
    """What a function was traced for, and how it and its arguments are called."""

    traced_for: str
    func_src_info: str
    arg_names: tuple[str, ...] | None = None
    result_paths: Any = None

    @property
    def func_name(self) -> str:
        return self.func_src_info.partition(" ")[0]


def debug_info(
    traced_for: str,
    fun: Callable[..., Any] | None,
    args: Sequence[Any],
    kwargs: dict[str, Any],
    **_: Any,
) -> DebugInfo:
    """What messages say of ``fun``: the arguments are named after the paths of their leaves."""
    paths = [tree.keystr(path) for path, _ in tree.leaves_with_path((tuple(args), kwargs))]
    return DebugInfo(traced_for, name_of(fun) if fun else "unknown", tuple(paths))


@lu.transformation_with_aux
def flatten_fun(in_tree: Any, *leaves: Any) -> Any:
    """A function of trees as one of leaves; besides, the structure of its result."""
    args, kwargs = tree.unflatten(in_tree, leaves)
    yield tree.flatten((yield args, kwargs))


@lu.transformation_with_aux
def flatten_fun_nokwargs(in_tree: Any, *leaves: Any) -> Any:
    """The same where nothing is passed by keyword."""
    yield tree.flatten((yield tree.unflatten(in_tree, leaves), {}))


def argnums_partial(
    f: lu.WrappedFun,
    dyn_argnums: int | Sequence[int],
    args: Sequence[Any],
    require_static_args_hashable: bool = True,
) -> tuple[lu.WrappedFun, list[Any]]:
    """``f`` of the arguments at ``dyn_argnums`` alone, and these; it keeps the others."""
    numbers = (dyn_argnums,) if isinstance(dyn_argnums, int) else tuple(dyn_argnums)
    places = [n % len(args) for n in numbers]
    if require_static_args_hashable:
        for argument in (x for i, x in enumerate(args) if i not in places):
            hash(argument)

    def call(*moving: Any, **kwargs: Any) -> Any:
        every = list(args)
        for place, value in zip(places, moving, strict=True):
            every[place] = value
        return f.call_wrapped(*every, **kwargs)

    return f.staged(call), [args[p] for p in places]


def infer_argnums_and_argnames(
    sig: inspect.Signature,
    argnums: int | Iterable[int] | None,
    argnames: str | Iterable[str] | None,
) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """Positions and names of arguments, completed from the other where one of them is None."""
    nums = (argnums,) if isinstance(argnums, int) else tuple(argnums or ())
    names = (argnames,) if isinstance(argnames, str) else tuple(argnames or ())
    known = enumerate(sig.parameters.values())
    places = {p.name: i for i, p in known if p.kind is p.POSITIONAL_OR_KEYWORD}
    if argnums is None:
        nums = tuple([i for name, i in places.items() if name in names])
    elif argnames is None:
        count = len(sig.parameters)
        names = tuple([name for name, i in places.items() if {i, i - count} & {*nums}])
    return nums, names


def safe_map(f: Callable[..., Any], *sequences: Iterable[Any]) -> list[Any]:
    """``list(map(f, ...))`` of sequences of one length.

    Raises:
        ValueError: their lengths differ.
    """
    return [f(*each) for each in safe_zip(*sequences)]


def safe_zip(*sequences: Iterable[Any]) -> list[tuple[Any, ...]]:
    """``list(zip(...))`` of sequences of one length.

    Raises:
        ValueError: their lengths differ.
    """
    return list(zip(*sequences, strict=True))


def shaped_abstractify(x: Any) -> ArrayType:
    """The type of ``x``."""
    return typeof(x)


def flatten_axes(name: str, treedef: Any, axes: Any, **_: Any) -> list[Any]:
    """``axes``, a tree that may end early, as one for each leaf of ``treedef``."""
    whole = tree.unflatten(treedef, range(treedef.num_leaves))
    return tree.leaves(tree.broadcast(axes, whole, is_leaf=_is_none), is_leaf=_is_none)


def _is_none(x: Any) -> bool:
    return x is None


def donation_vector(
    donate_argnums: Sequence[int], donate_argnames: Sequence[str], in_tree: Any
) -> tuple[bool, ...]:
    """Whether the argument of each leaf of ``(args, kwargs)`` is donated."""
    args, kwargs = tree.unflatten(in_tree, range(in_tree.num_leaves))
    marked = [i in tuple(donate_argnums) for i, x in enumerate(args) for _ in tree.leaves(x)]
    named = [n in tuple(donate_argnames) for n in sorted(kwargs) for _ in tree.leaves(kwargs[n])]
    return (*marked, *named)


def rebase_donate_argnums(
    donate_argnums: Sequence[int], static_argnums: Sequence[int]
) -> tuple[int, ...]:
    """The donated ones counted without the static ones."""
    static = sorted(static_argnums)
    return tuple(n - sum(s < n for s in static) for n in donate_argnums if n not in static)
