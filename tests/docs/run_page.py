"""Runs the Python blocks of a Markdown page in order, in one namespace.

A ```text block that follows a block is what that block must print, spaces at the ends of lines
aside. A traceback shows the lines of the page.
"""

import contextlib
import difflib
import io
import re
import sys
from pathlib import Path

FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(page):
    """Pairs of (language, code), the code moved down to its own line of the page."""
    for fence in FENCE.finditer(page):
        line = page.count("\n", 0, fence.start(2))
        yield fence[1], fence[2], line


def same_lines(expected, printed, place):
    expected, printed = ([line.rstrip() for line in t.splitlines()] for t in (expected, printed))
    if expected != printed:
        difference = "\n".join(difflib.unified_diff(expected, printed, "page", "printed"))
        raise AssertionError(f"{place} prints something else:\n{difference}")


def run(path):
    namespace, printed = {"__name__": "__main__"}, None
    for language, code, line in blocks(path.read_text(encoding="utf-8")):
        place = f"{path}:{line}"
        if language == "python":
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                exec(compile("\n" * line + code, str(path), "exec"), namespace)
            printed = out.getvalue()
        elif language == "text" and printed is not None:
            same_lines(code, printed, place)
            printed = None


if __name__ == "__main__":
    run(Path(sys.argv[1]))
