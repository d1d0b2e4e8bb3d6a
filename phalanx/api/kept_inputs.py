"""What is passed to compiled functions: the leaves of a call, and what a program takes of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from phalanx.api.arguments import CallArgs, LeafNames, check_leaf
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
    """What of the leaves of a call a program takes.

    Attributes:
        program: on those leaves alone.
        kept: which ones they are.
        donate: which of its inputs give their memory to the results.
    """

    program: Program
    kept: Sequence[int]
    donate: tuple[int, ...]

    @classmethod
    def of(
        cls, program: Program, donated: Sequence[bool], names: LeafNames, who: str, every: bool
    ) -> KeptInputs:
        """What ``program`` takes: of ``donated`` leaves the memory where a result fits into it.

        ``every``: also the leaves that it does not need.
        """
        kept: Sequence[int] = range(len(donated))
        if not every:
            program, kept = without_unused_inputs(program)
        types = program.input_types
        sizes = {n: size_in_bytes(types[n]) for n, i in enumerate(kept) if donated[i]}
        donate = taken_over(sizes, map(size_in_bytes, program.output_types if sizes else ()))
        inputs = cls(program, kept, donate)
        inputs.warn_of_spared([n for n in sizes if n not in donate], names, who)
        return inputs

    def signatures(self, leaves: Sequence[Any]) -> list[Signature]:
        """Those of the ``leaves`` that the program takes."""
        return operand_signatures([leaves[i] for i in self.kept])

    def call(
        self, prepared: LoadedProgram, leaves: Sequence[Any], out_tree: Any, names: LeafNames
    ) -> Call:
        """The call of the program, ``prepared``, with such leaves, which have those ``names``."""
        call = Call(prepared, leaves, out_tree, self.kept, self.donate, names.__getitem__)
        return with_watchers(call, self.program, True)

    def warn_of_spared(self, inputs: Sequence[int], names: LeafNames, who: str) -> None:
        """Warn that the memory of those ``inputs`` of the program is not used, if there are any."""
        if not inputs:
            return
        types = self.program.input_types
        listed = ", ".join(f"{names[self.kept[n]]} {types[n]}" for n in inputs)
        warn_user(
            f"Some donated buffers were not usable: {listed} of {who}; no other result holds as "
            "many bytes on each device, so they stay alive"  # filters look for how it begins
        )
