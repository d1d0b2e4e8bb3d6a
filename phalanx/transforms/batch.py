"""Vectorization: one dimension of an array carries all lanes of a mapped axis at once."""

# Tracers are private to users, not to the traces that make them.
# pyright: reportPrivateUsage=false

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from phalanx.core.axes import Axis
from phalanx.core.leaks import leaving_nothing
from phalanx.core.manual import Typed, typed
from phalanx.core.primitive import Primitive
from phalanx.core.program import Program, has_user_rules
from phalanx.core.refs import Ref, refuse_aliases, refuse_differing, store
from phalanx.core.trace import InnerTrace, Trace, Tracer, current, entering, running
from phalanx.core.types import ArrayType, typeof
from phalanx.primitives.basis import broadcast_lanes, move
from phalanx.primitives.resharding import resharded
from phalanx.transforms.derive import Derived, derive
from phalanx.transforms.stage import evaluate


class BatchTracer(Tracer):
    """A value that has lanes, which ``value`` holds in its dimension ``dim``."""

    __slots__ = ("_dim", "_value")

    def __init__(self, trace: Batch, value: Any, dim: int) -> None:
        self._trace = trace
        kind = lane_type(typeof(value), dim)
        if type(trace.axis.name) is Typed:
            kind = kind.update(varying=kind.varying | {trace.axis.name})
        self.aval = kind
        self._location = None
        self._value = value
        self._dim = dim

    def _carried(self) -> Any:
        return self._value

    def _reason(self) -> str:
        return f"it stands for the values of {self._trace.axis.size} lanes at once"

    def __repr__(self) -> str:
        return f"Traced<{self.aval!r}> over {self._trace.axis.size} lanes: {self._value!r}"


def lane_type(type: ArrayType, dim: int) -> ArrayType:
    """The type of one lane of an array with the lanes in dimension ``dim``."""
    spec = type.spec and type.spec.without_dims((dim,))
    return type.update(shape=type.shape[:dim] + type.shape[dim + 1 :], spec=spec)


class Batch(InnerTrace):
    """Applies each primitive to all lanes of ``axis``.

    What lanes write to references from outside is kept until all has run, with the line that does:
    it may differ between them in the meantime. References that are ``passed`` have another name.
    """

    __slots__ = ("axis", "passed", "written")

    def __init__(self, parent: Trace, axis: Axis, name: str, passed: Sequence[Ref] = ()) -> None:
        super().__init__(parent, name)
        self.axis = axis
        self.passed = passed
        self.written: dict[Ref, tuple[Any, Any]] = {}

    def split(self, x: Any) -> tuple[Any, int | None]:
        """The array that ``x`` stands for, and the dimension of its lanes if it has any."""
        if type(x) is BatchTracer and x._trace is self:
            return x._value, x._dim
        return x, None

    def process(self, prim: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        pairs = [self.split(a) for a in args]
        values = tuple([v for v, _ in pairs])
        dims = tuple([d for _, d in pairs])
        if all(d is None for d in dims) and not self._concerns(prim, params):
            return self.parent.process(prim, values, params)
        with entering(self.parent):
            out, dim = prim.rule("batch")(self.axis, values, dims, **params)
        if not prim.multi:
            return out if dim is None else BatchTracer(self, out, dim)
        return tuple(
            [o if d is None else BatchTracer(self, o, d) for o, d in zip(out, dim, strict=True)]
        )

    def load(self, ref: Any) -> Any:
        refuse_aliases(self.passed, (ref,), self.name)
        return self.written[ref][0] if ref in self.written else super().load(ref)

    def store(self, ref: Any, value: Any, where: Any) -> None:
        if ref._owner is self:
            super().store(ref, value, where)
        else:
            refuse_aliases(self.passed, (ref,), self.name)
            self.written[ref] = value, where

    def write(self) -> None:
        """Write to references from outside what all lanes agree on; RefError where they do not."""
        for ref, (value, where) in self.written.items():
            value, dim = self.split(value)
            if dim is not None:
                refuse_differing(ref, where, self.name)
            store(ref, value, where)

    def _concerns(self, prim: Primitive, params: dict[str, Any]) -> bool:
        name = self.axis.name
        if prim.multi and has_user_rules(prim, params):
            return True
        return name is not None and name in prim.axes(params)


def _batch(
    function: Callable[..., Sequence[Any]],
    axis: Axis,
    args: Sequence[Any],
    dims: Sequence[int | None],
    passed: Sequence[Ref] = (),
) -> tuple[list[Any], list[int | None]]:
    """Run a flat ``function`` on all lanes of ``args``: results, and where their lanes are.

    References that are ``passed`` are new ones in it, by which alone it may use them.
    """
    trace = Batch(current(), axis, getattr(function, "who", "vmap"), passed)
    inputs = [a if d is None else BatchTracer(trace, a, d) for a, d in zip(args, dims, strict=True)]
    with running(trace):
        pairs = [trace.split(y) for y in function(*inputs)]
    trace.write()
    return [v for v, _ in pairs], [d for _, d in pairs]


batch = leaving_nothing(_batch)


def on_lanes(
    program: Program, axis: Axis, args: Sequence[Any], dims: Sequence[int | None]
) -> list[Any]:
    """The results of ``program`` on all lanes of ``args``, which come first in each of them."""
    values, places = _batch(lambda *xs: evaluate(program, xs), axis, args, dims)
    return [place_lanes(v, d, 0, axis.size) for v, d in zip(values, places, strict=True)]


Dims = tuple[int | None, ...]


def batch_program(
    program: Program, axis: Axis, dims: Dims, leading: tuple[bool, ...] | None = None
) -> Derived[Dims]:
    """``program`` on all lanes of ``axis``, whose inputs carry them in ``dims``.

    The outputs marked in ``leading`` carry their lanes first, whether or not they differ.

    Returns:
        The program, and the dimension of the lanes of each output.
    """
    if leading is not None:
        plain = batch_program(program, axis, dims)
        if all(d == 0 or not first for d, first in zip(plain.about, leading, strict=True)):
            return plain

    def lanes(*inputs: Any) -> tuple[list[Any], Dims]:
        values, places = _batch(lambda *xs: evaluate(program, xs), axis, inputs, dims)
        marks = leading or (False,) * len(values)
        placed = [
            lanes_in_front(v, d, axis) if first else v
            for v, d, first in zip(values, places, marks, strict=True)
        ]
        return placed, tuple([0 if m else d for d, m in zip(places, marks, strict=True)])

    along = typed(axis.outside)
    types = [
        v.type if d is None
        else with_lanes(v.type, d, axis).update(varying=v.type.varying | along)
        for v, d in zip(program.inputs, dims, strict=True)
    ]  # fmt: skip
    return derive(program, ("batch", axis, dims, leading), lanes, types)


def with_lanes(type: ArrayType, dim: int, axis: Axis) -> ArrayType:
    """The type of an array of lanes of ``type``, those of ``axis``, in dimension ``dim``."""
    shape = (*type.shape[:dim], axis.size, *type.shape[dim:])
    return type.update(shape=shape, spec=axis.batched_spec(type, dim))


def lanes_in_front(value: Any, dim: int | None, axis: Axis) -> Any:
    """``value`` with its lanes first, which lie as those of ``axis``."""
    placed = place_lanes(value, dim, 0, axis.size)
    if axis.spec is None:
        return placed
    return resharded(placed, axis.batched_spec(lane_type(typeof(placed), 0), 0))


def place_lanes(value: Any, dim: int | None, to: int, size: int) -> Any:
    """``value`` with its lanes in dimension ``to``, repeated there if it has none."""
    if dim is None:
        return broadcast_lanes(value, to, size)
    return move(value, dim, to)
