"""What a transformed function is to type checkers: it takes and gives what the function does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, Protocol, SupportsIndex, TypeVar, overload

from phalanx.api import stages

P = ParamSpec("P")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)
Self_contra = TypeVar("Self_contra", contravariant=True)
Rest = ParamSpec("Rest")
InAxes = SupportsIndex | tuple[Any, ...] | list[Any] | None  # which axis of each argument is mapped


class _Unknown: ...


class Compilable(Protocol[P, R_co]):
    """A function that is compiled when it is called, or before, as a method too."""

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co: ...

    @overload
    def __get__(self, instance: None, owner: Any = None) -> Compilable[P, R_co]: ...
    @overload  # mypy knows no parameters of what `partial(jit, ...)` decorates
    def __get__(
        self: Compilable[[_Unknown], R_co], instance: object, owner: Any = None
    ) -> Compilable[..., R_co]: ...
    @overload
    def __get__(
        self: Compilable[Concatenate[Any, Rest], R_co], instance: object, owner: Any = None
    ) -> Compilable[Rest, R_co]: ...

    def trace(self, *args: Any, **kwargs: Any) -> stages.Traced: ...
    def lower(self, *args: Any, **kwargs: Any) -> stages.Lowered: ...
    def eval_shape(self, *args: Any, **kwargs: Any) -> Any: ...
    def clear_cache(self) -> None: ...


class Compiling(Protocol):
    """A decorator that makes a function one that is compiled."""

    def __call__(self, fun: Callable[P, R], /) -> Compilable[P, R]: ...
