"""The boundary between the user's code and ours, as an exception that crosses it shows it.

Frames of ours are taken out of its traceback, so that the last line is the user's; the option
``traceback_filtering`` keeps them. An accident, which is an exception that none of our ``raise``
statements raised, is one of Python's own about what the user never saw: it gets the name of the
public function and its arguments. Calls that succeed pay for one more call at most.
"""

from __future__ import annotations

import dis
import functools
import itertools
import os
import re
from collections.abc import Callable, Iterator, Mapping
from inspect import signature, unwrap
from types import FunctionType, ModuleType, TracebackType
from typing import Any, TypeGuard, TypeVar, cast

from phalanx.base import dialect
from phalanx.base.config import config
from phalanx.base.errors import PhalanxError, ShardingTypeError, suggest
from phalanx.base.former_names import FORMER_KEYWORDS, REPLACED_KEYWORDS
from phalanx.base.kinds import is_sequence
from phalanx.base.lazily import at_hand, later
from phalanx.base.numpy_kinds import is_dtype
from phalanx.base.set_module import set_module
from phalanx.base.source import is_internal, is_ours

F = TypeVar("F", bound=Callable[..., Any])

_TOO_MANY = re.compile(r"takes .*positional arguments? but")
_TUPLES = {"axes", "dtype", "reps", "shape"}  # parameters that get one, or come after one that does
_UNEXPECTED = re.compile(r"unexpected keyword argument '(\w+)'$")
_RAISE = dis.opmap["RAISE_VARARGS"]
_LIBRARIES = tuple(f"{os.sep}{name}{os.sep}" for name in ("jaxlib", "opt_einsum"))
_STANDARD = os.path.dirname(os.__file__) + os.sep  # Python's own, but for what is installed there
_INSTALLED = f"{os.sep}site-packages{os.sep}"
excluded: list[str] = []  # files, and folders, that libraries asked to leave out of tracebacks
_MAKING = ("__new__", "__init__")  # instances of classes
_NAMING = ("__call__", "__getitem__")  # values of enumerations, in the classes of these
_OF_TREES = tuple(os.path.join(os.path.dirname(__file__), f"{n}.py") for n in ("tree", "registry"))
_ACCIDENT = "_phalanx_accident"  # an attribute of exceptions
_PASSED_ON = (TypeError, ValueError, IndexError, OverflowError, PhalanxError, MemoryError)


_makers: dict[
    Callable[..., Any], Callable[..., Any]
] = {}  # by function; one that wraps it is another
_others: set[Callable[..., Any]] = set()  # that were made so


def with_boundary(make: Callable[[Callable[..., None], Callable[[Exception], None]], F]) -> F:
    """The function that ``make`` gives, which at the boundary is another one, not called by one.

    ``make`` is told what explains an exception and what hides our frames, in this order; elsewhere
    both do nothing.
    """
    function = make(_nothing, _nothing)
    _makers[function] = make
    return function


def _nothing(*_: Any) -> None:
    pass


def boundary(function: F) -> F:
    """``function``; a user sees neither its frames nor its accidents."""
    make = _makers.get(function)
    if make is not None:
        other = make(_explain, hide_frames)
        other.__dict__.update(function.__dict__)  # what was attached since, such as `add.reduce`
        _others.add(other)
        return other

    @functools.wraps(function)
    def public(*args: Any, **kwargs: Any) -> Any:
        try:
            try:
                return function(*args, **kwargs)
            except Exception as error:
                _explain(error, function, args, kwargs)
                raise
        except Exception as error:
            hide_frames(error)
            raise  # without an argument: so this frame is not in the traceback either

    return public  # type: ignore[return-value]


def hiding(function: F) -> F:
    """``function``, which runs one of the user's, with ours left out of tracebacks."""

    @functools.wraps(function)
    def public(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except Exception as error:
            hide_frames(error)
            raise

    return public  # type: ignore[return-value]


def bound(*owners: Any) -> None:
    """Put the public functions of ours in modules and classes behind the boundary.

    Making an instance of a public class of a module is a call of such a function, too. A module
    lists what is public alone, and says of names that it lacks which are near, or what took their
    place.
    """
    for owner in owners:
        if isinstance(owner, ModuleType):
            if "__getattr__" not in vars(owner):
                later(owner.__name__)
            at_hand(owner.__name__)
        names = getattr(owner, "__all__", None) or [n for n in vars(owner) if n[0] != "_"]
        for name in names:
            value = vars(owner).get(name)  # which is not there yet, if it is imported later
            if isinstance(owner, ModuleType) and name in vars(owner):
                setattr(owner, name, publish(owner.__name__, name, value))
            elif isinstance(value, classmethod):
                setattr(owner, name, classmethod(_once(cast("Any", value).__func__)))
            elif _is_of_ours(value):
                setattr(owner, name, _once(value))


def publish(module: str, name: str, value: Any) -> Any:
    """What ``module`` offers as ``name``, behind the boundary, and known by that place."""
    if _is_of_ours(value):
        value = _once(value)
    elif isinstance(value, type):
        for one in value.__mro__:
            _constructed(one, _MAKING)
        _constructed(type(value), _NAMING)
        _completed(value)
    set_module(module, name, value)
    return value


def _is_of_ours(value: Any) -> TypeGuard[FunctionType]:
    """Whether it is a function of ours that is not behind the boundary yet."""
    if not isinstance(value, FunctionType) or value in _others:
        return False
    return value.__code__.co_filename != __file__ and is_ours(unwrap(value).__code__.co_filename)


def _constructed(owner: type, names: tuple[str, ...]) -> None:
    """Put what makes instances of a class, if it is ours, behind the boundary, once."""
    for name in names if f"{owner.__module__}.".startswith("phalanx.") else ():
        value = vars(owner).get(name)
        function: Any = value.__func__ if isinstance(value, staticmethod) else value
        if not isinstance(function, FunctionType) or hasattr(function, "__wrapped__"):
            continue
        if not function.__code__.co_filename.startswith(_STANDARD):  # as that of enumerations
            public = boundary(function)
            setattr(owner, name, staticmethod(public) if name == "__new__" else public)


def public_names(self: object) -> list[str]:
    """What completion shows of an instance of a class of ours: the ``__dir__`` of these."""
    return [n for n in object.__dir__(self) if not n.startswith("_") or n.startswith("__")]


def _completed(owner: type) -> None:
    """Let completion show what is public alone, but for named tuples, whose ``_replace`` is."""
    ours = f"{owner.__module__}.".startswith("phalanx.") and not hasattr(owner, "_fields")
    if ours and owner.__dir__ is object.__dir__:
        owner.__dir__ = public_names  # type: ignore[assignment,method-assign]


_once = functools.cache(boundary)  # one function may have several names


def hide_frames(error: BaseException) -> None:
    """Take frames of ours out of the traceback of ``error`` and of those it came from."""
    if isinstance(error, Exception):
        _is_accident(error)  # which is known for as long as they are there
        message = dialect.spoken.message
        if message and _is_raised_here(error):
            error.args = tuple([message(error, x) if type(x) is str else x for x in error.args])
    if config.traceback_filtering == "off":
        return
    seen: set[int] = set()
    waiting: list[BaseException | None] = [error]
    while waiting:
        one = waiting.pop()
        if one is not None and id(one) not in seen:
            seen.add(id(one))
            one.__traceback__ = _of_user(one.__traceback__)
            waiting += [one.__cause__, one.__context__]


def _entries(traceback: TracebackType | None) -> Iterator[TracebackType]:
    while traceback is not None:
        yield traceback
        traceback = traceback.tb_next


def _of_user(traceback: TracebackType | None) -> TracebackType | None:
    """The entries that are the user's: neither ours, nor of libraries that we called."""
    entries: list[TracebackType] = []
    within = False
    for entry in _entries(traceback):
        within = _is_excluded(entry) or _is_within(entry, within)
        if not within:
            entries.append(entry)
    for entry, following in zip(entries, [*entries[1:], None], strict=False):
        entry.tb_next = following
    return entries[0] if entries else None


def _is_excluded(entry: TracebackType) -> bool:
    return entry.tb_frame.f_code.co_filename.startswith(tuple(excluded))


def _is_within(entry: TracebackType, within: bool) -> bool:
    """Whether an entry is ours, or of what we called: the one before it is, or not, ``within``."""
    file = entry.tb_frame.f_code.co_filename
    if is_ours(file):
        return True
    if file == "<string>" and _is_written(entry):
        return True
    return within and (
        is_internal(file)
        or (file.startswith(_STANDARD) and _INSTALLED not in file)
        or any(name in file for name in _LIBRARIES)
    )


def _is_written(entry: TracebackType) -> bool:
    """Whether the code is that of a dataclass of ours, which Python writes as text."""
    return entry.tb_frame.f_globals.get("__name__", "").startswith("phalanx.")


def _explain(
    error: Exception, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> None:
    """Add to an ``error`` in ``function`` what that was called with, if the error is an accident.

    A ShardingTypeError of an operation gets the name of ``function``, which runs the operation.
    """
    if isinstance(error, ShardingTypeError):
        error.called_by(function.__name__)
    if not _is_accident(error):
        return
    words = str(error) or type(error).__name__
    if words.startswith("zip() argument"):
        words = "sequences that go together differ in length"
    unknown = _UNEXPECTED.search(words)
    if unknown:
        words = f"{words}. {_instead(unknown[1], function)}".rstrip(". ")
    if _TOO_MANY.search(words) and _TUPLES & {*signature(function).parameters}:
        numbers = tuple(itertools.takewhile(lambda x: type(x) is int, args[::-1]))[::-1]
        words += (
            f". Several numbers for one parameter are a tuple: {numbers}" if numbers[1:] else ""
        )
    if "missing" in words and words.endswith("'tree'"):
        words += f". It is {function.__name__}({', '.join(signature(function).parameters)})"
    if words.endswith("'key'") and "missing" in words:
        words += ". A key comes from random.key(seed); random.split(key) gives further ones"
    words = f"{_called(function, args, kwargs)}: {words}"
    if isinstance(error, _PASSED_ON):
        error.args = (words,)
        setattr(error, _ACCIDENT, False)
    else:
        raise TypeError(words) from None


def _instead(keyword: str, function: Callable[..., Any]) -> str:
    """What took the place of a keyword that ``function`` lacks, or which of its own is near."""
    parameters = signature(function).parameters
    if keyword in REPLACED_KEYWORDS:
        return f"Use {REPLACED_KEYWORDS[keyword]}"
    if now := [k for k in FORMER_KEYWORDS.get(keyword, "").split() if k in parameters]:
        return f"Use {' or '.join(map(repr, now))}"
    return suggest(keyword, parameters)


def _is_accident(error: Exception) -> bool:
    """Whether one of our functions raised ``error``, but no ``raise`` in it did."""
    if isinstance(error, (PhalanxError, OSError, Warning)):
        return False  # what the system says, it says of a file, by its name; a warning is its class
    if not hasattr(error, _ACCIDENT):  # at the first boundary, where all frames are there
        ours = _is_raised_here(error) and not _is_on_purpose(error)
        setattr(error, _ACCIDENT, ours and not _is_of_a_leaf(error))
    return getattr(error, _ACCIDENT)


def _is_on_purpose(error: Exception) -> bool:
    """Whether a ``raise`` raised ``error``, as its traceback still shows."""
    *_, last = _entries(error.__traceback__)
    return last.tb_frame.f_code.co_code[last.tb_lasti] == _RAISE


def _is_of_a_leaf(error: Exception) -> bool:
    """Whether a function of the user raised ``error`` that leaves no frame, as those written in C.

    What takes trees apart calls such functions, and nothing else in it raises errors of this kind.
    """
    *_, last = _entries(error.__traceback__)
    return last.tb_frame.f_code.co_filename in _OF_TREES and not isinstance(error, _PASSED_ON)


def _is_raised_here(error: Exception) -> bool:
    """Whether one of our functions raised ``error``, as its traceback still shows."""
    within = False
    for entry in _entries(error.__traceback__):
        within = _is_within(entry, within)
    return within


def _called(function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> str:
    """How it was called; what makes an instance has the name of the class."""
    name = function.__name__
    if name in _MAKING:
        name, args = function.__qualname__.split(".")[-2], args[1:]
    return f"{name}: called with {_shown(args, kwargs)}"


def _shown(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> str:
    arguments = [*map(_described, args), *(f"{k}={_described(v)}" for k, v in kwargs.items())]
    return f"({', '.join(arguments)})"


def _is_spec(x: Any) -> bool:
    """Whether ``x`` is a tuple that shows itself in words of its own, as a PartitionSpec does."""
    kind, plain = cast(Any, type(x)), cast(Any, tuple)
    named = hasattr(kind, "_fields")  # which shows all that it holds, perhaps large arrays
    return issubclass(kind, plain) and kind.__repr__ is not plain.__repr__ and not named


def _described(x: Any) -> str:
    """An argument in a few words: of an array, its type."""
    if isinstance(x, (bool, int, float, complex, str, type(None))):
        text = repr(x)
        return text if len(text) <= 40 else f"{text[:37]}..."
    if _is_spec(x):
        return repr(x)
    if is_sequence(x):
        text = ", ".join([_described(each) for each in x[:4]]) + (", ..." if x[4:] else "")
        text += "," if len(x) == 1 and isinstance(x, tuple) else ""
        return f"({text})" if isinstance(x, tuple) else f"[{text}]"
    if isinstance(x, type):
        return x.__name__ if is_dtype(getattr(x, "dtype", None)) else f"the class {x.__name__}"
    if hasattr(x, "shape") and hasattr(x, "dtype"):
        return f"{x.dtype}{[*x.shape]}"
    if callable(x) and isinstance(name := getattr(x, "__name__", None), str):
        return f"the function {name}"
    return f"a {type(x).__name__}"
