"""Mutable references to arrays, and functions that read and write them."""

from phalanx.core.refs import AbstractRef, Ref
from phalanx.numpy.refs import (
    addupdate,
    empty_ref,
    free_ref,
    freeze,
    get,
    new_ref,
    set,
    swap,
)

__all__ = [
    "AbstractRef",
    "Ref",
    "addupdate",
    "empty_ref",
    "free_ref",
    "freeze",
    "get",
    "new_ref",
    "set",
    "swap",
]
