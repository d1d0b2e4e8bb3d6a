"""The site: what Sphinx reads when `./dev docs` builds it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parent
sys.path.insert(0, str(DOCS.parent))

from docs.generator import keywords, pages, public, tables  # noqa: E402  (found by the line above)
from phalanx.version import __version__  # noqa: E402

project = "Phalanx"
release = __version__
extensions = [
    "myst_parser",
    "docs.generator.descriptions",
    "docs.generator.links",
    "docs.generator.sidebar",
    "docs.generator.steps",
    "docs.generator.wrapping",
]
exclude_patterns = ["generator", "pictures"]
root_doc = "index"

html_theme = "furo"
html_title = f"Phalanx {release}"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_favicon = "static/favicon.svg"
html_search_scorer = str(DOCS / "static" / "score.js")
html_js_files = ["copy.js", "titles.js"]
html_copy_source = False
html_use_index = False  # one page of all names: api.md and the search have them
html_show_sourcelink = False
html_show_copyright = False
pygments_style = "a11y-high-contrast-light"
pygments_dark_style = "a11y-high-contrast-dark"
python_maximum_signature_line_length = 78
toc_object_entries_show_parents = "hide"

smartquotes = False  # what is copied out of a page is as it was typed
myst_enable_extensions = ["deflist"]
myst_heading_anchors = 4
suppress_warnings = ["misc.highlighting_failure"]

NAVIGATION = {  # the titles of the parts, and their pages, with short titles where theirs are long
    "Start": [
        "installation",
        "quick-start",
        "Tutorial: train a classifier <training>",
        "examples",
        "coming-from-jax",
        "Coming from PyTorch, MPI <coming-from-pytorch>",
        "faq",
    ],
    "Many devices": [
        "pmap <pmap>",
        "Axes of any size <lanes>",
        "Gradient accumulation <lanes-at-once>",
        "The same bits on any devices <reproducible>",
        "Collectives <collectives>",
        "Derivatives with pmap <gradients>",
        "Meshes and sharding <axes>",
        "pmap, shard_map or jit? <three-ways>",
        "accelerators",
        "Compiling without a GPU <ahead-of-time>",
        "Processes <processes>",
        "One script, many processes <same-script>",
        "Clusters <clusters>",
        "Lost processes <lost-processes>",
        "Elastic runs <elastic>",
        "security",
    ],
    "Transformations": [
        "Composing transformations <composing>",
        "Control flow <control>",
        "Custom derivatives <rules>",
        "Rematerialization <memory>",
        "Mutable references <refs>",
        "Callbacks and printing <effects>",
        "Linear algebra <linalg>",
        "Compilation and cache <cache>",
        "Exporting functions <export>",
        "Foreign functions <ffi>",
    ],
    "How to": [
        "Optimizers <optimizers>",
        "Learning-rate schedules <schedules>",
        "dropout",
        "Loading data <data>",
        "Evaluation <evaluation>",
        "mixed-precision",
        "saving",
        "checkpoints",
        "profiling",
        "Explaining a program <explain>",
        "Planning a training run <plan>",
        "debugging-nan",
        "Finding mistakes <checking>",
        "Why do my numbers differ? <verify>",
        "types",
    ],
    "Programs on meshes": [
        "explicit-sharding",
        "transformer",
        "ring",
        "fsdp",
        "pipeline",
        "Mixture of experts <experts>",
    ],
    "Libraries on JAX": [
        "Running JAX programs <bring-your-program>",
        "A training program <libraries/training>",
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
        "errors-side-by-side",
        "differences",
        "limits",
        "glossary",
    ],
    "About Phalanx": [
        "contributing",
        "tour",
        "architecture",
        "Custom primitives <primitives>",
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
    app.connect("source-read", keywords.add)
    app.connect("source-read", tables.add)
