"""What is found in programs that were written without a look at the analyses: 30 right, 30 wrong.

On the day on which they were first checked, 20 of the mistakes were found, 2 were refused at the
user's line, and 5 of the right programs had a finding. What was then found of the kinds of the
others is below: that is no measure any more.
"""

import builtins
import importlib
from contextlib import suppress
from pathlib import Path

import pytest

import phalanx
from phalanx.errors import ReplicationError
from phalanx.insight.checks.running_programs import checking_compiled
from tests.units.insight.checks.corpus import held_out

NAMES = sorted(p.stem for p in Path(held_out.__file__).parent.glob("[!_]*.py"))
FOUND = {
    "first_wrong_a1": "P120",
    "first_wrong_a2": "P120",
    "first_wrong_a3": "P120",
    "first_wrong_b1": "P105",
    "first_wrong_b3": "P119",
    "first_wrong_c1": "P119",
    "first_wrong_c2": "P119",
    "first_wrong_c3": "P119",
    "first_wrong_d1": "P108",
    "first_wrong_d3": "P108",
    "first_wrong_e1": "P121",
    "first_wrong_e2": "P121",
    "first_wrong_e3": "P121",
    "second_wrong_c1": "P119",
    "second_wrong_c2": "P119",
    "second_wrong_c3": "P119",
    "second_wrong_d1": "P108",
    "second_wrong_d2": "P108",
    "second_wrong_d3": "P102",
    "second_wrong_e1": "P121",
    "second_wrong_e2": "P121",
    "second_wrong_e3": "P121",
    "second_wrong_k1": "P106",
    "second_wrong_k3": "P106",
    "second_wrong_n1": "P117",
    "second_wrong_n3": "P116",
}
REFUSED = {"first_wrong_b2", "first_wrong_d2"}  # where out_axes=None promises what is not so
# a key that only looks as if it differed from lane to lane; the derivative of arccos at 1
MISSED = {"second_wrong_k2", "second_wrong_n2"}
ALARMS = {
    "first_right_04": "P120",  # Python divided the rate by the number of lanes
    "first_right_07": "P108",  # another function averages the statistics before they are used
    "first_right_13": "P105",  # the host takes the mean of the losses
    "first_right_14": "P117",  # it holds: a vector of zeros is possible there, if nobody meets one
    "second_right_08": "P106",  # the same direction is to be drawn again
}

eight = pytest.mark.skipif(phalanx.device_count() != 8, reason="they are for eight devices")


class EnoughSeen(Exception):
    """Raised in place of the first line that a program prints: by then it has compiled its step."""


@pytest.fixture
def quickly(monkeypatch):
    """Programs end where they print something, and are compiled without much ado."""

    def stop(*args, **kwargs):
        raise EnoughSeen

    monkeypatch.setattr(builtins, "print", stop)
    before = phalanx.config.disable_most_optimizations
    phalanx.config.update("disable_most_optimizations", True)
    yield
    phalanx.config.update("disable_most_optimizations", before)


@eight
@pytest.mark.parametrize("stem", NAMES)
def test_what_is_found_in_programs_of_others(stem, quickly):
    program = importlib.import_module(f"{held_out.__name__}.{stem}")
    phalanx.clear_caches()  # as in a process of its own
    with checking_compiled() as found:
        if stem in REFUSED:
            with pytest.raises(ReplicationError, match=f"{stem}.py:"):
                program.main()
        else:
            with suppress(EnoughSeen):
                program.main()
    codes = {code for code, _, _ in found}
    expected = FOUND.get(stem) or ALARMS.get(stem)
    assert expected in codes if expected else not codes


def test_all_programs_are_accounted_for():
    wrong = {name for name in NAMES if "wrong" in name}
    assert len(NAMES) == 60 and wrong == {*FOUND, *REFUSED, *MISSED}
