"""Trees as vectors."""

import numpy as np
import pytest

import phalanx
import phalanx.numpy as jnp
from phalanx import tree
from phalanx.errors import ShapeError
from phalanx.flatten_util import ravel_pytree


def test_there_and_back():
    x = {"a": jnp.arange(3, dtype="int8"), "b": (jnp.ones((2, 1)), 2.0), "c": jnp.zeros((0, 4))}
    vector, unravel = ravel_pytree(x)
    assert vector.tolist() == [0, 1, 2, 1, 1, 2] and vector.dtype == np.float32
    back = unravel(vector)
    assert tree.structure(back) == tree.structure(x)
    for got, expected in zip(tree.leaves(back), tree.leaves(x), strict=True):
        assert got.shape == np.shape(expected) and got.dtype == jnp.asarray(expected).dtype
        np.testing.assert_array_equal(got, expected)
    with pytest.raises(TypeError, match="float32"):
        unravel(vector.astype(int))
    with pytest.raises(ShapeError, match="6"):
        unravel(vector[:5])


def test_trees_without_leaves_and_of_one():
    vector, unravel = ravel_pytree({"a": (), "b": None})
    assert vector.shape == (0,) and unravel(vector) == {"a": (), "b": None}
    vector, unravel = ravel_pytree(jnp.ones((2, 2), "bfloat16"))
    assert vector.dtype == jnp.bfloat16 and not vector.weak_type
    assert unravel(jnp.arange(4)).dtype == np.int32  # of one dtype: that of the vector
    with pytest.raises(TypeError, match="key"):
        ravel_pytree(phalanx.random.key(0))


def test_transformed():
    x = {"w": jnp.arange(6.0).reshape(2, 3), "b": jnp.ones(3)}
    vector, unravel = ravel_pytree(x)

    def loss(v):
        p = unravel(v)
        return jnp.sum(jnp.sin(p["w"]) @ p["b"])

    by_tree = phalanx.grad(lambda p: jnp.sum(jnp.sin(p["w"]) @ p["b"]))(x)
    np.testing.assert_allclose(phalanx.jit(phalanx.grad(loss))(vector), ravel_pytree(by_tree)[0])
    rows = phalanx.vmap(lambda p: ravel_pytree(p)[0])(tree.map(lambda v: jnp.stack([v, 2 * v]), x))
    np.testing.assert_array_equal(rows, jnp.stack([vector, 2 * vector]))
    assert unravel == ravel_pytree(x)[1] and hash(unravel) == hash(ravel_pytree(x)[1])
    assert unravel != ravel_pytree({"w": x["b"]})[1]


def test_vectors_are_as_weak_as_all_leaves_and_leaves_as_their_vector():
    strong = jnp.float32(1)
    for leaves, weak in (([1.0], True), ([1.0, 2.0], True), ([1], True), ([1.0, strong], False)):
        vector, unravel = ravel_pytree(leaves)
        assert vector.weak_type is weak
        assert [x.weak_type for x in unravel(vector)] == [weak] * len(leaves)
        assert not any(x.weak_type for x in unravel(vector.astype(vector.dtype)))
    for leaves in ([1, 2.0], [1.0, jnp.int32(1)], []):
        assert not ravel_pytree(leaves)[0].weak_type
