"""Products of arrays of any dimensions, between other operations, are those of NumPy in float64.

On CPUs XLA computes them in a library that, where it took in what stands around a product, read
memory that nobody had written (``xla/compiler_options.py``). So no memory is new and zero here.
"""

import ctypes
import random
import sys
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import settings

import phalanx
import phalanx.numpy as jnp
from tests.compare import close_to_scale

LENGTHS = (0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129, 200)
MOST = 2**21  # multiplications
# by dtype, how far numbers may be from the right ones beside the largest of these
DTYPES = {
    "float32": 1e-6, "bfloat16": 3e-2, "float16": 4e-3, "float64": 1e-14, "complex64": 1e-6,
    "int32": 0, "int8": 0,
}  # fmt: skip
BEFORE = {
    "as it is": lambda np, x: x,
    "doubled": lambda np, x: x * 2,
    "negative": lambda np, x: -x,
    "and one": lambda np, x: x + np.ones_like(x),
    "some": lambda np, x: np.where(x == 1, x, x * 0),
    "all the same": lambda np, x: np.full_like(x, 2),
    "flipped": lambda np, x: np.flip(x, -1),
    "every other": lambda np, x: np.concatenate([x, x], -1)[..., 1::2],
    "the first": lambda np, x: np.broadcast_to(x[:1], x.shape),
}
AFTER = {
    "as it is": lambda np, y: y,
    "twice and one": lambda np, y: y * 2 + 1,
    "with itself": lambda np, y: y + y,
    "summed over the first": lambda np, y: y.sum(0, dtype=y.dtype),
    "summed over the last": lambda np, y: y.sum(-1, dtype=y.dtype),
    "transposed": lambda np, y: y.T,
}
WITH_DIMENSIONS = (
    "flipped", "every other", "the first", "summed over the first", "summed over the last",
)  # fmt: skip


@dataclass(frozen=True)
class Program:
    """``spec`` of operands to which something is done before, and something to the product."""

    spec: str
    lengths: dict
    dtype: str
    before: tuple
    after: str
    constant: bool  # whether the second operand is
    again: bool  # whether there is another such product

    def __call__(self, np, *operands):
        x, y = [BEFORE[b](np, x) for b, x in zip(self.before, operands, strict=True)]
        first = AFTER[self.after](np, np.einsum(self.spec, x, y))
        return (first, np.einsum(self.spec, x + x, y)) if self.again else (first,)

    def operands(self):
        source = np.random.default_rng(0)
        for letters in self.spec.split("->")[0].split(","):
            drawn = source.integers(-3, 4, (2, *map(self.lengths.get, letters)))
            x = drawn[0] + 1j * drawn[1] if self.dtype == "complex64" else drawn[0]
            yield (x / 16 if self.dtype == "float16" else x).astype(self.dtype)

    def expected(self, *operands):
        wide = "complex128" if self.dtype == "complex64" else "float64"
        for y in self(np, *[x.astype(wide) for x in operands]):
            whole = self.dtype.startswith("int")  # which may have come around, too
            yield y.astype("int64").astype(self.dtype).astype(wide) if whole else y

    def found(self, x, y):
        if self.constant:
            return phalanx.jit(lambda x: self(jnp, x, jnp.asarray(y)))(x)
        return phalanx.jit(lambda x, y: self(jnp, x, y))(x, y)


def drawn(draw):
    batch, left, right, summed = [
        letters[: draw.choice((0, 1, 1, 2))] for letters in ("ab", "mp", "nq", "kl")
    ]
    lengths, room = {}, MOST
    for letter in shuffled(draw, batch + left + right + summed):
        lengths[letter] = draw.choice([n for n in LENGTHS if n <= room])
        room //= max(1, lengths[letter])
    orders = batch + left + summed, batch + summed + right, batch + left + right
    x, y, out = [shuffled(draw, o) for o in orders] if draw.random() < 0.6 else orders

    def one_of(ways, letters):
        return draw.choice([w for w in ways if letters or w not in WITH_DIMENSIONS])

    return Program(
        f"{x},{y}->{out}", lengths, draw.choice(["float32"] * 6 + [*DTYPES]),
        (one_of(BEFORE, x), one_of(BEFORE, y)), one_of(AFTER, out),
        constant=draw.random() < 0.2, again=draw.random() < 0.3,
    )  # fmt: skip


def shuffled(draw, letters):
    return "".join(draw.sample(letters, len(letters)))


@pytest.fixture
def no_memory_is_zero():
    """What the allocator of Linux hands out has bytes of its own where nobody wrote."""
    perturb, byte = -6, 0x01  # M_PERTURB, and what the complement is of
    set_option = ctypes.CDLL(None).mallopt if sys.platform == "linux" else lambda *_: None
    set_option(perturb, byte)
    yield
    set_option(perturb, 0)


@pytest.mark.usefixtures("no_memory_is_zero")
def test_products_between_other_operations(request):
    draw = random.Random(request.config.getoption("hypothesis_seed"))
    for _ in range(max(40, settings().max_examples)):
        program = drawn(draw)
        print(program)  # which pytest shows where it fails
        x, y = program.operands()
        with phalanx.enable_x64(program.dtype == "float64"):
            found = program.found(x, y)
        for ours, expected in zip(found, program.expected(x, y), strict=True):
            assert ours.dtype == program.dtype
            ours = np.asarray(ours).astype(expected.dtype)
            close_to_scale(ours, expected, DTYPES[program.dtype])
