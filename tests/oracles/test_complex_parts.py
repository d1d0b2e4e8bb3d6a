"""Each part of a complex result is as accurate as the other, also where it is far smaller."""

import zlib

import numpy as np
import pytest

import phalanx.numpy as jnp

FUNCTIONS = (
    "exp", "log", "sqrt", "sin", "cos", "tan", "sinh", "cosh", "tanh",
    "arcsin", "arccos", "arctan", "arcsinh", "arccosh", "arctanh",
)  # fmt: skip
COUNT = 2000


def magnitudes(rng, low, high):
    """Numbers of both signs, between powers of ten."""
    return 10.0 ** rng.uniform(low, high, COUNT) * rng.choice([-1, 1], COUNT)


REGIONS = {
    "near 1": lambda rng: (3 * rng.normal(size=COUNT), 3 * rng.normal(size=COUNT)),
    "tiny": lambda rng: (magnitudes(rng, -30, 0), magnitudes(rng, -30, 1)),
    "large": lambda rng: (rng.uniform(-88, 88, COUNT), rng.uniform(-50, 50, COUNT)),
    "on the real axis": lambda rng: (magnitudes(rng, -30, 1), np.zeros(COUNT)),
}


def drawn(name, region, turned):
    x, y = REGIONS[region](np.random.default_rng(zlib.crc32(f"{name} {region}".encode())))
    return (y + 1j * x if turned else x + 1j * y).astype(np.complex64)


def steps_between(found, expected):
    """How many numbers of float32 lie between, where ``expected`` is one that is not tiny."""
    sizes = np.abs(expected)
    inside = (sizes < 3e38) & (sizes > 1e-36)
    steps = np.spacing(sizes[inside].astype(np.float32))
    return np.abs(found[inside].astype(np.float64) - expected[inside]) / steps


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("region", REGIONS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_both_parts_are_accurate(name, region, turned):
    z = drawn(name, region, turned)
    found = np.asarray(getattr(jnp, name)(z))
    expected = getattr(np, name)(z.astype(np.complex128))
    for part in ("real", "imag"):
        errors = steps_between(getattr(found, part), getattr(expected, part))
        assert np.all(errors < 8), (part, np.max(errors))


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("region", REGIONS)
def test_the_imaginary_part_of_expm1_is_accurate(region, turned):
    z = drawn("expm1", region, turned)
    expected = np.exp(z.astype(np.complex128)).imag
    assert np.all(steps_between(np.asarray(jnp.expm1(z)).imag, expected) < 8)
