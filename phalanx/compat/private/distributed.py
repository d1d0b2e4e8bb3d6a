"""``jax._src.distributed``: what libraries ask of the processes that compute together."""

from __future__ import annotations

from typing import Any

from phalanx.processes.joined import joined_member
from phalanx.run.runtime import backend


class _State:
    """That of this process."""

    @property
    def process_id(self) -> int:
        """Its number."""
        member = joined_member()
        return member.process if member else 0

    @property
    def num_processes(self) -> int:
        """How many there are."""
        member = joined_member()
        return member.count if member else 1

    @property
    def client(self) -> Any:
        """What speaks to the others through the runtime's service; None if there are none.

        It has its stored values and its barriers. Where a process is lost, they raise PeerLost.
        """
        return backend().client_for_libraries()


global_state = _State()
