"""Lanes of functions with derivative rules: where their results have them, and rules must, too."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from phalanx.base import dtypes
from phalanx.core.axes import Axis
from phalanx.core.primitive import ZERO
from phalanx.core.program import Program
from phalanx.core.types import ArrayType, typeof
from phalanx.transforms.batch import Dims, batch_program, place_lanes


class ResultDims:
    """Where results have their lanes; a Python function tells that when it first runs.

    ``own_lanes``: results with derivatives have lanes in any case, also where all are the same. For
    the cotangents of lanes are added up where lanes share a result, and a backward rule, which
    need not be linear, is to see those of one lane.
    """

    def __init__(self, axis: Axis, who: str, own_lanes: bool) -> None:
        self.axis = axis
        self.who = who
        self.own_lanes = own_lanes
        self.dims: Dims | None = None

    def put(self, values: Sequence[Any], dims: Sequence[int | None]) -> list[Any]:
        """The results with their lanes where they belong."""
        if self.dims is None:
            types = map(typeof, values)
            self.dims = tuple([self.dim_of_result(d, t) for d, t in zip(dims, types, strict=True)])
        return [self.placed(v, d, to) for v, d, to in zip(values, dims, self.dims, strict=True)]

    def put_pairs(self, values: Sequence[Any], dims: Sequence[int | None]) -> list[Any]:
        """Results and then their tangents, each tangent where its result is."""
        count = len(values) // 2
        pairs = list(zip(dims[:count], dims[count:], strict=True))
        if self.dims is None:
            self.dims = tuple([None if a is None and b is None else 0 for a, b in pairs])
        where = [*self.dims, *self.dims]
        return [self.placed(v, d, to) for v, d, to in zip(values, dims, where, strict=True)]

    def dim_of_result(self, dim: int | None, type: ArrayType) -> int | None:
        """The dimension in which a result with lanes in ``dim`` gets them; None if in none."""
        needed = self.own_lanes and dtypes.is_inexact(type.dtype)
        return 0 if dim is not None or needed else None

    def placed(self, value: Any, dim: int | None, to: int | None) -> Any:
        """A result with its lanes in dimension ``to``; TypeError if it is to have none."""
        if value is ZERO or (to is None and dim is None):
            return value
        if to is None:
            raise TypeError(
                f"{self.who}: the function's result is the same in all lanes of axis "
                f"{self.axis.name!r}, but what the rule gives for it differs between them; reduce "
                "it in the rule as the function does, with psum or pmean"
            )
        return place_lanes(value, dim, to, self.axis.size)


def program_on_lanes(program: Program, dims: Dims, places: ResultDims) -> Program:
    """``program`` on all lanes; tells ``places``.

    Where any operand has lanes all results get them, because a rule may make a tangent of one
    depend on any operand; unless the function communicates, and so makes results the same.
    """
    axis = places.axis
    alone = batch_program(program, axis, dims).about
    mixing = axis.name in program.axes or all(d is None for d in dims)
    places.dims = tuple(
        [
            places.dim_of_result(d, t) if mixing else 0
            for d, t in zip(alone, program.output_types, strict=True)
        ]
    )
    return batch_program(program, axis, dims, tuple([d == 0 for d in places.dims])).program
