"""Activation functions. Derivatives are finite everywhere; at a kink, that of the flat side."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from phalanx import numpy as jnp
from phalanx import primitives as ops
from phalanx.base import dtypes
from phalanx.base.recent import memoized
from phalanx.control.custom_jvp_call import JvpRule, custom_jvp
from phalanx.control.one_program import staged
from phalanx.core.program import Program
from phalanx.core.types import Array, ArrayLike, ArrayType, typeof
from phalanx.numpy.promotion import inexact, promote_inexact
from phalanx.primitives.elementwise import logistic_slope
from phalanx.primitives.shape import dimension
from phalanx.transforms.stage import stage

_SELU_ALPHA = 1.6732632423543772
_SELU_SCALE = 1.0507009873554805


def identity(x: ArrayLike) -> Array:
    """The argument itself, as an array.

    Args:
        x: an array.

    Returns:
        An array of the shape and dtype of ``x``.

    >>> from phalanx import nn
    >>> nn.identity(2)
    Array(2, dtype=int32, weak_type=True)
    """
    return jnp.asarray(x)


@staged
def relu(x: Any) -> Array:
    """The rectified linear unit max(x, 0), elementwise, with derivative 0 at 0.

    Args:
        x: an array.

    Returns:
        An array of the shape and dtype of ``x``; booleans give int32.

    >>> from phalanx import nn
    >>> nn.relu(-3.0).item(), nn.relu(3.0).item()
    (0.0, 3.0)
    """
    return jnp.where(x <= 0, 0, x)


@staged
def relu6(x: Any) -> Array:
    """The ``relu`` cut off at 6, min(max(x, 0), 6), elementwise, with derivative 0 at 0 and 6.

    Args:
        x: an array.

    Returns:
        An array of the shape and dtype of ``x``; integers give float32.

    >>> from phalanx import nn
    >>> nn.relu6(9.0).item()
    6.0
    """
    return jnp.where(x <= 0, 0.0, jnp.where(x >= 6, 6.0, x))


@staged
def sigmoid(x: ArrayLike) -> Array:
    """The logistic sigmoid 1 / (1 + exp(-x)), elementwise.

    Args:
        x: an array.

    Returns:
        An array of the shape and dtype of ``x``; integers give float32.

    >>> from phalanx import nn
    >>> nn.sigmoid(0.0).item()
    0.5
    """
    return ops.logistic(inexact("sigmoid", x))


@staged
def silu(x: Any) -> Array:
    """The sigmoid linear unit x sigmoid(x), elementwise; also called swish.

    Args:
        x: an array.

    Returns:
        An array of the shape and dtype of ``x``; integers give float32.

    >>> from phalanx import nn
    >>> nn.silu(0.0).item()
    0.0
    """
    return x * sigmoid(x)


swish = silu


@staged
def softplus(x: ArrayLike) -> Array:
    """The softplus log(1 + exp(x)), elementwise: a smooth ``relu``.

    Args:
        x: an array.

    Returns:
        An array of the shape and dtype of ``x``; integers give float32.

    >>> from phalanx import nn
    >>> nn.softplus(100.0).item()
    100.0
    """
    return jnp.logaddexp(x, 0)


@staged
def log_sigmoid(x: Any) -> Array:
    """The logarithm of the sigmoid, -softplus(-x), elementwise.

    Args:
        x: an array.

    Returns:
        An array of the shape and dtype of ``x``; integers give float32.

    >>> from phalanx import nn
    >>> nn.log_sigmoid(-100.0).item()
    -100.0
    """
    return -softplus(-x)


@staged
def soft_sign(x: Any) -> Array:
    """The soft sign x / (1 + |x|), elementwise.

    Args:
        x: an array.

    Returns:
        An array of the shape and dtype of ``x``; integers give float32.

    >>> from phalanx import nn
    >>> nn.soft_sign(1.0).item()
    0.5
    """
    x = inexact("soft_sign", x)
    size = jnp.abs(x)
    rest = 1 / (1 + size)  # what is missing to 1, which is all that changes where x is large
    return jnp.where(size < 1, x * rest, jnp.sign(x) * (1 - rest))


def gelu(x: ArrayLike, approximate: bool = True) -> Array:
    """The Gaussian error linear unit x Φ(x), elementwise, where Φ is the distribution function
    of the standard normal distribution.

    Args:
        x: an array.
        approximate: whether to approximate Φ by a tanh.

    Returns:
        An array of the shape and dtype of ``x``; integers give float32.

    >>> from phalanx import nn
    >>> nn.gelu(0.0).item()
    0.0
    """
    return _gelu_by_tanh(x) if approximate else _gelu(x)


@staged
def _gelu(x: Any) -> Any:
    x = inexact("gelu", x)
    return 0.5 * x * ops.erfc(-x * math.sqrt(0.5))


@staged
def _gelu_by_tanh(x: Any) -> Any:
    x = inexact("gelu", x)
    return custom_jvp(x, program=_tanh_gelu(typeof(x)), rule=_GELU, num_consts=0)[0]


@memoized(64)
def _tanh_gelu(type: ArrayType) -> Program:
    def values(x: Any) -> tuple[Any]:
        return (x * ops.logistic(_inner(x)[0]),)  # 1 + tanh has no digits where that is near 0

    return stage(values, [type], "gelu")[0]


def _inner(x: Any) -> tuple[Any, Any, Any]:
    """What the logistic function takes, its derivative, and x where no power of it is too large:
    beyond, gelu is 0, or x."""
    u, scale = jnp.clip(x, -30, 30), 2 * math.sqrt(2 / math.pi)
    square = u * u
    return scale * u * (1 + 0.044715 * square), scale * (1 + 3 * 0.044715 * square), u


def _gelu_and_tangent(nonzero: Any, operands: Sequence[Any]) -> list[Any]:
    """The derivative is one array, where that of each operation is kept otherwise."""
    x, tangent = operands
    inner, slope, u = _inner(x)
    share = ops.logistic(inner)
    return [x * share, (share + u * slope * logistic_slope(inner)) * tangent]


_GELU = JvpRule("gelu", _gelu_and_tangent)


def elu(x: ArrayLike, alpha: ArrayLike = 1.0) -> Array:
    """The exponential linear unit, elementwise: x where x > 0, α (exp(x) - 1) elsewhere.

    Args:
        x: an array.
        alpha: the limit of the result for small x is -alpha.

    Returns:
        An array of the shape and dtype of ``x``; integers give float32.

    >>> from phalanx import nn
    >>> nn.elu(2.0).item()
    2.0
    """
    return _elu(x, alpha)


@staged
def _elu(x: Any, alpha: Any) -> Any:
    return jnp.where(x > 0, x, alpha * jnp.expm1(jnp.where(x > 0, 0.0, x)))


@staged
def selu(x: ArrayLike) -> Array:
    """The scaled ``elu`` λ elu(x, α), elementwise, with the λ and α that keep mean 0 and
    variance 1 (Klambauer et al., 2017).

    Args:
        x: an array.

    Returns:
        An array of the shape and dtype of ``x``; integers give float32.

    >>> from phalanx import nn
    >>> nn.selu(0.0).item()
    0.0
    """
    return _SELU_SCALE * elu(x, _SELU_ALPHA)


def celu(x: ArrayLike, alpha: ArrayLike = 1.0) -> Array:
    """The continuously differentiable ``elu``: x where x > 0, α (exp(x / α) - 1) elsewhere.

    Args:
        x: an array.
        alpha: the limit of the result for small x is -alpha.

    Returns:
        An array of the shape and dtype of ``x``; integers give float32.

    >>> from phalanx import nn
    >>> nn.celu(2.0).item()
    2.0
    """
    return _celu(x, alpha)


@staged
def _celu(x: Any, alpha: Any) -> Any:
    return jnp.where(x > 0, x, alpha * jnp.expm1(jnp.where(x > 0, 0.0, x) / alpha))


def leaky_relu(x: ArrayLike, negative_slope: ArrayLike = 0.01) -> Array:
    """The leaky ``relu``, elementwise: x where x ≥ 0, negative_slope x elsewhere.

    Args:
        x: an array.
        negative_slope: the slope where x is negative.

    Returns:
        An array of the shape and dtype of ``x``; integers give float32.

    >>> from phalanx import nn
    >>> nn.leaky_relu(-100.0).item()
    -1.0
    """
    return _leaky_relu(x, negative_slope)


@staged
def _leaky_relu(x: Any, negative_slope: Any) -> Any:
    return jnp.where(x >= 0, x, negative_slope * x)


@staged
def hard_tanh(x: Any) -> Array:
    """The piecewise linear tanh min(max(x, -1), 1), elementwise.

    Args:
        x: an array.

    Returns:
        An array of the shape and dtype of ``x``; booleans give int32.

    >>> from phalanx import nn
    >>> nn.hard_tanh(3.0).item()
    1.0
    """
    above = x if dtypes.is_unsigned(typeof(x).dtype) else jnp.where(x < -1, -1, x)
    return jnp.where(x > 1, 1, above)


@staged
def hard_sigmoid(x: Any) -> Array:
    """The piecewise linear ``sigmoid`` relu6(x + 3) / 6, elementwise.

    Args:
        x: an array.

    Returns:
        An array of the shape and dtype of ``x``; integers give float32.

    >>> from phalanx import nn
    >>> nn.hard_sigmoid(0.0).item()
    0.5
    """
    return relu6(x + 3.0) / 6.0


@staged
def hard_silu(x: Any) -> Array:
    """The piecewise ``silu`` x hard_sigmoid(x), elementwise; also called hard_swish.

    Args:
        x: an array.

    Returns:
        An array of the shape and dtype of ``x``; integers give float32.

    >>> from phalanx import nn
    >>> nn.hard_silu(3.0).item()
    3.0
    """
    return x * hard_sigmoid(x)


hard_swish = hard_silu


@staged
def mish(x: Any) -> Array:
    """The activation mish, x tanh(softplus(x)), elementwise.

    Args:
        x: an array.

    Returns:
        An array of the shape and dtype of ``x``; integers give float32.

    >>> from phalanx import nn
    >>> nn.mish(0.0).item()
    0.0
    """
    return x * jnp.tanh(softplus(x))


@staged
def sparse_plus(x: ArrayLike) -> Array:
    """A softplus that reaches 0 and x: 0 up to -1, x from 1 on, (x + 1)^2 / 4 between.

    Args:
        x: an array.

    Returns:
        An array of the shape and dtype of ``x``; integers give float32.

    >>> from phalanx import nn
    >>> [nn.sparse_plus(x).item() for x in (-2.0, 0.0, 2.0)]
    [0.0, 0.25, 2.0]
    """
    x = inexact("sparse_plus", x)
    inside = jnp.clip(x, -1, 1)
    return jnp.where(x >= 1, x, (inside + 1) ** 2 / 4)


@staged
def sparse_sigmoid(x: ArrayLike) -> Array:
    """The derivative of ``sparse_plus``: 0 up to -1, 1 from 1 on, (x + 1) / 2 between.

    Args:
        x: an array.

    Returns:
        An array of the shape and dtype of ``x``; integers give float32.

    >>> from phalanx import nn
    >>> [nn.sparse_sigmoid(x).item() for x in (-2.0, 0.0, 2.0)]
    [0.0, 0.5, 1.0]
    """
    x = inexact("sparse_sigmoid", x)
    return jnp.clip((x + 1) / 2, 0, 1)


def squareplus(x: ArrayLike, b: ArrayLike = 4) -> Array:
    """The squareplus (x + √(x² + b)) / 2, elementwise: a smooth ``relu``.

    Args:
        x: an array.
        b: how smooth the bend is at 0; 0 gives relu.

    Returns:
        An array of the shape and dtype of ``x``; integers give float32.

    >>> from phalanx import nn
    >>> nn.squareplus(0.0).item()
    1.0
    """
    return _squareplus(x, b)


@staged
def _squareplus(x: Any, b: Any) -> Any:
    x, b = promote_inexact("squareplus", [x, b])
    root, down = jnp.sqrt(b), x < 0
    length = jnp.hypot(x, root)
    # of x + length, which has few digits where x is below 0
    mirrored = root * (root / (length - jnp.where(down, x, -1)))
    return jnp.where(down, mirrored, x + length) / 2


def glu(x: ArrayLike, axis: int = -1) -> Array:
    """The first half of x along ``axis`` times the sigmoid of the second half.

    Args:
        x: an array.
        axis: the axis that is divided into two halves.

    Returns:
        An array of the dtype of ``x``, half as long along ``axis``; integers give float32.

    Raises:
        ValueError: the length of ``axis`` is odd.

    >>> import phalanx.numpy as jnp
    >>> from phalanx import nn
    >>> nn.glu(jnp.ones(4)).shape
    (2,)
    """
    shape = jnp.shape(x)
    d = dimension("glu", axis, len(shape))
    if shape[d] % 2:
        raise ValueError(f"glu: the length of axis {axis} must be even, got {shape}")
    return _glu(x, axis=d)


@staged
def _glu(x: Any, *, axis: int) -> Any:
    first, second = jnp.split(x, 2, axis)
    return first * sigmoid(second)
