"""Laws that functions and primitives obey, to check your own with.

``check_grads`` compares derivatives with finite differences and forward with reverse mode,
``check_batch`` a vectorized function with a loop, ``check_pmap`` pmap with vmap, ``check_jit`` a
compiled function with the function, and ``check_primitive`` every rule of a primitive with what
the primitive computes. Each returns nothing, or raises an ``AssertionError`` that says who, what
was found, and what was expected.
"""

import sys as _sys

from phalanx.base.boundary import bound as _bound
from phalanx.laws.compare import (
    BatchError,
    DerivativeError,
    JitError,
    LawBroken,
    PmapError,
    PrimitiveError,
)
from phalanx.laws.derivatives import check_grads
from phalanx.laws.mapping import check_batch, check_jit, check_pmap
from phalanx.laws.primitives import check_primitive

__all__ = [
    "BatchError",
    "DerivativeError",
    "JitError",
    "LawBroken",
    "PmapError",
    "PrimitiveError",
    "check_batch",
    "check_grads",
    "check_jit",
    "check_pmap",
    "check_primitive",
]

_bound(_sys.modules[__name__])
