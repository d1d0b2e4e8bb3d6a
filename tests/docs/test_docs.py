"""Every Python block of README and docs runs, and prints what the page says."""

import ast
import os
import pkgutil
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from xml.etree import ElementTree

import pytest

import phalanx
import phalanx.numpy as jnp
from docs.generator import gallery
from phalanx.base.config import OPTIONS
from tests.docs import codes, not_offered, run_page

ROOT = Path(__file__).parents[2]
BRING = ROOT / "docs" / "bring-your-program.md"
PAGES = [
    ROOT / "README.md",
    *sorted(page for page in (ROOT / "docs").rglob("*.md") if page.parent.name != "reference"),
]


def name(page):
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_page_runs_as_a_reader_runs_it(page):
    """A page that needs several devices divides the CPU itself."""
    if not any(language == "python" for language, _, _ in run_page.blocks(page.read_text())):
        pytest.skip("no code")
    done = subprocess.run(
        [sys.executable, "-W", "error", "-m", "tests.docs.run_page", str(page)],
        cwd=ROOT,
        env={k: v for k, v in os.environ.items() if not k.endswith("_NUM_CPU_DEVICES")},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_a_wrong_output_is_found(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("```python\nprint(1 + 2)\n```\n\n```text\n4\n```\n")
    assert "-4\n+3" in run_page.difference(page)
    page.write_text(run_page.run(page))
    assert not run_page.difference(page)


def functions_of(code):
    """The source of each function that stands at the top of some code, by name."""
    found = (node for node in ast.parse(code).body if isinstance(node, ast.FunctionDef))
    return {node.name: ast.get_source_segment(code, node) for node in found}


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_pages_show_functions_of_examples_as_they_are(page):
    text = page.read_text(encoding="utf-8")
    codes = [code for language, code, _ in run_page.blocks(text) if language == "python"]
    shown = {k: v for code in codes for k, v in functions_of(code).items()}
    for example in set(re.findall(r"whole program is\s+`(examples/\w+\.py)`", text)):
        own = functions_of((ROOT / example).read_text(encoding="utf-8"))
        assert len(shown) > 1 and shown == {k: own.get(k) for k in shown}


LIBRARIES = [page for page in PAGES if page.parent.name == "libraries"]


@pytest.mark.parametrize("page", LIBRARIES, ids=name)
def test_a_page_of_a_library_has_a_program_with_lanes_and_what_it_prints(page):
    text = page.read_text(encoding="utf-8")
    programs = [code for language, code, _ in run_page.blocks(text) if language == "py"]
    printed = [code for language, code, _ in run_page.blocks(text) if language == "text"]
    assert "pmap" in programs[0] and all(map(ast.parse, programs))
    assert len(programs) == len(printed) and all(map(str.strip, printed))
    assert "as_jax" in text and f"libraries/{page.name}" in BRING.read_text(encoding="utf-8")


def listed_names():
    for section in (ROOT / "docs" / "api.md").read_text().split("\n## ")[1:]:
        title, text = section.split("\n", 1)
        if title.startswith("phalanx"):
            for paragraph in text.split("\n\n"):
                inside = re.match(r"In `([\w.]+)`", paragraph)
                module = f"phalanx.{inside[1]}" if inside else title
                listed = re.split(r":\s", paragraph)[-1]
                if re.fullmatch(r"(`\w+`,?\s*)+", listed):
                    yield from ((module, found) for found in re.findall(r"`(\w+)`", listed))


def documented(title):
    found = pkgutil.resolve_name(title)
    return found if isinstance(found, ModuleType) else jnp.ones(2)


def test_every_listed_name_exists():
    listed = list(listed_names())
    missing = [
        f"{module}.{attribute}"
        for module, attribute in listed
        if not hasattr(documented(module), attribute)
    ]
    assert len(listed) > 100
    assert not missing


def test_the_page_of_what_is_not_offered_is_that_of_the_tables():
    assert not_offered.PAGE.read_text() == not_offered.page()


def test_the_table_of_codes_is_that_of_the_declarations():
    assert codes.PAGE.read_text() == codes.page()


def names_one_by_one():
    """Of each module on the page: names that are there, and those that are not, with reasons."""
    for section in (ROOT / "docs" / "names.md").read_text().split("\n## ")[1:]:
        title, text = section.split("\n", 1)
        rows = dict(re.findall(r"^\| `(\w+)` \| (.+) \|$", text, re.MULTILINE))
        listed = re.findall(r"`(\w+)`", re.sub(r"^\|.*$", "", text, flags=re.MULTILINE))
        yield pkgutil.resolve_name(title), set(listed), rows


def test_names_are_there_or_not_as_the_page_says():
    modules = list(names_one_by_one())
    assert len(modules) == 8
    for module, listed, missing in modules:
        who = module.__name__
        assert not {n for n in listed if not hasattr(module, n)}, who
        assert not {n for n in missing if hasattr(module, n)}, who
        assert not [n for n in dir(module) if n.endswith("_p")], who


def test_reasons_on_the_page_are_those_that_errors_give():
    for module, _, missing in names_one_by_one():
        if module is phalanx.lax:
            for name, why in missing.items():
                with pytest.raises(AttributeError, match=re.escape(why)):
                    getattr(module, name)
            with pytest.raises(AttributeError, match="operations of programs"):
                _ = module.add_p


def test_public_functions_of_these_modules_are_on_the_page():
    for module, listed, missing in names_one_by_one():
        public = getattr(module, "__all__", None) or [n for n in dir(module) if n[0] != "_"]
        values = {n: getattr(module, n) for n in public}
        ours = {n for n, x in values.items() if callable(x) and not isinstance(x, type)}
        known = {*listed, *missing, "pvary"}  # the last is of an older version
        assert ours <= known, module.__name__


def test_limits_are_limits_still():
    page = (ROOT / "docs" / "limits.md").read_text()
    claims = re.findall(r"[Tt]here\s+is\s+no\s(.*?)\syet", page, re.DOTALL)
    names = [name for claim in claims for name in re.findall(r"`([\w.]+)`", claim)]
    assert not [name for name in names if has(name)]


def has(path):
    try:
        pkgutil.resolve_name(f"phalanx.{path}")
    except (AttributeError, ModuleNotFoundError):
        return False
    return True


def test_every_option_is_listed():
    page = (ROOT / "docs" / "api.md").read_text().split("## Options")[1]
    assert set(re.findall(r"^\| `(\w+)`", page, re.MULTILINE)) == set(OPTIONS)


def test_the_page_of_examples_shows_each_with_what_it_prints():
    page = (ROOT / "docs/examples.md").read_text(encoding="utf-8")
    listed = (ROOT / "examples/README.md").read_text(encoding="utf-8")
    programs = {path.stem for path in (ROOT / "examples").glob("*.py")}
    assert set(gallery.COMMANDS) == programs
    for name, command in gallery.COMMANDS.items():
        picture = f"pictures/example-{name}.svg"
        drawn = ElementTree.parse(ROOT / "docs" / picture)
        typed, *printed = (text.text for text in drawn.iter("{http://www.w3.org/2000/svg}text"))
        assert typed == f"$ {command}" and len(printed) > 1
        assert picture in page and f"examples/{name}.py" in page and f"]({name}.py)" in listed


def test_a_window_shows_the_first_and_the_last_lines():
    lines = [f"line {i}" for i in range(30)]
    assert gallery.shortened(lines) == [*lines[:8], "...", *lines[-4:]]
    assert gallery.shortened(["a " * 50]) == [("a " * 40).strip(), "    " + ("a " * 10).strip()]
    assert gallery.shortened(lines[:13]) == lines[:13]
    shown = ElementTree.fromstring(gallery.window("python <x>", ["a & b"]))
    assert [text.text for text in shown.findall("{*}text")] == ["$ python <x>", "a & b"]


def test_quick_start_holds_the_two_commands():
    section = (ROOT / "README.md").read_text().split("## Try the demo")[1].split("\n## ")[0]
    (commands,) = [code for language, code, _ in run_page.blocks(section) if language == "sh"]
    assert commands.split("\n")[:-1] == ["./dev demo", "./dev test"]
