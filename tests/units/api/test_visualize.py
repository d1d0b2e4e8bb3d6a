"""Pictures of which device holds what, and of where devices stand."""

import sys
from types import SimpleNamespace
from xml.etree import ElementTree

import numpy as np
import pytest

import phalanx
from phalanx import debug
from phalanx.api.drawing import COLORS
from phalanx.api.visualize import picture_of
from phalanx.sharding import Mesh, NamedSharding, PartitionSpec, Sharding

LANES = """\
shape (13, 2) on 4 devices
┌────────────┐
│   CPU 0    │
│  rows 0:4  │
├────────────┤
│   CPU 1    │
│  rows 4:8  │
├────────────┤
│   CPU 2    │
│ rows 8:12  │
├────────────┤
│   CPU 3    │
│ rows 12:13 │
│ 3 padding  │
└────────────┘
"""

GRID = """\
shape (9, 5, 4) on 8 devices
┌─────────────┬─────────────┐
│   CPU 0,1   │   CPU 2,3   │
│  rows 0:5   │  rows 0:5   │
│ columns 0:3 │ columns 3:5 │
│             │  1 padding  │
├─────────────┼─────────────┤
│   CPU 4,5   │   CPU 6,7   │
│  rows 5:9   │  rows 5:9   │
│  1 padding  │  1 padding  │
│ columns 0:3 │ columns 3:5 │
│             │  1 padding  │
└─────────────┴─────────────┘
"""

DEEP = """\
shape (2, 4, 6) on 8 devices: columns over 'b', dimension 2 over 'c', copies over 'a'
┌─────────────────┬─────────────────┐
│     CPU 0,4     │     CPU 1,5     │
│    rows 0:2     │    rows 0:2     │
│   columns 0:2   │   columns 0:2   │
│ dimension 2 0:3 │ dimension 2 3:6 │
├─────────────────┼─────────────────┤
│     CPU 2,6     │     CPU 3,7     │
│    rows 0:2     │    rows 0:2     │
│   columns 2:4   │   columns 2:4   │
│ dimension 2 0:3 │ dimension 2 3:6 │
└─────────────────┴─────────────────┘
"""

CUBE = """\
Mesh('a': 2, 'b': 2, 'c': 2)
┌─────┬───────────┬───────────┐
│     │    b 0    │    b 1    │
├─────┼───────────┼───────────┤
│ a 0 │  CPU 0,1  │  CPU 2,3  │
├─────┼───────────┼───────────┤
│ a 1 │  CPU 4,5  │  CPU 6,7  │
└─────┴───────────┴───────────┘
in each place: 2 along 'c'
"""

several = pytest.mark.skipif(phalanx.device_count() < 8, reason="needs eight devices")


def drawn(capsys, *args):
    debug.visualize_sharding(*args, use_color=False)
    return capsys.readouterr().out


def cube():
    return Mesh(np.array(phalanx.devices()[:8]).reshape(2, 2, 2), ("a", "b", "c"))


def on_mesh(*spec):
    return NamedSharding(cube(), PartitionSpec(*spec))


@several
def test_lanes_and_padding_of_a_mapped_result(capsys):
    y = phalanx.pmap(lambda x: x, devices=phalanx.devices()[:4])(np.zeros((13, 2)))
    debug.visualize_array_sharding(y, use_color=False)
    assert capsys.readouterr().out == LANES


@several
def test_a_grid_with_copies(capsys):
    assert drawn(capsys, (9, 5, 4), on_mesh("a", "b").plain) == GRID


@several
def test_the_first_two_dimensions_that_are_cut_are_drawn(capsys):
    assert drawn(capsys, (2, 4, 6), on_mesh(None, "b", "c")) == DEEP
    text = drawn(capsys, (2, 4, 6), on_mesh("a", "b", "c"))
    assert text.endswith("not drawn: dimension 2 in 2 parts\n") and "CPU 0,1" in text


@several
def test_a_device_may_have_padding_only():
    *_, (last,) = picture_of((9,), Sharding(phalanx.devices()[:8], (8,))).rows
    assert last.text == ("CPU 7", "no rows", "2 padding")


@several
def test_a_mesh_shows_where_its_devices_stand(capsys):
    debug.visualize_mesh(cube(), use_color=False)
    assert capsys.readouterr().out == CUBE


@several
def test_what_is_wide_has_narrow_columns_or_is_not_drawn(capsys):
    row = Sharding(phalanx.devices()[:8], (1, 8))
    for line in drawn(capsys, (8, 16), row).splitlines()[1:]:
        assert len(line) == 80 and line[-1] in "│┐┘"
    debug.visualize_sharding((8, 16), row, max_width=40)
    assert "too wide to be drawn here" in capsys.readouterr().out


@several
def test_pictures_in_files_and_notebooks_say_the_same(capsys, tmp_path):
    file = tmp_path / "picture.svg"
    debug.visualize_sharding((8, 6), on_mesh("a", "b"), save=file)
    assert not capsys.readouterr().out
    written = [e.text for e in ElementTree.parse(file).iter() if e.tag.endswith("text")]
    picture = picture_of((8, 6), on_mesh("a", "b"))
    cells = [line for row in picture.rows for cell in row for line in cell.text]
    assert picture.title.endswith("on 8 devices: rows over 'a', columns over 'b', copies over 'c'")
    assert written == [picture.title, *cells] and cells[-1] == "columns 3:6"
    shown = "".join(ElementTree.fromstring(cube()._repr_html_()).itertext())
    assert all(word in shown for word in ("a 0", "b 1", "CPU 6,7", "along 'c'"))


def test_a_scalar_is_one_tile(capsys):
    text = drawn(capsys, (), Sharding(phalanx.devices()[:1]))
    assert "CPU 0" in text and "rows" not in text


def test_a_sharding_of_too_many_dimensions():
    with pytest.raises(
        ValueError, match=r"splits 2 dimensions, but an array of shape \(4,\) has 1"
    ):
        debug.visualize_sharding((4,), Sharding(["a", "b"], (1, 2)))


def contrast(color: str, other: float) -> float:
    """The contrast of a colour with black (0) or white (1), as WCAG 2 defines it."""
    parts = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    here = sum(w * c for w, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))
    return (max(here, other) + 0.05) / (min(here, other) + 0.05)


def test_colours_can_be_read_on_black_and_on_white():
    for color in COLORS:
        assert min(contrast(color, 0.0), contrast(color, 1.0)) >= 4


@several
def test_a_notebook_shows_a_picture(capsys, monkeypatch):
    shown = []
    shell = SimpleNamespace(kernel=object())
    ipython = SimpleNamespace(get_ipython=lambda: shell)
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", SimpleNamespace(display=shown.append))
    debug.visualize_sharding((8, 6), on_mesh("a", "b"))
    (picture,) = shown
    assert capsys.readouterr().out == ""
    words = "".join(ElementTree.fromstring(picture._repr_html_()).itertext())
    assert "rows 4:8" in words and "columns over 'b'" in words
    del shell.kernel  # a terminal of IPython shows text
    debug.visualize_sharding((8, 6), on_mesh("a", "b"))
    assert len(shown) == 1 and "rows 4:8" in capsys.readouterr().out


@several
def test_a_sharding_shows_its_parts_in_a_notebook():
    root = ElementTree.fromstring(on_mesh("a", None, "c")._repr_html_())
    words = [e.text for e in root.iter() if e.text]
    assert words[0].startswith("NamedSharding") and words[1] == "CPU 0,2"
    assert words[-2:] == ["rows: part 2 of 2", "dimension 2: part 2 of 2"]
    whole = ElementTree.fromstring(on_mesh()._repr_html_())
    assert [e.text for e in whole.iter() if e.text][1:] == ["CPU 0-7", "all of it"]
    assert not list(root.iter("{http://www.w3.org/2000/svg}style"))  # it would hold for the page
