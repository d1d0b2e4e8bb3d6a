"""Programs on blocks of arrays, at every position of the axes of a mesh."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from phalanx.control.mapped import mapped
from phalanx.core.program import Equation, Program, Var
from phalanx.core.region import Axes, Layout
from phalanx.core.types import ArrayType
from phalanx.ops.basis import reshape
from phalanx.transforms.batch import Dims, with_lanes

Tags = tuple[Any, ...]  # per dimension, the axis whose positions it has; None: a row of the block


def on_whole_arrays(
    program: Program,
    axes: Axes,
    ins: Sequence[Layout],
    outs: Sequence[Layout],
    devices: tuple[Any, ...] | None,
) -> Program:
    """The program that cuts arrays into blocks, runs ``program`` on them, and joins the results.

    Axes lie one inside the other, and each cuts a dimension of its own between two reshapes.
    """
    in_types, out_types = program.input_types, program.output_types
    in_tags = [_tags(y, t.ndim) for y, t in zip(ins, in_types, strict=True)]
    out_tags = [_tags(y, t.ndim) for y, t in zip(outs, out_types, strict=True)]
    inner = program
    for i, (axis, size) in reversed(list(enumerate(axes))):
        outer = [name for name, _ in axes[:i]]
        in_dims = tuple([_dim(tags, axis, outer) for tags in in_tags])
        out_dims = tuple([_dim(tags, axis, outer) for tags in out_tags])
        inner = _lanes(inner, axis, size, in_dims, out_dims, None if i else devices)
    wholes = [_joined(t, tags) for t, tags in zip(inner.input_types, in_tags, strict=True)]
    results = [_joined(t, tags) for t, tags in zip(inner.output_types, out_tags, strict=True)]
    return _reshaped(inner, wholes, results)


def _tags(layout: Layout, ndim: int) -> Tags:
    every = (*layout, *((),) * (ndim - len(layout)))
    return tuple(tag for cutting in every for tag in (*cutting, None))


def _dim(tags: Tags, axis: Any, outer: Sequence[Any]) -> int | None:
    """Where the positions of ``axis`` are once those of the ``outer`` ones are gone."""
    left = [tag for tag in tags if tag not in outer]
    return left.index(axis) if axis in left else None


def _lanes(
    program: Program, axis: Any, size: int, in_dims: Dims, out_dims: Dims, devices: Any
) -> Program:
    params = {
        "program": program,
        "axis": axis,
        "size": size,
        "in_dims": in_dims,
        "out_dims": out_dims,
        "devices": devices,
    }
    pairs = zip(program.input_types, in_dims, strict=True)
    inputs = [Var(t if d is None else with_lanes(t, d, size)) for t, d in pairs]
    types: tuple[ArrayType, ...] = mapped.type(*[v.type for v in inputs], **params)
    outputs = tuple(map(Var, types))
    equation = Equation(mapped, list(inputs), params, outputs, None)
    return Program(inputs, [equation], outputs, program.name)


def _joined(type: ArrayType, tags: Tags) -> ArrayType:
    """The type in which the dimensions of the axes are one with that which they cut."""
    shape: list[int] = []
    start = 0
    for end, tag in enumerate(tags, 1):
        if tag is None:
            shape.append(math.prod(type.shape[start:end]))
            start = end
    return type.update(shape=tuple(shape))


def _reshaped(
    program: Program, ins: Sequence[ArrayType], outs: Sequence[ArrayType]
) -> Program:
    """``program`` from and to the same elements in other shapes."""
    inputs, outputs = list(map(Var, ins)), list(map(Var, outs))
    before = [_reshape(x, v) for x, v in zip(inputs, program.inputs, strict=True)]
    after = [_reshape(y, v) for y, v in zip(program.outputs, outputs, strict=True)]
    return Program(inputs, [*before, *program.equations, *after], outputs, program.name)


def _reshape(x: Any, out: Var) -> Equation:
    return Equation(reshape, [x], {"shape": out.type.shape}, (out,), None)
