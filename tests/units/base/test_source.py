"""Locations point at the user's line, whatever lies between it and us."""

import contextlib
import functools
import pickle
import sys
import timeit
import types
from collections import defaultdict

import pytest

from phalanx.base import source
from phalanx.base.source import Location, user_location


def inside_the_package(body, path="primitives/made_up.py", **names):
    """A function compiled as if it stood in a file of the package."""
    scope = {"user_location": user_location, **names}
    exec(compile(body, source._PACKAGE + path, "exec"), scope)
    return scope["f"]


def line_here():
    return sys._getframe(1).f_lineno


def test_the_line_and_function_of_the_caller():
    place, line = user_location(), line_here()
    assert (place.file, place.line) == (__file__, line)
    assert place.function == "test_the_line_and_function_of_the_caller"
    assert str(place) == f"test_source.py:{line} ({place.function})"
    assert place.full == f"{__file__}:{line}"


def test_frames_of_the_package_and_of_wrappers_are_skipped():
    inner = inside_the_package("def f(*_): return user_location()")
    middle = functools.singledispatch(inner)
    outer = inside_the_package("def f(x): return g(x)", g=middle)
    place, line = outer(1), line_here()
    assert (place.file, place.line) == (__file__, line)


def test_a_context_manager_of_ours_points_at_the_with_statement():
    body = "@contextmanager\ndef f(places):\n  places.append(user_location())\n  yield"
    manager = inside_the_package(body, contextmanager=contextlib.contextmanager)
    places = []
    with manager(places):
        line = line_here() - 1
    assert (places[0].file, places[0].line) == (__file__, line)


def test_the_examples_in_the_package_are_users_programs():
    f = inside_the_package("\n\ndef f(): return user_location()", "examples/digits.py")
    assert str(f()) == "digits.py:3 (f)"


def test_a_call_over_several_lines_points_into_it():
    start = line_here()
    place = (
        user_location()
    )  # fmt: skip
    assert start < place.line < line_here()


def test_where_all_frames_are_ours_the_outermost_is_given(monkeypatch):
    monkeypatch.setattr(source, "_internal", defaultdict(lambda: True))
    assert isinstance(user_location(), Location)


def test_a_location_keeps_its_line_after_the_function_has_gone_on():
    def steps():
        first = user_location()
        second = user_location()
        return first, second

    first, second = steps()
    assert second.line == first.line + 1
    assert first != second and first == Location.at(first.file, first.line, "steps")
    assert hash(first) == hash(Location.at(first.file, first.line, "steps"))


@pytest.mark.parametrize("line", [1, 7, 100_000])
def test_a_location_made_by_hand_and_one_through_pickle(line):
    place = Location.at("/x/train.py", line, "loss")
    assert (place.file, place.line, place.function) == ("/x/train.py", line, "loss")
    place = Location(place.code, place.lasti, "outer/inner")
    again = pickle.loads(pickle.dumps(place))
    assert again == place and again.scope == "outer/inner"
    assert place != Location(place.code, place.lasti, "outer")
    assert repr(place) == f"Location(/x/train.py:{line}, loss)"


def test_module_level_needs_no_function():
    assert str(Location.at("/x/train.py", 3, "<module>")) == "train.py:3"


def test_taking_a_location_is_fast():
    best = min(timeit.repeat(user_location, number=2000, repeat=5)) / 2000
    assert best < 5e-6  # 0.3 us on an idle machine


def test_cells_of_notebooks_go_by_their_number(monkeypatch):
    file = "/tmp/ipykernel_412/3058762.py"
    compiler = types.SimpleNamespace(format_code_name={file: ("Cell", "In[7]")}.get)
    shell = types.SimpleNamespace(compile=compiler)
    notebook = types.SimpleNamespace(get_ipython=lambda: shell)
    monkeypatch.setitem(sys.modules, "IPython", notebook)
    assert str(Location.at(file, 2, "loss")) == "Cell In[7]:2 (loss)"
    assert str(Location.at("/tmp/ipykernel_412/1.py", 2, "loss")) == "1.py:2 (loss)"
