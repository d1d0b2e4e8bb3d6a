"""Programs that each device runs by itself, and the two forms of the arrays between programs."""

import threading
from collections import deque

import numpy as np
import pytest

import phalanx
from phalanx import P
from phalanx.base.config import config
from phalanx.errors import DeletedArray
from phalanx.xla import compile, flight

pytestmark = pytest.mark.spmd
COUNT = phalanx.local_device_count()
SIZES = (1, COUNT, COUNT + 1, 3 * COUNT + 2)
several = pytest.mark.skipif(COUNT == 1, reason="needs several devices")


def rows(size, *shape):
    return np.arange(size * int(np.prod(shape)), dtype=np.float32).reshape(size, *shape) - 5


def total(x):
    return phalanx.lax.psum(x, "i")


def spans_devices(f, *args):
    return "manual_computation" in f.lower(*args).as_text()


@pytest.mark.parametrize("size", SIZES)
def test_values_with_shared_operands_and_results(size):
    f = phalanx.pmap(lambda x, y: (x + y, 2 * y, x.sum()), in_axes=(0, None), out_axes=(1, None, 0))
    x, y = rows(size, 3), np.float32([1, -2, 4])
    for _ in range(2):
        a, b, c = f(x, y)
        np.testing.assert_array_equal(a, (x + y).T)
        np.testing.assert_array_equal(b, 2 * y)
        np.testing.assert_array_equal(c, x.sum(1))
        assert a.shape == (3, size) and c.shape == (size,)


@several
@pytest.mark.parametrize("size", SIZES[1:])
def test_which_programs_are_independent(size):
    x = rows(size, 2)
    assert not spans_devices(phalanx.pmap(lambda x: x + 1), x)
    assert not spans_devices(phalanx.pmap(phalanx.vmap(total, axis_name="i")), x)
    assert spans_devices(phalanx.pmap(total, axis_name="i"), x)
    assert spans_devices(phalanx.pmap(lambda x: x + phalanx.lax.axis_index("i"), axis_name="i"), x)
    assert spans_devices(phalanx.pmap(lambda x: [x + i for i in range(100)]), x)
    mapped = phalanx.pmap(lambda x: x + 1)
    assert not spans_devices(phalanx.jit(mapped), x)
    assert spans_devices(phalanx.jit(lambda x: mapped(x) + 1), x)
    assert not spans_devices(phalanx.pmap(phalanx.pmap(lambda v: v * 2)), x)
    assert spans_devices(phalanx.pmap(phalanx.pmap(lambda v: v * 2)), rows(1, COUNT))


CUTS = P("i"), P("i", None), P("i", None, None), P(None, "i"), P(None, "i", None), P(), P(None)


@several
@pytest.mark.parametrize(
    ("rank", "cut"), [(rank, cut) for rank in (1, 2, 3) for cut in CUTS if len(cut) <= rank]
)
def test_blocks_are_independent_however_much_of_their_shape_is_told(rank, cut):
    mesh = phalanx.make_mesh((COUNT,), ("i",), axis_types=(phalanx.sharding.AxisType.Auto,))
    f = phalanx.shard_map(lambda x: x * 2, mesh=mesh, in_specs=cut, out_specs=cut)
    x = rows(COUNT, *(COUNT,) * (rank - 1))
    assert not spans_devices(f, x)
    assert not spans_devices(phalanx.jit(f), x)
    said = phalanx.NamedSharding(mesh, cut)
    assert not spans_devices(phalanx.jit(f, in_shardings=said, out_shardings=said), x)
    y = f(phalanx.device_put(x, said))
    np.testing.assert_array_equal(y, x * 2)
    assert y.sharding.is_equivalent_to(said, rank)


@several
def test_what_cannot_be_loaded_for_other_devices_is_compiled_for_them(monkeypatch):
    def refuse(*_):
        raise RuntimeError("INTERNAL: it was made for device 0")

    monkeypatch.setattr(compile, "load", refuse)
    x = rows(COUNT, 2)
    np.testing.assert_array_equal(phalanx.pmap(lambda x: x - 3)(x), x - 3)


@pytest.mark.parametrize("size", SIZES)
def test_results_feed_programs_that_span_devices_and_back(size):
    independent = phalanx.pmap(lambda x: x * 2)
    spanning = phalanx.pmap(lambda x: x + total(x), axis_name="i")
    x = rows(size, 2)
    doubled = independent(x)
    summed = spanning(doubled)
    want = 2 * x + (2 * x).sum(0)
    np.testing.assert_allclose(summed, want, rtol=1e-6)
    np.testing.assert_allclose(independent(summed), 2 * want, rtol=1e-6)
    np.testing.assert_allclose(phalanx.jit(lambda x: x.sum(0))(doubled), (2 * x).sum(0))
    np.testing.assert_array_equal(doubled[-1], 2 * x[-1])
    assert doubled.block_until_ready() is doubled and doubled.is_ready()


@pytest.mark.parametrize(
    "use", [lambda y: y, lambda y: y[0], np.asarray, phalanx.pmap(total, axis_name="i")]
)
@pytest.mark.parametrize("made", [lambda x: x + 1, lambda x: total(x) + x])
@pytest.mark.parametrize("taken", [lambda y: y * 3, lambda y: total(y) - y])
def test_a_donated_argument_is_gone_in_whichever_form(use, made, taken):
    y = phalanx.pmap(made, axis_name="i")(rows(COUNT, 2))
    before = np.array(y)
    use(y)
    z = phalanx.pmap(taken, axis_name="i", donate_argnums=0)(y)
    want = phalanx.vmap(taken, axis_name="i")(before)
    np.testing.assert_array_equal(z, want)
    assert y.is_deleted()
    with pytest.raises(DeletedArray):
        phalanx.pmap(lambda y: y)(y)


def test_programs_that_call_python_span_the_devices():
    def applied(function):
        like = phalanx.ShapeDtypeStruct((2,), np.float32)
        return phalanx.pmap(lambda x: phalanx.pure_callback(function, like, x))

    def refused(x):
        raise KeyError("not this one")

    x = rows(COUNT, 2)
    assert spans_devices(applied(np.negative), x) == (COUNT > 1)
    np.testing.assert_array_equal(applied(np.negative)(x), -x)
    with pytest.raises(KeyError, match="not this one"):
        applied(refused)(x)


@several
@pytest.mark.parametrize("made", [lambda x: x + 1, lambda x: total(x) + x])
@pytest.mark.parametrize("taken", [lambda y: y * 3, lambda y: total(y) - y])
def test_nothing_is_started_or_donated_when_a_part_is_missing(made, taken):
    y = phalanx.pmap(made, axis_name="i")(rows(COUNT, 2))
    parts = [s.data for s in y.addressable_shards]
    parts[-1].delete()
    with pytest.raises(DeletedArray):
        phalanx.pmap(taken, axis_name="i", donate_argnums=0)(y)
    with pytest.raises(DeletedArray):
        phalanx.jit(lambda y: y.sum())(y)
    with pytest.raises(DeletedArray):
        y + 1
    assert not any(p.is_deleted() for p in parts[:-1])


@several
@pytest.mark.parametrize("made", [lambda x: x + 1, lambda x: total(x) + x])
@pytest.mark.parametrize("taken", [lambda y: y * 3, lambda y: total(y) - y])
def test_a_part_that_another_array_held_is_missed(made, taken):
    y = phalanx.pmap(made, axis_name="i")(rows(COUNT, 2))
    mesh = phalanx.make_mesh((COUNT,), ("another name",))
    alias = phalanx.device_put(y, phalanx.NamedSharding(mesh, phalanx.P("another name")))
    parts = [s.data for s in y.addressable_shards]
    joined = phalanx.make_array_from_single_device_arrays(y.shape, alias.sharding, parts)
    run = phalanx.pmap(taken, axis_name="i")
    want = np.asarray(run(y))
    for same in (y, alias, joined):
        np.testing.assert_array_equal(run(same), want)
    parts[-1].delete()
    for lost in (y, alias, joined):
        assert lost.is_deleted()
        with pytest.raises(DeletedArray):
            run(lost)


def test_deleting_deletes_both_forms():
    y = phalanx.pmap(lambda x: x + 1)(rows(COUNT, 2))
    parts = [s.data for s in y.addressable_shards]
    phalanx.pmap(total, axis_name="i")(y)
    y.delete()
    assert y.is_deleted() and all(p.is_deleted() for p in parts)


def test_what_was_compiled_before_is_loaded_on_every_device(tmp_path):
    before = config.compilation_cache_dir, config.persistent_cache_min_compile_time_secs
    config.update("compilation_cache_dir", tmp_path)
    config.update("persistent_cache_min_compile_time_secs", 0)
    try:
        x = rows(COUNT, 4)
        for _ in range(2):
            f = phalanx.pmap(lambda x: np.float32(3) * x + x[::-1])
            np.testing.assert_array_equal(f(x), 3 * x + x[:, ::-1])
        assert len(list(tmp_path.rglob("*"))) > 0
    finally:
        config.update("compilation_cache_dir", before[0])
        config.update("persistent_cache_min_compile_time_secs", before[1])


def test_many_launches_of_both_kinds_from_several_threads_run_through():
    average = phalanx.pmap(lambda x: phalanx.lax.pmean(x, "i"), axis_name="i")
    square = phalanx.pmap(lambda x: (x @ x) / 16)
    found = []

    def work():
        x = phalanx.pmap(lambda x: x)(np.ones((COUNT, 16, 16), np.float32))
        for _ in range(12):
            x = average(x)
            queued = [square(x) for _ in range(40)]  # more than may be in flight
        found.append(np.asarray(queued[-1]))

    threads = [threading.Thread(target=work, daemon=True) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=120)
    assert len(found) == 3 and all((got == 1).all() for got in found)


@several
@pytest.mark.parametrize("f", [lambda x: x + 1, lambda x: x + phalanx.lax.psum(x, "i")])
def test_only_launches_on_cpu_wait_for_room(f, monkeypatch):
    monkeypatch.setattr(flight, "WINDOWED", ())
    monkeypatch.setattr(flight, "in_flight", deque())
    monkeypatch.setattr("phalanx.xla.executables.in_flight", flight.in_flight)
    mapped, x = phalanx.pmap(f, axis_name="i"), rows(COUNT)
    held, done = threading.Event(), threading.Event()

    def hold():
        with flight.launching:
            held.set()
            done.wait(60)

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    try:
        np.testing.assert_array_equal(mapped(x), phalanx.vmap(f, axis_name="i")(x))
        assert not flight.in_flight and not done.is_set()
    finally:
        done.set()
        thread.join()
