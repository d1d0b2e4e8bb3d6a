"""Arrays of which other processes hold a part, and what the class of arrays tells."""

import signal
import types

import numpy as np
import pytest

import phalanx
import phalanx.numpy as jnp
from phalanx import lax
from phalanx.base.errors import DeviceError
from phalanx.core.types import ArrayType
from phalanx.run import array
from phalanx.run.array import DeviceArray, Signature
from phalanx.run.reading import read
from phalanx.spmd.sharding import Sharding

HERE = 1
CLIENT = types.SimpleNamespace(process_index=lambda: HERE)


class Device:
    """A device of a process."""

    client = CLIENT

    def __init__(self, process_index):
        self.process_index = process_index


class Runtime:
    """A backend whose raw arrays are lists of the parts that this process can reach."""

    def shards(self, raw, type, sharding):
        return list(raw)

    def is_deleted(self, raw):
        return False


@pytest.fixture
def halves(monkeypatch):
    """Eight rows over four devices; those at positions 1 and 3 are in this process."""
    monkeypatch.setattr(array, "backend", Runtime)
    sharding = Sharding([Device(i % 2) for i in range(4)], (4,))
    return DeviceArray(["b", "d"], Signature.of(ArrayType((8,), np.dtype("f4")), sharding))


def test_shards_are_those_of_this_process(halves):
    shards = halves.addressable_shards
    assert [s.device for s in shards] == [halves.sharding.device_list[p] for p in (1, 3)]
    assert [s.index for s in shards] == [(slice(2, 4),), (slice(6, 8),)]
    assert [s.data._raw for s in shards] == ["b", "d"]


def test_data_is_numbered_locally_and_parts_by_position(halves):
    assert [halves.addressable_data(i)._raw for i in range(2)] == ["b", "d"]
    assert [halves._part(p)._raw for p in (1, 3)] == ["b", "d"]
    with pytest.raises(DeviceError, match="belongs to process 0, and this is process 1"):
        halves._part(2)


def test_rows_of_others_are_not_read_here(halves):
    """Every process has to take the same way, so none reads a row for itself."""
    assert read(halves, 2) is NotImplemented
    assert read(halves, slice(2, 4)) is NotImplemented


def test_the_class_of_all_arrays_tells_of_what_arrays_with_data_have():
    x = phalanx.numpy.arange(3.0)
    assert phalanx.Array.tolist(x) == x.tolist()
    assert phalanx.Array.sharding(x) is x.sharding
    assert phalanx.Array.item.__name__ == "item"

    @phalanx.jit
    def asked(x):
        assert not hasattr(x, "sharding")
        with pytest.raises(phalanx.errors.ConcretizationTypeError):
            phalanx.Array.item(x)
        return x

    asked(x)


def test_what_a_signal_raises_while_numpy_waits_for_an_array_is_not_lost():
    """NumPy drops what is raised while it asks for a buffer, so arrays offer none."""
    spin = phalanx.jit(lambda x: lax.fori_loop(0, 15_000, lambda _, y: jnp.tanh(y @ y), x))
    x = jnp.ones((64, 64))
    spin(x).block_until_ready()

    def handler(*_):
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, handler)
    try:
        result = spin(x)
        signal.setitimer(signal.ITIMER_REAL, 0.01)
        with pytest.raises(TimeoutError):
            np.asarray(result)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
