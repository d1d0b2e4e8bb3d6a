"""The coordinator, with members that are threads of this process."""

import contextlib
import os
import re
import socket
import tempfile
import threading
import time
from pathlib import Path

import pytest

from phalanx.base.errors import PeerLost, PeerSlow, ProgramMismatch, RendezvousError
from phalanx.processes.hub import Hub
from phalanx.processes.joined import forget
from phalanx.processes.joining import join
from phalanx.processes.reception import STRANGERS
from phalanx.processes.relay import Folder
from phalanx.processes.secure import Credentials
from phalanx.processes.settings import Settings
from phalanx.processes.threads import _idle, in_another_thread, start

ALIKE = {"phalanx": "1", "runtime": "2", "platform": "", "devices": 1}


@pytest.fixture
def coordinator():
    hubs = []

    def start(count, runtime="/nowhere", **options):
        hubs.append(Hub(count, ("127.0.0.1", 0), "secret", runtime, **options))
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


def wanting(hub, process, count, token="secret", patience=10.0, **more):
    return Settings(f"127.0.0.1:{hub.port}", process, count, token, patience, **more)


def test_members_gather_what_each_gives(coordinator):
    hub = coordinator(3)
    members = meet(hub, *[wanting(hub, i, 3) for i in range(3)])
    assert [(m.process, m.count) for m in members] == [(0, 3), (1, 3), (2, 3)]
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
    for name, other, words in (
        ("runtime", "7", "versions of jaxlib"),
        ("devices", 7, "CPU devices"),
    ):
        hub = coordinator(2)
        both = [ALIKE, ALIKE | {name: other}]
        for refused in meet(hub, wanting(hub, 0, 2), wanting(hub, 1, 2), abouts=both):
            assert f"{words} differ" in str(refused)


def test_waiting_ends_and_says_for_whom(coordinator):
    hub = coordinator(3)
    (refused,) = meet(hub, wanting(hub, 1, 3, patience=0.3))
    assert "processes 0, 2 of 3 have not come" in str(refused)
    with socket.create_server(("127.0.0.1", 0)) as unused:
        port = unused.getsockname()[1]
    with pytest.raises(RendezvousError, match=f":{port}: nobody answers there after 0.2 s"):
        join(Settings(f"127.0.0.1:{port}", 0, 2, patience=0.2), ALIKE)


def test_who_has_waited_long_enough_tells_all_others(coordinator):
    hub = coordinator(3)
    settings = [wanting(hub, 0, 3), wanting(hub, 2, 3, patience=0.3)]
    for refused in meet(hub, *settings):
        assert "waited 0.3 s, and process 1 of 3 has not come" in str(refused)
    assert hub.everyone_left.wait(1)


def test_those_who_come_later_are_told_why_nobody_meets(coordinator):
    hub = coordinator(3)
    meet(hub, wanting(hub, 0, 3), wanting(hub, 1, 2))
    assert not hub.everyone_left.wait(0.1)
    (refused,) = meet(hub, wanting(hub, 2, 3))
    assert "was told that there are 2 processes" in str(refused)
    assert hub.everyone_left.wait(1)


def test_what_the_runtime_says_late_arrives(coordinator, tmp_path, monkeypatch):
    connected = Settings.connected
    monkeypatch.setattr(Settings, "connected", lambda to, _=0: connected(to, 0.1))
    with socket.socket(socket.AF_UNIX) as runtime:
        runtime.bind(str(tmp_path / "runtime"))
        runtime.listen()
        hub = coordinator(1, runtime=str(tmp_path / "runtime"))
        (here,) = meet(hub, wanting(hub, 0, 1))
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(5)
            with contextlib.closing(here.relay()) as relay:
                path = Path(relay.address.removeprefix("unix:"))
                client.connect(str(path))
                there, _ = runtime.accept()
            assert not path.parent.exists()
            time.sleep(0.3)  # longer than connecting may take
            there.sendall(b"at last")
            assert client.recv(100) == b"at last"
            there.close()


@pytest.mark.parametrize("length", [10, 60, 90, 200])
def test_sockets_are_where_their_paths_are_short_enough(length, monkeypatch, tmp_path):
    place = tmp_path / ("x" * length)
    place.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    folder = Folder()
    with socket.socket(socket.AF_UNIX) as runtime:
        runtime.bind(folder.socket)
    folder.remove()
    assert not os.path.exists(folder.path)


SAID = [
    b"GET / HTTP/1.1\r\nHost: here\r\n\r\n",
    b"\x16\x03\x01\x02\x00",
    b"{" * 10_000 + b"\n",
    b"{" + b"a" * (1 << 17),
    b'{"what": "join"}\n',
    b'{"what": "join", "token": "secret", "process": "0"}\n',
    b'{"what": "runtime", "token": "\\ud800"}\n',
    b'{"what": []}\n',
    b"null\n",
]


def test_strangers_who_say_nothing_keep_nobody_out(coordinator):
    """More of them than are listened to at a time; the oldest makes room."""
    hub = coordinator(1)
    with contextlib.ExitStack() as idle:
        for _ in range(STRANGERS + 40):
            made = socket.create_connection(("127.0.0.1", hub.port), timeout=10)
            idle.enter_context(made)
        (member,) = meet(hub, wanting(hub, 0, 1, patience=5.0))
        assert not isinstance(member, Exception), member
        assert len(hub._reception.strangers) <= STRANGERS


def test_strangers_change_nothing(coordinator):
    hub = coordinator(2)
    for said in SAID:
        with (
            socket.create_connection(("127.0.0.1", hub.port), timeout=10) as stranger,
            contextlib.suppress(ConnectionError),  # it need not hear all
        ):
            stranger.sendall(said)
            while stranger.recv(1 << 16):
                pass
    slow = [socket.create_connection(("127.0.0.1", hub.port)) for _ in range(20)]
    here, other = meet(hub, wanting(hub, 0, 2), wanting(hub, 1, 2))
    here.store("still", "there")
    assert other.stored("still", wait=True, patience=5) == "there"
    for sock in slow:
        sock.close()


def shown(name, prefix=None):
    """The credentials of that ``name`` among the certificates of these tests."""
    place = Path(__file__).parent / "certificates"
    return Credentials(
        {
            "mtls_cert_file": str(place / f"{name}.pem"),
            "mtls_key_file": str(place / f"{name}.key"),
            "mtls_ca_file": str(place / "ca.pem"),
            "mtls_peer_uri_prefix": prefix,
        }
    )


ORGANIZATION = "spiffe://example.org/"


@pytest.mark.parametrize(
    ("served", "called", "words"),
    [
        (shown("host"), shown("host"), None),
        (shown("train", ORGANIZATION), shown("train", ORGANIZATION), None),
        (shown("host"), shown("stranger"), "alert unknown ca"),
        (shown("stranger"), shown("host"), "the certificate of the other end: self-signed"),
        (shown("train"), shown("train"), "certificate is not valid for 'localhost'"),
        (shown("train", ORGANIZATION), shown("other", ORGANIZATION), "does not take the certif"),
        (shown("host"), None, "what listens there has not said a word"),
    ],
)
def test_both_ends_show_who_they_are(coordinator, served, called, words):
    hub = coordinator(2, credentials=served)
    address = f"localhost:{hub.port}"
    settings = [Settings(address, i, 2, "secret", 10.0 if called else 0.5, called) for i in (0, 1)]
    met = meet(hub, *settings)
    if words:
        assert all(words in str(refused) for refused in met)
        return
    long = "secret of all" * 100_000
    met[0].store("key", long)
    assert met[1].stored("key", wait=True, patience=5) == long


def test_credentials_are_whole():
    given = {
        "mtls_cert_file": "c", "mtls_key_file": None, "mtls_ca_file": None,
        "mtls_peer_uri_prefix": None,
    }  # fmt: skip
    with pytest.raises(ValueError, match="needs mtls_key_file and mtls_ca_file, too"):
        Credentials(given)
    with pytest.raises(ValueError, match="must end with '/'"):
        shown("train", "spiffe://example.org")
    with pytest.raises(FileNotFoundError, match=r"nobody\.pem"):
        shown("nobody")


def test_nobody_waits_for_one_that_has_ended_before_it_came(coordinator):
    hub = coordinator(2)
    threading.Timer(0.1, hub.process_ended, (1, "exited with status 3", True)).start()
    (refused,) = meet(hub, wanting(hub, 0, 2))
    assert "process 1 exited with status 3 before it came" in str(refused)


def test_another_token_is_another_launch(coordinator):
    hub = coordinator(1)
    (refused,) = meet(hub, wanting(hub, 0, 1, token="guessed"))
    assert "it belongs to another launch" in str(refused)


def test_who_is_gone_is_named_to_those_who_wait(coordinator):
    hub = coordinator(2, watched=range(2))
    here, other = meet(hub, wanting(hub, 0, 2), wanting(hub, 1, 2))
    threading.Timer(0.1, other._line.close).start()
    threading.Timer(0.2, hub.process_ended, (1, "was killed", True)).start()
    with pytest.raises(PeerLost, match=r"step .*: process 1 .* is lost: it was killed") as e:
        here.everyone.gather("step", None)
    assert (e.value.process, e.value.host) == (1, socket.gethostname())
    with pytest.raises(PeerLost):
        here.everyone.launch(1, "next")


def test_who_says_nothing_is_late_and_then_lost_and_told_so(coordinator):
    hub = coordinator(3)
    three = [wanting(hub, i, 3, silence=silence) for i, silence in enumerate((100.0, 100.0, 2.0))]
    here, other, silent = meet(hub, *three)
    silent._line.post = lambda line: None  # it can say nothing
    with (
        pytest.warns(PeerSlow, match=r"process 2 on .* nothing has been heard of it for") as told,
        pytest.raises(PeerLost, match=r"process 2 .* nothing has been heard of it for \d+ s"),
    ):
        here.everyone.gather("step", None)
    assert not any("process 1" in str(w.message) for w in told)
    for member in (other, silent):
        with pytest.raises(PeerLost, match="process 2"):
            member.stored("nothing", wait=True, patience=10)


@pytest.mark.parametrize(
    ("process", "words"), [(0, "process 0 .* lives in it"), (None, "the coor")]
)
def test_a_coordinator_that_says_nothing_is_lost(coordinator, process, words):
    hub = coordinator(2)
    here, _ = meet(
        hub, *[wanting(hub, i, 2, silence=1.0, coordinator_process=process) for i in range(2)]
    )
    hub.everyone_left.set()  # it looks after nobody any more
    with pytest.warns(PeerSlow), pytest.raises(PeerLost, match=words) as e:
        here.everyone.gather("step", None)
    assert e.value.process == process


def test_what_waits_out_of_reach_is_left_alone(coordinator):
    hub = coordinator(2)
    here, other = meet(hub, wanting(hub, 0, 2), wanting(hub, 1, 2))
    ended = threading.Event()
    assert here.in_another_thread(lambda: 3, "step", lambda: True) == 3
    with pytest.raises(KeyError):
        here.in_another_thread(lambda: {}["nothing"], "step", lambda: True)
    threading.Timer(0.1, other._line.close).start()
    with pytest.raises(PeerLost, match="process 1"):
        here.in_another_thread(ended.wait, "step", lambda: True)
    ended.set()


def test_what_waits_for_nobody_goes_on(coordinator):
    hub = coordinator(2)
    here, other = meet(hub, wanting(hub, 0, 2), wanting(hub, 1, 2))
    other._line.close()
    assert here.failure("step") is not None
    assert not here.in_another_thread(lambda: threading.Event().wait(4), "step", lambda: False)


def test_a_thread_that_was_left_alone_works_again():
    def leave():
        raise KeyboardInterrupt

    held = threading.Event()
    with pytest.raises(KeyboardInterrupt):
        in_another_thread(held.wait, leave)
    before = len(_idle)
    held.set()
    while len(_idle) == before:
        threading.Event().wait(0.01)
    assert in_another_thread(threading.get_ident, leave) != threading.get_ident()


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
    words = r"left after 0 launches, and the others wait for it: step. .*even_batches"
    with pytest.raises(PeerLost, match=words):
        here.everyone.gather("step", None)


@pytest.mark.parametrize(
    ("how", "words"),
    [
        (
            "exited with status 3",
            "is lost: it exited with status 3 after 0 launches, before .*nch 1",
        ),
        ("", "left after 0 launches, before .*launch 1"),
    ],
)
def test_the_status_decides_how_one_that_has_left_is_named(coordinator, how, words):
    hub = coordinator(2, watched=range(2))
    here, other = meet(hub, wanting(hub, 0, 2), wanting(hub, 1, 2))
    here.everyone._met = {1}
    here.everyone.launch(1, "f")
    threading.Timer(0.1, hub.process_ended, (1, how, bool(how))).start()
    other.leave()
    lost = here.failure("reading")
    assert isinstance(lost, PeerLost)
    assert re.search(words, str(lost)), lost
    with pytest.raises(PeerLost, match="process 1"):
        here.everyone.gather("step", None)


def test_who_waits_for_one_that_left_hears_its_status(coordinator):
    hub = coordinator(2, watched=range(2))
    here, other = meet(hub, wanting(hub, 0, 2), wanting(hub, 1, 2))
    other.leave()
    threading.Timer(0.1, hub.process_ended, (1, "exited with status 3", True)).start()
    with pytest.raises(PeerLost, match="it exited with status 3 after 0 launches, and the others"):
        here.everyone.gather("step", None)


def test_the_process_that_ended_first_is_the_one_that_is_lost(coordinator):
    """What another ends by is known first."""
    hub = coordinator(3, watched=range(3))
    here, second, first = meet(hub, *[wanting(hub, i, 3) for i in range(3)])
    first._line.close()
    time.sleep(0.1)
    second._line.close()
    hub.process_ended(1, "was killed by SIGABRT", True)
    hub.process_ended(2, "was killed by SIGKILL", True)
    with pytest.raises(PeerLost, match=r"process 2 .* it was killed by SIGKILL"):
        here.everyone.gather("step", None)


def test_different_gathers_and_launches_differ(coordinator):
    hub = coordinator(2)
    here, other = meet(hub, wanting(hub, 0, 2), wanting(hub, 1, 2))
    threading.Timer(0.1, lambda: other._line.send(
        what="gather", key="0,1/1", topic="compile g", value=1, detail="", compared={},
        launched={}, launches={},
    )).start()  # fmt: skip
    with pytest.raises(ProgramMismatch, match="process 0 is at: compile f; process 1 is at: comp"):
        here.everyone.gather("compile f", 1)


def test_who_has_left_is_not_in_the_runtime_any_more(coordinator, monkeypatch):
    """A thread that comes back from there when Python has ended aborts the process."""
    hub = coordinator(2)
    here, other = meet(hub, wanting(hub, 0, 2), wanting(hub, 1, 2))
    began, ended = [], []

    def let_go():
        began.append(True)
        time.sleep(0.1)
        ended.append(True)

    def start_late(*work):
        time.sleep(0.1)
        return start(*work)

    monkeypatch.setattr("phalanx.processes.member.start", start_late)
    here.let_go = let_go
    other._line.send(
        what="gather", key="0,1/1", topic="compile g", value=1, detail="", compared={},
        launched={}, launches={},
    )  # fmt: skip
    with pytest.raises(ProgramMismatch):
        here.everyone.gather("compile f", 1)
    here.leave()
    when_left = len(ended)
    assert len(began) == when_left > 0
    time.sleep(0.4)
    assert len(began) == when_left


def test_a_verdict_that_comes_when_a_member_has_left_ends_nothing_here(coordinator):
    hub = coordinator(2)
    here, _ = meet(hub, wanting(hub, 0, 2), wanting(hub, 1, 2))
    ended = []
    here.let_go = lambda: ended.append(True)
    here.leave()
    here._decide(PeerLost.of(1, "there", "it is gone", 1))
    time.sleep(0.1)
    assert here.verdict is not None
    assert ended == []


def test_launches_in_another_order_are_found(coordinator):
    hub = coordinator(2)
    here, other = meet(hub, wanting(hub, 0, 2), wanting(hub, 1, 2))
    for member, last in ((here, "f"), (other, "g")):
        member.everyone._met = {ord("f"), ord("g")}
        for name in ("f", "f", last):
            member.everyone.launch(ord(name), name)
    deadline = time.monotonic() + 10
    while here.verdict is None and time.monotonic() < deadline:
        time.sleep(0.01)
    with pytest.raises(ProgramMismatch, match=r"in launch 3 .* is at: f; .* is at: g"):
        here.check("next")


def test_a_launch_in_place_of_a_gather_is_found(coordinator):
    hub = coordinator(3)
    here, other, busy = meet(hub, *[wanting(hub, i, 3) for i in range(3)])
    some = frozenset({0, 1})
    for member in (here, other):
        member.group_of(some)._met = {1}
        member.group_of(some).launch(1, "f")
    other.group_of(some).launch(1, "f")  # which waits for process 0
    words = "process 0 is at: step; process 1 is at: launch 2 over processes 0,1, f"
    with pytest.raises(ProgramMismatch, match=words):
        here.everyone.gather("step", None)
    with pytest.raises(ProgramMismatch, match=words):
        raise other.failure("reading")
    with pytest.raises(ProgramMismatch, match=words):
        busy.everyone.gather("step", None)


def test_who_comes_while_another_attempt_is_not_over_comes_again(coordinator):
    """That attempt is over because a member was lost, which has been started again."""
    old = coordinator(2)
    here, other = meet(old, wanting(old, 0, 2), wanting(old, 1, 2))
    other._line.close()
    assert isinstance(here.failure("step"), PeerLost)
    for process in (0, 1):
        (early,) = meet(old, wanting(old, process, 2, patience=0.2))
        assert "belongs to an attempt that is over and has not ended yet" in str(early)
    again = []
    back = threading.Thread(target=lambda: again.extend(meet(old, wanting(old, 1, 2, attempt=1))))
    back.start()
    time.sleep(0.2)
    old.close()
    new = Hub(2, ("127.0.0.1", old.port), "secret", "/nowhere", attempt=1)
    try:
        (one,) = meet(new, wanting(new, 0, 2, attempt=1))
        back.join(20)
        assert (one.process, one.count) == (0, 2)
        assert again[0].process == 1
    finally:
        new.close()


def test_a_later_attempt_is_not_refused_with_an_earlier_one(coordinator):
    """Of whose processes one came no more, or one is there that has not ended yet."""
    refusing = coordinator(2)
    refusing.process_ended(1, "exited with status 1", True)
    (refused,) = meet(refusing, wanting(refusing, 0, 2))
    assert "process 1 exited with status 1 before it came" in str(refused)
    whole = coordinator(1)
    (alone,) = meet(whole, wanting(whole, 0, 1))
    (second,) = meet(whole, wanting(whole, 0, 1))
    assert "two have the same process_id" in str(second)
    for hub, count in ((refusing, 2), (whole, 1)):
        (early,) = meet(hub, wanting(hub, 0, count, patience=0.2, attempt=1))
        assert "belongs to an attempt that is over" in str(early)
    assert alone.is_with_others


def test_who_ended_in_peace_before_a_launch_is_named(coordinator):
    hub = coordinator(2)
    here, other = meet(hub, wanting(hub, 0, 2), wanting(hub, 1, 2))
    for member in (here, other):
        member.everyone._met = {1}
        member.everyone.launch(1, "f")
    here.everyone.launch(1, "f")
    other.leave()
    lost = here.failure("reading")
    assert isinstance(lost, PeerLost)
    words = "left after 1 launch, before launch 2 (f) over processes 0,1. Give all"
    assert words in str(lost)
    assert lost.process == 1


def test_who_ended_in_peace_after_a_launch_is_not_missed_in_it(coordinator):
    hub = coordinator(2)
    here, other = meet(hub, wanting(hub, 0, 2), wanting(hub, 1, 2))
    for member in (here, other):
        member.everyone._met = {1}
    other.everyone.launch(1, "f")
    other.leave()
    until = time.monotonic() + 10
    while not here.gone and time.monotonic() < until:
        time.sleep(0.01)
    here.everyone.launch(1, "f")
    with pytest.raises(PeerLost, match=r"after 1 launch, before launch 2 \(f\) over processes 0,1"):
        here.everyone.launch(1, "f")


def test_the_first_one_that_ended_in_peace_is_named(coordinator):
    hub = coordinator(3)
    here, other, first = meet(hub, *[wanting(hub, i, 3) for i in range(3)])
    here.everyone._met = {1}
    for ending in (first, other):
        ending.leave()
        until = time.monotonic() + 10
        while ending.process not in here.gone and time.monotonic() < until:
            time.sleep(0.01)
    with pytest.raises(PeerLost, match=r"process 2 .* left after 0 launches"):
        here.everyone.launch(1, "f")
