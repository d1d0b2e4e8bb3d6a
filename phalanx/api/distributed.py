"""One program in many processes: how they find each other, and how they part."""

from __future__ import annotations

import atexit
import os
import socket
from collections.abc import Callable, Sequence

from phalanx.base.config import config
from phalanx.base.errors import RendezvousError
from phalanx.base.source import user_location
from phalanx.base.version import __version__
from phalanx.processes import cluster, wire
from phalanx.processes.hub import Hub
from phalanx.processes.member import Member, Settings, forget, join, joined, tell_of_exceptions
from phalanx.run.backend import Coordination
from phalanx.run.runtime import backend

_WHO = "distributed.initialize"


class Coordinator:
    """A coordinator in this process, with the service of the runtime that belongs to it.

    Raises:
        RendezvousError: its address is not to be had; the message says why.
    """

    def __init__(
        self,
        count: int,
        address: tuple[str, int],
        token: str = "",
        silence: float = 100.0,
        ended: Callable[[int], str] = lambda process: "",
    ) -> None:
        self._service: Coordination = backend().coordinate(count)
        try:
            self.hub = Hub(count, address, token, self._service.socket, silence, ended)
        except OSError as e:
            self._service.close()
            host, port = address
            raise RendezvousError(
                f"{_WHO}: the coordinator cannot listen at {host}:{port}: {e.strerror or e}. "
                "Choose another port, or with coordinator_bind_address an address of this machine"
            ) from None

    def close(self) -> None:
        self.hub.close()
        self._service.close()


_coordinating: list[tuple[Coordinator, float]] = []  # in this process, and how long it waits


def initialize(
    coordinator_address: str | None = None,
    num_processes: int | None = None,
    process_id: int | None = None,
    local_device_ids: int | Sequence[int] | None = None,
    cluster_detection_method: str | None = None,
    initialization_timeout: int = 300,
    heartbeat_timeout_seconds: int = 100,
    shutdown_timeout_seconds: int = 300,
    coordinator_bind_address: str | None = None,
) -> None:
    """Let this process compute together with the others of its program.

    It comes first, before any device is used. What is not given is taken from the variables
    ``PHALANX_COORDINATOR_ADDRESS``, ``PHALANX_NUM_PROCESSES``, ``PHALANX_PROCESS_ID`` and
    ``PHALANX_LOCAL_DEVICE_IDS``, which ``phalanx launch`` sets, or else from the scheduler that
    runs the process. It returns when all processes have come.

    Args:
        coordinator_address: host and port at which the processes meet, such as "10.0.0.1:8476".
            Process 0 listens there, unless a launcher does.
        num_processes: how many there are.
        process_id: which one this is, from 0.
        local_device_ids: the accelerators of this machine that are for this process; default all.
        cluster_detection_method: which scheduler to ask: "slurm", "ompi", "pmi", "k8s", "torchrun"
            or "tpu"; "deactivate" for none. Default: the first that is there.
        initialization_timeout: how many seconds to wait for the others.
        heartbeat_timeout_seconds: a process of which nothing is heard for so long counts as lost.
        shutdown_timeout_seconds: how long process 0 waits at its end for the others to end.
        coordinator_bind_address: where process 0 listens, if not at ``coordinator_address``.

    Raises:
        RendezvousError: devices have been used already, or the processes do not meet: nobody
            answers at the address, somebody has not come in time, they were told different counts,
            two of them the same number, or their versions differ.
        ValueError: something is not given and was not found.

    >>> import phalanx
    >>> phalanx.distributed.is_initialized()
    False
    """
    if joined() is not None:
        raise RendezvousError(f"{_WHO}: called a second time, at {user_location()}; once is enough")
    if backend().started():
        raise RendezvousError(
            f"{_WHO}: devices have been used before, at {user_location()}: call it first, before "
            "anything that makes or asks for arrays or devices"
        )
    ids = (local_device_ids,) if isinstance(local_device_ids, int) else local_device_ids
    given = cluster.Found(coordinator_address, num_processes, process_id, ids)
    given = given.or_else(cluster.own(os.environ))
    if None in (given.coordinator_address, given.num_processes, given.process_id):
        given = given.or_else(cluster.detected(cluster_detection_method, os.environ))
    settings = _settings(given, initialization_timeout)
    if settings.process == 0 and "PHALANX_COORDINATOR_STARTED" not in os.environ:
        here = listening_at(coordinator_bind_address or settings.address)
        silence = float(heartbeat_timeout_seconds)
        started = Coordinator(settings.count, here, settings.token, silence)
        _coordinating[:] = [(started, shutdown_timeout_seconds)]
    try:
        member = join(settings, _alike())
        backend().meet(member, member.host)
    except BaseException:
        _close_coordinator(0)
        raise
    tell_of_exceptions()
    atexit.register(shutdown)


def _settings(given: cluster.Found, patience: float) -> Settings:
    """What was given and found, checked.

    Raises:
        ValueError: something is missing, or makes no sense.
    """
    missing = {
        "coordinator_address": given.coordinator_address,
        "num_processes": given.num_processes,
        "process_id": given.process_id,
    }
    for name, value in missing.items():
        if value is None:
            raise ValueError(
                f"{_WHO}: {name} should be defined, at {user_location()}: give it, or set "
                f"PHALANX_{name.upper()}; no scheduler was found that tells it. On one machine, "
                "phalanx launch -n 4 script.py sets all of them"
            )
    address, count, process = given.coordinator_address, given.num_processes, given.process_id
    assert address is not None
    assert count is not None
    assert process is not None
    try:
        wire.split(address)
    except ValueError as e:
        raise ValueError(f"{_WHO}: coordinator_address: {e}, at {user_location()}") from None
    if not 0 <= process < count:
        raise ValueError(
            f"{_WHO}: process_id {process} is not one of {count} processes, which are numbered "
            f"from 0 to {count - 1}, at {user_location()}"
        )
    return Settings(address, process, count, os.environ.get("PHALANX_TOKEN", ""), patience)


def _alike() -> dict[str, object]:
    """What must be the same in all processes."""
    return {
        "phalanx": __version__,
        "runtime": backend().version(),
        "platform": config.platforms or "",
        "devices": config.num_cpu_devices,
    }


def listening_at(address: str) -> tuple[str, int]:
    """Where the coordinator listens whose address is ``address``: there, and nowhere else."""
    host, port = wire.split(address)
    if wire.is_loopback(host):
        return "127.0.0.1" if host == "localhost" else host, port
    try:
        return str(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][4][0]), port
    except OSError as e:
        raise RendezvousError(f"{_WHO}: the coordinator's host {host!r}: {e.strerror}") from None


def shutdown() -> None:
    """Part from the other processes; what spans processes is over. At exit it comes by itself.

    In process 0, if the coordinator lives there, it waits for the others to do the same.
    """
    atexit.unregister(shutdown)
    member = joined()
    if member is not None:
        backend().part()
        member.leave()
        forget()
    for _, patience in list(_coordinating):
        _close_coordinator(patience if member is not None and member.verdict is None else 0)


def _close_coordinator(patience: float) -> None:
    for coordinator, _ in _coordinating:
        coordinator.hub.everyone_left.wait(patience)
        coordinator.close()
    _coordinating.clear()


def is_initialized() -> bool:
    """Whether this process computes together with others."""
    return joined() is not None


def key_value_set(key: str, value: str) -> None:
    """Let all processes find ``value`` under ``key``.

    Raises:
        RendezvousError: ``initialize`` has not been called.
        PeerLost: a process is gone.
    """
    _member("key_value_set").store(str(key), str(value))


def key_value_get(key: str, timeout: float | None = None) -> str:
    """What a process has set under ``key``; waits until one has.

    Args:
        key: its name.
        timeout: for how many seconds to wait; 0 for not at all, None for as long as it takes.

    Raises:
        KeyError: nobody has set it in time.
        RendezvousError: ``initialize`` has not been called.
        PeerLost: a process is gone.
    """
    wait = timeout is None or timeout > 0
    value = _member("key_value_get").stored(str(key), wait, timeout if wait else None)
    if value is None:
        raise KeyError(f"key_value_get: nobody has set {key!r} within {timeout} s")
    return value


def key_value_delete(key: str) -> None:
    """Let no process find ``key`` any more."""
    _member("key_value_delete").forget(str(key))


def _member(who: str) -> Member:
    member = joined()
    if member is None:
        raise RendezvousError(
            f"{who}: this process is alone, at {user_location()}; distributed.initialize comes "
            "first"
        )
    return member
