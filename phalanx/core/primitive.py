"""Primitives: one declaration holds the name of an operation and every rule it needs.

What all operations have stands in ``Primitive`` itself. What some have stands in a record of its
subject, which the others do without: ``Elements``, ``NamedAxes``, ``SubPrograms``, ``Effects``,
``UserRules``, ``OnDevices``, ``Execution``.
"""

# Users' arguments are looked at, whatever their types should be.
# pyright: reportUnnecessaryIsInstance=false

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Concatenate, Final, Literal, TypeVar

from msgspec import Struct, field

from phalanx.base.boundary import hiding
from phalanx.base.errors import MissingRule
from phalanx.base.recent import Recent
from phalanx.base.source import user_location
from phalanx.core.axes import Axis
from phalanx.core.builder import Builder
from phalanx.core.correspond import Dims, LinearIn, propagate_shardings
from phalanx.core.manual import typed
from phalanx.core.platforms import names_of
from phalanx.core.trace import current, entered_trace
from phalanx.core.types import ArrayType

Operands = tuple[Any, ...]  # tracers of the current trace, arrays and scalars
Active = tuple[bool, ...]  # of each operand, whether it has a tangent
LaneDims = tuple[Any, ...]  # of each operand, the dimension of its lanes; None: it has none
R = TypeVar("R")
T = TypeVar("T")
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
DimsRule = Callable[..., Dims]
FrameRule = Callable[..., Any]  # a Frame (`core/program.py`), which holds programs of primitives
RegionRule = Callable[..., Any]  # a Region (`core/region.py`)
LowerRule = Callable[Concatenate[Builder, ...], Any]
LinearizeRule = Callable[Concatenate[Active, ...], Derivative]
TransposeRule = Callable[..., Cotangents]
BatchRule = Callable[Concatenate[Axis, Operands, LaneDims, ...], Batched]
Operations = float | tuple[float, float] | Callable[..., float]


class Zero:
    """The tangent or cotangent that is zero everywhere, known without computing.

    >>> from phalanx import primitives
    >>> isinstance(primitives.ZERO, primitives.Zero)
    True
    """

    __slots__ = ()

    def __repr__(self) -> str:
        return "ZERO"


ZERO: Final = Zero()


def selected(values: Iterable[T], marks: Iterable[bool]) -> list[T]:
    """Those of ``values`` that ``marks``, as many, mark.

    >>> selected("abc", [True, False, True])
    ['a', 'c']
    """
    return [x for x, mark in zip(values, marks, strict=True) if mark]


def with_zeros(values: Iterable[Any], nonzero: Iterable[bool]) -> tuple[Any, ...]:
    """``values`` in the places that ``nonzero`` marks, and ``ZERO`` in the others.

    >>> with_zeros(["a", "b"], [True, False, True])
    ('a', ZERO, 'b')
    """
    rest = iter(values)
    return tuple([next(rest) if n else ZERO for n in nonzero])


class ZeroDerivative(Struct, frozen=True):
    """In place of a linearize rule: the result is piecewise constant, its tangent is ZERO.

    Args:
        why: the reason, in words for the user.

    >>> ZeroDerivative("it is constant between steps").why
    'it is constant between steps'
    """

    why: str


class NoRule(Struct, frozen=True):
    """In place of a rule: there is none, and this is why.

    Args:
        why: the reason, in words for the user.

    >>> NoRule("it has no derivative: it counts").why
    'it has no derivative: it counts'
    """

    why: str


class DualRule(Struct, frozen=True):
    """In place of a linearize rule: one that is given the trace that takes the derivative.

    What such a rule does belongs to more than one trace: to that of the primals, to that of the
    tangents, and, for values that a user's function closes over, to ``dual`` itself.

    Args:
        rule: ``(dual, *operands, **params)``, with the operands as ``dual`` sees them, to the
            results and their tangents.

    >>> from phalanx.control.call import call
    >>> type(call.linearize).__name__
    'DualRule'
    """

    rule: Rule


def no_results(*_: Any, **__: Any) -> tuple[()]:
    """The type rule, or the tangents, of an operation without results: an empty tuple."""
    return ()


class Linear(Struct, eq=False):
    """In place of an operand of a transpose rule: the operand being differentiated.

    Args:
        type: the type of the operand.

    >>> Linear(ArrayType((2,), np.dtype("float32"))).type
    f32[2]
    """

    type: ArrayType


class Example(Struct, frozen=True):
    """Operands (types or values) and parameters on which tests try a primitive's rules.

    ``axes`` are named axes that must be in scope; ``low`` and ``high`` bound the operands
    that are drawn for a type. ``diagonal`` is added to the diagonals of the matrices among them.
    ``order`` is that of the derivatives that are tried.

    Args:
        args: types, or values, of the operands.
        params: parameters.
        axes: names and sizes of axes that must be in scope.
        low: the least number that is drawn.
        high: the greatest.
        diagonal: what is added to the diagonals of matrices.
        order: up to which order derivatives are tried.

    >>> Example((2.0, 3.0), {"axis": 0}).order
    2
    """

    args: tuple[Any, ...]
    params: dict[str, Any] = field(default_factory=dict[str, Any])
    axes: tuple[tuple[str, int], ...] = ()
    low: float = -1.0
    high: float = 1.0
    diagonal: float = 0.0
    order: int = 2


class Fold(Struct, frozen=True):
    """How a collective combines the lanes of an array, a few at a time: a monoid, and a last step.

    Attributes:
        local: ``(x)`` combines the lanes in the leading dimension of ``x``, as a sum over it does.
        combine: ``(x, y)`` combines two such results, as adding does.
        identity: ``(dtype)`` gives the scalar that changes nothing, as 0 does.
        finalize: ``(axis, totals, dims, **params)`` to the results and the dimensions of their
            lanes, where ``totals`` are all lanes of an operand as one, or, of an operand that has
            None in ``dims``, what all lanes share.
    """

    local: Callable[[Any], Any]
    combine: Callable[[Any, Any], Any]
    identity: Callable[[Any], Any]
    finalize: Callable[..., Batched]


# How the cotangent lies for a transpose rule, along axes of type Explicit, and so what it gives:
TYPED: Final = "typed"  # as types say
SUMMED: Final = "summed"  # as it came: the rule sums it up, and the sum lies as types say
OPEN: Final = "open"  # as the compiler decides
CotangentSharding = Literal["typed", "summed", "open"]

CALLS: Final = "calls the host"
ORDERED: Final = "calls the host in order"
_NONE: Final = frozenset[Any]()


# ---- what some operations have ------------------------------------------------------------------


class Elements(Struct, frozen=True):
    """How the elements of the result come from those of the operands.

    Attributes:
        copied: whether each number in the result is one of an operand or a fill value, as in
            ``transpose`` and ``pad``: then it is NaN only if an operand is.
        fused: whether an element of the result depends on few elements of the operands, as in
            ``add`` and ``slice``: a compiler computes it where it is used, and stores nothing.
        windows: ``(*operands, **params)`` to the windows of the first operand that are read or
            written by index, as in ``gather``: the indices (their last dimension has one number
            for each indexed dimension), the window's length in each dimension, and the indexed
            dimensions. None if there are no indices.
        written: the number of the operand that is written into these windows, as in ``scatter``;
            None: they are only read.
        operations: how many of arithmetic each element takes, of the largest of operands and
            results, or, as a pair, each real and each complex one; or ``(results, *types,
            **params)``, of types, to how many there are in all. None: none where ``copied``,
            else one.
        short: why elements of a byte or less are not as others: of ``"bits"`` their number is a
            part of the meaning, so that it is never done in wider ones; ``"places"``, which an
            operation gives, compilers number in as few bits as elements have; and of a
            ``"running"`` result every element comes from a rounded one before.

    >>> from phalanx.primitives.elementwise import sin
    >>> sin.elements.fused, sin.elements.copied
    (True, False)
    """

    copied: bool = False
    fused: bool = False
    windows: Rule | None = None
    written: int | None = None
    operations: Operations | None = None
    short: Literal["bits", "places", "running"] | None = None


class NamedAxes(Struct, frozen=True):
    """The named axes with which an operation has to do.

    Attributes:
        of: ``(**params)`` to the axes over which it communicates, or on which its results depend
            otherwise.
        communicates: whether it communicates over them.
        fold: how it takes in the lanes of an array, if that can be done a few at a time.

    >>> from phalanx.primitives.collective import psum
    >>> psum.named_axes.of(axes=("batch",))
    frozenset({'batch'})
    """

    of: Callable[..., frozenset[Any]]
    communicates: bool = True
    fold: Fold | None = None


class SubPrograms(Struct, frozen=True):
    """What an operation runs, and what follows from that alone.

    Attributes:
        frame: ``(**params)`` to the sub-programs and the roles of operands and results. It names
            all parameters, with their types.
        decides: ``(varying operands, **params)`` to the axes over which lanes may differ in
            whether, or how often, they run a sub-program.
        whole: whether all operands and results belong to what a compiler knows by name.
    """

    frame: FrameRule
    decides: Rule | None = None
    whole: bool = False


def _nothing(**_: Any) -> frozenset[Any]:
    return _NONE


class Effects(Struct, frozen=True):
    """What an operation does besides giving results. It is kept where nothing needs its results.

    Attributes:
        of: ``(**params)`` to what it does: ``CALLS``, ``ORDERED``, ...; what its sub-programs do
            comes to that.
        carry_state: ``(rewrite, state, *operands, **params)`` to the state afterwards and the
            results. The state is a value that goes from effect to effect, through sub-programs,
            too: ``rewrite(program)`` is a program that takes it as its first input and gives it
            as its first output.
        called: ``(**params)`` to the name of the function that it calls, where its first operand
            says whether it does. Then it needs no rule for a state that is a condition.

    >>> from phalanx.primitives.elementwise import sin
    >>> sin.effects.of()
    frozenset()
    """

    of: Callable[..., frozenset[Any]] = _nothing
    carry_state: Rule | None = None
    called: Callable[..., str] | None = None


class UserRules(Struct, frozen=True):
    """That rules are functions of the user's.

    They may communicate over any named axis, and differently from the operation itself.

    Attributes:
        answers_zeros: whether its transpose is asked also where no result has a cotangent: the
            rule may give something else than zeros.
    """

    answers_zeros: bool = False


class OnDevices(Struct, frozen=True):
    """What an operation says about devices.

    Attributes:
        region: ``(**params)`` to what it runs over devices.
        requested_sharding: ``(**params)`` to the sharding that the result is to have; None: any.
        memory: ``(**params)`` to the kind of memory to which it brings the result; None: their own.
    """

    region: RegionRule | None = None
    requested_sharding: Rule | None = None
    memory: Rule | None = None


class Execution(Struct, frozen=True):
    """How an operation runs where it is not compiled together with what is around it.

    Attributes:
        run: ``(*operands, **params)`` to the results, where no trace is left to see it.
        on_host: the same as NumPy arrays, for what the host does at once.
        launch: ``(program, signatures, donate)`` to what runs a program of this operation alone.

    >>> from phalanx.primitives.elementwise import sin
    >>> sin.execution  # as any other: compiled, and run
    Execution(run=None, on_host=None, launch=None)
    """

    run: Rule | None = None
    on_host: Rule | None = None
    launch: Rule | None = None


# ---- the declaration ----------------------------------------------------------------------------

REGISTRY: dict[str, Primitive] = {}
_typed_results: Recent[Any] = Recent(4096)  # types of results that say something of a mesh


class Primitive(Struct, frozen=True, eq=False):
    """An operation on arrays. Calling it binds it: ``prim(*operands, **params)``.

    Its parameters are those that ``type`` names, or ``frame`` where there are sub-programs, with
    their types; ``params`` declares them where a family has one type rule for many.

    Attributes:
        name: what programs print.
        type: ``(*types, **params)`` to the result's type (a tuple of them if ``multi``).
        lower: ``(b, *values, **params)`` to StableHLO values through the builder ``b``.
        lower_on: in place of ``lower`` on some platforms: 'cpu', 'tpu', 'gpu', or one kind of GPU,
            'cuda' or 'rocm'.
        linearize: ``(active, *primals, **params)`` to the result and a linear function of
            tangents. ``active`` says of each operand whether it has a tangent, and one has; the
            tangent of the others is ``ZERO``, and nothing need be computed for them. Or a
            ``DualRule``.
        transpose: ``(ct, *operands, **params)`` to one cotangent, or None, per operand.
        batch: ``(axis, values, dims, **params)`` to the result and the axis' dimension in it.
        vary: the named axes over which the result differs, from those of the operands.
        dims: ``(*types, **params)`` to the dimensions of operands and results that correspond
            (``correspond.Dims``), from which it follows how results lie along axes of type
            Explicit. None: as ``type`` says.
        linear: the operands in which it is linear where the others are fixed, by number: one group
            or another, or ``ALL`` of them together. It can be done to the parts of a sum over
            devices that is still to be taken.
        leaves_sums: whether it can be told, by ``correspond.LeftSums``, to leave sums over devices
            to be taken.
        cotangent: how that of the result lies for ``transpose``: ``TYPED``, ``SUMMED`` or ``OPEN``.
            None: as types say where elements are ``fused``, else open.
        prepare: adjusts operands when the primitive is bound, before any trace sees them.
        multi: whether there are several results, or none, as a tuple; so where there are
            sub-programs or effects.
        params: a TypedDict of the parameters.
        elements: how the elements of the result come from those of the operands.
        named_axes: those over which it communicates, or on which its results depend.
        subprograms: what it runs.
        effects: what it does besides giving results.
        user_rules: that rules are functions of the user's.
        on_devices: what it says about devices.
        execution: how it runs where it is not compiled.
        doc: the mathematics and the source, in a line.
        examples: what the tests of the laws run it on.

    >>> from phalanx.primitives.elementwise import sin
    >>> sin.name, sin.doc
    ('sin', 'sin x; stablehlo.sine')
    """

    name: str
    type: TypeRule
    lower: LowerRule
    lower_on: Mapping[str, LowerRule] = field(default_factory=dict[str, LowerRule])
    linearize: LinearizeRule | DualRule | ZeroDerivative | NoRule | None = None
    transpose: TransposeRule | NoRule | None = None
    batch: BatchRule | NoRule | None = None
    vary: Rule | None = None
    dims: DimsRule | None = None
    linear: LinearIn = ()
    leaves_sums: bool = False
    cotangent: CotangentSharding | None = None
    prepare: Callable[[Operands], Operands] | None = None
    multi: bool = False
    params: type[Any] | None = None
    elements: Elements = Elements()
    named_axes: NamedAxes | None = None
    subprograms: SubPrograms | None = None
    effects: Effects = Effects()
    user_rules: UserRules | None = None
    on_devices: OnDevices = OnDevices()
    execution: Execution = Execution()
    doc: str = ""
    examples: Sequence[Example] = ()

    @hiding
    def __post_init__(self) -> None:
        if not isinstance(self.name, str):
            raise TypeError(f"Primitive: the name is a string, such as 'sin', got {self.name!r}")
        REGISTRY[self.name] = self

    def __call__(self, *args: Any, **params: Any) -> Any:
        if self.prepare is not None:
            args = self.prepare(args)
        trace = entered_trace()  # `current`, written out where it is called most
        if not trace.alive:
            trace = current()
        return trace.process(self, args, params)

    def __repr__(self) -> str:
        return f"<primitive {self.name}>"

    def __str__(self) -> str:
        return self.name

    def lowering(self, platform: str) -> LowerRule:
        """The lowering rule for devices of ``platform``.

        Args:
            platform: the name of a platform, such as 'cpu'.
        """
        if self.lower_on:
            for name in names_of(platform):
                if name in self.lower_on:
                    return self.lower_on[name]
        return self.lower

    def rule(self, which: str, subject: object = None) -> Rule:
        """The rule named ``which``, of this declaration or of one of the records in it.

        Args:
            which: the name of the rule.
            subject: the record that has it; None for the declaration.

        Raises:
            MissingRule: the primitive has none; the message says why or where to add it.
        """
        rule = getattr(self if subject is None else subject, which)
        if callable(rule):
            return rule
        needed = f"{self.name}: no `{which}` rule, needed at {user_location()}"
        if isinstance(rule, (NoRule, ZeroDerivative)):
            raise MissingRule(f"{needed}: {rule.why}")
        raise MissingRule(
            f"{needed}: it has not been given. It is added where the primitive {self.name} is "
            "declared"
        )

    @property
    def decides(self) -> Rule | None:
        """The rule of that name, if it has sub-programs and it depends on lanes what these do."""
        return None if self.subprograms is None else self.subprograms.decides

    @property
    def fold(self) -> Fold | None:
        """How it takes in the lanes of an array, if that can be done a few at a time."""
        return None if self.named_axes is None else self.named_axes.fold

    def frame(self, params: dict[str, Any]) -> Any:
        """The ``Frame`` of the operation with these parameters, if it has sub-programs.

        Args:
            params: the parameters of the operation.
        """
        return None if self.subprograms is None else self.subprograms.frame(**params)

    def axes(self, params: dict[str, Any]) -> frozenset[Any]:
        """The named axes over which it communicates, or on which its results depend otherwise.

        Args:
            params: the parameters of the operation.
        """
        if self.named_axes is not None:
            return self.named_axes.of(**params)
        return _NONE if self.subprograms is None else self.frame(params).named_axes

    def result_type(self, types: Sequence[ArrayType], params: dict[str, Any]) -> Any:
        """The type of the result; a tuple if ``multi``.

        What the rule ``type`` says, and how it lies over a mesh, where types know that.

        Args:
            types: the types of the operands.
            params: the parameters of the operation.
        """
        result = self.type(*types, **params)
        for t in types:
            if t.of_mesh:
                return self._type_over_mesh(result, types, params)
        if self.named_axes is not None and typed(self.named_axes.of(**params)):
            return self._type_over_mesh(result, types, params)
        return result

    def _type_over_mesh(
        self, result: Any, types: Sequence[ArrayType], params: dict[str, Any]
    ) -> Any:
        if self.subprograms is not None:  # whose rule knows the types of its programs
            return result
        if self.dims is None:  # parameters may be functions of the user's, which nobody keeps
            return self._with_axes(result, types, params)
        key = (self, result, *types, *params, *params.values())
        typed_results = _typed_results[key]
        if typed_results is None:
            typed_results = _typed_results[key] = self._with_axes(result, types, params)
        return typed_results

    def _with_axes(self, result: Any, types: Sequence[ArrayType], params: dict[str, Any]) -> Any:
        """``result``, which says along which axes it varies, and which cut it."""
        results = result if self.multi else (result,)
        varies: frozenset[Any] | tuple[frozenset[Any], ...]
        varies = self.result_varies([t.varying for t in types], params)
        each = (varies,) * len(results) if isinstance(varies, frozenset) else varies
        typed_results = [t.update(varying=typed(v)) for t, v in zip(results, each, strict=True)]
        if self.dims is not None and any([t.spec is not None for t in types]):
            typed_results = propagate_shardings(
                self.name, self.dims(*types, **params), types, typed_results, self.linear
            )
        return tuple(typed_results) if self.multi else typed_results[0]

    def result_varies(
        self, operands: Sequence[frozenset[Any]], params: dict[str, Any]
    ) -> frozenset[Any] | tuple[frozenset[Any], ...]:
        """The axes over which each result varies; a tuple if ``multi`` and the rule says so.

        Args:
            operands: of each operand the axes over which it varies.
            params: the parameters of the operation.
        """
        if self.vary is not None:
            return self.vary(*operands, **params)
        return _NONE.union(*operands)
