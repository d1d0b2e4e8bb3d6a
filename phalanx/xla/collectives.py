"""Builder: communication between devices."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Sequence
from math import prod
from typing import Any

import numpy as np
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import sdy
from jaxlib.mlir.dialects import stablehlo as hlo

from phalanx.base import dtypes
from phalanx.base.errors import MeshesDiffer, UnreducedError
from phalanx.base.source import user_location
from phalanx.core.blocks import blocks_of
from phalanx.core.builder import Body, Groups, Sums
from phalanx.core.layouts import Layout, OpenLayout
from phalanx.core.mesh_spec import MeshSpec
from phalanx.core.types import ArrayType, Ints
from phalanx.spmd.named import P, unreduced_along
from phalanx.spmd.plan import Plan, in_terms_of_mesh
from phalanx.spmd.sharding import Sharding
from phalanx.spmd.shardings_of_types import sharding_in_type
from phalanx.xla.indexed import UncutDims, cut_twice, dims_left_whole, of_indices
from phalanx.xla.jaxlib_versions import CUTS_INDEXED, SUMS_IN_REGIONS, VERSION
from phalanx.xla.regions import RegionEmitter

Value = ir.Value
Values = Sequence[ir.Value]
MESH = "mesh"
PLACEMENT = "annotate_device_placement"  # a call that XLA knows
U32 = np.dtype(np.uint32)
I32 = np.dtype(np.int32)

# Operands of one all_reduce up to this size in bytes travel packed. Twenty of 40 KB over 8 CPU
# devices take 3 ms packed and 7 ms one by one; four of 400 KB take 4 ms and 3 ms.
PACKED = 65536


def _sharding(
    layout: OpenLayout,
    ndim: int,
    shared: bool = False,
    sums: tuple[str, ...] = (),
    replicated_axes: tuple[str, ...] = (),
) -> ir.Attribute:
    axes = [*layout, *[()] * (ndim - len(layout))]
    cutting = {name for names in axes for name in names or ()}
    # of a sum the compiler is left nothing to choose: it would take it there, and again later
    split = [
        sdy.DimensionShardingAttr.get(
            [sdy.AxisRefAttr.get(name) for name in names or ()],
            bool(sums) or (names is not None and not shared),
        )
        for names in axes
    ]
    unreduced = [sdy.AxisRefAttr.get(name) for name in sums]
    replicated = [sdy.AxisRefAttr.get(name) for name in replicated_axes if name not in cutting]
    return sdy.TensorShardingAttr.get(
        MESH, split, replicated_axes=replicated, unreduced_axes=unreduced
    )


def _check_sums(sums: Sequence[str], taken: Collection[str]) -> None:
    """Raise UnreducedError for a sum over other axes than a region has ``taken``, in it or at its
    border, if XLA is too old for that."""
    left = [name for name in sums if name not in taken]
    if left and taken and not SUMS_IN_REGIONS:
        axes, others = (", ".join(map(repr, sorted(names))) for names in (left, taken))
        raise UnreducedError(
            f"a sum along {axes} is still to be taken in a function over {others}, at "
            f"{user_location()}, which jaxlib compiles from 0.12 on, and this is "
            f"{'.'.join(map(str, VERSION))}. Take the sum outside of the function, "
            "reshard(x, P()), or let the function run over all axes of the mesh"
        )


def _is_constrained_to(x: Value, split: ir.Attribute) -> bool:
    """Whether the last that was done to ``x``, here, says of it that it lies as ``split``.

    What was said outside of a loop does not count within, where XLA would take the sum for whole.
    """
    owner: Any = x.owner
    constrained = getattr(owner, "name", None) == "sdy.sharding_constraint"
    if not constrained or owner.attributes["sharding"] != split:
        return False
    return bool(owner.parent == ir.InsertionPoint.current.block.owner)


class CollectiveEmitter(RegionEmitter):
    """Communication between devices, counted by partition number."""

    def __init__(self, plan: Plan, module: ir.Module) -> None:
        super().__init__(plan, module)
        self.order = [name for name, _ in plan.axes]  # of the axes in the module
        self.follows_order = False  # whether what was written depends on it
        self._channels = self._groups = 0
        self._nested: set[tuple[str, str]] = set()  # axes that are taken inside of others
        self._splits: dict[Any, ir.Attribute | None] = {}  # by sharding, dimensions, taken axes

    def declare_mesh(self, order: list[str]) -> None:
        """Write the mesh of the plan into the module, with its axes in ``order``."""
        sizes = dict(self.plan.axes)
        names = list(sizes)
        axes = [sdy.MeshAxisAttr.get(axis, sizes[axis]) for axis in order]
        places: list[int] = []
        if order != names:
            grid = np.arange(len(self.plan.devices)).reshape(*sizes.values())
            places = grid.transpose([names.index(axis) for axis in order]).ravel().tolist()
        sdy.mesh(MESH, sdy.MeshAttr.get(axes, places))

    def outer_first(self, name: str) -> list[str]:
        """The axes of the mesh of the module, which is called ``name``, in an order in which those
        taken inside of others stand behind these: otherwise XLA ends the process.

        Raises:
            MeshesDiffer: some are taken inside of each other.
        """
        order, left = list[str](), [axis for axis, _ in self.plan.axes]
        while left:
            outer = [a for a in left if not any([(b, a) in self._nested for b in left])]
            if not outer:
                raise MeshesDiffer(
                    f"{name}: functions over different axes of a mesh lie inside of each other, "
                    f"now this one, now the other, at {user_location()}, which XLA cannot compile "
                    "while it decides about further axes. Nest them in one order, or call one of "
                    "them outside the jit of the others"
                )
            order.append(outer[0])
            left.remove(outer[0])
        return order

    def sharding(
        self,
        spec: P,
        ndim: int,
        follows_types: bool = False,
    ) -> ir.Attribute:
        """``#sdy.sharding`` that splits dimensions over mesh axes; the rest is replicated.

        What ``spec`` leaves open, the partitioner chooses; if it ``follows_types``, not along the
        axes by which types say what is cut.
        """
        layout = spec.open_layout
        sums = tuple(sorted(spec.unreduced, key=self.order.index))
        _check_sums(sums, self.manual)
        names = self.plan.axes_of_types if follows_types and None in layout and not sums else ()
        replicated_axes = tuple(
            [name for name in self.order if name in names and name not in self.manual]
        )
        self.follows_order |= len(replicated_axes) > 1 or len(sums) > 1
        return self.attribute(_sharding, layout, ndim, False, sums, replicated_axes)

    def _shardings(
        self, layouts: Sequence[Layout], types: Sequence[ArrayType],
        sums: Sequence[MeshSpec | None], shared: bool, taken: list[str],
    ) -> ir.Attribute:  # fmt: skip
        """Those of operands of a manual computation that has ``taken`` axes, which the partitioner
        may have ``shared``: then it may split what a position has over further ones, but of
        ``sums``."""

        def one(layout: Layout, ndim: int, spec: MeshSpec | None) -> ir.Attribute:
            if spec is None:
                return self.attribute(_sharding, layout, ndim, shared)
            over_plan = self.over_plan(sharding_in_type(spec), ndim)
            _check_sums(() if over_plan is None else sorted(over_plan.unreduced), taken)
            split = self._split(over_plan, ndim, self.manual, follows_types=True)
            return split or self.attribute(_sharding, layout, ndim, shared)

        triples = zip(layouts, types, sums, strict=True)
        return sdy.TensorShardingPerValueAttr.get([one(x, t.ndim, spec) for x, t, spec in triples])

    def new_channel(self) -> int:
        """The number of a channel that nothing else in the module has."""
        self._channels += 1
        return self._channels

    def _channel(self) -> ir.Attribute:
        return hlo.ChannelHandle.get(self.new_channel(), 1)

    def _grouped(self, groups: Groups, **attributes: Any) -> dict[str, Any]:
        longest = max(map(len, groups))
        rows = [(*group, *(-1,) * (longest - len(group))) for group in groups]  # -1: nobody
        return {
            "replica_groups": self.int_table(rows),
            "channel_handle": self._channel(),
            **attributes,
        }

    def all_reduce(self, xs: Values, groups: Groups, body: Body) -> list[Value]:
        # Shardy cannot export an all_reduce of several operands from a manual region.
        small = [i for i, x in enumerate(xs) if self._size_in_bytes(x) <= PACKED]
        if len(small) < 2 or self.target.platform != "cpu":  # other compilers combine them
            return [self._all_reduce(x, groups, body) for x in xs]
        packed = iter(self._all_reduce_packed([xs[i] for i in small], groups, body))
        return [
            next(packed) if i in small else self._all_reduce(x, groups, body)
            for i, x in enumerate(xs)
        ]

    def _size_in_bytes(self, x: Value) -> int:
        t = self.type(x)
        return t.size * t.dtype.itemsize

    def _all_reduce(self, x: Value, groups: Groups, body: Body) -> Value:
        attributes = self._grouped(groups, use_global_device_ids=ir.UnitAttr.get())
        scalars = [self.scalar_of(x)] * 2
        return self.region_op("stablehlo.all_reduce", [x.type], [x], attributes, (scalars, body))[0]

    def _all_reduce_packed(self, xs: Values, groups: Groups, body: Body) -> list[Value]:
        """One all_reduce of all elements in a row."""
        types = [self.type(x) for x in xs]
        row = self.concatenate([self.reshape(x, (self.type(x).size,)) for x in xs], 0)
        row = self._all_reduce(row, groups, body)
        # Where a part starts is hidden from the compiler: it would write code of its own for what
        # follows each part, instead of the same code for all of one shape.
        starts = itertools.accumulate((t.size for t in types[:-1]), initial=0)
        hidden = self.optimization_barrier([self.constant(n, I32) for n in starts])
        return [
            self.reshape(self.dynamic_slice(row, [start], (t.size,)), t.shape)
            for t, start in zip(types, hidden, strict=True)
        ]

    def all_gather(self, x: Value, dim: int, groups: Groups, shape: tuple[int, ...]) -> Value:
        return self.op(
            "stablehlo.all_gather",
            self.tensor(tuple(shape), self.type(x).dtype),
            [x],
            **self._grouped(
                groups,
                all_gather_dim=self.int_attribute(dim),
                use_global_device_ids=ir.UnitAttr.get(),
            ),
        )

    def reduce_scatter(
        self, x: Value, dim: int, groups: Groups, body: Body, shape: tuple[int, ...]
    ) -> Value:
        attributes = self._grouped(
            groups,
            scatter_dimension=self.int_attribute(dim),
            use_global_device_ids=ir.UnitAttr.get(),
        )
        result = self.tensor(tuple(shape), self.type(x).dtype)
        scalars = [self.scalar_of(x)] * 2
        return self.region_op(
            "stablehlo.reduce_scatter", [result], [x], attributes, (scalars, body)
        )[0]

    def all_to_all(
        self, x: Value, split_dim: int, concat_dim: int, groups: Groups, shape: tuple[int, ...]
    ) -> Value:
        return self.op(
            "stablehlo.all_to_all",
            self.tensor(tuple(shape), self.type(x).dtype),
            [x],
            **self._grouped(
                groups,
                split_dimension=self.int_attribute(split_dim),
                concat_dimension=self.int_attribute(concat_dim),
                split_count=self.int_attribute(len(groups[0])),
            ),
        )

    def collective_permute(self, x: Value, pairs: Sequence[tuple[int, int]]) -> Value:
        return self.op(
            "stablehlo.collective_permute",
            x.type,
            [x],
            source_target_pairs=self.int_table(pairs),
            channel_handle=self._channel(),
        )

    def partition_id(self) -> Value:
        return self.op("stablehlo.partition_id", self.tensor((), U32), ())

    def constrained(self, x: Value, sharding: Sharding) -> Value:
        return self._constrained(x, sharding, False)

    def with_spec(self, x: Value, spec: MeshSpec) -> Value:
        return self._constrained(x, sharding_in_type(spec), True)

    def _constrained(self, x: Value, sharding: Sharding, follows_types: bool) -> Value:
        key = sharding, self.type(x).ndim, self.manual, follows_types
        if key not in self._splits:
            self._splits[key] = self._split(self.over_plan(*key[:2]), *key[1:])
        split = self._splits[key]
        if split is None or (unreduced_along(sharding) and _is_constrained_to(x, split)):
            return x
        return self.op("sdy.sharding_constraint", x.type, [x], sharding=split)

    def cut_by_type(self, x: Value, type: ArrayType, dims: Ints, product: MeshSpec) -> Value:
        over = sharding_in_type(product)
        if type.unreduced or not over.mesh.auto_axes:
            return x
        layout = [names if d in dims else names or None for d, names in enumerate(type.layout)]
        return self._constrained(x, over.update(spec=P().with_layout(layout)), True)

    def whole_along(self, x: Value, dims: Ints) -> Value:
        if not self.parted or not dims or self._has_sums:
            return x
        ndim = self.type(x).ndim
        spec = P(*[None if d in dims else P.UNCONSTRAINED for d in range(ndim)])
        split = self.sharding(spec, ndim)
        return self.op("sdy.sharding_constraint", x.type, [x], sharding=split)

    def gathered(self, x: Value, dims: Ints) -> Value:
        return x if any([t.unreduced for t in self.outs]) else self.whole_along(x, dims)

    @property
    def _has_sums(self) -> bool:
        """Whether an operand is a sum that is still to be taken, as only what uses it may see."""
        return any([t.unreduced for t in self.ins])

    def by_rows(self, x: Value, ndim: int, f: Callable[[Value], Value]) -> Value:
        if not self.parted or self.symbolic or self._has_sums:
            return f(x)
        shape = self.type(x).shape
        split, own = len(shape) - ndim, tuple(range(1, ndim + 1))
        rows = self._row_by_row(x, (prod(shape[:split]), *shape[split:]))
        result = self.whole_along(f(self.whole_along(rows, own)), own)
        return self._row_by_row(result, (*shape[:split], *self.type(result).shape[1:]))

    def _row_by_row(self, x: Value, shape: tuple[int, ...]) -> Value:
        row = self.optimization_barrier([self.reshape(x, (self.type(x).size,))])[0]
        return self.reshape(row, shape)

    def reduce_window(
        self,
        xs: Values,
        inits: Values,
        window: Sequence[int],
        strides: Sequence[int],
        base_dilation: Sequence[int],
        window_dilation: Sequence[int],
        padding: Sequence[tuple[int, int]],
        body: Body,
    ) -> list[Value]:
        """Arrays are not cut where they are spread, nor several where windows reach over them.

        There XLA's partitioner aborts, or gives results that do not fit together.
        """
        windows = window, strides, base_dilation, window_dilation, padding
        each = zip(window, strides, padding, base_dilation, strict=True)
        unsharded_dims = tuple([
            d for d, (*reach, spread) in enumerate(each)
            if spread > 1 or (len(xs) > 1 and reach != [1, 1, (0, 0)])
        ])  # fmt: skip
        xs = [self.whole_along(x, unsharded_dims) for x in xs]
        results = super().reduce_window(xs, inits, *windows, body)
        if len(results) > 1:
            self._shard_alike(results)
        return [self.gathered(x, unsharded_dims) for x in results]

    def _shard_alike(self, xs: Values) -> None:
        """Have the compiler shard all of ``xs`` in one way, those that nobody uses, too."""
        if not self.parted or self._has_sums:
            return
        group = {"group_id": self.int_attribute(self._groups)}
        for x in xs:
            ir.Operation.create("sdy.sharding_group", operands=[x], attributes=group)
        self._groups += 1

    def gather(
        self, x: Value, indices: Value, numbers: Any, slice_sizes: Sequence[int], sorted: bool
    ) -> Value:
        batching = numbers.start_indices_batching_dims
        size = prod(slice_sizes) * prod(self.type(indices).shape[:-1])
        unsharded = self._whole(
            x, indices, numbers.start_index_map, batching, numbers.offset_dims, size
        )
        x, indices = (
            self.whole_along(x, unsharded.array),
            self.whole_along(indices, unsharded.indices),
        )
        result = super().gather(x, indices, numbers, slice_sizes, sorted)
        return self.gathered(result, unsharded.windows)

    def scatter(
        self, x: Value, indices: Value, updates: Value, numbers: Any, body: Body, sorted: bool,
        unique: bool,
    ) -> Value:  # fmt: skip
        dims, batching = numbers.scatter_dims_to_operand_dims, numbers.scatter_indices_batching_dims
        indices, updates = self._even(indices, updates, batching, numbers.update_window_dims)
        size = self.type(updates).size
        unsharded = self._whole(x, indices, dims, batching, numbers.update_window_dims, size)
        x, indices = (
            self.whole_along(x, unsharded.array),
            self.whole_along(indices, unsharded.indices),
        )
        updates = self.whole_along(updates, unsharded.windows)
        result = super().scatter(x, indices, updates, numbers, body, sorted, unique)
        return self.gathered(result, unsharded.array)

    def _even(
        self, indices: Value, updates: Value, batching: Ints, windows: Ints
    ) -> tuple[Value, Value]:
        """Both with as many further indices, all beyond the array, as the compiler's axes ask for.

        Where these do not divide what they cut, XLA's partitioner adds indices 0 with any updates.
        """
        parts = prod([size for name, size in self.plan.axes if name not in self.manual])
        if parts == 1 or self.symbolic or self._has_sums:
            return indices, updates
        dims = of_indices(self.type(indices).ndim, batching, windows)
        dtype = self.type(indices).dtype
        beyond = self.constant(np.iinfo(dtype).max, dtype)
        zero = self.constant(0, self.type(updates).dtype)
        return (
            self._multiple(indices, beyond, dims[0], parts),
            self._multiple(updates, zero, dims[1], parts),
        )

    def _multiple(self, x: Value, value: Value, dims: Ints, parts: int) -> Value:
        """``x``, whose lengths along ``dims`` are multiples of ``parts``: ``value`` is added."""
        shape = self.type(x).shape
        more = [-n % parts if d in dims else 0 for d, n in enumerate(shape)]
        none = [0] * len(shape)
        return self.pad(x, value, none, more, none) if any(more) else x

    def _whole(
        self, x: Value, indices: Value, dims: Ints, batching: Ints, windows: Ints, size: Any
    ) -> UncutDims:
        """What is whole where ``x`` is indexed along ``dims``; windows have ``size`` elements."""
        spared = (
            self.manual or self.plan.axes_of_types
        )  # outside of regions it cuts nothing by the latter
        left = [size for name, size in self.plan.axes if name not in spared]
        ndims = self.type(x).ndim, self.type(indices).ndim
        coordinates = ndims[1] - 1  # XLA's partitioner gets an index wrong that is cut itself
        if not cut_twice(left) or (CUTS_INDEXED and not self.manual):
            return UncutDims((), (coordinates,), ())
        few = self.symbolic or size <= self.type(x).size
        unsharded = dims_left_whole(*ndims, dims, batching, windows, few)
        return unsharded._replace(indices=(*unsharded.indices, coordinates))

    def summed_as(self, type: ArrayType, x: Value) -> Value:
        spec = type.spec and type.spec.explicit
        return x if spec is None or not spec.has_sums else self.with_spec(x, spec)

    def summed(self, x: Value, spec: MeshSpec) -> Value:
        sharding = sharding_in_type(spec)  # what is left open might become such a sum again
        closed = P.of(tuple([names or () for names in sharding.spec.open_layout]))
        return self.constrained(x, sharding.update(spec=closed))

    def left_as_sum(self, x: Value, spec: MeshSpec) -> Value:
        x = self.summed(x, spec)  # what is not said of it, XLA may get wrong
        if not dtypes.is_complex(self.type(x).dtype):
            return x
        # of complex numbers XLA makes no sums, and crashes; but it multiplies by one that is a sum
        b, kind, sharding = self.builder, self.type(x), sharding_in_type(spec)
        scalar, no_sum = (
            sharding.update(spec=P(unreduced=spec.unreduced)),
            sharding.update(spec=P()),
        )
        # others share these constants, which are no sums to them
        parts = [self.constant(n, dtypes.to_real(kind.dtype)) for n in (1, 0)]
        one = b.complex(*[self.constrained(self.constrained(n, no_sum), scalar) for n in parts])
        ones = b.broadcast_in_dim(self.constrained(one, scalar), kind.shape, ())
        return b.multiply(x, self.constrained(ones, sharding))

    def over_plan(self, sharding: Sharding, ndim: int) -> P | None:
        """``sharding`` over the mesh of the plan; None where it is over other devices."""
        return in_terms_of_mesh(sharding, ndim, self.plan.devices, self.plan.axes)

    def _split(
        self, spec: P | None, ndim: int, manual: frozenset[str], follows_types: bool
    ) -> ir.Attribute | None:
        """What the module says of values that are to lie as ``spec``; None if it cannot."""
        if spec is None or manual.issuperset(name for name, _ in self.plan.axes):
            return None
        free = [names and tuple(n for n in names if n not in manual) for names in spec.open_layout]
        return self.sharding(spec.with_layout(free), ndim, follows_types)

    def in_memory(self, x: Value, kind: str | None) -> Value:
        self.moves_memory |= kind is not None
        if not self.moves_memory or self.target.platform == "cpu":  # whose memory is the host's
            return x
        where: ir.Attribute = ir.StringAttr.get(kind or "device")
        attributes: dict[str, ir.Attribute] = {
            "call_target_name": ir.StringAttr.get(PLACEMENT),
            "has_side_effect": ir.BoolAttr.get(True),
            "mhlo.frontend_attributes": ir.DictAttr.get({"_xla_buffer_placement": where}),
        }
        return self.region_op("stablehlo.custom_call", [x.type], [x], attributes)[0]

    def out_of_memory(self, x: Value) -> Value:
        """``x``, which was brought to other memory, in that of the devices."""
        owner: Any = x.owner
        brings = getattr(owner, "name", None) == "stablehlo.custom_call"
        if brings and owner.attributes["call_target_name"].value == PLACEMENT:
            return owner.operands[0]  # where it was before
        return self.in_memory(x, None)

    def manual_computation(
        self,
        args: Values,
        in_layouts: Sequence[Layout],
        out_layouts: Sequence[Layout],
        out_types: Sequence[ArrayType],
        body: Body,
        over: Sequence[str] | None = None,
        sums: Sums | None = None,
    ) -> list[Value]:
        if not self.plan.axes:
            return list(body(self.builder, *args))
        types = [self.type(a) for a in args]
        free = self.parted
        names = [n for n in self.order if n in free and (over is None or n in over)]
        self.follows_order |= len(names) > 1
        shared = len(names) < len(free)
        in_sums, out_sums = sums or ([None] * len(types), [None] * len(out_types))
        attributes = {
            "in_shardings": self._shardings(in_layouts, types, in_sums, shared, names),
            "out_shardings": self._shardings(out_layouts, out_types, out_sums, shared, names),
            "manual_axes": sdy.ManualAxesAttr.get([ir.StringAttr.get(name) for name in names]),
        }
        parts = [self._part(t, layout) for t, layout in zip(types, in_layouts, strict=True)]
        results = [self.tensor_of(t) for t in out_types]
        outer = self.manual, self.number
        self.manual, self.number = self.manual.union(names), None  # it uses nothing from outside
        if self.parted:  # the compiler decides about further ones
            self._nested.update(itertools.product(outer[0], names))
        try:
            return self.region_op(
                "sdy.manual_computation",
                results,
                args,
                attributes,
                (parts, self._without_empties(body)),
                terminator="sdy.return",
            )
        finally:
            self.manual, self.number = outer

    def _without_empties(self, body: Body) -> Body:
        """``body``, which does not use operands that have no elements.

        The compiler of jaxlib 0.11 ends with a segmentation fault where one of them is a result.
        """

        def emit(b: Any, *operands: Value) -> Sequence[Value]:
            types = [self.type(x) for x in operands]
            return body(
                b,
                *[
                    x if t.size else self.constant(0, t.dtype, t.shape)
                    for x, t in zip(operands, types, strict=True)
                ],
            )

        return emit

    def _part(self, type: ArrayType, layout: Layout) -> ir.Type:
        """The type of what one device sees of an array."""
        blocks = blocks_of(type.shape, self.plan.parts(layout))
        return self.tensor(tuple(b.length for b in blocks), type.dtype)
