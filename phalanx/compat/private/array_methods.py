"""``jax._src.numpy.array_methods``: the classes of ``x.at`` and of ``x.at[index]``."""

from phalanx.numpy.at import At as _IndexUpdateHelper
from phalanx.numpy.at import Part as _IndexUpdateRef

__all__ = ["_IndexUpdateHelper", "_IndexUpdateRef"]
