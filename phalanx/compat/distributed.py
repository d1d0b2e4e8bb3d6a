"""``jax._src.distributed``: what libraries ask of the processes that compute together."""

from __future__ import annotations

from phalanx.processes.joined import joined_member


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
    def client(self) -> None:
        """What speaks to the others, of which there are none.

        Raises:
            NotImplementedError: there are some.
        """
        if joined_member():
            raise NotImplementedError(
                "jax._src.distributed.global_state.client is not offered where several processes "
                "compute together: save with phalanx.experimental.checkpoint, and tell the others "
                "with phalanx.distributed.key_value_set"
            )


global_state = _State()
