"""The notebooks are the pages that they are made of, and run as those do."""

import json

import pytest

from docs.generator import notebooks
from tests.docs import run_page


@pytest.mark.parametrize("page", notebooks.PAGES)
def test_a_notebook_is_what_its_page_gives(page):
    """Otherwise: python -m docs.generator.notebooks"""
    written = (notebooks.FOLDER / f"{page}.ipynb").read_text(encoding="utf-8")
    assert written == notebooks.notebook(page)


@pytest.mark.parametrize("page", notebooks.PAGES)
def test_its_cells_are_the_blocks_that_run_in_the_page(page):
    """With what these print: that a page runs is a test of its own."""
    text = (notebooks.ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")
    blocks = [code for language, code, _ in run_page.blocks(text) if language == "python"]
    cells = json.loads(notebooks.notebook(page))["cells"]
    codes = [cell for cell in cells if cell["cell_type"] == "code"]
    assert ["".join(cell["source"]) + "\n" for cell in codes] == blocks
    printed = "".join(line for cell in codes for out in cell["outputs"] for line in out["text"])
    told = "".join(code for language, code, _ in run_page.blocks(text) if language == "text")
    assert printed and printed == told
    assert len({cell["id"] for cell in cells}) == len(cells)


def test_links_lead_from_the_notebook_to_the_docs():
    cells = json.loads(notebooks.notebook("training"))["cells"]
    prose = "".join(line for c in cells if c["cell_type"] == "markdown" for line in c["source"])
    targets = {line.split(")")[0] for line in prose.split("](")[1:]}
    assert targets
    for target in targets:
        if "://" not in target:
            assert (notebooks.FOLDER / target.split("#")[0]).resolve().exists(), target
