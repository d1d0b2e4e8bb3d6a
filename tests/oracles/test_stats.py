"""Distributions and statistics of samples against SciPy in float64, and their derivatives."""

import inspect
import itertools
from types import ModuleType

import numpy as np
import pytest
import scipy.stats

import phalanx
import phalanx.numpy as jnp
from phalanx import random
from phalanx.scipy import stats
from tests.exemptions import exempt

nan, inf = np.nan, np.inf
OF_VECTORS = {"dirichlet", "multinomial", "multivariate_normal"}
NAMES = sorted(
    n
    for n, m in vars(stats).items()
    if isinstance(m, ModuleType) and n in stats.__all__ and n not in OF_VECTORS
)
FUNCTIONS = ["logpdf", "pdf", "logpmf", "pmf", "cdf", "logcdf", "sf", "logsf", "ppf", "isf"]

# What elements and parameters are tried: at the ends of the support, beyond them, not valid.
NUMBERS = [-1e3, -7.3, -1, -0.4, 0, 1e-8, 0.3, 0.5, 0.999, 1, 1.7, 2, 6.1, 40, 1e4, -inf, inf, nan]
WHOLE = [-1, 0, 1, 2, 3, 5, 10, 100, 101, 0.5, nan]
CHANCES = [0, 1e-300, 1e-5, 0.2, 0.5, 0.7, 1 - 1e-12, 1, -0.1, 1.1, nan]
PLACES = [(0, 1), (0.5, 2), (0, -1), (0, 0)]
PARAMETERS = {
    "a": [0.3, 1, 2.5, 40, 0, nan], "b": [0.5, 3, 300, -1], "beta": [0.3, 1, 5, -1],
    "c": [0.1, 0.99, 0, 1], "df": [0.5, 3, 1e6, inf, 0], "kappa": [0, 0.5, 700, -1],
    "mu": [0, 0.3, 30, -1], "n": [1, 5, 100, -1, 2.5], "p": [0.2, 0.7, 1, -0.1],
}  # fmt: skip
BOUNDS = {"a": [-inf, -8, 0, 30], "b": [inf, -7, 1, 31]}  # of truncnorm


def functions(name):
    module = getattr(stats, name)
    return {f: getattr(module, f) for f in FUNCTIONS if hasattr(module, f)}


def points(name, function, f):
    """A value for each argument, in every combination."""
    first, *others = inspect.signature(f).parameters
    elements = {"k": WHOLE, "q": CHANCES, "p": CHANCES}.get(first, NUMBERS)
    elements = CHANCES if function in ("ppf", "isf") else elements
    if name in ("vonmises", "wrapcauchy"):
        elements = [x for x in elements if abs(x) < 10]
    choices = BOUNDS if name == "truncnorm" else PARAMETERS
    shape = [choices[p] for p in others if p not in ("loc", "scale")]
    places = PLACES if "scale" in others else [(0,), (1,)] if "loc" in others else [()]
    rows = [(*p, *place) for *p, place in itertools.product(elements, *shape, places)]
    return [np.array(column, float) for column in zip(*rows, strict=True)]


@pytest.mark.parametrize("name", NAMES)
def test_values(name):
    ours = functions(name)
    given = {f: points(name, f, ours[f]) for f in ours}
    with phalanx.enable_x64(True):
        run = phalanx.jit(lambda given: {f: ours[f](*xs) for f, xs in given.items()})
        found = run(given)
    for f, xs in given.items():
        with np.errstate(all="ignore"):
            wanted = getattr(getattr(scipy.stats, name), f)(*xs)
        known = np.ones(wanted.shape, bool)
        if exempt("limits-as-scipy", f"scipy.stats.{name}"):
            known = ~(np.isnan(wanted) & np.isinf(xs).any(0)) & ~(wanted == -inf)
        if name == "beta":  # the logarithm of what is too small for a float
            known = np.isnan(wanted) | ~(np.isfinite(wanted) & (wanted < -650))
        if f == "ppf" and name == "bernoulli":
            known = xs[0] != 0  # SciPy says -1, below the support
        message = f"{name}.{f}"
        np.testing.assert_allclose(
            found[f][known], wanted[known], rtol=2e-9, atol=1e-14, err_msg=message
        )


TYPICAL = {
    "a": 1.5, "b": 2.5, "beta": 1.7, "c": 0.4, "df": 4.5, "kappa": 1.3, "loc": 0.1, "mu": 3.5,
    "n": 7, "p": 0.3, "scale": 1.4,
}  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_derivatives_are_finite_and_those_of_differences(name):
    """Inside of the support and beyond it, by all arguments that a derivative is taken by."""
    ours = functions(name)
    for f in ours:
        if exempt("slopes-of-distributions", f"scipy.stats.{name}.{f}"):
            continue
        first, *others = inspect.signature(ours[f]).parameters
        whole = first == "k"
        x = np.array([0.0, 1, 3, 9] if whole else [-4.3, 0.17, 0.52, 1.36, 3.3, 77])
        x = np.array([0.07, 0.4, 0.8]) if f in ("ppf", "isf") else x
        typical = TYPICAL | ({"a": -2.0} if name == "truncnorm" else {})
        xs = [x, *(np.full(x.shape, typical[p]) for p in others)]
        by = [i for i, p in enumerate([first, *others]) if not (whole and p in ("k", "n", "loc"))]
        if whole and "loc" in others:
            xs[1 + others.index("loc")] *= 0
        with phalanx.enable_x64(True):
            slopes = phalanx.jit(phalanx.grad(lambda *xs, f=f: ours[f](*xs).sum(), tuple(by)))
            found = slopes(*xs)
        theirs = getattr(getattr(scipy.stats, name), f)
        for i, slope in zip(by, found, strict=True):
            step = [1e-6 * (j == i) for j in range(len(xs))]
            moved = [[v + k * h for v, h in zip(xs, step, strict=True)] for k in (-2, -1, 1, 2)]
            with np.errstate(all="ignore"):
                y = [theirs(*m) for m in moved]
                wanted = (8 * (y[2] - y[1]) - (y[3] - y[0])) / 12e-6
            wanted = np.where(np.isfinite(wanted), wanted, 0)
            np.testing.assert_allclose(slope, wanted, rtol=1e-5, atol=1e-6, err_msg=f"{name}.{f}")


@pytest.mark.parametrize("name", NAMES)
def test_integer_parameters_do_not_widen_small_floats(name):
    for f, function in functions(name).items():
        _, *others = inspect.signature(function).parameters
        xs = jnp.ones(3, "bfloat16"), *(jnp.ones(3, "int8") for _ in others)
        assert phalanx.eval_shape(function, *xs).dtype == jnp.bfloat16, f


def test_integers_and_small_floats():
    found = stats.norm.pdf(np.arange(3))
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, scipy.stats.norm.pdf(np.arange(3)), rtol=1e-6)
    assert stats.poisson.pmf(jnp.arange(3), 2).dtype == np.float32
    assert stats.gamma.cdf(jnp.bfloat16([1, 2]), 2).dtype == jnp.bfloat16
    found = stats.chi2.cdf(100.0, np.int8(3), scale=np.int8(100))  # twice 100 is no int8
    assert float(found) == pytest.approx(scipy.stats.chi2.cdf(1, 3), rel=1e-5)
    with pytest.raises(TypeError, match=r"norm\.pdf|norm\.logpdf: real operands"):
        stats.norm.pdf(1j)
    far = stats.cauchy.logpdf(np.float32(1e25))
    assert float(far) == pytest.approx(scipy.stats.cauchy.logpdf(1e25), rel=1e-6)


@pytest.mark.parametrize("mu", [0, 1e-3, 0.5, 9.99, 50, 99.9, 100.1, 5000])
def test_entropy(mu):
    k = np.arange(10 * mu**0.5 + 2 * mu + 50)
    p = scipy.stats.poisson.pmf(k, mu)
    wanted = -np.sum(p * np.log(np.where(p > 0, p, 1)))
    with phalanx.enable_x64(True):
        found = float(stats.poisson.entropy(float(mu)))
    assert found == pytest.approx(wanted, rel=1e-10, abs=1e-300)


# ---- vectors --------------------------------------------------------------------------------


def test_vectors():
    source = np.random.default_rng(0)
    root = source.normal(size=(3, 2, 2))
    cov, x = root @ root.swapaxes(-1, -2) + np.eye(2), source.normal(size=(3, 2))
    normal = scipy.stats.multivariate_normal
    counts, p = np.array([[1, 2, 1], [0, 0, 4], [1, 1, 1], [-1, 3, 2]]), np.array([0.2, 0.5, 0.3])
    shares, alpha = np.array([[0.2, 0.3], [0.1, 0.7]]), np.array([1.0, 2, 3])
    with phalanx.enable_x64(True):
        found = [stats.multivariate_normal.logpdf(x, np.ones(2), cov),
                 stats.multivariate_normal.pdf(x, np.ones(2), 2.0),
                 stats.multivariate_normal.pdf(x[0], 1.0, 2.0),
                 stats.multinomial.logpmf(counts, 4, p),
                 stats.dirichlet.logpdf(shares[:, 0], alpha), stats.dirichlet.pdf(shares, alpha),
                 stats.dirichlet.pdf(np.array([0.2, -0.1, 0.9]), alpha)]  # fmt: skip
    wanted = [[normal.logpdf(v, np.ones(2), c) for v, c in zip(x, cov, strict=True)],
              [normal.pdf(v, np.ones(2), 2 * np.eye(2)) for v in x],
              scipy.stats.norm.pdf(x[0], 1, 2**0.5), scipy.stats.multinomial.logpmf(counts, 4, p),
              scipy.stats.dirichlet.logpdf(shares[:, 0], alpha),
              [scipy.stats.dirichlet.pdf(shares[:, 0], alpha), 0], 0]  # fmt: skip
    for ours, theirs in zip(found, wanted, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-12)
    with pytest.raises(ValueError, match="as many rows"):
        stats.dirichlet.pdf(np.ones(5), alpha)
    with pytest.raises(NotImplementedError, match="allow_singular"):
        stats.multivariate_normal.logpdf(x, np.ones(2), cov, True)
    with pytest.raises(ValueError, match="cov must be"):
        stats.multivariate_normal.logpdf(x, np.ones(2), np.eye(3))


# ---- samples --------------------------------------------------------------------------------

COUNTS = np.random.default_rng(0).integers(0, 4, (3, 5, 4))
HOLES = np.where(COUNTS == 2, nan, COUNTS)


@pytest.mark.filterwarnings("ignore:.*too small")  # SciPy's
@pytest.mark.parametrize("axis", [None, 0, -1])
def test_samples(axis):
    for method in ("average", "min", "max", "dense", "ordinal"):
        wanted = scipy.stats.rankdata(COUNTS, method, axis=axis)
        assert np.array_equal(stats.rankdata(COUNTS, method, axis=axis), wanted)
    for policy in ("propagate", "omit"):
        options = {"axis": axis, "nan_policy": policy}
        wanted = scipy.stats.rankdata(HOLES, **options)
        np.testing.assert_array_equal(stats.rankdata(HOLES, **options), wanted)
        wanted = scipy.stats.sem(HOLES, **options, keepdims=True)
        np.testing.assert_allclose(stats.sem(HOLES, **options, keepdims=True), wanted, rtol=1e-5)
        found = stats.mode(HOLES, **options, keepdims=True)
        wanted = scipy.stats.mode(HOLES, **options, keepdims=True)
        np.testing.assert_array_equal(found.mode, wanted.mode)
        np.testing.assert_array_equal(found.count, wanted.count)


def test_samples_that_are_empty_or_refused():
    assert np.isnan(stats.mode(np.zeros((2, 0)), axis=1).mode).all()
    assert stats.rankdata(np.zeros(0)).shape == (0,) and np.isnan(stats.sem(np.zeros(0)))
    with pytest.raises(ValueError, match="method must be one of"):
        stats.rankdata(COUNTS, "median")
    with pytest.raises(ValueError, match="nan_policy must be"):
        stats.sem(COUNTS, nan_policy="drop")
    with pytest.raises(NotImplementedError, match="not known while tracing"):
        stats.mode(COUNTS, nan_policy="raise")


@pytest.mark.parametrize("d", [1, 2])
@pytest.mark.parametrize("rule", [None, "silverman", 0.4])
def test_density_of_a_sample(d, rule):
    source = np.random.default_rng(d)
    data, weights, x = source.normal(size=(d, 9)), source.uniform(0.1, 1, 9), np.ones((d, 4))
    theirs = scipy.stats.gaussian_kde(data, rule, weights)
    other = scipy.stats.gaussian_kde(data + 1)
    with phalanx.enable_x64(True):
        ours = stats.gaussian_kde(data, rule, weights)
        assert (ours.d, ours.n) == (d, 9)
        pairs = [
            (ours(x), theirs(x)),
            (ours.logpdf(x[:, 0]), theirs.logpdf(x[:, 0])),
            (ours.inv_cov, theirs.inv_cov),
            (ours.neff, theirs.neff),
            (ours.integrate_kde(stats.gaussian_kde(data + 1)), theirs.integrate_kde(other)),
            (
                ours.integrate_gaussian(np.ones(d), np.eye(d)),
                theirs.integrate_gaussian(np.ones(d), np.eye(d)),
            ),
        ]
        if d == 1:
            pairs.append((ours.integrate_box_1d(-1, 1), theirs.integrate_box_1d(-1, 1)))
    for found, wanted in pairs:
        np.testing.assert_allclose(found, wanted, rtol=1e-10)


def test_density_of_a_sample_in_programs():
    data = np.random.default_rng(0).normal(size=(2, 50)).astype(np.float32)
    kde = stats.gaussian_kde(data)
    x = np.float32([[0, 1], [1, 0]])
    found = phalanx.jit(lambda kde, x: kde.logpdf(x))(kde, x)
    np.testing.assert_allclose(found, kde.logpdf(x), rtol=1e-5)
    drawn = np.asarray(kde.resample(random.key(0), (40_000,)))
    np.testing.assert_allclose(drawn.mean(1), data.mean(1), atol=0.03)
    assert kde.resample(random.key(0), (2, 3)).shape == (2, 2, 3)
    for call in (lambda: kde.set_bandwidth(1), lambda: kde.integrate_box(0, 1)):
        with pytest.raises(NotImplementedError):
            call()
    for call in (lambda: kde(np.zeros((3, 2))), lambda: kde.integrate_box_1d(0, 1),
                 lambda: stats.gaussian_kde(data, "scotch"), lambda: stats.gaussian_kde(1.0),
                 lambda: stats.gaussian_kde(data, weights=np.ones(3))):  # fmt: skip
        with pytest.raises(ValueError, match="gaussian_kde"):
            call()
