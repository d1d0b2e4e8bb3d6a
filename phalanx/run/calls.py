"""Calls: what a compiled call needs, as one record, and the table in which it is found again.

Whatever runs a program on arrays does it by a ``Call``: operations and loops outside of ``jit``,
functions of the library, ``jit``, ``pmap`` and ``shard_map``. Its key is, in this order, the
``signature`` of each leaf, the static values as ``key_of`` tells them apart, ``settings().key``,
and what was called: a primitive, or a function of the library. In the table of a user's function
that is left out, and the structure of the arguments stands there unless all of them are leaves.
"""

# What an array holds is private to users, not to what runs programs on arrays.
# pyright: reportPrivateUsage=false

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from phalanx.base import dtypes, tree
from phalanx.base.kinds import class_of
from phalanx.base.numpy_kinds import GENERIC
from phalanx.base.recent import Recent
from phalanx.core.program import Program
from phalanx.core.refs import Ref
from phalanx.core.types import SCALARS, typeof
from phalanx.run.array import DeviceArray, Signature, default_sharding, from_scalar, placing
from phalanx.run.backend import Executable
from phalanx.run.replicas import Comparison
from phalanx.spmd.named import NamedSharding
from phalanx.spmd.sharding import Sharding

Arrays = Sequence[DeviceArray]
Run = Callable[[Sequence[Any]], Any]


class LoadedProgram:
    """A program that is ready to run: compiled, or launched over processes.

    Attributes:
        names: what is known of how arrays in it lie, by name.
        donate: the inputs whose memory it takes.
        in_shardings: where what comes from the host is put.
        out_sigs: the types of the results, and how they lie.
        executable: the compiled program.
        compared: what several processes launch, and compare what they pass to it; None if none do.
        rows: the inputs of which each process has rows of its own, and in which dimension.
        unused: the inputs that it does not need.
        captured: the arrays over processes that it captured, by what messages call them.
    """

    __slots__ = ()

    names: Sequence[NamedSharding]
    donate: tuple[int, ...]
    in_shardings: Sequence[Sharding]
    out_sigs: Sequence[Signature]
    executable: Executable
    compared: Executable | None = None
    rows: Mapping[int, int] = MappingProxyType({})
    unused: frozenset[int] = frozenset()
    captured: Mapping[str, DeviceArray] = MappingProxyType({})

    def __call__(self, arrays: Arrays, /) -> list[DeviceArray]:
        """Run on arrays of the signatures for which it was prepared."""
        raise NotImplementedError

    def returning(self, out_tree: Any, placed: Sequence[int] = ()) -> Run:
        """The function from the arrays of a call to the tree of results.

        Those at the positions ``placed`` are where they must be.
        """
        del placed
        build = tree.builder(out_tree)
        return lambda arrays: build(self(arrays))

    def comparison(self, name_of_input: Callable[[int], str]) -> Comparison | None:
        """What processes compare before launches, if several launch it."""
        if self.compared is None:
            return None
        names = [name_of_input(n) for n in range(len(self.in_shardings))]
        return Comparison(self.compared, names, self.rows, self.unused, self.captured)


class CachedCall:
    """What is found in a table of calls.

    Attributes:
        run: the function from the leaves of a call to what is returned.
    """

    __slots__ = ()

    run: Run

    def refs(self, leaves: Sequence[Any]) -> Sequence[Ref]:
        """The references that a call with ``leaves`` may write."""
        del leaves
        return ()


class Call(CachedCall):
    """What a call needs.

    Attributes:
        prepared: the program, with its constants, the signatures of its results, and what is
            donated.
        operands: of each of its operands, which leaf of the call it is, and what puts that on
            devices; None if it is there.
        out_tree: the structure of what is returned.
        run: the function from the leaves to what is returned. It is made of all that once, since
            each further call of Python would be felt.
    """

    __slots__ = ("operands", "out_tree", "prepared", "run")

    def __init__(
        self,
        prepared: LoadedProgram,
        leaves: Sequence[Any],
        out_tree: Any,
        positions: Sequence[int] | None = None,
        donate: Sequence[int] = (),
        name_of_input: Callable[[int], str] = "operand {}".format,
        arguments: Sequence[Any] | None = None,
    ) -> None:
        """For leaves like ``leaves``; the program takes those numbered ``positions``, or all.

        What is put on devices for the operands ``donate`` is not shared with others. Messages call
        an input of the program what ``name_of_input`` says. The first call is one of the
        ``leaves``, which were made of the user's ``arguments`` where these are given.
        """
        numbers = range(len(leaves)) if positions is None else positions
        self.prepared = prepared
        self.out_tree = out_tree
        self.operands = tuple(
            [
                (i, _transfer(leaves[i], sharding, n in donate))
                for n, (i, sharding) in enumerate(zip(numbers, prepared.in_shardings, strict=True))
            ]
        )
        self.run = self._run_of(len(leaves))
        comparison = prepared.comparison(name_of_input)
        if comparison is not None:
            self.run = self._comparing(comparison, arguments)

    def _run_of(self, count: int) -> Run:
        operands = self.operands
        put = [n for n, (_, way) in enumerate(operands) if way is not None]
        run = self.prepared.returning(self.out_tree, put)
        if len(operands) == count and not put:
            return run
        if not put:
            taken = [i for i, _ in operands]
            return lambda leaves: run([leaves[i] for i in taken])
        return lambda leaves: run(
            [leaves[i] if way is None else way(leaves[i]) for i, way in operands]
        )

    def _comparing(self, comparison: Comparison, arguments: Sequence[Any] | None) -> Run:
        """``run``, before which processes compare what must be the same in all of them."""
        run, taken = self.run, [i for i, _ in self.operands]

        def compared(leaves: Sequence[Any]) -> Any:
            nonlocal arguments
            comparison([(arguments or leaves)[i] for i in taken])
            arguments = None
            return run(leaves)

        return compared


def _transfer(x: Any, sharding: Sharding, alone: bool) -> Callable[[Any], DeviceArray] | None:
    """What puts arrays or numbers like ``x`` where ``sharding`` says; ``alone``: in a new array
    each time."""
    if type(x) is DeviceArray:
        return None
    kind = typeof(x)
    if isinstance(x, np.ndarray):
        return placing(kind, sharding)
    dtype = kind.dtype
    if alone:
        put = placing(kind, sharding)
        return lambda x: put(np.asarray(dtypes.scalar(x, dtype)))
    return lambda x: from_scalar(dtypes.scalar(x, dtype), sharding, kind)


_NUMBERS = frozenset(SCALARS)


def signature(x: Any) -> Hashable:
    """What stands for the type of a leaf in a key, and for where it lies; None if nothing does.

    Python's numbers of one type, NumPy's arrays of one dtype and shape, and references to arrays of
    one type, have the same.
    """
    kind = class_of(x)
    if kind is DeviceArray:
        return x._sig
    if kind is np.ndarray:
        return (x.dtype, x.shape) if dtypes.holds_numbers(x.dtype) else None
    if kind in _NUMBERS:
        return kind
    if isinstance(x, GENERIC):
        return (x.dtype, ()) if dtypes.holds_numbers(x.dtype) else None
    return x.aval if kind is Ref else None


def operand_signatures(leaves: Sequence[Any]) -> list[Signature]:
    """The signatures with which a program gets ``leaves``; those of the host may go anywhere."""
    return [
        x._sig if type(x) is DeviceArray else Signature.of(typeof(x), default_sharding())
        for x in leaves
    ]


# Told of each call of what was compiled while somebody is: of its program, of what that is given,
# and whether it is a function of the user's, not one of the library or an operation. To hear of
# what was compiled before, too, override an option that belongs to keys.
on_called: list[Callable[[Program, Sequence[Any], bool], None]] = []


def with_watchers(call: Call, program: Program, is_of_user: bool = False) -> Call:
    """``call``, which runs ``program``, so that those who watch are told whenever it does."""
    if not on_called:
        return call
    run, taken = call.run, [i for i, _ in call.operands]

    def notifying(leaves: Sequence[Any]) -> Any:
        for watch in on_called:
            watch(program, [leaves[i] for i in taken], is_of_user)
        return run(leaves)

    call.run = notifying
    return call


# Of primitives and of functions of the library, which never go away. Those of a user's function or
# of a program are kept with the function or the program.
calls: Recent[Call] = Recent(8192)
