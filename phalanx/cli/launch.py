"""`phalanx launch -n 4 script.py` runs a program in several processes that compute together.

The coordinator lives here, so that no process is needed for the others to learn what happens.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import secrets
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Generator, Sequence
from types import FrameType
from typing import IO

from phalanx.api.distributed import Coordinator, credentials_of, listening_at
from phalanx.base.errors import RendezvousError
from phalanx.cli import scripts
from phalanx.cli.machines import Assignment, Ending, Fixed, Follower, Leader, report
from phalanx.processes import wire
from phalanx.processes.hub import Hub

_GRACE = 10.0  # seconds that the others have when one has failed; then they are ended
_HARDER = (signal.SIGINT, signal.SIGTERM, signal.SIGKILL)  # what one more Ctrl-C is passed on as
_PASSED_ON = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)


def run(arguments: argparse.Namespace) -> int:
    """Run the program until it ends; returns the exit status of the first process that failed."""
    why = _refused(arguments)
    if why:
        report(why)
        return 2
    if not arguments.module and not scripts.is_there("launch", arguments.script, is_module=False):
        return 2
    try:
        return _run_attempts(arguments)
    except (RendezvousError, ValueError, OSError) as e:
        report(str(e))
        return 1
    except KeyboardInterrupt:  # while it waits for other machines
        return 128 + signal.SIGINT


def _run_attempts(arguments: argparse.Namespace) -> int:
    """Run attempts until one ends well, or the first machine starts no more."""
    token = os.environ.get("PHALANX_TOKEN") or (
        secrets.token_hex(16) if arguments.nnodes == 1 else ""
    )
    with contextlib.closing(_machines(arguments, token)) as machines:
        assigned = machines.first()
        while assigned is not None:
            # the coordinator is there until all machines have ended: who comes late hears why
            with contextlib.closing(_Attempt(arguments, assigned, token)) as attempt:
                machines.begin(attempt.coordinator, attempt.hub)
                status = attempt.run()
                if status and _stopped:
                    return status
                assigned = machines.after(Ending(status, attempt.lost))
        return machines.status


def _machines(arguments: argparse.Namespace, token: str) -> Fixed | Leader | Follower:
    if arguments.nnodes > 1 and not arguments.elastic:
        return Fixed(arguments)
    return (Follower if arguments.node_rank else Leader)(arguments, token)


def _refused(arguments: argparse.Namespace) -> str:
    if arguments.node_rank >= arguments.nnodes:
        return f"--node-rank {arguments.node_rank} is not one of {arguments.nnodes} machines"
    if arguments.nnodes > 1 and arguments.coordinator is None:
        return "with several machines, --coordinator says where the first one listens"
    if arguments.coordinator is not None:
        try:
            wire.split(arguments.coordinator)
        except ValueError as e:
            return f"--coordinator: {e}"
    least, _ = arguments.elastic or (1, None)
    count = arguments.nproc * arguments.nnodes
    if least > count:
        return f"--elastic needs {least} processes, and -n and --nnodes start {count}"
    return ""


_stopped: list[int] = []  # the signals that were to end this


class _Attempt:
    """All processes of this machine, from their start to their end."""

    def __init__(self, arguments: argparse.Namespace, assigned: Assignment, token: str) -> None:
        self._arguments, self._assigned, self._token = arguments, assigned, token
        self._children: dict[int, subprocess.Popen[bytes]] = {}
        self._failed: dict[int, int] = {}
        self.lost: list[int] = []  # slots
        self._since = 0.0
        self.coordinator = assigned.coordinator
        self._hosting: Coordinator | None = None
        if not self.coordinator:
            address = arguments.coordinator or "127.0.0.1:0"
            if arguments.elastic:  # where launchers meet
                address = f"{address.rpartition(':')[0]}:0"
            self._hosting = Coordinator(
                assigned.count, listening_at(address, "--coordinator"), token,
                watched=self._slots(), credentials=credentials_of(), attempt=assigned.attempt,
            )  # fmt: skip
            self.coordinator = f"{address.rpartition(':')[0]}:{self._hosting.hub.port}"

    def run(self) -> int:
        before = {number: signal.signal(number, self._pass_on) for number in _PASSED_ON}
        try:
            readers = [self._start(process, slot) for process, slot in self._slots().items()]
            self._wait()
            for reader in readers:
                reader.join(_GRACE)  # not for ever: perhaps nobody reads what it writes
        finally:
            self._end(signal.SIGKILL)
            for number, handler in before.items():
                signal.signal(number, handler)
        return next(iter(self._failed.values()), 0)

    def close(self) -> None:
        """End the coordinator, if it is here."""
        if self._hosting is not None:
            self._hosting.close()

    @property
    def hub(self) -> Hub | None:
        """Where the processes meet, if that is here."""
        return self._hosting and self._hosting.hub

    def _slots(self) -> dict[int, int]:
        """The slots of this machine by the numbers of their processes."""
        return dict(enumerate(self._assigned.slots, self._assigned.first))

    def _start(self, process: int, slot: int) -> threading.Thread:
        arguments, assigned = self._arguments, self._assigned
        variables = {
            "PHALANX_COORDINATOR_ADDRESS": self.coordinator,
            "PHALANX_COORDINATOR_STARTED": "1",
            "PHALANX_NUM_PROCESSES": str(assigned.count),
            "PHALANX_PROCESS_ID": str(process),
            "PHALANX_NUM_LOCAL_PROCESSES": str(arguments.nproc),
            "PHALANX_LOCAL_PROCESS_ID": str(slot),
            "PHALANX_RESTART": str(assigned.attempt),
            "PYTHONUNBUFFERED": "1",
        }
        if arguments.devices_per_process:
            each = str(arguments.devices_per_process)
            variables |= {"PHALANX_DEVICES_PER_PROCESS": each, "PHALANX_NUM_CPU_DEVICES": each}
        if assigned.snapshot_servers:
            variables["PHALANX_SNAPSHOT_SERVERS"] = ",".join(assigned.snapshot_servers)
        if self._token:
            variables["PHALANX_TOKEN"] = self._token
        self._children[process] = child = subprocess.Popen(
            [sys.executable, *["-m"] * arguments.module, arguments.script, *arguments.arguments],
            env=os.environ | variables,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # signals reach it from here, once
        )
        if _stopped:  # before it was among those that signals are passed on to
            child.send_signal(_stopped[-1])
        assert child.stdout is not None
        pieces = _pieces(child.stdout, lambda: child.returncode is not None)
        reader = threading.Thread(target=_prefix, args=(process, pieces), daemon=True)
        reader.start()
        return reader

    def _wait(self) -> None:
        """Until all have ended; when one has failed the others get a while, and then a signal."""
        running = dict(self._children)
        while running:
            for process, child in list(running.items()):
                status = child.poll()
                if status is None:
                    continue
                del running[process]
                if self.hub is not None:
                    self.hub.process_ended(process, _text_of_status(status), status != 0)
                if self._is_loss(status):
                    self.lost.append(self._slots()[process])
                if status:
                    self._failed.setdefault(process, status if status > 0 else 128 - status)
                    self._since = self._since or time.monotonic()
                    with contextlib.suppress(ProcessLookupError):  # it has started no others
                        os.killpg(child.pid, signal.SIGKILL)
                    report(f"process {process} {_text_of_status(status)}")
            late = time.monotonic() - self._since if self._failed else 0.0
            if late > _GRACE + 5:
                self._end(signal.SIGKILL)
            elif late > _GRACE:
                self._end(signal.SIGTERM)
            time.sleep(0.02)

    def _is_loss(self, status: int) -> bool:
        """Whether a process that ends so is lost, and does not end because of another.

        Others may abort then, or are asked to end; who does not is killed, and lost.
        """
        others = (-signal.SIGABRT, -signal.SIGTERM) if self._failed else ()
        return status < 0 and status not in others

    def _end(self, number: int) -> None:
        for child in self._children.values():
            if child.poll() is None:
                child.send_signal(number)

    def _pass_on(self, number: int, frame: FrameType | None) -> None:
        del frame
        if number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            _stopped.append(number)
        if number == signal.SIGINT:
            number = _HARDER[min(_stopped.count(number), len(_HARDER)) - 1]
        self._end(number)


def _text_of_status(status: int) -> str:
    """How a process ended with ``status``, in words.

    >>> _text_of_status(3), _text_of_status(-9), _text_of_status(-40)
    ('exited with status 3', 'was killed by SIGKILL', 'was killed by signal 40')
    """
    if status >= 0:
        return f"exited with status {status}"
    number = -status
    named = number in {*signal.Signals}  # those for real time are not, but for the first and last
    return f"was killed by {signal.Signals(number).name if named else f'signal {number}'}"


def _pieces(output: IO[bytes], has_ended: Callable[[], bool]) -> Generator[bytes]:
    """What comes to ``output`` of a process, to its end.

    Others that the process has started may hold it open: so it is over, too, when nothing comes
    for a second after the process ``has_ended``.
    """
    poll = select.poll()
    poll.register(output, select.POLLIN)
    with output:
        over = False
        while not over:
            over = has_ended()
            if poll.poll(1000):
                over = not (piece := os.read(output.fileno(), 1 << 16))
                yield piece


def _prefix(process: int, pieces: Generator[bytes]) -> None:
    """Write the lines of an output as those of ``process``; a progress bar writes its own anew."""
    begun = b""
    try:
        for piece in pieces:
            *lines, begun = _LINES.split(begun + piece)
            if len(begun) > _LONGEST:
                lines, begun = [*lines, begun + b"\n"], b""
            _write(process, lines)
        if begun:
            _write(process, [begun + b"\n"])
    except BrokenPipeError:  # nobody reads on, as after `| head`
        pass
    except OSError as e:
        report(f"the output of process {process} cannot be written: {e.strerror}")
    finally:
        pieces.close()


_LINES = re.compile(rb"(?<=\n)|(?<=\r)(?=[^\n])")  # between them
_LONGEST = 1 << 20  # of a line, in bytes; what goes on is a line of its own


# What the runtime says of itself on stdout when processes connect, which is for what programs say;
# those of several devices write into one another's lines.
_OF_GLOO = re.compile(rb"\[Gloo\] Rank|connected (to \d+ )?peer ranks")


def _write(process: int, lines: Sequence[bytes]) -> None:
    for line in lines:
        out = sys.stderr if _OF_GLOO.search(line) else sys.stdout
        out.buffer.write(b"[%d] %s" % (process, line))
    sys.stdout.buffer.flush()
    sys.stderr.buffer.flush()
