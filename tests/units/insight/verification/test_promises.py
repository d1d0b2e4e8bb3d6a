"""``verify``: what is said to be the same on all devices, and is not."""

import numpy as np
import pytest

import phalanx
import phalanx.numpy as jnp
from phalanx import NamedSharding, P, lax, random
from phalanx.insight.verification.promises import copies
from phalanx.insight.verification.reference import host_value
from tests.units.insight.verification.planted import lost, rule, twice
from tests.units.insight.verification.test_verify import line_of

pytestmark = pytest.mark.skipif(phalanx.device_count() < 8, reason="needs 8 devices")
X = np.random.default_rng(0).normal(size=(8, 4)).astype("f")


def mesh():
    return phalanx.make_mesh((8,), ("i",))


def unchecked(f, grid=None, along="i"):
    """``f`` over blocks; nobody checks that its results are the same, as out_specs say."""
    grid = mesh() if grid is None else grid
    inside = phalanx.shard_map(f, mesh=grid, in_specs=P(along), out_specs=P(), check_vma=False)
    return phalanx.jit(inside)


def of_each(x):
    y = x * 2
    return jnp.sum(y)  # not reduced


def own_noise(x):
    key = random.fold_in(random.key(0), lax.axis_index("i"))  # here
    return lax.pmean(x, "i") + random.normal(key, x.shape)


def own_slope(x):
    w = jnp.ones(4)

    def step(w, _):
        slope = phalanx.grad(lambda w: jnp.mean((x @ w) ** 2))(w)  # here
        return w - 0.1 * slope, lax.pmean(slope.sum(), "i")

    return lax.scan(step, w, None, length=3)[0]


def own_sign(x):
    return jnp.sum(x) > 0  # here


@pytest.mark.parametrize(
    ("lane", "text"), [(of_each, "x * 2"), (own_noise, "# here"), (own_sign, "# here")]
)
def test_what_devices_have_for_themselves_is_found_at_its_line(lane, text):
    report = phalanx.verify(unchecked(lane))(X)
    assert not report.agrees
    assert report.line == line_of(lane, text), report.verdict
    assert "result is not the same along 'i'" in report.verdict
    facts = report["not the same"].as_json()["facts"]
    (other,) = [name for name in facts if name.startswith("at ") and name != "at 0"]
    assert facts[other] != facts["at 0"]


def test_of_the_results_that_one_is_named_that_is_not_the_same():
    report = phalanx.verify(unchecked(lambda x: (lax.psum(x, "i"), {"own": x})))(X)
    assert report.verdict.startswith("result[1]['own'] is not the same along 'i'")


def test_what_a_loop_keeps_for_each_device():
    report = phalanx.verify(unchecked(own_slope))(X)
    assert not report.agrees
    assert "result is not the same along 'i'" in report.verdict


def test_the_axis_along_which_it_differs_is_named():
    grid = phalanx.make_mesh((4, 2), ("a", "b"))
    f = unchecked(lambda x: lax.psum(jnp.sum(x), "a"), grid=grid, along=("a", "b"))
    report = phalanx.verify(f)(X)
    assert "is not the same along 'b'" in report.verdict
    f = unchecked(jnp.sum, grid=grid, along=("a", "b"))
    report = phalanx.verify(f)(X)
    assert "is not the same along 'a' and 'b'" in report.verdict


def in_another_order(x):
    """A sum that each device takes in an order of its own."""
    ring = [(k, (k + 1) % 8) for k in range(8)]

    def add(_, state):
        total, x = state
        x = lax.ppermute(x, "i", ring)
        return total + x, x

    return lax.fori_loop(0, 7, add, (x, x))[0]


def test_rounding_between_devices_breaks_no_promise():
    report = phalanx.verify(unchecked(in_another_order))(X)
    assert report.agrees, report.verdict
    report = phalanx.verify(unchecked(lambda x: jnp.floor(in_another_order(x) / 3 * 1e6)))(X)
    assert report.agrees, report.verdict
    report = phalanx.verify(unchecked(lambda x: jnp.full(3, jnp.nan) * lax.psum(x[0, 0], "i")))(X)
    assert report.agrees, report.verdict


def of_parts_that_differ():
    parts = [phalanx.device_put(X * k, d) for k, d in enumerate(phalanx.devices()[:8])]
    everywhere = NamedSharding(mesh(), P())
    return phalanx.make_array_from_single_device_arrays(X.shape, everywhere, parts)


def test_an_argument_that_is_not_one_array():
    report = phalanx.verify(phalanx.jit(lambda weights: weights @ weights.T))(
        of_parts_that_differ()
    )
    assert not report.agrees
    assert report.line is None
    assert "weights is not one array" in report.verdict


def test_copies_of_a_result_are_compared():
    def block(x):
        y = x - 1
        return lax.psum(y, "i")  # here

    x = np.ones((8, 4), "f")
    x[0] = 5  # the sum is what the first device has
    f = phalanx.jit(phalanx.shard_map(block, mesh=mesh(), in_specs=P("i"), out_specs=P()))
    with rule("psum", "lower", lost)():
        report = phalanx.verify(f)(x)
    assert not report.agrees
    assert report.line == line_of(block, "# here"), report.verdict


def test_the_advice_for_blocks_is_not_that_for_lanes():
    def block(x):
        return lax.cond(
            lax.pmax(x[0, 0], "i") > -9, lambda x: lax.pmean(x, "i") + x, jnp.sin, x
        )  # here

    f = phalanx.jit(phalanx.shard_map(block, mesh=mesh(), in_specs=P("i"), out_specs=P("i")))
    with rule("psum", "lower", twice)():
        report = phalanx.verify(f)(X)
    assert report.line == line_of(block, "lax.cond"), report.verdict
    assert "outside of the mapped function" in report.verdict


def test_copies_are_those_that_differ():
    first, *others = copies(of_parts_that_differ())
    assert first[0] is None
    np.testing.assert_array_equal(first[1], 0 * X)
    assert [device for device, _ in others] == phalanx.devices()[1:8]
    np.testing.assert_array_equal([x for _, x in others], [X * k for k in range(1, 8)])
    keys = phalanx.device_put(random.split(random.key(0), 3), NamedSharding(mesh(), P()))
    ((_, words),) = copies(keys)
    np.testing.assert_array_equal(words, host_value(keys))
