"""Every exception that Phalanx raises on purpose, and the words they share.

Each class is also a builtin exception, so that ``except ValueError`` catches what a user would
expect it to catch; ``except PhalanxError`` catches all of them.
"""

from __future__ import annotations

import difflib
import functools
import importlib
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from typing import Any, TypeVar

from phalanx.base.former_names import FORMER_NAMES, FORMER_WAYS


class PhalanxError(Exception):
    """Base of all errors that Phalanx defines."""


class ArgumentError(PhalanxError, TypeError, ValueError):
    """An argument does not go with the others, of which one can say that its type is wrong, or
    its value: a tangent of another shape than the primal, a position that no argument has."""


class ShapeError(PhalanxError, ValueError, TypeError):
    """Shapes that had to go together do not. NumPy says that a value is wrong, the field a type."""


class TreeError(PhalanxError, ValueError, TypeError):
    """Two trees that had to agree in structure do not; the message names the path."""


class AxisError(PhalanxError, ValueError, IndexError):
    """An array has no such dimension. NumPy says that a value is wrong, or an index: a list's."""


class AxisSizeError(PhalanxError, ValueError):
    """Mapped arguments disagree about the size of an axis, or nothing tells it."""


class UnboundAxis(PhalanxError, NameError, ValueError):
    """A collective names an axis that no enclosing ``pmap``, ``vmap`` or ``shard_map`` binds. The
    field says that a name is wrong, or, of casts, a value."""

    @classmethod
    def of(
        cls, who: str, name: object, scope: Iterable[tuple[object, object]], at: object, mesh: Any
    ) -> UnboundAxis:
        """The error of ``who`` asking for axis ``name`` where ``scope`` is all there is.

        ``at`` is the user's line, and ``mesh`` the mesh that is meant there, if any is.

        Args:
            who: the function that asks.
            name: the axis that it asks for.
            scope: the names and the sizes of the axes that there are.
            at: the line.
            mesh: the mesh that is set, if one is.

        >>> print(UnboundAxis.of("psum", "row", [("rows", 8)], "a.py:2", None))
        psum: unbound axis name: row (in scope: 'rows' of size 8), at a.py:2. Did you mean 'rows'?
        """
        sizes = list(scope)
        listed = ", ".join(f"{axis!r} of size {size}" for axis, size in sizes) or "none"
        advice = suggest(str(name), [axis for axis, _ in sizes if isinstance(axis, str)])
        if mesh is not None and name in mesh.axis_names:
            advice = (
                f"It is an axis of {mesh} that is left to the compiler here; name it in the "
                "axis_names of a shard_map."
            )
        elif not advice:
            others = " or ".join([repr(axis) for axis, _ in sizes])
            lacking = f"{mesh} has no such axis. " if mesh is not None else ""
            advice = f"{lacking}Use {others}, or bind" if sizes else f"{lacking}Bind"
            advice += " it with pmap(..., axis_name=...) or vmap(..., axis_name=...)."
        # "unbound axis name: NAME" is what JAX says, for matching
        error = cls(f"{who}: unbound axis name: {name} (in scope: {listed}), at {at}. {advice}")
        return coded(error, "unbound axis", who=who, axis=str(name))


class ReplicationError(PhalanxError, ValueError):
    """A value that must be the same in every lane of an axis may differ between lanes."""


class JAXTypeError(PhalanxError, TypeError):
    """What is known of a value, its type, does not do where it stands: the base of such errors."""


class JAXIndexError(PhalanxError, IndexError):
    """What is known of a value does not do as an index."""


class ConcretizationTypeError(JAXTypeError):
    """The value of a traced array was needed while only its type is known."""


class TracerBoolConversionError(ConcretizationTypeError):
    """A traced array stands where Python needs a truth value."""


class TracerIntegerConversionError(ConcretizationTypeError):
    """A traced array stands where Python needs an integer."""


class TracerArrayConversionError(ConcretizationTypeError):
    """A traced array was handed to NumPy."""


class NonConcreteBooleanIndexError(JAXIndexError):
    """A traced mask was used as an index: the shape of the result would depend on values."""


class EscapedTracer(JAXTypeError):
    """A traced value is used after the transformation that made it has ended."""


UnexpectedTracerError = EscapedTracer


class RefError(PhalanxError, ValueError):
    """A mutable reference is used where, or in a way that, has no meaning."""


class DeletedArray(PhalanxError, RuntimeError, ValueError):
    """An array was read after it was deleted or donated."""


class DeviceError(PhalanxError, RuntimeError):
    """The requested devices do not exist, or cannot be used together."""


class NoDevices(DeviceError, AttributeError, ValueError):
    """A mesh of names and sizes alone is asked for its devices. The field says that a value is
    wrong; Python says of what an object lacks that it is an attribute."""


class DeviceCountError(DeviceError, ValueError):
    """A mesh has more places than there are devices, or would leave some of them out."""


class DevicesDiffer(DeviceError, ValueError):
    """Operands of one operation were placed on devices that differ."""


class MeshesDiffer(DeviceError, ValueError):
    """Meshes do not go together in one program, or parts of it that lie inside each other."""


class ShardingTypeError(PhalanxError, TypeError, ValueError):
    """How operands lie, along axes of type Explicit, does not say how a result is to lie.

    Args:
        message: what is wrong; it begins with the name of the operation, if one is named.
        operation: the name of that operation, which the user may not have written.
    """

    def __init__(self, message: str, operation: str = "") -> None:
        super().__init__(message)
        self._operation = operation

    def called_by(self, function: str) -> None:
        """Name the public ``function`` that does the operation, if that is another one.

        Args:
            function: the innermost one that the user called.

        >>> error = ShardingTypeError("slice: dimension 0 is cut", "slice")
        >>> error.called_by("trapezoid")
        >>> print(error)
        trapezoid, in slice: dimension 0 is cut
        """
        name = function.strip("_")
        if self._operation not in ("", name):
            self.args = (f"{name}, in {self.args[0]}",)
        self._operation = ""


class UnreducedError(ShardingTypeError, NotImplementedError):
    """An operand is a sum that is still to be taken, and the operation cannot be done to its
    parts."""


class NoMesh(PhalanxError, RuntimeError, ValueError):
    """A ``PartitionSpec`` stands alone where no mesh is set whose axes it could mean."""


class NonFiniteError(PhalanxError, FloatingPointError):
    """``debug_nans`` is on and an operation produced a NaN, or ``debug_infs`` and an infinity."""

    repeatable = True  # whether this process can run the program once more, to find where


class RuntimeFailure(PhalanxError, RuntimeError):
    """Compilation or execution failed below Phalanx; the message is that of the runtime."""


JaxRuntimeError = RuntimeFailure


class CheckFailed(RuntimeFailure, ValueError):
    """A check of ``checkify`` found what must not be."""


class RefusedOption(RuntimeFailure, ValueError):
    """The compiler knows no such option, or not with such a value."""


class OutOfMemory(RuntimeFailure):
    """A device has too little memory left."""


class DisallowedTransfer(RuntimeFailure):
    """A transfer between host and devices that ``transfer_guard`` refuses."""


class RendezvousError(PhalanxError, RuntimeError):
    """Processes that were to compute together have not met."""


def _process(process: int | None, host: str, pid: int | None) -> str:
    """A process, or the coordinator, in words."""
    name = "the coordinator" if process is None else f"process {process}"
    where = " on ".join([f"pid {pid}"] * (pid is not None) + [host] * bool(host))
    return f"{name} ({where})" if where else name


class PeerLost(PhalanxError, RuntimeError):
    """A process is gone without which nothing can be computed that spans processes.

    Attributes:
        process: its number; None if it is the coordinator.
        host: where it ran.
        why: what is known of its end.
    """

    process: int | None = None
    host: str = ""
    why: str = ""

    @classmethod
    def of(
        cls, process: int | None, host: str, why: str, pid: int | None = None, traceback: str = ""
    ) -> PeerLost:
        """The error for ``process``, which ran on ``host`` and may have said a ``traceback``.

        Args:
            process: its number; None where that is not known.
            host: the machine on which it ran.
            why: what became of it.
            pid: its number on that machine.
            traceback: what it said last.
        """
        lost = cls(
            f"{_process(process, host, pid)} is lost: {why}. What does not span processes still "
            "runs here; start all processes again to go on together"
            + (f". It said:\n{traceback.rstrip()}" if traceback else "")
        )
        lost.process, lost.host, lost.why = process, host, why
        return lost

    @classmethod
    def left(cls, process: int, host: str, when: str, pid: int | None = None) -> PeerLost:
        """The error for ``process``, which has left the others while they need it.

        Args:
            process: its number.
            host: the machine on which it ran.
            when: after and before what.
            pid: its number on that machine.
        """
        lost = cls(
            f"{_process(process, host, pid)} left {when}. Give all processes as many batches, "
            "as training.even_batches does. What does not span processes still runs here"
        )
        lost.process, lost.host, lost.why = process, host, f"it left {when}"
        return lost

    def at(self, who: str) -> PeerLost:
        """The same error, raised by ``who``.

        Args:
            who: the function that raises it.
        """
        raised = type(self)(f"{who}: {self}")
        raised.process, raised.host, raised.why = self.process, self.host, self.why
        return raised


class ProgramMismatch(PhalanxError, RuntimeError):
    """Processes that compute together run programs that differ."""

    @classmethod
    def of(cls, why: str) -> ProgramMismatch:
        """The error for a difference told by ``why``.

        Args:
            why: what differs.
        """
        return cls(
            f"the processes run programs that differ: {why}. All must launch the same programs, "
            "on the same types and sizes, in the same order"
        )

    def at(self, who: str) -> ProgramMismatch:
        """The same error, raised by ``who``.

        Args:
            who: the function that raises it.
        """
        return type(self)(f"{who}: {self}")


class PeerSlow(RuntimeWarning):
    """A process has not been heard of for a while, or others wait for it."""


class MissingRule(PhalanxError, NotImplementedError, ValueError):
    """A primitive does not define the rule that a transformation needs."""


class MissingDerivative(MissingRule, AttributeError):
    """A function with derivative rules of its own was not given any before it is differentiated."""


class ClosureDifferentiated(PhalanxError, TypeError):
    """A function with a backward rule is differentiated by a value that it closes over."""


class ProgramError(PhalanxError, TypeError):
    """The checker found a program that breaks its own types."""


JaxprTypeError = ProgramError


class DtypeError(PhalanxError, TypeError, ValueError):
    """An operation does not take arrays of a dtype. Python says that a type is wrong; where values
    of that dtype cannot be converted, the field says that a value is."""


class TypePromotionError(PhalanxError, TypeError, ValueError):
    """Operands have dtypes that no implicit conversion brings together."""


class KeyReuseError(JAXTypeError):
    """A random key is used twice. Nothing looks for that, so nothing raises it."""


class InconclusiveDimensionOperation(PhalanxError, ValueError):
    """A question about lengths that are not known, whose answer depends on what they are."""


class TracingRefused(PhalanxError, RuntimeError):
    """``no_tracing`` is on and a function is called that has not been traced for its arguments."""


class ConfigError(PhalanxError, ValueError):
    """An option does not exist, has a value of the wrong kind, or can no longer change."""


class UnknownOption(ConfigError, AttributeError):
    """There is no option of that name."""


for _kind in [kind for kind in globals().values() if isinstance(kind, type)]:
    if issubclass(_kind, PhalanxError | PeerSlow):
        _kind.__module__ = "phalanx.errors"  # where users find it; tracebacks print it so


E = TypeVar("E", bound=Exception)


def coded(error: E, code: str, **fields: Any) -> E:
    """``error`` with a code for what is wrong, and the parts of its message, texts and numbers.

    Of these other wordings are made (``base/dialect.py``), so that nobody reads our sentences.

    >>> code_of(coded(ValueError("no mesh has the axis 'x'"), "no axis", axis="x"))
    ('no axis', {'axis': 'x'})
    """
    vars(error)[_CODE] = code, fields
    return error


def code_of(error: BaseException) -> tuple[str, dict[str, Any]] | None:
    """The code of an error and the parts of its message; None of one without."""
    return vars(error).get(_CODE)


_CODE = "_phalanx_code"


def nearest(name: object, candidates: Iterable[str], likeness: float = 0.65) -> str | None:
    """The candidate most like ``name``, or None where none is: a letter in three may differ.

    >>> nearest("bacth", ["batch", "model"])
    'batch'
    """
    if not isinstance(name, str):
        return None
    return next(iter(difflib.get_close_matches(name, list(candidates), 1, likeness)), None)


def suggest(name: object, candidates: Iterable[str]) -> str:
    """A question that offers the candidate nearest to ``name``, or "" where none is near.

    >>> suggest("bacth", ["batch", "model"])
    "Did you mean 'batch'?"
    """
    near = nearest(name, candidates)
    return f"Did you mean {near!r}?" if near else ""


def no_name(
    module: str, name: str, names: Iterable[str], refused: Mapping[str, str], advice: str = ""
) -> AttributeError:
    """What ``module`` raises for ``name``: why it is not there, where it is, or which of its
    ``names`` is near.

    In ``refused``, a star stands for any letters. ``advice`` is for names of which nothing else is
    known.

    >>> no_name("tools", "saw", ["hammer"], {"s*w": "break it"})
    AttributeError('tools: saw is not there: break it')
    >>> no_name("tools.wood", "row_stack", ["hammer"], {})
    AttributeError('tools.wood: row_stack is not there: use tools.numpy.vstack')
    >>> no_name("tools.wood", "LogSoftmax", ["hammer"], {})
    AttributeError('tools.wood: LogSoftmax is not there: use tools.nn.log_softmax')
    """
    root = module.partition(".")[0]
    why = next((why for pattern, why in refused.items() if fnmatchcase(name, pattern)), None)
    if why is None and name in FORMER_WAYS:
        why = f"use {FORMER_WAYS[name]}"
    elif why is None and (path := FORMER_NAMES.get(name) or _elsewhere(name)):
        why = f"use {root}.{path}"
    near = "" if name.startswith("_") else suggest(name, names)  # tools ask often for such names
    hint = f": {why}" if why else f"{advice and ': '}{advice}. {near}"
    # with a name, of no object, since of an object Python would suggest one, too
    return AttributeError(f"{module}: {name} is not there{hint}".rstrip(". "), name=name)


_PUBLIC = (
    "", "numpy.", "numpy.linalg.", "numpy.fft.", "nn.", "lax.", "random.", "scipy.special.",
    "scipy.linalg.", "lax.linalg.", "nn.initializers.", "image.", "tree.", "sharding.",
)  # fmt: skip


def _elsewhere(name: str) -> str | None:
    """The path below the package of what is called so in another module than the one asked.

    Or nearly so: in other letters, ``LogSoftmax``, or after the module's name, ``tree_map``.
    """
    exactly, nearly = _public_paths()
    return exactly.get(name) or nearly.get(_letters(name))


@functools.cache
def _public_paths() -> tuple[dict[str, str], dict[str, str]]:
    """The first path of each public name, and of its letters alone or after those of its module."""
    exactly: dict[str, str] = {}
    nearly: dict[str, str] = {}
    for path in _PUBLIC:
        module = importlib.import_module(f"phalanx.{path}".rstrip("."))
        for each in getattr(module, "__all__", ()):
            exactly.setdefault(each, f"{path}{each}")
            nearly.setdefault(_letters(each), f"{path}{each}")
            nearly.setdefault(_letters(f"{path[:-1].rpartition('.')[2]}{each}"), f"{path}{each}")
    return exactly, nearly


def _letters(name: str) -> str:
    return name.replace("_", "").lower()


def suggest_axis(name: object, axes: Iterable[str]) -> str:
    """A hint for one who says ``name`` where there are ``axes``: the nearest, or else all of them.

    >>> suggest_axis("modle", ["data", "model"]), suggest_axis("x", ["data", "model"])
    ("Did you mean 'model'?", "The axes are 'data', 'model'.")
    """
    names = list(axes)
    return suggest(name, names) or f"The axes are {', '.join(map(repr, names))}."
