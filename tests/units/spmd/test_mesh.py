"""Meshes, with integers as devices."""

import copy
import pickle

import numpy as np
import pytest

from phalanx import errors
from phalanx.spmd.mesh import AbstractMesh, AxisType, Mesh


def test_mesh():
    mesh = Mesh(np.arange(8).reshape(2, 4), ("data", "model"))
    assert mesh.shape == {"data": 2, "model": 4} and mesh.size == 8
    assert mesh.axis_names == ("data", "model") and mesh.axis_sizes == (2, 4)
    assert mesh == Mesh(np.arange(8).reshape(2, 4), ["data", "model"])
    assert hash(mesh) == hash(Mesh(np.arange(8).reshape(2, 4), ["data", "model"]))
    assert mesh != Mesh(np.arange(8).reshape(2, 4), ("model", "data"))
    assert Mesh([0, 1], "i").axis_names == ("i",)
    assert str(mesh) == "Mesh('data': 2, 'model': 4)"
    assert repr(mesh) == "Mesh('data': 2, 'model': 4, devices=[[0, 1, 2, 3], [4, 5, 6, 7]])"
    assert repr(Mesh(range(65), "i")) == "Mesh('i': 65)"
    assert mesh.update(axis_names=("x", "y")).shape == {"x": 2, "y": 4}
    assert mesh.update(mesh.devices.T[:2], axis_types=(AxisType.Manual,) * 2).shape["model"] == 2
    with pytest.raises(ValueError, match="2 dimensions"):
        Mesh(np.arange(8).reshape(2, 4), ("data",))
    with pytest.raises(ValueError, match="distinct"):
        Mesh(np.arange(4).reshape(2, 2), ("a", "a"))
    with pytest.raises(ValueError, match="more than once"):
        Mesh([0, 0], ("a",))


def test_equal_meshes_are_one_object():
    mesh = Mesh([[0, 1], [2, 3]], ("x", "y"))
    assert mesh is Mesh(np.arange(4).reshape(2, 2), ["x", "y"])
    assert copy.deepcopy(mesh) is mesh is pickle.loads(pickle.dumps(mesh))
    others = [
        Mesh([[0, 1], [3, 2]], ("x", "y")), Mesh([[0, 1], [2, 3]], ("y", "x")),
        Mesh([[0, 1, 2, 3]], ("x", "y")), Mesh([[0, 1], [2, 3]], ("x", "y"), [AxisType.Auto] * 2),
        Mesh([[0, 1], [2, 3]], ("x", "y"), (AxisType.Auto, AxisType.Manual)),
    ]  # fmt: skip
    assert [other == mesh for other in others] == [False, False, False, True, False]


def test_types_of_axes():
    mesh = Mesh([[0, 1], [2, 3]], ("x", "y"), (AxisType.Explicit, AxisType.Auto))
    assert (mesh.explicit_axes, mesh.auto_axes, mesh.manual_axes) == (("x",), ("y",), ())
    manual = mesh.update_axis_types({"y": AxisType.Manual})
    assert manual.manual_axes == ("y",) and manual.flat == mesh.flat and manual != mesh
    assert str(manual) == "Mesh('x': 2, 'y': 2, axis_types=(Explicit, Manual))"
    for types in (AxisType.Auto, [AxisType.Auto] * 3, ("Auto", "Auto")):
        with pytest.raises(ValueError, match="2 values of AxisType"):
            Mesh([[0, 1], [2, 3]], ("x", "y"), types)
    with pytest.raises(ValueError, match="no axis 'z'"):
        mesh.update_axis_types({"z": AxisType.Auto})


def test_a_mesh_without_devices():
    mesh = Mesh([[0, 1, 2], [3, 4, 5]], ("x", "y"))
    abstract = mesh.abstract_mesh
    assert abstract == AbstractMesh((2, 3), ("x", "y")) != mesh
    assert hash(abstract) == hash(AbstractMesh((2, 3), ["x", "y"]))
    assert abstract.shape_tuple == (("x", 2), ("y", 3)) and abstract.size == 6
    assert not abstract.empty and AbstractMesh((), ()).empty and AbstractMesh((0,), "x").empty
    with pytest.raises(ValueError, match="AbstractMesh: the grid has 1 dimensions"):
        AbstractMesh((2,), ("x", "y"))


def test_a_mesh_is_either_with_devices_or_without():
    mesh = Mesh([0, 1], "x")
    assert not isinstance(mesh, AbstractMesh)
    assert not isinstance(mesh.abstract_mesh, Mesh)


@pytest.mark.parametrize("name", ["devices", "device_ids", "local_devices", "is_multi_process"])
def test_a_mesh_without_devices_says_so_where_one_asks_for_them(name):
    mesh = AbstractMesh((2,), ("x",))
    assert not hasattr(mesh, name)
    for kind in (ValueError, AttributeError, errors.NoDevices):
        with pytest.raises(kind, match=r"AbstractMesh\('x': 2\) has names and sizes alone"):
            getattr(mesh, name)
