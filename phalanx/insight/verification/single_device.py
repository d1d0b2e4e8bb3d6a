"""A program as it would be on one device: without shardings; and in float64, or in float32."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from phalanx.base import dtypes
from phalanx.base.config import config
from phalanx.base.extended import is_key
from phalanx.base.kinds import is_tuple
from phalanx.core.interpret import interpret
from phalanx.core.memoize import memoize_on
from phalanx.core.primitive import Primitive
from phalanx.core.program import Equation, Literal, Program
from phalanx.core.trace import current
from phalanx.core.types import Array, ArrayType
from phalanx.laws.compare import of_numpy, to_numpy
from phalanx.primitives.basis import convert
from phalanx.primitives.bits import bitcast
from phalanx.primitives.resharding import pcast, reshard
from phalanx.primitives.vary import pvary
from phalanx.run.constrain import constrain
from phalanx.run.put import device_put
from phalanx.transforms.derive import trace_closed

__all__ = ["Precision", "alone", "narrower", "plain", "same", "wider"]

Precision = Callable[[Any], Any]  # from a dtype to that in which its numbers are computed

_AS_IT_IS = frozenset({constrain, device_put, reshard, pcast, pvary})  # they change no number
_BY_BITS = frozenset({bitcast})  # what they give depends on how many bits an operand has


def same(dtype: Any) -> Any:
    """``dtype`` as it is."""
    return dtype


def narrower(dtype: Any) -> Any:
    """The dtype of half the bits of what has floating-point numbers of 64.

    >>> narrower(np.dtype("float64")), narrower(np.dtype("float32")), narrower(np.dtype("int64"))
    (dtype('float32'), dtype('float32'), dtype('int64'))
    """
    known = {np.dtype("float64"): "float32", np.dtype("complex128"): "complex64"}
    return dtype if is_key(dtype) or dtype not in known else np.dtype(known[dtype])


def wider(dtype: Any) -> Any:
    """The dtype of 64 or 128 bits of what is a floating-point or complex number.

    >>> wider(np.dtype("float32")), wider(np.dtype("int32"))
    (dtype('float64'), dtype('int32'))
    """
    if is_key(dtype) or not dtypes.is_inexact(dtype):
        return dtype
    return np.dtype("complex128" if dtypes.is_complex(dtype) else "float64")


def plain(type: ArrayType, to: Precision = same) -> ArrayType:
    """``type``, which says nothing of devices and axes, in the precision ``to``."""
    return ArrayType(type.shape, to(type.dtype), type.weak)


def alone(program: Program, to: Precision = same) -> Program:
    """``program``, in which no lanes meet, on one device, in the precision ``to``."""
    return memoize_on(program, ("alone", to), lambda: _alone(program, to))


def _alone(program: Program, to: Precision) -> Program:
    def run(*xs: Any) -> tuple[Sequence[Any], None]:
        results = interpret(program, xs, step, constant)
        types = [plain(t, to) for t in program.output_types]
        return [_as(x, t.dtype) for x, t in zip(results, types, strict=True)], None

    def step(e: Equation, operands: tuple[Any, ...]) -> Any:
        return _step(e, operands, to)

    def constant(literal: Literal) -> Any:
        return _constant(literal, to)

    types = [plain(t, to) for t in program.input_types]
    with config.override(enable_x64=to is not same or config.enable_x64):
        return trace_closed(run, types, program.name).program


def _step(e: Equation, operands: tuple[Any, ...], to: Precision) -> Any:
    if e.prim in _AS_IT_IS:
        return operands if e.prim.multi else operands[0]
    frame = e.frame
    if frame is not None and frame.is_call:
        inside = alone(frame.programs[0], to)
        return interpret(inside, operands, lambda e, xs: _bound(e.prim, xs, e.params))
    if frame is not None:
        frame = frame.rewritten(lambda p: alone(p, to))
        return _bound(e.prim, operands, frame.to_params(e.params))
    params = {name: value for name, value in e.params.items() if name != "unreduced"}
    if to is same:
        return _bound(e.prim, operands, params)
    return _converted(e, operands, params, to)


def _bound(prim: Primitive, operands: Sequence[Any], params: dict[str, Any]) -> Any:
    return current().process(prim, tuple(operands), params)


def _converted(
    e: Equation, operands: tuple[Any, ...], params: dict[str, Any], to: Precision
) -> Any:
    """An operation in another precision; as it is, where it cannot be computed so."""
    if e.prim not in _BY_BITS:
        dtyped = {k: to(v) if isinstance(v, np.dtype) else v for k, v in params.items()}
        try:
            return _bound(e.prim, operands, dtyped)
        except (TypeError, ValueError, NotImplementedError):
            pass  # it knows no such numbers
    converted = [_as(x, a.type.dtype) for x, a in zip(operands, e.inputs, strict=True)]
    results = _bound(e.prim, converted, params)
    return _each(lambda x: _as(x, to(x.aval.dtype)), results)


def _each(f: Callable[[Any], Any], results: Any) -> Any:
    return tuple([*map(f, results)]) if is_tuple(results) else f(results)


def _as(x: Any, dtype: Any) -> Any:
    have = x.aval.dtype if isinstance(x, Array) else np.asarray(x).dtype
    return x if have == dtype else convert(x, dtype=dtype, weak=False)


def _constant(literal: Literal, to: Precision) -> Any:
    value: Any = literal.value
    if isinstance(value, Array):
        here = to_numpy(value)
        value = of_numpy(here, value.dtype) if is_key(value.dtype) else here
    if to is same or isinstance(value, Array):
        return value
    with np.errstate(over="ignore"):
        return np.asarray(value).astype(to(literal.type.dtype))[()]
