"""Descriptions and data in bytes that outlive this version, and damage to which is found.

They begin with who wrote them, the version of the form, and a checksum of all that follows: how
long the descriptions are; these, as JSON; and the data, one after the other. Nothing in them is run
when they are read, and no class is imported.
"""

# Users' arguments are looked at, whatever their types should be.
# pyright: reportUnnecessaryIsInstance=false

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import struct
from collections import OrderedDict
from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any, NamedTuple, NoReturn, TypeVar

from phalanx.base import dtypes, tree
from phalanx.base.extended import KEY_TYPES, key_type_in_files, name_in_files
from phalanx.base.kinds import class_of
from phalanx.base.lengths import Length
from phalanx.base.registry import ENTRIES
from phalanx.core.types import ArrayType
from phalanx.spmd.mesh import AbstractMesh, AnyMesh, AxisType
from phalanx.spmd.named import NamedSharding, P

Class = TypeVar("Class", bound=type)
Parts = Sequence[tuple[dict[str, Any], bytes]]

FORM = 3  # since 2 lengths may be symbolic, since 3 there may be several devices
_MAGIC = b"phalanx.export\0"
_HEAD = struct.Struct(f">{len(_MAGIC)}sI32s")
_LENGTH = struct.Struct(">Q")


def pack(parts: Parts) -> bytearray:
    """Descriptions, each with its data, as bytes."""
    header = json.dumps([{**words, "size": len(data)} for words, data in parts]).encode()
    body = b"".join([_LENGTH.pack(len(header)), header, *[data for _, data in parts]])
    return bytearray(_HEAD.pack(_MAGIC, FORM, hashlib.sha256(body).digest()) + body)


def unpack(blob: bytes | bytearray) -> list[tuple[dict[str, Any], bytes]]:
    """What ``pack`` was given.

    Raises:
        TypeError: ``blob`` is no bytes.
        ValueError: it is damaged, or was not written by ``pack``, or by a later version of it.
    """
    if not isinstance(blob, (bytes, bytearray, memoryview)):
        raise TypeError(f"deserialize: bytes are needed, got an object of type {type(blob)}")
    blob = bytes(blob)
    if not blob.startswith(_MAGIC):
        _refuse(
            f"bytes that Exported.serialize gave are needed; these begin with {blob[:16]!r}. Those "
            "of other libraries hold a module of their own: export the function with this one"
        )
    if len(blob) < _HEAD.size:
        _refuse("the bytes are cut off")
    _, form, digest = _HEAD.unpack_from(blob)
    if form > FORM:
        _refuse(f"the bytes are of form {form}, and this version reads up to {FORM}")
    body = blob[_HEAD.size :]
    if hashlib.sha256(body).digest() != digest:
        _refuse("the bytes are damaged or cut off: their checksum is wrong")
    try:
        return _parts(body)
    except (KeyError, TypeError, ValueError, RecursionError, struct.error) as e:
        _refuse(f"the bytes are not told of as they should be: {e}"[:400])


def _parts(body: bytes) -> list[tuple[dict[str, Any], bytes]]:
    at = _LENGTH.size + _LENGTH.unpack_from(body)[0]
    parts: list[tuple[dict[str, Any], bytes]] = []
    for words in json.loads(body[_LENGTH.size : at]):
        size = words["size"]
        if type(size) is not int or not 0 <= size <= len(body) - at:
            raise ValueError(f"{size!r:.20} bytes, of which {len(body) - at} are there")
        parts.append((words, body[at : at + size]))
        at += size
    return parts


@contextlib.contextmanager
def understood(words: Mapping[str, Any]) -> Generator[None]:
    """A block that reads what ``words`` tell of a function, in which whoever wrote them errs.

    Raises:
        ValueError: something in them cannot be.
    """
    try:
        yield
    except (KeyError, IndexError, TypeError, AttributeError, RecursionError, ArithmeticError) as e:
        name = words.get("fun_name")
        raise ValueError(
            f"deserialize: what is told of {name!r:.80} cannot be: {type(e).__name__}: {e}"[:400]
        ) from None


def _refuse(why: str) -> NoReturn:
    raise ValueError(f"deserialize: {why}")


# ---- types ----------------------------------------------------------------------------------

_DTYPES = {
    **{dtype.name: dtype for dtype in dtypes.ALL},
    **{dtype.name: dtype for dtype in KEY_TYPES.values()},
    "float0": dtypes.float0,
}
_NAMES = {dtype: name for name, dtype in _DTYPES.items()}


def describe_type(type: ArrayType) -> list[Any]:
    """A type as JSON."""
    shape = [str(n) if isinstance(n, Length) else n for n in type.shape]
    name = _NAMES.get(type.dtype) or name_in_files(type.dtype, "serialize")
    return [shape, name, type.weak]


def type_of(data: Any, length: Callable[[str], Any]) -> ArrayType:
    """The type that was described; ``length`` reads symbolic lengths."""
    shape, name, weak = data
    lengths = [_length(length(n) if isinstance(n, str) else n) for n in shape]
    try:
        dtype = _DTYPES[name] if name in _DTYPES else key_type_in_files(name)
    except ValueError as e:
        _refuse(str(e))
    return ArrayType(tuple(lengths), dtype, weak)


def _length(n: Any) -> Any:
    if isinstance(n, Length) or (type(n) is int and n >= 0):
        return n
    _refuse(f"the length of a dimension is a number from 0 up, got {n!r:.80}")


def describe_mesh(mesh: AnyMesh | None) -> Any:
    """The axes of a mesh as JSON; None where there is none."""
    if mesh is None:
        return None
    return [[name, n, t.name] for (name, n), t in zip(mesh.axes, mesh.axis_types, strict=True)]


def mesh_of(data: Any) -> AbstractMesh | None:
    """The mesh that was described, without devices."""
    return None if data is None else _mesh_of(data)


def _mesh_of(axes: Any) -> AbstractMesh:
    names, sizes, types = zip(*axes, strict=True)
    return AbstractMesh(sizes, names, tuple([AxisType[t] for t in types]))


def describe_sharding(sharding: NamedSharding | None) -> Any:
    """How a value lies over a mesh, without its devices, as JSON; None where nothing is said."""
    if sharding is None:
        return None
    spec = sharding.spec
    layout = [None if names is None else list(names) for names in spec.open_layout]
    return [describe_mesh(sharding.mesh), layout, sorted(spec.unreduced), sorted(spec.reduced)]


def read_sharding(data: Any) -> NamedSharding | None:
    """How it was described that a value lies."""
    if data is None:
        return None
    axes, layout, unreduced, reduced = data
    entries = [None if names is None else tuple(names) for names in layout]
    spec = P(unreduced=set(unreduced), reduced=set(reduced)).with_layout(entries)
    return NamedSharding(_mesh_of(axes), spec)


# ---- trees ----------------------------------------------------------------------------------


class _Form(NamedTuple):
    """How the nodes of a class are written."""

    cls: type
    name: str
    to_bytes: Callable[[Any], bytes]
    from_bytes: Callable[[bytes], Any]
    build: Callable[[Any, Sequence[Any]], Any]


_by_class: dict[type, _Form] = {}
_by_name: dict[str, _Form] = {}


def register_pytree_node_serialization(
    nodetype: Class,
    *,
    serialized_name: str,
    serialize_auxdata: Callable[[Any], bytes],
    deserialize_auxdata: Callable[[bytes], Any],
    from_children: Callable[[Any, Sequence[Any]], Any] | None = None,
) -> Class:
    """Say how nodes of a class are written in arguments and results of what is exported.

    Whoever reads them says the same before.

    Args:
        nodetype: a class that is registered as a node of trees.
        serialized_name: what stands for it in bytes.
        serialize_auxdata: from what the node keeps besides its children to bytes.
        deserialize_auxdata: the inverse.
        from_children: from what it keeps and its children to a node; by default as the class was
            registered.

    Returns:
        ``nodetype``.

    Raises:
        ValueError: the class or the name is registered already, or the class is no node.

    >>> import phalanx
    >>> @phalanx.tree_util.register_pytree_node_class
    ... class Pair:
    ...     def __init__(self, x, y):
    ...         self.x, self.y = x, y
    ...     def tree_flatten(self):
    ...         return (self.x, self.y), None
    ...     @classmethod
    ...     def tree_unflatten(cls, _, children):
    ...         return cls(*children)
    >>> _ = register_pytree_node_serialization(
    ...     Pair, serialized_name="Pair", serialize_auxdata=lambda _: b"",
    ...     deserialize_auxdata=lambda _: None,
    ... )
    """
    build = from_children or _registered(nodetype)
    _register(_Form(nodetype, serialized_name, serialize_auxdata, deserialize_auxdata, build))
    return nodetype


def register_namedtuple_serialization(nodetype: Class, *, serialized_name: str) -> Class:
    """Say how a namedtuple is written in what is exported; it need not be registered as a node.

    Args:
        nodetype: the class.
        serialized_name: what it is called in the bytes.

    Returns:
        ``nodetype``.

    Raises:
        ValueError: the class or the name is registered already, or the class is no namedtuple.

    >>> import collections
    >>> Point = collections.namedtuple("Point", "x y")
    >>> _ = register_namedtuple_serialization(Point, serialized_name="Point")
    """
    fields = getattr(nodetype, "_fields", None)
    if fields is None or not issubclass(nodetype, tuple):
        raise ValueError(
            f"register_namedtuple_serialization: a namedtuple is needed, got {nodetype!r}"
        )

    def build(written: Any, children: Sequence[Any]) -> Any:
        if list(fields) != written:
            _refuse(f"{serialized_name} had the fields {written} and has now {list(fields)}")
        return nodetype(*children)

    def to_bytes(_: Any) -> bytes:
        return json.dumps(fields).encode()

    _register(_Form(nodetype, serialized_name, to_bytes, json.loads, build))
    return nodetype


def _register(form: _Form) -> None:
    if form.cls in _by_class or form.name in _by_name:
        taken = form.cls.__name__ if form.cls in _by_class else form.name
        raise ValueError(f"register_pytree_node_serialization: {taken} has been registered before")
    _by_class[form.cls] = _by_name[form.name] = form


def _registered(cls: type) -> Callable[[Any, Sequence[Any]], Any]:
    if cls not in ENTRIES:
        raise ValueError(
            f"register_pytree_node_serialization: {cls!r} is no node of trees; register it with "
            "tree_util.register_pytree_node first"
        )
    return ENTRIES[cls].from_iter


_BUILTIN: dict[type, str] = {tuple: "tuple", list: "list", dict: "dict", OrderedDict: "OrderedDict"}
_LEAF = object()


def describe_tree(structure: Any, what: str) -> Any:
    """A structure as JSON; ``what`` it is, for a message.

    Raises:
        ValueError: nobody said how nodes of a class in it are written.
    """
    return _described(structure.unflatten([_LEAF] * structure.num_leaves), what)


def _described(node: Any, what: str) -> Any:
    if node is _LEAF or node is None:
        return None if node is None else "*"
    keys, children, metadata = tree.one_level(node) or ((), (), None)
    inside = [_described(child, what) for child in children]
    kind = _BUILTIN.get(class_of(node))
    if kind in ("tuple", "list"):
        return [kind, inside]
    if kind is not None and all(type(key.key) in (str, int) for key in keys):
        return [kind, [key.key for key in keys], inside]
    form = _by_class.get(class_of(node))
    if form is None:
        raise ValueError(
            f"Exported.serialize: {what} has a node of {type(node)}, and nobody said how that is "
            "written; say it with export.register_pytree_node_serialization, or with "
            "export.register_namedtuple_serialization. Keys of dicts are text and integers"
        )
    return ["node", form.name, base64.b64encode(form.to_bytes(metadata)).decode(), inside]


def tree_of(data: Any) -> Any:
    """The structure that was described.

    Raises:
        ValueError: nobody said how nodes of a class in it are read.
    """
    return tree.structure(_built(data))


def _built(data: Any) -> Any:
    if data is None or data == "*":
        return None if data is None else 0
    kind, *rest = data
    children = list(map(_built, rest[-1]))
    if kind in ("tuple", "list"):
        return tuple(children) if kind == "tuple" else children
    if kind in ("dict", "OrderedDict"):
        pairs = zip(rest[0], children, strict=True)
        return dict(pairs) if kind == "dict" else OrderedDict(pairs)
    name, metadata, _ = rest
    if name not in _by_name:
        _refuse(
            f"there is a node called {name!r}, and nobody said how that is read; say it with "
            "export.register_pytree_node_serialization first"
        )
    form = _by_name[name]
    return form.build(form.from_bytes(base64.b64decode(metadata)), children)
