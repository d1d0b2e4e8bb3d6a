"""What functions that a program calls raise, in the form in which the field's handlers catch it."""

from __future__ import annotations

from typing import Any

from phalanx.base.recent import memoized
from phalanx.errors import JaxRuntimeError


def as_runtime_error(error: BaseException) -> BaseException:
    """``error`` as one of its own class that is a ``JaxRuntimeError``, too, and says its class.

    What ends the process, and what can be no such error, stays as it is.

    >>> from phalanx.errors import JaxRuntimeError
    >>> error = as_runtime_error(ValueError("no"))
    >>> isinstance(error, ValueError), isinstance(error, JaxRuntimeError), str(error)
    (True, True, 'a function that the program calls raised ValueError: no')
    """
    if not isinstance(error, Exception) or isinstance(error, JaxRuntimeError):
        return error
    kind = _also_a_runtime_error(type(error))
    if kind is None:
        return error
    seen: BaseException = kind.__new__(kind, *error.args)
    vars(seen).update(vars(error))
    seen.__cause__, seen.__context__ = error.__cause__, error.__context__
    seen.__suppress_context__ = error.__suppress_context__
    return seen.with_traceback(error.__traceback__)


@memoized(256)
def _also_a_runtime_error(kind: Any) -> Any:
    """A subclass of both, or None if there can be none; what is pickled of it is a ``kind``."""

    def words(error: Any) -> str:
        return f"a function that the program calls raised {kind.__name__}: {kind.__str__(error)}"

    def again(error: Any) -> tuple[Any, ...]:
        return kind, error.args, error.__dict__

    members: dict[str, Any] = {
        "__module__": kind.__module__,
        "__qualname__": kind.__qualname__,
        "__str__": words,
        "__reduce__": again,
    }
    try:
        return type(kind.__name__, (kind, JaxRuntimeError), members)
    except TypeError:  # there can be none of both
        return None
