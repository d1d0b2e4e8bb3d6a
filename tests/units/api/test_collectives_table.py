"""``compiled.collectives()``: what devices exchange, by the names and lines of the user's."""

import inspect

import numpy as np
import pytest

import phalanx
import phalanx.numpy as jnp
from phalanx import P, lax
from phalanx.sharding import NamedSharding

pytestmark = pytest.mark.skipif(phalanx.device_count() < 8, reason="needs a mesh of 2 x 4")
MESH = phalanx.make_mesh((2, 4), ("data", "model")) if phalanx.device_count() >= 8 else None
X = np.ones((16, 32), np.float32)


def over(*spec):
    return NamedSharding(MESH, P(*spec))


def table(f, *args, **options):
    return phalanx.jit(f, **options).lower(*args).compile().collectives()


def told(rows):
    return {(r.operation, r.axes, r.bytes, r.count) for r in rows}


def test_a_contraction_that_axes_cut_is_reduced_over_them():
    def product(x, w):
        return x @ w

    w = np.ones((32, 64), np.float32)
    specs = over("data", "model"), over("model")
    rows = table(product, X, w, in_shardings=specs, out_shardings=over("data"))
    assert told(rows) == {("all-reduce", ("model",), 8 * 64 * 4, 1)}
    line = inspect.getsourcelines(product)[1] + 1
    assert rows[0].line.endswith(f"test_collectives_table.py:{line} (product)")
    assert repr(rows).splitlines()[0].split() == ["operation", "axes", "bytes", "count", "line"]


def test_axes_of_every_subset_have_their_names():
    for axes in (("data",), ("model",), ("data", "model")):
        rows = table(lambda x: x + 1, X, in_shardings=over(axes), out_shardings=over())
        assert told(rows) == {("all-gather", axes, X.nbytes, 1)}


def test_a_permutation_is_over_the_axes_along_which_it_moves():
    def shifted(x):
        return lax.ppermute(x, "model", [(i, (i + 1) % 4) for i in range(4)])

    mapped = phalanx.shard_map(shifted, mesh=MESH, in_specs=P("model"), out_specs=P("model"))
    rows = mapped.lower(X).compile().collectives()
    assert told(rows) == {("collective-permute", ("model",), X.nbytes // 4, 1)}


def test_loops_of_known_length_count_every_time():
    def power(x):
        return lax.scan(lambda c, _: (c @ c, None), x, None, length=5)[0]

    square = np.ones((16, 16), np.float32)
    rows = table(power, square, in_shardings=over("data"), out_shardings=over("data"))
    assert rows and all(r.count == 5 and r.axes is not None for r in rows)


def test_programs_of_pmap_and_shard_map_speak_of_their_axes():
    summed = phalanx.pmap(lambda x: lax.psum(x, "lanes"), axis_name="lanes")
    assert told(summed.lower(X[:8]).compile().collectives()) == {
        ("all-reduce", ("lanes",), X[0].nbytes, 1)
    }

    def block(x):
        return lax.psum(jnp.sum(x), "model")

    mapped = phalanx.shard_map(block, mesh=MESH, in_specs=P("model"), out_specs=P())
    assert told(mapped.lower(X).compile().collectives()) == {("all-reduce", ("model",), 4, 1)}


def test_parts_of_an_axis_are_told_by_it_and_by_how_many_they_are():
    pairs = [[0, 1], [2, 3], [4, 5], [6, 7]]
    summed = phalanx.pmap(lambda x: lax.psum(x, "lanes", axis_index_groups=pairs), "lanes")
    (row,) = summed.lower(X[:8]).compile().collectives()
    assert (row.operation, row.axes, row.devices) == ("all-reduce", ("lanes",), 2)


def test_what_communicates_nothing_has_none():
    rows = table(lambda x: x + 1, X, in_shardings=over("data"), out_shardings=over("data"))
    assert rows == () and repr(rows) == "no collectives"
