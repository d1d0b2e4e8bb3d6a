"""What collectives give, by their definitions, on the values of all positions in NumPy.

Nothing here is shared with the rules by which collectives are compiled, vectorized or divided among
devices, so that these can be judged by it.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from phalanx.base import dtypes
from phalanx.core.layouts import Axes

__all__ = ["EXCHANGES", "coordinates", "exchanged", "one_by_one", "total"]

Values = list[np.ndarray]  # one for each of the positions that exchange
Add = Callable[[Iterable[np.ndarray]], np.ndarray]


def coordinates(axes: Axes) -> list[tuple[int, ...]]:
    """The positions of ``axes``, in the order in which values of all of them are listed.

    >>> coordinates((("i", 2), ("j", 2)))
    [(0, 0), (0, 1), (1, 0), (1, 1)]
    """
    return list(itertools.product(*[range(size) for _, size in axes]))


def total(values: Iterable[np.ndarray]) -> np.ndarray:
    """The sum of ``values``, of floating-point numbers rounded once."""
    every = list(values)
    dtype = every[0].dtype
    if dtypes.is_inexact(dtype):
        wide = np.complex128 if dtypes.is_complex(dtype) else np.float64
        return np.sum([x.astype(wide) for x in every], axis=0).astype(dtype)
    return np.sum(every, axis=0, dtype=dtype)


def one_by_one(values: Iterable[np.ndarray]) -> np.ndarray:
    """The sum of ``values``, rounded after each: what another order of them may give."""
    return np.asarray(functools.reduce(np.add, values))


def exchanged(
    name: str,
    operands: Sequence[Values],
    axes: Axes,
    params: dict[str, Any],
    add: Add = total,
) -> list[Values]:
    """The results of a collective, where ``operands`` are known at all positions of ``axes``, and
    are summed by ``add``.

    >>> x = [np.float32(1), np.float32(2)]
    >>> exchanged("psum", [x], (("i", 2),), {"axes": ("i",), "groups": None})
    [[np.float32(3.0), np.float32(3.0)]]
    """
    names = params["axes"]
    meeting = _meeting(axes, names)
    if name == "axis_index":
        place = {p: k for group in meeting for k, p in enumerate(group)}
        return [[np.asarray(place[p], np.int32) for p in range(len(place))]]
    if params.get("groups") is not None:
        groups: Sequence[Sequence[int]] = params["groups"]
        meeting = [[group[k] for k in members] for group in meeting for members in groups]
    give = EXCHANGES[name]
    results: list[Values] = []
    for values in operands:
        out: list[Any] = [None] * len(values)
        for group in meeting:
            received = give([values[p] for p in group], params, add)
            for p, y in zip(group, received, strict=True):
                out[p] = y
        results.append(out)
    return results


def _meeting(axes: Axes, names: Sequence[Any]) -> list[list[int]]:
    """The numbers of the positions that meet along the axes ``names``, in the order of these."""
    known = [axis for axis, _ in axes]
    last = {axis: known.index(axis) for axis in known}
    last.update({axis: k for k, axis in enumerate(known)})  # the innermost of equal names
    along = [last[name] for name in names]
    groups: dict[tuple[int, ...], list[tuple[tuple[int, ...], int]]] = {}
    for p, at in enumerate(coordinates(axes)):
        others = tuple([c for k, c in enumerate(at) if k not in along])
        groups.setdefault(others, []).append((tuple([at[k] for k in along]), p))
    return [[p for _, p in sorted(group)] for group in groups.values()]


def _alike(value: np.ndarray, count: int) -> Values:
    return [value] * count


def _psum(xs: Values, params: dict[str, Any], add: Add) -> Values:
    return _alike(add(xs), len(xs))


def _pmax(xs: Values, params: dict[str, Any], add: Add) -> Values:
    return _alike(np.maximum.reduce(xs), len(xs))


def _pmin(xs: Values, params: dict[str, Any], add: Add) -> Values:
    return _alike(np.minimum.reduce(xs), len(xs))


def _all_gather(xs: Values, params: dict[str, Any], add: Add) -> Values:
    return _alike(np.stack(xs), len(xs))


def _psum_scatter(xs: Values, params: dict[str, Any], add: Add) -> Values:
    return [add([x[k] for x in xs]) for k in range(len(xs))]


def _all_to_all(xs: Values, params: dict[str, Any], add: Add) -> Values:
    return [np.stack([x[k] for x in xs]) for k in range(len(xs))]


def _ppermute(xs: Values, params: dict[str, Any], add: Add) -> Values:
    out = [np.zeros_like(x) for x in xs]
    for source, target in params["perm"]:
        out[target] = xs[source]
    return out


EXCHANGES: dict[str, Callable[[Values, dict[str, Any], Add], Values]] = {
    "psum": _psum,
    "pmax": _pmax,
    "pmin": _pmin,
    "all_gather": _all_gather,
    "all_gather_alike": _all_gather,
    "psum_scatter": _psum_scatter,
    "all_to_all": _all_to_all,
    "ppermute": _ppermute,
}
