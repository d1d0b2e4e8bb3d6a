"""How accurate a transcendental function is to be."""

# Users' arguments are looked at, whatever their types should be.
# pyright: reportUnnecessaryIsInstance=false

from __future__ import annotations

from numbers import Real

from msgspec import Struct

from phalanx.base.boundary import hiding
from phalanx.base.choices import Choice
from phalanx.core.types import Array, ArrayLike
from phalanx.lax.operands import one


class AccuracyMode(Choice):
    """One of the ways in which a platform computes a function: the most accurate, or its own.

    >>> float(lax.exp(0.0, accuracy=lax.AccuracyMode.HIGHEST))
    1.0
    """

    HIGHEST = 1
    DEFAULT = 2


class Tolerance(Struct, frozen=True):
    """The largest error that is allowed.

    Attributes:
        atol: absolute.
        rtol: relative.
        ulps: in units of the last place.

    Args:
        atol: the largest difference from the true value.
        rtol: the same, relative to the value.
        ulps: the same, in units of the last digit.

    Raises:
        TypeError: one is no real number.
        ValueError: one is negative.

    >>> lax.Tolerance(rtol=1e-6)
    Tolerance(atol=0.0, rtol=1e-06, ulps=0)
    """

    atol: float = 0.0
    rtol: float = 0.0
    ulps: int = 0

    @hiding
    def __post_init__(self) -> None:
        if not all(isinstance(t, Real) for t in (self.atol, self.rtol, self.ulps)):
            raise TypeError(f"Tolerance: tolerances must be real numbers, got {self}")
        if self.atol < 0 or self.rtol < 0 or self.ulps < 0:
            raise ValueError(f"Tolerance: a tolerance must not be negative, got {self}")


Accuracy = Tolerance | AccuracyMode | None


def checked(who: str, x: ArrayLike, accuracy: Accuracy) -> Array:
    """``x``, if it is an array or a number, and ``accuracy``, if there is one, says one.

    There is nothing to choose: XLA computes in one way here, the most accurate that it has.

    Raises:
        TypeError: one of them is something else.
    """
    if accuracy is not None and not isinstance(accuracy, (Tolerance, AccuracyMode)):
        raise TypeError(
            f"lax.{who}: accuracy must be a lax.Tolerance, a lax.AccuracyMode or None, got "
            f"{accuracy!r}"
        )
    return one(who, x)
