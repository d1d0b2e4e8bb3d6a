"""Named shardings, with integers as devices."""

import numpy as np
import pytest

from phalanx.spmd.mesh import Mesh
from phalanx.spmd.named import NamedSharding, P, PartitionSpec
from phalanx.spmd.sharding import Sharding


def test_partition_spec():
    assert P is PartitionSpec and P("a", None) == ("a", None)
    assert P(("a",), ["b", "c"]).layout == (("a",), ("b", "c"))
    assert P(None, "a").layout == ((), ("a",))
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
