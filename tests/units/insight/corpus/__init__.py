"""Programs as people write them: correct ones, and ones with a mistake in them.

Each is a function without arguments that makes a function and its arguments. A program is in the
corpus because somebody might write it, not because an analysis knows it.
"""

from collections.abc import Callable

CORRECT: dict[str, Callable] = {}
FAULTY: dict[str, tuple[str, Callable]] = {}


def correct(program: Callable) -> Callable:
    """Enter a program in which nothing is wrong."""
    CORRECT[program.__name__] = program
    return program


def faulty(code: str) -> Callable[[Callable], Callable]:
    """Enter a program with a mistake, of which findings of ``code`` are to tell."""

    def enter(program: Callable) -> Callable:
        FAULTY[program.__name__] = code, program
        return program

    return enter


CORRECT_SCRIPTS: dict[str, Callable] = {}
FAULTY_SCRIPTS: dict[str, tuple[str, Callable]] = {}


def correct_script(script: Callable) -> Callable:
    """Enter what runs, in which nothing is wrong."""
    CORRECT_SCRIPTS[script.__name__] = script
    return script


def faulty_script(code: str) -> Callable[[Callable], Callable]:
    """Enter what runs with a mistake, of which findings of ``code`` are to tell."""

    def enter(script: Callable) -> Callable:
        FAULTY_SCRIPTS[script.__name__] = code, script
        return script

    return enter
