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

__all__ = [
    "bfloat16",
    "canonical",
    "finfo",
    "float0",
    "iinfo",
    "issubdtype",
    "promote_types",
    "result_type",
]
