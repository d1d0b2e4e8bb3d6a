"""Calling Python from programs: ``pure_callback``, ``io_callback``, and waiting for them."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, nullcontext
from operator import index
from typing import Any

import numpy as np
from msgspec import Struct

from phalanx.api import aot
from phalanx.api.arguments import LeafNames, check_callable, check_leaf
from phalanx.api.transformed import P
from phalanx.base import dtypes, tree
from phalanx.base.config import config
from phalanx.base.errors import TreeError
from phalanx.base.extended import is_key
from phalanx.base.nodes import outline
from phalanx.base.source import Location, name_of, user_location
from phalanx.base.tree import shown
from phalanx.core import axes
from phalanx.core.primitive import CALLS, ORDERED
from phalanx.core.trace import ROOT, entering
from phalanx.core.types import SCALARS, ArrayType
from phalanx.primitives.callback import VMAP_METHODS, Host, call_host
from phalanx.primitives.lanes import axis_index
from phalanx.run.array import default_sharding, with_value
from phalanx.run.runtime import backend

Positions = Sequence[tuple[Any, int]]


@contextmanager
def on_host() -> Generator[None]:
    """Where a function runs that a program calls: outside of transformations, and on the CPU.

    The devices of the program may be waiting for it.
    """
    on_cpu = default_sharding().device_list[0].platform == "cpu"
    with entering(ROOT), nullcontext() if on_cpu else config.override(default_device="cpu"):
        yield


class PythonCall(Struct, frozen=True):
    """A user's function of trees, as the host calls it: of flat arrays, its results checked."""

    function: Callable[..., Any]
    in_tree: Any
    out_tree: Any
    out_types: tuple[ArrayType, ...]  # of one lane
    who: str
    location: Location

    def __call__(
        self, types: Sequence[ArrayType], positions: Positions, *arrays: np.ndarray
    ) -> list[np.ndarray]:
        with on_host():
            args, kwargs = self.in_tree.unflatten([with_value(x) for x in arrays])
            out = self.function(*args, **kwargs)
        results, out_tree = tree.flatten(out)
        if len(results) != len(self.out_types):
            raise TreeError(
                f"{self.who}: the function must return the structure {shown(self.out_tree)}, as "
                f"result_shape_dtypes says at {self.location}, but it returned {shown(out_tree)}, "
                "where * is an array"
            )
        return [self._fitted(x, t, i) for i, (x, t) in enumerate(zip(results, types, strict=True))]

    def _fitted(self, x: Any, expected: ArrayType, i: int) -> np.ndarray:
        """Result number ``i`` as an array of type ``expected``."""
        dtypes.refuse_masked(x)
        if isinstance(x, SCALARS) and not isinstance(x, np.generic) and _holds(expected.dtype, x):
            array = np.asarray(x, expected.dtype)
        else:
            array = np.asarray(x)
        if array.dtype != expected.dtype:
            kind = TypeError
            advice = f"convert it, with .astype({expected.dtype.name!r}), or declare its dtype"
        elif array.shape != expected.shape:
            kind = ValueError
            advice = "declare the shape that it has"
            if expected != self.out_types[i]:
                advice = "where vmap calls it once, all lanes lead the result"
        else:
            return array
        got = repr(x) if type(x) in SCALARS else _described(array)
        raise kind(
            f"{self.who}: the result{self._place(i)} must be {expected}, as result_shape_dtypes "
            f"says at {self.location}, but the function returned {got}; {advice}"
        )

    def _place(self, i: int) -> str:
        paths = tree.leaves_with_path(outline(self.out_tree))
        return tree.keystr(paths[i][0])


def _holds(dtype: np.dtype, x: Any) -> bool:
    """Whether a Python number fits into ``dtype`` as it is."""
    if isinstance(x, bool):
        return dtypes.is_bool(dtype)
    if isinstance(x, int):
        if dtypes.is_integer(dtype):
            limits = dtypes.iinfo(dtype)
            return int(limits.min) <= x <= int(limits.max)
        return dtypes.is_inexact(dtype)
    return dtypes.is_complex(dtype) or (isinstance(x, float) and dtypes.is_floating(dtype))


def _described(array: np.ndarray) -> str:
    if not dtypes.holds_numbers(array.dtype):
        return f"an array of dtype {array.dtype}"
    return str(ArrayType(array.shape, array.dtype))


def check_arguments(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], who: str
) -> list[Any]:
    """The leaves of the arguments, all of which must be arrays or numbers."""
    leaves = tree.leaves((args, kwargs))
    names = LeafNames(function, args, kwargs, range(len(args)))
    for i, x in enumerate(leaves):
        check_leaf(x, names[i], who)
    return leaves


def lane_positions() -> list[tuple[Any, int, Any]]:
    """(name, size, position of this lane) of each mapped axis in scope, the innermost last."""
    return [(name, index(size), axis_index(axes=(name,))) for name, size in axes.scope()]


def declared_types(result_shape_dtypes: Any, who: str) -> tuple[list[ArrayType], Any]:
    """The types of results that the user declares, and their structure.

    Raises:
        TypeError: something has no shape or no dtype, or is to be keys.
    """
    leaves, treedef = tree.flatten(result_shape_dtypes)
    for x in leaves:
        if not (hasattr(x, "shape") and hasattr(x, "dtype")):
            raise TypeError(
                f"{who}: result_shape_dtypes must be a tree of things with a shape and a dtype, "
                f"such as ShapeDtypeStruct((3,), 'float32'), got {x!r} in it, at {user_location()}"
            )
    types = [aot.abstract(x, [""] * len(leaves), i, who) for i, x in enumerate(leaves)]
    if any(is_key(t.dtype) for t in types):
        raise TypeError(
            f"{who}: a Python function cannot return keys, at {user_location()}; declare their "
            "words, u32[..., 2], and make keys of what it returns with random.wrap_key_data"
        )
    return [t.update(weak=False) for t in types], treedef


def _call(
    name: str, callback: Callable[..., Any], result_shape_dtypes: Any, args: tuple[Any, ...],
    kwargs: dict[str, Any], effects: frozenset[str], vmap_method: str | None,
) -> Any:  # fmt: skip
    check_callable(callback, name)
    who = f"{name}({name_of(callback)})"
    types, out_tree = declared_types(result_shape_dtypes, who)
    leaves = check_arguments(callback, args, kwargs, who)
    location = user_location()
    in_tree = tree.structure((args, kwargs))
    python = PythonCall(callback, in_tree, out_tree, tuple(types), who, location)
    host = Host(who, location, python, effects, vmap_method)
    positions = lane_positions() if effects else []
    return out_tree.unflatten(call_host(host, tuple(types), positions, leaves))


def pure_callback(
    callback: Callable[P, Any],
    result_shape_dtypes: Any,
    *args: Any,
    sharding: Any = None,
    vmap_method: str | None = None,
    **kwargs: Any,
) -> Any:
    """Call a Python function without effects, callback(*args, **kwargs), also inside ``jit``.

    The compiler may call it any number of times, or not at all if nothing needs the result.

    Args:
        callback: of trees of arrays, which NumPy's functions take as well; it returns a tree of
            arrays or numbers. It runs while a program waits for it: it must not run programs on
            several devices.
        result_shape_dtypes: a tree of objects with ``shape`` and ``dtype``, such as
            ``ShapeDtypeStruct``: what the function returns. It gives the result its structure;
            of what the function returns the leaves count, in their order.
        *args: trees of arrays.
        sharding: accepted; in programs that the compiler partitions, the first calls.
        vmap_method: what ``vmap`` does. "sequential" calls once per lane; "expand_dims" once,
            lanes leading, where an argument that all lanes share has length one there;
            "broadcast_all" repeats such an argument; "legacy_vectorized" gives it as it is.
        **kwargs: trees of arrays.

    Returns:
        What ``callback`` returns, as arrays of the shapes and dtypes of ``result_shape_dtypes``.

    Raises:
        TypeError, ValueError, TreeError: the function returned another dtype, shape or structure.
        ValueError: a derivative is taken by an argument, or vmap without vmap_method.

    What the function raises is raised where the program was called.

    >>> import phalanx, phalanx.numpy as jnp
    >>> @phalanx.jit
    ... def median(x):
    ...     result = phalanx.ShapeDtypeStruct((), x.dtype)
    ...     return phalanx.pure_callback(np.median, result, x)
    >>> median(jnp.array([3.0, 1.0, 2.0]))
    Array(2., dtype=float32)
    """
    if vmap_method is not None and vmap_method not in VMAP_METHODS:
        raise ValueError(
            f"pure_callback: vmap_method must be None or one of {', '.join(VMAP_METHODS)}, got "
            f"{vmap_method!r}"
        )
    return _call(
        "pure_callback", callback, result_shape_dtypes, args, kwargs, frozenset(), vmap_method
    )


def io_callback(
    callback: Callable[P, Any],
    result_shape_dtypes: Any,
    *args: Any,
    sharding: Any = None,
    ordered: bool = False,
    **kwargs: Any,
) -> Any:
    """Call a Python function with effects, callback(*args, **kwargs), also inside ``jit``.

    It is called once for each time that the program comes to it: in every iteration of a loop, in
    the branch that is taken, in each lane of ``vmap``, on each device of ``pmap``.

    Args:
        callback: a function of arrays of the host, which returns such arrays; see
            ``pure_callback``.
        result_shape_dtypes: a tree of what has a shape and a dtype, like the result; None for no
            result.
        *args: trees of arrays.
        sharding: accepted, as for ``pure_callback``.
        ordered: whether to call in the order of the program. Otherwise calls that do not need
            each other's results may come in any order.
        **kwargs: trees of arrays.

    Returns:
        What ``callback`` returns, as arrays of the shapes and dtypes of ``result_shape_dtypes``.

    Raises:
        ValueError: a derivative is taken by an argument; ordered under ``pmap`` over several
            devices. Further as for ``pure_callback``.

    >>> import phalanx
    >>> log = []
    >>> @phalanx.jit
    ... def step(x):
    ...     phalanx.io_callback(lambda x: log.append(float(x)), None, x, ordered=True)
    ...     return x + 1
    >>> step(step(1.0))
    Array(3., dtype=float32, weak_type=True)
    >>> log
    [1.0, 2.0]
    """
    return _call(
        "io_callback", callback, result_shape_dtypes, args, kwargs, effects_of(ordered),
        "sequential",
    )  # fmt: skip


def effects_of(ordered: bool) -> frozenset[Any]:
    """The effects of a call to Python."""
    return frozenset({CALLS, ORDERED}) if ordered else frozenset({CALLS})


def effects_barrier() -> None:
    """Wait until all programs with effects (prints, callbacks) that were started before are done.

    Programs run asynchronously, so what they print may come later than the line that called them.
    Those of other threads count, too.

    >>> import phalanx
    >>> phalanx.effects_barrier()
    """
    backend().wait_for_callbacks()
