"""Products and linear algebra against NumPy."""

import numpy as np
import pytest
import scipy.signal

from phalanx.core.types import ArrayType

F = np.dtype("f4")
rng = np.random.default_rng(0)


def normal(*shape):
    return rng.standard_normal(shape).astype(F)


@pytest.mark.parametrize("precision", [None, "highest", ("default", "high")])
def test_dot_general(check, precision):
    x, y = normal(2, 3, 4), normal(2, 4, 5)
    check(
        lambda b, x, y: [
            b.dot_general(x, y, ((2,), (1,)), ((0,), (0,)), F, precision),
            b.dot_general(x, y, ((0, 2), (0, 1)), ((), ()), F, precision),
        ],
        [x, y],
        [x @ y, np.einsum("abc,acd->bd", x, y)],
    )


def test_integers_accumulate_in_a_wider_dtype(check):
    x = np.full((2, 100), 100, np.int8)
    wide = np.dtype("i4")
    check(
        lambda b, x: [b.dot_general(x, x, ((1,), (1,)), ((), ()), wide, None)],
        [x],
        [x.astype("i4") @ x.T.astype("i4")],
    )


def test_convolution(check):
    x, kernel = normal(2, 3, 8, 8), normal(4, 3, 3, 3)
    want = np.stack(
        [
            [sum(scipy.signal.correlate2d(i, k, "valid") for i, k in zip(image, f, strict=True))
             for f in kernel]
            for image in x
        ]
    )  # fmt: skip
    nchw, nhwc = (
        ((0, 1, 2, 3), (0, 1, 2, 3), (0, 1, 2, 3)),
        ((0, 3, 1, 2), (0, 1, 2, 3), (0, 3, 1, 2)),
    )
    ones, none = (1, 1), ((0, 0), (0, 0))

    def emit(b, x, k):
        out = ArrayType((2, 4, 6, 6), F)
        moved = ArrayType((2, 6, 6, 4), F)
        strided = ArrayType((2, 4, 3, 3), F)
        last = b.transpose(x, (0, 2, 3, 1))
        return [
            b.convolution(x, k, out, ones, none, ones, ones, nchw, 1, 1, None),
            b.convolution(last, k, moved, ones, none, ones, ones, nhwc, 1, 1, "highest"),
            b.convolution(x, k, strided, (2, 2), none, ones, ones, nchw, 1, 1, None),
        ]

    check(emit, [x, kernel], [want, want.transpose(0, 2, 3, 1), want[:, :, ::2, ::2]], atol=1e-4)


def test_fourier_transforms(check):
    x = normal(3, 8)
    z = np.fft.fft(x).astype(np.complex64)
    half = np.fft.rfft(x).astype(np.complex64)
    outs = [a.astype(np.complex64) for a in (np.fft.fft(z), np.fft.ifft2(z))]
    check(
        lambda b, x, z, h: [
            b.fft(z, "FFT", (8,)),
            b.fft(z, "IFFT", (3, 8)),
            b.fft(x, "RFFT", (8,)),
            b.fft(h, "IRFFT", (8,)),
        ],
        [x, z, half],
        [*outs, half, x],
        atol=1e-4,
    )


def test_triangular_factors(check):
    a = normal(4, 4)
    a = a @ a.T + 4 * np.eye(4, dtype=F)
    lower = np.linalg.cholesky(a)
    y = normal(4, 2)

    def emit(b, a, y):
        factor = b.cholesky(a, True)
        zero = b.constant(0, F, (4, 4))
        keep = b.compare(b.iota(np.dtype("i4"), (4, 4), 0), b.iota(np.dtype("i4"), (4, 4), 1), "GE")
        return [
            b.select(keep, factor, zero),
            b.triangular_solve(factor, y, True, True, False, "NO_TRANSPOSE"),
            b.triangular_solve(factor, y, True, True, False, "TRANSPOSE"),
        ]

    check(emit, [a, y], [lower, np.linalg.solve(lower, y), np.linalg.solve(lower.T, y)], atol=1e-4)
