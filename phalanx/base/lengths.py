"""Symbolic lengths: integers that are not known, for shapes.

A ``Length`` is a polynomial of variables, and of floor divisions, remainders, maxima and minima of
such; what turns out to be a number is an int. Rules of primitives compute with lengths as with
ints, and compare them. Two that may differ count as different, since a shape has to be the same
whatever its lengths are. Which of two is greater has to be known: that is decided, or refused.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from typing import Any, ClassVar, NoReturn, cast

import numpy as np

from phalanx.base import length_bounds, length_terms
from phalanx.base.errors import ConcretizationTypeError, InconclusiveDimensionOperation
from phalanx.base.length_bounds import Bounds
from phalanx.base.length_terms import Monomial, Terms
from phalanx.base.source import user_location

Operation = tuple[str, Any, Any]  # its name, and its sides
_VARIABLE: Operation = ("", None, None)
_INTEGERS: tuple[type[Any], ...] = (int, np.integer)


class Lengths:
    """The variables of some lengths, and what is known of them.

    Attributes:
        constraints: what is said, in words.
        facts: polynomials that are at least 0.
    """

    def __init__(self, constraints: tuple[str, ...] = ()) -> None:
        self.constraints = constraints
        self.facts: list[Terms] = []
        self._equal: dict[Monomial, tuple[int, Terms]] = {}  # so many times it is a polynomial
        self._least: dict[str, Bounds] = {}
        self._operations: dict[str, Operation] = {}
        self._decided: dict[str, bool | None] = {}

    def variable(self, name: str) -> Any:
        """The length of that name."""
        return self.from_terms(length_terms.named(name))

    def operation(self, name: str) -> Operation:
        """What operation has ``name``, and its sides; that of a variable is none."""
        return self._operations.get(name, _VARIABLE)

    def terms(self, n: Any) -> Terms:
        """A length of these, or an integer, as a polynomial."""
        return n.terms if isinstance(n, Length) else length_terms.constant(operator.index(n))

    def from_terms(self, terms: Terms) -> Any:
        """The polynomial as a length; as an int if it is one."""
        terms = self.normal(terms)
        if terms.keys() <= {()}:
            return terms.get((), 0)
        return Length(self, terms)

    def applied(self, kind: str, x: Any, y: Any) -> Any:
        """The length that is an operation of two."""
        name = f"{kind}({x}, {y})"
        self._operations[name] = kind, x, y
        return self.from_terms(length_terms.named(name))

    def bounds_of(self, name: str) -> Bounds:
        """Between which numbers a variable, or an operation, lies."""
        kind, x, y = self.operation(name)
        if not kind:
            return self._least.get(name, (1.0, float("inf")))
        return length_bounds.operation_bounds(kind, self._bounds(x), self._bounds(y))

    def _bounds(self, n: Any) -> Bounds:
        return n.bounds if isinstance(n, Length) else (n, n)

    # ---- what is said of them ----

    def assume(self, low: Any, high: Any) -> None:
        """``low <= high`` holds of these lengths.

        Raises:
            ValueError: it cannot hold.
        """
        terms = length_terms.added(self.terms(high), self.terms(low), -1)
        if self.decided(terms) is False:
            raise ValueError(
                f"SymbolicScope: {low} <= {high} holds of no lengths, at {user_location()}; "
                f"constraints must not contradict each other, got {self.constraints}"
            )
        self.facts.append(terms)
        self._decided.clear()
        variables = [m for m in terms if m]
        name = variables[0][0][0] if len(variables) == 1 else ""
        if variables == [((name, 1),)] and not self.operation(name)[0]:
            self._limit(name, terms[variables[0]], terms.get((), 0))

    def _limit(self, name: str, times: int, more: int) -> None:
        low, high = self.bounds_of(name)
        if times > 0:
            low = max(low, (-more - 1) // times + 1)
        else:
            high = min(high, more // -times)
        self._least[name] = low, high

    def assume_equal(self, x: Any, y: Any) -> None:
        """``x == y`` holds: what the one is, where it is one term, is replaced by the other.

        Not by what depends on it in turn, as in ``a == 2*b - a``.
        """
        terms = self.terms(x)
        self.assume(x, y)
        self.assume(y, x)
        independent = variables(x).isdisjoint(variables(y))
        if len(terms) == 1 and () not in terms and independent:
            ((monomial, times),) = terms.items()
            self._equal[monomial] = times, self.terms(y)

    def instead_of(self, name: str) -> Any:
        """What an equality puts in the place of the variable ``name``; None where that stays."""
        times, _ = self._equal.get(((name, 1),), (0, None))
        return self.variable(name) if abs(times) == 1 else None

    # ---- the normal form ----

    def normal(self, terms: Terms) -> Terms:
        """``terms`` with what is known to be equal to something simpler replaced by that."""
        while True:
            simpler = self._simpler(terms)
            if simpler is None:
                return terms
            terms = simpler

    def _simpler(self, terms: Terms) -> Terms | None:
        for m, n in terms.items():
            for monomial, (times, value) in self._equal.items():
                left = length_terms.without(m, monomial)
                if left is not None and n % times == 0:
                    return _exchanged(terms, m, length_terms.scaled(value, n // times), left)
            for name, _ in m:
                kind, x, y = self.operation(name)
                own = length_terms.without(m, ((name, 1),))
                if kind == "floordiv" and own is not None:
                    simpler = self._multiplied_back(terms, m, x, y, own)
                    if simpler is not None:
                        return simpler
        return None

    def _multiplied_back(
        self, terms: Terms, m: Monomial, x: Any, y: Any, rest: Monomial
    ) -> Terms | None:
        """``terms`` in which ``y floordiv(x, y)``, a part of ``m``, is ``x - mod(x, y)``."""
        if isinstance(y, Length):
            if len(y.terms) > 1:
                return None
            ((factor, times),) = y.terms.items()
        else:
            factor, times = (), y
        left = length_terms.without(rest, factor)
        if left is None or terms[m] % times:
            return None
        value = length_terms.added(self.terms(x), self.terms(x % y), -1)
        return _exchanged(terms, m, length_terms.scaled(value, terms[m] // times), left)

    # ---- comparing ----

    def decided(self, terms: Terms) -> bool | None:
        """Whether a polynomial is at least 0, for all lengths or for none; else None."""
        key = length_terms.text(terms)
        if key not in self._decided:
            low, high = length_bounds.bounds(self, terms)
            self._decided[key] = True if low >= 0 else False if high < 0 else None
        return self._decided[key]

    def __deepcopy__(self, _: Any) -> Lengths:
        return self


def _exchanged(terms: Terms, m: Monomial, value: Terms, rest: Monomial) -> Terms:
    """``terms`` with ``rest`` times ``value`` in place of the term of ``m``."""
    others = {k: n for k, n in terms.items() if k != m}
    return length_terms.added(others, length_terms.multiplied(value, {rest: 1}))


class Length:
    """A length that is not known: what ``symbolic_shape`` gives, and what follows from such.

    It takes part in ``+``, ``-``, ``*``, ``//``, ``%`` and ``**`` with integers and others of its
    scope. Beside arrays, and beside numbers that are no integers, it becomes an array, whose value
    a program knows that was traced at such lengths.
    """

    __slots__ = ("__dict__", "_hash", "scope", "terms")
    __array_ufunc__ = None  # `ndarray * length` comes to us, not to NumPy
    as_array: ClassVar[Callable[..., Any]]  # plugged in by the package that has operations

    def __init__(self, scope: Lengths, terms: Terms) -> None:
        self.scope = scope
        self.terms = terms
        self._hash = hash((id(scope), frozenset(terms.items())))

    @cached_property
    def bounds(self) -> Bounds:
        """Between which numbers it lies."""
        return length_bounds.bounds(self.scope, self.terms)

    @property
    def variables(self) -> frozenset[str]:
        """The names of the variables on which it depends, without replacing any."""
        found: set[str] = set()
        for name in {name for m in self.terms for name, _ in m}:
            kind, *sides = self.scope.operation(name)
            within = sides if kind else [self.scope.instead_of(name)]
            found |= {name} if within == [None] else frozenset().union(*map(variables, within))
        return frozenset(found)

    def value(self, numbers: Mapping[str, Any]) -> Any:
        """What it is where variables are ``numbers``, or whatever computes as these do."""
        total: Any = 0
        for m, n in self.terms.items():
            term: Any = n
            for name, power in m:
                for _ in range(power):
                    term = term * self._value_of(name, numbers)
            total = total + term
        return total

    def _value_of(self, name: str, numbers: Mapping[str, Any]) -> Any:
        kind, *sides = self.scope.operation(name)
        if not kind:
            other = self.scope.instead_of(name)
            return numbers[name] if other is None else numbered(other, numbers)
        x, y = [numbered(side, numbers) for side in sides]
        return _OPERATIONS[kind](x, y)

    # ---- arithmetic ----

    def _with(self, other: Any) -> Terms | None:
        """The terms of ``other``, if it is an integer or a length."""
        if isinstance(other, Length):
            if other.scope is not self.scope:
                raise ValueError(
                    f"lengths of two scopes meet: {self} and {other}, at {user_location()}; make "
                    "them by one call of symbolic_shape, or with scope="
                )
            return other.terms
        if isinstance(other, _INTEGERS):
            return length_terms.constant(int(other))
        return None

    def __add__(self, other: Any) -> Any:
        terms = self._with(other)
        if terms is None:
            return self._beside(operator.add, other)
        return self.scope.from_terms(length_terms.added(self.terms, terms))

    def __sub__(self, other: Any) -> Any:
        terms = self._with(other)
        if terms is None:
            return self._beside(operator.sub, other)
        return self.scope.from_terms(length_terms.added(self.terms, terms, -1))

    def __rsub__(self, other: Any) -> Any:
        terms = self._with(other)
        if terms is None:
            return self._beside(operator.sub, other, right=True)
        return self.scope.from_terms(length_terms.added(terms, self.terms, -1))

    def __mul__(self, other: Any) -> Any:
        terms = self._with(other)
        if terms is None:
            return self._beside(operator.mul, other)
        return self.scope.from_terms(length_terms.multiplied(self.terms, terms))

    __radd__ = __add__
    __rmul__ = __mul__

    def __floordiv__(self, other: Any) -> Any:
        terms = self._with(other)
        if terms is None:
            return self._beside(quotient, other)
        return _divided(self, self.scope.from_terms(terms))[0]

    def __rfloordiv__(self, other: Any) -> Any:
        if self._with(other) is None:
            return self._beside(quotient, other, right=True)
        return _divided(int(other), self)[0]

    def __mod__(self, other: Any) -> Any:
        terms = self._with(other)
        if terms is None:
            return self._beside(remainder, other)
        return _divided(self, self.scope.from_terms(terms))[1]

    def __rmod__(self, other: Any) -> Any:
        if self._with(other) is None:
            return self._beside(remainder, other, right=True)
        return _divided(int(other), self)[1]

    def __divmod__(self, other: Any) -> tuple[Any, Any]:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> tuple[Any, Any]:
        return other // self, other % self

    def __pow__(self, power: Any) -> Any:
        if not isinstance(power, _INTEGERS) or power < 0:
            return self._beside(_power, power)
        out: Any = 1
        for _ in range(int(power)):
            out = out * self
        return out

    def __truediv__(self, other: Any) -> Any:
        return self._beside(_ratio, other)

    def __rtruediv__(self, other: Any) -> Any:
        return self._beside(_ratio, other, right=True)

    def __neg__(self) -> Any:
        return self.scope.from_terms(length_terms.scaled(self.terms, -1))

    def __abs__(self) -> Any:
        return larger(self, -self)

    def __pos__(self) -> Length:
        return self

    def _beside(self, function: Callable[..., Any], other: Any, right: bool = False) -> Any:
        """``function`` of arrays: of this one's value, and of ``other``."""
        if not hasattr(other, "dtype") and not isinstance(other, (int, float, complex, Length)):
            return NotImplemented
        own = self.__jax_array__()
        return function(other, own) if right else function(own, other)

    def __jax_array__(self) -> Any:
        return self.filled((), None)

    def filled(self, shape: tuple[Any, ...], dtype: Any) -> Any:
        """An array of ``shape`` that has its number everywhere; without a dtype a weak int32."""
        return Length.as_array(self, shape, dtype)

    # ---- comparing ----

    def __eq__(self, other: object) -> Any:
        if self is other:
            return True
        if isinstance(other, Length):
            if other.scope is not self.scope:
                return False
        elif not isinstance(other, _INTEGERS):
            return NotImplemented
        difference = length_terms.added(self.terms, cast(Terms, self._with(other)), -1)
        if not difference:
            return True
        below = self.scope.decided(difference)
        above = self.scope.decided(length_terms.scaled(difference, -1))
        return below is True and above is True

    def __hash__(self) -> int:
        return self._hash

    def __ge__(self, other: Any) -> bool:
        return self._at_least(other, ">=", self, other)

    def __le__(self, other: Any) -> bool:
        return self._at_least(other, "<=", other, self)

    def __gt__(self, other: Any) -> bool:
        return self._at_least(other, ">", self, other, 1)

    def __lt__(self, other: Any) -> bool:
        return self._at_least(other, "<", other, self, 1)

    def _at_least(self, other: Any, sign: str, x: Any, y: Any, more: int = 0) -> bool:
        """Whether ``x - y >= more``."""
        if self._with(other) is None:
            return NotImplemented
        answer = self.scope.decided(self.scope.terms(x - y - more))
        if answer is None:
            raise InconclusiveDimensionOperation(
                f"Symbolic dimension comparison '{self}' {sign} '{other}' is inconclusive, at "
                f"{user_location()}: it holds for some of the lengths that are possible, and not "
                "for others. Say more of them with constraints=, as in symbolic_shape('a, b', "
                "constraints=['a >= b']), or export the function for lengths that are numbers"
            )
        return answer

    # ---- it is no number ----

    def _no_number(self, what: str) -> NoReturn:
        raise InconclusiveDimensionOperation(
            f"Symbolic dimension '{self}' used in a context that requires a constant, at "
            f"{user_location()}: it is {what}, and its number is not known while the function is "
            "traced. Compute with it by + - * // %, or make an array of it with jnp.array"
        )

    def __index__(self) -> int:
        self._no_number("used as an integer")

    def __int__(self) -> int:
        self._no_number("converted to int")

    def __float__(self) -> float:
        self._no_number("converted to float")

    def __bool__(self) -> bool:
        return self != 0

    def __deepcopy__(self, _: Any) -> Length:
        return self

    def __repr__(self) -> str:
        return length_terms.text(self.terms)


def _divided(x: Any, y: Any) -> tuple[Any, Any]:
    """``x // y`` and ``x % y``, where one at least is symbolic.

    What is a multiple of ``y`` divides; the rest, which may not, is an operation of its own.
    """
    if isinstance(y, int) and y == 0:
        raise ZeroDivisionError(f"the symbolic length {x} is divided by 0, at {user_location()}")
    scope = _scope(x, y)
    terms, whole = _without_remainders(scope, scope.terms(x), y)
    times, rest = length_terms.divided(terms, scope.terms(y))
    q, r = whole + scope.from_terms(times), scope.from_terms(rest)
    if isinstance(r, int) and r == 0:
        return q, 0
    if _is_within(scope, r, y):
        return q, r
    if isinstance(y, Length) and len(y.terms) > 1:
        q, r = 0, scope.from_terms(scope.terms(x))
    shared = math.gcd(y, *scope.terms(r).values()) if isinstance(y, int) else 1
    if shared > 1:
        fewer, _ = length_terms.divided(scope.terms(r), {(): shared})
        parts, left = _divided(scope.from_terms(fewer), y // shared)
        return q + parts, shared * left
    return q + scope.applied("floordiv", r, y), scope.applied("mod", r, y)


def _scope(x: Any, y: Any) -> Lengths:
    """That of two lengths, one of them symbolic at least."""
    return x.scope if isinstance(x, Length) else y.scope


def _without_remainders(scope: Lengths, terms: Terms, y: Any) -> tuple[Terms, Any]:
    """``terms`` with ``x`` for every ``mod(x, y)``, and how often ``y`` is too much in that."""
    whole: Any = 0
    for m, n in list(terms.items()):
        kind, x, by = scope.operation(m[0][0]) if len(m) == 1 and m[0][1] == 1 else _VARIABLE
        if kind == "mod" and by == y:
            terms = _exchanged(terms, m, length_terms.scaled(scope.terms(x), n), ())
            whole = whole - n * (x // y)
    return terms, whole


def _is_within(scope: Lengths, r: Any, y: Any) -> bool:
    """Whether ``0 <= r < y`` is known."""
    low, below = scope.terms(r), scope.terms(y - r - 1)
    return scope.decided(low) is True and scope.decided(below) is True


# ---- what works of numbers, too -----------------------------------------------------------------


def quotient(x: Any, y: Any) -> Any:
    """``x // y``."""
    return x // y


def remainder(x: Any, y: Any) -> Any:
    """``x % y``."""
    return x % y


def _ratio(x: Any, y: Any) -> Any:
    return x / y


def _power(x: Any, y: Any) -> Any:
    return x**y


def larger(x: Any, y: Any) -> Any:
    """The larger of two lengths.

    >>> larger(2, 3)
    3
    """
    return _chosen("max", x, y)


def smaller(x: Any, y: Any) -> Any:
    """The smaller of two lengths.

    >>> smaller(2, 3)
    2
    """
    return _chosen("min", x, y)


def _chosen(kind: str, x: Any, y: Any) -> Any:
    if not isinstance(x, Length) and not isinstance(y, Length):
        return (max if kind == "max" else min)(x, y)
    scope = _scope(x, y)
    up = scope.decided(scope.terms(x - y))
    if up is None and scope.decided(scope.terms(y - x)) is True:
        up = False
    if up is None:
        return scope.applied(kind, x, y)
    return x if up == (kind == "max") else y


_OPERATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "floordiv": quotient, "mod": remainder, "max": larger, "min": smaller,
}  # fmt: skip


def count(start: Any, stop: Any, step: int) -> Any:
    """How many integers there are from ``start`` to ``stop``, without that, in steps.

    >>> count(1, 6, 2), count(5, -1, -1), count(3, 1, 1)
    (3, 6, 0)
    """
    if isinstance(start, int) and isinstance(stop, int):
        return len(range(start, stop, step))
    span = stop - start if step > 0 else start - stop
    return larger((span - 1) // abs(step) + 1, 0)


def slice_of(s: slice, size: Any) -> tuple[Any, int, Any]:
    """Where the part ``s`` of a dimension starts, its step, and how many elements it has.

    >>> slice_of(slice(-3, None), 5), slice_of(slice(None, None, -2), 5)
    ((2, 1, 3), (4, -2, 3))
    """
    if not symbolic((size, s.start, s.stop)):
        start, stop, step = s.indices(size)
        return start, step, len(range(start, stop, step))
    step = 1 if s.step is None else operator.index(s.step)
    if not step:
        raise ValueError("slice step cannot be zero")
    least, most = (0, size) if step > 0 else (-1, size - 1)
    ends = (least, most) if step > 0 else (most, least)
    start, stop = [
        end if bound is None else _clamped(length(bound), size, least, most)
        for bound, end in zip((s.start, s.stop), ends, strict=True)
    ]
    return start, step, count(start, stop, step)


def _clamped(n: Any, size: Any, least: int, most: Any) -> Any:
    """The position ``n``, counted from the end if it is negative, within the dimension."""
    return larger(n + size, least) if n < 0 else smaller(n, most)


def fits(n: Any, most: int) -> bool:
    """Whether ``n`` is at most ``most``; a symbolic length is, unless it is known not to be."""
    return n.bounds[0] <= most if isinstance(n, Length) else n <= most


def length(n: Any) -> Any:
    """``n`` as a length: an int, or a symbolic one as it is.

    Raises:
        TypeError: it is no integer.
    """
    return n if type(n) is int or isinstance(n, Length) else operator.index(n)


def integer(who: str, what: str, n: Any) -> Any:
    """``n`` as a length, for the argument ``what`` of the function ``who``.

    Raises:
        TypeError: it is no integer, or one of which only the type is known.
    """
    try:
        if type(n) is not bool:
            return length(n)
    except ConcretizationTypeError:  # says what is traced, and where
        raise
    except TypeError:
        pass
    raise TypeError(f"{who}: {what} must be an integer, got {n!r}, at {user_location()}")


def symbolic(lengths: Iterable[Any]) -> bool:
    """Whether one of ``lengths`` is symbolic."""
    return any([isinstance(n, Length) for n in lengths])


def filled(values: Iterable[Any], shape: tuple[Any, ...], dtype: Any) -> tuple[Any, ...]:
    """``values``, with arrays of ``shape`` and ``dtype`` in place of symbolic lengths."""
    return tuple([v.filled(shape, dtype) if isinstance(v, Length) else v for v in values])


def beside_arrays(values: tuple[Any, ...]) -> tuple[Any, ...]:
    """``values``, with arrays like those among them in place of symbolic lengths."""
    if not symbolic(values):
        return values
    like = next((v for v in values if hasattr(v, "dtype")), None)
    return filled(values, getattr(like, "shape", ()), getattr(like, "dtype", None))


def variables(n: Any) -> frozenset[str]:
    """The names of the variables on which the length depends."""
    return n.variables if isinstance(n, Length) else frozenset()


def numbered(n: Any, numbers: Mapping[str, Any]) -> Any:
    """The length where variables are ``numbers``."""
    return n.value(numbers) if isinstance(n, Length) else n
