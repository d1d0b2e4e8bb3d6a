"""Arrays from the bytes, files, iterators and functions that hold their elements."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from phalanx.base import dtypes
from phalanx.base.source import user_location
from phalanx.core.types import Array
from phalanx.numpy.creation import array, on_device
from phalanx.numpy.index_arrays import indices
from phalanx.numpy.promotion import DTypeLike, from_host
from phalanx.run.dlpack import import_dlpack


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


def fromfunction(
    function: Callable[..., Any], shape: Any, *, dtype: DTypeLike = float, **kwargs: Any
) -> Any:
    """``function`` of the indices of an array of ``shape``, one array of them per dimension.

    Args:
        function: a function of as many arrays as there are dimensions, the coordinates.
        shape: the shape of the result: a tuple of integers, or an integer.
        dtype: the dtype of the indices that ``function`` gets.
        kwargs: keyword arguments of the function.

    Returns:
        What ``function`` returns.

    Raises:
        ValueError: a length in ``shape`` is negative.

    >>> print(jnp.fromfunction(lambda i, j: 10 * i + j, (2, 3), dtype=int))
    [[ 0  1  2]
     [10 11 12]]
    """
    return function(*indices(shape, dtype), **kwargs)
