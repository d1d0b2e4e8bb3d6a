"""Functions with stages around them, as ``jax.extend.linear_util`` has them.

A stage is a generator function: it is given the arguments, yields those of what is inside, is sent
its result, and yields its own.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Generator
from typing import Any

from phalanx.base.source import name_of

Stage = Callable[..., Generator[Any, Any, None]]


class StoreException(Exception):
    """What is read was never written, or what is written was written before."""


class Store:
    """A place for what a stage tells besides its result; it is written once."""

    def __init__(self) -> None:
        self._values: list[Any] = []

    def store(self, value: Any) -> None:
        if self._values:
            raise StoreException("a store is written once, and this one was before")
        self._values.append(value)

    def reset(self) -> None:
        self._values.clear()

    @property
    def val(self) -> Any:
        if not self._values:
            raise StoreException("nothing was stored: the function has not been called yet")
        return self._values[0]

    def __bool__(self) -> bool:
        return bool(self._values)


class EqualStore(Store):
    """A store that may be written again with what it has."""

    def store(self, value: Any) -> None:
        if not self:
            super().store(value)
        elif value != self.val:
            raise StoreException(f"a store that has {self.val} cannot take {value}, too")


class WrappedFun:
    """A function of positional arguments with its stages."""

    def __init__(
        self,
        f: Callable[..., Any],
        call: Callable[..., Any],
        params: dict[str, Any],
        debug_info: Any = None,
    ) -> None:
        self.f = f
        self.call_wrapped = call
        self.params = params
        self.debug_info = debug_info

    @property
    def __name__(self) -> str:
        return name_of(self.f)

    def staged(self, call: Callable[..., Any]) -> WrappedFun:
        """The same function with one more stage, whose ``call`` runs this one."""
        return WrappedFun(self.f, call, self.params, self.debug_info)

    def __repr__(self) -> str:
        return f"WrappedFun({name_of(self.f)})"


def wrap_init(
    f: Callable[..., Any], params: dict[str, Any] | None = None, *, debug_info: Any = None
) -> WrappedFun:
    """``f`` without any stage yet."""
    keywords = dict(params or {})
    return WrappedFun(f, functools.partial(f, **keywords) if keywords else f, keywords, debug_info)


def transformation(stage: Stage) -> Callable[..., WrappedFun]:
    """Make ``stage`` one that is put around functions: ``(fun, *given)``."""

    @functools.wraps(stage)
    def around(fun: WrappedFun, *args_of_stage: Any) -> WrappedFun:
        return fun.staged(lambda *args, **kwargs: _run(stage(*args_of_stage, *args, **kwargs), fun))

    return around


def transformation_with_aux(
    stage: Stage, use_eq_store: bool = False
) -> Callable[..., tuple[WrappedFun, Callable[[], Any]]]:
    """The same of a stage that yields a pair in the end: its result, and what it tells besides."""

    @functools.wraps(stage)
    def around(fun: WrappedFun, *args_of_stage: Any) -> tuple[WrappedFun, Callable[[], Any]]:
        store = EqualStore() if use_eq_store else Store()

        def call(*args: Any, **kwargs: Any) -> Any:
            out, aux = _run(stage(*args_of_stage, *args, **kwargs), fun)
            store.store(aux)
            return out

        return fun.staged(call), lambda: store.val

    return around


def _run(stage: Generator[Any, Any, None], inside: WrappedFun) -> Any:
    args, kwargs = next(stage)
    return stage.send(inside.call_wrapped(*args, **kwargs))


def transformation2(stage: Callable[..., Any]) -> Callable[..., WrappedFun]:
    """Make a function that is given what is inside first a stage: ``(fun, *given)``."""

    @functools.wraps(stage)
    def around(fun: WrappedFun, *args_of_stage: Any) -> WrappedFun:
        return fun.staged(functools.partial(stage, fun.call_wrapped, *args_of_stage))

    return around


def transformation_with_aux2(
    stage: Callable[..., Any], use_eq_store: bool = False
) -> Callable[..., tuple[WrappedFun, Callable[[], Any]]]:
    """The same of a stage that is given what is inside, and then a store."""

    @functools.wraps(stage)
    def around(fun: WrappedFun, *args_of_stage: Any) -> tuple[WrappedFun, Callable[[], Any]]:
        store = EqualStore() if use_eq_store else Store()
        return fun.staged(functools.partial(stage, fun.call_wrapped, store, *args_of_stage)), (
            lambda: store.val
        )

    return around


def merge_linear_aux(first: Callable[[], Any], second: Callable[[], Any]) -> tuple[bool, Any]:
    """Which of two stages was run, the first one or not, and what it told."""
    try:
        return True, first()
    except StoreException:
        return False, second()


def cache(call: Callable[..., Any], *, explain: Any = None) -> Callable[..., Any]:
    """``call`` as it is: what it makes is kept with the programs themselves."""
    return call
