"""Programs that fit the memory of their devices: lanes at once are halved while that helps."""

from math import inf
from types import SimpleNamespace

import pytest

from phalanx.base.errors import OutOfMemory
from phalanx.run import oom_retry
from phalanx.spmd.plan import Plan


class Compiled:
    def __init__(self, needed):
        self.needed = needed

    def memory_analysis(self):
        return {"temporaries": self.needed + 5, "outputs": 3, "aliased": 8}


@pytest.fixture
def fitting(monkeypatch):
    """fitting(needs, free, lanes): what is compiled where ``needs[n]`` bytes are needed after n
    halvings (None: the compiler says it does not fit), and how often it was tried."""

    def fitting(needs, free, lanes=16):
        def compile(module, options):
            halvings = module.halvings
            tried.append(halvings)
            if needs[halvings] is None:
                raise OutOfMemory("too much")
            return Compiled(needs[halvings])

        tried = []
        runtime = SimpleNamespace(compile=compile)
        monkeypatch.setattr(oom_retry, "backend", lambda: runtime)
        monkeypatch.setattr(oom_retry, "least_free", lambda devices, who: free)
        monkeypatch.setattr(oom_retry.placement, "most_lanes", lambda program, mesh: lanes)
        program = SimpleNamespace(name="f")
        plan = Plan((object(),))
        module = lambda p: SimpleNamespace(halvings=p.halvings, largest=0)  # noqa: E731
        made = oom_retry.compile_with_oom_retry(program, plan, module, {"o": 1})
        return made.needed, tried

    return fitting


def test_what_fits_is_compiled_once(fitting):
    assert fitting([100], 100) == (100, [0])


def test_lanes_are_halved_until_it_fits(fitting):
    assert fitting([100, 60, 30, 10], 40) == (30, [0, 1, 2])
    for free in (40, inf):  # infinity: nobody knows
        assert fitting([None, None, 30], free) == (30, [0, 1, 2])


def test_halving_ends_where_it_does_not_help(fitting):
    assert fitting([100, 60, 60, 1], 40) == (60, [0, 1, 2])
    assert fitting([100, 101, 1], 40) == (100, [0, 1])


def test_no_device_runs_less_than_a_lane(fitting):
    assert fitting([100, 90, 80], 40, lanes=3) == (80, [0, 1, 2])


def test_a_program_without_lanes_is_as_it_is(fitting):
    assert fitting([100, 10], 40, lanes=1) == (100, [0])


@pytest.mark.parametrize(("needs", "lanes"), [([None], 1), ([None, None], 2), ([None] * 5, 16)])
def test_what_the_compiler_refuses_is_told(fitting, needs, lanes):
    with pytest.raises(OutOfMemory, match="too much"):
        fitting(needs, 40, lanes)
