"""The ground of the builder: MLIR types, attributes and operations, made once and reused."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import index
from typing import Any

import ml_dtypes
import numpy as np
from jaxlib.mlir import ir

from phalanx.base.dtypes import float0
from phalanx.base.errors import DeviceError
from phalanx.base.kinds import SEQUENCE
from phalanx.base.lengths import symbolic
from phalanx.base.source import Location
from phalanx.core.builder import Body, Builder
from phalanx.core.layouts import Target
from phalanx.core.program import Equation
from phalanx.core.types import ArrayType
from phalanx.spmd.plan import Plan
from phalanx.xla.narrow import has_two_bits

_FLOATS: dict[Any, Any] = {
    np.float16: ir.F16Type,
    np.float32: ir.F32Type,
    np.float64: ir.F64Type,
    ml_dtypes.bfloat16: ir.BF16Type,
    ml_dtypes.float8_e3m4: ir.Float8E3M4Type,
    ml_dtypes.float8_e4m3: ir.Float8E4M3Type,
    ml_dtypes.float8_e4m3fn: ir.Float8E4M3FNType,
    ml_dtypes.float8_e4m3fnuz: ir.Float8E4M3FNUZType,
    ml_dtypes.float8_e4m3b11fnuz: ir.Float8E4M3B11FNUZType,
    ml_dtypes.float8_e5m2: ir.Float8E5M2Type,
    ml_dtypes.float8_e5m2fnuz: ir.Float8E5M2FNUZType,
    ml_dtypes.float8_e8m0fnu: ir.Float8E8M0FNUType,
    ml_dtypes.float4_e2m1fn: ir.Float4E2M1FNType,
}
_INTEGERS: dict[Any, tuple[int, bool]] = {  # bits, unsigned
    np.bool_: (1, False),
    ml_dtypes.int2: (2, False),
    ml_dtypes.uint2: (2, True),
    ml_dtypes.int4: (4, False),
    ml_dtypes.uint4: (4, True),
} | {
    t: (np.dtype(t).itemsize * 8, np.dtype(t).kind == "u")
    for t in (np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64)
}


def element_type(dtype: np.dtype) -> ir.Type:
    """The MLIR type of one element.

    Raises:
        TypeError: XLA has no such dtype.
    """
    kind = dtype.type
    if kind in _INTEGERS:
        bits, unsigned = _INTEGERS[kind]
        make = ir.IntegerType.get_unsigned if unsigned else ir.IntegerType.get_signless
        return make(bits)
    if kind in _FLOATS:
        return _FLOATS[kind].get()
    if dtype.kind == "c":
        return ir.ComplexType.get(ir.F32Type.get() if dtype.itemsize == 8 else ir.F64Type.get())
    raise TypeError(f"dtype {dtype} has no counterpart in XLA; convert the data first")


class OfItsPlatform(Exception):
    """What is written depends on the platform."""


class Emitter:
    """Writes operations at the current insertion point. Lives inside an active MLIR context."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.plans: Sequence[Plan] = ()  # for any of which this is written, where it is for several
        self.isolated = False  # whether what is compiled of a part may not depend on what is around
        self.moves_memory = False  # whether a value was brought to other memory than the devices'
        self.equation: Equation | None = None  # that is being lowered
        self.scope: dict[Any, Any] = {}
        self._tensors: dict[tuple[Any, ...], ir.Type] = {}
        self._types: dict[ir.Type, ArrayType] = {}
        self._attributes: dict[tuple[Any, ...], ir.Attribute] = {}
        self._places: dict[tuple[Any, ...], tuple[Location, ir.Location]] = {}
        self._written: dict[tuple[Any, ...], ir.Value] = {}
        self._i64 = ir.IntegerType.get_signless(64)

    @property
    def target(self) -> Target:
        """What the program is written for. Who asks writes another for another platform.

        Raises:
            OfItsPlatform: it is written for several.
        """
        if self.plans:
            raise OfItsPlatform
        return self.plan.target

    @property
    def builder(self) -> Builder:
        """What rules and the bodies of regions speak to: this, with the words of all parts."""
        raise NotImplementedError

    # ---- types ----

    @property
    def ins(self) -> tuple[ArrayType, ...]:
        """The types of the operands of the equation being lowered."""
        return tuple([a.type for a in self.equation.inputs]) if self.equation else ()

    @property
    def outs(self) -> tuple[ArrayType, ...]:
        """The types of the results of the equation being lowered."""
        return tuple([v.type for v in self.equation.outputs]) if self.equation else ()

    def type(self, x: ir.Value) -> ArrayType:
        """The type of a value."""
        return self._types[x.type]

    def tensor(self, shape: tuple[int, ...], dtype: np.dtype) -> ir.Type:
        """The MLIR type of an array."""
        if dtype is float0:
            dtype = np.dtype(bool)  # there is nothing to hold
        kind = self._tensors.get((shape, dtype))
        if kind is None:
            if has_two_bits(dtype):
                self._require_two_bits(dtype)
            type = ArrayType(shape, dtype)  # refuses in words what is too large for MLIR
            kind = self.tensor_type(shape, element_type(dtype))
            self._tensors[shape, dtype] = kind
            self._types[kind] = type
        return kind

    def _require_two_bits(self, dtype: np.dtype) -> None:
        """Arrays of two bits are for one device, whose compiler knows them."""
        if self.target.platform == "tpu":
            raise DeviceError(
                f"{dtype.name}: it is computed on cpu and gpu alone; compilers of TPUs end the "
                "process at arrays of two bits: convert them to int4 before"
            )
        if self.plan.axes:
            raise DeviceError(
                f"{dtype.name}: programs over a mesh do not compute it: devices that exchange "
                "parts of arrays of two bits get other numbers; convert them to int4 before"
            )

    def tensor_type(self, shape: tuple[int, ...], element: ir.Type) -> ir.Type:
        """The MLIR type of an array of so many elements, made anew."""
        return ir.RankedTensorType.get(shape, element)

    def tensor_of(self, type: ArrayType) -> ir.Type:
        """The MLIR type of an array of ``type``."""
        return self.tensor(type.shape, type.dtype)

    def scalar_of(self, x: ir.Value) -> ir.Type:
        """The MLIR type of one element of ``x``."""
        return self.tensor((), self._types[x.type].dtype)

    @property
    def largest(self) -> int:
        """How many bytes the largest of the arrays takes of whose types all lengths are known."""
        types = [t for t in self._types.values() if not symbolic(t.shape)]
        return max([t.size * t.dtype.itemsize for t in types], default=0)

    # ---- attributes ----

    def attribute(self, make: Callable[..., ir.Attribute], *of: Any) -> ir.Attribute:
        """``make(*of)``, made once."""
        key = make, of
        cached = self._attributes.get(key)
        if cached is None:
            cached = self._attributes[key] = make(*of)
        return cached

    def int_list(self, values: Sequence[int]) -> ir.Attribute:
        """``array<i64: ...>``."""
        return self.attribute(_int_list, tuple(values))

    def int_table(self, rows: Sequence[Sequence[int]], width: int = 2) -> ir.Attribute:
        """``dense<[[...], ...]> : tensor<n x width x i64>``."""
        counts = [[_in_64_bits(n) for n in row] for row in rows]
        table: Any = np.asarray(counts, np.int64).reshape(len(rows), -1 if len(rows) else width)
        return ir.DenseElementsAttr.get(table, type=self._i64, shape=list(table.shape))

    def int_attribute(self, value: int, bits: int = 64) -> ir.Attribute:
        """One integer."""
        return ir.IntegerAttr.get(ir.IntegerType.get_signless(bits), index(value))

    def dense(self, value: np.ndarray, shape: tuple[int, ...]) -> ir.Attribute:
        """The elements of an array; those of a scalar are repeated over ``shape``."""
        if value.ndim == 0:
            return ir.DenseElementsAttr.get(_buffer(value), type=self.tensor(shape, value.dtype))
        element = element_type(value.dtype)
        return ir.DenseElementsAttr.get(_buffer(value), type=element, shape=list(value.shape))

    # ---- operations ----

    def op(
        self, name: str, result: ir.Type, operands: Sequence[ir.Value], **attributes: Any
    ) -> ir.Value:
        """Write an operation with one result."""
        return ir.Operation.create(
            name, results=[result], operands=operands, attributes=attributes or None
        ).result

    def once(self, key: tuple[Any, ...], write: Callable[[], ir.Value]) -> ir.Value:
        """What ``write`` writes; in each region once for each ``key``."""
        value = self._written.get(key)
        if value is None:
            value = self._written[key] = write()
        return value

    def region_op(
        self,
        name: str,
        results: Sequence[ir.Type],
        operands: Sequence[ir.Value],
        attributes: dict[str, Any] | None,
        *bodies: tuple[Sequence[ir.Type], Body],
        terminator: str = "stablehlo.return",
    ) -> list[ir.Value]:
        """Write an operation with regions: per body the types of its parameters, and itself."""
        operation = ir.Operation.create(
            name,
            results=list(results),
            operands=list(operands),
            attributes=attributes,
            regions=len(bodies),
        )
        for region, (parameters, body) in zip(operation.regions, bodies, strict=True):
            self.fill(region, parameters, body, terminator)
        return list(operation.results)

    def fill(
        self, region: ir.Region, parameters: Sequence[ir.Type], body: Body, terminator: str
    ) -> list[ir.Value]:
        """Write ``body`` into an empty region; the values that it returns."""
        block = ir.Block.create_at_start(region, list(parameters))
        outer, self._written = self._written, {}
        with ir.InsertionPoint(block):
            results = body(self.builder, *block.arguments)
            values: list[ir.Value] = list(results) if isinstance(results, SEQUENCE) else [results]
            ir.Operation.create(terminator, operands=values)
        self._written = outer
        return values

    def at(self, location: Location | None) -> Any:
        """A context manager: what is written inside comes from ``location``."""
        return self.place(location, ir.Location.current)

    def place(self, location: Location | None, default: Any) -> ir.Location:
        """``location`` as operations carry it; ``default`` where there is none."""
        if location is None:
            return default
        # To compare locations takes their lines, and a line takes long to find.
        key = id(location.code), location.lasti, location.scope
        pair = self._places.get(key)
        if pair is None:
            line = ir.Location.file(location.file, location.line, 0)
            name = f"{location.scope}/{location.function}".removeprefix("/")
            pair = self._places[key] = location, ir.Location.name(name, line)
        return pair[1]


def _int_list(values: tuple[int, ...]) -> ir.Attribute:
    return ir.DenseI64ArrayAttr.get(list(map(_in_64_bits, values)))


def _in_64_bits(value: int) -> int:
    """``value``, if XLA can count so far.

    Raises:
        ValueError: it cannot.
    """
    number = index(value)
    if not -(2**63) <= number < 2**63:
        raise ValueError(f"XLA takes integers from -2**63 to 2**63 - 1, got {number}")
    return number


def _buffer(value: np.ndarray) -> Any:
    """``value`` in a form whose bits MLIR reads, whatever the dtype."""
    value = np.asarray(value, order="C")
    if value.dtype.kind in "biufc" and value.dtype.isbuiltin != 2:  # 2: of an extension of NumPy
        return value
    return value.view(f"u{value.dtype.itemsize}")
