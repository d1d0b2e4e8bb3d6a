"""Initial weights: functions ``(key, shape, dtype)`` to an array.

Each takes ``out_sharding``, so that every device makes its part of a weight.

Scales keep the variance of activations or of gradients from layer to layer. The fan-in of a
weight is how many inputs reach one output, the fan-out how many outputs one input reaches.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from phalanx import lax, random
from phalanx import numpy as jnp
from phalanx.base import dtypes
from phalanx.base.boundary import bound, boundary
from phalanx.core.types import Array, ArrayLike, DTypeLike, KeyLike
from phalanx.lax.layout import takes_out_sharding

__all__ = [
    "Initializer",
    "constant",
    "delta_orthogonal",
    "glorot_normal",
    "glorot_uniform",
    "he_normal",
    "he_uniform",
    "kaiming_normal",
    "kaiming_uniform",
    "lecun_normal",
    "lecun_uniform",
    "normal",
    "ones",
    "orthogonal",
    "truncated_normal",
    "uniform",
    "variance_scaling",
    "xavier_normal",
    "xavier_uniform",
    "zeros",
]


class Initializer(Protocol):
    """A function from a key, a shape and a dtype to an array of initial weights.

    >>> from phalanx import nn, random
    >>> init: nn.initializers.Initializer = nn.initializers.he_normal()
    >>> init(random.key(0), (2, 3)).shape
    (2, 3)
    """

    def __call__(
        self,
        key: KeyLike,
        shape: Sequence[int],
        dtype: DTypeLike | None = None,
        out_sharding: Any = None,
    ) -> Array: ...


Axes = int | Sequence[int]

# ---- plain ones -----------------------------------------------------------------------------


@takes_out_sharding
def zeros(
    key: KeyLike, shape: Sequence[int], dtype: DTypeLike | None = None, out_sharding: Any = None
) -> Array:
    """Zeros; the key is not used.

    Args:
        key: is not used.
        shape: the shape of the result: a tuple of integers, or an integer.
        dtype: the dtype of the result; None for float32.
        out_sharding: the ``NamedSharding`` or ``P`` of the result; None: the compiler decides.

    Returns:
        An array of that shape and dtype.

    Raises:
        ValueError: a length in ``shape`` is negative.

    >>> from phalanx import nn, random
    >>> nn.initializers.zeros(random.key(0), (2,)).tolist()
    [0.0, 0.0]
    """
    return jnp.zeros(shape, dtype)


@takes_out_sharding
def ones(
    key: KeyLike, shape: Sequence[int], dtype: DTypeLike | None = None, out_sharding: Any = None
) -> Array:
    """Ones; the key is not used.

    Args:
        key: is not used.
        shape: the shape of the result: a tuple of integers, or an integer.
        dtype: the dtype of the result; None for float32.
        out_sharding: the ``NamedSharding`` or ``P`` of the result; None: the compiler decides.

    Returns:
        An array of that shape and dtype.

    Raises:
        ValueError: a length in ``shape`` is negative.

    >>> from phalanx import nn, random
    >>> nn.initializers.ones(random.key(0), (2,)).tolist()
    [1.0, 1.0]
    """
    return jnp.ones(shape, dtype)


def constant(value: ArrayLike, dtype: DTypeLike | None = None) -> Initializer:
    """An initializer that gives ``value`` everywhere.

    Args:
        value: the element, a number or an array that broadcasts to the shape.
        dtype: the dtype of the arrays, where a call does not give another; None for float32.

    Returns:
        A function ``(key, shape, dtype)`` that gives an array.

    >>> from phalanx import nn, random
    >>> nn.initializers.constant(7.0)(random.key(0), (2,)).tolist()
    [7.0, 7.0]
    """

    @boundary
    @takes_out_sharding
    def init(
        key: KeyLike,
        shape: Sequence[int],
        dtype: DTypeLike | None = dtype,
        out_sharding: Any = None,
    ) -> Array:
        return jnp.full(shape, value, float if dtype is None else dtype)

    return init


def uniform(scale: ArrayLike = 1e-2, dtype: DTypeLike | None = None) -> Initializer:
    """An initializer that draws uniformly from [0, scale).

    Args:
        scale: the upper end of the interval, which begins at 0.
        dtype: the dtype of the arrays, where a call does not give another; None for float32.

    Returns:
        A function ``(key, shape, dtype)`` that gives an array.

    >>> from phalanx import nn, random
    >>> bool((nn.initializers.uniform(0.1)(random.key(0), (9,)) < 0.1).all())
    True
    """

    @boundary
    @takes_out_sharding
    def init(
        key: KeyLike,
        shape: Sequence[int],
        dtype: DTypeLike | None = dtype,
        out_sharding: Any = None,
    ) -> Array:
        return random.uniform(key, shape, dtype) * scale

    return init


def normal(stddev: ArrayLike = 1e-2, dtype: DTypeLike | None = None) -> Initializer:
    """An initializer that draws from a normal distribution with mean 0.

    Args:
        stddev: the standard deviation.
        dtype: the dtype of the arrays, where a call does not give another; None for float32.

    Returns:
        A function ``(key, shape, dtype)`` that gives an array.

    >>> from phalanx import nn, random
    >>> nn.initializers.normal(0.1)(random.key(0), (2, 3)).shape
    (2, 3)
    """

    @boundary
    @takes_out_sharding
    def init(
        key: KeyLike,
        shape: Sequence[int],
        dtype: DTypeLike | None = dtype,
        out_sharding: Any = None,
    ) -> Array:
        return random.normal(key, shape, dtype) * stddev

    return init


def truncated_normal(
    stddev: ArrayLike = 1e-2,
    dtype: DTypeLike | None = None,
    lower: ArrayLike = -2.0,
    upper: ArrayLike = 2.0,
) -> Initializer:
    """An initializer that draws from a normal distribution cut at ``lower`` and ``upper``.

    Args:
        stddev: of the distribution before it is cut; bounds are multiples of it.
        dtype: of the arrays, unless they ask for another.
        lower: the lower bound.
        upper: the upper bound.

    Returns:
        A function ``(key, shape, dtype)`` that gives an array.

    >>> from phalanx import nn, random
    >>> bool((abs(nn.initializers.truncated_normal(0.1)(random.key(0), (9,))) < 0.2).all())
    True
    """

    @boundary
    @takes_out_sharding
    def init(
        key: KeyLike,
        shape: Sequence[int],
        dtype: DTypeLike | None = dtype,
        out_sharding: Any = None,
    ) -> Array:
        return random.truncated_normal(key, lower, upper, shape, dtype) * stddev

    return init


# ---- scaled by the fans ---------------------------------------------------------------------

_CUT_STDDEV = 0.87962566103423978  # of the standard normal distribution, cut at -2 and 2
_WITHIN = -math.expm1(-4)  # the share of complex standard normal numbers within 2 of 0
_CUT_VARIANCE = (1 - 5 * math.exp(-4)) / _WITHIN  # of these


def variance_scaling(
    scale: float,
    mode: str,
    distribution: str,
    in_axis: Axes = -2,
    out_axis: Axes = -1,
    batch_axis: Axes = (),
    dtype: DTypeLike | None = None,
) -> Initializer:
    """An initializer with variance scale / n, where ``mode`` says what n is.

    Complex weights lie in a disk around 0: uniformly, or as normal numbers cut at its edge.

    Args:
        scale: a positive number; the variance of the weights is ``scale / n``.
        mode: "fan_in", "fan_out", "fan_avg" (their mean) or "fan_geo_avg" (the root of their
            product).
        distribution: "truncated_normal", "normal" or "uniform".
        in_axis: the axis or axes of the weight along which its inputs lie.
        out_axis: those along which its outputs lie.
        batch_axis: those that count several independent weights.
        dtype: of the arrays, unless they ask for another.

    Returns:
        A function ``(key, shape, dtype)`` that gives an array.

    Raises:
        ValueError: there is no such mode or distribution, or a shape has too few axes.

    >>> from phalanx import nn, random
    >>> init = nn.initializers.variance_scaling(1.0, "fan_in", "normal")
    >>> init(random.key(0), (2, 3)).shape
    (2, 3)
    """
    if mode not in _FANS:
        raise ValueError(f"variance_scaling: mode must be one of {list(_FANS)}, got {mode!r}")
    if distribution not in _DRAW:
        raise ValueError(
            f"variance_scaling: distribution must be one of {list(_DRAW)}, got {distribution!r}"
        )

    @boundary
    @takes_out_sharding
    def init(
        key: KeyLike,
        shape: Sequence[int],
        dtype: DTypeLike | None = dtype,
        out_sharding: Any = None,
    ) -> Array:
        fan = _FANS[mode](*_fans(tuple(shape), in_axis, out_axis, batch_axis))
        return _DRAW[distribution](key, tuple(shape), dtype, math.sqrt(scale / max(1, fan)))

    return init


_FANS: dict[str, Callable[[float, float], float]] = {
    "fan_in": lambda fan_in, fan_out: fan_in,
    "fan_out": lambda fan_in, fan_out: fan_out,
    "fan_avg": lambda fan_in, fan_out: (fan_in + fan_out) / 2,
    "fan_geo_avg": lambda fan_in, fan_out: math.sqrt(fan_in * fan_out),
}


def _is_complex(dtype: Any) -> bool:
    return dtype is not None and dtypes.is_complex(dtypes.canonical(dtype))


def _truncated(key: Any, shape: tuple[int, ...], dtype: Any, stddev: float) -> Any:
    if _is_complex(dtype):  # squares of absolute values are exponentially distributed
        return _in_disk(key, shape, dtype, lambda u: -jnp.log1p(-_WITHIN * u)) * (
            stddev / math.sqrt(_CUT_VARIANCE)
        )
    return random.truncated_normal(key, -2, 2, shape, dtype) * (stddev / _CUT_STDDEV)


def _uniform(key: Any, shape: tuple[int, ...], dtype: Any, stddev: float) -> Any:
    if _is_complex(dtype):  # in the disk of radius √2, whose points have 1 for mean square
        return _in_disk(key, shape, dtype, lambda u: 2 * u) * stddev
    return random.uniform(key, shape, dtype, -1) * (math.sqrt(3) * stddev)


def _in_disk(key: Any, shape: tuple[int, ...], dtype: Any, square: Callable[[Any], Any]) -> Any:
    """Complex numbers of any argument, whose absolute values are roots of ``square(u)``.

    There u is uniform in [0, 1).
    """
    part = dtypes.to_real(dtypes.requested(dtype))
    for_radius, for_angle = random.split(key)
    radius = jnp.sqrt(square(random.uniform(for_radius, shape, part)))
    angle = 2 * math.pi * random.uniform(for_angle, shape, part)
    return lax.complex(radius * jnp.cos(angle), radius * jnp.sin(angle))


def _normal(key: Any, shape: tuple[int, ...], dtype: Any, stddev: float) -> Any:
    return random.normal(key, shape, dtype) * stddev


_DRAW: dict[str, Callable[..., Any]] = {
    "truncated_normal": _truncated,
    "normal": _normal,
    "uniform": _uniform,
}


def _fans(
    shape: tuple[int, ...], in_axis: Axes, out_axis: Axes, batch_axis: Axes
) -> tuple[float, float]:
    """How many inputs reach an output, and how many outputs an input reaches."""
    if len(shape) <= 1:
        raise ValueError(
            f"variance_scaling: a weight needs at least two axes to have fans, got shape {shape}"
        )
    inputs, outputs, batches = (_product(shape, a) for a in (in_axis, out_axis, batch_axis))
    receptive_field = math.prod(shape) / max(1, inputs * outputs * batches)
    return inputs * receptive_field, outputs * receptive_field


def _product(shape: tuple[int, ...], axes: Axes) -> int:
    return math.prod(shape[a] for a in ((axes,) if isinstance(axes, int) else axes))


class _ByFans(Protocol):
    def __call__(
        self,
        in_axis: Axes = -2,
        out_axis: Axes = -1,
        batch_axis: Axes = (),
        dtype: DTypeLike | None = None,
    ) -> Initializer: ...


def _named(scale: float, mode: str, distribution: str, name: str, source: str) -> _ByFans:
    def make(
        in_axis: Axes = -2,
        out_axis: Axes = -1,
        batch_axis: Axes = (),
        dtype: DTypeLike | None = None,
    ) -> Initializer:
        return variance_scaling(scale, mode, distribution, in_axis, out_axis, batch_axis, dtype)

    make.__name__ = make.__qualname__ = name
    make.__doc__ = f"""``variance_scaling({scale}, {mode!r}, {distribution!r})`` ({source}).

    Args:
        in_axis: the dimension, or dimensions, that inputs of the layer run along.
        out_axis: the dimension, or dimensions, that its outputs run along.
        batch_axis: dimensions that are neither: each of their elements is a weight of its own.
        dtype: the dtype of the arrays, where a call does not give another; None for float32.

    Returns:
        A function ``(key, shape, dtype)`` that gives an array.

    >>> from phalanx import nn, random
    >>> nn.initializers.{name}()(random.key(0), (2, 3)).shape
    (2, 3)
    """
    return make


_GLOROT = "Glorot and Bengio, 2010"
_HE = "He et al., 2015"
_LECUN = "LeCun et al., 1998"

glorot_uniform = _named(1.0, "fan_avg", "uniform", "glorot_uniform", _GLOROT)
glorot_normal = _named(1.0, "fan_avg", "truncated_normal", "glorot_normal", _GLOROT)
he_uniform = _named(2.0, "fan_in", "uniform", "he_uniform", _HE)
he_normal = _named(2.0, "fan_in", "truncated_normal", "he_normal", _HE)
lecun_uniform = _named(1.0, "fan_in", "uniform", "lecun_uniform", _LECUN)
lecun_normal = _named(1.0, "fan_in", "truncated_normal", "lecun_normal", _LECUN)
xavier_uniform, xavier_normal = glorot_uniform, glorot_normal
kaiming_uniform, kaiming_normal = he_uniform, he_normal


# ---- orthogonal ones ------------------------------------------------------------------------


def orthogonal(
    scale: ArrayLike = 1.0, column_axis: int = -1, dtype: DTypeLike | None = None
) -> Initializer:
    """An initializer of ``scale`` times a random matrix with orthonormal rows or columns.

    A weight of more than two axes is such a matrix, reshaped: ``column_axis`` counts its columns,
    and the others its rows (Saxe et al., 2014).

    Args:
        scale: a number, by which the orthonormal matrix is multiplied.
        column_axis: the dimension of the weight that counts the columns of the matrix.
        dtype: of the arrays, unless they ask for another.

    Returns:
        A function ``(key, shape, dtype)`` that gives an array.

    Raises:
        ValueError: a shape has fewer than two axes.

    >>> from phalanx import nn, random
    >>> q = nn.initializers.orthogonal()(random.key(0), (3, 3))
    >>> bool(abs(q.T @ q - np.eye(3)).max() < 1e-5)
    True
    """

    @boundary
    @takes_out_sharding
    def init(
        key: KeyLike,
        shape: Sequence[int],
        dtype: DTypeLike | None = dtype,
        out_sharding: Any = None,
    ) -> Array:
        shape = tuple(shape)
        if len(shape) < 2:
            raise ValueError(f"orthogonal: a weight needs at least two axes, got shape {shape}")
        columns = shape[column_axis]
        others = (*shape[:column_axis], *shape[column_axis:][1:])
        matrix = random.orthogonal(key, math.prod(others), (), dtype, columns)
        return jnp.moveaxis(matrix.reshape(*others, columns), -1, column_axis) * scale

    return init


def delta_orthogonal(
    scale: ArrayLike = 1.0, column_axis: int = -1, dtype: DTypeLike | None = None
) -> Initializer:
    """An initializer for convolutions: an orthogonal matrix in the middle of zeros.

    Weights have one to three spatial axes, then one for inputs and one for outputs; there must be
    at least as many outputs as inputs (Xiao et al., 2018).

    Args:
        scale: what the matrix is multiplied with.
        column_axis: counts the columns of the matrix, as in ``orthogonal``.
        dtype: of the arrays, unless they ask for another.

    Returns:
        A function ``(key, shape, dtype)`` that gives an array.

    Raises:
        ValueError: a shape has not three to five axes, or fewer outputs than inputs.

    >>> from phalanx import nn, random
    >>> nn.initializers.delta_orthogonal()(random.key(0), (3, 2, 2))[0].tolist()
    [[0.0, 0.0], [0.0, 0.0]]
    """

    @boundary
    @takes_out_sharding
    def init(
        key: KeyLike,
        shape: Sequence[int],
        dtype: DTypeLike | None = dtype,
        out_sharding: Any = None,
    ) -> Array:
        shape = tuple(shape)
        if not 3 <= len(shape) <= 5 or shape[-1] < shape[-2]:
            raise ValueError(
                "delta_orthogonal: a weight needs one to three spatial axes, and at least as many "
                f"outputs, the last axis, as inputs, the axis before, got shape {shape}"
            )
        matrix = orthogonal(scale, column_axis, dtype)(key, shape[-2:], dtype)
        center = tuple((n - 1) // 2 for n in shape[:-2])
        return jnp.zeros(shape, matrix.dtype).at[center].set(matrix)

    return init


bound(sys.modules[__name__])
