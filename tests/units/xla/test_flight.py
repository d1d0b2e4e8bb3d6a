"""Waiting for launches over processes, of which one is lost."""

import threading
from collections import deque

import pytest

from phalanx.base.errors import PeerLost
from phalanx.processes.hub import Hub
from phalanx.processes.joined import forget
from phalanx.processes.joining import join
from phalanx.processes.settings import Settings
from phalanx.xla import flight

ALIKE = {"phalanx": "1", "runtime": "2", "platform": "", "devices": 1}


class Pending:
    """A token or an array of a launch that ends when ``ends`` is called."""

    def __init__(self):
        self._ended = threading.Event()
        self.ends = self._ended.set
        self.is_ready = self._ended.is_set
        self.block_until_ready = self._ended.wait


@pytest.fixture
def left_alone(monkeypatch):
    """This process, when the other one of two is lost."""
    hub = Hub(2, ("127.0.0.1", 0), "secret", "/nowhere")
    members = {}

    def meet(process):
        settings = Settings(f"127.0.0.1:{hub.port}", process, 2, "secret", 10.0)
        members[process] = join(settings, ALIKE)

    threads = [threading.Thread(target=meet, args=(process,)) for process in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    monkeypatch.setattr(flight, "joined_member", lambda: members[0])
    monkeypatch.setattr(flight, "in_flight", deque())
    monkeypatch.setattr(flight, "_last", deque(maxlen=1))
    monkeypatch.setattr(flight, "_asked", deque(maxlen=1))
    monkeypatch.setattr("phalanx.processes.member._GRACE", 0.6)
    yield members[1]._line.close
    members[0].leave()
    forget()
    hub.close()


def launch(token, outs=(), first=False):
    member = flight.joined_member()
    return flight.over_processes(member, lambda: (list(outs), token), True, first, "step")


def test_what_is_done_when_a_launch_returns_is_waited_for_no_more(left_alone):
    done, pending = Pending(), Pending()
    done.ends()
    launch(pending, [done])
    assert not flight._last and not flight.in_flight
    launch(pending, [done, pending])
    assert len(flight._last) == len(flight.in_flight) == 1
    pending.ends()


def test_arrays_of_a_launch_that_never_ends_are_given_up(left_alone):
    token, array = Pending(), Pending()
    launch(token, [array])
    threading.Timer(0.1, left_alone).start()
    with pytest.raises(PeerLost, match=r"^reading: process 1|^reading \(.*process 1"):
        flight.waited([array], list, "reading")
    with pytest.raises(PeerLost, match="process 1"):  # nor does another one wait for it
        launch(Pending(), [array])
    with pytest.raises(PeerLost, match="process 1"):
        flight.complete()
    token.ends()
    array.ends()


def test_a_first_launch_that_never_ends_is_given_up(left_alone):
    token = Pending()
    threading.Timer(0.1, left_alone).start()
    with pytest.raises(PeerLost, match="process 1"):
        launch(token, [token], first=True)
    token.ends()


def test_what_compiles_is_left_alone(left_alone):
    compiled = Pending()
    threading.Timer(0.1, left_alone).start()
    with pytest.raises(PeerLost, match=r"^compiling step.*process 1"):
        flight.compiling(flight.joined_member(), compiled.block_until_ready, "step")
    threading.Timer(0.1, compiled.ends).start()
    flight.end_anyway()
    assert compiled.is_ready()


def test_after_a_loss_local_work_takes_its_time(left_alone):
    token, array = Pending(), Pending()
    token.ends()
    launch(token, [array])
    left_alone()
    threading.Timer(1.5, array.ends).start()
    assert flight.waited([array], lambda: "done", "reading") == "done"
