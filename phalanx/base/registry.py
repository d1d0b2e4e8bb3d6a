"""The classes whose instances are nodes of trees, and how others join them."""

from __future__ import annotations

import dataclasses
import functools
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from types import NoneType
from typing import Any, NamedTuple, TypeVar

from phalanx.base.errors import TreeError
from phalanx.base.keys import key_of
from phalanx.base.kinds import class_of
from phalanx.base.source import user_location
from phalanx.xla.pytrees import DictKey, GetAttrKey, PyTreeRegistry

Class = TypeVar("Class", bound=type)
Flatten = Callable[[Any], tuple[Iterable[Any], Any]]
FlattenWithKeys = Callable[[Any], tuple[Iterable[tuple[Any, Any]], Any]]
Unflatten = Callable[[Any, Any], Any]


class Registry(PyTreeRegistry):
    """The classes that are nodes, and what can be done with them: there is one for users."""

    def register_node(
        self,
        type: type,
        to_iterable: Flatten,
        from_iterable: Unflatten,
        to_iterable_with_keys: FlattenWithKeys | None = None,
    ) -> None:
        """``register_pytree_node``, with its arguments."""
        register_pytree_node(type, to_iterable, from_iterable, to_iterable_with_keys)


NODES = Registry()
CALLS = PyTreeRegistry()  # of structures as parts of the keys of calls
NODES.__module__, NODES.__name__ = __name__, "NODES"  # as which structures are pickled
CALLS.__module__, CALLS.__name__ = __name__, "CALLS"


class Registered(NamedTuple):
    """How nodes of a class are taken apart and put together."""

    to_iter: Flatten
    from_iter: Unflatten


def _from_children(kind: Callable[[Iterable[Any]], Any]) -> Unflatten:
    return lambda _, children: kind(children)


def _dict(keys: Iterable[Any], children: Iterable[Any]) -> dict[Any, Any]:
    return dict(zip(keys, children, strict=True))


_flatten: Any = NODES.flatten_one_level
ENTRIES: dict[type, Registered] = {
    tuple: Registered(_flatten, _from_children(tuple)),
    list: Registered(_flatten, _from_children(list)),
    dict: Registered(_flatten, _dict),
    NoneType: Registered(_flatten, _from_children(lambda _: None)),
}


class _Metadata:
    """What a node keeps beside its children, told apart by its ``key`` from what equals it."""

    __slots__ = ("data", "key")

    def __init__(self, data: Any, key: Hashable) -> None:
        self.data = data
        self.key = key

    def __eq__(self, other: object) -> bool:
        return type(other) is _Metadata and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    def __repr__(self) -> str:
        return repr(self.data)


def register_pytree_node(
    nodetype: type,
    flatten_func: Flatten,
    unflatten_func: Unflatten,
    flatten_with_keys_func: FlattenWithKeys | None = None,
) -> None:
    """Make instances of the class ``nodetype`` nodes of trees.

    Args:
        nodetype: the class.
        flatten_func: from an instance to ``(children, metadata)``; the metadata is part of the
            structure, hence must be hashable and comparable.
        unflatten_func: from ``(metadata, children)`` to an instance. The children may be any
            objects, so it should not look into them.
        flatten_with_keys_func: as ``flatten_func``, with pairs ``(key, child)``; the keys appear
            in paths.

    Raises:
        TypeError: ``nodetype`` is no class.
        ValueError: the class is registered already.

    >>> from phalanx import tree_util
    >>> class Interval:
    ...     def __init__(self, low, high):
    ...         self.low, self.high = low, high
    >>> tree_util.register_pytree_node(
    ...     Interval, lambda x: ((x.low, x.high), None), lambda _, ends: Interval(*ends)
    ... )
    >>> tree_util.tree_leaves(Interval(1, 2))
    [1, 2]
    """
    _refuse_other_than_new_classes(nodetype, "register_pytree_node")
    PyTreeRegistry.register_node(
        NODES, nodetype, flatten_func, unflatten_func, flatten_with_keys_func
    )
    _register_for_calls(nodetype, flatten_func, unflatten_func)
    ENTRIES[nodetype] = Registered(flatten_func, unflatten_func)


def _register_for_calls(nodetype: type, flatten_func: Flatten, unflatten_func: Unflatten) -> None:
    def flatten(node: Any) -> tuple[Iterable[Any], Any]:
        flattened = flatten_func(node)
        if class_of(flattened) is not tuple or len(flattened) != 2:
            return flattened  # jaxlib says what is wrong with it
        children, metadata = flattened
        key = key_of(metadata)
        return children, metadata if key is metadata else _Metadata(metadata, key)

    def unflatten(metadata: Any, children: Any) -> Any:
        data = metadata.data if type(metadata) is _Metadata else metadata
        return unflatten_func(data, children)

    CALLS.register_node(nodetype, flatten, unflatten)


def _refuse_other_than_new_classes(nodetype: Any, who: str) -> None:
    if not isinstance(nodetype, type):
        raise TypeError(f"{who}: a class is needed, got {nodetype!r} of {type(nodetype)}")
    if nodetype in ENTRIES:
        raise ValueError(
            f"{who}: {nodetype} is already registered as a node of trees; a subclass of it can "
            "be registered otherwise"
        )


def register_pytree_with_keys(
    nodetype: type,
    flatten_with_keys: FlattenWithKeys,
    unflatten_func: Unflatten,
    flatten_func: Flatten | None = None,
) -> None:
    """``register_pytree_node`` for a class that names its children.

    Args:
        nodetype: the class.
        flatten_with_keys: from an instance to ``(pairs of key and child, metadata)``.
        unflatten_func: from ``(metadata, children)`` to an instance. The children may be any
            objects, so it should not look into them.
        flatten_func: from an instance to ``(children, metadata)``; the metadata is part of the
            structure, hence must be hashable and comparable.

    >>> from phalanx import tree_util
    >>> class Span:
    ...     def __init__(self, low, high):
    ...         self.low, self.high = low, high
    >>> def children(span):
    ...     names = tree_util.GetAttrKey("low"), tree_util.GetAttrKey("high")
    ...     return list(zip(names, (span.low, span.high))), None
    >>> tree_util.register_pytree_with_keys(Span, children, lambda _, ends: Span(*ends))
    >>> [tree_util.keystr(path) for path, _ in tree_util.tree_leaves_with_path(Span(1, 2))]
    ['.low', '.high']
    """

    def without_keys(node: Any) -> tuple[list[Any], Any]:
        pairs, metadata = flatten_with_keys(node)
        return [child for _, child in pairs], metadata

    register_pytree_node(nodetype, flatten_func or without_keys, unflatten_func, flatten_with_keys)


def register_pytree_node_class(cls: Class) -> Class:
    """Decorator: make ``cls`` a node by its ``tree_flatten`` and ``tree_unflatten`` methods.

    Args:
        cls: the class; it is returned, so this is a decorator.

    Returns:
        The class.

    >>> from phalanx import tree_util
    >>> @tree_util.register_pytree_node_class
    ... class Pair:
    ...     def __init__(self, x, y): self.x, self.y = x, y
    ...     def tree_flatten(self): return (self.x, self.y), None
    ...     @classmethod
    ...     def tree_unflatten(cls, metadata, children): return cls(*children)
    >>> tree_util.tree_leaves(Pair(1, (2, 3)))
    [1, 2, 3]
    """
    register_pytree_node(
        cls,
        lambda node: node.tree_flatten(),
        lambda metadata, children: cls.tree_unflatten(metadata, children),  # type: ignore[attr-defined]
    )
    return cls


def register_pytree_with_keys_class(cls: Class) -> Class:
    """Decorator as ``register_pytree_node_class``, by ``tree_flatten_with_keys``.

    Args:
        cls: the class; it is returned, so this is a decorator.

    Returns:
        The class.

    >>> from phalanx import tree_util
    >>> @tree_util.register_pytree_with_keys_class
    ... class Box:
    ...     def __init__(self, inside):
    ...         self.inside = inside
    ...     def tree_flatten_with_keys(self):
    ...         return [(tree_util.GetAttrKey("inside"), self.inside)], None
    ...     @classmethod
    ...     def tree_unflatten(cls, _, children):
    ...         return cls(*children)
    >>> tree_util.tree_leaves_with_path(Box(3))[0][1]
    3
    """
    register_pytree_with_keys(
        cls,
        lambda node: node.tree_flatten_with_keys(),
        lambda metadata, children: cls.tree_unflatten(metadata, children),  # type: ignore[attr-defined]
        (lambda node: node.tree_flatten()) if hasattr(cls, "tree_flatten") else None,
    )
    return cls


def how_to_register(kind: type) -> str:
    """What makes objects of this class nodes of trees; nothing for those of Python itself."""
    if hasattr(kind, "__dataclass_fields__"):
        return f"call tree_util.register_dataclass({kind.__name__}) before"
    return "" if kind.__module__ == "builtins" else "register its class as a tree node"


def register_dataclass(
    nodetype: Class,
    data_fields: Sequence[str] | None = None,
    meta_fields: Sequence[str] | None = None,
    drop_fields: Sequence[str] = (),
) -> Class:
    """Make a dataclass a node: data fields are children, meta fields are part of the structure.

    Args:
        nodetype: the class. It is built anew by calling it with all fields by keyword.
        data_fields: names of the children. By default all fields of a dataclass that are not
            declared with ``field(metadata={"static": True})``.
        meta_fields: names of the fields that must be hashable and comparable.
        drop_fields: names of the fields that are left out and get their defaults again.

    Returns:
        ``nodetype``, so that it can be a decorator.

    Raises:
        TypeError: ``nodetype`` is no class.
        ValueError: the names do not cover the fields, or the class is registered already.

    >>> from phalanx import tree_util
    >>> @tree_util.register_dataclass
    ... @dataclasses.dataclass
    ... class Point:
    ...     x: float
    ...     label: str = dataclasses.field(default="", metadata={"static": True})
    >>> tree_util.tree_map(lambda v: v + 1, Point(1.0, "a"))
    Point(x=2.0, label='a')
    """
    _refuse_other_than_new_classes(nodetype, "register_dataclass")
    data, meta = _fields(nodetype, data_fields, meta_fields, drop_fields)

    def flatten(node: Any) -> tuple[list[Any], tuple[Any, ...]]:
        return [getattr(node, name) for name in data], tuple([getattr(node, n) for n in meta])

    def unflatten(metadata: Iterable[Any], children: Iterable[Any]) -> Any:
        return nodetype(
            **dict(zip(data, children, strict=True)), **dict(zip(meta, metadata, strict=True))
        )

    NODES.register_dataclass_node(nodetype, data, meta)
    if meta:
        _register_for_calls(nodetype, flatten, unflatten)
    else:
        CALLS.register_dataclass_node(nodetype, data, meta)
    ENTRIES[nodetype] = Registered(flatten, unflatten)
    return nodetype


def _fields(
    cls: type,
    data: Sequence[str] | None,
    meta: Sequence[str] | None,
    drop: Sequence[str],
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    who = f"register_dataclass: {cls.__name__}"
    if not dataclasses.is_dataclass(cls):
        if data is None or meta is None:
            raise ValueError(f"{who} is not a dataclass; give data_fields and meta_fields")
        return tuple(data), tuple(meta)
    init = [f for f in dataclasses.fields(cls) if f.init and f.name not in drop]
    if data is None and meta is None:
        meta = [f.name for f in init if f.metadata.get("static")]
    names = [f.name for f in init]
    meta = [n for n in names if n not in (data or ())] if meta is None else meta
    data = [n for n in names if n not in meta] if data is None else data
    if sorted((*data, *meta)) != sorted(names):
        raise ValueError(
            f"{who} has the fields {names}, but data_fields={list(data)} and "
            f"meta_fields={list(meta)}; each field must be in one of them, or in drop_fields"
        )
    return tuple(data), tuple(meta)


def register_static(cls: Class) -> Class:
    """Make instances of ``cls`` nodes without leaves, compared as part of the structure.

    Args:
        cls: the class; it is returned, so this is a decorator.

    Returns:
        The class.

    >>> from phalanx import tree_util
    >>> @tree_util.register_static
    ... class Mode(str): ...
    >>> tree_util.tree_leaves((1, Mode("train")))
    [1]
    """
    register_pytree_node(cls, lambda node: ((), node), lambda node, _: node)
    return cls


class Partial(functools.partial[Any]):
    """A ``functools.partial`` that is a tree: its arguments are children.

    Args:
        func: the function, which is part of the structure.
        args: its first arguments: trees of arrays.
        keywords: arguments by keyword: trees of arrays.

    >>> from phalanx import tree_util
    >>> add = tree_util.Partial(lambda x, y: x + y, 1)
    >>> tree_util.tree_leaves(add), tree_util.tree_map(lambda x: 10 * x, add)(2)
    ([1], 12)
    """


register_pytree_with_keys(
    Partial,
    lambda node: (
        ((GetAttrKey("args"), node.args), (GetAttrKey("keywords"), node.keywords)),
        node.func,
    ),
    lambda func, children: Partial(func, *children[0], **children[1]),
    lambda node: ((node.args, node.keywords), node.func),
)

register_pytree_with_keys(
    OrderedDict,
    lambda node: ([(DictKey(key), x) for key, x in node.items()], tuple(node)),
    lambda keys, children: OrderedDict(zip(keys, children, strict=True)),
    lambda node: (node.values(), tuple(node)),
)


def keys_do_not_sort(error: BaseException) -> TreeError:
    """The error for a dict whose keys Python does not sort, as ``error`` says."""
    return TreeError(
        f"the keys of a dict in a tree must sort: {error}, at {user_location()}; use keys of one "
        "kind, or an OrderedDict, whose keys stay in their order"
    )


def _by_sorted_keys(node: defaultdict[Any, Any]) -> tuple[list[tuple[DictKey, Any]], Any]:
    try:
        keys = tuple(sorted(node))
    except TypeError as error:
        raise keys_do_not_sort(error) from None
    return [(DictKey(key), node[key]) for key in keys], (node.default_factory, keys)


register_pytree_with_keys(
    defaultdict,
    _by_sorted_keys,
    lambda data, children: defaultdict(data[0], zip(data[1], children, strict=True)),
)
