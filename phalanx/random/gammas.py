"""Gamma numbers, drawn by proposing numbers and accepting some.

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
from phalanx.random.arguments import as_parameter, check_method, float_dtype, shape_of_draws
from phalanx.random.generators import Source, source
from phalanx.random.keys import single
from phalanx.random.normals import as_normal
from phalanx.random.uniforms import as_uniform, bits_of
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
        out_sharding: the ``NamedSharding`` or ``P`` of the result; None: the compiler decides.

    Returns:
        Floats of ``shape``; if that is None, of the shape to which the parameters broadcast.

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
        out_sharding: the ``NamedSharding`` or ``P`` of the result; None: the compiler decides.

    Returns:
        Floats of ``shape``; if that is None, of the shape to which the parameters broadcast.

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
    return custom_jvp(a, x, program=program, rule=_RULES[in_logs], num_consts=0)[0]


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
