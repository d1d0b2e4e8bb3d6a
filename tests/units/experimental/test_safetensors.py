"""Files of the safetensors format: byte by byte as the format says, and what is no such file."""

import json
import os
import struct
import threading

import numpy as np
import pytest

import phalanx
import phalanx.numpy as jnp
from phalanx import NamedSharding, P
from phalanx.base import dtypes
from phalanx.errors import ShapeError
from phalanx.experimental import safetensors
from phalanx.experimental.safetensors import load_file, load_metadata, save_file
from phalanx.sharding import Mesh


def file_of(path, header, data=b""):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)
    return path


def test_every_dtype_survives(tmp_path):
    path = tmp_path / "all.safetensors"
    names = sorted(safetensors._NAMES)
    arrays = {n: np.ones((2, 3), dtypes.as_dtype(n)) for n in names}
    arrays |= {"empty": np.zeros((0, 3), np.int8), "scalar": np.float32(2)}
    save_file(arrays, path)
    loaded = load_file(path)
    for name, array in arrays.items():
        assert (loaded[name].dtype, loaded[name].shape) == (array.dtype, array.shape)
        assert np.asarray(loaded[name]).tobytes() == array.tobytes()


def test_a_file_is_what_the_format_says(tmp_path):
    path = tmp_path / "one.safetensors"
    save_file({"w": jnp.arange(3, dtype=jnp.int16)}, path, {"made": "here"})
    data = path.read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    assert json.loads(data[8 : 8 + length]) == {
        "__metadata__": {"made": "here"},
        "w": {"dtype": "I16", "shape": [3], "data_offsets": [0, 6]},
    }
    assert data[8 + length :] == b"\0\0\1\0\2\0"
    assert load_metadata(path) == {"made": "here"}


def test_a_file_by_hand_is_read(tmp_path):
    told = {"x": {"dtype": "BF16", "shape": [2, 1], "data_offsets": [0, 4]}}
    loaded = load_file(file_of(tmp_path / "x", told, b"\x80\x3f\x00\xc0"))
    assert loaded["x"].dtype == jnp.bfloat16
    assert np.array_equal(loaded["x"].astype("float32"), [[1.0], [-2.0]])
    empty = {"x": {"dtype": "F64", "shape": [0], "data_offsets": [0, 0]}}
    assert load_file(file_of(tmp_path / "y", empty))["x"].shape == (0,)


@pytest.mark.spmd
def test_arrays_lie_as_asked(tmp_path):
    count = phalanx.device_count()
    value = np.arange(count * 4.0, dtype=np.float32).reshape(2 * count, 2)
    rows = NamedSharding(Mesh(phalanx.devices(), "x"), P("x"))
    path = tmp_path / "cut"
    save_file({"a": phalanx.device_put(value, rows), "b": value}, path)
    loaded = load_file(path, {"a": rows})
    assert loaded["a"].sharding == rows
    assert np.array_equal(loaded["a"], value)
    assert len(loaded["b"].devices()) == 1
    assert load_file(path, rows)["b"].sharding == rows
    with pytest.raises(KeyError, match="no array 'c'"):
        load_file(path, {"c": rows})
    with pytest.raises(ShapeError, match="'a': "):
        load_file(path, {"a": NamedSharding(rows.mesh, P(None, None, "x"))})


@pytest.mark.parametrize(
    ("tensors", "metadata", "words"),
    [
        ([1], None, "tensors must be a dict"),
        ({1: np.ones(2)}, None, "tensors must be a dict"),
        ({"a": 1.0}, None, "'a' must be an array, got float"),
        ({"a": np.ones(2, "complex128")}, None, "'a' has dtype complex128"),
        ({"a": np.array(["x"])}, None, "'a' has dtype <U1"),
        ({"a": np.ones(2)}, {"k": 1}, "metadata 'k' must be text"),
    ],
)
def test_what_the_format_has_not(tmp_path, tensors, metadata, words):
    with pytest.raises(TypeError, match=words):
        save_file(tensors, tmp_path / "x", metadata)
    with pytest.raises(TypeError, match="random keys"):
        save_file({"k": phalanx.random.key(0)}, tmp_path / "x")
    assert os.listdir(tmp_path) == []


FOUR = {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}


@pytest.mark.parametrize(
    ("header", "words"),
    [
        (b"no json", "no safetensors file"),
        ([1], "no safetensors file"),
        ({"a": 3}, "'a' is told as 3"),
        ({"a": {"dtype": "F7", "shape": [1], "data_offsets": [0, 4]}}, "not understood"),
        ({"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 4]}}, "8 bytes, in bytes 0 to"),
        ({"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}, "has 4 bytes of elem"),
        ({"a": {"dtype": "F32", "shape": [1], "data_offsets": [-4, 0]}}, "not understood"),
        ({"a": {"dtype": "F32", "shape": [-1], "data_offsets": [4, 0]}}, "not understood"),
        ({"a": {"dtype": "U8", "shape": [3], "data_offsets": [0, 3]}}, "and tells of 3"),
        ({"a": {"dtype": "U8", "shape": [3], "data_offsets": [1, 4]}}, "before it end at byte 0"),
        ({"a": FOUR, "b": FOUR}, "'b' is told to be in bytes 0 to 4"),
        ({"a": {"dtype": "U8", "shape": [2.0], "data_offsets": [0, 2]}}, "not understood"),
        ({"__metadata__": {"by": 3}}, "no safetensors file"),
        (b"[" * 50_000, "no safetensors file"),
    ],
)
def test_what_is_no_such_file(tmp_path, header, words):
    path = file_of(tmp_path / "x", header, b"1234")
    with pytest.raises(ValueError, match=words):
        load_file(path)


def test_a_file_that_is_cut_off(tmp_path):
    path = tmp_path / "x"
    path.write_bytes(b"\xff" * 8)
    with pytest.raises(ValueError, match="no safetensors file"):
        load_file(path)
    path.write_bytes(b"")
    with pytest.raises(ValueError, match="no safetensors file"):
        load_file(path)
    with pytest.raises(FileNotFoundError, match=str(tmp_path / "y")):
        load_file(tmp_path / "y")
    with pytest.raises(FileNotFoundError, match=str(tmp_path / "no" / "y")):
        save_file({}, tmp_path / "no" / "y")


def test_threads_that_save_one_file_leave_what_one_of_them_saved(tmp_path):
    path, whole = tmp_path / "x", threading.Barrier(2)

    def save(value):
        whole.wait(10)
        for _ in range(10):
            save_file({"x": np.full(300_000, value), "y": np.full(300_000, value)}, path)

    threads = [threading.Thread(target=save, args=(value,)) for value in (1.0, 2.0)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        if path.exists():
            loaded = load_file(path)
            assert len({*np.unique(loaded["x"]), *np.unique(loaded["y"])}) == 1
    assert os.listdir(tmp_path) == ["x"]


def test_a_header_that_names_an_array_twice_is_refused(tmp_path):
    """Readers would take the first or the last: what one has checked, another would not load."""
    one = b'"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}'
    path = file_of(tmp_path / "x", b"{" + one + b"," + one + b"}", b"1234")
    with pytest.raises(ValueError, match="twice"):
        safetensors.load_file(path)
