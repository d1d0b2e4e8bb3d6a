"""The pages of the reference, as Markdown."""

from __future__ import annotations

import inspect
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from enum import Enum
from pathlib import Path
from typing import Any

from docs.generator import public
from docs.generator.docstrings import Doc, doc_of, markdown, one_line
from docs.generator.examples import session
from docs.generator.names import named
from docs.generator.public import PAGES, Entry
from docs.generator.signatures import written

FOLDER = "reference"
GUIDES = 6  # at most, that a page names
NEAR = 6  # functions of the same subject


def write(docs: Path) -> None:
    """Write the pages below ``docs``, and remove what is left of others."""
    folder = docs / FOLDER
    folder.mkdir(exist_ok=True)
    mentions = mentions_in(docs)
    made = {f"{entry.page}.md": page(entry, mentions) for entry in public.entries()}
    made |= {f"{name}.md": list_of(name) for name in PAGES}
    for name, text in made.items():
        path = folder / name
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
    for path in folder.iterdir():
        if path.name not in made:
            path.unlink()


def mentions_in(docs: Path) -> dict[str, list[tuple[str, str]]]:
    """Of each public name the guides that speak of it, most often first: files and titles."""
    found: dict[str, list[tuple[int, str, str]]] = {}
    for path in sorted(docs.glob("*.md")):
        text = path.read_text(encoding="utf-8")
        title = text.partition("\n")[0].lstrip("# ")
        if path.stem not in {"api", "architecture", "names", "not-offered"}:
            for name, times in Counter(_spoken(text)).items():
                found.setdefault(name, []).append((-times, path.name, title))
    return {name: [guide[1:] for guide in sorted(guides)] for name, guides in found.items()}


def _spoken(text: str) -> Iterator[str]:
    """Public names that a page writes with their module, or that ``phalanx`` itself has."""
    for name in [*re.findall(r"\b[a-z]+\.\w+", text), *re.findall(r"`(\w+)`", text)]:
        entry = named(name)
        if entry is not None and ("." in name or entry.module == "phalanx"):
            yield entry.name


# ---- lists ----------------------------------------------------------------------------------


def list_of(name: str) -> str:
    """The page that lists the names of some modules, by subject."""
    title, modules = PAGES[name]
    own = [*modules]
    if name == "phalanx.scipy.stats":
        own += [f"{name}.{each}" for each in public.distributions()]
    parts = [f"# {name}: {title}"]
    for module in own:
        if len(own) > 1:
            parts.append(f"## {module}")
        parts.append(_directive("py:module", module))
        doc = doc_of(public.modules()[module])
        parts += [markdown(text) for text in (doc.summary, *doc.body)]
        for subject, entries in public.subjects(module):
            level = "###" if len(own) > 1 else "##"
            parts += [f"{level} {subject}"] if subject else []
            parts.append(table(_row(module, entry) for entry in entries))
    return "\n\n".join(parts) + "\n"


def _row(module: str, entry: Entry) -> tuple[str, str]:
    names = [name for name in (entry.name, *entry.others) if name.rpartition(".")[0] == module]
    called = ", ".join(f"[`{name.rpartition('.')[2]}`]({entry.page}.md)" for name in names)
    return called, one_line(doc_of(entry.value).summary)


def table(rows: Iterable[tuple[str, str]], title: str = "name") -> str:
    """A table of names and what they are."""
    return "\n".join(
        [f"| {title} | |", "|---|---|", *(f"| {name} | {what} |" for name, what in rows)]
    )


# ---- a function or class --------------------------------------------------------------------


def page(entry: Entry, mentions: dict[str, list[tuple[str, str]]]) -> str:
    """The page of a function or class."""
    doc = doc_of(entry.value)
    parts = ["---\norphan: true\n---", f"# {entry.name}", _trail(entry), _head(entry)]
    parts += [markdown(text) for text in (doc.summary, *doc.body) if text]
    parts += _details(entry.home, doc)
    if isinstance(entry.value, type):
        parts += _class(entry)
    parts += _see_also(entry, mentions)
    return "\n\n".join(part for part in parts if part) + "\n"


def _trail(entry: Entry) -> str:
    listed = next(
        (name for name, (_, own) in PAGES.items() if entry.module in own), "phalanx.scipy.stats"
    )
    subject, _ = public.group_of(entry)
    steps = ["[Reference](../api.md)", f"[{listed}]({listed}.md)"]
    if subject:
        steps.append(
            f"[{subject}]({listed}.md#{subject.lower().replace(', ', '-').replace(' ', '-')})"
        )
    return " › ".join(steps)


def _head(entry: Entry) -> str:
    found, home, kind = public.signature(entry.value), entry.home, "function"
    if isinstance(entry.value, type):  # what makes an instance may be declared elsewhere
        kind, making = "class", inspect.unwrap(entry.value.__init__)
        home = making.__module__ if public.is_ours(making) else home
        found = found and found.replace(return_annotation=found.empty)
    return _directive(f"py:{kind}", entry.name + (written(home, found) if found else ""))


def _directive(kind: str, text: str) -> str:
    return f"```{{{kind}}} {text}\n```"


def _details(home: str, doc: Doc) -> Iterator[str]:
    """Parameters, attributes, results, errors and examples."""
    for title, table in (("Args", doc.args), ("Attributes", doc.attributes)):
        told = {k: v for k, v in table.items() if v and k[0] != "_"}
        if told:
            yield _rubric(title)
            yield "\n\n".join(f"`{k}`\n: {_inside(v)}" for k, v in told.items())
    if doc.returns:
        yield _rubric("Returns")
        yield markdown(doc.returns)
    if doc.raises:
        yield _rubric("Raises")
        yield "\n\n".join(f"`{kind}`\n: {_inside(when)}" for kind, when in doc.raises)
    if doc.examples:
        yield _rubric("Example" if len(doc.examples) == 1 else "Examples")
        yield f"```pycon\n{session(home, doc.examples)}\n```"


def _rubric(title: str) -> str:
    return f"```{{rubric}} {title}\n```"


def _inside(text: str) -> str:
    return one_line(text.strip()[:1].upper() + text.strip()[1:])


# ---- what classes have ----------------------------------------------------------------------


def _class(entry: Entry) -> Iterator[str]:
    kind = entry.value
    if issubclass(kind, Enum):
        yield _rubric("Values")
        yield "\n".join(f"- `{entry.short}.{name}`" for name in kind.__members__)
    found = [
        (name, held)
        for name, held in public.members(kind)
        if public.is_ours(public.function_of(held))
    ]
    for title, properties in (("Properties", True), ("Methods", False)):
        chosen = [(n, h) for n, h in found if public.is_property(h) == properties]
        if chosen:
            yield f"## {title}"
            for name, held in chosen:
                yield from _member(entry, name, held)


def _member(entry: Entry, name: str, held: Any) -> Iterator[str]:
    function = public.function_of(held)
    doc = doc_of(function)
    full = f"{entry.name}.{name}"
    if public.is_property(held):
        yield _directive("py:property", full)
    else:
        found = public.signature(function)
        first = next(iter(found.parameters), "") if found else ""
        bare = "" if isinstance(held, staticmethod) else first
        yield _directive("py:method", full + (written(entry.home, found, bare) if found else "()"))
    yield from (markdown(text) for text in (doc.summary, *doc.body) if text)
    if not re.match(r"See ``[\w.]+``\.$", doc.summary):
        yield from _details(entry.home, doc)


# ---- see also -------------------------------------------------------------------------------


def _see_also(entry: Entry, mentions: dict[str, list[tuple[str, str]]]) -> Iterator[str]:
    lines = []
    if entry.others:
        lines.append("- the same under other names: " + _codes(entry.others))
    named_alike = public.by_short_name()[entry.short]
    alike = [other.name for other in named_alike if other.name != entry.name]
    if alike and entry.module.count(".") < 3:
        lines.append("- by the same name: " + _codes(tuple(alike[:6])))
    near = [f"[`{one.short}`]({one.page}.md)" for one in public.near(entry, NEAR)]
    if near and entry.module != "phalanx.errors":
        lines.append(f"- on the same subject: {', '.join(near)}")
    guides = mentions.get(entry.name, ())
    if guides:
        named_so = ", ".join(f"[{title}](../{file})" for file, title in guides[:GUIDES])
        lines.append(f"- guides that speak of it: {named_so}")
    if lines:
        yield _rubric("See also")
        yield "\n".join(lines)


def _codes(names: tuple[str, ...]) -> str:
    return ", ".join(f"`{name}`" for name in names)
