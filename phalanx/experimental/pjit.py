"""``pjit``, as ``jit`` over sharded arrays used to be called."""

from phalanx.api.jit import jit as pjit
from phalanx.lax.layout import with_sharding_constraint

__all__ = ["pjit", "with_sharding_constraint"]
