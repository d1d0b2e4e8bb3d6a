"""Tables of names on the page of the API: each name with the first line of its docstring.

The page itself lists names in paragraphs, such as "Meshes: `make_mesh`, `set_mesh`", which can be
read as they stand. The site has a row for each instead.
"""

from __future__ import annotations

import re
from typing import Any

import phalanx
from docs.generator import names, public
from docs.generator.docstrings import doc_of, one_line
from docs.generator.pages import FOLDER, table

PAGE = "api"
MODULES = "<!-- modules -->"
LISTED = re.compile(r"(?:^|(?<=:\n)|(?<=: ))((?:`[\w.]+`(?:,\s+|\.?\s*$)){2,})\Z")


def add(_: Any, page: str, source: list[str]) -> None:
    """Replace the lists of names, and put a table of the modules where it is asked for."""
    if page == PAGE:
        source[0] = tabulated(source[0]).replace(MODULES, modules())


def tabulated(text: str) -> str:
    """The text with a table for each paragraph that ends in a list of names."""
    module, done = "", []
    for paragraph in text.split("\n\n"):
        if paragraph.startswith("## "):
            module = paragraph.removeprefix("## ")
        said = re.match(r"In `([\w.]+)`", paragraph)
        done.append(_with_table(f"phalanx.{said[1]}" if said else module, paragraph))
    return "\n\n".join(done)


def _with_table(module: str, paragraph: str) -> str:
    listed = LISTED.search(paragraph)
    if listed is None:
        return paragraph
    rows = (row(module, name) for name in re.findall(r"`([\w.]+)`", listed[1]))
    return f"{paragraph[: listed.start()].rstrip()}\n\n{table(rows)}"


def row(module: str, name: str) -> tuple[str, str]:
    """A name in a module, or in the class of arrays, as a link; and what it is."""
    page, value = target(module, name)
    return f"[`{name}`]({FOLDER}/{page})", one_line(doc_of(value).summary)


def target(module: str, name: str) -> tuple[str, Any]:
    """Where a name is explained, and what it names.

    Raises:
        LookupError: if no page does.
    """
    if module == "phalanx.Array":
        held = public.function_of(dict(public.members(phalanx.Array))[name])
        same = re.match(r"See ``(.+)\.(\w+)``\.$", doc_of(held).summary)
        if not same:
            return f"{module}.md", held
        module, name = same.groups()
    entry = names.named(name, module, listed=True)
    if entry is not None:
        return f"{entry.page}.md", entry.value
    for full in (f"{module}.{name}", f"phalanx.{name}"):
        for page, (_, own) in public.PAGES.items():
            if full in own or (full in public.modules() and full.startswith(f"{page}.")):
                return f"{page}.md", public.modules()[full]
    raise LookupError(f"no page of the reference explains {name} of {module}")


def modules() -> str:
    """A table of the pages that list names, with what is in them."""
    found = public.PAGES.items()
    rows = ((f"[`{name}`]({FOLDER}/{name}.md)", what) for name, (what, _) in found)
    return table(rows, title="module")
