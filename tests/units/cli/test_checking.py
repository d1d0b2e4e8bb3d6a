"""`phalanx check`: what it prints, and how it ends."""

import json
import os
import subprocess
import sys
import zipfile

import pytest

from phalanx.insight import CODES

SCRIPT = """
import sys
import phalanx, phalanx.numpy as jnp
from phalanx import lax, random

def step(key, x):
    y = x + random.normal(key, x.shape) * random.uniform(key, x.shape)
    return lax.psum(lax.psum(y, "i"), "i")

train = phalanx.pmap(step, "i", in_axes=(0, 0), out_axes=None)
keys = random.split(random.key(0), 2)
for size in (3, 4):
    print(train(keys, jnp.ones((2, size))).shape, sys.argv[1:])
"""
CLEAN = "import phalanx\nphalanx.jit(lambda x: x + 1)(1.0)\n"


@pytest.fixture
def check(tmp_path):
    def run(text, *words, before=(), name="script.py"):
        (tmp_path / name).write_text(text)
        command = [sys.executable, "-m", "phalanx", "check", *before, *words]
        env = os.environ | {"PHALANX_NUM_CPU_DEVICES": "2", "COLUMNS": "100"}
        return subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=env)

    return run


def test_findings_are_printed_once_with_line_and_remedy(check):
    done = check(SCRIPT, "script.py", "--size", "3")
    assert done.returncode == 1, done.stderr
    shapes, rest = done.stdout.splitlines()[:2], "\n".join(done.stdout.splitlines()[2:])
    assert shapes == ["(3,) ['--size', '3']", "(4,) ['--size', '3']"]
    assert rest.count("script.py:7: P106 ") == rest.count("script.py:8: P103 ") == 1
    assert "random.split(key)" in rest and rest.endswith("2 findings")
    assert not [line for line in rest.splitlines() if line != line.rstrip()]  # as rich pads


def test_findings_as_json_are_all_that_is_on_stdout(check):
    done = check(SCRIPT, "script.py", before=["--json"])
    found = json.loads(done.stdout)
    assert done.returncode == 1 and "(3,) []" in done.stderr
    assert [(f["code"], f["line"]) for f in found] == [("P106", 7), ("P103", 8)]
    assert {*found[0]} == {"code", "message", "file", "line", "remedy"}


def test_nothing_wrong(check):
    done = check(CLEAN, "script.py")
    told = f"1 function checked (<lambda>) for {len(CODES)} kinds of mistake: nothing was found\n"
    assert (done.returncode, done.stdout) == (0, told)
    done = check("print(1)", "script.py")
    told = "nothing was found: the script compiled nothing; call its step through jit or pmap"
    assert done.stdout.splitlines() == ["1", told]
    assert json.loads(check(CLEAN, "script.py", before=["--json"]).stdout) == []


def test_codes_are_chosen_and_left_out(check):
    for before, codes in (["--select", "p103"], {"P103"}), (["--ignore", "P103,P105"], {"P106"}):
        found = json.loads(check(SCRIPT, "script.py", before=[*before, "--json"]).stdout)
        assert {f["code"] for f in found} == codes
    done = check(SCRIPT, "script.py", before=["--select", "P106", "--ignore", "P106"])
    assert done.returncode == 0 and done.stdout.endswith("0 kinds of mistake: nothing was found\n")
    done = check(SCRIPT, "script.py", before=["--select", "P1"])
    assert (done.returncode, done.stdout) == (2, "") and "there is no code P1: the" in done.stderr


def test_codes_are_explained(check):
    done = check("", before=["--explain", "P106, p103"])
    assert done.returncode == 0 and CODES["P103"].example in done.stdout
    assert done.stdout.startswith(f"P106: {CODES['P106'].title}\n")
    done = check("", before=["--explain"])
    assert all(f"{code}: " in done.stdout for code in CODES)
    assert check("", before=["--explain", "script.py"]).returncode == 2


def test_findings_become_comments_of_github(check):
    done = check(SCRIPT, "a,b.py", before=["--format", "github"], name="a,b.py")
    first, second = done.stdout.splitlines()
    assert first.startswith("::warning file=a%2Cb.py,line=7,title=phalanx P106::the key is used")
    assert "%0ASplit the key" in first and "line=8,title=phalanx P103::psum" in second


def test_findings_become_sarif(check, tmp_path):
    (tmp_path / "other.py").write_text(SCRIPT)
    (run,) = json.loads(check("", tmp_path / "other.py", before=["--format", "sarif"]).stdout)[
        "runs"
    ]
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    for result, code, line in zip(run["results"], ("P106", "P103"), (7, 8), strict=True):
        place = result["locations"][0]["physicalLocation"]
        assert place["artifactLocation"]["uri"] == "other.py"
        assert (rules[result["ruleIndex"]], place["region"]["startLine"]) == (code, line)


def test_a_module(check):
    done = check(SCRIPT, "program", before=["-m"], name="program.py")
    assert done.returncode == 1 and "program.py:7: P106" in done.stdout


def test_a_folder_and_a_zip_file(check, tmp_path):
    done = check(SCRIPT, ".", name="__main__.py")
    assert done.returncode == 1 and "__main__.py:7: P106" in done.stdout, done.stderr
    with zipfile.ZipFile(tmp_path / "program.zip", "w") as packed:
        packed.writestr("__main__.py", SCRIPT)
    done = check(CLEAN, "program.zip")
    assert done.returncode == 1 and "__main__.py:7: P106" in done.stdout, done.stderr


def test_a_silenced_line(check):
    line, psum = "random.uniform(key, x.shape)", 'lax.psum(y, "i")'
    text = SCRIPT.replace(line, f"{line}  # phalanx: ok P106: paired")
    text = text.replace(f'lax.psum({psum}, "i")', psum)
    assert check(text, "script.py").returncode == 0


@pytest.mark.parametrize(
    "words, said",
    [
        (["absent.py"], "there is no file absent.py"),
        (["absent"], "there is no file absent (with -m it is the name of a module)"),
        (["empty"], "there is no __main__.py in empty (with -m it is the name of a module)"),
        (["-m", "absent.module"], "there is no module absent.module"),
        (["-m", "email"], "there is no module email.__main__"),
        (
            ["book.ipynb"],
            "book.ipynb is a notebook; make a script of it, "
            "jupyter nbconvert --to script book.ipynb",
        ),
    ],
)
def test_what_is_not_there(check, tmp_path, words, said):
    (tmp_path / "empty").mkdir()
    done = check(CLEAN, *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"phalanx check: {said}\n"


def test_a_script_that_fails_is_told_and_so_is_what_was_found_before(check):
    done = check(SCRIPT + "phalanx.jit(lambda x: float(x))(1.0)\n", "script.py")
    assert done.returncode == 2
    assert "P106" in done.stdout and "ConcretizationTypeError" in done.stderr
    assert done.stdout.endswith("2 findings before the script failed\n")
    assert "runpy" not in done.stderr and "scripts.py" not in done.stderr


def test_a_script_that_is_no_python_is_told_as_python_tells_it(check):
    done = check("import phalanx\ndef f(:\n", "script.py")
    assert done.returncode == 2
    first, *_, last = done.stderr.splitlines()
    assert first.endswith('script.py", line 2') and last.startswith("SyntaxError")
    assert done.stderr.count('File "') == 1


def test_a_script_that_exits(check):
    assert check(SCRIPT + "sys.exit(0)\n", "script.py").returncode == 1
    done = check(SCRIPT + "sys.exit(3)\n", "script.py")
    assert done.returncode == 2 and "script.py ended with exit status 3" in done.stderr
    done = check(SCRIPT + "raise KeyboardInterrupt\n", "script.py")
    assert done.returncode == 130 and "script.py was interrupted" in done.stderr
    assert done.stdout.endswith("2 findings before the script was interrupted\n")
    assert "Traceback" not in done.stderr
    done = check("import sys\nsys.exit('no data')\n", "script.py")
    assert done.returncode == 2 and done.stderr == "no data\n"


def test_a_part_of_a_package_is_told_how_to_be_run(check):
    done = check("from .model import f\n", "script.py")
    assert done.returncode == 2 and "run as a module: -m script" in done.stderr


def test_a_script_of_jax_itself_is_told_how_to_be_seen(check, tmp_path):
    (tmp_path / "jax.py").touch()
    done = check("import jax\n", "script.py")
    assert done.returncode == 0 and "are not seen here" in done.stderr
    assert "python -m phalanx.as_jax -m phalanx check script.py" in done.stderr
