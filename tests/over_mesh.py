"""A mesh of 2 x 4 that is set in every test of a file that imports both names."""

import pytest

import phalanx
from phalanx.sharding import AxisType


def mesh(kind=AxisType.Explicit):
    return phalanx.make_mesh((2, 4), ("x", "y"), (kind, kind))


@pytest.fixture(autouse=True)
def over_a_mesh():
    with phalanx.set_mesh(mesh()):
        yield
