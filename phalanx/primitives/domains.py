"""What operations take: the domains of their dtypes, and the type that operands share.

Types for examples are written short: ``f32(2, 3)``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from phalanx.base import dtypes
from phalanx.base.errors import DtypeError, ShapeError
from phalanx.base.lattice import advice_on
from phalanx.core.types import ArrayType, LiteralType

F32 = np.dtype("float32")
I32 = np.dtype("int32")
BOOL = np.dtype("bool")

Domain = Callable[[Any], bool]


def f32(*shape: int) -> ArrayType:
    """The type of a float32 array: shorthand for examples.

    Args:
        *shape: the shape of the result: a tuple of integers, or an integer.

    Returns:
        An ``ArrayType``.

    >>> str(f32(2, 3))
    'f32[2,3]'
    """
    return ArrayType(shape, F32)


def i32(*shape: int) -> ArrayType:
    """The type of an int32 array: shorthand for examples.

    Args:
        *shape: the shape of the result: a tuple of integers, or an integer.

    Returns:
        An ``ArrayType``.

    >>> str(i32(2))
    'i32[2]'
    """
    return ArrayType(shape, I32)


def bools(*shape: int) -> ArrayType:
    """The type of a boolean array: shorthand for examples.

    Args:
        *shape: the shape of the result: a tuple of integers, or an integer.

    Returns:
        An ``ArrayType``.

    >>> bools(3).dtype
    dtype('bool')
    """
    return ArrayType(shape, BOOL)


_NUMBERS_AND_BOOL = dtypes.ALL - {dtypes.float0}
_NUMBERS = _NUMBERS_AND_BOOL - {BOOL}
_REAL_NUMBERS = _NUMBERS - dtypes.COMPLEXES


def anything(dtype: Any) -> bool:
    """The domain of every dtype."""
    return True


def number_or_bool(dtype: Any) -> bool:
    """The domain of every dtype but float0 and those of keys."""
    return dtype in _NUMBERS_AND_BOOL


def number(dtype: Any) -> bool:
    """The domain of every dtype but bool, float0 and those of keys."""
    return dtype in _NUMBERS


def real_number(dtype: Any) -> bool:
    """The domain of integers and floating-point numbers."""
    return dtype in _REAL_NUMBERS


def integral(dtype: np.dtype) -> bool:
    """The domain of bool and the integers, where bits mean something."""
    return dtype == BOOL or dtypes.is_integer(dtype)


def part_of_complex(dtype: np.dtype) -> bool:
    """The domain of the dtypes that complex numbers are made of."""
    return dtype.type in (np.float32, np.float64)


_DOMAIN_NAMES = {
    "number_or_bool": "a number or bool",
    "number": "a number",
    "real_number": "a real number",
    "integral": "bool or an integer",
    "part_of_complex": "float32 or float64",
    "has_value": "a number, bool or key",
    "ordered": "ordered, and so not complex",
    "is_inexact": "a floating-point or complex number",
    "is_floating": "a floating-point number",
    "is_complex": "a complex number",
    "is_integer": "an integer",
    "of_lapack": "float32, float64, complex64 or complex128",
}


def check_domain(name: str, type: ArrayType, on: Domain) -> None:
    """Raise DtypeError unless the dtype of ``type`` lies in the domain ``on``."""
    if not on(type.dtype):
        expected = _DOMAIN_NAMES.get(on.__name__, on.__name__)
        advice = advice_on(type.dtype) or "convert it first, with .astype"
        raise DtypeError(f"{name}: the operand {type} must be {expected}; {advice}")


def common_type(name: str, types: Sequence[ArrayType]) -> ArrayType:
    """The type that elementwise operands share; literals fit any shape.

    Raises:
        TypeError: shapes or dtypes differ.
    """
    first = types[0]
    weak = first.weak or type(first) is LiteralType
    shaped = None if type(first) is LiteralType else first
    for t in types[1:]:
        literal = type(t) is LiteralType
        if t.dtype != first.dtype:
            raise TypeError(f"{name}: operands must have one dtype, got {_listed(types)}")
        weak = weak and (t.weak or literal)
        if literal:
            continue
        if shaped is None:
            shaped = t
        elif shaped.shape != t.shape:
            raise ShapeError(
                f"{name}: operands must have one shape, got {_listed(types)}; broadcast them first"
            )
    weak = weak and first.dtype != BOOL
    return ArrayType(shaped.shape if shaped is not None else (), first.dtype, weak)


def _listed(types: Sequence[ArrayType]) -> str:
    return " and ".join(map(str, types))
