"""Threads that wait for others in place of who asked."""

import threading
import weakref

import pytest

from phalanx.processes.apart import are_idle, in_another_thread


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
