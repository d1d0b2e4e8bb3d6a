"""Convolution and correlation of arrays of any rank."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import phalanx.numpy as jnp
from phalanx import lax
from phalanx.base import dtypes
from phalanx.base.errors import ArgumentError, ShapeError
from phalanx.control.one_program import one_program
from phalanx.core.types import Array
from phalanx.numpy import fft
from phalanx.numpy.promotion import ArrayLike, promote_inexact
from phalanx.primitives import dimensions

_MODES = ("full", "same", "valid")
_BEHIND = "behind"  # "same", with the middle of an even number of elements behind, as SciPy has it


def convolve(
    in1: ArrayLike, in2: ArrayLike, mode: str = "full", method: str = "auto", precision: Any = None
) -> Array:
    """The convolution of two arrays of one rank, out[k] = Σ in1[i] in2[k - i] over all i.

    Args:
        in1: an array.
        in2: an array of as many dimensions.
        mode: "full" has all overlaps, "same" as many elements as ``in1``, "valid" the complete
            ones, where one of the arrays must be at least as long as the other in each dimension.
        method: "direct", "fft", or "auto", which is "direct".
        precision: of the products; see ``jnp.matmul``.

    Returns:
        An array of the rank of the operands, of the lengths that ``mode`` says.

    Raises:
        ValueError: ranks differ, an array is empty, or the mode or the method is unknown.

    >>> from phalanx.scipy import signal
    >>> print(signal.convolve(jnp.array([1.0, 2.0]), jnp.array([1.0, 3.0])))
    [1. 5. 6.]
    """
    return _by_method("convolve", in1, in2, mode, method, precision)


def correlate(
    in1: ArrayLike, in2: ArrayLike, mode: str = "full", method: str = "auto", precision: Any = None
) -> Array:
    """``convolve`` with ``in2`` conjugated and turned around in all dimensions.

    Args:
        in1: an array.
        in2: an array of as many dimensions.
        mode: "full" has all overlaps, "same" as many elements as ``in1``, "valid" the complete
            ones, where one of the arrays must be at least as long as the other in each dimension.
        method: "direct", "fft", or "auto", which is "direct".
        precision: of the products; see ``jnp.matmul``.

    Returns:
        An array of the rank of the operands, of the lengths that ``mode`` says.

    Raises:
        ShapeError: the arrays differ in rank, or are empty.

    >>> from phalanx.scipy import signal
    >>> print(signal.correlate(jnp.array([1.0, 2.0, 3.0]), jnp.array([0.0, 1.0]), mode="valid"))
    [2. 3.]
    """
    return _by_method("correlate", in1, jnp.flip(jnp.conj(in2)), mode, method, precision)


def convolve2d(
    in1: ArrayLike,
    in2: ArrayLike,
    mode: str = "full",
    boundary: str = "fill",
    fillvalue: float = 0,
    precision: Any = None,
) -> Array:
    """Convolution of two matrices: out[i, j] = Σ in1[a, b] in2[i - a, j - b] over all a and b.

    Machine learning calls a convolution what is the correlation here: ``lax.conv`` does not flip
    the kernel.

    Args:
        in1: a matrix [n, m].
        in2: the kernel, a matrix [k, l].
        mode: "full" has all overlaps: [n + k - 1, m + l - 1]; "same" is as large as ``in1``;
            "valid" has the complete overlaps: [n - k + 1, m - l + 1] where the kernel is the
            smaller one.
        boundary: must be "fill": around the matrices are zeros.
        fillvalue: must be 0.
        precision: of the products; see ``jnp.matmul``.

    Returns:
        A matrix of the lengths that ``mode`` says.

    Raises:
        ShapeError: an argument is no matrix.

    >>> from phalanx.scipy import signal
    >>> signal.convolve2d(jnp.ones((2, 2)), jnp.ones((2, 2)), mode="valid").tolist()
    [[4.0]]
    """
    _check_flat("convolve2d", in1, in2, boundary, fillvalue)
    return _direct("convolve2d", in1, in2, mode, precision)


def correlate2d(
    in1: ArrayLike,
    in2: ArrayLike,
    mode: str = "full",
    boundary: str = "fill",
    fillvalue: float = 0,
    precision: Any = None,
) -> Array:
    """``correlate`` of matrices; see ``convolve2d``.

    Args:
        in1: an array.
        in2: an array of as many dimensions.
        mode: "full" has all overlaps, "same" as many elements as ``in1``, "valid" the complete
            ones, where one of the arrays must be at least as long as the other in each dimension.
        boundary: must be "fill": around the matrices are zeros.
        fillvalue: must be 0.
        precision: of the products; see ``jnp.matmul``.

    Returns:
        A matrix of the lengths that ``mode`` says.

    Raises:
        ShapeError: an argument is no matrix.

    >>> from phalanx.scipy import signal
    >>> signal.correlate2d(jnp.eye(2), jnp.eye(2), mode="same").tolist()
    [[2.0, 0.0], [0.0, 1.0]]
    """
    _check_flat("correlate2d", in1, in2, boundary, fillvalue)
    turned = jnp.flip(jnp.conj(in2))
    return _direct("correlate2d", in1, turned, _BEHIND if mode == "same" else mode, precision)


def fftconvolve(
    in1: ArrayLike, in2: ArrayLike, mode: str = "full", axes: Sequence[int] | None = None
) -> Array:
    """``convolve`` by Fourier transforms: fast for long arrays, errors relative to the largest sum.

    Args:
        in1: an array.
        in2: an array of as many dimensions.
        mode: "full" has all overlaps, "same" as many elements as ``in1``, "valid" the complete
            ones.
        axes: the axes along which it works; default all. Along the others the arrays broadcast.

    Returns:
        An array of the rank of the operands, of the lengths that ``mode`` says.

    Raises:
        AxisError: there is no dimension ``axes``.
        ShapeError: the arrays differ in rank, or are empty.

    >>> from phalanx.scipy import signal
    >>> print(signal.fftconvolve(jnp.array([1.0, 2.0]), jnp.array([1.0, 3.0])).round(4))
    [1. 5. 6.]
    """
    over = (axes,) if isinstance(axes, int) else axes
    return _by_transforms(in1, in2, mode, None if over is None else tuple(over))


# ---- how it is computed -----------------------------------------------------------------------


def _by_method(who: str, in1: Any, in2: Any, mode: str, method: str, precision: Any) -> Array:
    if method not in ("auto", "direct", "fft"):
        raise ArgumentError(f"{who}: method must be 'auto', 'direct' or 'fft', got {method!r}")
    if method == "fft":
        return fftconvolve(in1, in2, mode)
    return _direct(who, in1, in2, mode, precision)


def _check_flat(who: str, in1: Any, in2: Any, boundary: str, fillvalue: float) -> None:
    if boundary != "fill" or fillvalue != 0:
        raise ArgumentError(
            f"{who}: around the matrices are zeros, boundary='fill' and fillvalue=0, got "
            f"{boundary!r} and {fillvalue!r}; pad the first one with jnp.pad"
        )
    shapes = jnp.shape(in1), jnp.shape(in2)
    if any(len(shape) != 2 for shape in shapes):
        raise ShapeError(f"{who}: two matrices are needed, got {shapes[0]} and {shapes[1]}")


def _pair(who: str, in1: Any, in2: Any, mode: str) -> tuple[Any, Any]:
    if mode not in (*_MODES, _BEHIND):
        raise ArgumentError(f"{who}: mode must be one of {_MODES}, got {mode!r}")
    x, y = promote_inexact(who, [in1, in2])
    if x.ndim != y.ndim or not x.size or not y.size:
        raise ShapeError(
            f"{who}: two arrays of one rank that are not empty are needed, got {x.aval} and "
            f"{y.aval}"
        )
    return x, y


def _in_order(who: str, x: Any, y: Any, mode: str, axes: Sequence[int]) -> tuple[Any, Any]:
    """For "valid", the larger one first."""
    if mode != "valid" or all(x.shape[d] >= y.shape[d] for d in axes):
        return x, y
    if not all(y.shape[d] >= x.shape[d] for d in axes):
        raise ShapeError(
            f"{who}: with mode 'valid', one array must be at least as long as the other in each "
            f"dimension, got {x.aval} and {y.aval}"
        )
    return y, x


@one_program
def _direct(who: str, in1: ArrayLike, in2: ArrayLike, mode: str, precision: Any) -> Array:
    x, y = _pair(who, in1, in2, mode)
    x, y = _in_order(who, x, y, mode, range(x.ndim))
    if not x.ndim:
        return x * y
    reach = [n - 1 for n in y.shape]
    paddings = {
        "full": [(r, r) for r in reach],
        "same": [(r - r // 2, r // 2) for r in reach],
        "valid": [(0, 0)] * y.ndim,
        _BEHIND: [(r // 2, r - r // 2) for r in reach],
    }
    out = lax.conv_general_dilated(
        x[None, None], jnp.flip(y)[None, None], (1,) * x.ndim, paddings[mode], precision=precision
    )
    return out[0, 0]


@one_program
def _by_transforms(
    in1: ArrayLike, in2: ArrayLike, mode: str, axes: tuple[int, ...] | None
) -> Array:
    who = "fftconvolve"
    x, y = _pair(who, in1, in2, mode)
    over = tuple(range(x.ndim)) if axes is None else dimensions(who, axes, x.ndim)
    for d in set(range(x.ndim)).difference(over):
        if x.shape[d] != y.shape[d] and 1 not in (x.shape[d], y.shape[d]):
            raise ShapeError(
                f"{who}: Incompatible shapes for broadcasting beside axes {over}: {x.aval} and "
                f"{y.aval}"
            )
    x, y = _in_order(who, x, y, mode, over)
    if not over:
        return x * y
    lengths = [x.shape[d] + y.shape[d] - 1 for d in over]
    if dtypes.is_complex(x.dtype):
        out = fft.ifftn(fft.fftn(x, lengths, over) * fft.fftn(y, lengths, over), lengths, over)
    else:
        out = fft.irfftn(fft.rfftn(x, lengths, over) * fft.rfftn(y, lengths, over), lengths, over)
    cut = [slice(None)] * x.ndim
    for d in over:
        n, m = x.shape[d], y.shape[d]
        starts = {"full": (0, n + m - 1), "same": ((m - 1) // 2, n), "valid": (m - 1, n - m + 1)}
        start, length = starts[mode]
        cut[d] = slice(start, start + length)
    return out[tuple(cut)].astype(x.dtype)
