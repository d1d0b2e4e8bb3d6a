"""Symbolic lengths compute as the integers do that they stand for."""

import contextlib
import itertools
import math
import random

import pytest

from phalanx.base import lengths
from phalanx.base.lengths import Length, Lengths
from phalanx.errors import InconclusiveDimensionOperation
from phalanx.export import SymbolicScope, symbolic_shape

NUMBERS = [{"a": a, "b": b} for a, b in itertools.product((1, 2, 3, 5, 8), (1, 2, 4, 7))]


def value(n, numbers):
    return n.value(numbers) if isinstance(n, Length) else n


def drawn(source, a, b, depth):
    """A random expression of lengths, and the same function of integers."""
    if not depth:
        k = source.choice([1, 2, 3, 4, -1, 6])
        return source.choice([(a, lambda a, b: a), (b, lambda a, b: b), (k, lambda a, b: k)])
    (x, f), (y, g) = (drawn(source, a, b, depth - 1) for _ in range(2))
    kind = source.choice(["+", "-", "*", "//", "%", "max", "min"])
    if kind in ("//", "%"):
        k = source.choice([2, 3, 4])
        by, h = source.choice([(k, lambda a, b: k), (a, lambda a, b: a), (b, lambda a, b: b)])
        if kind == "//":
            return x // by, lambda a, b: f(a, b) // h(a, b)
        return x % by, lambda a, b: f(a, b) % h(a, b)
    if kind in ("max", "min"):
        own = lengths.larger if kind == "max" else lengths.smaller
        choose = max if kind == "max" else min
        return own(x, y), lambda a, b: choose(f(a, b), g(a, b))
    if kind == "+":
        return x + y, lambda a, b: f(a, b) + g(a, b)
    if kind == "-":
        return x - y, lambda a, b: f(a, b) - g(a, b)
    return x * y, lambda a, b: f(a, b) * g(a, b)


@pytest.mark.parametrize("seed", range(150))
def test_expressions_are_those_of_integers(seed):
    source = random.Random(seed)
    scope = SymbolicScope()
    a, b = symbolic_shape("a, b", scope=scope)
    n, f = drawn(source, a, b, source.choice([1, 2, 3]))
    wanted = [f(**numbers) for numbers in NUMBERS]
    assert [value(n, numbers) for numbers in NUMBERS] == wanted
    if not isinstance(n, Length):
        return
    low, high = n.bounds
    assert all(low <= w <= high for w in wanted)
    (again,) = symbolic_shape(repr(n), scope=scope)
    assert again == n and hash(again) == hash(n)
    for m in (0, 1, 3):
        assert n != m or set(wanted) == {m}
        with contextlib.suppress(InconclusiveDimensionOperation):
            assert {n >= m} == {w >= m for w in wanted} and {n < m} == {w < m for w in wanted}


@pytest.mark.parametrize("step", [1, 2, 3, -1, -2])
@pytest.mark.parametrize("start", [None, 0, 2, -1, -3, 7])
@pytest.mark.parametrize("stop", [None, 0, 3, -1, -4, 9])
def test_slices_are_those_of_integers(start, stop, step):
    (n,) = symbolic_shape("n")
    s = slice(start, stop, step)
    first, by, count = lengths.slice_of(s, n)
    for k in range(1, 12):
        wanted = range(*s.indices(k))
        assert value(count, {"n": k}) == len(wanted) and by == step
        assert not len(wanted) or value(first, {"n": k}) == wanted[0]


@pytest.mark.parametrize(
    ("expression", "wanted"),
    [
        ("a + b - b", "a"), ("(4 * a + 6) // 2", "2*a + 3"), ("(4 * a + 6) % 4", "2"),
        ("a * b // a", "b"), ("(a * b + b) // (a + 1)", "b"), ("a // 2 * 2 + a % 2", "a"),
        ("a // b * b + a % b", "a"), ("(a + -a % 4) % 4", "0"), ("2 * a // 4", "floordiv(a, 2)"),
        ("larger(a, 1)", "a"), ("larger(a, 0)", "a"), ("smaller(a, 5)", "min(a, 5)"),
        ("a ** 2", "a^2"), ("divmod(3 * a, 3)", "(a, 0)"), ("abs(-a)", "a"), ("10 - a", "- a + 10"),
    ],
)  # fmt: skip
def test_normal_form(expression, wanted):
    a, b = symbolic_shape("a, b")
    names = {"a": a, "b": b, "larger": lengths.larger, "smaller": lengths.smaller}
    assert str(eval(expression, names)) == wanted


def test_comparisons():
    a, b = symbolic_shape("a, b")
    assert a >= 1 and a > 0 and not a < 1 and a + b >= 2 and a // 2 <= a and a >= 0
    assert a == a + b - b and a != b and a != 1 and a + 1 != a and bool(a) and a not in (1, "a")
    for unknown in (lambda: a >= 2, lambda: a > b, lambda: a < 5, lambda: max(a, b)):
        with pytest.raises(InconclusiveDimensionOperation, match=r"is inconclusive, at .*test_len"):
            unknown()


def test_constraints():
    said = ["a >= 4", "b <= a", "mod(a, 8) == 0", "c == 2*a", "d <= 9"]
    a, b, c, d = symbolic_shape("a, b, c, d", constraints=said)
    assert a >= 3 and b <= a and a - b >= 0 and a % 8 == 0 and a // 8 * 8 == a and a % 4 == a % 4
    assert c == 2 * a and c // 2 == a and str(c) == "2*a"
    assert d <= 9
    with pytest.raises(InconclusiveDimensionOperation):
        assert a >= b + 1


@pytest.mark.parametrize("use", [range, int, float, math.sqrt, [1, 2].__getitem__])
def test_a_length_is_no_number(use):
    (n,) = symbolic_shape("n")
    with pytest.raises(InconclusiveDimensionOperation, match="'n' used in a context that requires"):
        use(n)


def test_scopes_do_not_mix():
    (a,), (b,) = symbolic_shape("a"), symbolic_shape("a")
    assert a != b
    with pytest.raises(ValueError, match="lengths of two scopes meet: a and a"):
        a + b
    with pytest.raises(ZeroDivisionError, match="length a is divided by 0"):
        a // 0
    assert isinstance(a.scope, Lengths)
