"""``jax.interpreters.xla``, of which little is left."""

from collections import defaultdict
from collections.abc import Callable
from typing import Any

from phalanx.compat.primitives import ForeignPrimitive


def apply_primitive(prim: ForeignPrimitive, *args: Any, **params: Any) -> Any:
    """What an operation gives."""
    return prim.bind(*args, **params)


canonicalize_dtype_handlers: dict[type, Callable[[Any], Any]]
canonicalize_dtype_handlers = defaultdict(lambda: lambda x: x)  # others add; nothing here asks
pytype_aval_mappings = canonicalize_dtype_handlers
