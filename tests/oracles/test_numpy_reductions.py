"""Reductions, statistics, sorting and searching against NumPy."""

import jax
import numpy as np
import pytest

import phalanx
import phalanx.numpy as jnp
from tests.compare import close

RNG = np.random.default_rng(0)
X = RNG.normal(size=(3, 4, 5)).astype(np.float32)
HOLES = np.where(RNG.random((3, 4, 5)) < 0.3, np.nan, X).astype(np.float32)
I = RNG.integers(-5, 6, (3, 4)).astype(np.int32)  # noqa: E741
AXES = [None, 0, -1, (0, 2)]


@pytest.mark.parametrize("axis", AXES, ids=str)
@pytest.mark.parametrize(
    "name", ["sum", "prod", "max", "min", "mean", "var", "std", "ptp", "median"]
)
def test_floats(name, axis):
    for keepdims in (False, True):
        found = getattr(jnp, name)(X, axis=axis, keepdims=keepdims)
        close(found, getattr(np, name)(X, axis=axis, keepdims=keepdims), rtol=1e-4)


@pytest.mark.parametrize("name", ["sum", "prod", "max", "min", "mean", "var", "all", "any", "ptp"])
def test_integers_and_bools(name):
    for x in (I, I > 0, I.astype(np.int8)):
        if name == "ptp" and x.dtype == bool:
            continue
        close(getattr(jnp, name)(x, axis=1), getattr(np, name)(x, axis=1), rtol=1e-4)


@pytest.mark.parametrize("axis", AXES, ids=str)
@pytest.mark.parametrize(
    "name", ["nansum", "nanprod", "nanmax", "nanmin", "nanmean", "nanvar", "nanstd", "nanmedian"]
)
def test_ignoring_nan(name, axis):
    close(getattr(jnp, name)(HOLES, axis=axis), getattr(np, name)(HOLES, axis=axis), rtol=1e-4)


@pytest.mark.parametrize("axis", [None, 0, 1])
@pytest.mark.parametrize("name", ["argmax", "argmin", "cumsum", "cumprod", "nancumsum"])
def test_along_one_axis(name, axis):
    close(getattr(jnp, name)(X, axis=axis), getattr(np, name)(X, axis=axis), rtol=1e-4)
    if name.startswith("arg"):
        ties = np.round(X)
        close(getattr(jnp, name)(ties, axis=axis), getattr(np, name)(ties, axis=axis))
        kept = getattr(jnp, name)(X, axis=axis, keepdims=True)
        assert kept.shape == getattr(np, name)(X, axis=axis, keepdims=True).shape


def test_where_and_initial():
    mask = X > -0.5
    for name in ("sum", "prod", "mean", "var", "all", "any"):
        close(getattr(jnp, name)(X, 1, where=mask), getattr(np, name)(X, 1, where=mask), rtol=1e-4)
    for name in ("sum", "prod", "max", "min"):
        found = getattr(jnp, name)(X, axis=1, initial=0.5, where=mask)
        close(found, getattr(np, name)(X, axis=1, initial=0.5, where=mask), rtol=1e-4)
    with pytest.raises(ValueError, match="give initial="):
        jnp.max(X, where=mask)
    with pytest.raises(ValueError, match="no element to choose"):
        jnp.min(jnp.zeros((0, 3)), axis=0)
    assert jnp.max(jnp.zeros((0, 3)), axis=1).shape == (0,)


def test_dtypes():
    assert jnp.sum(I, dtype=float).dtype == jnp.float32
    assert jnp.mean(I).dtype == jnp.float32
    halves = jnp.full(4096, 1.0, jnp.float16)
    assert jnp.sum(halves) == 4096
    assert jnp.mean(halves * 60000).dtype == jnp.float16
    assert np.isfinite(jnp.mean(halves * 60000))
    complex_numbers = X[0] + 1j * X[1]
    close(jnp.var(complex_numbers), np.var(complex_numbers))
    assert jnp.std(complex_numbers).dtype == jnp.float32


def test_degrees_of_freedom():
    close(jnp.var(X, 1, ddof=1), np.var(X, 1, ddof=1))
    close(jnp.std(X, correction=1), np.std(X, correction=1))


def test_average_and_counts():
    weights = np.abs(X)
    close(jnp.average(X, 1, weights), np.average(X, 1, weights), rtol=1e-4)
    close(jnp.average(X, 1, weights[0, :, 0]), np.average(X, 1, weights[0, :, 0]), rtol=1e-4)
    close(jnp.average(X), np.average(X))
    found, expected = (lib.average(X, 0, weights, returned=True) for lib in (jnp, np))
    close(found[1], expected[1])
    close(jnp.count_nonzero(I, 0), np.count_nonzero(I, 0))


QUOTIENTS = {  # what is computed of two arrays with a division
    "average": lambda a, b: jnp.average(a, weights=b),
    "corrcoef": jnp.corrcoef,
    "cov": jnp.cov,
    "gradient": jnp.gradient,
    "histogram": lambda a, b: jnp.histogram(a, 2, weights=b)[0],
    "histogramdd": lambda a, b: jnp.histogramdd(a[:, None], 2, weights=b)[0],
    "squareplus": phalanx.nn.squareplus,
    "trapezoid": jnp.trapezoid,
}


@pytest.mark.parametrize("name", QUOTIENTS)
@pytest.mark.parametrize("other", ["int8", "float16", "bfloat16", "float32", "complex64"])
@pytest.mark.parametrize("kind", ["bool", "int8", "uint32", "bfloat16", "float32"])
def test_quotients_have_the_dtype_to_which_both_arrays_promote(kind, other, name):
    a, b = jnp.ones(3, kind), jnp.ones(3, other)
    found = phalanx.eval_shape(QUOTIENTS[name], a, b)
    assert found.dtype == ((a * b) / b).dtype


@pytest.mark.parametrize("method", ["linear", "lower", "higher", "midpoint", "nearest"])
@pytest.mark.parametrize("q", [0.0, 0.3, 0.5, 1.0, np.array([0.1, 0.9])], ids=str)
def test_quantiles(q, method):
    q32 = np.asarray(q, np.float32)
    close(jnp.quantile(X, q, 1, method=method), np.quantile(X, q, 1, method=method), rtol=1e-4)
    found = jnp.nanquantile(HOLES, q32, (0, 2), method=method)
    close(found, np.nanquantile(HOLES, q, (0, 2), method=method), rtol=1e-4)
    close(
        jnp.percentile(X, 100 * q, method=method),
        np.percentile(X, 100 * q, method=method),
        rtol=1e-4,
    )
    assert np.isnan(jnp.quantile(jnp.array([1.0, np.nan]), 0.5))


def test_quantiles_differentiate():
    slope = phalanx.grad(lambda x: jnp.quantile(x, 0.25))(jnp.array([3.0, 1.0, 2.0]))
    close(slope, [0.0, 0.5, 0.5])


@pytest.mark.parametrize("method", ["linear", "midpoint"])
def test_equal_neighbours_share_the_slope_of_a_quantile(method):
    def both(q):
        x = np.float32([3, 1, 2, 2])
        ours = phalanx.grad(lambda x: jnp.quantile(x, q, method=method))(x)
        theirs = jax.grad(lambda x: jax.numpy.quantile(x, q, method=method))(x)
        return np.sort(ours), np.sort(theirs)  # which of equal ones comes first is open

    for q in (0.4, 0.5):
        close(*both(q), rtol=1e-6)
    assert jnp.quantile(jnp.full(4, 0.1), 0.4, method=method) == np.float32(0.1)
    infinite = jnp.array([1.0, np.inf, np.inf])
    assert jnp.quantile(infinite, 0.8, method=method) == np.inf
    assert np.isfinite(phalanx.grad(lambda x: jnp.quantile(x, 0.8, method=method))(infinite)).all()


def test_correlations():
    close(jnp.cov(X[0]), np.cov(X[0]), rtol=1e-4)
    close(jnp.cov(X[0], rowvar=False, bias=True), np.cov(X[0], rowvar=False, bias=True), rtol=1e-4)
    close(jnp.corrcoef(X[0]), np.corrcoef(X[0]), rtol=1e-4)
    close(jnp.cov(X[0, 0], X[1, 0]), np.cov(X[0, 0], X[1, 0]), rtol=1e-4)


@pytest.mark.parametrize("options", [{}, {"density": True}, {"range": (-1, 1)}], ids=str)
def test_histograms(options):
    found, expected = (lib.histogram(X, 6, **options) for lib in (jnp, np))
    for f, e in zip(found, expected, strict=True):
        close(f, e, rtol=1e-4)
    edges = np.array([-1.0, 0.0, 0.5, 2.0], np.float32)
    close(jnp.histogram(X, edges)[0], np.histogram(X, edges)[0])


OF_FLOATS = QUOTIENTS | {
    "convolve": jnp.convolve,
    "interp": lambda a, b: jnp.interp(a, b, jnp.arange(3.0)),
    "logsumexp": lambda a, b: phalanx.nn.logsumexp(a, b=b),
    "polydiv": lambda a, b: jnp.polydiv(a, b, trim_leading_zeros=False)[0],
    "polyfit": lambda a, b: jnp.polyfit(b, a, 1),
}


@pytest.mark.parametrize("name", OF_FLOATS)
def test_integers_that_only_uint32_holds_count_beside_signed_ones(name):
    a, b = np.array([3, 2**31 + 5, 2], np.uint32), np.array([1, 5, 9], np.int8)
    wanted = OF_FLOATS[name](jnp.array(a, "float32"), jnp.array(b, "float32"))
    close(OF_FLOATS[name](jnp.array(a), jnp.array(b)), wanted)


def test_histograms_with_bins_of_another_dtype():
    x, edges = np.array([0, 1, 2, 3, 3]), [0.001, 1, 2.999, 3]
    for kind, other in (("bfloat16", "float32"), ("float32", "bfloat16"), ("int8", "float16")):
        found, _ = jnp.histogram(jnp.array(x, kind), jnp.array(edges, other))
        assert found.tolist() == np.histogram(x, np.array(edges).astype(found.dtype))[0].tolist()


@pytest.mark.parametrize("weights", [[True, True, True], np.int8([100, 27, 120])], ids=str)
def test_sums_of_small_weights_in_histograms(weights):
    found, _ = jnp.histogram(jnp.zeros(3), 1, weights=np.array(weights))
    assert found.tolist() == [np.sum(weights)]


def test_bincount():
    x = np.abs(I).ravel()
    close(jnp.bincount(x), np.bincount(x))
    close(jnp.bincount(x, x * 0.5, 9), np.bincount(x, x * 0.5, 9))
    found = phalanx.jit(lambda x: jnp.bincount(x, length=4))(x)
    close(found, np.bincount(x, minlength=4)[:4])
    with pytest.raises(phalanx.errors.ConcretizationTypeError, match="give length="):
        phalanx.jit(jnp.bincount)(x)


@pytest.mark.parametrize("axis", [0, -1, None])
def test_sorting(axis):
    for x in (X, I, HOLES):
        axis = None if axis is None else axis % x.ndim
        close(jnp.sort(x, axis), np.sort(x, axis))
        close(jnp.argsort(x, axis), np.argsort(x, axis, kind="stable"))
    close(jnp.sort(I, axis, descending=True), -np.sort(-I, axis))
    close(jnp.argsort(I, axis, descending=True), np.argsort(-I, axis, kind="stable"))


def test_lexsort():
    a, b = RNG.integers(0, 3, (2, 9)).astype(np.int32)
    close(jnp.lexsort((jnp.array(a), jnp.array(b))), np.lexsort((a, b)))


@pytest.mark.parametrize("side", ["left", "right"])
def test_searching(side):
    line = np.sort(np.round(X.ravel()[:20]))
    wanted = np.concatenate([line, line + 0.5, [np.nan, np.inf, -np.inf]]).astype(np.float32)
    close(jnp.searchsorted(line, wanted, side), np.searchsorted(line, wanted, side))
    edges = np.unique(line)
    for bins in (edges, edges[::-1]):
        found = jnp.digitize(jnp.array(wanted[:-3]), jnp.array(bins), right=side == "left")
        close(found, np.digitize(wanted[:-3], bins, right=side == "left"))
    order = np.argsort(-line)
    found = jnp.searchsorted(-line, 0.0, side, sorter=order)
    close(found, np.searchsorted(-line, 0.0, side, order))


def test_unique():
    flags = {"return_index": True, "return_inverse": True, "return_counts": True}
    for f, e in zip(jnp.unique(I, **flags), np.unique(I, **flags), strict=True):
        close(f, e)
    close(jnp.unique(I, axis=0), np.unique(I, axis=0))
    values = np.unique(I)
    sized = phalanx.jit(lambda x: jnp.unique(x, **flags, size=12, fill_value=99))(I)
    for f, e in zip(sized, np.unique(I, **flags), strict=True):
        close(np.asarray(f)[: len(e)], e)
    assert np.all(np.asarray(sized[0])[len(values) :] == 99)
    assert sized[3].sum() == I.size
    with pytest.raises(phalanx.errors.ConcretizationTypeError, match="give size="):
        phalanx.jit(jnp.unique)(I)


def test_positions():
    for f, e in zip(jnp.nonzero(I), np.nonzero(I), strict=True):
        close(f, e)
    close(jnp.argwhere(I > 0), np.argwhere(I > 0))
    close(jnp.flatnonzero(I), np.flatnonzero(I))
    rows, columns = phalanx.jit(lambda x: jnp.nonzero(x > 0, size=20, fill_value=(-1, -2)))(I)
    count = (I > 0).sum()
    close(rows[:count], np.nonzero(I > 0)[0])
    assert np.all(np.asarray(rows)[count:] == -1)
    assert np.all(np.asarray(columns)[count:] == -2)
    close(jnp.nonzero(I, size=2)[1], np.nonzero(I)[1][:2])
    with pytest.raises(phalanx.errors.ConcretizationTypeError, match="give size="):
        phalanx.jit(jnp.nonzero)(I)


def test_sets_and_flat_positions():
    a, b = I[0], I[1]
    for name in ("intersect1d", "union1d", "setdiff1d", "setxor1d", "isin"):
        close(getattr(jnp, name)(a, b), getattr(np, name)(a, b))
    places = np.array([5, 11])
    found, expected = (lib.unravel_index(places, (3, 4)) for lib in (jnp, np))
    for f, e in zip(found, expected, strict=True):
        close(f, e)
    index = (np.array([1, 5]), np.array([2, -3]))
    for mode in ("clip", "wrap"):
        found = jnp.ravel_multi_index(index, (3, 4), mode=mode)
        close(found, np.ravel_multi_index(index, (3, 4), mode=mode))


def test_sets_of_a_given_size_under_transformations():
    a, b = np.int32([5, 3, 3, 1]), np.int32([3, 1, 9, 9])

    @phalanx.jit
    def sets(a, b):
        union = jnp.union1d(a, b, size=6, fill_value=-7)
        common = jnp.intersect1d(a, b, size=4, return_indices=True)
        least = jnp.intersect1d(a, b, size=1), jnp.intersect1d(a, b + 100, size=2)
        rest = jnp.setdiff1d(a, b, size=2), jnp.setdiff1d(b, a - 2, True, size=4, fill_value=-7)
        return union, common, least, rest, jnp.setxor1d(a, b, size=4)

    union, (common, first, second), least, rest, either = sets(a, b)
    assert union.tolist() == [1, 3, 5, 9, -7, -7]
    assert common.tolist() == [1, 3, 1, 1]
    assert (first.tolist(), second.tolist()) == ([3, 1, 4, 4], [1, 0, 4, 4])
    assert [v.tolist() for v in least] == [[1], [0, 0]]
    assert [v.tolist() for v in rest] == [[5, 0], [9, 9, -7, -7]]
    assert either.tolist() == [5, 9, 5, 5]
    lanes = phalanx.vmap(lambda x: jnp.setdiff1d(x, b, size=2))(np.stack([a, a + 4]))
    assert lanes.tolist() == [[5, 0], [5, 7]]
    none = np.int32([])
    assert jnp.setxor1d(none, none, size=2).tolist() == [0, 0]
    assert jnp.setdiff1d(a, none, size=3).tolist() == [1, 3, 5]
    with pytest.raises(phalanx.errors.ConcretizationTypeError, match="give size="):
        phalanx.jit(jnp.setdiff1d)(a, b)


ON = "extrapolate"


def test_extrapolation_is_interpolation_with_a_point_more_on_the_line():
    places = np.array([0.0, 1.0, 1.5, 4.0], np.float32)
    y = np.array([0.0, 2.0, 1.5, 4.0], np.float32)  # the first slope is 2, the last is 1
    at = np.array([-3.0, -1.0, 0.0, 0.7, 1.2, 4.0, 4.5, 9.0], np.float32)
    more = np.r_[-10.0, places, 14.0], np.r_[-20.0, y, 14.0]
    for left, right in ((ON, ON), (ON, None), (None, ON), (ON, 7.0), (-9.0, ON)):
        expected = np.interp(at, *more)
        if left != ON:
            expected[at < 0] = 0.0 if left is None else left
        if right != ON:
            expected[at > 4] = 4.0 if right is None else right

        def ours(x, left=left, right=right):
            return jnp.interp(x, places, y, left=left, right=right)

        for found in (ours(at), phalanx.jit(ours)(at), phalanx.vmap(ours)(at)):
            close(found, expected)


def test_slopes_of_extrapolation():
    def outside(x, y):
        return jnp.interp(x, jnp.array([0.0, 1.0, 3.0]), y, left=ON, right=ON)

    y = jnp.array([0.0, 2.0, 3.0])
    by_x, by_y = phalanx.grad(outside, (0, 1))(-2.0, y)
    assert by_x == 2.0 and by_y.tolist() == [3.0, -2.0, 0.0]
    by_x, by_y = phalanx.grad(outside, (0, 1))(5.0, y)
    assert by_x == 0.5 and by_y.tolist() == [0.0, -1.0, 2.0]


def test_one_point_goes_on_flat_and_a_period_knows_no_outside():
    at = np.array([-1.0, 2.0, 5.0], np.float32)
    one = jnp.array([2.0])
    assert jnp.interp(at, one, 2 * one, left=ON, right=ON).tolist() == [4.0, 4.0, 4.0]
    points = np.array([0.0, 1.0, 1.5]), np.array([0.0, 2.0, 3.0])
    found = jnp.interp(at, *points, left=ON, right=ON, period=2.0)
    close(found, np.interp(at, *points, period=2.0))


def test_a_line_goes_on_to_infinity_and_has_its_value_there_if_it_is_flat():
    at = np.float32([-np.inf, np.inf, np.nan])
    for y, expected in (
        ([1.0, 2.0, 2.0], [-np.inf, 2.0, np.nan]),
        ([3.0, 3.0, 1.0], [3.0, -np.inf, np.nan]),
    ):
        found = jnp.interp(at, jnp.arange(3.0), jnp.array(y), left=ON, right=ON)
        np.testing.assert_array_equal(found, expected)
    one = jnp.array([5.0])
    np.testing.assert_array_equal(jnp.interp(at[:2], one, one, left=ON, right=ON), [5.0, 5.0])
    slope = phalanx.grad(lambda y: jnp.interp(3.0, jnp.arange(3.0), y, right=ON))(jnp.zeros(3))
    np.testing.assert_array_equal(slope, [0.0, -1.0, 2.0])


@pytest.mark.parametrize("side", ["left", "right"])
def test_a_list_is_no_value_outside(side):
    with pytest.raises(TypeError, match=f"^interp: {side}: an array or a number is needed, got a "):
        jnp.interp(0.5, jnp.arange(3.0), jnp.arange(3.0), **{side: [1, 2]})


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("period", [None, 2.0])
def test_words_about_another_string_outside(side, period):
    with pytest.raises(ValueError, match=f"{side} must be .* 'extrapolate', got 'linear'"):
        jnp.interp(0.5, jnp.arange(3.0), jnp.arange(3.0), period=period, **{side: "linear"})


def test_calculus():
    y = X[0, 0]
    close(jnp.gradient(X, axis=1), np.gradient(X, axis=1), rtol=1e-4)
    close(jnp.gradient(y, 0.5), np.gradient(y, 0.5), rtol=1e-4)
    close(jnp.trapezoid(X, dx=0.5, axis=1), np.trapezoid(X, dx=0.5, axis=1), rtol=1e-4)
    places = np.array([0.0, 1.0, 1.5, 4.0, 5.0], np.float32)
    close(jnp.trapezoid(y, places), np.trapezoid(y, places), rtol=1e-4)
    at = np.array([-1.0, 0.0, 0.7, 1.2, 4.5, 9.0], np.float32)
    close(jnp.interp(at, places, y), np.interp(at, places, y))
    close(jnp.interp(at, places, y, left=-9, right=8), np.interp(at, places, y, -9, 8))
    close(jnp.interp(at, places, y, period=3), np.interp(at, places, y, period=3), rtol=1e-4)
    angles = np.cumsum(np.array([0.1, 2.0, 3.0, -1.0, 2.5, -4.0])).astype(np.float32)
    wrapped = np.angle(np.exp(1j * angles)).astype(np.float32)
    close(jnp.unwrap(wrapped), np.unwrap(wrapped), rtol=1e-4)
    close(jnp.polyval(y, at), np.polyval(y, at), rtol=1e-4)
    for mode in ("full", "same", "valid"):
        close(jnp.convolve(y, places[:3], mode), np.convolve(y, places[:3], mode), rtol=1e-4)
        close(jnp.correlate(y, places[:2], mode), np.correlate(y, places[:2], mode), rtol=1e-4)
        close(jnp.correlate(places[:2], y, mode), np.correlate(places[:2], y, mode), rtol=1e-4)
    close(jnp.diff(X, prepend=0, append=1), np.diff(X, prepend=0, append=1))


def test_functions_along_axes():
    found = jnp.apply_along_axis(jnp.cumsum, 1, X)
    close(found, np.apply_along_axis(np.cumsum, 1, X), rtol=1e-4)
    close(jnp.apply_along_axis(lambda v: v.sum(), 0, X), X.sum(0), rtol=1e-4)
    outer = jnp.vectorize(jnp.outer, signature="(n),(m)->(n,m)")
    assert outer(jnp.ones((7, 2)), jnp.ones(3)).shape == (7, 2, 3)

    @jnp.vectorize
    def relu(x):
        return jnp.where(x > 0, x, 0.0)

    close(relu(X), np.maximum(X, 0))
    with pytest.raises(ValueError, match="is not a signature"):
        jnp.vectorize(jnp.sum, signature="n->")
