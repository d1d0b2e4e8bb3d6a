"""How results lie, from how operands do."""

import numpy as np
import pytest

import phalanx
from phalanx.core.correspond import Dims, Joined, Whole, alike, propagate_shardings
from phalanx.core.mesh_spec import MeshSpec
from phalanx.core.roles import blocks, each
from phalanx.core.types import ArrayType
from phalanx.errors import ShardingTypeError
from phalanx.primitives.basis import same_elements
from phalanx.sharding import AbstractMesh

MESH = AbstractMesh((2, 4), ("x", "y"))


def spec(*layout):
    return MeshSpec.of(MESH, [(a,) if isinstance(a, str) else a or () for a in layout])


def kind(shape, *layout):
    every = (*layout, *(None,) * (len(shape) - len(layout)))
    return ArrayType(shape, np.dtype("float32"), spec=spec(*every))


def follow(dims, *types, shape):
    labels = dims(*types) if callable(dims) else dims
    (result,) = propagate_shardings("op", labels, types, [ArrayType(shape, types[0].dtype)])
    return str(result)


def test_types_tell():
    assert str(kind((8, 16), "x", ("y",))) == "f32[8@x,16@y]"
    assert str(kind((8,), ("x", "y"))) == "f32[8@(x,y)]"
    assert kind((8, 16), None, None) is ArrayType((8, 16), np.dtype("float32"))


def test_equal_layouts_are_one():
    assert spec("x", None) is spec("x", None)
    assert spec("x", None) is not MeshSpec.of(AbstractMesh((2, 2), ("x", "y")), [("x",), ()])


def test_a_type_keeps_how_it_lies_where_it_keeps_its_shape():
    x = kind((8, 16), "x", None)
    assert x.update(dtype=np.dtype("int32")).spec is x.spec
    assert x.update(shape=(16, 8)).spec is None


def test_layouts_lose_and_get_dimensions():
    both = spec("x", "y")
    assert both.without_dims([0]) is spec("y")
    assert both.with_dim(1) is spec("x", None, "y")
    assert both.without_axes({"x"}) is spec(None, "y")
    assert both.without_axes({"x", "y"}) is None


def test_roles_know_how_parts_lie():
    x = kind((8, 16), None, "y")
    row = each(0).inner(x, (("<rows>", 8),))
    assert str(row) == "f32[16@y]" and each(0).outer(row, (("<rows>", 8),)) is x
    assert str(blocks((("x",),)).inner(kind((8, 16), "x", "y"), (("x", 2),))) == "f32[4,16@y]"


def test_what_is_whole_goes_along():
    assert follow(alike, kind((8, 16), "x"), kind((8, 16)), shape=(8, 16)) == "f32[8@x,16]"
    assert follow(alike, kind((8, 16), "x"), kind(()), shape=(8, 16)) == "f32[8@x,16]"


def test_joined_dimensions_are_cut_by_the_axes_of_all():
    dims = Dims(((0, 1),), ((Joined((0, 1)),),))
    assert follow(dims, kind((8, 16), "x", "y"), shape=(128,)) == "f32[128@(x,y)]"


@pytest.mark.parametrize(
    "dims, types, shape, words",
    [
        (alike, [kind((8,), "x"), kind((8,), "y")], (8,), "meets one that is cut by 'x'"),
        (alike, [kind((8, 8), "x"), kind((8, 8), None, "x")], (8, 8), "both would cut"),
        (Dims(((Whole("why"),),), ((),)), [kind((8,), "x")], (), "is cut, and why"),
        (Dims((("k",), ("k",)), ((),)), [kind((8,), "x")] * 2, (), "the sum is over"),
        (alike, [kind((8,), "y")], (6,), "4 does not divide it"),
    ],
)
def test_what_is_not_clear_is_refused(dims, types, shape, words):
    with pytest.raises(ShardingTypeError, match=words):
        follow(dims, *types, shape=shape)


def test_layouts_over_different_meshes_do_not_meet():
    over_another = MeshSpec.of(AbstractMesh((8,), "x"), [("x",)])
    other = ArrayType((8,), np.dtype("float32"), spec=over_another)
    with pytest.raises(ShardingTypeError, match="different meshes"):
        follow(alike, kind((8,), "x"), other, shape=(8,))


@pytest.mark.parametrize("before, after", [((2, 6, 5), (4, 3, 5)), ((8,), (1, 8)), ((), (1, 1))])
def test_dimensions_of_the_same_elements(before, after):
    groups = same_elements(before, after)
    assert [d for dims, _ in groups for d in dims] == list(range(len(before)))
    assert [d for _, dims in groups for d in dims] == list(range(len(after)))
    for ours, theirs in groups:
        assert np.prod([before[d] for d in ours]) == np.prod([after[d] for d in theirs])


def test_arrays_of_another_mesh_have_no_word_in_their_types():
    x = phalanx.device_put(np.zeros(4), phalanx.devices()[0])
    assert phalanx.typeof(x).spec is None
