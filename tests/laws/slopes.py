"""Derivatives of oracles: finite differences of fourth order, in float64."""

import itertools

import numpy as np
from hypothesis import assume

STEP = 1e-4
WEIGHTS = {1: 8 / 12, -1: -8 / 12, 2: -1 / 12, -2: 1 / 12}


def smoothly_along(function, point, *directions):
    """``along``, for drawn programs: one that has a kink within a step of the point is no case.

    A kink is where a choice flips or the least of several becomes another one.
    """
    # of every further difference fewer digits are exact
    ratio, digits = (8, 6) if len(directions) == 1 else (2, 3)
    slope, closer = (along(function, point, *directions, step=s) for s in (STEP, STEP / ratio))
    both = zip(*(y if isinstance(y, tuple) else (y,) for y in (slope, closer)), strict=True)
    assume(all(np.allclose(x, y, rtol=10**-digits, atol=10**-digits) for x, y in both))
    return slope


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
