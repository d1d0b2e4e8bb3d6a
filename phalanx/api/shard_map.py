"""``shard_map``: what every device does with its block of the arrays, over the axes of a mesh."""

# Users' arguments are looked at, whatever their types should be.
# pyright: reportUnnecessaryIsInstance=false

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence, Set
from itertools import starmap
from typing import Any, overload

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from phalanx.api import stages
from phalanx.api.arguments import (
    NO_STATIC,
    CallArgs,
    Flat,
    Static,
    check_callable,
    result_names,
    split_static,
    without_static,
)
from phalanx.api.inferred import Infer, inferred
from phalanx.api.one_by_one import at_every_position, spread
from phalanx.api.positions import Positions, positions_of, running_at
from phalanx.api.ref_calls import (
    array_types,
    store_copies,
    with_copies,
)
from phalanx.api.reproducible_lanes import refuse_in_lanes
from phalanx.api.specs import AsItIs, Specs, is_spec, snapshot
from phalanx.api.staged import StagedFunction
from phalanx.api.traced_function import TracedFunction
from phalanx.api.transformed import Compiling, P, R, Wrapped
from phalanx.api.unreduced_specs import (
    check_argument,
    check_result,
    in_rows,
    part_of,
    row_of,
    spec_of_role,
)
from phalanx.base import tree
from phalanx.base.config import config
from phalanx.base.errors import ConcretizationTypeError, ReplicationError, coded
from phalanx.base.kinds import class_of
from phalanx.base.nodes import outline
from phalanx.base.source import user_location
from phalanx.control.mapped import on_whole_arrays
from phalanx.core.program import Equation
from phalanx.core.refs import Ref, refuse_aliases, refuse_differing
from phalanx.core.roles import FIXED, Role, Roles
from phalanx.core.types import Array, ArrayType, typeof
from phalanx.run.planning import RequestedShardings
from phalanx.spmd.mesh import AnyMesh, Mesh
from phalanx.spmd.named import NamedSharding, PartitionSpec
from phalanx.transforms.replication import culprits, lines_of
from phalanx.transforms.stage import is_value, loaded


class _Context(Struct, frozen=True):
    """Where a call runs; and the specs that follow from its arguments, leaf by leaf, if
    ``in_specs`` are left out."""

    mesh_axes: Positions
    in_specs: tuple[PartitionSpec, ...] | None


class ShardMapped(StagedFunction):
    """A function of blocks as one of whole arrays."""

    donate_nums = static_nums = ()
    donate_names = static_names = frozenset()

    def __init__(
        self,
        fun: Callable[..., Any],
        mesh: AnyMesh | None,
        in_specs: Any,
        out_specs: Any,
        axis_names: Set[str],
        check_vma: bool,
    ) -> None:
        super().__init__(fun, "shard_map")
        self.mesh = mesh
        self.in_specs, in_key = snapshot(
            tuple(in_specs) if class_of(in_specs) is list else in_specs
        )
        self.out_specs, out_key = snapshot(out_specs)
        self.axis_names = frozenset(axis_names)
        self.check_vma = check_vma
        each = self.in_specs if class_of(self.in_specs) is tuple else ()
        self.unspecified = [i for i, s in enumerate(each) if None in tree.leaves(s, is_spec)]
        self._remember(mesh, in_key, out_key, self.axis_names, check_vma)

    def _split(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[Static, tuple[Any, ...], dict[str, Any]]:
        """What has no spec is a Python value, but for arrays, which all devices get: arguments
        without arrays, and leaves of others."""
        if not self.unspecified or len(args) != len(self.in_specs):
            return NO_STATIC, args, kwargs
        arguments: list[Any] = [*args]
        static: list[int] = []
        for i in self.unspecified:
            if self.in_specs[i] is None and not any(map(_is_array, tree.leaves(args[i]))):
                static.append(i)
            else:
                arguments[i] = _with_values(self.in_specs[i], args[i])
        return split_static(
            tuple(arguments), kwargs, tuple(static), frozenset(), self.who, _key_of_tree
        )

    def _call(self, arguments: CallArgs) -> Any:
        if arguments.kwargs:
            raise TypeError(
                f"{self.who}: in_specs are about arguments by position, and "
                f"{', '.join(arguments.kwargs)} is passed by keyword, at {user_location()}; "
                "pass it by position"
            )
        return super()._call(arguments)

    def _evaluate(self, arguments: CallArgs) -> Any:
        """Compiled; or operation by operation, if the function looks at values. It may look at
        those that are the same at all positions."""
        try:
            return super()._evaluate(arguments)
        except ConcretizationTypeError as traced:
            try:
                with config.override(disable_jit=True):
                    return self._call(arguments)
            except ConcretizationTypeError:
                raise traced from None

    # ---- tracing ----

    def _context(self, arguments: CallArgs) -> _Context:
        names, held = arguments.names, loaded(arguments.leaves)
        mesh_axes = positions_of(self.mesh, self.axis_names, self.check_vma, held, self.who)
        if self.in_specs is not Infer:
            return _Context(mesh_axes, None)
        return _Context(mesh_axes, tuple(inferred(held, names, mesh_axes, self.who)))

    def _trace(self, arguments: CallArgs, context: _Context) -> TracedFunction:
        mesh_axes = context.mesh_axes
        ins, parts = self._blocks(arguments, context)
        with running_at(mesh_axes, self.who):
            flat, staged = self._stage(arguments, parts)
        program, captured, written = staged
        first = len(written)
        for (ref, line), atom in zip(written.items(), program.outputs, strict=False):
            if _missing(atom.type, FIXED, mesh_axes):
                refuse_differing(ref, line, self.who)
        results, outs = self._results(flat, program.output_types[first:], ins, arguments, mesh_axes)
        ins = (FIXED,) * len(captured) + ins
        for atom, role, name in zip(program.outputs[first:], outs, results, strict=True):
            check_result(atom.type, role, name, self.who)
            missing = _missing(atom.type, role, mesh_axes)
            if missing:
                where = culprits(program, [r.axes for r in ins], atom, missing[0])
                raise _differs(f"{self.who}: {name}", role, missing, atom.type, where)
        outs = (FIXED,) * first + outs
        mapped_program = on_whole_arrays(program, mesh_axes.axes, ins, outs, mesh_axes.mesh)
        refuse_in_lanes(mapped_program, self.who)
        requested = self._requested(mesh_axes, flat, first, len(arguments.leaves))
        return TracedFunction(
            mapped_program, captured, flat.out_tree, written, flat.stored, requested
        )

    def _out_specs(self, mesh_axes: Positions) -> Specs:
        return Specs(self.who, "out_specs", self.out_specs, mesh_axes.axes, mesh_axes.mesh)

    def _requested(
        self, mesh_axes: Positions, flat: Flat, written: int, arguments: int
    ) -> RequestedShardings | None:
        """How results lie, in the words of ``out_specs``, where these say all of it."""
        mesh = mesh_axes.mesh
        if not isinstance(mesh, Mesh) or len(mesh_axes.axes) < len(mesh.axis_names):
            return None
        specs = self._out_specs(mesh_axes).of_leaves(outline(flat.out_tree))
        shardings = [None if spec is None else NamedSharding(mesh, spec) for spec in specs]
        outs = (*[None] * written, *shardings, *[None] * len(flat.stored))
        return RequestedShardings((None,) * arguments, outs)

    def _blocks(self, arguments: CallArgs, context: _Context) -> tuple[Roles, list[ArrayType]]:
        """What each argument is to a position, and the type of a block of it."""
        in_specs: Any = without_static(self.in_specs, arguments.static)
        if context.in_specs is not None:
            in_specs, _ = arguments.treedef.unflatten(context.in_specs)
        mesh_axes, types = context.mesh_axes, array_types(arguments.types)
        specs = Specs(self.who, "in_specs", in_specs, mesh_axes.axes, mesh_axes.mesh)
        names = arguments.names.all()
        roles = specs.roles(arguments.args, types, names)
        triples = list(zip(types, roles, names, strict=True))
        for triple in triples:
            check_argument(*triple, self.who)
        return roles, list(starmap(specs.block, triples))

    def _results(
        self,
        flat: Flat,
        types: Sequence[ArrayType],
        ins: Roles,
        arguments: CallArgs,
        mesh_axes: Positions,
    ) -> tuple[list[str], Roles]:
        """For each result, the beginning of a message about its spec, and its role. Behind the
        results of the function are the final values of its arguments that are references, which
        are cut as these were."""
        names, leaves = result_names(flat.out_tree), arguments.names
        outs = self._out_specs(mesh_axes).roles(
            flat.out_tree.unflatten(names), types[: len(names)], names
        )
        held = [f"in_specs say that what {leaves[i]} holds" for i in flat.stored]
        names = [f"out_specs say that {name}" for name in names]
        return [*names, *held], (*outs, *(ins[i] for i in flat.stored))

    def _one_by_one(self, arguments: CallArgs) -> Any:
        """Without compiling the function: operation by operation, at all positions at once."""
        self._check(arguments)
        leaves, context = arguments.leaves, self._context(arguments)
        mesh_axes = context.mesh_axes.on_devices()
        ins, _ = self._blocks(arguments, replace(context, mesh_axes=mesh_axes))
        flat = self._flat(arguments)
        refuse_aliases(leaves, (), self.who)

        ends: Roles = ()

        def outs(results: Sequence[Any]) -> Roles:
            nonlocal ends
            types = [typeof(y) for y in results]
            names, ends = self._results(flat, types, ins, arguments, mesh_axes)
            for kind, role, name in zip(types, ends, names, strict=True):
                missing = [
                    axis for axis in _missing(kind, role, mesh_axes) if axis not in role.sums
                ]
                if missing:
                    raise _differs(f"{self.who}: {name}", role, missing, kind, [])
            return ends

        def of_rows(*rows: Any) -> list[Any]:
            results = flat(*[part_of(x, r) for x, r in zip(rows, ins, strict=True)])
            return [row_of(y, r) for y, r in zip(results, outs(results), strict=True)]

        mesh, axes = mesh_axes.mesh, mesh_axes.axes
        values = [
            _rows(x, r, mesh) for x, r in zip(with_copies(leaves, flat.refs), ins, strict=True)
        ]
        values = spread(values, tuple(map(in_rows, ins)), mesh, NamedSharding)
        with running_at(mesh_axes, self.who):
            results, roles = at_every_position(
                of_rows, axes, values, tuple(map(in_rows, ins)), lambda _: tuple(map(in_rows, ends))
            )
        placed = spread(results, roles, mesh, NamedSharding)
        placed = [_of_rows(y, r, mesh) for y, r in zip(placed, ends, strict=True)]
        placed = store_copies([leaves[i] for i in flat.stored], placed, values)
        return flat.out_tree.unflatten(placed)

    def _arranged(self, arguments: CallArgs) -> stages.Arranged:
        """Objects in the ``arguments`` stand for what they were."""
        specs = without_static(self.in_specs, arguments.static)
        before = [x for x in tree.leaves(arguments.args, _is_value) if _is_value(x)]

        def arranged(args: tuple[Any, ...]) -> tuple[Any, ...]:
            if not before or len(args) != len(specs):
                return args
            return tuple([_with_values(s, x, before) for s, x in zip(specs, args, strict=True)])

        return arranged


def _is_array(x: Any) -> bool:
    return isinstance(x, (Array, np.ndarray, Ref))


def _is_value(x: Any) -> bool:
    return isinstance(x, AsItIs)


def _with_values(specs: Any, arg: Any, before: Sequence[AsItIs] = ()) -> Any:
    """``arg``, of which leaves without a spec that are no arrays are Python values.

    Numbers beside arrays are as these where nothing is said of either. An object that was looked at
    ``before`` is what it was.
    """
    leaves, treedef = tree.flatten(arg)

    def is_traced(x: Any) -> bool:
        return _is_array(x) or (specs is None and is_value(x))

    each = tree.broadcast_prefix(specs, arg, "shard_map in_specs", is_leaf=is_spec)
    by_id = {id(v.value): v for v in before}
    pairs = zip(leaves, each, strict=True)
    return treedef.unflatten(
        [by_id.get(id(x)) or AsItIs(x) if s is None and not is_traced(x) else x for x, s in pairs]
    )


def _key_of_tree(x: Any) -> Any:
    """What stands in keys for a tree of Python values, whose containers cannot be hashed."""
    leaves, treedef = tree.flatten(x)
    return treedef, *map(AsItIs, leaves)


def _rows(x: Any, role: Role, mesh: Any) -> Any:
    """``x``; if its ``role`` is unreduced, its summands, stacked as rows."""
    return _moved(row_of, x, role, role, in_rows(role), mesh)


def _of_rows(x: Any, role: Role, mesh: Any) -> Any:
    """The reverse: the unreduced array whose summands are the rows of ``x``; ``x`` itself if its
    ``role`` is not unreduced."""
    return _moved(part_of, x, role, in_rows(role), role, mesh)


def _moved(
    move: Callable[[Any, Role], Any], x: Any, role: Role, before: Role, after: Role, mesh: Any
) -> Any:
    if not role.unreduced:
        return x

    def one(part: Any) -> Any:
        return move(part, role)

    ins, outs = spec_of_role(before), spec_of_role(after)
    with config.override(disable_jit=False):
        return shard_map(one, mesh=mesh, in_specs=ins, out_specs=outs, check_vma=False)(x)


def _missing(type: ArrayType, role: Role, mesh_axes: Positions) -> list[Any]:
    """The axes along which a result of ``type`` varies although they do not cut it."""
    return [axis for axis, _ in mesh_axes.axes if axis in type.varying - role.axes - role.unreduced]


def _differs(
    what: str, role: Role, missing: Sequence[Any], type: ArrayType, where: Sequence[Equation]
) -> ReplicationError:
    """The error about ``what``, of whose spec ``missing`` are axes along which it varies."""
    lines = lines_of(where)
    cause = f": it uses what differs at {lines}" if lines else ""
    word, axis_name = ("axis", missing[0]) if len(missing) == 1 else ("axes", tuple(missing))
    error = ReplicationError(
        f"{what} is the same along {word} {_named(missing)}, {spec_of_role(role)}, at "
        f"{user_location()}, but it varies along {_named(sorted(type.varying, key=str))}{cause}. "
        f"Reduce it, with lax.pmean(x, {axis_name!r}) or lax.psum, or name the {word} in its spec"
    )
    varying = sorted(map(str, type.varying))
    left = sorted(map(str, missing))
    return coded(error, "varies", spec=str(spec_of_role(role)), varying=varying, missing=left)


def _named(axes: Sequence[Any]) -> str:
    return ", ".join(map(repr, axes))


@overload
def shard_map(
    f: Callable[P, R],
    /,
    *,
    mesh: AnyMesh | None = None,
    in_specs: Any = ...,
    out_specs: Any,
    axis_names: Set[str] = frozenset(),
    check_vma: bool = True,
) -> Wrapped[P, R]: ...
@overload
def shard_map(
    f: None = None,
    /,
    *,
    mesh: AnyMesh | None = None,
    in_specs: Any = ...,
    out_specs: Any,
    axis_names: Set[str] = frozenset(),
    check_vma: bool = True,
) -> Compiling: ...
def shard_map(
    f: Callable[..., Any] | None = None,
    /,
    *,
    mesh: AnyMesh | None = None,
    in_specs: Any = Infer,
    out_specs: Any,
    axis_names: Set[str] = frozenset(),
    check_vma: bool = True,
) -> Any:
    """Map over the shards of arrays: ``f`` says what every device does with its blocks, the result
    takes whole arrays.

    The arguments are cut into blocks as ``in_specs`` say; ``f`` runs at every position of the mesh
    at the same time, on the blocks that lie there, and communicates with the other positions by
    the names of the axes; its results are joined as ``out_specs`` say.

    Args:
        f: a function of trees of arrays. Without it, a decorator is returned.
        mesh: the devices and their axes; the current one (``set_mesh``) if not given. An
            ``AbstractMesh`` names axes over the devices of the current mesh or of the arguments.
        in_specs: a ``PartitionSpec`` for each argument, or a tree of them that is a prefix of the
            tuple of arguments. An axis at place ``d`` cuts dimension ``d``; along axes that are
            not named every position gets the same. None is for Python values, which are not traced.
            Of an argument whose sum is still to be taken, ``P(unreduced={...})``, every position
            gets its part; of one that is ``reduced`` the same, with a cotangent of its own.
            If not given, blocks are as the arguments lie along axes of type Explicit.
        out_specs: the same for the results: an axis at place ``d`` joins the blocks along dimension
            ``d``; along axes that are not named the blocks must be the same, and are given once,
            or, along axes that are ``unreduced``, the parts of a sum.
        axis_names: the axes along which ``f`` says what to do; all if empty. Inside ``f`` the mesh
            is the current one, and specs alone are about the axes that are left.
        check_vma: whether to check that results are the same where ``out_specs`` say so.

    Returns:
        A function with the methods ``lower``, ``trace``, ``eval_shape`` and ``clear_cache``.

    Raises:
        TypeError: the mesh is none, or ``axis_names`` is one string.
        TreeError: the specs do not fit the tree of arguments or results.
        ValueError: there is no mesh, a spec does not fit the mesh or its array, axes do not
            divide a dimension, or ``in_specs`` are not given and arguments do not tell.
        ReplicationError: a result may differ along an axis that its spec does not name.
        ShardingTypeError: a spec and its value differ in whether a sum is still to be taken.

    >>> import phalanx, phalanx.numpy as jnp
    >>> from phalanx import P
    >>> mesh = phalanx.make_mesh((1,), ("data",))
    >>> @phalanx.shard_map(mesh=mesh, in_specs=(P(), P("data")), out_specs=P())
    ... def loss(w, x):
    ...     return phalanx.lax.pmean(jnp.mean((x * w) ** 2), "data")
    >>> loss(2.0, jnp.arange(4.0))
    Array(14., dtype=float32)
    """
    options: dict[str, Any] = {
        "mesh": mesh,
        "in_specs": in_specs,
        "out_specs": out_specs,
        "axis_names": axis_names,
        "check_vma": check_vma,
    }
    if f is None:
        return functools.partial(shard_map, **options)
    check_callable(f, "shard_map")
    if mesh is not None and not isinstance(mesh, AnyMesh):
        raise TypeError(f"shard_map: mesh must be a Mesh, got {mesh!r}; see phalanx.make_mesh")
    if isinstance(axis_names, str):
        raise TypeError(
            f"shard_map: axis_names must be a set of names, such as axis_names={{{axis_names!r}}}, "
            f"got {axis_names!r}"
        )
    return ShardMapped(f, **options).function()
