"""``lay``: a value as one that lies over a mesh as its type says, or as the compiler decides.

``recast``: a value as one that is something else along Manual axes, to types.
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from phalanx.core.axes import Axis
from phalanx.core.builder import Builder, Value
from phalanx.core.layouts import Layout, by_one_axis
from phalanx.core.over_mesh import OverMesh, both
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

Lies = OverMesh | None  # None: nothing is said


def _type(x: ArrayType, *, lies: Lies) -> ArrayType:
    return ArrayType(x.shape, x.dtype, x.weak, x.varying, both(lies, x.lies))


def _lower(b: Builder, x: Value, lies: Lies) -> Value:
    before = b.ins[0].lies and b.ins[0].lies.explicit
    unreduced = frozenset[str]() if before is None else before.unreduced
    if before is not None and unreduced and (lies is None or not lies.unreduced):
        return b.summed(x, before if lies is None or b.manual else lies)
    if lies is not None and lies.unreduced - unreduced:
        return b.left_as_sum(x, lies)
    return x  # what types say is written of every result


def _linearize(active: Active, x: Any, *, lies: Lies) -> Derivative:
    return lay(x, lies=lies), lambda t: lay(t, lies=lies)


def _transpose(ct: Any, x: Any, lies: Lies) -> Cotangents:
    """What is taken up of a cotangent lies as its primal; of a product it lay along fewer axes."""
    kind = x.type.lies
    if lies is not None or kind is None or typeof(ct).lies is not None:
        return [ct]
    fewer = cast("Layout", by_one_axis(kind.layout, len(kind.layout), ()))
    return [ct if fewer == kind.layout else in_the_open(laid(ct, OverMesh.of(kind.mesh, fewer)))]


def _batch(axis: Axis, values: Operands, dims: LaneDims, *, lies: Lies) -> Batched:
    (x,), (dim,) = values, dims
    return lay(x, lies=lies and lies.with_dim(dim, axis.cut)), dim


def _run(x: Any, *, lies: Lies) -> Any:
    return ROOT.lay(x, lies)


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
    examples=[Example((ArrayType((2, 3), np.dtype("float32")),), {"lies": None})],
)


def laid(x: Any, lies: Lies) -> Any:
    """``x``, of which types say that it ``lies`` so, along axes of type Explicit; ``x`` itself
    where they do.

    Args:
        x: an array.
        lies: how it is to lie; None leaves that to the compiler.
    """
    now, said = typeof(x).lies, lies and lies.explicit
    return x if (now and now.explicit) is said else lay(x, lies=said)


def in_the_open(x: Any) -> Any:
    """``x`` as a value of which types say nothing, so that the compiler decides of what uses it.

    Args:
        x: an operand of a rule, which may be none.
    """
    return laid(x, None) if isinstance(x, Array) and x.aval.lies is not None else x


# ---- along Manual axes --------------------------------------------------------------------------


def _recast_type(x: ArrayType, *, varying: frozenset[Any], manual: Lies) -> ArrayType:
    return ArrayType(x.shape, x.dtype, x.weak, varying, both(x.lies, manual))


def _recast_lower(b: Builder, x: Value, varying: frozenset[Any], manual: Lies) -> Value:
    return x


def _recast_linearize(active: Active, x: Any, **params: Any) -> Derivative:
    return recast(x, **params), lambda t: recast(t, **params)


def _recast_transpose(ct: Any, x: Any, varying: frozenset[Any], manual: Lies) -> Cotangents:
    type = x.type.cotangent
    return [recast(ct, varying=type.varying, manual=type.lies and type.lies.manual)]


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
    now, manual = typeof(x), type.lies and type.lies.manual
    if now.varying == type.varying and (now.lies and now.lies.manual) is manual:
        return x
    return recast(x, varying=type.varying, manual=manual)


def unstretched(b: Builder, x: Value, shape: Shape, dims: Ints) -> tuple[Value, Shape, Ints]:
    """What is broadcast to ``shape`` along ``dims``: a sum that is still to be taken without
    dimensions of length 1 that are stretched.

    XLA would remove them, and say nothing of how what it makes so lies.
    """
    (type,) = b.ins
    stretched = [i for i, (n, d) in enumerate(zip(type.shape, dims, strict=True)) if n != shape[d]]
    if not stretched or not type.unreduced or type.lies is None:
        return x, shape, dims
    left = [i for i in range(type.ndim) if i not in stretched]
    kept = tuple([type.shape[i] for i in left])
    made = type.update(shape=kept, lies=type.lies.without_dims(stretched))
    return b.summed_as(made, b.reshape(x, kept)), shape, tuple([dims[i] for i in left])


def zeros_as(x: Any, type: ArrayType) -> Any:
    """Zeros, as an array of ``type``: they are parts of any sum."""
    x = laid(x, type.lies)
    return told_manual(x, type) if type.lies is not None and type.lies.of_manual else x
