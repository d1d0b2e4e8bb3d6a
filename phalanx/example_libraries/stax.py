"""Neural network layers for small examples, each a pair of functions.

``init_fun(key, input_shape)`` gives ``(output_shape, params)``; a batch dimension may be -1.
``apply_fun(params, inputs)`` gives the outputs; layers that are random, such as ``Dropout``, take a
key as ``rng=``. For larger networks use flax, equinox or haiku.

>>> from phalanx import random
>>> from phalanx.example_libraries import stax
>>> init, apply = stax.serial(stax.Dense(8), stax.Relu, stax.Dense(2))
>>> shape, params = init(random.key(0), (-1, 4))
>>> shape, apply(params, jnp.ones((3, 4))).shape
((-1, 2), (3, 2))
"""

from __future__ import annotations

import functools
import math
import operator
import sys
from collections.abc import Callable, Sequence
from typing import Any

import phalanx.numpy as jnp
from phalanx import lax, nn, random
from phalanx.base.boundary import bound, hiding
from phalanx.base.errors import ArgumentError
from phalanx.base.source import user_location
from phalanx.nn import elu, gelu, leaky_relu, log_softmax, relu, selu, sigmoid, softmax, softplus
from phalanx.nn.initializers import glorot_normal, normal, ones, zeros

__all__ = [
    "AvgPool",
    "BatchNorm",
    "Conv",
    "Conv1DTranspose",
    "ConvTranspose",
    "Dense",
    "Dropout",
    "Elu",
    "Exp",
    "FanInConcat",
    "FanInSum",
    "FanOut",
    "Flatten",
    "Gelu",
    "GeneralConv",
    "GeneralConvTranspose",
    "Identity",
    "LeakyRelu",
    "LogSoftmax",
    "MaxPool",
    "Relu",
    "Selu",
    "Sigmoid",
    "Softmax",
    "Softplus",
    "SumPool",
    "Tanh",
    "elementwise",
    "elu",
    "gelu",
    "glorot",
    "glorot_normal",
    "leaky_relu",
    "log_softmax",
    "logsoftmax",
    "normal",
    "ones",
    "parallel",
    "randn",
    "relu",
    "selu",
    "serial",
    "shape_dependent",
    "sigmoid",
    "softmax",
    "softplus",
    "zeros",
]

Layer = tuple[Callable[..., Any], Callable[..., Any]]
logsoftmax = log_softmax
randn, glorot = normal, glorot_normal
_WEIGHTS, _BIASES, _SMALL = glorot_normal(), normal(), normal(1e-6)

# ---- layers with parameters -------------------------------------------------------------------


def _layer(init_fun: Callable[..., Any], apply_fun: Callable[..., Any]) -> Layer:
    """A layer of these functions, whose own lines no traceback shows."""
    return hiding(init_fun), hiding(apply_fun)


def Dense(out_dim: int, W_init: Any = _WEIGHTS, b_init: Any = _BIASES) -> Layer:
    """Dense (fully connected) layer: x W + b, along the last axis.

    Args:
        out_dim: the number of output features.
        W_init: the initializer of the weights, such as one of ``nn.initializers``.
        b_init: the initializer of the biases, likewise.

    Returns:
        A layer: the pair ``(init_fun, apply_fun)``.

    >>> from phalanx import random
    >>> init, apply = Dense(4)
    >>> shape, params = init(random.key(0), (-1, 3))
    >>> shape, apply(params, jnp.ones((2, 3))).shape
    ((-1, 4), (2, 4))
    """

    def init_fun(rng: Any, input_shape: tuple[int, ...]) -> Any:
        of_w, of_b = random.split(rng)
        w, b = W_init(of_w, (input_shape[-1], out_dim)), b_init(of_b, (out_dim,))
        return (*input_shape[:-1], out_dim), (w, b)

    def apply_fun(params: Any, inputs: Any, **kwargs: Any) -> Any:
        w, b = params
        return jnp.dot(inputs, w) + b

    return _layer(init_fun, apply_fun)


def _convolution(
    convolve: Callable[..., Any],
    dimension_numbers: tuple[str, str, str],
    out_chan: int,
    filter_shape: Sequence[int],
    strides: Sequence[int] | None,
    padding: Any,
    W_init: Any,
    b_init: Any,
) -> Layer:
    lhs, rhs, out = dimension_numbers
    steps = tuple(strides or (1,) * len(filter_shape))
    make = W_init or glorot_normal(rhs.index("I"), rhs.index("O"))

    def apply_fun(params: Any, inputs: Any, **kwargs: Any) -> Any:
        w, b = params
        return convolve(inputs, w, steps, padding, dimension_numbers=dimension_numbers) + b

    def init_fun(rng: Any, input_shape: tuple[int, ...]) -> Any:
        if len(input_shape) != len(lhs):
            raise ValueError(
                f"a convolution of {lhs} takes inputs of {len(lhs)} dimensions, got the shape "
                f"{input_shape}, at {user_location()}"
            )
        sizes = iter(filter_shape)
        channels = {"O": out_chan, "I": input_shape[lhs.index("C")]}
        shape = tuple(channels[c] if c in channels else next(sizes) for c in rhs)
        of_w, of_b = random.split(rng)
        biases = tuple(out_chan if c == "C" else 1 for c in out)
        params = make(of_w, shape), b_init(of_b, biases)
        return _shape_of(functools.partial(apply_fun, params), input_shape), params

    return _layer(init_fun, apply_fun)


def _shape_of(function: Callable[[Any], Any], shape: tuple[int, ...]) -> tuple[int, ...]:
    """The shape of ``function`` of an array of ``shape``, where -1 is any length that stays."""
    found = [_staged_shape(function, tuple(n if d < 0 else d for d in shape)) for n in (2, 3)]
    return tuple(a if a == b else -1 for a, b in zip(*found, strict=True))


def _staged_shape(function: Callable[[Any], Any], shape: tuple[int, ...]) -> tuple[int, ...]:
    return jnp.shape(function(jnp.zeros(shape)))


def GeneralConv(
    dimension_numbers: tuple[str, str, str],
    out_chan: int,
    filter_shape: Sequence[int],
    strides: Sequence[int] | None = None,
    padding: Any = "VALID",
    W_init: Any = None,
    b_init: Any = _SMALL,
) -> Layer:
    """Convolution layer with any order of dimensions; ``Conv`` is that of images NHWC.

    Args:
        dimension_numbers: the order of the dimensions of inputs, kernels and outputs, in letters:
            ``("NHWC", "HWIO", "NHWC")``.
        out_chan: the number of output channels.
        filter_shape: the spatial shape of the kernel.
        strides: the strides, per spatial dimension; None for 1.
        padding: "SAME", "VALID", or a pair (low, high) per dimension.
        W_init: the initializer of the weights, such as one of ``nn.initializers``.
        b_init: the initializer of the biases, likewise.

    Returns:
        A layer: the pair ``(init_fun, apply_fun)``.

    >>> from phalanx import random
    >>> init, apply = GeneralConv(("NHWC", "HWIO", "NHWC"), 8, (3, 3))
    >>> init(random.key(0), (1, 5, 5, 2))[0]
    (1, 3, 3, 8)
    """
    return _convolution(
        lax.conv_general_dilated, dimension_numbers, out_chan, filter_shape, strides, padding,
        W_init, b_init,
    )  # fmt: skip


def GeneralConvTranspose(
    dimension_numbers: tuple[str, str, str],
    out_chan: int,
    filter_shape: Sequence[int],
    strides: Sequence[int] | None = None,
    padding: Any = "VALID",
    W_init: Any = None,
    b_init: Any = _SMALL,
) -> Layer:
    """Transposed convolution layer with any order of dimensions, as ``lax.conv_transpose``.

    Args:
        dimension_numbers: the order of the dimensions of inputs, kernels and outputs, in letters:
            ``("NHWC", "HWIO", "NHWC")``.
        out_chan: the number of output channels.
        filter_shape: the spatial shape of the kernel.
        strides: the factors of upsampling, per spatial dimension; None for 1.
        padding: "SAME", "VALID", or a pair (low, high) per dimension.
        W_init: the initializer of the weights, such as one of ``nn.initializers``.
        b_init: the initializer of the biases, likewise.

    Returns:
        A layer: the pair ``(init_fun, apply_fun)``.

    >>> from phalanx import random
    >>> init, apply = GeneralConvTranspose(("NHWC", "HWIO", "NHWC"), 8, (3, 3))
    >>> init(random.key(0), (1, 5, 5, 2))[0]
    (1, 7, 7, 8)
    """
    return _convolution(
        lax.conv_transpose, dimension_numbers, out_chan, filter_shape, strides, padding, W_init,
        b_init,
    )  # fmt: skip


def _of_images(
    general: Callable[..., Layer], numbers: tuple[str, str, str], name: str, images: str
) -> Callable[..., Layer]:
    def layer(
        out_chan: int,
        filter_shape: Sequence[int],
        strides: Sequence[int] | None = None,
        padding: Any = "VALID",
        W_init: Any = None,
        b_init: Any = _SMALL,
    ) -> Layer:
        return general(numbers, out_chan, filter_shape, strides, padding, W_init, b_init)

    layer.__name__ = layer.__qualname__ = name
    layer.__doc__ = f"""``{general.__name__}`` of {images}: ``dimension_numbers`` {numbers}.

    Args:
        out_chan: the number of features of the result.
        filter_shape: the shape of the window.
        strides: by how many elements the window moves, per dimension; None: 1 in each. Where the
            convolution is transposed, how many times larger the result is.
        padding: "SAME" or "VALID".
        W_init: how the weights begin: a function of a key and a shape, as of ``nn.initializers``;
            None for Glorot's.
        b_init: how the biases begin, likewise.

    Returns:
        A layer: a pair of functions, ``init_fun(rng, input_shape)`` and ``apply_fun(params,
        inputs)``.

    >>> from phalanx import random
    >>> from phalanx.example_libraries import stax
    >>> init, apply = stax.{name}(8, {(3,) * (len(numbers[0]) - 2)})
    >>> init(random.key(0), {(1, *(6,) * (len(numbers[0]) - 2), 2)})[0][-1]
    8
    """
    return layer


_IMAGES = ("NHWC", "HWIO", "NHWC")
Conv = _of_images(GeneralConv, _IMAGES, "Conv", "images")
ConvTranspose = _of_images(GeneralConvTranspose, _IMAGES, "ConvTranspose", "images")
Conv1DTranspose = _of_images(
    GeneralConvTranspose, ("NHC", "HIO", "NHC"), "Conv1DTranspose", "sequences"
)


def BatchNorm(
    axis: int | Sequence[int] = (0, 1, 2),
    epsilon: float = 1e-5,
    center: bool = True,
    scale: bool = True,
    beta_init: Any = zeros,
    gamma_init: Any = ones,
) -> Layer:
    """Batch normalization over ``axis``, with a learned scale and offset; of the batch at hand,
    without running averages.

    Args:
        axis: the axes over which mean and variance are taken.
        epsilon: added to the variance, against division by 0.
        center: whether an offset is learned.
        scale: whether a scale is learned.
        beta_init: the initializer of the offset.
        gamma_init: the initializer of the scale.

    Returns:
        A layer: the pair ``(init_fun, apply_fun)``.

    >>> from phalanx import random
    >>> init, apply = BatchNorm(axis=(0,))
    >>> shape, params = init(random.key(0), (-1, 3))
    >>> apply(params, jnp.ones((5, 3))).shape
    (5, 3)
    """
    over = (axis,) if isinstance(axis, int) else tuple(axis)

    def init_fun(rng: Any, input_shape: tuple[int, ...]) -> Any:
        shape = tuple(n for d, n in enumerate(input_shape) if d not in over)
        of_beta, of_gamma = random.split(rng)
        beta = beta_init(of_beta, shape) if center else ()
        gamma = gamma_init(of_gamma, shape) if scale else ()
        return input_shape, (beta, gamma)

    def apply_fun(params: Any, x: Any, **kwargs: Any) -> Any:
        beta, gamma = params
        spread = tuple(None if d in over else slice(None) for d in range(jnp.ndim(x)))
        out = nn.standardize(x, over, epsilon=epsilon)
        out = gamma[spread] * out if scale else out
        return out + beta[spread] if center else out

    return _layer(init_fun, apply_fun)


# ---- layers without parameters ----------------------------------------------------------------


def elementwise(fun: Callable[..., Any], **fun_kwargs: Any) -> Layer:
    """Layer without parameters that applies a function to its input.

    Args:
        fun: the function, of an array.
        fun_kwargs: keyword arguments for it.

    Returns:
        A layer: the pair ``(init_fun, apply_fun)``.

    >>> init, apply = elementwise(jnp.clip, min=0.0)
    >>> print(apply((), jnp.array([-1.0, 2.0])))
    [0. 2.]
    """

    def init_fun(rng: Any, input_shape: tuple[int, ...]) -> Any:
        return input_shape, ()

    def apply_fun(params: Any, inputs: Any, **kwargs: Any) -> Any:
        return fun(inputs, **fun_kwargs)

    return _layer(init_fun, apply_fun)


def _itself(x: Any) -> Any:
    return x


Tanh = elementwise(jnp.tanh)
Relu = elementwise(relu)
Exp = elementwise(jnp.exp)
LogSoftmax = elementwise(log_softmax, axis=-1)
Softmax = elementwise(softmax, axis=-1)
Softplus = elementwise(softplus)
Sigmoid = elementwise(sigmoid)
Elu = elementwise(elu)
LeakyRelu = elementwise(leaky_relu)
Selu = elementwise(selu)
Gelu = elementwise(gelu)
Identity = elementwise(_itself)


def _pooling(name: str, start: float, join: Callable[..., Any], mean: bool) -> Callable[..., Layer]:
    def pool(
        window_shape: Sequence[int],
        strides: Sequence[int] | None = None,
        padding: str = "VALID",
        spec: str | None = None,
    ) -> Layer:
        """The elements of each window joined: their maximum, sum or mean.

        Args:
            window_shape: the shape of the window.
            strides: by how many elements the window moves, per dimension; None: 1 in each.
            padding: "SAME" or "VALID".
            spec: which dimension is which, in letters; None for a batch first and features last,
                as in "NHWC".

        Returns:
            A layer: a pair of functions, ``init_fun(rng, input_shape)`` and ``apply_fun(params,
            inputs)``.

        >>> from phalanx import random
        >>> from phalanx.example_libraries import stax
        >>> init, apply = stax.MaxPool((2, 2), strides=(2, 2))
        >>> init(random.key(0), (1, 4, 4, 3))[0]
        (1, 2, 2, 3)
        """
        steps = tuple(strides or (1,) * len(window_shape))
        names = spec or "N" + "HWD"[: len(window_shape)] + "C"

        def widened(sizes: Sequence[int]) -> tuple[int, ...]:
            left = iter(sizes)
            return tuple(1 if name in "NC" else next(left) for name in names)

        def apply_fun(params: Any, inputs: Any, **kwargs: Any) -> Any:
            window, by = widened(window_shape), widened(steps)
            out = lax.reduce_window(inputs, start, join, window, by, padding)
            if not mean:
                return out
            counts = lax.reduce_window(jnp.ones_like(inputs), 0.0, lax.add, window, by, padding)
            return out / counts

        def init_fun(rng: Any, input_shape: tuple[int, ...]) -> Any:
            return _shape_of(lambda x: apply_fun((), x), input_shape), ()

        return _layer(init_fun, apply_fun)

    pool.__name__ = pool.__qualname__ = name
    return pool


MaxPool = _pooling("MaxPool", -jnp.inf, lax.max, mean=False)
SumPool = _pooling("SumPool", 0.0, lax.add, mean=False)
AvgPool = _pooling("AvgPool", 0.0, lax.add, mean=True)


def _flatten() -> Layer:
    def init_fun(rng: Any, input_shape: tuple[int, ...]) -> Any:
        return (input_shape[0], math.prod(input_shape[1:])), ()

    def apply_fun(params: Any, inputs: Any, **kwargs: Any) -> Any:
        return jnp.reshape(inputs, (inputs.shape[0], -1))

    return _layer(init_fun, apply_fun)


Flatten = _flatten()


def Dropout(rate: float, mode: str = "train") -> Layer:
    """Dropout layer. Here ``rate`` is the probability to *keep* an element.

    It is applied with a key: ``apply_fun(params, inputs, rng=key)``.

    Args:
        rate: the probability that an element is kept; elements that are kept are divided by it.
        mode: "train"; in another mode, such as "test", the input is unchanged.

    Returns:
        A layer: the pair ``(init_fun, apply_fun)``.

    Raises:
        ArgumentError: it is applied in mode "train" without ``rng=``.

    >>> from phalanx import random
    >>> init, apply = Dropout(0.5)
    >>> print(apply((), jnp.ones(6), rng=random.key(0)))
    [0. 0. 2. 2. 0. 2.]
    """

    def init_fun(rng: Any, input_shape: tuple[int, ...]) -> Any:
        return input_shape, ()

    def apply_fun(params: Any, inputs: Any, *, rng: Any = None, **kwargs: Any) -> Any:
        if mode != "train":
            return inputs
        if rng is None:
            raise ArgumentError("Dropout: in mode 'train' a key is needed: apply_fun(..., rng=key)")
        mask = random.bernoulli(rng, rate, jnp.shape(inputs))
        return jnp.where(mask, inputs / rate, 0)

    return _layer(init_fun, apply_fun)


# ---- several branches -------------------------------------------------------------------------


def FanOut(num: int) -> Layer:
    """Layer that gives its input ``num`` times, for ``parallel``.

    Args:
        num: the number of copies.

    Returns:
        A layer: the pair ``(init_fun, apply_fun)``.

    >>> init, apply = FanOut(2)
    >>> len(apply((), jnp.ones(3)))
    2
    """

    def init_fun(rng: Any, input_shape: tuple[int, ...]) -> Any:
        return [input_shape] * num, ()

    def apply_fun(params: Any, inputs: Any, **kwargs: Any) -> Any:
        return [inputs] * num

    return _layer(init_fun, apply_fun)


def _fan_in_sum() -> Layer:
    def init_fun(rng: Any, input_shape: Sequence[tuple[int, ...]]) -> Any:
        return input_shape[0], ()

    def apply_fun(params: Any, inputs: Any, **kwargs: Any) -> Any:
        return functools.reduce(operator.add, inputs)

    return _layer(init_fun, apply_fun)


FanInSum = _fan_in_sum()


def FanInConcat(axis: int = -1) -> Layer:
    """Layer that joins the outputs of ``parallel`` along ``axis``.

    Args:
        axis: the axis; negative from the end.

    Returns:
        A layer: the pair ``(init_fun, apply_fun)``.

    >>> init, apply = FanInConcat()
    >>> apply((), [jnp.ones((2, 1)), jnp.ones((2, 3))]).shape
    (2, 4)
    """

    def init_fun(rng: Any, input_shape: Sequence[tuple[int, ...]]) -> Any:
        d = axis % len(input_shape[0])
        total = sum(shape[d] for shape in input_shape)
        first = input_shape[0]
        return (*first[:d], total, *first[d + 1 :]), ()

    def apply_fun(params: Any, inputs: Any, **kwargs: Any) -> Any:
        return jnp.concatenate(inputs, axis)

    return _layer(init_fun, apply_fun)


# ---- combinators ------------------------------------------------------------------------------


def _keys(rng: Any, count: int) -> Any:
    return (None,) * count if rng is None else random.split(rng, count)


def serial(*layers: Layer) -> Layer:
    """Layers in sequence, each of the output of the one before.

    Args:
        layers: the layers.

    Returns:
        A layer: the pair ``(init_fun, apply_fun)``.

    >>> from phalanx import random
    >>> init, apply = serial(Dense(4), Relu, Dense(2))
    >>> shape, params = init(random.key(0), (-1, 3))
    >>> apply(params, jnp.ones((5, 3))).shape
    (5, 2)
    """
    inits = [init for init, _ in layers]
    applies = [apply for _, apply in layers]

    def init_fun(rng: Any, input_shape: Any) -> Any:
        params: list[Any] = []
        for init in inits:
            # Layers that are added at the end leave the parameters of those before as they are.
            rng, key = _keys(rng, 2)
            input_shape, own = init(key, input_shape)
            params.append(own)
        return input_shape, params

    def apply_fun(params: Any, inputs: Any, *, rng: Any = None, **kwargs: Any) -> Any:
        for apply, own, key in zip(applies, params, _keys(rng, len(applies)), strict=True):
            inputs = apply(own, inputs, rng=key, **kwargs)
        return inputs

    return _layer(init_fun, apply_fun)


def parallel(*layers: Layer) -> Layer:
    """Layers side by side, each of its own input, as ``FanOut`` gives them.

    Args:
        layers: the layers.

    Returns:
        A layer: the pair ``(init_fun, apply_fun)``.

    >>> from phalanx import random
    >>> init, apply = serial(FanOut(2), parallel(Dense(4), Identity), FanInConcat())
    >>> shape, params = init(random.key(0), (-1, 3))
    >>> apply(params, jnp.ones((5, 3))).shape
    (5, 7)
    """
    inits = [init for init, _ in layers]
    applies = [apply for _, apply in layers]

    def init_fun(rng: Any, input_shape: Sequence[Any]) -> Any:
        keys = _keys(rng, len(inits))
        pairs = [f(k, s) for f, k, s in zip(inits, keys, input_shape, strict=True)]
        return [shape for shape, _ in pairs], tuple(own for _, own in pairs)

    def apply_fun(params: Any, inputs: Any, *, rng: Any = None, **kwargs: Any) -> Any:
        rows = zip(applies, params, inputs, _keys(rng, len(applies)), strict=True)
        return [f(own, x, rng=key, **kwargs) for f, own, x, key in rows]

    return _layer(init_fun, apply_fun)


def shape_dependent(make_layer: Callable[[Any], Layer]) -> Layer:
    """Layer that is made when the shape of its input is known.

    Args:
        make_layer: a function from the shape of the input to a layer.

    Returns:
        A layer: the pair ``(init_fun, apply_fun)``.

    >>> from phalanx import random
    >>> init, apply = shape_dependent(lambda shape: Dense(shape[-1]))
    >>> init(random.key(0), (-1, 3))[0]
    (-1, 3)
    """

    def init_fun(rng: Any, input_shape: Any) -> Any:
        return make_layer(input_shape)[0](rng, input_shape)

    def apply_fun(params: Any, inputs: Any, **kwargs: Any) -> Any:
        return make_layer(jnp.shape(inputs))[1](params, inputs, **kwargs)

    return _layer(init_fun, apply_fun)


bound(sys.modules[__name__])
