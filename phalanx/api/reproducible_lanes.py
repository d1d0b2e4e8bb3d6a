"""Lanes that know nothing of each other: their results are the same to the bit anywhere."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

from msgspec import Struct

from phalanx.base.config import settings
from phalanx.base.source import user_location
from phalanx.control.chunks import AtOnce, Reproducible
from phalanx.control.mapped import mapped
from phalanx.core import axes
from phalanx.core.program import Program


class _ReproducibleLanes(Struct, frozen=True):
    """What is known where the function of a reproducible lane is traced, its rules included."""

    on_operands: bool


def as_reproducible(at_once: AtOnce, reproducible: bool | None, who: str) -> AtOnce:
    """``at_once``, or lanes that know nothing of each other where results are to be
    ``reproducible``; None: as the option says, and in such lanes.

    Raises:
        ValueError: several lanes are to run at once.
    """
    if reproducible is None:
        reproducible = settings().reproducible or bool(_facts())
    if not reproducible:
        return at_once
    if at_once not in (None, 1):
        raise ValueError(
            f"{who}: lanes_at_once={at_once!r} and reproducible, at {user_location()}: what lanes "
            "that run together compute may depend on how many they are, so each runs alone; leave "
            "out one of the two"
        )
    return Reproducible()


def inside_lanes(at_once: AtOnce, on_operands: bool = False) -> AbstractContextManager[None]:
    """While a function is traced of which ``at_once`` lanes run: mapped functions in reproducible
    ones are such, too. Those of ``vmap`` run where their operands are, with all that is in them."""
    return (
        axes.knowing(_ReproducibleLanes(on_operands)) if is_reproducible(at_once) else nullcontext()
    )


def is_reproducible(at_once: AtOnce) -> bool:
    """Whether lanes know nothing of each other."""
    return isinstance(at_once, Reproducible)


def on_operands() -> bool:
    """Whether what is traced is in reproducible lanes that run where their operands are."""
    return any(fact.on_operands for fact in _facts())


def _facts() -> list[_ReproducibleLanes]:
    return [fact for fact in axes.facts() if isinstance(fact, _ReproducibleLanes)]


def refuse_in_lanes(program: Program, who: str) -> None:
    """Raise ValueError if ``program`` is traced in reproducible lanes and may not be there.

    Rules of derivatives are traced after the lanes that they are for: ``refuse_other_orders`` does
    not see in the program of a lane what they contain.
    """
    if _facts():
        refuse_other_orders(program, who, on_devices=not on_operands())


def refuse_other_orders(program: Program, who: str, on_devices: bool = True) -> None:
    """Raise ValueError if something in ``program``, that of a reproducible lane, is left to the
    compiler that may change bits; or is divided over devices, where lanes are not ``on_devices``.
    """
    for e in program.walk():
        if e.prim is not mapped:
            continue
        if not on_devices or not is_reproducible(e.params["at_once"]):
            (inner,) = e.programs
            here = user_location()
            raise ValueError(
                f"{who}: {inner.name}, at {e.location or here}, is divided over a mesh or devices "
                "of its own, or not reproducible itself: there numbers are added up in an order "
                f"that depends on the devices. Leave out reproducible, at {here}, or use pmap in "
                "place of it, without devices"
            )
