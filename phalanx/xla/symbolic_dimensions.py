"""The ground of the builder where lengths are symbolic: dimensions that the module finds out.

While a module is written, the type of a value says which lengths it has, in its encoding, so that
values of unlike shapes have unlike types. When all is written, ``forget_lengths`` leaves what
StableHLO knows of them: that they are not known.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Sequence
from operator import index
from typing import Any

import numpy as np
from jaxlib.mlir import ir

from phalanx.base import length_terms
from phalanx.base.length_terms import Terms
from phalanx.base.lengths import Length, Lengths, symbolic
from phalanx.core.length_variables import steps_to_variables
from phalanx.core.types import ArrayType
from phalanx.spmd.plan import Plan
from phalanx.xla.emitter import Emitter

Value = ir.Value
Shape = Sequence[Any]
I32 = np.dtype(np.int32)


class LengthEmitter(Emitter):
    """Shapes with symbolic lengths, and their numbers as values."""

    def __init__(self, plan: Plan) -> None:
        super().__init__(plan)
        self.symbolic = False  # whether lengths of the module are
        self._variables: dict[str, Value] = {}

    def constant(self, value: Any, dtype: np.dtype, shape: tuple[int, ...] = ()) -> Value:
        raise NotImplementedError

    # ---- the numbers of lengths ----

    def measure(self, types: Sequence[ArrayType], values: Sequence[Value]) -> None:
        """Find the variables in the shapes of ``values``, and assert what is said of them."""
        pairs: Any = zip(types, values, strict=True)
        dims = [(x, d, n) for t, x in pairs for d, n in enumerate(t.shape) if isinstance(n, Length)]
        if not dims:
            return
        sizes = [self._size(x, d) for x, d, _ in dims]
        for name, which, less, times in steps_to_variables([n for _, _, n in dims]):
            self._variables[name] = self._solved(sizes[which], less, times)
        for size, (_, _, n) in zip(sizes, dims, strict=True):
            self._assert("EQ", self.length(n), size, f"a dimension must have the length {n}")
        scope = dims[0][2].scope
        for name, value in self._variables.items():
            self._assert("GE", value, self.length(1), f"{name} >= 1")
        for fact in scope.facts:
            text = length_terms.text(fact)
            self._assert("GE", self._number(scope, fact), self.length(0), f"{text} >= 0")

    def _solved(self, size: Value, less: Any, times: Any) -> Value:
        left = size if less == 0 else self._apply("subtract", size, self.length(less))
        return left if times == 1 else self._apply("divide", left, self.length(times))

    def _size(self, x: Value, dim: int) -> Value:
        result, where = self.tensor((), I32), self.int_attribute(dim)
        return self.op("stablehlo.get_dimension_size", result, [x], dimension=where)

    def _assert(self, direction: str, x: Value, y: Value, what: str) -> None:
        holds = self._compare(direction, x, y)
        message = f"Input shapes do not match the polymorphic shapes specification: {what}"
        self.region_op("stablehlo.custom_call", [], [holds], {
            "call_target_name": ir.StringAttr.get("shape_assertion"),
            "api_version": self.int_attribute(2, 32),
            "has_side_effect": ir.BoolAttr.get(True),
            "error_message": ir.StringAttr.get(message),
        })  # fmt: skip

    def length(self, n: Any) -> Value:
        """The number that the length ``n`` is, an int32 scalar."""
        if not isinstance(n, Length):
            return self.constant(n, I32)
        return self.once(("length", n), lambda: self._number(n.scope, n.terms))

    def _number(self, scope: Lengths, terms: Terms) -> Value:
        total: Any = None
        for monomial, times in terms.items():
            factors = [self._named(scope, name) for name, power in monomial for _ in range(power)]
            factors += [self.length(times)] if times != 1 or not factors else []
            term = functools.reduce(functools.partial(self._apply, "multiply"), factors)
            total = term if total is None else self._apply("add", total, term)
        return self.length(0) if total is None else total

    def _named(self, scope: Lengths, name: str) -> Value:
        kind, *sides = scope.operation(name)
        if not kind:
            other = scope.instead_of(name)
            return self._variables[name] if other is None else self.length(other)
        x, y = map(self.length, sides)
        if kind in ("max", "min"):
            return self._apply("maximum" if kind == "max" else "minimum", x, y)
        if [scope.decided(scope.terms(side)) for side in sides] == [True, True]:
            return self._apply("divide" if kind == "floordiv" else "remainder", x, y)
        rest = self._modulo(x, y)
        return rest if kind == "mod" else self._apply("divide", self._apply("subtract", x, rest), y)

    def _modulo(self, x: Value, y: Value) -> Value:
        """The remainder of the sign of ``y``, as Python has it."""
        rest = self._apply("remainder", x, y)
        return self._apply("remainder", self._apply("add", rest, y), y)

    def _apply(self, name: str, x: Value, y: Value) -> Value:
        return self.op(f"stablehlo.{name}", x.type, [x, y])

    def _compare(self, direction: str, x: Value, y: Value) -> Value:
        attribute = ir.Attribute.parse(f"#stablehlo<comparison_direction {direction}>")
        kind = self.tensor((), np.dtype(bool))
        return self.op("stablehlo.compare", kind, [x, y], comparison_direction=attribute)

    def extents(self, lengths: Shape) -> Value:
        """The numbers that ``lengths`` are, an int32 vector."""
        return self.once(("extents", *lengths), lambda: self._extents(lengths))

    def _extents(self, lengths: Shape) -> Value:
        if not symbolic(lengths):
            return self.constant(np.asarray(lengths, I32), I32)
        return self.vector([self.length(n) for n in lengths])

    def vector(self, scalars: Sequence[Value]) -> Value:
        """The vector of so many int32 scalars."""
        one = self.tensor((1,), I32)
        parts = [self.op("stablehlo.reshape", one, [x]) for x in scalars]
        result, along = self.tensor((len(parts),), I32), self.int_attribute(0)
        return self.op("stablehlo.concatenate", result, parts, dimension=along)

    def table(self, pairs: Sequence[tuple[Any, Any]]) -> Value:
        """The numbers that pairs of lengths are, an int32 matrix."""
        flat = self.extents([n for pair in pairs for n in pair])
        return self.op("stablehlo.reshape", self.tensor((len(pairs), 2), I32), [flat])

    def shape_operands(self, types: Sequence[ArrayType], count: int) -> tuple[list[Value], Any]:
        """What a custom call of ``count`` operands takes besides, to learn the shapes of results of
        these ``types``, and the attribute that says so; nothing if they are known."""
        if not any([symbolic(t.shape) for t in types]):
            return [], {}
        where = np.arange(count, count + len(types))
        indices = ir.DenseElementsAttr.get(where, type=self._i64, shape=[len(types)])
        return [self.extents(t.shape) for t in types], {"indices_of_shape_operands": indices}

    # ---- types ----

    def tensor_type(self, shape: tuple[int, ...], element: ir.Type) -> ir.Type:
        if not symbolic(shape):
            return super().tensor_type(shape, element)
        is_static = [not (self.symbolic and isinstance(n, Length)) for n in shape]
        lengths = [index(n) if k else _UNKNOWN() for n, k in zip(shape, is_static, strict=True)]
        names = ir.StringAttr.get(json.dumps([str(n) for n in shape]))
        return ir.RankedTensorType.get(lengths, element, encoding=names)

    def forget_lengths(self, module: ir.Module) -> None:
        """Leave of types what StableHLO knows."""
        if self.symbolic:
            module.operation.walk(_forget)


_UNKNOWN = ir.ShapedType.get_dynamic_size


def _forget(operation: ir.Operation) -> ir.WalkResult:
    for result in operation.results:
        result.set_type(_plain(result.type))
    for region in operation.regions:
        for block in region.blocks:
            for argument in block.arguments:
                argument.set_type(_plain(argument.type))
    if operation.name == "func.func":
        kind = ir.FunctionType(ir.TypeAttr(operation.attributes["function_type"]).value)
        plain = ir.FunctionType.get(list(map(_plain, kind.inputs)), list(map(_plain, kind.results)))
        operation.attributes["function_type"] = ir.TypeAttr.get(plain)
    return ir.WalkResult.ADVANCE


def _plain(kind: ir.Type) -> ir.Type:
    if not isinstance(kind, ir.RankedTensorType) or kind.encoding is None:
        return kind
    return ir.RankedTensorType.get(kind.shape, kind.element_type)
