"""How values lie over devices, as the program says."""

from __future__ import annotations

import functools
import inspect
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import zip_longest
from typing import Any, TypeVar, cast, overload

import numpy as np

from phalanx.base import tree
from phalanx.base.boundary import with_boundary
from phalanx.base.config import config, settings
from phalanx.base.errors import ConcretizationTypeError, ShardingTypeError, coded
from phalanx.base.keys import key_of
from phalanx.base.recent import Recent
from phalanx.base.source import user_location
from phalanx.control.call import call
from phalanx.core.layouts import OpenLayout, by_one_axis
from phalanx.core.program import Program
from phalanx.core.trace import ROOT, current
from phalanx.core.types import SCALARS, Array, ArrayLike, ArrayType, typeof
from phalanx.primitives.resharding import without_spec
from phalanx.run.array import DeviceArray
from phalanx.run.constrain import check_fits, constrain
from phalanx.spmd.constraint import cutting, sharding_for, without_open_dims
from phalanx.spmd.formats import Format, as_sharding
from phalanx.spmd.named import NamedSharding, PartitionSpec, unreduced_along
from phalanx.spmd.sharding import Sharding
from phalanx.transforms.stage import stage
from phalanx.transforms.sums import leaving_sums

F = TypeVar("F", bound=Callable[..., Any])


@overload
def with_sharding_constraint(x: ArrayLike, shardings: Any) -> Array: ...
@overload
def with_sharding_constraint(x: Any, shardings: Any) -> Any: ...
def with_sharding_constraint(x: Any, shardings: Any) -> Any:
    """``x``, which lies over devices as ``shardings`` say; the same values.

    Inside ``jit`` the compiler keeps to it, and lays out what stands around accordingly. Outside
    it moves the arrays, as ``device_put`` does. Cotangents are constrained alike.

    Args:
        x: a tree of arrays.
        shardings: a tree that is a prefix of ``x``, of shardings, of specs under the mesh that is
            set, or of None where nothing is said. Dimensions for which a spec says
            ``P.UNCONSTRAINED`` are left to the compiler. An ``AbstractMesh`` is over the devices
            of the mesh that is set, if that has its axes, or else of the arguments.

    Returns:
        A tree like ``x``.

    Raises:
        ValueError: a spec has more entries than an array has dimensions; outside ``jit``, an axis
            does not divide a dimension.
        NoMesh: there is a spec alone, and no mesh is set; or an ``AbstractMesh`` has more or fewer
            places than there are devices.
        TreeError: the trees do not fit.

    >>> import phalanx
    >>> from phalanx.sharding import NamedSharding, PartitionSpec as P
    >>> mesh = phalanx.make_mesh((1,), ("data",))
    >>> @phalanx.jit
    ... def f(x):
    ...     return phalanx.lax.with_sharding_constraint(2 * x, NamedSharding(mesh, P("data")))
    >>> f(phalanx.numpy.arange(3.0))
    Array([0., 2., 4.], dtype=float32)
    """
    return _laid_out(x, shardings, "with_sharding_constraint")


def reshard(xs: Any, out_shardings: Any) -> Any:
    """``xs`` laid out as ``out_shardings`` say: the same as ``with_sharding_constraint``.

    Args:
        xs: a tree of arrays.
        out_shardings: a tree that is a prefix of ``xs``, of shardings or of specs under the mesh
            that is set.

    Returns:
        A tree like ``xs``, of arrays.

    Raises:
        ValueError: a spec does not fit an array.
        NoMesh: there is a spec alone, and no mesh is set.

    >>> import phalanx
    >>> with phalanx.set_mesh(phalanx.make_mesh((1,), ("data",))):
    ...     phalanx.reshard(phalanx.numpy.arange(3), phalanx.P("data")).sharding.spec
    P('data')
    """
    return _laid_out(xs, out_shardings, "reshard")


def takes_out_sharding(function: F) -> F:
    """``function``, with what its parameter ``out_sharding`` asks of how the result lies.

    It is a sharding or a spec under the mesh that is set, as in ``with_sharding_constraint``. The
    function itself, which has the parameter for those who read signatures, never sees it.
    """
    code = inspect.unwrap(function).__code__
    by_place = code.co_varnames[: code.co_argcount]
    place = by_place.index("out_sharding") if "out_sharding" in by_place else None

    def make(explain: Callable[..., None], hide: Callable[[Exception], None]) -> Any:
        @functools.wraps(function)
        def laid_out(*args: Any, out_sharding: Any = None, **kwargs: Any) -> Any:
            try:
                try:
                    if place is not None and len(args) == place + 1:
                        *args, out_sharding = args  # type: ignore[assignment]
                    if _says_nothing(out_sharding):
                        return function(*args, **kwargs)
                    return in_place(out_sharding, function, args, kwargs)
                except Exception as error:
                    explain(error, laid_out, args, kwargs)
                    raise
            except Exception as error:
                hide(error)
                raise

        return laid_out

    return with_boundary(make)


def in_place(
    requested: Any,
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any] | None = None,
) -> Any:
    """The array ``function(*args, **kwargs)``, which lies as ``requested``.

    Outside of transformations it is one program where that can be: then each device makes its part
    alone, and none has the whole. What types say of operands does not count: the compiler decides.
    """
    who = function.__name__.strip("_")
    sharding = _requested_sharding(requested, who)
    leaves, treedef = tree.flatten((args, kwargs or {}))
    operands = [x for x in leaves if type(x) is DeviceArray]

    def laid_out(*values: Any) -> tuple[Any, ...]:
        rest = iter(values)
        inputs = [next(rest) if type(x) is DeviceArray else x for x in leaves]
        args, kwargs = cast("tuple[Any, Any]", treedef.unflatten(inputs))
        result = _in_parts(sharding, function, args, kwargs)
        if result is None:
            _refuse_sums_of_nothing(sharding, inputs, who)
            args, kwargs = treedef.unflatten(list(map(without_spec, inputs)))
            result = function(*args, **kwargs)
            first = _first(sharding, typeof(result).ndim, inputs, function, treedef)
            result = _constrained(result, first, who)
        return (_constrained(result, sharding, who),)

    others = [x for x in leaves if type(x) is not DeviceArray]
    static = all(isinstance(x, _STATIC) for x in others)
    devices = set(sharding.device_list)
    there = all(devices.issuperset(x.sharding.device_list) for x in operands)
    if not (static and there) or current() is not ROOT or config.disable_jit:
        return laid_out(*operands)[0]
    types = [x.aval for x in operands]
    key = (function, sharding, treedef, config.key, *types, *map(key_of, others))
    program = _programs[key]
    if program is None:
        try:
            program, _ = stage(laid_out, types, who)
        except ConcretizationTypeError:  # it needs to know a value
            return laid_out(*operands)[0]
        check_fits(program.output_types[0], without_open_dims(sharding), who)
        _programs[key] = program
    return call(*operands, program=program)[0]


def _in_parts(
    sharding: Sharding, function: Callable[..., Any], args: Iterable[Any], kwargs: Mapping[str, Any]
) -> Any:
    """The result, if sums that are still to be taken are asked for or given, and types tell its
    parts; None else."""
    axes = unreduced_along(sharding)
    leaves = [x.aval.spec for x in tree.leaves((args, kwargs)) if isinstance(x, Array)]
    if not axes and not any([mesh_spec is not None and mesh_spec.has_sums for mesh_spec in leaves]):
        return None
    try:
        with leaving_sums(axes):
            result = function(*args, **kwargs)
    except ShardingTypeError:
        return None
    return None if any(leaves) and axes - typeof(result).unreduced else result


def _first(
    sharding: Sharding, ndim: int, inputs: Sequence[Any], function: Any, treedef: Any
) -> Sharding | None:
    """How the result lies before it lies as ``sharding``; None where it does at once.

    Some products XLA's partitioner would compute wrong at once. They lie along fewer axes first;
    or as their batch does in the operands, where the axis that cuts the sum is to cut the batch.
    """
    specs = [x.aval.spec for x in inputs if isinstance(x, Array)]
    layouts = [spec.layout for spec in specs if spec is not None]
    if not layouts or not isinstance(sharding, NamedSharding):
        return None
    requested = sharding.spec.open_layout
    first = by_one_axis(requested, ndim, layouts)
    times = Counter(str(axis) for layout in layouts for axes in layout for axis in axes)
    shared = {axis for axis, n in times.items() if n > 1}
    if len(shared) > 1 and not shared.isdisjoint(str(a) for axes in requested for a in axes or ()):
        first = _as_batch_spec(requested, shared, inputs, function, treedef) or first
    return None if first == requested else sharding.update(spec=PartitionSpec.of(first))


def _as_batch_spec(
    requested: OpenLayout, shared: set[str], inputs: Sequence[Any], function: Any, treedef: Any
) -> OpenLayout | None:
    """How a product lies that follows its operands, if ``requested`` cuts the batch by the axis of
    the sum.

    It is traced once more for that, with the sums over the ``shared`` axes left to be taken.
    """
    values = [i for i, x in enumerate(inputs) if isinstance(x, Array)]

    def summed(*arrays: Any) -> list[Any]:
        changed = list(inputs)
        for i, x in zip(values, arrays, strict=True):
            changed[i] = x
        args, kwargs = treedef.unflatten(changed)
        with leaving_sums(frozenset(shared)):
            return [function(*args, **kwargs)]

    try:
        program, _ = stage(summed, [inputs[i].aval for i in values], "summed")
    except ShardingTypeError:
        return None
    mesh_spec = program.output_types[0].spec
    if mesh_spec is None:
        return None
    moved = any(
        batch and shared.issuperset(batch) and not mesh_spec.unreduced.isdisjoint(axes or ())
        for batch, axes in zip_longest(mesh_spec.layout, requested, fillvalue=())
    )
    return mesh_spec.layout if moved else None


def _refuse_sums_of_nothing(sharding: Sharding, inputs: Iterable[Any], who: str) -> None:
    """Raise ShardingTypeError if sums are to be left over axes over which there are none.

    What types say nothing of may have been made to be such a sum.
    """
    axes, types = unreduced_along(sharding), [x.aval for x in inputs if isinstance(x, Array)]
    if axes and any([t.spec is not None for t in types]):
        error = ShardingTypeError(
            f"{who}: out_sharding leaves the sum over {' and '.join(map(repr, sorted(axes)))} to "
            f"be taken, at {user_location()}, and what is summed up is not cut by that alone in "
            f"both operands, {' and '.join(map(str, types))}. Cut it so in both, "
            "phalanx.reshard(x, P(..)), or lay out the result, phalanx.reshard(y, P(unreduced=..))"
        )
        raise coded(error, "no such sum")


_STATIC = (*SCALARS, str, type, np.dtype, np.generic)
_programs: Recent[Program] = Recent(512)


def sharding_like(x: Any, shape: tuple[int, ...]) -> Sharding | None:
    """How ``x`` lies, if the user placed it, or its type says so, and it has ``shape``.

    It may be what describes an array; if that lies over a mesh without devices, the one that is set
    has them.
    """
    if getattr(x, "shape", None) != shape:
        return None
    if isinstance(x, DeviceArray):
        return x.sharding if x.committed else None
    if isinstance(x, Array):
        return None if x.aval.spec is None else x.aval.sharding
    sharding, context_mesh = getattr(x, "sharding", None), settings().mesh
    if not isinstance(sharding, NamedSharding):
        return None
    mesh = sharding.mesh
    known = mesh.has_devices or (context_mesh is not None and context_mesh.abstract_mesh == mesh)
    return sharding if known else None


def _laid_out(x: Any, shardings: Any, who: str) -> Any:
    leaves, treedef = tree.flatten(x)
    requested = tree.broadcast_prefix(shardings, x, f"{who} shardings", _is_sharding_like)
    plain = [as_sharding(s, who) for s in requested]
    return treedef.unflatten([_constrained(a, s, who) for a, s in zip(leaves, plain, strict=True)])


def _constrained(x: Any, requested: Any, who: str) -> Any:
    if _says_nothing(requested):
        return x
    sharding = _requested_sharding(requested, who)
    rank = typeof(x).ndim
    entries = len(getattr(sharding, "spec", without_open_dims(sharding).tiles))
    if entries > rank:
        error = ValueError(
            f"{who}: {sharding} is about {entries} dimensions, but the array {typeof(x)} has "
            f"{rank}, at {user_location()}"
        )
        spec = str(getattr(sharding, "spec", sharding))
        raise coded(error, "rank", who=who, spec=spec, entries=entries, rank=rank)
    if who == "with_sharding_constraint":
        sharding = _beside_types(sharding, typeof(x))
    if current() is ROOT:
        check_fits(typeof(x), without_open_dims(sharding), who)
    return constrain(x, sharding=sharding)


def _beside_types(sharding: Sharding, type: ArrayType) -> Sharding:
    """``sharding``; where it names Auto axes alone of a mesh with others, Explicit ones still cut
    what they cut: types say that."""
    mesh_spec = type.spec and type.spec.explicit
    if mesh_spec is None or not isinstance(sharding, NamedSharding) or not sharding.mesh.auto_axes:
        return sharding
    names = cutting(sharding)
    if not names or not set(names).issubset(sharding.mesh.auto_axes):
        return sharding
    spec = sharding.spec
    requested = (*spec.open_layout, *((),) * (type.ndim - len(spec)))
    both = [
        None if names is None else (*explicit, *names)
        for explicit, names in zip(mesh_spec.layout, requested, strict=True)
    ]
    return sharding.update(spec=spec.with_layout(both))


def _requested_sharding(requested: Any, who: str) -> Sharding:
    if not _is_sharding_like(requested):
        raise TypeError(f"{who}: needs shardings or PartitionSpecs, got {requested!r}")
    return sharding_for(requested, who, later=True)


def _says_nothing(requested: Any) -> bool:
    """Whether nothing is asked: a mesh without axes is what types are over where none is set."""
    return requested is None or (isinstance(requested, NamedSharding) and requested.mesh.empty)


def _is_sharding_like(x: Any) -> bool:
    return x is None or isinstance(x, (Sharding, PartitionSpec, Format))
