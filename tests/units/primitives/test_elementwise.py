"""Elementwise primitives: values against NumPy and SciPy, derivatives where they are delicate."""

import math

import ml_dtypes
import numpy as np
import pytest
import scipy.special

from phalanx import enable_x64, grad, jit, jvp
from phalanx import primitives as ops
from phalanx.core.primitive import Primitive
from phalanx.primitives.elementwise import integer_pow
from phalanx.primitives.zeta import zeta
from tests.laws.slopes import along

F32 = np.float32
ABOVE = np.linspace(0.05, 4, 25).astype(F32)


def test_the_derivative_of_digamma_is_a_zeta_function():
    x = np.append(ABOVE, np.linspace(-30.4, -0.6, 31, dtype=np.float32))
    wanted = scipy.special.polygamma(1, x.astype(np.float64))
    _, slope = jvp(ops.digamma, (x,), (np.ones_like(x),))
    np.testing.assert_allclose(slope, wanted, rtol=1e-4)
    curvature = grad(lambda x: grad(lambda x: ops.digamma(x))(x))
    np.testing.assert_allclose(curvature(F32(0.5)), scipy.special.polygamma(2, 0.5), rtol=1e-5)


@pytest.mark.parametrize("platform", ["gpu", "tpu"])
def test_zeta_as_accelerators_compute_it(monkeypatch, platform):
    monkeypatch.setattr(
        Primitive, "lowering", lambda prim, _: prim.lower_on.get(platform, prim.lower)
    )
    q = np.concatenate([np.linspace(0.01, 30, 99), np.linspace(-20.7, -0.01, 99), [-3.0, 0.0, 1.0]])
    for s in (2, 3, 8):
        wanted = scipy.special.polygamma(s - 1, q) / ((-1) ** s * math.factorial(s - 1))
        wanted[-3:-1] = np.inf  # at the poles
        found = jit(lambda s, q: zeta(s, q))(np.full(q.shape, s, F32), q.astype(F32))
        wanted = np.where(np.abs(wanted) > 3e38, np.inf, wanted)
        np.testing.assert_allclose(found, wanted, rtol=2e-4)


def test_exp2_of_integers_is_exact():
    x = np.arange(-20, 21).astype(F32)
    assert np.array_equal(ops.exp2(x), 2.0**x)


@pytest.mark.parametrize("y", [-3, -1, 0, 1, 2, 7, 10])
def test_integer_pow(y):
    x = np.array([-1.5, -0.5, 0.25, 2.0], F32)
    np.testing.assert_allclose(integer_pow(x, y=y), x.astype(np.float64) ** y, rtol=1e-6)
    _, slope = jvp(lambda x: integer_pow(x, y=y), (x,), (np.ones_like(x),))
    np.testing.assert_allclose(slope, y * x.astype(np.float64) ** (y - 1), rtol=1e-6)


def test_bits():
    x = np.array([0, 1, 12, 2**31, 2**32 - 1], np.uint32)
    assert ops.population_count(x).tolist() == [0, 1, 2, 1, 32]
    assert ops.clz(x).tolist() == [32, 31, 28, 0, 0]
    assert np.array_equal(ops.not_(x), ~x)
    assert np.array_equal(ops.shift_left(x, 3), x << np.uint32(3))
    assert np.array_equal(ops.shift_right_logical(x, 3), x >> np.uint32(3))
    y = np.array([-8, 8], np.int32)
    assert ops.shift_right_arithmetic(y, 2).tolist() == [-2, 2]
    assert ops.shift_right_logical(y, 28).tolist() == [15, 0]


@pytest.mark.parametrize("name", ["int2", "uint2", "int4", "uint4"])
def test_bits_of_less_than_a_byte(name):
    limits = ml_dtypes.iinfo(name)
    numbers, mask = np.arange(int(limits.min), int(limits.max) + 1), (1 << limits.bits) - 1
    texts = [format(n & mask, f"0{limits.bits}b") for n in numbers]
    x = numbers.astype(getattr(ml_dtypes, name))

    def stored(y):
        return (np.asarray(y).astype(int) & mask).tolist()

    assert stored(jit(ops.population_count)(x)) == [t.count("1") & mask for t in texts]
    assert stored(jit(ops.clz)(x)) == [len(t) - len(t.lstrip("0")) & mask for t in texts]
    one = np.ones_like(x)
    assert stored(jit(ops.shift_right_logical)(x, one)) == [int(t, 2) >> 1 for t in texts]
    assert stored(jit(ops.shift_left)(x, one)) == [int(t, 2) << 1 & mask for t in texts]


def test_bitcast_between_widths():
    x = np.arange(6, dtype=np.uint32).reshape(2, 3) * 77777
    halves = ops.bitcast(x, dtype=np.dtype("uint16"))
    assert np.array_equal(halves, x.view(np.uint16).reshape(2, 3, 2))
    assert np.array_equal(ops.bitcast(halves, dtype=np.dtype("uint32")), x)
    with pytest.raises(ValueError, match=r"last\s+dimension must have that length"):
        ops.bitcast(halves, dtype=np.dtype("float64"))
    with pytest.raises(TypeError, match="bool has no bits to share"):
        ops.bitcast(halves, dtype=np.dtype(bool))


# ---- derivatives ------------------------------------------------------------------------------


def slope(f, *at):
    """The gradient of ``f``, a function of scalars."""
    found = grad(f, argnums=tuple(range(len(at))))(*(F32(x) for x in at))
    return [float(x) for x in found]


def test_abs_is_flat_at_zero():
    assert slope(ops.abs, 0.0) == [0.0]
    assert slope(ops.abs, -2.0) == [-1.0]


def test_extrema_share_at_ties():
    assert slope(ops.max, 2.0, 2.0) == [0.5, 0.5]
    assert slope(ops.max, 1.0, 2.0) == [0.0, 1.0]
    assert slope(ops.min, 2.0, 2.0) == [0.5, 0.5]
    assert slope(ops.min, 1.0, 2.0) == [1.0, 0.0]


@pytest.mark.parametrize(
    "x, y, wanted",
    [
        (0.0, 0.0, [0.0, 0.0]),
        (0.0, 1.0, [1.0, 0.0]),
        (0.0, 2.0, [0.0, 0.0]),
        (0.0, 3.5, [0.0, 0.0]),
        (2.0, 0.0, [0.0, np.log(2)]),
        (2.0, 3.0, [12.0, 8 * np.log(2)]),
    ],
)
def test_pow_derivatives_are_finite(x, y, wanted):
    np.testing.assert_allclose(slope(ops.pow, x, y), wanted, rtol=1e-6)


def test_pow_with_a_constant_operand():
    np.testing.assert_allclose(slope(lambda x: ops.pow(x, 3.0), 2.0), [12.0])
    np.testing.assert_allclose(slope(lambda y: ops.pow(2.0, y), 3.0), [8 * np.log(2)], rtol=1e-6)
    assert slope(lambda x: ops.pow(x, 0.0), 0.0) == [0.0]


def test_constant_operands_of_binary_functions():
    x = np.array([0.6, 2.1])
    for op in (ops.atan2, ops.div, ops.rem, ops.max, ops.min):
        for f in (lambda v, op=op: op(v, 1.5), lambda v, op=op: op(1.5, v)):
            close_to_slope(op.name, f, x, np.ones_like(x))


def test_rem():
    assert slope(ops.rem, 7.5, 2.0) == [1.0, -3.0]
    assert slope(ops.rem, -7.5, 2.0) == [1.0, 3.0]


def test_clamp_routes_the_derivative():
    assert slope(ops.clamp, 0.0, 2.0, 3.0) == [0.0, 1.0, 0.0]
    assert slope(ops.clamp, 0.0, -2.0, 3.0) == [1.0, 0.0, 0.0]
    assert slope(ops.clamp, 0.0, 5.0, 3.0) == [0.0, 0.0, 1.0]


def test_derivatives_of_complex_functions_that_are_not_holomorphic():
    z, t = np.array([3 + 4j, 1 - 2j]), np.array([1j, 1 + 1j])
    for op in (ops.abs, ops.sign, ops.real, ops.imag, ops.conj):
        close_to_slope(op.name, op, z, t)


def close_to_slope(name, f, x, t):
    with enable_x64(True):
        found = jvp(f, (x,), (t,))[1]
        wanted = along(lambda x: np.asarray(f(x)), (x,), (t,))
    np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-6, err_msg=name)


def test_gradient_of_a_real_function_of_a_complex_number():
    z = np.complex64(3 + 4j)
    assert complex(grad(lambda z: ops.square(ops.abs(z)))(z)) == pytest.approx(6 - 8j)


# ---- errors -----------------------------------------------------------------------------------


def test_domains():
    with pytest.raises(TypeError, match=r"exp: the operand i32\[3\] must be a floating-point or"):
        ops.exp(np.arange(3, dtype=np.int32))
    with pytest.raises(TypeError, match="lt: the operand"):
        ops.lt(np.zeros(2, np.complex64), np.zeros(2, np.complex64))
    with pytest.raises(TypeError, match="one shape"):
        ops.max(np.zeros(2, F32), np.zeros(3, F32))
    with pytest.raises(TypeError, match="select: the predicate must be bool"):
        ops.select(np.zeros(2, F32), np.zeros(2, F32), np.zeros(2, F32))
    with pytest.raises(TypeError, match="must have one shape"):
        ops.select(np.zeros(3, bool), np.zeros(2, F32), np.zeros(2, F32))
