"""What is indexed in regions that leave axes to the compiler: which dimensions are not cut.

XLA's partitioner counts wrong groups of devices there, and ends the process, if one axis cuts the
dimension that is indexed, or two cut those of the indices and those of the windows (in a scatter,
also those of the indices and those that go with the array's).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from phalanx.core.types import Ints


class UncutDims(NamedTuple):
    """Dimensions that are not cut, of each operand; windows are slices or updates."""

    array: Ints
    indices: Ints
    windows: Ints


def cut_twice(sizes: Sequence[int]) -> bool:
    """Whether axes of these sizes can cut two dimensions of one array: a part of one axis may."""
    parts = [n for n in sizes if n > 1]
    return len(parts) > 1 or any(n % k == 0 for n in parts for k in range(2, n))


def of_indices(index_ndim: int, batching: Ints, windows: Ints) -> tuple[Ints, Ints]:
    """The dimensions that the indices alone have: in them, and in all windows.

    Args:
        index_ndim: of the indices, of which the last dimension is one index.
        batching: the dimensions of the indices that go with dimensions of the array.
        windows: the dimensions of all windows that come from the array.
    """
    own = [d for d in range(index_ndim - 1) if d not in batching]
    others = [d for d in range(len(windows) + index_ndim - 1) if d not in windows]
    return tuple(own), tuple([others[d] for d in own])


def dims_left_whole(
    ndim: int, index_ndim: int, indexed: Ints, batching: Ints, windows: Ints, few: bool
) -> UncutDims:
    """The dimensions of the indices alone, or all others.

    Args:
        ndim: of what is indexed.
        index_ndim: as in :func:`of_indices`.
        indexed: the dimensions of the array that the indices are of.
        batching: as in :func:`of_indices`.
        windows: as in :func:`of_indices`.
        few: whether the windows are smaller than the array: which are then gathered, not the array.
    """
    if not few and not batching:
        return UncutDims(tuple(range(ndim)), (), windows)
    return UncutDims(indexed, *of_indices(index_ndim, batching, windows))
