"""Arrays over meshes: how they say that they lie, and what results of programs say."""

import numpy as np
import pytest

import phalanx
import phalanx.numpy as jnp
from phalanx import NamedSharding, P, lax
from phalanx.sharding import PmapSharding
from phalanx.xla import XlaBackend

pytestmark = pytest.mark.spmd
COUNT = phalanx.device_count()
OUTER = 2 if COUNT % 2 == 0 else 1
MESH = phalanx.make_mesh((OUTER, COUNT // OUTER), ("a", "b"))
X = np.arange(16 * COUNT * COUNT, dtype=np.float32).reshape(4 * COUNT, 4 * COUNT)
SPECS = [P(), P("a"), P("a", None), P("b", "a"), P(None, ("b", "a")), P(("a", "b"))]


@pytest.mark.parametrize("spec", SPECS, ids=str)
def test_an_array_says_what_was_asked_for(spec):
    sharding = NamedSharding(MESH, spec)
    x = phalanx.device_put(X, sharding)
    assert x.sharding is sharding and phalanx.device_put(x, sharding) is x
    # the same layout under another name is the same memory, and runs the same executable
    renamed = phalanx.device_put(x, NamedSharding(MESH, P(*spec, *[None] * (2 - len(spec)))))
    assert renamed._raw is x._raw and renamed.sharding.plain is sharding.plain
    for run in (jnp.sin, phalanx.jit(lambda x: x * 3)):
        assert run(x).sharding.mesh is MESH
        np.testing.assert_array_equal(run(x), run(renamed))
    np.testing.assert_array_equal(phalanx.jit(lambda x: x.T)(x), X.T)


def test_a_result_is_told_by_the_mesh_of_an_input():
    x = phalanx.device_put(X, NamedSharding(MESH, P("a", "b")))
    assert (x + 1).sharding is x.sharding
    if COUNT > 1:
        assert x.T.sharding == NamedSharding(MESH, P("b", "a") if OUTER > 1 else P("b"))
        assert x.sum(1).sharding.mesh is MESH
    free = jnp.ones(3) + 1
    assert not isinstance(free.sharding, NamedSharding) and not free.committed


def test_names_of_one_layout_compile_once(monkeypatch):
    compile, compiled = XlaBackend.compile, []
    counting = staticmethod(lambda *given: compiled.append(given) or compile(*given))
    monkeypatch.setattr(XlaBackend, "compile", counting)
    x = phalanx.device_put(X, NamedSharding(MESH, P("a")))
    y = phalanx.device_put(x, NamedSharding(MESH, P("a", None)))
    for run in (phalanx.jit(lambda x: x - x.T), jnp.arctan):
        compiled.clear()
        first = run(x)
        assert len(compiled) == 1
        np.testing.assert_array_equal(first, run(y))
        assert len(compiled) == 1
    assert run(x).sharding is x.sharding and run(y).sharding is y.sharding


@pytest.mark.parametrize("lanes", [1, COUNT, 2 * COUNT - 1, 2 * COUNT, 3 * COUNT + 1])
def test_results_of_pmap_are_named_by_its_axis(lanes):
    x = np.arange(3 * lanes).reshape(lanes, 3)
    run = phalanx.pmap(lambda x: (x, x + lax.psum(x, "i")), axis_name="i", out_axes=(0, 1))
    rows, columns = run(x)
    for y, spec in ((rows, P("i")), (columns, P(None, "i"))):
        assert isinstance(y.sharding, NamedSharding) and isinstance(y.sharding, PmapSharding)
        assert y.sharding.spec == spec and y.sharding.mesh.axis_names == ("i",)
        assert set(y.sharding.mesh.flat) == y.devices() and y.committed
    assert phalanx.jit(lambda y: y + 0)(rows).sharding.mesh is rows.sharding.mesh
    np.testing.assert_array_equal(rows, x)
    shared = phalanx.pmap(lambda x: lax.psum(x, "i"), axis_name="i", out_axes=None)(x)
    assert shared.sharding.spec == P() and shared.sharding.mesh is rows.sharding.mesh


def test_nested_and_unnamed_axes_form_one_mesh():
    x = np.ones((2, COUNT, 3))

    def plus(x):
        return x + 1

    both = phalanx.pmap(phalanx.pmap(plus, axis_name="j"), axis_name="i")(x)
    again = phalanx.pmap(phalanx.pmap(plus, axis_name="i"), axis_name="i")(x)
    assert both.sharding.mesh.axis_names == ("i", "j") and again.sharding.spec == P("i")
    assert len(set(again.sharding.mesh.axis_names)) == 2
    assert len(phalanx.pmap(plus)(x).sharding.spec) == 1
    inside = phalanx.jit(lambda x: phalanx.pmap(plus, axis_name="k")(x))(x)
    assert inside.sharding.spec == P("k")
