"""Each structural word of the builder against NumPy."""

from types import SimpleNamespace

import ml_dtypes
import numpy as np
import pytest

F, I = np.dtype("f4"), np.dtype("i4")  # noqa: E741
X = np.arange(24, dtype=F).reshape(2, 3, 4)


def test_moving_elements(check):
    padded = np.full((3, 6, 7), -1, F)
    padded[1:3, 0:5:2, 0:4] = X
    check(
        lambda b, x: [
            b.reshape(x, (4, 6)),
            b.transpose(x, (2, 0, 1)),
            b.reverse(x, (0, 2)),
            b.concatenate([x, x], 1),
            b.broadcast_in_dim(x, (2, 5, 3, 4), (0, 2, 3)),
            b.slice(x, (0, 1, 0), (2, 3, 4), (1, 1, 3)),
            b.pad(x, b.constant(-1, F), (1, 0, 0), (0, 1, 3), (0, 1, 0)),
            b.pad(x, b.constant(0, F), (0, -1, 0), (0, 0, -2), (0, 0, 0)),
            *b.optimization_barrier([x]),
        ],
        [X],
        [
            X.reshape(4, 6),
            X.transpose(2, 0, 1),
            X[::-1, :, ::-1],
            np.concatenate([X, X], 1),
            np.broadcast_to(X[:, None], (2, 5, 3, 4)),
            X[:, 1:, ::3],
            padded,
            X[:, 1:, :-2],
            X,
        ],
    )


def test_nothing_in_nothing_out(check):
    assert check(lambda b, x: [*b.optimization_barrier([]), x], [X], [X]) is None
    empty = np.zeros((0, 3), F)
    check(
        lambda b, x: [b.add(x, x), b.pad(x, b.constant(2, F), (1, 0), (0, 0), (1, 0))],
        [empty],
        [empty, np.full((1, 3), 2, F)],
    )


def test_dynamic_slices(check):
    update = -np.ones((1, 2, 4), F)
    updated = X.copy()
    updated[1:, 1:3] = -1

    def emit(b, x, u, i, j):
        zero = b.constant(0, I)
        return [
            b.dynamic_slice(x, [i, j, zero], (1, 2, 4)),
            b.dynamic_update_slice(x, u, [i, j, zero]),
        ]

    check(emit, [X, update, I.type(1), I.type(9)], [X[1:, 1:3], updated])


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


def test_iota(check):
    check(
        lambda b: [b.iota(I, (2, 3), 1), b.iota(np.dtype("u1"), (2, 3), 0), b.iota(F, (4,), 0)],
        [],
        [
            np.indices((2, 3))[1].astype(I),
            np.indices((2, 3))[0].astype("u1"),
            np.arange(4, dtype=F),
        ],
    )


def test_gather_and_scatter(check):
    rows = np.array([[1], [0], [1]], I)
    numbers = SimpleNamespace(
        offset_dims=(1, 2),
        collapsed_slice_dims=(0,),
        start_index_map=(0,),
        operand_batching_dims=(),
        start_indices_batching_dims=(),
    )
    inverse = SimpleNamespace(
        update_window_dims=(1, 2),
        inserted_window_dims=(0,),
        scatter_dims_to_operand_dims=(0,),
        operand_batching_dims=(),
        scatter_indices_batching_dims=(),
    )
    added = X.copy()
    np.add.at(added, rows[:, 0], X[rows[:, 0]])

    def emit(b, x, i):
        taken = b.gather(x, i, numbers, (1, 3, 4), False)
        total = b.scatter(x, i, taken, inverse, lambda b, u, v: b.add(u, v), False, False)
        return [taken, total]

    check(emit, [X, rows], [X[rows[:, 0]], added])


def test_gather_with_batching_dimensions(check):
    index = np.array([[[2], [0]], [[1], [1]]], I)
    numbers = SimpleNamespace(
        offset_dims=(2,),
        collapsed_slice_dims=(1,),
        start_index_map=(1,),
        operand_batching_dims=(0,),
        start_indices_batching_dims=(0,),
    )
    want = np.stack([X[i][index[i, :, 0]] for i in range(2)])
    check(lambda b, x, i: [b.gather(x, i, numbers, (1, 1, 4), False)], [X, index], [want])


def test_unknown_dtypes_are_refused(run):
    with pytest.raises(TypeError, match="float128 has no counterpart in XLA"):
        run(lambda b: [b.iota(np.dtype("longdouble"), (2,), 0)], [], [np.zeros(2, F)])
