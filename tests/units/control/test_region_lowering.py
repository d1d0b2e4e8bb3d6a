"""Regions over meshes of the user's: which devices run what, alone and together in a program."""

import numpy as np
import pytest

import phalanx
import phalanx.numpy as jnp
from phalanx import lax
from phalanx.base.errors import MeshesDiffer
from phalanx.control.mapped import mapped, on_whole_arrays
from phalanx.core.axes import binding
from phalanx.core.roles import blocks, slices
from phalanx.core.types import ArrayType
from phalanx.run.array import from_host
from phalanx.run.planning import make_plan
from phalanx.spmd.mesh import Mesh
from phalanx.spmd.placement import mesh_of, placements
from phalanx.transforms.derive import trace_closed
from phalanx.transforms.stage import evaluate

pytestmark = pytest.mark.spmd
COUNT = phalanx.local_device_count()
SHAPES = [(n, COUNT // n) for n in range(1, COUNT + 1) if COUNT % n == 0]
F = np.dtype(np.float32)
eight = pytest.mark.skipif(COUNT != 8, reason="needs 8 devices")
X = np.arange(64, dtype=F).reshape(8, 8)


def f32(*shape):
    return ArrayType(shape, F)


def grid(shape, names, devices=None):
    devices = phalanx.local_devices() if devices is None else devices
    return Mesh(np.array(devices[: np.prod(shape)], object).reshape(shape), names)


def region(function, parts, axes, ins, outs, mesh, kind=blocks):
    """The program of ``function``, of ``parts``, at every position of ``axes``."""
    with binding(*axes):
        program = trace_closed(lambda *xs: (function(*xs), None), parts, "body").program
    return on_whole_arrays(program, axes, tuple(map(kind, ins)), tuple(map(kind, outs)), mesh)


def called(program):
    return lambda *xs: evaluate(program, xs)


def product(mesh):
    """x @ y for ``x`` cut in rows and columns, and the number of each position."""

    def body(a, b):
        return [lax.psum(a @ b, "y"), jnp.full((1,), lax.axis_index(("x", "y")), F)]

    return region(
        body, [f32(2, 3), f32(3, 2)], mesh.axes,
        ((("x",), ("y",)), (("y",),)), ((("x",),), (("y", "x"),)), mesh,
    )  # fmt: skip


@pytest.mark.parametrize("shape", SHAPES)
def test_every_position_of_a_mesh_has_its_device(shape):
    x, y = shape
    devices = tuple(phalanx.local_devices())[::-1]
    program = product(grid(shape, ("x", "y"), devices))
    a = np.arange(6 * COUNT, dtype=F).reshape(2 * x, 3 * y)
    b = np.arange(6 * y, dtype=F).reshape(3 * y, 2)
    sums, numbers = phalanx.jit(called(program))(a, b)
    np.testing.assert_array_equal(sums, a @ b)
    np.testing.assert_array_equal(numbers, np.arange(COUNT).reshape(x, y).T.ravel())
    assert sums.sharding.device_list == devices
    # column by column: the first device has position (0, 0), the next one (1, 0)
    at = [s.device for s in sorted(numbers.addressable_shards, key=lambda s: s.index[0].start or 0)]
    assert at == list(np.array(devices, object).reshape(x, y).T.ravel())


@pytest.mark.parametrize("shape", SHAPES)
def test_operands_are_laid_out_as_the_region_wants_them(shape):
    (x, y), mesh = shape, grid(shape, ("x", "y"))
    program = product(mesh)
    ins = program.input_types
    shardings = [from_host(np.zeros(t.shape, F)).sharding for t in ins]
    plan = make_plan(program, shardings).plan
    if COUNT > 1:
        assert [s.tiles + (1,) * (2 - len(s.tiles)) for s in plan.in_shardings] == [(x, y), (y, 1)]
    assert not plan.independent  # it communicates
    (where,) = placements(program, mesh_of(program, mesh.flat), mesh.flat[:1])
    assert (where.axis, where.size, where.lanes, where.padding) == ("x", x, 1, 0)
    (inside,) = where.inside
    assert (inside.axis, inside.devices) == ("y", mesh.flat[:y])


def test_positions_that_share_devices():
    """Of slices there may be more than devices: both axes are dealt out, with padding."""
    mesh = grid((1, COUNT), ("x", "y"))
    axes = (("x", 3), ("y", COUNT + 1))

    def body(v):
        here = jnp.float32(10) * lax.axis_index("x") + lax.axis_index("y")
        return [v + here, lax.psum(v * here, ("x", "y")), lax.pmax(here, "y")]

    cut = (("y",), ("x",))
    outs = (cut, (), (("x",),))
    program = region(body, [f32(2)], axes, [cut], outs, mesh, slices)
    whole = np.arange(axes[1][1] * 6, dtype=F).reshape(-1, 3, 2)
    here = 10 * np.arange(3) + np.arange(len(whole))[:, None]
    sums, total, most = called(program)(whole)
    np.testing.assert_array_equal(sums, whole + here[..., None])
    np.testing.assert_allclose(total, (whole * here[..., None]).sum((0, 1)), rtol=1e-6)
    np.testing.assert_array_equal(most, here.max(0))


def test_derivatives_stay_one_region():
    """No region in a region, and nothing gathered: residuals stay where they are made."""
    mesh = grid((1, COUNT), ("x", "y"))
    body = lambda a, w: [lax.psum(jnp.sin(a @ w), "y")]  # noqa: E731
    program = region(
        body, [f32(2, 3), f32(3, 2)], mesh.axes, ((("x",), ("y",)), (("y",),)), ((("x",),),), mesh
    )
    a, w = np.ones((2, 3 * COUNT), F) / 9, np.ones((3 * COUNT, 2), F)
    loss = lambda a, w: called(program)(a, w)[0].sum()  # noqa: E731
    made = phalanx.make_program(phalanx.grad(loss, (0, 1)))(a, w)
    regions = [e for e in made.walk() if e.prim is mapped]
    assert len(regions) == 2
    used = {p.name for e in regions for p in e.params["program"].primitives}
    assert "psum" in used and not used & {"mapped", "all_gather"}
    da, dw = phalanx.jit(phalanx.grad(loss, (0, 1)))(a, w)
    slope = np.cos(np.float32(1 / 3)) * COUNT  # psum transposes to psum: every position has its own
    np.testing.assert_allclose(da, np.full(a.shape, 2 * slope / COUNT), rtol=1e-5)
    np.testing.assert_allclose(dw, np.full(w.shape, 2 / 9 * slope / COUNT), rtol=1e-5)


# ---- a part of the axes -------------------------------------------------------------------------

DATA = (("data", 2),)
ROWS = (("data",),)


def on_data(function, outs, mesh=None):
    """``function`` of four rows of X at each position of the data axis of a 2 x 4 mesh."""
    mesh = grid((2, 4), ("data", "model")) if mesh is None else mesh
    return called(region(function, [f32(4, 8)], DATA, [ROWS], outs, mesh))


@eight
def test_the_compiler_decides_along_the_other_axes():
    def body(v):
        here = lax.axis_index("data")
        inner = phalanx.jit(lambda v: v * lax.axis_index("data"))
        doubled = phalanx.pure_callback(lambda v: 2 * np.asarray(v), f32(4, 8), v)
        first = lax.cond(here == 0, lambda v: lax.psum(v, "data"), lambda v: -v, v)
        return [
            jnp.full((1,), here, F), lax.psum(v, "data"), lax.all_gather(v, "data"),
            lax.ppermute(v, "data", [(1, 0)]), lax.psum_scatter(v, "data", tiled=True),
            inner(v) + inner(2 * v), doubled, first,
            lax.scan(lambda c, r: (c + lax.psum(r, "data"), None), v[0] * 0, v)[0],
        ]  # fmt: skip

    outs = (ROWS, (), (), ROWS, ROWS, ROWS, ROWS, ROWS, ())
    low, high = X[:4], X[4:]
    expected = [
        [0, 1], low + high, [low, high], np.concatenate([high, 0 * low]), low + high,
        np.concatenate([0 * low, 3 * high]), 2 * X, np.concatenate([low + high, -high]), X.sum(0),
    ]  # fmt: skip
    both = phalanx.P("data", "model")
    sharded = phalanx.device_put(X, phalanx.NamedSharding(grid((2, 4), ("data", "model")), both))
    for x in (X, sharded):
        for y, e in zip(phalanx.jit(on_data(body, outs))(x), expected, strict=True):
            np.testing.assert_allclose(y, e, rtol=1e-6)


@eight
def test_a_region_inside_takes_the_axes_that_are_left():
    mesh = grid((2, 4), ("data", "model"))

    def inside(v):
        here = 10 * lax.axis_index("data") + lax.axis_index("model")
        return [lax.psum(v.sum() + here, "model"), lax.psum(jnp.float32(here), ("data", "model"))]

    def body(v):
        cut = [((), ("model",))]
        total, count = called(
            region(inside, [f32(4, 2)], (("model", 4),), cut, ((), ()), mesh)
        )(v)  # fmt: skip
        return [total[None], count]

    totals, count = phalanx.jit(on_data(body, (ROWS, ()), mesh))(X)
    np.testing.assert_array_equal(totals, X.reshape(2, 32).sum(1) + np.array([6, 46]))
    assert count == 52
    with pytest.raises(MeshesDiffer, match=r"axes \['data'\].* inside another one, which has"):
        again = on_data(lambda v: [v], (ROWS,))
        on_data(lambda v: again(jnp.concatenate([v, v])), ((),))(X)


# ---- several meshes -----------------------------------------------------------------------------


def scaled(mesh, axis, rows=12):
    """Rows times the number of their position along ``axis``."""
    size = mesh.shape[axis]
    body = lambda v: [v * lax.axis_index(axis)]  # noqa: E731
    return called(
        region(body, [f32(rows // size, 8)], ((axis, size),), [((axis,),)], [((axis,),)], mesh)
    )


@eight
def test_meshes_of_one_program_are_told_in_common_axes():
    wide, tall = grid((2, 4), ("a", "b")), grid((4, 2), ("c", "d"))
    turned = Mesh(wide.devices.T, ("e", "f"))
    every = [(wide, "a"), (wide, "b"), (tall, "c"), (tall, "d"), (turned, "e"), (turned, "f")]

    def all_of(x):
        for mesh, axis in every:
            (x,) = scaled(mesh, axis, 8)(x + 1)
        return phalanx.pmap(lambda v: v + lax.axis_index("i"), "i")(x)

    expected = X
    for mesh, axis in every:
        n = mesh.shape[axis]
        expected = (expected + 1) * np.repeat(np.arange(n), 8 // n)[:, None]
    np.testing.assert_allclose(phalanx.jit(all_of)(X), expected + np.arange(8)[:, None])


@eight
def test_meshes_that_do_not_go_together_are_named():
    two, three = grid((2, 3), ("a", "b")), grid((3, 2), ("c", "d"))
    others = grid((2,), ("e",), phalanx.local_devices()[6:])

    def both(first, second):
        x = phalanx.ShapeDtypeStruct((12, 8), F)
        phalanx.jit(lambda x: scaled(*first)(x)[0] + scaled(*second)(x)[0]).lower(x)

    with pytest.raises(MeshesDiffer, match=r"'a': 2, 'b': 3.*'c': 3, 'd': 2.*in the same places"):
        both((two, "a"), (three, "c"))
    with pytest.raises(MeshesDiffer, match=r"must have the same devices"):
        both((two, "a"), (others, "e"))


def test_lanes_around_a_mesh_leave_it_its_devices():
    mesh, rows = grid((COUNT,), ("x",)), [(("x",),)]

    def lane(v):
        total = lambda v: [lax.psum(v, "x")]  # noqa: E731
        return called(region(total, [f32(2)], mesh.axes, rows, [()], mesh))(v)

    x = np.arange(6 * COUNT, dtype=F).reshape(3, 2 * COUNT)
    (sums,) = phalanx.pmap(lane)(x)
    np.testing.assert_array_equal(sums, x.reshape(3, COUNT, 2).sum(1))
    if COUNT == 8:
        part = phalanx.pmap(on_data(lambda v: [lax.psum(v, "data")], [()]))(np.stack([X, 2 * X]))
        np.testing.assert_array_equal(part[0], [X[:4] + X[4:], 2 * X[:4] + 2 * X[4:]])
