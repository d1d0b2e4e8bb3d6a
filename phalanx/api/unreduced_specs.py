"""Sums that are still to be taken, where a function over a mesh begins and ends."""

from __future__ import annotations

from typing import Any

from phalanx.base.errors import ShardingTypeError, coded
from phalanx.base.source import user_location
from phalanx.core.correspond import how_to_sum
from phalanx.core.manual import typed, user_axis_name
from phalanx.core.roles import Role, blocks
from phalanx.core.types import ArrayType
from phalanx.primitives.basis import reshape
from phalanx.spmd.named import PartitionSpec


def check_argument(type: ArrayType, role: Role, name: str, who: str) -> None:
    """Raise ShardingTypeError unless an argument is the sum that its spec says it is."""
    missing = sorted(frozenset(map(user_axis_name, role.unreduced)) - type.unreduced)
    if missing:
        error = ShardingTypeError(
            f"{who}: in_specs say that {name} is unreduced along {missing[0]!r}, at "
            f"{user_location()}, but it is {type}, of which no sum over that axis is still to be "
            f"taken. Leave it out of the spec, or make a sum of it: phalanx.reshard(x, "
            f"P(.., unreduced={{{missing[0]!r}}}))"
        )
        raise coded(error, "of another kind")


def check_result(type: ArrayType, role: Role, what: str, who: str) -> None:
    """Raise ShardingTypeError unless a result is the sum that its spec says it is, and only that.

    Args:
        type: its type, to a position.
        role: what its spec says.
        what: who says what of it, the beginning of a sentence.
        who: the function, for messages.
    """
    line = user_location()
    left, requested = typed(type.unreduced), typed(role.unreduced)
    for axis in sorted(left - requested, key=str):
        raise ShardingTypeError(
            f"{who}: {what} is complete along {axis!r}, at {line}, but it is {type}, of which the "
            f"sum over that axis is still to be taken. Take it, {how_to_sum(type)}, or say so in "
            f"its spec, P(.., unreduced={{{axis!r}}})"
        )
    for axis in sorted(requested - left, key=str):
        error = ShardingTypeError(
            f"{who}: {what} is unreduced along {axis!r}, at {line}, but it is {type}. Where each "
            f"position has its part of a sum, say so: phalanx.lax.pcast(x, {axis!r}, "
            "to='unreduced'), of what varies along the axis"
        )
        raise coded(error, "of another kind")
    for axis in sorted(typed(type.reduced) - role.reduced - role.axes, key=str):
        raise ShardingTypeError(
            f"{who}: {what} has a complete cotangent along {axis!r}, at {line}, but it is {type}, "
            f"whose cotangent is unreduced. Say so in its spec, P(.., reduced={{{axis!r}}})"
        )


# ---- the parts of sums as rows ------------------------------------------------------------------


def in_rows(role: Role) -> Role:
    """``role``; of a sum that is still to be taken, that of its parts, as rows of a dimension for
    each of its axes."""
    if not role.unreduced:
        return role
    return blocks((*[(axis,) for axis in _ordered(role)], *role.layout))


def row_of(part: Any, role: Role) -> Any:
    """The rows of a position; its ``part`` of a sum is one of them."""
    ones = (1,) * len(role.unreduced)
    return reshape(part, shape=(*ones, *part.shape)) if ones else part


def part_of(row: Any, role: Role) -> Any:
    """The part of the sum that is the ``row`` of a position."""
    return reshape(row, shape=row.shape[len(role.unreduced) :]) if role.unreduced else row


def spec_of_role(role: Role) -> PartitionSpec:
    """The spec of what has ``role``."""
    layout = tuple([tuple(map(user_axis_name, cutting)) for cutting in role.layout])
    return PartitionSpec.of(layout).update(unreduced=set(map(user_axis_name, role.unreduced)))


def _ordered(role: Role) -> list[Any]:
    return sorted(role.unreduced, key=str)
