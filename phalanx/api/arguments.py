"""Functions of trees: names of arguments, static arguments, flat functions and their errors."""

# What a reference is called is private to users, not to what refuses it.
# pyright: reportPrivateUsage=false

from __future__ import annotations

import functools
import inspect
import itertools
import textwrap
import weakref
from collections.abc import Callable, Hashable, Iterable, Sequence
from types import FunctionType
from typing import Any

import numpy as np
from msgspec import Struct

from phalanx.base import dtypes, jax_arrays, tree
from phalanx.base.boundary import hiding
from phalanx.base.errors import RefError, TreeError, coded
from phalanx.base.keys import key_of
from phalanx.base.kinds import class_of
from phalanx.base.nodes import outline
from phalanx.base.plain import brief
from phalanx.base.registry import how_to_register
from phalanx.base.source import name_of, user_location
from phalanx.base.tree import shown
from phalanx.core.refs import Ref
from phalanx.core.types import typeof
from phalanx.lax.bodies import FlatFunction
from phalanx.transforms.stage import is_value


def wrap(wrapper: Callable[..., Any], fun: Callable[..., Any]) -> Any:
    """``wrapper`` as what users call in place of ``fun``."""
    return dress(hiding(wrapper), fun)


def dress(wrapper: Any, fun: Callable[..., Any]) -> Any:
    """Give ``wrapper`` the name, the documentation and the signature of ``fun``."""
    if isinstance(getattr(fun, "__name__", None), str):
        functools.update_wrapper(wrapper, fun, updated=())
    else:  # an object, whose attributes by these names may be anything, or functools.partial
        functools.update_wrapper(wrapper, fun, ("__module__", "__doc__"), ())
        wrapper.__name__ = wrapper.__qualname__ = name_of(fun)
    wrapper.__wrapped__ = fun
    return wrapper


def check_callable(fun: Any, who: str) -> None:
    """Raise TypeError unless ``fun`` can be called."""
    if not callable(fun):
        raise TypeError(
            f"{who}: the first argument must be a function, got an object of type "
            f"{type(fun).__name__}"
        )


_parameters: weakref.WeakKeyDictionary[Any, tuple[Any]] = weakref.WeakKeyDictionary()


def parameters(fun: Any) -> tuple[inspect.Parameter, ...] | None:
    """The parameters of ``fun``, or None where Python cannot tell."""
    try:
        cached = _parameters.get(fun)
        if cached is None:
            cached = _parameters[fun] = (_inspected(fun),)
        return cached[0]
    except TypeError:  # no weak reference, or not hashable
        return _inspected(fun)


def _inspected(fun: Any) -> tuple[inspect.Parameter, ...] | None:
    """As ``inspect.signature`` has them. Those that ``functools.wraps`` copied count unless ``fun``
    takes others before them: then they stand in other places."""
    try:
        own = tuple(inspect.signature(fun, follow_wrapped=False).parameters.values())
        if type(fun) is FunctionType and not hasattr(fun, "__wrapped__"):  # nothing is copied
            return own
        wrapped = tuple(inspect.signature(fun).parameters.values())
    except (TypeError, ValueError):
        return None
    first = list(itertools.takewhile(lambda p: p.kind in _POSITIONAL, own))
    return wrapped if [p.name for p in first] == [p.name for p in wrapped[: len(first)]] else own


_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def positional_names(fun: Any, count: int) -> list[str]:
    """The names of the first ``count`` positional arguments of ``fun``."""
    names: list[str] = []
    for p in parameters(fun) or ():
        if p.kind is p.VAR_POSITIONAL:
            names += [f"{p.name}[{i}]" for i in range(count - len(names))]
        elif p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD):
            names.append(p.name)
    names += [f"argument {i}" for i in range(len(names), count)]
    return names[:count]


class LeafNames:
    """The name of every leaf of (args, kwargs), found when a message needs one.

    ``where`` are the positions of ``args`` among the arguments of ``fun``.
    """

    __slots__ = ("_names", "args", "fun", "kwargs", "where")

    def __init__(
        self, fun: Any, args: Sequence[Any], kwargs: dict[str, Any], where: Sequence[int]
    ) -> None:
        self.fun = fun
        self.args = args
        self.kwargs = kwargs
        self.where = where
        self._names: list[str] | None = None

    def __getitem__(self, i: int) -> str:
        return self.all()[i]

    def after(self, others: Iterable[str]) -> LeafNames:
        """The same after ``others``, which belong to no argument; they hold no function."""
        names = LeafNames(None, (), {}, ())
        names._names = [*others, *self.all()]
        return names

    def all(self) -> list[str]:
        """All names, in the order of the leaves."""
        if self._names is None:
            self._names = self._find()
        return self._names

    def _find(self) -> list[str]:
        names = positional_names(self.fun, max(self.where, default=-1) + 1)
        leaf_names: list[str] = []
        for position, arg in zip(self.where, self.args, strict=True):
            for path, _ in tree.leaves_with_path(arg):
                leaf_names.append(names[position] + tree.keystr(path))
        for path, _ in tree.leaves_with_path(self.kwargs):
            key, *rest = path
            leaf_names.append(str(getattr(key, "key", key)) + tree.keystr(tuple(rest)))
        return leaf_names


_ITEMS: tuple[type, ...] = (int, str, np.integer)


def as_tuple(value: Any, who: str, what: str) -> tuple[Any, ...]:
    """An option that is one item or a sequence of them, as a tuple."""
    if value is None:
        return ()
    if isinstance(value, _ITEMS):
        return (value,)
    try:
        return tuple(value)
    except TypeError:
        raise TypeError(f"{who}: {what} must be one item or a sequence, got {value!r}") from None


def static_positions(
    fun: Any,
    argnums: Any,
    argnames: Any,
    who: str,
    what: str = "static",
    unset_is_none: bool = False,
) -> tuple[tuple[int, ...], frozenset[str]]:
    """The positions and names of arguments that are ``what``; where only the one or the other is
    given, it is completed from that: if ``unset_is_none`` where one is None, or else where one is
    empty.

    Raises:
        ValueError: a position or a name that ``fun`` does not have.
    """
    nums = as_tuple(argnums, who, "argnums")
    names = as_tuple(argnames, who, "argnames")
    if not all(isinstance(n, (int, np.integer)) for n in nums):
        raise TypeError(f"{who}: the positions of {what} arguments are integers, got {argnums!r}")
    if not nums and not names:
        return (), frozenset()
    declared = parameters(fun)
    if declared is None:
        return tuple(int(n) for n in nums), frozenset(names)
    positional = [
        p.name for p in declared if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
    ]
    star = any(p.kind is p.VAR_POSITIONAL for p in declared)
    allnames = [p.name for p in declared]
    takes_any = any(p.kind is p.VAR_KEYWORD for p in declared)
    resolved: list[int] = []
    for n in nums:
        index = int(n) + len(positional) if n < 0 and not star else int(n)
        if index < 0 or (index >= len(positional) and not star):
            raise ValueError(
                f"{who}: position {n} is to be {what}, but {name_of(fun)} has "
                f"{'any number of' if star else len(positional)} positional parameters"
            )
        resolved.append(index)
    for n in names:
        if n not in allnames and not takes_any:
            raise ValueError(
                f"{who}: {n!r} is to be {what}, but {name_of(fun)} has no such parameter; "
                f"it has {', '.join(allnames)}"
            )
    both = argnums is not None and argnames is not None if unset_is_none else nums and names
    if both:
        return tuple(sorted(set(resolved))), frozenset(names)
    named: set[str] = set(names) | {positional[i] for i in resolved if 0 <= i < len(positional)}
    resolved += [positional.index(n) for n in names if n in positional]
    return tuple(sorted(set(resolved))), frozenset(named)


def check_axis_name(name: Any, who: str) -> None:
    """Raise TypeError unless ``name`` can be the name of an axis."""
    if not _hashable(name):
        raise TypeError(f"{who}: axis_name must be hashable, such as a string, got {name!r}")


class Static:
    """Static arguments of one call: hashable by type and value, put back when calling.

    Attributes:
        positional: pairs of a position and a value.
        keywords: pairs of a name and a value, by name.
        places: the positions and names.
        values: what stands for each value in keys.
    """

    __slots__ = ("keywords", "places", "positional", "values")

    def __init__(
        self,
        positional: tuple[Any, ...],
        keywords: tuple[Any, ...],
        who: str,
        key: Callable[[Any], Any] = key_of,
    ) -> None:
        """``key`` says what stands for a value."""
        self.positional = positional
        self.keywords = keywords
        self.places = tuple([place for place, _ in positional + keywords])
        try:
            self.values = tuple([key(value) for _, value in positional + keywords])
            hash(self.values)
        except TypeError:
            place, bad = next((p, v) for p, v in positional + keywords if not _hashable(v))
            raise ValueError(  # "Non-hashable ... supported" is JAX's, for matching
                f"{who}: Non-hashable static arguments are not supported: "
                f"{place if isinstance(place, str) else f'argument {place}'} is "
                f"{textwrap.shorten(repr(bad), 80, placeholder=' ...')} of type "
                f"{type(bad).__name__}, at {user_location()}; {_hashable_instead(bad)}"
            ) from None

    def __hash__(self) -> int:
        return hash((self.places, self.values))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Static):
            return NotImplemented
        return self.places == other.places and self.values == other.values

    def restore(
        self, args: Sequence[Any], kwargs: dict[str, Any]
    ) -> tuple[list[Any], dict[str, Any]]:
        """All arguments, the static ones in their places."""
        out = list(args)
        for i, value in self.positional:
            out.insert(i, value)
        return out, {**kwargs, **dict(self.keywords)}

    def marked(self, mark: Any) -> Static:
        """The same places, with ``mark`` in each."""
        pairs = [tuple((place, mark) for place, _ in entries)
                 for entries in (self.positional, self.keywords)]  # fmt: skip
        return Static(pairs[0], pairs[1], "")


def _hashable_instead(value: Any) -> str:
    """What to pass in the place of ``value``, which is not hashable."""
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        return "an array is traced instead: leave it out of what is static"
    if isinstance(value, list):
        return "pass a tuple"
    return "pass a frozen dataclass, or a tuple of what it holds"


NO_STATIC = Static((), (), "")


class CallArgs(Struct):
    """What a function is called with.

    Attributes:
        static: the static arguments.
        args: the others by position.
        kwargs: the others by name.
        leaves: the leaves of these.
        treedef: the structure of these, ``(args, kwargs)``.
        names: how the leaves are called, as arguments of the function.
        types: the types of the leaves, once they are known; an ``AbstractRef`` for a reference.
        signatures: what stands for the leaves in keys, once they are arrays or numbers.
    """

    static: Static
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    leaves: Sequence[Any]
    treedef: Any
    names: LeafNames
    types: tuple[Any, ...] = ()
    signatures: Sequence[Hashable] = ()

    @classmethod
    def of(
        cls, fun: Any, static: Static, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> CallArgs:
        """With the leaves of ``args`` and ``kwargs``, which are those of ``fun``."""
        names = LeafNames(fun, args, kwargs, dynamic_positions(len(args), static))
        return cls(static, args, kwargs, *tree.flatten_call((args, kwargs)), names)

    def restored(self) -> tuple[list[Any], dict[str, Any]]:
        """All arguments, the static ones in their places."""
        return self.static.restore(self.args, self.kwargs)


def _hashable(x: Any) -> bool:
    try:
        hash(x)
    except TypeError:
        return False
    return True


def split_static(
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    nums: tuple[int, ...],
    names: frozenset[str],
    who: str,
    key: Callable[[Any], Any] = key_of,
) -> tuple[Static, tuple[Any, ...], dict[str, Any]]:
    """Take the static arguments out: they, for which in keys ``key`` stands, and the others."""
    static = tuple((i, args[i]) for i in nums if i < len(args))
    keywords = tuple(sorted((k, v) for k, v in kwargs.items() if k in names))
    rest = tuple(a for i, a in enumerate(args) if i not in nums)
    others = {k: v for k, v in kwargs.items() if k not in names}
    return Static(static, keywords, who, key), rest, others


def dynamic_positions(count: int, static: Static) -> list[int]:
    """The positions, among all arguments, of ``count`` dynamic ones."""
    taken = {i for i, _ in static.positional}
    return [i for i in range(count + len(taken)) if i not in taken][:count]


def without_static(entries: Any, static: Static) -> Any:
    """``entries``, one for each argument, without those of static arguments; or what stands for
    all of them, as it is."""
    if static is NO_STATIC or type(entries) not in (tuple, list):
        return entries
    taken = {i for i, _ in static.positional}
    return tuple(entry for i, entry in enumerate(entries) if i not in taken)


def _or_a_node(kind: type) -> str:
    """What to do with an object of this class, besides making it static."""
    registering = how_to_register(kind)
    return f", close over it, or {registering}" if registering else " or close over it"


_OF_NUMPY: tuple[type, ...] = (np.ndarray, np.generic)


def described(x: Any) -> dict[str, str]:
    """The class of ``x``; of what describes an array, its shape and dtype."""
    shape = ",".join(map(str, getattr(x, "shape", ())))
    return {"type": type(x).__name__, "array": f"{getattr(x, 'dtype', '')}[{shape}]"}


def check_leaf(x: Any, name: str, who: str) -> None:
    """Raise TypeError unless ``x`` is an array or a number, RefError if it is a reference."""
    if type(x) is Ref:
        raise RefError(
            f"{who}: {name} is a {x._describe()}, at {user_location()}, and an array is needed: "
            "pass what it holds, ref[...], and write what is returned"
        )
    if not is_value(x):
        static = "static_argnums, static_broadcasted_argnums"
        static = "in_specs has None for it" if who.startswith("shard_map(") else static
        advice = f"; make it static ({static}){_or_a_node(class_of(x))}"
        problem = (
            f"{who}: {name} is {brief(x)} of type {type(x).__name__}, which is not an array or a "
            f"number{jax_arrays.advice_on(x) or advice}"
        )
        raise coded(TypeError(problem), "no array", name=name, **described(x))
    if isinstance(x, _OF_NUMPY) and not dtypes.holds_numbers(x.dtype):
        raise TypeError(
            f"{who}: {name} is a NumPy array of dtype {x.dtype}, which no device can hold; "
            "convert it to numbers first"
        )
    typeof(x)  # the dtype must be one that arrays can have


def result_names(out_tree: Any) -> list[str]:
    """What messages call the results of a function, in the order of the leaves."""
    pairs = tree.leaves_with_path(outline(out_tree))
    return [f"result{tree.keystr(path)}" for path, _ in pairs]


class Flat(FlatFunction):
    """``fun`` as a function of the leaves of one call, which puts back its static arguments."""

    __slots__ = ("fun",)

    def __init__(
        self,
        fun: Callable[..., Any],
        in_tree: Any,
        static: Static,
        who: str,
        refs: Sequence[int] = (),
    ) -> None:
        def call(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
            positional, named = static.restore(args, kwargs)
            return fun(*positional, **named)

        super().__init__(call, in_tree, who, refs)
        self.fun = fun


def shown_call(structure: Any) -> str:
    """The structure of (args, kwargs) as messages show it: that of a call."""
    args, kwargs = structure.children()
    parts = [shown(a) for a in args.children()]
    _, names = kwargs.node_data()
    parts += [f"{k}={shown(v)}" for k, v in zip(names, kwargs.children(), strict=True)]
    return f"({', '.join(parts)})"


def check_same_tree(treedef: Any, expected: Any, who: str, what: str) -> None:
    """Raise TreeError unless the structures agree."""
    if treedef != expected:
        raise TreeError(
            f"{who}: {what} must have the structure {shown(expected)}, got {shown(treedef)}"
        )
