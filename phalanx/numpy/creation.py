"""Arrays from numbers and lists, and arrays of zeros, ones and other constants.

Arrays that a rule describes are computed where they are needed: under a transformation they
become operations of the program, not constants captured by it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from phalanx import primitives as ops
from phalanx.base import dtypes, lattice
from phalanx.base.dtypes import INTEGERS
from phalanx.base.errors import ShapeError
from phalanx.base.extended import is_key
from phalanx.base.kinds import SEQUENCE
from phalanx.base.lengths import integer
from phalanx.base.numpy_kinds import GENERIC, NDARRAY
from phalanx.base.source import user_location
from phalanx.core.types import SCALARS, Array, ShapeLike
from phalanx.lax.layout import in_place, sharding_like, takes_out_sharding
from phalanx.numpy.promotion import (
    ArrayLike,
    DTypeLike,
    as_array,
    as_shape,
    convert,
    from_host,
    is_python_scalar,
    kind_of,
    operand,
    scalar_array,
)
from phalanx.primitives.vary import varying_like
from phalanx.run.put import device_put
from phalanx.spmd.constraint import sharding_for
from phalanx.spmd.named import PartitionSpec
from phalanx.spmd.sharding import Sharding, SingleDeviceSharding

# ---- arrays from data -----------------------------------------------------------------------


@takes_out_sharding
def array(
    object: Any,
    dtype: DTypeLike | None = None,
    copy: bool = True,
    order: str | None = "K",
    ndmin: int = 0,
    *,
    device: Any = None,
    out_sharding: Any = None,
) -> Array:
    """``object`` as an array: a number, an array, or nested lists of them.

    A Python number alone gives a weakly typed array, whose dtype yields to others.

    Args:
        object: the data.
        dtype: of the result; by default that of the data, with 64 bits reduced to 32.
        copy: whether the result must not share memory with an array given.
        order: the memory layout in NumPy; here it has no meaning.
        ndmin: the least number of dimensions; missing ones are put in front.
        device: a device or a sharding, where the array shall lie.
        out_sharding: the ``NamedSharding`` or ``P`` of the result; None: the compiler decides.

    Returns:
        An array; of the dtype of the data, or of ``dtype``.

    Raises:
        TypeError: the data is no number, as for strings.
        ValueError: nested lists have different lengths.
        ShapeError: arrays in a list have different shapes.
        OverflowError: an integer does not fit the dtype.

    >>> print(jnp.array([[1, 2], [3, 4]]))
    [[1 2]
     [3 4]]
    """
    out = _from_data(object, dtype)
    if copy and out is object:
        out = ops.convert(out, dtype=out.aval.dtype, weak=out.aval.weak)
    if type(ndmin) is not int:
        ndmin = integer("array", "ndmin", ndmin)
    if ndmin > out.ndim:
        out = ops.reshape(out, shape=(1,) * (ndmin - out.ndim) + out.shape)
    return on_device(out, device)


@takes_out_sharding
def asarray(
    a: Any,
    dtype: DTypeLike | None = None,
    order: str | None = None,
    *,
    copy: bool | None = None,
    device: Any = None,
    out_sharding: Any = None,
) -> Array:
    """``a`` as an array; ``a`` itself if it is one already. See ``array``.

    Args:
        a: an array, or a number.
        dtype: of the result; by default that of the data, with 64 bits reduced to 32.
        order: the memory layout in NumPy; here it has no meaning.
        copy: whether the result must not share memory with an array given.
        device: a device or a sharding, where the array shall lie.
        out_sharding: the ``NamedSharding`` or ``P`` of the result; None: the compiler decides.

    Returns:
        An array; of the dtype of the data, or of ``dtype``.

    >>> print(jnp.asarray([1.0, 2.0]))
    [1. 2.]
    """
    return array(a, dtype, bool(copy), device=device)


def copy(a: ArrayLike, order: str | None = None) -> Array:
    """A copy of ``a``, which outlives the deletion or donation of ``a``.

    Args:
        a: an array, or a number.
        order: has no meaning: how elements lie is left to the compiler.

    Returns:
        An array of the shape and dtype of ``a``.

    >>> print(jnp.copy(jnp.arange(3)))
    [0 1 2]
    """
    return array(a)


def astype(
    x: ArrayLike, dtype: DTypeLike | None, /, *, copy: bool = False, device: Any = None
) -> Array:
    """``x`` in another dtype: fractions are cut off, numbers that are not 0 are True.

    None is the dtype of a float, as in NumPy.

    Args:
        x: an array, or a number.
        dtype: the dtype of the result.
        copy: whether the result must not share memory with an array of this dtype.
        device: a device or a sharding: where the result lies; None for the default device.

    Returns:
        An array of the shape of ``x``.

    >>> print(jnp.astype(jnp.array([-1.5, 0.0, 2.5]), int))
    [-1  0  2]
    """
    wanted = dtypes.requested(float if dtype is None else dtype)
    out = convert(as_array("astype", x), wanted)
    return on_device(array(out) if copy and out is x else out, device)


def on_device(x: Any, device: Any) -> Any:
    """The array ``x`` on a device or in a sharding; None leaves it where it is."""
    if device is None:
        return x
    is_sharding = isinstance(device, (Sharding, PartitionSpec))
    if not is_sharding and not hasattr(device, "platform"):
        by_name = f"; phalanx.devices({device!r})[0] is one" if isinstance(device, str) else ""
        raise TypeError(
            "device: one of phalanx.devices(), or a sharding, is needed, got "
            f"{device!r} of type {type(device).__name__}, at {user_location()}{by_name}"
        )
    to = sharding_for(device, "device") if is_sharding else SingleDeviceSharding(device)
    return device_put(x, to=to, back=None)


def created_on(device: Any, make: Callable[..., Any], *args: Any) -> Any:
    """``make(*args)`` on a device or in a sharding, of which each device makes its part."""
    if isinstance(device, (Sharding, PartitionSpec)):
        return in_place(device, make, args)
    return on_device(make(*args), device)


def _from_data(data: Any, dtype: DTypeLike | None) -> Any:
    if data is None:
        raise TypeError("array: data is needed, got None; use jnp.nan for a missing number")
    wanted = None if dtype is None else dtypes.requested(dtype)
    if isinstance(data, SEQUENCE):
        return _from_lists(data, wanted)
    if getattr(data, "__jax_array__", None) is not None:
        data = data.__jax_array__()
    if isinstance(data, Array):
        return data if wanted is None else convert(data, wanted)
    if is_python_scalar(data):
        kind, weak = kind_of(data)
        if wanted is None:
            return scalar_array(data, kind, weak)
        number = _truncated(data, wanted)
        if isinstance(number, int):
            dtypes.check_range(number, wanted)
        return scalar_array(number, wanted)
    if isinstance(data, GENERIC) and data.dtype in dtypes.ALL:
        return scalar_array(data, wanted or dtypes.canonical(data.dtype))
    dtypes.refuse_masked(data)
    return _on_host(np.asarray(data), wanted)


def _truncated(number: Any, dtype: np.dtype) -> Any:
    return int(number) if dtype in INTEGERS and isinstance(number, float) else number


def _is_number(x: Any) -> bool:
    if isinstance(x, (GENERIC, NDARRAY)):
        return not x.ndim and x.dtype in dtypes.ALL
    return type(x) in SCALARS


def _of_objects(value: np.ndarray, dtype: np.dtype | None) -> np.ndarray:
    """Numbers of which NumPy keeps the objects: no dtype of its own holds an integer there, or
    them all, as bfloat16 beside others.

    Raises:
        OverflowError: neither does the one that is wanted, or that the numbers have by themselves.
    """
    if dtype is None:
        kinds: set[Any] = set(map(type, value.flat))
        dtype = dtypes.canonical(np.result_type(*kinds))
    if dtype in INTEGERS:
        dtypes.check_range(max(value.flat, key=abs), dtype, "array")
    return value.astype(dtype)


def _on_host(value: np.ndarray, dtype: np.dtype | None) -> Any:
    if value.dtype not in dtypes.ALL:
        kind = type(value.flat[0]).__name__ if value.size else "none"
        raise TypeError(
            f"array: numbers are needed, got elements of type {kind.rstrip('_')} (dtype "
            f"{value.dtype}); text, dates and Python objects have no place on a device"
        )
    if is_key(dtype):
        raise TypeError(f"array: numbers cannot become {dtype}; make keys with random.key(seed)")
    return from_host(value if dtype is None else dtypes.as_held(value, dtype))


def _from_lists(data: Sequence[Any], dtype: np.dtype | None) -> Any:
    leaves = list(_leaves(data))
    for x in leaves:
        dtypes.refuse_masked(x)
    classes: set[type[Any]] = set(map(type, leaves))
    if any(issubclass(c, Array) or hasattr(c, "__jax_array__") for c in classes):
        if dtype is None:
            dtype = lattice.promote(*(kind_of(operand("array", x)) for x in leaves))[0]
        return _stacked(data, dtype)
    if dtype is None and not all(is_python_scalar(x) for x in leaves):
        kinds = [x for x in leaves if isinstance(x, (NDARRAY, GENERIC, *SCALARS))]
        dtype = lattice.result_type(*kinds) if kinds else None
    try:
        value = np.array(data)
    except ValueError as e:
        raise ValueError(f"array: the nested lists do not form an array: {e}") from None
    if value.dtype == object and all(map(_is_number, leaves)):
        value = _of_objects(value, dtype)
    return _on_host(value, _check_range(value, dtype))


def _check_range(value: np.ndarray, dtype: np.dtype | None) -> np.dtype | None:
    """Refuse integers that the dtype cannot hold; returns ``dtype``."""
    if not value.size or value.dtype not in INTEGERS:
        return dtype
    wanted = dtypes.canonical(value.dtype) if dtype is None else dtype
    if wanted in INTEGERS and wanted != value.dtype:
        for extreme in (value.min(), value.max()):
            dtypes.check_range(int(extreme), wanted, "array")
    return dtype


def _leaves(data: Any) -> Iterator[Any]:
    for x in data:
        if isinstance(x, (list, tuple)):
            yield from _leaves(x)
        else:
            yield x


def _stacked(data: Any, dtype: np.dtype) -> Any:
    if not isinstance(data, SEQUENCE):
        return convert(as_array("array", data), dtype)
    parts = [_stacked(x, dtype) for x in data]
    if not parts:
        return ops.full((0,), 0, dtype)
    if any(p.shape != parts[0].shape for p in parts):
        shapes = ", ".join(str(p.aval) for p in parts)
        raise ShapeError(
            f"array: the entries of a list must have one shape, got {shapes}; see "
            "jnp.concatenate for arrays of different lengths"
        )
    return ops.stack(parts, 0)


# ---- constant arrays ------------------------------------------------------------------------


def _filled(who: str, shape: Any, value: Any, dtype: DTypeLike | None, device: Any) -> Any:
    kind = dtypes.default_float() if dtype is None else dtypes.requested(dtype)
    return created_on(device, ops.full, as_shape(who, shape), value, kind)


@takes_out_sharding
def zeros(
    shape: ShapeLike,
    dtype: DTypeLike | None = None,
    *,
    device: Any = None,
    out_sharding: Any = None,
) -> Array:
    """An array of zeros of ``shape``, by default of float32.

    Args:
        shape: the shape of the result: a tuple of integers, or an integer.
        dtype: the dtype of the result; None for float32, or float64 under ``enable_x64``.
        device: a device or a sharding: where the result lies; None for the default device.
        out_sharding: the ``NamedSharding`` or ``P`` of the result; None: the compiler decides.

    Returns:
        An array of that shape, by default of float32.

    Raises:
        ValueError: a length in ``shape`` is negative.

    >>> print(jnp.zeros(3))
    [0. 0. 0.]
    """
    return _filled("zeros", shape, 0, dtype, device)


@takes_out_sharding
def ones(
    shape: ShapeLike,
    dtype: DTypeLike | None = None,
    *,
    device: Any = None,
    out_sharding: Any = None,
) -> Array:
    """An array of ones of ``shape``, by default of float32.

    Args:
        shape: the shape of the result: a tuple of integers, or an integer.
        dtype: the dtype of the result; None for float32, or float64 under ``enable_x64``.
        device: a device or a sharding: where the result lies; None for the default device.
        out_sharding: the ``NamedSharding`` or ``P`` of the result; None: the compiler decides.

    Returns:
        An array of that shape, by default of float32.

    Raises:
        ValueError: a length in ``shape`` is negative.

    >>> print(jnp.ones((2, 2), dtype=int))
    [[1 1]
     [1 1]]
    """
    return _filled("ones", shape, 1, dtype, device)


@takes_out_sharding
def empty(
    shape: ShapeLike,
    dtype: DTypeLike | None = None,
    *,
    device: Any = None,
    out_sharding: Any = None,
) -> Array:
    """An array of ``shape`` whose elements are unspecified, here 0.

    Args:
        shape: the shape of the result: a tuple of integers, or an integer.
        dtype: the dtype of the result; None for float32, or float64 under ``enable_x64``.
        device: a device or a sharding: where the result lies; None for the default device.
        out_sharding: the ``NamedSharding`` or ``P`` of the result; None: the compiler decides.

    Returns:
        An array of that shape, by default of float32.

    Raises:
        ValueError: a length in ``shape`` is negative.

    >>> jnp.empty((2, 3)).shape
    (2, 3)
    """
    return _filled("empty", shape, 0, dtype, device)


@takes_out_sharding
def full(
    shape: ShapeLike,
    fill_value: ArrayLike,
    dtype: DTypeLike | None = None,
    *,
    device: Any = None,
    out_sharding: Any = None,
) -> Array:
    """An array of ``shape`` with ``fill_value`` everywhere.

    Args:
        shape: the shape of the result: a tuple of integers, or an integer.
        fill_value: the element, a number or an array that broadcasts to the shape.
        dtype: the dtype of the result; None for that of ``fill_value``.
        device: a device or a sharding: where the result lies; None for the default device.
        out_sharding: the ``NamedSharding`` or ``P`` of the result; None: the compiler decides.

    Returns:
        An array of that shape, by default of the dtype of ``fill_value``.

    Raises:
        ValueError: a length in ``shape`` is negative.

    >>> print(jnp.full(3, 7))
    [7 7 7]
    """
    return created_on(device, _full, "full", as_shape("full", shape), fill_value, dtype)


def _full(who: str, shape: tuple[int, ...], value: Any, dtype: DTypeLike | None) -> Any:
    value = operand(who, value)
    kind, weak = kind_of(value)
    if dtype is not None:
        kind, weak = dtypes.requested(dtype), False
    if isinstance(value, Array):
        return ops.broadcast_to(convert(value, kind, weak), shape)
    return convert(ops.full(shape, _truncated(value, kind), kind), kind, weak)


@takes_out_sharding
def zeros_like(
    a: Any,
    dtype: DTypeLike | None = None,
    shape: Any = None,
    *,
    device: Any = None,
    out_sharding: Any = None,
) -> Array:
    """An array of zeros, of the shape and dtype of ``a`` unless others are given.

    It lies over devices as ``a``, if that was placed and has the same shape.

    Args:
        a: an array, or a number.
        dtype: the dtype of the result; None for that of ``a``.
        shape: the shape of the result; None for that of ``a``.
        device: a device or a sharding: where the result lies; None for the default device.
        out_sharding: the ``NamedSharding`` or ``P`` of the result; None: as ``a``.

    Returns:
        An array of the shape and dtype of ``a``, unless others are given.

    Raises:
        ValueError: a length in ``shape`` is negative.

    >>> print(jnp.zeros_like(jnp.arange(3)))
    [0 0 0]
    """
    return _like("zeros_like", a, 0, dtype, shape, device)


@takes_out_sharding
def ones_like(
    a: Any,
    dtype: DTypeLike | None = None,
    shape: Any = None,
    *,
    device: Any = None,
    out_sharding: Any = None,
) -> Array:
    """An array of ones, of the shape and dtype of ``a`` unless others are given.

    It lies over devices as ``a``, if that was placed and has the same shape.

    Args:
        a: an array, or a number.
        dtype: the dtype of the result; None for that of ``a``.
        shape: the shape of the result; None for that of ``a``.
        device: a device or a sharding: where the result lies; None for the default device.
        out_sharding: the ``NamedSharding`` or ``P`` of the result; None: as ``a``.

    Returns:
        An array of the shape and dtype of ``a``, unless others are given.

    Raises:
        ValueError: a length in ``shape`` is negative.

    >>> print(jnp.ones_like(jnp.arange(3)))
    [1 1 1]
    """
    return _like("ones_like", a, 1, dtype, shape, device)


def empty_like(
    prototype: Any, dtype: DTypeLike | None = None, shape: Any = None, *, device: Any = None
) -> Array:
    """Unspecified elements, here 0, with shape and dtype of ``prototype`` unless they are given.

    Args:
        prototype: an array, or anything with a shape and a dtype.
        dtype: the dtype of the result; None for that of ``prototype``.
        shape: the shape of the result; None for that of ``prototype``.
        device: a device or a sharding: where the result lies; None for the default device.

    Returns:
        An array of the shape and dtype of ``prototype``, unless others are given.

    Raises:
        ValueError: a length in ``shape`` is negative.

    >>> jnp.empty_like(jnp.arange(3)).shape
    (3,)
    """
    return _like("empty_like", prototype, 0, dtype, shape, device)


@takes_out_sharding
def full_like(
    a: Any,
    fill_value: ArrayLike,
    dtype: DTypeLike | None = None,
    shape: Any = None,
    *,
    device: Any = None,
    out_sharding: Any = None,
) -> Array:
    """An array with ``fill_value`` everywhere, of the shape and dtype of ``a`` unless given.

    It lies over devices as ``a``, if that was placed and has the same shape.

    Args:
        a: an array, or a number.
        fill_value: the element, a number or an array that broadcasts to the shape.
        dtype: the dtype of the result; None for that of ``a``.
        shape: the shape of the result; None for that of ``a``.
        device: a device or a sharding: where the result lies; None for the default device.
        out_sharding: the ``NamedSharding`` or ``P`` of the result; None: as ``a``.

    Returns:
        An array of the shape and dtype of ``a``, unless others are given.

    Raises:
        ValueError: the shapes do not fit, or a length in ``shape`` is negative.

    >>> print(jnp.full_like(jnp.arange(3), 7))
    [7 7 7]
    """
    return _like("full_like", a, fill_value, dtype, shape, device)


def _like(who: str, a: Any, value: Any, dtype: Any, shape: Any, device: Any) -> Any:
    if not (hasattr(a, "shape") and hasattr(a, "dtype")):  # what describes an array is enough
        a = operand(who, a)
    lengths = a.shape if isinstance(a, (Array, NDARRAY)) else tuple(getattr(a, "shape", ()))
    to_shape = lengths if shape is None else as_shape(who, shape)
    kind, weak = kind_of(a) if dtype is None else (dtypes.requested(dtype), False)
    spec = sharding_like(a, to_shape) if device is None else device
    return varying_like(created_on(spec, _full_like, who, to_shape, value, kind, weak), a)


def _full_like(who: str, shape: tuple[int, ...], value: Any, dtype: np.dtype, weak: bool) -> Any:
    return convert(_full(who, shape, value, dtype), dtype, weak)
