"""Polynomials, bits, histograms, ufuncs and other functions of NumPy's, against NumPy."""

from functools import partial

import jax
import numpy as np
import pytest

import phalanx
import phalanx.numpy as jnp
from phalanx import laws
from phalanx.numpy.ufunc_methods import WITH_METHODS
from tests.compare import close as close_within

close = partial(close_within, atol=1e-5)

SOURCE = np.random.default_rng(0)


# ---- polynomials ----------------------------------------------------------------------------


def test_coefficients():
    p, q = SOURCE.normal(size=5), SOURCE.normal(size=3)
    f, g = p.astype(np.float32), q.astype(np.float32)
    for order in range(7):
        close(jnp.polyder(f, order), np.polyder(p, order))
        close(jnp.polyint(f, order), np.polyint(p, order))
    close(jnp.polyint(f, 2, np.float32([5, 6])), np.polyint(p, 2, [5, 6]))
    close(jnp.polyint(f, 2, 7.0), np.polyint(p, 2, [7, 7]))
    close(jnp.polysub(f, g), np.polysub(p, q))
    quotient, rest = np.polydiv(p, q)
    got, left = jnp.polydiv(f, g, trim_leading_zeros=False)
    close(got, quotient, rtol=1e-3, atol=1e-3)
    close(left, np.concatenate([np.zeros(5 - rest.size), rest]), rtol=1e-3, atol=1e-3)
    assert jnp.polydiv(g, f)[0].tolist() == [0]
    close(jnp.poly(np.float32([1, 2, -3])), np.poly([1, 2, -3]))
    m = SOURCE.normal(size=(3, 3))
    close(jnp.poly(m.astype(np.float32)).real, np.poly(m), rtol=1e-4, atol=1e-4)
    assert jnp.poly(np.zeros(0)).shape == ()
    close(jnp.polyval(f, 1.5, unroll=4), np.polyval(p, 1.5))


def test_roots():
    def ordered(x):
        return np.sort_complex(np.asarray(x))

    for p in ([1, -6, 11, -6], [0, 0, 2, -4, 0, 0], [3], [0, 0], [1, 0, 1], [2.5, 1]):
        close(ordered(jnp.roots(np.float32(p))), ordered(np.roots(p)), rtol=1e-4, atol=1e-4)
    found = phalanx.jit(lambda p: jnp.roots(p, strip_zeros=False))(np.float32([1, -6, 11, -6]))
    close(ordered(found), [1, 2, 3], rtol=1e-4, atol=1e-4)
    laws.check_grads(
        lambda p: jnp.sum(jnp.roots(p, strip_zeros=False).real ** 2), (np.array([1.0, -5, 6]),), 1
    )


@pytest.mark.parametrize("columns", [(), (2,)])
def test_fits(columns):
    x = np.linspace(-1, 2, 9)
    y = SOURCE.normal(size=(9, *columns))
    w = SOURCE.uniform(1, 2, 9)
    a, b, c = (v.astype(np.float32) for v in (x, y, w))
    close(jnp.polyfit(a, b, 3), np.polyfit(x, y, 3), rtol=1e-3, atol=1e-3)
    close(jnp.polyfit(a, b, 2, w=c), np.polyfit(x, y, 2, w=w), rtol=1e-3, atol=1e-3)
    for cov in (True, "unscaled"):
        fitted, wanted = jnp.polyfit(a, b, 2, cov=cov), np.polyfit(x, y, 2, cov=cov)
        for g, e in zip(fitted, wanted, strict=True):
            close(np.squeeze(g), np.squeeze(e), rtol=1e-3, atol=1e-3)
    got, wanted = jnp.polyfit(a, b, 2, full=True), np.polyfit(x, y, 2, full=True)
    for g, e in list(zip(got, wanted, strict=True))[:4]:
        close(g, e, rtol=1e-3, atol=1e-3)
    with pytest.raises(ValueError, match="too few"):
        jnp.polyfit(a[:3], b[:3], 2, cov=True)


# ---- bits and histograms --------------------------------------------------------------------


@pytest.mark.parametrize("order", ["big", "little"])
def test_bits(order):
    x = SOURCE.integers(0, 2, (3, 11)).astype(np.uint8)
    for axis in (None, 0, 1, -1):
        np.testing.assert_array_equal(
            jnp.packbits(x, axis, order), np.packbits(x, axis, bitorder=order)
        )
        for count in (None, 5, 200, -3):
            np.testing.assert_array_equal(
                jnp.unpackbits(x, axis, count, order), np.unpackbits(x, axis, count, order)
            )
    assert jnp.packbits(np.zeros((0,), bool)).shape == (0,)
    with pytest.raises(TypeError, match="integers or bools"):
        jnp.packbits(np.ones(3))
    with pytest.raises(ValueError, match="bitorder"):
        jnp.packbits(x, bitorder="middle")


def test_histograms_over_several_dimensions():
    x, w = SOURCE.normal(size=(50, 2)), SOURCE.uniform(size=50)
    f, g = x.astype(np.float32), w.astype(np.float32)
    x, w = f.astype(float), g.astype(float)
    edges = np.array([-3.0, -0.5, 0.1, 4.0])
    for options in (
        {"bins": 3}, {"bins": (3, edges)}, {"bins": 4, "range": [(-1, 1), (0, 2)], "density": True},
    ):  # fmt: skip
        for weights in (None, g):
            got, at = jnp.histogramdd(f, **options, weights=weights)
            wanted, places = np.histogramdd(x, **options, weights=weights)
            close(got, wanted, rtol=1e-4, atol=1e-4)
            for a, b in zip(at, places, strict=True):
                close(a, b)
    for bins in (3, np.int64(3), np.array(3), [2, 4], edges, [edges, 2]):
        got, wanted = jnp.histogram2d(*f.T, bins), np.histogram2d(*x.T, bins)
        for a, b in zip(got, wanted, strict=True):
            close(a, b, rtol=1e-4, atol=1e-4)
    close(jnp.histogramdd(f[:, 0], 3)[0], np.histogramdd(x[:, 0], 3)[0])
    with pytest.raises(ValueError, match="2 dimensions"):
        jnp.histogramdd(f, [3, 3, 3])


# ---- functions of two arguments -------------------------------------------------------------


@pytest.mark.parametrize(
    "name", [n for n, f in WITH_METHODS.items() if f.nin == 2 and "logaddexp" not in n]
)
def test_methods_of_functions(name):
    f, wanted = getattr(jnp, name), getattr(np, name)
    assert (f.nin, f.nout, f.nargs) == (2, 1, 2) and f.identity == wanted.identity
    x = SOURCE.integers(0, 5, (4, 3)).astype(np.int32)
    for axis in (0, 1):
        got = f.reduce(x, axis=axis, keepdims=True)
        np.testing.assert_array_equal(got, wanted.reduce(x, axis=axis, keepdims=True))
    np.testing.assert_array_equal(f.reduce(x, axis=None), wanted.reduce(x.reshape(-1)))
    np.testing.assert_array_equal(f.accumulate(x, 1), wanted.accumulate(x, 1))
    np.testing.assert_array_equal(f.outer(x[0], x), wanted.outer(x[0], x))
    at = np.array([0, 2, 1])
    np.testing.assert_array_equal(f.reduceat(x, at, 0), wanted.reduceat(x, at, 0))
    if "logical" not in name:
        at, target = np.array([1, 1, 0]), x[:, 0].copy()
        wanted.at(target, at, x[0])
        np.testing.assert_array_equal(f.at(x[:, 0], at, x[0], inplace=False), target)
    with pytest.raises(ValueError, match="inplace"):
        f.at(x, 0, 1)


def test_functions_of_ones_own():
    f = jnp.frompyfunc(lambda x, y: x * y + 1, 2, 1)
    g = np.frompyfunc(lambda x, y: x * y + 1, 2, 1)
    x = SOURCE.integers(0, 3, (3, 4))
    for method, args in (("reduce", ()), ("accumulate", ()), ("reduceat", (np.array([1, 0]),))):
        wanted = getattr(g, method)(x, *args).astype(np.int32)
        np.testing.assert_array_equal(getattr(f, method)(x, *args), wanted)
    shown = x > 0
    pairs = zip(x, shown, strict=True)
    wanted = [g.reduce(np.concatenate([[2], row[s]]).astype(object)) for row, s in pairs]
    np.testing.assert_array_equal(f.reduce(x, axis=1, initial=2, where=shown), wanted)
    with pytest.raises(ValueError, match="identity"):
        f.reduce(np.zeros((0, 2)))
    slope = phalanx.grad(lambda v: f.reduce(v))(np.float32([1, 2, 3]))
    close(slope, [6, 3, 3])
    close(jnp.logaddexp.reduce(np.float32([0, 1, 2])), np.logaddexp.reduce([0, 1, 2]))
    with pytest.raises(ValueError, match="two arguments"):
        jnp.frompyfunc(lambda x: x, 1, 1).reduce(x)


def test_functions_with_methods_are_ufuncs_as_in_jax():
    def ufuncs(module):
        return {name for name in dir(module) if isinstance(getattr(module, name), module.ufunc)}

    assert {"add", "logaddexp"} <= ufuncs(jax.numpy) <= ufuncs(jnp) < {*dir(jnp)} - {"sin"}
    assert isinstance(jnp.frompyfunc(lambda x: x, 1, 1), jnp.ufunc)


# ---- the rest -------------------------------------------------------------------------------


def test_glue():
    a, b = np.arange(3), np.ones((3, 2))
    for glue, wanted in ((jnp.r_, np.r_), (jnp.c_, np.c_)):
        for key in ((a, a), (a,), np.s_["0,2", a, a], np.s_["1,2,0", a, a]):
            np.testing.assert_array_equal(glue[key], wanted[key])
        assert glue["r", a, a].shape == (1, 6) and glue["c", a].shape == (3, 1)
    np.testing.assert_allclose(jnp.r_[1:4, 0, a, 0:1:3j, :2], np.r_[1:4, 0, a, 0:1:3j, :2])
    np.testing.assert_array_equal(jnp.c_[a, b], np.c_[a, b])
    close(phalanx.jit(lambda x: jnp.c_[x, 2 * x])(a), np.c_[a, 2 * a])
    with pytest.raises(ValueError, match="three integers"):
        jnp.r_["x", a]


def test_windows():
    for n in range(6):
        close(jnp.bartlett(n), np.bartlett(n))
        close(jnp.kaiser(n, 8.6), np.kaiser(n, 8.6))


@pytest.mark.parametrize("points", [5.0, 5.5, np.float32(5), jnp.float32(5), jnp.int8(5)], ids=repr)
def test_windows_of_as_many_points_as_a_float_has_in_whole(points):
    for name in ("bartlett", "blackman", "hamming", "hanning"):
        close(getattr(jnp, name)(points), getattr(np, name)(5))
    close(jnp.kaiser(points, 8.6), np.kaiser(5, 8.6))


def test_order_and_membership():
    x = np.array([3, 1, 3, 2])
    for name in ("unique_all", "unique_counts", "unique_inverse"):
        got, wanted = getattr(jnp, name)(x), getattr(np, name)(x)
        assert got._fields == wanted._fields
        for a, b in zip(got, wanted, strict=True):
            np.testing.assert_array_equal(a, b)
    assert jnp.unique_values(np.array([np.nan, np.nan])).shape == (2,)
    assert jnp.unique_inverse(x, size=5, fill_value=9).values.tolist() == [1, 2, 3, 9, 9]
    z = SOURCE.integers(0, 2, 6) + 1j * SOURCE.integers(0, 3, 6)
    np.testing.assert_array_equal(jnp.sort_complex(z), np.sort_complex(z))
    y = SOURCE.permutation(12).reshape(3, 4)
    for axis in (0, 1):
        values, places = jnp.top_k(y, 2, axis=axis, mode="smallest")
        np.testing.assert_array_equal(values, np.sort(y, axis).take([0, 1], axis))
        np.testing.assert_array_equal(jnp.take_along_axis(y, places, axis), values)
        np.testing.assert_array_equal(jnp.top_k(y, 1, axis=axis)[0], y.max(axis, keepdims=True))
    low, high = jnp.minmax(y, 1)
    np.testing.assert_array_equal(low, y.min(1))
    np.testing.assert_array_equal(high, y.max(1))


def test_parts_and_kinds():
    mask = np.array([[True, False], [True, True]])
    for values in ([7], [7, 8], [7, 8, 9, 10]):
        wanted = np.arange(4).reshape(2, 2)
        np.place(wanted, mask, values)
        got = jnp.place(np.arange(4).reshape(2, 2), mask, np.array(values), inplace=False)
        np.testing.assert_array_equal(got, wanted)
    found, wanted = jnp.mask_indices(3, jnp.triu, 1), np.mask_indices(3, np.triu, 1)
    np.testing.assert_array_equal(found, wanted)
    x = np.float32([1, 0, -2, 1e-40, 3e38, np.nan, np.inf])
    np.testing.assert_array_equal(jnp.spacing(x), np.spacing(x))
    kinds = ("bool", "signed integer", "unsigned integer", "integral", "real floating",
             "complex floating", "numeric", np.int8)  # fmt: skip
    for dtype in map(np.dtype, ("bool", "int8", "uint16", "float32", "complex64")):
        assert [jnp.isdtype(dtype, k) for k in kinds] == [np.isdtype(dtype, k) for k in kinds]
    assert jnp.isdtype("bfloat16", ("bool", "real floating"))
    with pytest.raises(ValueError, match="'no kind'"):
        jnp.isdtype("int8", "no kind")


@pytest.mark.parametrize("side", ["left", "right"])
def test_positions_among_complex_numbers(side):
    rng = np.random.default_rng(5)
    x, v = (rng.integers(0, 3, (2, 12)) for _ in range(2))
    x, v = (a[0] + 1j * a[1] for a in (x, v))
    x = np.sort(x.astype("complex64"))
    x[-1] = v[0] = complex("nan")
    for wanted in (v.astype("complex64"), v.real.astype("float32"), np.array([0, 1, 2])):
        expected = np.searchsorted(x, wanted, side)
        np.testing.assert_array_equal(jnp.searchsorted(x, wanted, side=side), expected)


@pytest.mark.parametrize("dtype", ["bool", "uint8", "uint16", "int8", "int32", "float32"])
@pytest.mark.parametrize("of", ["int16", "int32", "float32"])
def test_the_difference_of_polynomials_of_two_dtypes(of, dtype):
    x = np.array([-5, 7, 0], of)
    y = np.array([1, 0] if dtype == "bool" else [100, 3], dtype)
    out = jnp.polysub(x, y)
    np.testing.assert_array_equal(out, np.polysub(x.astype(int), y.astype(int)))
