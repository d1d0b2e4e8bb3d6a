"""Communication between eight devices, against NumPy."""

import numpy as np
import pytest

import phalanx

F, U = np.dtype("f4"), np.dtype("u4")
ALL = ("m0", "m1", "m2")
X = np.arange(32, dtype=F).reshape(8, 4)
EVERYONE = (tuple(range(8)),)
PAIRS = ((0, 1), (2, 3), (4, 5), (6, 7))
ROWS = (ALL, ())


def add(b, x, y):
    return b.add(x, y)


def test_all_reduce(manual):
    def body(b, x, y):
        one, other = b.all_reduce([x, b.reshape(y, (4,))], EVERYONE, add)
        (pair,) = b.all_reduce([x], PAIRS, lambda b, x, y: b.maximum(x, y))
        return [one, other, pair]

    in_dims, out_dims = [ROWS, ROWS], [((), ()), ((),), ROWS]
    pairs = np.repeat(X.reshape(4, 2, 4).max(1), 2, 0)
    total, vector, pair = manual(body, [X, 2 * X], in_dims, [X[:1], X[0], pairs], out_dims)
    np.testing.assert_array_equal(total, X.sum(0, keepdims=True))
    np.testing.assert_array_equal(vector, 2 * X.sum(0))
    np.testing.assert_array_equal(pair, pairs)


def test_small_operands_of_an_all_reduce_travel_together(manual):
    inputs = [X, np.ones((8, 20000), F), 2 * X, X[:, :0], np.ones((8, 20000), F)]
    likes = [x[:1] for x in inputs]
    outs = manual(
        lambda b, *xs: b.all_reduce(xs, EVERYONE, add), inputs, [ROWS] * 5, likes, [((), ())] * 5
    )
    for got, x in zip(outs, inputs, strict=True):
        np.testing.assert_array_equal(got, x.sum(0, keepdims=True))


@pytest.mark.parametrize(("platform", "count"), [("cpu", 1), ("cuda", 3), ("rocm", 3), ("tpu", 3)])
def test_compilers_for_accelerators_combine_operands_themselves(platform, count):
    f = phalanx.pmap(lambda *xs: phalanx.lax.psum(xs, "i"), "i")
    lowered = f.trace(X, 2 * X, X[:, :3]).lower(lowering_platforms=(platform,))
    assert lowered.as_text().count("stablehlo.all_reduce") == count


def test_all_gather(manual):
    def body(b, x):
        return [
            b.all_gather(x, 0, EVERYONE, (8, 4)),
            b.all_gather(x, 1, PAIRS, (1, 8)),
        ]

    pairs = np.repeat(X.reshape(4, 8), 2, 0)
    whole, pair = manual(body, [X], [ROWS], [X, pairs], [((), ()), ROWS])
    np.testing.assert_array_equal(whole, X)
    np.testing.assert_array_equal(pair, pairs)


def test_reduce_scatter(manual):
    big = np.arange(8 * 8, dtype=F).reshape(8, 8)
    (got,) = manual(
        lambda b, x: [b.reduce_scatter(x, 1, EVERYONE, add, (1, 1))],
        [big],
        [ROWS],
        [big[:, :1]],
        [ROWS],
    )
    np.testing.assert_array_equal(got[:, 0], big.sum(0))


def test_all_to_all(manual):
    big = np.arange(8 * 8, dtype=F).reshape(8, 8)
    (got,) = manual(
        lambda b, x: [b.all_to_all(x, 1, 0, EVERYONE, (8, 1))], [big], [ROWS], [big], [((), ALL)]
    )
    np.testing.assert_array_equal(got, big)


def test_all_to_all_in_groups(manual):
    big = np.arange(8 * 2, dtype=F).reshape(8, 2)
    (got,) = manual(
        lambda b, x: [b.reshape(b.all_to_all(x, 1, 0, PAIRS, (2, 1)), (1, 2))],
        [big],
        [ROWS],
        [big],
        [ROWS],
    )
    np.testing.assert_array_equal(got, big.reshape(4, 2, 2).transpose(0, 2, 1).reshape(8, 2))


def test_collective_permute(manual):
    pairs = [(i, (i + 1) % 8) for i in range(7)]
    (got,) = manual(lambda b, x: [b.collective_permute(x, pairs)], [X], [ROWS], [X], [ROWS])
    want = np.roll(X, 1, 0)
    want[0] = 0
    np.testing.assert_array_equal(got, want)


def test_partition_id_counts_row_by_row(manual):
    def body(b, x):
        return [b.broadcast_in_dim(b.partition_id(), (1, 1, 1), ())]

    like = np.zeros((2, 2, 2), U)
    (got,) = manual(body, [X], [ROWS], [like], [(("m0",), ("m1",), ("m2",))])
    np.testing.assert_array_equal(got, np.arange(8).reshape(2, 2, 2))


@pytest.mark.parametrize("dtype", ["?", "i1", "u2", "f2", "f8", "c8"])
def test_dtypes_travel(manual, dtype):
    x = (X % 3).astype(dtype)
    combine = (lambda b, x, y: b.or_(x, y)) if dtype == "?" else add

    def body(b, x):
        return [*b.all_reduce([x], EVERYONE, combine), b.all_gather(x, 0, EVERYONE, (8, 4))]

    replicated = ((), ())
    total, whole = manual(body, [x], [ROWS], [x[:1], x], [replicated, replicated])
    want = x.any(0) if dtype == "?" else x.sum(0, dtype=dtype)
    np.testing.assert_allclose(total[0], want)
    np.testing.assert_array_equal(whole, x)


def test_collectives_in_loops_branches_and_functions(manual):
    def body(b, x):
        limit = b.constant(3, np.dtype("i4"))

        def reduced(b, x):
            return b.all_reduce([x], EVERYONE, add)

        def step(b, i, s):
            (total,) = b.call("reduced", reduced, [s])
            eighth = b.multiply(total, b.constant(0.125, F, (1, 4)))
            return [b.add(i, b.constant(1, np.dtype("i4"))), b.add(s, eighth)]

        less = lambda b, i, s: b.compare(i, limit, "LT")  # noqa: E731
        _, out = b.while_([b.constant(0, np.dtype("i4")), x], less, step)
        branches = [lambda b: reduced(b, x), lambda b: reduced(b, out)]
        return b.case(b.constant(1, np.dtype("i4")), branches)

    (got,) = manual(body, [X], [ROWS], [X[:1]], [((), ())])
    want = X.copy()
    for _ in range(3):
        want = want + want.sum(0, keepdims=True) / 8
    np.testing.assert_allclose(got, want.sum(0, keepdims=True), rtol=1e-5)


def test_operations_of_several_results(manual):
    int32 = np.dtype("i4")

    def greater(b, v, i, w, j):
        better = b.compare(w, v, "GT")
        return [b.select(better, w, v), b.select(better, j, i)]

    def body(b, x):
        where = b.iota(int32, (1, 4), 1)
        by_first = lambda b, x, y, i, j: b.compare(x, y, "GT")  # noqa: E731
        low, zero = b.constant(-np.inf, F), b.constant(0, int32)
        return [
            *b.sort([x, where], 1, True, by_first),
            *b.top_k(x, 2),
            *b.reduce([x, where], [low, zero], (1,), greater),
            *b.case(zero, [lambda b: [x, where], lambda b: [b.negate(x), where]]),
            *b.optimization_barrier([x, where]),
        ]

    places = np.tile(np.arange(4, dtype=int32), (8, 1))
    backwards = places[:, ::-1]
    wants = [X[:, ::-1], backwards, X[:, :1:-1], backwards[:, :2], X[:, 3], backwards[:, 0]]
    wants += [X, places] * 2
    dims = [(ALL,) if w.ndim == 1 else ROWS for w in wants]
    for got, want in zip(manual(body, [X], [ROWS], wants, dims), wants, strict=True):
        np.testing.assert_array_equal(got, want)


def test_some_axes_split_and_others_copy(manual):
    """Split over m1 alone: devices that differ in m0 and m2 compute the same."""

    def body(b, x):
        return [b.all_reduce([x], ((0, 2), (1, 3), (4, 6), (5, 7)), add)[0], b.negate(x)]

    dims = (("m1",), ())
    total, negated = manual(body, [X], [dims], [X[:4], X], [((), ()), dims])
    np.testing.assert_array_equal(total, X[:4] + X[4:])
    np.testing.assert_array_equal(negated, -X)
