"""Reductions over segments against loops of NumPy, and their derivatives."""

import numpy as np
import pytest

import phalanx
import phalanx.numpy as jnp
from phalanx import laws, ops
from phalanx.errors import ConcretizationTypeError, ShapeError

SOURCE = np.random.default_rng(0)
IDS = np.array([2, 0, 2, 5, -1, 0, 2])
REDUCTIONS = {
    "segment_sum": np.sum,
    "segment_prod": np.prod,
    "segment_max": lambda x, axis: x.max(axis, initial=least(x.dtype)),
    "segment_min": lambda x, axis: x.min(axis, initial=largest(x.dtype)),
}


def least(dtype):
    return -np.inf if dtype.kind == "f" else np.iinfo(dtype).min


def largest(dtype):
    return np.inf if dtype.kind == "f" else np.iinfo(dtype).max


def loop(reduce, data, ids, count):
    return np.stack([reduce(data[ids == i], axis=0) for i in range(count)])


@pytest.mark.parametrize("name", REDUCTIONS)
@pytest.mark.parametrize("bucket_size", [None, 3])
def test_each_segment_is_reduced(name, bucket_size):
    function = getattr(ops, name)
    for dtype, tail in ((np.float32, (2, 3)), (np.int32, ()), (np.float32, (0,))):
        data = SOURCE.integers(-4, 5, (7, *tail)).astype(dtype)
        got = function(data, IDS, 4, bucket_size=bucket_size)
        expected = loop(REDUCTIONS[name], data, IDS, 4)
        assert got.dtype == dtype
        np.testing.assert_array_equal(got, expected)


def test_where_numbers_are_of_no_segment():
    data = jnp.arange(1.0, 8.0)
    clipped = np.clip(IDS, 0, 3)
    got = ops.segment_sum(data, IDS, 4, mode="clip")
    np.testing.assert_array_equal(got, loop(np.sum, np.asarray(data), clipped, 4))
    assert ops.segment_sum(data, IDS).shape == (6,)
    assert ops.segment_sum(jnp.ones((0, 2)), jnp.zeros(0, int), 3).tolist() == [[0, 0]] * 3
    assert ops.segment_sum(data, IDS, 0).shape == (0,)
    assert ops.segment_sum(data, IDS.astype(np.int8), 300).shape == (300,)
    np.testing.assert_array_equal(ops.segment_sum(2.0, np.array([1, 1, 0])), [2, 4])
    sorted_ids = np.array([0, 0, 1, 3])
    got = ops.segment_max(jnp.arange(4), sorted_ids, indices_are_sorted=True)
    assert got.tolist() == [1, 2, np.iinfo(np.int32).min, 3]


def test_transformed():
    source = np.random.default_rng(1)  # of its own, whatever runs before
    data = source.normal(size=(3, 7, 2)).astype(np.float32)
    ids = source.integers(0, 4, (3, 7))
    ids[0, :4] = range(4)  # the largest of nothing has no differences

    def sums(x, i):
        return ops.segment_sum(x, i, 4)

    expected = np.stack([loop(np.sum, x, i, 4) for x, i in zip(data, ids, strict=True)])
    np.testing.assert_allclose(phalanx.jit(phalanx.vmap(sums))(data, ids), expected, 1e-5, 1e-6)
    laws.check_grads(lambda x: sums(x, ids[0]), (data[0],), order=2)
    distinct = np.array([3, 0, 1])
    laws.check_grads(
        lambda x: ops.segment_prod(x, distinct, 4, unique_indices=True), (data[0, :3],), order=1
    )
    laws.check_grads(lambda x: ops.segment_max(x, ids[0], 4), (data[0],), order=1)


def test_what_is_refused():
    data = jnp.arange(7.0)
    with pytest.raises(ShapeError, match="each row"):
        ops.segment_sum(data, IDS[:3])
    with pytest.raises(TypeError, match="integers"):
        ops.segment_sum(data, data)
    with pytest.raises(ValueError, match="non-negative"):
        ops.segment_sum(data, IDS, -1)
    with pytest.raises(ValueError, match="bucket_size"):
        ops.segment_sum(data, IDS, bucket_size=0)
    with pytest.raises(ValueError, match="mode"):
        ops.segment_sum(data, IDS, mode="wrap")
    with pytest.raises(ConcretizationTypeError, match="num_segments"):
        phalanx.jit(ops.segment_sum)(data, IDS)


@pytest.mark.parametrize(("size", "places"), [(None, 1), (7, 1), (3, 2)])
def test_rows_go_straight_to_their_segments_where_there_is_one_bucket(size, places):
    def f(x):
        return ops.segment_sum(x, IDS, 6, bucket_size=size)

    text = phalanx.jit(f).lower(np.ones((7, 2), np.float32)).as_text()
    assert text.count(f"tensor<7x{places}xi32>, tensor<7x2xf32>)") == 1
