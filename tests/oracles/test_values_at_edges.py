"""Where numbers end: infinities, zeros, halves, NaN, against NumPy, SciPy and mathematics."""

import numpy as np
import pytest
import scipy.linalg
import scipy.ndimage
import scipy.special

import phalanx
import phalanx.numpy as jnp
from phalanx import lax
from phalanx.base import dtypes
from phalanx.scipy import linalg, ndimage, special, stats


@pytest.mark.parametrize("base", [2, 10])
def test_logarithms_of_complex_zero(base):
    assert getattr(jnp, f"log{base}")(np.complex64(0)) == complex(-np.inf, 0)


def test_halves_are_rounded_upwards():
    image, places = np.arange(5.0, dtype=np.float32), np.float32([[0.5, 1.5, 2.5, 3.5, 0.49]])
    expected = scipy.ndimage.map_coordinates(image, places, order=0)
    assert (ndimage.map_coordinates(image, list(places), 0) == expected).all()


@pytest.mark.parametrize("mode", ["constant", "mirror", "reflect"])
def test_half_an_element_before_an_image_is_outside(mode):
    image, places = np.float32([4, 1, 3, 2]), np.float32([[-2.5, -1.5, -0.5, 0.5, 1.5, 2.5]])
    expected = scipy.ndimage.map_coordinates(image, places, order=0, mode=mode, cval=9)
    assert (ndimage.map_coordinates(image, list(places), 0, mode, 9) == expected).all()


def test_permutations_of_complex_matrices_are_real():
    x = np.complex64([[1, 2j], [3, 4]])
    for y, wanted in zip(linalg.lu(x), scipy.linalg.lu(x), strict=True):
        assert y.dtype == wanted.dtype and np.allclose(y, wanted)


def test_functions_that_vanish():
    assert special.zeta(501.0, 1000.01) == 0
    assert special.zeta(np.float32([1.5, 2, 50]), np.inf).tolist() == [0, 0, 0]
    assert special.exp1(np.float32([1e30, 1e38, np.inf])).tolist() == [0, 0, 0]
    assert special.kl_div(np.inf, 0.0) == scipy.special.kl_div(np.inf, 0.0)


def test_slopes_of_products_with_a_logarithm_at_zero():
    slopes = phalanx.grad(special.xlogy)(0.0, 3.0), phalanx.grad(special.xlog1py)(0.0, 3.0)
    assert np.allclose(slopes, np.log([3, 4]))


def test_slopes_of_rising_factorials_of_order_zero():
    z = np.float32([0.3, 2.5, -2.5, 20, 1e4])
    by_z, by_m = phalanx.vmap(phalanx.grad(special.poch, (0, 1)), (0, None))(z, np.float32(0))
    np.testing.assert_allclose(by_m, scipy.special.digamma(np.float64(z)), rtol=1e-5)
    assert (by_z == 0).all()
    z = np.float32([np.nan, np.inf, 3e38, -2])
    assert (special.poch(z, np.float32(0)) == scipy.special.poch(np.float64(z), 0)).all()


def test_parts_and_neighbours_at_the_edges():
    x = np.float32([np.inf, -np.inf, 1.5, -1.5, 0, -0.0, np.nan, 3.4028235e38])
    for got, wanted in zip(jnp.modf(x), np.modf(x), strict=True):
        np.testing.assert_array_equal(got, wanted)
        np.testing.assert_array_equal(np.signbit(got)[:-2], np.signbit(wanted)[:-2])
    x, y = np.meshgrid(np.append(x, np.float32([1e-45, 1.1754944e-38, 1])), x)
    with np.errstate(over="ignore", under="ignore"):
        np.testing.assert_array_equal(jnp.nextafter(x, y), np.nextafter(x, y))


def test_entropies_at_the_edges():
    x = np.float32([np.inf, -np.inf, 0, -0.0, 1, -1, np.nan])
    np.testing.assert_array_equal(special.entr(x), scipy.special.entr(x))
    x = np.float32([1, 2, 3e38, np.inf, 0, -0.0, -1, np.nan])
    with np.errstate(divide="ignore", invalid="ignore"):
        wanted = np.where(x < 0, 0, -1 - np.log(x.astype(float)))
    np.testing.assert_allclose(phalanx.vmap(phalanx.grad(special.entr))(x), wanted, rtol=1e-6)
    np.testing.assert_allclose(phalanx.grad(phalanx.grad(special.entr))(2.0), -0.5)


SIZES = np.float32([1e-30, 1e-10, 0.7, 1, 1.00001, 1e20, 8e37, 8.6e37, 3.4e38])


def test_relative_entropies_of_all_sizes():
    """Also where numbers are close to each other, and where few operations on them are finite."""
    p, q = (x.ravel() for x in np.meshgrid(SIZES, SIZES))
    wide, other = p.astype(float), q.astype(float)
    beside = np.log(wide / other)  # of float64: what is close differs by 1e-5 at least
    log_ratio = np.where(abs(beside) < 0.5, beside, np.log(wide / other))
    change = 1 - wide / other
    by_p_and_q = {
        special.rel_entr: (log_ratio + 1, -wide / other),
        special.kl_div: (log_ratio, np.where(abs(change) < 0.5, (other - wide) / other, change)),
    }
    with np.errstate(over="ignore", under="ignore"):
        np.testing.assert_allclose(special.rel_entr(p, q), np.float32(wide * log_ratio), rtol=1e-6)
        for f, wanted in by_p_and_q.items():
            for got, slope in zip(phalanx.vmap(phalanx.grad(f, (0, 1)))(p, q), wanted, strict=True):
                tolerance = {"rtol": 2e-6, "atol": 1.2e-38}  # what is smaller is 0 to XLA
                np.testing.assert_allclose(got, slope.astype(np.float32), **tolerance)


def test_slopes_of_logarithms_of_large_numbers():
    """The inverse of such a number is not, but a multiple of it is."""
    x, t = np.float32(1.5e38), np.float32(1e38)
    for f, wanted in {
        jnp.log: 1,
        jnp.log1p: 1,
        jnp.log2: 1 / np.log(2),
        jnp.log10: 1 / np.log(10),
    }.items():
        np.testing.assert_allclose(phalanx.vjp(f, x)[1](t)[0], wanted * 2 / 3, rtol=1e-6)
        np.testing.assert_allclose(phalanx.jvp(f, (x,), (t,))[1], wanted * 2 / 3, rtol=1e-6)
    by_y = phalanx.grad(special.xlogy, 1)(t, x), phalanx.grad(special.xlog1py, 1)(t, x)
    np.testing.assert_allclose(by_y, 2 / 3, rtol=1e-6)


def test_divergences_of_numbers_that_are_close():
    p, d = np.meshgrid(np.float32([1e-20, 0.3, 1, 3e38]), np.float32([-0.4, -1e-3, 1e-5, 0.1]))
    q = p * (1 + d)
    d = q.astype(float) / p - 1
    series = sum((-d) ** n / n for n in range(2, 60))  # d - log(1 + d)
    np.testing.assert_allclose(special.kl_div(p, q), p * series, rtol=2e-6)


def test_what_is_masked_may_be_nan():
    x, mask = np.float32([1, np.nan, 2]), np.array([True, False, True])
    for f in phalanx.nn.softmax, phalanx.nn.log_softmax, phalanx.nn.logsumexp, jnp.var, jnp.prod:
        wanted = f(x[mask])
        got = np.asarray(f(x, where=mask))
        np.testing.assert_allclose(got[mask] if got.shape else got, wanted, rtol=1e-6)
        slopes = np.asarray(phalanx.jacrev(lambda x, f=f: f(x, where=mask))(x))
        slopes = slopes[mask] if got.shape else slopes
        np.testing.assert_allclose(slopes[..., mask], phalanx.jacrev(f)(x[mask]), rtol=1e-6)
        assert (slopes[..., 1] == 0).all()


@pytest.mark.parametrize("left_out", [np.nan, np.inf, -np.inf])
def test_standardize_of_what_is_masked(left_out):
    x, mask = np.float32([1, left_out, 2, 4]), np.array([True, False, True, True])
    got = phalanx.nn.standardize(x, where=mask)
    np.testing.assert_allclose(got[mask], phalanx.nn.standardize(x[mask]), rtol=1e-6)
    np.testing.assert_array_equal(got[1], left_out)
    slopes = phalanx.jacrev(lambda x: phalanx.nn.standardize(x, where=mask)[mask])(x)
    wanted = phalanx.jacrev(phalanx.nn.standardize)(x[mask])
    np.testing.assert_allclose(slopes[:, mask], wanted, rtol=1e-5, atol=1e-6)
    assert (slopes[:, 1] == 0).all()


DENSITIES = [stats.norm.logpdf, stats.norm.cdf, stats.norm.ppf, stats.gamma.logpdf]


@pytest.mark.parametrize("f", [special.entr, *(lambda x, f=f: f(x, 2.0) for f in DENSITIES)])
def test_slopes_at_nan(f):
    assert np.isnan(phalanx.grad(f)(np.nan))


def test_slopes_of_relative_entropy_at_nan():
    for f in (special.rel_entr, special.kl_div):
        slopes = phalanx.grad(f, (0, 1))
        assert np.isnan([slopes(np.nan, 1.0), slopes(1.0, np.nan)]).all()


def test_counts_of_unsigned_integers():
    x = np.uint32([1, 2, 2, 2**32 - 1])
    assert jnp.bincount(x[:3]).tolist() == [0, 1, 2]
    assert jnp.bincount(x, length=3).tolist() == [0, 1, 2]


@pytest.mark.parametrize("dtype", sorted(dtypes.FLOATS, key=str), ids=str)
def test_nan_is_the_extremum_over_devices(dtype):
    sizes = 2.0 ** np.arange(-9, 9)
    x = np.array([*sizes, *-sizes, 0, np.nan]).astype(dtype)
    x = np.stack([x, np.random.RandomState(0).permutation(x)])
    extrema = phalanx.pmap(lambda x: (lax.pmax(x, "i"), lax.pmin(x, "i")), axis_name="i")(x)
    for got, wanted in zip(extrema, [np.maximum, np.minimum], strict=True):
        expected = wanted(*x.astype(np.float64)) + np.zeros((2, 1))
        np.testing.assert_array_equal(np.asarray(got).astype(np.float64), expected)


def test_hypergeometric_functions_of_negative_arguments_do_not_cancel():
    random = np.random.RandomState(0)
    a, gap, b, x = random.uniform([[0], [0], [5], [-3]], [[5], [5], [20], [0]], (4, 200))
    a, b, c, x = np.float32([[*a, 3.0410671], [*b, 18.15366], [*a + gap, 0.5035046], [*x, -0.7474]])
    expected = scipy.special.hyp2f1(*np.float64([a, b, c, x]))
    np.testing.assert_allclose(special.hyp2f1(a, b, c, x), expected, rtol=2e-5)


EDGES = [-np.inf, -41.5, -40, -3, -2.5, -1, -0.5, 0, 0.5, 1, 3, 60, 1e30, np.inf]


@pytest.mark.parametrize("name", ["betaln", "beta", "poch", "comb"])
def test_functions_of_gamma_at_infinities_and_poles(name):
    """Where SciPy says NaN there may be a limit."""
    x, y = np.meshgrid(np.float32(EDGES[name == "poch" :]), np.float32(EDGES), indexing="ij")
    with np.errstate(over="ignore"):
        expected = getattr(scipy.special, name)(np.float64(x), np.float64(y)).astype(np.float32)
    got = np.where(np.isnan(expected), np.nan, getattr(special, name)(x, y))
    np.testing.assert_allclose(got, expected, rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize("f", [special.betaln, special.beta, special.poch])
def test_functions_of_gamma_at_nan(f):
    x = np.float32([np.nan, np.nan, -1, 2])
    assert np.isnan(f(x, x[::-1])).all()


def test_spacing_of_subnormal_numbers():
    x = np.array([0, 1, 3, 100, 1000, 2**20]) * float(np.finfo(np.float32).smallest_subnormal)
    x = np.float32([*x, *-x])
    np.testing.assert_array_equal(jnp.spacing(x), np.spacing(x))


def test_spherical_harmonics_beyond_the_poles():
    theta = np.float32([-7, -4, -2, -0.5, 0.5, 2, 3.5, 4, 6, 7])
    for n, m in (1, 0), (1, 1), (2, 1), (2, 2), (3, -1), (4, -3):
        wanted = scipy.special.sph_harm_y(n, m, theta.astype(float), 0.3)
        np.testing.assert_allclose(special.sph_harm_y(n, m, theta, 0.3), wanted, atol=2e-6)
        slope = phalanx.vmap(phalanx.grad(lambda t: special.sph_harm_y(n, m, t, 0.0).real))(theta)  # noqa: B023
        wanted = scipy.special.sph_harm_y(n, m, theta.astype(float), 0, diff_n=1)[1][..., 0].real
        np.testing.assert_allclose(slope, wanted, atol=1e-5)


def test_owens_function_far_out():
    h, a = np.meshgrid(np.float32(EDGES), np.float32(EDGES))
    wanted = scipy.special.owens_t(h.astype(float), a.astype(float))
    np.testing.assert_allclose(special.owens_t(h, a), wanted, rtol=1e-5, atol=1e-36)


def test_slopes_of_bessel_functions_near_zero():
    """J₀'' is -1/2, J₁' is 1/2, J₁'' is -3x/8."""
    x = np.float32([-1e-4, -1e-20, 1e-37, 4e-8, 1e-3])
    first, second = (lambda x, n=n: special.bessel_jn(x, v=n)[n] for n in (0, 1))
    curve = phalanx.vmap(phalanx.grad(phalanx.grad(first)))(x)
    np.testing.assert_allclose(curve, -0.5, rtol=1e-5)
    np.testing.assert_allclose(phalanx.vmap(phalanx.grad(second))(x), 0.5, rtol=1e-5)
    curve = phalanx.vmap(phalanx.grad(phalanx.grad(second)))(x)
    np.testing.assert_allclose(curve, -0.375 * x, rtol=1e-4, atol=1e-37)


def test_cube_roots_of_subnormal_numbers_have_their_sign():
    x = np.float32([-1e-40, 1e-40, -0.0, 0.0])
    np.testing.assert_array_equal(np.signbit(jnp.cbrt(x)), np.signbit(x))
    assert (abs(jnp.cbrt(x)) <= np.cbrt(abs(x))).all()


def test_logarithm_of_gamma_far_left():
    """Numbers that large are whole, and there are poles."""
    np.testing.assert_array_equal(special.gammaln(np.float32([-3.4e38, -1e10, -2])), np.inf)


def test_derivative_of_log_ndtr_at_zero():
    assert np.isclose(phalanx.grad(special.log_ndtr)(0.0), np.sqrt(2 / np.pi))
