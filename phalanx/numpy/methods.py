"""Operators and methods of arrays: NumPy's, by the functions of this package.

They are put on the abstract class once, so arrays that hold data and the tracers that stand
for them inside transformations both have them.
"""

# What an array holds is private to users, not to its methods.
# pyright: reportPrivateUsage=false

from __future__ import annotations

import math
from collections.abc import Callable
from types import ModuleType
from typing import Any, NoReturn, cast

import numpy as np

from phalanx import primitives as ops
from phalanx.base import dtypes, jax_arrays
from phalanx.base.boundary import boundary, hide_frames, hiding
from phalanx.base.errors import ShardingTypeError
from phalanx.core.absent import install_absent
from phalanx.core.types import SCALARS, Array
from phalanx.lax.layout import takes_out_sharding
from phalanx.numpy import (
    arithmetic,
    bits,
    complex_numbers,
    creation,
    cumulative,
    extrema,
    indexing,
    logic,
    manipulation,
    matrices,
    products,
    reductions,
    rounding,
    searching,
    sorting,
    statistics,
)
from phalanx.numpy.at import At
from phalanx.numpy.promotion import convert, refuse
from phalanx.numpy.standard import in_version
from phalanx.numpy.subscripts import getitem
from phalanx.numpy.tiling import repeat
from phalanx.primitives.domains import check_domain, number_or_bool
from phalanx.run.array import DeviceArray
from phalanx.run.reading import read

_OPERANDS = (Array, *SCALARS, np.ndarray, np.generic)
_LISTS = (list, tuple, set, dict)


def _declined(symbol: str, other: Any) -> Any:
    """What Python gets that asks the other operand next, unless nobody could combine them."""
    if isinstance(other, _LISTS):
        _refuse(symbol, other)
    if jax_arrays.advice_on(other):
        refuse(symbol, other)
    return NotImplemented


def _refuse(symbol: str, other: Any) -> NoReturn:
    kind = cast(Any, type(other))
    way = "convert it with jnp.array, once"
    if issubclass(kind, dict):
        way = "take the arrays that are in it, one by one or with phalanx.tree.map"
    raise TypeError(f"{symbol}: an array does not combine with a {kind.__name__}; {way}")


def _operator(
    symbol: str, function: Callable[[Any, Any], Any]
) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """The methods for ``array symbol other`` and ``other symbol array``."""

    def operator(self: Any, other: Any) -> Any:
        try:
            if isinstance(other, _OPERANDS) or hasattr(other, "__jax_array__"):
                return function(self, other)
            return _declined(symbol, other)
        except Exception as error:
            hide_frames(error)
            raise

    def reflected(self: Any, other: Any) -> Any:
        try:
            if isinstance(other, _OPERANDS) or hasattr(other, "__jax_array__"):
                return function(other, self)
            return _declined(symbol, other)
        except Exception as error:
            hide_frames(error)
            raise

    return operator, reflected


_BINARY: dict[str, tuple[str, Callable[..., Any]]] = {
    "add": ("+", arithmetic.add),
    "sub": ("-", arithmetic.subtract),
    "mul": ("*", arithmetic.multiply),
    "truediv": ("/", arithmetic.true_divide),
    "floordiv": ("//", arithmetic.floor_divide),
    "mod": ("%", arithmetic.remainder),
    "divmod": ("divmod", arithmetic.divmod),
    "pow": ("**", arithmetic.power),
    "matmul": ("@", products.matmul),
    "and": ("&", bits.bitwise_and),
    "or": ("|", bits.bitwise_or),
    "xor": ("^", bits.bitwise_xor),
    "lshift": ("<<", bits.left_shift),
    "rshift": (">>", bits.right_shift),
}
_COMPARISONS: dict[str, tuple[str, Callable[..., Any]]] = {
    "eq": ("==", logic.equal),
    "ne": ("!=", logic.not_equal),
    "lt": ("<", logic.less),
    "le": ("<=", logic.less_equal),
    "gt": (">", logic.greater),
    "ge": (">=", logic.greater_equal),
}
_UNARY: dict[str, Callable[..., Any]] = {
    "neg": arithmetic.negative,
    "pos": arithmetic.positive,
    "abs": arithmetic.absolute,
    "invert": bits.bitwise_not,
}

# Functions whose first argument becomes ``self``.
_FUNCTIONS: tuple[Callable[..., Any], ...] = (
    extrema.clip,
    rounding.round,
    products.dot,
    complex_numbers.conj,
    complex_numbers.conjugate,
    reductions.all,
    reductions.any,
    extrema.argmax,
    extrema.argmin,
    cumulative.cumprod,
    cumulative.cumsum,
    extrema.max,
    extrema.min,
    reductions.prod,
    statistics.ptp,
    reductions.sum,
    repeat,
    sorting.argpartition,
    sorting.argsort,
    sorting.partition,
    sorting.searchsorted,
    sorting.sort,
    manipulation.ravel,
    manipulation.squeeze,
    manipulation.swapaxes,
    statistics.mean,
    statistics.std,
    statistics.var,
    matrices.diagonal,
    matrices.trace,
    indexing.choose,
    indexing.take,
)


def install(array: type, namespace: ModuleType) -> None:
    """Set the operators, methods and properties on the class ``array``, of this ``namespace``."""
    belong(array, namespace)
    for name, (symbol, function) in _BINARY.items():
        straight, reflected = _operator(symbol, function)
        _set(array, f"__{name}__", straight, function)
        _set(array, f"__r{name}__", reflected, function)
    for name, (symbol, function) in _COMPARISONS.items():
        _set(array, f"__{name}__", _operator(symbol, function)[0], function)
    for name, function in _UNARY.items():
        _set(array, f"__{name}__", hiding(_method(function)), function)
    for function in _FUNCTIONS:
        _set(array, function.__name__, boundary(_method(function)), function)
    for method in _METHODS:
        special = method.__name__.startswith("_")  # these are felt, and raise hardly ever
        setattr(array, method.__name__, method if special else boundary(method))
    for name, getter in _PROPERTIES.items():
        setattr(array, name, property(getter, doc=getter.__doc__))
    install_absent(array)
    array.conj = array.conjugate  # type: ignore[attr-defined]


def belong(array: type, namespace: ModuleType) -> None:
    """Let ``array.__array_namespace__`` give ``namespace``.

    It has the functions of the array API standard; who serves them under another name sets it anew.
    """

    def __array_namespace__(self: Any, *, api_version: str | None = None) -> ModuleType:
        """The module of functions for such arrays, named as in the array API standard.

        Raises:
            ValueError: ``api_version`` is none that is followed.
        """
        return in_version(namespace, api_version)

    array.__array_namespace__ = __array_namespace__  # type: ignore[attr-defined]


def _method(function: Callable[..., Any]) -> Callable[..., Any]:
    def method(self: Any, /, *args: Any, **kwargs: Any) -> Any:
        return function(self, *args, **kwargs)

    method.__name__, method.__wrapped__ = function.__name__, function  # type: ignore[attr-defined]
    return method


def _set(array: type, name: str, method: Callable[..., Any], function: Callable[..., Any]) -> None:
    method.__name__ = name
    method.__qualname__ = f"{array.__name__}.{name}"
    method.__doc__ = f"See ``phalanx.numpy.{function.__name__}``."
    method.__wrapped__ = function  # type: ignore[attr-defined]
    setattr(array, name, method)


# ---- methods of their own -------------------------------------------------------------------


def __getitem__(self: Any, index: Any) -> Any:
    """The part of the array that ``index`` names, as in NumPy; outside, the nearest element."""
    try:
        if type(self) is DeviceArray and self._sig.sharding.tiles and self._sig.type.spec is None:
            part = read(self, index)
            if part is not NotImplemented:
                return part
        return getitem(self, index)
    except Exception as error:
        if isinstance(error, ShardingTypeError):
            error.called_by("x[...]")
        hide_frames(error)
        raise


@hiding
def __setitem__(self: Any, index: Any, value: Any) -> NoReturn:
    """Arrays are immutable: use ``x = x.at[index].set(value)``."""
    raise TypeError(
        "arrays are immutable, so x[index] = value is not possible; use x = x.at[index].set(value)"
    )


@hiding
def __len__(self: Any) -> int:
    """The length of the first dimension."""
    if not self.aval.shape:
        raise TypeError("len() of an array without dimensions")
    return self.aval.shape[0]


@hiding
def __iter__(self: Any) -> Any:
    """The parts along the first dimension."""
    if not self.aval.shape:
        raise TypeError("iteration over an array without dimensions")
    return (self[i] for i in range(self.aval.shape[0]))


def __round__(self: Any, ndigits: int | None = None) -> Any:
    """See ``phalanx.numpy.round``."""
    rounded = rounding.round(self, ndigits or 0)
    whole = ndigits is None and dtypes.is_floating(self.aval.dtype)
    return astype(rounded, int) if whole else rounded


@takes_out_sharding
def reshape(
    self: Any, *shape: Any, order: str = "C", copy: bool | None = None, out_sharding: Any = None
) -> Any:
    """See ``phalanx.numpy.reshape``; the shape is one argument, or one argument per length.

    Args:
        *shape: the lengths, in a tuple or one after the other; one of them may be -1, for the rest.
        order: "C" for row-major order, "F" for column-major.
        copy: whether to copy; None: where it is needed.
        out_sharding: how the result lies over devices; None: the compiler decides.
    """
    return manipulation.reshape(self, shape[0] if len(shape) == 1 else shape, order)


def transpose(self: Any, *axes: Any) -> Any:
    """See ``phalanx.numpy.transpose``; the axes are one argument, or one argument each.

    Args:
        *axes: the dimensions in their new order, in a tuple or one after the other; none for
            backwards.
    """
    if not axes or axes[0] is None:
        return manipulation.transpose(self)
    return manipulation.transpose(self, axes[0] if len(axes) == 1 else axes)


def astype(self: Any, dtype: Any, copy: bool = False, device: Any = None) -> Any:
    """The elements in another dtype: fractions are cut off, numbers that are not 0 are True.

    Args:
        dtype: the dtype of the result.
        copy: whether the result must not share memory with an array of this dtype.
        device: a device or a sharding: where the result lies; None for where the array does.
    """
    return creation.astype(self, dtype, copy=copy, device=device)


def copy(self: Any) -> Any:
    """A copy, which outlives the deletion or donation of this array."""
    return ops.convert(self, dtype=self.aval.dtype, weak=self.aval.weak)


def clone(self: Any) -> Any:
    """The same as ``copy``."""
    return copy(self)


def to_device(self: Any, device: Any, *, stream: None = None) -> Any:
    """The array on a device, or in a sharding; ``stream`` has no meaning.

    Args:
        device: a device or a sharding.
        stream: must be None.
    """
    return creation.on_device(self, device)


def __contains__(self: Any, value: Any) -> bool:
    """Whether an element equals ``value``."""
    return bool(reductions.any(logic.equal(self, value)))


@takes_out_sharding
def flatten(self: Any, order: str = "C", *, out_sharding: Any = None) -> Any:
    """The elements as a vector; see ``phalanx.numpy.ravel``.

    Args:
        order: "C" for row-major order, "F" for column-major.
        out_sharding: how the result lies over devices; None: the compiler decides.
    """
    return manipulation.ravel(self, order)


def nonzero(self: Any, *, size: int | None = None, fill_value: Any = None) -> Any:
    """See ``phalanx.numpy.nonzero``."""
    return searching.nonzero(self, size=size, fill_value=fill_value)


def compress(
    self: Any,
    condition: Any,
    axis: int | None = None,
    *,
    out: None = None,
    size: int | None = None,
    fill_value: Any = 0,
) -> Any:
    """See ``phalanx.numpy.compress``."""
    return indexing.compress(condition, self, axis, size=size, fill_value=fill_value, out=out)


def byteswap(self: Any) -> Any:
    """The array whose elements have their bytes in the opposite order."""
    dtype = self.aval.dtype
    if dtype.itemsize == 1:
        return self
    if np.issubdtype(dtype, np.complexfloating):
        return ops.complex(byteswap(_real(self)), byteswap(_imag(self)))
    octets = ops.bitcast(self, dtype=np.dtype("uint8"))
    return ops.bitcast(ops.reverse(octets, dims=(self.aval.ndim,)), dtype=dtype)


def view(self: Any, dtype: Any = None, type: None = None) -> Any:
    """The bits of the array read as elements of another dtype.

    Args:
        dtype: the dtype in which the bits are read; None for that of the array.
        type: must be None: there are no other classes of arrays.
    """
    if isinstance(dtype, (int, tuple, list)):
        shape = f"{dtype}" if type is None else f"({dtype}, {type})"
        raise TypeError(f"view: {dtype!r} is no dtype; x.reshape({shape}) gives another shape")
    if type is not None:
        raise NotImplementedError(f"view: type must be None, got {type!r}")
    return self if dtype is None else _viewed(self, dtype)


def _viewed(self: Any, dtype: Any) -> Any:
    check_domain("view", self.aval, number_or_bool)
    wanted, present = dtypes.requested(dtype), self.aval.dtype
    if wanted == present:
        return self
    if np.bool_ in (wanted, present):
        other = np.dtype("uint8")
        if present == np.bool_:
            return _viewed(convert(self, other), wanted)
        return convert(_viewed(self, other), wanted)
    if wanted.itemsize == present.itemsize:
        return ops.bitcast(self, dtype=wanted)
    if not self.aval.ndim:
        raise ValueError(f"view: {self.aval} has no dimension to change the length of")
    *outer, last = self.aval.shape
    if wanted.itemsize < present.itemsize:
        out = ops.bitcast(self, dtype=wanted)
        return ops.merge_dims(out, len(outer))
    parts = wanted.itemsize // present.itemsize
    if last % parts:
        raise ValueError(
            f"view: the last dimension of {self.aval} must be divisible by {parts} to be read as "
            f"{wanted}"
        )
    split = ops.reshape(self, shape=(*outer, last // parts, parts))
    return ops.bitcast(split, dtype=wanted)


_METHODS: tuple[Callable[..., Any], ...] = (
    __getitem__,
    __setitem__,
    __len__,
    __iter__,
    __round__,
    reshape,
    transpose,
    astype,
    __contains__,
    clone,
    copy,
    flatten,
    to_device,
    byteswap,
    compress,
    nonzero,
    view,
)


# ---- properties -----------------------------------------------------------------------------


def _transposed(self: Any) -> Any:
    """The array with its dimensions reversed."""
    return manipulation.transpose(self)


def _matrix_transposed(self: Any) -> Any:
    """Matrices [..., n, m] as [..., m, n]."""
    return manipulation.matrix_transpose(self)


def _real(self: Any) -> Any:
    """The real parts."""
    return complex_numbers.real(self)


def _imag(self: Any) -> Any:
    """The imaginary parts."""
    return complex_numbers.imag(self)


def _at(self: Any) -> At:
    """``x.at[index]``: new arrays that differ in a part: ``.set(v)``, ``.add(v)``, ..."""
    return At(self)


def _itemsize(self: Any) -> int:
    """The number of bytes of an element."""
    return self.aval.dtype.itemsize


def _nbytes(self: Any) -> int:
    """The number of bytes of all elements."""
    return math.prod(self.aval.shape) * self.aval.dtype.itemsize


_PROPERTIES: dict[str, Callable[..., Any]] = {
    "T": _transposed,
    "mT": _matrix_transposed,
    "real": _real,
    "imag": _imag,
    "at": _at,
    "itemsize": _itemsize,
    "nbytes": _nbytes,
}
