"""Tests assert: each test function, on every way through it, comes to something that can fail.

That is an ``assert``, what pytest and NumPy have for it, a skip, which is counted, or a call of a
function that has one of these in it, found by its name: of the file, imported from another file of
tests or of laws, a fixture, a method.
"""

import ast
import functools
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TESTS = sorted((ROOT / "tests").rglob("*.py"))
# which say with an exception that something does not hold
LAWS = [*sorted((ROOT / "phalanx/laws").glob("*.py*")), ROOT / "phalanx/core/check.py"]
FILES = [path for path in TESTS if path.name.startswith("test_")]
PYTESTS = {"raises", "warns", "skip", "fail"}
FUNCTION = ast.FunctionDef | ast.AsyncFunctionDef


@functools.cache
def parsed(path):
    return ast.parse(path.read_text())


def functions(tree):
    return [node for node in ast.walk(tree) if isinstance(node, FUNCTION)]


def cases(path):
    return [f for f in functions(parsed(path)) if f.name.startswith("test_")]


def is_check(node, known):
    """Whether a node can fail a test; ``known`` are names of functions that can."""
    if isinstance(node, ast.Attribute):
        of_a_table = node.attr == "check" and isinstance(node.value, ast.Subscript)  # of laws
        named = node.attr in PYTESTS or node.attr.startswith("assert_") or node.attr in methods()
        return named or of_a_table
    return isinstance(node, ast.Assert) or (isinstance(node, ast.Name) and node.id in known)


def asserts(node, known=()):
    return any(is_check(each, known) for each in ast.walk(node))


@functools.cache
def methods():
    """The names of what is called as an attribute to check something."""
    every = [f for path in TESTS + LAWS for f in functions(parsed(path))]
    return {f.name for f in every if f.name.startswith("check_")}


@functools.cache
def checking(path):
    """The names in a file of functions that assert, or call one that does."""
    tree, known = parsed(path), set()
    if path in LAWS:
        known = {
            f.name for f in functions(tree) if any(isinstance(n, ast.Raise) for n in ast.walk(f))
        }
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and (file := imported_file(node)) in TESTS + LAWS:
            there = checking(file)
            known |= {n.asname or n.name for n in node.names if n.name in there}
        elif isinstance(node, ast.Assign) and asserts(node.value, known):  # another name for one
            known |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    while (
        more := {f.name for f in functions(tree) if any(asserts(s, known) for s in f.body)} - known
    ):
        known |= more
    return known


def imported_file(node):
    path = ROOT / (node.module or "").replace(".", "/")
    package = (path / "__init__.pyi", path / "__init__.py")
    return next((p for p in (path.with_suffix(".py"), *package) if p.exists()), None)


def fixtures(path):
    """The names of what the folders of a file have in ``conftest.py``."""
    files = [folder / "conftest.py" for folder in path.parents if folder.is_relative_to(ROOT)]
    return {name for file in files if file in TESTS for name in checking(file)}


def silent_returns(body, known):
    """The returns that some way reaches before anything that can fail."""
    for statement in body:
        if asserts(statement, known) and not isinstance(statement, ast.If | ast.Try | ast.For):
            return
        if isinstance(statement, ast.Return):
            yield statement.lineno
        for block in blocks(statement):
            yield from silent_returns(block, known)
        if asserts(statement, known):
            return


def blocks(statement):
    if isinstance(statement, FUNCTION | ast.ClassDef):
        return []
    handlers = [handler.body for handler in getattr(statement, "handlers", [])]
    return [*(getattr(statement, part, []) for part in ("body", "orelse", "finalbody")), *handlers]


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT / "tests")))
def test_every_test_asserts_on_every_way(path):
    known = checking(path) | fixtures(path)
    assert not [f.name for f in cases(path) if not any(asserts(s, known) for s in f.body)]
    assert not [n for f in cases(path) for n in silent_returns(f.body, known)], "lines that return"


def test_every_file_of_tests_has_some():
    assert not [path for path in FILES if not cases(path)]


WRONG = """
def test_nothing():
    f(1)
def test_returns(case):
    if case.odd:
        return
    assert f(case)
def test_hides(case):
    try:
        f(case)
    except ValueError:
        return
    assert f(case)
def test_right(case):
    if case.odd:
        pytest.skip("odd")
    agree(f(case))
def agree(x):
    assert x
"""


def test_what_is_found(tmp_path):
    path = tmp_path / "test_wrong.py"
    path.write_text(WRONG)
    known = checking(path)
    silent = [f.name for f in cases(path) if not any(asserts(s, known) for s in f.body)]
    assert silent == ["test_nothing"]
    assert [n for f in cases(path) for n in silent_returns(f.body, known)] == [6, 12]
