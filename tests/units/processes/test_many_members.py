"""A coordinator of hundreds and a thousand: what it costs is counted, not timed.

What is told grows with their number, not with its square, and threads do not grow at all.
"""

import threading
import time

import pytest

from phalanx.processes.hub import Hub
from tests.units.processes import simulated


def pytest_generate_tests(metafunc):
    if "count" in metafunc.fixturenames:
        sampled = metafunc.config.getoption("--sample")
        metafunc.parametrize("count", [256] if sampled else [256, 1024])


@pytest.fixture
def crowd(count):
    """As many members of a coordinator."""
    simulated.let_open(3 * count + 1000)
    before = threading.active_count()
    hub = Hub(count, ("127.0.0.1", 0), "token", "/nowhere")
    made = simulated.Crowd(count, hub.port)
    assert threading.active_count() <= before + 2  # one for each end
    yield made
    made.close()
    hub.close()


def test_each_hears_as_much_however_many_there_are(crowd, count):
    assert all(m.bytes.total() < 200 for m in crowd.members)
    assert {*crowd.members[0].heard} <= {"waiting", "welcome"}
    for value, most in ((None, 150), ("0" * 64, 250)):
        crowd.forget()
        crowd.gather(lambda _, x=value: x)
        assert [m.gathered for m in crowd.members] == [[value] * count] * count
        assert max(m.bytes["gathered"] for m in crowd.members) < most


def test_what_each_gives_comes_to_all_in_order(crowd, count):
    crowd.gather(lambda process: process % 7)
    for member in crowd.members[::100]:
        assert member.gathered == [i % 7 for i in range(count)]


def test_a_loss_is_told_to_all_with_its_cause(crowd, count):
    *others, lost = crowd.members
    lost.say(what="failed", traceback="Traceback\nValueError: too much")
    crowd.wait("verdict", count - 1)
    for member in others:
        (told,) = member.told["verdict"]
        assert (told["kind"], told["process"]) == ("lost", count - 1)
        assert told["traceback"].endswith("ValueError: too much")


def test_launches_that_differ_in_one_are_found(crowd, count):
    *others, other = crowd.members
    for member in others:
        member.launch(1, 40)
    other.launch(1, 39)
    other.say(what="pulse", launches={crowd.everyone: [[40, 1, "another"]]})
    crowd.wait("verdict", count)
    (told,) = other.told["verdict"]
    assert told["kind"] == "mismatch"
    assert f"launch 40 over processes 0-{count - 1}" in told["why"]


def test_those_who_leave_are_told_of_together(crowd, count):
    stays, *leaving = crowd.members
    crowd.forget()
    for member in leaving:
        member.say(what="bye", launched={})
    gone, until = set(), time.monotonic() + 60
    while len(gone) < count - 1 and time.monotonic() < until:
        time.sleep(0.01)
        gone = {one["process"] for told in list(stays.told["left"]) for one in told["those"]}
    assert gone == set(range(1, count))
    assert stays.heard["left"] < count / 8


def test_many_who_are_late_are_told_of_in_few_messages(crowd, count, monkeypatch):
    monkeypatch.setattr("phalanx.processes.watched.Lateness.__init__.__defaults__", (0.5,))
    first, *others = crowd.members
    first.gather(None)
    crowd.wait("slow", 4 * (count - 1))
    assert "others wait for it (step)" in first.told["slow"][0]["why"]
    assert f"and {count - 5} more are late, too" in first.told["slow"][0]["why"]
    assert all(m.heard["slow"] <= 8 for m in others)
