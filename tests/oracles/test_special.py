"""Special functions against SciPy in float64, over their whole domains, and their derivatives."""

import numpy as np
import pytest
import scipy.special as sp
import scipy.stats as stats

import phalanx
from phalanx import lax, scipy
from phalanx import numpy as jnp
from tests.laws.slopes import along

EDGES = np.array([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 0.5, -2.5])


def grid(seed, *ranges, count=2000):
    """Points with logarithms (base 10) drawn from ``ranges``."""
    source = np.random.default_rng(seed)
    return [10 ** source.uniform(*r, count) for r in ranges]


def around(a, b=None):
    """Points near the turn of the incomplete functions, and elsewhere."""
    source = np.random.default_rng(3)
    mean, spread = (a, np.sqrt(a)) if b is None else (a / (a + b), np.sqrt(a * b / (a + b) ** 3))
    near = mean + spread * source.normal(size=a.size) * 2
    far = mean * 10 ** source.uniform(-3, 0, a.size)
    x = np.where(source.random(a.size) < 0.7, near, far)
    return np.clip(x, 1e-9, None if b is None else 1 - 1e-9)


def compare(ours, theirs, *points, rtol=1e-13, atol=0.0, rtol32=2e-5, atol32=1e-36):
    """In float64, and in float32 against float64 at the same points."""
    with np.errstate(all="ignore"):
        wanted = theirs(*points)
        rounded = [p.astype(np.float32) for p in points]
        wanted32 = theirs(*[p.astype(np.float64) for p in rounded])
    with phalanx.enable_x64(True):
        found = phalanx.jit(ours)(*points)
        found32 = phalanx.jit(ours)(*rounded)
    assert found.dtype == np.float64 and found32.dtype == np.float32
    np.testing.assert_allclose(found, wanted, rtol=rtol, atol=atol + 1e-300)
    with np.errstate(over="ignore"):
        np.testing.assert_allclose(found32, wanted32.astype(np.float32), rtol=rtol32, atol=atol32)


def check_slopes(f, *xs, rtol=1e-6):
    """Forward derivatives by every operand against differences."""
    with phalanx.enable_x64(True):
        for i in range(len(xs)):
            # as far as the operand is large
            tangents = [np.abs(v) * (j == i) for j, v in enumerate(xs)]
            found = phalanx.jvp(f, tuple(map(phalanx.numpy.asarray, xs)), tuple(tangents))[1]
            wanted = along(lambda *xs: np.asarray(f(*xs)), xs, tangents)
            np.testing.assert_allclose(found, wanted, rtol=rtol, atol=rtol * np.abs(wanted).max())


# ---- lax ------------------------------------------------------------------------------------


def test_incomplete_gamma():
    (a,) = grid(0, (-6, 4))
    x = around(a)
    compare(lax.igamma, sp.gammainc, a, x, rtol=1e-11, rtol32=1e-4)
    compare(lax.igammac, sp.gammaincc, a, x, rtol=1e-11, rtol32=1e-4)
    edges = [v.ravel() for v in np.meshgrid(EDGES, EDGES)]
    compare(lax.igamma, sp.gammainc, *edges)
    compare(lax.igammac, sp.gammaincc, *edges)


def test_incomplete_gamma_far_out_is_more_exact_than_scipy():
    with phalanx.enable_x64(True):
        found = lax.igamma(np.float64(993765.906415918), np.float64(989045.9489316314))
    assert float(found) == pytest.approx(1.0585044731417199553e-06, rel=1e-14)  # in 40 digits


def test_incomplete_beta():
    a, b = grid(1, (-3, 4), (-3, 4))
    compare(lax.betainc, sp.betainc, a, b, around(a, b), rtol=1e-10, atol=1e-280, rtol32=1e-4)
    compare(lax.betainc, sp.betainc, *[v.ravel() for v in np.meshgrid(EDGES, EDGES, EDGES)])


def test_zeta_and_polygamma():
    s, q = grid(2, (-3, 2), (-2, 4))
    compare(lax.zeta, sp.zeta, 1 + s, q, atol32=1e-35)
    orders, x = np.repeat([1.0, 2.0, 3.0, 10.0], 100), np.tile(np.linspace(-7.7, 20.3, 100), 4)
    compare(lax.polygamma, sp.polygamma, orders, x, rtol=1e-11, rtol32=1e-3)
    compare(lax.polygamma, sp.polygamma, np.zeros(9), np.linspace(0.1, 9, 9), rtol=1e-12)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_polygamma_of_half_precision_is_that_of_single_precision(dtype):
    x = jnp.array([1.5, 4, 100], dtype)
    expected = jnp.array(sp.polygamma(9, np.float64(x)), dtype)
    many = phalanx.vmap(scipy.special.polygamma, (0, None))(jnp.array([9, 9]), x)
    for found in (scipy.special.polygamma(9, x), lax.polygamma(jnp.full(3, 9, dtype), x), *many):
        np.testing.assert_allclose(np.float64(found), np.float64(expected), rtol=1e-2)


def test_zeta_is_exact_where_terms_are_lost():
    """Terms that underflow where their sum does not, and numbers to which 1 is not added."""
    s, q = grid(6, (0, 3), (-37, 37), count=20_000)
    s, q = s.astype(np.float32), q.astype(np.float32)
    wanted = sp.zeta(s.astype(float), q.astype(float))
    normal = (wanted > np.finfo(np.float32).tiny) & (wanted < np.finfo(np.float32).max)
    assert (normal & (wanted < 1e-36)).any() and (normal & (q > 2.0**24)).any()
    np.testing.assert_allclose(lax.zeta(s, q)[normal], wanted[normal], rtol=3e-6)


def test_bessel():
    x = np.concatenate([np.linspace(-60, 60, 501), 10.0 ** np.linspace(-30, 30, 61), EDGES])
    compare(lax.bessel_i0e, sp.i0e, x)
    compare(lax.bessel_i1e, sp.i1e, x)


def test_derivatives_of_incomplete_functions():
    a, x = np.float64([0.3, 1.0, 5.0, 40.0, 40.0, 500.0]), np.float64([0.1, 1.0, 9.0, 35, 40, 520])
    check_slopes(lax.igamma, a, x)
    check_slopes(lax.igammac, a, x)
    b = np.float64([0.2, 3.0, 5.0, 60.0, 0.5, 300.0])
    check_slopes(lax.betainc, a, b, np.float64([0.5, 0.1, 0.5, 0.4, 0.99, 0.6]))
    check_slopes(lax.zeta, a + 1, x)


def test_slope_of_random_gamma_numbers():
    """A number of the distribution of mean a, at a fixed quantile, moves with a as it says."""
    a, p = np.repeat([0.2, 1.0, 30.0], 3), np.tile([0.1, 0.5, 0.9], 3)
    wanted = along(lambda a: sp.gammaincinv(a, p), (a,), (a,)) / a
    with phalanx.enable_x64(True):
        found = lax.random_gamma_grad(a, sp.gammaincinv(a, p))
    np.testing.assert_allclose(found, wanted, rtol=1e-6)


def test_slope_of_random_gamma_numbers_of_large_mean():
    """In float32, where the powers and the factorial of the density are far from 1."""
    a, p = np.repeat(10.0 ** np.arange(2, 6), 3), np.tile([0.1, 0.5, 0.9], 4)
    x = sp.gammaincinv(a, p)
    step = 1e-2 * np.sqrt(a)
    wanted = (sp.gammaincinv(a + step, p) - sp.gammaincinv(a - step, p)) / (2 * step)
    found = lax.random_gamma_grad(a.astype(np.float32), x.astype(np.float32))
    np.testing.assert_allclose(found, wanted, rtol=1e-5)


def test_slopes_of_incomplete_gamma_functions_are_densities():
    """From the tiny to the huge, and nothing where the density is nothing."""
    (a,) = grid(0, (-6, 6))
    x = around(a)

    def density(a, x):
        u = (x - a) / a
        near = stats.norm.pdf(0) / np.sqrt(a) * np.exp(a * (np.log1p(u) - u) - _stirling(a))
        return np.where(a > 1e3, near * a / x, stats.gamma.pdf(x, a))

    def slope(a, x):
        return phalanx.vmap(phalanx.grad(lax.igamma, 1))(jnp.asarray(a), jnp.asarray(x))

    compare(slope, density, a, x, rtol=1e-9, rtol32=1e-4)
    with phalanx.enable_x64(True):
        other = phalanx.vmap(phalanx.grad(lax.igammac, 1))(jnp.asarray(a), jnp.asarray(x))
        np.testing.assert_array_equal(other, -slope(a, x))
    assert slope(np.float32([9.0, 2.0, 1.0]), np.float32([0.0, 0.0, 1e30])).tolist() == [0, 0, 0]


def test_slope_of_the_incomplete_beta_function_is_the_density():
    a, b = grid(1, (-3, 6), (-3, 6))

    def slope(a, b, x):
        return phalanx.vmap(phalanx.grad(lax.betainc, 2))(*map(jnp.asarray, (a, b, x)))

    compare(
        slope, lambda a, b, x: stats.beta.pdf(x, a, b), a, b, around(a, b), rtol=1e-8, rtol32=1e-4
    )


def _stirling(a):
    return 1 / (12 * a) - 1 / (360 * a**3)


# ---- scipy.special --------------------------------------------------------------------------

WIDE = np.concatenate([np.linspace(-30.3, 30.3, 301), 10.0 ** np.linspace(-20, 5, 60), EDGES])
UNIT = np.concatenate([np.linspace(0, 1, 101), 10.0 ** np.linspace(-30, -2, 60), [-1, 2, np.nan]])
PAIRS = [v.ravel() for v in np.meshgrid([0, 0.3, 1, 2.5, 40, -1, np.nan], [0, 0.3, 1, 9, -0.5])]
SIMPLE = {
    "entr": (WIDE,), "erf": (WIDE,), "expit": (WIDE,), "gammasgn": (WIDE[:361],),
    "kl_div": PAIRS, "logit": (UNIT,), "ndtri": (UNIT,), "rel_entr": PAIRS, "xlog1py": PAIRS,
    "xlogy": PAIRS, "log_ndtr": (WIDE,), "i0": (WIDE[:301],), "i1": (WIDE[:301],),
    "ndtr": (np.linspace(-8, 8, 99),), "poch": (np.float64([0.5, 2, 7]), np.float64([0, 3, 1.5])),
    "beta": (np.float64([0.5, 2, 30, -0.5]), np.float64([0.1, 3, 40, 2.2])),
    "gamma": (np.linspace(-4.7, 30.3, 99),),
}  # fmt: skip


def test_functions_with_the_names_of_scipy():
    with phalanx.enable_x64(True):
        ours = [getattr(phalanx.scipy.special, name) for name in SIMPLE]
        draw = phalanx.jit(lambda xs: [f(*x) for f, x in zip(ours, xs, strict=True)])
        found = draw([tuple(x) for x in SIMPLE.values()])
    for (name, xs), y in zip(SIMPLE.items(), found, strict=True):
        with np.errstate(all="ignore"):
            wanted = getattr(sp, name)(*xs)
        np.testing.assert_allclose(y, wanted, rtol=1e-11, atol=1e-15, err_msg=name)
