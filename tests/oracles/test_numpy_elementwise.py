"""Elementwise functions of phalanx.numpy against NumPy, special values included."""

import numpy as np
import pytest

import phalanx
import phalanx.numpy as jnp


def names(text):
    return text.split()


NAN, INF = np.nan, np.inf
SPECIAL = np.array([NAN, INF, -INF, 0.0, -0.0, 1.0, -1.5, 2.5, -3.0, 0.3, 7.0], np.float32)
INTS = np.array([-7, -3, -1, 0, 1, 2, 5, 8, 100], np.int32)
BYTES = np.array([0, 1, 2, 3, 7, 200, 255], np.uint8)
COMPLEX = np.array([1 + 2j, -1 - 0.5j, 3, 0.25j], np.complex64)
BOOLS = np.array([True, False])

UNARY_FLOAT = names(
    """absolute fabs sign square sqrt cbrt reciprocal negative positive floor ceil trunc
rint exp exp2 expm1 log log2 log10 log1p sin cos tan arcsin arccos arctan sinh cosh tanh arcsinh
arccosh arctanh deg2rad rad2deg sinc isnan isfinite isinf isposinf isneginf signbit logical_not
nan_to_num real imag conjugate angle iscomplex isreal spacing"""
)
UNARY_INT = names(
    """absolute sign square negative positive floor ceil trunc invert bitwise_count sqrt
isnan isfinite isinf logical_not conjugate real imag"""
)
UNARY_COMPLEX = names(
    """absolute square sqrt exp log sin cos tan sinh cosh tanh negative conjugate real
imag angle isnan isfinite isinf iscomplex isreal reciprocal"""
)
BINARY_FLOAT = names(
    """add subtract multiply divide floor_divide remainder fmod maximum minimum fmax fmin
arctan2 hypot logaddexp logaddexp2 copysign heaviside nextafter equal not_equal less less_equal
greater greater_equal logical_and logical_or logical_xor isclose"""
)
BINARY_INT = names(
    """add subtract multiply divide maximum minimum fmax fmin gcd lcm bitwise_and
bitwise_or bitwise_xor equal not_equal less less_equal greater greater_equal logical_and
remainder"""
)


def same(actual, expected, rtol=2e-5, atol=1e-6):
    expected = np.asarray(expected)
    assert actual.shape == expected.shape
    assert np.dtype(actual.dtype).kind == expected.dtype.kind
    np.testing.assert_allclose(np.asarray(actual), expected, rtol=rtol, atol=atol)


def numpy(name, *args):
    with np.errstate(all="ignore"):
        return getattr(np, name)(*args)


@pytest.mark.parametrize("name", [n for n in UNARY_FLOAT if n != "spacing"])
def test_unary_of_floats(name):
    expected = numpy(name, SPECIAL)
    if name == "sinc":  # the limit, where NumPy divides nan
        expected = np.where(np.isinf(SPECIAL), 0, expected)
    same(getattr(jnp, name)(jnp.array(SPECIAL)), expected)


@pytest.mark.parametrize("name", UNARY_INT)
@pytest.mark.parametrize("x", [INTS, BYTES], ids=["int32", "uint8"])
def test_unary_of_integers(name, x):
    x = x[x >= 0] if name == "sqrt" else x
    expected = numpy(name, x)
    found = getattr(jnp, name)(jnp.array(x))
    if name == "sqrt":  # NumPy has half precision for bytes
        np.testing.assert_allclose(found, np.sqrt(x.astype(np.float32)), rtol=1e-5)
    else:
        same(found, expected)


@pytest.mark.parametrize("name", UNARY_COMPLEX)
def test_unary_of_complex_numbers(name):
    same(getattr(jnp, name)(jnp.array(COMPLEX)), numpy(name, COMPLEX))


@pytest.mark.parametrize("name", BINARY_FLOAT)
def test_binary_of_floats(name):
    x, y = SPECIAL[:, None], SPECIAL[None, :]
    found = np.array(getattr(jnp, name)(jnp.array(x), jnp.array(y)))
    expected = np.array(numpy(name, x, y))
    if name == "fmax" or name == "fmin" or name in ("maximum", "minimum"):
        found, expected = found + 0.0, expected + 0.0  # the sign of zero is free
    if name == "floor_divide":  # of infinities NumPy's result depends on the platform
        finite = np.isfinite(x) & np.isfinite(y)
        found, expected = found[finite], expected[finite]
    same(found, expected)


@pytest.mark.parametrize("name", BINARY_INT)
@pytest.mark.parametrize("x", [INTS, BYTES], ids=["int32", "uint8"])
def test_binary_of_integers(name, x):
    x, y = x[:, None], x[None, :]
    same(getattr(jnp, name)(jnp.array(x), jnp.array(y)), numpy(name, x, y))


@pytest.mark.parametrize("y", [3, -3, 7])
@pytest.mark.parametrize("name", ["floor_divide", "remainder", "fmod", "divmod", "power"])
def test_integers_and_a_constant(name, y):
    if name == "power":
        y = abs(y)
    found, expected = getattr(jnp, name)(jnp.array(INTS), y), numpy(name, INTS, np.int32(y))
    if name == "divmod":
        for f, e in zip(found, expected, strict=True):
            same(f, e)
    else:
        same(found, expected)
    if name in ("floor_divide", "remainder"):
        nonzero = INTS[INTS != 0]
        same(getattr(jnp, name)(y, jnp.array(nonzero)), numpy(name, np.int32(y), nonzero))


@pytest.mark.parametrize("y", [-2, -1, 0, 1, 2, 3, 0.5, 2.0, -1.0, 1.7])
def test_powers_of_floats(y):
    x = np.array([0.5, 1.0, 2.0, 3.5], np.float32)
    same(jnp.array(x) ** y, x ** np.float32(y))
    with np.errstate(invalid="ignore"):
        same(y ** jnp.array(x), np.float32(y) ** x)


def test_powers_of_integers():
    x = np.array([-2, -1, 0, 1, 2, 3], np.int32)[:, None]
    y = np.array([0, 1, 2, 5, 19], np.int32)[None, :]
    same(jnp.array(x) ** jnp.array(y), x**y)
    same(2 ** jnp.arange(5), 2 ** np.arange(5, dtype=np.int32))
    inverse = jnp.array([-2, -1, 0, 1, 2]) ** jnp.full(5, -3)
    assert inverse.tolist()[:2] == [0, -1]
    assert inverse.tolist()[3:] == [1, 0]
    with pytest.raises(TypeError, match="negative power -1"):
        jnp.arange(3) ** -1


def test_powers_differentiate_at_zero_and_below():
    x = jnp.array([-2.0, 0.0, 3.0])
    for y in (2, 2.0, 3):
        slope = phalanx.grad(lambda x, y=y: jnp.sum(x**y))(x)
        np.testing.assert_allclose(slope, y * np.array([-2.0, 0.0, 3.0]) ** (y - 1), rtol=1e-6)


@pytest.mark.parametrize("decimals", [0, 1, 2, -1, -2])
@pytest.mark.parametrize(
    "x",
    [np.array([0.5, 1.5, -2.5, 12.345, 155.0, 250.0], np.float32), INTS * 5, COMPLEX],
    ids=["floats", "integers", "complex"],
)
def test_round(x, decimals):
    same(jnp.round(jnp.array(x), decimals), np.round(x, decimals), rtol=1e-5)


def test_parts_of_floats():
    x = np.array([0.0, 1.0, -12.0, 0.3, 1e-37, 3e38, INF, NAN], np.float32)
    for found, expected in zip(jnp.frexp(jnp.array(x)), np.frexp(x), strict=True):
        np.testing.assert_array_equal(np.asarray(found)[:-2], expected[:-2])
    mantissa = np.asarray(jnp.frexp(jnp.array(x))[0])
    assert np.isinf(mantissa[-2])
    assert np.isnan(mantissa[-1])
    for found, expected in zip(jnp.modf(jnp.array(x[:4])), np.modf(x[:4]), strict=True):
        same(found, expected)
    same(jnp.ldexp(jnp.array(x[:4]), jnp.arange(4)), np.ldexp(x[:4], np.arange(4)))


def test_shifts():
    same(jnp.array(INTS) << 2, INTS << 2)
    same(jnp.array(INTS) >> 1, INTS >> 1)
    same(jnp.array(BYTES) >> 1, BYTES >> 1)


def test_choices():
    x, c = SPECIAL, SPECIAL > 0
    with np.errstate(all="ignore"):
        same(jnp.where(c, jnp.array(x), 0), np.where(c, x, np.float32(0)))
        same(jnp.clip(jnp.array(x), -1, 2), np.clip(x, -1, 2))
        same(jnp.clip(jnp.array(x), None, 2), np.clip(x, None, 2))
        conditions, choices = [x > 2, x > 0], [x, -x]
        same(
            jnp.select([jnp.array(v) for v in conditions], [jnp.array(v) for v in choices], 9),
            np.select(conditions, choices, np.float32(9)),
        )
    replaced = jnp.nan_to_num(jnp.array(x), nan=1, posinf=2, neginf=3)
    same(replaced, np.nan_to_num(x, nan=1, posinf=2, neginf=3))
    key = phalanx.random.key(0)
    assert jnp.nan_to_num(key) == key
    same(
        jnp.piecewise(jnp.array(x), [jnp.array(c)], [lambda v: v * 2, 5.0])[3:],
        np.piecewise(x, [c], [lambda v: v * 2, 5.0])[3:],
    )


def test_equality_of_arrays():
    x = jnp.array([1.0, NAN])
    assert not jnp.array_equal(x, x)
    assert jnp.array_equal(x, x, equal_nan=True)
    assert not jnp.array_equal(x, jnp.ones(3))
    assert jnp.array_equiv(jnp.ones((2, 3)), jnp.ones(3))
    assert not jnp.array_equiv(jnp.ones((2, 3)), jnp.ones(2))
    assert jnp.allclose(x, x, equal_nan=True)
    assert not jnp.allclose(jnp.ones(2), 1.1)
    assert jnp.allclose(jnp.array([INF]), INF)


def test_logaddexp_differentiates_everywhere():
    slopes = phalanx.grad(lambda x, y: jnp.logaddexp(x, y).sum(), (0, 1))
    x, y = jnp.array([1.0, 2.0, -INF, 800.0]), jnp.array([1.0, -3.0, 0.0, 0.0])
    dx, dy = slopes(x, y)
    np.testing.assert_allclose(dx + dy, 1.0, rtol=1e-6)
    np.testing.assert_allclose(dx[0], 0.5)


def test_sinc_differentiates_at_zero():
    first = phalanx.grad(jnp.sinc)
    assert float(first(0.0)) == 0.0
    np.testing.assert_allclose(phalanx.grad(first)(0.0), -(np.pi**2) / 3, rtol=1e-5)


def test_narrow_floats():
    x = jnp.array([1.0, 2.0], dtype=jnp.bfloat16)
    assert (x + 1).dtype == jnp.bfloat16
    assert (x * 2.5).tolist() == [2.5, 5.0]
    assert jnp.sin(x).dtype == jnp.bfloat16
    assert jnp.round(x * 1.25, 1).dtype == jnp.bfloat16


def test_lists_are_refused():
    for function in (jnp.sin, jnp.sum, jnp.negative):
        with pytest.raises(TypeError, match=r"a list of 2; convert it with jnp.array"):
            function([1.0, 2.0])
    with pytest.raises(TypeError, match="add: an array or a number is needed, got 'a'"):
        jnp.add("a", 1)
    words = r"add: Incompatible shapes for broadcasting: shapes=\[\(2,\), \(3,\)\], at "
    with pytest.raises(ValueError, match=words):
        jnp.add(jnp.ones(2), jnp.ones(3))


def test_bools():
    x = jnp.array(BOOLS)
    assert (x + x).dtype == bool
    assert (x * 2).tolist() == [2, 0]
    assert (x % x).dtype == jnp.int32
    with pytest.raises(TypeError, match="must be a number"):
        _ = x - x


INTEGERS = ["int8", "uint8", "int16", "uint16", "int32", "uint32"]


@pytest.mark.parametrize("name", ["gcd", "lcm"])
def test_divisors_of_every_integer_dtype(name):
    """Of 1000 elements: as one expression, all steps of the algorithm take hours to compile."""
    rng = np.random.default_rng(0)
    ends = [np.iinfo(t) for t in INTEGERS]
    small = rng.integers(0, 50, 500)
    draws = [np.r_[small, rng.integers(e.min, e.max, 498), e.min, e.max] for e in ends]
    xs = [d.astype(t) for d, t in zip(draws, INTEGERS, strict=True)]
    pairs = [(x, y) for x in xs for y in (np.roll(x, 1), np.uint8(6), np.roll(xs[1], 3))]
    run = phalanx.jit(lambda pairs: [getattr(jnp, name)(x, y) for x, y in pairs])
    for (x, y), out in zip(pairs, run(pairs), strict=True):
        wide = np.uint64 if x.dtype.kind == "u" else np.int64
        expected = getattr(np, name)(x.astype(wide), y.astype(wide))
        fits = expected <= np.iinfo(out.dtype).max
        assert fits.sum() > 10
        np.testing.assert_array_equal(
            np.asarray(out)[fits], expected[fits].astype(out.dtype), f"{x.dtype}, {y.dtype}"
        )
    assert int(getattr(jnp, name)(12, 18)) == getattr(np, name)(12, 18)
    lanes = phalanx.vmap(getattr(jnp, name), (0, None))(xs[0], np.int8(12))
    np.testing.assert_array_equal(lanes, getattr(jnp, name)(xs[0], np.int8(12)))
