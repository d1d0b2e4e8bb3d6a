"""Polynomials with integer coefficients, the normal form of symbolic lengths.

A polynomial is a dict from monomials to coefficients that are not 0; a monomial is a sorted tuple
of (name, power), the empty one that of the constant. Names are those of variables, or the texts of
operations such as ``floordiv(a, 2)``: equal texts mean the same.
"""

from __future__ import annotations

from collections.abc import Mapping

Monomial = tuple[tuple[str, int], ...]
Terms = Mapping[Monomial, int]


def constant(n: int) -> Terms:
    """The polynomial that is ``n`` everywhere."""
    return {(): n} if n else {}


def named(name: str) -> Terms:
    """The polynomial that is the variable, or operation, of that name."""
    return {((name, 1),): 1}


def added(x: Terms, y: Terms, times: int = 1) -> Terms:
    """``x + times y``.

    >>> text(added(named("a"), named("b"), -2))
    'a - 2*b'
    """
    out = dict(x)
    for monomial, n in y.items():
        total = out.get(monomial, 0) + times * n
        if total:
            out[monomial] = total
        else:
            out.pop(monomial, None)
    return out


def scaled(x: Terms, n: int) -> Terms:
    """``n x``."""
    return {m: n * c for m, c in x.items()} if n else {}


def multiplied(x: Terms, y: Terms) -> Terms:
    """``x y``.

    >>> text(multiplied(added(named("a"), constant(1)), named("b")))
    'a*b + b'
    """
    out: Terms = {}
    for m, n in x.items():
        out = added(out, {joined(m, k): n * c for k, c in y.items()})
    return out


def joined(m: Monomial, k: Monomial) -> Monomial:
    """The product of two monomials."""
    powers = dict(m)
    for name, power in k:
        powers[name] = powers.get(name, 0) + power
    return tuple(sorted(powers.items()))


def without(m: Monomial, k: Monomial) -> Monomial | None:
    """The monomial whose product with ``k`` is ``m``; None if there is none.

    >>> without((("a", 2), ("b", 1)), (("a", 1),))
    (('a', 1), ('b', 1))
    """
    powers = dict(m)
    for name, power in k:
        left = powers.pop(name, 0) - power
        if left < 0:
            return None
        if left:
            powers[name] = left
    return tuple(sorted(powers.items()))


def divided(x: Terms, y: Terms) -> tuple[Terms, Terms]:
    """``q, r`` such that ``x = q y + r``, where ``r`` has no part that ``y`` is known to divide.

    >>> a, b = named("a"), named("b")
    >>> q, r = divided(added(multiplied(a, b), constant(5)), b)
    >>> text(q), text(r)
    ('a', '5')
    """
    lead = max(y, key=_order)
    quotient: Terms = {}
    rest: Terms = {}
    while x:
        m = max(x, key=_order)
        left = without(m, lead)
        part = {} if left is None or not x[m] // y[lead] else {left: x[m] // y[lead]}
        quotient = added(quotient, part)
        x = added(x, multiplied(part, y), -1)
        if m in x:
            rest = added(rest, {m: x[m]})
            x = {k: c for k, c in x.items() if k != m}
    return quotient, rest


def _order(m: Monomial) -> tuple[int, list[tuple[str, int]]]:
    """The key by which monomials are compared: the greater one is written first."""
    return sum(power for _, power in m), [(_mirrored(name), power) for name, power in m]


def _mirrored(name: str) -> str:
    return "".join([chr(0x10FFFF - ord(c)) for c in name]) + "\U0010ffff"


def text(x: Terms) -> str:
    """``x`` in words that ``symbolic_shape`` reads.

    >>> text({(("a", 2),): 1, (("b", 1),): -2, (): 3})
    'a^2 - 2*b + 3'
    """
    parts = [_term(m, x[m]) for m in sorted(x, key=_order, reverse=True)]
    joined_up = " ".join([f"{'-' if minus else '+'} {word}" for minus, word in parts])
    return joined_up.removeprefix("+ ") or "0"


def _term(m: Monomial, n: int) -> tuple[bool, str]:
    words = [name if power == 1 else f"{name}^{power}" for name, power in m]
    if abs(n) != 1 or not words:
        words.insert(0, str(abs(n)))
    return n < 0, "*".join(words)
