"""Signatures such as "(n,m),(m)->(n)": the dimensions of operands and results, by name."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from msgspec import Struct

from phalanx.base.errors import ShapeError
from phalanx.base.source import user_location

Names = tuple[str, ...]
Shape = Sequence[Any]

_SPACES = re.compile(r"\s*([(),]|->)\s*")
_ARRAY = re.compile(r"\(((?:\w+(?:,\w+)*)?)\)")


class CoreDims(Struct, frozen=True):
    """The names of the dimensions of each operand and of each result, and how they are written.

    >>> signature("(n,m),(m)->(n)").operands
    (('n', 'm'), ('m',))
    """

    text: str
    operands: tuple[Names, ...]
    results: tuple[Names, ...]

    def sizes(self, dims: Iterable[tuple[Names, Shape]]) -> dict[str, Any]:
        """The size of each name, by the last dimensions of operands.

        Raises:
            ShapeError: one has too few dimensions, or another size for a name than one before.
        """
        found: dict[str, Any] = {}
        for names, shape in dims:
            if len(shape) < len(names):
                raise ShapeError(
                    f"vectorize: an operand ({','.join(names)}) of the signature {self.text!r} "
                    f"needs {len(names)} dimensions, got shape {tuple(shape)}, at {user_location()}"
                )
            self._meet(found, names, shape[len(shape) - len(names) :], "an operand")
        return found

    def check_results(self, sizes: dict[str, Any], single: bool, shapes: Sequence[Shape]) -> None:
        """Check what the function returned for ``sizes`` of the dimensions of its operands.

        Raises:
            TypeError: it returned another number of results.
            ShapeError: they have other dimensions.
        """
        if len(shapes) != len(self.results) or (single and len(self.results) > 1):
            got = "one that is no tuple" if single else str(len(shapes))
            raise TypeError(
                f"vectorize: the function must return {len(self.results)} results by the signature "
                f"{self.text!r}, got {got}, at {user_location()}"
            )
        found = dict(sizes)
        for names, shape in zip(self.results, shapes, strict=True):
            if len(shape) != len(names):
                raise ShapeError(
                    f"vectorize: the function must return an array of dimensions "
                    f"({','.join(names)}) by the signature {self.text!r}, got shape "
                    f"{tuple(shape)}, at {user_location()}"
                )
            self._meet(found, names, shape, "a result")

    def _meet(self, found: dict[str, Any], names: Names, shape: Shape, whose: str) -> None:
        for name, size in zip(names, shape, strict=True):
            if found.setdefault(name, size) != size:
                raise ShapeError(
                    f"vectorize: the dimension {name!r} of the signature {self.text!r} has the "
                    f"size {size} in {whose} of shape {tuple(shape)}, and {found[name]} before, "
                    f"at {user_location()}"
                )


def signature(text: str) -> CoreDims:
    """The signature that ``text`` is; spaces may stand between names and signs, as for NumPy.

    Raises:
        ValueError: it is none.
    """
    close = _SPACES.sub(r"\1", text)
    sides = [_ARRAY.findall(side) for side in close.split("->")]
    written = "->".join(",".join(f"({names})" for names in side) for side in sides)
    if len(sides) != 2 or not all(sides) or written != close:
        raise ValueError(
            f"vectorize: {text!r} is not a signature such as '(n,m),(m)->(n)', at {user_location()}"
        )
    operands, results = (tuple(map(_names, side)) for side in sides)
    return CoreDims(text, operands, results)


def _names(listed: str) -> Names:
    return tuple(listed.split(",")) if listed else ()
