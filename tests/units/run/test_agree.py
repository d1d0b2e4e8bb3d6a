"""What processes tell each other before they compile, with processes that are threads here."""

import threading
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest

import phalanx as ph
import phalanx.numpy as jnp
from phalanx.base.errors import ProgramMismatch
from phalanx.run import agree as module
from phalanx.run.agree import agree, least_free
from tests.units.processes.test_hub import coordinator, meet, wanting  # noqa: F401  (a fixture)
from tests.units.processes.test_troublesome_members import at_once

DEVICES = ph.devices()[:2]
PROGRAM = ph.make_program(jnp.sin)(np.float32(1))


def sin(x):
    """A function of the same name."""
    return jnp.cos(x)


OTHER = ph.make_program(sin)(np.float32(1))


@pytest.fixture
def told(coordinator, monkeypatch):  # noqa: F811
    """told(about, ...): what processes hear that are about to compile these, and what they ask."""
    here = threading.local()
    monkeypatch.setattr(module, "group_over", lambda *_: getattr(here, "group", None))

    def one(member, asked, program=PROGRAM, constants=(), options=(), devices=DEVICES, text=None):
        here.group = member.everyone
        gather = member.gather

        def noted(group, topic, *patience, **given):
            asked.append(topic)
            return gather(group, topic, *patience, **given)

        member.gather = noted
        lowered = SimpleNamespace(as_text=lambda: text or str(program))
        agree(program, lowered, devices, constants, dict(options))

    def told(*abouts):
        hub = coordinator(len(abouts))
        members = meet(hub, *[wanting(hub, i, len(abouts)) for i in range(len(abouts))])
        asked = [[] for _ in abouts]
        heard = at_once([partial(one, *each, **about)
                         for *each, about in zip(members, asked, abouts, strict=True)])  # fmt: skip
        assert len({*map(str, heard)}) == len({*map(tuple, asked)}) == 1
        return heard[0], asked[0]

    return told


def test_where_all_is_alike_nothing_more_is_asked(told):
    assert told({}, {}, {}) == (None, [f"compiling {PROGRAM.name}"])


@pytest.mark.parametrize(
    ("other", "words"),
    [
        ({"program": OTHER}, "process 1 has: b: f32[] = cos a"),
        ({"constants": [jnp.ones(3)]}, "captured constant 0, f32[3] of [1.0, 1.0, 1.0]"),
        ({"constants": [jnp.ones(9)]}, "captured constant 0, f32[9] of content"),
        ({"constants": [ph.random.key(3)]}, "captured constant 0"),
        ({"options": {"xla_cpu_fast": True}.items()}, "'xla_cpu_fast', True"),
        ({"devices": DEVICES[:1]}, "process 1 has: the devices 0"),
    ],
)
def test_the_first_thing_that_differs_is_named(told, other, words):
    error, _ = told({}, other)
    assert isinstance(error, ProgramMismatch)
    assert words in str(error)
    assert "process 0 has: " in str(error) and "process 1 has: " in str(error)


def test_those_that_have_the_same_are_named_together(told):
    error, asked = told({}, {}, {"program": OTHER}, {}, {})
    assert "processes 0, 1, 3, 4 have: " in str(error) and "process 2 has: b: f32[] = cos a" in str(
        error
    )
    assert asked == [f"compiling {PROGRAM.name}", f"compiling {PROGRAM.name}, which differs"]


def test_what_was_captured_and_is_written_into_the_module_is_named(told):
    error, _ = told({"constants": [jnp.full(3, 2.0)], "text": "another"},
                    {"constants": [jnp.ones(3)]})  # fmt: skip
    assert "process 0 has: captured constant 0, f32[3] of [2.0, 2.0, 2.0]" in str(error)


def test_modules_that_differ_though_equations_do_not(told):
    error, _ = told({}, {"text": "another"})
    assert "their equations are alike" in str(error)


def test_one_process_alone_agrees_with_itself():
    agree(PROGRAM, None, DEVICES, (), {})
    assert least_free(DEVICES, "f") > 0


def test_the_least_memory_counts(monkeypatch):
    group = SimpleNamespace(gather=lambda topic, free: [free, 12.0, 34.0])
    monkeypatch.setattr(module, "group_over", lambda *_: group)
    assert least_free(DEVICES, "f") == 12.0
