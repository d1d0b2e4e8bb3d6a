"""Eager evaluation: a primitive on arrays that hold data runs as a program of one equation."""

# What an array holds is private to users, not to what runs programs on arrays.
# pyright: reportPrivateUsage=false

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np

from phalanx.base import dtypes, tree
from phalanx.base.config import settings
from phalanx.base.keys import key_of
from phalanx.base.kinds import class_of
from phalanx.base.numpy_kinds import GENERIC
from phalanx.base.plain import brief
from phalanx.base.recent import Recent
from phalanx.base.source import user_location
from phalanx.core.primitive import Primitive, Rule
from phalanx.core.program import Program, programs_in
from phalanx.core.trace import Tracer, refuse_escaped
from phalanx.core.types import SCALARS, ArrayType, LiteralType, operand_type
from phalanx.run.array import DeviceArray, default_sharding, from_host, from_scalar
from phalanx.run.calls import Call, calls, with_watchers
from phalanx.run.execute import compile_program

_programs: Recent[Program] = Recent(1024)


def evaluate_eagerly(prim: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
    """Run ``prim`` now: one array, or a tuple of them where it has several results."""
    if prim.execution.run is not None:
        return prim.execution.run(*args, **params)
    return run_compiled(prim, args, params)


def run_compiled(
    prim: Primitive,
    args: tuple[Any, ...],
    params: dict[str, Any],
    options: tuple[tuple[str, Any], ...] = (),
) -> Any:
    """Run ``prim`` as a program of one equation, compiled with ``options`` if it has not been."""
    arrays = [a if type(a) is DeviceArray else as_array(a) for a in args]
    owner = _owner(prim, params) if prim.multi else None
    static = _static_key(params) if owner is None else _key_without(owner, params)
    table = calls if owner is None else owner.derived
    key = (*[a._sig for a in arrays], static, options, settings().key, prim)
    try:
        call = table[key]
    except TypeError:
        _refuse_unhashable(prim, params)
        raise
    if call is None:
        if prim.execution.on_host is not None:
            return _on_host(prim, prim.execution.on_host, arrays, params)
        call = table[key] = _compiled(prim, args, arrays, params, owner, dict(options))
    return call.run(arrays)


def _static_key(params: dict[str, Any]) -> Hashable:
    """Parameters as part of a key."""
    if not params:
        return ()
    return tuple(params), *[key_of(value) for value in params.values()]


def _refuse_unhashable(prim: Primitive, params: dict[str, Any]) -> None:
    """Raise TypeError if a parameter cannot be part of a key."""
    for name, value in params.items():
        try:
            hash(value)
        except TypeError:
            raise TypeError(
                f"{prim.name}: the parameter {name}={value!r} of type {type(value).__name__} "
                f"cannot be hashed, at {user_location()}; give a tuple, or another immutable value"
            ) from None


def _on_host(prim: Primitive, run: Rule, arrays: list[DeviceArray], params: dict[str, Any]) -> Any:
    """The results of what the host does itself, where the first operand on one device lies."""
    places = [a.sharding for a in arrays if len(a.sharding.device_list) == 1 and a.committed]
    sharding = places[0] if places else default_sharding()
    results = run(*arrays, **params)
    out = tuple([from_host(x, sharding=sharding) for x in (results if prim.multi else (results,))])
    return out if prim.multi else out[0]


def _owner(prim: Primitive, params: dict[str, Any]) -> Program | None:
    """The sub-program with which lives and dies what is compiled for it."""
    return next(programs_in(prim, params), None)


def _key_without(owner: Program, params: dict[str, Any]) -> Hashable:
    """Parameters as part of a key that ``owner`` keeps, which must not hold it."""
    return _static_key({name: _without(owner, value) for name, value in params.items()})


def _without(owner: Program, value: Any) -> Any:
    if class_of(value) is tuple:
        return tuple([_without(owner, x) for x in value])
    return Program if value is owner else value


def _compiled(
    prim: Primitive, args: tuple[Any, ...], arrays: list[DeviceArray], params: dict[str, Any],
    owner: Program | None, options: dict[str, Any],
) -> Call:  # fmt: skip
    types = tuple([a._sig.operand_type for a in arrays])
    program = program_of(prim, types, params) if owner is None else _of_one(prim, types, params)
    results = (0,) * len(program.outputs) if prim.multi else 0
    prepared = compile_program(program, [a._sig for a in arrays], options=options)
    call = Call(prepared, arrays, tree.structure(results), arguments=args)
    return with_watchers(call, program)


def program_of(prim: Primitive, types: tuple[ArrayType, ...], params: dict[str, Any]) -> Program:
    """The program of one ``prim`` on operands of ``types``, the same one for the same.

    So what was compiled for one layout is used again where that has another name.
    """
    key = (*types, _static_key(params), settings().key, prim)
    program = _programs[key]
    if program is None:
        program = _programs[key] = _of_one(prim, types, params)
    return program


def _of_one(prim: Primitive, types: tuple[ArrayType, ...], params: dict[str, Any]) -> Program:
    return Program.of_one(prim, types, params, prim.name, user_location())


def as_array(x: Any) -> DeviceArray:
    """``x`` as an array that holds data.

    Raises:
        EscapedTracer: ``x`` belongs to a transformation that has ended.
        TypeError: ``x`` is no array.
    """
    if isinstance(x, DeviceArray):
        return x
    if isinstance(x, GENERIC) and dtypes.held_as(x) is x.dtype:
        return from_scalar(x, default_sharding(), LiteralType((), x.dtype))
    if isinstance(x, (np.generic, *SCALARS)):
        kind = operand_type(x)
        return from_scalar(dtypes.scalar(x, kind.dtype), default_sharding(), kind)
    if isinstance(x, Tracer):
        refuse_escaped(x)
    if isinstance(x, np.ndarray):
        return from_host(x)
    raise TypeError(
        f"an array or a number is needed, got {brief(x)} of type {type(x).__name__}, "
        f"at {user_location()}; convert it with jnp.array"
    )
