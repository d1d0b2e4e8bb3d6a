"""Sines of half turns, by which x is reduced before anything is rounded."""

from fractions import Fraction

import numpy as np
import pytest

import phalanx
import phalanx.numpy as jnp
from phalanx.primitives.half_turns import sinc

NEAR = [1.0, 2.0, 439.0, -276.0, 5e5]  # whole numbers


def exact(x: float) -> float:
    """sinc of what is near a whole number, in whose place the angle is small."""
    whole = round(x)
    part = float(Fraction(x) - whole)
    return (-1) ** whole * np.sin(np.pi * part) / (np.pi * x)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("whole", NEAR)
def test_sinc_keeps_its_digits_near_whole_numbers(dtype, whole):
    with phalanx.enable_x64():
        x = dtype(whole) + np.array([-3, -1, 0, 1, 3], dtype) / dtype(16)
        expected = [exact(float(v)) for v in x]
        eps = np.finfo(dtype).eps
        np.testing.assert_allclose(np.asarray(sinc(x)), expected, rtol=4 * eps, atol=0)


def test_sinc_at_the_ends():
    x = np.array([0.0, -0.0, 0.5, -0.5, np.inf, -np.inf, np.nan], np.float32)
    expected = [1, 1, 2 / np.pi, 2 / np.pi, 0, 0, np.nan]
    np.testing.assert_allclose(np.asarray(jnp.sinc(x)), expected, rtol=2e-7)
    slopes = np.asarray(phalanx.vmap(phalanx.grad(jnp.sinc))(x))
    np.testing.assert_allclose(slopes[[0, 1, 4, 5, 6]], [0, 0, 0, 0, np.nan], atol=1e-7)


@pytest.mark.parametrize("ends", [(np.inf, 1), (1, np.inf), (-np.inf, np.inf), (np.nan, 1), (2, 3)])
def test_trapezoid_with_infinite_ends(ends):
    y = np.array([ends[0], 5, 7, ends[1]], np.float32)
    with np.errstate(invalid="ignore"):
        expected = np.sum((y[1:] + y[:-1]) / 4)
    np.testing.assert_allclose(np.asarray(jnp.trapezoid(y, dx=0.5)), expected)
