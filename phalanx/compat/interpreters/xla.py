"""``jax.interpreters.xla``, of which little is left."""

from collections import defaultdict
from collections.abc import Callable
from typing import Any

from phalanx.base.errors import MissingRule
from phalanx.base.source import user_location
from phalanx.compat.primitives import LOWERINGS, ForeignPrimitive
from phalanx.core.trace import Tracer
from phalanx.core.types import typeof
from phalanx.run.eager import run_compiled


def apply_primitive(prim: ForeignPrimitive, /, *args: Any, **params: Any) -> Any:
    """What an operation gives by its lowering, also where something else would run it.

    Libraries make it what runs their operations: ``prim.def_impl(partial(apply_primitive, prim))``.

    Raises:
        MissingRule: there is no lowering.
    """
    if prim.impl is not None and prim not in LOWERINGS:
        raise MissingRule(
            f"{prim}: no rule in jax.interpreters.mlir.register_lowering, needed at "
            f"{user_location()}; apply_primitive runs what it lowers to"
        )
    if any(isinstance(x, Tracer) for x in args):
        return prim.bind(*args, **params)
    out = run_compiled(prim.declaration, args, prim.own_params(params, map(typeof, args)))
    return list(out) if prim.multiple_results else out


canonicalize_dtype_handlers: dict[type, Callable[[Any], Any]]
canonicalize_dtype_handlers = defaultdict(lambda: lambda x: x)  # others add; nothing here asks
pytype_aval_mappings = canonicalize_dtype_handlers
