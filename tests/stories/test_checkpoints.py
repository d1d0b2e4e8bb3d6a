"""Checkpoints of several processes: each writes what it has, and any number of others reads it."""

import os

import numpy as np
import pytest

import phalanx
from phalanx.experimental import checkpoint
from tests.stories.test_processes import launch  # noqa: F401  (a fixture)
from tests.units.experimental.s3 import Server

WEIGHTS = np.arange(32, dtype=np.float32).reshape(8, 4)
ROWS = np.arange(16, dtype=np.float32).reshape(8, 2)


def test_two_processes_save_and_restore(launch, tmp_path):  # noqa: F811
    checkpoint.save(tmp_path / "before", 1, {"rows": ROWS + 1, "weights": WEIGHTS})
    ended = launch(
        2,
        """
        from phalanx.experimental import checkpoint
        place = os.path.dirname(__file__)
        mesh = Mesh(np.array(phalanx.devices()), ("d",))
        cut = NamedSharding(mesh, P("d"))
        weights = np.arange(32, dtype=np.float32).reshape(8, 4)
        rows = np.arange(16, dtype=np.float32).reshape(8, 2)[:3] if me == 0 else (
            np.arange(16, dtype=np.float32).reshape(8, 2)[3:])
        lanes = phalanx.pmap(lambda x: x * 2)(rows)
        tree = {"weights": phalanx.device_put(weights, cut), "rows": lanes,
                "key": phalanx.random.key(3), "step": 7}
        with checkpoint.Manager(f"{place}/saved", keep=1) as manager:
            manager.save(6, tree)
            manager.save(7, tree)
            again = manager.restore(tree)
            tell(manager.steps())
        tell(again["rows"].shape, np.array_equal(again["rows"], lanes))
        parts = again["weights"].addressable_shards
        tell([np.array_equal(part.data, weights[part.index]) for part in parts])
        tell(again["step"], again["key"] == tree["key"])
        other = checkpoint.restore(f"{place}/before", {"rows": lanes, "weights": cut})
        tell(np.array_equal(other["rows"], rows + 1), other["weights"].sharding == cut)
        try:
            checkpoint.save(f"{place}/saved", 7, tree)
        except OSError as e:
            tell(type(e).__name__, e)
        try:
            checkpoint.save(f"{place}/saved", 8, {"w": np.ones(2 + me)})
        except ValueError as e:
            tell(e)
        try:
            checkpoint.restore(f"{place}/saved", {**tree, "rows": lanes[:2]})
        except ValueError as e:
            tell(e)
        """,
        devices=2,
    )
    assert ended.status == 0, ended.output
    for me in (0, 1):
        steps, rows, weights, step, before, exists, differs, shape = ended.told[me]
        assert steps == "[7]"
        assert rows == f"({3 + 2 * me}, 2) True"
        assert weights == "[True, True]"
        assert step == "7 True"
        assert before == "True True"
        assert "FileExistsError" in exists
        assert "step 7 is saved already" in exists
        assert "tree['w'] differs: it is float64[2] in process 0, and float64[3]" in differs
        assert "['rows'] is stored as float32[8,2]" in shape
    assert sorted(os.listdir(tmp_path / "saved")) == ["step-7"]
    saved = checkpoint.restore(tmp_path / "saved")
    assert np.array_equal(saved["rows"], ROWS * 2)
    assert np.array_equal(saved["weights"], WEIGHTS)
    assert saved["key"] == phalanx.random.key(3)


IN_A_STORE = """
from phalanx.experimental import checkpoint
mesh = Mesh(np.array(phalanx.devices()), ("d",))
cut = NamedSharding(mesh, P("d"))
weights = np.arange(32, dtype=np.float32).reshape(8, 4)
tree = {"weights": phalanx.device_put(weights, cut), "step": 7}
try:
    checkpoint.save("s3://ours/run", 7, tree)
except OSError as e:
    tell(type(e).__name__, e.filename, e.strerror)
else:
    again = checkpoint.restore("s3://ours/run", tree)
    parts = again["weights"].addressable_shards
    tell(again["step"], [np.array_equal(part.data, weights[part.index]) for part in parts])
"""


@pytest.fixture
def store(monkeypatch):
    with Server() as server:
        for name, value in server.variables.items():
            monkeypatch.setenv(name, value)
        yield server
        server.shutdown()


def test_two_processes_save_to_a_store(launch, store):  # noqa: F811
    ended = launch(2, IN_A_STORE)
    assert ended.status == 0, ended.output
    assert ended.told == {me: ["7 [True]"] for me in (0, 1)}
    written = [name for method, name in store.asked if method == "PUT"]
    assert written[-1] == "run/step-7/checkpoint.json"
    assert len(written) == 1 + 1 + 2  # the index, what is told of the array, its two parts


def test_a_store_that_refuses_one_process_has_no_checkpoint(launch, store):  # noqa: F811
    store.fails = lambda method, name: 403 if (method, name[-5:]) == ("PUT", "c.1.0") else None
    ended = launch(2, IN_A_STORE)
    assert ended.status == 0, ended.output
    for me in (0, 1):
        (told,) = ended.told[me]
        assert told.startswith("PermissionError s3://ours/run"), told
        assert "writing tree['weights']: the store refuses" in told
    assert not store.objects


@pytest.mark.slow
def test_a_run_that_is_killed_ends_as_one_left_alone(launch):  # noqa: F811
    ended = launch(
        2,
        """
        from phalanx.experimental import checkpoint
        place = os.path.dirname(__file__)
        data = np.random.default_rng(me).standard_normal((2, 5)).astype(np.float32)
        gradients = phalanx.pmap(
            lambda w, x: lax.pmean(phalanx.grad(lambda w: jnp.tanh(x @ w) ** 2)(w), "i"), "i",
            in_axes=(None, 0), out_axes=None)

        def train(directory, killed):
            state = {"w": jnp.ones(5), "step": 0}
            with checkpoint.Manager(directory, keep=2) as manager:
                if manager.latest() is not None:
                    state = manager.restore(state)
                    tell("goes on after", state["step"])
                while state["step"] < 12:
                    if state["step"] == 7 and killed:
                        open(f"{place}/killed", "w").close()
                        os.kill(os.getpid(), signal.SIGKILL)
                    w = state["w"] - 0.1 * gradients(state["w"], data)
                    state = {"w": w, "step": state["step"] + 1}
                    manager.save(state["step"], state)
            return np.asarray(state["w"])

        w = train(f"{place}/run", killed=me == 1 and not os.path.exists(f"{place}/killed"))
        alone = train(f"{place}/alone", killed=False)
        tell(w.tobytes() == alone.tobytes(), not np.array_equal(w, np.ones(5)))
        """,
        "--max-restarts",
        "1",
    )
    assert ended.status == 0, ended.output
    for me in (0, 1):
        begins, same = ended.told[me]
        assert begins in ("goes on after 6", "goes on after 7")
        assert same == "True True"
