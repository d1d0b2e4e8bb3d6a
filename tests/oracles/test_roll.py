import numpy as np
import pytest

import phalanx
import phalanx.numpy as jnp

SHIFTS = [
    *(dtype(s) for dtype in (np.int8, np.int32) for s in (-7, 0, 3)),
    *(np.uint8(200), np.uint32(2**32 - 1), np.int32(-(2**31)), 2**40, -(2**33)),
    *(True, 1.5, (), (1,), [2, 3], np.array([1, 2])),
]


@pytest.mark.parametrize("shift", SHIFTS, ids=repr)
@pytest.mark.parametrize("count", [1, 5, 1000])
def test_shifts_of_all_types(shift, count):
    x = np.arange(count, dtype=np.int32)
    expected = np.roll(x, shift)
    np.testing.assert_array_equal(jnp.roll(x, shift), expected)
    np.testing.assert_array_equal(phalanx.jit(lambda x: jnp.roll(x, shift))(x), expected)


@pytest.mark.parametrize("shift", [s for s in SHIFTS if np.size(s)], ids=repr)
def test_traced_shifts(shift):
    x = np.arange(1000, dtype=np.int32)
    with phalanx.enable_x64(True):  # so that all of them are held
        rolled = phalanx.jit(jnp.roll)(x, np.asarray(shift))
    np.testing.assert_array_equal(rolled, np.roll(x, shift))


@pytest.mark.parametrize(
    ("shift", "axis"),
    [((1, 2), (0, 1)), (1, (0, 1)), ((1, 2), 0), ([1, 2], [-1, 0]), (1, ()), ((), ())],
)
def test_shifts_and_axes_are_broadcast(shift, axis):
    x = np.arange(12).reshape(3, 4)
    np.testing.assert_array_equal(jnp.roll(x, shift, axis), np.roll(x, shift, axis))
