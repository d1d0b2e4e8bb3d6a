"""``pjit``, as ``jit`` over sharded arrays used to be called."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

from phalanx.api.arguments import check_callable
from phalanx.api.jit import Jitted
from phalanx.api.shardings import ShardingPrefix
from phalanx.base.boundary import bound
from phalanx.base.config import settings
from phalanx.core.types import ArrayType
from phalanx.lax.layout import with_sharding_constraint
from phalanx.spmd.mesh import NO_MESH
from phalanx.spmd.named import NamedSharding, PartitionSpec
from phalanx.spmd.sharding import Sharding

__all__ = ["pjit", "with_sharding_constraint"]


class _Unspecified:
    def __repr__(self) -> str:
        return "unsaid"


_UNSPECIFIED = _Unspecified()


class _WithCopies(ShardingPrefix):
    """What is asked of results, where None asks for copies over a mesh of Auto axes alone."""

    @property
    def nothing(self) -> bool:
        return super().nothing and self._copies is None

    def of(
        self, value: Any, types: Sequence[ArrayType], name_of_leaf: Callable[[int], str]
    ) -> list[Sharding | None]:
        found = super().of(value, types, name_of_leaf)
        return [self._copies if s is None else s for s in found]

    @property
    def _copies(self) -> Sharding | None:
        mesh = settings().mesh or NO_MESH
        return None if mesh.empty or mesh.explicit_axes else NamedSharding(mesh, PartitionSpec())


class _Pjit(Jitted):
    kind = "pjit"


class _PjitToCopies(_Pjit):
    results = _WithCopies


def pjit(
    fun: Callable[..., Any],
    in_shardings: Any = None,
    out_shardings: Any = _UNSPECIFIED,
    **options: Any,
) -> Any:
    """``jit``, whose first options may be given by position.

    Args:
        fun: a function of trees of arrays that returns a tree of arrays.
        in_shardings: how the arguments lie over devices, as for ``jit``.
        out_shardings: how the results do. A result for which None is given has a copy on each
            device of the mesh that is set, if one is; so it was when ``pjit`` was new. Left out,
            the compiler chooses, as under ``jit``.
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
    check_callable(fun, "pjit")
    if isinstance(out_shardings, _Unspecified):
        return _Pjit(fun, in_shardings=in_shardings, **options).function()
    jitted = _PjitToCopies(fun, in_shardings=in_shardings, out_shardings=out_shardings, **options)
    return jitted.function()


bound(sys.modules[__name__])
