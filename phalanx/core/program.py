"""Programs: what a traced function does, in single-assignment form.

An operation with sub-programs runs one of them once, again and again, or in every lane of an axis:
that is its frame. What each operand is to the program, and what each result is made of, is its
*role*; everything that transformations do to such operations follows from the roles.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import index
from types import FunctionType
from typing import Any, TypeVar, final

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from phalanx.base import wide
from phalanx.base.recent import Recent
from phalanx.base.source import Location
from phalanx.core.layouts import Axes
from phalanx.core.manual import typed
from phalanx.core.primitive import Primitive, selected
from phalanx.core.roles import CARRY, CHOICE, FIXED, Role, Roles, slices
from phalanx.core.runs import ONCE, Lanes, Loop, Once, Runs
from phalanx.core.types import NOWHERE, Array, ArrayType, operand_type


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

    __slots__ = ("operand_type", "type", "value")

    def __init__(self, value: np.generic | np.ndarray | Array) -> None:
        constant = value if isinstance(value, Array) else wide.constant(value)
        self.value: np.generic | np.ndarray | Array = constant
        self.operand_type = operand_type(constant)
        self.type = self.operand_type.of_array


Atom = Var | Literal
T = TypeVar("T")


def operand_types(atoms: Iterable[Atom]) -> list[ArrayType]:
    """The types of operands, by which an operation knows those of its results."""
    return [a.type if type(a) is Var else a.operand_type for a in atoms]


_NONE: frozenset[Any] = frozenset()

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
        return self.update(inputs=inputs, params=frame.to_params(self.params), outputs=outputs)

    def narrowed(self, frame: Frame, ins: Sequence[bool], outs: Sequence[bool]) -> Equation:
        """The same with the operands that ``ins`` marks and the results that ``outs`` marks alone;
        the programs of ``frame`` take and give no others."""
        return self.reframed(
            replace(
                frame, ins=tuple(selected(frame.ins, ins)), outs=tuple(selected(frame.outs, outs))
            ),
            inputs=selected(self.inputs, ins),
            outputs=tuple(selected(self.outputs, outs)),
        )

    @property
    def frame(self) -> Frame | None:
        """The sub-programs of the operation, and the roles of its operands and results."""
        return self.prim.frame(self.params)

    @property
    def region(self) -> Any:
        """What the operation runs over devices, a ``Region`` (`core/region.py`); None: nothing."""
        rule = self.prim.on_devices.region
        return None if rule is None else rule(**self.params)

    @property
    def axes(self) -> frozenset[Any]:
        """The named axes that the equation communicates over."""
        return self.prim.axes(self.params)

    @property
    def effects(self) -> frozenset[Any]:
        """What the equation does besides giving results, its sub-programs included."""
        own = self.prim.effects.of(**self.params)
        return own.union(*(p.effects for p in self.programs))

    @property
    def programs(self) -> Iterator[Program]:
        """The sub-programs of the operation."""
        return programs_in(self.prim, self.params)


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
            *[e.axes for e in equations if e.prim.multi or e.prim.named_axes is not None]
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
        results = prim.result_type([v.type for v in inputs], params)
        outputs = tuple([Var(t.of_array) for t in (results if prim.multi else (results,))])
        return cls(inputs, [Equation(prim, [*inputs], params, outputs, location)], outputs, name)

    @property
    def only(self) -> Equation | None:
        """The equation that is all there is: it takes the inputs and gives the outputs."""
        if len(self.equations) != 1:
            return None
        (equation,) = self.equations
        takes_inputs = equation.inputs == [*self.inputs] and equation.outputs == self.outputs
        return equation if takes_inputs else None

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
        return tuple(a.type for a in self.outputs)

    @property
    def has_user_rules(self) -> bool:
        """Whether rules of the user's concern an operation, at any depth."""
        return any([p.user_rules is not None for p in self.primitives])

    def walk(self, into: Callable[[Equation], bool] = lambda e: True) -> Iterator[Equation]:
        """Every equation, those of sub-programs included; of each program once.

        Sub-programs of equations of which ``into`` does not hold are passed over.
        """
        return self._walk(into, set())

    def _walk(self, into: Callable[[Equation], bool], seen: set[Program]) -> Iterator[Equation]:
        for equation in self.equations:
            yield equation
            for program in equation.programs if into(equation) else ():
                if program not in seen:
                    seen.add(program)
                    yield from program._walk(into, seen)

    def __str__(self) -> str:
        return _Printer().program(self)

    def __repr__(self) -> str:  # what a prompt shows
        return str(self)

    def lines(self) -> list[str]:
        """The equations with the user's lines, those of sub-programs before what has them."""
        printer, lines = _Printer(), [f"{self.name}({', '.join(map(repr, self.input_types))})"]
        for equation in self.equations:
            for inner in equation.programs:
                lines += inner.lines()
            text, _, _ = printer.equation(equation).strip().partition("\n")
            where = equation.location
            lines.append(text if where is None else f"{text}, at {where}")
        return lines


# ---- sub-programs -------------------------------------------------------------------------------


class Frame(Struct, frozen=True):
    """Sub-programs, and a role for each operand (``ins``) and result (``outs``) of an operation.

    ``programs`` are alternatives: they take the operands, except for a CHOICE, and give the
    results, in order. The ``condition`` of a loop takes what they take and says whether there is
    another run. ``mesh`` is the grid over which runs in lanes are dealt out, if it has a name.
    """

    programs: tuple[Program, ...]
    ins: Roles
    outs: Roles
    runs: Runs = ONCE
    condition: Program | None = None
    mesh: Any = None

    @property
    def subprograms(self) -> Iterator[Program]:
        """All sub-programs."""
        yield from self.programs
        if self.condition is not None:
            yield self.condition

    @property
    def named_axes(self) -> frozenset[Any]:
        """The named axes over which the programs communicate, as far as they lie outside."""
        return _NONE.union(*(p.axes for p in self.subprograms)) - self.lanes

    # ---- another frame ----

    def rewritten(
        self, change: Callable[[Program], Program], ins: Roles = (), outs: Roles = ()
    ) -> Frame:
        """This frame with ``change`` made to all sub-programs.

        What they take then before their operands has the roles ``ins``, what the programs give
        before their results the roles ``outs``.
        """
        return replace(
            self,
            programs=tuple([change(p) for p in self.programs]),
            condition=self.condition and change(self.condition),
            ins=tuple(self.prepended(ins, self.ins)),
            outs=(*outs, *self.outs),
        )

    def prepended(self, more: Iterable[T], values: Sequence[T]) -> list[T]:
        """``values``, one for each operand, with ``more`` inserted behind the choices, where the
        operands of the programs begin."""
        return [*self.choices(values), *more, *self.body_operands(values)]

    def to_params(self, params: dict[str, Any]) -> dict[str, Any]:
        """The parameters of an operation with this frame in place of its own.

        Operations with sub-programs call what makes up their frames by the same names.
        """
        parts = {
            "program": self.programs[0],
            "programs": self.programs,
            "condition": self.condition,
            "ins": self.ins,
            "outs": self.outs,
            "reverse": isinstance(self.runs, Loop) and self.runs.reverse,
        }
        return {name: parts.get(name, value) for name, value in params.items()}

    @property
    def key(self) -> tuple[Any, ...]:
        """The part of a key that stands for this frame in what is memoized on its first program.

        It refers to the other programs weakly: two programs that were each the first of a frame
        with the other one would keep each other alive.
        """
        _, *others = self.subprograms
        return (*map(weakref.ref, others), self.ins, self.outs, self.runs)

    @property
    def result_types(self) -> tuple[ArrayType, ...]:
        """The types of the results of the operation."""
        axes, types = self.runs.axes, self.programs[0].output_types
        results = [r.outer(t, axes) for r, t in zip(self.outs, types, strict=True)]
        if self.mesh is not None and self.mesh.explicit_axes:
            results = [
                r.sharded_type(t, self.mesh) for r, t in zip(self.outs, results, strict=True)
            ]
        return tuple(results)

    @property
    def body_roles(self) -> Roles:
        """The roles of the operands of the programs: of all but choices."""
        return tuple([r for r in self.ins if r is not CHOICE])

    def body_operands(self, values: Iterable[T]) -> list[T]:
        """Those of ``values``, one for each operand, that belong to operands of the programs."""
        return [v for r, v in zip(self.ins, values, strict=True) if r is not CHOICE]

    def choices(self, values: Iterable[T]) -> list[T]:
        """Those of ``values``, one for each operand, that belong to choices between programs."""
        return [v for r, v in zip(self.ins, values, strict=True) if r is CHOICE]

    def carried_in(self, values: Iterable[T]) -> list[T]:
        """Those of ``values``, one for each operand, that belong to the carry."""
        return [v for r, v in zip(self.ins, values, strict=True) if r is CARRY]

    def carried_out(self, values: Iterable[T]) -> list[T]:
        """Those of ``values``, one for each result, that belong to the carry."""
        return [v for r, v in zip(self.outs, values, strict=True) if r is CARRY]

    def with_carried_in(self, values: Sequence[T], carry: Iterable[T]) -> list[T]:
        """``values``, one for each operand, with those of the carry replaced by ``carry``."""
        new = iter(carry)
        return [next(new) if r is CARRY else v for r, v in zip(self.ins, values, strict=True)]

    def with_carried_out(self, values: Sequence[T], carry: Iterable[T]) -> list[T]:
        """``values``, one for each result, with those of the carry replaced by ``carry``."""
        new = iter(carry)
        return [next(new) if r is CARRY else v for r, v in zip(self.outs, values, strict=True)]

    @property
    def is_loop(self) -> bool:
        """Whether the program runs again and again."""
        return isinstance(self.runs, Loop)

    @property
    def is_call(self) -> bool:
        """Whether it runs one program once, as if its equations stood in its place."""
        return isinstance(self.runs, Once) and len(self.programs) == 1 and CHOICE not in self.ins

    def stored(self, type: ArrayType) -> Role:
        """The role of a value of ``type`` that each run of this frame gives, and the same run of
        another such frame takes, such as a residual: a row for each run, unless all are equal."""
        axes = [axis for axis, _ in self.runs.axes]
        unreduced, reduced = NOWHERE, NOWHERE
        if type.spec is not None:
            unreduced = type.spec.unreduced.intersection(axes)
            reduced = type.spec.reduced.intersection(axes)
        alike = typed(axes) - type.varying - unreduced - reduced
        layout = tuple([(axis,) for axis in axes if axis not in alike])
        return slices(layout, unreduced, reduced)

    @property
    def state(self) -> Role:
        """The role of a value that goes through the operation from run to run."""
        return CARRY if self.is_loop else FIXED

    # ---- lanes ----

    @property
    def lanes(self) -> frozenset[Any]:
        """The named axes over which the programs run as lanes; a loop has none."""
        return frozenset([a for a, _ in self.runs.axes]) if isinstance(self.runs, Lanes) else _NONE

    def alike(self, role: Role) -> Axes:
        """The named axes along which all lanes get the same of an operand with ``role``, each with
        the number of all its lanes, also of those on other devices."""
        if not isinstance(self.runs, Lanes):
            return ()
        differing = role.axes | role.sums
        alike = [(axis, size) for axis, size in self.runs.axes if axis not in differing]
        if self.runs.total is not None:
            return tuple([(axis, index(self.runs.total)) for axis, _ in alike])
        return tuple(alike)


def programs_in(prim: Primitive, params: dict[str, Any]) -> Iterator[Program]:
    """The sub-programs of an operation."""
    return iter(()) if prim.subprograms is None else prim.frame(params).subprograms


def has_user_rules(prim: Primitive, params: dict[str, Any]) -> bool:
    """Whether rules of the user's concern an operation, or what its sub-programs do."""
    inner = programs_in(prim, params)
    return prim.user_rules is not None or any(p.has_user_rules for p in inner)


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
