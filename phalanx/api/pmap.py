"""``pmap``: a function of one lane becomes a function of a whole axis, distributed over devices."""

from __future__ import annotations

import functools
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, overload

from msgspec import Struct

from phalanx.api.arguments import (
    CallArgs,
    Flat,
    LeafNames,
    check_callable,
    result_names,
    without_static,
)
from phalanx.api.enclosing import enclosing, inside
from phalanx.api.in_chunks import checked_at_once
from phalanx.api.mapping import MappedAxes, differs
from phalanx.api.one_by_one import at_every_position, spread
from phalanx.api.over_processes import devices_of_all, group_of, over_processes
from phalanx.api.positions import Positions, running_at
from phalanx.api.ref_calls import (
    array_types,
    store_copies,
    with_copies,
)
from phalanx.api.reproducible_lanes import (
    as_reproducible,
    inside_lanes,
    is_reproducible,
    on_operands,
    refuse_in_lanes,
    refuse_other_orders,
)
from phalanx.api.specs import snapshot
from phalanx.api.staged import StagedFunction
from phalanx.api.traced_function import TracedFunction
from phalanx.api.transformed import Compiling, InAxes, P, R, Wrapped
from phalanx.api.vmap import UNNAMED
from phalanx.base.boundary import hiding
from phalanx.base.config import config
from phalanx.base.errors import AxisSizeError, ReplicationError, ShardingTypeError
from phalanx.base.source import user_location
from phalanx.control.chunks import AtOnce
from phalanx.control.mapped import mapped
from phalanx.control.spanned import spanned
from phalanx.control.vectorized import vectorized
from phalanx.core import axes
from phalanx.core.blocks import fewest_blocks
from phalanx.core.correspond import how_to_sum
from phalanx.core.layouts import Axes
from phalanx.core.platforms import sequence_of
from phalanx.core.program import Program
from phalanx.core.refs import refuse_aliases, refuse_differing
from phalanx.core.roles import FIXED, Role, Roles
from phalanx.core.types import ArrayType, typeof
from phalanx.run.runtime import backend
from phalanx.run.spanning import SpannedAxis
from phalanx.spmd import placement
from phalanx.spmd.mesh import Mesh
from phalanx.spmd.named import PmapSharding
from phalanx.transforms.replication import culprits, varying_outputs
from phalanx.transforms.stage import Staged, loaded

if TYPE_CHECKING:
    from phalanx.processes.group import Group


class _Context(Struct, frozen=True):
    """What each leaf is to a lane, the size of each axis, and who shares the lanes: ``devices``,
    None for the local ones, and ``processes`` where the rows are theirs."""

    in_axes: Roles
    axis_sizes: Axes
    devices: tuple[Any, ...] | None
    processes: Group | None


class Pmapped(StagedFunction):
    """A mapped function. Called, it runs the function in every lane of its axis."""

    def __init__(
        self,
        fun: Callable[..., Any],
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
        lanes_at_once: AtOnce = None,
        reproducible: bool | None = None,
    ) -> None:
        super().__init__(fun, "pmap")
        self.at_once: AtOnce = checked_at_once(lanes_at_once, self.who)
        self.reproducible = reproducible
        self.axes = MappedAxes.of(self.who, axis_name, mesh)
        self.in_axes, in_key = snapshot(in_axes)
        self.out_axes, out_key = snapshot(out_axes)
        self.axis_size = axis_size
        chosen = (static_broadcasted_argnums, None), (donate_argnums, None)
        self._set_positions(*chosen, unset_is_none=False)
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
        key = self.axes, in_key, out_key, axis_size, self.devices, self.at_once, reproducible
        self._remember(*key)

    def _shared_by(
        self, leaves: Sequence[Any], ins: Roles, names: LeafNames
    ) -> tuple[tuple[Any, ...] | None, Group | None]:
        """The devices that share the lanes, None for the local ones; and the processes whose rows
        they are, None if ``leaves`` are all that is mapped."""
        if enclosing() or self.axes.mesh is not None:
            return self.devices, None
        of_all = devices_of_all(leaves, ins, names, self.who)
        if of_all is not None:
            return self.devices or of_all, None
        return self.devices, group_of(self.devices, self.who)

    def _span(self, group: Group, sizes: Axes) -> SpannedAxis:
        return SpannedAxis(self.who, group, self.devices, *sizes[0])

    def _context(self, arguments: CallArgs) -> _Context:
        names, types = arguments.names, array_types(arguments.types)
        in_axes = without_static(self.in_axes, arguments.static)
        ins = self.axes.of_inputs(in_axes, arguments.args, arguments.kwargs, types, names)
        try:
            sizes = self.axes.sizes(types, ins, names, self.axis_size, len(arguments.kwargs))
        except AxisSizeError as e:
            if spanning := over_processes(arguments.leaves):
                e.add_note(
                    f"{names[next(iter(spanning))]} is an array over processes, so sizes are those "
                    "of all of them. make_array_from_process_local_data makes such an array of the "
                    "rows of each process"
                )
            raise
        self._check_nesting()
        return _Context(ins, sizes, *self._shared_by(arguments.leaves, ins, names))

    def _check_nesting(self) -> None:
        if self.devices is not None and enclosing() is not None:
            raise ValueError(  # "Nested ... argument" is how the field says it, for matching
                f"{self.who}: Nested pmap with explicit devices argument. Give devices to the "
                f"outermost, {enclosing()}; the inner axis is laid over what remains"
            )

    def _trace(self, arguments: CallArgs, context: _Context) -> TracedFunction:
        ins, sizes, types = context.in_axes, context.axis_sizes, array_types(arguments.types)
        span = context.processes and self._span(context.processes, sizes)
        at_once = as_reproducible(self.at_once, self.reproducible, self.who)
        with self._entered(sizes, span), inside_lanes(at_once):
            lanes = [r.inner(t, sizes) for t, r in zip(types, ins, strict=True)]
            flat, staged = self._stage(arguments, lanes)
        program, captured, written = staged
        if is_reproducible(at_once):
            refuse_other_orders(program, self.who)
        results = program.output_types[len(written) :]
        for type, name in zip(results, result_names(flat.out_tree), strict=False):
            _refuse_sums(type, name, self.who)
        outs = (FIXED,) * len(written) + self._outs(flat, [t.ndim for t in results], ins)
        ins = (FIXED,) * len(captured) + ins
        self._check_replicated(staged, ins, outs, flat, arguments.names)
        params = {
            "program": program,
            "axes": sizes,
            "ins": ins,
            "outs": outs,
            "at_once": at_once,
        }
        anywhere = context.devices is None and self.axes.mesh is None
        if is_reproducible(at_once) and on_operands() and anywhere and span is None:
            prim, where = vectorized, {}
        elif span is None:
            prim, where = mapped, {"devices": context.devices, "mesh": self.axes.mesh}
        else:
            prim, where = spanned, {"span": span}
        input_types = [*[typeof(c) for c in loaded(captured)], *types]
        mapped_program = Program.of_one(prim, input_types, params | where, f"pmap_{program.name}")
        refuse_in_lanes(mapped_program, self.who)
        return TracedFunction(mapped_program, captured, flat.out_tree, written, flat.stored)

    def _outs(self, flat: Flat, ranks: Sequence[int], ins: Roles) -> Roles:
        """The roles of what ``flat`` gives: its results, of ``ranks`` dimensions in one lane, and
        what its arguments hold in the end, cut as before."""
        results = ranks[: flat.out_tree.num_leaves]
        outs = self.axes.of_outputs(self.out_axes, flat.out_tree, results)
        return (*outs, *(ins[i] for i in flat.stored))

    @contextmanager
    def _entered(self, sizes: Axes, span: SpannedAxis | None = None) -> Generator[None]:
        """While the function is traced in one lane; a ``shard_map`` takes axes of the mesh that
        are left."""
        mesh = self.axes.mesh
        if mesh is None:
            bound = sizes if span is None else ((span.axis, span),)
            with axes.binding(*bound), inside(self.who):
                yield
        else:
            with running_at(Positions(sizes, mesh), self.who):
                yield

    def _check_replicated(
        self, staged: Staged, ins: Roles, outs: Roles, flat: Flat, leaves: LeafNames
    ) -> None:
        """Raise an error if a result, or what a reference holds in the end, may differ along an
        axis that is not mapped in it: ReplicationError, or RefError of one from outside."""
        program, _, written = staged
        alike = [frozenset(self.axes.names) - r.axes for r in outs]
        if not any(alike):
            return
        inputs = [r.axes for r in ins]
        varying = varying_outputs(program, inputs)
        for (ref, where), over in zip(written.items(), varying, strict=False):
            if not over.isdisjoint(self.axes.names):
                refuse_differing(ref, where, self.who)
        ends: list[tuple[str, str]] = [("", "")] * len(written)
        ends += [(name, "out_axes") for name in result_names(flat.out_tree)]
        ends += [(f"what {leaves[i]} holds", "in_axes") for i in flat.stored]
        results = zip(ends, program.outputs, outs, alike, varying, strict=True)
        for (name, option), atom, role, same, over in results:
            for axis in (a for a in self.axes.names if a in same & over):
                where = culprits(program, inputs, atom, axis)
                raise ReplicationError(differs(self.who, name, role, axis, where, option))

    def _one_by_one(self, arguments: CallArgs) -> Any:
        """Without compiling the function: operation by operation, in all lanes at once; rows of
        processes are mapped together."""
        self._check(arguments)
        leaves, context = arguments.leaves, self._context(arguments)
        ins, sizes = context.in_axes, context.axis_sizes
        if context.processes is not None:
            with config.override(disable_jit=False):
                return self._bind(arguments)
        flat = self._flat(arguments)
        refuse_aliases(leaves, (), self.who)

        def outs(results: Sequence[Any]) -> Roles:
            return self._outs(flat, [typeof(y).ndim for y in results], ins)

        def refuse(role: Role, axis: Any) -> None:
            raise ReplicationError(differs(self.who, "a result", role, axis, []))

        mesh = self._mesh_of_lanes(sizes, context.devices or tuple(backend().local_devices()))
        values = spread(with_copies(leaves, flat.refs), ins, mesh, PmapSharding)
        with self._entered(sizes):
            results, roles = at_every_position(flat, sizes, values, ins, outs, refuse)
        placed = spread(results, roles, mesh, PmapSharding)
        placed = store_copies([leaves[i] for i in flat.stored], placed, values)
        return flat.out_tree.unflatten(placed)

    def _mesh_of_lanes(self, sizes: Axes, devices: tuple[Any, ...]) -> Mesh:
        """The devices that have lanes, where the axes have these ``sizes``, as a mesh: a part of
        the mesh of the function, or else of ``devices``."""
        lanes, mesh = {str(axis): size for axis, size in sizes}, self.axes.mesh
        if mesh is None:
            mesh = Mesh(placement.row(devices), tuple(lanes))
        if mesh.is_multi_process:  # every process takes part
            return mesh
        counts = [fewest_blocks(lanes.get(axis, n), n).count for axis, n in mesh.axes]
        return Mesh(mesh.devices[tuple(map(slice, counts))], mesh.axis_names)

    def _shown(self) -> str:
        named = [repr(name) for name in self.axes.names if name is not UNNAMED]
        return super()._shown() + (f", over {', '.join(named)}" if named else "")

    @hiding
    def placement(self, *args: Any, **kwargs: Any) -> placement.Placement:
        """Where the lanes run for such arguments: arrays, numbers or ``ShapeDtypeStruct``.

        >>> import phalanx, phalanx.numpy as jnp
        >>> f = phalanx.pmap(lambda x: x + 1, axis_name="i", devices=phalanx.devices()[:1])
        >>> where = f.placement(jnp.zeros((6, 2)))
        >>> where.size, where.lanes, where.padding, len(where.devices)
        (6, 6, 0, 1)
        """
        program = self.trace(*args, **kwargs).program
        (equation,) = program.equations
        if equation.prim is spanned:
            return equation.params["span"].shard.placement
        local = tuple(backend().local_devices())
        mesh = placement.mesh_of(program, local)
        return placement.placements(program, mesh, local[:1])[0]


def _refuse_sums(type: ArrayType, name: str, who: str) -> None:
    """Raise ShardingTypeError if a result in one lane, of ``type``, is a sum still to be taken, or
    one whose cotangent is: those are over devices, and the lanes have these."""
    if type.spec is not None and type.spec.has_sums:
        raise ShardingTypeError(
            f"{who}: the {name} is {type}, at {user_location()}, and lanes do not return unreduced "
            f"or reduced arrays. Take the sum in the lane, {how_to_sum(type)}, or use shard_map, "
            "whose specs tell them"
        )


def _checked_devices(devices: Any, platform: str | None, who: str) -> tuple[Any, ...] | None:
    if devices is None:
        return None if platform is None else tuple(backend().local_devices(platform))
    chosen = sequence_of(devices, who)
    strange = next((d for d in chosen if not hasattr(d, "device_kind")), None)
    if strange is not None:
        raise TypeError(f"{who}: devices must be a sequence of devices, got {strange!r} in it")
    if not chosen:
        # "'devices' argument ... or None" is the field's, for matching
        raise ValueError(f"{who}: 'devices' argument to pmap must be non-empty, or None.")
    repeated = [d for i, d in enumerate(chosen) if d in chosen[:i]]
    if repeated:
        raise ValueError(f"{who}: devices repeats {repeated[0]}; each may occur once")
    return chosen


@overload
def pmap(
    fun: Callable[P, R],
    axis_name: Any = None,
    *,
    in_axes: InAxes = 0,
    out_axes: Any = 0,
    static_broadcasted_argnums: int | Sequence[int] = (),
    devices: Sequence[Any] | None = None,
    backend: str | None = None,
    axis_size: int | None = None,
    donate_argnums: int | Sequence[int] = (),
    mesh: Mesh | None = None,
    lanes_at_once: AtOnce = None,
    reproducible: bool | None = None,
) -> Wrapped[P, R]: ...
@overload
def pmap(
    fun: None = None,
    axis_name: Any = None,
    *,
    in_axes: InAxes = 0,
    out_axes: Any = 0,
    static_broadcasted_argnums: int | Sequence[int] = (),
    devices: Sequence[Any] | None = None,
    backend: str | None = None,
    axis_size: int | None = None,
    donate_argnums: int | Sequence[int] = (),
    mesh: Mesh | None = None,
    lanes_at_once: AtOnce = None,
    reproducible: bool | None = None,
) -> Compiling: ...
def pmap(
    fun: Callable[..., Any] | None = None,
    axis_name: Any = None,
    *,
    in_axes: InAxes = 0,
    out_axes: Any = 0,
    static_broadcasted_argnums: int | Sequence[int] = (),
    devices: Sequence[Any] | None = None,
    backend: str | None = None,
    axis_size: int | None = None,
    donate_argnums: int | Sequence[int] = (),
    mesh: Mesh | None = None,
    lanes_at_once: AtOnce = None,
    reproducible: bool | None = None,
) -> Any:
    """Map a function over an axis in parallel on all devices: out[i] = fun(x[i]) in lane i.

    The axis can have any size. Its indices are *lanes*, which are divided over the devices in equal
    blocks. The results are those of ``vmap`` with the same arguments.

    With a ``mesh`` there may be several axes, each divided over the devices along an axis of the
    mesh; the results are those of one ``vmap`` per axis, the first axis outermost.

    Args:
        fun: a function of trees of arrays, written for one lane. Without it, a decorator is
            returned.
        axis_name: a name by which collectives in ``fun`` refer to the axis. With a mesh, the name
            of one of its axes or a tuple of names; by default all.
        in_axes: which axis of each argument is mapped: an integer, None for an argument that
            every lane gets whole, or a tuple of trees of them, one per positional argument.
            Keyword arguments are mapped over axis 0. With a mesh, a ``PartitionSpec`` names the
            axis that is mapped in each dimension, or None; an integer ``d`` maps the axes over
            dimensions ``d``, ``d + 1`` and so on.
        out_axes: where the axis goes in each result; None for a result that is the same in
            every lane, which is checked and returned once. With a mesh, a ``PartitionSpec`` as in
            ``in_axes``; a result must be the same along axes that it does not name.
        static_broadcasted_argnums: positions of arguments that are Python values, fixed while
            tracing; they must be hashable.
        devices: the devices that share the lanes, in this order; by default all. If some belong to
            other processes, each process passes rows of its own, or all pass arrays over all of
            these devices.
        backend: the platform whose devices to use, such as ``"cpu"``.
        axis_size: the size of the axis; needed if no argument is mapped, otherwise checked.
        donate_argnums: positions of arguments whose memory the results may reuse.
        mesh: the devices in a grid, in place of ``devices`` and ``backend``. If an axis has fewer
            lanes than the mesh has devices along it, the first devices are used. The compiler may
            divide the work of a lane along axes of the mesh that are not in ``axis_name``.
        lanes_at_once: how many lanes a device runs at the same time, chunk after chunk: an integer,
            "all", or None to let Phalanx choose. Results differ only in the order in which numbers
            are added up.
        reproducible: whether results and their derivatives are the same to the bit on any number
            of devices of one kind: each lane runs alone, and sums over lanes are added in an order
            that depends on the number of lanes only. None: as the option ``reproducible`` says.

    Returns:
        A function with the methods ``lower``, ``trace``, ``eval_shape``, ``clear_cache`` and
        ``placement``, which shows which device runs which lanes.

    Raises:
        AxisSizeError: the arguments disagree about the size of the axis.
        TreeError: in_axes or out_axes do not fit the tree.
        ValueError: a name is no axis of the mesh, a spec does not fit an array, lanes_at_once is no
            positive number, or the function cannot be made reproducible.
        ReplicationError: a result with out_axes None may differ between lanes.
        DeviceError: a ``pmap`` of the rows of each process is inside a compiled function or a
            loop; or some, but not all, mapped arguments are arrays over processes.

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
    options: dict[str, Any] = {
        "in_axes": in_axes,
        "out_axes": out_axes,
        "static_broadcasted_argnums": static_broadcasted_argnums,
        "devices": devices,
        "backend": backend,
        "axis_size": axis_size,
        "donate_argnums": donate_argnums,
        "mesh": mesh,
        "lanes_at_once": lanes_at_once,
        "reproducible": reproducible,
    }
    if fun is None:
        return functools.partial(pmap, axis_name=axis_name, **options)
    check_callable(fun, "pmap")
    mapped = Pmapped(fun, axis_name, **options)
    return mapped.function(mapped.placement)
