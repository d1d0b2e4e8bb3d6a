"""Reports: facts, tables, charts and timelines, in a terminal, in a browser and as JSON."""

import io
import shutil
import subprocess

import pytest
from rich.cells import cell_len
from rich.console import Console

from phalanx.insight.reports.page import page
from phalanx.insight.reports.report import Chart, Column, Facts, Report, Table, Timeline

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
