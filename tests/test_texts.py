"""Texts by which changes of the engine are compared, of programs that hold between all passes."""

import phalanx
from tests.texts import texts


def test_programs_are_consistent_between_passes_and_have_one_text():
    every = list(texts())
    assert len({name for name, _ in every}) == len(every) > 400
    for name, text in every:
        with phalanx.enable_checks():
            said = text()
        assert "func.func public @main" in said, name
    for _, text in every[::40]:
        assert text() == text()
