"""How types and specs print where jax is served: as other programs compare and look for them."""

from __future__ import annotations

from phalanx.base.dtypes import float0
from phalanx.core.over_mesh import spec_text
from phalanx.core.types import ArrayType, joined
from phalanx.sharding import PartitionSpec


def _of_type(self: ArrayType) -> str:
    kinds = [("V", self.varying), ("U", self.unreduced), ("R", self.reduced)]
    along = [f"{kind}:{joined(tuple(sorted(map(str, axes))))}" for kind, axes in kinds if axes]
    weak, manual = "~" if self.weak else "", f"{{{', '.join(along)}}}" if along else ""
    dtype = "float0" if self.dtype == float0 else self.dtype
    return f"{weak}{dtype}{self.shown_dims()}{manual}"


def _of_spec(self: PartitionSpec) -> str:
    if len(self) == 1 and not self.has_sums:
        return f"P({self[0]!r},)"
    return spec_text(map(repr, self), self.unreduced, self.reduced)


def print_in_full() -> None:
    """From now on, ``float32[2@X,4]`` and ``P('X',)``."""
    ArrayType.__str__ = ArrayType.__repr__ = _of_type
    PartitionSpec.__repr__ = _of_spec
