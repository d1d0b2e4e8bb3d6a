"""Mutable references: what a ``Ref`` holds, as the code that runs now sees it.

The owner of a reference is the trace in which it was made, where it holds a value like any other. A
trace that records a program holds, for each reference from outside that the program touches, what
it has at this point of the program: so programs know arrays alone, as do transformations of them.
"""

# What a reference holds is private to users, not to the traces that see to it.
# pyright: reportPrivateUsage=false

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from msgspec import Struct

from phalanx.base.errors import EscapedTracer, RefError
from phalanx.base.source import user_location
from phalanx.core import types
from phalanx.core.trace import ROOT, Trace, Tracer, current
from phalanx.core.types import ArrayType, Shaped


class AbstractRef(Struct, frozen=True):
    """The type of a mutable reference.

    Attributes:
        inner_aval: the type of the array that it holds.

    Args:
        inner_aval: the type of what it holds.

    >>> import phalanx
    >>> phalanx.typeof(phalanx.new_ref(jnp.zeros(3))).shape
    (3,)
    """

    inner_aval: ArrayType

    @property
    def shape(self) -> tuple[int, ...]:
        """The lengths of the dimensions."""
        return self.inner_aval.shape

    @property
    def dtype(self) -> Any:
        """The dtype of the elements."""
        return self.inner_aval.dtype

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return self.inner_aval.ndim

    @property
    def size(self) -> int:
        """The number of elements."""
        return self.inner_aval.size

    def __str__(self) -> str:
        return f"Ref{{{self.inner_aval}}}"

    __repr__ = __str__


class Ref(Shaped):
    """A mutable reference to an array: ``phalanx.new_ref`` makes one.

    ``ref[...]`` reads the array, ``ref[...] = x`` writes another one of the same shape and dtype,
    and ``ref[index]`` is about a part. A reference is no array: functions get what it holds.

    Args:
        value: what it holds at first.

    >>> import phalanx
    >>> ref = phalanx.new_ref(jnp.zeros(3))
    >>> ref[1] = 5.0
    >>> print(ref[...])
    [0. 5. 0.]
    """

    __slots__ = ("__weakref__", "_freed", "_kind", "_owner", "_place", "_value")

    if TYPE_CHECKING:  # installed by the package numpy

        def __getitem__(self, index: Any) -> Any: ...
        def __setitem__(self, index: Any, value: Any) -> None: ...

    def __init__(self, value: Any) -> None:
        """Holds ``value``, an array whose dtype is not weak, of which nobody else can dispose."""
        self._owner = current().owner_of(value)
        self._value = value
        self._place = user_location()
        self._freed = False
        kind = types.typeof(value)
        self._kind = ArrayType(kind.shape, kind.dtype)

    @property
    def aval(self) -> AbstractRef:
        """Its type, which says how what it holds lies along Explicit axes of a mesh."""
        spec = None if self._freed else types.typeof(self._value).spec
        return AbstractRef(self._kind if spec is None else self._kind.update(spec=spec))

    def __repr__(self) -> str:
        if self._freed or isinstance(self._value, Tracer):
            return f"<{'freed ' if self._freed else ''}{self._describe()}>"
        return "Ref" + repr(self._value).removeprefix("Array").replace("\n  ", "\n")

    def _describe(self) -> str:
        """Which reference it is, in the user's terms."""
        return f"reference {self.aval} made at {self._place}"

    def __bool__(self) -> NoReturn:
        self._refuse("a Python bool")

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NoReturn:
        self._refuse("a NumPy array")

    def _refuse(self, what: str) -> NoReturn:
        raise TypeError(
            f"{self._describe()} is needed as {what}, at {user_location()}{self._advice}"
        )

    _advice = "; a reference is no array: read what it holds, ref[...]"


def load(ref: Ref) -> Any:
    """What ``ref`` holds now.

    Raises:
        RefError: it was freed.
        EscapedTracer: its owner is no trace around here.
    """
    _check_usable(ref)
    return current().load(ref)


def store(ref: Ref, value: Any, where: Any = None) -> None:
    """Let ``ref`` hold ``value``, of its type, as the user's line ``where`` says.

    Raises:
        RefError: it was freed, or ``value`` is known only inside of a transformation in which
            ``ref`` was not made.
        EscapedTracer: its owner is no trace around here.
    """
    _check_usable(ref)
    current().store(ref, value, where or user_location())


def store_all(
    written: Mapping[Ref, Any], stored: Sequence[Ref], outputs: Sequence[Any]
) -> Sequence[Any]:
    """Store what a program gave for references before and after its results, which are returned.

    Those ``written`` come before them, each with the line that does it, those ``stored`` after.
    """
    if not written and not stored:
        return outputs
    first, last = len(written), len(outputs) - len(stored)
    for (ref, where), value in zip(written.items(), outputs[:first], strict=True):
        store(ref, value, where)
    for ref, value in zip(stored, outputs[last:], strict=True):
        store(ref, value)
    return outputs[first:last]


def refuse_aliases(passed: Sequence[Any], captured: Sequence[Any], who: str) -> None:
    """Raise RefError if a function gets a reference more than once.

    Its arguments are ``passed``; it uses those ``captured`` without being given them.
    """
    if Ref not in map(type, passed):
        return
    seen: set[Ref] = set()
    for ref in [x for x in passed if type(x) is Ref]:
        if ref in seen or any(ref is x for x in captured):
            how = "passed twice" if ref in seen else "passed, and used inside without being passed"
            raise RefError(
                f"{who}: {ref._describe()} is {how}, at {user_location()}; a function sees a "
                "reference under one name: pass it once, or close over it"
            )
        seen.add(ref)


def free(ref: Ref) -> Any:
    """What ``ref`` holds, the last time.

    Raises:
        RefError: it was freed before, or was made outside of what is traced here.
    """
    value = load(ref)
    if ref._owner is not current():
        raise RefError(
            f"{ref._describe()} is freed at {user_location()}, inside of {current().name}, in "
            "which it was not made; free it where it was made"
        )
    ref._freed, ref._value = True, None
    return value


def refuse_differing(ref: Ref, where: Any, who: str) -> NoReturn:
    """Raise RefError: lanes of ``who`` write to ``ref`` from outside what differs between them."""
    raise RefError(
        f"{ref._describe()}, outside of {who}, is written at {where}, and would hold what differs "
        "between lanes: pass it as an argument that is mapped (in_axes, in_specs), which gives "
        "each lane a part of its own, make it inside, or reduce what is written (lax.pmean)"
    )


def is_lasting(ref: Ref) -> bool:
    """Whether ``ref`` was made outside of transformations, so that it outlives them."""
    return ref._owner is ROOT


def _check_usable(ref: Ref) -> None:
    if ref._freed:
        raise RefError(
            f"{ref._describe()} is used at {user_location()}, after it was freed; make another one "
            "(new_ref), or free it later"
        )
    if not ref._owner.alive:
        raise EscapedTracer(
            f"{ref._describe()} left {ref._owner.name}, in which it was made, and is used at "
            f"{user_location()}; a reference lives only while its transformation runs: return what "
            "it holds, ref[...], or make it outside and pass it"
        )
    if not _is_around(ref._owner):
        raise EscapedTracer(
            f"{ref._describe()} is used at {user_location()}, which runs apart from where it was "
            "made: in another thread, or in a derivative rule of a function inside of a loop, a "
            "branch or jit; let the rule give the value as a cotangent, or take the derivative "
            "inside of the loop or of jit"
        )


def _is_around(owner: Trace) -> bool:
    trace: Trace | None = current()
    while trace is not None and trace is not owner:
        trace = trace.parent
    return trace is owner
