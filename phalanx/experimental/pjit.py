"""``pjit``, as ``jit`` over sharded arrays used to be called."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from phalanx.api.jit import jit
from phalanx.lax.layout import with_sharding_constraint

__all__ = ["pjit", "with_sharding_constraint"]


def pjit(
    fun: Callable[..., Any], in_shardings: Any = None, out_shardings: Any = None, **options: Any
) -> Any:
    """``jit``, whose first options may be given by position.

    Args:
        fun: a function of trees of arrays that returns a tree of arrays.
        in_shardings: how the arguments lie over devices, as for ``jit``.
        out_shardings: how the results do.
        **options: the other options of ``jit``.

    Returns:
        A function, as ``jit`` returns it.

    Raises:
        TypeError: ``jit`` has no such option.

    >>> import phalanx
    >>> with phalanx.set_mesh(phalanx.make_mesh((1,), ("data",))):
    ...     pjit(lambda x: x + 1, phalanx.P("data"), phalanx.P("data"))(phalanx.numpy.ones(2))
    Array([2., 2.], dtype=float32)
    """
    return jit(fun, in_shardings=in_shardings, out_shardings=out_shardings, **options)
