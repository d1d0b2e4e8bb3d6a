"""Meshes over devices, and the one that is meant where none is given."""

import asyncio
import threading

import numpy as np
import pytest

import phalanx
import phalanx.numpy as jnp
from phalanx import P
from phalanx.errors import DeviceError, NoMesh
from phalanx.experimental import maps, mesh_utils
from phalanx.sharding import (
    AbstractDevice,
    AbstractMesh,
    AxisType,
    Mesh,
    NamedSharding,
    use_abstract_mesh,
)

EXPLICIT = AxisType.Explicit

pytestmark = pytest.mark.spmd
COUNT = phalanx.device_count()


@pytest.fixture
def mesh():
    return phalanx.make_mesh((1, COUNT), ("data", "model"))


def test_a_mesh_takes_the_first_devices(mesh):
    assert list(mesh.flat) == phalanx.devices() == list(mesh.local_devices)
    assert mesh.device_ids.dtype == np.int64
    assert mesh.device_ids.tolist() == [[d.id for d in phalanx.devices()]]
    assert mesh.local_mesh is mesh and not mesh.is_multi_process
    assert phalanx.make_mesh((1,), ("i",)).flat == (phalanx.devices()[0],)
    backwards = phalanx.make_mesh((COUNT,), ("i",), devices=phalanx.devices()[::-1])
    assert list(backwards.flat) == phalanx.devices()[::-1]
    typed = phalanx.make_mesh((COUNT,), "i", (AxisType.Explicit,))
    assert typed.explicit_axes == ("i",)


def test_the_places_of_old_programs(mesh):
    assert maps.Mesh is Mesh is phalanx.experimental.maps.Mesh
    grid = mesh_utils.create_device_mesh((1, COUNT))
    assert Mesh(grid, ("data", "model")) is mesh
    with pytest.raises(DeviceError, match=r"are 3 devices, and a grid of shape \(1, 2\)"):
        mesh_utils.create_device_mesh((1, 2), devices=["a", "b", "c"])


def test_too_few_devices_and_too_few_names():
    with pytest.raises(DeviceError, match=rf"needs {3 * COUNT} devices, but there are {COUNT}"):
        phalanx.make_mesh((3, COUNT), ("x", "y"))
    with pytest.raises(ValueError, match="needs"):  # as the field has it
        phalanx.make_mesh((3, COUNT), ("x", "y"))
    with pytest.raises(ValueError, match="1 axis names"):
        phalanx.make_mesh((1, COUNT), ("x",))


def test_the_mesh_of_a_block(mesh):
    other = phalanx.make_mesh((1,), ("i",))
    assert phalanx.get_mesh().empty and phalanx.get_abstract_mesh().empty
    with phalanx.set_mesh(mesh):
        assert phalanx.get_mesh() is mesh and phalanx.get_abstract_mesh() == mesh.abstract_mesh
        with other:
            assert phalanx.get_mesh() is other
            with other, mesh:
                assert phalanx.get_mesh() is mesh
            assert phalanx.get_mesh() is other
            assert mesh(phalanx.get_mesh)() is mesh
        with phalanx.set_mesh(None):
            assert phalanx.get_mesh().empty
        assert phalanx.get_mesh() is mesh
    assert phalanx.get_mesh().empty
    with pytest.raises(TypeError, match="a Mesh or None is needed"):
        phalanx.set_mesh("data")


def test_a_mesh_of_a_block_with_other_types(mesh):
    explicit = mesh.abstract_mesh.update_axis_types(dict.fromkeys(mesh.axis_names, EXPLICIT))
    with phalanx.set_mesh(mesh):
        with use_abstract_mesh(explicit):
            assert phalanx.get_mesh().flat == mesh.flat
            assert phalanx.get_abstract_mesh() == explicit
        with use_abstract_mesh(AbstractMesh((), ())):
            assert phalanx.get_mesh().empty
        assert phalanx.get_mesh() is mesh
    with use_abstract_mesh(AbstractMesh((1, 1), ("i", "j"))):
        assert phalanx.get_mesh().flat == (phalanx.devices()[0],)
    with pytest.raises(TypeError, match="use_abstract_mesh: a mesh is needed, got 'data'"):
        use_abstract_mesh("data").__enter__()


@pytest.mark.parametrize("kind", [AxisType.Auto, EXPLICIT])
def test_functions_are_lowered_for_a_mesh_without_devices(kind):
    mesh = AbstractMesh((16, 4), ("data", "model"), (kind, kind))
    rows, columns = NamedSharding(mesh, P("data")), NamedSharding(mesh, P(None, "model"))
    x = phalanx.ShapeDtypeStruct((64, 8), "float32", sharding=rows)
    plain = phalanx.ShapeDtypeStruct((64, 8), "float32")

    def block(x):
        return phalanx.lax.psum(x, "data")

    by_device = phalanx.shard_map(block, mesh=mesh, in_specs=P("data"), out_specs=P())
    with use_abstract_mesh(mesh):
        set_around = phalanx.jit(jnp.sin, in_shardings=P("data")).trace(plain)
    traced = {
        "arguments": phalanx.jit(jnp.sin).trace(x),
        "in_shardings": phalanx.jit(jnp.sin, in_shardings=rows, out_shardings=columns).trace(plain),
        "shard_map": phalanx.jit(by_device).trace(plain),
        "the mesh that is set": set_around,
    }
    for name, one in traced.items():
        text = one.lower(lowering_platforms=("tpu",)).as_text()
        assert "mhlo.num_partitions = 64" in text and "=16" in text, name
    for one in ("arguments", "in_shardings"):
        with pytest.raises(NoMesh, match=r"sin: x: Named.* has no devices.*lowering_platforms"):
            traced[one].lower()
    with pytest.raises(NoMesh, match=r"has no devices, and there are .*lowering_platforms"):
        phalanx.jit(by_device)(np.ones((64, 8)))
    with pytest.raises(NoMesh, match="has no devices"):
        phalanx.jit(jnp.sin, in_shardings=rows)(np.ones((64, 8)))
    count = min(2, phalanx.device_count())
    there = phalanx.make_mesh((count,), ("data",), (kind,))
    few = NamedSharding(there.abstract_mesh, P("data"))
    placed = phalanx.device_put(np.ones((64, 8)), few.update(mesh=there))
    result = phalanx.jit(jnp.sin, in_shardings=few)(placed)  # over the devices of the argument
    assert result.sharding.is_equivalent_to(placed.sharding, 2)
    with pytest.raises(NoMesh, match=f"needs 64 devices, and what it is about lies on {count}"):
        phalanx.jit(jnp.sin, in_shardings=rows)(placed)


def test_a_mesh_without_devices_for_a_kind_of_them():
    of = AbstractDevice("TPU v5 lite", 1, "tpu")
    mesh = AbstractMesh((2,), ("x",), abstract_device=of)
    assert mesh.abstract_device is of and mesh != AbstractMesh((2,), ("x",)) and "v5" in repr(mesh)
    assert mesh.update_axis_types({"x": EXPLICIT}).abstract_device is of


def test_a_mesh_that_is_set_holds_in_its_thread_from_then_on(mesh):
    seen = []

    def run():
        phalanx.set_mesh(mesh)
        seen.append(phalanx.get_mesh())

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert seen == [mesh] and phalanx.get_mesh().empty


def test_one_mesh_in_tasks_that_overlap(mesh):
    async def task(mine, other):
        with mesh:
            mine.set()
            await other.wait()
            return phalanx.get_mesh()

    async def both():
        a, b = asyncio.Event(), asyncio.Event()
        return await asyncio.gather(task(a, b), task(b, a))

    assert asyncio.run(both()) == [mesh, mesh] and phalanx.get_mesh().empty


def test_what_was_traced_under_one_mesh_is_traced_anew_under_another(mesh):
    sizes = phalanx.jit(lambda x: x * phalanx.get_mesh().size)
    for _ in range(2):
        assert float(sizes(np.float32(1))) == 0
        with mesh:
            assert float(sizes(np.float32(1))) == COUNT


def test_meshes_in_generators_end_in_any_order():
    def holding(mesh):
        with mesh:
            yield

    devices = phalanx.devices()
    row, column = (phalanx.make_mesh((1,), (name,), devices=devices[:1]) for name in "rc")
    first, second = holding(row), holding(column)
    next(first), next(second)
    first.close()
    assert phalanx.get_mesh() is column
    second.close()
    assert phalanx.get_mesh().empty
