"""Threads that wait for others in place of who asked."""

import subprocess
import sys
import threading
import weakref

import pytest

from phalanx.processes.threads import are_idle, begin, in_another_thread, reserve_threads


class Held:
    pass


def test_results_and_exceptions_come_back_and_nothing_is_kept():
    held = Held()
    gone = weakref.ref(held)
    assert in_another_thread(lambda kept=held: kept, lambda: None) is held
    with pytest.raises(KeyError, match="word"):
        in_another_thread(lambda kept=held: {}["word"], lambda: None)
    del held
    assert gone() is None
    assert are_idle(0)


def test_who_ends_learns_of_threads_that_were_left_alone():
    going_on, held = threading.Event(), Held()
    gone = weakref.ref(held)

    def leave():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        in_another_thread(lambda kept=held: going_on.wait(), leave)
    del held
    assert not are_idle(0.01)
    assert gone() is not None
    going_on.set()
    assert are_idle(60)
    assert gone() is None  # what the runtime frees is freed before Python ends


AT_EXIT = """
import atexit, threading
from phalanx.processes.threads import begin, in_another_thread, reserve_threads

def late():
    threading.Thread.start = refuse  # as Python 3.12.1 does then
    print(in_another_thread(lambda: 3, lambda: None), begin(lambda: None).acquire(timeout=10))

def refuse(thread):
    raise RuntimeError("can't create new thread at interpreter shutdown")

reserve_threads()
atexit.register(late)
"""


def test_threads_are_there_when_python_ends_and_starts_none():
    done = subprocess.run([sys.executable, "-c", AT_EXIT], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("3 True\n", "")


def test_who_begins_something_can_wait_for_it():
    reserve_threads()
    go = threading.Event()
    over = begin(lambda: go.wait(10))
    assert over.locked() and not over.acquire(timeout=0.01)
    go.set()
    assert over.acquire(timeout=10)
