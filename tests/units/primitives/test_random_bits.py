"""Threefry-2x32: the known answers that its authors published with Random123."""

import numpy as np
import pytest

from phalanx.primitives import threefry2x32

ANSWERS = [
    ((0, 0), (0, 0), (0x6B200159, 0x99BA4EFE)),
    ((0xFFFFFFFF, 0xFFFFFFFF), (0xFFFFFFFF, 0xFFFFFFFF), (0x1CB996FC, 0xBB002BE7)),
    ((0x13198A2E, 0x03707344), (0x243F6A88, 0x85A308D3), (0xC4923A9C, 0x483DF7A0)),
]


@pytest.mark.parametrize("once", [True, False])
@pytest.mark.parametrize("key, counter, wanted", ANSWERS)
def test_known_answers(key, counter, wanted, once):
    words = [np.full((3,), w, np.uint32) for w in (*key, *counter)]
    for found, w in zip(threefry2x32(*words, once=once), wanted, strict=True):
        assert np.asarray(found).tolist() == [w] * 3


def test_only_words_are_encrypted():
    with pytest.raises(TypeError, match="threefry2x32: the operand i32\\[3\\] must be uint32"):
        threefry2x32(*[np.zeros(3, np.int32)] * 4, once=False)
