"""``lay``: a value as one that lies over a mesh as its type says, or as the compiler decides.

``recast``: a value as one that is something else along Manual axes, to types.
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

Lies = MeshSpec | None  # None: nothing is said


def _type(x: ArrayType, *, spec: Lies) -> ArrayType:
    return ArrayType(x.shape, x.dtype, x.weak, x.varying, both(spec, x.spec))


def _lower(b: Builder, x: Value, spec: Lies) -> Value:
    before = b.ins[0].spec and b.ins[0].spec.explicit
    unreduced = frozenset[str]() if before is None else before.unreduced
    if before is not None and unreduced and (spec is None or not spec.unreduced):
        return b.summed(x, before if spec is None or b.manual else spec)
    if spec is not None and spec.unreduced - unreduced:
        return b.left_as_sum(x, spec)
    return x  # what types say is written of every result


def _linearize(active: Active, x: Any, *, spec: Lies) -> Derivative:
    return lay(x, spec=spec), lambda t: lay(t, spec=spec)


def _transpose(ct: Any, x: Any, spec: Lies) -> Cotangents:
    """What is taken up of a cotangent lies as its primal; of a product it lay along fewer axes."""
    kind = x.type.spec
    if spec is not None or kind is None or typeof(ct).spec is not None:
        return [ct]
    fewer = cast("Layout", by_one_axis(kind.layout, len(kind.layout), ()))
    return [ct if fewer == kind.layout else in_the_open(laid(ct, MeshSpec.of(kind.mesh, fewer)))]


def _batch(axis: Axis, values: Operands, dims: LaneDims, *, spec: Lies) -> Batched:
    (x,), (dim,) = values, dims
    return lay(x, spec=spec and spec.with_dim(dim, axis.cut)), dim


def _run(x: Any, *, spec: Lies) -> Any:
    return ROOT.lay(x, spec)


lay = Primitive(
    "lay",
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


def laid(x: Any, spec: Lies) -> Any:
    """``x``, whose type has this ``spec``, along axes of type Explicit; ``x`` itself
    where they do.

    Args:
        x: an array.
        spec: how it is to lie; None leaves that to the compiler.
    """
    now, said = typeof(x).spec, spec and spec.explicit
    return x if (now and now.explicit) is said else lay(x, spec=said)


def in_the_open(x: Any) -> Any:
    """``x`` as a value of which types say nothing, so that the compiler decides of what uses it.

    Args:
        x: an operand of a rule, which may be none.
    """
    return laid(x, None) if isinstance(x, Array) and x.aval.spec is not None else x


# ---- along Manual axes --------------------------------------------------------------------------


def _recast_type(x: ArrayType, *, varying: frozenset[Any], manual: Lies) -> ArrayType:
    return ArrayType(x.shape, x.dtype, x.weak, varying, both(x.spec, manual))


def _recast_lower(b: Builder, x: Value, varying: frozenset[Any], manual: Lies) -> Value:
    return x


def _recast_linearize(active: Active, x: Any, **params: Any) -> Derivative:
    return recast(x, **params), lambda t: recast(t, **params)


def _recast_transpose(ct: Any, x: Any, varying: frozenset[Any], manual: Lies) -> Cotangents:
    type = x.type.cotangent
    return [recast(ct, varying=type.varying, manual=type.spec and type.spec.manual)]


def _recast_batch(
    axis: Axis, values: Operands, dims: LaneDims, *, varying: frozenset[Any], manual: Lies
) -> Batched:
    """Of the axis of the lanes themselves nothing is said: what varies along it has lanes."""
    (x,), (dim,) = values, dims
    if dim is not None:
        manual = manual and manual.with_dim(dim)
    manual = manual and manual.without_axes([axis.name])
    return recast(x, varying=varying - {axis.name}, manual=manual), dim


def _as_given(*operands: frozenset[Any], varying: frozenset[Any], manual: Lies) -> frozenset[Any]:
    return varying


recast = Primitive(
    "recast",
    _recast_type,
    _recast_lower,
    linearize=_recast_linearize,
    transpose=_recast_transpose,
    batch=_recast_batch,
    vary=_as_given,
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


def told_manual(x: Any, type: ArrayType) -> Any:
    """``x``, of which types are to say along Manual axes what ``type`` says; the caller knows it.

    Args:
        x: an array.
        type: a type of its shape.
    """
    now, manual = typeof(x), type.spec and type.spec.manual
    if now.varying == type.varying and (now.spec and now.spec.manual) is manual:
        return x
    return recast(x, varying=type.varying, manual=manual)


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
    kept = tuple([type.shape[i] for i in left])
    made = type.update(shape=kept, spec=type.spec.without_dims(stretched))
    return b.summed_as(made, b.reshape(x, kept)), shape, tuple([dims[i] for i in left])


def zeros_as(x: Any, type: ArrayType) -> Any:
    """Zeros, as an array of ``type``: they are parts of any sum."""
    x = laid(x, type.spec)
    return told_manual(x, type) if type.spec is not None and type.spec.of_manual else x
