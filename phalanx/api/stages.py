"""Ahead of time: functions that are traced, lowered and compiled step by step."""

# What an array holds is private to users, not to what runs functions on arrays.
# pyright: reportPrivateUsage=false

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from phalanx.api.aot import abstract, struct
from phalanx.api.arguments import LeafNames, Static, positional_names, shown_call
from phalanx.api.compiled_collectives import Collectives, collectives
from phalanx.api.kept_inputs import KeptInputs
from phalanx.api.lowering_platforms import checked_platforms
from phalanx.api.shardings import check_followed
from phalanx.base import dialect, tree
from phalanx.base.boundary import hide_frames
from phalanx.base.errors import (
    ConcretizationTypeError,
    InconclusiveDimensionOperation,
    suggest,
)
from phalanx.base.lengths import symbolic
from phalanx.base.source import user_location
from phalanx.core.program import Program
from phalanx.core.refs import Ref, load, refuse_aliases
from phalanx.core.trace import ROOT, Tracer, current, refuse_escaped
from phalanx.core.types import ArrayType
from phalanx.run.array import DeviceArray, Signature, default_sharding, moved, place
from phalanx.run.calls import Call, LoadedProgram, operand_signatures
from phalanx.run.execute import compile_program, plan_program
from phalanx.run.planning import RequestedShardings, with_devices
from phalanx.spmd.formats import format_of
from phalanx.spmd.named import unreduced_along
from phalanx.spmd.naming import named
from phalanx.spmd.sharding import Sharding
from phalanx.transforms.stage import loaded


class ArgInfo(Struct, frozen=True):
    """An argument of a function that is compiled ahead of time.

    Attributes:
        shape: its shape.
        dtype: its dtype.
        donated: whether the results may take over its memory.

    >>> import phalanx
    >>> lowered = phalanx.jit(lambda x: 2 * x, donate_argnums=0).lower(jnp.ones(3))
    >>> (info,), _ = lowered.args_info
    >>> info.shape, info.donated
    ((3,), True)
    """

    shape: tuple[int, ...]
    dtype: np.dtype
    donated: bool


class MemoryStats(Struct, frozen=True):
    """Bytes that a compiled program needs on each device.

    Args:
        argument_size_in_bytes: of the arguments.
        output_size_in_bytes: of the results.
        alias_size_in_bytes: of the results that lie where arguments were.
        temp_size_in_bytes: of what lies between.
        generated_code_size_in_bytes: of the program itself.
        host_argument_size_in_bytes: of arguments in the memory of the host.
        host_output_size_in_bytes: of results there.
        host_alias_size_in_bytes: of the results there that lie where arguments were.
        host_temp_size_in_bytes: of what waits there, as what ``checkpoint`` offloads.
        host_generated_code_size_in_bytes: of the program there.

    >>> import phalanx
    >>> compiled = phalanx.jit(lambda x: 2 * x).lower(jnp.ones(256)).compile()
    >>> compiled.memory_analysis().output_size_in_bytes
    1024
    """

    argument_size_in_bytes: int
    output_size_in_bytes: int
    alias_size_in_bytes: int  # of the results that take over the memory of donated arguments
    temp_size_in_bytes: int
    generated_code_size_in_bytes: int
    host_argument_size_in_bytes: int
    host_output_size_in_bytes: int
    host_alias_size_in_bytes: int
    host_temp_size_in_bytes: int
    host_generated_code_size_in_bytes: int


Arranged = Callable[[tuple[Any, ...]], tuple[Any, ...]]


def as_they_are(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """``args``."""
    return args


class TracedCall(Struct, frozen=True):
    """A function traced for a call: its program, and the arguments of that call."""

    who: str
    names: LeafNames
    static: Static
    program: Program
    captured: Sequence[Any]
    in_tree: Any
    out_tree: Any
    types: Sequence[ArrayType]
    shardings: Sequence[Sharding | None]
    donated: Sequence[bool]
    requested: RequestedShardings | None = None  # where arguments and results are to lie
    keep_unused: bool = True
    compiler_options: dict[str, Any] = field(default_factory=dict[str, Any])
    strict: bool = False  # whether arguments that lie elsewhere are refused, not moved
    store: Callable[[Sequence[Any], Sequence[Any]], Sequence[Any]] = lambda _, outputs: outputs
    # of which references the program gives what they hold: before its results of captured ones, if
    # these are read, too, by number; and behind them of arguments
    written: tuple[int | None, ...] = ()
    stored: tuple[int, ...] = ()
    # what arguments of later calls are, to compare their structure with ``in_tree``
    arranged: Arranged = as_they_are

    def with_captured(self) -> TracedCall:
        """The same with what captured references hold as first arguments.

        Raises:
            EscapedTracer: something else is captured, of a transformation that has ended.
        """
        for x in self.captured:
            if type(x) is not Ref:
                refuse_escaped(x)
        count, requested = len(self.captured), self.requested
        return replace(
            self,
            names=self.names.after(map(str, self.captured)),
            types=[*(x.aval.inner_aval for x in self.captured), *self.types],
            shardings=[*(load(x).sharding for x in self.captured), *self.shardings],
            donated=[False] * count + [*self.donated],
            requested=requested and requested.after(count),
        )

    def inputs(self) -> KeptInputs:
        """The inputs of the program that is compiled; all that is captured is an argument."""
        return KeptInputs.of(self.program, self.donated, self.names, self.who, self.keep_unused)

    def check_followed(self, shardings: Sequence[Sharding | None]) -> None:
        """Raise ValueError if arguments, which lie as ``shardings``, must lie elsewhere."""
        if self.strict and self.requested is not None:
            check_followed(shardings, self.requested.ins, self.types, self.names, self.who)

    def compiled(self, operands: Sequence[Any], out_tree: Any) -> Call:
        """The compiled call of ``operands``; all that is captured is among them. What the program
        gives is of the structure ``out_tree``."""
        self.check_followed([s.sharding for s in operand_signatures(operands)])
        inputs, places = self.inputs(), self.requested
        program, sigs = inputs.program, inputs.signatures(operands)
        if places is not None:
            actual, places = [s.sharding for s in sigs], places.taking(inputs.positions)
            _, places = with_devices(program, actual, places, None, inputs.name)
        prepared = compile_program(
            program, sigs, inputs.donate, self.compiler_options, places, inputs.name
        )
        inputs.warn_of_donated(prepared)
        return inputs.call(prepared, operands, out_tree)

    def results(self, outputs: Sequence[Any]) -> Sequence[Any]:
        """The part of ``outputs``, one for each output of the program, that is for the results."""
        return outputs[len(self.written) : len(outputs) - len(self.stored)]

    @property
    def places(self) -> RequestedShardings:
        """Where arguments and results are to lie, None where nothing is said."""
        return self.requested or RequestedShardings.anywhere(self.program)


_FEW = 4  # arguments and results that are told of


def few(types: Sequence[Any]) -> str:
    """The first of ``types``, and how many there are.

    >>> few(["f32[]", "f32[3]"]), few(["f32[]"] * 5)
    ('f32[], f32[3]', 'f32[], f32[], f32[], f32[], ... 5 in all')
    """
    more = f", ... {len(types)} in all" if len(types) > _FEW else ""
    return f"{', '.join(map(str, types[:_FEW]))}{more}"


class AheadOfTime:
    """What is known of a function from tracing on."""

    def __init__(self, traced: TracedCall) -> None:
        self._traced = traced

    def __repr__(self) -> str:
        call = self._traced
        types, results = call.types, call.results(call.program.output_types)
        text = f"{call.who}: ({few(types)}) -> ({few(results)})"
        return f"<{type(self).__name__} {text}>"

    @property
    def fun_name(self) -> str:
        """The name of the function."""
        return self._traced.program.name

    @property
    def in_tree(self) -> Any:
        """The structure of the arguments, ``(args, kwargs)``, without the static ones."""
        return self._traced.in_tree

    @property
    def out_tree(self) -> Any:
        """The structure of the results."""
        return self._traced.out_tree

    @property
    def in_avals(self) -> Any:
        """The shapes and dtypes of the arguments, as a tree ``(args, kwargs)``."""
        return self.in_tree.unflatten([struct(t) for t in self._traced.types])

    @property
    def args_info(self) -> Any:
        """The same, and which arguments are donated."""
        pairs = zip(self._traced.types, self._traced.donated, strict=True)
        return self.in_tree.unflatten([ArgInfo(t.shape, t.dtype, d) for t, d in pairs])

    @property
    def donate_argnums(self) -> tuple[int, ...]:
        """Which leaves of the arguments are donated."""
        return tuple(i for i, donated in enumerate(self._traced.donated) if donated)

    @property
    def out_info(self) -> Any:
        """The shapes and dtypes of the results, and the shardings that were asked for."""
        call = self._traced
        types, places = call.results(call.program.output_types), call.results(call.places.outs)
        return self.out_tree.unflatten(list(map(struct, types, places)))

    out_avals = out_info


class Traced(AheadOfTime):
    """A function traced for arguments of certain shapes and dtypes: ``jit(f).trace(x)``.

    Args:
        traced: what was recorded; the method ``trace`` of a function makes this.

    >>> import phalanx
    >>> traced = phalanx.jit(lambda x: 2 * x).trace(phalanx.ShapeDtypeStruct((3,), "float32"))
    >>> print(traced.program)
    <lambda>(a: f32[3]) {
      b: f32[3] = mul 2.0 a
      return b
    }
    """

    @property
    def program(self) -> Program:
        """What the function does, as a program to print and to inspect."""
        return self._traced.program

    @property
    def effects(self) -> frozenset[Any]:
        """What the program does besides giving results, such as printing."""
        return frozenset(self.program.effects)

    @property
    def jaxpr(self) -> Any:
        """The program, as other tools look at it."""
        return dialect.spoken.program(self.program, self._traced.captured)

    def lower(self, *, lowering_platforms: Sequence[str] | None = None) -> Lowered:
        """Choose devices and layouts, and write the StableHLO module.

        Args:
            lowering_platforms: those that it is written for, "cpu", "cuda", "rocm" or "tpu", in
                place of that of the devices; they need not be there. What is for several takes the
                number of one of them before everything else.

        Raises:
            ValueError: there is no such platform; there are several, and several devices.

        >>> import phalanx, phalanx.numpy as jnp
        >>> keys = phalanx.jit(jnp.sort).trace(phalanx.ShapeDtypeStruct((8,), "float32"))
        >>> "stablehlo.sort" in keys.lower(lowering_platforms=("tpu",)).as_text()
        True
        """
        for watch in on_lowered:
            watch(self)
        if lowering_platforms is None:
            return Lowered(self._traced)
        return Lowered(self._traced, checked_platforms(lowering_platforms, "lower"))


Watches = list[Callable[..., None]]
on_compiled: Watches = []  # told of each function that is compiled
# likewise, with the leaves of the arguments; what is compiled ahead of time is told of without any,
# and again when it is called first
on_compiled_call: Watches = []
on_lowered: Watches = []  # of each that the user lowers ahead of time
# of each call, outside of programs, of what vmap and grad made of a function, before it is made
on_transformed: Watches = []


@contextmanager
def watching(watch: Callable[..., None], *lists: Watches) -> Generator[None]:
    """Put ``watch`` on ``lists`` inside a block; by default on that for what is compiled."""
    lists = lists or (on_compiled,)
    for watches in lists:
        watches.append(watch)
    try:
        yield
    finally:
        for watches in lists:
            watches.remove(watch)


def notify_compiled(traced: Traced, leaves: Sequence[Any] | None = None) -> None:
    """Tell watches that ``traced`` was compiled, for a call with ``leaves`` or ahead of time."""
    for watch in on_compiled:
        watch(traced)
    for watch in on_compiled_call:
        watch(traced, leaves)


def watched(fun: Callable[..., Any]) -> Callable[..., Any]:
    """``fun``, a function that was transformed, of whose calls those are told who want to know,
    unless they belong to a program."""

    def called(*args: Any, **kwargs: Any) -> Any:
        if on_transformed and current() is ROOT:
            for watch in on_transformed:
                watch(fun, args, kwargs)
        return fun(*args, **kwargs)

    return called


class Lowered(AheadOfTime):
    """A traced function as a module for certain devices: ``jit(f).lower(x)``.

    Args:
        traced: what was recorded.
        platforms: for which platforms; the method ``lower`` makes this.

    >>> import phalanx
    >>> lowered = phalanx.jit(lambda x: 2 * x).lower(1.0)
    >>> "stablehlo.multiply" in lowered.as_text()
    True
    """

    def __init__(self, traced: TracedCall, platforms: Sequence[str] = ()) -> None:
        """For ``platforms`` in place of that of the devices, if there are any."""
        super().__init__(traced)
        self._platforms = platforms
        self._whole = whole = traced.with_captured() if traced.captured else traced
        self._inputs = inputs = whole.inputs()
        program, positions = inputs.program, inputs.positions
        actual = [whole.shardings[i] or default_sharding() for i in positions]
        requested, platform = whole.places.taking(positions), next(iter(platforms), None)
        actual, places = with_devices(program, actual, requested, platform, inputs.name)
        sigs = [Signature.of(whole.types[i], s) for i, s in zip(positions, actual, strict=True)]
        self._planned = plan_program(program, sigs, inputs.donate, places, inputs.name)
        self._module = self._planned.lowered_for(platforms) if platforms else self._planned.module

    def as_text(self, dialect: str | None = None, *, debug_info: bool = False) -> str:
        """The module as text.

        Args:
            dialect: "stablehlo", which is the default, or "hlo", before optimization.
            debug_info: whether to add the lines of Python that operations come from.

        Raises:
            ValueError: there is no such dialect.
        """
        return self._module.as_text(debug_info, _dialect(dialect, "as_text"))

    def compiler_ir(self, dialect: str | None = None) -> Any:
        """The module as an object of the compiler's Python bindings.

        Args:
            dialect: "stablehlo", which is the default, for a module of MLIR; "hlo" for an
                ``XlaComputation``.

        Raises:
            ValueError: there is no such dialect.
        """
        return self._module.ir(_dialect(dialect, "compiler_ir"))

    def compile(self, compiler_options: dict[str, Any] | None = None) -> Compiled:
        """Compile with XLA; options that differ give separate executables.

        Calling the function itself afterwards does not compile again.

        Args:
            compiler_options: options of XLA by name; None for none.

        Raises:
            ValueError: XLA does not know an option, or not the value; it was lowered for other
                platforms than that of the devices.
            InconclusiveDimensionOperation: lengths are symbolic.
        """
        self._check_platform()
        self._check_lengths()
        options = self._traced.compiler_options | (compiler_options or {})
        compiled = self._planned.compile(options)
        self._inputs.warn_of_donated(compiled)
        notify_compiled(Traced(self._traced))
        return Compiled(self._traced, self._whole, compiled, self._inputs)

    def _check_platform(self) -> None:
        if len(self._platforms) > 1 or not self._module.is_for_its_devices:
            raise ValueError(
                f"{self._traced.who}: {self.fun_name} was lowered for platforms "
                f"{', '.join(self._platforms)}, and not for its devices; to compile for devices "
                "that are not here, describe them: phalanx.experimental.topologies"
            )

    def _check_lengths(self) -> None:
        types = self._inputs.program.input_types
        if any([symbolic(t.shape) for t in types]):
            raise InconclusiveDimensionOperation(
                f"{self._traced.who}: {self.fun_name} was lowered for arguments "
                f"{', '.join(map(str, types))}, at {user_location()}, and a compiler needs "
                "numbers; export it, and call what was exported"
            )

    def cost_analysis(self) -> dict[str, Any]:
        """XLA's estimate of the work, such as ``{"flops": ...}``."""
        return self.compile().cost_analysis()


_LAYOUTS = ("input_layouts", "output_layouts")
_LAYOUT = "input_formats and output_formats tell how arrays lie, in memory and over devices"


class Compiled(AheadOfTime):
    """A compiled function, for arguments of one structure and one set of shapes and dtypes.

    Args:
        traced: what was recorded.
        whole: the same, with the arrays that the function closes over.
        compiled: the executable; the method ``compile`` makes this.
        inputs: the arguments that it takes.

    >>> import phalanx, phalanx.numpy as jnp
    >>> f = phalanx.jit(lambda x, n: x**n, static_argnums=1)
    >>> cube = f.lower(phalanx.ShapeDtypeStruct((3,), "float32"), 3).compile()
    >>> cube(jnp.arange(3.0))
    Array([0., 1., 8.], dtype=float32)
    """

    def __init__(
        self, traced: TracedCall, whole: TracedCall, compiled: LoadedProgram, inputs: KeptInputs
    ) -> None:
        """``whole`` is ``traced`` with all that the program takes."""
        super().__init__(traced)
        self._whole = whole
        self._compiled = compiled
        self._positions = inputs.positions
        self._in_shardings = [s or default_sharding() for s in whole.shardings]
        for i, sharding in zip(inputs.positions, compiled.in_shardings, strict=True):
            requested, type = whole.places.ins[i] or whole.shardings[i], whole.types[i]
            if unreduced_along(sharding):
                requested = sharding
            summed = unreduced_along(requested)  # parts of a sum lie where they do
            if requested is None or not (summed or requested.is_equivalent_to(sharding, type.ndim)):
                requested = named(sharding, type, compiled.names)
            self._in_shardings[i] = requested
        self._is_called = False
        self._comparison = compiled.comparison(inputs.name)

    @property
    def input_shardings(self) -> Any:
        """How the arguments lie, as a tree ``(args, kwargs)``."""
        return self.in_tree.unflatten(self._in_shardings[len(self._traced.captured) :])

    @property
    def output_shardings(self) -> Any:
        """How the results lie."""
        return self.out_tree.unflatten(self._result_shardings)

    @property
    def input_formats(self) -> Any:
        """How the arguments lie, over devices and in memory, as a tree ``(args, kwargs)``."""
        actual = zip(self._whole.types, self._in_shardings, strict=True)
        formats = [format_of(s, t.ndim) for t, s in actual]
        return self.in_tree.unflatten(formats[len(self._traced.captured) :])

    @property
    def output_formats(self) -> Any:
        """How the results lie, over devices and in memory."""
        return tree.map(lambda s, t: format_of(s, t.ndim), self.output_shardings, self.out_info)

    @property
    def out_info(self) -> Any:
        """The shapes and dtypes of the results, and how they lie."""
        types = self._traced.results(self._traced.program.output_types)
        return self.out_tree.unflatten(list(map(struct, types, self._result_shardings)))

    out_avals = out_info

    @property
    def _result_shardings(self) -> list[Sharding]:
        return [s.sharding for s in self._traced.results(self._compiled.out_sigs)]

    def __getattr__(self, name: str) -> NoReturn:
        why = _LAYOUT if name in _LAYOUTS else suggest(name, dir(self))
        raise AttributeError(f"{type(self).__name__}: there is no attribute {name!r}. {why}")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """What the function gives, without its static arguments, for they are fixed.

        Raises:
            TypeError: the structure, a shape or a dtype differs from what it was compiled for.
            ConcretizationTypeError: called inside a transformation.
        """
        try:
            leaves, treedef = tree.flatten((self._traced.arranged(args), kwargs))
            if treedef != self.in_tree:
                raise TypeError(self._other_structure(treedef, args, kwargs))
            captured = self._traced.captured
            refuse_aliases(leaves, captured, self._traced.who)
            operands = loaded([*captured, *leaves])
            types = self._checked(operands)
            if self._traced.strict:
                self._check_places(operands)
            if not self._is_called:
                self._is_called = True
                for watch in on_compiled_call:
                    watch(Traced(self._traced), leaves)
            if self._comparison is not None:
                self._comparison([operands[i] for i in self._positions])
            arrays = [
                self._array(operands[i], types[i], self._in_shardings[i]) for i in self._positions
            ]
            outputs = self._traced.store(leaves, self._compiled(arrays))
            return self.out_tree.unflatten(outputs)
        except Exception as error:
            hide_frames(error)
            raise

    def call(self, *args: Any, **kwargs: Any) -> Any:
        """The same as calling it.

        Args:
            *args: arrays of the shapes and dtypes that it was compiled for.
            **kwargs: the same by name.
        """
        return self(*args, **kwargs)

    def _checked(self, operands: Sequence[Any]) -> Sequence[ArrayType]:
        """The types of ``operands``, which are those for which the function was compiled."""
        call = self._whole
        pairs = [(i, self._type_of(i, x), call.types[i]) for i, x in enumerate(operands)]
        others = [
            f"Argument '{call.names[i]}' compiled with {expected} and called with {actual}"
            for i, actual, expected in pairs
            if (actual.shape, actual.dtype) != (expected.shape, expected.dtype)
        ]
        if others:
            listed = "\n".join(others)
            raise TypeError(  # "Argument types ... called with" is the field's, for matching
                f"{call.who}: Argument types differ from the types for which this computation was "
                f"compiled. The mismatches are:\n{listed}\nConvert what is passed, or lower and "
                "compile for its types"
            )
        return call.types

    def _type_of(self, i: int, x: Any) -> ArrayType:
        call = self._whole
        if isinstance(x, Tracer):
            raise ConcretizationTypeError(
                f"{call.who}: it was compiled ahead of time and needs arrays that hold data, but "
                f"{call.names[i]} is traced, {x.aval}. Transform the function itself, and compile "
                "what that gives"
            )
        return abstract(x, call.names, i, call.who)

    def _check_places(self, leaves: Sequence[Any]) -> None:
        """Raise ValueError if a leaf that the user placed lies otherwise than it must, or is whole
        where parts of a sum are wanted.

        It may lie as the argument did that the function was lowered for.
        """
        for i in self._positions:
            x, sharding, before = leaves[i], self._in_shardings[i], self._whole.shardings[i]
            there = x._sig.sharding if isinstance(x, DeviceArray) else default_sharding()
            if not (there.committed or unreduced_along(sharding)):
                continue
            type = self._whole.types[i]
            fitting = [sharding] if before is None else [sharding, before]
            if not any([s.is_equivalent_to(there, type.ndim) for s in fitting]):
                raise ValueError(  # "Computation was ... mismatches" is the field's, for matching
                    f"{self._traced.who}: Computation was compiled for input shardings that "
                    "disagree with the shardings of arguments passed to it. Here are the "
                    f"mismatches: {self._whole.names[i]}, {type}, was compiled to lie as "
                    f"{sharding} and lies as {there}. Move it: "
                    "phalanx.device_put(x, sharding), or lower and compile for where it lies"
                )

    def _array(self, x: Any, type: ArrayType, sharding: Sharding) -> DeviceArray:
        if isinstance(x, DeviceArray):
            x._check_alive()
            return moved(x, sharding)
        return place(np.asarray(x), type, sharding)

    def _other_structure(self, treedef: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
        call, static = self._traced, self._traced.static
        positions = [i for i, _ in static.positional]
        named = positional_names(call.names.fun, max(positions, default=-1) + 1)
        fixed: dict[str, Any] = {named[i]: value for i, value in static.positional}
        fixed.update(static.keywords)
        dynamic = tuple(a for i, a in enumerate(args) if i not in positions)
        others = {name: x for name, x in kwargs.items() if name not in fixed}
        if fixed and tree.structure((dynamic, others)) == self.in_tree:
            values = ", ".join(f"{name}={value!r}" for name, value in fixed.items())
            return (
                f"{call.who}: compiled for the static arguments {values}, which are fixed; leave "
                "them out, or lower and compile for other values"
            )
        return (  # "Function compiled ... called with" is the field's, for matching
            f"{call.who}: Function compiled with input pytree does not match the input pytree it "
            f"was called with: compiled for arguments of the structure "
            f"{shown_call(self.in_tree)} and called with {shown_call(treedef)}; pass the same "
            "structure, or lower and compile for this one"
        )

    def as_text(self) -> str:
        """The HLO module as it was optimized for the devices."""
        return self._compiled.executable.hlo_text()

    def collectives(self) -> Collectives:
        """What the compiler lets devices exchange: operation, mesh axes, bytes, line.

        >>> import phalanx
        >>> phalanx.jit(lambda x: x + 1).lower(1.0).compile().collectives()
        no collectives
        """
        compiled, run = self._compiled, self._compiled.executable
        return collectives(run.exchanges(), run.devices, compiled.names)

    def cost_analysis(self) -> dict[str, Any]:
        """XLA's estimate of the work, such as ``{"flops": ...}``."""
        return self._compiled.executable.cost_analysis()

    def memory_analysis(self) -> MemoryStats:
        """Bytes on each device for arguments, results, temporaries and code."""
        sizes = self._compiled.executable.memory_analysis()
        parts = ("arguments", "outputs", "aliased", "temporaries", "code")
        host = [sizes[f"{part} on the host"] for part in parts]
        return MemoryStats(*[sizes[part] for part in parts], *host)

    def runtime_executable(self) -> Any:
        """The executable of the XLA runtime."""
        return self._compiled.executable


def _dialect(dialect: str | None, who: str) -> str:
    if dialect not in (None, "stablehlo", "hlo"):
        raise ValueError(f"{who}: the dialects are 'stablehlo' and 'hlo', got {dialect!r}")
    return dialect or "stablehlo"
