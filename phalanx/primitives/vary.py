"""``pvary``: a value as one that may vary along axes, to types that know of these."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NoReturn

import numpy as np

from phalanx.base.errors import ShardingTypeError
from phalanx.base.source import user_location
from phalanx.core.axes import Axis, Names
from phalanx.core.builder import Builder, Value
from phalanx.core.correspond import ALL, alike, how_to_sum
from phalanx.core.manual import Typed, typed
from phalanx.core.mesh_spec import MeshSpec
from phalanx.core.primitive import (
    Batched,
    Cotangents,
    Elements,
    Example,
    LaneDims,
    NamedAxes,
    Operands,
    Primitive,
)
from phalanx.core.program import Atom, Equation, Var
from phalanx.core.types import Array, ArrayType, typeof
from phalanx.primitives.basis import broadcast, broadcast_lanes, linear_in_first, zeros
from phalanx.primitives.collective import psum
from phalanx.primitives.compare import eq, select
from phalanx.primitives.domains import f32
from phalanx.primitives.lanes import axis_index, named_by_axes
from phalanx.primitives.resharding import pcast, resharded, with_manual_type


def _type(x: ArrayType, axes: Names) -> ArrayType:
    return ArrayType(x.shape, x.dtype, x.weak)


def _lower(b: Builder, x: Value, axes: Names) -> Value:
    return x


def _transpose(ct: Any, x: Any, axes: Names) -> Cotangents:
    return psum(ct, axes=axes, groups=None)


def _batch(axis: Axis, values: Operands, dims: LaneDims, *, axes: Names) -> Batched:
    (x,), (dim,) = values, dims
    others = tuple([a for a in axes if a != axis.name])
    if dim is None and axis.name in axes:
        x, dim = broadcast_lanes(x, 0, axis.size), 0
    return pvary(x, axes=others) if others else x, dim


def _varies(v: frozenset[Any], axes: Names) -> frozenset[Any]:
    return v | set(axes)


pvary = Primitive(
    "pvary",
    _type,
    _lower,
    linearize=linear_in_first(lambda: pvary),
    transpose=_transpose,
    batch=_batch,
    dims=alike,
    linear=ALL,
    vary=_varies,
    named_axes=NamedAxes(named_by_axes, communicates=False),
    elements=Elements(copied=True, fused=True),
    doc="x, which every position has, as what may vary along axes; no operation",
    examples=[Example((f32(3),), {"axes": ("i",)}, axes=(("i", 4),))],
)


def varying_along(x: Any, axes: Iterable[Any]) -> Any:
    """``x`` as a value whose type says that it varies along all of ``axes``.

    Raises:
        ShardingTypeError: it is unreduced along one of them: then its parts are of a sum.
    """
    kind = typeof(x)
    missing = frozenset(axes) - kind.varying
    if not missing:
        return x
    if kind.spec is not None and kind.spec.of_manual:
        if kind.unreduced & missing:
            _refuse_parts(kind, missing)
        x = as_parts(x, kind.reduced & missing)
        missing -= kind.reduced
    return pvary(x, axes=sorted_axes(missing)) if missing else x


def varying_like(value: Any, x: Any) -> Any:
    """``value`` with a type that varies along the axes of that of ``x``, an array or what describes
    one."""
    described = map(Typed, getattr(x, "vma", ()))
    return varying_along(value, x.aval.varying if isinstance(x, Array) else described)


def _refuse_parts(kind: ArrayType, missing: frozenset[Any]) -> NoReturn:
    axis = sorted_axes(kind.unreduced & missing)[0]
    raise ShardingTypeError(
        f"{kind}, at {user_location()}, is unreduced: the sum over {axis!r} is still to be taken, "
        f"and what is done with it differs along that axis. Take the sum first: {how_to_sum(kind)}"
    )


# ---- from one kind to another along Manual axes, to types ---------------------------------------


def as_parts(x: Any, axes: frozenset[Any]) -> Any:
    """``x``, which is unreduced or reduced along ``axes``, as what varies along them."""
    kind = typeof(x)
    if not axes:
        return x
    manual = kind.spec and kind.spec.manual
    left = manual and manual.without_axes(axes)
    return pcast(x, varying=kind.varying | axes, manual=left)


def as_sum(x: Any, axes: frozenset[Any]) -> Any:
    """The sum, still to be taken, of what ``x`` is at the positions of ``axes``."""
    return _as_kind(x, axes, axes, frozenset())


def as_reduced(x: Any, axes: frozenset[Any]) -> Any:
    """``x``, which is the same at all positions of ``axes``, as what is reduced along them."""
    return _as_kind(varying_along(x, axes), axes, frozenset(), axes)


def _as_kind(
    x: Any, axes: frozenset[Any], unreduced: frozenset[Any], reduced: frozenset[Any]
) -> Any:
    if not axes:
        return x
    kind = typeof(x)
    spec = kind.spec and kind.spec.manual
    if spec is not None:
        unreduced, reduced = unreduced | spec.unreduced, reduced | spec.reduced
    manual = MeshSpec.of(None, [()] * kind.ndim, unreduced, reduced)
    return pcast(x, varying=kind.varying - axes, manual=manual)


def fitted(x: Any, type: ArrayType) -> Any:
    """``x`` as a value that lies over the mesh, and varies, as ``type`` says."""
    x = resharded(x, type.spec)
    kind = typeof(x)
    if not any([t.spec is not None and t.spec.of_manual for t in (kind, type)]):
        return varying_along(x, type.varying)
    left, sums = typed(kind.unreduced), typed(type.unreduced)
    if left - sums:
        total = sorted_axes(left - sums)
        (x,) = psum(as_parts(x, left - sums), axes=total, groups=None)
    varying = typeof(x).varying
    x = as_sum(_at_first(x, sums - left - varying), sums - left)
    x = as_reduced(x, typed(type.reduced) - typeof(x).reduced)
    x = varying_along(x, type.varying)
    return with_manual_type(x, type)


def conversion(x: Atom, target: ArrayType) -> list[Equation]:
    """The equations that make of ``x`` a value of the type ``target``, which may vary along more
    axes than it does, and be reduced along others.
    """
    equations: list[Equation] = []
    kind, line = x.type, user_location()
    missing = sorted_axes((target.varying | typed(target.reduced)) - kind.varying - kind.reduced)
    if missing:
        between = Var(kind.update(varying=kind.varying.union(missing)))
        equations.append(Equation(pvary, [x], {"axes": missing}, (between,), line))
        kind, x = between.type, between
    if kind is not target:
        params = {"varying": target.varying, "manual": target.spec and target.spec.manual}
        equations.append(Equation(pcast, [x], params, (Var(target),), line))
    return equations


def _at_first(x: Any, axes: frozenset[Any]) -> Any:
    """``x`` at the first position of each of ``axes``, and zeros at the others."""
    for axis in sorted_axes(axes):
        first = eq(axis_index(axes=(axis,)), np.int32(0))
        x = select(broadcast(first, shape=typeof(x).shape, dims=()), x, zeros(typeof(x)))
    return x


def sorted_axes(axes: Iterable[Any]) -> Names:
    """``axes`` in the order in which programs list them."""
    return tuple(sorted(axes, key=str))
