"""The site: what Sphinx reads when `./dev docs` builds it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parent
sys.path.insert(0, str(DOCS.parent))

from docs.generator import pages, public  # noqa: E402  (found by the line above)
from phalanx.version import __version__  # noqa: E402

project = "Phalanx"
release = __version__
extensions = [
    "myst_parser",
    "docs.generator.links",
    "docs.generator.sidebar",
    "docs.generator.wrapping",
]
exclude_patterns = ["generator", "pictures"]
root_doc = "index"

html_theme = "furo"
html_title = f"Phalanx {release}"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_js_files = ["copy.js", "titles.js"]
html_copy_source = False
html_use_index = False  # one page of all names: api.md and the search have them
html_show_sourcelink = False
html_show_copyright = False
pygments_style = "a11y-high-contrast-light"
pygments_dark_style = "a11y-high-contrast-dark"
python_maximum_signature_line_length = 78
toc_object_entries_show_parents = "hide"

myst_enable_extensions = ["deflist"]
myst_heading_anchors = 4
suppress_warnings = ["misc.highlighting_failure"]

NAVIGATION = {  # the titles of the parts, and their pages
    "Start": [
        "installation",
        "quick-start",
        "coming-from-jax",
        "coming-from-pytorch",
        "faq",
    ],
    "Many devices": [
        "pmap",
        "lanes",
        "lanes-at-once",
        "collectives",
        "gradients",
        "axes",
        "three-ways",
        "accelerators",
        "ahead-of-time",
        "processes",
        "clusters",
        "lost-processes",
    ],
    "Transformations": [
        "composing",
        "control",
        "rules",
        "memory",
        "refs",
        "effects",
        "linalg",
        "cache",
        "export",
        "ffi",
    ],
    "How to": [
        "optimizers",
        "schedules",
        "dropout",
        "data",
        "evaluation",
        "mixed-precision",
        "saving",
        "checkpoints",
        "profiling",
        "explain",
        "plan",
        "debugging-nan",
        "checking",
        "types",
    ],
    "Programs on meshes": [
        "explicit-sharding",
        "transformer",
        "ring",
        "fsdp",
        "pipeline",
        "experts",
    ],
    "Libraries on JAX": [
        "bring-your-program",
        "libraries/optax",
        "libraries/flax-linen",
        "libraries/flax-nnx",
        "libraries/equinox",
        "libraries/haiku",
        "libraries/numpyro",
        "libraries/blackjax",
        "libraries/diffrax",
    ],
    "Reference": [
        "api",
        *(f"{pages.FOLDER}/{name}" for name in public.PAGES),
        "names",
        "not-offered",
        "errors",
        "differences",
        "limits",
        "glossary",
    ],
    "About Phalanx": [
        "contributing",
        "architecture",
        "primitives",
        "benchmarks",
        "changelog",
        "citation",
    ],
}


def navigation(_: Any, page: str, source: list[str]) -> None:
    """Put the table above into the first page, where Sphinx looks for it."""
    if page == root_doc:
        for title, named in NAVIGATION.items():
            options = ":hidden:\n:caption: " + title
            source[0] += "\n\n```{toctree}\n" + options + "\n\n" + "\n".join(named) + "\n```\n"


def setup(app: Any) -> None:
    """Make the reference, and have the navigation read."""
    pages.write(DOCS)
    app.connect("source-read", navigation)
