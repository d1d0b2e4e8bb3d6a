"""The rules of the house that no linter knows."""

import ast
import functools
import re
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FOLDERS = ("phalanx", "tests", "engines", "examples", "benchmarks", "libraries", "docs")
FILES = sorted(
    path
    for folder in FOLDERS
    for path in (ROOT / folder).rglob("*")
    if path.suffix in {".py", ".md"}
)
MODULES = [path for path in FILES if path.is_relative_to(ROOT / "phalanx")]


def name(path):
    return str(path.relative_to(ROOT))


def test_files_are_short():
    lengths = {name(path): len(path.read_text().splitlines()) for path in FILES}
    assert not {path: lines for path, lines in lengths.items() if lines > 900}


def test_no_file_is_a_drawer():
    assert not [name(path) for path in MODULES if path.stem in {"utils", "util", "helpers", "misc"}]


WITHOUT = {"reportPrivateUsage", "reportUnnecessaryIsInstance", "reportUnusedImport"}


def test_files_do_without_few_rules_of_the_type_checker_and_say_why():
    for path in MODULES:
        lines = path.read_text().splitlines()
        for before, line in pairwise(lines):
            if line.startswith("# pyright: "):
                rules = {rule.strip() for rule in line.removeprefix("# pyright: ").split(",")}
                assert rules <= {f"{rule}=false" for rule in WITHOUT}, name(path)
                assert before.startswith("# "), f"{name(path)} does not say why"
            elif "# pyright:" in line:
                assert re.search(r"# pyright: ignore\[\w+\]: \w", line), f"{name(path)}: {line}"


def test_no_absolute_paths():
    private = re.compile(r"""["' ]/(home/(?!ada)|root|work|Users)/""")
    assert not [name(path) for path in FILES if private.search(path.read_text())]


@functools.cache
def parsed(path):
    return ast.parse(path.read_text())


def test_imports_stand_at_the_top():
    """What waits until it is used stands there, too, as an ``OnDemand``, which says why."""
    finders = {"phalanx/compat/serving.py", "phalanx/compat/startup/sitecustomize.py"}
    found = {name(path): imports_inside(path) for path in MODULES if name(path) not in finders}
    assert not {path: lines for path, lines in found.items() if lines}


def imports_inside(path):
    """The lines of imports in functions."""
    return [
        child.lineno
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        for child in ast.walk(node)
        if isinstance(child, ast.Import | ast.ImportFrom) or imports_by_name(child)
    ]


def imports_by_name(node):
    """Whether ``node`` imports one module, and not whichever it is told."""
    if not isinstance(node, ast.Call):
        return False
    function = getattr(node.func, "attr", getattr(node.func, "id", None))
    is_one = all(isinstance(argument, ast.Constant) for argument in node.args)
    return function in {"import_module", "__import__"} and is_one


def test_modules_say_what_they_are():
    assert not [name(path) for path in MODULES if not ast.get_docstring(parsed(path))]


def test_a_class_of_one_name_is_one_class():
    places = {}
    for path in MODULES:
        for node in parsed(path).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places.setdefault(node.name, []).append(name(path))
    assert not {made: paths for made, paths in places.items() if len(paths) > 1}


def rounds_up(node):
    """Whether ``node`` is a quotient of integers rounded up, in either of its spellings."""
    if not (isinstance(node, ast.BinOp) and isinstance(node.op, ast.FloorDiv)):
        return False
    negated = isinstance(node.left, ast.UnaryOp) and isinstance(node.left.op, ast.USub)
    raised = f"{ast.unparse(node.right)} - 1" in ast.unparse(node.left)
    return negated or raised


def test_no_two_packages_of_the_engine_have_a_file_of_one_name():
    engine = ("core", "transforms", "control", "run", "spmd", "api", "xla", "base")
    paths = [path for package in engine for path in (ROOT / "phalanx" / package).glob("*.py")]
    names = Counter(path.name for path in paths if path.name != "__init__.py")
    assert [name for name, count in names.items() if count > 1] == [], "name it after its content"


@pytest.mark.parametrize("page", ["architecture", "tour"])
def test_pages_about_the_engine_name_files_that_are_there(page):
    text = (ROOT / "docs" / f"{page}.md").read_text()
    named = set(re.findall(r"`((?:phalanx/)?[a-z]+/[a-z_/]+\.py)`", text))
    gone = [f for f in named if not (ROOT / f).exists() and not (ROOT / "phalanx" / f).exists()]
    assert named and gone == []


def test_sizes_are_rounded_up_in_one_place():
    places = [
        name(path)
        for path in MODULES
        if path.suffix == ".py" and any(map(rounds_up, ast.walk(parsed(path))))
    ]
    assert places == ["phalanx/core/blocks.py"], "core/blocks.py has `Blocks` for that"


@functools.cache
def code_of_modules():
    """The code of each module, comments left out."""
    return {name(path): ast.unparse(parsed(path)) for path in MODULES}


def places_of(pattern):
    """The modules in whose code ``pattern`` occurs."""
    found = re.compile(pattern)
    return {path for path, text in code_of_modules().items() if found.search(text)}


def test_programs_are_traced_and_derived_in_one_place():
    staged = {f"phalanx/transforms/{which}.py" for which in ("stage", "derive", "linearize")}
    assert places_of(r"\b(Stage|Residuals)\(|\.finish\(") == staged
    kept = {"phalanx/core/memoize.py", "phalanx/core/program.py", "phalanx/run/eager.py"}
    assert places_of(r"\.derived\b") == kept, "use `memoize_on` of core/memoize.py, or `derive`"
