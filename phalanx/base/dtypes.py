"""Element types: which there are, and which of them are in use by default.

A dtype is a ``numpy.dtype``; the numbers that NumPy lacks come from ``ml_dtypes``, and that of
random keys stands apart, in ``extended``: no other combines with it. Two rules differ from NumPy.
Unless ``enable_x64`` is set, 64-bit dtypes become 32-bit ones. And dtypes combine as ``lattice``
says.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, cast

import ml_dtypes
import numpy as np

from phalanx.base import wide
from phalanx.base.config import config, settings
from phalanx.base.errors import suggest
from phalanx.base.extended import ADVICE, KEY_TYPES, KeyType, extended, is_key
from phalanx.base.kinds import class_of, is_subclass, is_tuple
from phalanx.base.lengths import Length
from phalanx.base.numpy_kinds import is_dtype, is_ndarray
from phalanx.base.source import user_location, warn_user

# ---- the dtypes -----------------------------------------------------------------------------

float0 = np.dtype([("float0", np.void, 0)])
"""The dtype of tangents of integers and booleans: no information at all."""
ON_FLOAT0 = (
    "float0 is the dtype of a derivative with respect to an integer or a boolean, which there is "
    "none of. Leave these arguments out of what is differentiated, or pass them as floating-point "
    "numbers, x.astype(float); where zeros are wanted, numpy.zeros(x.shape) makes them"
)

_FLOAT8 = tuple(
    np.dtype(getattr(ml_dtypes, name))
    for name in (
        "float8_e3m4",
        "float8_e4m3",
        "float8_e4m3b11fnuz",
        "float8_e4m3fn",
        "float8_e4m3fnuz",
        "float8_e5m2",
        "float8_e5m2fnuz",
        "float8_e8m0fnu",
        "float4_e2m1fn",
    )
)
NARROW_INTS = tuple(np.dtype(getattr(ml_dtypes, n)) for n in ("int2", "int4", "uint2", "uint4"))
BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
BOOL = np.dtype(bool)
_SIGNED = tuple(map(np.dtype, ("int8", "int16", "int32", "int64")))
_UNSIGNED = tuple(map(np.dtype, ("uint8", "uint16", "uint32", "uint64")))
_FLOATS = tuple(map(np.dtype, ("float16", "float32", "float64")))
_COMPLEX = tuple(map(np.dtype, ("complex64", "complex128")))

INTEGERS = frozenset((*_SIGNED, *_UNSIGNED, *NARROW_INTS))
FLOAT8 = frozenset(_FLOAT8)
FLOATS = frozenset((*_FLOATS, BFLOAT16, *_FLOAT8))
COMPLEXES = frozenset(_COMPLEX)
INEXACT = FLOATS | COMPLEXES
ALL: frozenset[np.dtype] = INTEGERS | INEXACT | {BOOL, float0}


def holds_numbers(dtype: np.dtype) -> bool:
    """Whether NumPy's arrays of ``dtype`` hold numbers: not objects, text or dates."""
    return dtype.kind not in "OSUMm"


def is_bool(dtype: Any) -> bool:
    """Whether ``dtype`` is bool.

    Args:
        dtype: a dtype, or what names one.

    >>> is_bool(np.dtype("bool"))
    True
    """
    return dtype == BOOL


def is_integer(dtype: Any) -> bool:
    """Whether ``dtype`` is a signed or unsigned integer; bool is not.

    Args:
        dtype: a dtype, or what names one.

    >>> is_integer(np.dtype("int32")), is_integer(np.dtype("bool"))
    (True, False)
    """
    return dtype in INTEGERS


def is_signed(dtype: Any) -> bool:
    """Whether ``dtype`` is a signed integer."""
    return dtype in INTEGERS and "uint" not in dtype.name


def is_unsigned(dtype: Any) -> bool:
    """Whether ``dtype`` is an unsigned integer."""
    return dtype in INTEGERS and "uint" in dtype.name


def is_floating(dtype: Any) -> bool:
    """Whether ``dtype`` is a real floating-point dtype.

    Args:
        dtype: a dtype, or what names one.

    >>> is_floating(np.dtype("float32")), is_floating(np.dtype("complex64"))
    (True, False)
    """
    return dtype in FLOATS


def is_complex(dtype: Any) -> bool:
    """Whether ``dtype`` is complex.

    Args:
        dtype: a dtype, or what names one.

    >>> is_complex(np.dtype("complex64")), is_complex(np.dtype("float32"))
    (True, False)
    """
    return dtype in COMPLEXES


def is_inexact(dtype: Any) -> bool:
    """Whether ``dtype`` is floating-point or complex, so that derivatives make sense.

    Args:
        dtype: a dtype, or what names one.

    >>> is_inexact(np.dtype("complex64")), is_inexact(np.dtype("int32"))
    (True, False)
    """
    return dtype in INEXACT


def of_tangents(primal_dtype: Any) -> Any:
    """The dtype of tangents: the same, or float0 where there is no derivative.

    >>> of_tangents(np.dtype("float32")), of_tangents(np.dtype("int32")) == float0
    (dtype('float32'), True)
    """
    return primal_dtype if is_inexact(primal_dtype) else float0


# ---- canonical dtypes -----------------------------------------------------------------------

_TO_32_BIT = {
    np.dtype("int64"): np.dtype("int32"),
    np.dtype("uint64"): np.dtype("uint32"),
    np.dtype("float64"): np.dtype("float32"),
    np.dtype("complex128"): np.dtype("complex64"),
}
_wide: dict[Any, Any] = {dtype: dtype for dtype in (*ALL, *KEY_TYPES.values())}
_narrow: dict[Any, Any] = {dtype: _TO_32_BIT.get(dtype, dtype) for dtype in _wide}
_as_asked = {dtype: held for dtype, held in _narrow.items() if dtype == held}  # and no warning


def canonical(dtype: Any) -> np.dtype:
    """The dtype in which arrays asked for with ``dtype`` are held.

    Args:
        dtype: a dtype, or whatever means one: a name, a scalar type, ``int``, ``float`` ...

    Returns:
        A dtype of NumPy.

    Raises:
        TypeError: ``dtype`` means no dtype, or one that arrays cannot have.

    >>> canonical("float64"), canonical(int)
    (dtype('float32'), dtype('int32'))
    """
    try:
        return (_wide if settings().enable_x64 else _narrow)[dtype]
    except (KeyError, TypeError):
        pass
    return _canonical(dtype)


def _canonical(like: Any) -> np.dtype:
    dtype = as_dtype(like)
    if isinstance(like, (type, str)):
        _wide[like], _narrow[like] = dtype, _TO_32_BIT.get(dtype, dtype)
    return dtype if settings().enable_x64 else _TO_32_BIT.get(dtype, dtype)


def requested(dtype: Any) -> np.dtype:
    """The dtype in which arrays are held that a user asks for with ``dtype``.

    One of 64 bits that becomes one of 32 is warned of, unless it is a type of Python's.

    Raises:
        TypeError: ``dtype`` means no dtype, or one that arrays cannot have.

    >>> requested(float), requested("int16")
    (dtype('float32'), dtype('int16'))
    """
    try:
        return (_wide if settings().enable_x64 else _as_asked)[dtype]
    except (KeyError, TypeError):
        return _requested(dtype)


def _requested(like: Any) -> np.dtype:
    requested, held = as_dtype(like), canonical(like)
    of_python = isinstance(like, type) and like in PYTHON_SCALARS
    if requested != held and not of_python:
        warn_user(
            f"Explicitly requested dtype {requested} is not available, and arrays get {held}; "
            "phalanx.config.update('enable_x64', True), or PHALANX_ENABLE_X64=1 in the "
            f"environment, makes it so, and dtype={held.name!r} ends this warning"
        )
    elif isinstance(like, (type, str)) and not settings().enable_x64:
        _as_asked[like] = held
    return held


def as_dtype(like: Any) -> np.dtype:
    """The dtype that ``like`` means, 64-bit ones included.

    Raises:
        TypeError: it means none, or one that arrays cannot have.
    """
    if like is None:
        raise TypeError("a dtype is needed, got None")
    if is_key(like):
        return like
    try:
        dtype = np.dtype(like)
    except TypeError:
        near = suggest(like, [dtype.name for dtype in ALL]) if isinstance(like, str) else ""
        if isinstance(like, int):
            near = (
                "It stands where a dtype does: a shape of several dimensions is one tuple, as in "
                "zeros((2, 3)), and other numbers are given by name"
            )
        raise TypeError(f"{like!r} is not a dtype. {near}".removesuffix(". ")) from None
    if not dtype.isnative:
        dtype = np.dtype(dtype.type)
    if dtype not in ALL:
        raise TypeError(
            f"arrays of dtype {dtype} are not supported; use bool, an integer, floating-point "
            "or complex dtype"
        )
    return dtype


def canonicalize_dtype(dtype: Any, allow_extended_dtype: bool = False) -> Any:
    """The dtype in which arrays asked for with ``dtype`` are held.

    Args:
        dtype: a dtype, or whatever means one: a name, a scalar type, ``int``, ``float`` ...; None
            means ``float``.
        allow_extended_dtype: whether it may be a dtype of keys.

    Returns:
        A dtype of NumPy.

    Raises:
        ValueError: it is one, and may not.
        TypeError: it means no dtype, or one that arrays cannot have.

    >>> canonicalize_dtype("int64")
    dtype('int32')
    """
    dtype = canonical(float if dtype is None else dtype)
    if is_key(dtype) and not allow_extended_dtype:
        raise ValueError(f"canonicalize_dtype: a dtype of numbers is needed, got {dtype}; {ADVICE}")
    return dtype


def default_int() -> np.dtype:
    """The dtype of a Python int: int32, or int64 under ``enable_x64``."""
    return canonical(_SIGNED[3])


def default_uint() -> np.dtype:
    """uint32, or uint64 under ``enable_x64``."""
    return canonical(_UNSIGNED[3])


def default_float() -> np.dtype:
    """The dtype of a Python float: float32, or float64 under ``enable_x64``."""
    return canonical(_FLOATS[2])


def default_complex() -> np.dtype:
    """The dtype of a Python complex: complex64, or complex128 under ``enable_x64``."""
    return canonical(_COMPLEX[1])


PYTHON_SCALARS: dict[type, np.dtype] = {
    bool: BOOL,
    **dict.fromkeys((int, Length), np.dtype("int64")),
    float: np.dtype("float64"),
    complex: np.dtype("complex128"),
}


def weak_dtype(kind: type) -> np.dtype:
    """The dtype of a Python scalar of type ``kind`` on its own.

    >>> weak_dtype(float)
    dtype('float32')
    """
    for base in kind.__mro__:  # IntEnum, say, is an int
        if base in PYTHON_SCALARS:
            return canonical(PYTHON_SCALARS[base])
    raise TypeError(f"{kind.__name__} is not a type of Python numbers")


def is_weak(x: Any) -> bool:
    """Whether the dtype of ``x`` yields to others: that of Python's numbers, but for bools."""
    if is_python_scalar(x):
        return not isinstance(x, bool)
    return bool(getattr(x, "weak_type", False))


def dtype_of(x: Any) -> np.dtype:
    """The canonical dtype of an array, a scalar, or of whatever means a dtype.

    Raises:
        TypeError: ``x`` has none.

    >>> dtype_of(1.5), dtype_of(np.int8(1)), dtype_of("bfloat16")
    (dtype('float32'), dtype('int8'), dtype(bfloat16))
    """
    if is_python_scalar(x):
        return weak_dtype(class_of(x))
    own = getattr(x, "dtype", None)
    return canonical(own if isinstance(own, (np.dtype, KeyType)) else x)


def is_python_scalar(x: Any) -> bool:
    return isinstance(x, (int, float, complex, Length)) and not isinstance(x, np.generic)


def is_wide(dtype: np.dtype) -> bool:
    """Whether arrays have ``dtype`` with ``enable_x64`` alone."""
    return dtype in _TO_32_BIT


def enabled(*dtypes: np.dtype) -> AbstractContextManager[None]:
    """A block where values of ``dtypes``, which some arrays have, may be made."""
    if settings().enable_x64 or not any(map(is_wide, dtypes)):
        return _NOTHING
    return config.override(enable_x64=True)


_NOTHING = nullcontext()


def to_inexact(dtype: Any) -> np.dtype:
    """``dtype`` if it is floating-point or complex; float64 for integers of 64 bits, otherwise
    float32.

    Raises:
        TypeError: it is float0.
    """
    dtype = canonical(dtype)
    if dtype in INEXACT:
        return dtype
    if dtype == float0:
        raise TypeError(f"numbers are needed, got an array of float0; {ON_FLOAT0}")
    return _FLOATS[2] if dtype in _TO_32_BIT else _FLOATS[1]


def accumulator(dtype: np.dtype) -> np.dtype:
    """The dtype to sum up in, and to divide what was summed: at least 32 bits of floating-point
    numbers.

    >>> accumulator(np.dtype("float16")), accumulator(np.dtype("int8"))
    (dtype('float32'), dtype('int8'))
    """
    return _FLOATS[1] if dtype in INEXACT and dtype.itemsize < 4 else dtype


def to_real(dtype: Any) -> np.dtype:
    """The dtype of the real part: that of the components of a complex dtype, else ``dtype``."""
    dtype = dtype if is_dtype(dtype) else canonical(dtype)
    return np.dtype(f"float{4 * dtype.itemsize}") if dtype in COMPLEXES else dtype


def to_complex(dtype: Any) -> np.dtype:
    """The complex dtype that holds ``dtype``: complex128 for 64 bits of float, else complex64."""
    inexact = to_inexact(dtype)
    if inexact in COMPLEXES:
        return inexact
    return _COMPLEX[1] if inexact == _FLOATS[2] else _COMPLEX[0]


# ---- questions about dtypes -----------------------------------------------------------------

_CUSTOM_KINDS: dict[np.dtype, type] = {
    **dict.fromkeys((*_FLOAT8, BFLOAT16), np.floating),
    **{dtype: np.unsignedinteger for dtype in NARROW_INTS if "uint" in dtype.name},
    **{dtype: np.signedinteger for dtype in NARROW_INTS if "uint" not in dtype.name},
}


def issubdtype(arg1: Any, arg2: Any) -> bool:
    """Whether dtype ``arg1`` is, or is of the kind of, ``arg2``.

    Args:
        arg1: a dtype, or what names one.
        arg2: a dtype, or a class of them such as ``jnp.floating``.

    Returns:
        A Python bool, as ``np.issubdtype`` gives, but also of bfloat16, float8 and int4.

    >>> issubdtype("bfloat16", np.floating), issubdtype("int4", np.inexact)
    (True, False)
    >>> from phalanx.base.extended import key_type, prng_key
    >>> issubdtype(key_type("threefry2x32"), prng_key)
    True
    """
    if isinstance(arg2, KeyType):
        return arg1 is arg2
    a, b = _as_type(arg1), _as_type(arg2)
    if a is b:
        return True
    kind = _CUSTOM_KINDS.get(a) if is_dtype(a) else None
    if kind is not None:
        return isinstance(b, type) and issubclass(kind, b)
    if is_dtype(b) and b in _CUSTOM_KINDS:
        return False
    return bool(np.issubdtype(a, b))


def _as_type(x: Any) -> Any:
    """An abstract class of scalars as it is, everything else as a dtype."""
    if isinstance(x, KeyType):
        return x.type
    abstract = is_subclass(x, np.generic) and x.__module__ == "numpy" and x.__subclasses__()
    return x if abstract or is_subclass(x, extended) else np.dtype(x)


_NAMES: dict[np.dtype, str] = {
    BOOL: "b1",
    BFLOAT16: "bf16",
    float0: "float0",
    **{t: f"i{t.name[3:]}" for t in (*_SIGNED, *NARROW_INTS[:2])},
    **{t: f"u{t.name[4:]}" for t in (*_UNSIGNED, *NARROW_INTS[2:])},
    **{t: f"f{t.name[5:].replace('_', '')}" for t in (*_FLOATS, *_FLOAT8)},
    **{t: f"c{t.name[7:]}" for t in _COMPLEX},
}


def short_name(dtype: np.dtype) -> str:
    """The name in printed types, such as ``f32``, ``i8``, ``u4``, ``b1``, ``f8e4m3fn``.

    >>> short_name(np.dtype("float32")), short_name(np.dtype(bool))
    ('f32', 'b1')
    """
    return _NAMES.get(dtype) or str(dtype)


def finfo(dtype: Any) -> np.finfo[Any]:
    """Limits of a floating-point dtype, or of the components of a complex one.

    Args:
        dtype: a floating-point or complex dtype, or an array of one.

    Returns:
        An object with ``max``, ``min``, ``eps``, ``bits``, ``tiny``, ``resolution`` and more, as
        NumPy's.

    Raises:
        ValueError: ``dtype`` is an integer one; see ``iinfo``.

    >>> float(finfo("bfloat16").max) > 3e38
    True
    """
    dtype = dtype if is_key(dtype) else np.dtype(dtype)
    if dtype not in INEXACT:
        raise ValueError(f"finfo: a floating-point dtype is needed, got {dtype}; see iinfo")
    return cast(Any, ml_dtypes.finfo(dtype))


def iinfo(int_type: Any) -> ml_dtypes.iinfo:
    """Limits of an integer dtype.

    Args:
        int_type: an integer dtype, or an array of one.

    Returns:
        An object with ``max``, ``min``, ``bits`` and ``dtype``.

    Raises:
        ValueError: ``int_type`` is no integer dtype; see ``finfo``.

    >>> iinfo("int4").max
    7
    """
    dtype = int_type if is_key(int_type) else np.dtype(int_type)
    if dtype not in INTEGERS:
        raise ValueError(f"iinfo: an integer dtype is needed, got {dtype}; see finfo")
    return ml_dtypes.iinfo(dtype)


_KINDS: dict[str, Callable[[Any], bool]] = {
    "bool": is_bool,
    "signed integer": is_signed,
    "unsigned integer": is_unsigned,
    "integral": is_integer,
    "real floating": is_floating,
    "complex floating": is_complex,
    "numeric": lambda dtype: is_integer(dtype) or is_inexact(dtype),
}


def isdtype(dtype: Any, kind: Any) -> bool:
    """Whether ``dtype`` is of a kind, or is a dtype; of a tuple of these, of any of them.

    Kinds are "bool", "signed integer", "unsigned integer", "integral", "real floating",
    "complex floating" and "numeric".

    Args:
        dtype: the dtype that is asked about.
        kind: the name of a kind, a dtype, or a tuple of these.

    Raises:
        ValueError: there is no such kind.

    >>> isdtype("float32", "real floating"), isdtype("int8", ("bool", "int16"))
    (True, False)
    """
    dtype = as_dtype(dtype)
    if is_tuple(kind):
        return any([isdtype(dtype, k) for k in kind])  # a list: all of them are looked at
    if isinstance(kind, str) and kind in _KINDS:
        return _KINDS[kind](dtype)
    try:
        return dtype == as_dtype(kind)
    except TypeError:
        raise ValueError(
            f"isdtype: a dtype or one of {', '.join(map(repr, _KINDS))} is needed, got {kind!r}"
        ) from None


def scalar_type_of(x: Any) -> type:
    """The type of Python's numbers that is of the kind of an array, a number or a dtype.

    Args:
        x: an array, a number, or a dtype.

    Returns:
        ``bool``, ``int``, ``float`` or ``complex``.

    Raises:
        ValueError: there is none.

    >>> scalar_type_of(np.int8(1)), scalar_type_of("bfloat16")
    (<class 'int'>, <class 'float'>)
    """
    dtype = dtype_of(x)
    kinds = {bool: is_bool, int: is_integer, float: is_floating, complex: is_complex}
    for kind, holds in kinds.items():
        if holds(dtype):
            return kind
    raise ValueError(f"scalar_type_of: Python has no numbers of the kind of {dtype}")


def itemsize_bits(dtype: Any) -> int:
    """How many bits an element of ``dtype`` has.

    Args:
        dtype: a dtype, or what names one.

    >>> itemsize_bits("int4"), itemsize_bits("complex64")
    (4, 64)
    """
    dtype = as_dtype(dtype)
    if is_integer(dtype):
        return iinfo(dtype).bits
    return finfo(dtype).bits if is_floating(dtype) else 8 * dtype.itemsize


_LIMITS = {t: (int(ml_dtypes.iinfo(t).min), int(ml_dtypes.iinfo(t).max)) for t in INTEGERS}


def check_range(value: int, dtype: np.dtype, who: str = "") -> None:
    """Refuse a Python int that ``dtype`` cannot hold; ``who`` asks, for the message.

    Raises:
        OverflowError: ``dtype`` is an integer dtype and ``value`` is beyond its limits.
    """
    limits = _LIMITS.get(dtype)
    if limits is None or limits[0] <= value <= limits[1]:
        return
    is_default = dtype.name in ("int32", "uint32")
    wider = "set enable_x64 to use 64-bit integers" if is_default else "use a wider dtype"
    if value.bit_length() > 64:
        wider = "no integer dtype does; use a floating-point one"
    raise OverflowError(
        f"{who}{': ' if who else ''}Python int {value} does not fit {dtype}, which holds "
        f"{limits[0]} to {limits[1]}; {wider}"
    )


_WIDE_INTS = np.dtype(np.int64), np.dtype(np.uint64)
_HALF_AS_WIDE = np.dtype(np.int32), np.dtype(np.uint32)  # what they become without enable_x64


def as_held(value: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """The NumPy array ``value`` in ``dtype``, in which devices are to hold it.

    With the option ``wrap_integers`` integers of 64 bits wrap around to 32.

    Raises:
        OverflowError: an integer of 64 bits has more than the 32 of ``dtype``.
    """
    held = np.asarray(value, dtype)
    if held is not value and value.dtype in _WIDE_INTS and dtype in _HALF_AS_WIDE:
        _check_wide(value, dtype)
    return held


def _check_wide(value: np.ndarray, dtype: np.dtype) -> None:
    if not value.size or canonical(value.dtype) != dtype or settings().wrap_integers:
        return
    least, most = _LIMITS[dtype]
    for extreme in (int(value.min()), int(value.max())):
        if not least <= extreme <= most:
            raise OverflowError(
                f"{extreme} in an array {value.dtype}{[*value.shape]} of NumPy does not fit "
                f"{dtype}, which holds {least} to {most}, at {user_location()}; set enable_x64 to "
                "use 64-bit integers"
            )


def refuse_masked(x: Any) -> None:
    """Refuse a masked array of NumPy: what devices hold has no mask.

    Raises:
        ValueError: ``x`` is one.
    """
    if is_ndarray(x) and isinstance(x, np.ma.MaskedArray):
        raise ValueError(
            f"a masked array of NumPy, of shape {x.shape}, would lose its mask, at "
            f"{user_location()}; give numbers for the masked elements, x.filled(value), or pass "
            "x.data and x.mask"
        )


def scalar(value: Any, dtype: np.dtype) -> np.generic:
    """``value``, a Python or NumPy number, as a NumPy scalar of ``dtype``.

    With the option ``wrap_integers``, a Python int is first one of the default dtype.

    Raises:
        OverflowError: ``dtype`` cannot hold a Python int, or is of 32 bits and cannot hold a number
            of 64.

    >>> scalar(2, np.dtype("float32"))
    np.float32(2.0)
    """
    if type(value) is int:
        value = _in_range(value, dtype)
    elif type(value) in _WIDE_CLASSES and dtype in _HALF_AS_WIDE:
        value = _in_range(int(value), dtype)
    elif type(value) is np.bool_:  # which dtypes of 4 bits do not take
        value = bool(value)
    return wide.number(value, dtype)


_WIDE_CLASSES = {dtype.type for dtype in _WIDE_INTS}


def scalar_held(value: np.generic) -> np.generic:
    """A NumPy number as devices are to hold it.

    Raises:
        OverflowError: it is an integer of more bits, and does not fit.
    """
    held = held_as(value)
    return value if held == value.dtype else scalar(value, held)


def held_as(x: np.generic | np.ndarray) -> np.dtype:
    """The dtype in which devices hold a number or an array of NumPy."""
    return x.dtype if wide.is_wide(x) else canonical(x.dtype)


def _in_range(value: int, dtype: np.dtype) -> int:
    least, most = _LIMITS.get(dtype, (value, value))
    if least <= value <= most:
        return value
    wraps = settings().wrap_integers
    check_range(value, default_int() if wraps else dtype)
    return (value - least) % (most - least + 1) + least
