"""Builder: operations that take functions, and functions of the module."""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from itertools import groupby
from typing import Any

import numpy as np
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import func

from phalanx.base import dtypes
from phalanx.base.kinds import SEQUENCE, is_mapping
from phalanx.base.lengths import Length, larger, symbolic
from phalanx.base.numpy_kinds import is_ndarray
from phalanx.core.builder import Body, Builder
from phalanx.core.program import Atom, Equation, Literal, Program, Var
from phalanx.core.types import ArrayType
from phalanx.spmd.plan import Plan
from phalanx.transforms.derive import trace_closed
from phalanx.xla.emitter import OfItsPlatform, element_type
from phalanx.xla.failures import refused
from phalanx.xla.jaxlib_versions import OLD
from phalanx.xla.narrow import widened
from phalanx.xla.structural import StructuralEmitter

Value = ir.Value
_BOOLS: tuple[type, ...] = (bool, np.bool_)
Values = Sequence[ir.Value]
Ints = Sequence[int]
I32 = np.dtype(np.int32)
_Functions = dict[Any, tuple[str, list[ir.Type]]]  # by what they do: names and types of results


def _is_empty(equation: Equation) -> bool:
    """Whether the results have no elements, and the operation does nothing besides.

    Then it is not written: StableHLO has no windows of length 0 and no groups of size 0, and what
    it says of arrays without elements differs from operation to operation.
    """
    results = equation.outputs
    if not results or results[0].type.size:
        return False
    written = equation.prim.on_devices.region is not None or equation.effects
    return not written and not any(v.type.size for v in results)


def differs(equation: Equation, plans: Sequence[Plan]) -> bool:
    """Whether it is lowered otherwise, or something in it is, for some of ``plans``."""
    if not plans:
        return False
    inside = [e.prim for program in equation.programs for e in program.walk()]
    own = {prim for prim in (equation.prim, *inside) if prim.lower_on}
    rules = [[prim.lowering(plan.target.platform) for prim in own] for plan in plans if own]
    return any([rule != rules[0] for rule in rules])


def _number(x: Value) -> int | None:
    """What ``x`` is, if it stands in the module as an integer."""
    owner: Any = x.owner
    if getattr(owner, "name", None) != "stablehlo.constant":
        return None
    return int(ir.DenseIntElementsAttr(owner.attributes["value"])[0])


class RegionEmitter(StructuralEmitter):
    """Operations that take functions, and functions of the module."""

    def __init__(self, plan: Plan, module: ir.Module) -> None:
        super().__init__(plan)
        self.module = module
        self.manual: frozenset[str] = frozenset()  # axes that manual computations have taken
        self.conditional = False  # inside what some devices may leave out
        self.number: Value | None = None  # which of ``plans`` it is, where that can be told
        self._functions: _Functions = {}
        self._functions_for: dict[Plan, _Functions] = {}
        self._names: set[str] = {"main"}

    @property
    def parted(self) -> list[str]:
        """The axes of the mesh along which the compiler parts what is written here."""
        return [name for name, _ in self.plan.axes if name not in self.manual]

    # ---- reductions ----

    def reduce(self, xs: Values, inits: Values, dims: Ints, body: Body) -> list[Value]:
        types = [self.type(x) for x in xs]
        shape = tuple(n for d, n in enumerate(types[0].shape) if d not in dims)
        scalars = [self.scalar_of(x) for x in xs]
        return self.region_op(
            "stablehlo.reduce",
            [self.tensor(shape, t.dtype) for t in types],
            [*xs, *inits],
            {"dimensions": self.int_list(dims)},
            (scalars * 2, body),
        )

    def reduce_window(
        self,
        xs: Values,
        inits: Values,
        window: Ints,
        strides: Ints,
        base_dilation: Ints,
        window_dilation: Ints,
        padding: Sequence[tuple[int, int]],
        body: Body,
    ) -> list[Value]:
        types = [self.type(x) for x in xs]
        shape = tuple(
            _windows(n, *rest)
            for n, *rest in zip(
                types[0].shape,
                window,
                strides,
                base_dilation,
                window_dilation,
                padding,
                strict=True,
            )
        )
        results = [self.tensor(shape, t.dtype) for t in types]
        scalars = [self.scalar_of(x) for x in xs] * 2
        if self.symbolic and symbolic((*window, *[n for pair in padding for n in pair])):
            function, _ = self._function((body, *scalars), body, scalars)
            call_attributes = self._called("stablehlo.dynamic_reduce_window", function)
            amounts = map(self.extents, (window, strides, base_dilation, window_dilation))
            operands = [*xs, *inits, *amounts, self.table(padding)]
            return self.region_op("stablehlo.custom_call", results, operands, call_attributes)
        attributes = {
            "window_dimensions": self.int_list(window),
            "window_strides": self.int_list(strides),
            "base_dilations": self.int_list(base_dilation),
            "window_dilations": self.int_list(window_dilation),
            "padding": self.int_table(padding),
        }
        operands = [*xs, *inits]
        name = "stablehlo.reduce_window"
        return self.region_op(name, results, operands, attributes, (scalars, body))

    def _called(self, name: str, function: str) -> dict[str, ir.Attribute]:
        """The attributes of a custom call that is given a function."""
        return {
            "call_target_name": ir.StringAttr.get(name),
            "called_computations": ir.ArrayAttr.get([ir.FlatSymbolRefAttr.get(function)]),
        }

    def select_and_scatter(
        self,
        x: Value,
        source: Value,
        init: Value,
        window: Ints,
        strides: Ints,
        padding: Sequence[tuple[int, int]],
        select: Body,
        scatter: Body,
    ) -> Value:
        scalars = [self.scalar_of(x)] * 2
        attributes = {
            "window_dimensions": self.int_list(window),
            "window_strides": self.int_list(strides),
            "padding": self.int_table(padding),
        }
        return self.region_op(
            "stablehlo.select_and_scatter",
            [x.type],
            [x, source, init],
            attributes,
            (scalars, select),
            (scalars, scatter),
        )[0]

    def sort(self, xs: Values, dim: int, stable: bool, comparator: Body) -> list[Value]:
        pairs = [self.scalar_of(x) for x in xs for _ in range(2)]
        attributes = {
            "dimension": self.int_attribute(dim),
            "is_stable": ir.BoolAttr.get(stable),
        }
        types = [x.type for x in xs]
        return self.region_op("stablehlo.sort", types, xs, attributes, (pairs, comparator))

    def top_k(self, x: Value, k: int) -> list[Value]:
        t = self.type(x)
        shape = (*t.shape[:-1], k)
        results = [self.tensor(shape, t.dtype), self.tensor(shape, I32)]
        if self.symbolic and symbolic(t.shape):
            attributes = {"call_target_name": ir.StringAttr.get("stablehlo.dynamic_top_k")}
            count = self.constant(k, np.dtype(np.uint64))
            return self.region_op("stablehlo.custom_call", results, [x, count], attributes)
        found = self.region_op("chlo.top_k", results, [x], {"k": self.int_attribute(k)})
        # In 0.10 a tuple of both results becomes the operation itself, and a barrier around that
        # aborts the compiler where it takes the operation apart.
        return [found[0], *self.optimization_barrier(found[1:])] if OLD else found

    def approx_top_k(
        self, x: Value, k: int, recall: float, input_size: int, comparator: Body
    ) -> list[Value]:
        t = self.type(x)
        types = [t, t.update(dtype=I32)]
        scalars = [self.tensor((), u.dtype) for u in types for _ in range(2)]
        function, _ = self._function((comparator, t.dtype), comparator, scalars)
        options = {
            "top_k": np.int64(k),
            "reduction_dim": np.int64(t.ndim - 1),
            "recall_target": np.float32(recall),
            "reduction_input_size_override": np.int64(input_size),
            "aggregate_to_topk": True,
        }
        attributes = {
            **self._called("ApproxTopK", function),
            "backend_config": ir.StringAttr.get(""),
            "mhlo.backend_config": self.config(options),
        }
        places = self.iota(I32, t.shape, t.ndim - 1)
        none = [self.constant(-np.inf, t.dtype), self.constant(-1, I32)]
        results = [self.tensor((*t.shape[:-1], k), u.dtype) for u in types]
        return self.region_op("stablehlo.custom_call", results, [x, places, *none], attributes)

    # ---- control flow ----

    def while_(self, inits: Values, cond: Body, body: Body) -> list[Value]:
        types = [x.type for x in inits]
        return self.region_op("stablehlo.while", types, inits, None, (types, cond), (types, body))

    def case(self, index: Value, branches: Sequence[Body]) -> list[Value]:
        number = _number(index)
        if number is not None:
            branch: Any = branches[number if number in range(len(branches)) else -1]
            return list(branch(self.builder))
        # The result types are known once a branch is written: into a scratch operation first.
        count = len(branches)
        scratch = ir.Operation.create("stablehlo.case", operands=[index], regions=count)
        types: list[ir.Type] = []
        for region, branch in zip(scratch.regions, branches, strict=True):
            types = [v.type for v in self.fill(region, (), branch, "stablehlo.return")]
        final = ir.Operation.create(
            "stablehlo.case", results=types, operands=[index], regions=count
        )
        for source, target in zip(scratch.regions, final.regions, strict=True):
            source.blocks[0].append_to(target)
        scratch.erase()
        return list(final.results)

    # ---- functions ----

    @contextmanager
    def planned(self, plan: Plan) -> Generator[None]:
        """What is written inside is for the devices of ``plan``, and so are its functions."""
        outer = self.plan, self.plans, self._functions
        self.plan, self.plans = plan, ()
        self._functions = self._functions_for.setdefault(plan, {})
        try:
            yield
        finally:
            self.plan, self.plans, self._functions = outer

    def for_each(self, write: Callable[[], Values]) -> list[Value]:
        """What ``write`` writes for that one of ``plans`` which it turns out to be.

        Raises:
            OfItsPlatform: which one it is cannot be told in a function, or in a manual computation.
        """
        if self.number is None:
            raise OfItsPlatform

        def on(plan: Plan) -> Body:
            def branch(_: Builder) -> Values:
                with self.planned(plan):
                    return write()

            return branch

        return self.case(self.number, list(map(on, self.plans)))

    def call(self, key: Any, emit: Body, args: Values) -> list[Value]:
        if self.symbolic:  # functions would have to be told what lengths are
            return self._written_out(emit, args)
        name, results = self._function(key, emit, [a.type for a in args])
        callee = ir.FlatSymbolRefAttr.get(name)
        return self.region_op("func.call", results, args, {"callee": callee})

    def _written_out(self, emit: Body, args: Values) -> list[Value]:
        written: Any = emit
        return list(written(self.builder, *args))

    def composite(
        self,
        key: Any,
        emit: Body,
        args: Values,
        name: str,
        version: int,
        attributes: Mapping[str, Any],
    ) -> list[Value]:
        if self.symbolic:
            return self._written_out(emit, args)
        function, results = self._function(key, emit, [a.type for a in args])
        composite_attributes = {
            "name": ir.StringAttr.get(name),
            "decomposition": ir.FlatSymbolRefAttr.get(function),
            "version": self.int_attribute(version, 32),
            "composite_attributes": self.config(attributes),
        }
        return self.region_op("stablehlo.composite", results, args, composite_attributes)

    def _function(
        self, key: Any, emit: Body, parameters: Sequence[ir.Type]
    ) -> tuple[str, list[ir.Type]]:
        key = (key, self.manual, self.conditional, len(parameters))
        written = self._functions.get(key)
        if written is None:
            name = self._fresh_name(getattr(key[0], "name", "f"))
            with ir.InsertionPoint(self.module.body):
                function = func.FuncOp(name, (parameters, []), visibility="private")
            number, self.number = self.number, None
            values = self.fill(function.regions[0], parameters, emit, "func.return")
            self.number = number
            results: list[ir.Type] = [v.type for v in values]
            function.attributes["function_type"] = ir.TypeAttr.get(
                ir.FunctionType.get(parameters, results)
            )
            written = self._functions[key] = (name, results)
        return written

    def _fresh_name(self, wish: str) -> str:
        base = name = re.sub(r"\W", "_", wish) or "f"
        count = 0
        while name in self._names:
            count += 1
            name = f"{base}_{count}"
        self._names.add(name)
        return name

    def inline(self, program: Program, *values: Value) -> list[Value]:
        pairs = zip(program.inputs, values, strict=True)
        env: dict[Any, Value] = {v: self.builder.summed_as(v.type, x) for v, x in pairs}
        outer, current = self.equation, ir.Location.current
        places = groupby(program.equations, lambda e: self.place(e.location, current))
        for place, equations in places:
            with place:
                for equation in equations:
                    self._write(equation, env)
        self.equation = outer
        return self._read(program.outputs, env)

    def traced(self, function: Callable[..., Any], *values: Value) -> Any:
        single = False

        def results(*arrays: Any) -> tuple[Sequence[Any], None]:
            nonlocal single
            out = function(*arrays)
            single = not isinstance(out, (list, tuple))
            return ([out] if single else out), None

        types = [self.type(v) for v in values]
        program = trace_closed(results, types, "traced").program
        equations = [
            Equation(e.prim, e.inputs, e.params, e.outputs, None) for e in program.equations
        ]
        written = self.inline(program.update(equations=equations), *values)
        return written[0] if single else written

    def _write(self, equation: Equation, env: dict[Any, Value]) -> None:
        self.equation = equation
        prim = equation.prim
        if _is_empty(equation):
            env.update({v: self.constant(0, v.type.dtype, v.type.shape) for v in equation.outputs})
            return
        operands = self._read(equation.inputs, env)
        outer, self.conditional = self.conditional, self.conditional or prim.decides is not None
        try:
            if differs(equation, self.plans):
                results = self.for_each(lambda: self._lowered(equation, operands))
            else:
                results = self._lowered(equation, operands)
        except ir.MLIRError as error:
            raise refused(error, prim.name, equation.location) from None
        self.conditional = outer
        for var, value in zip(equation.outputs, results, strict=True):
            spec = var.type.spec and var.type.spec.explicit
            env[var] = value if spec is None else self.builder.with_spec(value, spec)

    def _lowered(self, equation: Equation, operands: Values) -> Values:
        wide = widened(equation)
        return self._as_it_is(equation, operands) if wide is None else self._through(wide, operands)

    def _through(self, wide: Equation, operands: Values) -> Values:
        """The results of an equation that is done in wider dtypes, as ``wide`` says."""
        narrow, self.equation = self.outs, wide
        pairs = zip(operands, wide.inputs, strict=True)
        wide_results = self._as_it_is(
            wide, [self.builder.convert(x, a.type.dtype) for x, a in pairs]
        )
        results = zip(wide_results, narrow, strict=True)
        return [self.builder.convert(y, t.dtype) for y, t in results]

    def _as_it_is(self, equation: Equation, operands: Values) -> Values:
        prim = equation.prim
        platform = self.plan.target.platform if prim.lower_on else ""
        out = prim.lowering(platform)(self.builder, *operands, **equation.params)
        return out if prim.multi else (out,)

    def _read(self, atoms: Iterable[Atom], env: dict[Any, Value]) -> list[Value]:
        return [env[a] if type(a) is Var else self._of_literal(a) for a in atoms]

    def _of_literal(self, a: Literal) -> Value:
        """A constant of the program; NaN where the compiler does not see it.

        XLA's exponential on CPUs makes an integer of its operand. Of a constant NaN that is
        undefined to LLVM, and the result would be whatever the registers hold.
        """
        value = self.constant(a.value, a.type.dtype)
        inexact = dtypes.is_inexact(a.type.dtype) and not isinstance(a.value, Length)
        hidden = inexact and np.isnan(np.asarray(a.value)).any()
        return self.optimization_barrier([value])[0] if hidden else value

    # ---- functions that others provide ----

    def custom_call(
        self,
        name: str,
        args: Values,
        out_types: Sequence[ArrayType],
        backend_config: dict[str, Any] | None = None,
        has_side_effect: bool = False,
    ) -> list[Value]:
        attributes: dict[str, ir.Attribute] = {
            "call_target_name": ir.StringAttr.get(name),
            "api_version": self.int_attribute(4, 32),
            "has_side_effect": ir.BoolAttr.get(has_side_effect),
            "backend_config": self.config(backend_config or {}),
        }
        results = [self.tensor_of(t) for t in out_types]
        shapes, shape_attributes = self.shape_operands(out_types, len(args))
        operands = [*args, *shapes]
        return self.region_op(
            "stablehlo.custom_call", results, operands, attributes | shape_attributes
        )

    def config(self, values: Mapping[str, Any]) -> ir.Attribute:
        """The attributes of a custom call; NumPy integers keep their width and sign."""
        return ir.DictAttr.get({k: self._config(v) for k, v in values.items()})

    def _config(self, value: Any) -> ir.Attribute:
        if isinstance(value, _BOOLS):
            return ir.BoolAttr.get(bool(value))
        if isinstance(value, str):
            return ir.StringAttr.get(value)
        if isinstance(value, SEQUENCE):
            return self.int_list(value)
        if is_mapping(value):
            return self.config(value)
        if is_ndarray(value):
            return self.dense(value, value.shape)
        scalar = np.asarray(value)
        element = element_type(scalar.dtype)
        make = ir.FloatAttr if scalar.dtype.kind == "f" else ir.IntegerAttr
        return make.get(element, scalar.item())


def _windows(
    n: int, window: int, stride: int, base: int, dilation: int, padding: tuple[int, int]
) -> int:
    """How many windows fit along a dimension of length ``n``."""
    length = (larger(n - 1, 0) * base + 1 if n else 0) + sum(padding)
    reach = (window - 1) * dilation + 1
    return larger((length - reach) // stride + 1, 0)
