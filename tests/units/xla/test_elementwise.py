"""Each elementwise word of the builder against NumPy or SciPy."""

import ml_dtypes
import numpy as np
import pytest
import scipy.special

X = np.array([-0.9, -0.5, -0.1, 0.2, 0.7, 0.95], np.float32)
POSITIVE = np.array([0.1, 0.5, 1.0, 1.7, 3.2, 8.0], np.float32)
Y = np.array([0.3, -0.4, 0.5, 2.0, -1.5, 1.0], np.float32)
HALVES = np.array([-2.5, -1.5, -0.5, 0.5, 1.5, 2.5], np.float32)
INTS = np.array([-7, -2, -1, 0, 3, 12], np.int32)
SHIFTS = np.array([0, 1, 2, 3, 4, 5], np.int32)

UNARY = {
    "abs": np.abs,
    "negate": np.negative,
    "sign": np.sign,
    "floor": np.floor,
    "ceil": np.ceil,
    "exponential": np.exp,
    "exponential_minus_one": np.expm1,
    "sine": np.sin,
    "cosine": np.cos,
    "tan": np.tan,
    "tanh": np.tanh,
    "cbrt": np.cbrt,
    "logistic": scipy.special.expit,
    "log_plus_one": np.log1p,
    "is_finite": np.isfinite,
    "acos": np.arccos,
    "asin": np.arcsin,
    "atan": np.arctan,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "asinh": np.arcsinh,
    "atanh": np.arctanh,
    "erf": scipy.special.erf,
    "erfc": scipy.special.erfc,
    "erf_inv": scipy.special.erfinv,
}
UNARY_POSITIVE = {
    "log": np.log,
    "sqrt": np.sqrt,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "lgamma": scipy.special.gammaln,
    "digamma": scipy.special.digamma,
    "acosh": lambda x: np.arccosh(x + 1),
}
BINARY = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "divide": np.divide,
    "remainder": np.fmod,
    "atan2": np.arctan2,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "next_after": np.nextafter,
}
BITS = {
    "and_": np.bitwise_and,
    "or_": np.bitwise_or,
    "xor": np.bitwise_xor,
    "shift_left": np.left_shift,
    "shift_right_arithmetic": np.right_shift,
    "shift_right_logical": lambda x, y: (x.view(np.uint32) >> y.view(np.uint32)).view(np.int32),
}


def test_unary(check):
    check(
        lambda b, x: [getattr(b, name)(x) for name in UNARY],
        [X],
        [f(X) for f in UNARY.values()],
        rtol=1e-4,
    )


def test_unary_of_positive_numbers(check):
    def emit(b, x):
        one = b.constant(1, np.dtype("f4"), (6,))
        return [getattr(b, n)(b.add(x, one) if n == "acosh" else x) for n in UNARY_POSITIVE]

    check(emit, [POSITIVE], [f(POSITIVE) for f in UNARY_POSITIVE.values()], rtol=1e-4, atol=1e-5)


def test_rounding(check):
    away = np.trunc(HALVES + np.copysign(0.5, HALVES))
    emit = lambda b, x: [b.round_nearest_afz(x), b.round_nearest_even(x)]  # noqa: E731
    check(emit, [HALVES], [away, np.rint(HALVES)])


def test_binary(check):
    check(
        lambda b, x, y: [getattr(b, name)(x, y) for name in BINARY],
        [X, Y],
        [f(X, Y) for f in BINARY.values()],
    )
    check(lambda b, x, y: [b.power(x, y)], [POSITIVE, Y], [POSITIVE**Y])


def test_integers_and_bits(check):
    check(
        lambda b, x, y: [getattr(b, name)(x, y) for name in BITS],
        [INTS, SHIFTS],
        [f(INTS, SHIFTS) for f in BITS.values()],
    )
    counts = np.array([bin(v & 0xFFFFFFFF).count("1") for v in INTS.tolist()], np.int32)
    zeros = np.array([32 - (v & 0xFFFFFFFF).bit_length() for v in INTS.tolist()], np.int32)
    check(
        lambda b, x: [b.not_(x), b.popcnt(x), b.count_leading_zeros(x), b.abs(x), b.sign(x)],
        [INTS],
        [~INTS, counts, zeros, np.abs(INTS), np.sign(INTS)],
    )


def test_complex_numbers(check):
    z = X + 1j * Y
    check(
        lambda b, x, y, z: [b.complex(x, y), b.real(z), b.imag(z), b.conj(z), b.abs(z)],
        [X, Y, z],
        [z, X, Y, z.conj(), np.abs(z)],
    )
    check(
        lambda b, z: [b.exponential(z), b.log(z), b.sqrt(z), b.tanh(z), b.sine(z)],
        [z],
        [np.exp(z), np.log(z), np.sqrt(z), np.tanh(z), np.sin(z)],
    )


@pytest.mark.parametrize("dtype", ["f4", "i4", "u4", "?", "c8", ml_dtypes.bfloat16])
def test_compare(check, dtype):
    x, y = np.array([0, 1, 2, 3]).astype(dtype), np.array([1, 1, 0, 250]).astype(dtype)
    ops = {"EQ": np.equal, "NE": np.not_equal}
    if np.dtype(dtype).kind != "c":
        ops |= {"LT": np.less, "LE": np.less_equal, "GT": np.greater, "GE": np.greater_equal}
    check(
        lambda b, x, y: [b.compare(x, y, d) for d in ops], [x, y], [f(x, y) for f in ops.values()]
    )


def test_comparing_large_unsigned_numbers(check):
    x, y = np.array([2**31 + 5], np.uint32), np.array([7], np.uint32)
    check(lambda b, x, y: [b.compare(x, y, "GT")], [x, y], [x > y])


def test_select_and_clamp(check):
    pred = X > 0
    check(
        lambda b, p, x, y: [
            b.select(p, x, y),
            b.select(b.constant(False, np.dtype(bool)), x, y),
            b.clamp(b.constant(-0.3, np.dtype("f4")), x, b.constant(0.4, np.dtype("f4"))),
        ],
        [pred, X, Y],
        [np.where(pred, X, Y), Y, np.clip(X, -0.3, 0.4)],
    )


def test_conversions(check):
    dtypes = [np.dtype(d) for d in ("i1", "u1", "i8", "f2", "f8", "c8", ml_dtypes.bfloat16)]
    check(
        lambda b, x: [b.convert(x, d) for d in [*dtypes, np.dtype("i4")]],
        [INTS[3:]],
        [INTS[3:].astype(d) for d in [*dtypes, np.dtype("i4")]],
    )


def test_bitcasts(check):
    check(
        lambda b, x: [
            b.bitcast_convert(x, np.dtype("u4"), (6,)),
            b.bitcast_convert(x, np.dtype("u2"), (6, 2)),
            b.bitcast_convert(b.bitcast_convert(x, np.dtype("u1"), (6, 4)), np.dtype("f4"), (6,)),
        ],
        [X],
        [X.view(np.uint32), X.view(np.uint16).reshape(6, 2), X],
    )


def test_reduce_precision(check):
    rounded = X.astype(ml_dtypes.bfloat16).astype(np.float32)
    check(lambda b, x: [b.reduce_precision(x, 8, 7)], [X], [rounded])
