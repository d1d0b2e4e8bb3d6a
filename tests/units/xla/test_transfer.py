"""Arrays between host and devices."""

import gc

import ml_dtypes
import numpy as np
import pytest

from phalanx.base.errors import DeletedArray
from phalanx.base.recent import forget_everything
from phalanx.core.types import ArrayType
from phalanx.spmd.mesh import Mesh
from phalanx.spmd.named import NamedSharding, P
from phalanx.spmd.plan import Plan
from phalanx.spmd.sharding import Sharding
from phalanx.xla import tiles, transfer
from phalanx.xla.executables import XlaExecutable
from phalanx.xla.lower import build
from phalanx.xla.reshard import reshard

DTYPES = [
    *"?bhilqBHILQefdFD", ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2,
    ml_dtypes.int4, ml_dtypes.uint4,
]  # fmt: skip
X = np.arange(64, dtype=np.float32).reshape(8, 8)
T = ArrayType((8, 8), np.dtype("f4"))


def layouts(devices):
    mesh = Mesh(np.array(devices).reshape(2, 4), ("a", "b"))
    return {
        "one": Sharding(devices[3:4]),
        "copies": Sharding(devices),
        "rows": Sharding(devices, (8,)),
        "columns": Sharding(devices, (1, 8)),
        "some copies": Sharding(devices, (4,)),
        "grid": Sharding(devices, (2, 2)),
        "backwards": Sharding(devices[::-1], (8,)),
        "transposed": NamedSharding(mesh, P("b", "a")),
        "second axis": NamedSharding(mesh, P(None, "b")),
        "three": Sharding(devices[1:3], (1, 2)),
    }


NAMES = list(layouts(range(8)))


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: np.dtype(d).name)
def test_every_dtype_round_trips(backend, one, devices, dtype):
    x = (np.arange(16) % 5).reshape(8, 2).astype(dtype)
    t = ArrayType(x.shape, x.dtype)
    for sharding in (one, Sharding(devices, (8,)), Sharding(devices, (2,)), Sharding(devices)):
        got = backend.fetch(backend.put(x, t, sharding), t, sharding)
        assert got.dtype == x.dtype and got.shape == x.shape
        np.testing.assert_array_equal(got.astype(complex), x.astype(complex))


@pytest.mark.parametrize("name", NAMES)
def test_layouts_round_trip(backend, devices, name):
    sharding = layouts(devices)[name]
    raw = backend.put(X, T, sharding)
    got = backend.fetch(raw, T, sharding)
    np.testing.assert_array_equal(got, X)
    assert not got.flags.writeable
    index = sharding.indices(X.shape)
    for i, part in enumerate(backend.shards(raw, T, sharding)):
        t = ArrayType(sharding.shard_shape(T.shape), T.dtype)
        np.testing.assert_array_equal(
            backend.fetch(part, t, Sharding(sharding.device_list[i : i + 1])), X[index[i]]
        )


@pytest.mark.parametrize("target", NAMES)
def test_moves(backend, devices, target):
    known = layouts(devices)
    goal = known[target]
    for sharding in known.values():
        raw = backend.put(X, T, sharding)
        moved = backend.move(raw, T, sharding, goal)
        np.testing.assert_array_equal(backend.fetch(moved, T, goal), X)
        t = ArrayType(goal.shard_shape(T.shape), T.dtype)
        for i, part in enumerate(backend.shards(moved, T, goal)):
            there = Sharding(goal.device_list[i : i + 1])
            got = backend.fetch(part, t, there)
            np.testing.assert_array_equal(got, X[goal.indices(X.shape)[i]])
        if (sharding.device_list, sharding.plain) == (goal.device_list, goal.plain):
            assert moved is raw


@pytest.mark.parametrize("dtype", ["f4", "?", ml_dtypes.int4, "D"], ids=str)
@pytest.mark.parametrize(
    ("source", "target"),
    [("one", "copies"), ("one", "grid"), ("one", "transposed"), ("three", "columns"),
     ("three", "one"), ("copies", "three"), ("columns", "three"), ("one", "three"),
     ("grid", "three"), ("rows", "padded"), ("padded", "one")],
)  # fmt: skip
def test_other_devices_are_reached_without_the_host(
    backend, devices, monkeypatch, source, target, dtype
):
    x = (np.arange(64) % 5).reshape(8, 8).astype(dtype)
    t = ArrayType(x.shape, x.dtype)
    known = {**layouts(devices), "padded": Sharding(devices[:6], (3, 2))}
    before, after = known[source], known[target]
    raw = backend.put(x, t, before)
    on_host = []
    monkeypatch.setattr(transfer, "in_host_memory", lambda _: False)
    monkeypatch.setattr(
        transfer, "rearranged", lambda *given: on_host.append(given) or tiles.rearranged(*given)
    )
    moved = backend.move(raw, t, before, after)
    assert not on_host
    backend.delete(raw)  # nothing is shared
    np.testing.assert_array_equal(backend.fetch(moved, t, after), x)
    for i, part in enumerate(backend.shards(moved, t, after)):
        home = Sharding(after.device_list[i : i + 1])
        piece = ArrayType(after.shard_shape(t.shape), t.dtype)
        expected = x[after.indices(x.shape)[i]]
        ends = [(0, n - k) for n, k in zip(piece.shape, expected.shape, strict=True)]
        expected = np.pad(expected, ends, mode="edge")  # rows of padding repeat the last one
        np.testing.assert_array_equal(backend.fetch(part, piece, home), expected)


@pytest.mark.parametrize("name", ["copies", "columns", "some copies", "grid", "transposed"])
def test_resharding_by_a_program(backend, devices, name):
    source, target = Sharding(devices, (8,)), layouts(devices)[name]
    moved = reshard(backend.put(X, T, source), T, source, target)
    np.testing.assert_array_equal(backend.fetch(moved, T, target), X)
    assert reshard(moved, T, target, Sharding(devices[::-1])) is None
    odd = Sharding(devices, (8,), (1, 0, 2, 3, 4, 5, 7, 6))
    assert reshard(moved, T, target, odd) is None


def test_programs_that_reshard_are_forgotten_with_all_others(backend, devices):
    def alive():
        gc.collect()
        return sum(isinstance(x, XlaExecutable) for x in gc.get_objects())

    forget_everything()
    before = alive()
    source, target = Sharding(devices, (8,)), Sharding(devices, (1, 8))
    reshard(backend.put(X, T, source), T, source, target)
    assert alive() == before + 1
    forget_everything()
    assert alive() == before


def test_moved_arrays_feed_programs(backend, devices):
    source, target = Sharding(devices[::-1], (8,), range(7, -1, -1)), Sharding(devices, (8,))
    axes = (("m0", 8),)
    plan = Plan(devices, axes, (P("m0"),), (P("m0"),))
    negate = backend.compile(build([T], [T], plan, lambda b, x: [b.negate(x)]))
    raw = backend.move(backend.put(X, T, source), T, source, target)
    np.testing.assert_array_equal(backend.fetch(negate([raw])[0], T, target), -X)
    parts = backend.shards(backend.put(X, T, target), T, target)
    whole = backend.assemble(parts, T, target)
    np.testing.assert_array_equal(backend.fetch(negate([whole])[0], T, target), -X)


@pytest.mark.parametrize(
    "x",
    [
        X[::2, ::-1],
        X.T,
        X.astype(">f4"),
        np.broadcast_to(np.float32(3), (8, 4)),
        np.zeros((8, 0), np.float32),
        np.zeros((0, 5), np.float32),
        np.float32(7),
        X.astype("f8"),
    ],
    ids=["strided", "transposed", "big-endian", "repeated", "empty", "no rows", "scalar", "wide"],
)
def test_awkward_sources(backend, one, devices, x):
    t = ArrayType(x.shape, np.dtype("f4"))
    shardings = [one, Sharding(devices), Sharding(devices, (4,)), Sharding(devices, (2,))]
    for sharding in shardings if x.ndim else shardings[:2]:
        try:
            sharding.shard_shape(x.shape)
        except ValueError:
            continue
        raw = backend.put(x, t, sharding)
        got = backend.fetch(raw, t, sharding)
        assert got.dtype == np.float32
        np.testing.assert_array_equal(got, x)
        assert len(backend.shards(raw, t, sharding)) == sharding.num_devices


def test_later_writes_do_not_show(backend, one, devices):
    for sharding in (one, Sharding(devices), Sharding(devices, (8,)), Sharding(devices, (2,))):
        for shape in ((8, 2), (8, 1024)):  # large blocks are aligned, the runtime would share them
            memory = np.zeros(np.prod(shape) + 64, np.float32)
            start = (-memory.ctypes.data // 4) % 16
            x = memory[start : start + np.prod(shape)].reshape(shape)
            t = ArrayType(shape, x.dtype)
            raw = backend.put(x, t, sharding)
            x += 1
            assert not backend.fetch(raw, t, sharding).any()


def test_fetching_from_one_device_does_not_copy(backend, one):
    raw = backend.put(X, T, one)
    first, second = backend.fetch(raw, T, one), backend.fetch(raw, T, one)
    assert np.shares_memory(first, second) and not first.flags.writeable


def test_wrong_shapes_are_refused(backend, one):
    with pytest.raises(ValueError, match=r"shape \(2, 3\), but the type is f32\[8,8\]"):
        backend.put(np.zeros((2, 3)), T, one)


def test_deleted_arrays(backend, one, devices):
    for sharding in (one, Sharding(devices, (8,))):
        raw = backend.put(X, T, sharding)
        assert not backend.is_deleted(raw)
        backend.block([raw, raw])
        assert backend.is_ready(raw)
        backend.delete(raw)
        backend.delete(raw)
        assert backend.is_deleted(raw)
        for use in (
            lambda r, s: backend.fetch(r, T, s),
            lambda r, s: backend.block([r]),
            lambda r, s: backend.move(r, T, s, Sharding(devices)),
        ):
            with pytest.raises(DeletedArray):
                use(raw, sharding)


def test_dlpack(backend, one):
    raw, t = backend.from_dlpack(X, one.device_list[0])
    assert t is T
    np.testing.assert_array_equal(backend.fetch(raw, t, one), X)

    class Capsule:
        def __init__(self, raw):
            self.raw = raw

        def __dlpack__(self, **_):
            return backend.to_dlpack(self.raw)

        def __dlpack_device__(self):
            return (1, 0)

    mine = backend.put(X, T, one)
    shared = np.from_dlpack(Capsule(mine))
    np.testing.assert_array_equal(shared, X)
    assert np.shares_memory(shared, backend.fetch(mine, T, one))
