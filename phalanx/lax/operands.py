"""What functions of ``phalanx.lax`` accept: arrays of one dtype, and scalars that fit them.

Unlike ``phalanx.numpy``, ``phalanx.lax`` neither promotes dtypes nor aligns shapes. Only
scalars adapt: a Python number takes the dtype of the other operands, and an array of rank 0,
or of the same rank with length 1 somewhere, takes their shape.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, cast

import numpy as np

from phalanx.base import dtypes, lattice
from phalanx.base.errors import ConcretizationTypeError, ShapeError
from phalanx.base.lengths import Length, length
from phalanx.base.plain import brief
from phalanx.base.source import user_location
from phalanx.core.trace import ROOT, current
from phalanx.core.types import SCALARS, Array, ArrayType, LiteralType, operand_type, typeof
from phalanx.primitives.basis import broadcast, convert, full
from phalanx.run.array import default_sharding, from_scalar

OPERANDS: tuple[type, ...] = (Array, np.ndarray, np.generic, *SCALARS)


def accept(who: str, x: Any) -> Any:
    """``x``, if it is an array or a number.

    Raises:
        TypeError: it is something else.
    """
    if isinstance(x, OPERANDS):
        return x
    if isinstance(x, Length):
        return x.__jax_array__()
    raise TypeError(
        f"lax.{who}: an array or a number is needed, got {brief(x)} of type {type(x).__name__}; "
        "convert it with phalanx.numpy.array"
    )


def one(who: str, x: Any) -> Any:
    """``x`` made ready for an elementwise primitive of one operand.

    Raises:
        TypeError: it is neither an array nor a number.
    """
    if isinstance(x, Array):
        return x
    return _strong(cast("np.generic[Any]", x)) if isinstance(x, np.generic) else accept(who, x)


def elementwise(who: str, *xs: Any) -> tuple[Any, ...]:
    """``xs`` made ready for an elementwise primitive: of one dtype, scalars of one shape.

    Raises:
        TypeError: dtypes or shapes differ, or a Python number does not fit the dtype.
    """
    if _are_alike(xs):
        return xs
    for x in xs:
        accept(who, x)
    arrays = [x for x in xs if not is_python(x)]
    if not arrays:
        return xs
    dtype = typeof(arrays[0]).dtype
    for x in xs:
        _check_dtype(who, x, dtype, xs)
    return same_shape(who, *_as_strong(xs))


def _are_alike(xs: tuple[Any, ...]) -> bool:
    """Whether all are arrays of one type, with which there is nothing to do."""
    kind = getattr(xs[0], "aval", None)
    return all([isinstance(x, Array) and x.aval is kind for x in xs])


def _as_strong(xs: tuple[Any, ...]) -> tuple[Any, ...]:
    """``xs``, of which one is an array that is not weak, if one is not weak.

    Primitives take scalars for constants, which are as weak as what stands beside them. That is
    right of Python's numbers, and of NumPy's where an array beside them is not weak.
    """
    of_numpy = [isinstance(x, np.generic) for x in xs]
    if not any(of_numpy) or any([_is_strong(x) for x in xs]):
        return xs
    at = of_numpy.index(True)
    return (*xs[:at], _strong(xs[at]), *xs[at + 1 :])


def _is_strong(x: Any) -> bool:
    return isinstance(x, np.ndarray) or (isinstance(x, Array) and not x.aval.weak)


def _strong(x: np.generic[Any]) -> Array:
    """A scalar of NumPy as an array, which is not weak."""
    dtype = typeof(x).dtype
    if current() is not ROOT:
        return full((), x, dtype)
    return from_scalar(dtypes.scalar(x, dtype), default_sharding(), ArrayType((), dtype))


def alike(who: str, *xs: Any) -> tuple[Any, ...]:
    """``elementwise``, with numbers repeated as well: what is computed of one operand alone has
    the shape of all.

    Raises:
        TypeError: dtypes or shapes differ, or a Python number does not fit the dtype.
    """
    xs = elementwise(who, *xs)
    types = [operand_type(x) for x in xs]
    arrays = [t for t in types if type(t) is not LiteralType]
    if not arrays:
        dtype, _ = lattice.common(*((t.dtype, t.weak) for t in types))
        return tuple(dtypes.scalar(x, dtype).item() for x in xs)
    like = arrays[0].update(weak=all(t.weak for t in arrays))
    pairs = zip(xs, types, strict=True)
    return tuple(_filled(x, like) if type(t) is LiteralType else x for x, t in pairs)


def _filled(x: Any, type: ArrayType) -> Array:
    """The array of ``type`` whose elements are the scalar ``x``."""
    out = full(type.shape, x, type.dtype)
    return convert(out, dtype=type.dtype, weak=True) if type.weak else out


def is_python(x: Any) -> bool:
    """Whether ``x`` is a Python number, whose dtype is weak and whose shape is none."""
    return isinstance(x, SCALARS) and not isinstance(x, np.generic)


def _check_dtype(who: str, x: Any, dtype: np.dtype, xs: Sequence[Any]) -> None:
    if not is_python(x):
        if typeof(x).dtype != dtype:
            raise TypeError(
                f"lax.{who}: operands must have one dtype, got {_listed(xs)}; convert them with "
                "lax.convert_element_type, or use phalanx.numpy, which promotes dtypes"
            )
    elif lattice.common((dtype, False), (typeof(x).dtype, True))[0] != dtype:
        raise TypeError(
            f"lax.{who}: the Python number {x!r} does not fit operands of dtype {dtype}; "
            "convert them with lax.convert_element_type"
        )


def _listed(xs: Sequence[Any]) -> str:
    return " and ".join(repr(x) if is_python(x) else str(typeof(x)) for x in xs)


def same_shape(who: str, *xs: Any) -> tuple[Any, ...]:
    """``xs`` with rank-0 arrays and dimensions of length 1 repeated to the shape of the others.

    Raises:
        TypeError: ranks other than 0 differ, or lengths other than 1.
    """
    types = [operand_type(x) for x in xs]
    shapes = {t.shape for t in types if type(t) is not LiteralType}
    if len(shapes) <= 1:
        return xs
    ranked = [s for s in shapes if s]
    ndim = len(ranked[0])
    if any(len(s) != ndim for s in ranked) or any(
        len({n for n in column if n != 1}) > 1 for column in zip(*ranked, strict=False)
    ):
        raise ShapeError(
            f"lax.{who}: got incompatible shapes for broadcasting: "
            f"{', '.join(str(t.shape) for t in types)}, at {user_location()}; operands other than "
            "scalars must have one shape, but for lengths of 1. Broadcast them first, or use "
            "phalanx.numpy, which aligns shapes"
        )
    shape = tuple(min(c) if 0 in c else max(c) for c in zip(*ranked, strict=True))
    return tuple(_repeated(x, t, shape) for x, t in zip(xs, types, strict=True))


def _repeated(x: Any, type: ArrayType, shape: tuple[int, ...]) -> Any:
    if isinstance(type, LiteralType) or type.shape == shape:
        return x
    return broadcast(x, shape=shape, dims=tuple(range(type.ndim)))


def integers(who: str, what: str, values: Any) -> tuple[int, ...]:
    """``values`` as a tuple of Python integers.

    Raises:
        TypeError: it is no sequence of integers that are known while tracing.
    """
    try:
        return tuple(map(length, values))
    except ConcretizationTypeError:  # says what is traced, and where
        raise
    except TypeError:
        shown = f"{values!r}" if not isinstance(values, Array) else "an array"
        raise TypeError(
            f"lax.{who}: {what} must be a sequence of Python integers, got {shown}"
        ) from None


def lengths_of(who: str, what: str, values: Any) -> tuple[int, ...]:
    """``integers`` of a shape, of which one length may stand for itself."""
    one = isinstance(values, (int, Length)) or getattr(values, "ndim", None) == 0
    return integers(who, what, (values,) if one else values)


def dtype_of(like: Any) -> np.dtype | None:
    """The canonical dtype that ``like`` means; None stays None."""
    return None if like is None else dtypes.requested(like)


def pairs(who: str, what: str, values: Iterable[Any]) -> tuple[tuple[int, int], ...]:
    """``values`` as a tuple of pairs of integers.

    Raises:
        ValueError: an entry is no pair.
    """
    rows = tuple(integers(who, what, v) for v in values)
    if any(len(pair) != 2 for pair in rows):
        raise ValueError(f"lax.{who}: {what} must be (low, high) pairs, got {rows}")
    return rows  # type: ignore[return-value]
