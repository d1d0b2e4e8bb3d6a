"""Data types: promotion, and what kind a dtype is of."""

import sys as _sys

from ml_dtypes import bfloat16

from phalanx.base.boundary import bound as _bound
from phalanx.base.dtypes import (
    canonical,
    canonicalize_dtype,
    finfo,
    float0,
    iinfo,
    issubdtype,
    itemsize_bits,
    scalar_type_of,
)
from phalanx.base.errors import TypePromotionError
from phalanx.base.extended import extended, prng_key
from phalanx.base.lattice import promote_types, result_type

__all__ = [
    "TypePromotionError",
    "bfloat16",
    "canonical",
    "canonicalize_dtype",
    "extended",
    "finfo",
    "float0",
    "iinfo",
    "issubdtype",
    "itemsize_bits",
    "prng_key",
    "promote_types",
    "result_type",
    "scalar_type_of",
]

_bound(_sys.modules[__name__])
