"""What parameters mean that mean the same everywhere, said once.

A docstring explains what is particular to its function. What it does not explain is looked up
in functions to which it refers, and then by the name of the parameter in a table: for the module
that defines the function, and for the packages that this is in, from the inside out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from docs.generator.docstrings import Doc, doc_of
from docs.generator.names import named
from docs.generator.public import Entry, signature
from docs.generator.sentences import SENTENCES


def scopes(home: str) -> Iterator[str]:
    """A module and the packages that it is in, from the inside out."""
    while home:
        yield home
        home = home.rpartition(".")[0]


def explained(entry: Entry, doc: Doc) -> dict[str, str]:
    """Each parameter that a user gives, with its explanation; empty where there is none."""
    found = signature(entry.value)
    names = [name for name in found.parameters if not name.startswith("_")] if found else []
    return {name: _explanation(entry, doc, name) for name in names}


def _explanation(entry: Entry, doc: Doc, name: str) -> str:
    """What the docstring says, or that of a function that it refers to, or the table."""
    said = doc.args.get(name) or doc.attributes.get(name)
    return said or _of_another(entry, doc, name) or common(entry.home, name)


def _of_another(entry: Entry, doc: Doc, name: str, steps: int = 2) -> str:
    """What a function says of the parameter whose name the docstring has in code font."""
    prose = " ".join([doc.summary, *doc.body, *doc.args.values()])
    for spoken in re.findall(r"``([\w.]+)``", prose) if steps else ():
        other = named(spoken, entry.module, listed=True)
        if other is not None and other != entry:
            there = doc_of(other.value)
            said = there.args.get(name) or _of_another(other, there, name, steps - 1)
            if said:
                return said
    return ""


def common(home: str, name: str) -> str:
    """What a parameter of this name means in functions that module ``home`` defines."""
    for scope in scopes(home):
        if name in SENTENCES.get(scope, {}):
            return SENTENCES[scope][name]
    return ""
