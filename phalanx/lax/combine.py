"""What reductions combine elements with: a function of two scalars, and a value to start from."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from msgspec import Struct

from phalanx import primitives as ops
from phalanx.base import dtypes
from phalanx.base import tree as trees
from phalanx.core.axes import Axis
from phalanx.core.primitive import Primitive
from phalanx.core.program import Program
from phalanx.core.trace import Tracer
from phalanx.core.types import ArrayType, typeof
from phalanx.lax.operands import accept, elementwise, is_python
from phalanx.primitives.reduce import highest, lowest
from phalanx.primitives.shape import slice_dim
from phalanx.transforms.batch import batch, place_lanes
from phalanx.transforms.stage import stage

Everywhere = Callable[[Sequence[Any], Sequence[Any]], list[Any]]


class Monoid(Struct, frozen=True):
    """A way of combining that has reductions of its own."""

    combine: Primitive
    over_dims: Primitive
    identity: Callable[[np.dtype], Any]
    over_windows: Primitive | None = None


def _all_bits(dtype: np.dtype) -> Any:
    return ~dtype.type(0) if dtypes.is_integer(dtype) else True


MONOIDS = {
    m.combine: m
    for m in (
        Monoid(ops.add, ops.reduce_sum, lambda t: 0, ops.reduce_window_sum),
        Monoid(ops.mul, ops.reduce_prod, lambda t: 1),
        Monoid(ops.max, ops.reduce_max, lowest, ops.reduce_window_max),
        Monoid(ops.min, ops.reduce_min, highest, ops.reduce_window_min),
        Monoid(ops.and_, ops.reduce_and, _all_bits),
        Monoid(ops.or_, ops.reduce_or, lambda t: 0),
        Monoid(ops.xor, ops.reduce_xor, lambda t: 0),
    )
}


class Combination:
    """Arrays of one shape, a function of pairs of their elements, and what it starts from.

    Attributes:
        types: of the arrays.
        inits: the value that each array's elements are combined with.
        monoid: what the function is known to be, if there is one array; else None.
    """

    def __init__(
        self, who: str, operands: Any, init_values: Any, computation: Callable[[Any, Any], Any]
    ) -> None:
        self.who, self.computation = who, computation
        self.xs, self.treedef = trees.flatten(operands)
        self.types = [typeof(accept(who, x)) for x in self.xs]
        self.inits = [accept(who, i) for i in trees.leaves(init_values)]
        if len(self.xs) != len(self.inits):
            raise ValueError(
                f"lax.{who}: as many init_values as operands are needed, got {len(self.inits)} "
                f"and {len(self.xs)}"
            )
        if any(t.shape != self.types[0].shape for t in self.types):
            raise TypeError(f"lax.{who}: operands must have one shape, got {_listed(self.types)}")
        pairs = zip(self.inits, self.types, strict=True)
        self.inits = [_fitting(who, i, t) for i, t in pairs]
        program = self._staged()
        self.monoid = _recognized(program) if len(self.xs) == 1 else None

    @property
    def starts_with_identity(self) -> bool:
        """Whether the start is known now, and combining with it changes nothing, nor the type."""
        if self.monoid is None:
            return False
        (init,), (type,) = self.inits, self.types
        known = not isinstance(init, Tracer) and (typeof(init).weak or not type.weak)
        return known and bool(np.asarray(init) == self.monoid.identity(type.dtype))

    def computes(self, *primitives: Primitive) -> bool:
        """Whether the function is one of ``primitives``."""
        return self.monoid is not None and self.monoid.combine in primitives

    def _staged(self) -> Program:
        """The function on pairs of scalars; it must give scalars of the same dtypes."""
        scalars = [t.update(shape=()) for t in self.types]
        program, _ = stage(self._pair, [*scalars, *scalars], self.who)
        results = [t.update(weak=False) for t in program.output_types]
        if results != [t.update(weak=False) for t in scalars]:
            raise TypeError(
                f"lax.{self.who}: the computation must give scalars of the operands' dtypes, "
                f"{_listed(scalars)}, but it gives {_listed(results)}"
            )
        return program

    def over_dims(
        self, xs: Sequence[Any], dims: tuple[int, ...], everywhere: Everywhere | None = None
    ) -> list[Any]:
        """The elements of ``xs`` over ``dims``, of which there are some, in no certain order:
        ``everywhere``, if not the function, combines halves until one element is left."""
        everywhere = everywhere or self.everywhere
        before = typeof(xs[0]).shape
        remaining = tuple(d for d in range(len(before)) if d not in dims)
        shape = tuple(before[d] for d in remaining)
        count, lanes = math.prod(before[d] for d in dims), math.prod(shape)
        order = (*dims, *remaining)
        rows = [ops.reshape(ops.transpose(x, perm=order), shape=(count, lanes)) for x in xs]
        while (n := typeof(rows[0]).shape[0]) > 1:
            half = n // 2
            first = [slice_dim(r, 0, half, 0) for r in rows]
            second = [slice_dim(r, half, 2 * half, 0) for r in rows]
            odd = [slice_dim(r, 2 * half, n, 0) for r in rows]
            rows = everywhere(first, second)
            if n % 2:
                rows = [ops.concatenate(r, o, dim=0) for r, o in zip(rows, odd, strict=True)]
        return [ops.reshape(r, shape=shape) for r in rows]

    def from_start(self, out: Sequence[Any]) -> Any:
        """``out`` combined with the values to start from: a tree like the operands."""
        if self.monoid is not None:
            combined = [self.monoid.combine(*elementwise(self.who, out[0], self.inits[0]))]
        else:
            combined = self.everywhere(self.start(typeof(out[0]).shape), out)
        return self.treedef.unflatten(combined)

    def start(self, shape: tuple[int, ...]) -> list[Any]:
        """Arrays of ``shape`` of nothing but the values to start from."""
        pairs = zip(self.inits, self.types, strict=True)
        return [ops.full(shape, i, t.dtype) for i, t in pairs]

    def everywhere(self, first: Sequence[Any], second: Sequence[Any]) -> list[Any]:
        """The function of scalars applied to arrays, element by element."""
        shape, size = typeof(first[0]).shape, typeof(first[0]).size
        flat = [ops.reshape(x, shape=(size,)) for x in (*first, *second)]
        values, dims = batch(self._pair, Axis(None, size), flat, [0] * len(flat))
        out = [place_lanes(x, d, 0, size) for x, d in zip(values, dims, strict=True)]
        return [ops.reshape(x, shape=shape) for x in out]

    def where_valid(self, first: Sequence[Any], second: Sequence[Any]) -> list[Any]:
        """The same of arrays whose first says where the others have an element: two are combined,
        one is kept as it is."""
        (valid, *xs), (also_valid, *ys) = first, second
        both = ops.and_(valid, also_valid)
        triples = zip(xs, ys, self.everywhere(xs, ys), strict=True)
        out = [ops.select(both, z, ops.select(valid, x, y)) for x, y, z in triples]
        return [ops.or_(valid, also_valid), *out]

    def _pair(self, *pair: Any) -> list[Any]:
        half = len(pair) // 2
        first, second = self.treedef.unflatten(pair[:half]), self.treedef.unflatten(pair[half:])
        return trees.leaves(self.computation(first, second))


def _fitting(who: str, init: Any, type: ArrayType) -> Any:
    """``init`` as a scalar of the dtype of an operand of ``type``.

    Raises:
        TypeError: it is none, and no number that the dtype holds, nor infinite.
    """
    start = typeof(init)
    if start.shape == () and start.dtype == type.dtype:
        return init
    known = start.shape == () and not isinstance(init, Tracer)
    if known and (fitted := _exactly(np.asarray(init), type.dtype)) is not None:
        return fitted.item() if is_python(init) else fitted
    raise TypeError(
        f"lax.{who}: an init_value must be a scalar of the dtype of its operand {type}, got "
        f"{init!r}"
    )


def _exactly(value: np.ndarray, dtype: np.dtype) -> Any:
    """``value`` in ``dtype``, if that holds it, or None; an infinity is the outermost number."""
    if dtypes.is_integer(dtype) and np.isinf(value):
        return np.asarray(highest(dtype) if value > 0 else lowest(dtype), dtype)[()]
    with np.errstate(invalid="ignore", over="ignore"):
        fitted = value.astype(dtype)[()]
    if fitted == value or (value.dtype.kind in "iuf" and dtypes.is_floating(dtype)):
        return fitted
    return None


def _listed(types: Sequence[ArrayType]) -> str:
    return ", ".join(map(str, types))


def _recognized(program: Program) -> Monoid | None:
    """The known reduction that a function of two scalars stands for, if any."""
    if len(program.equations) != 1 or len(program.inputs) != 2:
        return None
    (equation,) = program.equations
    plain = set(equation.inputs) == set(program.inputs) and equation.outputs == program.outputs
    return MONOIDS.get(equation.prim) if plain else None
