"""Executables that run on arrays: how inputs must lie, what is donated, what is given back."""

# What an array holds is private to users, not to what runs programs on arrays.
# pyright: reportPrivateUsage=false

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from phalanx import primitives as ops
from phalanx.base import dtypes, tree
from phalanx.base.config import config
from phalanx.base.errors import DeletedArray, NonFiniteError
from phalanx.base.source import user_location
from phalanx.core.program import Program
from phalanx.core.trace import ROOT, entering
from phalanx.core.types import NOWHERE, ArrayType
from phalanx.run.array import DeviceArray, Signature, moved
from phalanx.run.backend import Executable, Single
from phalanx.run.calls import LoadedProgram, Run
from phalanx.run.guards import unwatched
from phalanx.spmd.named import NamedSharding
from phalanx.spmd.sharding import Sharding
from phalanx.transforms.storage import size_in_bytes, taken_over


class Runnable(LoadedProgram):
    """An executable that runs on arrays: its constants, how inputs must lie, what it gives."""

    __slots__ = (
        "captured", "checked", "compared", "constants", "donate", "executable", "fixed", "gone",
        "in_shardings", "inputs", "misplaced", "moves", "name", "names", "out_sigs",
    )  # fmt: skip

    def __init__(
        self,
        program: Program,
        executable: Executable,
        constants: Sequence[DeviceArray],
        sigs: Sequence[Signature],
        in_shardings: Sequence[Sharding],
        out_shardings: Sequence[Sharding],
        targets: Sequence[Sharding | None],
        donate: tuple[int, ...],
        names: Sequence[NamedSharding],
        inputs: Sequence[str],
    ) -> None:
        """``inputs`` are what messages call the inputs, where something is donated."""
        self.name, self.inputs = program.name, inputs
        self.names = names
        self.executable = executable
        self.compared = None if executable.group is None else executable
        self.captured = {
            f"captured constant {i}": c
            for i, c in enumerate(constants)
            if not c.sharding.is_fully_addressable
        }
        self.constants = count = len(constants)
        where = zip(constants, in_shardings, strict=False) if executable.is_here else ()
        with unwatched():
            self.fixed = [(c if c._sig.sharding.plain is s else moved(c, s))._raw for c, s in where]
        self.in_shardings = in_shardings[count:]
        self.misplaced = [
            i for i, s in enumerate(self.in_shardings) if sigs[i].sharding.plain is not s.plain
        ]
        self.donate = _reused(donate, program, self.in_shardings, executable.out_shardings)
        self.gone = [  # with what is donated; of others, a copy that was made for it
            i for i in self.donate if sigs[i].sharding.overlaps(self.in_shardings[i])
        ]
        self.checked = config.looks_for_nonfinite
        self.moves = {  # of results that do not come as they are wanted
            i: want
            for i, (want, s) in enumerate(zip(targets, out_shardings, strict=True))
            if want is not None and want is not s
        }
        # position by position, types of a part of a function say where they vary; arrays do not
        types = [t.update(varying=NOWHERE) if t.varying else t for t in program.output_types]
        self.out_sigs = list(map(Signature.of, types, out_shardings))

    def __call__(self, arrays: Sequence[DeviceArray]) -> list[DeviceArray]:
        """Run on arrays of the signatures that it was compiled for."""
        raws = [a._raw for a in arrays]
        for i in self.misplaced:
            raws[i] = moved(arrays[i], self.in_shardings[i])._raw
        if self.donate:
            self._refuse_twice(raws)
        results = self.executable(self.fixed + raws)
        for i in self.gone:
            arrays[i]._forget("was donated to a function, which may have reused its memory")
        out = list(map(DeviceArray, results, self.out_sigs))
        for i, sharding in self.moves.items():
            out[i] = moved(out[i], sharding)
        if self.checked:
            check_finite(self.name, out)
        return out

    def _refuse_twice(self, raws: Sequence[Any]) -> None:
        """Raise DeletedArray for what would be deleted while it is used as another input."""
        if len(set(map(id, raws))) == len(raws):
            return
        for i in self.donate:
            again = next((n for n, r in enumerate(raws) if r is raws[i] and n != i), None)
            if again is not None:
                raise DeletedArray(
                    f"{self.name}: {self.inputs[i]} is donated and passed a second time, as "
                    f"{self.inputs[again]}, at {user_location()}; pass a copy, x.copy(), or do "
                    "not donate it"
                )

    def returning(self, out_tree: Any, placed: Sequence[int] = ()) -> Run:
        """The function from the arrays of a call to the tree of results.

        Those at the positions ``placed`` are where they must be. Where nothing has to be moved,
        donated or checked it does nothing but run.
        """
        build, sigs = tree.builder(out_tree), self.out_sigs
        if set(self.misplaced).difference(placed) or self.moves or self.donate or self.checked:
            return lambda arrays: build(self(arrays))
        if out_tree == _ONE_LEAF:
            return self.executable.launcher(self.fixed, Single(DeviceArray, *sigs))
        return self.executable.launcher(
            self.fixed, lambda raws: build(map(DeviceArray, raws, sigs))
        )


def _reused(
    donate: tuple[int, ...],
    program: Program,
    ins: Sequence[Sharding],
    outs: Sequence[Sharding],
) -> tuple[int, ...]:
    """The inputs among those that are donated into whose memory a result fits, on each device."""
    sizes = {i: _bytes_held(program.input_types[i], ins[i]) for i in donate}
    return taken_over(sizes, map(_bytes_held, program.output_types, outs))


def _bytes_held(type: ArrayType, sharding: Sharding) -> int:
    """How many bytes of an array each device holds."""
    return size_in_bytes(type.update(shape=sharding.shard_shape(type.shape)))


_ONE_LEAF = tree.structure(0)


def check_finite(name: str, outputs: Sequence[DeviceArray]) -> None:
    """Raise ``NonFiniteError`` if an output has a NaN, or an infinity where they are looked for.

    The error names the line that is being executed.
    """
    for output in outputs:
        if not dtypes.is_inexact(output.dtype):
            continue
        if config.debug_infs and _any(output, np.isinf, _is_inf):
            raise NonFiniteError(
                f"{name}: an infinity in a result {output.aval} at {user_location()} (debug_infs "
                "is set); its operands hold one, or what it does with them overflows"
            )
        if config.debug_nans and _any(output, np.isnan, _is_nan):
            raise NonFiniteError(
                f"{name}: NaN in a result {output.aval} at {user_location()} (debug_nans "
                "is set); its operands hold a NaN, or what it does with them has no value, such "
                "as 0/0, log(-1) or inf - inf"
            )


def _any(
    x: DeviceArray, here: Callable[[np.ndarray], np.ndarray], there: Callable[[Any], Any]
) -> bool:
    """Whether an element is of a kind: told ``here``, on the host, or ``there``, on the devices
    of all processes together, so that all of them know."""
    if x.sharding.is_whole_here:
        return bool(here(x._value).any())
    with entering(ROOT), config.override(debug_nans=False, debug_infs=False):
        found = there(x)
        return bool(ops.reduce_or(found, dims=tuple(range(x.ndim))))


def _is_nan(x: Any) -> Any:
    return ops.ne(x, x)


def _is_inf(x: Any) -> Any:
    size = ops.abs(x)
    return ops.eq(size, ops.constant_like(size, np.inf))
