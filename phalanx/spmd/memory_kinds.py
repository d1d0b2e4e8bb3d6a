"""Kinds of memory that devices can reach: their own, and that of the host they are attached to."""

from __future__ import annotations

from typing import Any

from phalanx.base.choices import Choice
from phalanx.base.recent import memoized
from phalanx.base.source import user_location
from phalanx.core.layouts import Target
from phalanx.core.platforms import platform_of
from phalanx.core.program import Program, Var


class Space(Choice):
    """Whose memory is meant, wherever an array lies.

    >>> import phalanx
    >>> x = phalanx.device_put(phalanx.numpy.ones(3), Space.Host)
    >>> x.sharding.memory_kind, (2 * x).sharding.memory_kind
    ('pinned_host', 'device')
    """

    Device = None
    Host = "pinned_host"

    @property
    def kind(self) -> str | None:
        """The kind of memory; None for the own memory of the devices."""
        return self.value

    def __repr__(self) -> str:
        return f"Space.{self.name}"


def own_memory(device: Any) -> str | None:
    """The kind of the memory that is meant where none is named; None: nobody knows."""
    memory = getattr(device, "default_memory", None)
    return None if memory is None else memory().kind


def memory_of(kind: str | None, device: Any) -> str | None:
    """``kind``, of memory that ``device`` can reach; None for its own.

    Raises:
        ValueError: it has none of that kind.
    """
    if kind is None or kind == own_memory(device):
        return None
    reached: list[Any] = getattr(device, "addressable_memories", list)()
    kinds: list[str] = [memory.kind for memory in reached]
    if kind not in kinds:
        raise ValueError(
            f"memory_kind must be one of those that {device} can reach, "
            f"{', '.join(map(repr, kinds)) or 'of which none is known'}, got {kind!r}, at "
            f"{user_location()}"
        )
    return kind


def target_of(device: Any, halvings: int = 0, platform: str | None = None) -> Target:
    """What programs for ``device`` are written for, or in its place one of ``platform``."""
    own = platform_of(device)
    if platform not in (None, own):
        return Target(platform, halvings)
    return Target(own, halvings, None if own == "cpu" else _size_of_memory(device))


@memoized(1024)
def _size_of_memory(device: Any) -> int | None:
    """How many bytes ``device`` has of its own; None: nobody knows."""
    try:
        return device.memory_stats()["bytes_limit"]
    except (AttributeError, RuntimeError, TypeError, KeyError):  # a device that is only described
        return None


def memories_of_results(program: Program) -> tuple[str | None, ...]:
    """The kind of memory to which ``program`` brings each of its results; None: the devices' own.

    Runtimes take all results in the devices' own, so whoever runs it brings them there afterwards.
    """
    if all(p.on_devices.memory is None for p in program.primitives):
        return (None,) * len(program.outputs)
    kinds: dict[Any, str | None] = {}
    for e in program.equations:
        rule = e.prim.on_devices.memory
        if rule is not None:
            kinds[e.outputs[0]] = rule(**e.params)
        elif e.frame is not None:
            found = memories_of_results(e.frame.programs[0])
            kinds.update(zip(e.outputs, found, strict=True))
    return tuple(kinds.get(a) if isinstance(a, Var) else None for a in program.outputs)
