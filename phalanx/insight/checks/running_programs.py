"""Findings in whatever a program compiles while it runs, and in what it does between."""

from __future__ import annotations

from collections.abc import Callable, Generator, Hashable, Iterable, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from msgspec import Struct

from phalanx.api.jit import jit
from phalanx.api.stages import Traced, on_compiled_call, on_transformed, watching
from phalanx.base import tree
from phalanx.base.config import config
from phalanx.base.source import lines_of_users, user_frame, user_location
from phalanx.core.types import Array
from phalanx.insight.checks.check import OF_VALUES, findings_in
from phalanx.insight.checks.eager_code import watching_between
from phalanx.insight.checks.findings import Finding, is_silenced
from phalanx.run.calls import signature

__all__ = ["Findings", "checking_compiled"]


class Findings(dict[tuple[str, str, int], Finding]):
    """What was found, by code, file and line, in compiled functions of these names."""

    def __init__(self) -> None:
        self.functions: dict[str, None] = {}  # in order


@contextmanager
def checking_compiled() -> Generator[Findings]:
    """Look at each function that is compiled inside a block, and at what happens between them; the
    block is given what is found.

    A mistake in a line is told once, however many functions it is compiled into.
    """
    found = Findings()

    def note(findings: Iterable[Finding]) -> None:
        for finding in findings:
            found.setdefault((finding.code, finding.file, finding.line), finding)

    def look(traced: Traced, leaves: Sequence[Any] | None) -> None:
        found.functions[traced.fun_name] = None
        note(findings_in(traced, user_location(), leaves=leaves or ()))

    seen: set[Hashable] = set()

    def look_at_call(fun: Callable[..., Any], args: Any, kwargs: Any) -> None:
        called = _Called.of(fun, args, kwargs)
        frame = user_frame()
        key = frame.f_code, frame.f_lasti, *called.signatures
        if key not in seen:
            seen.add(key)
            traced = called.traced()
            leaves = [called.leaves[i] for i in called.places]
            place = user_location()
            note(findings_in(traced, place, OF_VALUES, leaves) if traced is not None else ())

    with (
        watching_between() as between,
        watching(look, on_compiled_call),
        watching(look_at_call, on_transformed),
        config.override(keep_lanes=True),
        lines_of_users(),
    ):
        yield found
    note([f for f in (*between.findings, *between.loops()) if not is_silenced(f)])


class _Called(Struct, frozen=True):
    """A function that is called outside of programs, and the leaves of its arguments.

    Those that are numbers alone are what they are, as where nothing is traced.
    """

    fun: Callable[..., Any]
    leaves: list[Any]
    structure: Any
    places: list[int]  # of the arrays among the leaves

    @classmethod
    def of(cls, fun: Callable[..., Any], args: Any, kwargs: Any) -> _Called:
        """For a call with such arguments."""
        leaves, structure = tree.flatten((args, kwargs))
        places = [i for i, x in enumerate(leaves) if isinstance(x, (np.ndarray, Array, float))]
        return cls(fun, leaves, structure, places)

    @property
    def signatures(self) -> list[Hashable]:
        """The shapes and dtypes of the arrays."""
        return [signature(self.leaves[i]) for i in self.places]

    def traced(self) -> Traced | None:
        """What it does, as a program; none where that is not for a program, as a condition of
        Python's about numbers that are known."""

        def again(*arrays: Any) -> Any:
            leaves = [*self.leaves]
            for i, x in zip(self.places, arrays, strict=True):
                leaves[i] = x
            args, kwargs = self.structure.unflatten(leaves)
            return self.fun(*args, **kwargs)

        try:
            return jit(again).trace(*[self.leaves[i] for i in self.places])
        except Exception:  # of the user's function, which will raise it again where it should
            return None
