"""The MLIR contexts that modules are written in.

To make one and to free it again takes as long as a small module does. So a thread stays with the
context that it has, as long as no module in it is alive: nobody else can be working there then. But
a context keeps every type and location that was ever written in it, and is left after a while.
"""

from __future__ import annotations

import threading

from jaxlib.mlir import ir
from jaxlib.mlir._mlir_libs import _jax_mlir_ext
from jaxlib.mlir.dialects import chlo, sdy
from jaxlib.mlir.dialects import stablehlo as hlo

MODULES = 64  # that one context has, one after another

_UPSTREAM = ir.DialectRegistry()
_jax_mlir_ext.register_dialects(_UPSTREAM)


class _Last(threading.local):
    """The context in which this thread goes on, and how many modules more it will have."""

    context: ir.Context | None = None
    left = 0


_last = _Last()


def context_for_module() -> ir.Context:
    """A context that knows the dialects we write, and in which no module is alive."""
    if not _last.left or _last.context is None or _last.context._get_live_module_count():
        _last.context, _last.left = _make_context(), MODULES
    _last.left -= 1
    return _last.context


def _make_context() -> ir.Context:
    context = ir.Context()
    context.append_dialect_registry(_UPSTREAM)
    for dialect in (sdy, chlo, hlo):
        dialect.register_dialect(context)
    context.dialects["func"]  # looking it up loads it; loading all there are takes 3 ms
    return context
