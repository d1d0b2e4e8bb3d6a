"""The accelerators of a machine, dealt out to the processes that run on it."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from phalanx.base.errors import ConfigError


class OfHost(Struct, frozen=True):
    """Which process of a machine this is.

    Attributes:
        number: which one, from 0.
        count: of how many.
        each: how many devices each takes; None: all are dealt out evenly.
    """

    number: int
    count: int
    each: int | None = None

    def local_device_ids(self, gpus: int, are_assigned: bool = False) -> Sequence[int] | None:
        """The numbers of this process's among so many ``gpus`` that it sees; None: all of them.

        If they ``are_assigned`` to it, they may be for all processes; what does not suffice for all
        is its own.

        Raises:
            ConfigError: they cannot be dealt out; the message says how else.

        >>> OfHost(1, 4).local_device_ids(8), OfHost(1, 4, each=1).local_device_ids(8)
        ((2, 3), (1,))
        >>> OfHost(1, 4).local_device_ids(1, are_assigned=True)
        """
        if self.count == 1 and self.each is None:
            return None
        if gpus < self.count and are_assigned:
            return None
        each = self.each or gpus // self.count
        if not each or each * self.count > gpus or (self.each is None and gpus % self.count):
            raise ConfigError(
                f"this machine shows {gpus} GPUs, which cannot be dealt out to {self.count} "
                f"processes, {self.each or 'as many'} to each; start fewer, say how many each "
                "takes with phalanx launch --devices-per-process N or "
                "PHALANX_DEVICES_PER_PROCESS=N, or compute on the CPU with JAX_PLATFORMS=cpu"
            )
        return tuple(range(self.number * each, (self.number + 1) * each))
