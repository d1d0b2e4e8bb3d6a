"""Programs of users under type checkers: what pyright and mypy find, here and in the peer's place.

``python -m tests.types.corpus`` writes the table of docs/types.md, which has the peer's counts.
"""

import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

PROGRAMS = Path(__file__).with_name("programs")
PAGE = Path(__file__).parents[2] / "docs" / "types.md"
HEAD = """\
| mistakes in | programs | pyright | mypy | pyright, JAX | mypy, JAX |
|---|--:|--:|--:|--:|--:|
"""

Place = tuple[str, int]  # a file, and a line of it


def as_written(text: str) -> str:
    return text


def of_the_peer(text: str) -> str:
    """The same program with the names of the peer."""
    text = text.replace("import phalanx as jax", "import jax")
    return re.sub(r"^(import|from) phalanx\b", r"\1 jax", text, flags=re.M)


def planted() -> Iterator[tuple[str, str, Place]]:
    """The mistakes: in which section, what is said of them ("", "unseen", ...), and the place."""
    for path in sorted(PROGRAMS.glob("wrong*.py")):
        section = ""
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if title := re.fullmatch(r"# ---- (.*) ----", line):
                section = title[1]
            if said := re.search(r"  # wrong(?:, (.*))?$", line):
                yield section, said[1] or "", (path.name, number)


def found(names: Callable[[str], str] = as_written) -> dict[str, set[Place]]:
    """Where each checker finds errors in the programs, written with these names."""
    with tempfile.TemporaryDirectory() as folder:
        for path in PROGRAMS.glob("*.py"):
            (Path(folder) / path.name).write_text(names(path.read_text()))
        python = sys.executable
        commands = {
            "pyright": ["pyright", "--pythonpath", python, "--level", "error", "."],
            "mypy": ["mypy", "--python-executable", python, "--no-error-summary", "."],
        }
        return {name: _errors(command, folder) for name, command in commands.items()}


def _errors(command: list[str], folder: str) -> set[Place]:
    run = subprocess.run(
        [sys.executable, "-m", *command], cwd=folder, capture_output=True, text=True, check=False
    )
    assert run.returncode in (0, 1), run.stderr  # 2 and more: the checker itself failed
    lines = re.findall(r"(\w+\.py):(\d+)(?::\d+)?(?: -|:) error", run.stdout)
    return {(file, int(number)) for file, number in lines}


def table() -> str:
    """A line for each section of the mistakes, and one for all."""
    columns = [*found().values(), *found(of_the_peer).values()]
    sections: dict[str, list[Place]] = {}
    for section, _, place in planted():
        sections.setdefault(section, []).append(place)
    every = [place for places in sections.values() for place in places]
    rows = []
    for name, places in [*sections.items(), ("all", every)]:
        counts = [len(places), *[len(seen.intersection(places)) for seen in columns]]
        rows.append(f"| {name} | {' | '.join(map(str, counts))} |\n")
    return HEAD + "".join(rows)


if __name__ == "__main__":
    page = PAGE.read_text()
    start = page.index(HEAD.split("\n")[0])
    end = page.index("\n\n", start)
    PAGE.write_text(page[:start] + table().rstrip("\n") + page[end:])
