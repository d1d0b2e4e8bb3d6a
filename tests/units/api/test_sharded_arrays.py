"""Arrays over meshes: how they say that they lie, and what results of programs say."""

import functools
import pickle
import re

import numpy as np
import pytest

import phalanx
import phalanx.numpy as jnp
from phalanx import NamedSharding, P, lax, random
from phalanx.errors import DeviceError, DevicesDiffer, NoMesh
from phalanx.experimental.layout import Format, Layout
from phalanx.sharding import Mesh, PmapSharding, SingleDeviceSharding
from phalanx.spmd.pickled import PickledDevice, unpickled_devices
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


@pytest.mark.parametrize("cut", [P("a", "b"), P("b", "a"), P(("a", "b"))], ids=str)
def test_a_result_is_cut_by_whole_axes_of_the_mesh(cut):
    x = phalanx.device_put(X, NamedSharding(MESH, cut))
    for shape in ((4 * COUNT, 2, 2 * COUNT), (2, -1), (-1,), (8, COUNT, COUNT, 2)):
        y = phalanx.jit(lambda x, shape=shape: x.reshape(shape) * 2)(x)
        assert y.sharding.mesh is MESH and len(y.sharding.spec) <= y.ndim
        np.testing.assert_array_equal(y, X.reshape(shape) * 2)


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


def test_what_is_read_of_an_array_over_a_mesh_is_over_a_part_of_that():
    """Each axis is there, with the devices that have what is read."""
    for spec in SPECS:
        x = phalanx.device_put(X, NamedSharding(MESH, spec))
        quarter = len(X) // 4
        for index in (0, (-1, 0), (slice(None), 3), slice(quarter), slice(quarter, None)):
            y = x[index]
            s = y.sharding
            assert isinstance(s, NamedSharding) and s.mesh.axis_names == ("a", "b")
            assert set(s.mesh.flat) == y.devices() and set(s.mesh.flat) <= set(MESH.flat)
            for shard in y.addressable_shards:
                np.testing.assert_array_equal(shard.data, X[index][shard.index])
            assert (y + 1).sharding == s and (y + 1).committed == y.committed
            again = phalanx.device_put(X[index], s)
            assert again.sharding == s and again.committed
    row = phalanx.device_put(X, NamedSharding(MESH, P("a", "b")))[0]
    assert row.sharding.spec == (P("b") if COUNT > OUTER else P())
    assert row.sharding.mesh.shape == {"a": 1, "b": COUNT // OUTER} and row.committed == (OUTER < 2)
    lanes = phalanx.pmap(lambda x: x, axis_name="i")(X[: 2 * COUNT])
    assert isinstance(lanes[1].sharding, PmapSharding)
    assert pickle.loads(pickle.dumps(row.sharding)) is row.sharding


def test_where_nobody_chose_the_place_it_is_still_told():
    assert jnp.ones(3).sharding == SingleDeviceSharding(phalanx.devices()[0])
    free, placed = jnp.ones(len(X)), phalanx.device_put(X, NamedSharding(MESH, P("a", "b")))
    assert not free.committed
    followed = phalanx.jit(lambda x, y: x + y).lower(free, placed).compile()
    assert followed(free, placed).sharding.mesh is MESH


def test_what_is_made_while_a_mesh_is_set_lies_over_it_as_a_whole():
    before = jnp.ones(4 * COUNT)
    with phalanx.set_mesh(MESH):
        made = [jnp.zeros(3), jnp.asarray(X), random.key(0), 2 * before, jnp.float32(1)]
        assert [x.sharding for x in made] == [NamedSharding(MESH, P())] * 5
        state = {"w": phalanx.device_put(X, P("a")), "step": jnp.zeros((), int)}
        shardings = phalanx.tree.map(lambda x: x.sharding, state)
        step = phalanx.jit(
            lambda s: {"w": s["w"] * 2, "step": s["step"] + 1},
            in_shardings=(shardings,),
            out_shardings=shardings,
        )
        state = step(step(state))
        assert phalanx.tree.map(lambda x: x.sharding, state) == shardings and state["step"] == 2
        on_one = phalanx.device_put(1.0, phalanx.devices()[0])
        assert (on_one + 1).devices() == on_one.devices()
        with phalanx.default_device(phalanx.devices()[-1]):
            assert jnp.zeros(3).devices() == {phalanx.devices()[-1]}
    assert jnp.zeros(3).devices() == {phalanx.devices()[0]}


def test_a_region_over_some_axes_gives_what_is_cut_by_whole_axes():
    x = phalanx.device_put(X, NamedSharding(MESH, P("a", "b")))
    for shape in ((-1, 4, COUNT), (-1, 2, COUNT, 2)):
        region = phalanx.shard_map(
            lambda x, shape=shape: x.reshape(shape) * 2,
            mesh=MESH, in_specs=P("a"), out_specs=P("a"), axis_names={"a"},
        )  # fmt: skip
        for f in (region, lambda x, f=region: f(x) + 1):
            assert phalanx.jit(f)(x).sharding.mesh is MESH
        np.testing.assert_array_equal(phalanx.jit(region)(x), 2 * X.reshape(shape))


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


def test_shardings_travel_as_platform_and_number_of_devices():
    named = NamedSharding(MESH, P("a"))
    free = jnp.ones(3).sharding
    for sharding in (named, named.plain, named.plain.freed(), free, MESH):
        assert pickle.loads(pickle.dumps(sharding)) is sharding
    far = pickle.dumps(PickledDevice("cpu", 10**6))
    with pytest.raises(DeviceError, match="cpu:1000000, but the devices here are"):
        unpickled_devices([pickle.loads(far)])


def test_one_protocol_for_every_sharding():
    x = phalanx.device_put(X, NamedSharding(MESH, P("a")))
    lanes = phalanx.pmap(lambda x: x, axis_name="i")(X[:COUNT])
    for y in (x, lanes, jnp.ones(3), phalanx.device_put(X, phalanx.devices()[-1])):
        s = y.sharding
        assert s.device_set == y.devices() == set(s.devices_indices_map(y.shape))
        assert s.addressable_devices_indices_map(y.shape) == s.devices_indices_map(y.shape)
        assert s.num_devices == len(y.addressable_shards) and s.has_addressable_devices
        assert {shard.data.shape for shard in y.addressable_shards} == {s.shard_shape(y.shape)}
        assert s.is_fully_addressable and s.is_equivalent_to(s.plain, y.ndim)
        assert s.memory_kind == "device" and s.with_memory_kind("device") is s
        host = s.with_memory_kind("pinned_host")
        assert host.memory_kind == "pinned_host" and not host.is_equivalent_to(s, y.ndim)
        assert host.with_memory_kind(None) is s and pickle.loads(pickle.dumps(host)) is host


def test_arrays_in_the_memory_of_the_host():
    rows = NamedSharding(MESH, P("a"))
    host = NamedSharding(MESH, P("a"), memory_kind="pinned_host")
    for x in (phalanx.device_put(X, host), phalanx.device_put(phalanx.device_put(X, rows), host),
              phalanx.jit(lambda x: x + 0, out_shardings=host)(X)):  # fmt: skip
        assert x.sharding is host and "memory_kind='pinned_host'" in repr(host)
        assert {s.data.sharding.memory_kind for s in x.addressable_shards} == {"pinned_host"}
        back = phalanx.device_put(x, rows)
        asked = phalanx.jit(lambda x: 2 * x, in_shardings=host)(x)
        on_one = phalanx.device_put(x, phalanx.devices()[0])
        for y in (x, back, asked / 2, on_one, x.copy(), pickle.loads(pickle.dumps(x))):
            np.testing.assert_array_equal(y, X)
        for y in (back, asked, 2 * x, x[1], on_one):
            assert y.sharding.memory_kind == "device"
        turned = phalanx.device_put(x, NamedSharding(MESH, P(None, "a"), memory_kind="pinned_host"))
        np.testing.assert_array_equal(turned, X)
        np.testing.assert_array_equal(x[1], X[1])
        np.testing.assert_array_equal(x + back, 2 * X)
    slope = phalanx.grad(lambda x: (phalanx.device_put(x, host) ** 2).sum())(back)
    np.testing.assert_array_equal(slope, 2 * X)
    space = phalanx.memory.Space
    x = phalanx.device_put(back, space.Host)
    assert x.sharding is host and phalanx.device_put(x, space.Device).sharding is rows
    assert phalanx.device_put(1.0, space.Host).sharding.memory_kind == "pinned_host"


def test_programs_keep_values_in_the_memory_of_the_host():
    space = phalanx.memory.Space
    host = NamedSharding(MESH, P("a"), memory_kind="pinned_host")

    def away_and_back(x, away, back):
        return phalanx.device_put(phalanx.device_put(jnp.sin(x), away), back) * x

    def placed(text):
        return re.findall(r'_xla_buffer_placement = "(\w+)"', text)

    x = phalanx.device_put(X, host.with_memory_kind(None))
    for away, back in ((space.Host, space.Device), (host, host.with_memory_kind("device"))):
        f = phalanx.jit(functools.partial(away_and_back, away=away, back=back))
        np.testing.assert_allclose(f(x), np.sin(X) * X, rtol=1e-5)
        slope = phalanx.jit(phalanx.grad(lambda x, f=f: f(x).sum()))(x)
        np.testing.assert_allclose(slope, np.cos(X) * X + np.sin(X), rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(phalanx.vmap(f)(X), np.sin(X) * X, rtol=1e-5)
        assert "custom_call" not in f.lower(x).as_text()
        if isinstance(away, space):
            for platform in ("cuda", "tpu"):
                text = f.trace(X).lower(lowering_platforms=(platform,)).as_text()
                assert placed(text) == ["pinned_host", "device"]


def test_results_lie_where_programs_bring_them():
    space = phalanx.memory.Space
    host = NamedSharding(MESH, P("a"), memory_kind="pinned_host")

    def away(x):
        turned = functools.partial(functools.reduce, lambda x, _: -x, range(10))  # not a short one
        inner = phalanx.jit(lambda x: phalanx.device_put(turned(x), space.Host))
        return x, phalanx.device_put(x, space.Host), inner(x + 1), inner(jnp.dot(x.T, x))

    found = phalanx.jit(away)(X)
    assert [x.sharding.memory_kind for x in found] == ["device", *["pinned_host"] * 3]
    np.testing.assert_array_equal(found[2], X + 1)
    text = phalanx.jit(away).trace(X).lower(lowering_platforms=("tpu",)).as_text()
    places = re.findall(r'_xla_buffer_placement = "(\w+)"', text)
    assert places.count("device") == 2  # of what a function of the module gives

    def constrained(x):
        return lax.with_sharding_constraint(2 * x, host)

    y = phalanx.jit(constrained)(X)
    assert y.sharding is host and constrained(jnp.asarray(X)).sharding is host
    np.testing.assert_array_equal(phalanx.jit(lambda x: constrained(x) + 1)(X), 2 * X + 1)
    slope = phalanx.jit(phalanx.grad(lambda x: constrained(x).sum()))(X)
    assert slope.sharding.memory_kind == "device"
    np.testing.assert_array_equal(slope, np.full_like(X, 2))
    only = phalanx.jit(away, out_shardings=(host.with_memory_kind("device"),) * 3 + (None,))(X)
    assert [x.sharding.memory_kind for x in only] == [*["device"] * 3, "pinned_host"]


def test_a_spec_alone_is_about_the_mesh_that_is_set():
    tree = {"w": X, "b": (X[0], 1.0)}
    specs = {"w": P("a", "b"), "b": P()}
    with phalanx.set_mesh(MESH):
        placed = phalanx.device_put(tree, specs)
        assert jnp.zeros((COUNT, 2), device=P("a")).sharding is NamedSharding(MESH, P("a"))
    assert placed["w"].sharding is NamedSharding(MESH, P("a", "b"))
    assert placed["b"][1].sharding is NamedSharding(MESH, P())
    with pytest.raises(NoMesh, match=r"P\('a'\) stands alone"):
        phalanx.device_put(X, P("a"))


def test_constants_and_parts_lie_as_they_are_asked_to():
    """State of an optimizer, made of placed parameters, is cut as they are."""
    rows = NamedSharding(MESH, P(("a", "b")))
    x = phalanx.device_put(X, rows)
    for like in (jnp.zeros_like, jnp.ones_like, jnp.empty_like, lambda x: jnp.full_like(x, 3)):
        assert like(x).sharding is rows and like(x).dtype == x.dtype
    assert lax.full_like(x, 2, int).sharding is rows
    assert not jnp.zeros_like(x, shape=(2,)).committed and not jnp.zeros_like(X).committed
    with phalanx.set_mesh(MESH):
        assert x.at[0].get(out_sharding=P("b")).sharding.spec == P("b")
        for how in ("set", "add", "multiply", "divide", "power", "min", "max"):
            changed = getattr(x.at[0], how)(2, out_sharding=P(None, "b"))
            assert changed.sharding.spec == P(None, "b")
            np.testing.assert_array_equal(changed, getattr(x.at[0], how)(2))


def test_what_is_made_over_devices_is_made_there_part_by_part(monkeypatch):
    move, sizes = XlaBackend.move, []
    counting = staticmethod(lambda raw, type, *to: sizes.append(type.size) or move(raw, type, *to))
    monkeypatch.setattr(XlaBackend, "move", counting)
    both, rows = NamedSharding(MESH, P("a", "b")), NamedSharding(MESH, P(("a", "b")))
    key, placed, size = random.key(0), phalanx.device_put(X, both), X.shape[0]
    init = phalanx.nn.initializers
    makers = [
        (both, lambda o: jnp.zeros(X.shape, **o("device")), np.zeros_like(X)),
        (both, lambda o: jnp.ones(X.shape, **o("out_sharding")), np.ones_like(X)),
        (both, lambda o: jnp.full(X.shape, 2.5, **o("device")), np.full_like(X, 2.5)),
        (both, lambda o: jnp.eye(size, **o("device")), np.eye(size)),
        (rows, lambda o: jnp.arange(size, **o("device")), np.arange(size)),
        (rows, lambda o: jnp.full_like(placed, 3, **o("device")), np.full_like(X, 3)),
        (both, lambda o: lax.full(X.shape, 2, **o("sharding")), np.full_like(X, 2)),
        (both, lambda o: lax.full_like(X, 2, **o("sharding")), np.full_like(X, 2)),
        (both, lambda o: init.ones(key, X.shape, **o("out_sharding")), np.ones_like(X)),
        (rows, lambda o: placed.flatten(**o("out_sharding")), X.ravel()),
        (both, lambda o: random.normal(key, X.shape, **o("out_sharding")), None),
        (rows, lambda o: init.he_normal()(key, X.shape, **o("out_sharding")), None),
        (rows, lambda o: jnp.histogram(placed, size, **o("out_sharding"))[0], None),
    ]
    for sharding, make, wanted in makers:
        sizes.clear()
        made = make(lambda option, s=sharding: {option: s})
        assert made.sharding.mesh is MESH and made.committed
        assert made.sharding.is_equivalent_to(sharding, made.ndim)
        assert COUNT == 1 or max(sizes, default=0) <= 1  # the key
        wanted = make(lambda option: {}) if wanted is None else wanted
        np.testing.assert_allclose(made, wanted, rtol=1e-6)  # as another program rounds
    sizes.clear()
    assert jnp.zeros_like(placed).sharding == both and (COUNT == 1 or not sizes)
    if COUNT > 1:
        for options in ({"device": both}, {"out_sharding": both}):
            with pytest.raises(ValueError, match=r"do(es)? not divide"):
                jnp.zeros((2 * COUNT + 1, 2 * COUNT + 1), **options)


def test_what_stands_for_an_array_says_how_it_lies():
    rows, abstract = NamedSharding(MESH, P("a")), NamedSharding(MESH.abstract_mesh, P("a"))
    assert abstract.shard_shape(X.shape) == rows.shard_shape(X.shape)
    with phalanx.set_mesh(MESH):
        struct = phalanx.ShapeDtypeStruct(X.shape, X.dtype, sharding=P("a"))
        said = phalanx.ShapeDtypeStruct(X.shape, X.dtype, sharding=abstract)
        for given in (struct, said):
            compiled = phalanx.jit(lambda x: x * 2).lower(given).compile()
            assert compiled.input_shardings[0][0] is rows
    assert struct.sharding is rows and f"sharding={rows}" in repr(struct)
    f = phalanx.jit(lambda x: (x.T, x), out_shardings=(rows, None))
    assert [out.sharding for out in f.eval_shape(struct)] == [rows, None]
    assert [out.sharding for out in phalanx.eval_shape(f, struct)] == [rows, None]
    if COUNT > 1:
        g = phalanx.jit(lambda x: x, in_shardings=NamedSharding(MESH, P(None, ("a", "b"))))
        for given in (struct, phalanx.device_put(X, rows)):
            with pytest.raises(ValueError, match="Sharding passed to jit does not match"):
                g.lower(given)
        with pytest.raises(DevicesDiffer, match=r"y, .* lies on"):
            phalanx.jit(lambda x, y: x[0] + y).lower(
                *(phalanx.device_put(X, phalanx.devices()[i]) for i in (0, 1))
            )
    with pytest.raises(TypeError, match="got 'a'"):
        phalanx.ShapeDtypeStruct(X.shape, X.dtype, sharding="a")
    with pytest.raises(
        ValueError, match=r"ShapeDtypeStruct: P\('a', None\) .* \(8,\) .*sharded_arr"
    ):
        phalanx.ShapeDtypeStruct((8,), X.dtype, sharding=NamedSharding(MESH, P("a", None)))
    assert f.lower(said).compile().output_shardings[0] is rows
    with pytest.raises(NoMesh, match="has no devices, and no mesh with its axes is set"):
        phalanx.jit(lambda x: x * 2).lower(said)
    if OUTER > 1:
        odd = phalanx.ShapeDtypeStruct((3, 3), X.dtype, sharding=rows)
        with pytest.raises(ValueError, match=r"sharding of x, at .*does not divide dimension 0"):
            phalanx.jit(jnp.sin).lower(odd)


@pytest.mark.skipif(COUNT < 2, reason="needs an order of devices")
def test_an_argument_may_lie_over_the_same_devices_in_another_order():
    devices = phalanx.devices()
    there, rows = (NamedSharding(Mesh(ds, "x"), P("x")) for ds in (devices[::-1], devices))
    x = np.arange(4.0 * COUNT, dtype="f").reshape(COUNT, 4)
    y = phalanx.device_put(x, there)
    f = phalanx.jit(lambda a, b: 2 * a + b, in_shardings=(rows, None))
    for found in (f(y, x), f(x, y), f(y, y)):
        np.testing.assert_array_equal(found, 3 * x)
    assert f(y, x).sharding.device_list == tuple(devices)
    np.testing.assert_array_equal(phalanx.grad(lambda a: f(a, x).sum())(y), np.full_like(x, 2))
    with pytest.raises(ValueError, match="Sharding passed to jit does not match"):
        f(phalanx.device_put(x, NamedSharding(there.mesh, P())), x)


def test_memory_is_given_up_or_kept_apart():
    first, second = NamedSharding(MESH, P("b")), NamedSharding(MESH, P(None, ("a", "b")))
    x = phalanx.device_put(X, first)
    apart = phalanx.device_put(x, first, may_alias=False)
    moved = phalanx.device_put(x, second, donate=True)
    np.testing.assert_array_equal(moved, X)
    assert x.is_deleted()
    np.testing.assert_array_equal(apart, X)
    phalanx.device_put((apart, moved), second, donate=(True, False))
    assert apart.is_deleted() and not moved.is_deleted()
    apart = phalanx.device_put(X, first)
    with pytest.raises(ValueError, match="cannot both be true"):
        phalanx.device_put(apart, second, donate=True, may_alias=True)


def test_parts_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match=r"'b' occurs more than once in P\('b', None, 'b'\)"):
        NamedSharding(MESH, P("b", None, "b"))
    rows = NamedSharding(MESH, P(("a", "b")))
    parts = [phalanx.device_put(X[4 * i : 4 * i + 4], d) for i, d in enumerate(phalanx.devices())]
    make = phalanx.make_array_from_single_device_arrays
    np.testing.assert_array_equal(make(X.shape, rows, parts[::-1]), X)
    for given, message in [
        (parts[1:], f"one array on each of .* is needed, got {COUNT - 1}"),
        ([*parts[1:], parts[0][:2]], "has shape .*, got one of shape"),
        ([*parts[1:], parts[0].astype(int)] if COUNT > 1 else parts[1:], "one dtype|is needed"),
    ]:
        with pytest.raises(ValueError, match=message):
            make(X.shape, rows, given)
    with pytest.raises(TypeError, match="a list of arrays is needed"):
        make(X.shape, rows, parts[0])
    with pytest.raises(ValueError, match="got one of shape"):
        phalanx.make_array_from_callback((2 * COUNT, 2), rows, lambda index: X)
    local = phalanx.make_array_from_process_local_data
    np.testing.assert_array_equal(local(rows, X, (None, X.shape[1])), X)
    for made in (
        make(X.shape, Format(None, rows), parts),
        local(Format(None, rows), X),
        phalanx.make_array_from_callback(X.shape, Format(Layout.AUTO, rows), X.__getitem__),
    ):
        assert made.sharding == rows
        np.testing.assert_array_equal(made, X)
    with pytest.raises(ValueError, match="dimension 0 of global_shape is 3"):
        local(rows, X, (3, None))


@pytest.mark.parametrize("spec, rank", [(P(None), 0), (P(None, None), 1), (P("a", None), 1)])
def test_arrays_are_made_where_none_stands_beyond_the_dimensions(spec, rank):
    data, asked = X[(0,) * (2 - rank)], NamedSharding(MESH, spec)
    x = phalanx.make_array_from_callback(data.shape, asked, lambda index: data[index])
    parts = [s.data for s in x.addressable_shards]
    again = phalanx.make_array_from_single_device_arrays(data.shape, asked, parts)
    for made in (x, again, x.copy(), phalanx.device_put(x, phalanx.devices()[0])):
        np.testing.assert_array_equal(made, data)
    assert x.sharding is asked is again.sharding and [s.index for s in x.addressable_shards] == [
        *NamedSharding(MESH, P(*spec[:rank])).devices_indices_map(data.shape).values()
    ]
    double = lambda x: 2 * x  # noqa: E731
    for run in (double, phalanx.jit(double), phalanx.grad(lambda x: (x * x).sum())):
        result = run(x)
        np.testing.assert_array_equal(result, 2 * data)
        phalanx.device_put(data, result.sharding)  # a result says what may be asked for


@pytest.mark.parametrize("spec, rank", [(P(None), 0), (P(None, None), 1), (P("a", None), 1)])
def test_none_beyond_the_dimensions_is_not_to_be_asked_for(spec, rank):
    data, asked = X[(0,) * (2 - rank)], NamedSharding(MESH, spec)
    made = phalanx.make_array_from_callback(data.shape, asked, lambda index: data[index])
    for x in (data, made):
        for ask in (
            lambda x: phalanx.device_put(x, asked),
            phalanx.jit(jnp.sin, in_shardings=asked),
            phalanx.jit(jnp.sin, out_shardings=asked),
            lambda x: lax.with_sharding_constraint(x, asked),
            phalanx.jit(lambda x: lax.with_sharding_constraint(x, asked)),
            lambda x: phalanx.ShapeDtypeStruct(x.shape, x.dtype, sharding=asked),
        ):
            with pytest.raises(
                ValueError, match=r"entr.* at most one entry for each|dimensions, but"
            ):
                ask(x)
    with pytest.raises(ValueError, match=r"make_array_from_callback: .* at most one entry"):
        named = NamedSharding(MESH, P(*[None] * rank, "a"))
        phalanx.make_array_from_callback(data.shape, named, lambda index: data[index])


def test_local_data_may_be_a_tree():
    local = phalanx.make_array_from_process_local_data
    rows, whole = NamedSharding(MESH, P(("a", "b"))), NamedSharding(MESH, P())
    data = {"a": X, "b": (X[0], None)}
    assert local(None, None) is None
    for made in (
        local({"a": rows, "b": whole}, data),
        local({"a": rows, "b": (whole, None)}, data, {"a": X.shape, "b": None}),
    ):
        assert made["b"][1] is None
        assert (made["a"].sharding, made["b"][0].sharding) == (rows, whole)
        np.testing.assert_array_equal(made["a"], X)
        np.testing.assert_array_equal(made["b"][0], X[0])
    with phalanx.set_mesh(MESH):
        assert [made.sharding for made in local(P(("a", "b")), [X, X])] == [rows, rows]
    with pytest.raises(ValueError, match="global_shape"):
        local({"a": rows}, {"a": X}, {"b": None})


def test_what_is_not_there_says_why():
    for name in ("GSPMDSharding", "PositionalSharding", "UnreducedKind", "no_collectives"):
        with pytest.raises(AttributeError, match=f"{name} is not there: "):
            getattr(phalanx.sharding, name)
    with pytest.raises(AttributeError, match="Did you mean 'NamedSharding'"):
        _ = phalanx.sharding.NamedShardin


@pytest.mark.skipif(COUNT < 2, reason="lanes are to lie over several devices")
@pytest.mark.parametrize("inside", [lambda x: x * 2, lambda x: x * lax.psum(x, ("a", "b"))])
def test_results_of_a_pmap_in_a_pmap_stay_with_its_lanes(inside):
    x = X[:COUNT].reshape(OUTER, COUNT // OUTER, -1)
    f = phalanx.pmap(phalanx.pmap(inside, "b"), "a")
    y = f(x)
    assert y.sharding.spec == P("a", "b")
    assert {c.operation for c in f.lower(x).compile().collectives()} <= {"all-reduce"}
    each = phalanx.vmap(phalanx.vmap(inside, axis_name="b"), axis_name="a")
    np.testing.assert_allclose(y, each(x), rtol=1e-5)
    np.testing.assert_allclose(y[0, -1], each(x)[0, -1], rtol=1e-5)
    assert f(y).sharding.spec == y.sharding.spec  # and are taken where they are
