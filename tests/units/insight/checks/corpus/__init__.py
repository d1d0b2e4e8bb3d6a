"""Programs as people write them: correct ones, and ones with a mistake in them.

Each is a function without arguments that makes a function and its arguments; a script is one that
runs. One is in its corpus because somebody might write it, not because an analysis knows it.
"""

from collections.abc import Callable


class Corpus:
    """Programs by name: those in which nothing is wrong, and others with the code of a mistake."""

    def __init__(self) -> None:
        self.right: dict[str, Callable] = {}
        self.wrong: dict[str, tuple[str, Callable]] = {}

    def correct(self, program: Callable) -> Callable:
        """Enter a program in which nothing is wrong."""
        self.right[program.__name__] = program
        return program

    def faulty(self, code: str) -> Callable[[Callable], Callable]:
        """Enter a program with a mistake, of which findings of ``code`` are to tell."""

        def enter(program: Callable) -> Callable:
            self.wrong[program.__name__] = code, program
            return program

        return enter


PROGRAMS, SCRIPTS = Corpus(), Corpus()
correct, faulty = PROGRAMS.correct, PROGRAMS.faulty
correct_script, faulty_script = SCRIPTS.correct, SCRIPTS.faulty
