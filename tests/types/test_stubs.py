"""The stubs of libraries name what is there; a name that is gone is found here, not by a user."""

import ast
import importlib
from pathlib import Path

import pytest

STUBS = Path(__file__).parents[2] / "stubs"
FILES = sorted(STUBS.rglob("*.pyi"))


def module_of(path):
    *packages, last = path.relative_to(STUBS).with_suffix("").parts
    return importlib.import_module(".".join(packages if last == "__init__" else [*packages, last]))


def declared(body):
    """The names in the body of a module or a class, and the classes among them."""
    for node in body:
        if isinstance(node, ast.ClassDef):
            yield node.name, node
        elif isinstance(node, ast.FunctionDef):
            yield node.name, None
        elif isinstance(node, ast.AnnAssign):
            yield node.target.id, None
        elif isinstance(node, ast.Assign):
            yield node.targets[0].id, None


def missing(body, there, where):
    for name, kind in declared(body):
        if kind is not None and name.startswith("_"):
            continue  # what several have in common, in words of ours
        if name not in dir(there) and not hasattr(there, name):  # some are only there at times
            yield f"{where}.{name}"
        elif kind is not None:
            yield from missing(kind.body, getattr(there, name), f"{where}.{name}")


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(STUBS)))
def test_what_stubs_name_is_there(path):
    module = module_of(path)
    assert [*missing(ast.parse(path.read_text()).body, module, module.__name__)] == []


def test_a_name_that_is_gone_is_found():
    body = ast.parse("class Path:\n    def read_text(self): ...\n    def read_tea(self): ...").body
    assert [*missing(body, importlib.import_module("pathlib"), "pathlib")] == [
        "pathlib.Path.read_tea"
    ]
