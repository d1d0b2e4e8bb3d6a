"""Where numbers end: infinities, zeros, subnormal and complex numbers, bounds, empty counts.

NumPy and SciPy in float64 say what values are, differences of them what derivatives are.
"""

import warnings
from functools import partial

import numpy as np
import pytest
import scipy.special

import phalanx
import phalanx.numpy as jnp
from phalanx import lax
from phalanx.base.errors import ConcretizationTypeError
from tests.compare import ROUNDED
from tests.compare import close as close_within
from tests.laws.slopes import along

close = partial(close_within, within=ROUNDED)

NAN, INF = np.nan, np.inf
COMPLEX = np.array([0, 1j, 2, 3 - 1j, -2 + 1j, -2 - 1j], np.complex64)


# ---- complex numbers ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["logical_not", "count_nonzero", "any", "all", "nonzero", "flatnonzero", "argwhere"]
)
def test_a_complex_number_is_true_unless_both_parts_are_zero(name):
    expected = getattr(np, name)(COMPLEX)
    np.testing.assert_array_equal(getattr(jnp, name)(jnp.array(COMPLEX)), expected)


def test_truth_of_complex_numbers_in_conversions_and_choices():
    z, truth = jnp.array(COMPLEX), COMPLEX != 0
    assert z.astype(bool).tolist() == truth.tolist()
    assert jnp.where(z, 1, 2).tolist() == np.where(truth, 1, 2).tolist()
    assert jnp.logical_xor(z, 1).tolist() == (~truth).tolist()
    assert phalanx.jit(lambda z: z.astype(bool))(z).tolist() == truth.tolist()


@pytest.mark.parametrize("name", ["max", "min", "argmax", "argmin", "ptp", "sort", "nanmax"])
def test_complex_numbers_are_ordered_by_real_part_then_by_imaginary_part(name):
    close(getattr(jnp, name)(jnp.array(COMPLEX)), getattr(np, name)(COMPLEX))


@pytest.mark.parametrize("name", ["maximum", "minimum", "fmax", "fmin"])
def test_the_greater_of_two_complex_numbers(name):
    z = np.append(COMPLEX, [complex(NAN, 0), complex(0, NAN)]).astype(np.complex64)
    x, y = z[:, None], z[None, :]
    close(getattr(jnp, name)(jnp.array(x), jnp.array(y)), getattr(np, name)(x, y))


@pytest.mark.parametrize("name, run", [("cummax", np.maximum), ("cummin", np.minimum)])
def test_running_extremes_of_complex_numbers(name, run):
    close(getattr(lax, name)(jnp.array(COMPLEX)), run.accumulate(COMPLEX))


def test_the_derivative_of_a_complex_maximum_belongs_to_what_attains_it():
    gradient = phalanx.grad(lambda z: jnp.max(z).real)(jnp.array(COMPLEX))
    close(gradient, (COMPLEX.max() == COMPLEX).astype(np.complex64))
    share = phalanx.grad(lambda x: jnp.maximum(x, 2.0 + 0j).real)
    assert [share(x).real for x in (1 + 9j, 2 + 0j, 2 + 1j)] == [0, 0.5, 1]


@pytest.mark.parametrize("name, base", [("logaddexp", np.e), ("logaddexp2", 2)])
def test_logarithms_of_sums_of_complex_powers(name, base):
    x, y = COMPLEX[:, None].astype(complex), COMPLEX[None, :].astype(complex) + 0.25
    expected = np.log(base**x + base**y) / np.log(base)
    close(getattr(jnp, name)(jnp.array(x), jnp.array(y)), expected, rtol=1e-5, atol=1e-6)


def test_logaddexp_of_large_complex_numbers():
    close(jnp.logaddexp(1000 + 1j, 2.0), 1000 + 1j)
    assert jnp.logaddexp(jnp.array(complex(-INF, 0)), -INF).real == -INF


# ---- powers ---------------------------------------------------------------------------------


@pytest.mark.parametrize("power", [lax.pow, jnp.power, lambda x, y: x**y], ids=["lax", "jnp", "**"])
def test_mixed_derivatives_of_a_power(power):
    x, y = (v.ravel() for v in np.meshgrid([4.0, 0.5], [0.0, 1.0, 2.0, -1.0]))
    mixed = [
        phalanx.grad(phalanx.grad(power, 0), 1),
        phalanx.grad(phalanx.grad(power, 1), 0),
        phalanx.jacfwd(phalanx.jacrev(power, 0), 1),
    ]
    expected = x ** (y - 1) * (1 + y * np.log(x))
    found = phalanx.jit(phalanx.vmap(lambda x, y: [f(x, y) for f in mixed]))(x, y)
    close(found, np.broadcast_to(expected, (3, 8)))
    close(mixed[0](4.0, 0.0), 0.25)


def test_derivatives_of_a_power_where_both_are_zero():
    close(phalanx.grad(lax.pow, (0, 1))(0.0, 0.0), (0, 0))


# ---- sinc -----------------------------------------------------------------------------------

AROUND_0 = [0.0, 1e-4, 0.02, 0.15, 0.17, 0.5, 1.5, -0.3]


def _sinc_derivative(x, order):
    """By the integral of cos(π x t) over t from 0 to 1, as a sum over midpoints."""
    t = (np.arange(20000) + 0.5) / 20000
    return np.mean((np.pi * t) ** order * np.cos(np.pi * x * t + order * np.pi / 2))


@pytest.mark.parametrize("order", range(5))
def test_derivatives_of_sinc(order):
    slope = jnp.sinc
    for _ in range(order):
        slope = phalanx.grad(slope)
    expected = [_sinc_derivative(x, order) for x in AROUND_0]
    close(phalanx.vmap(slope)(jnp.array(AROUND_0)), expected, rtol=1e-3, atol=1e-3)


def test_sinc_far_away():
    close(jnp.sinc(jnp.array([INF, -INF, NAN, 1e38])), [0, 0, NAN, 0], atol=1e-30)
    assert phalanx.grad(jnp.sinc)(INF) == 0


# ---- exponents ------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float16", "float32", "bfloat16"])
def test_ldexp_is_exact_wherever_the_result_is_a_number_of_the_dtype(dtype):
    info = jnp.finfo(dtype)
    low, high = int(np.log2(float(info.smallest_normal))), int(np.log2(float(info.max))) + 1
    start = np.array([low, low + 1, -1, 0, 1, high - 1])
    x, shift = 1.5 * 2.0 ** start[:, None], np.arange(low, high)[None, :] - start[:, None]
    out = np.asarray(jnp.ldexp(jnp.array(x).astype(dtype), jnp.array(shift))).astype(float)
    np.testing.assert_array_equal(
        out, np.broadcast_to(1.5 * 2.0 ** np.arange(low, high), out.shape)
    )


def test_ldexp_at_the_ends():
    x = jnp.array([0.0, -0.0, INF, -INF, NAN, 1.0, 1.0, -1.0])
    n = np.array([1000, -1000, -500, 500, 3, 2**31 - 1, -(2**31), 129], np.int32)
    out = np.asarray(jnp.ldexp(x, jnp.array(n)))
    close(out, [0, 0, INF, -INF, NAN, INF, 0, -INF])
    np.testing.assert_array_equal(np.signbit(out[:2]), [False, True])
    assert jnp.ldexp(jnp.arange(3), 2).tolist() == [0, 4, 8]
    assert phalanx.grad(jnp.ldexp)(3.0, 2) == 4
    with pytest.raises(TypeError, match="integers"):
        jnp.ldexp(1.0, 2.0)


@pytest.mark.parametrize("dtype", ["float16", "float32", "bfloat16"])
def test_frexp_takes_apart_what_ldexp_puts_together(dtype):
    x = np.array([1.0, -12.0, 0.1, 3e4, 0.0, -0.0, INF, NAN, 6e-5], dtype)
    if dtype == "float16":  # elsewhere devices may take subnormal numbers for 0
        x = np.append(x, np.array([1e-7, -6e-8], dtype))
    mantissa, exponent = jnp.frexp(jnp.array(x))
    expected = np.frexp(x.astype(np.float64))
    np.testing.assert_array_equal(np.asarray(mantissa).astype(float), expected[0])
    np.testing.assert_array_equal(exponent, expected[1])
    np.testing.assert_array_equal(
        np.asarray(jnp.ldexp(mantissa, exponent)).astype(float), x.astype(float)
    )


def test_the_mantissa_has_a_derivative():
    assert phalanx.grad(lambda x: jnp.frexp(x)[0])(3.0) == 0.25


# ---- remainders and quotients ---------------------------------------------------------------

ENDS = np.array([-5.0, 5.0, 0.0, -0.0, 1.5, INF, -INF, NAN], np.float32)


@pytest.mark.parametrize("name", ["floor_divide", "remainder", "fmod", "divmod"])
def test_quotients_of_and_by_the_ends(name):
    x, y = ENDS[:, None], ENDS[None, :]
    with np.errstate(all="ignore"):
        expected = getattr(np, name)(x, y)
    close(getattr(jnp, name)(jnp.array(x), jnp.array(y)), expected)
    by_constant = getattr(jnp, name)(jnp.array(ENDS), -INF)
    close(by_constant, np.asarray(expected)[..., 6])


@pytest.mark.parametrize("name", ["remainder", "fmod"])
@pytest.mark.parametrize("dtype", ["int32", "uint8", "int8"])
def test_the_remainder_of_integers_by_zero_is_zero(name, dtype):
    x, y = np.array([5, 7, 0], dtype), np.array([0, 2, 0], dtype)
    with np.errstate(all="ignore"):
        expected = getattr(np, name)(x, y)
    np.testing.assert_array_equal(getattr(jnp, name)(jnp.array(x), jnp.array(y)), expected)
    np.testing.assert_array_equal(getattr(jnp, name)(jnp.array(x), 0), 0)


def test_bools_are_integers_where_they_are_divided_or_shifted():
    x, y = jnp.array([True, False]), jnp.array([True, True])
    for name in ("remainder", "fmod", "floor_divide", "left_shift", "right_shift", "square"):
        args = (x,) if name == "square" else (x, y)
        assert getattr(jnp, name)(*args).dtype == jnp.int32, name


# ---- clamp ----------------------------------------------------------------------------------


@pytest.mark.parametrize("x", [-0.5, 0.0, 0.5, 1.0, 1.5])
def test_the_derivatives_of_clamp_are_zero_at_its_bounds(x):
    inside, below, above = 0.0 < x < 1.0, x < 0.0, x > 1.0
    close(phalanx.grad(lax.clamp, (0, 1, 2))(0.0, x, 1.0), (below, inside, above))


# ---- variances and covariances --------------------------------------------------------------


@pytest.mark.parametrize("n, ddof", [(2, 3), (2, 2), (1, 1), (0, 1), (3, 2)])
@pytest.mark.parametrize("name", ["var", "std", "nanvar", "nanstd"])
def test_a_variance_needs_more_elements_than_ddof(name, n, ddof):
    x = jnp.array(np.append(np.arange(n), [NAN] if "nan" in name else []))
    out = getattr(jnp, name)(x, ddof=ddof)
    expected = NAN if n <= ddof else 2.0 ** (0.5 if "std" in name else 1)
    close(out, expected)


@pytest.mark.parametrize("name", ["nanvar", "nanstd", "nanmean", "nansum", "nanprod", "nanmax"])
def test_gradients_pass_by_what_is_not_a_number(name):
    x = np.array([1.0, NAN, 3.0, 4.5])
    kept = np.array([1.0, 3.0, 4.5])
    expected = np.zeros(4)
    plain = getattr(np, name.removeprefix("nan"))
    expected[[0, 2, 3]] = [along(plain, (kept,), (e,)) for e in np.eye(3)]
    close(phalanx.grad(getattr(jnp, name))(jnp.array(x)), expected, rtol=1e-5, atol=1e-5)


def test_the_dtype_of_a_variance():
    assert jnp.var(jnp.array([1.0, 2.0]), dtype=jnp.complex64).dtype == jnp.complex64
    assert jnp.var(jnp.array([1j, 2.0]), dtype=jnp.complex64).dtype == jnp.float32
    assert jnp.var(jnp.array([1, 2]), dtype=jnp.float16).dtype == jnp.float16
    assert jnp.var(jnp.array([1, 9]), dtype=int).tolist() == np.var([1, 9], dtype=int)
    with pytest.raises(ValueError, match="complex"):
        jnp.var(jnp.array([1j, 2.0]), dtype=jnp.float32)


@pytest.mark.parametrize("shape", [(1, 3), (3, 1), (3,), (2, 4), (1, 1)])
def test_covariances_of_one_row_or_column(shape):
    x = np.random.default_rng(0).normal(size=shape)
    for rowvar in (True, False):
        expected = np.cov(x, rowvar=rowvar, ddof=0)
        close(jnp.cov(jnp.array(x), rowvar=rowvar, ddof=0), expected, rtol=1e-5, atol=1e-6)
        with np.errstate(all="ignore"), warnings.catch_warnings(action="ignore"):
            expected = np.corrcoef(x, rowvar=rowvar)
        close(jnp.corrcoef(jnp.array(x), rowvar=rowvar), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("ddof", [None, 0, 2])
@pytest.mark.parametrize("weights", ["f", "a", "fa"])
def test_weighted_covariances(weights, ddof):
    x = np.random.default_rng(1).normal(size=(2, 4))
    given = {"f": np.array([1, 2, 3, 1]), "a": np.array([0.5, 1.0, 2.0, 1.5])}
    options = {f"{w}weights": given[w] for w in weights}
    close(
        jnp.cov(jnp.array(x), ddof=ddof, **options),
        np.cov(x, ddof=ddof, **options),
        rtol=1e-5,
        atol=1e-6,
    )
    with pytest.raises(ValueError, match="each of 4 samples"):
        jnp.cov(jnp.array(x), fweights=jnp.ones(3, int))


# ---- the dtype of sums ----------------------------------------------------------------------


SUMMED = {"bool": [True, True, False], "int32": [2, 3, 1], "int8": [0, 0, 2]}


@pytest.mark.parametrize("name", ["sum", "prod", "cumsum", "cumprod", "nansum", "nancumsum"])
def test_sums_have_the_dtype_asked_for(name):
    wanted = ["bool", "int32", "float32", "int8"]
    given = [np.array(x, dtype) for dtype, x in SUMMED.items()]
    made = phalanx.jit(lambda xs: [getattr(jnp, name)(x, dtype=d) for x in xs for d in wanted])
    expected = [getattr(np, name)(x, dtype=d) for x in given for d in wanted]
    for found, sum in zip(made(given), expected, strict=True):
        np.testing.assert_array_equal(found, sum, strict=True)


def test_running_sums_by_the_standard_are_as_wide_as_sums():
    assert jnp.cumulative_sum(jnp.int8([100, 100])).tolist() == [100, 200]
    assert jnp.cumulative_prod(jnp.uint8([100, 100])).dtype == jnp.uint32
    assert jnp.cumulative_sum(jnp.int8([100, 100]), dtype=jnp.int8).dtype == jnp.int8


# ---- logaddexp ------------------------------------------------------------------------------


def test_logaddexp_of_the_ends():
    x, y = ENDS[:, None], ENDS[None, :]
    with np.errstate(all="ignore"):
        expected = np.logaddexp(x, y)
    close(jnp.logaddexp(jnp.array(x), jnp.array(y)), expected)


@pytest.mark.parametrize("x, y", [(0.3, 1.2), (2.0, 2.0), (50.0, -60.0), (INF, 1.0), (-INF, 1.0)])
def test_derivatives_of_logaddexp(x, y):
    share = scipy.special.expit(x - y)
    close(phalanx.grad(jnp.logaddexp, (0, 1))(x, y), (share, 1 - share), atol=1e-30)
    second = phalanx.grad(phalanx.grad(jnp.logaddexp))(x, y)
    close(second, share * (1 - share), atol=1e-30)


# ---- pad ------------------------------------------------------------------------------------

PADS = [
    {"mode": "maximum", "stat_length": 1},
    {"mode": "minimum", "stat_length": ((1, 2), (3, 1))},
    {"mode": "mean", "stat_length": (2, 1)},
    {"mode": "median"},
    {"mode": "median", "stat_length": 2},
    {"mode": "maximum", "stat_length": 9},
    {"mode": "reflect", "reflect_type": "odd"},
    {"mode": "symmetric", "reflect_type": "odd"},
    {"mode": "reflect", "reflect_type": "even"},
    {"mode": "linear_ramp", "end_values": ((1, 2), (-3, 4))},
    {"mode": "linear_ramp", "end_values": np.array([[1, 2], [-3, 4]])},
    {"mode": "constant", "constant_values": np.array([1, 2])},
    {"constant_values": np.array([[1, 2], [-3, 4]])},
]


@pytest.mark.parametrize("dtype", ["int32", "float32"])
def test_pad_takes_the_options_of_its_modes(dtype):
    x = (np.arange(12).reshape(3, 4) ** 2 % 13).astype(dtype)
    cases = [(w, o) for w in (1, ((2, 1), (0, 7))) for o in PADS]
    padded = phalanx.jit(lambda x: [jnp.pad(x, w, **o) for w, o in cases])(x)
    for found, (width, options) in zip(padded, cases, strict=True):
        close(found, np.pad(x, width, **options), rtol=1e-5)


@pytest.mark.parametrize("dtype", ["uint8", "int16", "int32", "uint32"])
def test_ramps_of_integers_are_exact(dtype):
    info = np.iinfo(dtype)
    x = np.array([info.min, 11, info.max], dtype)
    ramp = jnp.pad(jnp.array(x), (7, 300), "linear_ramp", end_values=3)
    wanted = [3 + (int(x[0]) - 3) * i // 7 for i in range(7)]
    wanted += [*x.tolist(), *[3 + (int(x[2]) - 3) * i // 300 for i in reversed(range(300))]]
    assert ramp.dtype == dtype
    assert ramp.tolist() == wanted
    few = np.array([-2, 3, -8, -25, 6], np.int32)
    for ends in (((1, 5),), 2.5):
        wanted = np.pad(few, (3, 4), "linear_ramp", end_values=ends)
        np.testing.assert_array_equal(jnp.pad(few, (3, 4), "linear_ramp", end_values=ends), wanted)


def test_pad_has_slopes_by_the_values_it_puts():
    def padded(ends):
        return jnp.pad(jnp.arange(4.0).reshape(2, 2), 1, constant_values=ends).sum()

    ends = jnp.array([[1.0, 2.0], [3.0, 4.0]])
    np.testing.assert_array_equal(phalanx.grad(padded)(ends), [[2, 2], [4, 4]])


@pytest.mark.parametrize("mode", ["edge", "wrap", "reflect", "linear_ramp", "mean", "maximum"])
def test_pad_needs_an_element_to_take(mode):
    empty = jnp.zeros((2, 0))
    assert jnp.pad(empty, ((1, 1), (0, 0)), mode).shape == (4, 0)
    with pytest.raises(ValueError, match=f"dimension 1 of .* is empty, and mode '{mode}'"):
        jnp.pad(empty, 1, mode)


def test_pad_refuses_options_of_other_modes():
    for mode, options in [("constant", {"stat_length": 2}), ("edge", {"constant_values": 3})]:
        with pytest.raises(ValueError, match=f"mode '{mode}': {next(iter(options))}"):
            jnp.pad(jnp.arange(3), 1, mode=mode, **options)
    with pytest.raises(ValueError, match="reflect_type"):
        jnp.pad(jnp.arange(3), 1, mode="reflect", reflect_type="up")
    with pytest.raises(ValueError, match="positive"):
        jnp.pad(jnp.arange(3), 1, mode="mean", stat_length=0)


def test_pad_by_a_function_of_a_vector():
    def ours(vector, width, axis, options):
        return vector.at[: width[0]].set(options["value"]).at[-width[1] :].set(axis)

    def theirs(vector, width, axis, options):
        vector[: width[0]] = options["value"]
        vector[-width[1] :] = axis

    x = np.arange(6).reshape(2, 3)
    np.testing.assert_array_equal(
        jnp.pad(jnp.array(x), 2, ours, value=7), np.pad(x, 2, theirs, value=7)
    )


# ---- choose ---------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["clip", "wrap"])
def test_choose_by_indices_outside(mode):
    index, choices = np.array([-1, 0, 5]), [np.array([1, 2, 3]), np.array([4, 5, 6])]
    out = jnp.choose(jnp.array(index), [jnp.array(c) for c in choices], mode=mode)
    np.testing.assert_array_equal(out, np.choose(index, choices, mode=mode))


def test_choose_raises_for_indices_outside_unless_told():
    choices = [jnp.array([1, 2, 3]), jnp.array([4, 5, 6])]
    assert jnp.choose(jnp.array([1, 0, 1]), choices).tolist() == [4, 2, 6]
    with pytest.raises(ValueError, match="between 0 and 1, got -1 to 5"):
        jnp.choose(jnp.array([-1, 0, 5]), choices)
    with pytest.raises(ConcretizationTypeError, match="mode='clip'"):
        phalanx.jit(lambda i: jnp.choose(i, choices))(jnp.array([0, 1, 0]))


# ---- indices --------------------------------------------------------------------------------


def test_an_ellipsis_separates_advanced_indices_even_if_it_stands_for_no_dimension():
    i, x = np.array([0, 1]), np.arange(60, dtype=np.int32).reshape(3, 4, 5)
    for index in [
        np.s_[:, i, ..., i],
        np.s_[:, 0, ..., i],
        np.s_[i, ..., i],
        np.s_[..., i, i],
        np.s_[:, :, i, ...],
        np.s_[i, i, i, ...],
        np.s_[..., None, :, i, i],
        np.s_[0, ..., 1, 2],
    ]:
        np.testing.assert_array_equal(jnp.array(x)[index], x[index], strict=True)
        written = x.copy()
        written[index] = -1
        np.testing.assert_array_equal(jnp.array(x).at[index].set(-1), written)


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("index", [[1, 1], [1, 1, 1, 0], [2, -1, 7], [[0, 1], [1, 0]]], ids=str)
def test_apply_applies_as_often_as_an_index_names_an_element(index, compiled):
    start = np.arange(1.0, 4.0)
    expected, slope = start.copy(), np.ones(3)
    for i in np.ravel(index):
        if i < 3:  # others are dropped
            expected[i] = np.sqrt(expected[i])
            slope[i] *= 0.5 / expected[i]

    def apply(x, i):
        return x.at[i].apply(jnp.sqrt)

    run = phalanx.jit(apply) if compiled else apply
    close(run(jnp.array(start), jnp.array(index)), expected)
    close(phalanx.grad(lambda x: run(x, jnp.array(index)).sum())(jnp.array(start)), slope)
    rows = phalanx.vmap(run, (None, 0))(jnp.array(start), jnp.array([index, index]))
    close(rows, [expected, expected])


def test_polymul_may_drop_zeros_and_unwrap_keeps_integers():
    p, q = jnp.array([0, 1, 2]), jnp.array([0, 1])
    assert jnp.polymul(p, q, trim_leading_zeros=True).tolist() == [1, 2]
    assert jnp.polymul(p, q).shape == (4,)
    x = np.array([0, 3, 5, -2])
    out = jnp.unwrap(jnp.array(x), period=4)
    np.testing.assert_array_equal(out, np.unwrap(x, period=4))
    assert out.dtype == jnp.int32


@pytest.mark.parametrize("kind", [np.int32, np.float16, np.float32])
@pytest.mark.parametrize("period", [4, 5, 6.5], ids=str)
def test_unwrap_by_a_period_that_is_traced(period, kind):
    x = np.array([[0, 3, 7, 20, 2, 5], [1, 8, -4, -4, 9, 7]], kind)
    found = phalanx.jit(lambda x, period: jnp.unwrap(x, period=period))(x, period)
    close(found, np.unwrap(x, period=period))
    found = jnp.unwrap(jnp.array(x), discont=jnp.array([[period], [3]]), period=jnp.array(4))
    close(found[0], np.unwrap(x[0], discont=period, period=4))
    close(found[1], np.unwrap(x[1], discont=3, period=4))


def test_derivatives_pass_by_nan_to_the_other_operand():
    close(phalanx.grad(jnp.fmax, (0, 1))(2.0, NAN), (1, 0))
    close(phalanx.grad(jnp.fmin, (0, 1))(NAN, 2.0), (0, 1))
