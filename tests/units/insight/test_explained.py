"""Reports on programs: what is in them, and their three forms."""

import io
import json
import shutil
import subprocess

import numpy as np
import pytest
from rich.cells import cell_len
from rich.console import Console

import phalanx as ph
import phalanx.numpy as jnp
from phalanx import lax
from phalanx.insight.alive import course
from phalanx.insight.here import measured
from phalanx.insight.page import page
from phalanx.insight.report import Chart, Column, Facts, Report, Table, Timeline

W, X = np.ones((64, 32), np.float32), np.ones((8, 16, 64), np.float32)


def step(w, x):
    grads = ph.grad(lambda w: jnp.mean((x @ w) ** 2))(w)
    return w - lax.pmean(grads, "batch")


@pytest.fixture(scope="module")
def report():
    return ph.explain(ph.pmap(step, "batch", in_axes=(None, 0), out_axes=None), on="v5p")(W, X)


def rows(report, part):
    return report[part].as_json()["rows"]


def test_a_step_is_explained(report):
    facts = report["summary"].as_json()["facts"]
    assert facts["times are for"] == "TPU v5p"
    assert 2 * 2 * 8 * 16 * 64 * 32 < facts["FLOPs"] < 2.3 * 2 * 8 * 16 * 64 * 32
    hottest = max(rows(report, "hottest lines"), key=lambda row: row["FLOPs"])
    assert "x @ w" in hottest["source"] and hottest["line"].startswith("test_explained.py:")
    assert {row["array"] for row in rows(report, "shardings")} == {"w", "x", "result 0"}
    assert rows(report, "lanes")[0]["lanes"] == 8
    made = {row["instruction"] for row in rows(report, "compiled instructions")}
    assert "dot" in made or "fusion" in made


@pytest.mark.parametrize(
    "f, shape, limit, advice",
    [
        (jnp.sin, (2**24,), "memory-bound", "fewer large intermediate arrays"),
        (jnp.matmul, (4096, 4096), "compute-bound", "bfloat16"),
        (jnp.sin, (8,), "memory-bound", "do more in each call"),  # starting it takes longer
    ],
)
def test_a_verdict_names_the_limit_and_what_to_do(f, shape, limit, advice):
    x = ph.ShapeDtypeStruct(shape, "float32")
    verdict = ph.explain(lambda x: f(x, x) if f is jnp.matmul else f(x), on="v5p")(x).verdict
    assert verdict.startswith(f"It is {limit}") and advice in verdict


@pytest.mark.skipif(ph.device_count() != 8, reason="of eight devices")
def test_its_collective_is_told(report):
    (row,) = rows(report, "collectives")
    assert (row["operation"], row["axes"], row["devices"]) == ("all-reduce", "batch", 8)
    assert (row["bytes"], row["runs"], row["requested by"]) == (W.nbytes, 1, "the program")
    assert row["transfer"] == pytest.approx(2 * W.nbytes * 7 / 8 / 600e9)  # 2x2x2


@pytest.mark.skipif(ph.device_count() != 8, reason="of eight devices")
def test_what_the_compiler_puts_in_is_told():
    mesh = ph.make_mesh((8,), ("data",))
    x = ph.device_put(np.ones((16, 8), np.float32), ph.NamedSharding(mesh, ph.P("data")))
    report = ph.explain(lambda x: jnp.sum(x, axis=0))(x)
    assert {row["requested by"] for row in rows(report, "collectives")} == {"the compiler"}
    lie = {row["array"]: row for row in rows(report, "shardings")}
    assert lie["x"]["bytes on a device"] == 16 * 8 * 4 / 8 and "data" in lie["x"]["sharding"]


@pytest.mark.skipif(ph.device_count() == 1, reason="one device exchanges nothing")
def test_collectives_in_a_loop_count_for_each_run():
    def f(x):
        return lax.scan(lambda c, _: (lax.psum(c, "i") / 8, None), x, None, length=5)[0]

    found = rows(ph.explain(ph.pmap(f, "i"))(np.ones((8, 4), np.float32)), "collectives")
    assert [row["runs"] for row in found] == [5]


@pytest.mark.skipif(ph.device_count() == 1, reason="one device exchanges nothing")
def test_collectives_in_a_condition_are_counted():
    def f(x):
        return lax.while_loop(lambda c: lax.pmax(c[0], "i") < 9, lambda c: c + 1, x)

    found = rows(ph.explain(ph.pmap(f, "i"))(np.ones((8, 4), np.float32)), "collectives")
    assert [row["runs"] for row in found] == [1]


@pytest.mark.skipif(ph.device_count() == 1, reason="one device exchanges nothing")
def test_bytes_of_collectives_are_those_of_the_program():
    x = jnp.ones((8, 100), jnp.bfloat16)
    found = rows(ph.explain(ph.pmap(lambda x: lax.psum(x, "i"), "i"))(x), "collectives")
    assert [row["bytes"] for row in found] == [200]  # CPUs add float32


@pytest.mark.skipif(ph.device_count() != 8, reason="of eight devices")
def test_who_asked_for_a_collective():
    groups = [[0, 1, 2, 3], [4, 5, 6, 7]]
    summed = ph.pmap(lambda x: lax.psum(x, "i", axis_index_groups=groups), "i")
    (row,) = rows(ph.explain(summed)(np.ones((8, 4), np.float32)), "collectives")
    assert (row["axes"], row["requested by"]) == ("i", "the program")
    inside = ph.pmap(lambda x: lax.psum(x, "j"), "j")
    nested = ph.pmap(lambda x: inside(x) + x, "i")
    found = rows(ph.explain(nested)(np.ones((4, 2, 4), np.float32)), "collectives")
    by = {row["operation"]: row["requested by"] for row in found}
    assert by == {"all-reduce": "the program", "all-gather": "a mapped function"}

    def scoped(x):
        with ph.named_scope("network/dense"):
            return lax.psum(x, "i")

    (row,) = rows(ph.explain(ph.pmap(scoped, "i"))(np.ones((8, 4), np.float32)), "collectives")
    assert row["requested by"] == "the program" and row["line"].endswith(" (scoped)")


def test_memory_over_the_course():
    def f(x):
        y = x @ x  # alive beside x
        z = y @ y
        return jnp.sum(z)

    program = ph.make_program(f)(np.ones((10, 10), np.float32))
    found = course(program, ["x"], [400.0], [False], 1)
    assert 1200 <= found.peak <= 1210
    assert {v.what.split(":")[0] for v in found.at_peak} >= {"x", "dot_general"}
    donated = course(program, ["x"], [400.0], [True], 1)
    assert donated.peak <= found.peak
    assert donated.alive[-1] < found.alive[-1]


def test_memory_that_is_used_again():
    x = np.ones((8, 100), np.float32)
    donated = course(ph.make_program(lambda p: p * 2 + 1)(x), ["p"], [3200.0], [True], 1)
    assert donated.peak == 3200
    stacked = ph.make_program(
        lambda: lax.scan(lambda c, _: (c, c), jnp.ones(100), None, length=50)[1]
    )()
    assert course(stacked, [], [], [], 1).peak == 50 * 400
    gathered = ph.make_program(ph.pmap(lambda x: lax.all_gather(x, "i"), "i"))(x)
    found = course(gathered, ["x"], [400.0], [False], 8)
    assert found.peak == 400 + 3200
    assert [v.what.split(":")[0] for v in found.at_peak] == ["x", "all_gather"]


@pytest.mark.parametrize(
    "f, args",
    [
        (lambda: 3.0, ()), (lambda x: x, (1.0,)), (lambda x: x[:0], (jnp.ones(3),)),
        (lambda x: {"a": x, "b": (x.real, None)}, (jnp.ones(2, complex),)),
        (ph.vmap(ph.grad(jnp.sin)), (jnp.ones(3),)), (ph.jit(jnp.cumsum), (jnp.ones(3, "int8"),)),
        (lambda k: ph.random.normal(k, (3,)), (ph.random.key(0),)),
        (lambda x: lax.while_loop(lambda c: c < 9, lambda c: c + x, x), (1,)),
    ],
)  # fmt: skip
def test_any_function_is_explained(f, args):
    report = ph.explain(f)(*args)
    assert "summary" in str(report)
    json.loads(report.json())
    assert report.html().startswith("<!doctype html>")


def test_what_does_not_trace_is_not_explained():
    with pytest.raises(ph.errors.ConcretizationTypeError):
        ph.explain(lambda x: float(x))(1.0)
    with pytest.raises(ValueError, match="Did you mean 'v5p'"):
        ph.explain(jnp.sin, on="v5pp")
    with pytest.raises(TypeError, match="a function is needed, got int"):
        ph.explain(3)


# ---- forms --------------------------------------------------------------------------------------

EXAMPLE = Report(
    "a <b> & c",
    (
        Facts("facts", (("time", 1.5e-3, "seconds"), ("n", None, "count"))),
        Table(
            "rows", (Column("line", "line"), Column("size", "bytes")),
            (("a.py:1", 2048), ("b.py:2", 512), ("c.py:3", 1 << 20)),
        ),
        Chart("chart", Column("x", "count"), Column("y", "bytes"), (("", ((0, 1), (1, 5))),)),
        Timeline(
            "when", (("cpu 0", ((0.0, 1.0, "dot", "computing"), (2.0, 3.0, "copy", "moving"))),)
        ),
    ),
)  # fmt: skip


WIDE = Table(
    "rows",
    (
        Column("operation"), Column("axes"), Column("a long name of bytes", "bytes"),
        Column("made at", "line"), Column("line", "line"), Column("source", "code"),
    ),
    (
        ("all-reduce", "batch", 2048, "training.py:123 (loss)", "train.py:45 (step)", "x = f(x)"),
        ("all-gather", "数", None, "b.py:1", "", "y" * 200),
    ),
)  # fmt: skip


@pytest.mark.parametrize("width", [40, 80, 120])
def test_tables_are_as_wide_as_the_terminal(width):
    console = Console(file=io.StringIO(), width=width, color_system=None)
    console.print(Report("r", (WIDE,)))
    _, title, *lines = console.file.getvalue().rstrip("\n").splitlines()
    assert title == "rows" and all(cell_len(line) <= width for line in lines)
    text = "\n".join(lines)
    for said in ("operation", "all-reduce", "batch", "2.0 KiB", "数", "train.py:45"):
        assert said in text, said
    if width >= 80:
        assert all(x in text for x in ("train.py:45 (step)", "x = f(x)", "training.py:123 (loss)"))
    places = {line.index("KiB") for line in lines if "KiB" in line}
    assert len(places) == 1


@pytest.mark.parametrize("width", [40, 80])
def test_charts_and_notes_are_as_wide_as_the_terminal(width):
    console = Console(file=io.StringIO(), width=width, color_system=None)
    address = "https://an-example.org/a-way/a-page"  # which is told in one line
    _, _, chart, times = EXAMPLE.parts
    console.print(Report("r", (chart, times, Table("t", (Column("x"),), (), f"As in {address}."))))
    lines = console.file.getvalue().splitlines()
    assert all(cell_len(line) <= width for line in lines)
    assert [line for line in lines if address in line]


@pytest.mark.parametrize("width", range(30, 100, 7))
def test_marks_of_a_legend_stand_beside_their_words(width):
    kinds = ["computing", "tracing", "loading from the cache", "waiting for results"]
    spans = tuple([(float(i), i + 0.5, "x", kind) for i, kind in enumerate(kinds)])
    console = Console(file=io.StringIO(), width=width, color_system=None)
    console.print(Report("r", (Timeline("when", (("host", spans),)),)))
    _, _, row, _, *legend = console.file.getvalue().splitlines()
    marks = dict.fromkeys(row.split(maxsplit=1)[1].replace(" ", ""))
    for mark, kind in zip(marks, kinds, strict=True):
        assert [line for line in legend if f"{mark} {kind.split()[0]}" in line]


def test_forms():
    assert EXAMPLE.as_json()["parts"][1]["rows"][0] == {"line": "a.py:1", "size": 2048}
    assert "2.0 KiB" in str(EXAMPLE) and "1.5 ms" in str(EXAMPLE)
    html = EXAMPLE.html()
    assert "a &lt;b&gt; &amp; c" in html and "a <b>" not in html
    assert not [word for word in ("http://", "https://", "src=", "@import") if word in html]
    assert EXAMPLE._repr_html_().startswith('<iframe srcdoc="&lt;!doctype html')
    with pytest.raises(KeyError, match="the parts are facts, rows"):
        EXAMPLE["nothing"]


SORTED = """<script>
document.querySelectorAll("th button")[1].click();
const names = () => [...document.querySelectorAll("td code")].map(c => c.textContent).join(" ");
const down = names(); document.querySelectorAll("th button")[1].click();
document.title = "down " + down + " up " + names();
</script></body>"""


@pytest.mark.skipif(shutil.which("chromium") is None, reason="needs a browser")
def test_tables_are_sorted_in_a_browser(tmp_path):
    file = tmp_path / "report.html"
    file.write_text(EXAMPLE.html().replace("</body>", SORTED))
    flags = ["--headless=new", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path}"]
    words = ["chromium", *flags, "--dump-dom", file.as_uri()]
    dom = subprocess.run(words, capture_output=True, text=True, timeout=120).stdout
    assert "<title>down c.py:3 a.py:1 b.py:2 up b.py:2 a.py:1 c.py:3</title>" in dom


def test_lines_are_those_of_the_code_not_of_what_a_cache_has(tmp_path):
    def compiled(lines):
        space = {}
        exec(compile("\n" * lines + "def f(x): return x @ x\n", "scale.py", "exec"), space)
        return ph.jit(space["f"]).lower(jnp.ones((8, 8))).compile()

    kept = {"compilation_cache_dir": str(tmp_path), "persistent_cache_min_compile_time_secs": 0}
    for name, value in kept.items():
        ph.config.update(name, value)
    try:
        for lines in (2, 7):
            ph.clear_caches()
            made = compiled(lines).runtime_executable()
            assert (made.read is not None) == (lines == 7)
            assert {k.line for k in made.kernels()} == {f"scale.py:{lines + 1} (f)"}
    finally:
        ph.config.update("compilation_cache_dir", None)
        ph.config.update("persistent_cache_min_compile_time_secs", 0.0)


def test_charts_by_doublings_are_straight_where_twice_as_many_take_half():
    points = tuple([(n, 8.0 / n) for n in (1.0, 2.0, 4.0, 8.0)])
    axes = Column("chips", "count"), Column("a step", "seconds")
    chart = Chart("by chips", *axes, (("", points),), doublings=True)
    assert chart.drawn == (((0, 4), (1, 3), (2, 2), (3, 1)),)
    report = Report("r", (chart,))
    assert report["by chips"].as_json()["series"] == {"": points}
    text, html = str(report), report.html()
    assert "8.0 s" in text and "1" in text and "a step" in html
    assert [value for value, _ in chart.ticks] == [1, 2, 4, 8]
    assert '<span style="bottom:25.0%">1.0 s</span>' in html
    assert Chart("by chips", *axes, (("", points),)).drawn == (points,)


def test_what_nothing_needs_is_not_counted():
    def loss(w, x):
        return jnp.sum(ph.checkpoint(lambda w, x: jnp.sin(jnp.sin(x @ w) @ w))(w, x))

    args = ph.ShapeDtypeStruct((16, 16), "float32"), ph.ShapeDtypeStruct((8, 16), "float32")
    facts = ph.explain(ph.jit(ph.grad(loss)))(*args)["summary"].as_json()["facts"]
    products = 5 * 2 * 8 * 16 * 16  # two to compute again, three backward; the value is not asked
    assert products < facts["FLOPs"] < 1.1 * products


def test_a_part_prints_as_it_stands_in_the_report():
    report = ph.explain(ph.jit(lambda x: x * 2))(X)
    assert str(report["summary"]).startswith("summary\n  program\n    devices")
    assert str(report["summary"]) in str(report)


def test_lines_open_in_an_editor_and_facts_are_in_groups():
    place = "/home/ada/a b.py:3 (f)"
    facts = Facts(
        "facts",
        (("time", None, "heading"), ("computing", 2.0, "seconds"), ("at", place, "line")),
    )  # fmt: skip
    shares = Table("shares", (Column("share", "share"),), ((0.25,), (1.0,)))
    report = Report("r", (facts, shares))
    assert report["facts"].as_json()["facts"] == {"computing": 2.0, "at": "a b.py:3 (f)"}
    html, text = report.html(), str(report)
    assert 'href="vscode://file/home/ada/a%20b.py:3"' in html and "<h3>time</h3>" in html
    assert 'style="--share:25.0%"' in html and "100 % ██████" in text
    assert "  time\n    computing" in text


def test_several_reports_have_contents_and_long_tables_begin_with_their_first_rows():
    rows = tuple([(i,) for i in range(30)])
    first = Report("first", (Table("t", (Column("n", "count"),), rows),), "It is slow. Wait.")
    both = page([first, Report("second", ())])
    assert '<a href="#r1">second</a>' in both and '<article id="r1">' in both
    assert "It is slow</li>" in both and both.count("show all 30 rows") == 1
    assert "<nav>" not in first.html()


def test_times_are_those_of_the_devices_unless_others_are_named():
    x = jnp.ones((64, 64))
    here = ph.explain(lambda x: x @ x)(x)["summary"].as_json()["facts"]
    there = ph.explain(lambda x: x @ x, on="v5e")(x)["summary"].as_json()["facts"]
    assert there["times are for"] == "TPU v5e" and here["times are for"].startswith("this CPU")
    assert 0 < there["computing"] < here["computing"]


def test_devices_are_measured():
    chips = measured(tuple(ph.local_devices()))
    assert chips.chips == ph.local_device_count()
    latency, transfer = chips.exchange("all-reduce", 1 << 20, chips.chips)
    several = chips.chips > 1
    assert (latency > 0) == several and (transfer > 0) == several
    assert chips.roofline(1e9, 0, np.dtype("f4")) > chips.roofline(1e6, 0, np.dtype("f4")) > 0
