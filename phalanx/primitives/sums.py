"""Numbers beside sums over devices that are still to be taken."""

from __future__ import annotations

from typing import Any

from phalanx.core.manual import typed
from phalanx.core.mesh_spec import MeshSpec, both
from phalanx.core.types import Array, ArrayType, Shape, is_scalar, typeof
from phalanx.primitives.basis import zeros


def zero_beside(x: Any, other: Any, shape: Shape | None = None) -> Any:
    """``x``; the number 0 beside a sum that is still to be taken as such a sum, of zeros.

    Args:
        x: an operand.
        other: the operand beside it.
        shape: the shape that zeros have; None: that of ``other``.
    """
    spec = other.aval.spec if isinstance(other, Array) else None
    if spec is None or not spec.unreduced or not is_scalar(x) or x:
        return x
    type = other.aval if shape is None else ArrayType(shape, other.dtype)
    return zeros(type.update(spec=MeshSpec.of(spec.mesh, [()] * type.ndim, spec.unreduced)))


def zeros_for(part: Any, type: ArrayType) -> Any:
    """The zeros of ``type`` in which ``part``, of its cotangent, is put: along Manual axes they are
    such a sum as that is."""
    kind = typeof(part)
    sums = MeshSpec.of(None, [()] * type.ndim, typed(kind.unreduced), typed(kind.reduced))
    spec = both(type.spec and type.spec.explicit, sums)
    return zeros(type.update(dtype=kind.dtype, varying=kind.varying, spec=spec))
