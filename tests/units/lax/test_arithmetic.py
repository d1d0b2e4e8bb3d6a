"""Elementwise functions of lax against NumPy in wider types."""

import itertools

import numpy as np
import pytest

import phalanx
from phalanx import lax
from phalanx.laws import check_grads


@pytest.mark.parametrize("terms", [0, 1, 3, 12])
def test_polynomials(terms):
    x, coeffs = np.linspace(-1, 1, 5), np.random.default_rng(0).normal(size=terms)
    found = phalanx.jit(lambda x: lax.polynomial(x, list(map(float, coeffs))))(np.float32(x))
    np.testing.assert_allclose(found, np.polynomial.Polynomial([*coeffs, 0])(x), rtol=1e-5)


def test_polynomials_with_arrays_for_coefficients():
    x, coeffs = np.float32([0.5, -1]), np.random.default_rng(0).normal(size=(10, 2))
    coeffs = coeffs.astype(np.float32)
    found = lax.polynomial(x, list(coeffs), unroll=3)
    expected = [np.polynomial.Polynomial(c)(v) for v, c in zip(x, coeffs.T, strict=True)]
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    check_grads(lambda x, c: lax.polynomial(x, list(c), unroll=3), (x, coeffs))


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.int32, np.uint32])
def test_upper_halves_of_products(dtype):
    info = np.iinfo(dtype)
    edges = [info.min, info.min + 1, info.max // 3, info.max, 0, 1, info.max - 1]
    pairs = np.array(list(itertools.product(edges, edges)), dtype=object).T
    found = lax.mulhi(*pairs.astype(dtype))
    np.testing.assert_array_equal(found, (pairs[0] * pairs[1] >> info.bits).astype(dtype))


def test_products_near_one_keep_their_digits():
    x = np.float32([1 - 2**-20, -1 + 2**-22, 3])
    np.testing.assert_allclose(lax.one_minus_square(x), 1 - np.float64(x) ** 2, rtol=1e-6)
    np.testing.assert_array_equal(phalanx.vmap(phalanx.grad(lax.one_minus_square))(x), -2 * x)
    np.testing.assert_allclose(lax.log2(np.float32([8, 0.3])), np.log2([8, 0.3]), rtol=1e-6)


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_fewer_bits_are_those_of_the_narrower_format(dtype):
    x = np.random.default_rng(0).normal(size=99).astype(dtype) * 100
    found = lax.reduce_precision(x, exponent_bits=8, mantissa_bits=7)
    if dtype is np.float32:
        np.testing.assert_array_equal(found, x.astype(phalanx.numpy.bfloat16).astype(np.float32))
    np.testing.assert_allclose(found, x, rtol=2**-8)
    (t,) = phalanx.vjp(lambda x: lax.reduce_precision(x, 5, 1), x)[1](x)
    np.testing.assert_array_equal(t, lax.reduce_precision(x, 5, 1))


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32])
@pytest.mark.parametrize("name", ["integer_pow", "pow", "reciprocal"])
def test_integers_have_no_inverse(name, dtype):
    def f(x):
        return getattr(lax, name)(x, *([] if name == "reciprocal" else [-1]))

    for call in (f, phalanx.jit(f), phalanx.vmap(f)):
        with pytest.raises(TypeError, match=f"^{name}: integers cannot .* power -1; make the base"):
            call(np.array([1, 2], dtype))
    np.testing.assert_array_equal(f(np.float32([1, 2])), [1, 0.5])


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: lax.mulhi(1.0, 2.0), TypeError, "integers are needed"),
        (lambda: lax.reduce_precision(1.0, 0, 1), ValueError, "from 1 to 64 bits of exponent"),
        (lambda: lax.exp(1.0, accuracy=1e-3), TypeError, "accuracy must be a lax.Tolerance"),
        (lambda: lax.Tolerance(-1.0), ValueError, "must not be negative"),
        (lambda: lax.polynomial(np.int32([1]), [0.5]), TypeError, "does not fit"),
        (lambda: lax.approx_max_k(np.int32([1]), 1), TypeError, "floating-point"),
        (lambda: lax.approx_max_k(np.ones(1), 1, recall_target=2), ValueError, "recall_target"),
        (lambda: lax.broadcast_like(np.ones(2), np.ones(3)), ValueError, "for broadcasting"),
        (lambda: lax.after_all, AttributeError, "effects are in order by themselves"),
    ],
)
def test_errors(call, error, words):
    with pytest.raises(error, match=words):
        call()
