"""Public names in code font become links to their pages."""

from __future__ import annotations

import builtins
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform

from docs.generator import names, public
from docs.generator.pages import FOLDER

LISTS = {"api", "names"}  # guides whose sections list the names of a module


class NamesAreLinks(SphinxPostTransform):
    """Replace the literals that are public names, where they are not links already."""

    default_priority = 700

    def run(self, **kwargs: Any) -> None:
        """Do so in the document."""
        page = self.env.docname
        code = "\n".join(block.astext() for block in self.document.findall(nodes.literal_block))
        own = set() if page.startswith(FOLDER) else names.defined(code)
        for literal in list(self.document.findall(nodes.literal)):
            if _is_free(literal) and literal.astext().removesuffix("()") not in own:
                entry = names.named(literal.astext(), _module(page, literal), page in LISTS)
                if entry is not None and f"{FOLDER}/{entry.page}" != page:
                    target = self.app.builder.get_relative_uri(page, f"{FOLDER}/{entry.page}")
                    link = nodes.reference("", "", internal=True, refuri=target)
                    literal.replace_self(link)
                    link += literal


class TypesAreLinks(SphinxPostTransform):
    """In signatures the types that are public classes become links, and no other word does."""

    default_priority = 5

    def run(self, **kwargs: Any) -> None:
        """Do so in the document, before Sphinx looks for names that end alike."""
        page = self.env.docname
        for waiting in list(self.document.findall(addnodes.pending_xref)):
            if waiting.get("refdomain") == "py":
                target = waiting["reftarget"]
                entry = None if hasattr(builtins, target) else names.named(target)
                if entry is not None and isinstance(entry.value, type):
                    target = self.app.builder.get_relative_uri(page, f"{FOLDER}/{entry.page}")
                    link = nodes.reference("", "", *waiting.children, internal=True, refuri=target)
                    waiting.replace_self(link)
                else:
                    waiting.replace_self(waiting.children)


def _is_free(literal: nodes.literal) -> bool:
    """Whether it may become a link: no title, no link, and no name of a parameter."""
    if isinstance(literal.parent, nodes.term):
        return literal.astext() in names.errors()
    above, within = literal.parent, (nodes.reference, nodes.title)
    while above is not None and not isinstance(above, within):
        above = above.parent
    return above is None


def _module(page: str, literal: nodes.Node) -> str:
    """The module of which the page speaks, or the section."""
    if page.startswith(FOLDER):
        own = page.rpartition("/")[2].removesuffix("-class")
        return own if own in public.PAGES else own.rpartition(".")[0]
    section = literal.parent
    while section is not None and not isinstance(section, nodes.section):
        section = section.parent
    title = section[0].astext() if section is not None else ""
    return title.partition(",")[0] if title.startswith("phalanx") else ""


def setup(app: Sphinx) -> dict[str, Any]:
    """What Sphinx calls."""
    app.add_post_transform(TypesAreLinks)
    app.add_post_transform(NamesAreLinks)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
