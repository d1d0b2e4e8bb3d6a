"""The same script in another Python, with another jaxlib: what its devices give of arrays of here.

Both run the script. At each function that is compiled the other one waits, and answers what it
gives for the arrays that this one has, so that neither needs the other's random numbers.
"""

# What a traced function holds is private to users, not to the analyses of it.
# pyright: reportPrivateUsage=false

from __future__ import annotations

import platform
from collections.abc import Callable, Sequence
from importlib.metadata import version
from threading import Lock
from typing import Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from phalanx.api.stages import Traced
from phalanx.base.errors import PhalanxError, ProgramMismatch, RuntimeFailure
from phalanx.core.program import Var
from phalanx.insight.verification.device_results import CalledHere, run_of
from phalanx.insight.verification.intermediates import Path, Tapped, inlined, program_at, tapped
from phalanx.insight.verification.reference import host_value
from phalanx.run.array import place
from phalanx.run.backend import Kernel

__all__ = ["Elsewhere", "Other", "answering", "versions"]


def versions() -> str:
    """What may round otherwise."""
    return f"jaxlib {version('jaxlib')} (Python {platform.python_version()})"


class Other(Struct):
    """The other Python, behind a connection.

    Attributes:
        connection: with ``send`` and ``recv``.
        versions: its own.
    """

    connection: Any
    versions: str = ""

    def greeted(self) -> str:
        """The versions, which it tells first."""
        return self._received()

    def met(self, traced: Traced, run: CalledHere) -> Elsewhere:
        """The function there that corresponds to ``traced``, for the arrays of ``run``.

        Raises:
            ProgramMismatch: the script does something else there.
        """
        here, there = _described(traced), self._received()
        if here != there:
            raise ProgramMismatch(
                f"verify: {here[0]} is compiled here, and with {self.versions} "
                f"{_unlike(here, there)}; what follows cannot be compared"
            )
        self.asked("given", [host_value(x) for x in run.arrays])
        return Elsewhere(run, self)

    def asked(self, *question: Any) -> Any:
        """The answer to a question."""
        self._sent(question)
        succeeded, answer = self._received()
        if not succeeded:
            raise RuntimeFailure(f"verify: with {self.versions}: {answer}")
        return answer

    def go_on(self) -> None:
        """It may run the script up to the next function."""
        self._sent(None)

    def _sent(self, what: Any) -> None:
        try:
            self.connection.send(what)
        except OSError:
            raise self._gone() from None

    def _received(self) -> Any:
        try:
            return self.connection.recv()
        except (EOFError, OSError):
            raise self._gone() from None

    def _gone(self) -> RuntimeFailure:
        with_it = f"with {self.versions}" if self.versions else "before it began"
        return RuntimeFailure(f"verify: the script has ended {with_it}")


class Elsewhere(Struct, frozen=True):
    """What devices of the other Python give; see ``CalledHere``."""

    run: CalledHere
    other: Other

    @property
    def call(self) -> Any:
        """The function."""
        return self.run.call

    @property
    def arrays(self) -> Sequence[Any]:
        """Its arguments."""
        return self.run.arrays

    @property
    def devices(self) -> int:
        """How many there are."""
        return self.other.asked("devices")

    def results(self) -> list[np.ndarray]:
        """What the function gives."""
        return self.other.asked("results")

    def on_devices(self, taps: Tapped, path: Path) -> Sequence[Any]:
        """The values that ``taps`` tell, and what the function gives."""
        numbers = {v: k for k, v in enumerate(_variables(self.run, path))}
        return self.other.asked("values", path, [numbers[v] for v in taps.variables])

    def kernels(self) -> list[Kernel]:
        """The instructions that a device runs."""
        return self.other.asked("kernels")


def answering(connection: Any) -> Callable[[Traced, Sequence[Any] | None], None]:
    """What is told of each function that is compiled in the other Python."""
    connection.send(versions())
    answering_one = Lock()

    def look(traced: Traced, leaves: Sequence[Any] | None) -> None:
        if leaves is None or not answering_one.acquire(blocking=False):
            return
        run = None
        try:
            connection.send(_described(traced))
            while (question := connection.recv()) is not None:
                try:
                    run = run_of(traced, leaves) if run is None else run
                    run, answer = _answer(run, *question)
                    connection.send((True, answer))
                except (PhalanxError, MemoryError, NotImplementedError) as e:
                    connection.send((False, f"{e}".partition("\n")[0]))
        except EOFError:
            raise SystemExit from None  # who asked has ended
        finally:
            answering_one.release()

    return look


def _answer(run: CalledHere, what: str, *of: Any) -> tuple[CalledHere, Any]:
    if what == "given":
        pairs = zip(run.arrays, run.call.program.input_types, of[0], strict=True)
        arrays = [place(x, t, before.sharding) for before, t, x in pairs]
        return replace(run, arrays=arrays), None
    if what == "devices":
        return run, run.devices
    if what == "results":
        return run, list(map(host_value, run.results()))
    if what == "kernels":
        return run, run.kernels()
    path: Path = of[0]
    every, numbers = _variables(run, path), list[int](of[1])
    taps = tapped(inlined(run.call.program), path, [every[k] for k in numbers])
    return run, [host_value(x) for x in run.on_devices(taps, path)]


def _variables(run: CalledHere, path: Path) -> list[Var]:
    body = program_at(inlined(run.call.program), path)
    return [*body.inputs, *[v for e in body.equations for v in e.outputs]]


def _described(traced: Traced) -> tuple[str, list[str]]:
    """The name of a function, and its operations."""
    program = inlined(traced._traced.program)
    return traced.fun_name, [f"{e.prim.name} at {e.location}" for e in program.walk()]


def _unlike(here: tuple[str, list[str]], there: tuple[str, list[str]]) -> str:
    if here[0] != there[0]:
        return there[0]
    pairs = zip([*here[1], "nothing"], [*there[1], "nothing"], strict=False)
    one, other = next((a, b) for a, b in pairs if a != b)
    return f"it is another program: {other} in place of {one}"
