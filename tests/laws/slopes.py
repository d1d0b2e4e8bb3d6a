"""Derivatives of oracles: differences in float64, extrapolated until they are exact enough.

Where a function is smooth within a step h, its central difference is D + a h^2 + b h^4 + ...: what
is known at several steps removes term after term, and by what neighbours in the table of these
differ bounds the error of the better one (C. J. F. Ridders, Advances in Engineering Software 4,
1982). Steps are halved until the bound is a hundredth of what laws tolerate.
"""

import itertools

import numpy as np
from hypothesis import assume

# By the number of directions: the bound, relative to 1 + the largest element, and the steps.
# Below the last of these, rounding alone would take what the bound allows.
ACCURACY = {1: 1e-8, 2: 1e-7}
STEPS = {1: 0.5 ** np.arange(5, 21), 2: 0.5 ** np.arange(4, 14)}


def along(function, point, *directions):
    """The mixed derivative of ``function`` at the arguments ``point`` along ``directions``.

    The function returns an array, or a tuple of them.
    """
    found = extrapolated(function, point, directions)
    assert found is not None, "the differences do not converge: is there a kink close by?"
    return found


def smoothly_along(function, point, *directions):
    """``along``, for drawn programs: one that has a kink close to the point is no case.

    A kink is where a choice flips or the least of several becomes another one.
    """
    found = extrapolated(function, point, directions)
    assume(found is not None)
    return found


def extrapolated(function, point, directions):
    """The derivative, or None where no step gives it with an error that is small enough."""
    tables = None
    for step in STEPS[len(directions)]:
        outs = difference(function, point, directions, step)
        leaves = outs if isinstance(outs, tuple) else (outs,)
        tables = tables or [Table() for _ in leaves]
        for table, leaf in zip(tables, leaves, strict=True):
            table.add(leaf)
        if all(table.is_within(ACCURACY[len(directions)]) for table in tables):
            values = tuple(table.value for table in tables)
            return values if isinstance(outs, tuple) else values[0]
    return None


class Table:
    """Differences of an array at steps that halve, each row with what extrapolates the last ones.

    Each element has the value whose error has the least bound; near a kink that is one that
    large steps have no part in.
    """

    def __init__(self, differences=()):
        self.row, self.value, self.bound = [], np.nan, np.inf
        for difference in differences:
            self.add(difference)

    def __str__(self):
        return f"{self.value} ± {self.bound}"

    def add(self, difference):
        row = [difference]
        for order, above in enumerate(self.row, 1):
            finer = row[-1] + (row[-1] - above) / (4**order - 1)
            bound = np.maximum(np.abs(finer - row[-1]), np.abs(finer - above))
            self.value = np.where(bound < self.bound, finer, self.value)
            self.bound = np.fmin(bound, self.bound)
            row.append(finer)
        self.row = row

    def is_within(self, accuracy):
        return np.all(self.bound <= accuracy * (1 + np.abs(self.value).max(initial=0)))


def difference(function, point, directions, step):
    """The central difference in every direction."""
    parts = None
    for signs in itertools.product((1, -1), repeat=len(directions)):
        at = list(point)
        for sign, ts in zip(signs, directions, strict=True):
            at = [a + sign * step * t for a, t in zip(at, ts, strict=True)]
        with np.errstate(invalid="ignore"):  # a large step may lead to where there are no values
            out = function(*at)
        leaves = out if isinstance(out, tuple) else (out,)
        weight = np.prod(signs) / (2 * step) ** len(signs)
        parts = [p + weight * y for p, y in zip(parts or [0.0] * len(leaves), leaves, strict=True)]
    return tuple(parts) if isinstance(out, tuple) else parts[0]
