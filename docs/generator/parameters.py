"""What parameters mean that mean the same everywhere, said once.

A docstring explains what is particular to its function. What it does not explain is looked up here
by the name of the parameter: in the module that defines the function, and in the packages that it
is in, from the inside out.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator

from docs.generator.docstrings import Doc
from docs.generator.public import Entry, signature

WHERE = "which elements take part: booleans that broadcast with the array; None for all."

SENTENCES: dict[str, dict[str, str]] = {
    "phalanx": {
        "axis": "the axis along which it works, counted from the end if negative.",
        "dtype": "the dtype of the result.",
        "out": "must be None: arrays are immutable, and results are returned.",
        "shape": "the shape of the result, a tuple of integers or an integer.",
        "precision": "of products of float32 where hardware has faster, coarser ones: `default`, "
        "`high`, `highest`, or a `lax.Precision`; None: the option `default_matmul_precision`.",
        "preferred_element_type": "the dtype in which products are added up, and of the result; "
        "None: that of the operands.",
        "out_sharding": "how the result lies over devices, as a `NamedSharding` or a `P` on the "
        "mesh that is set; None: the compiler decides.",
        "key": "a random key, as from `random.key` or `random.split`; use each key once.",
        "is_leaf": "a function of a node; where it gives True the node counts as a leaf.",
    },
}


def scopes(home: str) -> Iterator[str]:
    """A module and the packages that it is in, from the inside out."""
    while home:
        yield home
        home = home.rpartition(".")[0]


def explained(entry: Entry, doc: Doc) -> dict[str, str]:
    """Each parameter that a user gives, with its explanation; empty where there is none."""
    found = signature(entry.value)
    names = [name for name in found.parameters if not name.startswith("_")] if found else []
    return {name: doc.args.get(name) or common(entry.home, name) for name in names}


def common(home: str, name: str) -> str:
    """What a parameter of this name means in functions that module ``home`` defines."""
    for scope in scopes(home):
        if name in SENTENCES.get(scope, {}):
            return SENTENCES[scope][name]
    return ""


def shown(parameter: inspect.Parameter) -> str:
    """A default as a user would write it."""
    default = parameter.default
    text = getattr(default, "__name__", None) if callable(default) else repr(default)
    return text if text and not text.startswith("<") else "..."
