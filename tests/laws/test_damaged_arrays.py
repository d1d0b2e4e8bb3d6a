"""Files of arrays of NumPy's form that were changed: an error in words, or what was written."""

import io
import pickle
import random

import numpy as np
import pytest

import phalanx.numpy as jnp


def _plain() -> bytes:
    file = io.BytesIO()
    np.save(file, np.arange(12, dtype=np.float32).reshape(3, 4))
    return file.getvalue()


def _several() -> bytes:
    file = io.BytesIO()
    np.savez(file, a=np.arange(4, dtype=np.int32), b=np.ones((2, 2), np.float32))
    return file.getvalue()


FILES = {"npy": _plain(), "npz": _several()}


def changed(data: bytes, draw: random.Random) -> bytes:
    """The same with one bit flipped, a part repeated, left out or exchanged, or cut off."""
    place, length = draw.randrange(len(data)), draw.choice([1, 4, 8, 32])
    head, part, tail = data[:place], data[place : place + length], data[place + length :]
    flipped = bytes([part[0] ^ 1 << draw.randrange(8)]) + part[1:]
    huge = b"\xff" * len(part)
    return draw.choice([
        head + flipped + tail, head + tail, head + part + part + tail, head + huge + tail, head,
    ])  # fmt: skip


@pytest.mark.parametrize("kind", FILES)
@pytest.mark.parametrize("seed", range(4))
def test_a_changed_file_is_refused_in_words_or_read(kind, seed):
    draw = random.Random(seed)
    for _ in range(100):
        data = changed(FILES[kind], draw)
        try:
            jnp.load(io.BytesIO(data))
        except (ValueError, TypeError) as e:
            assert str(e).startswith(("load: ", "array: ")), (str(e), data)


@pytest.mark.parametrize("text", [b"{'descr': '<f4'", b"'", b"\0", b"((((", b"{}", b"\xff"])
def test_a_header_that_says_nothing_is_refused(text):
    head = b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text
    with pytest.raises(ValueError, match=r"^load: .* is no \.npy or \.npz file that is whole: "):
        jnp.load(io.BytesIO(head))


def test_a_file_of_what_is_no_array_is_refused(tmp_path):
    path = tmp_path / "x.npy"
    path.write_bytes(pickle.dumps({"a": 1}))
    with pytest.raises(ValueError, match="its content is no array, but of type dict"):
        jnp.load(path, allow_pickle=True)
