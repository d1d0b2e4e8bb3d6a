"""Docstrings as they are written here, taken apart; and their text as Markdown."""

from __future__ import annotations

import ast
import functools
import inspect
import re
import types
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from phalanx.base import dtypes
from phalanx.numpy.scalar_types import ScalarType
from phalanx.xla import pytrees
from phalanx.xla.pytrees import DictKey

SECTIONS = ("Args", "Returns", "Raises", "Attributes")
OF_JAXLIB = {  # classes that have no docstring there
    "TraceMe": "A name that a recorded trace shows for what runs in a ``with`` block.",
    "ProfileOptions": "How much a trace records, such as calls of Python and events of devices.",
}
_ITEM = re.compile(r"(\*{0,2}\w+(?:, \*{0,2}\w+)*): (.*)", re.DOTALL)
_SPECIAL = re.compile(r"([\\`*_<>\[\]{}$|#])")


@dataclass
class Doc:
    """A docstring in parts.

    Attributes:
        summary: its first paragraph.
        body: the other paragraphs.
        args: what it says of each parameter.
        attributes: what it says of each attribute.
        returns: what is returned.
        raises: the errors, and when they are raised.
        examples: blocks of an interpreter's session.
    """

    summary: str = ""
    body: list[str] = field(default_factory=list)
    args: dict[str, str] = field(default_factory=dict)
    attributes: dict[str, str] = field(default_factory=dict)
    returns: str = ""
    raises: list[tuple[str, str]] = field(default_factory=list)
    examples: list[str] = field(default_factory=list)


def doc_of(value: Any) -> Doc:
    """The docstring of a function or class, in parts; of what is called, what the call says too."""
    doc = parsed(_own_docstring(value))
    called = inspect.getattr_static(type(value), "__call__", None)
    if isinstance(called, types.FunctionType) and called.__doc__:
        said = parsed(inspect.getdoc(called) or "")
        doc.args, doc.returns = said.args or doc.args, said.returns or doc.returns
    if isinstance(value, ScalarType):
        doc.body.insert(0, doc.summary)
        doc.summary = _numbers_of(value.dtype)
    return doc


def _numbers_of(dtype: np.dtype) -> str:
    """What numbers a dtype has, in a sentence or two."""
    if dtypes.is_bool(dtype):
        return "The dtype of truth values: True and False, a byte each."
    if dtypes.is_integer(dtype):
        info = dtypes.iinfo(dtype)
        return f"The dtype of integers from {info.min:,} to {info.max:,}, of {info.bits} bits."
    real = dtypes.finfo(dtype)
    sizes = f"{real.nexp} bits of exponent and {real.nmant} of fraction"
    limits = f"up to {float(real.max):.5g}, the smallest normal one {float(real.tiny):.4g}"
    step = f"the one after 1 is 1 + {float(real.eps):.4g}"
    kind = f"floating-point numbers of {real.bits} bits,"
    if dtypes.is_complex(dtype):
        kind = f"complex numbers of {2 * real.bits} bits, of which each part has"
    return f"The dtype of {kind} {sizes}: {limits}; {step}."


def _own_docstring(value: Any) -> str:
    if getattr(value, "__module__", "") == DictKey.__module__:
        return _declared().get(value.__name__, "")
    if isinstance(value, type):  # not that of a base, which may be Python's
        return inspect.cleandoc(value.__dict__.get("__doc__") or OF_JAXLIB.get(value.__name__, ""))
    return inspect.getdoc(value) or ""


@functools.cache
def _declared() -> dict[str, str]:
    """The docstrings of the classes of trees, which jaxlib has without, where we declare them."""
    source = ast.parse(inspect.getsource(pytrees))
    classes = [node for node in ast.walk(source) if isinstance(node, ast.ClassDef)]
    return {node.name: ast.get_docstring(node) or "" for node in classes}


def parsed(text: str) -> Doc:
    """A docstring in parts."""
    doc = Doc()
    for title, paragraph in _paragraphs(text):
        if title:
            _put(doc, title, paragraph)
        elif paragraph.startswith(">>>"):
            doc.examples.append(paragraph)
        elif doc.summary:
            doc.body.append(paragraph)
        else:
            doc.summary = paragraph
    return doc


def _paragraphs(text: str) -> Iterator[tuple[str, str]]:
    """Paragraphs, and of those that are a section its title."""
    for block in re.split(r"\n\s*\n(?! )", text):
        first, _, rest = block.partition("\n")
        title = first.removesuffix(":")
        if title in SECTIONS and first.endswith(":"):
            yield title, inspect.cleandoc(f"\n{rest}")
        elif block.strip():
            yield "", block.strip("\n")


def _put(doc: Doc, title: str, text: str) -> None:
    if title == "Returns":
        doc.returns = text
        return
    for names, said in _items(text):
        if title == "Raises":
            doc.raises.append((names, said))
            continue
        into = doc.args if title == "Args" else doc.attributes
        into.update({name.strip("* "): said for name in names.split(",")})


def _items(text: str) -> Iterator[tuple[str, str]]:
    """``name: what it is``, one below the other, with lines that go on indented."""
    for item in re.split(r"\n(?=\S)", text):
        found = _ITEM.fullmatch(item)
        if found:
            first, _, rest = found[2].partition("\n")
            yield found[1], f"{first}\n{inspect.cleandoc(rest)}".strip()


def markdown(text: str) -> str:
    """Prose of a docstring as Markdown: code stays code, and nothing else has a meaning."""
    if text.startswith("    "):
        return f"```text\n{inspect.cleandoc(text)}\n```"
    parts = re.split(r"(``.+?``|`[^`]+`)", text, flags=re.DOTALL)
    return "".join(
        _code(part) if part.startswith("`") and len(part) > 2 else _SPECIAL.sub(r"\\\1", part)
        for part in parts
    )


def _code(part: str) -> str:
    inside = " ".join(part.strip("`").split())
    return f"`` {inside} ``" if "`" in inside else f"`{inside}`"


def one_line(text: str) -> str:
    """A paragraph in one line, as Markdown."""
    return markdown(" ".join(text.split()))
