"""What there is of jax and jaxlib in an environment, printed: what ``tests/drift.py`` compares.

It needs nothing but these, and nothing of Phalanx: with the next jaxlib that may not be importable.
"""

import ast
import importlib
import importlib.metadata
import importlib.util
import inspect
import json
import pkgutil
import sys
import warnings
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).parents[1]
STUBS = ROOT / "stubs"


def census():
    """Of the jax and the jaxlib that are here what can be compared."""
    found = {name: names(name) for name in table().MODULES}
    return {
        "versions": {name: importlib.metadata.version(name) for name in ("jax", "jaxlib")},
        "modules": public_modules(),
        "public": {n: held for n, held in found.items() if "._src" not in n and held},
        "private": {n: sorted(held) for n, held in found.items() if "._src" in n},
        "jaxlib": sorted(declared()),
    }


def table():
    """The table of the modules that are served, without the package in which it lies."""
    spec = importlib.util.spec_from_file_location("table", ROOT / "phalanx/compat/modules.py")
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def imported(name):
    """The module, or None where it cannot be imported."""
    with warnings.catch_warnings(action="ignore"):
        try:
            return importlib.import_module(name)
        except Exception:  # of what is not installed, or has moved
            return None


def public_modules():
    """The names of all, also of those that cannot be imported."""
    with warnings.catch_warnings(action="ignore"):
        path, no_matter = imported("jax").__path__, lambda name: None
        found = [m.name for m in pkgutil.walk_packages(path, "jax.", onerror=no_matter)]
    return sorted(name for name in found if "._" not in name)


def names(module):
    """The public names of a module, and of functions the parameters."""
    found = imported(module)
    listed = [n for n in getattr(found, "__all__", dir(found)) if n[0] != "_"] if found else []
    with warnings.catch_warnings(action="ignore"):
        held = {name: getattr(found, name, None) for name in listed}
    return {n: parameters(v) for n, v in held.items() if not of_others(v)}


def of_others(value):
    home = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", None)
    return str(home).partition(".")[0] in sys.stdlib_module_names


def parameters(function):
    """The public ones of a function; None of what is none or does not tell them."""
    if not callable(function) or isinstance(function, type):
        return None
    try:
        return [name for name in inspect.signature(function).parameters if name[0] != "_"]
    except (TypeError, ValueError):
        return None


def declared():
    """The names of jaxlib that are declared in ``stubs/`` and that it has."""
    for path in (STUBS / "jaxlib").rglob("*.pyi"):
        module = ".".join(path.relative_to(STUBS).with_suffix("").parts).removesuffix(".__init__")
        yield from held(imported(module), module, ast.parse(path.read_text()))


def held(value, name, tree):
    for node in tree.body:
        for each in defined(node):
            if each in dir(value):
                yield f"{name}.{each}"
                if isinstance(node, ast.ClassDef):
                    yield from held(inspect.getattr_static(value, each), f"{name}.{each}", node)


def defined(node):
    if isinstance(node, ast.ClassDef | ast.FunctionDef):
        return [node.name]
    targets = [node.target] if isinstance(node, ast.AnnAssign) else getattr(node, "targets", [])
    return [target.id for target in targets if isinstance(target, ast.Name)]


if __name__ == "__main__":
    print(json.dumps(census()))
