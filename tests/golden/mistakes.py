"""Mistakes, and what they get: the type and the message of an exception, word for word."""

import re
from pathlib import Path

import pytest


class Mistakes:
    """Functions of one file that make a mistake each; ``folder`` holds what they get."""

    def __init__(self, file, folder):
        self.line = re.compile(rf"({re.escape(Path(file).name)}):\d+")
        self.folder = folder
        self.cases = {}

    def __call__(self, case):
        self.cases[case.__name__] = case
        return case

    def compare(self, name, golden):
        """Make the mistake ``name``; the numbers of lines are written HERE."""
        with pytest.raises(Exception) as caught:
            self.cases[name]()
        error = caught.value
        assert error.__cause__ is None and (error.__context__ is None or error.__suppress_context__)
        kinds = [c.__name__ for c in type(error).__mro__ if c.__module__ == "builtins"]
        head = type(error).__name__
        head = head if head in kinds else f"{head} (a {kinds[0]})"
        message = self.line.sub(r"\1:HERE", str(error))
        assert "phalanx/" not in message and "object at 0x" not in message
        golden(f"{self.folder}/{name}.txt", f"{head}\n\n{message}")

    def check_none_is_left_over(self):
        """Every golden file belongs to a mistake."""
        files = (Path(__file__).parent / self.folder).glob("*.txt")
        assert {path.stem for path in files} <= set(self.cases)
