"""Names that users give are shown as they are, and mean nothing to what shows them."""

import contextlib
import io
import re
from html.parser import HTMLParser
from xml.etree import ElementTree

import numpy as np
import pytest

import phalanx
import phalanx.numpy as jnp
from phalanx.base.plain import plain
from phalanx.spmd.picture import Cell, Picture

NAMES = [
    "{{body}}", "{{title}}", "<script>x</script>", '"><img src=x>', "&lt;b&gt;", "[red]x[/red]",
    "[/]", ":smile:", "\x1b[2J\x1b]0;x\x07", "a\u202eb", "a\x00b", "a\rb", "]]>", "{0}", "%s",
]  # fmt: skip


class _Page(HTMLParser):
    """What a browser makes of a page: its title, and the kinds of its elements."""

    def __init__(self, page):
        super().__init__()
        self.kinds, self.title, self._inside = [], "", ""
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.kinds.append(tag)
        self._inside = tag

    def handle_endtag(self, tag):
        self._inside = ""

    def handle_data(self, data):
        self.title += data if self._inside == "title" else ""


def called(name):
    def f(x):
        return (x @ x).sum()

    f.__name__ = f.__qualname__ = name
    return f


def printed(report):
    return re.sub(r"\s+", "", str(report))


@pytest.fixture(scope="module")
def ordinary():
    report = phalanx.explain(called("f"))(jnp.ones((4, 4)))
    return _Page(report.html()).kinds


@pytest.mark.parametrize("name", NAMES)
def test_of_a_function_in_a_report(name, ordinary):
    report = phalanx.explain(called(name))(jnp.ones((4, 4)))
    page = _Page(report.html())
    assert page.kinds == ordinary
    assert page.title.replace("\0", "").find(name.replace("\0", "").strip()) >= 0
    shown = str(report)
    assert re.sub(r"\s+", "", plain(name)) in printed(report)
    assert not [c for c in shown if c != "\n" and not c.isprintable()]


@pytest.mark.parametrize("name", NAMES)
def test_of_an_axis_in_a_picture(name):
    mesh = phalanx.sharding.Mesh(np.array(phalanx.devices()[:1]), (name,))
    x = phalanx.device_put(jnp.ones(4), phalanx.NamedSharding(mesh, phalanx.P(name)))
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        phalanx.debug.visualize_array_sharding(x)
    assert not [c for c in out.getvalue() if c != "\n" and not c.isprintable()]
    f = phalanx.pmap(called(name), axis_name=name)
    picture = f.placement(jnp.ones((1, 4, 4)))
    assert not [c for c in str(picture) if c != "\n" and not c.isprintable()]
    svg = Picture(name, ((Cell((name,)),),), note=name).svg()
    assert ElementTree.fromstring(svg) is not None


@pytest.mark.parametrize("name", NAMES)
def test_of_a_function_and_an_axis_in_a_program(name):
    """It is lowered, compiled, exported and read again, whatever it is called."""
    f = phalanx.vmap(lambda x: phalanx.lax.psum(x, name), axis_name=name)
    f = phalanx.jit(phalanx.named_scope(name)(f))
    x = jnp.arange(3.0)
    lowered = f.lower(x)
    assert "stablehlo" in lowered.as_text()
    assert lowered.compile()(x).tolist() == [3, 3, 3]
    g = phalanx.jit(called(name))
    assert phalanx.export.deserialize(phalanx.export.export(g)(jnp.eye(3)).serialize()).fun_name
