"""The coordinator under members that do not read or answer, say nonsense, or ask from many threads.

Those that behave so are sockets of this test; all others must go on, or be told why they cannot.
"""

import contextlib
import functools
import json
import socket
import threading
import time
import warnings

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from phalanx.base.errors import PeerLost, PeerSlow, ProgramMismatch
from phalanx.processes import forms
from phalanx.processes.hub import Hub
from phalanx.processes.joined import forget
from phalanx.processes.joining import join
from phalanx.processes.member import Member
from tests.units.processes.test_hub import (  # noqa: F401  (a fixture)
    ALIKE,
    coordinator,
    meet,
    wanting,
)
from tests.units.processes.test_messages import fits


class Troublesome:
    """A member by hand: a connection on which it says what it likes."""

    def __init__(self, hub, process, count, silence=100.0):
        self.socket = socket.socket()
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        self.socket.connect(("127.0.0.1", hub.port))
        told = {"process": process, "count": count, "attempt": 0, "silence": silence}
        self.say(what="join", token="secret", host="h", pid=1, **told, **ALIKE)

    def say(self, **message):
        self.write(json.dumps(message).encode() + b"\n")

    def write(self, data):
        with contextlib.suppress(OSError):  # it was cut off
            self.socket.sendall(data)

    def gather(self, value, key):
        self.say(
            what="gather",
            key=key,
            topic="step",
            detail="",
            value=value,
            compared={},
            launched={},
            launches={},
        )


@pytest.fixture
def trouble(coordinator):  # noqa: F811
    """Starts a coordinator for a number of members, the last of which makes trouble."""
    made = []

    def start(count, silence=100.0):
        hub = coordinator(count)
        made.append(Troublesome(hub, count - 1, count, silence))
        healthy = [wanting(hub, i, count, silence=silence) for i in range(count - 1)]
        return hub, made[-1], meet(hub, *healthy)

    yield start
    for member in made:
        member.socket.close()


def at_once(works):
    """What each of ``works`` gives, or raises, in a thread of its own."""
    results = [None] * len(works)

    def one(i):
        try:
            results[i] = works[i]()
        except Exception as e:
            results[i] = e

    threads = [threading.Thread(target=one, args=(i,)) for i in range(len(works))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
        assert not thread.is_alive()
    return results


LARGE = "x" * (4 << 20)
LOOP = functools.reduce(lambda inner, _: [inner], range(100_000), [])  # deeper than JSON goes


def test_who_does_not_read_holds_up_nobody(trouble):
    hub, other, (one, two) = trouble(3, silence=2.0)
    both = [lambda m=m: m.everyone.gather("step", LARGE) for m in (one, two)]
    other.gather(LARGE, "0,1,2/1")
    assert at_once(both) == [[LARGE] * 3] * 2
    until = time.monotonic() + 3
    while time.monotonic() < until:  # longer than a coordinator may say nothing
        other.say(what="pulse", launches={})
        one.store("time", str(time.monotonic()))
        assert two.stored("time", wait=True, patience=5)
        time.sleep(0.2)
    begun = time.monotonic()
    hub.close()
    assert time.monotonic() < begun + 5


@pytest.mark.filterwarnings("default")  # the coordinator may be late, too
def test_who_has_stopped_is_the_one_that_is_lost(trouble):
    _, other, (one, two) = trouble(3, silence=2.0)
    other.gather(LARGE, "0,1,2/1")
    both = [lambda m=m: m.everyone.gather("step", LARGE) for m in (one, two)]
    with pytest.warns(PeerSlow, match="process 2 on h is late"):  # perhaps while much is sent
        assert at_once(both) == [[LARGE] * 3] * 2
        lost = at_once([lambda m=m: m.everyone.gather("next", 1, 10) for m in (one, two)])
    for error in lost:
        assert isinstance(error, PeerLost)
        assert (error.process, error.why[:27]) == (2, "nothing has been heard of i")


def test_who_says_something_long_slowly_is_there(trouble):
    _, other, (one,) = trouble(2, silence=1.0)
    other.write(b'{"what": "set", "key": "a", "value": "')
    for _ in range(10):
        other.write(b"long ")
        time.sleep(0.2)
    other.write(b'"}\n')
    assert one.stored("a", wait=True, patience=5) == "long " * 10


WRONG = {"one": [None, 3.5, {"a": {"b": 1}}, [[1, 2]], -1, True, "no/thing"]}
GOOD = {
    "launches": {"0,1": [[1, 2, "f"]]},
    "launched": {"0,1": 1},
    "key": "0,1/1",
    "compared": {},
    "number": 1,
    "wait": True,
}
FIELDS = [(what, name) for what, fields in forms.MESSAGES.items() for name in fields]


def said_wrongly():
    """Of each message that there is, each field left out, and of a kind that it is not."""
    for what, name in FIELDS:
        whole = {"what": what} | {n: GOOD.get(n, "text") for n in forms.MESSAGES[what]}
        yield {n: x for n, x in whole.items() if n != name}
        wrong = [x for x in WRONG["one"] if not fits(x, forms.MESSAGES[what][name])]
        yield from [whole | {name: x} for x in wrong[:2]]
    for key in ("0/1", "1,0/1", "0,0/1", "0,1,9/1", "0,1", "0,1/x", "0-1/1", "0-99999999/1", ""):
        yield (
            {"what": "gather"}
            | {n: GOOD.get(n, "") for n in forms.MESSAGES["gather"]}
            | {"key": key}
        )
    yield from ({}, {"what": None}, {"what": []}, {"what": "join"}, {"what": "nothing"})


@pytest.mark.parametrize("said", [*said_wrongly()], ids=str)
def test_what_is_of_no_form_is_the_end_of_who_says_it(trouble, said):
    hub, other, (one,) = trouble(2)
    other.say(**said)
    lost = one.failure("step")
    assert isinstance(lost, PeerLost)
    assert lost.process == 1
    assert "it says what is not understood" in lost.why or not said
    assert hub._verdict["kind"] == "lost"


@pytest.mark.parametrize("said", [b"\n", b"\xff\xfe\n", b"[]\n", b"[" * 9999 + b"\n", b"{" * 9999])
def test_what_is_no_message_is_the_end_of_who_says_it(trouble, said):
    _, other, (one,) = trouble(2)
    other.write(said)
    other.socket.shutdown(socket.SHUT_WR)
    lost = one.failure("step")
    assert isinstance(lost, PeerLost)
    assert lost.process == 1


@pytest.mark.parametrize("early", [{"what": "pulse", "launches": {}}, {"what": "bye"}])
def test_nothing_is_said_before_all_have_come(coordinator, early):  # noqa: F811
    hub = coordinator(2)
    other = Troublesome(hub, 1, 2)
    other.say(**early)
    other.gather(1, "0,1/1")
    time.sleep(0.1)
    (refused,) = meet(hub, wanting(hub, 0, 2))
    assert "process 1 (pid 1 on h) ended before all had come" in str(refused)
    other.socket.close()


numbers = st.integers(-1, 3) | st.sampled_from([1 << 40, -(1 << 70)])
texts = st.sampled_from(["", "0", "0,1", "a", "0,1/1", "\ud800", "9,,"])
launches = st.dictionaries(texts, st.lists(st.tuples(numbers, numbers, texts), max_size=3))
DRAWN = {
    "launches": launches,
    "launched": st.dictionaries(texts, numbers),
    "key": st.sampled_from(["0,1/1", "1/1", "0,1/2"]) | texts,
    "number": numbers,
    "wait": st.booleans(),
    "compared": st.dictionaries(texts, texts, max_size=2),
    "value": st.recursive(texts | numbers | st.none(), st.lists, max_leaves=3),
}


@st.composite
def messages(draw):
    what = draw(st.sampled_from(sorted(forms.MESSAGES)))
    drawn = {name: draw(DRAWN.get(name, texts)) for name in forms.MESSAGES[what]}
    return {"what": what} | drawn | ({"value": draw(texts)} if what == "set" else {})


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(messages(), min_size=1, max_size=8))
def test_what_has_a_form_is_no_fault(said):
    hub = Hub(2, ("127.0.0.1", 0), "secret", "/nowhere")
    try:
        other = Troublesome(hub, 1, 2)
        (one,) = meet(hub, wanting(hub, 0, 2))
        for message in said:
            other.say(**message)
        other.socket.close()
        found = one.failure("step")
        assert isinstance(found, (PeerLost, ProgramMismatch))
        assert hub._verdict.get("kind") != "fault"
    finally:
        forget()
        hub.close()


def test_a_fault_of_the_coordinator_is_told(coordinator, monkeypatch):  # noqa: F811
    monkeypatch.setitem(Hub._answers, "set", lambda *_: {}["a fault"])
    hub = coordinator(2)
    two = meet(hub, wanting(hub, 0, 2), wanting(hub, 1, 2))
    two[0].store("a", "b")
    for member in two:
        with pytest.raises(PeerLost, match=r"(?s)the coordinator .* a fault of its own.*KeyError"):
            member.stored("a", wait=True, patience=10)


def test_what_is_nested_too_deeply_is_the_end_of_who_says_it(trouble, monkeypatch):
    monkeypatch.setitem(Hub._answers, "set", lambda *_: json.dumps(LOOP))
    hub, other, (one,) = trouble(2)
    other.say(what="set", key="a", value="b")
    lost = one.failure("step")
    assert (lost.process, hub._verdict["kind"]) == (1, "lost")
    assert "it is nested too deeply" in lost.why


def test_a_fault_of_a_member_is_told(coordinator, monkeypatch):  # noqa: F811
    monkeypatch.setattr(Member, "_receive", lambda *_: {}["a fault"])
    hub = coordinator(2)
    here, _ = meet(hub, wanting(hub, 0, 2), wanting(hub, 1, 2))
    with pytest.raises(PeerLost, match=r"fails here: KeyError"):
        here.stored("a", wait=True, patience=10)


@pytest.mark.filterwarnings("default")
def test_losses_are_told_where_warnings_are_errors(trouble, capfd):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        _, _, (one, two) = trouble(3, silence=2.0)
        lost = at_once([lambda m=m: m.everyone.gather("step", 1, 10) for m in (one, two)])
    for error in lost:
        assert isinstance(error, PeerLost), error
        assert error.process == 2
    assert "phalanx: process 2 on h is late: nothing has been heard of it" in capfd.readouterr().err


def test_many_threads_ask_for_one_key(coordinator):  # noqa: F811
    hub = coordinator(2)
    one, two = meet(hub, wanting(hub, 0, 2), wanting(hub, 1, 2))
    threading.Timer(0.3, one.store, ("key", "value")).start()
    asked = [lambda m=m: m.stored("key", True, 10) for m in [one, two] * 8]
    assert at_once(asked) == ["value"] * 16
    known = [lambda m=m: [m.stored("key", False, None) for _ in range(20)] for m in [one, two] * 8]
    assert at_once(known) == [["value"] * 20] * 16
    assert at_once([lambda: one.stored("other", True, 0.05) for _ in range(8)]) == [None] * 8
    assert one.stored("none", False, None) is None
    assert not hub._stored._asked
    assert not one._answers


def test_what_is_too_long_is_refused_where_it_is_said(coordinator, monkeypatch):  # noqa: F811
    for place in ("member", "hub"):
        monkeypatch.setattr(f"phalanx.processes.{place}.LONGEST", 1 << 20)
    hub = coordinator(3)
    three = meet(hub, *[wanting(hub, i, 3) for i in range(3)])
    with pytest.raises(
        ValueError, match=r"key_value_set\('k'\): .* takes 1\.0, at .*test_troubles"
    ):
        three[0].store("k", "x" * (1 << 20))
    with pytest.raises(ValueError, match="step: processes tell each other"):
        three[0].everyone.gather("step", "x" * (1 << 20))
    half = "x" * (1 << 19)  # of which three are longer than what one may say
    assert at_once([lambda m=m: m.everyone.gather("step", half) for m in three]) == [[half] * 3] * 3
    assert all(member.verdict is None for member in three)


def test_two_jobs_at_one_port_are_told(coordinator):  # noqa: F811
    hub = coordinator(2)
    one, _ = meet(hub, wanting(hub, 0, 2), wanting(hub, 1, 2))
    with pytest.warns(PeerSlow, match="turned away: two have the same process_id: process 1"):
        with pytest.raises(Exception, match=r"two have .*give each a port of its own, or a secret"):
            join(wanting(hub, 1, 2), ALIKE)
        time.sleep(0.3)
    assert one.verdict is None
