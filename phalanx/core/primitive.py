"""Primitives: one declaration holds the name of an operation and every rule it needs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Concatenate, Final, TypeVar

from phalanx.base.errors import MissingRule
from phalanx.base.source import user_location
from phalanx.core.axes import Axis, typed
from phalanx.core.builder import Builder
from phalanx.core.frame import Frame
from phalanx.core.region import Region
from phalanx.core.trace import current, entered
from phalanx.core.types import ArrayType

Operands = tuple[Any, ...]  # tracers of the current trace, arrays and scalars
Active = tuple[bool, ...]  # of each operand, whether it has a tangent
LaneDims = tuple[Any, ...]  # of each operand, the dimension of its lanes; None: it has none
R = TypeVar("R")
# A function of a few arguments. With ``...`` for them a lambda's would be of unknown types.
Of = (
    Callable[[Any], R]
    | Callable[[Any, Any], R]
    | Callable[[Any, Any, Any], R]
    | Callable[[Any, Any, Any, Any], R]
    | Callable[[Any, Any, Any, Any, Any], R]
)
Derivative = tuple[Any, Of[Any]]  # the result, and a linear function of tangents
Cotangents = Sequence[Any]  # of each operand; None of one that is not linear
Batched = tuple[Any, Any]  # the result, and the dimension of its lanes

# Rules, by what they take first and give; how many operands and which parameters varies.
Rule = Callable[..., Any]
TypeRule = Callable[..., Any]  # an ArrayType, or a tuple of them
LowerRule = Callable[Concatenate[Builder, ...], Any]
LinearizeRule = Callable[Concatenate[Active, ...], Derivative]
TransposeRule = Callable[..., Cotangents]
BatchRule = Callable[Concatenate[Axis, Operands, LaneDims, ...], Batched]


class Zero:
    """The tangent or cotangent that is zero everywhere, known without computing."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "ZERO"


ZERO: Final = Zero()


@dataclass(frozen=True, slots=True)
class ZeroDerivative:
    """In place of a linearize rule: the result is piecewise constant, its tangent is ZERO."""

    why: str


@dataclass(frozen=True, slots=True)
class NoRule:
    """In place of a rule: there is none, and this is why."""

    why: str


def no_results(*_: Any, **__: Any) -> tuple[()]:
    """Of an operation without results, what its results are: their types, their tangents."""
    return ()


@dataclass(eq=False, slots=True)  # one is made for each variable: freezing takes time
class Linear:
    """In place of an operand of a transpose rule: the operand being differentiated."""

    type: ArrayType


@dataclass(frozen=True, slots=True)
class Example:
    """Operands (types or values) and parameters on which tests try a primitive's rules.

    ``axes`` are named axes that must be in scope; ``low`` and ``high`` bound the operands
    that are drawn for a type. ``diagonal`` is added to the diagonals of the matrices among them.
    ``order`` is that of the derivatives that are tried.
    """

    args: tuple[Any, ...]
    params: dict[str, Any] = field(default_factory=dict[str, Any])
    axes: tuple[tuple[str, int], ...] = ()
    low: float = -1.0
    high: float = 1.0
    diagonal: float = 0.0
    order: int = 2


@dataclass(frozen=True, slots=True)
class Fold:
    """How a collective takes the lanes that lie in an array: they become one, a few at a time.

    Attributes:
        local: ``(x)`` to the leading lanes of ``x`` as one.
        combine: ``(x, y)`` to one of two such.
        neutral: ``(dtype)`` to the scalar that changes nothing.
        conclude: ``(axis, totals, dims, **params)`` to the results and the dimensions of their
            lanes, where ``totals`` are all lanes of an operand as one, or, of an operand that has
            None in ``dims``, what all lanes share.
    """

    local: Callable[[Any], Any]
    combine: Callable[[Any, Any], Any]
    neutral: Callable[[Any], Any]
    conclude: Callable[..., Batched]


CALLS: Final = "calls the host"
ORDERED: Final = "calls the host in order"

REGISTRY: dict[str, Primitive] = {}


@dataclass(frozen=True, eq=False, slots=True)
class Primitive:
    """An operation on arrays. Calling it binds it: ``prim(*operands, **params)``.

    Attributes:
        name: what programs print.
        type: ``(*types, **params)`` to the result's type (a tuple of them if ``multi``).
        lower: ``(b, *values, **params)`` to StableHLO values through the builder ``b``.
        lower_on: in place of ``lower`` on some platforms, 'cpu', 'gpu' or 'tpu'.
        linearize: ``(active, *primals, **params)`` to the result and a linear function of
            tangents. ``active`` says of each operand whether it has a tangent, and one has; the
            tangent of the others is ``ZERO``, and nothing need be computed for them.
        jvp: ``(primals, tangents, **params)`` to the results and their tangents, used in place
            of ``linearize`` where both are wanted at once. For operations whose two halves would
            each run a sub-program, and between them store what it computes.
        differentiate: ``(dual, *operands, **params)`` to the results and their tangents, in
            place of both, for functions with derivative rules of the user's. It is given the
            trace that takes the derivative, and the operands as that sees them, since what a
            user's rule does belongs to more than one trace: to that of the primals, to that of
            the tangents, and, for values that the function closes over, to ``dual`` itself.
        transpose: ``(ct, *operands, **params)`` to one cotangent, or None, per operand.
        batch: ``(axis, values, dims, **params)`` to the result and the axis' dimension in it.
        vary: the named axes over which the result differs, from those of the operands.
        axes: ``(params)`` to the named axes that the operation communicates over, or on which its
            results depend otherwise.
        communicates: whether it communicates over them.
        fold: how it takes in the lanes of an array, if that can be done a few at a time.
        effects: ``(params)`` to what the operation does besides giving results: ``CALLS``,
            ``ORDERED``. What does something is kept where nothing needs its results.
        frame: ``(params)`` to the sub-programs and the roles of operands and results.
        carry_state: ``(rewrite, state, *operands, **params)`` to the state afterwards and the
            results, for sub-programs with effects: a value that goes through them from effect to
            effect. ``rewrite(program)`` is a program that takes the state as its first input and
            gives it as its first output.
        decides: ``(varying operands, **params)`` to the axes over which lanes may differ in
            whether, or how often, they run a sub-program.
        region: ``(params)`` to what the operation runs over devices, if it does.
        requested_sharding: ``(params)`` to the sharding that the result is to have, if the
            operation says so.
        eager: ``(*operands, **params)`` to results as NumPy arrays, for what the host does at
            once where it is not compiled.
        run: ``(*operands, **params)`` to the results, in place of compiling the operation, where
            no trace is left to see it.
        launch: ``(program, signatures, donate)`` to what runs a program of this operation alone, if
            it is not compiled together with what is around it.
        by_user: whether its rules are functions of the user's, which may communicate over any
            named axis, and differently from the operation itself.
        prepare: adjusts operands when the primitive is bound, before any trace sees them.
        copies_elements: whether a number in the result is one of the operands', or what fills a
            place in which there is none, so that it is NaN only where they are.
        windows: ``(*operands, **params)`` to what it reads or writes of its first operand by
            number: indices, whose last dimension has one for each of some dimensions of that, the
            lengths of a window in all, and those dimensions. None if there are no indices.
        fused: whether an element of the result takes a few elements of the operands: a compiler
            makes it where it is needed, again for every use, and stores nothing.
        multi: whether there are several results, or none, as a tuple; so where there are
            sub-programs or effects.
        doc: the mathematics and the source, in a line.
        examples: what the tests of the laws run it on.
    """

    name: str
    type: TypeRule
    lower: LowerRule
    lower_on: Mapping[str, LowerRule] = field(default_factory=dict[str, LowerRule])
    linearize: LinearizeRule | ZeroDerivative | NoRule | None = None
    jvp: Rule | None = None
    differentiate: Rule | None = None
    transpose: TransposeRule | NoRule | None = None
    batch: BatchRule | NoRule | None = None
    vary: Rule | None = None
    axes: Callable[[dict[str, Any]], frozenset[Any]] | None = None
    communicates: bool = True
    fold: Fold | None = None
    effects: Callable[[dict[str, Any]], frozenset[Any]] | None = None
    frame: Callable[[dict[str, Any]], Frame] | None = None
    carry_state: Rule | None = None
    decides: Rule | None = None
    region: Callable[[dict[str, Any]], Region] | None = None
    requested_sharding: Callable[[dict[str, Any]], Any] | None = None
    eager: Rule | None = None
    run: Rule | None = None
    launch: Rule | None = None
    by_user: bool = False
    prepare: Callable[[Operands], Operands] | None = None
    copies_elements: bool = False
    windows: Rule | None = None
    fused: bool = False
    multi: bool = False
    doc: str = ""
    examples: Sequence[Example] = ()

    def __post_init__(self) -> None:
        REGISTRY[self.name] = self

    def __call__(self, *args: Any, **params: Any) -> Any:
        if self.prepare is not None:
            args = self.prepare(args)
        trace = entered()  # `current`, written out where it is called most
        if not trace.alive:
            trace = current()
        return trace.process(self, args, params)

    def __repr__(self) -> str:
        return f"<primitive {self.name}>"

    def __str__(self) -> str:
        return self.name

    def lowering(self, platform: str) -> LowerRule:
        """The lowering rule for devices of ``platform``."""
        return self.lower_on.get(platform, self.lower)

    def rule(self, which: str) -> Rule:
        """The rule named ``which``.

        Raises:
            MissingRule: the primitive has none; the message says why or where to add it.
        """
        rule = getattr(self, which)
        if callable(rule):
            return rule
        needed = f"{self.name}: no `{which}` rule, needed at {user_location()}"
        if isinstance(rule, (NoRule, ZeroDerivative)):
            raise MissingRule(f"{needed}: {rule.why}")
        raise MissingRule(
            f"{needed}: it has not been given. It is added where the primitive {self.name} is "
            "declared"
        )

    def result_type(self, types: Sequence[ArrayType], params: dict[str, Any]) -> Any:
        """The type of the result; a tuple if ``multi``.

        What the rule ``type`` says, and along which axes it varies, where types know that.
        """
        result = self.type(*types, **params)
        for t in types:
            if t.varying:
                return self._varying_type(result, types, params)
        if self.axes is not None and self.frame is None and typed(self.axes(params)):
            return self._varying_type(result, types, params)
        return result

    def _varying_type(self, result: Any, types: Sequence[ArrayType], params: dict[str, Any]) -> Any:
        if self.frame is not None:  # whose rule knows the types of its programs
            return result
        varies: frozenset[Any] | tuple[frozenset[Any], ...]
        varies = self.result_varies([t.varying for t in types], params)
        if not self.multi:
            return result.update(varying=typed(varies))
        each = (varies,) * len(result) if isinstance(varies, frozenset) else varies
        return tuple([t.update(varying=typed(v)) for t, v in zip(result, each, strict=True)])

    def result_varies(self, operands: Sequence[frozenset[Any]], params: dict[str, Any]) -> Any:
        """The axes over which each result varies; a tuple if ``multi`` and the rule says so."""
        if self.vary is not None:
            return self.vary(*operands, **params)
        none: frozenset[Any] = frozenset()
        return none.union(*operands)
