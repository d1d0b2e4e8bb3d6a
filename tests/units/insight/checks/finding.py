"""What tests of findings ask for: the codes of those in a function, and the line of a mistake."""

import phalanx


def codes(fun, *args):
    return [finding.code for finding in phalanx.check(fun)(*args)]


def line_of(text, file):
    with open(file, encoding="utf-8") as lines:
        return next(n for n, line in enumerate(lines, 1) if text in line)
