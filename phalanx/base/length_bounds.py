"""Between which integers a symbolic length lies: by intervals, and by what is said of lengths.

What is found always holds; that nothing is found means only that it was not.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from phalanx.base.length_terms import Monomial, Terms, added, multiplied, scaled

_STEPS = 3  # facts that are used one after the other
Bounds = tuple[float, float]  # integers, or infinities


def bounds(scope: Any, terms: Terms) -> Bounds:
    """The least and the greatest value of a polynomial over the lengths of ``scope``."""
    return _least(scope, terms, _STEPS), -_least(scope, scaled(terms, -1), _STEPS)


def _least(scope: Any, terms: Terms, steps: int) -> float:
    best = sum([_times(n, _monomial(scope, m))[0] for m, n in terms.items()])
    if not steps or best >= 0 or not terms:
        return best
    for times, rest in _simpler(scope, terms):
        best = max(best, _ceil(_least(scope, rest, steps - 1), times))
    for cases in _cases(scope, terms):
        best = max(best, min([_least(scope, case, steps - 1) for case in cases]))
    return best


def _ceil(n: float, times: int) -> float:
    return n if math.isinf(n) else (int(n) - 1) // times + 1


def _simpler(scope: Any, terms: Terms) -> Iterator[tuple[int, Terms]]:
    """Polynomials that ``terms``, so many times, are no less than, without one of its monomials."""
    for fact in (*scope.facts, *_facts_of(scope, terms)):  # each is at least 0
        for m, n in fact.items():
            if m and terms.get(m, 0) * n > 0:
                shared = math.gcd(n, terms[m])
                times = abs(n) // shared
                rest = added(scaled(terms, times), fact, -(abs(terms[m]) // shared))
                yield times, rest
    for name in _names(terms):
        kind, _, by = scope.operation(name)
        if kind == "floordiv" and isinstance(by, int):  # as often as it is cut into, it vanishes
            rest = scope.normal(scaled(terms, by))
            if rest != scaled(terms, by):
                yield by, rest


def _facts_of(scope: Any, terms: Terms) -> Iterator[Terms]:
    for name in _names(terms):
        kind, x, y = scope.operation(name)
        if kind in ("max", "min"):
            own, sign = {((name, 1),): 1}, 1 if kind == "max" else -1
            for side in (x, y):
                yield scaled(added(own, scope.terms(side), -1), sign)
        if kind == "mod" and scope.decided(scope.terms(y - 1)):
            yield added(added(scope.terms(y), {(): 1}, -1), {((name, 1),): 1}, -1)


def _cases(scope: Any, terms: Terms) -> Iterator[list[Terms]]:
    """For a maximum or minimum in ``terms``: these where it is the one side, and the other."""
    for name in _names(terms):
        kind, x, y = scope.operation(name)
        if kind in ("max", "min"):
            yield [_replaced(terms, name, scope.terms(side)) for side in (x, y)]


def _replaced(terms: Terms, name: str, value: Terms) -> Terms:
    out: Terms = {}
    for m, n in terms.items():
        part: Terms = {tuple([p for p in m if p[0] != name]): n}
        for _ in range(dict(m).get(name, 0)):
            part = multiplied(part, value)
        out = added(out, part)
    return out


def _names(terms: Terms) -> list[str]:
    return sorted({name for m in terms for name, _ in m})


# ---- intervals ------------------------------------------------------------------------------


def _monomial(scope: Any, m: Monomial) -> Bounds:
    low, high = 1.0, 1.0
    for name, power in m:
        own = scope.bounds_of(name)
        for _ in range(power):
            ends = [_product(x, y) for x in (low, high) for y in own]
            low, high = min(ends), max(ends)
        if power % 2 == 0:
            low = max(low, 0.0) if len(m) == 1 else low
    return low, high


def _times(n: int, x: Bounds) -> Bounds:
    ends = [_product(n, end) for end in x]
    return min(ends), max(ends)


def _product(x: float, y: float) -> float:
    return 0 if not x or not y else x * y


def operation_bounds(kind: str, x: Bounds, y: Bounds) -> Bounds:
    """The bounds of an operation, from those of its sides.

    >>> operation_bounds("floordiv", (1, 9), (2, 2)), operation_bounds("mod", (1, 9), (4, 4))
    ((0, 4), (0, 3))
    """
    if kind in ("max", "min"):
        choose = max if kind == "max" else min
        return choose(x[0], y[0]), choose(x[1], y[1])
    if kind == "mod":
        return (0, y[1] - 1) if y[0] > 0 else (-math.inf, math.inf)
    if y[0] <= 0:
        return -math.inf, math.inf
    ends = [_floor(a, b) for a in x for b in y]
    return min(ends), max(ends)


def _floor(a: float, b: float) -> float:
    if math.isinf(a):
        return a if not math.isinf(b) else (0 if a > 0 else -math.inf)
    return (0 if a >= 0 else -1) if math.isinf(b) else int(a) // int(b)
