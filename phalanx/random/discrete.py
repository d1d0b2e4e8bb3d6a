"""One of two, one of several, numbers of events, successes and trials."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from phalanx import lax
from phalanx import numpy as jnp
from phalanx.base import dtypes
from phalanx.control.one_program import staged
from phalanx.core.types import Array, ArrayLike, DTypeLike, KeyLike, ShapeLike, is_scalar, typeof
from phalanx.lax.layout import takes_out_sharding
from phalanx.primitives import add, argmax, convert, lt, reshape, sub, top_k
from phalanx.primitives.basis import move
from phalanx.primitives.compare import ordered
from phalanx.primitives.domains import check_domain
from phalanx.primitives.shape import broadcast_to, dimension
from phalanx.random.arguments import (
    Lengths,
    as_parameter,
    as_shape,
    check_method,
    float_dtype,
    integer_dtype,
    shape_of_draws,
)
from phalanx.random.continuous import draw_gumbel
from phalanx.random.gammas import with_sharding_of
from phalanx.random.generators import source, sources
from phalanx.random.keys import single
from phalanx.random.uniforms import draw_signs, draw_two, draw_uniform, is_high


@takes_out_sharding
def poisson(
    key: KeyLike,
    lam: ArrayLike,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    *,
    method: str = "exact",
    out_sharding: Any = None,
) -> Array:
    """Poisson-distributed integers: k with probability λᵏ e^-λ / k!.

    Args:
        key: a single key.
        lam: the mean λ, a number or an array that broadcasts to ``shape``; -1 comes out where it
            is negative or NaN.
        shape: the shape of the result; by default that of ``lam``.
        dtype: an integer dtype; int32 by default, or int64 under ``enable_x64``.
        method: "exact", by rejection; there is no other.
        out_sharding: the ``NamedSharding`` or ``P`` of the result; None: the compiler decides.

    Returns:
        Integers of ``shape``; if that is None, of the shape of the parameter.

    Raises:
        TypeError: ``dtype`` is not integer.
        ValueError: ``lam`` does not broadcast to ``shape``, or there is no such method.

    >>> from phalanx import random
    >>> random.poisson(random.key(0), 3.0, (2,)).dtype
    dtype('int32')
    """
    chosen = integer_dtype("poisson", dtype)
    lam = as_parameter(lam, np.dtype("float32"))
    lengths = shape_of_draws("poisson", shape, lam)
    check_method("poisson", method)
    return _poisson(single("poisson", key), lam, shape=lengths, dtype=chosen)


@staged
def _poisson(key: Any, lam: Any, *, shape: tuple[int, ...], dtype: np.dtype) -> Any:
    lam = broadcast_to(lam, shape)
    few = jnp.isnan(lam) | (lam < 10)
    counted = _knuth(key, jnp.where(few, lam, 0))
    drawn = lax.convert_element_type(_hormann_poisson(key, jnp.where(few, 1e5, lam)), dtype)
    out = jnp.where(few, lax.convert_element_type(counted, dtype), drawn)
    return jnp.where(lam == 0, 0, out)


def _knuth(key: Any, lam: Any) -> Any:
    """How many exponential times fit into λ (Knuth, The Art of Computer Programming, 3.4.1)."""
    shape, dtype = typeof(lam).shape, typeof(lam).dtype
    generator = source(key)

    def more(state: Any) -> Any:
        return (state[2] > -lam).any()

    def count(state: Any) -> Any:
        words, k, logs = state
        following, drawn = sources(generator.of(words), 2)
        k = jnp.where(logs > -lam, k + 1, k)
        return following.words, k, logs + jnp.log(draw_uniform(drawn, shape, dtype))

    start = with_sharding_of(lam, jnp.zeros(shape, np.int32), jnp.zeros_like(lam))
    return lax.while_loop(more, count, (generator.words, *start))[1] - 1


def _hormann_poisson(key: Any, lam: Any) -> Any:
    """PTRS of Hörmann, The transformed rejection method for generating Poisson variables, 1993."""
    log_lam = jnp.log(lam)
    b = 0.931 + 2.53 * jnp.sqrt(lam)
    a = -0.059 + 0.02483 * b
    inverse_alpha = 1.1239 + 1.1328 / (b - 3.4)
    v_r = 0.9277 - 3.6224 / (b - 2)

    def propose(u: Any, v: Any) -> tuple[Any, Any]:
        shifted = 0.5 - jnp.abs(u)
        k = jnp.floor((2 * a / shifted + b) * u + lam + 0.43)
        s = jnp.log(v * inverse_alpha / (a / (shifted * shifted) + b))
        t = -lam + k * log_lam - lax.lgamma(k + 1)
        at_once = (shifted >= 0.07) & (v <= v_r)
        never = (k < 0) | ((shifted < 0.013) & (v > shifted))
        return k, at_once | (~never & (s <= t))

    return _accepted(key, propose, lam)


def _accepted(key: Any, propose: Any, like: Any) -> Any:
    """Proposals from u - 1/2 and v, both uniform, of the type of ``like``; each element keeps the
    last that it accepts."""
    kind, generator = typeof(like), source(key)

    def more(state: Any) -> Any:
        return ~state[2].all()

    def step(state: Any) -> Any:
        words, last, done = state
        following, first, second = sources(generator.of(words), 3)
        u = draw_uniform(first, kind.shape, kind.dtype) - 0.5
        k, accepted = propose(u, draw_uniform(second, kind.shape, kind.dtype))
        return following.words, jnp.where(accepted, k, last), done | accepted

    start = jnp.full(kind.shape, -1, kind.dtype), jnp.zeros(kind.shape, bool)
    return lax.while_loop(more, step, (generator.words, *with_sharding_of(like, *start)))[1]


def binomial(
    key: KeyLike,
    n: ArrayLike,
    p: ArrayLike,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
) -> Array:
    """Binomial numbers: how many of n trials succeed, each with probability p.

    Args:
        key: a single key.
        n: a number of trials, or an array that broadcasts to ``shape``; fractions do not count.
            NaN comes out where it is negative.
        p: the probability of success, from 0 to 1, or an array that broadcasts to ``shape``.
        shape: the shape of the result; by default that to which ``n`` and ``p`` broadcast.
        dtype: a floating-point dtype; float32 by default, or float64 under ``enable_x64``.

    Returns:
        Floats of ``shape``; if that is None, of the shape to which the parameters broadcast.

    Raises:
        ValueError: the parameters do not broadcast to ``shape``.

    >>> from phalanx import random
    >>> 0 <= float(random.binomial(random.key(0), 10, 0.5)) <= 10
    True
    """
    chosen = float_dtype("binomial", dtype)
    n, p = as_parameter(n, chosen), as_parameter(p, chosen)
    lengths = shape_of_draws("binomial", shape, n, p)
    return _binomial(single("binomial", key), n, p, shape=lengths)


@staged
def _binomial(key: Any, n: Any, p: Any, *, shape: tuple[int, ...]) -> Any:
    return draw_binomial(key, broadcast_to(n, shape), broadcast_to(p, shape))


def draw_binomial(key: Any, n: Any, p: Any) -> Any:
    """Binomial numbers, inside a staged function: those that are rarer, failures or successes."""
    rare = jnp.where(p < 0.5, p, 1 - p)
    q = jnp.where(jnp.isnan(rare) | (rare < 0), 0.01, rare)
    wrong = jnp.isnan(n) | (n < 0)
    few = wrong | (n * q <= 10)
    trials = jnp.floor(n)
    counted = _geometric_gaps(key, jnp.where(few, trials, 0), jnp.log1p(-q))
    drawn = _hormann_binomial(key, jnp.where(few, 1e4, trials), jnp.where(few, 0.5, q))
    k = jnp.where(few, counted, drawn)
    k = jnp.where(wrong | jnp.isnan(rare) | (rare < 0), math.nan, k)
    k = jnp.where(jnp.isinf(n) & ~jnp.isnan(k), math.inf, k)
    as_it_is = (p < 0.5) | wrong | jnp.isnan(rare) | jnp.isinf(n)
    return jnp.where(as_it_is, k, trials - k)


def _geometric_gaps(key: Any, n: Any, log_q: Any) -> Any:
    """How many successes n trials have room for, with the failures that come before each."""
    kind, generator = typeof(n), source(key)

    def more(state: Any) -> Any:
        return (state[2] <= n).any()

    def count(state: Any) -> Any:
        words, k, used = state
        drawn, following = sources(generator.of(words), 2)
        k = jnp.where(used <= n, k + 1, k)
        unit = draw_uniform(drawn, kind.shape, kind.dtype)
        return following.words, k, used + jnp.ceil(jnp.log(unit) / log_q)

    start = (generator.words, *with_sharding_of(n, jnp.zeros_like(n), jnp.zeros_like(n)))
    return lax.while_loop(more, count, start)[1] - 1


def _hormann_binomial(key: Any, n: Any, p: Any) -> Any:
    """BTRS of Hörmann, The generation of binomial random variates, 1993.

    The corrections to Stirling's formula are taken as equal from 9 on, as the field has it.
    """
    spread = jnp.sqrt(n * p * (1 - p))
    b = 1.15 + 2.53 * spread
    a = -0.0873 + 0.0248 * b + 0.01 * p
    v_r = 0.92 - 4.2 / b
    odds = p / (1 - p)
    alpha = (2.83 + 5.1 / b) * spread
    m = jnp.floor((n + 1) * p)
    table = np.array([_correction(k) for k in range(10)], typeof(n).dtype)

    def correction(k: Any) -> Any:
        return jnp.take(table, lax.convert_element_type(jnp.clip(k, 0, 9), np.int32))

    def propose(u: Any, v: Any) -> tuple[Any, Any]:
        shifted = 0.5 - jnp.abs(u)
        k = jnp.floor((2 * a / shifted + b) * u + (n * p + 0.5))
        s = jnp.log(v * alpha / (a / (shifted * shifted) + b))
        t = (m + 0.5) * jnp.log((m + 1) / (odds * (n - m + 1)))
        t = t + (n + 1) * jnp.log((n - m + 1) / (n - k + 1))
        t = t + (k + 0.5) * jnp.log(odds * (n - k + 1) / (k + 1))
        t = t + correction(m) + correction(n - m) - correction(k) - correction(n - k)
        at_once = (shifted >= 0.07) & (v <= v_r)
        return k, at_once | ((k >= 0) & (k <= n) & (s <= t))

    return _accepted(key, propose, n)


def _correction(k: int) -> float:
    """log k! less what Stirling's formula gives."""
    return math.lgamma(k + 1) - (k + 0.5) * math.log(k + 1) + k + 1 - math.log(2 * math.pi) / 2


@takes_out_sharding
def geometric(
    key: KeyLike,
    p: ArrayLike,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: Any = None,
) -> Array:
    """Geometric numbers: how many trials it takes until one succeeds, each with probability ``p``.

    Args:
        key: a single key.
        p: a number, or an array that broadcasts to ``shape``.
        shape: the shape of the result; by default that of ``p``.
        dtype: an integer dtype; int32 by default, or int64 under ``enable_x64``.
        out_sharding: the ``NamedSharding`` or ``P`` of the result; None: the compiler decides.

    Returns:
        Integers of ``shape``; if that is None, of the shape of the parameter.

    Raises:
        TypeError: ``dtype`` is not integer.
        ValueError: ``p`` does not broadcast to ``shape``.

    >>> from phalanx import random
    >>> int(random.geometric(random.key(0), 1.0))
    1
    """
    chosen = integer_dtype("geometric", dtype)
    p = as_parameter(p, float_dtype("geometric", None))
    lengths = shape_of_draws("geometric", shape, p)
    return _geometric(single("geometric", key), p, shape=lengths, dtype=chosen)


@staged
def _geometric(key: Any, p: Any, *, shape: Lengths, dtype: np.dtype) -> Any:
    unit = draw_uniform(key, shape, typeof(p).dtype)
    logs = jnp.log(jnp.where(unit == 0, 1, unit))
    trials = jnp.floor(logs / broadcast_to(jnp.log1p(-p), shape)) + 1
    return lax.convert_element_type(trials, dtype)


@takes_out_sharding
def bernoulli(
    key: KeyLike,
    p: ArrayLike = 0.5,
    shape: ShapeLike | None = None,
    mode: str = "low",
    *,
    out_sharding: Any = None,
) -> Array:
    """Bernoulli draws: True with probability ``p``.

    Args:
        key: a single key.
        p: a number, or an array that broadcasts to ``shape``.
        shape: the shape of the result; by default that of ``p``.
        mode: how many random bits decide: "low" for as many as one number of the dtype of ``p``
            has, "high" for twice as many, which small probabilities need.
        out_sharding: the ``NamedSharding`` or ``P`` of the result; None: the compiler decides.

    Returns:
        Booleans of ``shape``; if that is None, of the shape of ``p``.

    Raises:
        ValueError: there is no such mode.

    >>> from phalanx import random
    >>> random.bernoulli(random.key(0), 0.3, (4,)).dtype
    dtype('bool')
    """
    dtype = dtypes.to_inexact(dtypes.dtype_of(p) if not is_scalar(p) else float)
    p = as_parameter(p, float_dtype("bernoulli", dtype))
    lengths = shape_of_draws("bernoulli", shape, p)
    high = is_high("bernoulli", mode)
    return _bernoulli(single("bernoulli", key), p, shape=lengths, high=high)


@staged
def _bernoulli(key: Any, p: Any, *, shape: tuple[int, ...], high: bool) -> Any:
    dtype, p = typeof(p).dtype, broadcast_to(p, shape)
    if not high:
        return lt(draw_uniform(key, shape, dtype), p)
    coarse, fine = draw_two(key, shape, dtype)
    return lt(fine, sub(p, coarse))


@takes_out_sharding
def rademacher(
    key: KeyLike, shape: ShapeLike = (), dtype: DTypeLike | None = None, *, out_sharding: Any = None
) -> Array:
    """Rademacher numbers: 1 or -1, with probability 1/2 each.

    Args:
        key: a single key.
        shape: the shape of the result: a tuple of integers, or an integer.
        dtype: any dtype that has -1; int32 by default, or int64 under ``enable_x64``.
        out_sharding: the ``NamedSharding`` or ``P`` of the result; None: the compiler decides.

    Returns:
        Integers of ``shape``, of int32 by default.

    Raises:
        TypeError: ``key`` is no single key.
        ValueError: a length in ``shape`` is negative.

    >>> from phalanx import random
    >>> set(random.rademacher(random.key(0), (20,)).tolist()) == {1, -1}
    True
    """
    chosen = dtypes.default_int() if dtype is None else dtypes.requested(dtype)
    lengths = as_shape("rademacher", shape)
    return _rademacher(single("rademacher", key), shape=lengths, dtype=chosen)


@staged
def _rademacher(key: Any, *, shape: tuple[int, ...], dtype: np.dtype) -> Any:
    return draw_signs(key, shape, dtype)


@takes_out_sharding
def categorical(
    key: KeyLike,
    logits: ArrayLike,
    axis: int = -1,
    shape: ShapeLike | None = None,
    replace: bool = True,
    mode: str | None = None,
    *,
    out_sharding: Any = None,
) -> Array:
    """Categorical draws: positions along ``axis``, with probabilities proportional to exp(logits).

    Args:
        key: a single key.
        logits: logarithms of probabilities, up to a constant along ``axis``.
        axis: the axis of the categories.
        shape: of the result; the shape of ``logits`` without ``axis``, which is the default, must
            broadcast to its end.
        replace: whether draws beyond the first, in leading dimensions of ``shape``, can
            repeat a category.
        mode: how many random bits decide: "high" for twice as many as "low", the default; rare
            categories need them.
        out_sharding: the ``NamedSharding`` or ``P`` of the result; None: the compiler decides.

    Returns:
        int32, of ``shape``; if that is None, of the shape of the logits without ``axis``.

    Raises:
        ValueError: ``shape`` does not end as it must, or asks for too many draws; or there is no
            such mode.

    >>> from phalanx import random
    >>> int(random.categorical(random.key(0), [0.0, 99.0, 0.0]))
    1
    """
    logits = logits if hasattr(logits, "dtype") else np.asarray(logits)
    type = typeof(logits)
    check_domain("categorical", type, ordered)
    dtype = dtypes.to_inexact(type.dtype)
    logits = logits if type.dtype == dtype else convert(logits, dtype=dtype, weak=False)
    dim = dimension("categorical", axis, type.ndim)
    batch = (*type.shape[:dim], *type.shape[dim + 1 :])
    wanted = batch if shape is None else as_shape("categorical", shape)
    lead = wanted[: len(wanted) - len(batch)]
    end = wanted[len(lead) :]
    if len(end) != len(batch) or any(b not in (1, n) for b, n in zip(batch, end, strict=True)):
        raise ValueError(
            f"categorical: shape must end in {batch}, the shape of logits {type} without "
            f"axis {dim}, or in what that broadcasts to, got {wanted}"
        )
    if end != batch:
        logits = broadcast_to(logits, (*end[:dim], type.shape[dim], *end[dim:]))
    if not replace and math.prod(lead) > type.shape[dim]:
        raise ValueError(
            f"categorical: cannot draw {math.prod(lead)} of {type.shape[dim]} categories without "
            "repetition; pass replace=True"
        )
    core = _categorical if replace else _categorical_once
    high = is_high("categorical", mode)
    return core(single("categorical", key), logits, dim=dim, lead=lead, high=high)


@staged
def _categorical(key: Any, logits: Any, *, dim: int, lead: tuple[int, ...], high: bool) -> Any:
    type = typeof(logits)
    shape = (*lead, *type.shape)
    noise = draw_gumbel(key, shape, type.dtype, high)
    scores = add(noise, broadcast_to(logits, shape))
    return argmax(scores, dim=dim + len(lead), index_dtype=dtypes.default_int())


@staged
def _categorical_once(key: Any, logits: Any, *, dim: int, lead: tuple[int, ...], high: bool) -> Any:
    type = typeof(logits)
    scores = add(draw_gumbel(key, type.shape, type.dtype, high), logits)
    k = math.prod(lead)
    positions = move(top_k(move(scores, dim, type.ndim - 1), k=k)[1], type.ndim - 1, 0)
    positions = convert(positions, dtype=dtypes.default_int(), weak=False)
    return reshape(positions, shape=(*lead, *typeof(positions).shape[1:]))
