"""Thousands of members of one coordinator: the real one, and members without programs.

    python -m tests.units.processes.simulated 256 1024 4096

prints, for each number, what it takes them to join, to meet, to idle, and to hear of a loss; the
coordinator is a process of its own, and all members are served by one thread of another. What they
say and hear is what they do in real programs, but for what the runtimes exchange.
"""

import os
import random
import resource
import socket
import subprocess
import sys
import time
from collections import Counter, defaultdict
from functools import partial
from pathlib import Path

from phalanx.processes.forms import numbers
from phalanx.processes.hub import Hub
from phalanx.processes.line import Line
from phalanx.processes.loop import EventLoop
from phalanx.processes.watched import pause
from phalanx.processes.wire import encoded

_SILENCE = 100.0
_LAUNCHED = 32
_PATIENCE = 120.0


class Member:
    """A member that counts what it hears.

    Attributes:
        bytes, heard: how many of each kind of message.
        told: the messages of each kind, in order.
    """

    def __init__(self, crowd, process):
        self.crowd, self.process = crowd, process
        self.bytes, self.heard, self.told = Counter(), Counter(), defaultdict(list)
        self.gathers = 0
        sock = socket.create_connection(("127.0.0.1", crowd.port))
        self.line = Line(crowd.loop, sock, on_message=self._hear)
        self.say = self.line.send
        self.say(
            what="join", token="token", process=process, count=crowd.count, attempt=0,
            silence=_SILENCE, host="host", pid=process, phalanx="0", runtime="0",
            platform="any", devices=1,
        )  # fmt: skip

    def _hear(self, message):
        what = message["what"]
        self.bytes[what] += len(encoded(message))
        self.heard[what] += 1
        self.told[what].append(message)
        self.crowd.heard[what] += 1

    def gather(self, value):
        self.gathers += 1
        group = self.crowd.everyone
        self.say(
            what="gather", key=f"{group}/{self.gathers}", topic="step", value=value, detail="",
            compared={}, launched={group: _LAUNCHED}, launches={},
        )  # fmt: skip

    @property
    def gathered(self):
        return [v for length, v in self.told["gathered"][-1]["runs"] for _ in range(length)]

    def launch(self, first, last):
        launches = [[n, n * 0x9E3779B97F4A7C15 % ((1 << 61) - 1), "pmap_step of 8, 8 rows"]
                    for n in range(first, last + 1)]  # fmt: skip
        self.say(what="pulse", launches={self.crowd.everyone: launches})

    def idle(self):
        """Give signs of life."""
        sign = partial(self.say, what="pulse", launches={})
        begin = partial(self.crowd.loop.every, pause(_SILENCE), sign)
        self.crowd.loop.call(
            partial(self.crowd.loop.later, random.random() * pause(_SILENCE), begin)
        )


class Crowd:
    """All members, once they have joined."""

    def __init__(self, count, port):
        self.count, self.port = count, port
        self.everyone = numbers(range(count))
        self.heard = Counter()
        self.loop = EventLoop()
        order = random.Random(0).sample(range(count), count)
        self.members = sorted([Member(self, i) for i in order], key=lambda m: m.process)
        self.wait("welcome", count)

    def wait(self, what, count):
        """Wait until so many messages of that kind have come; they are counted from 0 then."""
        until = time.monotonic() + _PATIENCE
        while self.heard[what] < count:
            if time.monotonic() > until:
                raise TimeoutError(f"{self.heard[what]} of {count} have heard: {what}")
            time.sleep(0.001)
        self.heard[what] -= count

    def gather(self, value_of):
        for member in self.members:
            member.gather(value_of(member.process))
        self.wait("gathered", self.count)

    def forget(self):
        """Count bytes from 0 on."""
        for member in self.members:
            member.bytes.clear()
            member.heard.clear()

    def close(self):
        self.loop.call(self.loop.stop)
        self.loop.join()


def let_open(files):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(files, hard)), hard))


class Coordinator:
    """One in a process of its own, whose costs are seen from outside."""

    def __init__(self, count):
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.units.processes.simulated", "--serve", str(count)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        self.port = int(self._process.stdout.readline())
        self._proc = Path(f"/proc/{self._process.pid}")

    def seconds(self):
        """Of the processor, that it has used."""
        fields = (self._proc / "stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def megabytes(self):
        return int((self._proc / "statm").read_text().split()[1]) * 4096 / 1e6

    def threads(self):
        return len(list((self._proc / "task").iterdir()))

    def close(self):
        self._process.stdin.close()
        self._process.wait(30)


def serve(count):
    hub = Hub(count, ("127.0.0.1", 0), "token", "/nowhere")
    print(hub.port, flush=True)
    sys.stdin.read()
    hub.close()


def measure(count):
    """Print the costs of ``count`` members."""
    hub = Coordinator(count)
    crowds = []

    def timed(name, work):
        told = sum(m.bytes.total() for crowd in crowds for m in crowd.members)
        begun, used = time.monotonic(), hub.seconds()
        result = work()
        took, used = time.monotonic() - begun, hub.seconds() - used
        crowds.extend([result] * isinstance(result, Crowd))
        told = sum(m.bytes.total() for crowd in crowds for m in crowd.members) - told
        print(
            f"{count:6} {name:24} {took:8.3f} s  coordinator {used:6.2f} s  told {told / 1e6:8.2f} "
            f"MB  {hub.megabytes():5.0f} MB  {hub.threads()} threads",
            flush=True,
        )
        return result

    crowd = timed("join", lambda: Crowd(count, hub.port))
    timed("barrier", lambda: crowd.gather(lambda _: None))
    timed("barrier again", lambda: crowd.gather(lambda _: None))
    timed("gather of digests alike", lambda: crowd.gather(lambda _: "0" * 32))
    timed("gather of numbers", lambda: crowd.gather(lambda process: process))
    for member in crowd.members:
        member.launch(1, _LAUNCHED)
    timed("one key set and got", lambda: _share(crowd))
    for member in crowd.members:
        member.idle()
    time.sleep(1)
    timed("10 s idle", lambda: time.sleep(10))
    timed("barrier when idling", lambda: crowd.gather(lambda _: None))
    lost, *others = crowd.members
    crowd.loop.call(lost.line.end)
    timed("loss told to all", lambda: crowd.wait("verdict", len(others)))
    crowd.close()
    hub.close()


def _share(crowd):
    for member in crowd.members:
        member.say(what="set", key=str(member.process), value="x" * 64)
        member.say(what="get", key="0", number=1, wait=True)
    crowd.wait("got", crowd.count)


if __name__ == "__main__":
    let_open(1 << 20)
    if sys.argv[1] == "--serve":
        serve(int(sys.argv[2]))
    else:
        for given in sys.argv[1:]:
            measure(int(given))
