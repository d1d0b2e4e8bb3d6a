"""The reference: every public name has a page, which explains every parameter, and an example."""

import ast
import functools
import inspect
import re
import textwrap
import types
from pathlib import Path

import pytest

import phalanx
import phalanx.numpy as jnp
from docs import conf
from docs.generator import names, pages, public, tables
from docs.generator.docstrings import doc_of, parsed
from docs.generator.examples import imports
from docs.generator.public import PAGES
from tests.exemptions import exemptions

ROOT = Path(__file__).parents[2]
ENTRIES = public.entries()


def of(module):
    return [entry for entry in ENTRIES if entry.module == module]


def test_navigation_names_every_page():
    entries = [entry for part in conf.NAVIGATION.values() for entry in part]
    listed = [entry.removesuffix(">").rpartition("<")[2] for entry in entries]
    guides = {str(path.relative_to(ROOT / "docs").with_suffix("")) for path in guides_of(ROOT)}
    reference = {f"{pages.FOLDER}/{name}" for name in PAGES}
    assert {*listed, "index"} == guides | reference and len(set(listed)) == len(listed)


def guides_of(root):
    found = (root / "docs").rglob("*.md")
    return [path for path in found if pages.FOLDER not in path.parts]


def test_modules_of_the_table_of_names_are_in_the_reference():
    titles = re.findall(r"^## (phalanx[\w.]*(?:, phalanx[\w.]*)*)$", api(), re.MULTILINE)
    named = {name for title in titles for name in title.split(", ")}
    assert len(named) > 20
    known = {*public.modules(), "phalanx.Array", "phalanx.scipy"}
    assert not named - known


def is_error(value):
    """Whether it is what is raised: the page about errors shows each where a user meets it."""
    return isinstance(value, type) and issubclass(value, Exception)


def api():
    return (ROOT / "docs" / "api.md").read_text(encoding="utf-8")


@functools.cache
def made():
    """Every page of the reference, by name."""
    mentions = pages.mentions_in(ROOT / "docs")
    return {entry.page: pages.page(entry, mentions) for entry in ENTRIES} | {
        name: pages.list_of(name) for name in PAGES
    }


def test_pages_differ_in_more_than_capitals():
    assert len({name.casefold() for name in made()}) == len(made()) > 1300


@pytest.mark.parametrize("module", public.modules())
def test_completion_shows_what_is_public(module):
    found = public.modules()[module]
    shown = {name: getattr(found, name) for name in dir(found)}
    packages = {value.__name__ for value in shown.values() if isinstance(value, types.ModuleType)}
    old = {*vars(found).get("_OLD", ())}  # names of JAX's, which programs have
    assert {*shown} == {*found.__all__} - old and old < {*found.__all__}
    assert all(name.startswith("phalanx") for name in packages)


def test_every_public_name_is_listed():
    lists = "".join(made()[name] for name in PAGES)
    assert not [e.name for e in ENTRIES if f"]({e.page}.md)" not in lists]


def test_pages_are_linked_to_pages_that_are_there():
    for name, text in made().items():
        for target in re.findall(r"\]\(([\w.\-/]+)\.md\)", text):
            if target.startswith("../"):
                assert (ROOT / "docs" / f"{target[3:]}.md").exists(), name
            else:
                assert target in made(), name


def test_every_name_of_a_large_module_has_a_subject():
    for module in public.SUBJECTS:
        alone = dict(public.subjects(module)).get("", [])
        assert not [entry.name for entry in alone if entry.module == module]


@pytest.mark.parametrize("module", public.modules())
def test_every_parameter_is_explained(module):
    for entry in of(module):
        found, doc = public.signature(entry.value), doc_of(entry.value)
        said = {**doc.attributes, **doc.args} if isinstance(entry.value, type) else doc.args
        named = [name for name in found.parameters if name[0] != "_"] if found else []
        assert not [name for name in named if not said.get(name)], entry.name


def test_parameters_are_explained_where_they_stand():
    vague = re.compile(r"(as|see) above|another one|the (same|other|first|second)( one)?|like .*")
    said = {entry.name: doc_of(entry.value).args for entry in ENTRIES}
    found = [(name, k) for name, args in said.items() for k, v in args.items() if v]
    assert len(found) > 3000
    bad = [(name, k) for name, k in found if vague.fullmatch(said[name][k].rstrip("."))]
    assert not bad


def test_what_arrays_do_not_have_is_not_on_their_page():
    listed = {name for name, _ in public.members(phalanx.Array)}
    assert {"at", "reshape", "item", "devices"} <= listed and not listed & {
        "numpy",
        "add_",
        "backward",
    }
    assert "phalanx.Array.reshape" in made()["phalanx.Array"]


def test_dtypes_tell_which_numbers_they_have():
    half, byte = (doc_of(getattr(jnp, name)).summary for name in ("float16", "uint8"))
    assert "5 bits of exponent and 10 of fraction: up to 65504" in half
    assert "from 0 to 255, of 8 bits" in byte


def test_methods_explain_their_parameters():
    first_seen = {}  # under the class that is listed first, of those that inherit it
    for entry in ENTRIES:
        if isinstance(entry.value, type) and entry.short != "Builder":
            for name, held in public.members(entry.value):
                function = public.function_of(held)
                # not what compat adds, if a test before has imported that
                added = str(getattr(function, "__module__", "")).startswith("phalanx.compat")
                if public.is_ours(function) and not added and not public.is_property(held):
                    first_seen.setdefault(function, (f"{entry.short}.{name}", held))
    lacking = {name for function, (name, held) in first_seen.items() if lacks(function, held)}
    assert not lacking


def lacks(function, held):
    """Whether a method has parameters that its docstring does not explain, or hand on."""
    doc, found = doc_of(function), public.signature(function)
    names = [name for name in found.parameters if name[0] != "_"] if found else []
    given = names if isinstance(held, staticmethod) else names[1:]
    refers = re.match(r"See ``[\w.]+``\.$", doc.summary)
    return not refers and bool(set(given) - set(doc.args))


@pytest.mark.parametrize("module", public.modules())
def test_every_function_tells_what_it_returns(module):
    told = {"None", "NoReturn", "bool", "bytes", "int", "str"}  # by the annotation alone
    for entry in of(module):
        found = public.signature(entry.value)
        if found and not isinstance(entry.value, type) and found.return_annotation not in told:
            assert doc_of(entry.value).returns, entry.name


@pytest.mark.parametrize("module", public.modules())
def test_functions_that_raise_say_when(module):
    for entry in of(module):
        if inspect.isfunction(entry.value) and raises(inspect.unwrap(entry.value)):
            assert doc_of(entry.value).raises, entry.name


def raises(function):
    """Whether a ``raise`` stands in the function itself."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    return any(isinstance(node, ast.Raise) for node in ast.walk(tree))


@pytest.mark.parametrize("module", public.modules())
def test_docstrings_explain_parameters_that_there_are(module):
    for entry in of(module):
        found = public.signature(entry.value)
        if found is not None:
            assert not set(doc_of(entry.value).args) - set(found.parameters), entry.name


@pytest.mark.parametrize("module", public.modules())
def test_a_default_is_told_of_what_need_not_be_given(module):
    """What ``None``, or another default that does not speak for itself, stands for."""
    for entry in of(module):
        found, said = public.signature(entry.value), doc_of(entry.value).args
        for name, parameter in found.parameters.items() if found else ():
            if parameter.default is parameter.empty and parameter.kind < parameter.VAR_POSITIONAL:
                assert not re.search(r"\bdefault ", said.get(name, "")), (entry.name, name)


@pytest.mark.parametrize("module", public.modules())
def test_every_function_and_class_shows_an_example(module):
    missing = {
        entry.name.removeprefix("phalanx.")
        for entry in of(module)
        if not doc_of(entry.value).examples and not is_error(entry.value)
    }
    mine = {entry.name.removeprefix("phalanx.") for entry in of(module)}
    assert missing == mine & exemptions("documented-examples").keys()


def test_examples_run_where_a_reader_pastes_them():
    for entry in ENTRIES:
        text = "\n\n".join(doc_of(entry.value).examples)
        for line in imports(entry.home, text):
            assert not re.search(r" _|\._", line), entry.name
            exec(line, {})


@pytest.mark.parametrize(
    "text, module, page",
    [
        ("pmap", "", "phalanx.pmap"),
        ("phalanx.pmap", "", "phalanx.pmap"),
        ("lax.psum()", "", "phalanx.lax.psum"),
        ("psum", "", "phalanx.lax.psum"),
        ("jnp.where", "", "phalanx.numpy.where"),
        ("where", "", None),  # a parameter
        ("pmap(f)", "", None),
        ("sort", "phalanx.lax", "phalanx.lax.sort"),
        ("sort", "", "phalanx.lax.sort"),
        ("step", "", None),
    ],
)
def test_names_in_code_font_are_found(text, module, page):
    found = names.named(text, module)
    assert (found and found.name) == page


def test_names_that_a_page_defines_mean_those():
    code = "def double(x):\n    y = 2\n\nclass Net:\n    pass\n\nloss = double(3)\nprint(loss)"
    assert names.defined(code) == {"double", "Net", "loss"}


def test_a_docstring_is_taken_apart():
    doc = parsed(
        "What it is.\n\nMore of ``it``.\n\nArgs:\n    a, b: two,\n"
        "        of them.\n    *c: others.\n\n"
        "Returns:\n    One.\n\nRaises:\n    ValueError: sometimes.\n\n>>> 1\n1\n\n>>> 2\n2"
    )
    assert doc.summary == "What it is." and doc.body == ["More of ``it``."]
    assert doc.args == {"a": "two,\nof them.", "b": "two,\nof them.", "c": "others."}
    assert doc.returns == "One." and doc.raises == [("ValueError", "sometimes.")]
    assert doc.examples == [">>> 1\n1", ">>> 2\n2"]


def test_lists_of_names_become_tables_with_first_lines():
    sums = "## phalanx.lax\n\nSums [of lanes](lanes.md):\n`psum`, `all_gather`"
    first, second = tables.tabulated(f"{sums}\n\nIn `nn`: `relu`, `gelu`").split("\n\nIn `nn`")
    assert first.startswith("## phalanx.lax\n\nSums [of lanes](lanes.md):\n\n| name | |\n")
    assert "[`psum`](reference/phalanx.lax.psum.md) | The sum" in first
    assert "[`gelu`](reference/phalanx.nn.gelu.md) |" in second and second.count("\n|") == 4


def test_what_lists_no_names_stays():
    text = "## phalanx.lax\n\n`a` and `b`\n\nTakes `axis`, `index` or none."
    assert tables.tabulated(text) == text


def test_every_name_in_the_tables_of_the_api_is_explained():
    rows = re.findall(r"^\| \[`.*$", tables.tabulated(api()), re.MULTILINE)
    assert len(rows) > 400 and not [row for row in rows if re.search(r"\|\s*\|$", row)]


def test_a_name_that_no_page_explains_is_an_error():
    with pytest.raises(LookupError, match=r"nothing of phalanx\.lax"):
        tables.target("phalanx.lax", "nothing")
