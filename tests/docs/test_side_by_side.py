"""The page of errors quotes what the peer says to the same programs."""

import re
from pathlib import Path

import pytest

import tests.docs.run_page as run_page

jax = pytest.importorskip("jax")

PAGE = Path(__file__).parents[2] / "docs" / "errors-side-by-side.md"
PYTHON = re.compile(r"\bphalanx\b")


@pytest.mark.skipif(jax.__version_info__[:2] != (0, 12), reason="the page quotes JAX 0.12")
def test_the_peer_says_what_the_page_quotes():
    text, namespace, said = PAGE.read_text(encoding="utf-8"), {}, []
    for language, code, line in run_page.blocks(text):
        if language == "python":
            said.append(run_page.printed_by(PYTHON.sub("jax", code), PAGE, line, namespace))
    quotes = re.findall(r"^(?:> .*\n)+", text, re.MULTILINE)
    assert len(quotes) == len(said) - 1 == 10
    for quote, message in zip(quotes, said[1:], strict=True):
        words = " ".join(quote.replace("\n> ", " ").removeprefix("> ").split())
        assert " ".join(message.split()).startswith(words)
