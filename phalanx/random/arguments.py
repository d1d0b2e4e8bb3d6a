"""Arguments that draws have in common: shapes, dtypes, parameters."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

import numpy as np

from phalanx.base import dtypes
from phalanx.base.broadcasting import check_fills, common_shape
from phalanx.base.errors import ArgumentError, ConcretizationTypeError
from phalanx.base.lengths import length
from phalanx.core.types import ArrayType, is_scalar, typeof
from phalanx.primitives import convert
from phalanx.primitives.basis import check_lengths
from phalanx.random.keys import single

Lengths = tuple[int, ...]


def as_shape(who: str, shape: Any) -> tuple[int, ...]:
    """``shape``, an integer or several, as a tuple.

    Raises:
        TypeError: it is neither.
        ValueError: a length is negative.
    """
    several = isinstance(shape, Iterable) and getattr(cast(Any, shape), "ndim", 1)
    lengths_in = cast(Iterable[Any], shape if several else (shape,))
    try:
        lengths = tuple(map(length, lengths_in))
    except ConcretizationTypeError:  # says what is traced, and where
        raise
    except TypeError:
        raise TypeError(f"{who}: shape must be a tuple of integers, got {shape!r}") from None
    check_lengths(who, lengths)
    return lengths


def float_dtype(who: str, dtype: Any) -> np.dtype:
    """``dtype``, by default that of Python floats.

    Raises:
        TypeError: it is no floating-point dtype.
    """
    chosen = dtypes.default_float() if dtype is None else dtypes.requested(dtype)
    if not dtypes.is_floating(chosen):
        raise ArgumentError(f"{who}: dtype must be a floating-point dtype, got {chosen}")
    return chosen


def integer_dtype(who: str, dtype: Any) -> np.dtype:
    """``dtype``, by default that of Python integers.

    Raises:
        TypeError: it is no integer dtype.
    """
    chosen = dtypes.default_int() if dtype is None else dtypes.requested(dtype)
    if not dtypes.is_integer(chosen):
        raise TypeError(f"{who}: dtype must be an integer dtype, got {chosen}")
    return chosen


def as_parameter(x: Any, dtype: np.dtype) -> Any:
    """A parameter of a distribution, a number or an array, in ``dtype``."""
    if is_scalar(x):
        return dtypes.scalar(x, dtype)
    x = x if hasattr(x, "dtype") else np.asarray(x)
    return x if typeof(x).dtype == dtype else convert(x, dtype=dtype, weak=False)


def shape_of_draws(who: str, shape: Any, *parameters: Any) -> tuple[int, ...]:
    """``shape``, or that to which the parameters broadcast if it is None.

    Raises:
        ValueError: the parameters do not broadcast to ``shape``.
    """
    shapes = [_type_of(p).shape for p in parameters]
    if not any(shapes):
        return () if shape is None else as_shape(who, shape)
    needed = common_shape(who, *shapes)
    if shape is None:
        return needed
    lengths = as_shape(who, shape)
    check_fills(who, "parameters", needed, lengths)
    return lengths


def _type_of(parameter: Any) -> ArrayType:
    return parameter if isinstance(parameter, ArrayType) else typeof(parameter)


def drawn(core: Any, who: str, key: Any, shape: Any, dtype: Any, *parameters: Any) -> Any:
    """What ``core`` draws, of ``shape`` or of that to which the parameters broadcast."""
    chosen = float_dtype(who, dtype)
    parameter_arrays = [as_parameter(p, chosen) for p in parameters]
    lengths = shape_of_draws(who, shape, *parameter_arrays)
    return core(single(who, key), *parameter_arrays, shape=lengths, dtype=chosen)


def check_method(who: str, method: str) -> None:
    """Raise ValueError unless ``method`` is "exact"."""
    if method != "exact":
        raise ValueError(f"{who}: method must be 'exact', got {method!r}")


def but_last_axis(who: str, name: str, x: Any) -> tuple[ArrayType, int]:
    """The type of the parameter ``x`` without its last axis, and the length of that.

    Raises:
        ValueError: it has no axis.
    """
    type = typeof(x)
    if not type.shape:
        raise ValueError(f"{who}: {name} must have an axis at least, got {type}")
    return ArrayType(type.shape[:-1], type.dtype), type.shape[-1]
