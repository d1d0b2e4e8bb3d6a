"""Hypergeometric functions."""

from __future__ import annotations

from phalanx.core.types import Array
from phalanx.numpy.promotion import ArrayLike, real
from phalanx.primitives.hypergeometric import hyp1f1 as _hyp1f1
from phalanx.primitives.hypergeometric import hyp2f1 as _hyp2f1


def hyp1f1(a: ArrayLike, b: ArrayLike, x: ArrayLike) -> Array:
    """Confluent hypergeometric function of Kummer, ₁F₁(a; b; x) (DLMF 13.2.2).

    It is Σ (a)_k / (b)_k xᵏ / k! over k ≥ 0, where (a)_k is ``poch(a, k)``.

    Args:
        a: the parameter in the numerator.
        b: the parameter in the denominator.
        x: the argument, real, of any shape.

    Returns:
        Floats of the broadcast shape; float32 for integers.

    Raises:
        ShapeError: the arguments do not broadcast to one shape.
        TypeError: an argument is complex.

    >>> print(scipy.special.hyp1f1(1.0, 2.0, jnp.array([-1.0, 0.0, 1.0])).round(4))
    [0.6321 1.     1.7183]
    """
    return _hyp1f1(*real("hyp1f1", a, b, x))


def hyp2f1(a: ArrayLike, b: ArrayLike, c: ArrayLike, x: ArrayLike) -> Array:
    """Hypergeometric function of Gauss, ₂F₁(a, b; c; x) (DLMF 15.2.1).

    It is Σ (a)_k (b)_k / (c)_k xᵏ / k! over k ≥ 0, where (a)_k is ``poch(a, k)``; and its
    continuation to x ≤ -1.

    Args:
        a: the first parameter in the numerator.
        b: the second, likewise.
        c: the parameter in the denominator.
        x: the argument, real, at most 1, of any shape.

    Returns:
        Floats of the broadcast shape; float32 for integers.

    Raises:
        ShapeError: the arguments do not broadcast to one shape.
        TypeError: an argument is complex.

    >>> print(scipy.special.hyp2f1(1.0, 1.0, 2.0, jnp.array([-1.0, 0.0, 0.5])).round(4))
    [0.6931 1.     1.3863]
    """
    return _hyp2f1(*real("hyp2f1", a, b, c, x))
