"""Distributions that are drawn by proposing numbers and accepting some: gamma, Poisson, binomial.

All elements propose until the last one has accepted. Loops have no derivative in reverse, so
parameters enter them as constants; a gamma number moves with its parameter by a rule.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from phalanx import lax
from phalanx import numpy as jnp
from phalanx.base import dtypes
from phalanx.base.recent import memoized
from phalanx.control.custom_jvp_call import JvpRule, custom_jvp
from phalanx.control.one_program import staged
from phalanx.core.program import Program
from phalanx.core.types import Array, ArrayLike, ArrayType, DTypeLike, KeyLike, ShapeLike, typeof
from phalanx.lax.layout import takes_out_sharding
from phalanx.lax.special import gamma_slope
from phalanx.ops import mul, stop_gradient
from phalanx.ops.lay import laid
from phalanx.ops.shape import broadcast_to
from phalanx.random.distributions import as_normal
from phalanx.random.generators import Source, source, sources
from phalanx.random.keys import single
from phalanx.random.uniforms import (
    as_parameter,
    as_uniform,
    bits_of,
    but_last_axis,
    draw_uniform,
    float_dtype,
    integer_dtype,
    shape_of_draws,
)
from phalanx.transforms.stage import stage


def _bits(keys: Source, dtype: np.dtype) -> Any:
    """The random bits of a number of ``dtype`` with each key."""
    return keys.generator.bits_of_each(keys.words, bits_of(dtype))


def _where(mask: Any, new: Sequence[Any], old: Sequence[Any]) -> tuple[Any, ...]:
    return tuple(jnp.where(mask, x, y) for x, y in zip(new, old, strict=True))


# ---- gamma ----------------------------------------------------------------------------------


@takes_out_sharding
def gamma(
    key: KeyLike,
    a: ArrayLike,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    *,
    method: str = "exact",
    out_sharding: Any = None,
) -> Array:
    """Gamma-distributed numbers, of density xᵃ⁻¹ e⁻ˣ / Γ(a), x > 0.

    They have a derivative by ``a``: how the number moves that lies at the same quantile.

    Args:
        key: a single key.
        a: a positive number, or an array that broadcasts to ``shape``.
        shape: the shape of the result; by default that of ``a``.
        dtype: a floating-point dtype; float32 by default, or float64 under ``enable_x64``.
        method: "exact", by rejection; there is no other.
        out_sharding: how the result lies over devices, as a ``NamedSharding`` or a ``P`` on the
            mesh that is set; None: the compiler decides.

    Returns:
        Floating-point numbers of ``shape``; if that is None, of the shape to which the parameters
        broadcast.

    Raises:
        ValueError: ``a`` does not broadcast to ``shape``, or there is no such method.

    >>> from phalanx import random
    >>> print(random.gamma(random.key(0), 2.0, (3,)).round(3))
    [1.59  1.76  1.129]
    """
    return _gamma("gamma", key, a, shape, dtype, method, in_logs=False)


@takes_out_sharding
def loggamma(
    key: KeyLike,
    a: ArrayLike,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    *,
    method: str = "exact",
    out_sharding: Any = None,
) -> Array:
    """The logarithms of gamma-distributed numbers, exact where these are too small for a float.

    Args:
        key: a single key.
        a: a positive number, or an array that broadcasts to ``shape``.
        shape: the shape of the result; by default that of ``a``.
        dtype: a floating-point dtype; float32 by default, or float64 under ``enable_x64``.
        method: "exact", by rejection; there is no other.
        out_sharding: how the result lies over devices, as a ``NamedSharding`` or a ``P`` on the
            mesh that is set; None: the compiler decides.

    Returns:
        Floating-point numbers of ``shape``; if that is None, of the shape to which the parameters
        broadcast.

    Raises:
        ValueError: ``a`` does not broadcast to ``shape``, or there is no such method.

    >>> from phalanx import random
    >>> bool(random.loggamma(random.key(0), 1e-3) < -10)
    True
    """
    return _gamma("loggamma", key, a, shape, dtype, method, in_logs=True)


def _gamma(who: str, key: Any, a: Any, shape: Any, dtype: Any, method: str, in_logs: bool) -> Any:
    chosen = float_dtype(who, dtype)
    a = as_parameter(a, chosen)
    lengths = shape_of_draws(who, shape, a)
    check_method(who, method)
    return _staged_gamma(single(who, key), a, shape=lengths, in_logs=in_logs)


def check_method(who: str, method: str) -> None:
    """Raise ValueError unless ``method`` is "exact"."""
    if method != "exact":
        raise ValueError(f"{who}: method must be 'exact', got {method!r}")


@staged
def _staged_gamma(key: Any, a: Any, *, shape: tuple[int, ...], in_logs: bool) -> Any:
    return draw_gamma(key, broadcast_to(a, shape), in_logs)


def draw_gamma(key: Any, a: Any, in_logs: bool) -> Any:
    """Gamma-distributed numbers, or their logarithms, inside a staged function.

    Below 1 they are those of a + 1, times u^(1/a) (Marsaglia and Tsang, A simple method for
    generating gamma variables, 2000).
    """
    moved = a
    a = stop_gradient(a)
    kind = typeof(a)
    keys = source(key).split(kind.shape)
    small = a < 1
    d = jnp.where(small, a + 1, a) - kind.dtype.type(1 / 3)
    proposals, units = keys.children(2)
    cube = _marsaglia(proposals, d)
    unit = as_uniform(_bits(units, kind.dtype), kind.dtype)
    if in_logs:
        boost = jnp.where(small, jnp.log1p(-unit) * (1 / a), 0)
        x = jnp.log(d) + jnp.log(cube) + boost
    else:
        x = d * cube * jnp.where(small, jnp.power(1 - unit, 1 / a), 1)
    return _moving(moved, x, in_logs)


def _marsaglia(keys: Source, d: Any) -> Any:
    """The accepted (1 + c x)³ for standard normal x."""
    dtype = typeof(d).dtype
    c = dtype.type(1 / 3) / jnp.sqrt(d)

    def proposes(state: Any) -> Any:
        *_, square, cube, unit = state
        quick = unit >= 1 - dtype.type(0.0331) * (square * square)
        return quick & (jnp.log(unit) >= square * 0.5 + d * (1 - cube + jnp.log(cube)))

    def propose(state: Any) -> Any:
        own = keys.of(state[:-3])
        following, normals, units = own.children(3)
        x, v = _normal_above(normals, c)
        unit = as_uniform(_bits(units, dtype), dtype)
        new = (*following.words, x * x, v * v * v, unit)
        return _where(proposes(state), new, state)

    start = (*keys.words, jnp.zeros_like(d), jnp.ones_like(d), jnp.full_like(d, 2))
    return lax.while_loop(lambda s: proposes(s).any(), propose, _beside(d, *start))[-2]


def _normal_above(keys: Source, c: Any) -> tuple[Any, Any]:
    """A standard normal x with v = 1 + c x > 0, and v."""
    dtype = typeof(c).dtype

    def draw(state: Any) -> Any:
        following, normals = keys.of(state[:-2]).children(2)
        x = as_normal(_bits(normals, dtype), dtype)
        return _where(state[-1] <= 0, (*following.words, x, 1 + x * c), state)

    start = (*keys.words, jnp.zeros_like(c), jnp.full_like(c, -1))
    return lax.while_loop(lambda s: (s[-1] <= 0).any(), draw, _beside(c, *start))[-2:]


def _beside(x: Any, *start: Any) -> tuple[Any, ...]:
    """What a loop carries from ``start``, of the shape of ``x``, where it lies as ``x`` does."""
    kind = typeof(x)
    return tuple([laid(s, kind.spec) if typeof(s).shape == kind.shape else s for s in start])


def _moving(a: Any, x: Any, in_logs: bool) -> Any:
    """``x``, a gamma number of parameter ``a`` or its logarithm, which moves with ``a``."""
    program = _second(typeof(a), typeof(x))
    return custom_jvp(a, x, program=program, rule=_RULES[in_logs], closed=0)[0]


@memoized(16)
def _second(a: ArrayType, x: ArrayType) -> Program:
    def second(_: Any, x: Any) -> tuple[Any]:
        return (x,)

    return stage(second, [a, x], "gamma")[0]


def _rule(in_logs: bool) -> JvpRule:
    def pair(nonzero: Sequence[bool], operands: Sequence[Any]) -> list[Any]:
        a, x, *tangents = operands
        slope = _slope_in_logs(a, x) if in_logs else gamma_slope(a, x)
        return [x, mul(tangents[0], slope)]

    return JvpRule("loggamma" if in_logs else "gamma", pair)


def _slope_in_logs(a: Any, log_x: Any) -> Any:
    """d log x / da; for tiny x, where P(a, x) = xᵃ / Γ(a + 1), from that."""
    tiny = log_x < math.log(float(dtypes.finfo(typeof(a).dtype).tiny)) + 4
    x = jnp.exp(jnp.where(tiny, 0, log_x))
    return jnp.where(tiny, (lax.digamma(a + 1) - log_x) / a, gamma_slope(a, x) / x)


_RULES = {in_logs: _rule(in_logs) for in_logs in (False, True)}


# ---- Poisson --------------------------------------------------------------------------------


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
        out_sharding: how the result lies over devices, as a ``NamedSharding`` or a ``P`` on the
            mesh that is set; None: the compiler decides.

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
    given = source(key)

    def more(state: Any) -> Any:
        return (state[2] > -lam).any()

    def count(state: Any) -> Any:
        words, k, logs = state
        following, drawn = sources(given.of(words), 2)
        k = jnp.where(logs > -lam, k + 1, k)
        return following.words, k, logs + jnp.log(draw_uniform(drawn, shape, dtype))

    start = (given.words, *_beside(lam, jnp.zeros(shape, np.int32), jnp.zeros_like(lam)))
    return lax.while_loop(more, count, start)[1] - 1


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
    kind, given = typeof(like), source(key)

    def more(state: Any) -> Any:
        return ~state[2].all()

    def step(state: Any) -> Any:
        words, kept, done = state
        following, first, second = sources(given.of(words), 3)
        u = draw_uniform(first, kind.shape, kind.dtype) - 0.5
        k, accepted = propose(u, draw_uniform(second, kind.shape, kind.dtype))
        return following.words, jnp.where(accepted, k, kept), done | accepted

    start = jnp.full(kind.shape, -1, kind.dtype), jnp.zeros(kind.shape, bool)
    return lax.while_loop(more, step, (given.words, *_beside(like, *start)))[1]


# ---- binomial -------------------------------------------------------------------------------


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
        Floating-point numbers of ``shape``; if that is None, of the shape to which the parameters
        broadcast.

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
    kind, given = typeof(n), source(key)

    def more(state: Any) -> Any:
        return (state[2] <= n).any()

    def count(state: Any) -> Any:
        words, k, used = state
        drawn, following = sources(given.of(words), 2)
        k = jnp.where(used <= n, k + 1, k)
        unit = draw_uniform(drawn, kind.shape, kind.dtype)
        return following.words, k, used + jnp.ceil(jnp.log(unit) / log_q)

    start = (given.words, *_beside(n, jnp.zeros_like(n), jnp.zeros_like(n)))
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


# ---- multinomial ----------------------------------------------------------------------------


def multinomial(
    key: KeyLike,
    n: ArrayLike,
    p: ArrayLike,
    *,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    unroll: int | bool = 1,
) -> Array:
    """Multinomial counts: how many of n trials come out as i, which has probability p[..., i].

    Args:
        key: a single key.
        n: a number, or an array that broadcasts to ``shape``.
        p: probabilities along the last axis; they need not add up to 1.
        shape: of the result without its last axis; by default that to which ``n`` and the other
            axes of ``p`` broadcast.
        dtype: any dtype of numbers; float32 by default, or float64 under ``enable_x64``.
        unroll: how many ways to write out per iteration of the compiled loop.

    Returns:
        Counts, of the shape of ``p``; or ``[*shape, k]``, of k ways.

    Raises:
        ValueError: the parameters do not broadcast to ``shape``.

    >>> import numpy as np
    >>> from phalanx import random
    >>> float(random.multinomial(random.key(0), 10, np.array([0.2, 0.3, 0.5])).sum())
    10.0
    """
    asked = dtypes.default_float() if dtype is None else dtypes.requested(dtype)
    chosen = asked if dtypes.is_floating(asked) else dtypes.default_float()
    n, p = as_parameter(n, chosen), as_parameter(p, chosen)
    lengths = shape_of_draws("multinomial", shape, n, but_last_axis("multinomial", "p", p)[0])
    drawn = _multinomial(single("multinomial", key), n, p, shape=lengths, unroll=unroll)
    return drawn if asked == chosen else drawn.astype(asked)


@staged
def _multinomial(key: Any, n: Any, p: Any, *, shape: tuple[int, ...], unroll: int | bool) -> Any:
    """Way by way, from the trials that are left, with the share of what probability is left."""
    p = broadcast_to(p, (*shape, typeof(p).shape[-1]))
    left = jnp.flip(jnp.cumsum(jnp.flip(p, -1), -1), -1)
    shares = jnp.clip(p / jnp.where(left == 0, 1, left), 0, 1)
    count = typeof(p).shape[-1]
    given = source(key)

    def draw(trials: Array, row: Any) -> tuple[Array, Array]:
        words, share = row
        k = draw_binomial(given.of(words), trials, share)
        return trials - k, k

    rows = (given.split((count,)).words, jnp.moveaxis(shares, -1, 0))
    drawn = lax.scan(draw, broadcast_to(n, shape), rows, unroll=unroll)[1]
    return jnp.moveaxis(drawn, 0, -1)
