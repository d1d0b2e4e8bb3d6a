"""Runs the Python blocks of a Markdown page in order, in one namespace.

A ```text block that follows a Python block must be what that block prints.

    python -m tests.docs.run_page PAGE             fails where the page says something else
    python -m tests.docs.run_page --update PAGE    writes what is printed into the page

Pages below docs/libraries have blocks of `py`, which import libraries: install these, and begin
with `python -m phalanx.as_jax -m tests.docs.run_page`.
"""

import contextlib
import difflib
import io
import re
import sys
from pathlib import Path

FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def language_of(path):
    """The language of the blocks that run."""
    return "py" if path.parent.name == "libraries" else "python"


def blocks(page):
    """Triples of language, code, and the number of lines of the page above the code."""
    for fence in FENCE.finditer(page):
        yield fence[1], fence[2], page.count("\n", 0, fence.start(2))


def printed_by(code, path, line, namespace):
    """What the code prints; it is compiled as if it stood at its place in the page."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile("\n" * line + code, str(path), "exec"), namespace)
    lines = (written.rstrip() for written in out.getvalue().splitlines())
    return "".join(f"{written}\n" for written in lines)


def run(path):
    """The page with the outputs that its blocks really have."""
    page = path.read_text(encoding="utf-8")
    namespace, printed, parts, end = {"__name__": "__main__"}, None, [], 0
    for fence, (language, code, line) in zip(FENCE.finditer(page), blocks(page), strict=True):
        if language == language_of(path):
            printed = printed_by(code, path, line, namespace)
        elif language == "text" and printed is not None:
            parts += [page[end : fence.start(2)], printed]
            end, printed = fence.end(2), None
    return "".join(parts) + page[end:]


def difference(path):
    """A diff of the page and what it should be; empty if they agree."""
    page = path.read_text(encoding="utf-8")
    pair = (page.splitlines(), run(path).splitlines())
    return "\n".join(difflib.unified_diff(*pair, str(path), "what is printed", lineterm=""))


if __name__ == "__main__":
    *update, name = sys.argv[1:]
    if update:
        Path(name).write_text(run(Path(name)), encoding="utf-8")
    sys.exit(difference(Path(name)) or 0)
