"""Builder: elements moved, repeated or selected by position."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo as hlo

from phalanx.base.dtypes import float0
from phalanx.core.builder import Body
from phalanx.xla.emitter import Emitter

Value = ir.Value
Ints = Sequence[int]


class StructuralEmitter(Emitter):
    """Elements moved, repeated or selected by position."""

    def constant(self, value: Any, dtype: np.dtype, shape: tuple[int, ...] = ()) -> Value:
        array = np.zeros(np.shape(value), bool) if dtype is float0 else np.asarray(value, dtype)
        if array.ndim:
            return self._constant(array, array.shape)
        key = array.dtype, array.tobytes(), tuple(shape)
        return self.once(key, lambda: self._constant(array, tuple(shape)))

    def _constant(self, value: np.ndarray, shape: tuple[int, ...]) -> Value:
        attribute = self.dense(value, shape)
        return self.op("stablehlo.constant", self.tensor(shape, value.dtype), (), value=attribute)

    def iota(self, dtype: np.dtype, shape: tuple[int, ...], dim: int) -> Value:
        result = self.tensor(tuple(shape), np.dtype(dtype))
        return self.op("stablehlo.iota", result, (), iota_dimension=self.int_attribute(dim))

    def broadcast_in_dim(self, x: Value, shape: tuple[int, ...], dims: Ints) -> Value:
        if dims:
            return self._broadcast_in_dim(x, shape, dims)
        return self.once((x, tuple(shape)), lambda: self._broadcast_in_dim(x, shape, ()))

    def _broadcast_in_dim(self, x: Value, shape: tuple[int, ...], dims: Ints) -> Value:
        return self.op(
            "stablehlo.broadcast_in_dim",
            self.tensor(tuple(shape), self.type(x).dtype),
            [x],
            broadcast_dimensions=self.int_list(dims),
        )

    def reshape(self, x: Value, shape: tuple[int, ...]) -> Value:
        result = self.tensor(tuple(shape), self.type(x).dtype)
        return x if result == x.type else self.op("stablehlo.reshape", result, [x])

    def transpose(self, x: Value, perm: Ints) -> Value:
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
            lo + n + hi + max(n - 1, 0) * inner
            for n, lo, hi, inner in zip(t.shape, low, high, interior, strict=True)
        )
        return self.op(
            "stablehlo.pad",
            self.tensor(shape, t.dtype),
            [x, value],
            edge_padding_low=self.int_list(low),
            edge_padding_high=self.int_list(high),
            interior_padding=self.int_list(interior),
        )

    def slice(self, x: Value, start: Ints, limit: Ints, strides: Ints) -> Value:
        shape = tuple(len(range(*part)) for part in zip(start, limit, strides, strict=True))
        return self.op(
            "stablehlo.slice",
            self.tensor(shape, self.type(x).dtype),
            [x],
            start_indices=self.int_list(start),
            limit_indices=self.int_list(limit),
            strides=self.int_list(strides),
        )

    def dynamic_slice(self, x: Value, starts: Sequence[Value], sizes: Ints) -> Value:
        return self.op(
            "stablehlo.dynamic_slice",
            self.tensor(tuple(sizes), self.type(x).dtype),
            [x, *starts],
            slice_sizes=self.int_list(sizes),
        )

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
        return self.op(
            "stablehlo.gather",
            self.tensor(shape, t.dtype),
            [x, indices],
            dimension_numbers=hlo.GatherDimensionNumbers.get(
                offset_dims=list(numbers.offset_dims),
                collapsed_slice_dims=list(numbers.collapsed_slice_dims),
                operand_batching_dims=list(numbers.operand_batching_dims),
                start_indices_batching_dims=list(numbers.start_indices_batching_dims),
                start_index_map=list(numbers.start_index_map),
                index_vector_dim=index.ndim - 1,
            ),
            slice_sizes=self.int_list(slice_sizes),
            indices_are_sorted=ir.BoolAttr.get(sorted),
        )

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

    def optimization_barrier(self, xs: Sequence[Value]) -> list[Value]:
        if not xs:
            return []
        return self.region_op("stablehlo.optimization_barrier", [x.type for x in xs], xs, None)
