"""How much memory a program takes while it runs: an estimate.

A compiler makes the result of a ``fused`` operation where it is used. So it is not stored, but for
a product, which reads its operands in memory; and what it is made of is there for as long.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Set
from itertools import accumulate

from phalanx.core.memoize import memoize_on
from phalanx.core.program import Atom, Program
from phalanx.core.types import ArrayType
from phalanx.transforms.products import PRODUCTS


def size_in_bytes(type: ArrayType) -> int:
    """How many bytes an array takes."""
    return type.physical.size * type.physical.dtype.itemsize


def taken_over(donated: Mapping[int, int], outputs: Iterable[int]) -> tuple[int, ...]:
    """Those of the ``donated`` inputs whose memory a result takes, given how many bytes they and
    the ``outputs`` hold: a compiler looks at nothing else.

    >>> taken_over({0: 8, 2: 4, 3: 8}, [8, 2])
    (0,)
    """
    free = Counter(outputs)
    taken: list[int] = []
    for i, size in donated.items():
        if free[size] > 0:
            taken.append(i)
            free[size] -= 1
    return tuple(taken)


def stored(program: Program) -> set[Atom]:
    """The values that lie in memory once they are made; the compiler makes others where they are
    used."""
    equations = program.equations
    values = {a for e in equations if e.prim in PRODUCTS for a in e.inputs}
    computed = [e.outputs for e in equations if not e.prim.elements.fused]
    return values.union(program.outputs, *computed)


def last_uses(program: Program, stored_values: Set[Atom]) -> dict[Atom, int]:
    """The number of the last equation that needs each value. A value that is not among the
    ``stored_values`` is needed as long as those that are computed from it."""
    equations = program.equations
    last: dict[Atom, int] = dict.fromkeys(program.outputs, len(equations))
    for i, e in reversed([*enumerate(equations)]):
        until = max([i, *[last.get(v, i) for v in e.outputs if v not in stored_values]])
        last.update({a: max(until, last.get(a, 0)) for a in e.inputs})
    return last


def peak(program: Program, but: Set[Atom] = frozenset()) -> int:
    """The most bytes of values, ``but`` for some and inputs, that are there at one time."""
    equations, stored_values = program.equations, stored(program)
    last = last_uses(program, stored_values)
    growth = [0] * (len(equations) + 2)
    for i, e in enumerate(equations):
        inside = max(map(_peak, e.programs), default=0)
        growth[i] += inside
        growth[i + 1] -= inside
        for v in stored_values.intersection(e.outputs) - but:
            growth[i] += size_in_bytes(v.type)
            growth[last.get(v, i) + 1] -= size_in_bytes(v.type)
    return max(accumulate(growth))


def _peak(program: Program) -> int:
    return memoize_on(program, "peak", lambda: peak(program))
