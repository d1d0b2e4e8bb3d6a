"""Builder: elements moved, repeated or selected by position."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo as hlo

from phalanx.base.dtypes import float0
from phalanx.base.lengths import Length, count, larger, symbolic
from phalanx.core.builder import Body
from phalanx.xla.symbolic_dimensions import LengthEmitter

Value = ir.Value
Ints = Sequence[int]
I32 = np.dtype(np.int32)


def _in_order(dims: Ints) -> bool:
    """Whether dimensions stay where they are."""
    return [*dims] == [*range(len(dims))]


class StructuralEmitter(LengthEmitter):
    """Elements moved, repeated or selected by position."""

    def constant(self, value: Any, dtype: np.dtype, shape: tuple[int, ...] = ()) -> Value:
        if isinstance(value, Length):
            number = self.op("stablehlo.convert", self.tensor((), dtype), [self.length(value)])
            return self.broadcast_in_dim(number, shape, ()) if shape else number
        array = np.zeros(np.shape(value), bool) if dtype is float0 else np.asarray(value, dtype)
        if array.ndim:
            return self._constant(array, array.shape)
        if self.symbolic and symbolic(shape):
            return self.broadcast_in_dim(self.constant(array, array.dtype), shape, ())
        key = array.dtype, array.tobytes(), tuple(shape)
        return self.once(key, lambda: self._constant(array, tuple(shape)))

    def _constant(self, value: np.ndarray, shape: tuple[int, ...]) -> Value:
        attribute = self.dense(value, shape)
        return self.op("stablehlo.constant", self.tensor(shape, value.dtype), (), value=attribute)

    def iota(self, dtype: np.dtype, shape: tuple[int, ...], dim: int) -> Value:
        result, along = self.tensor(tuple(shape), np.dtype(dtype)), self.int_attribute(dim)
        if self.symbolic and symbolic(shape):
            lengths = [self.extents(shape)]
            return self.op("stablehlo.dynamic_iota", result, lengths, iota_dimension=along)
        return self.op("stablehlo.iota", result, (), iota_dimension=along)

    def broadcast_in_dim(self, x: Value, shape: tuple[int, ...], dims: Ints) -> Value:
        if dims:
            return self._broadcast_in_dim(x, shape, dims)
        return self.once((x, tuple(shape)), lambda: self._broadcast_in_dim(x, shape, ()))

    def _broadcast_in_dim(self, x: Value, shape: tuple[int, ...], dims: Ints) -> Value:
        result, at = self.tensor(tuple(shape), self.type(x).dtype), self.int_list(dims)
        if result == x.type and _in_order(dims):
            return x
        if self.symbolic and symbolic(shape):
            name, operands = "stablehlo.dynamic_broadcast_in_dim", [x, self.extents(shape)]
            return self.op(name, result, operands, broadcast_dimensions=at)
        return self.op("stablehlo.broadcast_in_dim", result, [x], broadcast_dimensions=at)

    def reshape(self, x: Value, shape: tuple[int, ...]) -> Value:
        result = self.tensor(tuple(shape), self.type(x).dtype)
        if result == x.type:
            return x
        if self.symbolic and symbolic(shape):
            return self.op("stablehlo.dynamic_reshape", result, [x, self.extents(shape)])
        return self.op("stablehlo.reshape", result, [x])

    def transpose(self, x: Value, perm: Ints) -> Value:
        if _in_order(perm):
            return x
        t = self.type(x)
        result = self.tensor(tuple(t.shape[p] for p in perm), t.dtype)
        return self.op("stablehlo.transpose", result, [x], permutation=self.int_list(perm))

    def reverse(self, x: Value, dims: Ints) -> Value:
        return self.op("stablehlo.reverse", x.type, [x], dimensions=self.int_list(dims))

    def concatenate(self, xs: Sequence[Value], dim: int) -> Value:
        types = [self.type(x) for x in xs]
        shape = list(types[0].shape)
        shape[dim] = sum(t.shape[dim] for t in types)
        result = self.tensor(tuple(shape), types[0].dtype)
        return self.op("stablehlo.concatenate", result, list(xs), dimension=self.int_attribute(dim))

    def pad(self, x: Value, value: Value, low: Ints, high: Ints, interior: Ints) -> Value:
        t = self.type(x)
        shape = tuple(
            lo + n + hi + (larger(n - 1, 0) * inner if inner else 0)
            for n, lo, hi, inner in zip(t.shape, low, high, interior, strict=True)
        )
        if self.symbolic and symbolic((*low, *high, *interior)):
            operands = [x, value, *map(self.extents, (low, high, interior))]
            return self.op("stablehlo.dynamic_pad", self.tensor(shape, t.dtype), operands)
        if any(n < 0 for n in (*low, *high)):
            # XLA's CPU compiler has none of this where it may not simplify, which alters bits
            more_low, more_high = [tuple([max(n, 0) for n in ends]) for ends in (low, high)]
            more = self.pad(x, value, more_low, more_high, interior)
            start = tuple([max(-n, 0) for n in low])
            limit = tuple([i + n for i, n in zip(start, shape, strict=True)])
            return self.slice(more, start, limit, (1,) * len(shape))
        return self.op(
            "stablehlo.pad",
            self.tensor(shape, t.dtype),
            [x, value],
            edge_padding_low=self.int_list(low),
            edge_padding_high=self.int_list(high),
            interior_padding=self.int_list(interior),
        )

    def slice(self, x: Value, start: Ints, limit: Ints, strides: Ints) -> Value:
        shape = tuple(count(*part) for part in zip(start, limit, strides, strict=True))
        if self.symbolic and symbolic((*start, *limit, *strides)):
            result = self.tensor(shape, self.type(x).dtype)
            parts = map(self.extents, (start, limit, strides))
            return self.op("stablehlo.real_dynamic_slice", result, [x, *parts])
        return self.op(
            "stablehlo.slice",
            self.tensor(shape, self.type(x).dtype),
            [x],
            start_indices=self.int_list(start),
            limit_indices=self.int_list(limit),
            strides=self.int_list(strides),
        )

    def dynamic_slice(self, x: Value, starts: Sequence[Value], sizes: Ints) -> Value:
        result = self.tensor(tuple(sizes), self.type(x).dtype)
        if self.symbolic and symbolic(sizes):
            return self._window(x, starts, sizes, result)
        return self.op(
            "stablehlo.dynamic_slice",
            result,
            [x, *starts],
            slice_sizes=self.int_list(sizes),
        )

    def _window(self, x: Value, starts: Sequence[Value], sizes: Ints, result: ir.Type) -> Value:
        """A slice of symbolic ``sizes``, from ``starts`` that are clamped so that it fits."""
        shape, vector = self.type(x).shape, self.tensor((len(sizes),), I32)
        convert = [self.op("stablehlo.convert", self.tensor((), I32), [s]) for s in starts]
        room = self.extents([n - size for n, size in zip(shape, sizes, strict=True)])
        ends = [self.extents((0,) * len(sizes)), self.vector(convert), room]
        first = self.op("stablehlo.clamp", vector, ends)
        last = self.op("stablehlo.add", vector, [first, self.extents(sizes)])
        operands = [x, first, last, self.extents((1,) * len(sizes))]
        return self.op("stablehlo.real_dynamic_slice", result, operands)

    def dynamic_update_slice(self, x: Value, update: Value, starts: Sequence[Value]) -> Value:
        return self.op("stablehlo.dynamic_update_slice", x.type, [x, update, *starts])

    def gather(
        self, x: Value, indices: Value, numbers: Any, slice_sizes: Ints, sorted: bool
    ) -> Value:
        t, index = self.type(x), self.type(indices)
        dropped = (*numbers.collapsed_slice_dims, *numbers.operand_batching_dims)
        window = iter([n for d, n in enumerate(slice_sizes) if d not in dropped])
        batch = iter(index.shape[:-1])
        rank = len(numbers.offset_dims) + index.ndim - 1
        shape = tuple(next(window if d in numbers.offset_dims else batch) for d in range(rank))
        result = self.tensor(shape, t.dtype)
        attributes = {
            "dimension_numbers": hlo.GatherDimensionNumbers.get(
                offset_dims=list(numbers.offset_dims),
                collapsed_slice_dims=list(numbers.collapsed_slice_dims),
                operand_batching_dims=list(numbers.operand_batching_dims),
                start_indices_batching_dims=list(numbers.start_indices_batching_dims),
                start_index_map=list(numbers.start_index_map),
                index_vector_dim=index.ndim - 1,
            ),
            "indices_are_sorted": ir.BoolAttr.get(sorted),
        }
        if self.symbolic and symbolic(slice_sizes):
            operands = [x, indices, self.extents(slice_sizes)]
            return self.op("stablehlo.dynamic_gather", result, operands, **attributes)
        sizes = self.int_list(slice_sizes)
        return self.op("stablehlo.gather", result, [x, indices], slice_sizes=sizes, **attributes)

    def scatter(
        self,
        x: Value,
        indices: Value,
        updates: Value,
        numbers: Any,
        body: Body,
        sorted: bool,
        unique: bool,
    ) -> Value:
        scalar = self.scalar_of(x)
        attributes = {
            "scatter_dimension_numbers": hlo.ScatterDimensionNumbers.get(
                update_window_dims=list(numbers.update_window_dims),
                inserted_window_dims=list(numbers.inserted_window_dims),
                input_batching_dims=list(numbers.operand_batching_dims),
                scatter_indices_batching_dims=list(numbers.scatter_indices_batching_dims),
                scattered_dims_to_operand_dims=list(numbers.scatter_dims_to_operand_dims),
                index_vector_dim=self.type(indices).ndim - 1,
            ),
            "indices_are_sorted": ir.BoolAttr.get(sorted),
            "unique_indices": ir.BoolAttr.get(unique),
        }
        operands = [x, indices, updates]
        return self.region_op(
            "stablehlo.scatter", [x.type], operands, attributes, ([scalar, scalar], body)
        )[0]

    def isolate(self) -> None:
        self.isolated = True

    def optimization_barrier(self, xs: Sequence[Value]) -> list[Value]:
        if not xs or self.symbolic:
            return list(xs)  # a barrier does not learn the lengths of what goes through
        return self.region_op("stablehlo.optimization_barrier", [x.type for x in xs], xs, None)
