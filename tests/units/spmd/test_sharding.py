"""Shardings, with integers as devices."""

import itertools
import math

import numpy as np
import pytest

from phalanx.spmd.sharding import (
    Mesh,
    NamedSharding,
    P,
    PartitionSpec,
    Sharding,
    SingleDeviceSharding,
    axes_of,
    from_axes,
    prime_axes,
)


def test_equal_shardings_are_one_object():
    assert Sharding(range(8), (8,)) is Sharding(tuple(range(8)), [8, 1, 1])
    assert Sharding(range(8), (1, 1)) is Sharding(range(8))
    assert Sharding(range(4), (2,), (0, 1, 2, 3)) is Sharding(range(4), (2,))
    assert Sharding(range(4), (2,), (1, 0, 3, 2)) is Sharding(range(4), (2,))
    assert Sharding(range(4), (), (3, 1, 0, 2)) is Sharding(range(4))
    assert Sharding(range(4), (4,)) is not Sharding((1, 0, 2, 3), (4,))
    assert Sharding(range(4), (2,), (2, 3, 0, 1)) != Sharding(range(4), (2,))


def test_single_device_sharding_and_commitment():
    here = SingleDeviceSharding(0)
    assert here is Sharding([0]) and isinstance(here, SingleDeviceSharding)
    free = SingleDeviceSharding(0, committed=False)
    assert free != here and free.commit() is here and here.commit() is here
    assert not free.committed and here.committed
    assert Sharding(range(2), committed=False).committed
    assert here.is_fully_replicated and here.num_devices == 1
    assert repr(here) == "SingleDeviceSharding(device=0)"


def test_queries():
    s = Sharding(range(8), (2, 2))
    assert (s.copies, s.num_devices, s.device_set) == (2, 8, set(range(8)))
    assert not s.is_fully_replicated and Sharding(range(8)).is_fully_replicated
    assert s.is_fully_addressable and s.addressable_devices == set(range(8))
    assert s.shard_shape((4, 6, 3)) == (2, 3, 3)
    assert [s.tile_at(i) for i in range(8)] == [(0, 0)] * 2 + [(0, 1)] * 2 + [(1, 0)] * 2 + [
        (1, 1)
    ] * 2
    assert s.devices_indices_map((4, 6, 3))[5] == (slice(2, 4), slice(0, 3), slice(None))
    assert Sharding([7]).devices_indices_map(()) == {7: ()}


@pytest.mark.parametrize("tiles, order", [((2, 3), None), ((3,), None), ((6,), (5, 3, 1, 0, 2, 4))])
def test_shards_tile_the_array(tiles, order):
    s = Sharding("abcdef", tiles, order)
    x = np.arange(6 * 6).reshape(6, 6)
    seen = np.zeros_like(x)
    for device, index in s.devices_indices_map(x.shape).items():
        assert x[index].shape == s.shard_shape(x.shape)
        assert device in s.device_set
        seen[index] += 1
    assert (seen == s.copies).all()


def test_parts_that_do_not_divide_are_padded():
    s = Sharding(range(4), (4,))
    assert s.shard_shape((13, 2)) == (4, 2)
    assert s.padded_shape((13, 2)) == (16, 2)
    assert [i[0] for i in s.indices((13, 2))] == [
        slice(0, 4), slice(4, 8), slice(8, 12), slice(12, 13)
    ]  # fmt: skip
    assert [s.real_shape((9, 2), p) for p in range(4)] == [(3, 2), (3, 2), (3, 2), (0, 2)]


def test_wrong_shapes_are_refused():
    s = Sharding(range(4), (1, 4))
    with pytest.raises(ValueError, match="splits 2 dimensions"):
        s.shard_shape((4,))
    with pytest.raises(ValueError, match="does not divide 4 devices"):
        Sharding(range(4), (3,))
    with pytest.raises(ValueError, match="distinct"):
        Sharding((0, 0))
    with pytest.raises(ValueError, match="permutation"):
        Sharding(range(2), (2,), (0, 0))


def test_equivalence_ignores_the_order_of_devices():
    forward, backward = Sharding((0, 1), (2,)), Sharding((1, 0), (2,), (1, 0))
    assert forward != backward and forward.is_equivalent_to(backward, 1)
    assert not forward.is_equivalent_to(Sharding((1, 0), (2,)), 1)
    assert not forward.is_equivalent_to(Sharding((0, 2), (2,)), 1)


def test_mesh():
    mesh = Mesh(np.arange(8).reshape(2, 4), ("data", "model"))
    assert mesh.shape == {"data": 2, "model": 4} and mesh.size == 8
    assert mesh.axis_names == ("data", "model") and mesh.axis_sizes == (2, 4)
    assert mesh == Mesh(np.arange(8).reshape(2, 4), ["data", "model"])
    assert hash(mesh) == hash(Mesh(np.arange(8).reshape(2, 4), ["data", "model"]))
    assert mesh != Mesh(np.arange(8).reshape(2, 4), ("model", "data"))
    assert Mesh([0, 1], "i").axis_names == ("i",)
    assert repr(mesh) == "Mesh('data': 2, 'model': 4)"
    with pytest.raises(ValueError, match="2 dimensions"):
        Mesh(np.arange(8).reshape(2, 4), ("data",))
    with pytest.raises(ValueError, match="distinct"):
        Mesh(np.arange(4).reshape(2, 2), ("a", "a"))
    with pytest.raises(ValueError, match="more than once"):
        Mesh([0, 0], ("a",))


def test_partition_spec():
    assert P is PartitionSpec and P("a", None) == ("a", None)
    assert P(("a",), ["b", "c"]).dims == (("a",), ("b", "c"))
    assert P(None, "a").dims == ((), ("a",))
    with pytest.raises(TypeError, match="got 3"):
        P(3)


def test_named_sharding_normalises():
    mesh = Mesh(np.arange(8).reshape(2, 4), ("data", "model"))
    rows = NamedSharding(mesh, P("data"))
    assert rows == Sharding(range(8), (2,)) and Sharding(range(8), (2,)) == rows
    assert hash(rows) == hash(rows.plain) and rows.plain is Sharding(range(8), (2,))
    assert rows == NamedSharding(mesh, P("data", None)) and rows.mesh is mesh
    assert NamedSharding(mesh, P(("data", "model"))) == Sharding(range(8), (8,))
    columns = NamedSharding(mesh, P(None, "model"))
    assert columns.tiles == (1, 4) and columns.assignment == (0, 4, 1, 5, 2, 6, 3, 7)
    assert columns.shard_shape((3, 8)) == (3, 2)
    assert NamedSharding(mesh, P()).is_fully_replicated
    with pytest.raises(ValueError, match="2 entries"):
        columns.shard_shape((8,))


@pytest.mark.parametrize(
    "spec, message",
    [
        (P("modle"), "no axis 'modle'. Did you mean 'model'"),
        (P("model", "model"), "more than one dimension"),
    ],
)
def test_wrong_specs_are_refused(spec, message):
    mesh = Mesh(np.arange(8).reshape(2, 4), ("data", "model"))
    with pytest.raises(ValueError, match=message):
        NamedSharding(mesh, spec)
    with pytest.raises(TypeError, match="needs a Mesh"):
        NamedSharding(mesh, ("data",))  # type: ignore[arg-type]


def _assignments(names, ndim):
    """Every way to deal mesh axes to dimensions, in every order."""
    for chosen in itertools.product(range(ndim + 1), repeat=len(names)):
        for order in itertools.permutations(range(len(names))):
            yield tuple(tuple(names[i] for i in order if chosen[i] == dim) for dim in range(ndim))


@pytest.mark.parametrize("sizes", [(2, 2, 2), (2, 3), (3, 2, 2)])
def test_axes_and_tiles_are_inverse(sizes):
    axes = tuple((f"m{i}", n) for i, n in enumerate(sizes))
    devices = tuple(range(math.prod(sizes)))
    for dims in set(_assignments([n for n, _ in axes], 2)):
        sharding = from_axes(devices, axes, dims)
        assert axes_of(sharding, 2, axes) == dims


def test_every_iota_tiling_has_prime_axes():
    for count in range(1, 33):
        for parts in (d for d in range(1, count + 1) if count % d == 0):
            s = Sharding(range(count), (parts,))
            axes = prime_axes(count, s)
            assert math.prod(n for _, n in axes) == count
            dims = axes_of(s, 1, axes)
            assert dims is not None and from_axes(range(count), axes, dims) is s


def test_inexpressible_shardings():
    axes = (("m0", 2), ("m1", 3))
    assert axes_of(Sharding(range(6), (3,)), 1, axes) is None
    assert axes_of(Sharding(range(6), (6,), (1, 0, 2, 3, 4, 5)), 1, axes) is None
    assert axes_of(Sharding(range(4), (4,)), 1, axes) is None
    assert axes_of(Sharding([9]), 3, ()) == ((), (), ())
    assert prime_axes(1) == ()
    odd = Sharding(range(6), (6,), (1, 0, 2, 3, 4, 5))
    assert prime_axes(6, odd) == (("m0", 2), ("m1", 3))
