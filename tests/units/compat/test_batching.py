"""Classes of trees that say which of their leaves have lanes, as under jax."""

import dataclasses

import jax
import jax.numpy as peer_numpy
import pytest
from jax.interpreters import batching as peer_batching

import phalanx
import phalanx.numpy as jnp
from phalanx.compat.interpreters import batching
from phalanx.errors import AxisSizeError


@dataclasses.dataclass
class Bodies:
    """Rows of what all share: ``rows`` have lanes, ``table`` has none."""

    rows: object
    table: object


for library in (phalanx, jax):
    library.tree_util.register_dataclass(Bodies, ["rows", "table"], [])


def of_lane(part, _, bodies, axis):
    return Bodies(part(bodies.rows, axis), bodies.table)


def of_all(part, size, bodies, axis):
    return Bodies(part(size, bodies.rows, axis), bodies.table)


@pytest.fixture
def registered():
    arguments = Bodies, int, int, of_lane, of_all, None
    batching.register_vmappable(*arguments)
    peer_batching.register_vmappable(*arguments)
    yield
    batching.unregister_vmappable(Bodies)
    peer_batching.unregister_vmappable(Bodies)


def step(bodies, x):
    return Bodies(bodies.rows * x, bodies.table + 1.0), x + bodies.table.sum()


def run(library, numpy, mapped, axis):
    rows = numpy.arange(6.0).reshape(2, 3)
    bodies, x = Bodies(rows, numpy.ones(4)), numpy.arange(1.0, 1.0 + rows.shape[axis])
    out = mapped(step, in_axes=(axis, 0), out_axes=(axis, 0))(bodies, x)
    return [leaf.tolist() for leaf in library.tree.leaves(out)]


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("mapped", [phalanx.vmap, phalanx.pmap], ids=["vmap", "pmap"])
def test_leaves_have_lanes_as_their_class_says(registered, mapped, axis):
    expected = run(jax, peer_numpy, jax.vmap, axis)
    assert run(phalanx, jnp, mapped, axis) == expected


def test_other_trees_and_what_is_not_mapped_are_as_ever(registered):
    bodies = Bodies({"a": jnp.arange(3.0)}, jnp.ones(2))
    whole = phalanx.vmap(lambda b, x: b.rows["a"] * x, in_axes=(None, 0))(bodies, jnp.arange(2.0))
    assert whole.tolist() == [[0, 0, 0], [0, 1, 2]]
    pair = jnp.ones(3), 2 * jnp.ones(3)
    both = phalanx.vmap(lambda pair, b: pair[1] + b.rows["a"])(pair, bodies)
    assert both.tolist() == [2, 3, 4]


def test_a_class_of_which_nothing_is_said_has_lanes_in_all_leaves():
    with pytest.raises(AxisSizeError, match="inconsistent sizes"):
        phalanx.vmap(lambda b: b)(Bodies(jnp.ones(3), jnp.ones(2)))


def test_other_axes_than_integers_are_refused():
    with pytest.raises(NotImplementedError, match=r"register_vmappable\(Bodies\).*str"):
        batching.register_vmappable(Bodies, str, int, of_lane, of_all, None)
