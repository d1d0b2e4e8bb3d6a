"""The MLIR contexts that modules are written in.

To make one and to free it again takes as long as a small module does. So the one of the last module
is used again, if no module in it is alive: nobody else can be working there then. But a context
keeps every type and location that was ever written in it, and is left after a while.
"""

from __future__ import annotations

import contextlib
from collections.abc import Generator

from jaxlib.mlir import ir
from jaxlib.mlir._mlir_libs import _jax_mlir_ext
from jaxlib.mlir.dialects import chlo, sdy
from jaxlib.mlir.dialects import stablehlo as hlo

MODULES = 64  # that one context has, one after another

_UPSTREAM = ir.DialectRegistry()
_jax_mlir_ext.register_dialects(_UPSTREAM)

# Those in which nobody writes, and how many modules more they have. Not one for each thread: one
# that the runtime started could not free it when it ends.
_idle: list[tuple[ir.Context, int]] = []


@contextlib.contextmanager
def context_for_module() -> Generator[None]:
    """Inside, one module may be written or read, in the dialects we know."""
    context, left = _take()
    try:
        with context:
            yield
    finally:
        if left > 1:
            _idle.append((context, left - 1))


def _take() -> tuple[ir.Context, int]:
    while _idle:
        with contextlib.suppress(IndexError):  # another thread was quicker
            context, left = _idle.pop()
            if not context._get_live_module_count():
                return context, left
    return _make_context(), MODULES


def _make_context() -> ir.Context:
    context = ir.Context()
    context.append_dialect_registry(_UPSTREAM)
    for dialect in (sdy, chlo, hlo):
        dialect.register_dialect(context)
    context.dialects["func"]  # looking it up loads it; loading all there are takes 3 ms
    return context
