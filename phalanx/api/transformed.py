"""What a transformed function is to type checkers: it takes and gives what the function does."""

from __future__ import annotations

from collections.abc import Callable
from typing import (
    Any,
    Concatenate,
    ParamSpec,
    Protocol,
    SupportsIndex,
    TypeVar,
    overload,
    runtime_checkable,
)

from phalanx.api import stages

P = ParamSpec("P")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)
Self_contra = TypeVar("Self_contra", contravariant=True)
Rest = ParamSpec("Rest")
InAxes = SupportsIndex | tuple[Any, ...] | list[Any] | None  # which axis of each argument is mapped


class _Unknown: ...


@runtime_checkable
class Wrapped(Protocol[P, R_co]):
    """A function that is compiled when it is called, or before, as a method too: what ``jit`` and
    ``pmap`` return.

    >>> import phalanx
    >>> from phalanx.stages import Wrapped
    >>> isinstance(phalanx.jit(abs), Wrapped), isinstance(abs, Wrapped)
    (True, False)
    """

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co: ...

    @overload
    def __get__(self, instance: None, owner: Any = None) -> Wrapped[P, R_co]: ...
    @overload  # mypy knows no parameters of what `partial(jit, ...)` decorates
    def __get__(
        self: Wrapped[[_Unknown], R_co], instance: object, owner: Any = None
    ) -> Wrapped[..., R_co]: ...
    @overload
    def __get__(
        self: Wrapped[Concatenate[Any, Rest], R_co], instance: object, owner: Any = None
    ) -> Wrapped[Rest, R_co]: ...

    def trace(self, *args: Any, **kwargs: Any) -> stages.Traced:
        """The function traced, not yet lowered.

        Args:
            *args: arguments as for a call, or ``ShapeDtypeStruct`` in their place.
            **kwargs: such arguments by name.
        """
        ...

    def lower(self, *args: Any, **kwargs: Any) -> stages.Lowered:
        """The function lowered to StableHLO, not yet compiled.

        Args:
            *args: arguments as for a call, or ``ShapeDtypeStruct`` in their place.
            **kwargs: such arguments by name.
        """
        ...

    def eval_shape(self, *args: Any, **kwargs: Any) -> Any:
        """The shapes and dtypes of the results, which are not computed.

        Args:
            *args: arguments as for a call, or ``ShapeDtypeStruct`` in their place.
            **kwargs: such arguments by name.
        """
        ...

    def clear_cache(self) -> None:
        """Forget what was traced and compiled."""
        ...


class Compiling(Protocol):
    """A decorator that makes a function one that is compiled."""

    def __call__(self, fun: Callable[P, R], /) -> Wrapped[P, R]: ...
