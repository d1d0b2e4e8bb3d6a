"""The value of a symbolic length: what it is where the program runs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NoReturn

import numpy as np

from phalanx.base import dtypes
from phalanx.base.errors import InconclusiveDimensionOperation
from phalanx.base.lengths import Length
from phalanx.base.source import user_location
from phalanx.core.builder import Builder, Value
from phalanx.core.primitive import Elements, Execution, NoRule, Primitive, ZeroDerivative
from phalanx.core.types import ArrayType, Shape, typeof
from phalanx.primitives.basis import broadcast, convert


def _type(*, of: Any, dtype: np.dtype) -> ArrayType:
    return ArrayType((), dtype, weak=True)


def _lower(b: Builder, of: Any, dtype: np.dtype) -> Value:
    return b.constant(of, dtype)


def _refuse(of: Any, dtype: np.dtype) -> NoReturn:
    raise InconclusiveDimensionOperation(
        f"the symbolic length {of} has no number here, at {user_location()}: only a function that "
        "is traced knows it, as by export or eval_shape"
    )


length = Primitive(
    "length",
    _type,
    _lower,
    linearize=ZeroDerivative("it has no operands"),
    transpose=NoRule("it has no operands"),
    batch=NoRule("it has no operands"),
    elements=Elements(operations=0),
    execution=Execution(run=_refuse),
    doc="the number of a symbolic length; stablehlo.get_dimension_size, and arithmetic",
)


def _filled(n: Length, shape: Shape, dtype: np.dtype | None) -> Any:
    if dtype is None:
        return length(of=n, dtype=dtypes.default_int())
    value = convert(length(of=n, dtype=dtype), dtype=dtype, weak=False)
    return broadcast(value, shape=shape, dims=()) if shape else value


def value_of(n: Any, dtype: np.dtype) -> Any:
    """The length ``n`` as a scalar of ``dtype``: a constant where it is a number."""
    return n.filled((), dtype) if isinstance(n, Length) else dtypes.scalar(n, dtype)


def need_numbers(who: str, what: str, lengths: Iterable[Any], remedy: str) -> None:
    """Make sure that ``lengths``, which are ``what``, are numbers.

    Raises:
        InconclusiveDimensionOperation: one is symbolic.
    """
    for n in lengths:
        if isinstance(n, Length):
            raise InconclusiveDimensionOperation(
                f"{who}: {what} must be known where the module is written, got the symbolic length "
                f"{n}, at {user_location()}; {remedy}"
            )


def constant_like(x: Any, n: Any) -> Any:
    """The number, or length, ``n`` in the dtype of ``x``, to stand beside it in an operation."""
    kind = typeof(x)
    if isinstance(n, Length):
        return n.filled(kind.shape, kind.dtype)
    return dtypes.scalar(n, kind.dtype)


Length.as_array = _filled
