"""Functions of public modules stand in files named after the chapters of the references."""

import importlib
import inspect
import tomllib
from pathlib import Path

import pytest

from docs.generator import public

CHAPTERS = tomllib.loads(Path(__file__).with_name("chapters.toml").read_text())


def home_of(module, function):
    """The file of a function in the folder of a module, or the folder in there."""
    source, folder = inspect.getsourcefile(inspect.unwrap(function)), Path(module.__file__).parent
    inside = source is not None and folder in Path(source).parents
    return Path(source).relative_to(folder).with_suffix("").parts[0] if inside else None


@pytest.mark.parametrize("name", CHAPTERS)
def test_functions_stand_in_the_files_of_their_chapter(name):
    module = importlib.import_module(f"phalanx.{name}")
    elsewhere = {
        function: (title, home)
        for title, chapter in CHAPTERS[name].items()
        for function in chapter["functions"].split()
        if (home := home_of(module, getattr(module, function))) not in chapter["files"].split()
    }
    assert not elsewhere


def own_functions(name):
    """The functions of a module that its folder has."""
    module = public.modules()[f"phalanx.{name}"]
    functions = {n: getattr(module, n) for n in dir(module)}
    return {n for n, f in functions.items() if inspect.isfunction(f) and home_of(module, f)}


@pytest.mark.parametrize("name", CHAPTERS)
def test_every_function_has_a_chapter(name):
    known = set(" ".join(c["functions"] for c in CHAPTERS[name].values()).split())
    assert not own_functions(name) - known


def test_every_module_with_functions_has_chapters():
    """Those of distributions have the names of these."""
    packages = ("numpy", "lax", "scipy", "random", "nn")
    distributions = {f"scipy.stats.{name}" for name in public.distributions()}
    names = {name.removeprefix("phalanx.") for name in public.modules()} - distributions
    here = {name for name in names if name.partition(".")[0] in packages and own_functions(name)}
    assert here == CHAPTERS.keys()
