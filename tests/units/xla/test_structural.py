"""Constants of the builder, and words of nothing."""

import ml_dtypes
import numpy as np
import pytest

F, I = np.dtype("f4"), np.dtype("i4")  # noqa: E741
X = np.arange(24, dtype=F).reshape(2, 3, 4)


def test_nothing_in_nothing_out(check):
    assert check(lambda b, x: [*b.optimization_barrier([]), x], [X], [X]) is None
    empty = np.zeros((0, 3), F)
    check(
        lambda b, x: [b.add(x, x), b.pad(x, b.constant(2, F), (1, 0), (0, 0), (1, 0))],
        [empty],
        [empty, np.full((1, 3), 2, F)],
    )


SCALARS = [
    True, np.int8(-3), np.uint16(65535), np.int64(-(2**60)), np.uint64(2**63), np.float16(0.1),
    np.float32(np.nan), np.float64(-np.inf), np.complex64(1 - 2j), np.complex128(3j),
    ml_dtypes.bfloat16(1.5), ml_dtypes.float8_e4m3fn(0.5), ml_dtypes.float8_e5m2(-2),
]  # fmt: skip


@pytest.mark.filterwarnings("ignore:invalid value")
def test_constants_of_every_dtype(run):
    splats = [np.full((2, 3), s) for s in SCALARS]
    arrays = [np.array([s, np.zeros_like(s)]) for s in SCALARS]

    def emit(b):
        yield_ = [b.constant(s, np.asarray(s).dtype, (2, 3)) for s in SCALARS]
        return yield_ + [b.constant(a, a.dtype) for a in arrays]

    for got, want in zip(run(emit, [], splats + arrays), splats + arrays, strict=True):
        assert got.dtype == want.dtype and got.tobytes() == want.tobytes()


def test_other_constants(check):
    columns = np.asfortranarray(X[0])
    check(
        lambda b: [
            b.constant(2, F),
            b.constant(columns, F),
            b.constant(np.zeros((0, 2)), F),
            b.constant([[True, False, True]], np.dtype(bool)),
            b.constant(np.arange(3, dtype=">i4"), I),
        ],
        [],
        [F.type(2), columns, np.zeros((0, 2), F), [[True, False, True]], np.arange(3, dtype=I)],
    )


def test_unknown_dtypes_are_refused(run):
    with pytest.raises(TypeError, match="float128 has no counterpart in XLA"):
        run(lambda b: [b.iota(np.dtype("longdouble"), (2,), 0)], [], [np.zeros(2, F)])
