"""The table of contents beside each page: the same in a folder, so made once, and marked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sphinx.application import Sphinx

_HERE = '<li class="toctree-l1 current"><a class="current reference internal" href="#">'
_PLAIN = '<li class="toctree-l1"><a class="reference internal" href="{}">'
_TREE = "furo_navigation_tree"  # what the theme makes of the table

_made: dict[tuple[Any, ...], str] = {}


def keep(_: Sphinx, page: str, __: str, context: dict[str, Any], ___: Any) -> None:
    """Give a page the table that was made for the first one in its folder, without its mark."""
    if "toctree" in context:
        context["toctree"] = _once(page, context["toctree"])


def _once(page: str, make: Callable[..., str]) -> Callable[..., str]:
    folder, _, name = page.rpartition("/")

    def toctree(**options: Any) -> str:
        key = folder, *sorted(options.items())
        if key not in _made:
            plain = make(**options).replace(_HERE, _PLAIN.format(f"{name}.html"))
            _made[key] = plain.replace('<ul class="current">', "<ul>")
        return _made[key]

    return toctree


def mark(_: Sphinx, page: str, __: str, context: dict[str, Any], ___: Any) -> None:
    """Mark the page in its table, as the theme would."""
    here = _HERE.replace(" current", " current current-page", 1)
    plain = _PLAIN.format(f"{page.rpartition('/')[2]}.html")
    context[_TREE] = context[_TREE].replace(plain, here, 1)


def setup(app: Sphinx) -> dict[str, Any]:
    """What Sphinx calls; before the theme looks at the page, and after."""
    app.connect("html-page-context", keep, priority=100)
    app.connect("html-page-context", mark, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
