"""How types and specs print where jax is served: as other programs compare and look for them."""

from __future__ import annotations

from phalanx.base.dtypes import float0
from phalanx.core import mesh_spec
from phalanx.core.types import ArrayType, joined
from phalanx.sharding import PartitionSpec


def type_text(type: ArrayType) -> str:
    """As ``float32[2@X,4]``."""
    kinds = [("V", type.varying), ("U", type.unreduced), ("R", type.reduced)]
    along = [f"{kind}:{joined(tuple(sorted(map(str, axes))))}" for kind, axes in kinds if axes]
    weak, manual = "~" if type.weak else "", f"{{{', '.join(along)}}}" if along else ""
    dtype = "float0" if type.dtype == float0 else type.dtype
    return f"{weak}{dtype}{type.shown_dims()}{manual}"


def spec_text(spec: PartitionSpec) -> str:
    """As ``P('X',)``."""
    if len(spec) == 1 and not spec.has_sums:
        return f"P({spec[0]!r},)"
    return mesh_spec.spec_text(map(repr, spec), spec.unreduced, spec.reduced)
