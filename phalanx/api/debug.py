"""Looking into running programs: ``print``, ``log``, ``callback`` and ``breakpoint``."""

# Users' arguments are looked at, whatever their types should be.
# pyright: reportUnnecessaryIsInstance=false

from __future__ import annotations

import builtins
import functools
import string
import threading
from collections.abc import Callable, Sequence
from typing import Any, overload

import numpy as np
from msgspec import Struct

from phalanx.api.arguments import check_callable
from phalanx.api.callbacks import Positions, effects_of, lane_positions, on_host
from phalanx.api.transformed import P
from phalanx.base import tree
from phalanx.base.log import inform
from phalanx.base.numpy_kinds import is_ndarray
from phalanx.base.on_demand import OnDemand
from phalanx.base.source import name_of, user_frame, user_location
from phalanx.core.axes import is_internal
from phalanx.primitives.callback import Host, call_host
from phalanx.run.array import with_value
from phalanx.transforms.stage import is_value

_console = OnDemand("code", "only breakpoints need it")
_printing = threading.RLock()


class _Watching(Struct, frozen=True):
    """A function of trees some of whose leaves are arrays; the others stay as they are."""

    function: Callable[..., Any]
    in_tree: Any
    leaves: Sequence[Any]  # arrays are replaced by _ARRAY

    def __call__(
        self, types: Sequence[Any], positions: Positions, *arrays: np.ndarray
    ) -> tuple[Any, ...]:
        rest = iter(arrays)
        leaves = [next(rest) if x is _ARRAY else x for x in self.leaves]
        args, kwargs = self.in_tree.unflatten(leaves)
        with on_host():
            self.function(positions, *args, **kwargs)
        return ()


_ARRAY = object()


def _watch(
    who: str,
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    ordered: bool,
) -> None:
    leaves, treedef = tree.flatten((args, kwargs))
    shown = [_ARRAY if is_value(x) else x for x in leaves]
    host = Host(who, user_location(), _Watching(function, treedef, shown), effects_of(ordered))
    call_host(host, (), lane_positions(), [x for x in leaves if is_value(x)])


@overload
def print(
    fmt: None = None,
    *,
    ordered: bool = False,
    partitioned: bool = False,
    skip_format_check: bool = False,
) -> Callable[..., None]: ...


@overload
def print(
    fmt: str,
    *args: Any,
    ordered: bool = False,
    partitioned: bool = False,
    skip_format_check: bool = False,
    **kwargs: Any,
) -> None: ...


def print(
    fmt: str | None = None,
    *args: Any,
    ordered: bool = False,
    partitioned: bool = False,
    skip_format_check: bool = False,
    **kwargs: Any,
) -> Callable[..., None] | None:
    """Print fmt.format(*args, **kwargs) when the program comes to it, with the values it has.

    It prints in every iteration of a loop, in the branch that is taken, for each lane of ``vmap``
    and ``pmap``, which the line then names. Derivatives print what the function prints, once.

    Args:
        fmt: a format string; not an f-string, which Python would fill in while tracing.
        *args: trees for the positional fields; arrays in them are printed with their values.
        ordered: whether to print in the order of the program. Otherwise the lines of one
            program may come in any order. Not under ``pmap`` over several devices.
        partitioned: must be False: whole arrays are printed. ``shard_map`` gives parts.
        skip_format_check: whether to leave mistakes in ``fmt`` for when it is printed.
        **kwargs: trees for the fields with names.

    Returns:
        None; without ``fmt`` a function that is called with it and the values, so that options and
        fields may have the same names.

    Raises:
        IndexError, KeyError: a field has no argument.
        ValueError: an argument has no field.

    >>> import phalanx, phalanx.numpy as jnp
    >>> @phalanx.jit
    ... def f(x):
    ...     phalanx.debug.print("x is {}, its sum {total:.2f}", x, total=jnp.sum(x))
    ...     return x
    >>> _ = f(jnp.array([1, 2]))
    x is [1 2], its sum 3.00
    >>> phalanx.debug.print(ordered=True)("{ordered} comes first", ordered=1)
    1 comes first
    """
    _check_whole("debug.print", partitioned)
    write = functools.partial(_write, "debug.print", _print_line, ordered, skip_format_check)
    return write if fmt is None else write(fmt, *args, **kwargs)


@overload
def log(
    fmt: None = None,
    *,
    ordered: bool = False,
    partitioned: bool = False,
    skip_format_check: bool = False,
) -> Callable[..., None]: ...


@overload
def log(
    fmt: str,
    *args: Any,
    ordered: bool = False,
    partitioned: bool = False,
    skip_format_check: bool = False,
    **kwargs: Any,
) -> None: ...


def log(
    fmt: str | None = None,
    *args: Any,
    ordered: bool = False,
    partitioned: bool = False,
    skip_format_check: bool = False,
    **kwargs: Any,
) -> Callable[..., None] | None:
    """What ``debug.print`` prints, to the logger ``phalanx.debug``, as INFO.

    Args:
        fmt: as for ``debug.print``, as are those below.
        *args: trees for the positional fields.
        ordered: whether to write in the order of the program.
        partitioned: must be False.
        skip_format_check: whether to leave mistakes in ``fmt`` for when it is written.
        **kwargs: trees for the fields with names.

    Returns:
        None; without ``fmt`` a function that is called with it and the values.

    >>> import logging, sys, phalanx
    >>> logging.basicConfig(stream=sys.stdout, level=logging.INFO, force=True)
    >>> phalanx.jit(lambda x: phalanx.debug.log("x is {x}", x=x))(3)
    INFO:phalanx.debug:x is 3
    """
    _check_whole("debug.log", partitioned)
    write = functools.partial(_write, "debug.log", inform, ordered, skip_format_check)
    return write if fmt is None else write(fmt, *args, **kwargs)


def _print_line(line: str) -> None:
    with _printing:
        builtins.print(line + "\n", end="", flush=True)


def _write(
    who: str,
    put: Callable[[str], None],
    ordered: bool,
    skip_format_check: bool,
    fmt: str,
    /,
    *args: Any,
    **kwargs: Any,
) -> None:
    if not skip_format_check:
        _check_format(who, fmt, args, kwargs)

    def show(positions: Positions, *args: Any, **kwargs: Any) -> None:
        args, kwargs = tree.map(_array, (args, kwargs))
        put(_lane(positions) + fmt.format(*args, **kwargs))

    _watch(who, show, args, kwargs, ordered)


def _check_whole(who: str, partitioned: bool) -> None:
    if partitioned:
        raise NotImplementedError(
            f"{who}: partitioned=True is given at {user_location()}; whole arrays are shown. Call "
            "it within phalanx.shard_map, which gives each device its part"
        )


def _number(x: Any) -> Any:
    return x[()] if is_ndarray(x) and not x.ndim else x


def _of_scalars(function: Callable[..., Any]) -> Callable[..., Any]:
    """``function``, given scalars for arrays without dimensions: they can be formatted."""

    def call(positions: Positions, *args: Any, **kwargs: Any) -> None:
        args, kwargs = tree.map(_number, (args, kwargs))
        function(positions, *args, **kwargs)

    return call


def _lane(positions: Positions) -> str:
    """Which lane speaks, in brackets, if there are several."""
    names = [
        f"lane {p}" if name is None or is_internal(name) else f"{name}={p}" for name, p in positions
    ]
    return f"[{', '.join(names)}] " if names else ""


def _check_format(who: str, fmt: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    if not isinstance(fmt, str):
        raise TypeError(
            f"{who}: the first argument must be a format string, got {type(fmt).__name__} at "
            f"{user_location()}; write {who}('{{}}', x)"
        )
    used = _fields(fmt)
    for field in used:
        if isinstance(field, int) and field >= len(args):
            raise IndexError(
                f"{who}: {fmt!r} has field {field}, but the number of positional arguments "
                f"is {len(args)}, at {user_location()}"
            )
        if isinstance(field, str) and field not in kwargs:
            raise KeyError(
                f"{who}: {fmt!r} has field {field!r}, but there is no such argument, at "
                f"{user_location()}"
            )
    unused = [f"number {i}" for i in range(len(args)) if i not in used]
    unused += [repr(k) for k in kwargs if k not in used]
    if unused:
        raise ValueError(
            f"{who}: {fmt!r} has no field for argument {', '.join(unused)}, at "
            f"{user_location()}; write {{}} or {{name}} where the value goes, and no f-string"
        )


def _fields(fmt: str) -> set[int | str]:
    """The arguments that a format string asks for, by number or by name."""
    fields: set[int | str] = set()
    pending, count = [fmt], 0
    while pending:
        for _, name, spec, _ in string.Formatter().parse(pending.pop()):
            if name is None:
                continue
            first = name.replace("[", ".").split(".")[0]
            if not first:
                first, count = str(count), count + 1
            fields.add(int(first) if first.isdigit() else first)
            if spec:
                pending.append(spec)
    return fields


@overload
def callback(
    callback: None = None, *, ordered: bool = False, partitioned: bool = False
) -> Callable[..., None]: ...


@overload
def callback(
    callback: Callable[P, Any],
    *args: Any,
    ordered: bool = False,
    partitioned: bool = False,
    **kwargs: Any,
) -> None: ...


def callback(
    callback: Callable[P, Any] | None = None,
    *args: Any,
    ordered: bool = False,
    partitioned: bool = False,
    **kwargs: Any,
) -> Callable[..., None] | None:
    """Call callback(*args, **kwargs) when the program comes to it, with the values it has.

    Args:
        callback: of trees of arrays, which NumPy's functions take as well. What it returns is
            ignored, what it raises is raised where the program was called.
        *args: trees; arrays in them are given with their values, other things as they are.
        ordered: as for ``debug.print``.
        partitioned: must be False, as for ``debug.print``.
        **kwargs: the same by name.

    Returns:
        None; without ``callback`` a function that is called with it and its arguments.

    >>> import phalanx
    >>> seen = []
    >>> phalanx.jit(lambda x: phalanx.debug.callback(seen.append, x * 2))(1.5)
    >>> seen
    [Array(3., dtype=float32)]
    """
    _check_whole("debug.callback", partitioned)
    called = functools.partial(_call, ordered)
    return called if callback is None else called(callback, *args, **kwargs)


def _call(ordered: bool, callback: Callable[..., Any], /, *args: Any, **kwargs: Any) -> None:
    check_callable(callback, "debug.callback")

    def call(positions: Positions, *args: Any, **kwargs: Any) -> None:
        args, kwargs = tree.map(_array, (args, kwargs))
        callback(*args, **kwargs)

    _watch(f"debug.callback({name_of(callback)})", call, args, kwargs, ordered)


def _array(x: Any) -> Any:
    return with_value(x) if is_ndarray(x) else x


def breakpoint(*, ordered: bool = False, **kwargs: Any) -> None:
    """Stop when the program comes to it: a Python prompt with the values of local variables.

    The prompt sees the local variables of the function that calls it which are arrays, or trees
    of them, as NumPy arrays. The program goes on at the end of the input.

    Args:
        ordered: as for ``debug.print``.
        **kwargs: further values, by the names that they get.

    >>> import phalanx
    >>> @phalanx.jit
    ... def f(x):
    ...     y = x * x
    ...     phalanx.debug.breakpoint()
    ...     return y
    >>> f(3.0)  # doctest: +SKIP
    stopped at train.py:4 (f)
    >>> y  # doctest: +SKIP
    9.0
    """
    place = user_location()
    names = {**_values(user_frame().f_locals), **kwargs}

    def stop(positions: Positions, **values: Any) -> None:
        with _printing:
            _console.interact(f"{_lane(positions)}stopped at {place}", local=values, exitmsg="")

    _watch("debug.breakpoint", _of_scalars(stop), (), names, ordered)


def _values(names: dict[str, Any]) -> dict[str, Any]:
    """Those that are arrays, or trees of nothing but arrays."""
    arrays: dict[str, Any] = {}
    for name, value in names.items():
        leaves = tree.leaves(value)
        if leaves and all(map(is_value, leaves)):
            arrays[name] = value
    return arrays
