"""Derivatives of oracles: finite differences of fourth order, in float64."""

import itertools

import numpy as np
from hypothesis import assume

STEP = 1e-4
WEIGHTS = {1: 8 / 12, -1: -8 / 12, 2: -1 / 12, -2: 1 / 12}


def smoothly_along(function, point, direction):
    """``along``, for drawn programs: one that has a kink within a step of the point is no case."""
    found, closer = (along(function, point, direction, step=s) for s in (STEP, STEP / 8))
    both = zip(*(y if isinstance(y, tuple) else (y,) for y in (found, closer)), strict=True)
    assume(all(np.allclose(x, y, rtol=1e-6, atol=1e-6) for x, y in both))
    return found


def along(function, point, *directions, step=STEP):
    """The mixed derivative of ``function`` at the arguments ``point`` along ``directions``.

    The function returns an array, or a tuple of them.
    """
    total = None
    for signs in itertools.product(WEIGHTS, repeat=len(directions)):
        weight = np.prod([WEIGHTS[s] / step for s in signs])
        at = list(point)
        for sign, ts in zip(signs, directions, strict=True):
            at = [a + sign * step * t for a, t in zip(at, ts, strict=True)]
        out = function(*at)
        parts = [weight * y for y in (out if isinstance(out, tuple) else (out,))]
        total = parts if total is None else [a + b for a, b in zip(total, parts, strict=True)]
    return tuple(total) if isinstance(out, tuple) else total[0]
