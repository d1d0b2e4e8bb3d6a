"""``host_call``: a Python function of NumPy arrays that the host runs while a program runs.

Operands, in order: whether to call at all, a boolean; where the program keeps calls in order, a
token, which every call takes from the one before it; the position along each of ``axes``, which
say which lane speaks; the arguments. Results: the token, then those of the function.

Lanes are taken one after the other by the host: ``levels`` has, for each axis that was
vectorized, its size and which operands have it as leading dimension. The last of them leads. A
function that takes all lanes at once has no levels.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from msgspec import Struct

from phalanx.base.errors import MissingRule
from phalanx.base.extended import is_key
from phalanx.base.source import Location
from phalanx.core.axes import Axis
from phalanx.core.builder import Builder
from phalanx.core.layouts import Axes
from phalanx.core.primitive import (
    Active,
    Batched,
    Derivative,
    Effects,
    Execution,
    LaneDims,
    NoRule,
    Operands,
    Primitive,
    no_results,
)
from phalanx.core.types import ArrayType, Types, typeof
from phalanx.primitives.basis import broadcast_lanes, move, random_unwrap
from phalanx.primitives.lanes import index_of, leading, without_padding
from phalanx.primitives.reduce import reduce_max

LEVEL = tuple[int, tuple[bool, ...]]
VMAP_METHODS = ("sequential", "expand_dims", "broadcast_all", "legacy_vectorized")


class Host(Struct, frozen=True, eq=False):
    """A Python function that programs call, and how.

    Attributes:
        name: of the function of the library that the user called, with that of the user's.
        location: where the user called it.
        function: ``(types, positions, *arrays)`` to one NumPy array for each of ``types``, and
            of that type. ``positions`` are those of the lane that calls.
        effects: what it does besides giving results.
        vmap_method: how the lanes of ``vmap`` are called: None for not at all. Those of ``pmap``,
            which is how a device may have several, are then called one by one.
    """

    name: str
    location: Location
    function: Callable[..., Sequence[np.ndarray]]
    effects: frozenset[Any]
    vmap_method: str | None = "sequential"

    def __repr__(self) -> str:
        return self.name


def _linearize(
    active: Active, *primals: Any, host: Host, out_types: Types, **params: Any
) -> Derivative:
    if out_types:
        raise ValueError(
            f"{host.name}: a Python function has no derivative, and the arguments of this one, at "
            f"{host.location}, depend on what a derivative is taken by. Give the function that "
            "contains the call a derivative with custom_jvp or custom_vjp, or stop the derivative "
            "before it with lax.stop_gradient"
        )
    return host_call(*primals, host=host, out_types=out_types, **params), no_results


# ---- vectorization ------------------------------------------------------------------------------


def _batch(
    axis: Axis, values: Operands, dims: LaneDims, *, host: Host, out_types: Types, axes: Axes,
    levels: tuple[LEVEL, ...], token: bool,
) -> Batched:  # fmt: skip
    if host.vmap_method is None and axis.rest is None:
        raise MissingRule(
            f"{host.name}: vmap has to know how to call a Python function for many lanes, at "
            f"{host.location}; give vmap_method: 'sequential' calls it once per lane, "
            "'expand_dims' and 'broadcast_all' once with the lanes as leading dimension"
        )
    if host.vmap_method not in ("sequential", None):
        return _batch_at_once(axis, values, dims, host=host, out_types=out_types)
    placed = [v if d is None else move(v, d, 0) for v, d in zip(values, dims, strict=True)]
    marks = [d is not None for d in dims]
    if axis.padding and host.effects:  # without them nobody can tell, and devices need no numbers
        placed[0] = without_padding(axis, leading(values[0], dims[0], axis.size), False)
        marks[0] = True
    if token and marks[1]:
        placed[1], marks[1] = reduce_max(placed[1], dims=(0,)), False
    named = [name for name, _ in axes if name is not None]
    if axis.name not in named and host.effects:
        outer = _not_taken_yet(1 + token, len(axes), levels)
        at = 1 + token + outer
        placed.insert(at, index_of(axis))
        marks.insert(at, True)
        axes = (*axes[:outer], (None, axis.total), *axes[outer:])
        levels = with_operand(levels, at)
    types = [*out_types[:token], *(_with_lanes(t, axis.size) for t in out_types[token:])]
    results = host_call(
        *placed, host=host, out_types=tuple(types), axes=axes,
        levels=(*levels, (axis.size, tuple(marks))), token=token,
    )  # fmt: skip
    return results, (None,) * token + (0,) * (len(types) - token)


def with_operand(levels: tuple[LEVEL, ...], at: int) -> tuple[LEVEL, ...]:
    """``levels`` for one more operand, number ``at``, that has none of these lanes."""
    return tuple((n, (*m[:at], False, *m[at:])) for n, m in levels)


def _not_taken_yet(first: int, count: int, levels: tuple[LEVEL, ...]) -> int:
    """How many of the axes, from the first on, have no level: they lie outside those that do."""
    taken = [any(m[first + i] for _, m in levels) for i in range(count)]
    return taken.index(True) if True in taken else count


def _batch_at_once(
    axis: Axis, values: Operands, dims: LaneDims, *, host: Host, out_types: Types
) -> Batched:
    """One call for all lanes, which lead every argument that has some, and every result."""
    called, *arguments = zip(values, dims, strict=True)
    repeats = {"expand_dims": 1, "broadcast_all": axis.size}.get(str(host.vmap_method))

    def alone(v: Any) -> Any:
        return v if repeats is None else broadcast_lanes(v, 0, repeats)

    placed = [alone(v) if d is None else move(v, d, 0) for v, d in arguments]
    types = tuple(_with_lanes(t, axis.size) for t in out_types)
    results = host_call(
        called[0], *placed, host=host, out_types=types, axes=(), levels=(), token=False
    )
    return results, (0,) * len(types)


def _with_lanes(type: ArrayType, size: int) -> ArrayType:
    return type.update(shape=(size, *type.shape))


# ---- running ------------------------------------------------------------------------------------


class _Call:
    """What the host does with the operands of a ``host_call``."""

    __slots__ = ("function", "levels", "names", "token", "types")

    def __init__(
        self, host: Host, out_types: Types, axes: Axes, levels: tuple[LEVEL, ...], token: bool
    ) -> None:
        self.function = host.function
        self.names = [name for name, _ in axes]
        self.token = token
        # of one lane, and without the token
        self.types = tuple(t.update(shape=t.shape[len(levels) :]) for t in out_types[token:])
        self.levels = [(n, (m[0], *m[1 + token :])) for n, m in levels]

    def __call__(self, called: Any, *operands: Any) -> list[np.ndarray]:
        if not self.token:
            return self._lanes(self.levels, [called, *operands])
        token, *rest = operands
        return [token, *self._lanes(self.levels, [called, *rest])]

    def _lanes(self, levels: list[LEVEL], operands: list[Any]) -> list[np.ndarray]:
        if not levels:
            return self._once(*operands)
        *inner, (size, marks) = levels
        rows = [self._lanes(inner, _lane(operands, marks, i)) for i in range(size)]
        return [np.stack(column) for column in zip(*rows, strict=True)]

    def _once(self, called: Any, *rest: Any) -> list[np.ndarray]:
        if not called:
            return [np.zeros(t.shape, t.dtype) for t in self.types]
        count = len(self.names)
        positions = [*zip(self.names, map(int, rest[:count]), strict=True)]
        return list(self.function(self.types, positions, *rest[count:]))


def _lane(operands: Sequence[Any], marks: Sequence[bool], i: int) -> list[Any]:
    return [x[i, ...] if m else x for x, m in zip(operands, marks, strict=True)]


def _lower(b: Builder, *xs: Any, host: Host, out_types: Types, **params: Any) -> list[Any]:
    if params["token"] and b.manual:  # there is one such region, over all devices
        raise ValueError(
            f"{host.name}: ordered=True, at {host.location}, asks for the order of the program, "
            "and there is none between devices: a pmap or shard_map over several cannot contain "
            "such a call. Leave ordered out; what is printed says which lane speaks"
        )
    call = _Call(host, out_types, **params)
    return b.host_call(call, xs, out_types, has_side_effect=bool(host.effects))


def _type(
    *types: ArrayType, host: Host, out_types: Types, axes: Axes, levels: tuple[LEVEL, ...],
    token: bool,
) -> Types:  # fmt: skip
    return out_types


def _on_host(*xs: Any, **params: Any) -> list[np.ndarray]:
    return _Call(**params)(*map(np.asarray, xs))


def _called(*, host: Host, **_: Any) -> str:
    return host.name


def _effects(*, host: Host, **_: Any) -> frozenset[Any]:
    return host.effects


host_call: Primitive = Primitive(
    "host_call",
    _type,
    _lower,
    linearize=_linearize,
    transpose=NoRule("a Python function is not known to be linear"),
    batch=_batch,
    effects=Effects(_effects, called=_called),
    execution=Execution(on_host=_on_host),
    multi=True,
    doc="function(operands), run by the host; stablehlo.custom_call",
)


def call_host(
    host: Host, out_types: Types, positions: Sequence[tuple[Any, int, Any]], args: Sequence[Any]
) -> Operands:
    """Call ``host`` with ``args``; ``positions`` are (name, size, position) of mapped axes.

    Of keys it is given the words.
    """
    return host_call(
        np.bool_(True),
        *(p for _, _, p in positions),
        *(random_unwrap(x) if is_key(typeof(x).dtype) else x for x in args),
        host=host,
        out_types=out_types,
        axes=tuple((name, size) for name, size, _ in positions),
        levels=(),
        token=False,
    )
