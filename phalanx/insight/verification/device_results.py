"""A traced function with the arrays of a call: what its devices give, here or in another Python."""

# What a traced function holds is private to users, not to the analyses of it.
# pyright: reportPrivateUsage=false

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from phalanx.api.stages import Traced, TracedCall
from phalanx.base.errors import DeviceError
from phalanx.core.program import Program
from phalanx.insight.traced import whole
from phalanx.insight.verification.intermediates import Path, Tapped
from phalanx.run.array import DeviceArray, moved
from phalanx.run.backend import Kernel
from phalanx.run.calls import LoadedProgram
from phalanx.run.eager import as_array
from phalanx.run.execute import compile_program
from phalanx.run.planning import RequestedShardings
from phalanx.transforms.stage import loaded

__all__ = ["CalledHere", "run_of"]


class CalledHere(Struct, frozen=True):
    """What the devices of this process give.

    Attributes:
        call: the function.
        arrays: those it is called with.
    """

    call: TracedCall
    arrays: Sequence[DeviceArray]

    @property
    def devices(self) -> int:
        """How many there are."""
        return len(self._compiled(self.call.program).executable.devices)

    def results(self) -> Sequence[Any]:
        """What the function gives."""
        return self._compiled(self.call.program)(self.arrays)

    def on_devices(self, taps: Tapped, path: Path) -> Sequence[Any]:
        """The values that ``taps`` tell of the program on ``path``, and what the function gives."""
        return self._compiled(taps.program, len(taps.variables))(self.arrays)

    def kernels(self) -> list[Kernel]:
        """The instructions that a device runs."""
        return self._compiled(self.call.program).executable.kernels()

    def _compiled(self, program: Program, further: int = 0) -> LoadedProgram:
        """``program``, which gives so many further results before those of the function."""
        call, places = self.call, self.call.requested
        if places is not None:
            places = RequestedShardings(places.ins, (*(None,) * further, *places.outs))
        sigs = [x._sig for x in self.arrays]
        return compile_program(program, sigs, (), dict(call.compiler_options), places)


def run_of(traced: Traced, leaves: Sequence[Any]) -> CalledHere:
    """A function that was traced for a call with ``leaves``, with its arrays as it wants them."""
    call = whole(traced)
    operands = [as_array(x) for x in (*loaded(traced._traced.captured), *leaves)]
    asked = call.places.ins
    if not all([x.sharding.is_fully_addressable for x in operands]):
        raise DeviceError(
            f"verify: arguments of {traced.fun_name} are on devices of several processes, and one "
            "device of this process is to compute it all; verify it in one process, with as many "
            "CPU devices (PHALANX_NUM_CPU_DEVICES)"
        )
    return CalledHere(
        call, [x if s is None else moved(x, s) for x, s in zip(operands, asked, strict=True)]
    )
