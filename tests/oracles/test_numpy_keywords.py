"""Keywords that few programs use: what they do, as NumPy or SciPy do it in float64."""

import math
from fractions import Fraction

import numpy as np
import pytest

import phalanx
import phalanx.numpy as jnp
from phalanx import lax
from phalanx.experimental.ode import odeint
from tests.compare import close
from tests.laws.slopes import along

X = np.random.default_rng(0).normal(size=(4, 5))
WEIGHTS = np.random.default_rng(1).integers(0, 4, size=(4, 5))


@pytest.mark.parametrize("axis", [0, None])
def test_variances_around_a_known_mean(axis):
    centre = np.mean(X, axis, keepdims=True)
    for name in ("var", "std", "nanvar", "nanstd"):
        close(getattr(jnp, name)(X, axis, mean=centre), getattr(np, name)(X, axis, mean=centre))
    close(jnp.var(X, axis, mean=1.5), np.mean((X - 1.5) ** 2, axis))
    with pytest.raises(ValueError, match="a mean of shape"):
        jnp.var(X, 1, mean=np.ones(4))


SHARES = np.array([0.0, 0.2, 0.5, 0.77, 1.0])


def test_quantiles_of_weighted_elements():
    for axis in (0, 1, None, (0, 1)):
        options = {"axis": axis, "method": "inverted_cdf"}
        weighted = {**options, "weights": WEIGHTS}
        close(jnp.quantile(X, SHARES, **options), np.quantile(X, SHARES, **options))
        close(jnp.quantile(X, SHARES, **weighted), np.quantile(X, SHARES, **weighted))
        close(jnp.percentile(X, 30, **weighted), np.percentile(X, 30, **weighted))


def test_quantiles_of_weighted_elements_among_nan():
    holes = np.where(X > 1, np.nan, X)
    options = {"weights": WEIGHTS, "method": "inverted_cdf"}
    kept = ~np.isnan(holes)
    expected = np.quantile(holes[kept], 0.4, weights=WEIGHTS[kept], method="inverted_cdf")
    close(jnp.nanquantile(holes, 0.4, **options), expected)
    assert np.isnan(jnp.quantile(holes, 0.4, **options))
    for weights in (np.zeros(5), -np.ones(5)):
        assert np.isnan(jnp.quantile(X, 0.4, 1, weights=weights, method="inverted_cdf")).all()
    with pytest.raises(ValueError, match="weights need method='inverted_cdf'"):
        jnp.quantile(X, 0.4, weights=WEIGHTS)


@pytest.mark.parametrize("edge_order", [1, 2])
@pytest.mark.parametrize("places", [(), (2.0,), (np.array([0.0, 1, 3, 7]), 0.5)], ids=str)
def test_slopes_at_the_ends(edge_order, places):
    found = jnp.gradient(X, *places, edge_order=edge_order)
    for slopes, expected in zip(found, np.gradient(X, *places, edge_order=edge_order), strict=True):
        close(slopes, expected)


@pytest.mark.parametrize("method", ["auto", "compare_all", "binary_search", "sort"])
def test_ways_of_looking_for_elements(method):
    x = np.array([3.0, -0.0, np.nan, 9.0, np.inf])
    for tests in (np.array([9.0, 0.0, np.nan]), np.arange(1000.0)[::-1], np.zeros(0)):
        assert jnp.isin(x, tests, method=method).tolist() == np.isin(x, tests).tolist()


def test_rows_that_differ_in_a_result_of_given_size():
    rows = np.array([[2, 1], [0, 5], [2, 1], [0, 4]])
    values, *places = np.unique(rows, True, True, True, axis=0)
    sized = phalanx.jit(lambda x: jnp.unique(x, True, True, True, axis=0, size=4, fill_value=-1))
    found, first, inverse, counts = sized(rows)
    assert found.tolist() == [*values.tolist(), [-1, -1]]
    assert inverse.tolist() == places[1].reshape(-1).tolist()
    assert first[:3].tolist() == places[0].tolist() and counts.tolist() == [*places[2], 0]
    columns = jnp.unique(rows.T, axis=1, size=2)
    assert columns.tolist() == values[:2].T.tolist()
    assert jnp.unique(jnp.zeros((0, 2)), axis=0, size=1, fill_value=3).tolist() == [[3.0, 3.0]]
    with pytest.raises(ValueError, match="give fill_value"):
        jnp.unique(jnp.zeros(0), size=1)


def test_elements_at_unknown_positions_are_deleted():
    gone = np.array([-1, 0])
    delete = phalanx.jit(lambda i: jnp.delete(X, i, axis=1, assume_unique_indices=True))
    close(delete(gone), np.delete(X, gone, axis=1))


def test_negative_indices_may_lie_outside():
    x, i = jnp.arange(3.0), jnp.array([-1, 1])
    near = jnp.take_along_axis(x, i, mode="clip", wrap_negative_indices=False)
    assert near.tolist() == [0.0, 1.0]
    filled = jnp.take_along_axis(x, i, wrap_negative_indices=False)
    assert np.isnan(filled).tolist() == [True, False]


@pytest.mark.parametrize("staged", [lambda f: f, phalanx.jit])
@pytest.mark.parametrize("i", [-1, np.array([-1, 1, 1])])
def test_negative_positions_that_are_written_may_lie_outside(i, staged):
    x = jnp.arange(3.0)

    def written(how, value, mode=None):
        def write(i):
            return getattr(x.at[i], how)(value, mode=mode, wrap_negative_indices=False)

        return staged(write)(i).tolist()

    reached = np.ndim(i) > 0
    assert written("set", 7.0) == [0.0, 7.0 if reached else 1.0, 2.0]
    assert written("add", 5.0, "clip") == [5.0, 11.0 if reached else 1.0, 2.0]
    assert written("apply", lambda v: v + 1) == [0.0, 3.0 if reached else 1.0, 2.0]
    outside = staged(lambda i: x.at[i].get(mode="fill", fill_value=9, wrap_negative_indices=False))(
        i
    )
    assert np.ravel(outside)[0] == 9


def test_zeros_at_the_front_of_a_polynomial():
    found = phalanx.jit(lambda p: jnp.roots(p, strip_zeros=False))(np.array([0.0, 1.0, -3.0, 2.0]))
    close(np.sort(found[:2].real), [1, 2])
    assert np.isnan(found[2])


def test_dtypes_of_results():
    assert jnp.argsort(jnp.arange(3), dtype="int8").dtype == "int8"
    assert jnp.cov(X, dtype="float16").dtype == jnp.corrcoef(X, dtype="float16").dtype == "float16"
    index = jnp.array([1, 2]), jnp.array([3, 0])
    flat = jnp.ravel_multi_index(index, (3, 4), "clip", dtype="int16")
    assert (flat.tolist(), flat.dtype) == ([7, 8], "int16")
    assert jnp.histogramdd(X, 2)[0].dtype == "int32"


def test_methods_of_negative():
    x = jnp.arange(4)
    assert jnp.negative.at(x, jnp.array([1, 3]), inplace=False).tolist() == [0, -1, 2, -3]
    for wrong in (lambda: jnp.negative.at(x, 0, 1, inplace=False), lambda: jnp.negative.reduce(x)):
        with pytest.raises(ValueError, match=r"negative\..*this one has 1 and 1"):
            wrong()
    with pytest.raises(ValueError, match=r"add.at.*this one has 2 and 1"):
        jnp.add.at(x, 0, inplace=False)
    with pytest.raises(TypeError, match=r"use jnp.where on the result"):
        jnp.add(x, 1, where=x > 1)  # type: ignore[arg-type]


def test_a_product_of_ones_own_in_einsum():
    asked = []

    def product(x, y, numbers, precision, preferred_element_type):
        asked.append((numbers, precision))
        return lax.dot_general(x, y, numbers, precision, preferred_element_type)

    found = jnp.einsum("ij,kj->ik", X, X, _dot_general=product, precision="highest")
    close(found, X @ X.T)
    assert asked == [((((1,), (1,)), ((), ())), "highest")]


def test_a_differential_equation_back_in_time():
    times = np.array([1.0, 0.2, -0.5, 0.4])

    def total(k, y0, t):
        return odeint(lambda y, t, k: -k * y * t, y0, t, k)

    def exact(k, y0, t):
        return y0 * np.exp(-k * (t**2 - t[0] ** 2) / 2)

    close(total(0.7, 1.3, times), exact(0.7, 1.3, times))
    found = phalanx.grad(lambda *given: total(*given).sum(), (0, 1, 2))(0.7, 1.3, jnp.array(times))

    def slope(change):
        return along(lambda *given: exact(*given).sum(), (0.7, 1.3, times), change)

    expected = [slope((1, 0, 0)), slope((0, 1, 0)), [slope((0, 0, e)) for e in np.eye(4)]]
    for a, b in zip(found, expected, strict=True):
        close(a, b, rtol=1e-4)


ENDS = [
    (-3.0, 3.0, 7),
    (0, 9, 28),
    (-1.5, 7.25, 36),
    (0, 1, 11),
    (5, -5, 21),
    (0, 100, 7),
    (0, 3, 50),
]


@pytest.mark.parametrize("ends", ENDS)
@pytest.mark.parametrize("endpoint", [True, False])
def test_integers_between_two_ends(ends, endpoint):
    """The integers at or below the exact fractions."""
    start, stop, num = ends
    first, parts = Fraction(start), num - endpoint
    wanted = [math.floor(first + i * (Fraction(stop) - first) / parts) for i in range(num)]
    out = jnp.linspace(start, stop, num, endpoint=endpoint, dtype=int)
    np.testing.assert_array_equal(out, wanted)


SUMS = ["sum", "prod", "cumsum", "cumprod", "nansum", "nanprod", "nancumsum", "nancumprod"]


@pytest.mark.parametrize("name", SUMS)
def test_truth_of_sums_of_fractions(name):
    for x in ([0.5, 0.5], [0.0, 0.5, -0.5, 0.0], [0.25], [1.0, -1.0], [0.0, 0.0]):
        x = np.array(x, np.float32)
        out = getattr(jnp, name)(x, dtype=bool)
        np.testing.assert_array_equal(out, getattr(np, name)(x, dtype=bool))
    x = np.array([0.5, -0.5, 0.0])
    for name in ("cumulative_sum", "cumulative_prod"):
        out = getattr(jnp, name)(x, dtype=bool)
        np.testing.assert_array_equal(out, getattr(np, name)(x, dtype=bool))
