"""Snapshots of one process, and what is no snapshot."""

import itertools

import numpy as np
import pytest

import phalanx
import phalanx.numpy as jnp
from phalanx import NamedSharding, P
from phalanx.base.errors import ArgumentError, ShapeError, TreeError
from phalanx.experimental import checkpoint, elastic
from phalanx.processes.snapshots import SnapshotClient, SnapshotServer


@pytest.fixture
def attempts(monkeypatch):
    """Begins an attempt of this process under launchers, the first of which is given."""
    made = [SnapshotServer("127.0.0.1", "a secret") for _ in range(2)]
    monkeypatch.setenv("PHALANX_TOKEN", "a secret")
    monkeypatch.setenv("PHALANX_SNAPSHOT_SERVERS", ",".join(server.address for server in made))

    def begin(number, *, without=()):
        left = [server.address for at, server in enumerate(made) if at not in without]
        monkeypatch.setenv("PHALANX_SNAPSHOT_SERVERS", ",".join(left))
        monkeypatch.setenv("PHALANX_RESTART", str(number))
        monkeypatch.setattr(elastic, "_sender", elastic._Sender())
        return [SnapshotClient(server.address, "a secret") for server in made]

    yield begin
    for server in made:
        server.close()


def rows_over(count):
    return NamedSharding(
        phalanx.make_mesh((count,), ("i",), devices=phalanx.devices()[:count]), P("i")
    )


def state_of(step, count):
    """A tree of all kinds of leaves, divided among so many devices."""
    x = np.arange(24.0, dtype=np.float32).reshape(12, 2) + step
    return {
        "rows": phalanx.device_put(x, rows_over(count)),
        "columns": phalanx.device_put(
            x.T.copy(), NamedSharding(rows_over(count).mesh, P(None, "i"))
        ),
        "half": jnp.asarray(x, jnp.bfloat16),
        "key": phalanx.random.key(step),
        "keys": phalanx.random.split(phalanx.random.key(step), 3),
        "host": (x[0], np.float64(step), np.zeros((0, 3))),
        "lanes": phalanx.pmap(lambda x: x + 1)(x),
        "step": step,
        "nothing": None,
        "flag": [True, 1.5, 2j],
    }


def same(a, b):
    leaves = zip(phalanx.tree.leaves(a), phalanx.tree.leaves(b), strict=True)
    return all(
        type(x) is type(y) and np.array_equal(*map(np.asarray, held(x, y))) for x, y in leaves
    )


def held(*values):
    keys = jnp.issubdtype(getattr(values[0], "dtype", np.dtype(int)), phalanx.dtypes.prng_key)
    return [phalanx.random.key_data(v) for v in values] if keys else values


@pytest.mark.parametrize("before, after", [(4, 3), (3, 4), (1, 6), (6, 1)])
def test_what_is_kept_is_found_on_other_devices(attempts, before, after):
    if max(before, after) > phalanx.device_count():
        pytest.skip("fewer devices")
    attempts(0)
    elastic.snapshot(state_of(7, before))
    elastic._sender.wait()
    attempts(1, without=[0])
    found = elastic.resume(state_of(0, after))
    assert same(found, state_of(7, after))
    assert found["rows"].sharding == rows_over(after)


def test_the_newest_that_is_whole_counts(attempts):
    kept, _ = attempts(0)
    for step in range(5):
        elastic.snapshot({"step": step})
    elastic._sender.wait()
    assert {name.partition("/")[0] for name in kept.names()} == {"0.3", "0.4"}
    assert elastic.resume({"step": -1}) == {"step": 4}
    kept.put("0.5/0.of.2", kept_head(kept))  # the process with the other part was killed
    assert elastic.resume({"step": -1}) == {"step": 4}
    attempts(1)
    elastic.snapshot({"step": 7})
    elastic._sender.wait()
    assert elastic.resume({"step": -1}) == {"step": 7}
    elastic.snapshot({"step": 8})
    elastic._sender.wait()
    assert {name.partition("/")[0] for name in kept.names()} == {"1.0", "1.1"}


def kept_head(kept):
    return [kept.get("0.4/0.of.1")]


def test_arrays_may_change_when_a_snapshot_has_returned(attempts):
    attempts(0)
    x = np.ones(3)
    y = jnp.ones(3)
    for _ in range(3):
        elastic.snapshot({"x": x, "y": y})
        x += 1
    y.delete()
    elastic._sender.wait()
    assert elastic.resume({"x": x, "y": jnp.zeros(3)})["x"].tolist() == [3, 3, 3]


def test_a_part_that_is_lost_leads_to_the_last_checkpoint(attempts, tmp_path, caplog):
    kept, _ = attempts(0)
    elastic.snapshot({"step": 0})
    elastic._sender.wait()
    kept.put("0.3/0.of.3", [kept.get("0.0/0.of.1")])
    attempts(1, without=[1])
    kept.forget_before("0.1")
    lost = "no snapshot is left as a whole: parts 1, 2 of 3, from 0, of the newest went with the"
    assert elastic.resume({"step": -1}) == {"step": -1}
    assert lost in caplog.text
    assert "the run begins anew" in caplog.text
    checkpoint.save(tmp_path, 40, {"step": 40})
    assert elastic.resume({"step": -1}, tmp_path) == {"step": 40}
    assert f"the run goes on from step 40 in {tmp_path}" in caplog.text


def test_a_run_begins_with_what_is_given_or_with_a_checkpoint(attempts, tmp_path, caplog):
    attempts(0)
    assert elastic.resume({"step": 0}) == {"step": 0}
    assert elastic.resume({"step": 0}, tmp_path / "none") == {"step": 0}
    checkpoint.save(tmp_path, 40, {"step": 40})
    assert elastic.resume({"step": 0}, tmp_path) == {"step": 40}
    assert not caplog.text


def test_without_a_launcher_nothing_is_kept_and_the_log_says_so_once(monkeypatch, caplog):
    monkeypatch.delenv("PHALANX_SNAPSHOT_SERVERS", raising=False)
    monkeypatch.setattr(elastic, "_logged", [])
    for _ in range(2):
        elastic.snapshot({"w": jnp.ones(3)})
    assert caplog.text.count("no launcher keeps snapshots here; phalanx launch --elastic does") == 1
    assert elastic.resume({"w": 1.0}) == {"w": 1.0}


@pytest.mark.parametrize(
    "state, told",
    [
        ({"w": "text"}, r"elastic.snapshot: tree\['w'\] is neither an array of numbers nor a num"),
        (lambda x: x, r"elastic.snapshot: tree is neither an array of numbers nor a number, got f"),
        ([np.array(["a"])], r"tree\[0\] is neither .* got ndarray of dtype <U1"),
        ({(1, 2): 3}, r"elastic.snapshot: the keys of dicts must be text or numbers"),
        (itertools.count(), r"elastic.snapshot: tree is neither an array"),
    ],
)
def test_what_is_no_tree_of_arrays(state, told):
    with pytest.raises(TypeError, match=told):
        elastic.snapshot(state)


def test_a_traced_value_is_refused():
    with pytest.raises(TypeError, match="it has no value yet"):
        phalanx.jit(elastic.snapshot)(jnp.ones(3))


def test_what_is_asked_for_must_be_like_what_was_kept(attempts):
    attempts(0)
    elastic.snapshot({"w": jnp.ones(3)})
    elastic._sender.wait()
    with pytest.raises(TreeError, match=r"the tree in snapshot 0\.0 is not like .* tree\['b'\]"):
        elastic.resume({"w": jnp.ones(3), "b": 1})
    where = r"elastic.resume: tree\['w'\] is stored as float32\[3\], and asked for"
    with pytest.raises(ShapeError, match=where):
        elastic.resume({"w": jnp.ones(4)})


@pytest.mark.parametrize(
    "given, kept, kind, told",
    [
        (np.zeros(2), np.zeros(2, np.float32), ArgumentError, "dtype float64"),
        (jnp.zeros(2), jnp.zeros(3), ShapeError, r"shape \(2,\)"),
        (0, 0.5, ArgumentError, "a Python int"),
    ],
)
def test_what_resume_could_not_restore_is_told_at_the_first_snapshot(
    attempts, given, kept, kind, told
):
    """And not when a process has been lost."""
    attempts(0)
    assert elastic.resume({"w": given})["w"] is given
    who = r"elastic.resume of this snapshot: tree\['w'\] is stored as"
    with pytest.raises(kind, match=f"{who} .*, and asked for .*{told}, at test_elastic.py"):
        elastic.snapshot({"w": kept})
    with pytest.raises(TreeError, match="is not like the one that is given: asked for, but not"):
        elastic.snapshot({"v": kept})
    elastic.snapshot({"w": given})
    elastic.snapshot({"w": kept})  # it was looked at once


def test_a_launcher_that_is_gone(attempts, caplog):
    attempts(0)
    elastic.snapshot({"step": 1})
    elastic._sender.wait()
    attempts(1)
    address = "127.0.0.1:9"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(
            "PHALANX_SNAPSHOT_SERVERS", f"{elastic._snapshot_servers()[0].address},{address}"
        )
        assert elastic.resume({"step": 0}) == {"step": 1}
        assert f"the launcher at {address} does not answer" in caplog.text
        elastic.snapshot({"step": 2})
        elastic._sender.wait()
        elastic.snapshot({"step": 2})
        elastic._sender.wait()
        assert caplog.text.count("does not keep copies") == 1
        patch.setenv("PHALANX_SNAPSHOT_SERVERS", address)
        elastic.snapshot({"step": 3})
        with pytest.raises(ConnectionRefusedError):
            elastic.snapshot({"step": 4})
