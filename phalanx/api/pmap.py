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
    Flat,
    LeafNames,
    Static,
    check_callable,
    check_leaf,
    name_of,
    result_names,
    static_positions,
    without_static,
)
from phalanx.api.dispatch import KEPT, Dispatched, Run, TracedFunction
from phalanx.api.mapping import MappedAxes, differs, on_all_lanes
from phalanx.api.passing import Passed, caller, signatures
from phalanx.api.specs import snapshot
from phalanx.base import tree
from phalanx.base.config import config
from phalanx.base.errors import ReplicationError
from phalanx.base.recent import Recent
from phalanx.base.source import user_location
from phalanx.control.mapped import mapped
from phalanx.core import axes
from phalanx.core.blocks import fewest_blocks
from phalanx.core.program import Equation, Program, Var, plain
from phalanx.core.region import Axes, Layout
from phalanx.core.roles import slices
from phalanx.core.trace import ROOT, Tracer, current, refuse_escaped
from phalanx.core.types import ArrayType, typeof
from phalanx.run.array import moved
from phalanx.run.eager import as_array
from phalanx.run.execute import compile_program
from phalanx.run.runtime import backend
from phalanx.spmd import placement
from phalanx.spmd.mesh import Mesh
from phalanx.spmd.named import P, PmapSharding
from phalanx.spmd.replication import culprits, varying_outputs
from phalanx.transforms.stage import is_value, stage

_SPACE = "phalanx"
_enclosing: ContextVar[str | None] = ContextVar("enclosing pmap", default=None)


@dataclass(slots=True)
class TracedLane(TracedFunction):
    """A mapped function traced at the types of a lane: the body of ``mapped``."""

    params: dict[str, Any]
    wholes: Recent[Program] = field(default_factory=lambda: Recent(KEPT))

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
        mesh: Mesh | None = None,
    ) -> None:
        self.fun = fun
        self.who = f"pmap({name_of(fun)})"
        self.axes = MappedAxes.of(self.who, axis_name, mesh)
        self.in_axes, in_key = snapshot(in_axes)
        self.out_axes, out_key = snapshot(out_axes)
        self.axis_size = axis_size
        self.static_nums, _ = static_positions(fun, static_broadcasted_argnums, None, self.who)
        self.donate_nums, _ = static_positions(fun, donate_argnums, None, self.who, "donated")
        if set(self.static_nums) & set(self.donate_nums):
            raise ValueError(f"{self.who}: an argument cannot be both static and donated")
        # arguments passed by keyword are mapped, whatever the positions say
        self.static_names = self.donate_names = frozenset()
        self.devices = _checked_devices(devices, backend, self.who)
        if mesh is not None and self.devices is not None:
            raise ValueError(
                f"{self.who}: mesh= says which devices to use, so leave out devices= and backend=, "
                f"at {user_location()}"
            )
        if axis_size is not None and len(self.axes.names) > 1:
            raise ValueError(
                f"{self.who}: axis_size={axis_size!r} is the size of one axis, and there are "
                f"{self.axes.names}, at {user_location()}; sizes are told by the arguments, or "
                "else by the mesh"
            )
        self._remember(self.axes, in_key, out_key, axis_size, self.devices)

    def _call(self, static: Static, args: tuple, kwargs: dict[str, Any]) -> Any:
        leaves, treedef = tree.flatten((args, kwargs))
        if config.disable_jit or current() is not ROOT:
            layouts, sizes = self._mapping(static, args, kwargs, leaves)
            if config.disable_jit:
                return self._eagerly(static, leaves, treedef, layouts, sizes)
            names = self._names(static, args, kwargs)
            body = self.body(static, leaves, treedef, layouts, sizes, names)
            results = mapped(*body.captured, *leaves, **body.params)
            return body.out_tree.unflatten(results)
        return self._evaluate(static, args, kwargs, leaves, treedef)

    def _compiled(
        self, static: Static, args: tuple, kwargs: dict[str, Any], leaves: Sequence, treedef: Any
    ) -> Run:
        names = self._names(static, args, kwargs)
        layouts, sizes = self._mapping(static, args, kwargs, leaves)
        body = self.body(static, leaves, treedef, layouts, sizes, names)
        for value in body.captured:
            refuse_escaped(value)
        donated = self._donated(static, args, kwargs)
        whole = body.whole([plain(typeof(x)) for x in leaves])
        passed = Passed.of(whole, donated, names, self.who, every=True)
        compiled = compile_program(whole, signatures(leaves, passed), passed.donate)
        return caller(compiled, leaves, passed, body.out_tree)

    def _mapping(
        self, static: Static, args: tuple, kwargs: dict[str, Any], leaves: Sequence[Any]
    ) -> tuple[list[Layout], Axes]:
        """Per leaf the axes that are mapped in its dimensions, and the size of each axis."""
        names = self._names(static, args, kwargs)
        for i, x in enumerate(leaves):
            if not is_value(x):
                check_leaf(x, names[i], self.who)
        in_axes = without_static(self.in_axes, static)
        layouts = self.axes.of_inputs(in_axes, args, kwargs, leaves, names)
        sizes = self.axes.sizes(leaves, layouts, names, self.axis_size, len(kwargs))
        self._check_nesting()
        return layouts, sizes

    def _check_nesting(self) -> None:
        if self.devices is not None and _enclosing.get() is not None:
            raise ValueError(  # "Nested ... argument" is how the field says it, for matching
                f"{self.who}: Nested pmap with explicit devices argument. Give devices to the "
                f"outermost, {_enclosing.get()}; the inner axis is laid over what remains"
            )

    def body(
        self, static: Static, leaves: Sequence[Any], treedef: Any, layouts: Sequence[Layout],
        sizes: Axes, names: LeafNames,
    ) -> TracedLane:  # fmt: skip
        """The function traced in one lane; made once, unless it captures traced values."""
        pairs = zip(leaves, layouts, strict=True)
        lanes = tuple([slices(y).inner(plain(typeof(x)), sizes) for x, y in pairs])
        key = (static, treedef, lanes, tuple(layouts), sizes, config.key, axes.scope())
        body = self.caches.traced[key]
        if body is None:
            body = self._trace(static, treedef, lanes, layouts, sizes, names)
            if body.reusable:
                self.caches.traced[key] = body  # type: ignore[assignment]
        return body  # type: ignore[return-value]

    def _trace(
        self, static: Static, treedef: Any, lanes: tuple, layouts: Sequence[Layout], sizes: Axes,
        names: LeafNames,
    ) -> TracedLane:  # fmt: skip
        flat = Flat(self.fun, treedef, static, self.who)
        with axes.binding(*sizes), inside(self.who):
            program, captured = stage(flat, lanes, name_of(self.fun), names.all())
        ranks = [t.ndim for t in program.output_types]
        out_layouts = self.axes.of_outputs(self.out_axes, flat.out_tree, ranks)
        in_layouts = [*[()] * len(captured), *layouts]
        self._check_replicated(program, in_layouts, out_layouts, flat.out_tree)
        params = {
            "program": program,
            "axes": sizes,
            "ins": tuple(map(slices, in_layouts)),
            "outs": tuple(map(slices, out_layouts)),
            "devices": self.devices,
            "mesh": self.axes.mesh,
        }
        return TracedLane(program, captured, flat.out_tree, params)

    def _check_replicated(
        self, program: Program, ins: Sequence[Layout], outs: Sequence[Layout], out_tree: Any
    ) -> None:
        """Raise ReplicationError if a result may differ along an axis that is not mapped in it."""
        alike = [frozenset(self.axes.names).difference(*y) for y in outs]
        if not any(alike):
            return
        inputs = [slices(y).axes for y in ins]
        varying = varying_outputs(program, inputs)
        names = result_names(out_tree)
        results = zip(names, program.outputs, outs, alike, varying, strict=True)
        for name, atom, layout, same, over in results:
            for axis in (a for a in self.axes.names if a in same & over):
                where = culprits(program, inputs, atom, axis)
                raise ReplicationError(differs(self.who, name, layout, axis, where))

    def _eagerly(
        self, static: Static, leaves: Sequence[Any], treedef: Any, layouts: Sequence[Layout],
        sizes: Axes,
    ) -> Any:  # fmt: skip
        """Without compiling the function: operation by operation, on all lanes at once."""
        flat = Flat(self.fun, treedef, static, self.who)
        put = self._put_over_devices(sizes)
        placed = [put(x, y) for x, y in zip(leaves, layouts, strict=True)]

        def outputs(ranks: Sequence[int]) -> Sequence[Layout]:
            return self.axes.of_outputs(self.out_axes, flat.out_tree, ranks)

        with axes.binding(*sizes), inside(self.who):
            made = on_all_lanes(flat, sizes, placed, layouts, outputs, self.who)
        return flat.out_tree.unflatten([put(x, y) for x, y in zip(*made, strict=True)])

    def _put_over_devices(self, sizes: Axes) -> Callable[[Any, Layout], Any]:
        """A function that puts an array of a layout on the devices over which the axes lie."""
        lanes, mesh = {str(axis): size for axis, size in sizes}, self.axes.mesh
        if mesh is None:
            devices = tuple(self.devices or backend().local_devices())
            mesh = Mesh(placement.row(devices), tuple(lanes))
        counts = [fewest_blocks(lanes.get(axis, n), n).count for axis, n in mesh.axes]
        held = Mesh(mesh.devices[tuple(map(slice, counts))], mesh.axis_names)

        def put(x: Any, layout: Layout) -> Any:
            if isinstance(x, Tracer) or held.size == 1 or _enclosing.get() is not None:
                return x
            spec = P.of(tuple([tuple(map(str, cutting)) for cutting in layout]))
            return moved(as_array(x), PmapSharding(held, spec))

        return put

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
        layouts, sizes = self._mapping(static, shell_args, shell_kwargs, shells)
        body = self.body(static, shells, treedef, layouts, sizes, names)
        call_traced = stages.TracedCall(
            self.who, names, static, body.whole(types), body.captured, treedef, body.out_tree,
            types, aot.homes(leaves, names, self.who), self._donated(static, rest, named),
        )  # fmt: skip
        return stages.Traced(call_traced)


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
    mesh: Mesh | None = None,
) -> Any:
    """``fun`` in every lane of an axis, distributed over devices: out[i] = fun(x[i]).

    The axis has any size. Its lanes are dealt out over the devices in equal blocks; by the pmap
    law the values are those that ``vmap`` with the same arguments gives.

    With a ``mesh`` there may be several axes, each dealt out over the devices along an axis of the
    mesh; the values are those of one ``vmap`` for each, the first axis outermost.

    Args:
        fun: a function of trees of arrays, of one lane. Without it, a decorator is returned.
        axis_name: a name by which collectives in ``fun`` refer to the axis. With a mesh, the name
            of one of its axes or a tuple of some; all if not given.
        in_axes: which axis of each argument is mapped: an integer, None for an argument that
            every lane gets whole, or a tuple of trees of them, one per positional argument.
            Keyword arguments are mapped over axis 0. With a mesh, a ``PartitionSpec`` has at place
            ``d`` the name of the axis that is mapped in dimension ``d``, or None; an integer means
            as many dimensions in a row as there are axes, from that one on.
        out_axes: where the axis goes in each result; None for a result that is the same in
            every lane, which is checked, and comes back once. With a mesh, in the same words as
            ``in_axes``; along axes that it does not name a result must be the same.
        static_broadcasted_argnums: positions of arguments that are Python values, fixed while
            tracing; they must be hashable.
        devices: the devices that share the lanes, in this order; default all local ones.
        backend: the platform whose devices to use, such as ``"cpu"``.
        axis_size: the size of the axis, where no argument tells, or to check it.
        donate_argnums: positions of arguments whose memory the results may take over.
        mesh: the devices in a grid. An axis that has fewer lanes than the mesh has devices along
            it takes the first ones; along axes of the mesh that are not in ``axis_name`` the
            compiler may share the work of a lane out. Instead of ``devices`` and ``backend``.

    Returns:
        A function with the methods ``lower``, ``trace``, ``eval_shape``, ``clear_cache`` and
        ``placement``, which tells where the lanes run.

    Raises:
        AxisSizeError: the arguments disagree about the size of the axis.
        TreeError: in_axes or out_axes do not fit the tree.
        ValueError: a name is no axis of the mesh, or a spec does not fit an array.
        ReplicationError: a result with out_axes None may differ between lanes.

    >>> import phalanx, phalanx.numpy as jnp
    >>> share = phalanx.pmap(lambda x: x / phalanx.lax.psum(x, "i"), axis_name="i")
    >>> share(jnp.array([1.0, 3.0]))
    Array([0.25, 0.75], dtype=float32)

    >>> from phalanx import P
    >>> mesh = phalanx.make_mesh((1, 1), ("data", "model"))
    >>> @phalanx.pmap(mesh=mesh, in_axes=(P("data"), P(None, "model")), out_axes=P("data", "model"))
    ... def product(row, column):
    ...     return row @ column
    >>> product(jnp.ones((2, 3)), jnp.ones((3, 4))).shape
    (2, 4)
    """
    options = {
        "in_axes": in_axes,
        "out_axes": out_axes,
        "static_broadcasted_argnums": static_broadcasted_argnums,
        "devices": devices,
        "backend": backend,
        "axis_size": axis_size,
        "donate_argnums": donate_argnums,
        "mesh": mesh,
    }
    if fun is None:
        return functools.partial(pmap, axis_name=axis_name, **options)
    check_callable(fun, "pmap")
    mapped = Pmapped(fun, axis_name, **options)
    return mapped.function(mapped.placement)
