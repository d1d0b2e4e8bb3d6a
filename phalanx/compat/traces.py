"""Traces of others: interpreters that are asked about each operation, as ``jax.core`` has them.

Such a trace hands on to the one around it by ``primitive.bind_with_trace(parent, ...)``. Tracers
belong to one trace, so nothing is said by the tags that tell traces apart elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from operator import itemgetter
from types import GenericAlias
from typing import Any, Final, NoReturn

from phalanx.compat.extend.linear_util import WrappedFun, wrap_init
from phalanx.compat.jaxprs import ClosedJaxpr
from phalanx.compat.names import arranged, theirs, translation_of
from phalanx.compat.primitives import ForeignPrimitive, view
from phalanx.control.custom_jvp_call import custom_jvp
from phalanx.control.custom_vjp_call import custom_vjp
from phalanx.core import primitive as core
from phalanx.core.memoize import memoize_on
from phalanx.core.program import Program
from phalanx.core.trace import InnerTrace, Trace, Tracer, current, entering
from phalanx.transforms.stage import evaluate


class TraceTag:
    """What tells the traces of one interpreter from those of another."""


class Traces(type):
    """The class of classes of traces: ours are instances of ``jax.core.Trace``, too."""

    def __instancecheck__(cls, x: object) -> bool:
        return super().__instancecheck__(x) or (cls is UserTrace and isinstance(x, Trace))


class UserTrace(InnerTrace, metaclass=Traces):
    """An interpreter: a class of this kind says what each operation is to do.

    >>> class Counted(UserTrace):
    ...     seen = []
    ...     def process_primitive(self, primitive, operands, params):
    ...         self.seen.append(primitive.name)
    ...         return primitive.bind_with_trace(self.parent_trace, operands, None, params)
    >>> from phalanx import lax
    >>> with take_current_trace() as parent:
    ...     trace = Counted()
    ...     trace.parent_trace = parent
    ...     with set_current_trace(trace):
    ...         x = lax.mul(lax.tanh(1.0), 2.0)
    >>> trace.seen
    ['tanh', 'mul']
    """

    records = True

    def __class_getitem__(cls, parameters: Any) -> GenericAlias:
        return GenericAlias(cls, parameters)

    def __init__(self) -> None:
        super().__init__(current(), type(self).__name__)

    def process(self, prim: core.Primitive, args: Sequence[Any], params: dict[str, Any]) -> Any:
        custom = _CUSTOM.get(prim)
        if custom is None:
            operands, order, own = arranged(prim, args, params)
            operation, shown = view(prim, translation_of(prim, own)), theirs(prim, own, _shown)
            out = self.process_primitive(operation, operands, shown)
            if order is not None:
                out = [y for _, y in sorted(zip(order, out, strict=True), key=itemgetter(0))]
        else:
            fun = wrap_init(self._function(params["program"]))
            out = custom(self, view(prim), fun, list(args))
        return tuple(out) if prim.multi else out

    def _function(self, program: Any) -> Callable[..., Any]:
        """What ``program`` computes; where its operands belong to this trace, as seen from here."""

        def function(*xs: Any) -> list[Any]:
            mine = any(isinstance(x, Tracer) and self.owns(x) for x in xs)
            with entering(self if mine else current()):
                return list(evaluate(program, xs))

        return function

    def full_raise(self, x: Any) -> Any:
        """``x``: what belongs to another trace is not wrapped beforehand."""
        return x

    def process_primitive(
        self, primitive: ForeignPrimitive, tracers: Any, params: dict[str, Any]
    ) -> Any:
        """The result of an operation, or the list of its results."""
        self._refuse("process_primitive", primitive)

    def process_custom_jvp_call(
        self,
        primitive: ForeignPrimitive,
        fun: WrappedFun,
        jvp: WrappedFun,
        tracers: Any,
        *,
        symbolic_zeros: bool,
    ) -> Any:
        """The results of a function with a rule for its tangents."""
        self._refuse("process_custom_jvp_call", primitive)

    def process_custom_vjp_call(
        self,
        primitive: ForeignPrimitive,
        fun: WrappedFun,
        fwd: WrappedFun,
        bwd: WrappedFun,
        tracers: Any,
        out_trees: Callable[..., Any],
        symbolic_zeros: bool,
    ) -> Any:
        """The results of a function with rules for its cotangents."""
        self._refuse("process_custom_vjp_call", primitive)

    def _refuse(self, method: str, primitive: ForeignPrimitive) -> NoReturn:
        raise NotImplementedError(f"{self.name} has no method {method}, needed for {primitive}")


def _shown(program: Program) -> ClosedJaxpr:
    """The view of ``program``, always the same: interpreters know by it what they met before."""
    return memoize_on(program, "as interpreters see it", lambda: ClosedJaxpr.of(program))


def _rule_in_another_trace(*_: Any) -> NoReturn:
    raise NotImplementedError("rules of derivatives are not offered to traces of other libraries")


_RULE: Final = wrap_init(_rule_in_another_trace)


def _process_custom_jvp(trace: Any, prim: Any, fun: WrappedFun, xs: list[Any]) -> Any:
    return trace.process_custom_jvp_call(prim, fun, _RULE, xs, symbolic_zeros=False)


def _process_custom_vjp(trace: Any, prim: Any, fun: WrappedFun, xs: list[Any]) -> Any:
    return trace.process_custom_vjp_call(prim, fun, _RULE, _RULE, xs, _rule_in_another_trace, False)


_CUSTOM: Final[dict[core.Primitive, Callable[..., Any]]] = {
    custom_jvp: _process_custom_jvp,
    custom_vjp: _process_custom_vjp,
}


def take_current_trace() -> AbstractContextManager[Trace]:
    """A block that is given the trace that interprets operations here."""
    return nullcontext(current())


def set_current_trace(trace: Trace) -> AbstractContextManager[Trace]:
    """A block in which ``trace`` interprets operations."""
    return entering(trace)
