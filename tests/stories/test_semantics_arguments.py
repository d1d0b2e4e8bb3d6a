"""What pmap maps: positions of axes in arguments and results, sizes, devices, static arguments.

Axes are four long: with eight devices a lane has its own, with three or one all lanes share one.
"""

import functools
import inspect

import numpy as np
import pytest

import phalanx
import phalanx.numpy as jnp
from phalanx import lax
from phalanx.errors import AxisSizeError, ReplicationError, TreeError

pytestmark = pytest.mark.spmd

N = 4
ROWS = np.arange(N * 3, dtype=np.float32).reshape(N, 3)


# ---- trees of positions -------------------------------------------------------------------------


def test_in_axes_may_be_a_tree_as_deep_as_the_argument():
    def apply(params, x):
        return x @ params["w"] + params["b"]

    w = np.arange(3 * N * 2, dtype=np.float32).reshape(3, N, 2)
    b = np.array([1.0, -1.0], np.float32)
    found = phalanx.pmap(apply, in_axes=({"w": 1, "b": None}, 0))({"w": w, "b": b}, ROWS)
    expected = [ROWS[i] @ w[:, i] + b for i in range(N)]
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_a_leaf_of_in_axes_stands_for_the_whole_subtree_below_it():
    tree = {"a": ROWS, "b": (ROWS, [ROWS])}
    found = phalanx.pmap(
        lambda t, u: (t["a"] + t["b"][0] + t["b"][1][0], u["k"]), in_axes=(0, None)
    )(tree, {"k": 7.0})
    np.testing.assert_array_equal(found[0], 3 * ROWS)
    np.testing.assert_array_equal(found[1], [7.0] * N)


def test_in_axes_may_be_a_list_of_entries():
    found = phalanx.pmap(lambda x, y: x * y, in_axes=[0, None])(ROWS, 2.0)
    np.testing.assert_array_equal(found, 2 * ROWS)


def test_out_axes_may_be_a_dict_of_positions():
    found = phalanx.pmap(lambda x: {"a": x, "b": (x, x)}, out_axes={"a": 0, "b": (1, 0)})(ROWS)
    np.testing.assert_array_equal(found["a"], ROWS)
    np.testing.assert_array_equal(found["b"][0], ROWS.T)
    np.testing.assert_array_equal(found["b"][1], ROWS)


@pytest.mark.parametrize("into", [0, 1, 2, -1])
@pytest.mark.parametrize("out", [0, 1, 2, -1, -2])
def test_any_position_in_and_out_and_negative_ones_count_from_the_end(into, out):
    lanes = np.arange(N * 6, dtype=np.float32).reshape(N, 2, 3)
    found = phalanx.pmap(lambda x: -x, in_axes=into, out_axes=out)(np.moveaxis(lanes, 0, into))
    np.testing.assert_array_equal(found, np.moveaxis(-lanes, 0, out))


def test_a_prefix_error_of_in_axes_names_the_path():
    expected = (
        r"pytree structure error: different lengths of tuple at key path pmap in_axes\[0\]\[0\]"
    )
    with pytest.raises(TreeError, match=expected):
        phalanx.pmap(lambda t: t, in_axes=(((0, 0),),))(((ROWS, ROWS, ROWS),))


def test_a_prefix_error_of_out_axes_names_the_path():
    with pytest.raises(ValueError, match=r"at key path pmap out_axes\['a'\]"):
        phalanx.pmap(lambda x: {"a": (x, x)}, out_axes={"a": (0, 0, 0)})(ROWS)


def test_a_position_that_the_array_does_not_have_is_an_error():
    with pytest.raises(ValueError, match="x has no axis 2"):
        phalanx.pmap(lambda x: x, in_axes=2)(ROWS)


# ---- keywords -----------------------------------------------------------------------------------


def test_keyword_arguments_are_mapped_over_axis_0_whatever_in_axes_says():
    found = phalanx.pmap(lambda x, y: x * y, in_axes=None)(10.0, y=np.arange(N))
    np.testing.assert_array_equal(found, 10.0 * np.arange(N))


def test_a_mismatch_of_sizes_lists_every_argument_and_speaks_of_keywords():
    with pytest.raises(AxisSizeError) as e:
        phalanx.pmap(lambda x, t, y: x)(ROWS, {"k": np.ones((3, N))}, y=np.ones(5))
    for part in ("x has size 4", "t['k'] has size 3", "y has size 5"):
        assert part in str(e.value)
    assert "each argument passed by keyword is mapped" in str(e.value)


# ---- unmapped arguments and sizes ---------------------------------------------------------------


def test_arguments_with_in_axes_none_arrive_whole_in_every_call():
    f = phalanx.pmap(lambda x, scale, shift: x * scale + shift, in_axes=(0, None, None))
    for scale, shift in ((2, np.float32(1)), (3.0, jnp.array([1.0, 2.0, 3.0])), (4, 5), (2, 0.5)):
        np.testing.assert_allclose(f(ROWS, scale, shift), ROWS * scale + np.asarray(shift))


def test_an_unmapped_argument_has_its_full_shape_inside():
    seen = []
    phalanx.pmap(lambda x, w: seen.append((x.shape, w.shape)) or x, in_axes=(0, None))(ROWS, ROWS)
    assert seen == [((3,), (N, 3))]


def test_without_a_mapped_argument_or_axis_size_there_is_an_error():
    with pytest.raises(AxisSizeError, match="axis_size"):
        phalanx.pmap(lambda x: x, in_axes=None)(1.0)


def test_axis_size_tells_the_size_where_no_argument_does():
    found = phalanx.pmap(lambda: lax.axis_index("i"), axis_name="i", axis_size=N)()
    np.testing.assert_array_equal(found, range(N))
    found = phalanx.pmap(lambda x: x + 1, in_axes=None, axis_size=N)(1)
    np.testing.assert_array_equal(found, [2] * N)


def test_axis_size_is_checked_against_the_data():
    with pytest.raises(AxisSizeError, match="axis_size is 3"):
        phalanx.pmap(lambda x: x, axis_size=3)(ROWS)


# ---- out_axes=None ------------------------------------------------------------------------------


def test_out_axes_none_gives_one_value_without_the_axis():
    both = phalanx.pmap(lambda x: (lax.psum(x, "i"), x), axis_name="i", out_axes=(None, 0))
    total, rows = both(ROWS)
    assert total.shape == (3,) and total.is_fully_replicated
    np.testing.assert_allclose(total, ROWS.sum(0))
    np.testing.assert_array_equal(rows, ROWS)


@pytest.mark.parametrize(
    "agreeing",
    [
        lambda x: lax.pmean(x, "i"),
        lambda x: lax.pmax(x, "i") * 2.0,
        lambda x: lax.all_gather(x, "i"),
        lambda x: lax.pbroadcast(x, "i", 2),
        lambda x: jnp.sin(lax.psum(x * lax.axis_index("i"), "i")),
        lambda x: phalanx.jit(lambda y: lax.pmin(y, "i"))(x),
        lambda x: jnp.zeros(3),
    ],
)
def test_reductions_and_what_follows_them_agree_between_lanes(agreeing):
    found = phalanx.pmap(agreeing, axis_name="i", out_axes=None)(ROWS)
    np.testing.assert_allclose(found, phalanx.vmap(agreeing, axis_name="i")(ROWS)[0], rtol=1e-6)


@pytest.mark.parametrize(
    "differing",
    [
        lambda x: x,
        lambda x: lax.psum(x, "i") + x,
        lambda x: lax.axis_index("i"),
        lambda x: lax.ppermute(lax.psum(x, "i"), "i", [(0, 1)]),
        lambda x: lax.psum(x, "i", axis_index_groups=[[0, 1], [2, 3]]),
        lambda x: phalanx.jit(lambda y: y * 2)(x),
    ],
)
def test_a_result_that_may_differ_between_lanes_is_refused(differing):
    with pytest.raises(ReplicationError, match="differs between lanes of 'i'"):
        phalanx.pmap(differing, axis_name="i", out_axes=None)(ROWS)


def test_a_shared_result_shares_its_cotangent_over_the_lanes():
    def total(mapped, x):
        return mapped(lambda r: lax.psum(jnp.sin(r), "i"), axis_name="i", out_axes=None)(x).sum()

    found = phalanx.grad(functools.partial(total, phalanx.pmap))(ROWS)
    np.testing.assert_allclose(found, np.cos(ROWS), rtol=1e-5)
    np.testing.assert_allclose(
        found, phalanx.grad(functools.partial(total, phalanx.vmap))(ROWS), rtol=1e-5
    )


# ---- constants, and devices ---------------------------------------------------------------------


def test_a_python_constant_becomes_a_full_array_on_the_devices_in_order(several):
    order = several[::-1]
    found = phalanx.pmap(lambda x: (3, x), devices=order)(np.arange(len(order)))[0]
    np.testing.assert_array_equal(found, [3] * len(order))
    assert found.dtype == np.int32
    assert [s.device for s in found.addressable_shards] == order


def test_a_python_constant_is_full_with_lanes_too():
    np.testing.assert_array_equal(phalanx.pmap(lambda x: 3)(ROWS), [3] * N)


def test_a_python_constant_with_out_axes_none_is_an_array():
    found = phalanx.pmap(lambda x: 2.5, out_axes=None)(ROWS)
    assert isinstance(found, phalanx.Array)
    assert found.shape == () and found.dtype == np.float32 and float(found) == 2.5


def test_fewer_elements_than_devices_use_the_first_devices(several):
    found = phalanx.pmap(lambda x: x)(np.arange(2))
    assert [s.device for s in found.addressable_shards] == several[:2]


def test_an_axis_as_long_as_there_are_devices_uses_them_all_in_order():
    devices = phalanx.devices()
    found = phalanx.pmap(lambda x: 2 * x)(np.arange(len(devices)))
    assert [s.device for s in found.addressable_shards] == devices
    np.testing.assert_array_equal(found, 2 * np.arange(len(devices)))


def test_more_elements_than_devices_are_lanes():
    n = phalanx.device_count() * 2 + 1
    found = phalanx.pmap(lambda x: x - lax.pmean(x, "i"), axis_name="i")(np.arange(float(n)))
    np.testing.assert_allclose(found, np.arange(n) - (n - 1) / 2, atol=1e-5)


def test_explicit_devices_are_exactly_the_ones_used(several):
    chosen = [several[-1], several[0]]
    found = phalanx.pmap(lambda x: x, devices=chosen)(np.arange(2.0))
    assert [s.device for s in found.addressable_shards] == chosen
    found = phalanx.pmap(lambda x: lax.psum(x, "i"), axis_name="i", devices=chosen[:1])(ROWS)
    assert found.devices() == {chosen[0]}
    np.testing.assert_allclose(found, [ROWS.sum(0)] * N)


# ---- large trees, static arguments, what carries over -------------------------------------------


def test_one_argument_may_be_a_tree_of_500_leaves():
    tree = {f"k{i:03}": np.full((N, 1), i, np.float32) for i in range(500)}
    f = phalanx.pmap(lambda t: phalanx.tree.map(lambda x: x, t) | {"sum": sum(t.values())})
    found = f(tree)
    assert len(found) == 501
    np.testing.assert_array_equal(found["sum"], np.full((N, 1), 500 * 499 / 2))
    np.testing.assert_array_equal(found["k499"], tree["k499"])


def test_a_method_may_have_a_static_self():
    class Model:
        def __init__(self, scale):
            self.scale = scale

        @functools.partial(phalanx.pmap, static_broadcasted_argnums=0)
        def apply(self, x):
            return self.scale * x

    np.testing.assert_array_equal(Model(2.0).apply(ROWS), 2 * ROWS)
    np.testing.assert_array_equal(Model(3.0).apply(ROWS), 3 * ROWS)


def test_a_static_argument_may_be_a_callable_and_stand_anywhere():
    f = phalanx.pmap(
        lambda x, fun, y: fun(x) + y, in_axes=(0, None, None), static_broadcasted_argnums=1
    )
    np.testing.assert_allclose(f(ROWS, jnp.square, 1.0), ROWS**2 + 1)
    np.testing.assert_allclose(f(ROWS, jnp.negative, 1.0), 1 - ROWS)


def test_a_static_argument_is_a_python_value_inside():
    f = phalanx.pmap(lambda n, x: [x] * n, static_broadcasted_argnums=0)
    assert len(f(2, ROWS)) == 2
    assert len(f(3, ROWS)) == 3


def test_a_static_argument_must_be_hashable():
    with pytest.raises(ValueError, match="Non-hashable static arguments are not supported"):
        phalanx.pmap(lambda n, x: x, static_broadcasted_argnums=0)([1], ROWS)


def test_name_documentation_and_signature_carry_over():
    def step(params, *, rate: float = 0.1):
        """One step."""

    mapped = phalanx.pmap(step)
    assert mapped.__wrapped__ is step
    assert mapped.__name__ == "step" and mapped.__doc__ == "One step."
    assert inspect.signature(mapped) == inspect.signature(step)


def test_pmap_without_a_function_is_a_decorator():
    @phalanx.pmap(axis_name="i", out_axes=None)
    def total(x):
        return lax.psum(x, "i")

    np.testing.assert_allclose(total(ROWS), ROWS.sum(0))
