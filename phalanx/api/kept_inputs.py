"""What is passed to compiled functions: the leaves of a call, and what a program takes of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from phalanx.api.arguments import CallArgs, LeafNames, check_leaf
from phalanx.base.config import config
from phalanx.base.source import warn_user
from phalanx.core.program import Program
from phalanx.core.trace import Tracer, refuse_escaped
from phalanx.run.array import DeviceArray, Signature
from phalanx.run.calls import Call, LoadedProgram, operand_signatures, signature, with_watchers
from phalanx.run.eager import as_array
from phalanx.transforms.dce import without_unused_inputs
from phalanx.transforms.storage import size_in_bytes, taken_over


def put_on_devices(arguments: CallArgs, who: str) -> None:
    """Find the signatures of the leaves; those that have none become arrays that hold data.

    Raises:
        TypeError: a leaf is no array and no number.
        EscapedTracer: a leaf belongs to a transformation that has ended.
    """
    signs = [signature(x) for x in arguments.leaves]
    if None in signs:
        arguments.leaves = [
            _converted(x, arguments.names, i, who) if s is None else x
            for i, (x, s) in enumerate(zip(arguments.leaves, signs, strict=True))
        ]
        signs = [signature(x) for x in arguments.leaves]
    arguments.signatures = signs


def _converted(x: Any, names: LeafNames, i: int, who: str) -> DeviceArray:
    if isinstance(x, Tracer):
        refuse_escaped(x)
    check_leaf(x, names[i], who)
    return as_array(x)


class KeptInputs(Struct, frozen=True):
    """The leaves of a call that a program takes as inputs.

    Attributes:
        program: on those leaves alone.
        positions: which ones they are.
        donate: which of its inputs give their memory to the results.
        names: what messages call the leaves.
        who: what messages call the function.
    """

    program: Program
    positions: Sequence[int]
    donate: tuple[int, ...]
    names: LeafNames
    who: str

    @classmethod
    def of(
        cls,
        program: Program,
        donated: Sequence[bool],
        names: LeafNames,
        who: str,
        keep_unused: bool,
    ) -> KeptInputs:
        """The inputs of ``program``: the leaves that it needs; with ``keep_unused``, all of them.

        Those of ``donated`` leaves give their memory, where a result fits into it.
        """
        positions: Sequence[int] = range(len(donated))
        if not keep_unused:
            program, positions = without_unused_inputs(program)
        types = program.input_types
        sizes = {n: size_in_bytes(types[n]) for n, i in enumerate(positions) if donated[i]}
        donate = taken_over(sizes, map(size_in_bytes, program.output_types if sizes else ()))
        inputs = cls(program, positions, donate, names, who)
        inputs._warn_of_unused([n for n in sizes if n not in donate])
        return inputs

    def name(self, n: int) -> str:
        """What messages call input ``n`` of the program."""
        return self.names[self.positions[n]]

    def signatures(self, leaves: Sequence[Any]) -> list[Signature]:
        """Those of the ``leaves`` that the program takes."""
        return operand_signatures([leaves[i] for i in self.positions])

    def call(self, prepared: LoadedProgram, leaves: Sequence[Any], out_tree: Any) -> Call:
        """The call of the program, ``prepared``, with such leaves."""
        call = Call(prepared, leaves, out_tree, self.positions, self.donate, self.name)
        return with_watchers(call, self.program, True)

    def warn_of_donated(self, prepared: LoadedProgram) -> None:
        """Warn of donated inputs whose memory the program does not use, now that it is compiled:
        results may lie otherwise than expected."""
        if not config.looks_for_nonfinite:
            self._warn_of_unused(sorted({*self.donate}.difference(prepared.donate)))

    def _warn_of_unused(self, inputs: Sequence[int]) -> None:
        if not inputs:
            return
        types = self.program.input_types
        listed = ", ".join(f"{self.name(n)} {types[n]}" for n in inputs)
        warn_user(
            f"Some donated buffers were not usable: {listed} of {self.who}; no other result holds "
            "as many bytes on each device, so they stay alive"  # filters look for how it begins
        )
