"""Builder: elementwise operations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo as hlo

from phalanx.xla.emitter import Emitter

Value = ir.Value
BOOL = np.dtype(np.bool_)


def _unary(name: str) -> Callable[[Any, Value], Value]:
    """The operation ``name`` whose result has the type of its operand."""

    def method(self: ElementwiseEmitter, x: Value, /) -> Value:
        return self.op(name, x.type, [x])

    return method


def _binary(name: str) -> Callable[[Any, Value, Value], Value]:
    """The operation ``name`` whose result has the type of its operands."""

    def method(self: ElementwiseEmitter, x: Value, y: Value, /) -> Value:
        return self.op(name, x.type, [x, y])

    return method


def _real_part(dtype: np.dtype) -> np.dtype:
    return np.dtype(f"f{dtype.itemsize // 2}") if dtype.kind == "c" else dtype


class ElementwiseEmitter(Emitter):
    """One result element from the operands' elements at the same place."""

    negate = _unary("stablehlo.negate")
    sign = _unary("stablehlo.sign")
    floor = _unary("stablehlo.floor")
    ceil = _unary("stablehlo.ceil")
    round_nearest_afz = _unary("stablehlo.round_nearest_afz")
    round_nearest_even = _unary("stablehlo.round_nearest_even")
    exponential = _unary("stablehlo.exponential")
    exponential_minus_one = _unary("stablehlo.exponential_minus_one")
    log = _unary("stablehlo.log")
    log_plus_one = _unary("stablehlo.log_plus_one")
    sine = _unary("stablehlo.sine")
    cosine = _unary("stablehlo.cosine")
    tan = _unary("stablehlo.tan")
    tanh = _unary("stablehlo.tanh")
    sqrt = _unary("stablehlo.sqrt")
    rsqrt = _unary("stablehlo.rsqrt")
    cbrt = _unary("stablehlo.cbrt")
    logistic = _unary("stablehlo.logistic")
    not_ = _unary("stablehlo.not")
    popcnt = _unary("stablehlo.popcnt")
    count_leading_zeros = _unary("stablehlo.count_leading_zeros")
    acos = _unary("chlo.acos")
    asin = _unary("chlo.asin")
    atan = _unary("chlo.atan")
    sinh = _unary("chlo.sinh")
    cosh = _unary("chlo.cosh")
    acosh = _unary("chlo.acosh")
    asinh = _unary("chlo.asinh")
    atanh = _unary("chlo.atanh")
    erf = _unary("chlo.erf")
    erfc = _unary("chlo.erfc")
    erf_inv = _unary("chlo.erf_inv")
    conj = _unary("chlo.conj")

    add = _binary("stablehlo.add")
    subtract = _binary("stablehlo.subtract")
    multiply = _binary("stablehlo.multiply")
    divide = _binary("stablehlo.divide")
    remainder = _binary("stablehlo.remainder")
    power = _binary("stablehlo.power")
    atan2 = _binary("stablehlo.atan2")
    maximum = _binary("stablehlo.maximum")
    minimum = _binary("stablehlo.minimum")
    and_ = _binary("stablehlo.and")
    or_ = _binary("stablehlo.or")
    xor = _binary("stablehlo.xor")
    shift_left = _binary("stablehlo.shift_left")
    shift_right_arithmetic = _binary("stablehlo.shift_right_arithmetic")
    shift_right_logical = _binary("stablehlo.shift_right_logical")
    next_after = _binary("chlo.next_after")
    polygamma = _binary("chlo.polygamma")
    zeta = _binary("chlo.zeta")

    def abs(self, x: Value, /) -> Value:
        t = self.type(x)
        return self.op("stablehlo.abs", self.tensor(t.shape, _real_part(t.dtype)), [x])

    def real(self, x: Value, /) -> Value:
        t = self.type(x)
        return self.op("stablehlo.real", self.tensor(t.shape, _real_part(t.dtype)), [x])

    def imag(self, x: Value, /) -> Value:
        t = self.type(x)
        return self.op("stablehlo.imag", self.tensor(t.shape, _real_part(t.dtype)), [x])

    def complex(self, re: Value, im: Value, /) -> Value:
        t = self.type(re)
        result = self.tensor(t.shape, np.dtype(f"c{t.dtype.itemsize * 2}"))
        return self.op("stablehlo.complex", result, [re, im])

    def is_finite(self, x: Value, /) -> Value:
        return self.op("stablehlo.is_finite", self.tensor(self.type(x).shape, BOOL), [x])

    def compare(self, x: Value, y: Value, direction: str, *, total: bool = False) -> Value:
        t = self.type(x)
        kind = "TOTALORDER" if total else _compare_type(x.type.element_type, t.dtype)
        return self.op(
            "stablehlo.compare",
            self.tensor(t.shape, BOOL),
            [x, y],
            comparison_direction=hlo.ComparisonDirectionAttr.get(direction),
            compare_type=hlo.ComparisonTypeAttr.get(kind),
        )

    def select(self, pred: Value, on_true: Value, on_false: Value) -> Value:
        return self.op("stablehlo.select", on_true.type, [pred, on_true, on_false])

    def clamp(self, low: Value, x: Value, high: Value) -> Value:
        return self.op("stablehlo.clamp", x.type, [low, x, high])

    def convert(self, x: Value, dtype: np.dtype) -> Value:
        kind, dtype = self.type(x), np.dtype(dtype)
        if kind.dtype.kind == "c" and dtype.kind != "c":  # XLA dies where it folds such a constant
            if dtype == BOOL:
                return self.or_(*[self.convert(part(x), BOOL) for part in (self.real, self.imag)])
            x = self.real(x)
        result = self.tensor(kind.shape, dtype)
        return x if result == x.type else self.op("stablehlo.convert", result, [x])

    def bitcast_convert(self, x: Value, dtype: np.dtype, shape: tuple[int, ...]) -> Value:
        return self.op("stablehlo.bitcast_convert", self.tensor(tuple(shape), np.dtype(dtype)), [x])

    def reduce_precision(self, x: Value, exponent_bits: int, mantissa_bits: int) -> Value:
        return self.op(
            "stablehlo.reduce_precision",
            x.type,
            [x],
            exponent_bits=self.int_attribute(exponent_bits, 32),
            mantissa_bits=self.int_attribute(mantissa_bits, 32),
        )


def _compare_type(element: ir.Type, dtype: np.dtype) -> str:
    if not isinstance(element, ir.IntegerType):
        return "FLOAT"
    return "UNSIGNED" if element.is_unsigned or dtype == BOOL else "SIGNED"
