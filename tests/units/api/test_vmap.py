"""vmap: positions of the mapped axis in trees of arguments and results."""

import inspect

import numpy as np
import pytest

import phalanx
import phalanx.numpy as jnp
from phalanx import lax
from phalanx.errors import AxisSizeError, TreeError

X = np.arange(6, dtype=np.float32).reshape(2, 3)


@pytest.mark.parametrize("into", [0, 1, 2, -1, -3])
@pytest.mark.parametrize("out", [0, 1, 2, -1])
def test_positions_in_and_out(into, out):
    lanes = np.arange(2 * 3 * 4, dtype=np.float32).reshape(2, 3, 4)
    found = phalanx.vmap(lambda x: x + 1, in_axes=into, out_axes=out)(np.moveaxis(lanes, 0, into))
    np.testing.assert_array_equal(found, np.moveaxis(lanes + 1, 0, out))


def test_trees_of_positions():
    def f(p, x):
        return {"y": p["w"] * x + p["b"], "w": p["w"]}

    found = phalanx.vmap(f, in_axes=({"w": 1, "b": None}, None), out_axes={"y": 0, "w": -1})(
        {"w": X, "b": 10.0}, 2.0
    )
    np.testing.assert_array_equal(found["y"], 2 * X.T + 10)
    np.testing.assert_array_equal(found["w"], X)


def test_a_prefix_covers_a_subtree_and_none_leaves_it_alone():
    found = phalanx.vmap(lambda a, b: a[0] + b["k"].sum(), in_axes=(0, None))((X, X), {"k": X})
    np.testing.assert_allclose(found, X + 15)


def test_unmapped_results_are_repeated_or_returned_once():
    np.testing.assert_array_equal(phalanx.vmap(lambda x: 3.0)(X), [3, 3])
    once = phalanx.vmap(lambda x, y: (x, y * 2), in_axes=(0, None), out_axes=(0, None))(X, 5.0)
    assert once[1].shape == () and float(once[1]) == 10
    total = phalanx.vmap(lambda x: lax.psum(x, "i"), axis_name="i", out_axes=None)(X)
    np.testing.assert_allclose(total, X.sum(0))


def test_keywords_are_mapped_over_axis_0():
    found = phalanx.vmap(lambda x, y: x * y, in_axes=None)(2.0, y=np.arange(3.0))
    np.testing.assert_array_equal(found, [0, 2, 4])


def test_axis_size_where_no_argument_tells():
    np.testing.assert_array_equal(
        phalanx.vmap(lambda: lax.axis_index("i"), axis_name="i", axis_size=3)(), [0, 1, 2]
    )
    np.testing.assert_array_equal(phalanx.vmap(lambda x: x, in_axes=None, axis_size=2)(1), [1, 1])


@pytest.mark.parametrize(
    ("error", "call"),
    [
        (AxisSizeError, lambda: phalanx.vmap(lambda x, y: x)(X, X.T)),
        (AxisSizeError, lambda: phalanx.vmap(lambda x: x, in_axes=None)(X)),
        (AxisSizeError, lambda: phalanx.vmap(lambda x: x, axis_size=5)(X)),
        (TreeError, lambda: phalanx.vmap(lambda x: x, in_axes=(0, 0))(X)),
        (TreeError, lambda: phalanx.vmap(lambda x: x, in_axes=((0, 0),))(X)),
        (TreeError, lambda: phalanx.vmap(lambda x: (x, x), out_axes=(0, 0, 0))(X)),
        (ValueError, lambda: phalanx.vmap(lambda x: x, in_axes=2)(X)),
        (ValueError, lambda: phalanx.vmap(lambda x: x, out_axes=3)(X)),
        (ValueError, lambda: phalanx.vmap(lambda x: x, out_axes=None)(X)),
        (ValueError, lambda: phalanx.vmap(lambda x: x)(1.0)),
        (TypeError, lambda: phalanx.vmap(lambda x: x, in_axes=0.5)(X)),
        (TypeError, lambda: phalanx.vmap(lambda x: x)("rows")),
        (TypeError, lambda: phalanx.vmap(X)),
    ],
)
def test_mistakes(error, call):
    with pytest.raises(error, match="vmap"):
        call()


def test_name_and_signature_carry_over():
    def f(x, *, y=1):
        """Doc."""

    mapped = phalanx.vmap(f)
    assert mapped.__name__ == "f" and mapped.__doc__ == "Doc." and mapped.__wrapped__ is f
    assert inspect.signature(mapped) == inspect.signature(f)


def test_what_all_examples_share_may_be_anything():
    f = phalanx.vmap(lambda f, x, how: f(x) if how == "up" else -f(x), in_axes=(None, 0, None))
    np.testing.assert_allclose(f(jnp.sin, jnp.arange(3.0), "up"), np.sin(np.arange(3)), rtol=1e-6)
    np.testing.assert_allclose(
        phalanx.jit(lambda x: f(jnp.cos, x, "down"))(jnp.arange(3.0)), -np.cos(np.arange(3)),
        rtol=1e-6,
    )  # fmt: skip
    with pytest.raises(TypeError, match="how is 'up' of type str"):
        phalanx.vmap(lambda x, how: x)(jnp.ones(3), "up")
