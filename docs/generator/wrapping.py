"""Long lines of output, such as error messages, wrap where the window is narrow."""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform

ALIGNED = re.compile("[\u2500-\u259f]|\\S {3,}\\S")  # drawings, and columns, are wrong when wrapped


class OutputWraps(SphinxPostTransform):
    """Mark the blocks of text without drawings and columns, for the style to wrap."""

    default_priority = 700

    def run(self, **kwargs: Any) -> None:
        """Do so in the document."""
        for block in self.document.findall(nodes.literal_block):
            if block.get("language") == "text" and not ALIGNED.search(block.astext()):
                block["classes"].append("wraps")


def setup(app: Sphinx) -> dict[str, Any]:
    """What Sphinx calls."""
    app.add_post_transform(OutputWraps)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
