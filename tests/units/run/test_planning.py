"""Which devices run a program, and how its inputs and outputs lie on them."""

import numpy as np
import pytest

import phalanx as ph
import phalanx.numpy as jnp
from phalanx import lax
from phalanx.base.errors import DevicesDiffer
from phalanx.run.array import Signature, default_sharding
from phalanx.run.planning import RequestedShardings, check_devices, constraints, make_plan
from phalanx.sharding import NamedSharding
from phalanx.sharding import PartitionSpec as P
from phalanx.spmd.sharding import Sharding

DEVICES = ph.devices()
X = np.ones((8, 4), np.float32)
ADD = ph.make_program(lambda x, y: x + y)(X, X)
pytestmark = pytest.mark.spmd
if len(DEVICES) < 3:
    pytest.skip("there is nothing to choose on fewer devices", allow_module_level=True)


def on(*numbers, tiles=(), committed=True):
    sharding = Sharding([DEVICES[i] for i in numbers], tiles)
    return sharding if committed else sharding.freed()


def planned(program, *shardings, places=None):
    planning = make_plan(program, shardings, places)
    return [DEVICES.index(d) for d in planning.plan.devices], planning.committed


@pytest.mark.parametrize(
    ("first", "second", "devices", "committed"),
    [
        (None, None, [0], False),
        (on(1), None, [1], True),
        (None, on(2), [2], True),
        (on(1, committed=False), None, [1], False),
        (on(0, 1, tiles=(2,)), None, [0, 1], True),
        (on(0, committed=False), on(2, 1, tiles=(2,)), [2, 1], True),
        (on(0, 1, tiles=(2,), committed=False), on(1), [1], True),
    ],
)
def test_inputs_that_were_placed_decide(first, second, devices, committed):
    free = default_sharding()
    assert planned(ADD, first or free, second or free) == (devices, committed)


@pytest.mark.parametrize(("ins", "outs"), [((on(2), None), (None,)), ((None, None), (on(2),))])
def test_what_is_said_decides_before_inputs(ins, outs):
    places = RequestedShardings(ins, outs)
    assert planned(ADD, default_sharding(), default_sharding(), places=places) == ([2], True)


def test_a_constraint_inside_says_so_too():
    said = on(2, 0, tiles=(2,))

    def f(x):
        return ph.jit(lambda x: lax.with_sharding_constraint(x, said))(x) + 1

    program = ph.make_program(f)(X)
    ((found, who),) = constraints(program)
    assert found is said and "with_sharding_constraint at test_planning.py" in who
    assert planned(program, default_sharding()) == ([2, 0], True)
    assert [*constraints(ADD)] == []


def test_what_is_known_of_layouts_is_told_and_the_rest_is_open():
    plan = make_plan(ADD, [on(0, 1, tiles=(2,)), default_sharding()]).plan
    assert [n for _, n in plan.axes] == [2]
    assert plan.in_specs == (P(plan.axes[0][0]), None)
    assert plan.out_specs == (None,)
    places = RequestedShardings((None, None), (on(0, 1, tiles=(1, 2)),))
    plan = make_plan(ADD, [on(0, 1, tiles=(2,)), default_sharding()], places).plan
    assert plan.out_specs == (P(None, plan.axes[0][0]),)


def test_meshes_of_the_users_are_the_axes():
    mesh = ph.make_mesh((1, 3), ("a", "b"), devices=DEVICES[:3])
    rows = NamedSharding(mesh, P(None, "b"))
    x = np.ones((2, 3), np.float32)
    program = ph.make_program(lambda x: x + 1)(x)
    plan = make_plan(program, [rows]).plan
    assert [n for _, n in plan.axes if n > 1] == [3]
    assert plan.devices == tuple(DEVICES[:3])


CONFLICTS = {
    "two inputs": ((on(0), on(1)), None),
    "an input beside many": ((on(0, 1, tiles=(2,)), on(2)), None),
    "in and out": (
        (default_sharding(), default_sharding()), RequestedShardings((on(0), None), (on(1),)),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CONFLICTS)
def test_devices_that_differ_are_told(name):
    shardings, places = CONFLICTS[name]
    sigs = [Signature.of(t, s) for t, s in zip(ADD.input_types, shardings, strict=True)]
    places = places or RequestedShardings.anywhere(ADD)
    with pytest.raises(DevicesDiffer, match=r"different devices.*device_put"):
        check_devices(ADD, sigs, places, "x{}".format)


def test_inputs_on_some_of_the_devices_are_brought_to_all():
    sigs = [
        Signature.of(t, s)
        for t, s in zip(ADD.input_types, (on(0, 1, tiles=(2,)), on(1)), strict=True)
    ]
    check_devices(ADD, sigs, RequestedShardings.anywhere(ADD), "x{}".format)
    total = ph.jit(jnp.add)(ph.device_put(X, sigs[0].sharding), ph.device_put(X, DEVICES[1]))
    np.testing.assert_array_equal(total, 2 * X)
