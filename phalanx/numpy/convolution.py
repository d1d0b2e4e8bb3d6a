"""Convolutions and correlations of sequences."""

from __future__ import annotations

from typing import Any

from phalanx import primitives as ops
from phalanx.base import dtypes
from phalanx.control.one_program import one_program
from phalanx.core.types import Array
from phalanx.numpy.complex_numbers import conj
from phalanx.numpy.manipulation import atleast_1d
from phalanx.numpy.promotion import ArrayLike, promote_inexact


@one_program
def convolve(
    a: ArrayLike,
    v: ArrayLike,
    mode: str = "full",
    *,
    precision: Any = None,
    preferred_element_type: Any = None,
) -> Array:
    """The discrete convolution of two vectors, out[k] = Σ a[i] v[k - i] over i.

    Args:
        a: a vector [n].
        v: a vector [m].
        mode: "full" has all overlaps, "same" as many as the longer vector, "valid" complete ones.
        precision: of the products; see ``matmul``.
        preferred_element_type: the dtype of the sums and the result; None: that of the products.

    Returns:
        A vector of length n + m - 1 ("full"), max(n, m) ("same") or max(n, m) - min(n, m) + 1
        ("valid"), floating-point or complex: of integers float32, where NumPy gives integers.

    Raises:
        ValueError: an operand is no vector, or is empty, or there is no such mode.

    >>> print(jnp.convolve(jnp.array([1.0, 2.0]), jnp.array([1.0, 3.0])))
    [1. 5. 6.]
    """
    x, kernel = _vectors("convolve", a, v)
    if x.size < kernel.size:
        x, kernel = kernel, x
    kernel = ops.reverse(kernel, dims=(0,))
    return _slid("convolve", x, kernel, mode, precision, preferred_element_type)


@one_program
def correlate(
    a: ArrayLike,
    v: ArrayLike,
    mode: str = "valid",
    *,
    precision: Any = None,
    preferred_element_type: Any = None,
) -> Array:
    """The cross-correlation of two vectors, out[k] = Σ a[i + k] conj(v[i]) over i.

    Args:
        a: a vector [n].
        v: a vector [m].
        mode: "full" has all overlaps, "same" as many as the longer vector, "valid" complete ones.
        precision: of the products; see ``matmul``.
        preferred_element_type: the dtype of the sums and the result; None: that of the products.

    Returns:
        A vector of length n + m - 1 ("full"), max(n, m) ("same") or max(n, m) - min(n, m) + 1
        ("valid"), floating-point or complex: of integers float32, where NumPy gives integers.

    Raises:
        ValueError: an operand is no vector, or is empty, or there is no such mode.

    >>> print(jnp.correlate(jnp.array([1.0, 2.0, 3.0]), jnp.array([0.0, 1.0])))
    [2. 3.]
    """
    x, kernel = _vectors("correlate", a, v)
    kernel = conj(kernel)
    if x.size >= kernel.size:
        return _slid("correlate", x, kernel, mode, precision, preferred_element_type)
    x, kernel = kernel, x
    out = _slid("correlate", x, kernel, mode, precision, preferred_element_type)
    return ops.reverse(out, dims=(0,))


def _vectors(who: str, a: Any, v: Any) -> list[Any]:
    xs = [atleast_1d(x) for x in promote_inexact(who, [a, v])]
    if any(x.ndim != 1 or not x.size for x in xs):
        listed = " and ".join(str(x.aval) for x in xs)
        raise ValueError(f"{who}: two vectors that are not empty are needed, got {listed}")
    return xs


def _slid(who: str, x: Any, kernel: Any, mode: str, precision: Any, dtype: Any) -> Any:
    """The scalar products of ``kernel`` with the windows of ``x``, which is not shorter."""
    reach = kernel.size - 1
    paddings = {
        "full": (reach, reach),
        "same": (kernel.size // 2, reach - kernel.size // 2),
        "valid": (0, 0),
    }
    if mode not in paddings:
        raise ValueError(f"{who}: mode must be 'full', 'same' or 'valid', got {mode!r}")
    out = ops.conv_general_dilated(
        ops.reshape(x, shape=(1, 1, x.size)),
        ops.reshape(kernel, shape=(1, 1, kernel.size)),
        strides=(1,),
        padding=(paddings[mode],),
        lhs_dilation=(1,),
        rhs_dilation=(1,),
        dimension_numbers=ops.ConvDimensionNumbers((0, 1, 2), (0, 1, 2), (0, 1, 2)),
        feature_group_count=1,
        batch_group_count=1,
        precision=ops.canonical_precision(who, precision),
        dtype=None if dtype is None else dtypes.requested(dtype),
    )
    return ops.reshape(out, shape=(out.size,))
