"""What is imported, and when: the package, names and modules of it, in any order, by threads."""

import ast
import importlib
import inspect
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

import phalanx

ENGINE = {"numpy", "ml_dtypes", "jaxlib", "phalanx.core", "phalanx.connections"}
HEAVY = f"sorted({ENGINE} & {{*sys.modules}})"
ROOT = Path(phalanx.__file__).parent
STUBS = sorted(ROOT.rglob("*.pyi"))


def run(program):
    """What a program prints in a process of its own, where nothing was imported before."""
    out = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert out.returncode == 0, out.stderr
    return out.stdout.strip()


@pytest.mark.parametrize("name", ["phalanx", "phalanx.lax", "phalanx.random", "phalanx.scipy"])
def test_importing_a_package_imports_nothing_that_computes(name):
    assert run(f"import sys, {name}; dir({name}); print({HEAVY})") == "[]"


@pytest.mark.parametrize("words", ["--help", "--version", "launch --help", "chek", "plan --help"])
def test_the_command_line_explains_itself_without_anything_that_computes(words):
    program = f"""
import contextlib, io, sys
from phalanx.cli import main
with contextlib.suppress(SystemExit), contextlib.redirect_stderr(io.StringIO()):
    main({words.split()})
print({HEAVY})"""
    assert run(program).splitlines()[-1] == "[]"


SET = "import os; os.environ['PHALANX_ENABLE_X64'] = '1'"
UNSET = "del os.environ['PHALANX_ENABLE_X64']"
X64 = "print(phalanx.config.enable_x64, phalanx.numpy.zeros(2).dtype)"


def test_the_environment_is_read_when_the_package_is_imported():
    assert run(f"{SET}; import phalanx; {UNSET}; {X64}") == "True float64"
    assert run(f"import phalanx; {SET}; {X64}") == "False float32"
    bad = "import os; os.environ['PHALANX_ENABLE_X64'] = 'perhaps'\n"
    bad += "try:\n    import phalanx\nexcept TypeError as error:\n    print(error)"
    with pytest.raises(AssertionError, match=r"ConfigError: PHALANX_ENABLE_X64: .*got 'perhaps'"):
        run(bad)


@pytest.mark.parametrize("imports", ["numpy, phalanx", "phalanx.numpy, numpy"])
def test_numpy_knows_bfloat16_from_the_import_on(imports):
    assert run(f"import {imports}; print(numpy.zeros(1, 'bfloat16').dtype)") == "bfloat16"


STYLES = {
    "a package as a name": (
        "import phalanx.scipy.stats as stats; print(stats.norm.pdf(0.0).round(3))",
        "0.399",
    ),
    "a module of a package": (
        "from phalanx.numpy import linalg; print(linalg.norm(-5.0))",
        "5.0",
    ),
    "a module that nobody is to import": (
        "from phalanx.core.types import Array; print(Array.__add__.__name__)",
        "__add__",
    ),
    "the ground first": (
        "import phalanx.base.tree, phalanx.xla.pytrees, phalanx.debug; print(phalanx.jit(abs)(-1))",
        "1",
    ),
    "a star": ("from phalanx.lax import *; from phalanx import *; print(jit(sin)(0.0))", "0.0"),
    "an attribute of an attribute": (
        "import phalanx; print(phalanx.scipy.special.erf(0.0), phalanx.nn.initializers.__name__)",
        "0.0 phalanx.nn.initializers",
    ),
    "imported again": (
        "import importlib, phalanx.numpy as jnp; before = jnp.sum\n"
        "importlib.reload(phalanx := importlib.import_module('phalanx')); importlib.reload(jnp)\n"
        "print(jnp.sum is before, jnp.cos(0.0), phalanx.jit(abs)(-1))",
        "True 1.0 1",
    ),
    "replaced before it is asked for": (
        "from unittest import mock; import phalanx.numpy as jnp\n"
        "with mock.patch('phalanx.numpy.quantile', lambda x: 7): print(jnp.quantile(1))\n"
        "print(jnp.quantile(jnp.ones(3), 0.5))",
        "7\n1.0",
    ),
    "set before it is asked for": (
        "import phalanx; phalanx.jit = 5; phalanx.grad; print(phalanx.jit)",
        "5",
    ),
    "read from a pickle": (
        "import pickle; print(pickle.loads(b'cphalanx.numpy\\ntanh\\n.')(0.0))",
        "0.0",
    ),
    "looked for, not imported": (
        "import sys; from importlib.util import find_spec\n"
        f"print(find_spec('phalanx.debug').name, {HEAVY})",
        "phalanx.debug []",
    ),
    "by the loader of any module": (
        "import phalanx.debug as d; print(type(d.__spec__.loader) is type(d.__loader__))",
        "True",
    ),
    "read in the editor": (
        "import inspect, phalanx; print(inspect.signature(phalanx.vjp).parameters['has_aux'])",
        "has_aux: 'bool' = False",
    ),
}


@pytest.mark.parametrize("style", STYLES)
def test_whatever_is_imported_first_it_works(style):
    program, printed = STYLES[style]
    assert run(program) == printed


IN_THREADS = """
import pickle, sys, threading
import phalanx
asked = ["phalanx.jit", "phalanx.numpy.quantile", "phalanx.nn.relu", "phalanx.lax.scan"]
made = [f"from phalanx import {n}" for n in ("lax", "grad", "random")]
made += [f"import phalanx.{n}" for n in ("numpy", "lax", "scipy.special", "random", "nn")]
sys.setswitchinterval(1e-5)
found, failed, together = {name: [] for name in asked}, [], threading.Barrier(4 * len(made))

def first(how):
    together.wait()
    try:
        exec(how, {})
        for name in asked:
            found[name].append(eval(name))
        assert phalanx.numpy.zeros(2).sum() == 0
    except BaseException as error:
        failed.append(repr(error))

threads = [threading.Thread(target=first, args=(how,)) for how in made * 4]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(failed, all(len({*map(id, each)}) == 1 for each in found.values()))
for each in found.values():
    pickle.dumps(each[0])
"""


def test_threads_that_ask_first_get_the_same():
    assert run(IN_THREADS) == "[] True"


def test_what_is_missing_is_told_to_everybody_who_asks():
    program = """
import sys
sys.modules["jaxlib"] = None
import phalanx
for ask in ("phalanx.jit", "phalanx.numpy.sum", "import phalanx.debug"):
    try:
        exec(ask)
    except ImportError as error:
        print(error.name)
del sys.modules["jaxlib"]
print(phalanx.jit(abs)(-1))"""
    assert run(program).split() == ["jaxlib", "jaxlib", "jaxlib", "1"]


def declared(path):
    """The names of a stub, and for each the module that it is imported from, and its name there."""
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                assert alias.asname == alias.name  # what PEP 484 takes for offered
                yield alias.name, node.module, alias.name
        elif isinstance(node, ast.Assign):
            yield node.targets[0].id, "", node.value.id


def package_of(path):
    return importlib.import_module(".".join(path.parent.relative_to(ROOT.parent).parts))


@pytest.mark.parametrize("path", STUBS, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_package_offers_what_its_stub_declares(path):
    package = package_of(path)
    offered = [*declared(path)]
    names = [name for name, _, _ in offered]
    assert len(names) == len({*names})
    hidden = {name for name in names if name.startswith("__array")}
    assert {*names} - hidden == {*package.__all__}
    for name, module, own in offered:
        there = getattr(importlib.import_module(module), own) if module else getattr(package, own)
        assert inspect.unwrap(getattr(package, name)) is inspect.unwrap(there), name


@pytest.mark.parametrize("path", STUBS, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_module_of_a_package_has_the_name_of_another_thing_in_it(path):
    """Python would put it in the place of that when somebody imports it."""
    package = package_of(path)
    for module in pkgutil.iter_modules(package.__path__):
        if module.name in package.__all__:
            assert inspect.ismodule(getattr(package, module.name)), module.name
