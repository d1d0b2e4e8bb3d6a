"""Messages on connections: how they are written, read, and refused."""

import socket
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from phalanx.processes import line as lines
from phalanx.processes.differing import Sums, ahead
from phalanx.processes.forms import SAID, is_understood
from phalanx.processes.line import Line
from phalanx.processes.watched import Silence
from phalanx.processes.wire import FIRST, encoded, message_of, said_first, split

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


def test_messages_keep_their_order_both_ways(ends):
    one, other = map(Line, ends)
    for i in range(200):
        one.send(number=i, text="x" * i)
        other.send(number=-i)
    assert [other.receive()["number"] for _ in range(200)] == [*range(200)]
    assert [one.receive()["number"] for _ in range(200)] == [*range(0, -200, -1)]
    one.close(1)
    assert other.receive() == {}
    other.send(nobody="is there")  # and that is no error


def test_what_was_said_before_the_end_arrives(ends):
    one, other = map(Line, ends)
    for i in range(50):
        one.send(number=i, text="x" * 100_000)
    threading.Thread(target=one.close, args=(10,)).start()
    assert [other.receive()["number"] for _ in range(50)] == [*range(50)]
    assert other.receive() == {}


def test_who_does_not_read_is_cut_off_and_holds_up_nobody(ends, monkeypatch):
    monkeypatch.setattr(lines, "_MOST", 1 << 20)
    one = Line(ends[0])
    while not one.fault:
        one.send(text="x" * 100_000)
    assert "does not read" in one.fault
    assert one.receive() == {}


def test_a_message_that_is_too_long_ends_the_connection(ends):
    one, other = map(Line, ends)
    other.longest = 1000
    one.send(text="x" * 500_000)
    assert other.receive() == {} and other.nonsense.startswith(b'{"text": "xx')


@pytest.mark.parametrize("data", [b"GET / HTTP/1.1\r\n", b"{" * (FIRST + 1), b"{}", b"\x16\x03"])
def test_the_first_line_may_be_anybodys(ends, data):
    here, there = ends
    here.sendall(data)
    assert said_first(there, 0.2) == {}


def test_of_the_first_line_nothing_more_is_read(ends):
    here, there = ends
    here.sendall(b'{"what": "runtime"}\nbytes that follow')
    assert said_first(there, 1) == {"what": "runtime"}
    assert there.recv(100) == b"bytes that follow"


@pytest.mark.parametrize(
    "address", ["host", "host:", ":80", "host:65536", "a:b:1", "[::1]", "a b:1", "host:-1", 3, None]
)
def test_what_is_no_address(address):
    with pytest.raises(ValueError, match="an address is host:port"):
        split(address)


# ---- forms --------------------------------------------------------------------------------------

RIGHT = {
    "pulse": {"launches": {"0,1": [[1, 2, "f"]]}},
    "gather": {
        "key": "0,1/3", "topic": "t", "detail": "", "value": [None], "launched": {"0,1": 2},
        "launches": {},
    },
    "set": {"key": "k", "value": "v"},
    "get": {"key": "k", "number": 1, "wait": True},
    "no more": {"key": "k", "number": 1},
    "delete": {"key": "k"},
    "failed": {"traceback": "..."},
    "give up": {"why": "..."},
    "bye": {"launched": {}},
}  # fmt: skip


@pytest.mark.parametrize("what", SAID)
@given(other=VALUES)
def test_each_part_of_a_message_has_its_form(what, other):
    right = {"what": what, **RIGHT[what]}
    assert is_understood(right, 0, 2)
    for name, form in SAID[what].items():
        assert not is_understood({k: v for k, v in right.items() if k != name}, 0, 2)
        if not form(other):
            assert not is_understood({**right, name: other}, 0, 2)


@given(VALUES)
def test_what_nobody_says_is_not_understood(what):
    if not isinstance(what, str) or what not in SAID:
        assert not is_understood({"what": what, "key": "k", "value": "v"}, 0, 2)


@pytest.mark.parametrize("key", ["1,0/3", "0,0/3", "0,2/3", "1/3", "0,1", "0,1/", "/3", "0,1/3\n"])
def test_a_meeting_is_of_those_that_there_are_in_order_and_oneself(key):
    assert not is_understood({"what": "gather", **RIGHT["gather"], "key": key}, 0, 2)


# ---- what differs -------------------------------------------------------------------------------


def test_launches_are_compared_with_all_that_was_told_before():
    sums = Sums()
    first = {"launches": {"0,1,2": [[1, 11, "f"], [2, 22, "g"]]}}
    assert sums.differ({0: first, 1: first}) == ""
    assert sums.differ({2: {"launches": {"0,1,2": [[2, 23, "h"]]}}}) == (
        "launch 2 over processes 0,1,2, or one before it, is not alike in all"
    )


def test_other_groups_have_other_launches():
    sums = Sums()
    assert sums.differ({0: {"launches": {"0,1": [[1, 11, "f"]]}}}) == ""
    assert sums.differ({2: {"launches": {"2,3": [[1, 99, "g"]]}}}) == ""


def test_nobody_is_ahead_where_all_have_launched_as_much():
    pulses = {1: {"launches": {"0,1": [[3, 81, "f"]]}}}
    assert ahead({0: "compile g"}, {0: {"0,1": 3}}, pulses) == ""
    assert ahead({0: "compile g"}, {0: {"0,1": 2}}, {}) == ""


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
