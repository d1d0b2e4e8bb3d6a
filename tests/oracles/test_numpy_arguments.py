"""What arguments may be: lists for shapes, traced numbers, sizes, None, nothing at all."""

import numpy as np
import pytest

import phalanx
import phalanx.numpy as jnp


def same(actual, expected):
    np.testing.assert_array_equal(actual, expected)


NESTED = [[1, 2, 3], [4, 5, 6]]


@pytest.mark.parametrize("a", [[1, 2], [], [[]], NESTED, [np.ones(2), np.ones(2)], 2.0, (1, (2,))])
def test_the_shape_of_lists(a):
    if a == (1, (2,)):
        with pytest.raises(ValueError, match="one shape"):
            jnp.shape(a)
        return
    assert (jnp.shape(a), jnp.ndim(a), jnp.size(a)) == (np.shape(a), np.ndim(a), np.size(a))


@pytest.mark.parametrize("kind", [ValueError, TypeError])
def test_arrays_of_different_shapes_form_no_array(kind):
    """NumPy raises a ValueError, the field a TypeError."""
    for parts in ([jnp.ones(2), jnp.ones(3)], [jnp.ones((2, 1)), jnp.ones((2, 0))]):
        with pytest.raises(kind, match="array: the entries of a list must have one shape"):
            jnp.array(parts)
    with pytest.raises(kind, match="must have one shape"):
        phalanx.jit(lambda x: jnp.asarray([x, 1.0]))(np.ones(2))


def test_kinds_of_lists():
    assert jnp.size(NESTED, 1) == 3
    assert jnp.iscomplexobj([1, [2j]]) and jnp.isrealobj([1.0, 2])


@pytest.mark.parametrize("axis", [jnp.array(0), np.int64(-1), [0, 1], (0, -1), ()], ids=str)
def test_expand_dims_by_whatever_is_an_integer(axis):
    expected = tuple(axis) if isinstance(axis, list) else int(axis) if np.ndim(axis) == 0 else axis
    assert jnp.expand_dims(jnp.ones(3), axis).shape == np.expand_dims(np.ones(3), expected).shape


@pytest.mark.parametrize("k", [-4, -1, 0, 1, 3])
def test_diagonals_may_be_traced(k):
    x = np.arange(1, 13).reshape(3, 4)
    out = phalanx.jit(lambda k: (jnp.eye(3, 4, k), jnp.tri(3, k=k), jnp.tril(x, k), jnp.triu(x, k)))
    expected = np.eye(3, 4, k), np.tri(3, k=k), np.tril(x, k), np.triu(x, k)
    for found, wanted in zip(out(k), expected, strict=True):
        same(found, wanted)


POSITIONS = [1, -1, 3, np.array([0, 2]), np.array([2, 0, 2]), np.array([3, -3])]


@pytest.mark.parametrize("where", POSITIONS, ids=str)
def test_insert_before_traced_positions(where):
    x, new = np.arange(3), 10 + np.arange(np.size(where))
    values = new if np.ndim(where) else new[0]
    inserted = phalanx.jit(lambda k: jnp.insert(jnp.array(x), k, jnp.array(values)))
    same(inserted(where), np.insert(x, where, values))
    same(jnp.insert(jnp.array(x), where, jnp.array(values)), np.insert(x, where, values))
    rows = phalanx.jit(lambda k: jnp.insert(jnp.ones((2, 3)), k, 7.0, axis=1))
    same(rows(where), np.insert(np.ones((2, 3)), where, 7.0, axis=1))


TRIMMED = [
    ([0, 1, 0, 2, 0], {}),
    ([0, 0], {}),
    ([], {}),
    (3, {}),
    ([[0, 0], [0, 1]], {}),
    ([[0, 0, 0], [0, 1, 0], [0, 0, 0]], {"trim": "f"}),
    ([[0, 0, 0], [0, 1, 0], [0, 0, 0]], {"trim": "b", "axis": 1}),
    ([[0, 0], [0, 0]], {"axis": 0}),
]


@pytest.mark.parametrize("x, options", TRIMMED, ids=str)
def test_trim_zeros_of_any_number_of_dimensions(x, options):
    if (x, options) == (3, {}):  # no end to trim
        same(jnp.trim_zeros(jnp.array(3)), 3)
    else:
        same(jnp.trim_zeros(jnp.array(x), **options), np.trim_zeros(np.array(x), **options))


def test_trim_zeros_refuses_other_ends():
    with pytest.raises(ValueError, match="'fb', got 'x'"):
        jnp.trim_zeros(jnp.arange(3), "x")


@pytest.mark.parametrize("mode", ["clip", "wrap", "raise"])
def test_positions_broadcast(mode):
    index = (np.int32(1), np.array([[0, 1, 2], [2, 1, 0]]))
    found = jnp.ravel_multi_index(tuple(map(jnp.array, index)), (3, 3), mode=mode)
    same(found, np.ravel_multi_index(index, (3, 3)))
    assert jnp.ravel_multi_index((), ()) == 0
    with pytest.raises(TypeError, match="integers"):
        jnp.ravel_multi_index((jnp.float32(1), 2), (3, 3), mode=mode)


def test_one_element_is_in_order():
    assert jnp.lexsort(jnp.array([3.0, 1.0])) == 0
    assert jnp.lexsort((1.0, 2.0)) == 0
    same(jnp.lexsort(jnp.array([[3, 1, 2], [0, 0, 1]])), np.lexsort([[3, 1, 2], [0, 0, 1]]))


def test_compress_and_extract_to_a_size():
    x, mask = np.arange(10, 16).reshape(3, 2), np.array([True, False, True])
    kept = phalanx.jit(lambda m: jnp.compress(m, jnp.array(x), 0, size=2))(mask)
    same(kept, np.compress(mask, x, 0))
    same(jnp.compress(mask, x, 0, size=3, fill_value=7), [[10, 11], [14, 15], [7, 7]])
    same(jnp.compress(mask, x, 0, size=1), [[10, 11]])
    taken = phalanx.jit(lambda m: jnp.extract(m, jnp.array(x), size=4))(x > 12)
    same(taken, [13, 14, 15, 0])


def test_compress_refuses_what_is_no_vector_of_the_length():
    with pytest.raises(IndexError, match="position 3"):
        jnp.compress(jnp.array([False, False, False, True]), jnp.arange(3))
    with pytest.raises(ValueError, match="must be a vector"):
        jnp.compress(jnp.array([[True]]), jnp.arange(3))
    same(jnp.compress(jnp.array([False]), jnp.zeros(0)), [])


def test_vectorize_passes_none_on():
    @jnp.vectorize
    def plus(x, y):
        return x if y is None else x + y

    same(plus(jnp.ones(3), None), [1, 1, 1])
    with_signature = jnp.vectorize(lambda x, y: x.sum() if y is None else y, signature="(n),()->()")
    same(with_signature(jnp.ones((2, 3)), None), [3, 3])


@pytest.mark.parametrize("bins", [-1, 0, 2.5])
@pytest.mark.parametrize("name", ["histogram", "histogramdd", "histogram_bin_edges"])
def test_numbers_of_bins_are_positive_integers(name, bins):
    with pytest.raises((TypeError, ValueError)) as theirs:
        getattr(np, name)(np.ones((3, 2)), bins)
    with pytest.raises(theirs.type, match="histogram_bin_edges: bins must be "):
        getattr(jnp, name)(jnp.ones((3, 2)), bins)


def test_histograms_of_nothing():
    for found, expected in zip(jnp.histogram(jnp.zeros(0), 3), np.histogram([], 3), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_slopes_between_samples_at_uneven_places():
    y = np.random.default_rng(0).normal(size=(5, 4))
    places = np.array([0.0, 0.5, 2.0, 2.5, 4.0])
    np.testing.assert_allclose(
        jnp.gradient(jnp.array(y), jnp.array(places), axis=0), np.gradient(y, places, axis=0), 1e-4
    )
    both = jnp.gradient(jnp.array(y), jnp.array(places), 0.5)
    for found, expected in zip(both, np.gradient(y, places, 0.5), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_what_is_divided_by_a_constant_is_the_same_compiled_and_eager():
    powers, tenths = 10.0 ** np.arange(10), np.arange(0.0, 30.0, 0.07, np.float32)
    for function, x in [(jnp.log10, powers), (lambda x: jnp.round(x, 1), tenths)]:
        same(phalanx.jit(function)(jnp.array(x)), function(jnp.array(x)))
    same(jnp.round(jnp.array(tenths), 1), np.round(tenths, 1))
    ends = phalanx.jit(lambda: [jnp.linspace(0.0, 1.0, n)[-1] for n in range(2, 60)])()
    assert set(map(float, ends)) == {1.0}
    same(phalanx.jit(lambda q: jnp.percentile(jnp.arange(4.0), q, method="lower"))(100.0), 3)
