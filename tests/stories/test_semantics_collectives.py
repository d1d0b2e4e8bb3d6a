"""Collectives: what they give, of which dtype, over which lanes; under pmap and vmap alike."""

import ml_dtypes
import numpy as np
import pytest

import phalanx
import phalanx.numpy as jnp
from phalanx import lax
from phalanx.errors import UnboundAxis

N = 4
ROWS = np.arange(N * 3, dtype=np.float32).reshape(N, 3)
SQUARES = np.arange(N * N * 2, dtype=np.float32).reshape(N, N, 2)
PAIRS = [[0, 2], [1, 3]]  # interleaved


# ---- constants and dtypes -----------------------------------------------------------------------


def test_psum_of_a_python_number_is_a_python_number_while_tracing(mapped):
    def f(x):
        assert type(lax.psum(1, "i")) is int
        assert type(lax.psum(0.5, "i")) is float
        for _ in range(lax.psum(1, "i")):
            x = x + 1
        return x + lax.psum(0.5, "i")

    np.testing.assert_array_equal(mapped(f, axis_name="i")(ROWS), ROWS + N + 2)


def test_psum_of_a_python_number_in_groups_counts_the_group(mapped):
    def f(x):
        return x * lax.psum(3, "i", axis_index_groups=PAIRS)

    np.testing.assert_array_equal(mapped(f, axis_name="i")(ROWS), 6 * ROWS)


def test_axis_size_is_a_python_int(mapped):
    def f(x):
        assert type(lax.axis_size("i")) is int
        return x * lax.axis_size("i")

    np.testing.assert_array_equal(mapped(f, axis_name="i")(ROWS), N * ROWS)


@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.float16, np.int8, np.uint8])
def test_psum_of_a_numpy_scalar_keeps_its_dtype(mapped, dtype):
    found = mapped(lambda x: lax.psum(dtype(2), "i"), axis_name="i")(ROWS)
    assert found.dtype == dtype
    np.testing.assert_array_equal(found, [2 * N] * N)


def test_psum_of_booleans_counts_in_int32(mapped):
    marks = np.array([True, False, True, True])
    found = mapped(lambda x: lax.psum(x, "i"), axis_name="i")(marks)
    assert found.dtype == np.int32
    np.testing.assert_array_equal(found, [3] * N)


@pytest.mark.parametrize("dtype", [bool, np.int32, np.uint8])
def test_pmean_of_booleans_and_integers_is_float32(mapped, dtype):
    values = np.array([1, 0, 1, 1], dtype)
    found = mapped(lambda x: lax.pmean(x, "i"), axis_name="i")(values)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, [0.75] * N)


def test_pmean_keeps_half_precision_and_complex(mapped):
    for dtype in (ml_dtypes.bfloat16, np.float16, np.complex64):
        found = mapped(lambda x: lax.pmean(x, "i"), axis_name="i")(np.arange(N).astype(dtype))
        assert found.dtype == dtype
        np.testing.assert_allclose(np.asarray(found).astype(np.complex64), [1.5] * N)


@pytest.mark.parametrize("dtype", [bool, ml_dtypes.bfloat16, np.int8, np.uint16, np.complex64])
def test_all_gather_and_all_to_all_take_every_dtype(mapped, dtype):
    x = (np.arange(N * N).reshape(N, N) % 3).astype(dtype)
    gathered, exchanged = mapped(
        lambda r: (lax.all_gather(r, "i"), lax.all_to_all(r, "i", 0, 0)), axis_name="i"
    )(x)
    assert gathered.dtype == exchanged.dtype == dtype
    np.testing.assert_array_equal(np.asarray(gathered), np.stack([x] * N))
    np.testing.assert_array_equal(np.asarray(exchanged), x.T)


def test_psum_takes_complex_numbers(mapped):
    x = np.array([1 + 2j, 3j, -1, 2 - 1j], np.complex64)
    found = mapped(lambda x: lax.psum(x, "i"), axis_name="i")(x)
    np.testing.assert_allclose(found, [x.sum()] * N)


# ---- trees --------------------------------------------------------------------------------------

TREE = {
    "f": ROWS,
    "i": np.arange(N, dtype=np.int32),
    "h": (ROWS.astype(np.float16), [np.arange(2.0 * N, dtype=np.float32).reshape(N, 2)]),
}


@pytest.mark.parametrize(
    ("collective", "reference"),
    [
        (lax.psum, lambda x: np.stack([x.sum(0)] * N)),
        (lax.pmax, lambda x: np.stack([x.max(0)] * N)),
        (lax.pmin, lambda x: np.stack([x.min(0)] * N)),
    ],
)
def test_reductions_take_trees_of_mixed_dtypes(mapped, collective, reference):
    found = mapped(lambda t: collective(t, "i"), axis_name="i")(TREE)
    for got, want in zip(phalanx.tree.leaves(found), phalanx.tree.leaves(TREE), strict=True):
        assert got.dtype == want.dtype
        np.testing.assert_allclose(got, reference(want))


def test_pmean_takes_trees_of_mixed_dtypes(mapped):
    found = mapped(lambda t: lax.pmean(t, "i"), axis_name="i")(TREE)
    assert found["i"].dtype == np.float32 and found["h"][0].dtype == np.float16
    for got, want in zip(phalanx.tree.leaves(found), phalanx.tree.leaves(TREE), strict=True):
        np.testing.assert_allclose(got, np.stack([want.astype(np.float32).mean(0)] * N), rtol=1e-3)


def test_exchanges_and_permutations_take_trees_of_mixed_dtypes(mapped):
    tree = (SQUARES, {"k": np.arange(N * N, dtype=np.int32).reshape(N, N)})
    sent, shifted = mapped(
        lambda t: (lax.all_to_all(t, "i", 0, 0), lax.ppermute(t, "i", [(0, 1), (3, 2)])),
        axis_name="i",
    )(tree)
    for got, want in zip(phalanx.tree.leaves(sent), phalanx.tree.leaves(tree), strict=True):
        assert got.dtype == want.dtype
        np.testing.assert_array_equal(got, want.swapaxes(0, 1))
    for got, want in zip(phalanx.tree.leaves(shifted), phalanx.tree.leaves(tree), strict=True):
        np.testing.assert_array_equal(got, [0 * want[0], want[0], want[3], 0 * want[0]])


def test_a_tree_is_reduced_by_one_operation_per_dtype():
    tree = {f"k{i}": np.ones((1, i + 1), np.float32) for i in range(5)} | {
        "n": np.ones(1, np.int32)
    }
    program = phalanx.make_program(lambda t: lax.psum(t, "i"), axis_env=[("i", 4)])(tree)
    assert [e.prim.name for e in program.equations] == ["psum"]


# ---- groups -------------------------------------------------------------------------------------


def grouped(x, groups, reduce):
    out = np.zeros_like(x)
    for group in groups:
        out[list(group)] = reduce(x[list(group)])
    return out


@pytest.mark.parametrize(
    "groups",
    [
        PAIRS,
        ((3, 0), (1, 2)),
        np.array([[0, 1], [2, 3]]),
        [np.array([0, 3]), (1, 2)],
        [[0], [1, 2, 3]],
        [[2], [3, 1], [0]],
        [[3, 1, 0, 2]],
    ],
    ids=str,
)
def test_psum_sums_within_groups_that_may_differ_in_length(mapped, groups):
    found = mapped(lambda x: lax.psum(x, "i", axis_index_groups=groups), axis_name="i")(ROWS)
    np.testing.assert_allclose(found, grouped(ROWS, groups, lambda g: g.sum(0)))


def test_pmean_pmax_and_pmin_work_within_groups(mapped):
    uneven = [[0, 2, 3], [1]]
    mean, top, bottom = mapped(
        lambda x: (
            lax.pmean(x, "i", axis_index_groups=uneven),
            lax.pmax(x, "i", axis_index_groups=uneven),
            lax.pmin(x, "i", axis_index_groups=PAIRS),
        ),
        axis_name="i",
    )(ROWS)
    np.testing.assert_allclose(mean, grouped(ROWS, uneven, lambda g: g.mean(0)), rtol=1e-6)
    np.testing.assert_array_equal(top, grouped(ROWS, uneven, lambda g: g.max(0)))
    np.testing.assert_array_equal(bottom, grouped(ROWS, PAIRS, lambda g: g.min(0)))


@pytest.mark.parametrize("groups", [PAIRS, ((3, 0), (1, 2))], ids=str)
def test_exchanges_work_within_groups_in_the_order_of_the_group(mapped, groups):
    x = np.arange(N * 2 * 3, dtype=np.float32).reshape(N, 2, 3)
    gathered, scattered, exchanged = mapped(
        lambda r: (
            lax.all_gather(r, "i", axis_index_groups=groups),
            lax.psum_scatter(r, "i", axis_index_groups=groups),
            lax.all_to_all(r, "i", 0, 0, axis_index_groups=groups),
        ),
        axis_name="i",
    )(x)
    for group in groups:
        for position, lane in enumerate(group):
            np.testing.assert_array_equal(gathered[lane], x[list(group)])
            np.testing.assert_allclose(scattered[lane], x[list(group)].sum(0)[position])
            np.testing.assert_array_equal(exchanged[lane], x[list(group)][:, position])


@pytest.mark.spmd
def test_groups_are_positions_of_their_own_axis_in_nested_maps():
    x = np.arange(2 * 4, dtype=np.float32).reshape(2, 4)

    def inner(v):
        return lax.psum(v, "j", axis_index_groups=PAIRS), lax.psum(
            v, "i", axis_index_groups=[[0], [1]]
        )

    over_j, over_i = phalanx.pmap(phalanx.pmap(inner, axis_name="j"), axis_name="i")(x)
    np.testing.assert_allclose(over_j, np.stack([grouped(r, PAIRS, np.sum) for r in x]))
    np.testing.assert_allclose(over_i, x)


@pytest.mark.parametrize(
    "groups", [[[0, 1]], [[0, 1], [1, 2, 3]], [[0, 1], [2, 4]], [[0, 1, 2, 3], [0]], []], ids=str
)
def test_groups_must_partition_the_axis(mapped, groups):
    with pytest.raises(ValueError, match="every index from 0 to 3"):
        mapped(lambda x: lax.psum(x, "i", axis_index_groups=groups), axis_name="i")(ROWS)


def test_groups_of_exchanges_must_have_equal_lengths(mapped):
    with pytest.raises(ValueError, match="equal lengths"):
        mapped(lambda x: lax.all_gather(x, "i", axis_index_groups=[[0], [1, 2, 3]]), axis_name="i")(
            ROWS
        )


# ---- dimensions ---------------------------------------------------------------------------------


@pytest.mark.parametrize("split", [0, 1, -1])
@pytest.mark.parametrize("concat", [0, 1, -1, 2])
def test_all_to_all_removes_split_axis_and_inserts_the_lanes_at_concat_axis(mapped, split, concat):
    x = np.arange(N * N * N * N, dtype=np.int32).reshape(N, N, N, N)
    found = mapped(lambda r: lax.all_to_all(r, "i", split, concat), axis_name="i")(x)
    for lane in range(N):
        parts = [np.take(x[sender], lane, axis=split) for sender in range(N)]
        np.testing.assert_array_equal(found[lane], np.stack(parts, axis=concat))


def test_tiled_all_to_all_keeps_the_dimensions(mapped):
    x = np.arange(N * 8 * 3, dtype=np.float32).reshape(N, 8, 3)
    found = mapped(lambda r: lax.all_to_all(r, "i", 0, 1, tiled=True), axis_name="i")(x)
    for lane in range(N):
        parts = [x[sender][2 * lane : 2 * lane + 2] for sender in range(N)]
        np.testing.assert_array_equal(found[lane], np.concatenate(parts, axis=1))


def test_the_split_size_must_be_the_size_of_the_axis(mapped):
    with pytest.raises(ValueError, match=r"must have its size 4, got 3"):
        mapped(lambda r: lax.all_to_all(r, "i", 0, 0), axis_name="i")(ROWS)
    with pytest.raises(ValueError, match=r"must have its size 4, got 3"):
        mapped(lambda r: lax.psum_scatter(r, "i"), axis_name="i")(ROWS)


@pytest.mark.parametrize("dim", [0, 1, 2, -1, -2, -3])
def test_all_gather_puts_the_lanes_at_an_axis_that_may_be_negative(mapped, dim):
    found = mapped(lambda r: lax.all_gather(r, "i", axis=dim), axis_name="i")(SQUARES)
    np.testing.assert_array_equal(found[1], np.stack(list(SQUARES), axis=dim))


@pytest.mark.parametrize("dim", [0, 1, -1])
def test_tiled_all_gather_concatenates(mapped, dim):
    found = mapped(lambda r: lax.all_gather(r, "i", axis=dim, tiled=True), axis_name="i")(SQUARES)
    np.testing.assert_array_equal(found[2], np.concatenate(list(SQUARES), axis=dim))


@pytest.mark.parametrize("dim", [0, 1, -1])
def test_psum_scatter_keeps_a_part_of_the_sum_along_an_axis_that_may_be_negative(mapped, dim):
    x = np.arange(N * N * N, dtype=np.float32).reshape(N, N, N)
    found = mapped(lambda r: lax.psum_scatter(r, "i", scatter_dimension=dim), axis_name="i")(x)
    for lane in range(N):
        np.testing.assert_allclose(found[lane], np.take(x.sum(0), lane, axis=dim))


def test_tiled_psum_scatter_divides_the_dimension(mapped):
    x = np.arange(N * 8, dtype=np.float32).reshape(N, 8)
    found = mapped(lambda r: lax.psum_scatter(r, "i", tiled=True), axis_name="i")(x)
    np.testing.assert_allclose(found, x.sum(0).reshape(N, 2))


def test_pswapaxes_swaps_the_lanes_with_a_dimension(mapped):
    found = mapped(lambda r: lax.pswapaxes(r, "i", 0), axis_name="i")(SQUARES)
    np.testing.assert_array_equal(found, SQUARES.swapaxes(0, 1))


# ---- permutations -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "perm",
    [
        lambda: [(0, 1), (1, 2), (2, 0)],
        lambda: [[0, 1], [1, 2], [2, 0]],
        lambda: ((i, (i + 1) % 3) for i in range(3)),
        lambda: zip(range(3), [1, 2, 0], strict=True),
        lambda: np.array([[0, 1], [1, 2], [2, 0]]),
    ],
    ids=["pairs", "lists", "generator", "zip", "array"],
)
def test_ppermute_takes_any_iterable_of_pairs_and_fills_with_zeros(mapped, perm):
    found = mapped(lambda x: lax.ppermute(x, "i", perm()), axis_name="i")(ROWS)
    np.testing.assert_array_equal(found, [ROWS[2], ROWS[0], ROWS[1], 0 * ROWS[0]])


def test_an_iterator_of_pairs_serves_every_leaf_of_a_tree(mapped):
    found = mapped(lambda t: lax.ppermute(t, "i", iter([(0, 3)])), axis_name="i")((ROWS, 2 * ROWS))
    np.testing.assert_array_equal(found[1][3], 2 * ROWS[0])


@pytest.mark.parametrize("perm", [[(0, 4)], [(-1, 0)], [(7, 1)]])
def test_a_target_out_of_range_is_an_error_that_names_the_pair(mapped, perm):
    with pytest.raises(ValueError, match=rf"the pair \({perm[0][0]}, {perm[0][1]}\)"):
        mapped(lambda x: lax.ppermute(x, "i", perm), axis_name="i")(ROWS)


def test_a_lane_sends_once_and_receives_once(mapped):
    with pytest.raises(ValueError, match="source 0 occurs in more than one pair"):
        mapped(lambda x: lax.ppermute(x, "i", [(0, 1), (0, 2)]), axis_name="i")(ROWS)
    with pytest.raises(ValueError, match="target 2 occurs in more than one pair"):
        mapped(lambda x: lax.ppermute(x, "i", [(0, 2), (1, 2)]), axis_name="i")(ROWS)


def test_pshuffle_gives_lane_i_the_value_of_lane_perm_i(mapped):
    found = mapped(lambda x: lax.pshuffle(x, "i", [2, 0, 3, 1]), axis_name="i")(ROWS)
    np.testing.assert_array_equal(found, ROWS[[2, 0, 3, 1]])


@pytest.mark.parametrize("perm", [[0, 1, 2], [0, 0, 1, 2], [1, 2, 3, 4]])
def test_pshuffle_refuses_what_is_no_permutation(mapped, perm):
    with pytest.raises(ValueError) as e:
        mapped(lambda x: lax.pshuffle(x, "i", perm), axis_name="i")(ROWS)
    assert f"`perm` does not represent a permutation: {perm}" in str(e.value)


def test_pbroadcast_gives_every_lane_the_value_of_one(mapped):
    tree = {"f": ROWS, "b": np.array([True, False, True, False]), "i": np.arange(N)}
    found = mapped(lambda t: lax.pbroadcast(t, "i", 2), axis_name="i")(tree)
    np.testing.assert_array_equal(found["f"], [ROWS[2]] * N)
    np.testing.assert_array_equal(found["b"], [True] * N)
    np.testing.assert_array_equal(found["i"], [2] * N)


def test_pbroadcast_keeps_values_that_are_not_finite_out_of_other_lanes(mapped):
    x = np.array([np.nan, 1.0, np.inf, -np.inf], np.float32)
    found = mapped(lambda v: lax.pbroadcast(v, "i", 1), axis_name="i")(x)
    np.testing.assert_array_equal(found, [1.0] * N)


# ---- names --------------------------------------------------------------------------------------


def test_axis_index_counts_the_lanes(mapped):
    found = mapped(lambda x: lax.axis_index("i"), axis_name="i")(ROWS)
    assert found.dtype == np.int32
    np.testing.assert_array_equal(found, range(N))


def test_an_unbound_name_is_a_name_error_that_lists_the_scope_and_suggests_the_nearest(mapped):
    f = mapped(mapped(lambda x: lax.psum(x, "bacth"), axis_name="batch"), axis_name="model")
    with pytest.raises(NameError) as e:
        f(ROWS)
    assert isinstance(e.value, UnboundAxis)
    assert "psum: unbound axis name: bacth" in str(e.value)
    assert "'model' of size 4, 'batch' of size 3" in str(e.value)
    assert "Did you mean 'batch'?" in str(e.value)


@pytest.mark.parametrize(
    "collective",
    [
        lambda x: lax.pmean(x, "batch"),
        lambda x: lax.all_gather(x, "batch"),
        lambda x: lax.psum_scatter(x, "batch"),
        lambda x: lax.all_to_all(x, "batch", 0, 0),
        lambda x: lax.ppermute(x, "batch", []),
        lambda x: lax.pshuffle(x, "batch", []),
        lambda x: lax.pbroadcast(x, "batch", 0),
        lambda x: lax.axis_index("batch"),
        lambda x: lax.axis_size("batch"),
    ],
)
def test_every_collective_refuses_an_unbound_name(collective):
    with pytest.raises(NameError, match="unbound axis name: batch"):
        collective(jnp.ones(3))


def test_a_name_ends_with_its_map():
    phalanx.pmap(lambda x: lax.psum(x, "i"), axis_name="i")(ROWS)
    with pytest.raises(NameError, match="unbound axis name: i"):
        phalanx.pmap(lambda x: lax.psum(x, "i"))(ROWS)


GRID = np.arange(2 * 3, dtype=np.float32).reshape(2, 3)
NESTS = {
    "pmap of pmap": (phalanx.pmap, phalanx.pmap),
    "pmap of vmap": (phalanx.pmap, phalanx.vmap),
    "vmap of pmap": (phalanx.vmap, phalanx.pmap),
    "vmap of vmap": (phalanx.vmap, phalanx.vmap),
}


PAIRS_OF_MAPS = [
    pytest.param(pair, id=name, marks=[pytest.mark.spmd] if "pmap" in name else [])
    for name, pair in NESTS.items()
]


@pytest.fixture(params=PAIRS_OF_MAPS)
def nest(request):
    """Two maps, one in the other: f over axes i (outer, 2 long) and j (inner, 3 long)."""
    outer, inner = request.param
    return lambda f: outer(inner(f, axis_name="j"), axis_name="i")


def test_axis_index_of_several_axes_is_row_major_in_the_order_given(nest):
    ij, ji = nest(lambda x: (lax.axis_index(("i", "j")), lax.axis_index(("j", "i"))))(GRID)
    np.testing.assert_array_equal(ij, [[0, 1, 2], [3, 4, 5]])
    np.testing.assert_array_equal(ji, [[0, 2, 4], [1, 3, 5]])


def test_reductions_over_several_axes_at_once(nest):
    total, top, size = nest(
        lambda x: (lax.psum(x, ("i", "j")), lax.pmax(x, ("j", "i")), lax.psum(1, ["i", "j"]))
    )(GRID)
    np.testing.assert_allclose(total, np.full((2, 3), GRID.sum()))
    np.testing.assert_array_equal(top, np.full((2, 3), 5))
    np.testing.assert_array_equal(size, np.full((2, 3), 6))


@pytest.mark.parametrize("order", [("i", "j"), ("j", "i")])
def test_exchanges_over_several_axes_are_row_major_in_the_order_given(nest, order):
    x = np.arange(2 * 3 * 6, dtype=np.float32).reshape(2, 3, 6)
    lanes = x.reshape(6, 6) if order == ("i", "j") else x.swapaxes(0, 1).reshape(6, 6)

    def back(y):  # from the order of lanes to the shape of the nest
        rest = y.shape[1:]
        if order == ("i", "j"):
            return y.reshape(2, 3, *rest)
        return y.reshape(3, 2, *rest).swapaxes(0, 1)

    gathered, scattered, exchanged, shifted = nest(
        lambda r: (
            lax.all_gather(r[0], order),
            lax.psum_scatter(r, order),
            lax.all_to_all(r, order, 0, 0),
            lax.ppermute(r, order, [(s, (s + 1) % 6) for s in range(5)]),
        )
    )(x)
    np.testing.assert_array_equal(gathered, np.broadcast_to(lanes[:, 0], (2, 3, 6)))
    np.testing.assert_allclose(scattered, back(lanes.sum(0)))
    np.testing.assert_array_equal(exchanged, back(lanes.T))
    expected = np.concatenate([np.zeros((1, 6)), lanes[:5]])
    np.testing.assert_array_equal(shifted, back(expected))


def test_collectives_over_one_of_two_axes(nest):
    over_i, over_j, rows = nest(
        lambda x: (lax.psum(x, "i"), lax.pmean(x, "j"), lax.all_gather(x, "j"))
    )(GRID)
    np.testing.assert_allclose(over_i, np.stack([GRID.sum(0)] * 2))
    np.testing.assert_allclose(over_j, np.broadcast_to(GRID.mean(1, keepdims=True), (2, 3)))
    np.testing.assert_array_equal(rows, np.broadcast_to(GRID[:, None], (2, 3, 3)))


@pytest.mark.parametrize("pair", PAIRS_OF_MAPS)
def test_an_inner_axis_shadows_an_outer_one_of_the_same_name(pair):
    outer, inner = pair

    def row(r):
        inside = inner(lambda v: (lax.psum(v, "i"), lax.axis_index("i")), axis_name="i")(r)
        return *inside, lax.psum(r, "i")

    total, index, columns = outer(row, axis_name="i")(GRID)
    np.testing.assert_allclose(total, np.broadcast_to(GRID.sum(1, keepdims=True), (2, 3)))
    np.testing.assert_array_equal(index, [[0, 1, 2]] * 2)
    np.testing.assert_allclose(columns, np.stack([GRID.sum(0)] * 2))


@pytest.mark.parametrize("pair", PAIRS_OF_MAPS)
def test_partial_permutations_and_groups_over_one_of_two_axes(pair):
    outer, inner = pair
    x = np.arange(4 * 2, dtype=np.float32).reshape(4, 2)

    def f(v):
        return lax.ppermute(v, "i", [(3, 0)]), lax.psum(v, "i", axis_index_groups=[[0], [1, 2, 3]])

    moved, summed = outer(inner(f, axis_name="j"), axis_name="i")(x)
    np.testing.assert_array_equal(moved, np.concatenate([x[3:], np.zeros((3, 2))]))
    np.testing.assert_allclose(summed, np.concatenate([x[:1], [x[1:].sum(0)] * 3]))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_extrema_keep_what_is_no_number(dtype):
    """Also where lanes lie on several devices; infinities and signs stay what they are."""

    def both(x):
        return lax.pmax(x, "i"), lax.pmin(x, "i")

    inf, nan = np.inf, np.nan
    lanes = np.array([[1, -inf, inf, nan, -1], [-2, 3, -inf, 1, -3], [0, -1, 2, -1, -nan]])
    with phalanx.enable_x64(dtype == "float64"):
        x = jnp.array(lanes, dtype)
        for found, extreme in zip(phalanx.pmap(both, "i")(x), (np.max, np.min), strict=True):
            expected = np.broadcast_to(extreme(lanes, 0), x.shape)
            np.testing.assert_array_equal(np.asarray(found, np.float64), expected)
