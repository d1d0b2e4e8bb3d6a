"""``jax.core`` and ``jax.extend.core``: types, traces and programs, as interpreters know them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Union

import numpy as np

from phalanx.api.contexts import ensure_compile_time_eval
from phalanx.base.dtypes import of_tangents as primal_dtype_to_tangent_dtype
from phalanx.base.errors import InconclusiveDimensionOperation
from phalanx.base.lengths import larger, smaller
from phalanx.compat.api_util import DebugInfo
from phalanx.compat.avals import AbstractValue, ShapedArray
from phalanx.compat.experimental.hijax import typeof
from phalanx.compat.jaxprs import (
    ClosedJaxpr,
    Jaxpr,
    JaxprEqn,
    dce_jaxpr,
    eval_jaxpr,
    gensym,
    jaxpr_as_fun,
    jaxprs_in_params,
    new_jaxpr_eqn,
    subjaxprs,
)
from phalanx.compat.primitives import ForeignPrimitive
from phalanx.compat.traces import TraceTag, UserTrace, set_current_trace, take_current_trace
from phalanx.core import trace as ours
from phalanx.core.axes import is_internal, scope
from phalanx.core.check import check
from phalanx.core.program import Literal, Var
from phalanx.core.trace import ROOT, Tracer, current, known_value, owner_of
from phalanx.core.types import SCALARS, Array, ArrayType
from phalanx.transforms.batch import Batch
from phalanx.transforms.stage import Stage

__all__ = [
    "AbstractToken",
    "AbstractValue",
    "Atom",
    "ClosedJaxpr",
    "DebugInfo",
    "DropVar",
    "Effect",
    "Effects",
    "InconclusiveDimensionOperation",
    "Jaxpr",
    "JaxprEqn",
    "JaxprTypeError",
    "Literal",
    "OpaqueTraceState",
    "ParamDict",
    "Primitive",
    "ShapedArray",
    "Token",
    "Trace",
    "TraceTag",
    "Tracer",
    "TypedComplex",
    "TypedFloat",
    "TypedInt",
    "TypedNdArray",
    "Value",
    "Var",
    "array_types",
    "check_jaxpr",
    "concrete_or_error",
    "dce_jaxpr",
    "ensure_compile_time_eval",
    "eval_context",
    "eval_jaxpr",
    "find_top_trace",
    "gensym",
    "get_aval",
    "get_opaque_trace_state",
    "jaxpr_as_fun",
    "jaxprs_in_params",
    "mapped_aval",
    "max_dim",
    "min_dim",
    "new_jaxpr_eqn",
    "no_effects",
    "nonempty_axis_env_DO_NOT_USE",
    "primal_dtype_to_tangent_dtype",
    "pytype_aval_mappings",
    "set_current_trace",
    "subjaxprs",
    "take_current_trace",
    "trace_state_clean",
    "unmapped_aval",
    "unsafe_am_i_under_a_jit_DO_NOT_USE",
    "unsafe_am_i_under_a_vmap_DO_NOT_USE",
    "unsafe_get_axis_names_DO_NOT_USE",
    "valid_jaxtype",
]

Primitive = ForeignPrimitive
Trace = UserTrace
Atom = Union[Var, Literal]  # noqa: UP007  (others take it apart)
Value = Any
ParamDict = dict[str, Any]
Effect = object
Effects = frozenset
no_effects: frozenset[Any] = frozenset()
array_types = {Array, np.ndarray, np.generic, *SCALARS}
pytype_aval_mappings: dict[type, Callable[..., Any]] = {t: typeof for t in array_types}
JaxprTypeError = TypeError
eval_context = ensure_compile_time_eval
get_aval = typeof


class DropVar:
    """The variable of a result that nothing needs. Programs here have ordinary ones."""


class Token:
    """What orders effects. None is handed out."""


class AbstractToken:
    """The type of tokens."""


class TypedNdArray(np.ndarray):
    """A literal of NumPy with a dtype of its own. Here literals are ordinary arrays."""


class TypedInt(int):
    """A Python number with a dtype of its own. Here those have none."""


class TypedFloat(float):
    """The same of floating-point numbers."""


class TypedComplex(complex):
    """The same of complex numbers."""


def valid_jaxtype(x: Any) -> bool:
    """Whether ``x`` may be an operand."""
    try:
        typeof(x)
    except TypeError:
        return False
    return True


def concrete_or_error(force: Callable[..., Any] | None, val: Any, context: str = "") -> Any:
    """``force(val)`` of a known value.

    Raises:
        ConcretizationTypeError: it is not known while tracing.
    """
    value = known_value(val)
    if value is None:
        return (force or np.asarray)(val)  # which says so
    return value if force is None else force(value)


def check_jaxpr(jaxpr: Jaxpr) -> None:
    """Raise if a program is not what it says."""
    check(jaxpr.program)


def mapped_aval(size: int, axis: int | None, aval: ArrayType) -> ArrayType:
    """The type of a lane."""
    if axis is None:
        return aval
    return aval.update(shape=tuple(np.delete(aval.shape, axis)))


def unmapped_aval(
    size: int, axis: int | None, aval: ArrayType, explicit_mesh_axis: Any = None
) -> ArrayType:
    """The type of ``size`` lanes."""
    if axis is None:
        return aval
    return aval.update(shape=tuple(np.insert(aval.shape, axis, size)))


class OpaqueTraceState:
    """Which transformations are under way; equal where they are the same."""

    def __init__(self) -> None:
        self._trace = current()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OpaqueTraceState) and self._trace is other._trace

    def __hash__(self) -> int:
        return id(self._trace)


def get_opaque_trace_state(convention: Any = None) -> OpaqueTraceState:
    """Which transformations are under way here."""
    return OpaqueTraceState()


def trace_state_clean() -> bool:
    """Whether none is."""
    return current() is ROOT


def _around() -> Iterator[ours.Trace]:
    """The transformations that are under way, the innermost first."""
    trace: ours.Trace | None = current()
    while trace is not None:
        yield trace
        trace = trace.parent


def unsafe_get_axis_names_DO_NOT_USE() -> list[Any]:
    """The names of the axes that are known here, the innermost last."""
    return [name for name, _ in scope() if not is_internal(name)]


def nonempty_axis_env_DO_NOT_USE() -> bool:
    """Whether axes are known here."""
    return bool(scope())


def unsafe_am_i_under_a_vmap_DO_NOT_USE() -> bool:
    """Whether lanes are computed at once here."""
    return any(isinstance(trace, Batch) for trace in _around())


def unsafe_am_i_under_a_jit_DO_NOT_USE() -> bool:
    """Whether a program is recorded here."""
    return any(isinstance(trace, Stage) for trace in _around())


def find_top_trace(xs: Any) -> ours.Trace:
    """The innermost transformation to which one of ``xs`` belongs."""
    return owner_of(xs, current())


def max_dim(d1: int, d2: int) -> int:
    """The larger of two lengths."""
    return larger(d1, d2)


def min_dim(d1: int, d2: int) -> int:
    """The smaller of two lengths."""
    return smaller(d1, d2)
