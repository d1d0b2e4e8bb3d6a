"""``pmap``: a function of one lane becomes a function of a whole axis, distributed over devices."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from phalanx.api import aot, stages
from phalanx.api.arguments import (
    NO_STATIC,
    Flat,
    LeafNames,
    Static,
    check_axis_name,
    check_callable,
    check_leaf,
    name_of,
    static_positions,
)
from phalanx.api.dispatch import KEPT, Dispatched, Run
from phalanx.api.passing import Passed, caller, signatures
from phalanx.api.vmap import UNNAMED, input_dims, is_none, mapped_size, output_dims
from phalanx.base import tree
from phalanx.base.config import config
from phalanx.base.errors import ReplicationError
from phalanx.base.recent import Recent, key_of
from phalanx.control.mapped import mapped
from phalanx.core import axes
from phalanx.core.axes import Axis, Split
from phalanx.core.blocks import Blocks, fewest_blocks
from phalanx.core.program import Equation, Program, Var, plain
from phalanx.core.region import along
from phalanx.core.roles import slices
from phalanx.core.trace import ROOT, Tracer, current, refuse_escaped
from phalanx.core.types import ArrayType, typeof
from phalanx.run.array import moved
from phalanx.run.eager import as_array
from phalanx.run.execute import compile_program
from phalanx.run.runtime import backend
from phalanx.spmd import placement
from phalanx.spmd.replication import culprits, varying_outputs
from phalanx.spmd.sharding import Sharding
from phalanx.transforms.batch import batch, lane_type, place_lanes
from phalanx.transforms.stage import is_value, stage

_SPACE = "phalanx"
_enclosing: ContextVar[str | None] = ContextVar("enclosing pmap", default=None)


@dataclass(slots=True)
class TracedLane:
    """A mapped function traced at the types of a lane: the body of ``mapped``."""

    program: Program
    captured: list[Any]
    out_tree: Any
    params: dict[str, Any]
    wholes: Recent[Program] = field(default_factory=lambda: Recent(KEPT))

    @property
    def reusable(self) -> bool:
        """Whether another call may use it: not where it holds values of a transformation."""
        return not self.captured

    def whole(self, types: Sequence[ArrayType]) -> Program:
        """The program of one mapped equation, on whole arrays of ``types``."""
        program = self.wholes[tuple(types)]
        if program is None:
            program = self.wholes[tuple(types)] = self._whole(types)
        return program

    def _whole(self, types: Sequence[ArrayType]) -> Program:
        inputs = [Var(plain(typeof(c))) for c in self.captured] + [Var(t) for t in types]
        out_types = mapped.type(*(v.type for v in inputs), **self.params)  # type: ignore[attr-defined]
        outputs = tuple(Var(t) for t in out_types)
        equation = Equation(mapped, list(inputs), self.params, outputs, None)  # type: ignore[arg-type]
        return Program(inputs, [equation], outputs, f"pmap_{self.program.name}")


class Pmapped(Dispatched):
    """A mapped function. Called, it runs the function in every lane of its axis."""

    def __init__(
        self,
        fun: Callable,
        axis_name: Any = None,
        *,
        in_axes: Any = 0,
        out_axes: Any = 0,
        static_broadcasted_argnums: Any = (),
        devices: Sequence[Any] | None = None,
        backend: str | None = None,
        axis_size: int | None = None,
        donate_argnums: Any = (),
    ) -> None:
        self.fun = fun
        self.who = f"pmap({name_of(fun)})"
        self.axis = UNNAMED if axis_name is None else axis_name
        self.in_axes, in_key = _snapshot(in_axes)
        self.out_axes, out_key = _snapshot(out_axes)
        self.axis_size = axis_size
        self.static_nums, _ = static_positions(fun, static_broadcasted_argnums, None, self.who)
        self.donate_nums, _ = static_positions(fun, donate_argnums, None, self.who, "donated")
        if set(self.static_nums) & set(self.donate_nums):
            raise ValueError(f"{self.who}: an argument cannot be both static and donated")
        # arguments passed by keyword are mapped, whatever the positions say
        self.static_names = self.donate_names = frozenset()
        self.devices = _checked_devices(devices, backend, self.who)
        self._remember(self.axis, in_key, out_key, axis_size, self.devices)

    def _call(self, static: Static, args: tuple, kwargs: dict[str, Any]) -> Any:
        leaves, treedef = tree.flatten((args, kwargs))
        if config.disable_jit or current() is not ROOT:
            dims, size = self._mapping(static, args, kwargs, leaves)
            if config.disable_jit:
                return self._eagerly(static, leaves, treedef, dims, size)
            names = self._names(static, args, kwargs)
            body = self.body(static, leaves, treedef, dims, size, names)
            results = mapped(*body.captured, *leaves, **body.params)
            return body.out_tree.unflatten(results)
        return self._evaluate(static, args, kwargs, leaves, treedef)

    def _compiled(
        self, static: Static, args: tuple, kwargs: dict[str, Any], leaves: Sequence, treedef: Any
    ) -> Run:
        names = self._names(static, args, kwargs)
        dims, size = self._mapping(static, args, kwargs, leaves)
        body = self.body(static, leaves, treedef, dims, size, names)
        for value in body.captured:
            refuse_escaped(value)
        donated = self._donated(static, args, kwargs)
        whole = body.whole([plain(typeof(x)) for x in leaves])
        passed = Passed.of(whole, donated, names, self.who, every=True)
        compiled = compile_program(whole, signatures(leaves, passed), passed.donate)
        return caller(compiled, leaves, passed, body.out_tree)

    def _mapping(
        self, static: Static, args: tuple, kwargs: dict[str, Any], leaves: Sequence[Any]
    ) -> tuple[list[int | None], int]:
        """Per leaf the dimension that is mapped, and the size of the axis."""
        names = self._names(static, args, kwargs)
        for i, x in enumerate(leaves):
            if not is_value(x):
                check_leaf(x, names[i], self.who)
        dims = self._input_dims(static, args, kwargs, names)
        size = mapped_size(leaves, dims, names, self.axis_size, self.who, len(kwargs))
        self._check_size(size)
        return dims, size

    def _input_dims(
        self, static: Static, args: tuple, kwargs: dict, names: LeafNames
    ) -> list[int | None]:
        spec = self.in_axes
        if isinstance(spec, (tuple, list)) and static is not NO_STATIC:
            taken = {i for i, _ in static.positional}
            spec = tuple(s for i, s in enumerate(spec) if i not in taken)
        return input_dims(spec, args, kwargs, names, self.who)

    def _check_size(self, size: int) -> None:
        if size < 1:
            raise ValueError(f"{self.who}: the mapped axis must have at least one lane, got {size}")
        if self.devices is not None and _enclosing.get() is not None:
            raise ValueError(  # "Nested ... argument" is how the field says it, for matching
                f"{self.who}: Nested pmap with explicit devices argument. Give devices to the "
                f"outermost, {_enclosing.get()}; the inner axis is laid over what remains"
            )

    def body(
        self, static: Static, leaves: Sequence[Any], treedef: Any, dims: Sequence[int | None],
        size: int, names: LeafNames,
    ) -> TracedLane:  # fmt: skip
        """The function traced in one lane; made once, unless it captures traced values."""
        lanes = tuple([_lane(typeof(x), d) for x, d in zip(leaves, dims, strict=True)])
        key = (static, treedef, lanes, tuple(dims), size, config.key, axes.scope())
        body = self.caches.traced[key]
        if body is None:
            body = self._trace(static, treedef, lanes, dims, size, names)
            if body.reusable:
                self.caches.traced[key] = body  # type: ignore[assignment]
        return body  # type: ignore[return-value]

    def _trace(
        self, static: Static, treedef: Any, lanes: tuple, dims: Sequence[int | None], size: int,
        names: LeafNames,
    ) -> TracedLane:  # fmt: skip
        flat = Flat(self.fun, treedef, static, self.who)
        with axes.binding(self.axis, size), inside(self.who):
            program, captured = stage(flat, lanes, name_of(self.fun), names.all())
        ranks = [t.ndim for t in program.output_types]
        out_dims = tuple(output_dims(self.out_axes, flat.out_tree, ranks, self.who))
        in_dims = (None,) * len(captured) + tuple(dims)
        _check_replicated(program, self.axis, in_dims, out_dims, flat.out_tree, self.who)
        params = {
            "program": program,
            "axes": ((self.axis, size),),
            "ins": tuple([slices(along(d, self.axis)) for d in in_dims]),
            "outs": tuple([slices(along(d, self.axis)) for d in out_dims]),
            "devices": self.devices,
            "mesh": None,
        }
        return TracedLane(program, captured, flat.out_tree, params)

    def _eagerly(
        self, static: Static, leaves: Sequence[Any], treedef: Any, dims: Sequence, size: int
    ) -> Any:
        """Without compiling the function: operation by operation, on all lanes at once."""
        flat = Flat(self.fun, treedef, static, self.who)
        available = self.devices if self.devices is not None else backend().local_devices()
        used = available[: fewest_blocks(size, len(available)).count]
        several = len(used) > 1 and _enclosing.get() is None
        placed = [
            self._over_devices(x, d, used) if several else x
            for x, d in zip(leaves, dims, strict=True)
        ]
        with axes.binding(self.axis, size), inside(self.who):
            lanes_here = Axis(self.axis, size, Split(self.axis, Blocks(size, 1)))
            values, lanes = batch(flat, lanes_here, placed, dims)
        ranks = [typeof(v).ndim - (d is not None) for v, d in zip(values, lanes, strict=True)]
        wanted = output_dims(self.out_axes, flat.out_tree, ranks, self.who)
        out = []
        for v, d, to in zip(values, lanes, wanted, strict=True):
            if to is None and d is not None:
                raise ReplicationError(_differs(self.who, "a result", self.axis, []))
            whole = v if to is None else place_lanes(v, d, to, size)
            out.append(self._over_devices(whole, to, used) if several else whole)
        return flat.out_tree.unflatten(out)

    def _over_devices(self, x: Any, dim: int | None, devices: Sequence) -> Any:
        if isinstance(x, Tracer):
            return x
        tiles = () if dim is None else (1,) * dim + (len(devices),)
        return moved(as_array(x), Sharding(devices, tiles))

    def placement(self, *args: Any, **kwargs: Any) -> placement.Placement:
        """Where the lanes run for such arguments: arrays, numbers or ``ShapeDtypeStruct``.

        >>> import phalanx, phalanx.numpy as jnp
        >>> f = phalanx.pmap(lambda x: x + 1, axis_name="i", devices=phalanx.devices()[:1])
        >>> where = f.placement(jnp.zeros((6, 2)))
        >>> where.size, where.lanes, where.padding, len(where.devices)
        (6, 6, 0, 1)
        """
        whole = self.trace(*args, **kwargs).program
        local = tuple(backend().local_devices())
        mesh = placement.mesh_of(whole, local)
        return placement.placements(whole, mesh, local[:1])[0]

    # ---- ahead of time ----

    def trace(self, *args: Any, **kwargs: Any) -> stages.Traced:
        """Trace at the types of the arguments: arrays, numbers or ``ShapeDtypeStruct``."""
        static, rest, named = self._split(args, kwargs)
        leaves, treedef = tree.flatten((rest, named))
        names = self._names(static, rest, named)
        types = [aot.abstract(x, names, i, self.who) for i, x in enumerate(leaves)]
        shells = [_Shell(t) for t in types]
        shell_args, shell_kwargs = tree.unflatten(treedef, shells)
        dims, size = self._mapping(static, shell_args, shell_kwargs, shells)
        body = self.body(static, shells, treedef, dims, size, names)
        call_traced = stages.TracedCall(
            self.who, names, static, body.whole(types), body.captured, treedef, body.out_tree,
            types, [aot.sharding_of(x) for x in leaves], self._donated(static, rest, named),
        )  # fmt: skip
        return stages.Traced(call_traced)


def _snapshot(spec: Any) -> tuple[Any, tuple]:
    """A tree of axes that no one else can change, and what it is in a key."""
    leaves, treedef = tree.flatten(spec, is_none)
    return treedef.unflatten(leaves), (treedef, *map(key_of, leaves))


class _Shell(Tracer):
    """Stands for an argument of which only the type is known."""

    __slots__ = ()

    def __init__(self, type: ArrayType) -> None:
        super().__init__(ROOT, type)


@contextmanager
def inside(who: str) -> Iterator[None]:
    """While the body of a pmap is traced."""
    token = _enclosing.set(who)
    try:
        yield
    finally:
        _enclosing.reset(token)


def is_inside() -> str | None:
    """The pmap whose body is being traced, if there is one."""
    return _enclosing.get()


def _lane(type: ArrayType, dim: int | None) -> ArrayType:
    return plain(type) if dim is None else lane_type(type, dim)


def _checked_devices(devices: Any, platform: str | None, who: str) -> tuple | None:
    if devices is None:
        return None if platform is None else tuple(backend().local_devices(platform))
    chosen = tuple(devices)
    strange = next((d for d in chosen if not hasattr(d, "device_kind")), None)
    if strange is not None:
        raise TypeError(f"{who}: devices must be a sequence of devices, got {strange!r} in it")
    if not chosen:
        # "'devices' argument ... or None" is the field's, for matching
        raise ValueError(f"{who}: 'devices' argument to pmap must be non-empty, or None for all")
    repeated = [d for i, d in enumerate(chosen) if d in chosen[:i]]
    if repeated:
        raise ValueError(f"{who}: devices repeats {repeated[0]}; each may occur once")
    return chosen


def _check_replicated(
    program: Program, axis: Any, in_dims: Sequence, out_dims: Sequence, out_tree: Any, who: str
) -> None:
    """Raise ReplicationError if a result with out_axes None may differ between lanes."""
    if None not in out_dims:
        return
    inputs = [frozenset() if d is None else frozenset({axis}) for d in in_dims]
    varying = varying_outputs(program, inputs)
    paths = tree.leaves_with_path(out_tree.unflatten([0] * out_tree.num_leaves))
    for (path, _), atom, dim, v in zip(paths, program.outputs, out_dims, varying, strict=True):
        if dim is None and axis in v:
            where = culprits(program, inputs, atom, axis)
            raise ReplicationError(_differs(who, "result" + tree.keystr(path), axis, where))


def _differs(who: str, what: str, axis: Any, where: list[Equation]) -> str:
    lines = list(dict.fromkeys(str(e.location) for e in where if e.location is not None))
    cause = f": it uses mapped values at {', '.join(lines[:3])}" if lines else ""
    named = "" if axes.is_internal(axis) else f" of {axis!r}"
    shown = "axis_name" if axes.is_internal(axis) else repr(axis)
    return (
        f"{who}: {what} has out_axes None but differs between lanes{named}{cause}. "
        f"Reduce it over the axis, with lax.pmean(x, {shown}) or lax.psum, or give out_axes "
        "an integer to get the value of every lane"
    )


def pmap(
    fun: Callable | None = None,
    axis_name: Any = None,
    *,
    in_axes: Any = 0,
    out_axes: Any = 0,
    static_broadcasted_argnums: int | Sequence[int] = (),
    devices: Sequence[Any] | None = None,
    backend: str | None = None,
    axis_size: int | None = None,
    donate_argnums: int | Sequence[int] = (),
) -> Any:
    """``fun`` in every lane of an axis, distributed over devices: out[i] = fun(x[i]).

    The axis has any size. Its lanes are dealt out over the devices in equal blocks; by the pmap
    law the values are those that ``vmap`` with the same arguments gives.

    Args:
        fun: a function of trees of arrays, of one lane. Without it, a decorator is returned.
        axis_name: a name by which collectives in ``fun`` refer to the axis.
        in_axes: which axis of each argument is mapped: an integer, None for an argument that
            every lane gets whole, or a tuple of trees of them, one per positional argument.
            Keyword arguments are mapped over axis 0.
        out_axes: where the axis goes in each result; None for a result that is the same in
            every lane, which is checked, and comes back once.
        static_broadcasted_argnums: positions of arguments that are Python values, fixed while
            tracing; they must be hashable.
        devices: the devices that share the lanes, in this order; default all local ones.
        backend: the platform whose devices to use, such as ``"cpu"``.
        axis_size: the size of the axis, where no argument tells, or to check it.
        donate_argnums: positions of arguments whose memory the results may take over.

    Returns:
        A function with the methods ``lower``, ``trace``, ``eval_shape``, ``clear_cache`` and
        ``placement``, which tells where the lanes run.

    Raises:
        AxisSizeError: the arguments disagree about the size of the axis.
        TreeError: in_axes or out_axes do not fit the tree.
        ReplicationError: a result with out_axes None may differ between lanes.

    >>> import phalanx, phalanx.numpy as jnp
    >>> share = phalanx.pmap(lambda x: x / phalanx.lax.psum(x, "i"), axis_name="i")
    >>> share(jnp.array([1.0, 3.0]))
    Array([0.25, 0.75], dtype=float32)
    """
    options = {
        "in_axes": in_axes,
        "out_axes": out_axes,
        "static_broadcasted_argnums": static_broadcasted_argnums,
        "devices": devices,
        "backend": backend,
        "axis_size": axis_size,
        "donate_argnums": donate_argnums,
    }
    if fun is None:
        return functools.partial(pmap, axis_name=axis_name, **options)
    check_callable(fun, "pmap")
    check_axis_name(axis_name, "pmap")
    mapped = Pmapped(fun, axis_name, **options)
    return mapped.function(mapped.placement)
