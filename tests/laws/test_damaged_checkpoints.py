"""A bit that changes in a checkpoint is told, with the name of the file, or changes nothing.

The oracle is what was saved. A bit of every third byte is changed.
"""

import json
import os
import random
import re
import shutil

import ml_dtypes
import numpy as np
import pytest

import phalanx
from phalanx import tree
from phalanx.experimental import checkpoint
from phalanx.experimental.checkpoint.index import _checksum

TREE = {
    "w": np.arange(6, dtype=np.float32).reshape(2, 3),
    "half": np.ones(3, ml_dtypes.bfloat16),
    "lr": [0.1, 3, True, 2 - 1j],
    "": (None, np.float64(2.5)),
}


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    place = tmp_path_factory.mktemp("whole")
    checkpoint.save(place, 1, TREE)
    return place


@pytest.fixture
def copied(saved, tmp_path):
    return shutil.copytree(saved, tmp_path / "copy")


def files_of(place):
    return sorted(path for path in place.rglob("*") if path.is_file())


def same(found):
    """Whether that is what was saved, to the bit."""
    pairs, treedef = phalanx.tree.flatten(found), phalanx.tree.flatten(TREE)
    return pairs[1] == treedef[1] and all(
        type(a) is type(b)
        and np.asarray(a).dtype == np.asarray(b).dtype
        and np.asarray(a).tobytes() == np.asarray(b).tobytes()
        for a, b in zip(pairs[0], treedef[0], strict=True)
    )


def change(file, data, position, bit):
    changed = bytearray(data)
    changed[position] ^= 1 << bit
    file.write_bytes(changed)


def test_a_bit_that_changes_is_told_or_changes_nothing(copied):
    bits, wrong = random.Random(0), []
    for file in files_of(copied):
        data = file.read_bytes()
        for position in range(bits.randrange(3), len(data), 3):
            bit = bits.randrange(8)
            change(file, data, position, bit)
            try:
                if not same(checkpoint.restore(copied)):
                    wrong.append((file, position, bit, "restores something else"))
            except ValueError as e:
                where = file if file.name == "checkpoint.json" else file.parent
                if not re.search(rf"^checkpoint: .*{re.escape(str(where))}", str(e)):
                    wrong.append((file, position, bit, str(e)))
        file.write_bytes(data)
    assert not wrong, wrong[:5]
    assert same(checkpoint.restore(copied))


HUGE = [0, -1, 1 << 40, 1 << 62, (1 << 63) - 1, 1 << 63, 1 << 200, 1.5, "3", None, [2]]


@pytest.mark.parametrize("place", ["shape", "chunk_shape", "both"])
@pytest.mark.parametrize("size", HUGE)
def test_impossible_shapes_are_refused_in_words(copied, place, size):
    """Also where index and array agree about them, as somebody could write them by hand."""
    (number,) = [n for n in copied.glob("step-1/*/zarr.json") if b"[2,3]" in n.read_bytes()]
    told = json.loads(number.read_bytes())
    if place != "chunk_shape":
        told["shape"] = [2, size]
    if place != "shape":
        told["chunk_grid"]["configuration"]["chunk_shape"] = [2, size]
    number.write_text(json.dumps(told))
    if place == "both":
        index = copied / "step-1" / "checkpoint.json"
        told = json.loads(index.read_bytes())
        told["leaves"][int(number.parent.name)]["shape"] = [2, size]
        index.write_text(json.dumps(told | {"checksum": _checksum(told)}))
    with pytest.raises(ValueError, match=f"^checkpoint: .*{re.escape(str(copied / 'step-1'))}"):
        checkpoint.restore(copied)


@pytest.mark.parametrize("said", [b"", b"[" * 100_000, b"\xff", b"[]", b"{}", b'{"shape": 3}'])
def test_what_is_no_index_is_told(copied, said):
    for file in files_of(copied):
        if file.suffix == ".json":
            data = file.read_bytes()
            file.write_bytes(said)
            with pytest.raises(ValueError, match=f"^checkpoint: .*{re.escape(str(file))}"):
                checkpoint.restore(copied)
            file.unlink()
            with pytest.raises(ValueError, match=file.name):
                checkpoint.restore(copied)
            file.write_bytes(data)


def test_what_an_index_tells_is_looked_at_under_a_right_checksum(copied):
    """Whatever stands in place of a part: an error in words, or the same leaves."""
    index = copied / "step-1" / "checkpoint.json"
    told = json.loads(index.read_bytes())
    wrong: list[object] = [None, -1, 1 << 70, "", "x", [], [[]], {}, {"a": 0}]
    changed = [told | {name: value} for name in told for value in wrong if name != "checksum"]
    for number, leaf in enumerate(told["leaves"][:3]):
        before, after = told["leaves"][:number], told["leaves"][number + 1 :]
        for name in leaf:
            changed += [told | {"leaves": [*before, leaf | {name: w}, *after]} for w in wrong]
    for one in changed:
        index.write_text(json.dumps(one | {"checksum": _checksum(one)}))
        try:
            restored = checkpoint.restore(copied)
        except ValueError as e:
            assert str(e).startswith("checkpoint: ")
        else:
            assert len(tree.leaves(restored)) == len(told["leaves"])


@pytest.mark.parametrize("name", ["checkpoint.json", "zarr.json", "c.0.0", "c.0", "more"])
def test_pipes_keep_nobody_waiting(copied, name):
    """To open one waits for somebody at its other end, for ever."""
    found = [file for file in files_of(copied) if file.name == name]
    places = found or [next(copied.glob("step-1/*/zarr.json")).with_name(name)]
    places[0].unlink(missing_ok=True)
    os.mkfifo(places[0])
    with pytest.raises(ValueError, match="is no file"):
        checkpoint.restore(copied)


def test_links_lead_no_writer_elsewhere(copied, tmp_path):
    """A folder of a writer's name that is a link, and an index that is one."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (copied / ".writing-5-00000000").symlink_to(elsewhere)
    (copied / ".writing-6-00000000").mkdir()
    (copied / ".writing-6-00000000" / "checkpoint.json").symlink_to(tmp_path / "victim")
    checkpoint.save(copied, 7, {"a": 1})
    assert not list(elsewhere.iterdir()) and not (tmp_path / "victim").exists()
    assert checkpoint.restore(copied, step=7) == {"a": 1}
