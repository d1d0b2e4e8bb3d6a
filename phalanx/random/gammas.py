"""Gamma numbers, drawn by proposing numbers and accepting some, and what is made of them.

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
from phalanx.primitives import mul, stop_gradient
from phalanx.primitives.resharding import resharded
from phalanx.primitives.shape import broadcast_to
from phalanx.random.generators import Source, source, sources
from phalanx.random.keys import single
from phalanx.random.normals import as_normal, draw_normal
from phalanx.random.uniforms import (
    Lengths,
    as_parameter,
    as_uniform,
    bits_of,
    but_last_axis,
    check_method,
    drawn,
    float_dtype,
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
    return lax.while_loop(lambda s: proposes(s).any(), propose, with_sharding_of(d, *start))[-2]


def _normal_above(keys: Source, c: Any) -> tuple[Any, Any]:
    """A standard normal x with v = 1 + c x > 0, and v."""
    dtype = typeof(c).dtype

    def draw(state: Any) -> Any:
        following, normals = keys.of(state[:-2]).children(2)
        x = as_normal(_bits(normals, dtype), dtype)
        return _where(state[-1] <= 0, (*following.words, x, 1 + x * c), state)

    start = (*keys.words, jnp.zeros_like(c), jnp.full_like(c, -1))
    return lax.while_loop(lambda s: (s[-1] <= 0).any(), draw, with_sharding_of(c, *start))[-2:]


def with_sharding_of(x: Any, *start: Any) -> tuple[Any, ...]:
    """What a loop carries from ``start``, of the shape of ``x``, where it lies as ``x`` does."""
    kind = typeof(x)
    return tuple([resharded(s, kind.spec) if typeof(s).shape == kind.shape else s for s in start])


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


# ---- of gamma numbers -----------------------------------------------------------------------


@takes_out_sharding
def beta(
    key: KeyLike,
    a: ArrayLike,
    b: ArrayLike,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    *,
    method: str = "exact",
    out_sharding: Any = None,
) -> Array:
    """Beta-distributed numbers, of density xᵃ⁻¹ (1 - x)ᵇ⁻¹ / B(a, b), 0 < x < 1.

    Args:
        key: a single key.
        a: the first parameter, a positive number, or an array that broadcasts to ``shape``.
        b: the second parameter, a positive number, or an array that broadcasts to ``shape``.
        shape: the shape of the result; by default that to which ``a`` and ``b`` broadcast.
        dtype: a floating-point dtype; float32 by default, or float64 under ``enable_x64``.
        method: "exact", by rejection; there is no other.
        out_sharding: how the result lies over devices, as a ``NamedSharding`` or a ``P`` on the
            mesh that is set; None: the compiler decides.

    Returns:
        Floating-point numbers of ``shape``; if that is None, of the shape to which the parameters
        broadcast.

    Raises:
        ValueError: the parameters do not broadcast to ``shape``, or there is no such method.

    >>> from phalanx import random
    >>> 0 < float(random.beta(random.key(0), 2.0, 3.0)) < 1
    True
    """
    check_method("beta", method)
    return drawn(_beta, "beta", key, shape, dtype, a, b)


@staged
def _beta(key: Any, a: Any, b: Any, *, shape: Lengths, dtype: np.dtype) -> Any:
    first, second = sources(key, 2)
    x = draw_gamma(first, broadcast_to(a, shape), in_logs=True)
    y = draw_gamma(second, broadcast_to(b, shape), in_logs=True)
    greatest = jnp.maximum(x, y)
    x, y = jnp.exp(x - greatest), jnp.exp(y - greatest)
    return x / (x + y)


@takes_out_sharding
def dirichlet(
    key: KeyLike,
    alpha: ArrayLike,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: Any = None,
) -> Array:
    """Dirichlet vectors: positive numbers of sum 1 along the last axis, of density ∝ Π xᵢ^(αᵢ - 1).

    Args:
        key: a single key.
        alpha: positive numbers along the last axis.
        shape: of the result without its last axis; by default that of ``alpha``.
        dtype: a floating-point dtype; float32 by default, or float64 under ``enable_x64``.
        out_sharding: how the result lies over devices, as a ``NamedSharding`` or a ``P`` on the
            mesh that is set; None: the compiler decides.

    Returns:
        Floating-point numbers of shape [*shape, n], n the length of ``alpha``.

    Raises:
        ValueError: ``alpha`` has no axis, or does not broadcast to ``shape``.

    >>> import numpy as np
    >>> from phalanx import random
    >>> print(random.dirichlet(random.key(0), np.ones(3), (2,)).round(3))
    [[0.365 0.428 0.207]
     [0.494 0.326 0.18 ]]
    """
    chosen = float_dtype("dirichlet", dtype)
    alpha = as_parameter(alpha, chosen)
    batch, count = but_last_axis("dirichlet", "alpha", alpha)
    lengths = shape_of_draws("dirichlet", shape, batch)
    return _dirichlet(single("dirichlet", key), alpha, shape=(*lengths, count))


@staged
def _dirichlet(key: Any, alpha: Any, *, shape: Lengths) -> Any:
    logs = draw_gamma(key, broadcast_to(alpha, shape), in_logs=True)
    greatest = lax.stop_gradient(jnp.max(logs, -1, keepdims=True, initial=-math.inf))
    shares = jnp.exp(logs - greatest)
    return shares / jnp.sum(shares, -1, keepdims=True)


@takes_out_sharding
def chisquare(
    key: KeyLike,
    df: ArrayLike,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    *,
    method: str = "exact",
    out_sharding: Any = None,
) -> Array:
    """Chi-square numbers: sums of ``df`` squares of standard normal numbers.

    Args:
        key: a single key.
        df: a positive number, or an array that broadcasts to ``shape``.
        shape: the shape of the result; by default that of ``df``.
        dtype: a floating-point dtype; float32 by default, or float64 under ``enable_x64``.
        method: "exact", by rejection; there is no other.
        out_sharding: how the result lies over devices, as a ``NamedSharding`` or a ``P`` on the
            mesh that is set; None: the compiler decides.

    Returns:
        Floating-point numbers of ``shape``; if that is None, of the shape to which the parameters
        broadcast.

    Raises:
        ValueError: ``df`` does not broadcast to ``shape``, or there is no such method.

    >>> from phalanx import random
    >>> bool(random.chisquare(random.key(0), 3.0) > 0)
    True
    """
    check_method("chisquare", method)
    return drawn(_chisquare, "chisquare", key, shape, dtype, df)


@staged
def _chisquare(key: Any, df: Any, *, shape: Lengths, dtype: np.dtype) -> Any:
    return _draw_chisquare(key, df, shape)


def _draw_chisquare(key: Any, df: Any, shape: Lengths) -> Any:
    return jnp.exp(draw_gamma(key, broadcast_to(df / 2, shape), in_logs=True)) * 2


@takes_out_sharding
def f(
    key: KeyLike,
    dfnum: ArrayLike,
    dfden: ArrayLike,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: Any = None,
) -> Array:
    """F-distributed numbers: quotients of two chi-square numbers, each over its degrees of freedom.

    Args:
        key: a single key.
        dfnum: degrees of freedom of the numerator, positive: a number, or an array that broadcasts
            to ``shape``.
        dfden: degrees of freedom of the denominator, positive: a number, or an array that
            broadcasts to ``shape``.
        shape: the shape of the result; by default that to which the parameters broadcast.
        dtype: a floating-point dtype; float32 by default, or float64 under ``enable_x64``.
        out_sharding: how the result lies over devices, as a ``NamedSharding`` or a ``P`` on the
            mesh that is set; None: the compiler decides.

    Returns:
        Floating-point numbers of ``shape``; if that is None, of the shape to which the parameters
        broadcast.

    Raises:
        TypeError: ``key`` is no single key, or ``dtype`` is no floating-point dtype.
        ValueError: a length in ``shape`` is negative.

    >>> from phalanx import random
    >>> bool(random.f(random.key(0), 3.0, 4.0) > 0)
    True
    """
    return drawn(_f, "f", key, shape, dtype, dfnum, dfden)


@staged
def _f(key: Any, dfnum: Any, dfden: Any, *, shape: Lengths, dtype: np.dtype) -> Any:
    below, above = sources(key, 2)
    top = _draw_chisquare(above, dfnum, shape) / dfnum
    return top / (_draw_chisquare(below, dfden, shape) / dfden)


@takes_out_sharding
def t(
    key: KeyLike,
    df: ArrayLike,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: Any = None,
) -> Array:
    """Student's t: standard normal numbers over √(χ²/df).

    Args:
        key: a single key.
        df: a positive number, or an array that broadcasts to ``shape``.
        shape: the shape of the result; by default that of ``df``.
        dtype: a floating-point dtype; float32 by default, or float64 under ``enable_x64``.
        out_sharding: how the result lies over devices, as a ``NamedSharding`` or a ``P`` on the
            mesh that is set; None: the compiler decides.

    Returns:
        Floating-point numbers of ``shape``; if that is None, of the shape to which the parameters
        broadcast.

    Raises:
        TypeError: ``key`` is no single key, or ``dtype`` is no floating-point dtype.
        ValueError: a length in ``shape`` is negative.

    >>> from phalanx import random
    >>> print(random.t(random.key(0), 3.0, (2,)).round(3))
    [ 0.69  -3.239]
    """
    return drawn(_t, "t", key, shape, dtype, df)


@staged
def _t(key: Any, df: Any, *, shape: Lengths, dtype: np.dtype) -> Any:
    first, second = sources(key, 2)
    half = df / 2
    gammas = draw_gamma(second, broadcast_to(half, shape), in_logs=False)
    return draw_normal(first, shape, dtype) * jnp.sqrt(half / gammas)
