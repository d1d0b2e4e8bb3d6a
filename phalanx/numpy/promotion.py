"""Operands: what users pass becomes what primitives take, of one dtype and one shape.

Python and NumPy scalars stay constants of the program, in the dtype of the arrays beside
them; nothing is put on a device for them. Lists are refused: converting one costs time in
proportion to its length, at every call, which should be seen in the program.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NoReturn, cast

import numpy as np

from phalanx import primitives as ops
from phalanx.base import dtypes, jax_arrays, lattice
from phalanx.base.broadcasting import common_shape
from phalanx.base.config import settings
from phalanx.base.dtypes import INEXACT, INTEGERS
from phalanx.base.errors import ConcretizationTypeError, ShapeError, coded
from phalanx.base.kinds import SEQUENCE, class_of
from phalanx.base.lengths import length
from phalanx.base.numpy_kinds import NDARRAY
from phalanx.base.plain import brief
from phalanx.base.source import arguments_of_library, user_location, warn_user
from phalanx.core.trace import ROOT, current, describe, is_known, known_value
from phalanx.core.types import SCALARS, Array, ArrayType, typeof
from phalanx.core.types import ArrayLike as ArrayLike  # for annotations in this room
from phalanx.core.types import DTypeLike as DTypeLike
from phalanx.primitives.basis import check_lengths
from phalanx.primitives.domains import check_domain, number_or_bool
from phalanx.run.array import from_host

# ---- one operand ----------------------------------------------------------------------------


_OPERANDS: tuple[type, ...] = (Array, *SCALARS, np.generic)


def operand(who: str, x: Any) -> Any:
    """``x`` as an operand of a primitive: an array, or a Python or NumPy scalar.

    Raises:
        TypeError: it is neither.
    """
    if isinstance(x, _OPERANDS):
        return x
    if isinstance(x, np.ndarray):
        return from_host(x)
    if getattr(x, "__jax_array__", None) is not None:  # tracers of jax have None
        inner = x.__jax_array__()
        if inner is not x:
            return operand(who, inner)
    return refuse(who, x)


def refuse(who: str, x: Any) -> NoReturn:
    """Raise the error for an operand ``x`` that is neither an array nor a number."""
    kind = type(x).__name__
    if isinstance(x, SEQUENCE):
        raise TypeError(
            f"{who}: an array or a number is needed, got a {kind} of {len(x)}; convert it with "
            "jnp.array, once"
        )
    advice = getattr(class_of(x), "_advice", "") or jax_arrays.advice_on(x)
    raise TypeError(f"{who}: an array or a number is needed, got {brief(x)} of type {kind}{advice}")


def is_python_scalar(x: Any) -> bool:
    """Whether ``x`` is a Python number, whose dtype yields to others."""
    return isinstance(x, SCALARS) and not isinstance(x, np.generic)


def kind_of(x: Any) -> tuple[np.dtype, bool]:
    """The dtype of an operand, and whether it is weak."""
    if isinstance(x, Array):
        return x.aval.dtype, x.aval.weak
    if is_python_scalar(x):
        dtype = dtypes.dtype_of(x)
        return dtype, dtype != np.bool_
    return dtypes.canonical(x.dtype), False


def as_array(who: str, x: Any) -> Array:
    """``x`` as an array; a scalar becomes one without dimensions.

    Raises:
        TypeError: it is neither an array nor a number.
    """
    x = operand(who, x)
    return x if isinstance(x, Array) else scalar_array(x, *kind_of(x))


def number_array(who: str, x: Any) -> Array:
    """``x`` as an array of numbers or bools; for functions that give some of them as they are.

    Raises:
        TypeError: it is none; it may be an array of keys.
    """
    x = as_array(who, x)
    check_domain(who, x.aval, number_or_bool)
    return x


def scalar_array(value: Any, dtype: np.dtype, weak: bool = False) -> Array:
    """The number ``value`` as an array without dimensions."""
    if current() is ROOT:
        return from_host(np.asarray(dtypes.scalar(value, dtype)), weak)
    return convert(ops.full((), value, dtype), dtype, weak)


def literal(x: Any, value: Any) -> Any:
    """The constant ``value`` in the dtype of ``x``."""
    return ops.constant_like(x, value)


def over(x: Any, value: Any) -> Any:
    """x / value for a constant, rounded once.

    Where a compiler sees the constant, it multiplies by its inverse, which is rounded, too: then
    9 / 10 is not 0.9, and whoever counts on the last digit gets another one from ``jit``. So it
    sees what may be another number, for all that it knows.
    """
    return ops.div(x, ops.select(ops.ne(x, x), ops.stop_gradient(x), literal(x, value)))


def convert(x: Any, dtype: np.dtype, weak: bool = False) -> Array:
    """The array ``x`` in ``dtype``; ``x`` itself if it has that and is as weak already."""
    type = x.aval
    if type.dtype == dtype and type.weak == weak:
        return x
    if dtype == np.bool_ and type.dtype != dtype:
        return ops.ne(x, dtypes.scalar(0, type.dtype))
    if type.dtype in dtypes.COMPLEXES and dtype not in dtypes.COMPLEXES:
        x = ops.real(x)
    return ops.convert(x, dtype=dtype, weak=weak)


def inexact(who: str, x: Any) -> Array:
    """``x`` as an array of a floating-point or complex dtype."""
    x = as_array(who, x)
    type = x.aval
    return x if type.dtype in INEXACT else convert(x, dtypes.to_inexact(type.dtype), type.weak)


def boolean(who: str, x: Any) -> Array:
    """Whether ``x`` is not zero, as an array of bool."""
    return convert(as_array(who, x), np.dtype(bool))


def value_of(who: str, x: Any, remedy: str) -> np.ndarray:
    """The elements of ``x`` on the host, for results whose shape depends on them.

    Raises:
        ConcretizationTypeError: ``x`` is traced and its value not known; the message
            offers the ``remedy``.
    """
    if not is_known(x):
        error = ConcretizationTypeError(
            f"{who}: the shape of the result depends on the elements of {describe(x)}, of "
            f"which only shape and dtype are known while tracing; {remedy}, or call it "
            "outside jit, vmap and pmap"
        )
        raise coded(error, "shape of values", type=str(x.aval))
    return np.asarray(known_value(x))


# ---- several operands -----------------------------------------------------------------------


def _checked(dtype: np.dtype) -> Callable[[Any], np.generic]:
    return lambda value: dtypes.scalar(value, dtype)


_BOOL = np.dtype(bool)
# A Python number of this kind leaves the dtype of an array beside it as it is.
_LITERAL: dict[tuple[type, np.dtype], Callable[[Any], np.generic]] = {
    **{(float, d): d.type for d in INEXACT},
    **{(int, d): d.type for d in INEXACT},
    **{(complex, d): d.type for d in dtypes.COMPLEXES},
    **{(int, d): _checked(d) for d in INTEGERS},
    **{(bool, d): _checked(d) for d in (*INTEGERS, *INEXACT, _BOOL)},
}
# With enable_x64 alone: without it, arrays of 64 bits from elsewhere become ones of 32 bits.
_WIDE_LITERAL = {(kind, d): _LITERAL.pop((kind, d)) for kind, d in [*_LITERAL] if dtypes.is_wide(d)}


def _wide_literal(kind: type, dtype: np.dtype) -> Callable[[Any], np.generic] | None:
    return _WIDE_LITERAL.get((kind, dtype)) if settings().enable_x64 else None


def pair(who: str, x: Any, y: Any) -> tuple[Any, Any]:
    """``operands`` of two, where in the common cases there is nothing to do."""
    if isinstance(x, Array):
        if isinstance(y, Array):
            if x.aval is y.aval:
                return x, y
            if x.aval.dtype == y.aval.dtype and x.aval.weak == y.aval.weak:
                x, y = broadcast(who, [x, y])
                return x, y
        else:
            as_literal = _LITERAL.get((class_of(y), x.aval.dtype))
            if as_literal is None:
                as_literal = _wide_literal(class_of(y), x.aval.dtype)
            if as_literal is not None:
                return x, as_literal(y)
    elif isinstance(y, Array):
        as_literal = _LITERAL.get((class_of(x), y.aval.dtype))
        if as_literal is None:
            as_literal = _wide_literal(class_of(x), y.aval.dtype)
        if as_literal is not None:
            return as_literal(x), y
    x, y = operands(who, x, y)
    return x, y


def inexact_pair(who: str, x: Any, y: Any) -> tuple[Any, Any]:
    """Two operands of one floating-point or complex dtype and one shape."""
    known = x if isinstance(x, Array) else y
    if isinstance(known, Array) and known.aval.dtype in INEXACT:
        return pair(who, x, y)
    x, y = operands(who, x, y, to=dtypes.to_inexact)
    return x, y


def operands(who: str, *xs: Any, to: Callable[[np.dtype], np.dtype] | None = None) -> list[Any]:
    """``xs`` in the dtype they promote to, as arrays of one shape and scalar constants.

    At least one of the results is an array.

    Args:
        who: the function that asks, for errors.
        xs: arrays and scalars.
        to: maps the common dtype to the one that is wanted.

    Raises:
        TypeError: one is no array, or there is no common dtype.
        ValueError: the shapes do not broadcast.
    """
    return broadcast(who, promote(who, *xs, to=to))


def arrays(who: str, *xs: Any, to: Callable[[np.dtype], np.dtype] | None = None) -> list[Array]:
    """``operands`` with the constants, too, as arrays of the common shape; all or none are weak, so
    that of which the result is made does not matter."""
    values = operands(who, *xs, to=to)
    kinds = [x.aval for x in values if isinstance(x, Array)]
    like = kinds[0].update(weak=all(kind.weak for kind in kinds))
    return [convert(x, like.dtype, like.weak) if _is(x) else _repeated(x, like) for x in values]


def real(who: str, *xs: Any) -> list[Array]:
    """``arrays`` of one floating-point dtype.

    Raises:
        TypeError: an operand is complex.
    """
    values = arrays(who, *xs, to=dtypes.to_inexact)
    if dtypes.is_complex(values[0].dtype):
        raise TypeError(f"{who}: real operands are needed, got {values[0].aval}")
    return values


def _repeated(x: np.generic, like: ArrayType) -> Array:
    """The constant ``x`` as an array of the shape of another one, and as weak."""
    return ops.broadcast_to(scalar_array(x, x.dtype, like.weak), like.shape)


def promote(who: str, *xs: Any, to: Callable[[np.dtype], np.dtype] | None = None) -> list[Any]:
    """``xs`` in the dtype they promote to, each in its shape; at least one is an array."""
    values = [operand(who, x) for x in xs]
    kinds = [kind_of(x) for x in values]
    dtype, weak = lattice.promote(*kinds)
    if to is not None:
        dtype = to(dtype)
    # The rules of primitives derive weakness from their operands: one strong array is enough.
    strengthen = not weak and all(w for x, (_, w) in zip(values, kinds, strict=True) if _is(x))
    out: list[Any] = []
    for x in values:
        if not _is(x):
            out.append(dtypes.scalar(x, dtype))
        elif x.aval.dtype != dtype or strengthen:
            out.append(convert(x, dtype, weak))
        else:
            out.append(x)
    if not any(map(_is, out)):
        out[0] = scalar_array(out[0], dtype, weak)
    return out


def _is(x: Any) -> bool:
    return isinstance(x, Array)


def promote_arrays(who: str, xs: Any, dtype: DTypeLike | None = None) -> list[Array]:
    """``xs`` as arrays of ``dtype``, by default of the one they promote to."""
    arrays = [as_array(who, x) for x in xs]
    if dtype is not None:
        return [convert(x, dtypes.requested(dtype)) for x in arrays]
    common, weak = lattice.promote(*(kind_of(x) for x in arrays))
    return [convert(x, common, weak) for x in arrays]


def promote_inexact(who: str, xs: Any) -> list[Array]:
    """``xs`` as arrays of the floating-point or complex dtype to which they promote.

    Integers are converted at once: that to which they promote need not hold them, as int32 those
    of uint32.
    """
    arrays = [as_array(who, x) for x in xs]
    common, weak = lattice.promote(*(kind_of(x) for x in arrays))
    return [convert(x, dtypes.to_inexact(common), weak) for x in arrays]


# ---- shapes ---------------------------------------------------------------------------------


def broadcast(who: str, xs: list[Any]) -> list[Any]:
    """The arrays among ``xs`` repeated to their common shape; scalars as they are."""
    shapes = {x.aval.shape for x in xs if isinstance(x, Array)}
    if len(shapes) == 1:
        return xs
    check_ranks(who, shapes)
    return repeated(who, xs)


def repeated(who: str, xs: list[Any]) -> list[Any]:
    """``broadcast``, whatever ``numpy_rank_promotion`` says."""
    shapes = {x.aval.shape for x in xs if isinstance(x, Array)}
    if len(shapes) == 1:
        return xs
    shape = common_shape(who, *shapes)
    return [ops.broadcast_to(x, shape) if isinstance(x, Array) else x for x in xs]


def check_ranks(who: str, shapes: Iterable[tuple[int, ...]]) -> None:
    """Warn of shapes of different ranks, or refuse them, as the option says; scalars are none.

    It concerns what the user gave. What a function of ours aligns besides is its own matter.
    """
    if settings().numpy_rank_promotion == "allow" or len({len(s) for s in shapes if s}) < 2:
        return
    arguments = {tuple(getattr(x, "shape", ())) for x in arguments_of_library()}
    ranked = sorted((s for s in arguments.intersection(shapes) if s), key=len)
    if len({len(s) for s in ranked}) < 2:
        return
    refused = settings().numpy_rank_promotion == "raise"
    could = (
        f"could not be broadcast together, at {user_location()}"
        if refused
        else "had to be broadcast together"
    )
    message = (
        f"{who}: shapes {' and '.join(map(str, ranked))}, which have different ranks, {could} "
        f"(numpy_rank_promotion is {settings().numpy_rank_promotion!r}); "
        "reshape one of them, as in x[None]"
    )
    if refused:
        raise ShapeError(message)
    warn_user(f"Following NumPy automatic rank promotion for {message}")  # filters look for that


def as_shape(who: str, shape: Any) -> tuple[int, ...]:
    """``shape``, an integer or a sequence of them, as a tuple of Python ints.

    Raises:
        TypeError: an entry is no integer.
        ValueError: an entry is negative.
    """
    entries = shape if isinstance(shape, SEQUENCE) else shape_entries(shape)
    out = tuple([s if type(s) is int else _length(who, s) for s in entries])
    check_lengths(who, out)
    return out


def shape_entries(shape: Any) -> tuple[Any, ...]:
    """What ``shape`` lists, whatever that is; itself if it lists nothing."""
    if isinstance(shape, (NDARRAY, Array)):
        if shape.ndim != 1:
            return (shape,)
        return tuple(cast(Iterable[Any], np.asarray(shape)))  # stubs of NumPy differ in its items
    return tuple(shape) if hasattr(shape, "__iter__") else (shape,)


def _length(who: str, s: Any) -> int:
    if isinstance(s, (float, complex, str)) or not hasattr(s, "__index__"):
        raise TypeError(
            f"{who}: the lengths in a shape must be integers, got {brief(s)} of type "
            f"{type(s).__name__}"
        )
    return length(s)


def dim(who: str, axis: Any, x: Any) -> int:
    """``axis`` of ``x`` as a position from 0."""
    return ops.dimension(who, axis, typeof(x).ndim)


def dims(who: str, axis: Any, x: Any) -> tuple[int, ...]:
    """``axis``, one or several or None for all, of ``x`` as positions from 0."""
    ndim = typeof(x).ndim
    return tuple(range(ndim)) if axis is None else ops.dimensions(who, axis, ndim)


def no_out(who: str, out: Any, where: Any = None) -> None:
    """Raise TypeError if ``out`` or ``where``, there for NumPy's callers, is used."""
    if where is not None:
        raise TypeError(f"{who}: where must be None; use jnp.where on the result")
    if out is not None:
        raise TypeError(f"{who}: arrays are immutable, so out must be None; use the result")
