"""An example call of every public function: what laws over "every function" are tried on.

A call is a function and its arguments, in which an ``Operand`` stands for an array. A law gives
the operands sizes, dtypes and values, and calls the function as a user would. Most functions need
no example of their own: what a parameter of a certain name takes is written down once
(``tests/laws/arguments.py``), and a function is called with its required parameters.
"""

import functools
import inspect
import typing
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
import pytest

import phalanx
import phalanx.numpy as jnp
from phalanx.base import dtypes

SIZES = {"k": 4, "m": 2, "n": 3}  # of the letters of a shape; a digit is its own size
LANES = 2  # of the named axis that collectives are called in
AXIS = "i"

# `fill_diagonal` writes the number 1 into arrays of every dtype, booleans too.
CASTS = pytest.mark.filterwarnings("ignore:scatter inputs have incompatible types:FutureWarning")


@dataclass(frozen=True)
class Operand:
    """An array among the arguments of a call.

    Attributes:
        shape: a letter or a digit for each dimension, see ``SIZES``.
        dtype: one that it must have; None, where it may have any.
        high: the least integer that is too large.
        ordered: whether its values must not fall along the last dimension.
        diagonal: what is added to the diagonals of matrices.
    """

    shape: str
    dtype: typing.Any = None
    high: int = 4
    ordered: bool = False
    diagonal: int = 0

    def draw(self, dtype, sizes, source):
        """Values between 0 and ``high``; of floats, those that few functions refuse."""
        dtype = np.dtype(dtype if self.dtype is None else self.dtype)
        shape = lengths(self.shape, sizes)
        if dtype.kind == "b":
            drawn = source.integers(0, 2, shape)
        elif dtype.kind in "iu":
            drawn = source.integers(0, self.high, shape)
        else:
            drawn = np.round(source.uniform(0.1, 0.9, shape), 2)
            if dtype.kind == "c":
                drawn = drawn + 1j * np.round(source.uniform(0.1, 0.9, shape), 2)
        if self.diagonal and len(shape) > 1:
            drawn = drawn + self.diagonal * np.eye(*shape[-2:], dtype=int)
        drawn = np.asarray(drawn).astype(dtype)
        return np.sort(drawn) if self.ordered and shape else drawn


@dataclass(frozen=True)
class Sizes:
    """A tuple of lengths among the arguments of a call."""

    shape: str


@dataclass(frozen=True)
class Made:
    """An argument that is used up by a call, and made for each."""

    make: Callable[[], typing.Any]


def lengths(shape, sizes):
    """The shape that letters and digits stand for."""
    return tuple(sizes[d] if d.isalpha() else int(d) for d in shape)


def replaced(argument, change):
    """``argument`` with ``change(x)`` in place of each ``Operand``, ``Sizes`` and ``Made`` in it,
    inside of lists and tuples as well."""
    if type(argument) in (list, tuple):
        return type(argument)(replaced(x, change) for x in argument)
    return change(argument) if isinstance(argument, Operand | Sizes | Made) else argument


@dataclass(frozen=True)
class Call:
    """A public function, and arguments to call it with."""

    room: str  # 'numpy', 'numpy.linalg', ...; '' is the package itself
    name: str
    args: tuple = ()
    keywords: dict = field(default_factory=dict)
    dtype: type = np.float32  # of the operands that may have any; one that is accepted

    def __str__(self):
        return ".".join(filter(None, (self.room, self.name)))

    @property
    def function(self):
        return getattr(room_of(self.room), self.name)

    @property
    def slots(self):
        """The operands, in the order of the arguments."""
        slots = []
        replaced([*self.args, *self.keywords.values()], slots.append)
        return [s for s in slots if isinstance(s, Operand)]

    def operands(self, dtype=None, sizes=SIZES, seed=0):
        """Arrays of NumPy for the operands."""
        source = np.random.default_rng(seed)
        return [slot.draw(dtype or self.dtype, sizes, source) for slot in self.slots]

    def arguments(self, operands, sizes=SIZES):
        """``args, kwargs`` with ``operands``, arrays or what is to stand for them, in place."""
        values = iter(operands)

        def change(x):
            if isinstance(x, Operand):
                return next(values)
            return x.make() if isinstance(x, Made) else lengths(x.shape, sizes)

        args = tuple(replaced(list(self.args), change))
        return args, {k: replaced(v, change) for k, v in self.keywords.items()}

    def __call__(self, *operands, sizes=SIZES):
        """What the function gives for the operands; a collective runs in ``LANES`` equal lanes."""
        if not self.communicates:
            return self._in_scope(operands, sizes)
        lanes = phalanx.vmap(
            lambda *xs: self._in_scope(xs, sizes), in_axes=None, axis_name=AXIS, axis_size=LANES
        )
        return lanes(*operands)

    def _in_scope(self, operands, sizes):
        args, kwargs = self.arguments(operands, sizes)
        return self.function(*args, **kwargs)

    @property
    def communicates(self):
        """Whether it is a collective, which needs a named axis."""
        return any(x is AXIS for x in (*self.args, *self.keywords.values()))

    def by_keyword(self):
        """The same call with as many arguments given by their names as can be."""
        parameters = [
            p for p in inspect.signature(self.function).parameters.values() if p.name != "self"
        ]
        if any(p.kind is p.VAR_POSITIONAL for p in parameters):
            return self
        named = zip(parameters, self.args, strict=False)
        first = sum(p.kind is p.POSITIONAL_ONLY for p in parameters[: len(self.args)])
        keywords = {p.name: x for p, x in list(named)[first:]}
        return replace(self, args=self.args[:first], keywords={**keywords, **self.keywords})


# ---- what is public -----------------------------------------------------------------------------


def room_of(name):
    """The module that users know under ``name``."""
    return functools.reduce(getattr, filter(None, name.split(".")), phalanx)


def public(room):
    """The names of the functions that ``room`` offers: those it lists, or has without ``_``."""
    module = room_of(room)
    names = getattr(module, "__all__", None) or [n for n in dir(module) if not n.startswith("_")]
    offered = {n: getattr(module, n) for n in names}
    return [n for n, x in offered.items() if is_function(x) and is_to_be_had(x)]


def is_to_be_had(x):
    """Not a dtype of 64 bits, which without them warns and is that of 32."""
    return not isinstance(x, jnp.ScalarType) or dtypes.canonical(x) == x.dtype


def is_function(x):
    """Whether one calls it, as opposed to a class, an alias of types or a module."""
    kinds = inspect.isclass(x) or isinstance(x, typing.NewType)
    return callable(x) and not kinds and typing.get_origin(x) is None


def required(function):
    """The parameters that must be given, by name; of ``*names`` the names, with the stars."""
    return tuple(
        ("*" if p.kind is p.VAR_POSITIONAL else "") + p.name
        for p in inspect.signature(function).parameters.values()
        if p.default is p.empty and p.kind is not p.VAR_KEYWORD
    )
