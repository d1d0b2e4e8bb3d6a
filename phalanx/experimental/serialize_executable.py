"""Compiled functions as bytes: another process runs them without compiling.

They run where they were compiled: with the same version of the compiler, on a machine of the same
kind, with the same devices; what was compiled for described devices (``experimental.topologies``),
on a machine that has such. ``phalanx.export`` writes functions for other places.
"""

# What a compiled function holds is private to users, not to what stores it, and users' arguments
# are looked at, whatever their types should be.
# pyright: reportPrivateUsage=false, reportUnnecessaryIsInstance=false

from __future__ import annotations

import pickle
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
from msgspec import Struct

from phalanx.api.aot import abstract
from phalanx.api.devices import devices
from phalanx.api.stages import Compiled
from phalanx.base import tree
from phalanx.base.boundary import bound
from phalanx.base.errors import DeviceError
from phalanx.base.source import user_location
from phalanx.core.trace import Tracer
from phalanx.core.types import ArrayType
from phalanx.run.array import DeviceArray, moved, place
from phalanx.run.runnable import Runnable
from phalanx.spmd.pickled import pickled_devices, placed_on, unpickled_devices
from phalanx.spmd.sharding import Sharding

__all__ = ["deserialize_and_load", "serialize"]


class _Stored(Struct, frozen=True):
    """What is pickled: a compiled function, and what has to be known before it is loaded.

    Attributes:
        devices: those for which it was compiled.
        is_here: whether these were here, where it was compiled.
        content: the pickled rest.
    """

    who: str
    devices: list[Any]
    is_here: bool
    content: bytes

    def places(self, chosen: Sequence[Any] | None) -> list[Any]:
        """The devices on which it runs: the ``chosen`` ones, or of those that are here."""
        names = ", ".join(f"{d.platform}:{d.id}" for d in self.devices)
        whose = f"deserialize_and_load: {self.who} was compiled for {names}"
        if chosen is None:
            try:
                return unpickled_devices(self.devices)
            except DeviceError:
                raise DeviceError(
                    f"{whose}, and the devices here are {devices()}; load it where those are, or "
                    "say in execution_devices= on which it is to run"
                ) from None
        fits = not self.is_here and len(chosen) == len(self.devices)
        if not fits and pickled_devices(chosen) != self.devices:
            raise ValueError(f"{whose} and cannot run on {list(chosen)}; compile it for these")
        return list(chosen)


class _Serialized(Struct, frozen=True):
    """A compiled function.

    Attributes:
        positions: which arguments the program takes.
        shardings: where each of those is put.
    """

    who: str
    names: list[str]
    types: tuple[ArrayType, ...]
    positions: tuple[int, ...]
    shardings: tuple[Sharding, ...]
    program: Runnable


def serialize(compiled: Compiled) -> tuple[bytes, Any, Any]:
    """A compiled function as bytes, and the structures of its arguments and of its result.

    Args:
        compiled: what ``jit(f).lower(x).compile()`` gave.

    Returns:
        Bytes, and two structures.

    Raises:
        TypeError: ``compiled`` is something else.
        ValueError: it closes over large arrays or references.
        RuntimeFailure: it calls Python or spans processes, or the runtime cannot do that.

    >>> import phalanx, phalanx.numpy as jnp
    >>> compiled = phalanx.jit(lambda x: 2 * x).lower(jnp.ones(3)).compile()
    >>> kept, in_tree, out_tree = serialize(compiled)
    >>> print(deserialize_and_load(kept, in_tree, out_tree)(jnp.arange(3.0)))
    [0. 2. 4.]
    """
    if not isinstance(compiled, Compiled):
        raise TypeError(f"serialize: a compiled function is needed, got {compiled!r}")
    who, program = f"serialize: {compiled.fun_name}", compiled._compiled
    if compiled._traced.captured or not isinstance(program, Runnable) or program.constants:
        raise ValueError(
            f"{who} closes over references or large arrays, and cannot be serialized, at "
            f"{user_location()}; pass them as arguments"
        )
    names = compiled._whole.names.all()
    shardings = tuple([compiled._in_shardings[i] for i in compiled._positions])
    types = tuple(compiled._whole.types)
    serialized = _Serialized(
        compiled.fun_name, names, types, tuple(compiled._positions), shardings, program
    )
    return _stored(serialized), compiled.in_tree, compiled.out_tree


def _stored(serialized: _Serialized) -> bytes:
    executable = serialized.program.executable
    devices = pickled_devices(executable.devices)
    return pickle.dumps(
        _Stored(serialized.who, devices, executable.is_here, pickle.dumps(serialized))
    )


def deserialize_and_load(
    serialized: bytes,
    in_tree: Any,
    out_tree: Any,
    backend: Any = None,
    execution_devices: Sequence[Any] | None = None,
) -> Loaded:
    """The compiled function that ``serialize`` gave, which is called as it was.

    Args:
        serialized: the bytes. They are unpickled: take none from whom you do not trust.
        in_tree: the structure of the arguments.
        out_tree: the structure of the result.
        backend: without effect: devices are found by their platform and number.
        execution_devices: the devices on which it runs. They must be those for which it was
            compiled, or if these were described, as many of their kind; None: those with their
            numbers.

    Returns:
        A function that is called as the compiled one.

    Raises:
        ValueError: ``execution_devices`` are others.
        DeviceError: there are no devices with the numbers of those for which it was compiled.
        RuntimeFailure: it was compiled by another compiler or for another machine.

    >>> import phalanx, phalanx.numpy as jnp
    >>> sine = deserialize_and_load(*serialize(phalanx.jit(jnp.sin).lower(1.0).compile()))
    >>> print(sine(0.0))
    0.0
    """
    stored: _Stored = pickle.loads(serialized)
    places = stored.places(execution_devices)
    with placed_on(dict(zip(stored.devices, places, strict=True))):
        return Loaded(pickle.loads(stored.content), in_tree, out_tree)


class Loaded:
    """A compiled function that was loaded: it takes arguments of the types of the original."""

    def __init__(self, serialized: _Serialized, in_tree: Any, out_tree: Any) -> None:
        self._serialized = serialized
        self.in_tree = in_tree
        self.out_tree = out_tree

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """What the function gives.

        Raises:
            TypeError: the structure, a shape or a dtype differs from what it was compiled for, or
                an argument is traced.
        """
        serialized = self._serialized
        leaves, treedef = tree.flatten((args, kwargs))
        if treedef != self.in_tree:
            raise TypeError(
                f"{serialized.who}: was compiled for arguments of the structure "
                f"{tree.shown(self.in_tree)}, got {tree.shown(treedef)}, at {user_location()}"
            )
        for i, x in enumerate(leaves):
            self._check(i, x)
        pairs = zip(serialized.positions, serialized.shardings, strict=True)
        arrays = [_placed(leaves[i], serialized.types[i], sharding) for i, sharding in pairs]
        return self.out_tree.unflatten(serialized.program(arrays))

    call = __call__

    def _check(self, i: int, x: Any) -> None:
        wanted = self._serialized.types[i]
        who, names = self._serialized.who, self._serialized.names
        actual = None if isinstance(x, Tracer) else abstract(x, names, i, who)
        if actual is None or (actual.shape, actual.dtype) != (wanted.shape, wanted.dtype):
            raise TypeError(
                f"{who}: {names[i]} was compiled as {wanted}, got "
                f"{'a traced value' if actual is None else actual}, at {user_location()}"
            )


def _placed(x: Any, type: ArrayType, sharding: Sharding) -> DeviceArray:
    if isinstance(x, DeviceArray):
        x._check_alive()
        return moved(x, sharding)
    return place(np.asarray(x, type.dtype), type, sharding)


bound(sys.modules[__name__])
