"""Lanes that know nothing of each other: their results are the same to the bit anywhere."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

from phalanx.base.config import config, settings
from phalanx.base.source import user_location
from phalanx.control.chunks import AtOnce, Reproducible
from phalanx.control.mapped import mapped
from phalanx.core.program import Program


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


def refuse_other_orders(program: Program, at_once: AtOnce, who: str) -> None:
    """Raise ValueError if something in ``program`` is left to the compiler that may change bits of
    reproducible lanes."""
    if not isinstance(at_once, Reproducible):
        return
    for e in program.walk():
        if e.prim is mapped and not isinstance(e.params["at_once"], Reproducible):
            (inner,) = e.programs
            raise ValueError(
                f"{who}: {inner.name}, at {e.location}, is divided over a mesh or not reproducible "
                "itself: there numbers are added up in an order that depends on the devices. Leave "
                f"out reproducible, at {user_location()}, or use pmap in place of it"
            )
