"""What instructions of a compiled program compute and move, read from its text as HLO."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from functools import cached_property

import numpy as np
from msgspec import Struct

from phalanx.xla.communication import integers, size_of
from phalanx.xla.hlo_text import Computation, HloModule

__all__ = ["INSTRUCTION", "Work"]

# a tuple's type has parentheses in it, and behind none of them a word with an opening one
INSTRUCTION = re.compile(r"^\s+(?:ROOT )?%(\S+) = (\(.*?\)|\S+) ([a-z][\w-]*)\(([^)]*)\)")
_ARRAY = re.compile(r"([a-z]+)(\d*)\w*\[([\d,]*)\](\{[^}]*\})?")
_NUMBERED = re.compile(r"/\*index=\d+\*/")
_CALLS = re.compile(r"calls=%([^\s,)]+)")
_CONTRACTED = re.compile(r"lhs_contracting_dims=\{([\d,]*)\}")
_LABELS = re.compile(r"dim_labels=(\w+)_(\w+)->(\w+)")
_WINDOW = re.compile(r"window=\{([^}]*)\}")
_SLICES = ("dynamic-slice", "slice", "gather")
_SAME = ("bitcast", "reshape")
_NO_WORK = ("parameter", "constant", "tuple", "get-tuple-element", "while", "call", "conditional")


class Shape(Struct, frozen=True):
    """An array: its dimensions, its bytes, and whether it is in the main memory."""

    dims: tuple[int, ...]
    size: int
    in_memory: bool


class Instruction(Struct):
    """A line: its name, its result, what it does, and with what."""

    name: str
    shapes: list[Shape]
    operation: str
    operands: list[str]
    line: str

    @property
    def size(self) -> int:
        """The bytes of its result."""
        return sum([s.size for s in self.shapes])


class Work:
    """The work that the instructions of a compiled program do.

    Args:
        module: its text.
    """

    def __init__(self, module: HloModule) -> None:
        self._module = module
        self._read: dict[str, _Body] = {}

    def of(self, computation: str, name: str) -> tuple[float, float]:
        """The operations of the products in an instruction, and the bytes of the main memory that
        it reads and writes; what a fusion needs of an array is all that is read of it."""
        body = self._body(computation)
        instruction = body.by_name[name]
        return self._products(body, instruction), self._moved(body, instruction)

    def _body(self, name: str) -> _Body:
        if name not in self._read:
            self._read[name] = _Body(self._module.computations[name])
        return self._read[name]

    def _fused(self, instruction: Instruction) -> _Body | None:
        called = _CALLS.search(instruction.line)
        return None if called is None else self._body(called[1])

    # ---- products ----

    def _products(self, body: _Body, instruction: Instruction) -> float:
        if instruction.operation == "dot":
            return _of_dot(instruction, body.operand(instruction, 0))
        if instruction.operation == "convolution":
            return _of_convolution(
                instruction, body.operand(instruction, 0), body.operand(instruction, 1)
            )
        fused = self._fused(instruction)
        if fused is None:
            return 0.0
        return sum([self._products(fused, inner) for inner in fused.by_name.values()])

    # ---- bytes ----

    def _moved(self, body: _Body, instruction: Instruction) -> float:
        if instruction.operation in _NO_WORK or instruction.operation.endswith("-done"):
            return 0.0
        if 'custom_call_target="AllocateBuffer"' in instruction.line:
            return 0.0
        sources = [body.by_name[o] for o in instruction.operands if o in body.by_name]
        if instruction.operation.endswith("-start"):  # a copy: what it gives first is where it goes
            (to, *_), size = instruction.shapes, instruction.shapes[0].size
            return float(size * (to.in_memory + any([s.in_memory for s in sources[0].shapes])))
        read = [
            min(source.size, self._needed(body, instruction, n))
            for n, source in enumerate(sources)
            if any([s.in_memory for s in source.shapes])
        ]
        written = zip(instruction.shapes, self._written(body, instruction), strict=False)
        return float(sum(read) + sum([size for s, size in written if s.in_memory]))

    def _needed(self, body: _Body, user: Instruction, n: int) -> float:
        """The bytes that an instruction needs of its operand ``n``."""
        if n == 0 and user.operation in _SLICES:
            return user.size
        if n == 0 and user.operation == "dynamic-update-slice":
            return 0.0
        if user.operation in _SAME:
            return self._needed_by_users(body, user.name)
        fused = self._fused(user)
        if fused is None or n >= len(fused.parameters):
            return math.inf
        return self._needed_by_users(fused, fused.parameters[n])

    def _needed_by_users(self, body: _Body, name: str) -> float:
        if name == body.root.name:
            return math.inf
        return sum([self._needed(body, user, n) for user, n in body.users.get(name, ())], 0.0)

    def _written(self, body: _Body, instruction: Instruction) -> Iterator[float]:
        """The bytes of each of its results that it writes."""
        fused = self._fused(instruction)
        if fused is not None and instruction.operation == "fusion":
            yield from self._written(fused, fused.root)
        elif instruction.operation == "tuple":
            for name in instruction.operands:
                yield from self._written(body, body.by_name[name])
        elif instruction.operation == "dynamic-update-slice":
            yield body.operand(instruction, 1).size
        elif instruction.operation in _SAME and instruction.operands[0] in body.by_name:
            yield from self._written(body, body.by_name[instruction.operands[0]])
        else:
            yield from [float(s.size) for s in instruction.shapes]


class _Body:
    """The instructions of a computation."""

    def __init__(self, computation: Computation) -> None:
        instructions = [m for line in computation.lines if (m := _instruction(line)) is not None]
        self.by_name = {m.name: m for m in instructions}
        self.root = next(
            (m for m in instructions if m.line.lstrip().startswith("ROOT")), instructions[-1]
        )

    @cached_property
    def parameters(self) -> list[str]:
        """Their names, in order."""
        found = [m for m in self.by_name.values() if m.operation == "parameter"]
        return [m.name for m in sorted(found, key=lambda m: int(m.operands[0]))]

    @cached_property
    def users(self) -> Mapping[str, list[tuple[Instruction, int]]]:
        """The instructions that take a value, and as which of their operands."""
        found: dict[str, list[tuple[Instruction, int]]] = {}
        for m in self.by_name.values():
            for n, operand in enumerate(m.operands):
                found.setdefault(operand, []).append((m, n))
        return found

    def operand(self, instruction: Instruction, n: int) -> Shape:
        """The array that is its operand ``n``."""
        return self.by_name[instruction.operands[n]].shapes[0]


def _instruction(line: str) -> Instruction | None:
    match = INSTRUCTION.match(line)
    if match is None:
        return None
    name, kind, operation, operands = match.groups()
    shapes = [_shape(*array) for array in _ARRAY.findall(kind)]
    numbers = re.findall(r"[^\s,%]+", _NUMBERED.sub("", operands))
    return Instruction(name, shapes, operation, numbers, line)


def _shape(kind: str, bits: str, dims: str, layout: str) -> Shape:
    return Shape(integers(dims), size_of(kind, bits, dims), "S(" not in layout)


# ---- operations ---------------------------------------------------------------------------------


def _of_dot(instruction: Instruction, left: Shape) -> float:
    contracted = _CONTRACTED.search(instruction.line)
    summed = math.prod([left.dims[d] for d in integers(contracted and contracted[1])])
    return 2.0 * math.prod(instruction.shapes[0].dims) * summed


def _of_convolution(instruction: Instruction, left: Shape, kernel: Shape) -> float:
    """Each element of the kernel is used at the places where it does not meet padding: products of
    many matrices are convolutions that mostly do."""
    labels = _LABELS.search(instruction.line)
    if labels is None:
        return 0.0
    ins, of_kernel, outs = labels.groups()
    window = _WINDOW.search(instruction.line)
    attributes = dict(re.findall(r"(\w+)=(\S+)", window[1])) if window else {}
    places = 1.0
    for d, label in enumerate(sorted(filter(str.isdigit, of_kernel), key=int)):
        sizes = left.dims[ins.index(label)], instruction.shapes[0].dims[outs.index(label)]
        places *= _met(d, kernel.dims[of_kernel.index(label)], *sizes, attributes)
    out = instruction.shapes[0].dims
    taken = kernel.dims[of_kernel.index("i")]
    return 2.0 * places * out[outs.index("b")] * out[outs.index("f")] * taken


def _met(
    d: int, kernel_size: int, operand_size: int, result_size: int, attributes: Mapping[str, str]
) -> int:
    """How often along dimension ``d`` an element of the kernel meets one of the operand."""

    def of(word: str, other: int) -> int:
        return (
            int(attributes[word].split("x")[d].partition("_")[0]) if word in attributes else other
        )

    base_dilation, dilation = of("lhs_dilate", 1), of("rhs_dilate", 1)
    places = (
        np.arange(result_size)[:, None] * of("stride", 1)
        + np.arange(kernel_size) * dilation
        - of("pad", 0)
    )
    inside = (
        (places >= 0)
        & (places <= (operand_size - 1) * base_dilation)
        & (places % base_dilation == 0)
    )
    return int(inside.sum())
