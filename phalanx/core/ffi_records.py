"""Functions of other languages, as programs name them: records that compare and hash."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from msgspec import Struct

Layouts = tuple[tuple[int, ...], ...]
Attributes = tuple[tuple[str, Any], ...]  # by name; each a tuple of what it is made of


class ForeignFunction(Struct, frozen=True):
    """A function that is registered with XLA, and its attributes.

    Attributes:
        target: the name by which it is registered.
        attributes: the values that it gets by name, as ``attributes_of`` gives them.
        in_layouts: of each operand its dimensions, the outermost in memory first.
        out_layouts: the same of each result.
        aliases: (operand, result) pairs that share memory.
        version: of the interface that it has; 4 is the typed one.
        opaque: what one of an older version is told in place of attributes.
    """

    target: str
    attributes: Attributes
    in_layouts: Layouts
    out_layouts: Layouts
    aliases: tuple[tuple[int, int], ...]
    version: int
    opaque: str | None

    @property
    def values(self) -> dict[str, Any]:
        """The attributes: booleans, text, NumPy's scalars and arrays, and dicts of these."""
        return _values(self.attributes)


def attributes_of(attributes: Mapping[str, Any], who: str) -> Attributes:
    """Attributes as tuples that are equal where the function cannot tell a difference.

    Python's numbers have 64 bits. Tuples and lists of numbers are arrays.

    Raises:
        TypeError: one is no boolean, number, text, array or dict; ``who`` takes it.
    """
    return tuple(
        [(str(name), _parts(name, value, who)) for name, value in sorted(attributes.items())]
    )


def _is(value: Any, *kinds: type[Any]) -> bool:
    return isinstance(value, kinds)


def _parts(name: str, value: Any, who: str) -> tuple[Any, ...]:
    if _is(value, bool, np.bool_):
        return "truth", bool(value)
    if _is(value, str, bytes):
        return "text", value if isinstance(value, str) else value.decode()
    if _is(value, Mapping):
        return "dict", attributes_of(value, who)
    kind = "array" if _is(value, np.ndarray, tuple, list) else "number"
    if kind == "array" or _is(value, int, float, np.generic):
        array: np.ndarray[Any, np.dtype[Any]] = np.asarray(value)
        if array.dtype.kind in "biufV":  # V: what ml_dtypes adds
            return kind, array.dtype.name, array.shape, array.tobytes()
    raise TypeError(
        f"{who}: the attribute {name} must be a boolean, a number, text, an array of NumPy, or a "
        f"dict of these, got {value!r} of type {type(value).__name__}; pass arrays with data by "
        "position"
    )


def _values(attributes: Attributes) -> dict[str, Any]:
    return {name: _value(*parts) for name, parts in attributes}


def _value(kind: str, *parts: Any) -> Any:
    if kind == "dict":
        return _values(parts[0])
    if kind in ("truth", "text"):
        return parts[0]
    dtype, shape, data = parts
    array: np.ndarray[Any, Any] = np.ndarray(shape, dtype, data)
    return array if kind == "array" else array[()]
