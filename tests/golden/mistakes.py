"""Mistakes, and what they get: the type and the message of an exception, word for word."""

import inspect
import re
from pathlib import Path

import pytest

import phalanx

# What no message shows: how the library is made.
INSIDE = (
    r"mlir|\bsdy|stablehlo|Traceback|XlaRuntimeError|jaxlib|optree|<unnamed>|phalanx/|object at 0x"
)


class Mistakes:
    """Functions of one file that make a mistake each, by name; ``never`` is a pattern of words that
    their messages do not have."""

    def __init__(self, file, never=INSIDE):
        self.line = re.compile(rf"({re.escape(Path(file).name)}):(\d+)")
        self.never = re.compile(f"{INSIDE}|{never}", re.IGNORECASE)
        self.cases = {}

    def __call__(self, case):
        self.cases[case.__name__] = case
        return case

    def texts(self):
        """What the mistakes get. The lines that a case marks with ``# HERE``, or all if it marks
        none, have this word for their numbers."""
        phalanx.devices()  # A mistake finds them as they are in a running program.
        return {name: self.text(case) for name, case in self.cases.items()}

    def text(self, case):
        with pytest.raises(Exception) as caught:
            case()
        error = caught.value
        message = re.sub(r"(num_cpu_devices is|started with) \d+", r"\1 N", str(error))
        assert not self.never.search(message), message
        assert error.__cause__ is None and (error.__context__ is None or error.__suppress_context__)
        kinds = [c.__name__ for c in type(error).__mro__ if c.__module__ == "builtins"]
        head = type(error).__name__
        head = head if head in kinds else f"{head} (a {kinds[0]})"
        return f"{head}\n\n{self.located(message, case)}"

    def located(self, message, case):
        source, first = inspect.getsourcelines(case)
        marked = [first + i for i, line in enumerate(source) if line.rstrip().endswith("# HERE")]

        def place(found):
            here = not marked or int(found[2]) in marked
            return f"{found[1]}:HERE" if here else found[0]

        return self.line.sub(place, message)
