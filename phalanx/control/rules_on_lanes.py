"""What the derivatives of functions with a rule for all lanes do on all lanes.

They are derivatives of what the rule gives: each is such a function again, with the rule that
stands here. An operand of which a tangent has lanes has lanes for the rule, too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

from phalanx.control.custom_vjp_call import lanes_of_cotangent
from phalanx.control.result_dims import ResultDims
from phalanx.core.axes import Axis
from phalanx.core.manual import typed
from phalanx.core.primitive import ZERO, Linear, selected, with_zeros
from phalanx.core.runs import Marks
from phalanx.core.types import ArrayType, typeof
from phalanx.primitives.basis import instantiate, zeros
from phalanx.transforms.batch import Dims, batch, lanes_in_front, with_lanes
from phalanx.transforms.linearize import jvp, linearize
from phalanx.transforms.partial_eval import partial_eval
from phalanx.transforms.stage import stage
from phalanx.transforms.transpose import backward

OnLanes = tuple[list[Any], list[bool]]  # results, and which of them have lanes, as first dimension


class LanesRule(Protocol):
    """What an operation does on all lanes.

    It is about the last operands of the operation, ``total`` in number.
    """

    @property
    def total(self) -> int:
        """How many operands it is about."""
        ...

    @property
    def linear(self) -> Marks:
        """Those in which its results are linear, whatever the others are."""
        ...

    @property
    def steady(self) -> int:
        """How many results, the first ones, do not depend on those."""
        ...

    @property
    def separate(self) -> bool:
        """Whether what it does with those is apart from what it computes of others."""
        ...

    def asked(self, moving: Marks) -> bool:
        """Whether it is asked where the operands that are ``moving`` have lanes."""
        ...

    def run(self, axis: Axis, moving: Marks, operands: Sequence[Any]) -> OnLanes:
        """The results on all lanes of ``axis``, which come first in what is ``moving``."""
        ...


class OnOtherLanes:
    """The rule for the results of ``rule`` on the lanes of an axis for which it was not asked.

    It keeps ``rule`` for outer axes, for which it is asked. Operands have the lanes of ``axis`` in
    ``dims``.
    """

    def __init__(self, rule: LanesRule, axis: Axis, dims: Dims, places: ResultDims) -> None:
        self.rule = rule
        self.axis = axis
        self.dims = dims
        self.places = places
        self.total = rule.total
        self.linear = rule.linear
        self.steady = rule.steady
        self.separate = rule.separate

    def asked(self, moving: Marks) -> bool:
        return self.rule.asked(moving)

    def run(self, axis: Axis, moving: Marks, operands: Sequence[Any]) -> OnLanes:
        marks: list[bool] = []

        def function(*xs: Any) -> list[Any]:
            results, found = self.rule.run(axis, moving, xs)
            marks.extend(found)
            return results

        pairs = zip(self.dims, moving, strict=True)
        where = [None if d is None else d + m for d, m in pairs]
        values, dims = batch(function, self.axis, operands, where)
        inner = zip(self.places.dims or (), marks, strict=True)
        to = [None if d is None else d + m for d, m in inner]
        triples = zip(values, dims, to, strict=True)
        return [self.places.placed(v, d, t) for v, d, t in triples], marks

    def __str__(self) -> str:
        return str(self.rule)


class _Differentiated:
    """A ``rule`` as a function of what has tangents.

    Its operands are followed by the tangents of those that are ``active``; results that are
    ``nonzero`` have some.
    """

    def __init__(self, rule: LanesRule, active: Marks, nonzero: Marks) -> None:
        self.rule = rule
        self.active = active
        self.nonzero = nonzero
        self.total: int = rule.total + sum(active)
        self.linear = (*[False] * rule.total, *[True] * sum(active))

    def asked(self, moving: Marks) -> bool:
        return self.rule.asked(moving[: self.rule.total])

    def at(self, axis: Axis, moving: Marks, operands: Sequence[Any]) -> _AtLanes:
        """The rule on lanes of all that has some, or whose tangent has."""
        count = self.rule.total
        own, of_tangents = moving[:count], moving[count:]
        by_tangents = [t is True for t in with_zeros(of_tangents, self.active)]
        batched = tuple([a or b for a, b in zip(own, by_tangents, strict=True)])
        marks: list[bool] = []

        def function(*xs: Any) -> list[Any]:
            results, found = self.rule.run(axis, batched, xs)
            marks.extend(found)
            return results

        primals = _spread(axis, own, batched, operands[:count])
        along = tuple(selected(batched, self.active))
        tangents = _spread(axis, of_tangents, along, operands[count:])
        return _AtLanes(function, primals, tangents, marks)

    def some(self, slopes: Sequence[Any], results: Sequence[Any]) -> list[Any]:
        """The tangents of ``results`` that are wanted."""
        pairs = zip(slopes, results, strict=True)
        return selected([instantiate(t, typeof(y)) for t, y in pairs], self.nonzero)

    def __str__(self) -> str:
        return str(self.rule)


class _AtLanes(NamedTuple):
    """A function of what has lanes, its operands and tangents; and which of its results have some,
    once it has run."""

    function: Callable[..., list[Any]]
    primals: list[Any]
    tangents: list[Any]
    marks: list[bool]


class WithTangents(_Differentiated):
    """The rule for the results of a rule together with their tangents."""

    separate = False

    @property
    def steady(self) -> int:
        return len(self.nonzero)

    def run(self, axis: Axis, moving: Marks, operands: Sequence[Any]) -> OnLanes:
        function, primals, tangents, marks = self.at(axis, moving, operands)
        results, slopes = jvp(function, primals, with_zeros(tangents, self.active))
        slopes = self.some(slopes, results)
        return [*results, *slopes], [*marks, *selected(marks, self.nonzero)]


class Storing:
    """The rule for the results of ``rule``, with zeros as residuals of its program's linear half.

    That half, on all lanes, is made of the rule, and asks for the operands alone.
    """

    steady, separate = 0, False

    def __init__(self, rule: LanesRule, stored: Sequence[ArrayType]) -> None:
        self.rule = rule
        self.stored = stored
        self.total = rule.total
        self.linear = (False,) * rule.total

    def asked(self, moving: Marks) -> bool:
        return self.rule.asked(moving)

    def run(self, axis: Axis, moving: Marks, operands: Sequence[Any]) -> OnLanes:
        results, marks = self.rule.run(axis, moving, operands)
        return [*results, *map(zeros, self.stored)], [*marks, *[False] * len(self.stored)]

    def __str__(self) -> str:
        return str(self.rule)


class TangentsAlone(_Differentiated):
    """The rule for the tangents alone; it takes operands, residuals, and tangents."""

    steady, separate = 0, True

    def __init__(self, rule: LanesRule, active: Marks, nonzero: Marks, stored: int) -> None:
        super().__init__(rule, active, nonzero)
        self.stored = stored
        self.total += stored
        self.linear = (*[False] * stored, *self.linear)

    def run(self, axis: Axis, moving: Marks, operands: Sequence[Any]) -> OnLanes:
        first = self.rule.total
        taken = [*range(first), *range(first + self.stored, self.total)]
        flags = tuple([moving[i] for i in taken])
        function, primals, tangents, marks = self.at(axis, flags, [operands[i] for i in taken])
        results, linear = linearize(function, primals, self.active)
        return self.some(linear(tangents), results), selected(marks, self.nonzero)


class InTangents:
    """The same of a ``rule`` that is linear in the operands that are ``active``: that rule.

    It takes the other operands, what is stored, and the tangents.
    """

    steady, separate = 0, False

    def __init__(self, rule: LanesRule, active: Marks, nonzero: Marks, stored: int) -> None:
        self.rule = rule
        self.active = active
        self.nonzero = nonzero
        self.stored = stored
        self.total = rule.total + stored
        self.linear = (*[False] * (self.total - sum(active)), *[True] * sum(active))

    def asked(self, moving: Marks) -> bool:
        return self.rule.asked(tuple(self._merged(moving)))

    def run(self, axis: Axis, moving: Marks, operands: Sequence[Any]) -> OnLanes:
        flags = tuple(self._merged(moving))
        results, marks = self.rule.run(axis, flags, self._merged(operands))
        return selected(results, self.nonzero), selected(marks, self.nonzero)

    def _merged(self, values: Sequence[Any]) -> list[Any]:
        """What the rule takes for each of its operands, of the ``values`` for those of this."""
        first = self.total - sum(self.active)
        known, tangents = iter(values), iter(values[first:])
        return [next(tangents if a else known) for a in self.active]

    def __str__(self) -> str:
        return str(self.rule)


class Backwards:
    """The rule for the cotangents of the operands that ``is_linear`` marks, of ``types``.

    It takes the other operands, and then the cotangents of results: ``has_cotangent`` marks which.
    """

    steady, separate = 0, True

    def __init__(
        self, rule: LanesRule, is_linear: Marks, types: Sequence[ArrayType], has_cotangent: Marks
    ) -> None:
        self.rule = rule
        self.is_linear = is_linear
        self.types = types
        self.has_cotangent = has_cotangent
        self.known = len(is_linear) - sum(is_linear)
        self.total = self.known + sum(has_cotangent)
        self.linear = (*[False] * self.known, *[True] * sum(has_cotangent))

    def asked(self, moving: Marks) -> bool:
        return self.rule.asked(self._moving(moving, any(moving[self.known :])))

    def run(self, axis: Axis, moving: Marks, operands: Sequence[Any]) -> OnLanes:
        flags = self._moving(moving, True)
        marks: list[bool] = []

        def function(*xs: Any) -> list[Any]:
            tangents, rest = iter(xs), iter(operands)
            cotangents = [next(tangents if a else rest) for a in self.is_linear]
            results, found = self.rule.run(axis, flags, cotangents)
            marks.extend(found)
            return results

        along = typed(axis.outside)
        types = [with_lanes(t, 0, axis) for t in self.types]
        types = [t.update(varying=t.varying | along) for t in types]
        program, captured = stage(function, types, str(self.rule))
        if not self.rule.separate:
            program = partial_eval(program, [False] * len(captured) + [True] * len(types))
        cts = with_zeros(operands[self.known :], self.has_cotangent)
        with_lanes_ = iter(moving[self.known :])
        received = [
            ZERO if ct is ZERO else _received(ct, next(with_lanes_), mark, axis)
            for ct, mark in zip(cts, marks, strict=True)
        ]
        back = backward(program, [*captured, *map(Linear, types)], received)
        cotangents = [instantiate(ct, t.cotangent) for ct, t in zip(back, types, strict=True)]
        return cotangents, [True] * len(cotangents)

    def _moving(self, moving: Marks, linear: bool) -> Marks:
        """The same of the operands of the rule; ``linear`` of those in which it is linear."""
        rest = iter(moving)
        return tuple([linear if a else next(rest) for a in self.is_linear])

    def __str__(self) -> str:
        return str(self.rule)


def _spread(axis: Axis, moving: Marks, batched: Marks, values: Sequence[Any]) -> list[Any]:
    """``values``, some of them ``moving``, with lanes where ``batched`` says so."""
    return [
        lanes_in_front(x, None, axis) if w and not m else x
        for x, m, w in zip(values, moving, batched, strict=True)
    ]


def _received(ct: Any, moving: bool, mark: bool, axis: Axis) -> Any:
    """The cotangent of a result, which has lanes if ``mark`` says so, and else is that of all."""
    return lanes_of_cotangent(ct, 0 if moving else None, 0 if mark else None, axis)
