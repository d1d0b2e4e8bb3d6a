"""Ahead of time: functions that are traced, lowered and compiled step by step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from phalanx.api.arguments import LeafNames, check_leaf, shown_call
from phalanx.base import dtypes, tree
from phalanx.core.program import Program
from phalanx.core.types import ArrayType, typeof
from phalanx.run.array import DeviceArray, Signature, default_sharding, from_host, moved
from phalanx.run.eager import as_array
from phalanx.run.execute import Compiled, compile_program, make_plan
from phalanx.run.runtime import backend
from phalanx.spmd.sharding import Sharding
from phalanx.transforms.stage import is_value


class ShapeDtypeStruct:
    """The shape and dtype of an array, and where it should lie, without its data.

    >>> ShapeDtypeStruct((2, 3), "float32")
    ShapeDtypeStruct(shape=(2, 3), dtype=float32)
    """

    __slots__ = ("dtype", "shape", "sharding", "weak_type")

    def __init__(
        self,
        shape: Sequence[int],
        dtype: Any,
        *,
        sharding: Sharding | None = None,
        weak_type: bool = False,
    ) -> None:
        self.shape = tuple(shape)
        self.dtype = dtypes.canonical(dtypes.as_dtype(dtype))
        self.sharding = sharding
        self.weak_type = weak_type

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return ArrayType(self.shape, self.dtype).size

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of a ShapeDtypeStruct without dimensions")
        return self.shape[0]

    def __repr__(self) -> str:
        return f"ShapeDtypeStruct(shape={self.shape}, dtype={self.dtype.name})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ShapeDtypeStruct) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple:
        return self.shape, self.dtype, self.sharding, self.weak_type


def struct(type: ArrayType) -> ShapeDtypeStruct:
    """``type`` as users see it."""
    return ShapeDtypeStruct(type.shape, type.dtype, weak_type=type.weak)


def abstract(x: Any, names: LeafNames | list[str], i: int, who: str) -> ArrayType:
    """The type of an array, a number, or anything that has a shape and a dtype."""
    if not isinstance(x, (np.ndarray, np.generic)) and hasattr(x, "shape") and hasattr(x, "dtype"):
        weak = bool(getattr(x, "weak_type", False))
        return ArrayType(tuple(x.shape), dtypes.canonical(np.dtype(x.dtype)), weak)
    if not is_value(x):
        check_leaf(x, names[i], who)
    found = typeof(x)
    return ArrayType(found.shape, found.dtype, found.weak)


def sharding_of(x: Any) -> Sharding | None:
    """Where ``x`` says that it lies, if it does."""
    found = getattr(x, "sharding", None)
    return found if isinstance(found, Sharding) else None


class Staged:
    """A traced function: its program, and the way to lower it."""

    def __init__(
        self,
        who: str,
        program: Program,
        captured: list[Any],
        types: tuple[ArrayType, ...],
        in_tree: Any,
        out_tree: Any,
        shardings: tuple[Sharding | None, ...],
        donated: tuple[bool, ...],
        names: list[str],
    ) -> None:
        self.who = who
        self.program = program
        self.captured = captured
        self.types = types
        self.in_tree = in_tree
        self.out_tree = out_tree
        self.shardings = shardings
        self.donated = donated
        self.names = names

    @property
    def jaxpr(self) -> Program:
        """The program, under the name that other tools use."""
        return self.program

    @property
    def out_info(self) -> Any:
        """The shapes and dtypes of the results."""
        return self.out_tree.unflatten([struct(t) for t in self.program.output_types])

    def lower(self) -> Lowered:
        """Choose devices and layouts, and write the StableHLO module."""
        constants = [as_array(c) for c in self.captured]
        sigs = [
            *(c.sig for c in constants),
            *(
                Signature.of(t, default_sharding() if s is None else s)
                for t, s in zip(self.types, self.shardings, strict=True)
            ),
        ]
        return Lowered(self, constants, sigs)


class Lowered:
    """A traced function with a layout. ``compile`` makes it callable."""

    def __init__(
        self, staged: Staged, constants: list[DeviceArray], sigs: Sequence[Signature]
    ) -> None:
        self.staged = staged
        self.constants = constants
        self.sigs = sigs

    @property
    def in_tree(self) -> Any:
        return self.staged.in_tree

    @property
    def out_tree(self) -> Any:
        return self.staged.out_tree

    @property
    def out_info(self) -> Any:
        """The shapes and dtypes of the results."""
        return self.staged.out_info

    def as_text(self, dialect: str | None = None, *, debug_info: bool = False) -> str:
        """The StableHLO module as text; with the user's lines if ``debug_info``.

        Raises:
            ValueError: ``dialect`` is neither None nor "stablehlo".
        """
        if dialect not in (None, "stablehlo"):
            raise ValueError(f"as_text: the dialect is 'stablehlo', got {dialect!r}")
        plan, _ = make_plan(self.staged.program, [s.sharding for s in self.sigs])
        return backend().lower(self.staged.program, plan, self._donate()).as_text(debug_info)

    def compile(self, compiler_options: dict[str, Any] | None = None) -> AheadCompiled:
        """Compile with XLA; options that differ give separate executables.

        Raises:
            ValueError: XLA does not know an option, or not the value.
        """
        compiled = compile_program(
            self.staged.program, self.sigs, self._donate(), compiler_options
        )
        return AheadCompiled(self.staged, self.constants, self.sigs, compiled)

    def cost_analysis(self) -> Any:
        """XLA's estimate of the work, as a dict such as ``{"flops": ...}``."""
        return self.compile().cost_analysis()

    def _donate(self) -> tuple[int, ...]:
        count = len(self.constants)
        return tuple(i + count for i, d in enumerate(self.staged.donated) if d)


class AheadCompiled:
    """A compiled function for arguments of one tree, shapes and dtypes."""

    def __init__(
        self,
        staged: Staged,
        constants: list[DeviceArray],
        sigs: Sequence[Signature],
        compiled: Compiled,
    ) -> None:
        self._staged = staged
        self._constants = constants
        self._sigs = sigs[len(constants) :]
        self._compiled = compiled

    @property
    def in_tree(self) -> Any:
        return self._staged.in_tree

    @property
    def out_tree(self) -> Any:
        return self._staged.out_tree

    @property
    def out_info(self) -> Any:
        """The shapes and dtypes of the results."""
        return self._staged.out_info

    @property
    def input_shardings(self) -> Any:
        """How the arguments lie."""
        wanted = self._compiled.in_shardings[len(self._constants) :]
        return self.in_tree.unflatten(wanted)

    @property
    def output_shardings(self) -> Any:
        """How the results lie."""
        return self.out_tree.unflatten([s.sharding for s in self._compiled.out_sigs])

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        leaves, treedef = tree.flatten((args, kwargs))
        if treedef != self.in_tree:
            raise TypeError(
                f"{self._staged.who}: compiled for arguments of the structure "
                f"{shown_call(self.in_tree)} and called with {shown_call(treedef)}; pass the same "
                "structure, or lower and compile for this one"
            )
        arrays = [self._argument(i, x) for i, x in enumerate(leaves)]
        return self.out_tree.unflatten(self._compiled([*self._constants, *arrays]))

    def _argument(self, i: int, x: Any) -> DeviceArray:
        name, wanted = self._staged.names[i], self._staged.types[i]
        found = abstract(x, self._staged.names, i, self._staged.who)
        if (found.shape, found.dtype) != (wanted.shape, wanted.dtype):
            raise TypeError(
                f"{self._staged.who}: {name} was compiled for {wanted} and called with {found}; "
                "convert it, or lower and compile for its type"
            )
        array = x if isinstance(x, DeviceArray) else from_host(np.asarray(x, wanted.dtype))
        array.check_alive()
        return moved(array, self._sigs[i].sharding)

    def as_text(self) -> str:
        """The optimized HLO module as text."""
        return self._compiled.executable.hlo_text()

    def cost_analysis(self) -> Any:
        """XLA's estimate of the work, as a dict such as ``{"flops": ...}``."""
        return self._compiled.executable.cost_analysis()

    def memory_analysis(self) -> Any:
        """Bytes for arguments, results, temporaries and code."""
        return self._compiled.executable.memory_analysis()

    def runtime_executable(self) -> Any:
        """The executable of the XLA runtime."""
        return self._compiled.executable
