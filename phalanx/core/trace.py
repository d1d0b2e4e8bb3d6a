"""Traces without levels: who interprets the primitives that are bound right now.

A context variable holds the current trace; each trace knows its parent. A trace owns the
tracers that it made and treats every other value as a constant: that is why the
perturbations of nested derivatives do not mix.
"""

# Tracers are private to users, not to the traces that make them.
# pyright: reportPrivateUsage=false

from __future__ import annotations

import sys
from collections.abc import Iterable
from contextvars import ContextVar
from types import TracebackType
from typing import Any, NoReturn

from phalanx.base import errors
from phalanx.base.source import Location, is_ours, user_location
from phalanx.core.absent import ABSENT
from phalanx.core.manual import ManualAxisType
from phalanx.core.types import Array, ArrayType

Bound = Any  # a Primitive (`primitive.py`), into which nothing here looks


class Trace:
    """An interpretation of primitives. ``alive`` ends with the transformation that made it.

    ``name`` is the transformation in the user's words, such as ``jit(loss)``. ``records`` is
    whether operations go into something that outlives them, which is why a function with rules of
    its own is to be one.
    """

    __slots__ = ("alive", "name", "parent")

    records = False

    def __init__(self, parent: Trace | None, name: str) -> None:
        self.parent = parent
        self.name = name
        self.alive = True

    def process(self, prim: Bound, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        """Bind ``prim``: one value, or a tuple where ``prim.multi``."""
        raise NotImplementedError

    def owns(self, x: Tracer) -> bool:
        """Whether this trace made the tracer ``x``, or treats it as if; all else is a constant."""
        return x._trace is self

    # Of a mutable reference (`refs.py`), whose owner is this trace or one around it.

    def owner_of(self, value: Any) -> Trace:
        """The trace that a new reference with this ``value`` belongs to."""
        del value
        return self

    def load(self, ref: Any) -> Any:
        """What ``ref`` holds, as it is seen from here."""
        return ref._value

    def store(self, ref: Any, value: Any, where: Location) -> None:
        """Let ``ref`` hold ``value``, as the user's line ``where`` says."""
        del where
        ref._value = value


class InnerTrace(Trace):
    """A trace that hands on what it makes of primitives to its ``parent``: it always has one."""

    __slots__ = ()

    parent: Trace  # pyright: ignore[reportIncompatibleVariableOverride]: nobody takes it away

    def load(self, ref: Any) -> Any:
        return ref._value if ref._owner is self else self.parent.load(ref)

    def store(self, ref: Any, value: Any, where: Location) -> None:
        if ref._owner is self:
            ref._value = value
        elif isinstance(value, Tracer) and self.owns(value):
            raise errors.RefError(
                f"{ref._describe()}, outside of {self.name}, is to hold a value that is known only "
                f"inside of it, at {where}: return the value, and write it outside; or write "
                "lax.stop_gradient of it, if its derivative is not needed"
            )
        else:
            self.parent.store(ref, value, where)


class Tracer(Array):
    """A value that stands for an array inside one trace.

    Users call any method of NumPy's on it, so every name that is ours alone is private; the
    functions below tell other modules what they may know of it.
    """

    __slots__ = ("_location", "_trace", "aval")

    def __init__(self, trace: Trace, type: ArrayType, location: Location | None = None) -> None:
        self._trace = trace
        self.aval = type
        self._location = location

    @property
    def mat(self) -> ManualAxisType:
        """What it is along the axes that ``shard_map`` takes, as its type tells."""
        return self.aval.manual_axis_type

    def __repr__(self) -> str:
        return f"Traced<{self.aval!r}> in {self._trace.name}"

    def _describe(self) -> str:
        """Where the value comes from, in the user's terms."""
        place = self._place()
        origin = f" made at {place}" if place else ""
        return f"value {self.aval}{origin} in {self._trace.name}"

    def _concrete(self) -> Any:
        """The value where it is known while tracing (outside ``jit``), else None."""
        return None

    def _reason(self) -> str:
        """Why Python code cannot have the value."""
        return "while tracing only its shape and dtype are known"

    def _ways_out(self, ways: str) -> str:
        """What to do where Python code cannot have the value, which ``ways`` do without."""
        return f"{ways}; or run this part outside jit, vmap and pmap"

    def _carried(self) -> Any:
        """The value of an outer trace that this one stands for, if it does for one."""
        return None

    def _place(self) -> Location | None:
        """The user's line that made the value, where known."""
        inner = self._carried()
        return inner._place() if isinstance(inner, Tracer) else self._location

    def _sources(self) -> list[str]:
        """The names of the user's arguments that it was computed from, where known."""
        inner = self._carried()
        return inner._sources() if isinstance(inner, Tracer) else []

    # Python may look at a value to decide which way to go: that has no derivative. A number or a
    # NumPy array made of it would go on without its tangents.

    def __bool__(self) -> bool:
        check_alive(self)
        value = self._concrete()
        if value is None:
            self._refuse(errors.TracerBoolConversionError, "a Python bool (`if`, `while`)")
        return bool(value)

    def __int__(self) -> int:
        self._refuse(errors.ConcretizationTypeError, "a Python int")

    def __float__(self) -> float:
        self._refuse(errors.ConcretizationTypeError, "a Python float")

    def __complex__(self) -> complex:
        self._refuse(errors.ConcretizationTypeError, "a Python complex")

    def __index__(self) -> int:
        error = errors.TracerIntegerConversionError
        if is_ours(sys._getframe(1).f_code.co_filename):  # a function of ours asks for a parameter
            what = "an integer that is part of the program, such as a length or an axis,"
            self._refuse(error, what, _PARAMETER)
        self._refuse(error, "an integer for Python")

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        what = "a NumPy array (phalanx.numpy has functions that take it as it is)"
        self._refuse(errors.TracerArrayConversionError, what)

    def item(self, *args: int) -> Any:
        """The element as a Python number."""
        ways = f"{_OUTSIDE}; {_WAYS[errors.ConcretizationTypeError]}"
        self._refuse(errors.ConcretizationTypeError, "a Python number", ways)

    def tolist(self) -> Any:
        """The elements as nested Python lists."""
        ways = f"{_OUTSIDE}; {_WAYS[errors.ConcretizationTypeError]}"
        self._refuse(errors.ConcretizationTypeError, "a Python list", ways)

    def tobytes(self, order: str = "C") -> bytes:
        """The bytes of the elements."""
        self._refuse(errors.ConcretizationTypeError, "bytes")

    def _refuse(self, error: type[Exception], what: str, ways: str = "") -> NoReturn:
        """Raise the error for a traced value that Python code wants to look at."""
        check_alive(self)
        sources = self._sources()
        origin = f" It depends on {', '.join(sources)}." if sources else ""
        problem = (
            f"{self._describe()} is needed as {what} at {user_location()}, but {self._reason()}."
            f"{origin} Ways out: {self._ways_out(ways or _WAYS[error])}"
        )
        raise errors.coded(error(problem), "value needed", type=str(self.aval), kind=error.__name__)

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):  # a protocol, of which somebody asks whether it is there
            raise AttributeError(name)
        why = ABSENT.get(name) or "what lies on devices is not known while tracing"
        words = f"{self._describe()} has no attribute {name!r}"
        raise AttributeError(f"{words}: {why}" if hasattr(type(self), name) else words)

    def __copy__(self) -> Tracer:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Tracer:
        return self

    def __reduce__(self) -> NoReturn:
        self._refuse(errors.ConcretizationTypeError, "bytes (pickle)")

    def __format__(self, spec: str) -> str:
        return format(self._concrete(), spec) if self._concrete() is not None else repr(self)


_STATIC = (
    "static_argnums (static_broadcasted_argnums in pmap) for an argument that decides what is "
    "computed"
)
_OUTSIDE = "return the array, and call this on the result, outside the transformation"
_PARAMETER = (
    f"{_STATIC}; .shape and .ndim, which are plain numbers; lax.dynamic_slice for a part that "
    "begins there"
)
_WAYS: dict[type[Exception], str] = {
    errors.ConcretizationTypeError: "functions of phalanx.numpy and methods of arrays in the place "
    f"of Python's, such as x.astype; {_STATIC}; .shape and .ndim, which are plain numbers",
    errors.TracerBoolConversionError: "jnp.where or lax.select for a choice between values; "
    f"lax.cond or lax.while_loop for one between computations; {_STATIC}",
    errors.TracerIntegerConversionError: f"{_STATIC}; .shape and .ndim, which are plain numbers; "
    "lax.fori_loop for so many steps; an array x[i] for an element",
    errors.TracerArrayConversionError: "the function of phalanx.numpy by the same name; "
    "pure_callback for what NumPy alone can do",
}


def owner_of(values: Iterable[Any], trace: Trace) -> Trace:
    """The innermost of ``trace`` and those around it that owns one of ``values``, or the last."""
    traced = [x for x in values if isinstance(x, Tracer)]
    while trace.parent is not None and not any(map(trace.owns, traced)):
        trace = trace.parent
    return trace


def trace_of(x: Tracer) -> Trace:
    """The trace that made ``x``."""
    return x._trace


def carried(x: Tracer) -> Any:
    """The value of an outer trace that ``x`` stands for, if it does for one."""
    return x._carried()


def describe(x: Tracer) -> str:
    """Where ``x`` comes from, in the user's terms."""
    return x._describe()


def is_known(x: Any) -> bool:
    """Whether the elements of ``x`` can be looked at now, and not only when a program runs."""
    return not isinstance(x, Tracer) or x._concrete() is not None


def known_value(x: Any) -> Any:
    """``x`` without its tangents where its elements are known while tracing, else None.

    Only for what has no derivative: which way Python goes, and the shapes of results.
    """
    return x._concrete() if isinstance(x, Tracer) else x


class Root(Trace):
    """The bottom of every stack of traces. The package ``run`` sets what is done with arrays."""

    __slots__ = ("evaluate", "reshard")

    def __init__(self) -> None:
        super().__init__(None, "eager evaluation")
        self.evaluate: Any = None
        self.reshard: Any = None  # an array as one that lies otherwise

    def process(self, prim: Bound, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        return self.evaluate(prim, args, params)


ROOT = Root()
_current: ContextVar[Trace] = ContextVar("trace", default=ROOT)
entered_trace = _current.get  # in a context copied while tracing it may have ended


def current() -> Trace:
    """The trace that interprets primitives here: the innermost that has not ended."""
    trace = entered_trace()
    while not trace.alive and trace.parent is not None:
        trace = trace.parent
    return trace


def is_recorded() -> bool:
    """Whether what is bound here goes into a program, through whatever transformations."""
    trace: Trace | None = current()
    while trace is not None and not trace.records:
        trace = trace.parent
    return trace is not None


class entering:
    """Make ``trace`` the current one for the duration of a block."""

    __slots__ = ("token", "trace")

    def __init__(self, trace: Trace) -> None:
        self.trace = trace

    def __enter__(self) -> Trace:
        self.token = _current.set(self.trace)
        return self.trace

    def __exit__(
        self, kind: type[BaseException] | None, e: BaseException | None, tb: TracebackType | None
    ) -> None:
        _current.reset(self.token)


class running(entering):
    """Enter ``trace`` for the length of a transformation; afterwards its tracers are dead."""

    __slots__ = ()

    def __exit__(
        self, kind: type[BaseException] | None, e: BaseException | None, tb: TracebackType | None
    ) -> None:
        _current.reset(self.token)
        self.trace.alive = False


def check_alive(x: Tracer) -> None:
    """Raise ``EscapedTracer`` if the transformation that made ``x`` has ended."""
    if not x._trace.alive:
        refuse_escaped(x)


def refuse_escaped(x: Tracer) -> NoReturn:
    """Raise the error for a tracer that outlived its transformation."""
    sources = x._sources()
    place = x._place()
    origin = f" made at {place}" if place else f" ({sources[0]})" if sources else ""
    if x._trace.alive:
        raise errors.EscapedTracer(
            f"value {x.aval}{origin} belongs to {x._trace.name}, but is used at {user_location()}, "
            "which runs outside of it: in another thread, or in a "
            "function with derivative rules of its own, or in these rules; pass it to that "
            "function as an argument"
        )
    raise errors.EscapedTracer(
        f"value {x.aval}{origin} left {x._trace.name} and is used at {user_location()}; a traced "
        "value lives only while its transformation runs: return it from the function instead "
        "of storing it in a variable, list or attribute outside"
    )
