"""Examples of docstrings, with the imports that make them run where a reader pastes them."""

from __future__ import annotations

import ast
import builtins
import doctest
import importlib
import types
from collections.abc import Iterator
from typing import Any

from docs.generator import public

GIVEN = {  # what examples may take as known, besides what their own module knows
    "jnp": "import phalanx.numpy as jnp",
    "lax": "from phalanx import lax",
    "scipy": "from phalanx import scipy",
    "np": "import numpy as np",
}


def session(home: str, examples: list[str]) -> str:
    """The examples of something that module ``home`` defines, as one session."""
    text = "\n\n".join(examples)
    lines = [f">>> {line}" for line in sorted(imports(home, text))]
    return "\n".join([*lines, text])


def imports(home: str, text: str) -> set[str]:
    """The imports that the examples lack.

    Raises:
        NameError: they use something that is not public.
    """
    return {line for name in free_names(text) for line in _import(home, name)}


def free_names(text: str) -> list[str]:
    """Names that the examples use and do not make."""
    code = "".join(example.source for example in doctest.DocTestParser().get_examples(text))
    nodes = list(ast.walk(ast.parse(code)))
    made = {name for node in nodes for name in _made(node)}
    used = {node.id for node in nodes if isinstance(node, ast.Name)}
    return sorted(used - made)


def _made(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
        yield node.id
    elif isinstance(node, ast.arg):
        yield node.arg
    elif isinstance(node, ast.FunctionDef | ast.ClassDef | ast.ExceptHandler):
        yield node.name or ""
    elif isinstance(node, ast.Import | ast.ImportFrom):
        yield from ((alias.asname or alias.name).partition(".")[0] for alias in node.names)


def _import(home: str, name: str) -> Iterator[str]:
    """The line that imports what examples in module ``home`` call ``name``, if one is needed."""
    known = vars(importlib.import_module(home))
    if name in known:
        yield _line(home, name, known[name])
    elif name in GIVEN:
        yield GIVEN[name]
    elif not hasattr(builtins, name):
        raise NameError(f"an example in {home} uses {name}, which is not public")


def _line(home: str, name: str, value: Any) -> str:
    if isinstance(value, types.ModuleType):
        package, _, last = value.__name__.rpartition(".")
        if name == last and package:
            return f"from {package} import {last}"
        return f"import {value.__name__}" + (f" as {name}" if name != value.__name__ else "")
    entry = public.entry_of(value)
    if entry is None:
        made = getattr(value, "__name__", None)  # a constant of the module has none
        return f"from {value.__module__} import {made}" if made else f"from {home} import {name}"
    names = [place for place in (entry.name, *entry.others) if place.endswith(f".{name}")]
    module, _, last = (names[0] if names else entry.name).rpartition(".")
    return f"from {module} import {last}" + (f" as {name}" if last != name else "")
