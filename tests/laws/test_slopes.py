"""The oracle of derivatives is exact where functions are smooth, and knows where they are not."""

import numpy as np
import pytest

from tests.laws.slopes import along

X, T, U = np.array([0.4, -1.1]), np.array([0.3, 0.9]), np.array([-0.7, 0.2])


def root(x):
    """Curved, and large beside its derivatives: what a small step leaves is mostly rounding."""
    return 1e4 + 30 * np.sqrt(x.sum() + 0.8)


def test_first_derivatives():
    sines, total = along(lambda x: (np.sin(9 * x), x.sum()), (X,), (T,))
    np.testing.assert_allclose(sines, 9 * np.cos(9 * X) * T, rtol=1e-8)
    np.testing.assert_allclose(total, T.sum(), rtol=1e-12)
    np.testing.assert_allclose(along(root, (X,), (T,)), 15 * 0.1**-0.5 * T.sum(), rtol=1e-8)


def test_second_derivatives():
    expected = -7.5 * 0.1**-1.5 * T.sum() * U.sum()
    np.testing.assert_allclose(along(root, (X,), (T,), (U,)), expected, rtol=1e-7)
    mixed = along(lambda x, y: np.exp(x) * y**3, (X, U), (T, 0 * U), (0 * X, T))
    np.testing.assert_allclose(mixed, np.exp(X) * T * 3 * U**2 * T, rtol=1e-7)


KINKS = {
    "a slope that jumps": np.abs,
    "a value that jumps": np.sign,
    "a curvature that jumps": lambda x: x * np.abs(x),
}


@pytest.mark.parametrize("distance", [1e-4, 1e-3, 1e-2, 1e-1])
@pytest.mark.parametrize("kink", KINKS)
def test_steps_beyond_a_kink_have_no_part_in_a_derivative(kink, distance):
    def f(x):
        return np.sin(x) + KINKS[kink](x - distance)

    expected = {"a slope that jumps": -1, "a value that jumps": 0}.get(kink, 2 * distance)
    slope = along(f, (np.zeros(2),), (T,))
    np.testing.assert_allclose(slope, (1 + expected) * T, atol=2e-8)


@pytest.mark.parametrize(
    "kink, directions",
    [("a slope that jumps", (T,)), ("a value that jumps", (T,)), ("a slope that jumps", (T, U))],
)
def test_a_kink_that_is_too_close(kink, directions):
    def f(x):
        return KINKS[kink](x - 1e-6)

    with pytest.raises(AssertionError, match="a kink close by"):
        along(f, (np.zeros(2),), *((t,) for t in directions))
