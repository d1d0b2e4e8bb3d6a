"""Data types: promotion, and what kind a dtype is of."""

from phalanx.base.dtypes import (
    bfloat16,
    canonical,
    finfo,
    float0,
    iinfo,
    issubdtype,
    promote_types,
    result_type,
)
from phalanx.base.extended import extended, prng_key

__all__ = [
    "bfloat16",
    "canonical",
    "extended",
    "finfo",
    "float0",
    "iinfo",
    "issubdtype",
    "prng_key",
    "promote_types",
    "result_type",
]
