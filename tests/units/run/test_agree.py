"""What processes tell each other before they compile, with processes that are lists here."""

import re
from types import SimpleNamespace

import numpy as np
import pytest

import phalanx as ph
import phalanx.numpy as jnp
from phalanx.base.errors import ProgramMismatch
from phalanx.run import agree as module
from phalanx.run.agree import agree, least_free

DEVICES = ph.devices()[:2]
PROGRAM = ph.make_program(jnp.sin)(np.float32(1))
OTHER = ph.make_program(jnp.cos)(np.float32(1))


class Group:
    """The processes: this one, and others of which each has an answer to every question."""

    def __init__(self, *others):
        self.processes = range(1 + len(others))
        self.others = [iter(answers) for answers in others]
        self.asked = []  # what this one is at, and what it says

    def gather(self, what, value):
        self.asked.append((what, value))
        return [value, *map(next, self.others)]


@pytest.fixture
def agreeing(monkeypatch):
    """agreeing(group, program, ...): this process is about to compile that."""

    def agreeing(group, program=PROGRAM, constants=(), options=(), devices=DEVICES):
        monkeypatch.setattr(module, "group_over", lambda *_: group)
        text = SimpleNamespace(as_text=lambda: str(program))
        agree(program, text, devices, constants, dict(options))

    return agreeing


@pytest.fixture
def told(agreeing):
    """told(...): beside a process that is about to compile that."""

    def told(program=PROGRAM, **about):
        alone = Group()
        agreeing(alone, program, **about)
        ((_, said),) = alone.asked
        group = Group([said, program.lines()])
        agreeing(group)
        return [what for what, _ in group.asked]

    return told


def test_where_all_is_alike_nothing_more_is_asked(told):
    assert told() == [f"compiling {PROGRAM.name}"]


@pytest.mark.parametrize(
    ("other", "words"),
    [
        ({"program": OTHER}, "process 1 has: cos(f32[])"),
        ({"constants": [jnp.ones(3)]}, "captured constant 0, f32[3] of [1.0, 1.0, 1.0]"),
        ({"constants": [jnp.ones(9)]}, "captured constant 0, f32[9] of content"),
        ({"constants": [ph.random.key(3)]}, "captured constant 0"),
        ({"options": {"xla_cpu_fast": True}.items()}, "'xla_cpu_fast', True"),
        ({"devices": DEVICES[:1]}, "process 1 has: the devices 0"),
    ],
)
def test_the_first_thing_that_differs_is_named(told, other, words):
    with pytest.raises(ProgramMismatch, match=re.escape(words)) as raised:
        told(**other)
    assert "process 0 has" in str(raised.value) and "process 1 has" in str(raised.value)


def test_what_was_captured_and_is_written_into_the_module_is_named(agreeing):
    def said(value):
        alone = Group([["another module"], ["nothing"]])
        with pytest.raises(ProgramMismatch):
            agreeing(alone, constants=[jnp.full(3, value)])
        return [answer for _, answer in alone.asked]

    module, lines = said(2.0)
    with pytest.raises(ProgramMismatch, match=re.escape("constant 0, f32[3] of [2.0, 2.0, 2.0]")):
        agreeing(Group([["another module", *module[1:]], lines]), constants=[jnp.ones(3)])


def test_one_process_alone_agrees_with_itself(agreeing):
    agreeing(None)
    assert least_free(DEVICES, "f") > 0


def test_the_least_memory_counts(monkeypatch):
    group = Group([12.0], [34.0])
    monkeypatch.setattr(module, "group_over", lambda *_: group)
    assert least_free(DEVICES, "f") == 12.0
