"""Arrays from data, and arrays of zeros, ones, ranges, diagonals and grids.

Arrays that a rule describes are computed where they are needed: under a transformation they
become operations of the program, not constants captured by it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from phalanx import primitives as ops
from phalanx.base import dtypes, lattice, lengths
from phalanx.base.dtypes import INTEGERS
from phalanx.base.errors import ShapeError
from phalanx.base.extended import is_key
from phalanx.base.kinds import SEQUENCE
from phalanx.base.lengths import Length, integer
from phalanx.base.numpy_kinds import GENERIC, NDARRAY
from phalanx.base.source import user_location
from phalanx.core.types import SCALARS, Array, ShapeLike
from phalanx.lax.layout import in_place, sharding_like, takes_out_sharding
from phalanx.numpy.arithmetic import literal
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
from phalanx.run.dlpack import import_dlpack
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
        out_sharding: how the result lies over devices, as a ``NamedSharding`` or a ``P`` on the
            mesh that is set; None: the compiler decides.

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
        out_sharding: how the result lies over devices, as a ``NamedSharding`` or a ``P`` on the
            mesh that is set; None: the compiler decides.

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


def load(file: Any, **options: Any) -> Any:
    """The array in a ``.npy`` file, or in every entry of an ``.npz`` file, as a dict.

    Args:
        file: the path of a file, or a file that is open.
        options: what NumPy's function of this name takes besides.

    Returns:
        An array, or a dict of arrays by name; bfloat16 for elements of two bytes without a dtype,
        as which NumPy stores these.

    Raises:
        ValueError: the file is no such file, or not whole, or holds what is no array.
        TypeError: it holds an array of a dtype that is none here.

    >>> import io
    >>> jnp.save(file := io.BytesIO(), jnp.arange(3))
    >>> _ = file.seek(0)
    >>> print(jnp.load(file))
    [0 1 2]
    """
    try:
        content: Any = np.load(file, **options)
        if isinstance(content, np.lib.npyio.NpzFile):
            with content:
                parts = {name: _entry(name, content[name]) for name in content.files}
                return {name: from_host(part) for name, part in parts.items()}
        part = _entry("its content", content)
    except (OSError, TypeError):  # there is no such file, or what is given is none
        raise
    except Exception as e:  # whatever NumPy, and what it reads with, make of damaged bytes
        reason = str(e) or type(e).__name__
        raise ValueError(
            f"load: {file!r} is no .npy or .npz file that is whole: {reason}, at {user_location()}"
        ) from None
    return from_host(part)


def _entry(name: str, content: Any) -> Any:
    """An array of a file.

    Raises:
        ValueError: it is something else.
    """
    if not isinstance(content, np.ndarray):
        raise ValueError(f"{name} is no array, but of type {type(content).__name__}")
    return _of_words(content)


def _of_words(data: Any) -> Any:
    """The array, of bfloat16 where a file has two bytes for each element: NumPy has no name for it.

    Other dtypes of that kind have one byte, and a file does not tell them apart.
    """
    return data.view(dtypes.BFLOAT16) if data.dtype == "V2" else data


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


def frombuffer(buffer: Any, dtype: DTypeLike = float, count: int = -1, offset: int = 0) -> Array:
    """The bytes of ``buffer`` read as a vector of ``dtype``.

    Args:
        buffer: bytes, or an object with the buffer protocol.
        dtype: the dtype in which the numbers are read; that of a Python float is float64.
        count: how many numbers to read; -1 for all.
        offset: at which byte to begin.

    Returns:
        A vector of ``dtype``, with 64 bits reduced to 32.

    >>> print(jnp.frombuffer(b"abc", dtype="uint8"))
    [97 98 99]
    """
    return from_host(np.frombuffer(buffer, np.dtype(dtype), count, offset))


def fromiter(iter: Any, dtype: DTypeLike, count: int = -1) -> Array:
    """The numbers that ``iter`` yields, as a vector of ``dtype``.

    Args:
        iter: an iterable of numbers.
        dtype: the dtype of the result.
        count: how many numbers to read; -1 for all.

    Returns:
        A vector of ``dtype``, with 64 bits reduced to 32.

    >>> print(jnp.fromiter((i * i for i in range(4)), dtype=int))
    [0 1 4 9]
    """
    return from_host(np.fromiter(iter, np.dtype(dtype), count))


def fromfile(
    file: Any, dtype: DTypeLike = float, count: int = -1, sep: str = "", offset: int = 0
) -> Array:
    """The numbers in a file, as NumPy's function of this name reads them.

    Args:
        file: the path of a file, or a file that is open.
        dtype: the dtype in which the numbers are read; that of a Python float is float64.
        count: how many numbers to read; -1 for all.
        sep: what stands between numbers in a file of text; empty for a file of bytes.
        offset: at which byte to begin.

    Returns:
        A vector of ``dtype``, with 64 bits reduced to 32.

    Raises:
        TypeError: ``file`` is an array.

    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     np.arange(3, dtype="int32").tofile(file.name)
    ...     print(jnp.fromfile(file.name, dtype="int32"))
    [0 1 2]
    """
    if isinstance(file, Array):
        raise TypeError(f"fromfile: the name of a file, or an open one, is needed, got {file.aval}")
    return from_host(np.fromfile(file, np.dtype(dtype), count, sep=sep, offset=offset))


def fromstring(string: str, dtype: DTypeLike = float, count: int = -1, *, sep: str) -> Array:
    """The numbers written in ``string``, separated by ``sep``, as a vector of ``dtype``.

    Args:
        string: the text.
        dtype: the dtype in which the numbers are read; that of a Python float is float64.
        count: how many numbers to read; -1 for all.
        sep: what stands between numbers.

    Returns:
        A vector of ``dtype``, with 64 bits reduced to 32.

    >>> print(jnp.fromstring("1 2 3", dtype=int, sep=" "))
    [1 2 3]
    """
    return from_host(np.fromstring(string, np.dtype(dtype), count, sep=sep))


def from_dlpack(x: Any, *, device: Any = None, copy: bool | None = None) -> Array:
    """An array of another library, handed over by the DLPack protocol.

    What lies on a GPU stays there. It is copied, since arrays here never change, unless ``copy`` is
    False.

    Args:
        x: an array with the methods ``__dlpack__`` and ``__dlpack_device__``.
        device: where it is to lie; default where it lies, or for an array of the host's memory the
            first device.
        copy: False asks for the memory of ``x`` itself, which nobody may write from then on.

    Returns:
        An array of the shape and dtype of what is given.

    Raises:
        TypeError: ``x`` does not speak the protocol.
        BufferError: its device or its dtype is not here; or ``copy`` is False and its memory cannot
            be shared: it is to be on another device or in another dtype, or has not the alignment
            or the order of dimensions that the runtime needs.

    >>> print(jnp.from_dlpack(np.arange(3)))
    [0 1 2]
    """
    if not isinstance(x, Array) and not hasattr(x, "__dlpack__"):
        raise TypeError(
            f"from_dlpack: an array with a method __dlpack__ is needed, got {x!r} of type "
            f"{type(x).__name__}; see jnp.asarray"
        )
    dtypes.refuse_masked(x)
    if isinstance(x, Array):
        return on_device(array(x, copy=bool(copy)), device)
    imported = import_dlpack(x, shared=copy is False)
    placed = on_device(imported, device)
    if copy is False and placed.devices() != imported.devices():
        raise BufferError(
            f"from_dlpack: the array lies on {imported.device}, and its memory cannot be "
            f"shared with {device}, at {user_location()}; leave copy=False out, or the device"
        )
    return placed


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
        out_sharding: how the result lies over devices, as a ``NamedSharding`` or a ``P`` on the
            mesh that is set; None: the compiler decides.

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
        out_sharding: how the result lies over devices, as a ``NamedSharding`` or a ``P`` on the
            mesh that is set; None: the compiler decides.

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
        out_sharding: how the result lies over devices, as a ``NamedSharding`` or a ``P`` on the
            mesh that is set; None: the compiler decides.

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
        out_sharding: how the result lies over devices, as a ``NamedSharding`` or a ``P`` on the
            mesh that is set; None: the compiler decides.

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
        out_sharding: how the result lies over devices, as a ``NamedSharding`` or a ``P`` on the
            mesh that is set; None: as ``a``.

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
        out_sharding: how the result lies over devices, as a ``NamedSharding`` or a ``P`` on the
            mesh that is set; None: as ``a``.

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
        out_sharding: how the result lies over devices, as a ``NamedSharding`` or a ``P`` on the
            mesh that is set; None: as ``a``.

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


# ---- ranges ---------------------------------------------------------------------------------


@takes_out_sharding
def arange(
    start: ArrayLike,
    stop: ArrayLike | None = None,
    step: ArrayLike | None = None,
    dtype: DTypeLike | None = None,
    *,
    device: Any = None,
    out_sharding: Any = None,
) -> Array:
    """Evenly spaced numbers: start, start + step, ... up to, without, stop; or 0, 1, ... below
    the only argument.

    Args:
        start: the first number; if it is the only one given, the end, and the first is 0.
        stop: the end, which is not in the result.
        step: the difference of neighbours; default 1.
        dtype: the dtype of the result; None for that of the numbers.
        device: a device or a sharding: where the result lies; None for the default device.
        out_sharding: how the result lies over devices, as a ``NamedSharding`` or a ``P`` on the
            mesh that is set; None: the compiler decides.

    Returns:
        A vector of length ceil((stop - start) / step).

    Raises:
        ConcretizationTypeError: an argument is traced; the length must be known.

    >>> print(jnp.arange(4), jnp.arange(2, 10, 3))
    [0 1 2 3] [2 5 8]
    """
    bounds = [x for x in (start, stop, step) if x is not None]
    if stop is None:
        start, stop = 0, start
    first, last, by = map(_number, (start, stop, 1 if step is None else step))
    if by == 0:
        raise ValueError("arange: step must not be 0")
    kind = lattice.result_type(*bounds) if dtype is None else dtypes.requested(dtype)
    if all(isinstance(x, (int, Length)) for x in (first, last, by)):
        count = lengths.count(first, last, by)
    else:
        count = max(0, math.ceil((last - first) / by))
    return created_on(device, _range, first, by, count, kind)


def _number(x: Any) -> Any:
    if isinstance(x, (Array, NDARRAY, GENERIC)):
        x = x.item()
    if isinstance(x, Length):
        return x
    if not isinstance(x, (bool, int, float)):
        raise TypeError(f"arange: start, stop and step must be real numbers, got {x!r}")
    return int(x) if isinstance(x, (bool, int)) else x


_EXACT = 2**24  # up to here float32 represents every integer


def _range(first: Any, by: Any, count: int, dtype: np.dtype) -> Any:
    if lengths.symbolic((first, by, count)):
        return _counted(first, by, count, dtype)
    integral = first == int(first) and by == int(by)
    largest = max(abs(first), abs(first + by * count))
    exact = dtype in INTEGERS or (dtype.name in ("float32", "float64") and largest < _EXACT)
    if not (integral and exact):
        return from_host(np.asarray(first + by * np.arange(count)).astype(dtype))
    return _counted(int(first), int(by), count, dtype)


def _counted(first: Any, by: Any, count: Any, dtype: np.dtype) -> Any:
    """``count`` numbers in steps of ``by``."""
    out = ops.iota(dtype=dtype, shape=(count,), dim=0)
    if by != 1:
        out = ops.mul(out, literal(out, by))
    return out if first == 0 else ops.add(out, literal(out, first))
