"""Texts by which changes of the engine are compared."""

import itertools

from tests.texts import texts


def test_programs_have_names_of_their_own_and_one_text():
    every = list(texts())
    assert len({name for name, _ in every}) == len(every) > 400
    for _, text in itertools.islice(every, 0, None, 40):
        said = text()
        assert "func.func public @main" in said and said == text()
