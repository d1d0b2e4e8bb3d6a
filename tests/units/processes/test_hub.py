"""The coordinator, with members that are threads of this process."""

import socket
import threading
import time

import pytest

from phalanx.base.errors import PeerLost, ProgramMismatch, RendezvousError
from phalanx.processes.hub import Hub
from phalanx.processes.member import Settings, forget, join

ALIKE = {"phalanx": "1", "runtime": "2", "platform": "", "devices": 1}


@pytest.fixture
def coordinator():
    hubs = []

    def start(count, **options):
        hubs.append(Hub(count, ("127.0.0.1", 0), "secret", "/nowhere", **options))
        return hubs[-1]

    yield start
    forget()
    for hub in hubs:
        hub.close()


def meet(hub, *settings, abouts=()):
    """What each of those who come at once gets: a member, or the error."""
    results = [None] * len(settings)

    def one(i):
        try:
            results[i] = join(settings[i], abouts[i] if abouts else ALIKE)
        except RendezvousError as e:
            results[i] = e

    threads = [threading.Thread(target=one, args=(i,)) for i in range(len(settings))]
    for i, thread in enumerate(threads):
        thread.start()
        if i + 1 < len(threads):
            time.sleep(0.02)  # so that they come in this order
    for thread in threads:
        thread.join(20)
    return results


def wanting(hub, process, count, token="secret", patience=10.0):
    return Settings(f"127.0.0.1:{hub.port}", process, count, token, patience)


def test_members_gather_what_each_gives(coordinator):
    hub = coordinator(3)
    members = meet(hub, *[wanting(hub, i, 3) for i in range(3)])
    assert [m["process"] for m in members[0].members] == [0, 1, 2]
    given = [None] * 3

    def gather(i):
        given[i] = [members[i].everyone.gather("numbers", i * step) for step in (1, 10)]

    threads = [threading.Thread(target=gather, args=(i,)) for i in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert given == [[[0, 1, 2], [0, 10, 20]]] * 3
    members[1].store("key", "value")
    assert members[2].stored("key", wait=True, patience=5) == "value"
    assert members[0].stored("other", wait=False, patience=5) is None


@pytest.mark.parametrize(
    ("first", "second", "words"),
    [
        ((0, 2), (0, 2), "two have the same process_id: process 0"),
        ((0, 2), (1, 3), "was told that there are 3 processes, and the coordinator that there are"),
    ],
)
def test_who_does_not_fit_is_refused_and_so_are_all(coordinator, first, second, words):
    hub = coordinator(2)
    for refused in meet(hub, wanting(hub, *first), wanting(hub, *second)):
        assert words in str(refused)


def test_versions_and_numbers_of_devices_are_alike(coordinator):
    for name, words in (("runtime", "versions of jaxlib"), ("devices", "CPU devices")):
        hub = coordinator(2)
        both = [ALIKE, ALIKE | {name: 7}]
        for refused in meet(hub, wanting(hub, 0, 2), wanting(hub, 1, 2), abouts=both):
            assert f"{words} differ" in str(refused)


def test_waiting_ends_and_says_for_whom(coordinator):
    hub = coordinator(3)
    (refused,) = meet(hub, wanting(hub, 1, 3, patience=0.3))
    assert "processes 0, 2 of 3 have not come" in str(refused)
    with socket.create_server(("127.0.0.1", 0)) as unused:
        port = unused.getsockname()[1]
    with pytest.raises(RendezvousError, match=f"127.0.0.1:{port}: nobody answers there after 0 s"):
        join(Settings(f"127.0.0.1:{port}", 0, 2, patience=0.2), ALIKE)


def test_another_token_is_another_launch(coordinator):
    hub = coordinator(1)
    (refused,) = meet(hub, wanting(hub, 0, 1, token="guessed"))
    assert "it belongs to another launch" in str(refused)


def test_who_is_gone_is_named_to_those_who_wait(coordinator):
    hub = coordinator(2, ended=lambda process: f"it {process} was killed")
    here, other = meet(hub, wanting(hub, 0, 2), wanting(hub, 1, 2))
    threading.Timer(0.1, other._line.close).start()
    with pytest.raises(PeerLost, match=r"step: process 1 .* is lost: it 1 was killed") as e:
        here.everyone.gather("step", None)
    assert (e.value.process, e.value.host) == (1, socket.gethostname())
    with pytest.raises(PeerLost):
        here.everyone.launch(1, "next")


def test_a_traceback_is_told(coordinator):
    hub = coordinator(2)
    here, other = meet(hub, wanting(hub, 0, 2), wanting(hub, 1, 2))
    try:
        1 / 0  # noqa: B018
    except ZeroDivisionError as e:
        other.fail(e)
    with pytest.raises(PeerLost, match=r"(?s)ZeroDivisionError.*It said:.*1 / 0"):
        here.everyone.gather("step", None)


def test_who_ended_in_peace_is_waited_for_no_more(coordinator):
    hub = coordinator(2)
    here, other = meet(hub, wanting(hub, 0, 2), wanting(hub, 1, 2))
    other.leave()
    with pytest.raises(PeerLost, match="has ended, and the others wait for it: step"):
        here.everyone.gather("step", None)


def test_different_gathers_and_launches_differ(coordinator):
    hub = coordinator(2)
    here, other = meet(hub, wanting(hub, 0, 2), wanting(hub, 1, 2))
    threading.Timer(0.1, lambda: other._line.send(
        what="gather", key="0,1/1", among=[0, 1], topic="compile g", value=1)).start()  # fmt: skip
    with pytest.raises(ProgramMismatch, match="process 0 is at: compile f; process 1 is at: comp"):
        here.everyone.gather("compile f", 1)


def test_launches_in_another_order_are_found(coordinator):
    hub = coordinator(2)
    here, other = meet(hub, wanting(hub, 0, 2), wanting(hub, 1, 2))
    for member, last in ((here, "f"), (other, "g")):
        member.everyone._met = {ord("f"), ord("g")}
        for name in ("f", "f", last):
            member.everyone.launch(ord(name), name)
            member.everyone.launched()
    deadline = time.monotonic() + 10
    while here.verdict is None and time.monotonic() < deadline:
        time.sleep(0.01)
    with pytest.raises(ProgramMismatch, match=r"in launch 3 .* is at: f; .* is at: g"):
        here.check("next")
