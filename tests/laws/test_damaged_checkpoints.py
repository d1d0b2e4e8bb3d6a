"""A bit that changes in a checkpoint is told, with the name of the file, or changes nothing.

The oracle is what was saved. A bit of every third byte is changed.
"""

import json
import random
import re
import shutil

import ml_dtypes
import numpy as np
import pytest

import phalanx
from phalanx.experimental import checkpoint

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
        leaves = json.loads(index.read_bytes())
        leaves["leaves"][int(number.parent.name)]["shape"] = [2, size]
        index.write_text(json.dumps(leaves | {"format": "phalanx checkpoint 1"}))
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


def test_a_checkpoint_from_before_there_were_checksums_is_read(copied):
    index = copied / "step-1" / "checkpoint.json"
    told = json.loads(index.read_bytes())
    del told["checksum"]
    index.write_text(json.dumps(told | {"format": "phalanx checkpoint 1"}))
    assert same(checkpoint.restore(copied))
    index.write_text(json.dumps(told))
    with pytest.raises(ValueError, match="checksum"):
        checkpoint.restore(copied)
