"""Functions for one platform or another."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from phalanx.lax.branches import choose
from phalanx.primitives.platform import platform_index


def platform_dependent(
    *args: Any, default: Callable[..., Any] | None = None, **per_platform: Callable[..., Any]
) -> Any:
    """The function for the platform that the program is compiled for, of ``args``.

    All of them are traced, as the branches of ``switch``; for the others nothing is compiled.

    Args:
        *args: trees of arrays.
        default: for platforms that are not named.
        **per_platform: by platform: ``cpu``, ``gpu``, ``cuda``, ``rocm`` or ``tpu``.

    Returns:
        What the branch returns.

    Raises:
        NotImplementedError: the platform is not named, and there is no default.
        TypeError: results differ in structure or type, or there is no function at all.

    >>> import phalanx.numpy as jnp
    >>> print(lax.platform_dependent(jnp.float32(3), cpu=lambda x: x + 1, default=lambda x: x))
    4.0
    """
    if default is None and not per_platform:
        raise TypeError("platform_dependent: no function is given; pass default, or one by name")
    branches = [*per_platform.values(), *([] if default is None else [default])]
    index = platform_index(platforms=tuple(per_platform), default=default is not None)
    return choose("platform_dependent", index, branches, args)
