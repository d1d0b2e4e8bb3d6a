"""What the runtime calls: results as declared, exceptions, and what is made up after one."""

import gc

import numpy as np
import pytest

from phalanx.base.errors import DeviceError, RuntimeFailure
from phalanx.core.types import ArrayType
from phalanx.xla import host_callbacks as room
from phalanx.xla.host_callbacks import Callbacks, Launch, Stopped, called_by

PAIR = ArrayType((2,), np.dtype("f4"))
COUNT = ArrayType((), np.dtype("i4"))


def one(function, *types, devices=1):
    """The entry point of a function of a module for so many devices, and the module's functions."""
    callbacks = Callbacks(range(devices))
    callbacks.add(function, types)
    return callbacks.entries[0], callbacks


def test_results_are_of_the_types_declared():
    entry, _callbacks = one(lambda x: (x + 1, 3.0), PAIR, COUNT)
    first, second = entry(np.float64([1, 2]))
    assert first.dtype == np.float32 and first.tolist() == [2, 3]
    assert second.dtype == np.int32 and second.shape == () and second == 3


def test_what_a_function_keeps_is_its_own():
    memory, kept = np.zeros(2, np.float32), []
    entry, _callbacks = one(lambda x: kept.append(x) or (), *())
    entry(memory[:])
    memory[:] = 7
    assert kept[0].tolist() == [0, 0] and not kept[0].flags.writeable


def test_a_result_of_another_shape_stops_the_program_with_its_reason():
    entry, _callbacks = one(lambda: (np.zeros(3),), PAIR)
    with pytest.raises(Stopped) as caught:
        entry()
    cause = Stopped.cause(RuntimeError(f"INTERNAL: {caught.value}"))
    assert isinstance(cause, ValueError) and "has shape (3,), but f32[2] was declared" in str(cause)
    assert Stopped.cause(RuntimeError("something else")) is None


def test_of_several_devices_a_program_goes_on_with_what_is_made_up():
    called = []

    def fails(x):
        called.append(called_by())
        raise KeyError("no")

    entry, callbacks = one(fails, PAIR, COUNT, devices=2)
    with Launch(callbacks) as launch:
        made_up = [entry(np.zeros(2)) for _ in range(5)]
    assert called == [callbacks] and called_by() is None  # once: not after it raised
    assert [type(e) for e in launch.raised] == [KeyError]
    assert all((a.shape, a.dtype, b.dtype) == ((2,), PAIR.dtype, COUNT.dtype) for a, b in made_up)
    assert not callbacks.turn.locked() and not room.underway


def test_a_function_cannot_wait_for_devices():
    entry, _callbacks = one(lambda: room.refuse_in_callback("psum") or ())
    room.refuse_in_callback("psum")  # outside of one it can
    with pytest.raises(Stopped) as caught:
        entry()
    cause = Stopped.cause(RuntimeError(str(caught.value)))
    assert isinstance(cause, DeviceError) and str(cause).startswith("psum: a function that")


def test_functions_go_with_their_module():
    entry, callbacks = one(lambda: ())
    del callbacks
    gc.collect()
    with pytest.raises(RuntimeFailure, match="no longer there"):
        entry()
