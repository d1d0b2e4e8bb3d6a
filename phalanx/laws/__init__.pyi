"""The names of ``phalanx.laws``, each with the module that has it."""

from phalanx.laws.compare import (
    BatchError as BatchError,
    DerivativeError as DerivativeError,
    JitError as JitError,
    LawBroken as LawBroken,
    PmapError as PmapError,
    PrimitiveError as PrimitiveError,
)
from phalanx.laws.derivatives import check_grads as check_grads
from phalanx.laws.mapping import (
    check_batch as check_batch,
    check_jit as check_jit,
    check_pmap as check_pmap,
)
from phalanx.laws.primitives import check_primitive as check_primitive
