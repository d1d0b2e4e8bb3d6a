"""Programs: what a traced function does, in single-assignment form."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from types import FunctionType
from typing import Any, final

import numpy as np

from phalanx.base.recent import Recent
from phalanx.base.source import Location
from phalanx.core.frame import Frame
from phalanx.core.primitive import Primitive
from phalanx.core.types import Array, ArrayType, typeof


@final
class Var:
    """A value inside a program, defined once: an input, or a result of an equation."""

    __slots__ = ("type",)

    def __init__(self, type: ArrayType) -> None:
        self.type = type


@final
class Literal:
    """A constant of a program: a scalar, a NumPy array, or an array that holds data.

    So a program is closed: whatever is made of it, its constants come along.
    """

    __slots__ = ("type", "value")

    def __init__(self, value: np.generic | np.ndarray | Array) -> None:
        self.value = value
        kind = typeof(value)
        self.type = kind if isinstance(value, np.generic) else plain(kind)


Atom = Var | Literal

LARGEST_LITERAL = 4096  # elements; a larger constant is an operand of what is compiled
DERIVED = 256  # of each program: what was made of it, and what was compiled for it


class Equation:
    """``outputs = prim(*inputs, **params)``, and the user's line that it comes from."""

    __slots__ = ("inputs", "location", "outputs", "params", "prim")

    def __init__(
        self,
        prim: Primitive,
        inputs: list[Atom],
        params: dict[str, Any],
        outputs: tuple[Var, ...],
        location: Location | None,
    ) -> None:
        self.prim = prim
        self.inputs = inputs
        self.params = params
        self.outputs = outputs
        self.location = location

    def update(
        self,
        *,
        inputs: list[Atom] | None = None,
        params: dict[str, Any] | None = None,
        outputs: tuple[Var, ...] | None = None,
    ) -> Equation:
        """The same, of other operands, with other parameters or results."""
        return Equation(
            self.prim,
            self.inputs if inputs is None else inputs,
            self.params if params is None else params,
            self.outputs if outputs is None else outputs,
            self.location,
        )

    def renamed(self, names: Mapping[Any, Atom]) -> Equation:
        """The same, of other operands where ``names`` has them."""
        return self.update(inputs=[names.get(a, a) for a in self.inputs])

    def reframed(
        self,
        frame: Frame,
        *,
        inputs: list[Atom] | None = None,
        outputs: tuple[Var, ...] | None = None,
    ) -> Equation:
        """The same with another ``frame``, and with what that takes and gives."""
        return self.update(inputs=inputs, params=frame.into(self.params), outputs=outputs)

    @property
    def frame(self) -> Frame | None:
        """The sub-programs of the operation, and the roles of its operands and results."""
        return self.prim.frame(self.params) if self.prim.frame is not None else None

    @property
    def axes(self) -> frozenset[Any]:
        """The named axes that the equation communicates over."""
        return self.prim.axes(self.params) if self.prim.axes is not None else frozenset()

    @property
    def effects(self) -> frozenset[Any]:
        """What the equation does besides giving results, its sub-programs included."""
        own: frozenset[Any] = frozenset()
        if self.prim.effects is not None:
            own = self.prim.effects(self.params)
        return own.union(*(p.effects for p in self.programs))

    @property
    def programs(self) -> Iterator[Program]:
        """The sub-programs of the operation."""
        return programs_in(self.prim, self.params)


def programs_in(prim: Primitive, params: dict[str, Any]) -> Iterator[Program]:
    """The sub-programs of an operation."""
    return prim.frame(params).every if prim.frame is not None else iter(())


class Program:
    """Inputs, equations, outputs. Traced values that it closes over come first among the inputs.

    A program is immutable once made and compares by identity, so it can be a parameter of an
    equation. ``derived`` keeps what transformations made of it (its linearization, its
    batched form, ...), so that none is made twice; it lives and dies with the program.
    ``primitives`` are those of its equations and of all sub-programs.
    """

    __slots__ = (
        "__weakref__", "axes", "derived", "effects", "equations", "inputs", "name", "outputs",
        "primitives",
    )  # fmt: skip

    def __init__(
        self,
        inputs: Iterable[Var],
        equations: list[Equation],
        outputs: Iterable[Atom],
        name: str = "main",
    ) -> None:
        self.inputs = tuple(inputs)
        self.equations = equations
        self.outputs = tuple(outputs)
        self.name = name
        # what has several results, or none, has sub-programs or effects; the rest has neither
        several = [e for e in equations if e.prim.multi]
        inner = [p.primitives for e in several for p in e.programs]
        self.primitives: frozenset[Primitive] = frozenset({e.prim for e in equations}).union(*inner)
        self.axes: frozenset[Any] = frozenset().union(
            *[e.axes for e in equations if e.prim.axes is not None]
        )
        self.effects: frozenset[Any] = frozenset().union(*[e.effects for e in several])
        self.derived: Recent[Any] = Recent(DERIVED)

    @classmethod
    def of_one(
        cls,
        prim: Primitive,
        types: Iterable[ArrayType],
        params: dict[str, Any],
        name: str,
        location: Location | None = None,
    ) -> Program:
        """The program of one operation on operands of ``types``."""
        inputs = [Var(t) for t in types]
        given = prim.type(*[v.type for v in inputs], **params)
        outputs = tuple([Var(plain(t)) for t in (given if prim.multi else (given,))])
        return cls(inputs, [Equation(prim, [*inputs], params, outputs, location)], outputs, name)

    @property
    def only(self) -> Equation | None:
        """The equation that is all there is: it takes the inputs and gives the outputs."""
        if len(self.equations) != 1:
            return None
        (equation,) = self.equations
        whole = equation.inputs == [*self.inputs] and equation.outputs == self.outputs
        return equation if whole else None

    def update(
        self,
        *,
        inputs: Iterable[Var] | None = None,
        equations: list[Equation] | None = None,
        outputs: Iterable[Atom] | None = None,
    ) -> Program:
        """A program of the same name with other inputs, equations or outputs."""
        return Program(
            self.inputs if inputs is None else inputs,
            self.equations if equations is None else equations,
            self.outputs if outputs is None else outputs,
            self.name,
        )

    def renamed(self, names: Mapping[Any, Atom]) -> Program:
        """The same, which takes and gives other values where ``names`` has them."""
        equations = [e.renamed(names) for e in self.equations]
        return self.update(equations=equations, outputs=[names.get(a, a) for a in self.outputs])

    @property
    def input_types(self) -> tuple[ArrayType, ...]:
        return tuple(v.type for v in self.inputs)

    @property
    def output_types(self) -> tuple[ArrayType, ...]:
        return tuple(plain(a.type) for a in self.outputs)

    @property
    def by_user(self) -> bool:
        """Whether rules of the user's concern an operation."""
        return any([p.by_user for p in self.primitives])

    def walk(self, into: Callable[[Equation], bool] = lambda e: True) -> Iterator[Equation]:
        """Every equation, those of sub-programs included; of each program once.

        Sub-programs of equations of which ``into`` does not hold are passed over.
        """
        return self._walk(into, set())

    def _walk(
        self, into: Callable[[Equation], bool], seen: set[Program]
    ) -> Iterator[Equation]:
        for equation in self.equations:
            yield equation
            for program in equation.programs if into(equation) else ():
                if program not in seen:
                    seen.add(program)
                    yield from program._walk(into, seen)

    def __str__(self) -> str:
        return _Printer().program(self)

    def lines(self) -> list[str]:
        """The equations with the user's lines, those of sub-programs before what has them."""
        printer, lines = _Printer(), [f"{self.name}({', '.join(map(repr, self.input_types))})"]
        for equation in self.equations:
            for inner in equation.programs:
                lines += inner.lines()
            told, _, _ = printer.equation(equation).strip().partition("\n")
            lines.append(f"{told}, at {equation.location}")
        return lines


def has_user_rules(prim: Primitive, params: dict[str, Any]) -> bool:
    """Whether rules of the user's concern an operation, or what its sub-programs do."""
    return prim.by_user or any(p.by_user for p in programs_in(prim, params))


def plain(type: ArrayType) -> ArrayType:
    """``type`` as the type of an array, also where it is that of a literal."""
    if type.__class__ is ArrayType:
        return type
    return ArrayType(type.shape, type.dtype, type.weak)


class _Printer:
    """Names variables a, b, c, ... in the order they appear: equal programs print equally."""

    def __init__(self, indent: str = "") -> None:
        self.names: dict[Var, str] = {}
        self.indent = indent

    def program(self, program: Program) -> str:
        head = ", ".join(f"{self.atom(v)}: {v.type!r}" for v in program.inputs)
        lines = [f"{program.name}({head}) {{"]
        lines += [self.equation(e) for e in program.equations]
        results = ", ".join(self.atom(a) for a in program.outputs)
        lines += [f"{self.indent}  return {results}", f"{self.indent}}}"]
        return "\n".join(lines)

    def equation(self, equation: Equation) -> str:
        operands = " ".join(self.atom(a) for a in equation.inputs)
        results = ", ".join(f"{self.atom(v)}: {v.type!r}" for v in equation.outputs)
        params = ", ".join(f"{k}={self.param(v)}" for k, v in sorted(equation.params.items()))
        return (
            self.indent
            + (f"  {results} = " if results else "  ")
            + equation.prim.name
            + (f"[{params}]" if params else "")
            + (f" {operands}" if operands else "")
        )

    def param(self, value: Any) -> str:
        if isinstance(value, Program):
            return _Printer(self.indent + "  ").program(value)
        items: list[Any] = [*value] if type(value) is tuple else []
        if items and isinstance(items[0], Program):
            return "(" + ", ".join(map(self.param, items)) + ")"
        if isinstance(value, FunctionType):
            return value.__name__
        return f"{value}"

    def atom(self, atom: Atom) -> str:
        if isinstance(atom, Literal):
            return str(atom.value) if not isinstance(atom.value, Array) else f"<{atom.type}>"
        if atom not in self.names:
            self.names[atom] = _letters(len(self.names))
        return self.names[atom]


def _letters(n: int) -> str:
    """0, 1, ..., 25, 26, ... as a, b, ..., z, aa, ..."""
    n, last = divmod(n, 26)
    return (_letters(n - 1) if n else "") + chr(ord("a") + last)
