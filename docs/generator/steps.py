"""What Sphinx does for each page, and this site needs once or not at all.

The search looks for the stems of words again and again: they are remembered. Options of the parser
are the same for all pages. Many steps look for what Markdown in one language does not have. Pages
are trees of many nodes that know their parents, so garbage is looked for less often.
"""

from __future__ import annotations

import functools
import gc
from typing import Any

from docutils import frontend
from sphinx.application import Sphinx
from sphinx.search.en import SearchEnglish

# steps that find nothing in Markdown in one language, or that only books need
_NEEDLESS = {
    "AddTranslationClasses", "AliasTransform", "ApplySourceWorkaround", "AutoIndexUpgrader",
    "AutoNumbering", "CitationDefinitionTransform", "CitationReferenceTransform",
    "DefaultSubstitutions", "DoctestTransform", "ExtraTranslatableNodes",
    "FootnoteDocnameUpdater", "GlossarySorter", "HandleCodeBlocks", "Locale",
    "RemoveTranslatableInline",
    "TranslationProgressTotaliser", "UnreferencedFootnotesDetector",
}  # fmt: skip


def once(make: Any) -> Any:
    """``make`` of a parser of options, called once for the classes of its components: the settings
    of this site, by which else parsers differ, are the same for all pages."""
    made: dict[tuple[Any, ...], Any] = {}

    def parser(components: Any = (), **options: Any) -> Any:
        kinds = tuple(c if isinstance(c, type) else type(c) for c in components)
        if kinds not in made:
            made[kinds] = make(components, **options)
        return made[kinds]

    return parser


def setup(app: Sphinx) -> dict[str, Any]:
    """What Sphinx calls."""
    for steps in (app.registry.transforms, app.registry.post_transforms):
        steps[:] = [step for step in steps if step.__name__ not in _NEEDLESS]
    gc.set_threshold(200_000, 20, 100)
    SearchEnglish.stem = functools.cache(SearchEnglish.stem)  # type: ignore[method-assign]
    frontend.OptionParser = once(frontend.OptionParser)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
