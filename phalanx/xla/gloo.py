"""Gloo, on which arrays travel between the CPUs of processes, and how it is kept from waiting.

Gloo connects the devices of a group when they first communicate. Each stores where it listens,
and what number each of the others shall say; then one of each two calls, and the other waits. What
waits so for a process that is gone waits for half a minute. So others are told in its place: an
address that is none, where it has stored nothing, and a call that ends at once, where it calls
nobody.
"""

from __future__ import annotations

import contextlib
import socket
import struct
from typing import Any

from phalanx.processes import sever
from phalanx.processes.member import Member
from phalanx.xla.jaxlib_versions import xc

_STORE = "cpu:gloo"  # the runtime's name for what Gloo stores: /devices,by,comma/rank in the group
_PER_PROCESS = 2048  # numbers of CPU devices
_NOWHERE = bytes(16)  # a host and an address of no length, which Gloo refuses


class Gloo:
    """Gloo in the process of ``member``, which others reach at ``host``."""

    def __init__(self, member: Member, client: Any, host: str) -> None:
        before = sever.listening()
        self.collectives = xc.make_gloo_tcp_collectives(distributed_client=client, hostname=host)
        self._here = sorted(sever.listening() - before)
        everywhere = member.everyone.gather("starting the CPU client", self._here)
        self._listening = {(host, port) for addresses in everywhere for host, port in addresses}
        self._member, self._client = member, client
        self._logged: set[int] = set()
        self._over = False  # what is connected within this process from now on goes on

    def let_go(self) -> None:
        """End what waits for others, now that nothing is computed with them any more."""
        sever.sever(self._listening, within=not self._over)
        self._over = True
        with contextlib.suppress(RuntimeError):  # the store is gone now
            if self._member.reachable:
                self._answer()

    def _answer(self) -> None:
        """Store and call in the place of the others, in groups of devices here and elsewhere."""
        me = self._member.process
        groups: dict[str, dict[int, bytes]] = {}
        for key, stored in self._client.key_value_dir_get_bytes(_STORE):
            group, _, rank = key.rpartition("/")
            groups.setdefault(group, {})[int(rank)] = stored
        for group, stored in groups.items():
            devices = group.rpartition("/")[2].split(",")
            own = {rank for rank, d in enumerate(devices) if int(d) // _PER_PROCESS == me}
            if len(own) == len(devices):
                continue
            for rank in set(range(len(devices))) - stored.keys() - own:
                with contextlib.suppress(xc.JaxRuntimeError):  # another was quicker
                    self._client.key_value_set_bytes(f"{group}/{rank}", _NOWHERE)
            for rank in own & stored.keys():
                if stored[rank] != _NOWHERE:
                    numbers = f"={len(devices)}q"
                    self._call(struct.unpack_from(numbers, stored[rank], -struct.calcsize(numbers)))

    def _call(self, numbers: tuple[int, ...]) -> None:
        """Say those numbers, for those that do not."""
        for number in set(numbers) - self._logged:
            for address in self._here:
                with contextlib.suppress(OSError), socket.create_connection(address, 1) as sock:
                    sock.sendall(struct.pack("=q", number))
        self._logged.update(numbers)
