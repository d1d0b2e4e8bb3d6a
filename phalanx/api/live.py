"""The arrays that there are."""

from __future__ import annotations

import gc

from phalanx.run.array import DeviceArray, shared_scalars


def live_arrays(platform: str | None = None) -> list[DeviceArray]:
    """All arrays that hold data on devices, those that programs hold as constants included.

    Numbers that were put on devices as operands, as 1 in ``x + 1``, are not among them.

    Args:
        platform: only those on devices of this kind, such as "cpu".

    Returns:
        A list of arrays.

    >>> import phalanx, phalanx.numpy as jnp
    >>> x = jnp.ones(3)
    >>> any(y is x for y in phalanx.live_arrays())
    True
    """
    operands = set(map(id, shared_scalars()))
    arrays = (x for x in gc.get_objects() if type(x) is DeviceArray and id(x) not in operands)
    return [x for x in arrays if not x.is_deleted() and platform in (None, x.platform())]
