"""The lattice in which dtypes combine, and the dtype that an operation on several has.

The dtype of an operation is the join of its operands'. Python scalars are *weak*: they stand below
all dtypes of their kind and do not widen them::

    b1 < int* < u8 .. u64, i8 .. i64 < float* < fp8 .., bf16, f16 < f32 < f64
                                       float* < complex* < c64 < c128
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal, overload

import numpy as np

from phalanx.base.config import settings
from phalanx.base.dtypes import (
    BFLOAT16,
    BOOL,
    FLOAT8,
    FLOATS,
    INTEGERS,
    NARROW_INTS,
    ON_FLOAT0,
    PYTHON_SCALARS,
    as_dtype,
    canonical,
    dtype_of,
    float0,
    is_python_scalar,
    is_weak,
    is_wide,
    weak_dtype,
)
from phalanx.base.errors import TypePromotionError
from phalanx.base.extended import ADVICE, KeyType, is_key
from phalanx.base.recent import Recent
from phalanx.base.source import arguments_of_library

_WEAK_INT, _WEAK_FLOAT, _WEAK_COMPLEX = "int*", "float*", "complex*"
_Node = Any  # a dtype, or the name of a weak kind


def _lattice() -> dict[_Node, tuple[_Node, ...]]:
    """What lies directly above each dtype."""
    i8, i16, i32, i64 = (np.dtype(f"int{bits}") for bits in (8, 16, 32, 64))
    u8, u16, u32, u64 = (np.dtype(f"uint{bits}") for bits in (8, 16, 32, 64))
    f16, f32, f64 = (np.dtype(f"float{bits}") for bits in (16, 32, 64))
    c64, c128 = (np.dtype(f"complex{bits}") for bits in (64, 128))
    return {
        BOOL: (_WEAK_INT,),
        _WEAK_INT: (u8, i8, *NARROW_INTS),
        **dict.fromkeys((*NARROW_INTS, *FLOAT8, float0), ()),
        u8: (u16, i16),
        u16: (u32, i32),
        u32: (u64, i64),
        u64: (_WEAK_FLOAT,),
        i8: (i16,),
        i16: (i32,),
        i32: (i64,),
        i64: (_WEAK_FLOAT,),
        _WEAK_FLOAT: (*FLOAT8, BFLOAT16, f16, _WEAK_COMPLEX),
        BFLOAT16: (f32,),
        f16: (f32,),
        f32: (f64, c64),
        f64: (c128,),
        _WEAK_COMPLEX: (c64,),
        c64: (c128,),
        c128: (),
    }


def _closure(above: dict[_Node, tuple[_Node, ...]]) -> dict[_Node, frozenset[_Node]]:
    """Everything at or above each node."""
    closure: dict[_Node, frozenset[_Node]] = {}

    def reach(node: _Node) -> frozenset[_Node]:
        if node not in closure:
            closure[node] = frozenset((node,)).union(*(reach(n) for n in above[node]))
        return closure[node]

    for node in above:
        reach(node)
    return closure


_ABOVE = _closure(_lattice())
_WEAK_NODES: dict[_Node, np.dtype] = {
    _WEAK_INT: np.dtype("int64"),
    _WEAK_FLOAT: np.dtype("float64"),
    _WEAK_COMPLEX: np.dtype("complex128"),
}


def _above(node: _Node) -> frozenset[_Node]:
    return _ABOVE.get(node, frozenset((node,)))  # dtypes of keys are not in the lattice


def advice_on(dtype: object) -> str | None:
    """What to do instead of computing with ``dtype``, if nothing is computed with it."""
    if is_key(dtype):
        return ADVICE
    return ON_FLOAT0 if dtype == float0 else None


def _join(nodes: set[_Node]) -> _Node:
    first, *others = map(_above, nodes)
    bounds = first.intersection(*others)
    for bound in bounds:
        if bounds <= _above(bound):
            return bound
    names = sorted("float0" if n == float0 else str(n) for n in nodes)
    hints = sorted(filter(None, map(advice_on, nodes)))
    advice = hints[0] if hints else "convert one of the operands with astype"
    raise TypePromotionError(
        f"dtypes {', '.join(names)} have no common dtype to convert to implicitly; {advice}"
    )


def _weak_node(dtype: np.dtype) -> _Node:
    if dtype == BOOL:
        return dtype
    if dtype in INTEGERS:
        return _WEAK_INT
    return _WEAK_FLOAT if dtype in FLOATS else _WEAK_COMPLEX


_promoted: Recent[tuple[np.dtype, bool]] = Recent(4096)


def promote(*operands: tuple[np.dtype, bool]) -> tuple[np.dtype, bool]:
    """``common`` of what the user may give as different dtypes: not where promotion is strict.

    Raises:
        TypePromotionError: there is none, or promotion is strict and the user's dtypes differ.
    """
    check_strictly(*operands)
    return common(*operands)


def common(*operands: tuple[np.dtype, bool]) -> tuple[np.dtype, bool]:
    """The dtype of an operation on operands given as (dtype, whether weak), and its weakness.

    Raises:
        TypePromotionError: there is none, as for two different 8-bit floats.

    >>> common((np.dtype("float32"), True), (np.dtype("float16"), False))
    (dtype('float16'), False)
    """
    key = (settings().enable_x64, operands)
    promoted = _promoted[key]
    if promoted is None:
        promoted = _promoted[key] = _common(operands)
    return promoted


def holds(dtype: np.dtype, operand: tuple[np.dtype, bool]) -> bool:
    """Whether the common dtype of ``dtype`` and of ``operand``, a pair (dtype, whether weak), is
    ``dtype``: then the operand can be converted to it as operands are.

    >>> holds(np.dtype("float16"), (np.dtype("float32"), True))
    True
    >>> holds(np.dtype("float16"), (np.dtype("float32"), False))
    False
    """
    try:
        return common((dtype, False), operand)[0] == canonical(dtype)
    except TypePromotionError:
        return False


def _common(operands: tuple[tuple[np.dtype, bool], ...]) -> tuple[np.dtype, bool]:
    distinct = {dtype for dtype, _ in operands}
    weak = all(weak for _, weak in operands)
    if weak or len(distinct) == 1:
        node = _join(distinct)
    else:
        node = _join({_weak_node(dtype) if weak else dtype for dtype, weak in operands})
        weak = node in _WEAK_NODES
    dtype = canonical(_WEAK_NODES.get(node, node))
    return dtype, weak and dtype != BOOL


def check_strictly(*operands: tuple[np.dtype, bool]) -> None:
    """Where promotion is strict, refuse dtypes that differ, but those of Python's numbers that
    give way to such of their kind.

    It concerns what the user gave. What a function of ours promotes besides is its own matter.

    Raises:
        TypePromotionError: promotion is strict, and dtypes of the user's operands differ.
    """
    if settings().numpy_dtype_promotion == "standard" or _agree(operands):
        return
    arguments = [x for x in arguments_of_library() if is_python_scalar(x) or _has_dtype(x)]
    kinds = {(dtype_of(x), is_weak(x)) for x in arguments}
    if not _agree(kinds.intersection(operands)):
        names = ", ".join(sorted(f"{dtype}{'*' if weak else ''}" for dtype, weak in {*operands}))
        raise TypePromotionError(
            f"dtypes {names} are not promoted while numpy_dtype_promotion is 'strict' (those with "
            "a star are of Python's numbers); convert one of the operands with astype"
        )


def _agree(operands: Iterable[tuple[np.dtype, bool]]) -> bool:
    strong = {dtype for dtype, weak in operands if not weak}
    weak = {_weak_node(dtype) for dtype, weak in operands if weak}
    return len(strong) <= 1 and all(dtype in _ABOVE[node] for dtype in strong for node in weak)


def _has_dtype(x: Any) -> bool:
    return isinstance(getattr(x, "dtype", None), (np.dtype, KeyType))


@overload
def result_type(*args: Any, return_weak_type_flag: Literal[False] = False) -> np.dtype: ...
@overload
def result_type(*args: Any, return_weak_type_flag: Literal[True]) -> tuple[np.dtype, bool]: ...
def result_type(*args: Any, return_weak_type_flag: bool = False) -> Any:
    """The dtype that an operation on ``args`` would have.

    Args:
        args: arrays, scalars, dtypes, or whatever means a dtype: None the default float. Python
            scalars, the types ``int``, ``float`` and ``complex`` and weak arrays are weak.
        return_weak_type_flag: whether to tell, too, whether the result is weak.

    Returns:
        A dtype; with ``return_weak_type_flag`` a pair of it and whether it is weak.

    Raises:
        TypeError: there is no argument.

    >>> result_type(np.int8(1), 2), result_type("int32", 2.0), result_type("uint8", "int8")
    (dtype('int8'), dtype('float32'), dtype('int16'))
    """
    if not args:
        raise TypeError("result_type: at least one argument is needed")
    dtype, weak = promote(*map(_operand, args))
    return (dtype, weak) if return_weak_type_flag else dtype


def promote_types(a: Any, b: Any) -> np.dtype:
    """The dtype of results of operands with dtypes ``a`` and ``b``.

    Dtypes of 64 bits that are asked for stay so, whatever ``enable_x64`` is.

    Args:
        a: a dtype, or what names one.
        b: a dtype, or what names one.

    Returns:
        A dtype. Integers with floating-point numbers give these, as in JAX: int32 and float16 give
        float16, where NumPy gives float64.

    >>> promote_types("bfloat16", "float16"), promote_types("int64", float)
    (dtype('float32'), dtype('float64'))
    """
    dtypes = (as_dtype(a), as_dtype(b))
    nodes = {
        _weak_node(t) if _is_scalar_type(x) else t for x, t in zip((a, b), dtypes, strict=True)
    }
    joined: Any = _join(nodes)
    joined = _WEAK_NODES.get(joined, joined)
    return joined if any(map(is_wide, dtypes)) else canonical(joined)


def _is_scalar_type(x: Any) -> bool:
    return isinstance(x, type) and x in PYTHON_SCALARS


def _operand(x: Any) -> tuple[np.dtype, bool]:
    value = float if x is None else x  # as to NumPy
    if _is_scalar_type(value):
        return weak_dtype(value), x not in (None, bool)
    return dtype_of(x), is_weak(x)
