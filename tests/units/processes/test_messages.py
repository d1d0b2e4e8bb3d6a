"""Messages on connections: how they are written, read, and refused."""

import queue
import re
import socket
import threading
from typing import Annotated, Any, get_args, get_origin

import pytest
from hypothesis import given
from hypothesis import strategies as st

from phalanx.processes import forms
from phalanx.processes import line as lines
from phalanx.processes import loop as loops
from phalanx.processes.differing import Sums, ahead
from phalanx.processes.forms import among, is_understood, numbers
from phalanx.processes.line import Line
from phalanx.processes.loop import EventLoop
from phalanx.processes.watched import Silence
from phalanx.processes.wire import encoded, message_of, split

LEAVES = st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.text()
VALUES = st.recursive(LEAVES, lambda x: st.lists(x) | st.dictionaries(st.text(), x), max_leaves=8)
MESSAGES = st.dictionaries(st.text(), VALUES, min_size=1)


@pytest.fixture
def ends():
    """Both ends of a connection."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        here = socket.create_connection(server.getsockname())
        there, _ = server.accept()
    yield here, there
    here.close()
    there.close()


@given(MESSAGES)
def test_a_message_is_one_line_and_comes_back(message):
    written = encoded(message)
    assert written.count(b"\n") == 1 and message_of(written) == message
    assert message_of(written[:-1]) == {}


@given(st.binary())
def test_nothing_else_is_one(data):
    assert isinstance(message_of(data), dict)


@pytest.mark.parametrize("text", [b"[1]", b"3", b"null", b"{", b"\xff{}", b"", b"[" * 9999])
def test_what_is_no_object_is_no_message(text):
    assert message_of(text + b"\n") == {}


class Talking:
    """An end of a connection, and what has come to it; an empty message is the end."""

    def __init__(self, loop, sock):
        self._heard = queue.SimpleQueue()
        self.line = Line(loop, sock, None, self._heard.put, lambda: self._heard.put({}))
        self.send = self.line.send

    def receive(self):
        return self._heard.get(timeout=10)


@pytest.fixture
def loop():
    made = EventLoop()
    yield made
    made.call(made.stop)


@pytest.fixture
def talking(ends, loop):
    return [Talking(loop, end) for end in ends]


def test_messages_keep_their_order_both_ways(talking):
    one, other = talking
    for i in range(200):
        one.send(number=i, text="x" * i)
        other.send(number=-i)
    assert [other.receive()["number"] for _ in range(200)] == [*range(200)]
    assert [one.receive()["number"] for _ in range(200)] == [*range(0, -200, -1)]
    one.line.close(1)
    assert other.receive() == {}
    other.send(nobody="is there")  # and that is no error


def test_what_was_said_before_the_end_arrives(talking):
    one, other = talking
    for i in range(50):
        one.send(number=i, text="x" * 100_000)
    one.line.close()
    assert [other.receive()["number"] for _ in range(50)] == [*range(50)]
    assert other.receive() == {}


def test_who_does_not_read_is_cut_off_and_holds_up_nobody(ends, loop, monkeypatch):
    monkeypatch.setattr(lines, "_MOST", 1 << 20)
    one = Talking(loop, ends[0])
    for _ in range(200):
        one.send(text="x" * 100_000)
    assert one.receive() == {}
    assert "does not read what it is told" in one.line.fault


@pytest.mark.parametrize("said", [b'{"a": "xx', b'{"a": "xxxxx"}\n' * 2])
def test_a_message_that_is_too_long_ends_the_connection(ends, loop, said):
    one = Talking(loop, ends[0])
    one.line.longest = 8
    ends[1].sendall(said)
    assert one.receive() == {}
    assert one.line.nonsense == said[: len(one.line.nonsense)] != b""


@pytest.mark.parametrize("data", [b"GET / HTTP/1.1\r\n", b"\x16\x03", b"\n", b'{"a": 1}\n{}\n'])
def test_what_is_no_message_ends_the_connection(ends, loop, data):
    one = Talking(loop, ends[0])
    ends[1].sendall(data)
    first = one.receive()
    assert first in ({}, {"a": 1})
    assert first == {} or one.receive() == {}
    assert one.line.nonsense
    assert ends[1].recv(10) == b""


def test_bytes_are_carried_both_ways_as_fast_as_they_are_taken(loop):
    """More of them than may wait; what follows the message by which it began, too."""
    (here, left), (there, right) = socket.socketpair(), socket.socketpair()
    for sock in (here, there):
        sock.settimeout(10)
    one = Line(loop, left)
    other = Line(loop, right, on_end=one.end)
    one.on_message = lambda message: one.carry_to(other)
    sent = bytes(range(256)) * (1 << 15)
    writer = threading.Thread(target=here.sendall, args=(b'{"what": "runtime"}\n' + sent,))
    writer.start()
    got = bytearray()
    while len(got) < len(sent):
        got += there.recv(1 << 16)
        assert other._size <= lines._AHEAD + loops._BUFFER
    writer.join(10)
    assert got == sent
    there.sendall(b"back")
    assert here.recv(10) == b"back"
    there.close()
    assert here.recv(10) == b""
    here.close()


def test_a_loop_goes_on_when_something_fails_in_it(loop):
    told, after = queue.SimpleQueue(), queue.SimpleQueue()
    loop.fault = told.put
    loop.call(lambda: 1 / 0)
    loop.call(lambda: loop.every(0.001, lambda: after.put(1)))
    assert "ZeroDivisionError" in told.get(timeout=10)
    assert [after.get(timeout=10) for _ in range(3)] == [1, 1, 1]


@pytest.mark.parametrize(
    "address", ["host", "host:", ":80", "host:65536", "a:b:1", "[::1]", "a b:1", "host:-1", 3, None]
)
def test_what_is_no_address(address):
    with pytest.raises(ValueError, match="an address is host:port"):
        split(address)


# ---- forms --------------------------------------------------------------------------------------


def fits(x, form):
    """Whether ``x``, as JSON gives it, is of the type ``form``."""
    of, parts = get_origin(form), get_args(form)
    if form is Any:
        return True
    if of is Annotated:
        return fits(x, parts[0]) and re.search(parts[1].pattern, x) is not None
    if of is dict:
        return isinstance(x, dict) and all(fits(value, parts[1]) for value in x.values())
    if of is list:
        return isinstance(x, list) and all(fits(value, parts[0]) for value in x)
    if of is tuple:
        return isinstance(x, list) and len(x) == len(parts) and all(map(fits, x, parts))
    return type(x) is form


RIGHT = {
    "pulse": {"launches": {"0,1": [[1, 2, "f"]]}},
    "gather": {
        "key": "0,1/3", "topic": "t", "detail": "", "value": [None], "compared": {},
        "launched": {"0,1": 2}, "launches": {},
    },
    "set": {"key": "k", "value": "v"},
    "get": {"key": "k", "number": 1, "wait": True},
    "no more": {"key": "k", "number": 1},
    "delete": {"key": "k"},
    "failed": {"traceback": "..."},
    "give up": {"waited": "...", "advice": ""},
    "bye": {"launched": {}},
}  # fmt: skip


@pytest.mark.parametrize("what", forms.MESSAGES)
@given(other=VALUES)
def test_each_part_of_a_message_has_its_form(what, other):
    right = {"what": what, **RIGHT[what]}
    assert is_understood(right, 0, 2)
    for name, form in forms.MESSAGES[what].items():
        assert not is_understood({k: v for k, v in right.items() if k != name}, 0, 2)
        if not fits(other, form):
            assert not is_understood({**right, name: other}, 0, 2)


@given(VALUES)
def test_what_nobody_says_is_not_understood(what):
    if not isinstance(what, str) or what not in forms.MESSAGES:
        assert not is_understood({"what": what, "key": "k", "value": "v"}, 0, 2)


@pytest.mark.parametrize(
    "key",
    ["1,0/3", "0,0/3", "0,2/3", "1/3", "0,1", "0,1/", "/3", "0,1/3\n", "0-1/3", "0-999999999/3"],
)
def test_a_meeting_is_of_those_that_there_are_in_order_and_oneself(key):
    assert not is_understood({"what": "gather", **RIGHT["gather"], "key": key}, 0, 2)


@given(st.sets(st.integers(0, 40)))
def test_a_group_is_its_numbers(processes):
    told = numbers(sorted(processes))
    assert among(told, 41) == processes
    if processes:
        assert among(told, max(processes)) == frozenset()


@given(st.from_regex(r"[0-9,\-]{0,12}", fullmatch=True))
def test_a_group_has_one_name(name):
    processes = among(name, 50)
    assert not processes or numbers(sorted(processes)) == name


# ---- what differs -------------------------------------------------------------------------------


def test_launches_are_compared_with_all_that_was_told_before():
    sums = Sums()
    first = {"0,1,2": [[1, 11, "f"], [2, 22, "g"]]}
    assert (sums.differ(0, first), sums.differ(1, first)) == ("", "")
    assert sums.differ(2, {"0,1,2": [[2, 23, "h"]]}) == (
        "launch 2 over processes 0,1,2, or one before it, is not alike in all"
    )


def test_launches_told_one_by_one_differ_in_that_launch():
    sums = Sums()
    for number in range(1, 100):
        assert sums.differ(0, {"0,1": [[number, 7 * number, "f"]]}) == ""
    for number in range(1, 60):
        assert sums.differ(1, {"0,1": [[number, 7 * number, "f"]]}) == ""
    assert "or one before it" in sums.differ(1, {"0,1": [[60, 1, "g"]]})  # 0 was asked long ago
    for number in range(100, 104):
        told = [sums.differ(p, {"0,1": [[number, 7 * number + p * (number > 102), f"f{p}"]]})
                for p in (0, 2)]  # fmt: skip
    assert told == [
        "",
        "in launch 103 over processes 0,1: process 0 is at: f0; process 2 is at: f2",
    ]


def test_other_groups_have_other_launches():
    sums = Sums()
    assert sums.differ(0, {"0,1": [[1, 11, "f"]]}) == ""
    assert sums.differ(2, {"2,3": [[1, 99, "g"]]}) == ""


def test_nobody_is_ahead_where_all_have_launched_as_much():
    last = {1: {"0,1": [[3, 81, "f"]]}}
    assert ahead({0: "compile g"}, {0: {"0,1": 3}}, last, 2) == ""
    assert ahead({0: "compile g"}, {0: {"0,1": 2}}, {}, 2) == ""


def test_what_this_process_slept_through_is_no_silence(monkeypatch):
    now = [100.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    silence = Silence()
    now[0] += 0.5
    assert silence.seconds(now[0]) == pytest.approx(0.5)
    now[0] += 60  # stopped
    assert silence.seconds(now[0]) == pytest.approx(1.0)
    silence.end()
    now[0] += 0.5
    assert silence.seconds(now[0]) == pytest.approx(0.5)
