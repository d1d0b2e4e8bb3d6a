"""What search engines and messages show of a page: its title, and its first paragraph."""

from __future__ import annotations

from html import escape
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx

LENGTH = 200  # characters; search engines show no more


def describe(
    app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: nodes.document | None
) -> None:
    """Put both into the head of ``page``; one without a paragraph has the title alone."""
    del app, template
    if doctree is None:  # made by the generator: the search, say
        return
    words = next(filter(None, map(_said, doctree.findall(nodes.paragraph))), "")
    if len(words) > LENGTH:
        words = words[:LENGTH].rsplit(" ", 1)[0] + " ..."
    title = "Phalanx" if page == "index" else f"{context['title']} - Phalanx"
    named = {"property": "og:title"}, {"name": "description"}, {"property": "og:description"}
    for attributes, content in zip(named, (title, words, words), strict=True):
        ((kind, name),) = attributes.items()
        if content:
            context["metatags"] += f'\n<meta {kind}="{name}" content="{escape(content)}">'


def _said(paragraph: nodes.paragraph) -> str:
    """Its words; none where it is a picture, or the path to the page."""
    words = " ".join([text.astext() for text in paragraph.findall(nodes.Text)])
    return "" if " › " in words else " ".join(words.split())


def setup(app: Sphinx) -> dict[str, Any]:
    """What Sphinx calls."""
    app.connect("html-page-context", describe)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
