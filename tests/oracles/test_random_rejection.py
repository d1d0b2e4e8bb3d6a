"""Distributions of many steps against those of installed jax: the same numbers but for rounding."""

import numpy as np
import pytest
import scipy.special as sp

import phalanx
from phalanx import random
from tests.laws.slopes import along

jax = pytest.importorskip("jax")

COUNTS = np.float32([0.0, 0.5, 3.0, 9.9, -1.0, np.nan, 10.0, 12.0, 40.0, 100.0])
A = np.float32([1e-3, 0.1, 1.0, 2.5, 1e4])
CALLS = {
    "ball": (3, 2.5, (2, 2)),
    "beta": (A, A[::-1]),
    "binomial": (np.float32([[3], [200], [5e4], [-1], [np.nan]]), np.float32([0, 0.1, 0.9])),
    "dirichlet": (A.reshape(1, 5), (2,)),
    "double_sided_maxwell": (1.0, 2.0, (9,)),
    "f": (A, 2.0),
    "gamma": (A,),
    "geometric": (np.float32([0.01, 0.5, 1.0]),),
    "maxwell": ((9,),),
    "pareto": (A,),
    "poisson": (COUNTS, None, "int16"),
    "rayleigh": (A,),
    "triangular": (-A, 0.0, A),
    "wald": (A,),
    "weibull_min": (2.0, 3.0, (9,)),
}


@pytest.mark.parametrize("drawn", CALLS)  # cases of one statement: each takes long to compile
def test_the_same_numbers(drawn):
    def drawn_by(library):
        draw = getattr(library.random, drawn)
        return library.jit(lambda key: draw(key, *CALLS[drawn]))(library.random.key(5))

    found, wanted = drawn_by(phalanx), drawn_by(jax)
    assert found.dtype == wanted.dtype and found.shape == wanted.shape
    np.testing.assert_allclose(found, np.asarray(wanted), rtol=2e-5, atol=1e-30)


def test_short_floats():
    found = random.gamma(random.key(5), 0.5, (20,), "bfloat16")
    wanted = jax.random.gamma(jax.random.key(5), 0.5, (20,), "bfloat16")
    assert found.dtype == wanted.dtype
    np.testing.assert_allclose(
        np.asarray(found, np.float32), np.asarray(wanted, np.float32), rtol=1e-2
    )


def test_multinomial():
    p = np.float32([[0.2, 0.3, 0.5], [0.0, 0.0, 0.0], [0.5, 0.5, 0.0]])
    found = random.multinomial(random.key(2), np.float32([10, 20, 1000]), p)
    wanted = jax.random.multinomial(jax.random.key(2), np.float32([10, 20, 1000]), p)
    np.testing.assert_array_equal(found, np.asarray(wanted))


def test_modes_of_many_bits():
    logits = np.log(np.float32([0.1, 0.2, 0.7]))
    for name, args in {
        "gumbel": ((50,),), "bernoulli": (0.3, (50,)), "categorical": (logits, -1, (50,)),
        "choice": (3, (2,), False, np.float32([0.1, 0.2, 0.7])),
    }.items():  # fmt: skip
        found = getattr(random, name)(random.key(5), *args, mode="high")
        wanted = getattr(jax.random, name)(jax.random.key(5), *args, mode="high")
        np.testing.assert_allclose(
            np.asarray(found, np.float32), np.asarray(wanted, np.float32), rtol=1e-6
        )
        with pytest.raises(ValueError, match=f"{name}: mode must be 'high' or 'low', got 'huge'"):
            getattr(random, name)(random.key(5), *args, mode="huge")


def test_64_bits():
    with phalanx.config.override(enable_x64=True), jax.enable_x64(True):
        found = random.gamma(random.key(5), A.astype(np.float64))
        wanted = jax.random.gamma(jax.random.key(5), A.astype(np.float64))
        assert found.dtype == wanted.dtype
        np.testing.assert_allclose(found, np.asarray(wanted), rtol=1e-12)


def test_gamma_numbers_move_with_their_parameter():
    key, a = random.key(1), np.float64([0.1, 0.8, 3.0, 50.0])
    with phalanx.enable_x64(True):
        for draw in (random.gamma, random.loggamma):
            x, pull = phalanx.vjp(lambda a, draw=draw: draw(key, a), a)
            value = np.asarray(x) if draw is random.gamma else np.exp(x)
            p = sp.gammainc(a, value)
            wanted = along(lambda a, p=p: sp.gammaincinv(a, p), (a,), (a,)) / a
            wanted = wanted if draw is random.gamma else wanted / value
            np.testing.assert_allclose(pull(np.ones(4))[0], wanted, rtol=1e-5)
    tiny = phalanx.grad(lambda a: random.loggamma(random.key(0), a))(1e-3)
    assert np.isfinite(tiny) and tiny > 0


def test_lanes_draw_what_loops_draw():
    keys = random.split(random.key(3), 4)
    a = np.float32([0.5, 2.0, 9.0, 20.0])

    def draw(key, a):
        return random.gamma(key, a), random.poisson(key, a)

    found = phalanx.jit(phalanx.vmap(draw))(keys, a)
    for i in range(4):
        for one, lane in zip(draw(keys[i], a[i]), found, strict=True):
            np.testing.assert_allclose(lane[i], one, rtol=1e-6)


def test_errors():
    with pytest.raises(ValueError, match="gamma: method must be 'exact', got 'approximate'"):
        random.gamma(random.key(0), 1.0, method="approximate")
    with pytest.raises(ValueError, match="dirichlet: alpha must have an axis at least"):
        random.dirichlet(random.key(0), 1.0)
    with pytest.raises(TypeError, match="poisson: dtype must be an integer dtype, got float32"):
        random.poisson(random.key(0), 1.0, dtype="float32")
