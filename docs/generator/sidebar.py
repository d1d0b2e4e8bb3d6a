"""The table of contents beside the pages of functions: the same beside each, so made once.

The theme then marks what can be unfolded in it, and the search looks for the stems of words: both
take a good part of the time of a build, and are remembered as well.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import furo
from sphinx.application import Sphinx
from sphinx.search.en import SearchEnglish

from docs.generator.pages import FOLDER

_made: dict[tuple[tuple[str, Any], ...], str] = {}


def keep(app: Sphinx, page: str, _: str, context: dict[str, Any], __: Any) -> None:
    """Give a page that stands in no table of contents the one that was made for the first."""
    if page.startswith(FOLDER) and "orphan" in app.env.metadata.get(page, {}):
        context["toctree"] = _once(context["toctree"])


def _once(make: Callable[..., str]) -> Callable[..., str]:
    def toctree(**options: Any) -> str:
        key = tuple(sorted(options.items()))
        if key not in _made:
            _made[key] = make(**options)
        return _made[key]

    return toctree


def setup(app: Sphinx) -> dict[str, Any]:
    """What Sphinx calls; before the theme looks at the page."""
    app.connect("html-page-context", keep, priority=100)
    furo.get_navigation_tree = functools.cache(furo.get_navigation_tree)
    SearchEnglish.stem = functools.cache(SearchEnglish.stem)  # type: ignore[method-assign]
    return {"parallel_read_safe": True, "parallel_write_safe": True}
