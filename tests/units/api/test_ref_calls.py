"""Mutable references: what is read and written, calls that are found again, and who owns memory."""

import copy
import functools
import pickle
from contextlib import nullcontext

import jax
import jax.numpy as peer
import numpy as np
import pytest

import phalanx
import phalanx.numpy as jnp
from phalanx import P, lax
from phalanx.api.linear import DidntWant, DontWant, GradRef, GradValue
from phalanx.api.stages import watching
from phalanx.errors import NonFiniteError, RefError, ShapeError
from phalanx.numpy.slices import Slice


def held(ref):
    return np.asarray(ref[...]).tolist()


def test_what_a_reference_tells_of_itself():
    ref = phalanx.new_ref(jnp.zeros((2, 3), jnp.int32))
    assert isinstance(ref, phalanx.Ref) and not isinstance(ref, phalanx.Array)
    assert (ref.shape, ref.dtype, ref.ndim, ref.size, len(ref)) == ((2, 3), np.int32, 2, 6, 2)
    assert phalanx.typeof(ref) == ref.aval and isinstance(ref.aval, phalanx.ref.AbstractRef)
    assert str(ref.aval) == "Ref{i32[2,3]}" and ref.aval.inner_aval.shape == (2, 3)
    assert ref.sharding.device_set == {phalanx.devices()[0]} and not ref.committed
    assert [row.shape for row in ref] == [(3,), (3,)]
    assert not phalanx.new_ref(1.0)[...].weak_type


@pytest.mark.parametrize("value", [np.arange(3), np.float32(1), True])
def test_it_is_shown_as_the_peer_shows_it(value):
    assert repr(phalanx.new_ref(value)) == repr(jax.new_ref(peer.asarray(value)))


INDICES = [..., 1, -1, slice(1, 3), (slice(None), 0), (1, slice(0, 2)), np.array([2, 0]), None]


@pytest.mark.parametrize("index", INDICES, ids=str)
def test_parts_are_those_of_numpy(index):
    host = np.arange(12, dtype=np.float32).reshape(4, 3)
    ref = phalanx.new_ref(host)
    whole = ... if index is None else index
    np.testing.assert_array_equal(phalanx.ref.get(ref, index), host[whole])
    before = phalanx.ref.swap(ref, index, 7.0)
    np.testing.assert_array_equal(before, host[whole])
    phalanx.ref.addupdate(ref, index, 1.0)
    host[whole] = 8
    np.testing.assert_array_equal(ref[...], host)
    phalanx.ref.set(ref, index, host[whole] + 1)
    host[whole] += 1
    np.testing.assert_array_equal(ref[...], host)


def test_parts_of_parts():
    ref = phalanx.new_ref(jnp.zeros((3, 4)))
    part = ref.at[1:].at[0]
    part[2] = 5.0
    part.addupdate(1.0, 0)
    part.at[3].set(2.0)
    assert part.swap(9.0, 1) == 0
    assert (part.shape, part.dtype, part.ndim, part.size) == ((4,), np.float32, 1, 4)
    assert held(ref) == [[0, 0, 0, 0], [1, 9, 5, 2], [0, 0, 0, 0]]
    assert part.get().tolist() == part[...].tolist() == [1, 9, 5, 2]


def test_a_reference_in_another_shape_is_the_same_reference():
    ref = phalanx.new_ref(jnp.arange(6.0))
    table = ref.reshape(2, -1)
    table[1] = 9.0
    table.at[0].reshape((3, 1))[2] *= 4.0
    assert held(ref) == [0, 1, 8, 9, 9, 9] and table.shape == (2, 3)
    assert repr(table) == f"{ref!r}.reshape(2, 3)"
    with pytest.raises(ShapeError, match="6 elements"):
        ref.reshape(4, 2)


@pytest.mark.parametrize("window", [Slice(3, 3), Slice(-1, 2), Slice(0, 3, 3)], ids=str)
def test_a_window_that_is_known_to_reach_outside_is_refused(window):
    ref = phalanx.new_ref(jnp.arange(10.0).reshape(2, 5))
    with pytest.raises(
        ValueError, match=r"Out of bound slice.* 5 in dimension 1, at test_ref_calls.py"
    ):
        ref[..., window]
    with pytest.raises(ValueError, match="Out of bound slice"):
        ref[1, window] = 0.0
    assert ref[0, Slice(2, 3)].tolist() == [2, 3, 4] and ref[0, Slice(5, 0)].size == 0


def test_windows_begin_where_it_is_known_while_running():
    def at(start):
        ref = phalanx.new_ref(jnp.arange(24.0).reshape(4, 6))
        part = ref[None, Slice(start, 2), 1]
        ref[..., Slice(start, 2, 2)] *= -1.0
        ref.at[Slice(start, 2)][0, Slice(1, 1)] += 100.0
        return part, ref[...]

    expected = np.arange(24.0).reshape(4, 6)
    expected[:, 1:4:2] *= -1
    expected[1, 1] += 100
    part, after = phalanx.jit(at)(1)
    np.testing.assert_array_equal(part, [[7.0, 13.0]])
    np.testing.assert_array_equal(after, expected)


@pytest.mark.parametrize(
    ("dtype", "value", "fits"),
    [
        (np.float32, 1, True), (np.float32, np.int32(1), False), (np.int32, 1.5, False),
        (np.int32, True, False), (np.float16, 1.5, True), (np.float16, np.float32(1), False),
        (np.complex64, 1.5, True), (bool, True, True), (bool, 1, False),
    ],
)  # fmt: skip
def test_a_value_has_the_dtype_or_gives_way_to_it(dtype, value, fits):
    ref = phalanx.new_ref(np.zeros((), dtype))
    if fits:
        ref[...] = value
        assert ref[...] == np.asarray(value, dtype) and ref[...].dtype == dtype
    else:  # where the peer refuses, too
        with pytest.raises(RefError, match="Invalid dtype"):
            ref[...] = value
        with pytest.raises(ValueError, match="Invalid dtype"):
            jax.new_ref(peer.zeros((), dtype))[...] = value


def test_a_reference_to_keys():
    keys = phalanx.new_ref(phalanx.random.key(0))

    @phalanx.jit
    def draw():
        keys[...], own = phalanx.random.split(keys[...])
        return phalanx.random.uniform(own)

    after, first = phalanx.random.split(phalanx.random.key(0))
    assert draw() == phalanx.random.uniform(first)
    assert draw() == phalanx.random.uniform(phalanx.random.split(after)[1])


# ---- memory -------------------------------------------------------------------------------------

take = phalanx.jit(lambda x: x + 1, donate_argnums=0)


def _from_an_array(ref, x):
    return phalanx.new_ref(x), x


def _written_outside(ref, x):
    ref[...] = x
    return ref, x


def _written_in_jit(ref, x):
    phalanx.jit(lambda y: ref.set(y))(x)
    return ref, x


def _written_in_a_branch(ref, x):
    lax.cond(True, lambda y: ref.set(y), lambda y: ref.set(y), x)
    return ref, x


def _written_in_lanes(ref, x):
    phalanx.vmap(lambda r, y: r.set(y))(ref, x)
    return ref, x


def _written_with_a_tangent(ref, x):
    slope = phalanx.new_ref(jnp.ones(4))
    phalanx.jvp(lambda r, y: r.set(y), (ref, x), (slope, jnp.ones(4)))
    return ref, x


def _read_outside(ref, x):
    ref[...] = x
    return ref, ref[...]


def _read_in_jit(ref, x):
    ref[...] = x
    return ref, phalanx.jit(lambda r: r[...])(ref)


def _read_in_lanes(ref, x):
    ref[...] = x
    return ref, phalanx.vmap(lambda r: r[...])(ref)


def _read_in_a_branch(ref, x):
    ref[...] = x
    return ref, lax.cond(True, lambda: ref[...], lambda: ref[...])


USES = [value for name, value in globals().items() if name.startswith(("_from", "_writ", "_read"))]


@pytest.mark.parametrize("use", USES, ids=lambda f: f.__name__)
def test_what_the_user_donates_is_not_the_memory_of_a_reference(use):
    ref, array = use(phalanx.new_ref(jnp.zeros(4)), jnp.arange(4.0))
    take(array)
    assert array.is_deleted()
    assert held(ref) == [0, 1, 2, 3]


def test_a_donated_reference_keeps_what_it_holds():
    ref = phalanx.new_ref(jnp.ones(4))
    total = phalanx.jit(lambda r: r[...] * 2, donate_argnums=0)(ref)
    assert held(ref) == [1, 1, 1, 1] and total.tolist() == [2, 2, 2, 2]


def test_copies_are_references_of_their_own():
    ref = phalanx.new_ref(1.0)
    others = [copy.copy(ref), copy.deepcopy(ref), pickle.loads(pickle.dumps(ref))]
    ref[...] = 2.0
    assert [held(x) for x in others] == [1, 1, 1]


# ---- calls --------------------------------------------------------------------------------------


def test_a_compiled_function_is_traced_once_for_all_references_of_a_type():
    traced = []

    @phalanx.jit
    def add(refs, x):
        traced.append(x)
        refs["a"][...] += x
        return refs["b"][...]

    a, b, c = (phalanx.new_ref(0.0) for _ in range(3))
    for one, two in [(a, b), (b, c), (c, a)]:
        add({"a": one, "b": two}, 1.0)
    assert [held(x) for x in (a, b, c)] == [1, 1, 1] and len(traced) == 1
    add({"a": phalanx.new_ref(jnp.zeros(2)), "b": a}, 1.0)
    assert len(traced) == 2


def test_a_reference_and_an_array_are_different_arguments():
    f = phalanx.jit(lambda x: x[...] * 2)
    assert f(jnp.ones(())) == 2 and f(phalanx.new_ref(3.0)) == 6 and f(jnp.ones(())) == 2


def test_captured_references_are_taken_anew_in_each_call():
    traced = []
    ref = phalanx.new_ref(jnp.arange(8.0))

    @phalanx.jit
    def total():
        traced.append(1)
        ref[0] += 1.0
        return jnp.sum(ref[...])

    assert (total(), total()) == (29, 30)
    mesh = phalanx.make_mesh((8,), ("i",))
    ref[...] = phalanx.device_put(ref[...], phalanx.NamedSharding(mesh, P("i")))
    assert total() == 31 and len(ref.sharding.device_set) == 8
    assert len(traced) == 1


@pytest.mark.parametrize("where", ["eager", "jit"])
def test_loops_with_references_from_outside_are_traced_once(where):
    traced = []
    ref = phalanx.new_ref(0.0)

    def step(carry, x):
        traced.append(1)
        ref[...] += x
        return carry, None

    run = {"eager": lambda f: f(), "jit": lambda f: phalanx.jit(f)()}[where]
    for _ in range(3):
        run(lambda: lax.scan(step, None, jnp.arange(4.0))[1])
    assert held(ref) == 18 and len(traced) == 1


def test_a_condition_and_a_body_touch_references_in_any_order():
    a, b = phalanx.new_ref(1.0), phalanx.new_ref(10.0)

    def body(i):
        b[...] += 1.0
        a[...] *= 2.0
        return i + 1

    lax.while_loop(lambda i: a[...] < 5, body, 0)
    assert (held(a), held(b)) == (8, 13)


def test_functions_made_anew_see_their_own_references():
    def total(start):
        ref = phalanx.new_ref(start)
        lax.fori_loop(0, 3, lambda i, _: ref.addupdate(1.0), None)
        return held(ref)

    assert [total(0.0), total(10.0)] == [3, 13]


def test_a_compiled_function_in_another_writes_what_that_sees():
    ref = phalanx.new_ref(0.0)

    @phalanx.jit
    def inner(x):
        ref[...] += x
        return ref[...]

    @phalanx.jit
    def outer(x):
        local = phalanx.new_ref(inner(x))
        phalanx.jit(lambda: local.addupdate(inner(10 * x)))()
        return local[...]

    assert (outer(1.0), held(ref), outer(1.0), held(ref)) == (12, 11, 34, 22)


def test_ahead_of_time():
    ref, other = phalanx.new_ref(0.0), phalanx.new_ref(1.0)

    @phalanx.jit
    def f(r, x):
        r[...] += x * other[...]
        other[...] = 2.0
        return r[...] * 10

    traced = f.trace(ref, 1.0)
    assert traced.out_info == phalanx.ShapeDtypeStruct((), "float32")
    lowered = traced.lower()
    assert lowered.in_avals[0][0].shape == () and "stablehlo.add" in lowered.as_text()
    compiled = lowered.compile()
    assert (compiled(ref, 1.0), compiled(ref, 1.0)) == (10, 30) and held(ref) == 3
    assert compiled(phalanx.new_ref(5.0), 1.0) == 70
    assert compiled.output_shardings.device_set == {phalanx.devices()[0]}
    with pytest.raises(RefError, match="used inside without being passed"):
        compiled(other, 1.0)


def test_programs_take_and_give_what_references_hold():
    ref = phalanx.new_ref(jnp.zeros(2))

    def f(r, x):
        ref[...] = -ref[...]
        r[...] += x
        return x

    shown = str(phalanx.make_program(f)(phalanx.new_ref(0.0), 2.0))
    assert shown == (
        "f(a: f32[2], b: f32[], c: f32[]~) {\n"
        "  d: f32[2] = neg a\n"
        "  e: f32[] = add b c\n"
        "  return d, c, e\n"
        "}"
    )
    assert phalanx.eval_shape(f, phalanx.new_ref(0.0), 2.0).shape == ()
    assert held(ref) == [0, 0]


@pytest.mark.parametrize("watched", [False, True], ids=["alone", "watched"])
def test_shardings_are_about_arguments_and_results(watched):
    mesh = phalanx.make_mesh((8,), ("i",))
    rows = phalanx.NamedSharding(mesh, P("i"))
    ref, total = phalanx.new_ref(jnp.zeros(8)), phalanx.new_ref(0.0)

    def f(r, x):
        r[...] += x
        total[...] += jnp.sum(x)
        return x * 2

    compiled = phalanx.jit(f, in_shardings=rows, out_shardings=rows)
    seen = []
    with watching(seen.append) if watched else nullcontext():
        out = compiled(ref, jnp.arange(8.0))
    assert out.sharding == rows and held(ref) == list(range(8)) and held(total) == 28
    assert len(seen) == watched


def test_what_was_placed_elsewhere_is_refused_of_references_too():
    mesh = phalanx.make_mesh((8,), ("i",))
    rows, whole = (phalanx.NamedSharding(mesh, P(*axes)) for axes in ("i", ()))
    ref = phalanx.new_ref(phalanx.device_put(jnp.zeros(8), whole))
    f = phalanx.jit(lambda r: r[...] + 1, in_shardings=rows)
    for called in (f, f.trace):
        with pytest.raises(ValueError, match="in_shardings asks for"):
            called(ref)


FEW = functools.partial(phalanx.vmap, lanes_at_once=2)


@pytest.mark.parametrize("mapped", [phalanx.pmap, phalanx.vmap, FEW], ids=["pmap", "vmap", "few"])
def test_lanes_read_references_from_outside_as_they_are_now(mapped):
    ref = phalanx.new_ref(2.0)
    f = mapped(lambda x: x * ref[...])
    assert f(jnp.arange(3.0)).tolist() == [0, 2, 4]
    ref[...] = 3.0
    assert f(jnp.arange(3.0)).tolist() == phalanx.jit(f)(jnp.arange(3.0)).tolist() == [0, 3, 6]


def mixing(ref, mean, x):
    """Reads and writes its part of a reference, in a loop and a branch, among the lanes "i"."""
    lax.fori_loop(0, 2, lambda i, _: ref.addupdate(x * i), None)
    total = lax.psum(ref[...], "i")
    lax.cond(x > 1, lambda: ref.set(total), lambda: None)
    return ref[...] * mean[...]


@pytest.mark.spmd
@pytest.mark.parametrize("devices", [1, 3, 8])
@pytest.mark.parametrize("length", [1, 5, 8])
def test_lanes_of_pmap_write_their_parts_as_those_of_vmap(devices, length):
    options = {"in_axes": (1, None, 0), "axis_name": "i"}
    lanes = phalanx.pmap(mixing, **options, devices=phalanx.devices()[:devices])
    few = phalanx.pmap(mixing, **options, devices=phalanx.devices()[:devices], lanes_at_once=2)
    chunks = [phalanx.vmap(mixing, **options, lanes_at_once=n) for n in (1, 2, "all")]
    runs = [phalanx.vmap(mixing, **options), lanes, phalanx.jit(lanes), few]
    runs += [*chunks, phalanx.jit(chunks[1])]
    xs, found = jnp.arange(length, dtype="float32"), []
    for f in runs:
        ref, mean = phalanx.new_ref(jnp.ones((2, length))), phalanx.new_ref(0.5)
        for _ in range(2):
            results = f(ref, mean, xs)
        found.append((held(ref), results.tolist()))
    assert found == found[:1] * len(runs)


def agreeing(ref, x):
    """Writes to a reference what differs between the lanes "i", and in the end their mean."""
    count = phalanx.new_ref(0.0)
    for _ in range(2):
        ref[...] += x
        ref[...] = lax.pmean(ref[...], "i")
        count[...] += 1
    return ref[...] * x * count[...]


@pytest.mark.spmd
@pytest.mark.parametrize("passed", [False, True], ids=["closed over", "passed"])
@pytest.mark.parametrize("devices", [1, 3, 8])
@pytest.mark.parametrize("length", [1, 5])
def test_what_lanes_agree_on_goes_to_a_reference_that_is_not_mapped(passed, devices, length):
    def by(mapped, ref, xs, **options):
        if passed:
            return mapped(agreeing, axis_name="i", in_axes=(None, 0), **options)(ref, xs)
        return mapped(lambda x: agreeing(ref, x), axis_name="i", **options)(xs)

    xs, found = jnp.arange(length, dtype="float32"), []
    pmap = functools.partial(phalanx.pmap, devices=phalanx.devices()[:devices])
    runs = [
        lambda ref: by(phalanx.vmap, ref, xs),
        lambda ref: by(pmap, ref, xs),
        lambda ref: by(pmap, ref, xs, lanes_at_once=2),
        lambda ref: by(phalanx.vmap, ref, xs, lanes_at_once=2),
        lambda ref: by(phalanx.vmap, ref, xs, lanes_at_once=1),
        lambda ref: phalanx.jit(lambda xs: by(phalanx.vmap, ref, xs, lanes_at_once=2))(xs),
        lambda ref: phalanx.jit(lambda xs: by(pmap, ref, xs))(xs),
        lambda ref: phalanx.jit(lambda xs: by(phalanx.vmap, ref, xs))(xs),
        lambda ref: phalanx.vmap(lambda _: by(phalanx.vmap, ref, xs))(xs)[0],
    ]
    for run in runs:
        ref = phalanx.new_ref(1.0)
        results = [run(ref).tolist() for _ in range(2)]
        found.append((held(ref), results))
    assert found == found[:1] * len(runs)
    assert held(ref) == 1 + 4 * (length - 1) / 2


@pytest.mark.parametrize("mapped", [phalanx.pmap, phalanx.vmap, FEW], ids=["pmap", "vmap", "few"])
def test_references_stay_as_they_were_where_lanes_do_not_agree(mapped):
    ref = phalanx.new_ref(1.0)

    def f(x):
        ref[...] = 2.0
        ref[...] = x

    for refused in (mapped(f), mapped(lambda ref, x: ref.set(x), in_axes=(None, 0))):
        arguments = (jnp.arange(3.0),) if refused.__name__ == "f" else (ref, jnp.arange(3.0))
        with pytest.raises(ValueError, match="differs"):
            refused(*arguments)
        assert held(ref) == 1


@pytest.mark.parametrize("axis", [0, None])
@pytest.mark.parametrize("mapped", [phalanx.pmap, phalanx.vmap, FEW], ids=["pmap", "vmap", "few"])
@pytest.mark.parametrize("use", [lambda ref: ref[...], lambda ref: ref.set(0.0)])
def test_lanes_know_a_reference_that_is_passed_by_one_name(use, mapped, axis):
    ref = phalanx.new_ref(jnp.ones(3))
    f = mapped(lambda own, x: (own.set(own[...]), phalanx.jit(use)(ref))[0], in_axes=(axis, 0))
    with pytest.raises(RefError, match="passed, and used inside without being passed"):
        f(ref, jnp.arange(3.0))
    assert held(ref) == [1, 1, 1]


@pytest.mark.parametrize("compiles", [True, False])
def test_positions_write_what_they_agree_on_to_references_from_outside(compiles):
    mesh = phalanx.make_mesh((3,), ("i",))
    total = phalanx.new_ref(jnp.zeros(2))

    def f(x):
        total[...] += lax.psum(x[0], "i")
        return x

    x = jnp.arange(6.0).reshape(3, 2)
    with phalanx.disable_jit(not compiles):
        out = phalanx.shard_map(f, mesh=mesh, in_specs=P("i"), out_specs=P("i"))(x)
    assert held(total) == [6, 9] and out.tolist() == x.tolist()


def test_nested_lanes_write_their_parts():
    ref = phalanx.new_ref(jnp.zeros((2, 3)))
    twice = phalanx.pmap(phalanx.pmap(lambda part, x: part.set(x), in_axes=(0, None)))
    twice(ref, jnp.array([1.0, 2.0]))
    assert held(ref) == [[1, 1, 1], [2, 2, 2]]


@pytest.mark.parametrize("lengths", [(1, 1), (1, 3), (4, 2)])
def test_a_mesh_cuts_references_as_arrays(lengths):
    mesh = phalanx.make_mesh(lengths, ("i", "j"))

    def f(ref, x):
        ref[...] += lax.psum(x[0], "i")
        ref[0] = -1.0
        return ref[...]

    x = np.arange(lengths[0] * 6, dtype="float32").reshape(lengths[0], 6)
    expected = x.sum(0)
    expected[:: 6 // lengths[1]] = -1
    g = phalanx.shard_map(f, mesh=mesh, in_specs=(P("j"), P("i", "j")), out_specs=P("j"))
    for h, compiles in [(g, True), (phalanx.jit(g), True), (g, False)]:
        ref = phalanx.new_ref(jnp.zeros(6))
        with phalanx.disable_jit(not compiles):
            assert h(ref, x).tolist() == held(ref) == expected.tolist()
    assert ref[...].sharding.spec == P("j")


def test_lowered_functions_of_lanes_write_references():
    ref = phalanx.new_ref(jnp.zeros(3))
    phalanx.pmap(lambda part, x: part.set(x)).lower(ref, jnp.ones(3)).compile()(ref, jnp.ones(3))
    assert held(ref) == [1, 1, 1]


def test_positions_of_a_mesh_have_references_of_their_own():
    ref = phalanx.new_ref(2.0)

    def f(x):
        own, most = phalanx.new_ref(0.0), phalanx.new_ref(0.0)
        lax.scan(lambda c, _: (own.addupdate(x[0]), None), None, None, length=3)
        lax.cond(x[0] > 1, lambda: most.set(x[0]), lambda: None)
        return own[...][None], most[...][None] * ref[...]

    mesh = phalanx.make_mesh((4,), ("i",))
    g = phalanx.shard_map(f, mesh=mesh, in_specs=P("i"), out_specs=P("i"))
    for h in (g, phalanx.jit(g)):
        assert [x.tolist() for x in h(jnp.arange(4.0))] == [[0, 3, 6, 9], [0, 0, 4, 6]]


def test_a_failing_call_leaves_references_as_they_were():
    ref = phalanx.new_ref(1.0)

    @phalanx.jit
    def fails_while_traced():
        ref[...] = 2.0
        raise OSError

    @phalanx.jit
    def fails_while_running():
        ref[...] = 2.0
        phalanx.io_callback(fail, None, ref[...])

    def fail(_):
        raise OSError

    for f in (fails_while_traced, fails_while_running):
        with pytest.raises(OSError):
            f()
    with phalanx.debug_nans(True), pytest.raises(NonFiniteError):
        phalanx.jit(lambda x: (ref.set(2.0), jnp.log(x))[1])(-1.0)
    assert held(ref) == 1


# ---- derivatives --------------------------------------------------------------------------------


def test_what_has_no_tangent_is_written_outside_of_a_derivative():
    ref = phalanx.new_ref(0.0)

    def f(x):
        ref[...] = lax.stop_gradient(x) * 3
        return x * ref[...]

    for g in (phalanx.grad(f), phalanx.grad(phalanx.jit(f)), phalanx.grad(phalanx.checkpoint(f))):
        ref[...] = 0.0
        assert (g(2.0), held(ref)) == (6, 6)


def test_the_tangent_of_a_reference_is_a_reference():
    ref, slope = phalanx.new_ref(3.0), phalanx.new_ref(1.0)

    def f(x, r):
        r[...] *= x
        return r[...] + x

    assert phalanx.jvp(f, (2.0, ref), (1.0, slope)) == (8, 6)
    assert (held(ref), held(slope)) == (6, 5)


@pytest.mark.parametrize("around", [lambda f: f, phalanx.jit], ids=["alone", "jit"])
def test_a_backward_rule_hands_out_a_cotangent(around):
    @phalanx.custom_vjp
    def seen(ref, x):
        return x

    def backward(ref, ct):
        ref[...] = ct
        return None, ct

    seen.defvjp(lambda ref, x: (x, ref), backward)
    ref = phalanx.new_ref(0.0)
    gradient = around(phalanx.grad(lambda x, r: jnp.sin(seen(r, x * 2))))
    assert gradient(1.0, ref) == pytest.approx(2 * np.cos(2.0), rel=1e-5)
    assert held(ref) == pytest.approx(np.cos(2.0), rel=1e-5)


def test_what_a_derivative_computes_again_writes_once():
    ref = phalanx.new_ref(0.0)

    def f(x):
        ref[...] += 1.0
        return jnp.sin(jnp.sin(x))

    phalanx.grad(phalanx.checkpoint(f))(1.0)
    assert held(ref) == 1


def test_without_compiling():
    ref, rows = phalanx.new_ref(0.0), phalanx.new_ref(jnp.arange(3.0))

    def step(carry, row):
        row[...] += 1.0
        ref[...] += row[...]
        return carry, row[...]

    with phalanx.disable_jit():
        ys = phalanx.jit(lambda: lax.scan(step, None, rows)[1])()
    assert ys.tolist() == held(rows) == [1, 2, 3] and held(ref) == 6


def test_references_made_in_a_block_of_known_values_are_at_home_outside():
    made = []

    @phalanx.jit
    def f(x):
        with phalanx.ensure_compile_time_eval():
            made.append(phalanx.new_ref(1.0))
        return x * made[-1][...]

    assert f(3.0) == 3
    made[0][...] = 2.0
    assert f(3.0) == 6


def _counted(ref, x):
    ref[...] = ref[...] * 2 + x
    return ref[...]


def _last(ref, x):
    before = ref[...]
    ref[...] = x
    return before


def _number(ref, x):
    ref[...] = ref[...] + 1
    return x


@pytest.mark.parametrize("f", [_counted, _last, _number])
@pytest.mark.parametrize(
    "within", [lambda g: g, phalanx.jit, lambda g: lambda xs: FEW(g)(xs[None])]
)
def test_map_in_batches_writes_as_map_does(f, within):
    xs = jnp.arange(1.0, 6.0)

    def run(**options):
        def whole(xs):
            ref = phalanx.new_ref(jnp.float32(3))
            return phalanx.lax.map(lambda x: f(ref, x), xs, **options), ref[...]

        return within(whole)(xs)

    for batched in run(batch_size=2), run(batch_size=5), run(batch_size=1):
        phalanx.tree.map(np.testing.assert_array_equal, batched, run())


def test_map_in_batches_writes_from_outside_of_transformations():
    ref = phalanx.new_ref(jnp.float32(0))
    phalanx.lax.map(lambda x: _counted(ref, x), jnp.arange(3.0), batch_size=2)
    assert ref[...] == 4
    slope = phalanx.grad(
        lambda x: phalanx.lax.map(
            lambda y: _counted(phalanx.new_ref(x), y), jnp.arange(3.0), batch_size=2
        ).sum()
    )(1.0)
    assert slope == 6


def test_map_in_batches_takes_rows_of_references():
    def run(**options):
        rows, fixed = phalanx.new_ref(jnp.arange(5.0)), phalanx.new_ref(jnp.float32(2))

        def f(row):
            ref, x = row
            ref[...] = ref[...] * fixed[...] + x
            return ref[...] + 1

        out = phalanx.lax.map(f, (rows, jnp.ones(5)), **options)
        return out, rows[...]

    phalanx.tree.map(np.testing.assert_array_equal, run(batch_size=2), run())
    with pytest.raises(RefError, match="map"):
        ref = phalanx.new_ref(jnp.arange(5.0))
        phalanx.lax.map(lambda row: row[...] + ref[0], ref, batch_size=2)


def test_cotangents_are_added_to_references():
    def f(x, by):
        return x * by["a"] + by["b"]

    x = jnp.arange(3.0)
    _, pullback = phalanx.vjp(f, x, {"a": x + 1, "b": x})
    total, once = phalanx.new_ref(jnp.ones(3)), phalanx.new_ref(jnp.zeros(3))

    def twice(ct):
        for _ in range(2):
            kept, by = pullback.with_refs(total, {"a": True, "b": once})(ct)
        return kept, by

    kept, by = phalanx.jit(twice)(jnp.ones(3))
    assert kept == by["b"] == GradRef()
    assert by["a"].tolist() == [0, 1, 2]
    assert (held(total), held(once)) == ([3, 5, 7], [2, 2, 2])
    unwanted, by = pullback.with_refs(DontWant(), {"a": GradValue(), "b": DontWant()})(jnp.ones(3))
    assert unwanted == by["b"] == DidntWant()
    assert by["a"].tolist() == [0, 1, 2]
    with pytest.raises(phalanx.errors.TreeError, match=r"vjp\.with_refs: .*structure"):
        pullback.with_refs(total)
    for other in (jnp.zeros((2, 3)), jnp.zeros(3, "int32")):
        with pytest.raises(ValueError, match=r"leaf 0 of the arguments is .*, and its reference"):
            pullback.with_refs(phalanx.new_ref(other), {"a": True, "b": True})
