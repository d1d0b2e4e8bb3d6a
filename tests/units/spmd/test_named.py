"""Named shardings, with integers as devices."""

import copy
import pickle

import numpy as np
import pytest

from phalanx import errors
from phalanx.sharding import Chunked, NoSharding, Replicated, ShardedAxis, ShardingSpec
from phalanx.spmd.mesh import AbstractMesh, AxisType, Mesh
from phalanx.spmd.named import NamedSharding, P, PartitionSpec, PmapSharding
from phalanx.spmd.sharding import Sharding

MESH = Mesh(np.arange(8).reshape(2, 4), ("data", "model"))


def test_partition_spec():
    assert P is PartitionSpec and P("a", None) == ("a", None) != P("a")
    assert P(("a",), ["b", "c"]).layout == (("a",), ("b", "c"))
    assert P(None, "a").layout == ((), ("a",)) and P((), "a") == P(None, "a")
    tail = ("b",)
    assert P("a") + P("b") == P("a") + tail == P("a", "b") and tail + P("a") == P("b", "a")
    assert P("a", P.UNCONSTRAINED).open_layout == (("a",), None)
    for spec in (P("a", None, ("b", "c")), P(None, P.UNCONSTRAINED)):
        assert (
            P.of(spec.open_layout)
            == spec
            == pickle.loads(pickle.dumps(spec))
            == eval(repr(spec), {"P": P, "UNCONSTRAINED": P.UNCONSTRAINED})
        )
    with pytest.raises(TypeError, match="got 3"):
        P(3)


def test_a_named_sharding_is_one_object_with_a_plain_form():
    rows = NamedSharding(MESH, P("data"))
    assert rows is NamedSharding(MESH, P("data")) and rows.plain is Sharding(range(8), (2,))
    whole_second = NamedSharding(MESH, P("data", None))
    assert rows != whole_second and rows.plain is whole_second.plain
    assert rows.is_equivalent_to(whole_second, 2) and rows.mesh is MESH
    assert rows == copy.deepcopy(rows) == pickle.loads(pickle.dumps(rows))
    assert rows.update(spec=P(None, "data")) is NamedSharding(MESH, P(None, "data"))
    assert NamedSharding(MESH, P(("data", "model"))).plain is Sharding(range(8), (8,))
    columns = NamedSharding(MESH, P(None, "model"))
    assert columns.tiles == (1, 4) and columns.assignment == (0, 4, 1, 5, 2, 6, 3, 7)
    assert columns.shard_shape((3, 8)) == (3, 2)
    assert NamedSharding(MESH, P()).is_fully_replicated
    assert repr(columns) == "NamedSharding(mesh=Mesh('data': 2, 'model': 4), spec=P(None, 'model'))"


@pytest.mark.parametrize(
    "spec, shape, message",
    [
        (P(None, "model"), (8,), "2 entries, .* has 1 dimension;"),
        (P("one"), (), "1 entry, .* has 0 dimensions;"),
        (P(None, P.UNCONSTRAINED), (8,), "2 entries"),
        (P("model"), (6, 8), "'model' of size 4 does not divide dimension 0, .* 6. Make that size "
         "4 or 8, or split it over 'data', or leave"),
        (P("data", "model"), (2, 3), "divide dimension 1, whose size is 3. Make that size 4, or l"),
        (P(("data", "model")), (13,), "'data' of size 2 and 'model' of size 4, 8 parts, do not "
         "divide dimension 0, whose size is 13. Make that size 8 or 16, or leave"),
    ],
)  # fmt: skip
def test_shapes_that_do_not_fit_are_refused(spec, shape, message):
    sharding = NamedSharding(Mesh(MESH.devices[..., None], ("data", "model", "one")), spec)
    for ask in (sharding.shard_shape, sharding.devices_indices_map, sharding.check_asked):
        with pytest.raises(ValueError, match=message):
            ask(shape)


@pytest.mark.parametrize(
    "spec, shape",
    [(P(None), ()), (P(None, None), ()), (P(None, None), (8,)), (P("data", None), (8,))],
)
def test_none_beyond_the_dimensions_cuts_nothing_and_may_not_be_asked_for(spec, shape):
    long, fitting = NamedSharding(MESH, spec), NamedSharding(MESH, P(*spec[: len(shape)]))
    assert long.shard_shape(shape) == fitting.shard_shape(shape)
    assert long.devices_indices_map(shape) == fitting.devices_indices_map(shape)
    here = long.addressable_devices_indices_map(shape)
    assert here == fitting.addressable_devices_indices_map(shape)
    fitting.check_asked(shape)
    typed = MESH.update(axis_types=(AxisType.Explicit,) * 2)
    for ask in (long.check_asked, NamedSharding(typed, spec).shard_shape):
        with pytest.raises(ValueError, match="give at most one entry for each"):
            ask(shape)


def test_only_a_constraint_leaves_a_dimension_open():
    open_rows = NamedSharding(MESH, P(P.UNCONSTRAINED, "model"))
    with pytest.raises(ValueError, match="can only constrain"):
        _ = open_rows.plain


@pytest.mark.parametrize("mesh", [AbstractMesh((), ()), Mesh(None, ())])
def test_over_an_empty_mesh_there_is_a_spec_and_no_layout(mesh):
    nowhere = NamedSharding(mesh, P(None))
    assert nowhere.spec == P(None) and nowhere.mesh == mesh and nowhere.is_fully_replicated
    assert nowhere.update(spec=P()) is NamedSharding(mesh, P())
    assert nowhere.shard_shape((2,)) == (2,)
    with pytest.raises(ValueError, match="has no devices"):
        _ = nowhere.plain
    with pytest.raises(ValueError, match="no axis 'x'"):
        NamedSharding(mesh, P("x"))


QUESTIONS_ABOUT_DEVICES = {
    "device_set": lambda s: s.device_set,
    "addressable_devices": lambda s: s.addressable_devices,
    "is_fully_addressable": lambda s: s.is_fully_addressable,
    "has_addressable_devices": lambda s: s.has_addressable_devices,
    "devices_indices_map": lambda s: s.devices_indices_map((2, 8)),
    "addressable_devices_indices_map": lambda s: s.addressable_devices_indices_map((2, 8)),
}


@pytest.mark.parametrize("question", QUESTIONS_ABOUT_DEVICES.values(), ids=QUESTIONS_ABOUT_DEVICES)
def test_over_a_mesh_without_devices_none_are_told(question):
    rows = NamedSharding(AbstractMesh((2, 4), ("data", "model")), P("data"))
    with pytest.raises(errors.NoDevices, match="has names and sizes alone"):
        question(rows)
    assert rows.num_devices == 8 and rows.shard_shape((2, 8)) == (1, 8)
    assert not rows.is_fully_replicated and not rows.is_over("abcdefgh")
    question(rows.update(mesh=MESH))


def test_a_sharding_is_over_its_devices_in_whatever_order():
    rows = NamedSharding(MESH, P("data"))
    assert rows.is_over(range(8)) and rows.is_over(reversed(range(8)))
    assert not rows.is_over(range(7)) and not rows.is_over(range(9))


def test_lanes_may_be_uneven():
    lanes = PmapSharding(MESH, P(("data", "model")))
    assert isinstance(lanes, NamedSharding) and lanes != NamedSharding(lanes.mesh, lanes.spec)
    assert lanes.shard_shape((13, 2)) == (2, 2)
    assert lanes.devices_indices_map((13,))[6] == (slice(12, 13),)


def test_lanes_tell_devices_in_a_row_and_what_follows_each_axis():
    lanes = PmapSharding(MESH, P(None, "model"))
    assert isinstance(lanes.devices, np.ndarray) and lanes.devices.shape == (8,)
    assert list(lanes.devices.flat) == [*range(8)]
    assert lanes.sharding_spec == ShardingSpec(
        sharding=(NoSharding(), Chunked((4,))), mesh_mapping=(Replicated(2), ShardedAxis(0))
    )
    both = PmapSharding(MESH, P("model", "data")).sharding_spec
    assert both.sharding == (Chunked((4,)), Chunked((2,)))
    assert both.mesh_mapping == (ShardedAxis(1), ShardedAxis(0))
    joined = PmapSharding(MESH, P(("data", "model"))).sharding_spec
    assert joined == ((Chunked((2, 4)),), (ShardedAxis(0), ShardedAxis(1)))
    assert not [a for a in joined.mesh_mapping if isinstance(a, Replicated)]
    assert PmapSharding(MESH, P()).sharding_spec == ((), (Replicated(2), Replicated(4)))


@pytest.mark.parametrize(
    "spec, message",
    [
        (P("modle"), "no axis 'modle' of .*, at .* Did you mean 'model'"),
        (P("model", "model"), "occurs more than once"),
    ],
)
def test_wrong_specs_are_refused(spec, message):
    with pytest.raises(ValueError, match=message):
        NamedSharding(MESH, spec)
    with pytest.raises(TypeError, match="needs a Mesh"):
        NamedSharding(MESH, ("data",))  # type: ignore[arg-type]


def test_sums_that_are_still_to_be_taken_are_a_part_of_specs():
    left = P("a", unreduced={"b"})
    assert left != P("a") and P("a") != left and left == P("a", unreduced=frozenset("b"))
    assert left != P("a", reduced={"b"}) and len({left, P("a"), P("a", unreduced={"b"})}) == 2
    assert (left.partitions, left.unreduced, left.reduced) == (("a",), {"b"}, set())
    assert pickle.loads(pickle.dumps(left)) == left == eval(repr(left), {"P": P})
    assert P("a", unreduced=set()) == P("a") == left.update(unreduced=set())
    assert left.update(partitions=(None, "a")) == P(None, "a", unreduced={"b"})
    assert left.with_layout(((), ("a",), ())) == P(None, "a", unreduced={"b"})


@pytest.mark.parametrize(
    "given, error, words",
    [
        ({"unreduced": "b"}, TypeError, "must be a set"),
        ({"unreduced": {None}}, TypeError, "must be a set"),
        ({"reduced": ["b"]}, TypeError, "must be a set"),
        ({"unreduced": {"a"}}, ValueError, "'a' twice"),
        ({"unreduced": {"b"}, "reduced": {"b"}}, ValueError, "'b' twice"),
    ],
)
def test_sums_that_specs_refuse(given, error, words):
    with pytest.raises(error, match=words):
        P("a", **given)
