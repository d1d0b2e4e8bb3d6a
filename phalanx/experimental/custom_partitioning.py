"""Functions that say how the compiler may part them over devices: here it finds that itself."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Sequence
from typing import Any

from phalanx.api.arguments import check_callable
from phalanx.base.boundary import bound, hiding
from phalanx.base.source import name_of

__all__ = ["custom_partitioning"]


class custom_partitioning:
    """``fun``, which is what it is; rules by which devices would part it are not used.

    Elsewhere such a function is opaque to the compiler, which asks the rules. Here it is written
    into the program like any other, so the compiler sees what it does and parts that; the results
    are the same. Where each device is to do what you say, use ``shard_map``.

    Args:
        fun: a function of arrays.
        static_argnums: accepted.

    Raises:
        TypeError: ``fun`` is no function.

    >>> import phalanx.numpy as jnp
    >>> @custom_partitioning
    ... def double(x):
    ...     return 2 * x
    >>> double.def_partition(lambda mesh, args, result: None, sharding_rule="i -> i")
    >>> print(double(jnp.ones(2)))
    [2. 2.]
    """

    def __init__(self, fun: Callable[..., Any], static_argnums: int | Sequence[int] = ()) -> None:
        check_callable(fun, "custom_partitioning")
        self.fun = fun
        self.partition: Callable[..., Any] | None = None
        functools.update_wrapper(self, fun, updated=())

    def def_partition(
        self,
        partition: Callable[..., Any],
        infer_sharding_from_operands: Callable[..., Any] | None = None,
        propagate_user_sharding: Callable[..., Any] | None = None,
        decode_shardings: bool = True,
        sharding_rule: Any = None,
        **factors: Any,
    ) -> None:
        """Take rules, which are not used.

        Raises:
            TypeError: ``partition`` is no function.
        """
        check_callable(partition, f"custom_partitioning({name_of(self.fun)}).def_partition")
        self.partition = partition

    @hiding
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.fun(*args, **kwargs)


bound(sys.modules[__name__])
