"""Pages as notebooks: `python -m docs.generator.notebooks` writes them into examples/notebooks.

Blocks of Python become cells, and what the page says that they print becomes their output.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "examples" / "notebooks"
PAGES = ("quick-start", "pmap", "lanes", "gradients", "training")  # in the order of reading

_BLOCK = re.compile(
    r"^```python\n(.*?)^```\n(?:\s*```text\n(.*?)^```\n)?", re.MULTILINE | re.DOTALL
)
_LINK = re.compile(r"\]\((?!\w+:|#)")  # to a file of the docs


def notebook(page: str) -> str:
    """The text of the notebook of a page of the docs."""
    text = (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")
    cells, end = list[dict[str, Any]](), 0
    for block in _BLOCK.finditer(text):
        cells += _prose(text[end : block.start()])
        cells.append(_code(block[1], block[2]))
        end = block.end()
    cells += _prose(text[end:])
    for i, cell in enumerate(cells):
        cell["id"] = f"cell-{i}"
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    book = {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(book, indent=1, ensure_ascii=False) + "\n"


def _prose(text: str) -> list[dict[str, Any]]:
    text = _LINK.sub("](../../docs/", text).strip()
    return [{"cell_type": "markdown", "metadata": {}, "source": _lines(text)}] if text else []


def _code(code: str, printed: str | None) -> dict[str, Any]:
    outputs = [{"name": "stdout", "output_type": "stream", "text": _lines(printed or "")}]
    return {
        "cell_type": "code",
        "execution_count": None,
        "metadata": {},
        "outputs": outputs if printed else [],
        "source": _lines(code.rstrip("\n")),
    }


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for page in PAGES:
        (FOLDER / f"{page}.ipynb").write_text(notebook(page), encoding="utf-8")
