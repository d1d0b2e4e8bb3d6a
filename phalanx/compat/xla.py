"""``jax.interpreters.xla``, of which little is left."""

from collections import defaultdict
from collections.abc import Callable
from typing import Any

from phalanx.compat.primitives import ForeignPrimitive
from phalanx.core.types import typeof
from phalanx.run.eager import run_compiled


def apply_primitive(prim: ForeignPrimitive, /, *args: Any, **params: Any) -> Any:
    """What a program of an operation alone gives, compiled, also of one that something else runs.

    Libraries make it what runs their operations: ``prim.def_impl(partial(apply_primitive, prim))``.
    """
    out = run_compiled(prim.declaration, args, prim.own_params(params, map(typeof, args)))
    return list(out) if prim.multiple_results else out


canonicalize_dtype_handlers: dict[type, Callable[[Any], Any]]
canonicalize_dtype_handlers = defaultdict(lambda: lambda x: x)  # others add; nothing here asks
pytype_aval_mappings = canonicalize_dtype_handlers
