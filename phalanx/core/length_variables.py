"""The variables of symbolic lengths: what they are where the lengths are numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from phalanx.base.length_terms import Terms
from phalanx.base.lengths import Length, Lengths, numbered, variables
from phalanx.base.source import user_location

Step = tuple[str, int, Any, Any]


def steps_to_variables(lengths: Sequence[Length]) -> list[Step]:
    """For each variable in ``lengths`` and in their constraints, ``name, which, less, times``: the
    variable is ``(lengths[which] - less) / times``, which depend on variables before it.

    Raises:
        ValueError: a variable does not follow from these lengths.
    """
    steps: list[Step] = []
    solved: frozenset[str] = frozenset()
    names = solved.union(*map(variables, (*lengths, *_facts(lengths))))
    while solved != names:
        step = next(_steps(lengths, solved), None)
        if step is None:
            missing = ", ".join(sorted(names - solved))
            raise ValueError(
                f"export: the lengths {missing} do not follow from the shapes of the arguments, "
                f"{', '.join(map(str, lengths))}, at {user_location()}; a length follows from a "
                "dimension that is it, or a multiple of it and more, as n or 2*n + 1"
            )
        steps.append(step)
        solved |= {step[0]}
    return steps


def _steps(lengths: Sequence[Length], solved: frozenset[str]) -> Any:
    for which, n in enumerate(lengths):
        unknown = n.variables - solved
        if len(unknown) == 1:
            (name,) = unknown
            parts = _linear(n.scope, n.terms, name)
            if parts is not None:
                yield name, which, *parts


def _linear(scope: Lengths, terms: Terms, name: str) -> tuple[Any, Any] | None:
    """``less`` and ``times``, if ``terms`` are ``times name + less``."""
    less: dict[Any, int] = {}
    times: dict[Any, int] = {}
    for monomial, n in terms.items():
        if (name, 1) in monomial:
            times[tuple([p for p in monomial if p != (name, 1)])] = n
        else:
            less[monomial] = n
    rest = scope.from_terms(less), scope.from_terms(times)
    return None if any([name in variables(part) for part in rest]) or not times else rest


def _facts(lengths: Sequence[Length]) -> list[Length]:
    """The constraints of ``lengths``, each as a length that is at least 0."""
    return [Length(n.scope, fact) for n in lengths[:1] for fact in n.scope.facts]


def numbers_of(lengths: Sequence[Length], sizes: Sequence[int]) -> dict[str, int]:
    """What the variables are if ``lengths`` are ``sizes``.

    Raises:
        ValueError: they cannot be; the message says which.
    """
    found: dict[str, int] = {}
    for name, which, less, times in steps_to_variables(lengths):
        left, by = (numbered(x, found) for x in (less, times))
        found[name] = (sizes[which] - left) // by if by else 0
    check_numbers(lengths, sizes, found)
    return found


def check_numbers(
    lengths: Sequence[Length], sizes: Sequence[int], numbers: Mapping[str, int]
) -> None:
    """Raise ValueError unless ``lengths`` are ``sizes`` for these numbers, which are possible."""
    assignment = ", ".join(f"{name} = {n}" for name, n in numbers.items())
    for n, size in zip(lengths, sizes, strict=True):
        if n.value(numbers) != size:
            raise ValueError(f"a dimension of length {n} is {size}, and {assignment}")
    for name, number in numbers.items():
        if number < 1:
            raise ValueError(f"Expected value >= 1 for dimension variable '{name}', got {number}")
    for fact in _facts(lengths):
        if fact.value(numbers) < 0:
            raise ValueError(f"{fact} >= 0 is needed, and {assignment}")
