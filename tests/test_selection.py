"""What a run takes of the tests that are many, and that it leaves no law of a primitive out."""

import importlib
import os
import pkgutil
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

import phalanx.primitives
from phalanx.core.primitive import Primitive
from phalanx.laws.primitives import LAWS
from tests import conftest, seeds
from tests.laws.test_primitives import by_one_rule
from tests.selection import optimized, selected, statement

ROOT = Path(__file__).parents[1]
SEEDS = range(20)
MODULES = [m.name for m in pkgutil.iter_modules(phalanx.primitives.__path__, "phalanx.primitives.")]
PRIMITIVES = {
    value.name: value
    for module in [*MODULES, "phalanx.run.put"]
    for value in vars(importlib.import_module(module)).values()
    if isinstance(value, Primitive)
}


def collected(*options):
    """What pytest prints of the tests that a run with ``options`` takes."""
    command = [sys.executable, "-m", "pytest", "--collect-only", *options]
    run = subprocess.run(command, cwd=ROOT, env=os.environ, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout + run.stderr
    return run.stdout


def test_a_run_checks_every_law_of_every_primitive():
    printed = collected("--sample", "tests/laws/test_primitives.py")
    checked = set(re.findall(r"test_law\[(\w+)-(.+)-\d+\]", printed))
    checked |= set(re.findall(r"test_(transpose|pmap)\[(.+)\]", printed))
    promised = {
        (law, name)
        for name, prim in PRIMITIVES.items()
        for law, rule in LAWS.items()
        if any(rule.applies(prim, example) for example in prim.examples)
    }
    of_one_rule = {case for case in promised if by_one_rule(*case)}
    assert checked == promised - of_one_rule and len(checked) > 4 * len(PRIMITIVES)
    taken = set(re.findall(r"test_rule_of_many\[(\w+)-(.+)-\d+\]", printed))
    assert taken < of_one_rule and {law for law, _ in taken} == {"batch", "shard_map"}


def test_the_option_in_the_report_repeats_the_sample():
    file = "tests/oracles/test_numpy_methods.py"
    printed = collected("--sample", file)
    (option,) = re.findall(r"--hypothesis-seed=\d+", printed)
    taken, again = (
        re.findall("<Function .*>", p) for p in (printed, collected("--sample", option, file))
    )
    assert taken == again and taken and re.search(r"\d+ deselected", printed)


@pytest.mark.parametrize("given", ["17", 17, None])
def test_a_seed_is_a_number(given):
    config = SimpleNamespace(option=SimpleNamespace(hypothesis_seed=given))
    conftest.pytest_configure(config)
    assert config.option.hypothesis_seed in ([17] if given else [seeds.of_this_run()])


def git(root, *words):
    author = ["-c", "user.name=x", "-c", "user.email=x"]
    subprocess.run(["git", *author, *words], cwd=root, check=True, capture_output=True)


def test_a_commit_has_a_seed(tmp_path):
    (tmp_path / "tests").mkdir()
    file = tmp_path / "tests/a.py"
    file.write_text("1")
    unpacked = [seeds.of_the_commit(tmp_path), seeds.of_the_commit(tmp_path)]
    git(tmp_path, "init", "-q")
    found = []
    for text in ("1", "2", "1"):
        file.write_text(text)
        git(tmp_path, "add", ".")
        git(tmp_path, "commit", "-qm", "x", "--allow-empty")
        found.append(seeds.of_the_commit(tmp_path))
    file.write_text("not committed")
    assert unpacked[0] == unpacked[1] in range(2**32)
    assert found[0] == found[2] == seeds.of_the_commit(tmp_path) != found[1]


def test_pythons_have_different_seeds(monkeypatch):
    def of_python(minor):
        monkeypatch.setattr(sys, "version_info", SimpleNamespace(minor=minor))
        return seeds.of_this_run()

    found = [of_python(minor) for minor in (11, 12, 13, 11)]
    assert len(set(found)) == 3 and found[0] == found[3]


def test_a_copy_in_the_repository_of_others_has_a_seed_of_its_own(tmp_path):
    git(tmp_path, "init", "-q")
    copy = tmp_path / "copy"
    (copy / "tests").mkdir(parents=True)
    found = []
    for text in ("1", "2", "1"):
        (copy / "tests/a.py").write_text(text)
        git(tmp_path, "commit", "-qm", "x", "--allow-empty")
        found.append(seeds.of_the_commit(copy))
    assert found[0] == found[2] != found[1]


def test_what_is_optimized_changes_with_the_seed():
    modules = [SimpleNamespace(nodeid=f"tests/test_{i}.py") for i in range(40)]
    drawn = [[m for m in modules if optimized(m, seed)] for seed in range(60)]
    assert all(0 < len(some) < len(modules) / 2 for some in drawn)
    assert {m.nodeid for some in drawn for m in some} == {m.nodeid for m in modules}


def item(path, function, **params):
    values = "-".join(str(v) for v in params.values())
    return SimpleNamespace(
        nodeid=f"{path}::{function}[{values}]", callspec=SimpleNamespace(params=params)
    )


LAW_ITEMS = [
    item("tests/laws/test_primitives.py", "test_law", law=law, name=name, number=i)
    for law in ("jit", "batch")
    for name in ("add", "mul", "sin")
    for i in range(6)
]


@pytest.mark.parametrize("seed", SEEDS)
def test_everything_stated_is_checked_once(seed):
    kept = selected(LAW_ITEMS, seed)
    assert set(map(statement, kept)) == set(map(statement, LAW_ITEMS))
    assert kept == [x for x in LAW_ITEMS if x in kept]
    assert kept == [x for x in LAW_ITEMS if x in selected(LAW_ITEMS[::-1], seed)]


def test_everything_is_taken_by_some_seed():
    taken = [x.nodeid for seed in range(60) for x in selected(LAW_ITEMS, seed)]
    assert set(taken) == {x.nodeid for x in LAW_ITEMS}
    assert len(taken) < 60 * len(LAW_ITEMS) / 2


@pytest.mark.parametrize(
    "folder", ["tests/units/lax", "tests/stories", "phalanx/numpy", "tests/laws/test_contexts"]
)
def test_a_share_of_the_statements_is_taken(folder):
    items = [item(f"{folder}/test_{i}.py", "test_a", number=n) for i in range(40) for n in range(5)]
    of_all = [set(map(statement, selected(items, seed))) for seed in SEEDS]
    assert all(10 <= len(stated) <= 30 for stated in of_all)
    assert set.union(*of_all) == set(map(statement, items))


@pytest.mark.parametrize("seed", SEEDS)
def test_a_share_of_the_pages_is_run_and_the_first_page_always(seed):
    names = ["README.md", *(f"docs/{i}.md" for i in range(60))]
    where = "tests/docs/test_docs.py", "test_page_runs_as_a_reader_runs_it"
    run = selected([item(*where, page=name) for name in names], seed)
    assert 10 < len(run) < 40 and run[0].callspec.params == {"page": "README.md"}


@pytest.mark.parametrize("file", ["docs/test_pages.py", "stories/test_acceptance.py"])
def test_other_tests_are_always_taken(file):
    others = [item(f"tests/{file}", "test_a", n=n) for n in range(50)]
    assert selected(others, 0) == others
