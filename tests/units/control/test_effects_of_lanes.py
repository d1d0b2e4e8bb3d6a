"""What lanes do besides giving results, a few at a time: each does it once, and in order."""

import numpy as np
import pytest

import phalanx
from phalanx import lax

X = np.arange(1.0, 8.0, dtype=np.float32)


def logged(lane, at_once, room=1):
    """What ``lane`` writes into the log that it is given, in all lanes of ``X``."""
    log = []
    devices = phalanx.devices()[:room]
    f = phalanx.pmap(lambda x: lane(log, x), "i", devices=devices, lanes_at_once=at_once)
    f(X)
    phalanx.effects_barrier()
    return log


def write(log, x, ordered=False):
    phalanx.debug.callback(lambda x: log.append(float(x)), x, ordered=ordered)


@pytest.mark.spmd
@pytest.mark.parametrize("room", [1, 3])
@pytest.mark.parametrize("at_once", [1, 2, 3])
def test_lanes_that_are_there_do_it_once(room, at_once):
    """Also where they give nothing else, and where a device has padding."""
    assert sorted(logged(write, at_once, room)) == [*X]

    def twice(log, x):
        write(log, x)
        total = lax.psum(x, "i")
        write(log, total)
        return x + total

    assert sorted(logged(twice, at_once, room)) == [*X, *[X.sum()] * X.size]


@pytest.mark.parametrize("at_once", [1, 2, 3, "all"])
def test_lanes_come_in_order(at_once):
    """Also where their number is no multiple of those at once."""

    def lane(log, x):
        write(log, x, ordered=True)
        total = lax.psum(x, "i")
        write(log, x + total, ordered=True)
        return total

    assert logged(lane, at_once) == [*X, *(X + X.sum())]

    def repeated(log, x):
        return lax.fori_loop(0, 2, lambda i, x: (write(log, x, ordered=True), x + 10)[1], x)

    assert logged(repeated, at_once) == [*X, *(X + 10)]
