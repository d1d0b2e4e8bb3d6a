"""Programs that import jax, run as scripts, modules and code, with what they start."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
SCRIPT = """
import multiprocessing, pickle, sys
import importlib.metadata
import jax, jax.numpy as jnp
from jax import lax, random
from jax.sharding import PartitionSpec as P

class Point:
    def __init__(self, x: int):
        self.x = x

def sine(x):
    import jax
    return float(jax.numpy.sin(x)), jax.Array.__module__

if __name__ == "__main__":
    print(sys.argv, __file__, __spec__, Point.__init__.__annotations__)
    print(pickle.loads(pickle.dumps(Point(jnp.ones(2)))).x)
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        print(pool.map(sine, [0.0])[0])
    print(jax.__version__ == importlib.metadata.version("jax"), jax.Array.__module__)
    print(jax.pmap(lambda x: lax.psum(x, "i"), axis_name="i")(jnp.arange(3.0)))
    if len(sys.argv) > 1:
        raise KeyError("lost")
"""


def python(*arguments, cwd=None, piped=None, **environment):
    given = {**os.environ, "PHALANX_PLATFORMS": "cpu", **environment}
    paths = filter(None, [str(ROOT), given.get("PYTHONPATH")])
    return subprocess.run(
        [sys.executable, *arguments],
        env={**given, "PYTHONPATH": os.pathsep.join(paths)},
        cwd=cwd,
        input=piped,
        capture_output=True,
        text=True,
        timeout=180,
    )


KNOWN_AS_TRANSFORMED = """
import jax
for transform in (jax.jit, jax.vmap, jax.pmap, jax.grad):
    f = transform(lambda x: x)
    assert "api_boundary" in f.__globals__ and f.__wrapped__(1) == 1
"""


PRINTED = """
import jax, jax.numpy as jnp
from jax import lax
from jax.sharding import AxisType, PartitionSpec as P
print(jax.typeof(jnp.ones((2, 3), bool)), jax.typeof(2.0), jax.typeof(jax.random.key(0)))
print([e.primitive for e in jax.jit(lambda x: jnp.sin(x) + 1).trace(1.0).jaxpr.eqns])
with jax.set_mesh(jax.make_mesh((1,), ("X",), (AxisType.Explicit,))):
    x = jax.device_put(jnp.ones((2, 4)), P("X"))
    print(jax.typeof(x), jax.typeof(x).sharding.spec, P("X"))
    part = lambda x: print(jax.typeof(x), jax.typeof(lax.pcast(x, "X", to="unreduced"))) or x
    jax.shard_map(part, in_specs=P("X"), out_specs=P("X"))(x)
"""


KNOWN_AS_ARRAYS = """
import jax
assert jax.numpy.ones(1).__array_namespace__() is jax.numpy
assert jax.jit(lambda x: x * (x.__array_namespace__() is jax.numpy))(2.0) == 2
"""


def test_types_and_programs_look_as_other_programs_compare_them():
    done = python("-m", "phalanx.as_jax", "-c", PRINTED)
    assert done.stdout.splitlines() == [
        "bool[2,3] ~float32[] key<fry>[]",
        "[sin, add]",
        "float32[2@X,4] P('X', None) P('X',)",
        "float32[2,4]{V:X} float32[2,4]{U:X}",
    ], done.stderr


def test_the_functions_for_arrays_are_in_the_module_that_libraries_know():
    done = python("-m", "phalanx.as_jax", "-c", KNOWN_AS_ARRAYS)
    assert done.returncode == 0, done.stderr


OF_PACKAGE = """
import jax, pickle
kinds = []
def seen(x):
    kinds.append(type(x))
    return x
x = jax.numpy.ones(2)
for f in (seen, jax.jit(seen), jax.vmap(seen), jax.grad(lambda x: seen(x).sum())):
    f(x)
print(*(kind.__module__.partition(".")[0] for kind in kinds))
assert pickle.loads(pickle.dumps(type(x))) is type(x) and pickle.loads(pickle.dumps(x))[1] == 1
"""


def test_the_classes_of_arrays_are_in_the_package_by_which_libraries_choose():
    done = python("-m", "phalanx.as_jax", "-c", OF_PACKAGE)
    assert done.stdout.split() == ["jax"] * 4, done.stderr


COUNTED_ON = """
import jax
assert (jax.numpy.ones(1, "uint8") * -1)[0] == 255
assert [*jax.tree.map(lambda x: x, {"b": 1, "a": 2})] == ["a", "b"]
"""


def test_integers_wrap_and_dicts_are_sorted_as_programs_for_jax_count_on():
    done = python("-m", "phalanx.as_jax", "-c", COUNTED_ON)
    assert done.returncode == 0, done.stderr


def test_libraries_know_functions_that_are_transformed():
    done = python("-m", "phalanx.as_jax", "-c", KNOWN_AS_TRANSFORMED)
    assert done.returncode == 0, done.stderr


def test_a_script_runs_as_under_python_and_so_does_what_it_starts(tmp_path):
    (tmp_path / "program.py").write_text(SCRIPT)
    done = python("-m", "phalanx.as_jax", "program.py", cwd=tmp_path)
    assert done.stdout.splitlines() == [
        f"['program.py'] {tmp_path / 'program.py'} None {{'x': <class 'int'>}}",
        "[1. 1.]",
        "(0.0, 'phalanx')",
        "True phalanx",
        "[3. 3. 3.]",
    ], done.stderr
    assert done.returncode == 0


def test_an_exception_ends_it_as_under_python(tmp_path):
    (tmp_path / "program.py").write_text(SCRIPT)
    done = python("-m", "phalanx.as_jax", "program.py", "now", cwd=tmp_path)
    assert done.returncode == 1
    first, *_, last = done.stderr.splitlines()
    assert first == "Traceback (most recent call last):" and last == "KeyError: 'lost'"
    assert "as_jax" not in done.stderr and "running.py" not in done.stderr


def test_a_program_that_is_no_python_is_told_as_under_python(tmp_path):
    (tmp_path / "program.py").write_text("def f(:\n")
    here = python(tmp_path / "program.py", cwd=tmp_path)
    there = python("-m", "phalanx.as_jax", "program.py", cwd=tmp_path)
    assert here.stderr.splitlines() == there.stderr.splitlines()
    assert there.returncode == 1 and "SyntaxError" in there.stderr


@pytest.mark.parametrize("code, status", [("raise SystemExit(7)", 7), ("exit()", 0)])
def test_code_says_how_it_ends(code, status):
    assert python("-m", "phalanx.as_jax", "-c", code).returncode == status


SAID_IN_THE_PROGRAM = """
import importlib.util, os, sys
os.environ.update(PHALANX_NUM_CPU_DEVICES="3", JAX_ENABLE_X64="1")
import jax, jax.numpy as jnp
assert len(jax.devices()) == 3 and jnp.ones(1).dtype == "float64"
assert importlib.util.find_spec("jax.nowhere") is None and importlib.util.find_spec("jax.nn")
assert type(jnp) is type(sys)  # those that send functions to processes know what a module is
print(sys.argv[1:])
"""


def test_a_program_that_is_piped_in_and_one_that_is_a_folder(tmp_path):
    (tmp_path / "program").mkdir()
    (tmp_path / "program" / "__main__.py").write_text(SAID_IN_THE_PROGRAM)
    for program in ("program", "-"):
        command = ("-m", "phalanx.as_jax", program, "--fast")
        done = python(*command, cwd=tmp_path, piped=SAID_IN_THE_PROGRAM)
        assert done.stdout == "['--fast']\n", done.stderr


PLACED = """
import sys
code, main = (lambda: 0).__code__, sys.modules["__main__"]
print(__file__, main.__file__, code.co_filename, sys.argv, sys.path[0], __spec__ and __spec__.name)
"""


@pytest.fixture
def placed(tmp_path):
    """A folder with programs that say where they are."""
    for name in ("program.py", "folder/__main__.py", "package/__main__.py", "package/__init__.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("" if name.endswith("__init__.py") else PLACED)
    (tmp_path / "package" / "linked.py").symlink_to(tmp_path / "program.py")
    with zipfile.ZipFile(tmp_path / "packed.zip", "w") as packed:
        packed.writestr("__main__.py", PLACED)
    return tmp_path


@pytest.mark.parametrize(
    "given",
    [
        ["program.py"],
        ["./program.py"],
        ["package/../program.py"],
        ["package/linked.py"],
        ["folder"],
        ["./folder/"],
        ["packed.zip"],
        ["-m", "program"],
        ["-m", "package"],
    ],
    ids=" ".join,
)
def test_a_program_is_where_python_says_that_it_is(placed, given):
    plain = python(*given, "--fast", cwd=placed)
    assert "--fast" in plain.stdout, plain.stderr
    done = python("-m", "phalanx.as_jax", *given, "--fast", cwd=placed)
    assert done.stdout == plain.stdout, done.stderr
    run = "import sys; from phalanx.cli.scripts import run_script as run; "
    run += f"run({given[-1]!r}, {given[0] == '-m'}, ['--fast'])"
    assert python("-c", run, cwd=placed).stdout == plain.stdout


def test_modules_run(tmp_path):
    tmp_path.joinpath("test_it.py").write_text(
        "import jax\ndef test(): assert jax.Array.__module__ == 'phalanx'\n"
    )
    command = ("-m", "phalanx.as_jax", "-m", "pytest", "-q", "-p", "no:cacheprovider")
    for more in ((), ("-n", "1")):  # a worker is a process that another one starts
        done = python(*command, *more, "test_it.py", cwd=tmp_path)
        assert "1 passed" in done.stdout, done.stdout + done.stderr


def test_processes_started_by_others_need_not_be_served():
    served = "print(any('UntilAskedFor' in type(f).__name__ for f in __import__('sys').meta_path))"
    look = f"import subprocess, sys, jax; subprocess.run([sys.executable, '-c', {served!r}]"
    done = python("-m", "phalanx.as_jax", "-c", look + ")")
    assert done.stdout == "True\n", done.stderr
    free = python("-m", "phalanx.as_jax", "-c", look + ", env={})")
    assert free.stdout == "False\n", free.stderr


def test_what_is_not_there_is_told():
    nothing = python("-m", "phalanx.as_jax")
    assert nothing.returncode == 2 and "usage: python -m phalanx.as_jax" in nothing.stderr
    missing = python("-m", "phalanx.as_jax", "nowhere.py")
    assert missing.returncode == 2 and "there is no file nowhere.py" in missing.stderr


def test_another_jax_that_was_imported_before_is_told(tmp_path):
    tmp_path.joinpath("jax.py").write_text("")
    code = "import jax, phalanx.as_jax; phalanx.as_jax.install()"
    done = python("-c", code, cwd=tmp_path)
    assert done.returncode == 1
    assert "ImportError: jax was imported before, from" in done.stderr
    assert "python -m phalanx.as_jax" in done.stderr


def test_an_import_brings_neither_the_mode_nor_what_waits_for_its_first_use():
    waits = ["phalanx.compat", "jaxlib.mlir", "logging", "hashlib"]
    done = python("-c", f"import sys, phalanx; print([m for m in {waits} if m in sys.modules])")
    assert done.stdout == "[]\n", done.stderr
