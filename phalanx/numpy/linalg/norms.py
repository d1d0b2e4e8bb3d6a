"""Norms of vectors and matrices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from phalanx import primitives as ops
from phalanx.base import dtypes
from phalanx.base.dtypes import COMPLEXES, accumulator
from phalanx.control.one_program import one_program
from phalanx.core.types import Array
from phalanx.numpy.arithmetic import absolute as abs
from phalanx.numpy.arithmetic import power
from phalanx.numpy.extrema import max, min
from phalanx.numpy.linalg.decompositions import svdvals
from phalanx.numpy.manipulation import moveaxis
from phalanx.numpy.promotion import ArrayLike, convert, dims, inexact, literal
from phalanx.numpy.reductions import sum


@one_program
def norm(
    x: ArrayLike,
    ord: Any = None,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
) -> Array:
    """Norm of vectors along one axis, of matrices along two, or of all elements.

    Args:
        x: the array.
        ord: of vectors p for (Σ |x|^p)^(1/p), by default 2; inf or -inf for the largest or smallest
            absolute value, 0 for the number of nonzero elements; of matrices "fro" for the root of
            the sum of squares (the default), "nuc" for the sum of the singular values, 2 or -2 for
            the largest or smallest of them, 1 or -1 for the largest or smallest sum of absolute
            values of a column, inf or -inf of a row.
        axis: the axis of vectors, or the two axes of matrices. None: with ``ord`` the whole array,
            of one or two dimensions; without it all elements as one vector.
        keepdims: whether the reduced axes stay, with length 1.

    Returns:
        Real numbers, in the dimensions of ``x`` that are left.

    Raises:
        ValueError: ``ord`` or ``axis`` is not valid.

    >>> x = jnp.array([[3.0, 4.0], [6.0, 8.0]])
    >>> print(jnp.linalg.norm(x, axis=1))
    [ 5. 10.]
    >>> print(jnp.linalg.norm(x, ord=jnp.inf))
    14.0
    """
    x = inexact("norm", x)
    return _as_of(x, _norm(_widened(x), ord, axis, keepdims))


def _widened(x: Any) -> Any:
    return convert(x, accumulator(x.aval.dtype), x.aval.weak)


def _as_of(x: Any, size: Any) -> Any:
    """``size`` in the dtype that the norm of ``x`` has."""
    return convert(size, dtypes.to_real(x.aval.dtype), size.aval.weak)


def _norm(x: Any, ord: Any, axis: Any, keepdims: bool) -> Any:
    if axis is None and ord is None:
        over = tuple(range(x.ndim))
        return _euclidean(x, over, keepdims)
    over = dims("norm", axis, x)
    if len(over) == 1:
        return _vector_norm(x, 2 if ord is None else ord, over, keepdims)
    if len(over) == 2:
        return _matrix_norm(x, "fro" if ord is None else ord, (over[0], over[1]), keepdims)
    raise ValueError(f"norm: one axis or two are needed, got {over} of an array {x.aval}")


def _euclidean(x: Any, over: tuple[int, ...], keepdims: bool) -> Any:
    if x.aval.dtype in COMPLEXES:
        squares = ops.add(ops.square(ops.real(x)), ops.square(ops.imag(x)))
    else:
        squares = ops.square(x)
    return ops.sqrt(sum(squares, over, keepdims=keepdims))


def _vector_norm(x: Any, ord: Any, over: tuple[int, ...], keepdims: bool) -> Any:
    if isinstance(ord, str):
        raise ValueError(f"norm: of vectors, ord must be a number, got {ord!r}")
    if ord == 2:
        return _euclidean(x, over, keepdims)
    size = abs(x)
    if ord == np.inf:
        return max(size, over, keepdims=keepdims)
    if ord == -np.inf:
        return min(size, over, keepdims=keepdims)
    if ord == 1:
        return sum(size, over, keepdims=keepdims)
    if ord == 0:
        count = ops.convert(ops.ne(size, literal(size, 0)), dtype=size.aval.dtype, weak=False)
        return sum(count, over, keepdims=keepdims)
    return power(sum(power(size, ord), over, keepdims=keepdims), 1.0 / ord)


def _matrix_norm(x: Any, ord: Any, over: tuple[int, int], keepdims: bool) -> Any:
    if ord in ("fro", "f"):
        return _euclidean(x, over, keepdims)
    of_values = {2: max, -2: min, "nuc": sum}.get(ord)
    if of_values is not None:
        out = of_values(svdvals(moveaxis(x, over, (-2, -1))), -1)
        return ops.expand_dims(out, over) if keepdims else out
    choose = {1: max, np.inf: max, -1: min, -np.inf: min}.get(ord)
    if choose is None:
        raise ValueError(
            f"norm: of matrices, ord must be 'fro', 'nuc', 1, -1, 2, -2, inf or -inf, got {ord!r}"
        )
    first, second = over if ord in (1, -1) else (over[1], over[0])
    totals = sum(abs(x), first, keepdims=True)
    extreme = choose(totals, second, keepdims=True)
    return extreme if keepdims else ops.squeeze(extreme, over)


@one_program
def vector_norm(
    x: ArrayLike,
    /,
    *,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
    ord: Any = 2,
) -> Array:
    """Norm of vectors that lie along one or several axes.

    Args:
        x: the array.
        axis: the axis, or several, whose elements together are a vector; None for all.
        keepdims: whether the reduced axes stay, with length 1.
        ord: p for (Σ |x|^p)^(1/p), by default 2; inf or -inf for the largest or smallest absolute
            value, 0 for the number of nonzero elements.

    Returns:
        Real numbers, in the dimensions of ``x`` that are left.

    Raises:
        AxisError: there is no dimension ``axis``.

    >>> print(jnp.linalg.vector_norm(jnp.array([[3.0, 4.0], [6.0, 8.0]]), axis=-1))
    [ 5. 10.]
    """
    x = inexact("vector_norm", x)
    over = dims("vector_norm", axis, x)
    return _as_of(x, _vector_norm(_widened(x), ord, over, keepdims))


@one_program
def matrix_norm(x: ArrayLike, /, *, keepdims: bool = False, ord: Any = "fro") -> Array:
    """Norm of matrices [..., m, n].

    Args:
        x: matrices [..., m, n].
        keepdims: whether the reduced axes stay, with length 1.
        ord: "fro" for the root of the sum of squares (the default), "nuc" for the sum of the
            singular values, 2 or -2 for the largest or smallest of them, 1 or -1 for the largest or
            smallest sum of absolute values of a column, inf or -inf of a row.

    Returns:
        Real numbers [...]; with ``keepdims`` [..., 1, 1].

    Raises:
        ValueError: ``x`` has fewer than 2 dimensions, or ``ord`` is not valid.

    >>> print(jnp.linalg.matrix_norm(jnp.array([[3.0, 0.0], [0.0, 4.0]])))
    5.0
    >>> print(jnp.linalg.matrix_norm(jnp.array([[3.0, 0.0], [0.0, 4.0]]), ord=2))
    4.0
    """
    x = inexact("matrix_norm", x)
    if x.ndim < 2:
        raise ValueError(f"matrix_norm: at least 2 dimensions are needed, got {x.aval}")
    over = x.ndim - 2, x.ndim - 1
    return _as_of(x, _matrix_norm(_widened(x), ord, over, keepdims))
