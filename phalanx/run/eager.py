"""Eager evaluation: a primitive on arrays that hold data runs as a program of one equation."""

from __future__ import annotations

from collections.abc import Hashable, ItemsView, Sequence
from typing import Any

import numpy as np

from phalanx.base import dtypes
from phalanx.base.config import config
from phalanx.base.recent import Recent
from phalanx.base.source import user_location
from phalanx.core.primitive import Primitive
from phalanx.core.program import Program, programs_in
from phalanx.core.trace import Tracer, refuse_escaped
from phalanx.core.types import SCALARS, ArrayType, LiteralType, typeof
from phalanx.run.array import DeviceArray, default_sharding, from_host, from_scalar
from phalanx.run.execute import compile_program
from phalanx.run.pieces import Prepared

_compiled: Recent[Prepared] = Recent(4096)
_programs: Recent[Program] = Recent(1024)


def evaluate(prim: Primitive, args: tuple, params: dict[str, Any]) -> Any:
    """Run ``prim`` now: one array, or a tuple of them where it has several results."""
    if prim.run is not None:
        return prim.run(*args, **params)
    arrays = [a if type(a) is DeviceArray else as_array(a) for a in args]
    owner = _owner(prim, params) if prim.multi else None
    cache = _compiled if owner is None else owner.derived
    items = tuple(params.items()) if owner is None else _without(owner, params.items())
    key = (prim, config.key, items, *[a._sig for a in arrays])
    try:
        compiled = cache[key]
    except TypeError:
        _refuse_unhashable(prim, params)
        raise
    if compiled is None:
        if prim.eager is not None:
            return _by_the_host(prim, arrays, params)
        compiled = cache[key] = compile_one(prim, arrays, params, items if owner is None else None)
    out = compiled(arrays)
    return tuple(out) if prim.multi else out[0]


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


def _by_the_host(prim: Primitive, arrays: list[DeviceArray], params: dict[str, Any]) -> Any:
    """The results of what the host does itself, where the first operand on one device lies."""
    places = [a.sharding for a in arrays if len(a.sharding.devices) == 1 and a.committed]
    sharding = places[0] if places else default_sharding()
    results = prim.eager(*arrays, **params)  # type: ignore[misc]
    out = tuple([from_host(x, sharding=sharding) for x in (results if prim.multi else (results,))])
    return out if prim.multi else out[0]


def _owner(prim: Primitive, params: dict[str, Any]) -> Program | None:
    """The sub-program with which lives and dies what is compiled for it."""
    return next(programs_in(prim, params), None)


def _without(owner: Program, value: Any) -> Any:
    """A parameter as part of a key that its owner keeps, which must not hold the owner."""
    if isinstance(value, (tuple, ItemsView)):
        return tuple([_without(owner, x) for x in value])
    return Program if value is owner else value


def compile_one(
    prim: Primitive, arrays: list[DeviceArray], params: dict[str, Any], items: Hashable = None
) -> Prepared:
    """The executable of the one-equation program of ``prim``.

    With ``items``, its parameters as a key, the program is kept: what was compiled for one layout
    is used again when that has another name.
    """
    types = tuple([a._sig.type for a in arrays])
    key = (prim, config.key, items, *types)
    program = None if items is None else _programs[key]
    if program is None:
        program = _program_of(prim, types, params)
        if items is not None:
            _programs[key] = program
    return compile_program(program, [a._sig for a in arrays])


def _program_of(prim: Primitive, types: Sequence[ArrayType], params: dict[str, Any]) -> Program:
    return Program.of_one(prim, types, params, prim.name, user_location())


def as_array(x: Any) -> DeviceArray:
    """``x`` as an array that holds data.

    Raises:
        EscapedTracer: ``x`` belongs to a transformation that has ended.
        TypeError: ``x`` is no array.
    """
    if isinstance(x, DeviceArray):
        return x
    if isinstance(x, np.generic) and dtypes.canonical(x.dtype) is x.dtype:
        return from_scalar(x, default_sharding(), LiteralType((), x.dtype))
    if isinstance(x, (np.generic, *SCALARS)):
        kind = typeof(x)
        return from_scalar(dtypes.scalar(x, kind.dtype), default_sharding(), kind)
    if isinstance(x, Tracer):
        refuse_escaped(x)
    if isinstance(x, np.ndarray):
        return from_host(x)
    raise TypeError(
        f"an array or a number is needed, got {x!r} of type {type(x).__name__}, "
        f"at {user_location()}; convert it with jnp.array"
    )
