"""XLA's part in a program of many processes: its coordination service and what the CPUs have of it.

The service and its clients reach each other by ``phalanx.processes.relay``. They are told that
nothing is ever late: who is gone is known otherwise (``phalanx.processes.hub``), and a client that
notices something by itself would end the process.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Sequence
from contextlib import closing, contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from jaxlib import utils

from phalanx.base.errors import JaxRuntimeError
from phalanx.base.on_demand import OnDemand
from phalanx.xla.jaxlib_versions import xc

if TYPE_CHECKING:
    from phalanx.processes.member import Member

_relay = OnDemand("phalanx.processes.relay", "it imports sockets, which few use")
_gloo = OnDemand("phalanx.xla.gloo", "only several processes need it")
_NEVER = 10_000_000  # seconds

_connected: list[tuple[Member, Any]] = []  # this process, and the runtime's client
_visible: list[int] = []  # the GPUs for this process; all if there are none


class Service:
    """XLA's coordination service for ``count`` processes."""

    def __init__(self, count: int) -> None:
        self._folder = _relay.Folder()
        self.socket = self._folder.socket
        with _quiet():
            self._service = xc.get_distributed_runtime_service(
                self._folder.address, count, heartbeat_timeout=_NEVER, shutdown_timeout=1,
                cluster_register_timeout=_NEVER, recoverable=True,
            )  # fmt: skip

    def close(self) -> None:
        with _quiet():
            self._service.shutdown()
        self._folder.remove()


def connect(member: Member, gpus: Sequence[int] | None) -> None:
    """Let the clients of this process know the other processes, and see those GPUs alone.

    Raises:
        PeerLost: one of them is lost before its client has come, for which all others wait.
    """
    with _quiet(), closing(member.relay()) as relay:
        client = xc.get_distributed_runtime_client(
            relay.address, member.process, init_timeout=_NEVER, shutdown_timeout=1,
            heartbeat_timeout=_NEVER, shutdown_on_destruction=False,
        )  # fmt: skip
        member.in_another_thread(client.connect, "distributed.initialize", lambda: True)
    _connected[:] = [(member, client)]
    _visible[:] = gpus or ()


def leave() -> None:
    """Let the service know that this process will say no more; without it, its end is an error."""
    for member, client in _connected:
        if member.reachable:
            with _quiet():
                client.shutdown()


def cpu_arguments() -> dict[str, Any]:
    """What the CPU client has to know of other processes, if there are any."""
    if not _connected:
        return {}
    member, client = _connected[0]
    gloo = _gloo.Gloo(member, client, member.host)
    member.let_go = gloo.let_go
    return {
        "distributed_client": client,
        "node_id": member.process,
        "num_nodes": member.count,
        "collectives": gloo.collectives,
    }


def gpu_arguments() -> dict[str, Any]:
    """The options of the GPU client that others concern."""
    options: dict[str, Any] = {"visible_devices": _visible} if _visible else {}
    if not _connected:
        return options
    member, _ = _connected[0]
    return options | {"node_id": member.process, "num_nodes": member.count}


def distributed_client() -> Any:
    """What clients of plugins speak through to other processes; None if there are none."""
    return _connected[0][1] if _connected else None


class Client:
    """What libraries say through XLA's client to other processes, with errors of ours.

    XLA ends no such call when a process is lost: so it waits out of reach, and is left alone then.
    """

    def __init__(self, member: Member, client: Any) -> None:
        self._member, self._client = member, client

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name not in _SERVED:
            raise AttributeError(f"the client of other processes has {', '.join(_SERVED)}: {name}")
        ask = getattr(self._client, name)

        def asked(*args: Any, **named: Any) -> Any:
            self._member.check(name)
            try:
                return self._member.in_another_thread(
                    partial(ask, *args, **named), name, lambda: True
                )
            except xc.JaxRuntimeError as e:
                raise JaxRuntimeError(str(e)) from None

        return asked


_SERVED = (
    "blocking_key_value_get",
    "blocking_key_value_get_bytes",
    "get_live_nodes",
    "key_value_delete",
    "key_value_dir_get",
    "key_value_dir_get_bytes",
    "key_value_increment",
    "key_value_set",
    "key_value_set_bytes",
    "key_value_try_get",
    "key_value_try_get_bytes",
    "wait_at_barrier",
)


def client_for_libraries() -> Client | None:
    """The client of the coordination service that libraries ask for; None for a process alone."""
    return Client(*_connected[0]) if _connected else None


@contextmanager
def _quiet() -> Generator[None]:
    """Without the runtime's warnings of what is meant to be so."""
    if "TF_CPP_MIN_LOG_LEVEL" in os.environ:
        yield
        return
    utils.absl_set_min_log_level(2)
    try:
        yield
    finally:
        utils.absl_set_min_log_level(1)
