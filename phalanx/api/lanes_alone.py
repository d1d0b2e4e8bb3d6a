"""Lanes that know nothing of each other: their results are the same to the bit anywhere."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

from phalanx.base.config import config, settings
from phalanx.base.source import user_location
from phalanx.control.chunks import AtOnce, Reproducible
from phalanx.control.mapped import mapped
from phalanx.control.vectorized import vectorized
from phalanx.core.memoize import memoize_on
from phalanx.core.program import Equation, Program


def lanes_alone(at_once: AtOnce, reproducible: bool | None, who: str) -> AtOnce:
    """``at_once``, or lanes that know nothing of each other where results are to be
    ``reproducible``; None: as the option says.

    Raises:
        ValueError: several lanes are to run at once.
    """
    if not (settings().reproducible if reproducible is None else reproducible):
        return at_once
    if at_once not in (None, 1):
        raise ValueError(
            f"{who}: lanes_at_once={at_once!r} and reproducible, at {user_location()}: what lanes "
            "that run together compute may depend on how many they are, so each runs alone; leave "
            "out one of the two"
        )
    return Reproducible()


def inside_lanes(at_once: AtOnce) -> AbstractContextManager[None]:
    """While a function is traced of which ``at_once`` lanes run: mapped functions in reproducible
    ones are such, too."""
    if not isinstance(at_once, Reproducible):
        return nullcontext()
    return config.override(reproducible=True)


def on_operands(program: Program) -> Program:
    """``program`` with lanes of mapped functions where their operands lie, if nothing says where:
    what lanes of ``vmap`` compute beside them is divided over no devices either."""
    return memoize_on(program, on_operands, lambda: _on_operands(program))


def _on_operands(program: Program) -> Program:
    if mapped not in program.primitives:
        return program
    return program.update(equations=[_lanes_on_operands(e) for e in program.equations])


def _lanes_on_operands(e: Equation) -> Equation:
    frame = e.frame
    if frame is None:
        return e
    inner = e.reframed(frame.rewritten(on_operands))
    if e.prim is not mapped or not _lie_anywhere(**inner.params):
        return inner
    params = {name: inner.params[name] for name in ("program", "axes", "ins", "outs", "at_once")}
    return Equation(vectorized, inner.inputs, params, inner.outputs, inner.location)


def _lie_anywhere(*, at_once: AtOnce, devices: Any, mesh: Any, **_: Any) -> bool:
    return isinstance(at_once, Reproducible) and devices is mesh is None


def refuse_other_orders(program: Program, who: str, on_devices: bool = True) -> None:
    """Raise ValueError if something in ``program``, that of a reproducible lane, is left to the
    compiler that may change bits; or is divided over devices, where lanes are not ``on_devices``.
    """
    for e in program.walk():
        if e.prim is not mapped:
            continue
        if not on_devices or not isinstance(e.params["at_once"], Reproducible):
            (inner,) = e.programs
            raise ValueError(
                f"{who}: {inner.name}, at {e.location}, is divided over a mesh or devices of its "
                "own, or not reproducible itself: there numbers are added up in an order that "
                f"depends on the devices. Leave out reproducible, at {user_location()}, or use "
                "pmap in place of it, without devices"
            )
