"""Meshes, with integers as devices."""

import numpy as np
import pytest

from phalanx.spmd.mesh import Mesh


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
