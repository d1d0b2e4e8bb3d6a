"""``reshard``: a value as one that lies over a mesh as its type says, or as the compiler decides.

``pcast``: a value as one that is something else along Manual axes, to types.
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from phalanx.core.axes import Axis
from phalanx.core.builder import Builder, Value
from phalanx.core.layouts import Layout, by_one_axis
from phalanx.core.mesh_spec import MeshSpec, both
from phalanx.core.primitive import (
    Active,
    Batched,
    Cotangents,
    Derivative,
    Elements,
    Example,
    Execution,
    LaneDims,
    Operands,
    Primitive,
)
from phalanx.core.trace import ROOT
from phalanx.core.types import Array, ArrayType, Ints, Shape, typeof


def _type(x: ArrayType, *, spec: MeshSpec | None) -> ArrayType:
    return ArrayType(x.shape, x.dtype, x.weak, x.varying, both(spec, x.spec))


def _lower(b: Builder, x: Value, spec: MeshSpec | None) -> Value:
    before = b.ins[0].spec and b.ins[0].spec.explicit
    unreduced = frozenset[str]() if before is None else before.unreduced
    if before is not None and unreduced and (spec is None or not spec.unreduced):
        return b.summed(x, before if spec is None or b.manual else spec)
    if spec is not None and spec.unreduced - unreduced:
        return b.left_as_sum(x, spec)
    return x  # what types say is written of every result


def _linearize(active: Active, x: Any, *, spec: MeshSpec | None) -> Derivative:
    return reshard(x, spec=spec), lambda t: reshard(t, spec=spec)


def _transpose(ct: Any, x: Any, spec: MeshSpec | None) -> Cotangents:
    """What is taken up of a cotangent lies as its primal; of a product it lay along fewer axes."""
    kind = x.type.spec
    if spec is not None or kind is None or typeof(ct).spec is not None:
        return [ct]
    fewer = cast("Layout", by_one_axis(kind.layout, len(kind.layout), ()))
    return [
        ct if fewer == kind.layout else without_spec(resharded(ct, MeshSpec.of(kind.mesh, fewer)))
    ]


def _batch(axis: Axis, values: Operands, dims: LaneDims, *, spec: MeshSpec | None) -> Batched:
    (x,), (dim,) = values, dims
    return reshard(x, spec=spec and spec.with_dim(dim, axis.explicit_axes)), dim


def _run(x: Any, *, spec: MeshSpec | None) -> Any:
    return ROOT.reshard(x, spec)


reshard = Primitive(
    "reshard",
    _type,
    _lower,
    linearize=_linearize,
    transpose=_transpose,
    batch=_batch,
    elements=Elements(copied=True, fused=True),
    execution=Execution(run=_run),
    doc="x, which lies as its type says, or, where that says nothing, as the compiler decides",
    examples=[Example((ArrayType((2, 3), np.dtype("float32")),), {"spec": None})],
)


def resharded(x: Any, spec: MeshSpec | None) -> Any:
    """``x``, whose type has this ``spec``, along axes of type Explicit; ``x`` itself
    where they do.

    Args:
        x: an array.
        spec: how it is to lie; None leaves that to the compiler.
    """
    now, explicit = typeof(x).spec, spec and spec.explicit
    return x if (now and now.explicit) is explicit else reshard(x, spec=explicit)


def without_spec(x: Any) -> Any:
    """``x`` as a value whose type has no sharding: the compiler decides for what uses it.

    Args:
        x: an operand of a rule, which may be none.
    """
    return resharded(x, None) if isinstance(x, Array) and x.aval.spec is not None else x


# ---- along Manual axes --------------------------------------------------------------------------


def _pcast_type(x: ArrayType, *, varying: frozenset[Any], manual: MeshSpec | None) -> ArrayType:
    return ArrayType(x.shape, x.dtype, x.weak, varying, both(x.spec, manual))


def _pcast_lower(b: Builder, x: Value, varying: frozenset[Any], manual: MeshSpec | None) -> Value:
    return x


def _pcast_linearize(active: Active, x: Any, **params: Any) -> Derivative:
    return pcast(x, **params), lambda t: pcast(t, **params)


def _pcast_transpose(
    ct: Any, x: Any, varying: frozenset[Any], manual: MeshSpec | None
) -> Cotangents:
    type = x.type.cotangent
    return [pcast(ct, varying=type.varying, manual=type.spec and type.spec.manual)]


def _pcast_batch(
    axis: Axis,
    values: Operands,
    dims: LaneDims,
    *,
    varying: frozenset[Any],
    manual: MeshSpec | None,
) -> Batched:
    """Nothing is said of the axis of the lanes themselves: what varies along it has lanes."""
    (x,), (dim,) = values, dims
    if dim is not None:
        manual = manual and manual.with_dim(dim)
    manual = manual and manual.without_axes([axis.name])
    return pcast(x, varying=varying - {axis.name}, manual=manual), dim


def _varying_along(
    *operands: frozenset[Any], varying: frozenset[Any], manual: MeshSpec | None
) -> frozenset[Any]:
    return varying


pcast = Primitive(
    "pcast",
    _pcast_type,
    _pcast_lower,
    linearize=_pcast_linearize,
    transpose=_pcast_transpose,
    batch=_pcast_batch,
    vary=_varying_along,
    elements=Elements(copied=True, fused=True),
    doc="x, of which types say that it varies along axes, or is a sum over them; no operation",
    examples=[
        Example(
            (ArrayType((2, 3), np.dtype("float32")),),
            {"varying": frozenset({"i"}), "manual": None},
            (("i", 4),),
        )
    ],
)


def with_manual_type(x: Any, type: ArrayType) -> Any:
    """``x``, of which types are to say along Manual axes what ``type`` says; the caller knows it.

    Args:
        x: an array.
        type: a type of its shape.
    """
    now, manual = typeof(x), type.spec and type.spec.manual
    if now.varying == type.varying and (now.spec and now.spec.manual) is manual:
        return x
    return pcast(x, varying=type.varying, manual=manual)


def unstretched(b: Builder, x: Value, shape: Shape, dims: Ints) -> tuple[Value, Shape, Ints]:
    """What is broadcast to ``shape`` along ``dims``: a sum that is still to be taken without
    dimensions of length 1 that are stretched.

    XLA would remove them, and say nothing of how what it makes so lies.
    """
    (type,) = b.ins
    stretched = [i for i, (n, d) in enumerate(zip(type.shape, dims, strict=True)) if n != shape[d]]
    if not stretched or not type.unreduced or type.spec is None:
        return x, shape, dims
    left = [i for i in range(type.ndim) if i not in stretched]
    squeezed_shape = tuple([type.shape[i] for i in left])
    squeezed = type.update(shape=squeezed_shape, spec=type.spec.without_dims(stretched))
    return (
        b.summed_as(squeezed, b.reshape(x, squeezed_shape)),
        shape,
        tuple([dims[i] for i in left]),
    )


def zeros_as(x: Any, type: ArrayType) -> Any:
    """Zeros, as an array of ``type``: they are parts of any sum."""
    x = resharded(x, type.spec)
    return with_manual_type(x, type) if type.spec is not None and type.spec.of_manual else x
