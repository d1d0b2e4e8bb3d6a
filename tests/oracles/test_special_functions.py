"""More special functions against SciPy in float64, over their whole domains, and derivatives."""

import warnings

import jax
import numpy as np
import pytest
import scipy.special as sp

import phalanx
from phalanx.scipy import special
from tests.oracles.test_special import EDGES, compare

SOURCE = np.random.default_rng(7)
REAL = np.concatenate([np.linspace(-12.1, 12.3, 400), 10.0 ** np.linspace(-20, 4, 99), EDGES])
ABOVE = np.concatenate([np.linspace(0.01, 30, 300), 10.0 ** np.linspace(-20, 2, 99), EDGES])
RATIONAL = np.concatenate([np.linspace(1e-9, 2, 99), 10.0 ** np.linspace(-30, -1, 60), EDGES])
ONE_BY_ONE = {
    "dawsn": (REAL, 1e-13), "erfcx": (REAL, 1e-13), "erfcinv": (RATIONAL, 1e-13),
    "exp1": (ABOVE, 5e-14), "expi": (REAL, 1e-13), "gamma": (REAL, 1e-13),
    "digamma": (ABOVE[:-9], 1e-13), "gammaln": (ABOVE, 1e-13), "ndtri": (RATIONAL / 2, 1e-12),
    "log_ndtr": (REAL, 1e-13), "spence": (ABOVE[:-9], 1e-13),
    "factorial": (np.arange(-2.0, 60), 1e-13),
}  # fmt: skip


def test_functions_of_one_number():
    with phalanx.enable_x64(True), np.errstate(all="ignore"):
        names = list(ONE_BY_ONE)
        for dtype in (np.float64, np.float32):
            points = [ONE_BY_ONE[n][0].astype(dtype) for n in names]
            every = phalanx.jit(lambda xs: [getattr(special, n)(x) for n, x in zip(names, xs)])  # noqa: B905
            for name, x, found in zip(names, points, every(points), strict=True):
                wanted = getattr(sp, name)(x.astype(np.float64)).astype(dtype)
                wide = dtype == np.float64
                rtol, atol = (ONE_BY_ONE[name][1], 1e-300) if wide else (2e-5, 1e-36)
                np.testing.assert_allclose(found, wanted, rtol=rtol, atol=atol, err_msg=name)


def test_limits_at_infinity_are_those_of_the_values_before():
    """SciPy has NaN there, and what goes to the limit before it."""
    assert sp.spence(1e300) < -2e5 and special.spence(np.inf) == -np.inf
    q = np.array([0.5, 1.0, 2.0])
    assert sp.zeta(1000.0, 0.5) > 1e300 and sp.zeta(1000.0, 1.0) == 1 > 1e300 * sp.zeta(1000.0, 2.0)
    np.testing.assert_array_equal(special.zeta(np.inf, q), [np.inf, 1, 0])


def test_pairs_of_integrals():
    x = np.concatenate([np.linspace(0.01, 60, 500), EDGES[:-1]])
    compare(lambda x: special.sici(x)[0], lambda x: sp.sici(x)[0], x, rtol=1e-13)
    compare(lambda x: special.sici(x)[1], lambda x: sp.sici(x)[1], x, rtol=1e-12, atol=1e-15,
            rtol32=2e-3)  # fmt: skip
    for i in (0, 1):
        compare(lambda x: special.fresnel(x)[i], lambda x: sp.fresnel(x)[i], x, rtol=1e-12)  # noqa: B023


def test_functions_of_several_numbers():
    n, x = np.repeat([0.0, 1, 2, 5, 40], 60), np.tile(10.0 ** np.linspace(-8, 2, 60), 5)
    compare(special.expn, lambda n, x: sp.expn(n.astype(int), x), n, x, rtol=1e-13)
    h, a = SOURCE.uniform(-6, 6, 500), SOURCE.uniform(-4, 4, 500)
    compare(special.owens_t, sp.owens_t, h, a, rtol=3e-13)
    n = np.floor(SOURCE.uniform(0, 50, 300))
    k = np.floor(n * SOURCE.uniform(-0.1, 1.1, 300))
    compare(special.comb, sp.comb, n, k, rtol=1e-13)
    x, power = SOURCE.uniform(0, 5, 300), np.where(SOURCE.random(300) < 0.1, 0, h[:300] / 3)
    compare(special.boxcox, sp.boxcox, x, power)
    compare(special.boxcox1p, sp.boxcox1p, x, power)


def test_hypergeometric_functions():
    a, b = SOURCE.uniform(0.1, 8, (2, 300))
    x = SOURCE.choice([-1, 1], 300) * 10 ** SOURCE.uniform(-3, 1.7, 300)
    compare(special.hyp1f1, sp.hyp1f1, a, b, x, rtol=1e-11, rtol32=1e-3)
    c, d, e = SOURCE.uniform(0.1, 5, (3, 300))
    z = np.concatenate([SOURCE.uniform(-1, 1, 200), -(10 ** SOURCE.uniform(-1, 3, 100))])
    compare(special.hyp2f1, sp.hyp2f1, c, d, e, z, rtol=1e-10, rtol32=2e-2)


def test_complex_functions():
    z = (SOURCE.normal(size=400) + 1j * SOURCE.normal(size=400)) * np.repeat([0.1, 1, 4, 30], 100)
    with phalanx.enable_x64(True), np.errstate(all="ignore"):
        for name in ("wofz", "erfcx", "loggamma", "gamma"):
            with np.errstate(all="ignore"):
                wanted = getattr(sp, name)(z)
            fine = np.isfinite(wanted) & (abs(wanted) > 1e-300) & (abs(wanted) < 1e200)
            found = np.asarray(phalanx.jit(getattr(special, name))(z))
            np.testing.assert_allclose(found[fine], wanted[fine], rtol=5e-12, err_msg=name)


def test_orders_of_bessel_functions():
    z = np.concatenate([np.linspace(-50, 50, 81), [0.0, 1e-8, 300.0]])
    for v in (0, 1, 7, 40):
        with phalanx.enable_x64(True):
            found = special.bessel_jn(z, v=v)
        wanted = [sp.jv(n, z) for n in range(v + 1)]
        np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=2e-15)


def test_spherical_harmonics():
    n = np.arange(20).repeat(3)
    m, theta = np.round(n * SOURCE.uniform(-1, 1, 60)).astype(int), SOURCE.uniform(0, 3.14, 60)
    with phalanx.enable_x64(True):
        found = special.sph_harm_y(n, m, theta, 2 * theta)
    np.testing.assert_allclose(found, sp.sph_harm_y(n, m, theta, 2 * theta), atol=1e-13)


POINTS = np.array([-1, -0.9, -0.3, 0, 1e-9, 0.1, 0.5, 0.99, 1])


@pytest.mark.parametrize("m, n", [(4, 6), (6, 4), (0, 3), (3, 0), (0, 0)])
def test_legendre_functions_and_their_derivatives(m, n):
    values, slopes = sp.assoc_legendre_p_all(n, m, POINTS, diff_n=1)[:, :, : m + 1].swapaxes(1, 2)
    with phalanx.enable_x64(True):
        found, derived = special.lpmn(m, n, POINTS)
        alone = special.lpmn_values(m, n, POINTS, False)
        forward = phalanx.jacfwd(lambda z: special.lpmn_values(m, n, z, False))(POINTS)
    for actual, wanted in ((found, values), (alone, values), (derived, slopes)):
        np.testing.assert_allclose(actual, wanted, rtol=1e-13, atol=2e-14)
    np.testing.assert_allclose(np.einsum("mnkk->mnk", forward), slopes, rtol=1e-12, atol=1e-12)


def test_derivatives_of_legendre_functions_backward_and_of_second_order():
    inside = POINTS[1:-1]
    wanted = sp.assoc_legendre_p_all(6, 6, inside, diff_n=2)[1:, :, :7].swapaxes(1, 2)

    def at_each(which):
        by_point = phalanx.jacrev(lambda z: special.lpmn(6, 6, z[None])[which][..., 0])
        return phalanx.vmap(by_point, out_axes=-1)(inside)

    with phalanx.enable_x64(True):
        np.testing.assert_allclose([at_each(0), at_each(1)], wanted, rtol=1e-11, atol=1e-11)


def test_normalized_legendre_functions_are_spherical_harmonics():
    for n in (0, 5, 120):
        wanted = sp.sph_legendre_p_all(n, n, np.arccos(POINTS))[0, :, : n + 1].swapaxes(0, 1)
        with phalanx.enable_x64(True):
            found = special.lpmn_values(n, n, POINTS, is_normalized=True)
        np.testing.assert_allclose(found, wanted, rtol=1e-10, atol=1e-11)


def test_legendre_functions_agree_with_jax():
    z = POINTS[1:-1].astype(np.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        theirs = jax.scipy.special
        for normalized in (False, True):
            wanted = theirs.lpmn_values(5, 5, jax.numpy.asarray(z), normalized)
            found = special.lpmn_values(5, 5, z, normalized)
            np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)


def test_bernoulli_numbers():
    with phalanx.enable_x64(True):
        found = np.asarray(special.bernoulli(60))
    np.testing.assert_allclose(found, sp.bernoulli(60), rtol=1e-11)
    assert special.bernoulli(0).tolist() == [1.0]
    assert np.isneginf(special.bernoulli(300)[300].item())


def test_derivatives_where_formulas_cancel():
    """Those of finite differences are a law of each primitive; these are in closed form."""
    x = np.float32([50.0, 1e4])
    slope = phalanx.vmap(phalanx.grad(special.dawsn))(x)
    np.testing.assert_allclose(slope, -1 / (2 * x**2) - 3 / (4 * x**4), rtol=1e-6)
    by_power = phalanx.grad(special.boxcox, argnums=1)(3.0, 0.0)
    assert float(by_power) == pytest.approx(np.log(3) ** 2 / 2, rel=1e-6)


def test_gamma_functions_at_their_zeros_are_more_exact_than_scipy():
    with phalanx.enable_x64(True):
        found = special.gammaln(np.float64(2 - 2.0**-30))
    assert float(found) == pytest.approx(-3.93743655e-10, rel=1e-8)
    assert float(special.digamma(np.float32(1.4616321))) == pytest.approx(-1.2e-8, rel=0.01)


def test_what_is_refused():
    for call in (
        lambda: special.factorial(3.0, exact=True), lambda: special.bernoulli(-1),
        lambda: special.bessel_jn(1.0, v=-1), lambda: special.sph_harm_y(1, 0, 0.1, 0.2, 1),
        lambda: special.lpmn(-1, 2, REAL), lambda: special.lpmn_values(2, 2, 0.5, True),
    ):  # fmt: skip
        with pytest.raises(ValueError, match="must"):
            call()
    with pytest.raises(TypeError, match="real"):
        special.expi(1j)
