"""What is saved is what is restored, on whatever devices; readers see whole checkpoints alone."""

import dataclasses
import errno
import json
import os
import shutil
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import phalanx
import phalanx.numpy as jnp
from phalanx import NamedSharding, P, ShapeDtypeStruct, random
from phalanx.base import dtypes
from phalanx.errors import ArgumentError, ShapeError, TreeError
from phalanx.experimental import checkpoint
from phalanx.experimental.checkpoint import leaves, zarr
from phalanx.experimental.checkpoint.index import _checksum
from phalanx.sharding import Mesh
from phalanx.tree_util import register_dataclass

ROOT = Path(__file__).parents[3]
DTYPES = sorted(dtypes.ALL - {dtypes.float0}, key=str)
COUNTS = sorted({n for n in (1, 2, 3, 8) if n <= phalanx.device_count()})


def mesh_of(count):
    return Mesh(phalanx.devices()[:count], ("x",))


def bits(x):
    """The bytes of an array, keys' words included, and what else tells it from others."""
    held = random.key_data(x) if dtypes.issubdtype(x.dtype, dtypes.extended) else x
    weak = getattr(getattr(x, "aval", None), "weak", None)
    return type(x), x.dtype, x.shape, weak, np.asarray(held).tobytes()


def check_same(a, b):
    pairs, treedef = phalanx.tree_util.tree_flatten_with_path(a)
    others, other = phalanx.tree_util.tree_flatten_with_path(b)
    assert treedef == other
    for (path, x), (_, y) in zip(pairs, others, strict=True):
        if hasattr(x, "dtype"):
            assert bits(x) == bits(y), path
        else:
            assert type(x) is type(y), path
            assert repr(x) == repr(y), path


# ---- trees, dtypes, layouts ----

shapes = st.sampled_from([(), (0,), (8,), (8, 3), (3, 0), (2, 8, 1)])
numbers = st.one_of(
    st.booleans(),
    st.integers(),
    st.floats(),
    st.complex_numbers(allow_nan=False, allow_infinity=False),
)


@st.composite
def arrays(draw):
    dtype, shape = draw(st.sampled_from(DTYPES)), draw(shapes)
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    value = rng.integers(0, 2, shape).astype(dtype)
    kind = draw(st.sampled_from(["numpy", "one device", "cut", "copies"]))
    if kind == "numpy":
        return value
    if kind == "one device" or not shape or shape[0] % draw(st.sampled_from(COUNTS)):
        with phalanx.enable_x64():
            return jnp.asarray(value)
    count = max(n for n in COUNTS if shape[0] % n == 0)
    with phalanx.enable_x64():
        return phalanx.device_put(
            value, NamedSharding(mesh_of(count), P("x") if kind == "cut" else P())
        )


trees = st.recursive(
    st.one_of(arrays(), numbers, st.none()),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.lists(inner, max_size=3).map(tuple),
        st.dictionaries(st.text(max_size=3), inner, max_size=3),
    ),
    max_leaves=6,
)


@pytest.mark.spmd
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(trees)
def test_restored_is_what_was_saved(tmp_path_factory, tree):
    directory = tmp_path_factory.mktemp("drawn")
    checkpoint.save(directory, 0, tree)
    check_same(checkpoint.restore(directory), tree)
    again = checkpoint.restore(directory, tree)
    check_same(again, tree)
    for x, y in zip(*map(phalanx.tree.leaves, (tree, again)), strict=True):
        assert getattr(x, "sharding", None) == getattr(y, "sharding", None)


def test_every_dtype_survives(tmp_path):
    with phalanx.enable_x64():
        tree = {t.name: jnp.asarray(np.arange(2).astype(t)) for t in DTYPES}
    tree |= {"numpy": {t.name: np.ones((2, 1), t) for t in DTYPES}}
    checkpoint.save(tmp_path, 1, tree)
    check_same(checkpoint.restore(tmp_path), tree)
    check_same(checkpoint.restore(tmp_path, tree), tree)


@pytest.mark.spmd
@pytest.mark.parametrize("count", COUNTS)
def test_restored_over_other_devices(tmp_path, count):
    value = np.arange(24 * 8.0, dtype=np.float32).reshape(24, 8)
    saved = phalanx.device_put(value, NamedSharding(mesh_of(COUNTS[-1]), P("x")))
    checkpoint.save(tmp_path, 1, {"w": saved, "key": random.split(random.key(1), 24)})
    cuts = NamedSharding(mesh_of(count), P("x"))
    tree = checkpoint.restore(tmp_path, cuts)
    assert tree["w"].sharding == cuts
    assert np.array_equal(tree["w"], value)
    assert bits(tree["key"]) == bits(random.split(random.key(1), 24))
    asked = ShapeDtypeStruct((24, 8), jnp.float32, sharding=NamedSharding(mesh_of(count), P()))
    assert np.array_equal(checkpoint.restore(tmp_path, {"w": asked, "key": ...})["w"], value)


@pytest.mark.spmd
def test_uneven_lanes(tmp_path):
    lanes = phalanx.pmap(lambda x: x * 2.0)(jnp.arange(13.0 * 4).reshape(13, 4))
    split = phalanx.pmap(random.split)(random.split(random.key(0), 13))
    tree = {"lanes": lanes, "keys": split}
    checkpoint.save(tmp_path, 1, tree)
    check_same(checkpoint.restore(tmp_path, tree), tree)
    assert checkpoint.restore(tmp_path, tree)["lanes"].sharding == lanes.sharding
    check_same(checkpoint.restore(tmp_path), tree)


@pytest.mark.spmd
def test_a_shard_reads_only_what_it_needs(tmp_path, monkeypatch):
    monkeypatch.setattr(leaves, "LARGEST", 64)
    checkpoint.save(tmp_path, 1, jnp.arange(64.0).reshape(16, 4))
    assert len(list((tmp_path / "step-1" / "0").glob("c.*"))) == 4
    read, original = [], zarr.read
    monkeypatch.setattr(
        zarr, "read", lambda array, rows: (read.append(rows), original(array, rows))[1]
    )
    cut = P("x") if 16 % COUNTS[-1] == 0 else P()
    checkpoint.restore(tmp_path, NamedSharding(mesh_of(COUNTS[-1]), cut))
    assert sum(len(rows) * len(columns) for rows, columns in read) == 64


def test_parts_never_share_a_chunk():
    for shape, grain in [((12, 5), (4, 5)), ((35, 4), (7, 4)), ((100,), (100,)), ((26,), (13,))]:
        for largest in (8, 16, 40, 1000):
            leaves_largest, leaves.LARGEST = leaves.LARGEST, largest
            try:
                chunk = leaves.chunk_of(shape, grain, 4)
            finally:
                leaves.LARGEST = leaves_largest
            cut = zip(shape, grain, chunk, strict=True)
            assert all(n == whole or n % c == 0 for whole, n, c in cut)


class Moments(NamedTuple):
    mean: object
    rest: object


@register_dataclass
@dataclass
class State:
    moments: object
    count: object


def test_classes_come_back_where_they_are_asked_for(tmp_path):
    tree = State(Moments(jnp.ones(2), [jnp.zeros(3)]), 7)
    checkpoint.save(tmp_path, 1, tree)
    check_same(checkpoint.restore(tmp_path, tree), tree)
    plain = checkpoint.restore(tmp_path)
    check_same(plain, {"moments": {"mean": jnp.ones(2), "rest": [jnp.zeros(3)]}, "count": 7})
    check_same(checkpoint.restore(tmp_path, {"moments": ..., "count": 0})["count"], 7)


def test_a_number_is_an_array_where_one_is_asked_for(tmp_path):
    checkpoint.save(tmp_path, 1, {"step": 3, "rate": 0.5})
    checkpoint.save(tmp_path, 0, 10**30)
    with pytest.raises(OverflowError, match="int32, which holds"):
        checkpoint.restore(tmp_path, jnp.asarray(1), step=0)
    like = phalanx.eval_shape(lambda: {"step": 3, "rate": 0.5})
    arrays = {"step": jnp.asarray(3), "rate": jnp.asarray(0.5)}
    check_same(checkpoint.restore(tmp_path, like), arrays)
    with pytest.raises(ArgumentError, match=r"'step'\] is stored as the Python int 3.*float32"):
        checkpoint.restore(tmp_path, {"step": jnp.float32(3), "rate": ...})


def test_a_scalar_is_a_number_where_one_is_asked_for(tmp_path):
    state = {"step": 0, "rate": 0.5, "on": True, "root": 1j}
    step = phalanx.jit(lambda s: s | {"step": s["step"] + 1})
    checkpoint.save(tmp_path, 1, step(state))
    check_same(checkpoint.restore(tmp_path, state), state | {"step": 1})
    check_same(checkpoint.restore(tmp_path, state | {"step": 0.0})["step"], 1.0)
    with pytest.raises(ArgumentError, match=r"'rate'\] is stored as float32\[\]~?, .* Python int"):
        checkpoint.restore(tmp_path, state | {"rate": 1})
    checkpoint.save(tmp_path, 2, {"n": 3})
    check_same(checkpoint.restore(tmp_path, {"n": 1.0}), {"n": 3.0})


def test_hosts_of_the_other_byte_order(tmp_path):
    checkpoint.save(tmp_path, 1, np.arange(3, dtype=">f8")[::-1])
    check_same(checkpoint.restore(tmp_path, np.zeros(3, ">f8")), np.array([2.0, 1, 0]))


def test_whoever_reads_zarr_reads_it(tmp_path):
    checkpoint.save(tmp_path, 1, np.arange(6, dtype=np.int16).reshape(2, 3))
    told = json.loads((tmp_path / "step-1" / "0" / "zarr.json").read_text())
    assert told["zarr_format"] == 3
    assert (told["shape"], told["data_type"]) == ([2, 3], "int16")
    data = (tmp_path / "step-1" / "0" / "c.0.0").read_bytes()
    assert data[:12] == np.arange(6, dtype="<i2").tobytes()


# ---- steps ----


def test_the_newest_are_kept(tmp_path):
    with checkpoint.Manager(tmp_path, keep=2) as manager:
        assert manager.latest() is None
        for step in (1, 5, 10, 11):
            manager.save(step, {"w": jnp.full(3, step)})
        manager.wait()
        assert manager.steps() == [10, 11]
        assert manager.restore(step=10)["w"][0] == 10
        assert manager.restore()["w"][0] == manager.latest() == 11
    assert sorted(os.listdir(tmp_path)) == ["step-10", "step-11"]


def test_what_was_just_saved_is_kept_where_later_steps_lie(tmp_path):
    for step in (10, 20, 30):
        checkpoint.save(tmp_path, step, step)
    with checkpoint.Manager(tmp_path, keep=2) as manager:
        for step in (5, 6, 7, 15):
            manager.save(step, step)
            assert manager.restore(step=step) == step
    assert checkpoint.steps(tmp_path) == [10, 15, 20, 30]


def test_what_is_written_behind_is_what_was_there(tmp_path):
    host = np.zeros(1000)
    double = phalanx.jit(lambda x: x * 2, donate_argnums=0)
    x = jnp.ones(1000)
    with checkpoint.Manager(tmp_path) as manager:
        manager.save(1, {"host": host, "x": x})
        host[:] = 5
        double(x)
        tree = manager.restore()
    assert np.all(tree["host"] == 0)
    assert np.all(np.asarray(tree["x"]) == 1)


def test_failures_behind_are_raised(tmp_path, monkeypatch):
    manager = checkpoint.Manager(tmp_path)
    monkeypatch.setattr(zarr, "write", lambda *_: (_ for _ in ()).throw(OSError(errno.EIO, "gone")))
    manager.save(1, jnp.ones(2))
    with pytest.raises(OSError, match="gone"):
        manager.wait()
    assert os.listdir(tmp_path) == []
    monkeypatch.undo()
    manager.save(1, jnp.ones(2))
    manager.close()
    assert checkpoint.steps(tmp_path) == [1]


def test_a_checkpoint_that_is_read_is_not_removed(tmp_path, monkeypatch):
    manager = checkpoint.Manager(tmp_path, keep=1, background=False)
    manager.save(1, jnp.zeros(5))
    reads, goes_on, original = threading.Event(), threading.Event(), zarr.read

    def slowly(array, rows):
        reads.set()
        goes_on.wait(10)
        return original(array, rows)

    monkeypatch.setattr(zarr, "read", slowly)
    found = []
    reader = threading.Thread(target=lambda: found.append(checkpoint.restore(tmp_path)))
    reader.start()
    reads.wait(10)
    manager.save(2, jnp.ones(5))
    goes_on.set()
    reader.join(10)
    assert np.array_equal(found[0], np.zeros(5))
    manager.save(3, jnp.ones(5))
    assert manager.steps() == [3]
    manager.close()


WRITERS = """
import os, random, signal, sys, time, numpy as np
from phalanx.experimental import checkpoint

def write(directory):
    with checkpoint.Manager(directory, keep=2) as manager:
        for step in range((manager.latest() or 0) + 1, 100000):
            manager.save(step, {"a": np.full((50, 1000), step), "b": [np.full(1000, step), step]})

chance = random.Random(int(sys.argv[2]))
for _ in range(8):
    before = checkpoint.latest(sys.argv[1])
    writer = os.fork()
    if not writer:
        write(sys.argv[1])
    while checkpoint.latest(sys.argv[1]) == before:
        time.sleep(0.001)
    time.sleep(chance.uniform(0, 0.05))
    os.kill(writer, signal.SIGKILL)
    os.waitpid(writer, 0)
"""


def test_whoever_is_killed_leaves_whole_checkpoints(tmp_path):
    """A reader looks all the time, while writers are killed at random moments."""
    writers = subprocess.Popen(
        [sys.executable, "-c", WRITERS, str(tmp_path), "0"],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )
    seen = []
    try:
        while writers.poll() is None:
            if checkpoint.latest(tmp_path) is None:
                time.sleep(0.01)
            else:
                seen.append(check_whole(tmp_path))
    finally:
        writers.kill()
        writers.wait(10)
    assert writers.returncode == 0
    assert seen == sorted(seen)
    last = check_whole(tmp_path)
    assert last >= 8
    checkpoint.save(tmp_path, last + 1, {})
    assert not [name for name in os.listdir(tmp_path) if name.startswith(".")]


def check_whole(directory):
    tree = checkpoint.restore(directory)
    step = tree["b"][1]
    assert np.all(tree["a"] == step)
    assert np.all(tree["b"][0] == step)
    return step


# ---- what is refused ----


@pytest.fixture
def saved(tmp_path):
    checkpoint.save(tmp_path, 4, {"w": jnp.ones((2, 3)), "b": np.zeros(3), "n": 1})
    return tmp_path


W, B = ShapeDtypeStruct((2, 3), jnp.float32), np.zeros(3)


@pytest.mark.parametrize(
    ("like", "error", "words"),
    [
        ({"w": W, "b": B, "n": jnp.ones(2, int)}, ShapeError, r"Python int 1.*shape \(2,\)"),
        ({"w": W, "b": B}, TreeError, r"stored, but not asked for: tree\['n'\].*as \.\.\."),
        ({"w": W, "b": B, "n": 1, "m": 2}, TreeError, r"but not stored: tree\['m'\]"),
        ({"w": [W], "b": B, "n": 1}, TreeError, r"not stored: tree\['w'\]\[0\]"),
        (W, TreeError, r"tree is stored as a tree, with a leaf tree\['b'\]"),
        ({"w": B, "b": B, "n": 1}, ArgumentError, r"\['w'\] is stored as float32\[2,3\].*float64"),
        ({"w": jnp.ones(6), "b": B, "n": 1}, ShapeError, r"float32\[2,3\].*shape \(6,\)"),
        (
            {"w": W, "b": B, "n": True},
            ArgumentError,
            r"Python int 1, and asked for as a Python bool",
        ),
        ({"w": 1.0, "b": B, "n": 1}, ArgumentError, r"asked for as a Python float"),
        ({"w": W, "b": 3, "n": 1}, ArgumentError, r"\['b'\] is stored as float64\[3\]"),
        ({"w": W, "b": B, "n": "x"}, TypeError, r"\['n'\] is asked for as str 'x'"),
    ],
)
def test_what_is_not_stored_so_is_named(saved, like, error, words):
    with pytest.raises(error, match=words):
        checkpoint.restore(saved, like)


def test_a_leaf_that_cannot_lie_as_its_tree_is_asked_to_is_named(saved):
    cut = NamedSharding(mesh_of(2), P("x"))
    words = r"checkpoint.restore: tree cannot lie as .*: tree\['b'\] is stored as float64\[3\]: "
    with pytest.raises(ShapeError, match=words):
        checkpoint.restore(saved, cut)


@dataclasses.dataclass
class Unregistered:
    w: float


def test_places_without_checkpoints(tmp_path):
    with pytest.raises(FileNotFoundError, match="the directory has no checkpoint"):
        checkpoint.restore(tmp_path)
    with pytest.raises(FileNotFoundError, match="there is no such directory"):
        checkpoint.restore(tmp_path / "other")
    checkpoint.save(tmp_path, 4, 1.0)
    with pytest.raises(FileNotFoundError, match="has no checkpoint of step 5, but of step 4: "):
        checkpoint.restore(tmp_path, step=5)
    (tmp_path / "file").write_text("")
    for use in (checkpoint.restore, checkpoint.steps, checkpoint.Manager):
        with pytest.raises(NotADirectoryError, match="is a file"):
            use(tmp_path / "file")
    with pytest.raises(TypeError, match="directory must be a path, got 3"):
        checkpoint.save(3, 1, {})
    with pytest.raises(
        TypeError, match=r"got \{'w': \[\[0.* It comes first, as in save\(dir"
    ) as told:
        checkpoint.save({"w": np.arange(900).reshape(30, 30).tolist()}, 1, tmp_path)
    assert len(str(told.value)) < 250
    for other in ("ftp://bucket/run", "s3://", Path("s3://bucket/run")):
        with pytest.raises(
            ValueError, match=r"an address as in 's3://bucket/run' .* got '(ftp|s3):"
        ):
            checkpoint.Manager(other)


def test_nothing_is_saved_after_close(tmp_path):
    with checkpoint.Manager(tmp_path) as manager:
        pass
    with pytest.raises(ValueError, match="save after close"):
        manager.save(1, {})
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("leaf", "words"),
    [
        ("text", r"tree\['a'\]\[1\] is neither an array .* got str 'text'"),
        (np.array(["x"]), r"got ndarray of dtype <U1"),
        (object(), r"got object"),
    ],
)
def test_leaves_that_are_no_arrays(tmp_path, leaf, words):
    with pytest.raises(TypeError, match=words):
        checkpoint.save(tmp_path, 1, {"a": [1, leaf]})
    assert os.listdir(tmp_path) == []


def test_keys_and_steps_that_no_file_holds(tmp_path):
    with pytest.raises(TypeError, match=r"keys of dicts must be text or numbers.*\(1, 2\)"):
        checkpoint.save(tmp_path, 1, {(1, 2): 1.0})
    with pytest.raises(TypeError, match=r"step must be an int, got 1\.5"):
        checkpoint.save(tmp_path, 1.5, {})
    with pytest.raises(
        TypeError, match=r"got \{'w': 1.0\}.*The order is save\(directory, step, tree"
    ):
        checkpoint.save(tmp_path, {"w": 1.0}, 3)
    with pytest.raises(
        TypeError, match=r"missing 1 .*'tree'\. It is save\(directory, step, tree\)"
    ):
        checkpoint.save(tmp_path, {"w": 1.0})
    with pytest.raises(
        TypeError, match=r"call tree_util\.register_dataclass\(Unregistered\) before"
    ):
        checkpoint.save(tmp_path, 1, Unregistered(1.0))
    with pytest.raises(ValueError, match="step must be 0 or more, got -1"):
        checkpoint.save(tmp_path, -1, {})
    with pytest.raises(ValueError, match="keep must be 1 or more"):
        checkpoint.Manager(tmp_path, keep=0)
    checkpoint.save(tmp_path, 1, {})
    with pytest.raises(FileExistsError, match="step 1 is saved already"):
        checkpoint.save(tmp_path, 1, {})


def test_a_traced_leaf_is_refused(tmp_path):
    with pytest.raises(TypeError, match=r"neither an array .* it has no value yet"):
        phalanx.jit(lambda x: checkpoint.save(tmp_path, 1, x))(1.0)


def test_without_the_extra(tmp_path, monkeypatch):
    monkeypatch.setattr(zarr, "tensorstore", None)
    for use in (lambda: checkpoint.save(tmp_path, 1, {}), lambda: checkpoint.restore(tmp_path)):
        with pytest.raises(ImportError, match=r"pip install 'phalanx\[checkpoint\]'"):
            use()


def test_a_disk_that_refuses(tmp_path):
    if os.geteuid() == 0:  # to whom nothing is forbidden
        place = Path("/proc/phalanx")
    else:
        place = tmp_path / "fixed"
        place.mkdir(mode=0o500)
    with pytest.raises(OSError, match=str(place)):
        checkpoint.save(place, 1, jnp.ones(2))


def test_errors_of_the_system_keep_their_number(tmp_path):
    class Failing:
        def result(self):
            raise ValueError("FAILED: writing file [os_error_code='28'] [tensorstore_spec='{}']")

    with pytest.raises(OSError, match="No space left") as caught:
        zarr.done(Failing(), tmp_path, "writing tree['w']")
    assert caught.value.errno == errno.ENOSPC
    assert caught.value.filename == str(tmp_path)


def test_damage_is_found(saved):
    folder = saved / "step-4"
    told = json.loads((folder / "checkpoint.json").read_text())
    number = [leaf["path"] for leaf in told["leaves"]].index("['w']")
    chunk = folder / str(number) / "c.0.0"
    data = bytearray(chunk.read_bytes())
    data[3] ^= 1
    chunk.write_bytes(data)
    with pytest.raises(ValueError, match=r"reading tree\['w'\] in"):
        checkpoint.restore(saved)
    chunk.unlink()
    with pytest.raises(ValueError, match=r"reading tree\['w'\] in"):
        checkpoint.restore(saved)
    *before, last = told["leaves"]
    assert last["path"] == "['w']"
    changed = [*before, last | {"shape": [1]}]
    for leaves_told, words in ((before, "do not belong together"), (changed, "the index of")):
        other = told | {"leaves": leaves_told}
        other["checksum"] = _checksum(other)
        (folder / "checkpoint.json").write_text(json.dumps(other))
        with pytest.raises(ValueError, match=words):
            checkpoint.restore(saved)
    (folder / "checkpoint.json").unlink()
    with pytest.raises(ValueError, match="has no index"):
        checkpoint.restore(saved)
    (folder / "checkpoint.json").write_text("{}")
    with pytest.raises(ValueError, match="no index that can be read"):
        checkpoint.restore(saved)
    shutil.rmtree(folder)
    assert checkpoint.steps(saved) == []
    folder.touch()  # somebody's file
    with pytest.raises(ValueError, match="has no index"):
        checkpoint.restore(saved)
