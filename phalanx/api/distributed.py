"""One program in many processes: how they find each other, and how they part."""

# Users' arguments are looked at, whatever their types should be.
# pyright: reportUnnecessaryIsInstance=false

from __future__ import annotations

import atexit
import os
import socket
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Self

from msgspec.structs import replace

from phalanx.base import log
from phalanx.base.config import config
from phalanx.base.errors import RendezvousError
from phalanx.base.on_demand import OnDemand
from phalanx.base.source import user_location
from phalanx.base.version import __version__
from phalanx.processes import cluster, wire
from phalanx.processes.hub import Hub
from phalanx.processes.joined import forget, joined_member
from phalanx.processes.joining import join
from phalanx.processes.member import Member, report_exceptions
from phalanx.processes.settings import Settings
from phalanx.processes.threads import reserve_threads
from phalanx.run.backend import Coordination
from phalanx.run.runtime import backend

if TYPE_CHECKING:
    from phalanx.processes.secure import Credentials

_secure = OnDemand("phalanx.processes.secure", "it imports TLS, which few use")
_WHO = "distributed.initialize"


class Coordinator:
    """A coordinator in this process, with the service of the runtime that belongs to it.

    Raises:
        AddressTaken: its address is not to be had; the message says why.
    """

    def __init__(
        self,
        count: int,
        address: tuple[str, int],
        token: str = "",
        watched: Collection[int] = (),
        credentials: Credentials | None = None,
        attempt: int = 0,
    ) -> None:
        self._service: Coordination = backend().coordinate(count)
        try:
            self.hub = Hub(
                count, address, token, self._service.socket, watched, credentials, attempt
            )
        except OSError as e:
            self._service.close()
            raise AddressTaken.at(*address, e) from None

    def close(self) -> None:
        self.hub.close()
        self._service.close()


class AddressTaken(RendezvousError):
    """A coordinator cannot listen where it is to."""

    @classmethod
    def at(cls, host: str, port: int, error: OSError) -> Self:
        """The error that it cannot do so there."""
        why = os.strerror(error.errno) if error.errno else str(error)
        return cls(
            f"the coordinator cannot listen at {wire.address_of(host, port)}: {why}. "
            "Choose another port, or an address of this machine"
        )


_coordinating: list[tuple[Coordinator, float]] = []  # in this process, and how long it waits
_LINGERS = 10.0  # seconds for which it tells those who come why they cannot meet


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
    slice_index: int | None = None,
    partition_index: int | None = None,
    mtls_cert_file: str | None = None,
    mtls_key_file: str | None = None,
    mtls_ca_file: str | None = None,
    mtls_peer_uri_prefix: str | None = None,
    verify_secure_credentials: bool | None = None,
) -> None:
    """Let this process compute together with the others of its program.

    It comes first, before any device is used. What is not given is taken from the variables
    ``PHALANX_COORDINATOR_ADDRESS``, ``PHALANX_NUM_PROCESSES``, ``PHALANX_PROCESS_ID`` and
    ``PHALANX_LOCAL_DEVICE_IDS``, which ``phalanx launch`` sets, or else from the scheduler that
    runs the process. It returns when all processes have come. Where nothing at all tells of others,
    the process is alone: it returns at once, and the log says so.

    Args:
        coordinator_address: host and port at which the processes meet, such as "10.0.0.1:8476".
            Process 0 listens there, unless a launcher does.
        num_processes: how many there are.
        process_id: which one this is, from 0.
        local_device_ids: the GPUs of this machine that are for this process, as numbers among
            those that ``CUDA_VISIBLE_DEVICES`` leaves. By default the processes of a machine share
            them out evenly, where a launcher tells how many there are, or take all of them. A CPU
            is divided into ``num_cpu_devices`` in every process.
        cluster_detection_method: which scheduler to ask: "slurm", "ompi", "pmi", "k8s", "torchrun"
            or "tpu"; "deactivate" for none. Default: the first that is there.
        initialization_timeout: how many seconds to wait for the others.
        heartbeat_timeout_seconds: a process of which nothing is heard for so long counts as lost;
            the shortest that any process gives.
        shutdown_timeout_seconds: how long process 0 waits at its end for the others to end.
        coordinator_bind_address: where process 0 listens, if not at ``coordinator_address``.
        slice_index: the older name of ``partition_index``.
        partition_index: must be None: devices are not parted.
        mtls_cert_file: the certificate of this process; with this file and the next two the
            processes and the coordinator speak TLS, and each makes sure who the other is. It and
            those that follow default to the options of the same names.
        mtls_key_file: the key of that certificate.
        mtls_ca_file: the certificates to which those of the others must lead.
        mtls_peer_uri_prefix: how a URI among the names in the certificates of the others must
            begin, such as "spiffe://example.org/". If there is none, the coordinator's must have
            the name of its host.
        verify_secure_credentials: whether to refuse to do without TLS; defaults to the option
            ``distributed_verify_secure_credentials``.

    Raises:
        RendezvousError: devices have been used already, or the processes do not meet: nobody
            answers at the address, somebody has not come in time, they were told different counts,
            two of them the same number, their versions differ, or one does not take the
            certificate of another.
        PeerLost: a process ends when all have met, before it is ready.
        ValueError: something is not given and was not found, or makes no sense; the accelerators
            of this machine cannot be dealt out to its processes.
        OSError: the file of a certificate cannot be read.

    >>> import phalanx
    >>> phalanx.distributed.is_initialized()
    False
    """
    if joined_member() is not None:
        raise RendezvousError(f"{_WHO}: called a second time, at {user_location()}; once is enough")
    if backend().started():
        raise RendezvousError(
            f"{_WHO}: devices have been used before, at {user_location()}: call it first, before "
            "anything that makes or asks for arrays or devices"
        )
    for name, index in (("slice_index", slice_index), ("partition_index", partition_index)):
        if index is not None:
            raise _wrong(name, "None, for devices are not parted", index)
    patience = _seconds("initialization_timeout", initialization_timeout)
    silence = _seconds("heartbeat_timeout_seconds", heartbeat_timeout_seconds)
    lingering = _seconds("shutdown_timeout_seconds", shutdown_timeout_seconds)
    ids = (local_device_ids,) if isinstance(local_device_ids, int) else local_device_ids
    found = cluster.Found(coordinator_address, num_processes, process_id, ids)
    found = found.completed(cluster_detection_method, os.environ)
    is_deactivated = cluster_detection_method == "deactivate"
    if found == cluster.Found() and (is_deactivated or not cluster.is_incomplete(os.environ)):
        log.warn("%s: nothing tells of other processes, so this one computes alone", _WHO)
        return
    credentials = credentials_of(
        mtls_cert_file, mtls_key_file, mtls_ca_file, mtls_peer_uri_prefix, verify_secure_credentials
    )
    settings = _settings(found, patience, silence, credentials)
    gpus = _gpus(found)
    try:
        if settings.process == settings.coordinator_process:
            address = coordinator_bind_address or settings.address
            listening = listening_at(address, "coordinator_bind_address")
            started = Coordinator(
                settings.count, listening, settings.token, credentials=credentials,
                attempt=settings.attempt,
            )  # fmt: skip
            _coordinating[:] = [(started, lingering)]
        member = join(settings, _alike())
        atexit.register(backend().end_anyway)  # after `shutdown`
        backend().meet(member, gpus)
    except AddressTaken as taken:
        told = f"{_WHO}: {taken}, as coordinator_bind_address"
        raise _refused_there(settings) or RendezvousError(told) from None
    except RendezvousError:
        _close_coordinator(_LINGERS)
        raise
    except BaseException:
        forget()
        _close_coordinator(0)
        raise
    report_exceptions()
    reserve_threads()
    atexit.register(shutdown)
    os.register_at_fork(after_in_child=_stay_apart)


def _stay_apart() -> None:
    """A forked process has joined nobody: it leaves nobody at its end, and waits for nothing."""
    atexit.unregister(shutdown)
    atexit.unregister(backend().end_anyway)


def _gpus(found: cluster.Found) -> Sequence[int] | None:
    """The GPUs for this process; None: all."""
    if found.local_device_ids is not None or found.of_host is None:
        return found.local_device_ids
    return backend().local_device_ids(found.of_host)


def _seconds(name: str, value: object) -> float:
    """How many seconds ``value`` says; infinity is as many as the system can wait."""
    if not isinstance(value, (int, float)) or not value > 0:
        raise _wrong(name, "a number of seconds above 0", value)
    return min(float(value), _LONGEST)


_LONGEST = 1e8


def _refused_there(settings: Settings) -> RendezvousError | None:
    """What a coordinator of this program says that listens already where this one's is to."""
    try:
        join(replace(settings, patience=2.0), _alike()).leave()
    except RendezvousError as refused:
        return refused if "refuses" in str(refused) else None
    forget()
    return None


def credentials_of(
    cert_file: str | None = None,
    key_file: str | None = None,
    ca_file: str | None = None,
    peer_uri_prefix: str | None = None,
    verify: bool | None = None,
) -> Credentials | None:
    """What is shown to others, by what is given and else by the options; None for no TLS.

    Raises:
        ValueError: something is missing, or makes no sense.
        OSError: a file cannot be read.
    """
    options = {
        "mtls_cert_file": cert_file or config.mtls_cert_file,
        "mtls_key_file": key_file or config.mtls_key_file,
        "mtls_ca_file": ca_file or config.mtls_ca_file,
        "mtls_peer_uri_prefix": peer_uri_prefix or config.mtls_peer_uri_prefix,
    }
    if not any(options.values()):
        if config.distributed_verify_secure_credentials if verify is None else verify:
            raise ValueError(
                f"{_WHO}: verify_secure_credentials asks for mutual TLS, at {user_location()}: "
                "give mtls_cert_file, mtls_key_file and mtls_ca_file"
            )
        return None
    try:
        return _secure.Credentials(options)
    except ValueError as e:
        raise ValueError(f"{_WHO}: {e}, at {user_location()}") from None


def _wrong(name: str, expected: str, got: object) -> ValueError:
    return ValueError(f"{_WHO}: {name} must be {expected}, got {got!r}, at {user_location()}")


def _settings(
    found: cluster.Found, patience: float, silence: float, credentials: Credentials | None
) -> Settings:
    """What was given and found, checked.

    Raises:
        ValueError: something is missing, or makes no sense.
    """
    for name in ("coordinator_address", "num_processes", "process_id"):
        if getattr(found, name) is None:
            raise ValueError(
                f"{_WHO}: {name} should be defined, at {user_location()}: give it, or set "
                f"PHALANX_{name.upper()}; {cluster.advice(os.environ)}"
            )
    address, count, process = found.coordinator_address, found.num_processes, found.process_id
    assert address is not None
    assert count is not None
    assert process is not None
    try:
        _, port = wire.split(address)
    except ValueError as e:
        raise ValueError(f"{_WHO}: coordinator_address: {e}, at {user_location()}") from None
    if port == 0:
        raise _wrong("coordinator_address", "one whose port all know, from 1 up", address)
    for name, number in (("num_processes", count), ("process_id", process)):
        if not isinstance(number, int) or isinstance(number, bool):
            raise _wrong(name, "an int", number)
    if count < 1:
        raise _wrong("num_processes", "1 or more", count)
    if not 0 <= process < count:
        raise ValueError(
            f"{_WHO}: process_id {process} is not one of {count} processes, which are numbered "
            f"from 0 to {count - 1}, at {user_location()}"
        )
    ids = found.local_device_ids
    if ids is not None and not all(isinstance(i, int) and i >= 0 for i in ids):
        raise _wrong("local_device_ids", "a number from 0 up, or some", ids)
    token = os.environ.get("PHALANX_TOKEN") or found.job or ""
    coordinator_process = None if "PHALANX_COORDINATOR_STARTED" in os.environ else 0
    attempt = cluster.restarts(os.environ)
    return Settings(
        address, process, count, token, patience, credentials, silence, attempt, coordinator_process
    )


def _alike() -> dict[str, object]:
    """What must be the same in all processes."""
    return {
        "phalanx": __version__,
        "runtime": backend().version(),
        "platform": config.platforms or "any",
        "devices": config.num_cpu_devices,
    }


def listening_at(address: str, name: str) -> tuple[str, int]:
    """Where the coordinator listens whose address is ``address``: there, and nowhere else.

    Raises:
        ValueError: it is none; the message calls it ``name``.
        RendezvousError: there is no such host.
    """
    try:
        host, port = wire.split(address)
    except ValueError as e:
        raise ValueError(f"{_WHO}: {name}: {e}, at {user_location()}") from None
    if wire.is_loopback(host):
        return "127.0.0.1" if host == "localhost" else host, port
    try:
        return str(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][4][0]), port
    except OSError as e:
        raise RendezvousError(f"{_WHO}: the coordinator's host {host!r}: {e.strerror}") from None


def shutdown() -> None:
    """Leave the processes that compute together; at exit that happens by itself.

    It waits for what this process has launched with others: their part needs its own.
    In process 0, if the coordinator lives there, it waits for the others to do the same.

    Raises:
        PeerLost, ProgramMismatch: others never launch it; this process has parted all the same.
    """
    atexit.unregister(shutdown)
    member = joined_member()
    try:
        if member is not None and member.is_with_others:
            backend().complete()
    finally:
        _part(member)


def _part(member: Member | None) -> None:
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
    """Whether this process computes together with others.

    >>> import phalanx
    >>> phalanx.distributed.is_initialized()
    False
    """
    return joined_member() is not None


def key_value_set(key: str, value: str) -> None:
    """Store a value for all processes, under a key.

    Args:
        key: its name.
        value: text, of 64 MiB at most with what is escaped in it.

    Raises:
        TypeError: the key or the value is no text.
        ValueError: the value is too long.
        RendezvousError: ``initialize`` has not been called.
        PeerLost: a process is gone.
    """
    who = "key_value_set"
    _member(who).store(_text(key, "key", who), _text(value, "value", who))


def key_value_get(key: str, timeout: float | None = None) -> str:
    """The value of a key of the store that processes share; waits until one has set it.

    Args:
        key: its name.
        timeout: for how many seconds to wait; 0 for not at all, None for as long as it takes.

    Raises:
        KeyError: nobody has set it in time.
        TypeError: the key is no text.
        RendezvousError: ``initialize`` has not been called.
        PeerLost: a process is gone.
    """
    wait = timeout is None or timeout > 0
    patience = min(timeout, _LONGEST) if timeout and wait else None
    who = "key_value_get"
    value = _member(who).stored(_text(key, "key", who), wait, patience)
    if value is None:
        raise KeyError(f"key_value_get: nobody has set {key!r} within {timeout} s")
    return value


def key_value_delete(key: str) -> None:
    """Delete a key of the key-value store that processes share.

    Args:
        key: the name under which ``key_value_set`` stored something.

    Raises:
        TypeError: the key is no text.
        RendezvousError: ``initialize`` has not been called.
    """
    who = "key_value_delete"
    _member(who).forget(_text(key, "key", who))


def _text(value: object, name: str, who: str) -> str:
    if not isinstance(value, str):
        advice = f"give str({name}) if that is meant"
        if isinstance(value, bytes):
            advice = "bytes.hex() and bytes.fromhex() lead there and back"
        raise TypeError(
            f"{who}: {name} must be text, got {type(value).__name__} {value!r:.60}, at "
            f"{user_location()}; {advice}"
        )
    return value


def _member(who: str) -> Member:
    member = joined_member()
    if member is None:
        raise RendezvousError(
            f"{who}: this process is alone, at {user_location()}; distributed.initialize comes "
            "first"
        )
    return member
