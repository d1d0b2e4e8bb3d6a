"""Random orders and random choices among given things."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from phalanx.base import dtypes
from phalanx.base.dtypes import accumulator
from phalanx.base.lengths import Length, length
from phalanx.control.one_program import staged
from phalanx.core.types import Array, ArrayLike, KeyLike, ShapeLike, typeof
from phalanx.lax.layout import takes_out_sharding
from phalanx.primitives import (
    add,
    and_,
    constant_like,
    convert,
    cummax,
    cumsum,
    eq,
    le,
    log,
    lt,
    min,
    mul,
    reshape,
    select,
    sort,
    sub,
    top_k,
    value_of,
)
from phalanx.primitives.index import GatherDimensionNumbers, gather
from phalanx.primitives.shape import broadcast_to, dimension, expand_dims, iota, slice_dim
from phalanx.random.arguments import as_shape
from phalanx.random.continuous import draw_gumbel
from phalanx.random.generators import sources
from phalanx.random.keys import single
from phalanx.random.uniforms import draw_bits, draw_uniform, is_high, randint

_INT = np.dtype(np.int32)

# ---- permutations ---------------------------------------------------------------------------


@takes_out_sharding
def permutation(
    key: KeyLike,
    x: ArrayLike,
    axis: int = 0,
    independent: bool = False,
    *,
    out_sharding: Any = None,
) -> Array:
    """A random permutation: ``x`` in random order, every order equally likely.

    Args:
        key: a single key.
        x: an array, or an integer n, which means 0, 1, ..., n - 1.
        axis: the axis that is put in another order.
        independent: whether each vector along ``axis`` gets an order of its own.
        out_sharding: the ``NamedSharding`` or ``P`` of the result; None: the compiler decides.

    Returns:
        An array of the shape and dtype of ``x``; of an integer n, int32 [n].

    Raises:
        AxisError: there is no dimension ``axis``.
        TypeError: ``x`` is neither.

    >>> from phalanx import random
    >>> sorted(random.permutation(random.key(0), 4).tolist())
    [0, 1, 2, 3]
    """
    key = single("permutation", key)
    x = _things("permutation", x)
    if isinstance(x, (int, Length)):
        return _shuffled_range(key, n=x)
    dim = dimension("permutation", axis, typeof(x).ndim)
    if independent or typeof(x).ndim == 1:
        return _shuffled(key, x, dim=dim)
    return _reordered(key, x, dim=dim)


def _things(who: str, x: Any) -> Any:
    """``x`` as an array, or as a Python integer if it is a single one."""
    if np.ndim(x) > 0:
        return x if hasattr(x, "dtype") else np.asarray(x)
    try:
        count = length(x)
    except TypeError:
        raise TypeError(f"{who}: an array or an integer is needed, got {x!r}") from None
    if isinstance(count, int):
        dtypes.check_range(count - 1, dtypes.default_int(), who)
    return count


@staged
def _shuffled_range(key: Any, *, n: int) -> Any:
    return _shuffle(key, _range(n), 0)


@staged
def _shuffled(key: Any, x: Any, *, dim: int) -> Any:
    return _shuffle(key, x, dim)


@staged
def _reordered(key: Any, x: Any, *, dim: int) -> Any:
    order = _shuffle(key, _range(typeof(x).shape[dim]), 0)
    return _take(x, order, dim)


def _range(n: int) -> Any:
    return iota(dtype=dtypes.default_int(), shape=(n,), dim=0)


# So many elements need no round, one round, two: the cube of their number is to be a power of 2**32
_ENOUGH = 1, 1625, 2642245


def _shuffle(key: Any, x: Any, dim: int) -> Any:
    """Sort by random keys, often enough that equal keys, which keep an order, do not matter.

    How often that is the program finds out where the number of elements is symbolic.
    """
    shape, size = typeof(x).shape, typeof(x).size
    for enough in _ENOUGH:
        if not isinstance(size, Length) and size <= enough:
            break
        key, drawn = sources(key, 2)
        keys = draw_bits(drawn, shape, 32)
        again = sort(keys, x, dim=dim, num_keys=1, stable=True)[1]
        if isinstance(size, Length):
            done = le(value_of(size, _INT), _INT.type(enough))
            again = select(broadcast_to(done, shape), x, again)
        x = again
    return x


def _take(x: Any, positions: Any, dim: int) -> Any:
    """``x`` at ``positions``, an array of any shape, in place of dimension ``dim``."""
    shape, count = typeof(x).shape, typeof(positions).ndim
    others = range(len(shape) - 1)
    numbers = GatherDimensionNumbers(tuple(d + count * (d >= dim) for d in others), (dim,), (dim,))
    sizes = (*shape[:dim], 1, *shape[dim + 1 :])
    rows = expand_dims(positions, (count,))
    return gather(x, rows, numbers=numbers, slice_sizes=sizes, mode="promise")


# ---- choice ---------------------------------------------------------------------------------


def choice(
    key: KeyLike,
    a: ArrayLike,
    shape: ShapeLike = (),
    replace: bool = True,
    p: ArrayLike | None = None,
    axis: int = 0,
    mode: str | None = None,
) -> Array:
    """Elements of ``a`` at random.

    Args:
        key: a single key.
        a: an array, or an integer n, which means 0, 1, ..., n - 1.
        shape: how many, in which shape.
        replace: whether the same element can be drawn again.
        p: the probability of each element; by default they are equal.
        axis: the axis of ``a`` along which to choose.
        mode: how many random bits decide where ``p`` is given and ``replace`` is not set: "high"
            for twice as many as "low", the default.

    Returns:
        An array with ``shape`` in place of axis ``axis`` of ``a``.

    Raises:
        ValueError: there are too few elements, ``p`` has the wrong shape, or there is no such mode.

    >>> from phalanx import random
    >>> print(random.choice(random.key(0), 10, (3,), replace=False))
    [0 1 8]
    """
    key = single("choice", key)
    wanted = as_shape("choice", shape)
    a = _things("choice", a)
    high = is_high("choice", mode)
    if isinstance(a, (int, Length)):
        _check_choice(a, wanted, replace, p)
        return _positions(key, a, wanted, replace, p, high)
    dim = dimension("choice", axis, typeof(a).ndim)
    count = typeof(a).shape[dim]
    _check_choice(count, wanted, replace, p)
    if p is None and not replace:
        return _first_shuffled(key, a, dim=dim, shape=wanted)
    return _taken(a, _positions(key, count, wanted, replace, p, high), dim=dim)


def _check_choice(count: int, shape: tuple[int, ...], replace: bool, p: Any) -> None:
    drawn = math.prod(shape)
    if count < 1 and drawn:
        raise ValueError("choice: a must not be empty unless nothing is drawn")
    if not replace and drawn > count:
        raise ValueError(
            f"choice: cannot draw {drawn} of {count} elements without repetition; "
            "pass replace=True or a smaller shape"
        )
    if p is not None and np.shape(p) != (count,):
        raise ValueError(f"choice: p must have shape ({count},) as a does, got {np.shape(p)}")


def _positions(
    key: Any, count: int, shape: tuple[int, ...], replace: bool, p: Any, high: bool
) -> Any:
    if p is None:
        if replace:
            return randint(key, shape, 0, count)
        return _first_of_range(key, n=count, shape=shape)
    p = p if hasattr(p, "dtype") else np.asarray(p)
    dtype = dtypes.to_inexact(typeof(p).dtype)
    p = p if typeof(p).dtype == dtype else convert(p, dtype=dtype, weak=False)
    if replace:
        return _weighted(key, p, shape=shape)
    return _weighted_once(key, p, shape=shape, high=high)


@staged
def _first_of_range(key: Any, *, n: int, shape: tuple[int, ...]) -> Any:
    order = _shuffle(key, _range(n), 0)
    return reshape(slice_dim(order, 0, math.prod(shape), 0), shape=shape)


@staged
def _first_shuffled(key: Any, a: Any, *, dim: int, shape: tuple[int, ...]) -> Any:
    lengths = typeof(a).shape
    if len(lengths) == 1:
        shuffled = _shuffle(key, a, 0)
    else:
        shuffled = _take(a, _shuffle(key, _range(lengths[dim]), 0), dim)
    shuffled = slice_dim(shuffled, 0, math.prod(shape), dim)
    return reshape(shuffled, shape=(*lengths[:dim], *shape, *lengths[dim + 1 :]))


@staged
def _taken(a: Any, positions: Any, *, dim: int) -> Any:
    return _take(a, positions, dim)


@staged
def _weighted(key: Any, p: Any, *, shape: tuple[int, ...]) -> Any:
    """Where uniform numbers fall among the cumulative probabilities.

    Each of these is a sum of its own, rounded as it is. So they are made to ascend, and where an
    element weighs nothing, there is no step.
    """
    (n,) = typeof(p).shape
    dtype = accumulator(typeof(p).dtype)
    p = p if typeof(p).dtype == dtype else convert(p, dtype=dtype, weak=False)
    sums = cumsum(p, dim=0, reverse=False)
    sums = cummax(
        select(eq(p, constant_like(p, 0)), constant_like(p, -1), sums), dim=0, reverse=False
    )
    total = broadcast_to(reshape(slice_dim(sums, n - 1, n, 0), shape=()), shape)
    marks = mul(total, sub(1, draw_uniform(key, shape, dtype)))
    return _first_not_below(sums, marks)


def _first_not_below(ascending: Any, marks: Any) -> Any:
    """The first position in ``ascending`` with an element >= each mark, by bisection."""
    (n,) = typeof(ascending).shape
    position = broadcast_to(dtypes.scalar(0, dtypes.default_int()), typeof(marks).shape)
    bits = 31 if isinstance(n, Length) else n.bit_length()
    for step in reversed([1 << i for i in range(bits)]):
        further = add(position, step)
        before = _take(ascending, min(sub(further, 1), constant_like(further, n - 1)), 0)
        is_below = and_(le(further, constant_like(further, n)), lt(before, marks))
        position = select(is_below, further, position)
    return min(position, constant_like(position, n - 1))  # where no element weighs anything


@staged
def _weighted_once(key: Any, p: Any, *, shape: tuple[int, ...], high: bool) -> Any:
    """The largest of log-probabilities plus Gumbel noise."""
    (n,) = typeof(p).shape
    scores = add(draw_gumbel(key, (n,), typeof(p).dtype, high), log(p))
    positions = top_k(scores, k=math.prod(shape))[1]
    return convert(reshape(positions, shape=shape), dtype=dtypes.default_int(), weak=False)
