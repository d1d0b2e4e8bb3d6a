import math

import numpy as np
import pytest

from phalanx.primitives.formula import economized


@pytest.mark.parametrize(("low", "high"), [(-0.5, 0.5), (0.0, 0.25), (-1.0, 2.0)])
@pytest.mark.parametrize("eps", [1e-6, 1e-9, 1e-14])
def test_fewer_coefficients_say_the_same(low, high, eps):
    terms = [1 / math.factorial(k) for k in range(30)]  # of the exponential function
    fewer = economized(terms, low, high, eps)
    x = np.linspace(low, high, 1001)
    values = np.polynomial.polynomial.polyval(x, fewer)
    np.testing.assert_allclose(values, np.exp(x), rtol=0, atol=eps + 4e-16 * math.e**2)
    cut = next(k for k, c in enumerate(terms) if c * max(-low, high) ** k < eps)
    assert len(fewer) < cut
