"""What type checkers find in users' programs: every mistake, and nothing where there is none."""

import inspect

import pytest

from tests.types.corpus import PAGE, found, planted
from tests.types.programs import right, right_results

MISTAKES = list(planted())
RIGHT = {
    name: program
    for name, program in (vars(right) | vars(right_results)).items()
    if inspect.isfunction(program) and not inspect.signature(program).parameters
}


@pytest.fixture(scope="module")
def seen():
    return found()


@pytest.mark.parametrize("checker", ["pyright", "mypy"])
def test_every_mistake_is_found_and_nothing_else(seen, checker):
    expected = {place for _, said, place in MISTAKES if said in ("", f"seen by {checker}")}
    assert seen[checker] == expected


def test_the_page_counts_what_is_found():
    found = [said for _, said, _ in MISTAKES]
    pyright, mypy = (
        sum(said in ("", f"seen by {checker}") for said in found) for checker in ("pyright", "mypy")
    )
    assert f"| all | {len(found)} | {pyright} | {mypy} |" in PAGE.read_text()


@pytest.mark.parametrize("name", RIGHT)
def test_right_programs_run(name, capsys):
    assert RIGHT[name]() is None and capsys.readouterr().err == ""
