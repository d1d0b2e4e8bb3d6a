"""Arrays taken apart: split along an axis, unstack."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from phalanx import primitives as ops
from phalanx.base.kinds import SEQUENCE
from phalanx.base.lengths import length, slice_of
from phalanx.control.one_program import one_program
from phalanx.core.types import Array
from phalanx.numpy.promotion import ArrayLike, as_array, dim


@one_program
def unstack(x: ArrayLike, /, *, axis: int = 0) -> tuple[Array, ...]:
    """The parts of ``x`` along ``axis``, which they do not have.

    Args:
        x: an array with at least one dimension.
        axis: the axis that the parts do not have.

    Returns:
        A tuple of arrays, as many as ``x`` is long along ``axis``.

    Raises:
        AxisError: there is no dimension ``axis``.

    >>> [float(v) for v in jnp.unstack(jnp.array([1.0, 2.0]))]
    [1.0, 2.0]
    """
    x = as_array("unstack", x)
    d = dim("unstack", axis, x)
    return tuple(ops.squeeze(v, (d,)) for v in ops.split(x, (1,) * x.shape[d], d))


@one_program
def split(
    ary: ArrayLike, indices_or_sections: int | Sequence[int] | ArrayLike, axis: int = 0
) -> list[Array]:
    """``ary`` cut along ``axis`` into so many equal parts, or before the positions given.

    Args:
        ary: the array to be taken apart.
        indices_or_sections: the number of equal parts, or the indices at which new parts begin.
        axis: the axis along which the array is cut.

    Returns:
        A list of arrays.

    Raises:
        ValueError: the length is not divisible by the number of parts; see ``array_split``.

    >>> [x.tolist() for x in jnp.split(jnp.arange(4), 2)]
    [[0, 1], [2, 3]]
    """
    return _split("split", ary, indices_or_sections, axis)


@one_program
def array_split(
    ary: ArrayLike, indices_or_sections: int | Sequence[int] | ArrayLike, axis: int = 0
) -> list[Array]:
    """``split``, where the first parts may be longer by one.

    Args:
        ary: the array to be taken apart.
        indices_or_sections: the number of equal parts, or the indices at which new parts begin.
        axis: the axis along which the array is cut.

    Returns:
        A list of arrays.

    Raises:
        AxisError: there is no dimension ``axis``.

    >>> [x.tolist() for x in jnp.array_split(jnp.arange(3), 2)]
    [[0, 1], [2]]
    """
    return _split("array_split", ary, indices_or_sections, axis, uneven=True)


def _split(who: str, ary: Any, sections: Any, axis: int, uneven: bool = False) -> list[Any]:
    x = as_array(who, ary)
    d = dim(who, axis, x)
    n = x.shape[d]
    if isinstance(sections, SEQUENCE) or np.ndim(sections):
        cuts = list(map(length, sections))
        ends = [*cuts, n]
        starts = [0, *cuts]
        bounds = [slice_of(slice(a, b), n) for a, b in zip(starts, ends, strict=True)]
        return [ops.slice_dim(x, a, a + count, d) for a, _, count in bounds]
    parts = operator.index(sections)
    if parts <= 0:
        raise ValueError(f"{who}: the number of parts must be positive, got {parts}")
    size, more = divmod(n, parts)
    if more and not uneven:
        raise ValueError(
            f"{who}: dimension {d} of an array {x.aval} is not divisible into {parts} equal parts; "
            "see array_split"
        )
    return ops.split(x, [size + (i < more) for i in range(parts)], d)


@one_program
def vsplit(ary: ArrayLike, indices_or_sections: int | Sequence[int]) -> list[Array]:
    """An array cut into several by rows: ``split`` along the first dimension.

    Args:
        ary: the array to be taken apart.
        indices_or_sections: the number of equal parts, or the indices at which new parts begin.

    Returns:
        A list of arrays.

    Raises:
        ValueError: parts would differ in length; ``array_split`` allows that.

    >>> [x.shape for x in jnp.vsplit(jnp.zeros((4, 2)), 2)]
    [(2, 2), (2, 2)]
    """
    return _split("vsplit", ary, indices_or_sections, 0)


@one_program
def hsplit(ary: ArrayLike, indices_or_sections: int | Sequence[int]) -> list[Array]:
    """An array cut into several by columns: ``split`` along the second dimension, of a vector along
    the first.

    Args:
        ary: the array to be taken apart.
        indices_or_sections: the number of equal parts, or the indices at which new parts begin.

    Returns:
        A list of arrays.

    >>> [x.shape for x in jnp.hsplit(jnp.zeros((2, 4)), 2)]
    [(2, 2), (2, 2)]
    """
    x = as_array("hsplit", ary)
    return _split("hsplit", x, indices_or_sections, 0 if x.ndim == 1 else 1)


@one_program
def dsplit(ary: ArrayLike, indices_or_sections: int | Sequence[int]) -> list[Array]:
    """``split`` along the third dimension.

    Args:
        ary: the array to be taken apart.
        indices_or_sections: the number of equal parts, or the indices at which new parts begin.

    Returns:
        A list of arrays.

    >>> [x.shape for x in jnp.dsplit(jnp.zeros((1, 2, 4)), 2)]
    [(1, 2, 2), (1, 2, 2)]
    """
    return _split("dsplit", ary, indices_or_sections, 2)
