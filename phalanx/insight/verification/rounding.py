"""Whether rounding explains that numbers differ."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from msgspec import Struct

from phalanx.base import dtypes
from phalanx.base.errors import PhalanxError
from phalanx.core.layouts import Axes
from phalanx.core.program import Program
from phalanx.insight.verification.collectives import Values
from phalanx.insight.verification.reference import Reference, Shared
from phalanx.insight.verification.single_device import narrower, wider
from phalanx.laws.compare import rounding, wide

__all__ = ["Compared", "Judge", "difference"]

_TIMES = 32  # as much as operands that are rounded change a result, another order may
_FINER = 2.0**-29  # how much smaller rounding is in float64 than in float32
# Where elements differ as much but for rounding the first is named, on all processors the same.
_AS_FAR = 0.999
_REFUSED = (PhalanxError, TypeError, ValueError, NotImplementedError, ArithmeticError)


class Compared(Struct, frozen=True):
    """How a result on devices and that of one device compare.

    Attributes:
        differs: whether rounding does not explain it.
        equal: whether all bits are the same.
        error: the largest difference, relative to the largest element.
        allowed: the largest that rounding explains.
        position: of the lane, where there are some.
        index: of the element that differs most.
        found: that element, on devices.
        expected: the same on one device.
    """

    differs: bool
    equal: bool
    error: float
    allowed: float
    position: int = 0
    index: tuple[int, ...] = ()
    found: Any = None
    expected: Any = None


class Judge:
    """Compares what devices give with what one device gives, in other precisions where needed.

    What rounding changes is measured: results of less than 64 bits against those in 64, and results
    of 64 bits against those in 32, whose error is as many times larger.
    """

    def __init__(self, device: Any) -> None:
        self.plain = Reference(device)
        self.wide = Reference(device, wider)
        self.narrow = Reference(device, narrower)

    def compare(
        self,
        program: Program,
        inputs: Sequence[Values],
        axes: Axes,
        found: Sequence[Values],
    ) -> list[Compared]:
        """How each result compares of ``program``, which devices ``found`` from ``inputs``.

        Where copies differ, devices found several, of all positions one after the other.
        """

        def run(reference: Reference, inputs: Sequence[Values]) -> list[Values]:
            results = reference(program, inputs, axes)
            return [y * (len(x) // len(y)) for x, y in zip(found, results, strict=True)]

        expected = run(self.plain, inputs)
        comparisons = [_compared(x, y, 0.0) for x, y in zip(found, expected, strict=True)]
        if not any([c.differs for c in comparisons]):
            return comparisons
        try:
            exact = run(self.wide, [_widened(values) for values in inputs])
            moved = run(self.wide, _perturbed(inputs))
        except _REFUSED:
            return comparisons
        comparisons = [
            _compared(x, z, _TIMES * max(_distance(y, z), _distance(w, z))) if c.differs else c
            for c, x, y, z, w in zip(comparisons, found, expected, exact, moved, strict=True)
        ]
        if not any([c.differs and _is_finest(x) for c, x in zip(comparisons, found, strict=True)]):
            return comparisons
        try:
            rough = run(self.narrow, [_narrowed(values) for values in inputs])
        except _REFUSED:
            return comparisons
        return [
            _compared(x, z, _coarse(r, z)) if c.differs and _is_finest(x) else c
            for c, x, z, r in zip(comparisons, found, exact, rough, strict=True)
        ]

    def untrue(self, program: Program, inputs: Sequence[Values]) -> Shared | None:
        """The first value that was taken for those of other positions, which rounding does not
        make of it, when ``program`` was compared."""
        unequal = [s for s in self.plain.shared if _is_unequal(s)]
        if not unequal:
            return None
        self.wide.shared.clear()
        try:
            self.wide(program, [_widened(values) for values in inputs])
        except (*_REFUSED, MemoryError):
            return unequal[0]
        again = {(id(s.lanes), s.number) for s in self.wide.shared if _is_unequal(s)}
        return next((s for s in unequal if (id(s.lanes), s.number) in again), None)

    def unlike(self, copies: Values) -> Compared | None:
        """How that of ``copies`` which is farthest from the first one compares with it; None if
        all are the same but for their last digits."""
        comparison = _compared(copies, copies[:1] * len(copies), 0.0)
        return comparison if comparison.differs else None

    def alike(self, found: Sequence[Values], expected: Sequence[Values]) -> bool:
        """Whether values are the same but for their last digits."""
        pairs = zip(found, expected, strict=True)
        return not any([_compared(x, y, 0.0).differs for x, y in pairs])


def difference(found: Values, expected: Values) -> float:
    """The largest difference, relative to the largest element."""
    scale = max([_errors(x, y)[1] for x, y in zip(found, expected, strict=True)])
    return _over(_distance(found, expected), scale)


def _compared(found: Values, expected: Values, spread: float) -> Compared:
    """Of values at each position; ``spread`` is what rounding of operands changes."""
    dtype = found[0].dtype
    worst = Compared(False, True, 0.0, 0.0)
    for p, (x, y) in enumerate(zip(found, expected, strict=True)):
        if x is y:
            continue
        if x.shape != y.shape:
            return Compared(True, False, np.inf, 0.0, p, (), x.shape, y.shape)
        if np.array_equal(x, y) and x.dtype == y.dtype:
            continue
        errors, scale = _errors(x, y)
        allowed = spread + rounding(dtype) * scale if dtypes.is_inexact(dtype) else spread
        top = float(errors.max(initial=0.0))
        if top == 0 and worst.differs:
            continue
        first = int((errors >= _AS_FAR * top).argmax())
        index = tuple(map(int, np.unravel_index(first, errors.shape)))
        one = Compared(
            bool(top > allowed), False, _over(top, scale), _over(allowed, scale), p, index,
            x[index], y[index],
        )  # fmt: skip
        if worst.equal or (one.differs, one.error * _AS_FAR) > (worst.differs, worst.error):
            worst = one
    return worst


def _is_unequal(shared: Shared) -> bool:
    """Whether values differ by more than rounding in the dtype of the program."""
    first, *others = shared.values
    allowed = rounding(shared.lanes.outputs[shared.number].type.physical.dtype)
    pairs = [_errors(x, first) for x in others]
    return any([errors.max(initial=0.0) > allowed * scale for errors, scale in pairs])


def _over(size: float, scale: float) -> float:
    return size / scale if scale else size


def _errors(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, float]:
    """The difference of each element, and the size of the largest one."""
    if not dtypes.is_inexact(x.dtype):
        if dtypes.is_inexact(y.dtype):
            y = np.asarray(y, x.dtype)
        return (x != y).astype(float), 1.0
    a, b = wide(x), wide(y)
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    finite = np.isfinite(a) & np.isfinite(b)
    errors = np.where(same, 0.0, np.inf)
    with np.errstate(all="ignore"):
        errors = np.where(finite, np.abs(np.where(finite, a, 0) - np.where(finite, b, 0)), errors)
    return errors, float(np.abs(b[np.isfinite(b)]).max(initial=0.0))


def _distance(xs: Values, ys: Values) -> float:
    """How far values are from each other, anywhere."""
    return max([float(_errors(x, y)[0].max(initial=0.0)) for x, y in zip(xs, ys, strict=True)])


def _is_finest(values: Values) -> bool:
    """Whether values are of a dtype that no other is more precise than."""
    return narrower(values[0].dtype) != values[0].dtype


def _coarse(rough: Values, exact: Values) -> float:
    """What rounding changes in 64 bits, by ``rough``, the same in 32; 0 if that says nothing."""
    distance = _distance(rough, exact)
    return _TIMES * _FINER * distance if np.isfinite(distance) else 0.0


def _narrowed(values: Values) -> Values:
    known: dict[int, np.ndarray] = {}
    with np.errstate(over="ignore"):
        return [known.setdefault(id(x), x.astype(narrower(x.dtype), copy=False)) for x in values]


def _widened(values: Values) -> Values:
    known: dict[int, np.ndarray] = {}
    return [known.setdefault(id(x), wide_of(x)) for x in values]


def wide_of(x: np.ndarray) -> np.ndarray:
    """``x`` in 64 bits if it is of floating-point numbers."""
    return wide(x) if dtypes.is_inexact(x.dtype) else x


def _perturbed(inputs: Sequence[Values]) -> list[Values]:
    """``inputs`` in 64 bits, of which each number is rounded otherwise."""
    rng, known = np.random.default_rng(0), dict[int, np.ndarray]()

    def one(x: np.ndarray) -> np.ndarray:
        if not dtypes.is_inexact(x.dtype):
            return x
        if id(x) not in known:
            eps = float(dtypes.finfo(x.dtype).eps)
            known[id(x)] = wide(x) * (1 + eps * rng.uniform(-1, 1, x.shape))
        return known[id(x)]

    return [list(map(one, values)) for values in inputs]
