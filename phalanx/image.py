"""Images and other arrays sampled anew: larger, smaller, or moved."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import phalanx.numpy as jnp
from phalanx import lax
from phalanx.base import dtypes, lattice
from phalanx.base.boundary import bound
from phalanx.base.choices import Choice
from phalanx.base.errors import ArgumentError
from phalanx.base.lengths import symbolic
from phalanx.control.one_program import one_program
from phalanx.core.types import Array
from phalanx.numpy.promotion import ArrayLike, as_array, as_shape, inexact
from phalanx.primitives import dimensions

__all__ = ["ResizeMethod", "resize", "scale_and_translate"]


class ResizeMethod(Choice):
    """How values between samples are found; functions take the names as strings, too.

    ``NEAREST`` takes the nearest sample, ``LINEAR`` a line between two, ``CUBIC`` the cubic
    convolution of Keys (1981) with a = -1/2, ``CUBIC_PYTORCH`` without antialiasing that with
    a = -3/4, which repeats the samples at the border, ``LANCZOS3`` and ``LANCZOS5`` windowed sinc
    functions, ``AREA`` the mean over the area of a pixel.

    >>> from phalanx import image
    >>> image.resize(jnp.ones((2, 2)), (4, 4), image.ResizeMethod.LINEAR).shape
    (4, 4)
    """

    NEAREST = 0
    LINEAR = 1
    LANCZOS3 = 2
    LANCZOS5 = 3
    CUBIC = 4
    CUBIC_PYTORCH = 5
    AREA = 6

    @staticmethod
    def from_string(s: str) -> ResizeMethod:
        """The method of a name, such as "bilinear".

        Raises:
            ValueError: there is none.
        """
        if s not in _NAMES:
            raise ArgumentError(f"resize: method must be one of {', '.join(_NAMES)}, got {s!r}")
        return _NAMES[s]


_NAMES = {
    "nearest": ResizeMethod.NEAREST,
    **dict.fromkeys(("linear", "bilinear", "trilinear", "triangle"), ResizeMethod.LINEAR),
    **dict.fromkeys(("cubic", "bicubic", "tricubic"), ResizeMethod.CUBIC),
    **dict.fromkeys(("cubic-pytorch", "bicubic-pytorch"), ResizeMethod.CUBIC_PYTORCH),
    "lanczos3": ResizeMethod.LANCZOS3,
    "lanczos5": ResizeMethod.LANCZOS5,
    "area": ResizeMethod.AREA,
}


def resize(
    image: ArrayLike,
    shape: Sequence[int],
    method: str | ResizeMethod,
    antialias: bool = True,
    precision: Any = lax.Precision.HIGHEST,
) -> Array:
    """``image`` with as many samples along each dimension as ``shape`` says.

    Args:
        image: an array; dimensions of batches and channels keep their length.
        shape: the lengths of the result.
        method: how values between samples are found, such as "nearest", "linear" or "cubic".
        antialias: whether the filter is widened where there are fewer samples than before.
        precision: of the products; see ``jnp.matmul``.

    Returns:
        The array, in the dtype of ``image`` for "nearest", else a floating-point one.

    Raises:
        ValueError: ``shape`` has another length than that of ``image``, the method is unknown, or
            samples are wanted along a dimension that has none.

    >>> import phalanx, phalanx.numpy as jnp
    >>> print(phalanx.image.resize(jnp.array([0.0, 4.0]), (4,), "linear"))
    [0. 1. 3. 4.]
    """
    x = as_array("resize", image)
    out = _shape("resize", x, shape)
    chosen = _method(method)
    dims = tuple(d for d in range(x.ndim) if x.shape[d] != out[d])
    if any(not x.shape[d] and out[d] for d in dims):
        raise ArgumentError(f"resize: an image {x.aval} has no samples to make {out} of")
    if chosen is ResizeMethod.NEAREST:
        return _nearest(x, out, dims)
    make = jnp.array if symbolic((*x.shape, *out)) else np.array
    scale = make([out[d] / x.shape[d] for d in dims])
    return _resampled(x, out, dims, scale, np.zeros(len(dims)), chosen, antialias, precision)


def scale_and_translate(
    image: ArrayLike,
    shape: Sequence[int],
    spatial_dims: Sequence[int],
    scale: ArrayLike,
    translation: ArrayLike,
    method: str | ResizeMethod,
    antialias: bool = True,
    precision: Any = lax.Precision.HIGHEST,
) -> Array:
    """``image`` stretched and moved: what lay at x lies at ``x * scale + translation``.

    A sample i lies at i + 1/2. What comes from outside of the image is zero.

    Args:
        image: an array.
        shape: the lengths of the result; only those of ``spatial_dims`` may differ.
        spatial_dims: k dimensions.
        scale: [k], a factor for each of them.
        translation: [k], by how much each is moved.
        method: how pixels are interpolated: "linear", "cubic", "lanczos3" or "lanczos5".
        antialias: whether to blur before making an image smaller, so that no pixel is skipped.
        precision: of the products; see ``jnp.matmul``.

    Returns:
        An array of that shape, of the dtype of ``image``; integers give float32.

    Raises:
        ValueError: lengths do not go together, or the method is unknown or "nearest".

    >>> import phalanx, phalanx.numpy as jnp
    >>> x = jnp.array([1.0, 2.0, 3.0])
    >>> print(phalanx.image.scale_and_translate(x, (3,), (0,), jnp.ones(1), jnp.ones(1), "linear"))
    [0. 1. 2.]
    """
    x = as_array("scale_and_translate", image)
    out = _shape("scale_and_translate", x, shape)
    dims = dimensions("scale_and_translate", spatial_dims, x.ndim)
    scales, moves = (as_array("scale_and_translate", v) for v in (scale, translation))
    if scales.shape != (len(dims),) or moves.shape != (len(dims),):
        raise ArgumentError(
            f"scale_and_translate: a scale and a translation for each of the dimensions {dims} are "
            f"needed, got {scales.aval} and {moves.aval}"
        )
    chosen = _method(method)
    if chosen is ResizeMethod.NEAREST:
        raise ArgumentError("scale_and_translate: takes every method but 'nearest'")
    return _resampled(x, out, dims, scales, moves, chosen, antialias, precision)


def _shape(who: str, x: Any, shape: Any) -> tuple[int, ...]:
    out = as_shape(who, shape)
    if len(out) != x.ndim:
        raise ArgumentError(f"{who}: shape must have a length for each dimension of {x.aval}")
    return out


def _method(method: str | ResizeMethod) -> ResizeMethod:
    return method if isinstance(method, ResizeMethod) else ResizeMethod.from_string(method)


def _nearest(x: Any, out: tuple[int, ...], dims: tuple[int, ...]) -> Any:
    for d in dims:
        old, new = x.shape[d], out[d]
        if symbolic((old, new)):
            places = jnp.floor((jnp.arange(new) + 0.5) * (old / new)).astype(int)
        else:
            places = (2 * np.arange(new) + 1) * old // (2 * max(new, 1))
        x = jnp.take(x, places, axis=d)
    return x


# ---- weights ----------------------------------------------------------------------------------


def _keys(a: float) -> Callable[[Any], Any]:
    """The kernel of Keys, "Cubic convolution interpolation", 1981, with its parameter a."""

    def kernel(x: Any) -> Any:
        near = ((a + 2) * x - (a + 3)) * x * x + 1
        far = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
        return jnp.where(x < 1, near, jnp.where(x < 2, far, 0))

    return kernel


def _lanczos(radius: int) -> Callable[[Any], Any]:
    return lambda x: jnp.where(x < radius, jnp.sinc(x) * jnp.sinc(x / radius), 0)


_KERNELS: dict[ResizeMethod, Callable[[Any], Any]] = {
    ResizeMethod.LINEAR: lambda x: jnp.maximum(1 - x, 0),
    ResizeMethod.CUBIC: _keys(-0.5),
    ResizeMethod.CUBIC_PYTORCH: _keys(-0.5),
    ResizeMethod.LANCZOS3: _lanczos(3),
    ResizeMethod.LANCZOS5: _lanczos(5),
}
_BORDER = 2  # the samples beyond an edge that the cubic kernel reaches


@one_program
def _resampled(
    image: ArrayLike,
    shape: tuple[int, ...],
    dims: tuple[int, ...],
    scale: ArrayLike,
    translation: ArrayLike,
    method: ResizeMethod,
    antialias: bool,
    precision: Any,
) -> Array:
    x = inexact("resize", image)
    if not dims:
        return x
    real = dtypes.to_real(x.dtype)
    wide = real if real.itemsize > 4 else np.dtype("float32")
    scales, moves = (jnp.asarray(v, wide) for v in (scale, translation))
    out = x.astype(lattice.common((x.dtype, False), (wide, False))[0])
    for i in _cheapest_first([(x.shape[d], shape[d]) for d in dims]):
        d = dims[i]
        sizes = x.shape[d], shape[d]
        weights = _weights(sizes, scales[i], moves[i], method, antialias).astype(out.dtype)
        out = jnp.moveaxis(jnp.tensordot(out, weights, (d, 0), precision=precision), -1, d)
    return out.astype(x.dtype)


def _cheapest_first(sizes: Sequence[tuple[int, int]]) -> Sequence[int]:
    """The order of dimensions in which ``old`` samples become ``new`` ones by fewest products.

    Those along a before those along b are fewer if 1 / old_a - 1 / new_a < 1 / old_b - 1 / new_b.
    """
    every = range(len(sizes))
    if symbolic([n for each in sizes for n in each]):
        return every
    return sorted(every, key=lambda i: 1 / max(sizes[i][0], 1) - 1 / max(sizes[i][1], 1))


def _weights(
    sizes: tuple[int, int], scale: Any, move: Any, method: ResizeMethod, antialias: bool
) -> Any:
    """[old, new]: what each old sample has in each new one."""
    old, new = sizes
    middles = (jnp.arange(new) + 0.5 - move) / scale
    if method is ResizeMethod.AREA:
        weights = _shares(old, middles, 0.5 / scale)
    elif method is ResizeMethod.CUBIC_PYTORCH and not antialias:
        weights = _with_border(old, middles - 0.5)
    else:
        wider = jnp.maximum(1 / scale, 1) if antialias else 1.0
        away = jnp.abs(middles - 0.5 - jnp.arange(old)[:, None]) / wider
        weights = _KERNELS[method](away)
    total = weights.sum(0)
    nothing = jnp.abs(total) < 1000 * float(jnp.finfo(np.float32).eps)
    weights = jnp.where(nothing, 0, weights / jnp.where(nothing, 1, total))
    return jnp.where((middles >= 0) & (middles <= old), weights, 0)


def _shares(old: int, middles: Any, half: Any) -> Any:
    """How much of each old sample lies in the interval of each new one."""
    starts = jnp.arange(old)[:, None]
    ends = jnp.minimum(middles + half, starts + 1)
    return jnp.maximum(ends - jnp.maximum(middles - half, starts), 0)


def _with_border(old: int, places: Any) -> Any:
    """Weights of the cubic kernel, where the samples at the edges stand for those beyond."""
    positions = np.arange(-_BORDER, old + _BORDER)
    weights = _keys(-0.75)(jnp.abs(places - positions[:, None]))
    stands_for = np.clip(positions, 0, old - 1)
    return jnp.zeros((old, places.shape[0]), weights.dtype).at[stands_for].add(weights)


bound(sys.modules[__name__])
