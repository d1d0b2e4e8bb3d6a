"""The shape that arrays have together: dimensions are aligned at the end, and 1 is repeated."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import zip_longest

from phalanx.base.errors import ShapeError
from phalanx.base.recent import memoized
from phalanx.base.source import user_location

Shape = tuple[int, ...]


def common_shape(who: str, *shapes: Shape) -> Shape:
    """The shape to which ``shapes`` broadcast: dimensions are aligned at the end.

    Raises:
        ShapeError: two of them have different lengths, neither 1, in a dimension.

    >>> common_shape("add", (2, 1), (3,))
    (2, 3)
    """
    shape = _common_shape(shapes)
    if shape is None:
        raise ShapeError(
            f"{who}: Incompatible shapes for broadcasting: shapes={list(shapes)}, at "
            f"{user_location()}; aligned at their last dimension, two lengths must be equal or one "
            "of them 1"
        )
    return shape


def check_fills(who: str, what: str, shape: Shape, target: Shape) -> None:
    """Refuse ``what``, of ``shape``, if it does not broadcast to ``target`` as that is.

    >>> check_fills("at", "values", (3, 1), (2, 3, 4))
    """
    if not fills(shape, target):
        raise ShapeError(
            f"{who}: Incompatible shapes for broadcasting: {what} of shape {shape} and requested "
            f"shape {target}, at {user_location()}; aligned at their last dimension, each length "
            "must be 1 or the requested one"
        )


def fills(shape: Shape, target: Shape) -> bool:
    """Whether ``shape`` broadcasts to ``target`` as that is.

    >>> fills((3, 1), (2, 3, 4)), fills((2,), (1,))
    (True, False)
    """
    ends: Iterable[tuple[int, int]] = zip(reversed(shape), reversed(target), strict=False)
    return len(shape) <= len(target) and all(n in (1, m) for n, m in ends)


@memoized(4096)
def _common_shape(shapes: tuple[Shape, ...]) -> Shape | None:
    shape: list[int] = []  # from the last dimension
    for column in zip_longest(*map(reversed, shapes), fillvalue=1):
        longer = [n for n in column if n != 1] or [1]
        if any([n != longer[0] for n in longer]):
            return None
        shape.append(longer[0])
    return tuple(reversed(shape))
