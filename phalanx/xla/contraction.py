"""Builder: products summed over dimensions, and XLA's own linear algebra."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo as hlo

from phalanx.base.lengths import symbolic
from phalanx.core.builder import Precision
from phalanx.core.types import ArrayType
from phalanx.xla.symbolic_dimensions import LengthEmitter

Value = ir.Value
Ints = Sequence[int]


class ContractionEmitter(LengthEmitter):
    """Products summed over dimensions."""

    def dot_general(
        self,
        x: Value,
        y: Value,
        contract: tuple[Ints, Ints],
        batch: tuple[Ints, Ints],
        out_dtype: np.dtype,
        precision: Precision,
    ) -> Value:
        lhs, rhs = self.type(x).shape, self.type(y).shape
        shape = (
            *(lhs[d] for d in batch[0]),
            *(n for d, n in enumerate(lhs) if d not in (*contract[0], *batch[0])),
            *(n for d, n in enumerate(rhs) if d not in (*contract[1], *batch[1])),
        )
        return self.op(
            "stablehlo.dot_general",
            self.tensor(shape, np.dtype(out_dtype)),
            [x, y],
            dot_dimension_numbers=self.attribute(_dot_numbers, *contract, *batch),
            precision_config=self._precision(precision),
        )

    def ragged_dot(
        self,
        x: Value,
        y: Value,
        sizes: Value,
        contract: tuple[Ints, Ints],
        out_type: ArrayType,
        precision: Precision,
    ) -> Value:
        pair = precision if isinstance(precision, (tuple, list)) else (precision, precision)
        return self.op(
            "chlo.ragged_dot",
            self.tensor_of(out_type),
            [x, y, sizes],
            ragged_dot_dimension_numbers=self.attribute(_ragged_numbers, *contract),
            precision_config=self.attribute(_ragged_precisions, *pair),
        )

    def convolution(
        self,
        x: Value,
        kernel: Value,
        out_type: ArrayType,
        strides: Ints,
        padding: Sequence[tuple[int, int]],
        lhs_dilation: Ints,
        rhs_dilation: Ints,
        dimension_numbers: tuple[Ints, Ints, Ints],
        feature_group_count: int,
        batch_group_count: int,
        precision: Precision,
    ) -> Value:
        lhs, rhs, out = dimension_numbers
        numbers = hlo.ConvDimensionNumbers.get(
            input_batch_dimension=lhs[0],
            input_feature_dimension=lhs[1],
            input_spatial_dimensions=list(lhs[2:]),
            kernel_output_feature_dimension=rhs[0],
            kernel_input_feature_dimension=rhs[1],
            kernel_spatial_dimensions=list(rhs[2:]),
            output_batch_dimension=out[0],
            output_feature_dimension=out[1],
            output_spatial_dimensions=list(out[2:]),
        )
        operands, name, fixed = [x, kernel], "stablehlo.convolution", {}
        if self.symbolic and symbolic([n for pair in padding for n in pair]):
            name = "stablehlo.dynamic_conv"
            operands.append(self.table(padding))
        else:
            fixed["padding"] = self.int_table(padding)
        return self.op(
            name,
            self.tensor_of(out_type),
            operands,
            **fixed,
            window_strides=self.int_list(strides),
            lhs_dilation=self.int_list(lhs_dilation),
            rhs_dilation=self.int_list(rhs_dilation),
            dimension_numbers=numbers,
            feature_group_count=self.int_attribute(feature_group_count),
            batch_group_count=self.int_attribute(batch_group_count),
            precision_config=self._precision(precision),
        )

    def fft(self, x: Value, kind: str, lengths: Ints) -> Value:
        t = self.type(x)
        shape, dtype = list(t.shape), t.dtype
        if kind == "RFFT":
            shape[-1], dtype = lengths[-1] // 2 + 1, np.dtype(f"c{dtype.itemsize * 2}")
        elif kind == "IRFFT":
            shape[-1], dtype = lengths[-1], np.dtype(f"f{dtype.itemsize // 2}")
        return self.op(
            "stablehlo.fft",
            self.tensor(tuple(shape), dtype),
            [x],
            fft_type=hlo.FftTypeAttr.get(kind),
            fft_length=self.int_list(lengths),
        )

    def cholesky(self, x: Value, lower: bool) -> Value:
        return self.op("stablehlo.cholesky", x.type, [x], lower=ir.BoolAttr.get(lower))

    def triangular_solve(
        self, a: Value, b: Value, left_side: bool, lower: bool, unit_diagonal: bool, transpose: str
    ) -> Value:
        return self.op(
            "stablehlo.triangular_solve",
            b.type,
            [a, b],
            left_side=ir.BoolAttr.get(left_side),
            lower=ir.BoolAttr.get(lower),
            unit_diagonal=ir.BoolAttr.get(unit_diagonal),
            transpose_a=hlo.TransposeAttr.get(transpose),
        )

    def _precision(self, precision: Precision) -> ir.Attribute:
        """One precision for each operand."""
        pair = precision if isinstance(precision, (tuple, list)) else (precision, precision)
        return self.attribute(_precisions, *pair)


def _dot_numbers(x_contract: Ints, y_contract: Ints, x_batch: Ints, y_batch: Ints) -> ir.Attribute:
    return hlo.DotDimensionNumbers.get(
        lhs_batching_dimensions=list(x_batch),
        rhs_batching_dimensions=list(y_batch),
        lhs_contracting_dimensions=list(x_contract),
        rhs_contracting_dimensions=list(y_contract),
    )


def _ragged_numbers(x_contract: Ints, y_contract: Ints) -> ir.Attribute:
    """Rows of x are in groups; if they are not summed, y has a matrix for each."""
    of_y = "" if 0 in x_contract else ", rhs_group_dimensions = [0]"
    return ir.Attribute.parse(
        f"#chlo.ragged_dot<lhs_contracting_dimensions = {[*x_contract]}, "
        f"rhs_contracting_dimensions = {[*y_contract]}, lhs_ragged_dimensions = [0]{of_y}>"
    )


def _ragged_precisions(*names: str | None) -> ir.Attribute:
    words = [f"#chlo<precision {(n or 'default').upper()}>" for n in names]
    return ir.Attribute.parse(f"[{', '.join(words)}]")


def _precisions(*names: str | None) -> ir.Attribute:
    return ir.ArrayAttr.get([hlo.PrecisionAttr.get((n or "default").upper()) for n in names])
