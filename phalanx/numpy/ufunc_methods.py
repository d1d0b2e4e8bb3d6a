"""``add.reduce``, ``maximum.accumulate`` and the like: methods of functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from phalanx.base.on_demand import OnDemand

if TYPE_CHECKING:
    from phalanx.numpy.ufuncs import ufunc

ufuncs = OnDemand("phalanx.numpy.ufuncs", "it imports the functions")
P = ParamSpec("P")
R = TypeVar("R")

WITH_METHODS: dict[str, Any] = {}
"""The functions that have the methods, by name."""


def with_methods(identity: Any = None, nin: int = 2) -> Callable[[Callable[P, R]], ufunc[P, R]]:
    """A function of ``nin`` operands gets the methods; ``identity`` leaves any element as it is.

    What the methods do is imported when one is called.
    """

    def decorate(function: Any) -> Any:
        name = function.__name__
        function.nin, function.nout, function.nargs, function.identity = nin, 1, nin, identity
        for method in ("reduce", "accumulate", "outer", "at", "reduceat"):
            setattr(function, method, _later(name, method))
        WITH_METHODS[name] = function
        return function

    return decorate


def _later(name: str, method: str) -> Callable[..., Any]:
    def run(*args: Any, **kwargs: Any) -> Any:
        return getattr(ufuncs.KNOWN[name], method)(*args, **kwargs)

    run.__name__, run.__qualname__ = method, f"{name}.{method}"
    return run
