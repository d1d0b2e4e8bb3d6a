"""Checkpoints in an object store: complete when their index is there, which is written last."""

import json

import numpy as np
import pytest

import phalanx
import phalanx.numpy as jnp
from phalanx import NamedSharding, P
from phalanx.experimental import checkpoint
from phalanx.experimental.checkpoint import remote
from tests.units.experimental.s3 import DISAPPEARS, Server

RUN = "s3://ours/runs/a"
STATE = {"w": jnp.arange(12.0).reshape(4, 3), "b": np.arange(3, dtype=np.int8), "step": 7}


@pytest.fixture
def store(monkeypatch):
    with Server() as server:
        for name, value in server.variables.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setattr(remote, "_RETRIES", {"max_retries": 2, "initial_delay": "10ms"})
        yield server
        server.shutdown()


def check_same(found, expected=STATE):
    assert {*found} == {*expected}
    assert all(np.array_equal(found[name], expected[name]) for name in expected)


def object_of(store, name):
    """The one whose name ends so."""
    (found,) = (each for each in store.objects if each.endswith(f"/{name}"))
    return found


def test_what_is_saved_is_restored(store):
    checkpoint.save(RUN, 5, STATE)
    check_same(checkpoint.restore(RUN))
    assert checkpoint.steps(f"{RUN}/") == [5]
    written = [name for method, name in store.asked if method == "PUT"]
    assert written[-1] == "runs/a/step-5/checkpoint.json"
    assert written.count(written[-1]) == 1


def test_a_bucket_is_a_place_too(store):
    checkpoint.save("s3://ours", 0, STATE)
    check_same(checkpoint.restore("s3://ours", STATE))
    assert "step-0/checkpoint.json" in store.objects


def test_devices_read_their_own_parts(store):
    devices = phalanx.devices()[:2]
    mesh = phalanx.make_mesh((len(devices),), ("x",), devices=devices)
    rows = NamedSharding(mesh, P("x"))
    checkpoint.save(RUN, 1, {"w": phalanx.device_put(STATE["w"], rows)})
    found = checkpoint.restore(RUN, {"w": rows})["w"]
    assert np.array_equal(found, STATE["w"])
    assert found.sharding == rows


def test_the_newest_are_kept(store):
    with checkpoint.Manager(RUN, keep=2) as manager:
        assert manager.latest() is None
        assert str(manager.directory) == RUN
        for step in (1, 5, 10, 11):
            manager.save(step, {"w": jnp.full(3, step)})
        manager.wait()
        assert manager.steps() == [10, 11]
        assert manager.restore(step=10)["w"][0] == 10
        assert manager.restore()["w"][0] == 11
    assert {name.split("/")[2] for name in store.objects} == {"step-10", "step-11"}


def test_a_step_is_saved_once(store):
    checkpoint.save(RUN, 1, STATE)
    before = dict(store.objects)
    with pytest.raises(FileExistsError, match="step 1 is saved already") as told:
        checkpoint.save(RUN, 1, {})
    assert told.value.filename == f"{RUN}/step-1"
    assert store.objects == before


def test_who_commits_second_leaves_what_the_first_has(store):
    first, second = (
        checkpoint.saving.Saving(RUN, 1, tree, copy=False) for tree in (STATE, {"w": STATE["w"]})
    )
    first.complete()
    with pytest.raises(FileExistsError, match="step 1 is saved already"):
        second.complete()
    check_same(checkpoint.restore(RUN))
    assert len({name.split("/")[3] for name in store.objects}) == 2  # the index, and one's arrays


def test_half_a_checkpoint_is_none_and_is_removed_by_the_next(store):
    checkpoint.save(RUN, 1, STATE)
    checkpoint.save(RUN, 2, STATE)
    del store.objects["runs/a/step-2/checkpoint.json"]  # as when its writer is killed
    store.objects["runs/a/step-2x/checkpoint.json"] = b"of somebody else"
    assert checkpoint.steps(RUN) == [1]
    with pytest.raises(FileNotFoundError, match="no checkpoint of step 2, but of step 1"):
        checkpoint.restore(RUN, step=2)
    checkpoint.save(RUN, 3, STATE)
    folders = {name.split("/")[2] for name in store.objects}
    assert folders == {"step-1", "step-2x", "step-3"}


@pytest.mark.parametrize("part", ["zarr.json", "c.0.0"])
def test_a_checkpoint_of_which_objects_are_missing(store, part):
    checkpoint.save(RUN, 1, {"w": STATE["w"]})
    del store.objects[object_of(store, part)]
    with pytest.raises(ValueError, match=r"reading tree\['w'\]"):
        checkpoint.restore(RUN)


def test_damage_is_found(store):
    checkpoint.save(RUN, 1, {"w": STATE["w"]})
    name = object_of(store, "c.0.0")
    store.objects[name] = store.objects[name][:5] + b"!" + store.objects[name][6:]
    with pytest.raises(
        ValueError, match=r"reading tree\['w'\] in s3://ours/runs/a/step-1/[0-9a-f]+/0: "
    ):
        checkpoint.restore(RUN)
    store.objects["runs/a/step-1/checkpoint.json"] = b"{}"
    with pytest.raises(ValueError, match="no index that can be read"):
        checkpoint.restore(RUN)


def test_a_store_that_refuses(store):
    checkpoint.save(RUN, 1, STATE)
    store.fails = lambda method, name: 403 if method == "PUT" else None
    with pytest.raises(PermissionError, match="the store refuses; are there credentials") as told:
        checkpoint.save(RUN, 2, STATE)
    assert told.value.filename.startswith(f"{RUN}/step-2/")
    store.fails = lambda method, name: 403
    for use in (checkpoint.restore, checkpoint.steps):
        with pytest.raises(PermissionError, match="the store refuses"):
            use(RUN)
    store.fails = lambda method, name: None
    assert checkpoint.steps(RUN) == [1]


def test_a_store_that_refuses_the_index_has_no_checkpoint(store):
    store.fails = lambda method, name: 403 if (method, name[-5:]) == ("PUT", ".json") else None
    with pytest.raises(PermissionError):
        checkpoint.save(RUN, 1, STATE)
    assert not store.objects


def test_a_store_that_is_busy_is_asked_again(store):
    refusals = [503]
    store.fails = lambda method, name: refusals.pop() if method == "PUT" and refusals else None
    checkpoint.save(RUN, 1, STATE)
    check_same(checkpoint.restore(RUN))
    assert not refusals


def test_a_store_that_disappears(store):
    checkpoint.save(RUN, 1, STATE)
    store.fails = lambda method, name: 503 if method == "PUT" else None
    with pytest.raises(TimeoutError, match="the store does not answer"):
        checkpoint.save(RUN, 2, STATE)
    store.fails = lambda method, name: DISAPPEARS
    with pytest.raises(TimeoutError, match="the store does not answer"):
        checkpoint.restore(RUN)


def test_a_bucket_that_there_is_not(store):
    for use in (checkpoint.restore, checkpoint.steps, lambda run: checkpoint.save(run, 1, {})):
        with pytest.raises(FileNotFoundError, match="NoSuchBucket"):
            use("s3://theirs/runs")


def test_failures_behind_are_raised(store):
    with checkpoint.Manager(RUN) as manager:
        store.fails = lambda method, name: 403 if "/0/" in name else None
        manager.save(1, STATE)
        with pytest.raises(PermissionError):
            manager.wait()
        store.fails = lambda method, name: None
        manager.save(1, STATE)
    check_same(checkpoint.restore(RUN))


def test_what_is_copied_to_a_disk_is_restored_there(store, tmp_path):
    checkpoint.save(RUN, 1, STATE)
    for name, content in store.objects.items():
        file = tmp_path / name.removeprefix("runs/a/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    check_same(checkpoint.restore(tmp_path))


@pytest.mark.parametrize("data", ["..", "../../b", "5f3a9c01/..", 3])
def test_arrays_are_in_the_folder_of_their_checkpoint(store, data):
    checkpoint.save(RUN, 1, STATE)
    name = "runs/a/step-1/checkpoint.json"
    told = json.loads(store.objects[name])
    store.objects[name] = json.dumps(told | {"data": data}).encode()
    with pytest.raises(ValueError, match="no index that can be read"):
        checkpoint.restore(RUN)
