"""The page of what programs written for JAX cannot use: `python -m tests.docs.not_offered`."""

import textwrap
from pathlib import Path

from phalanx.compat.refused import MODULES_REFUSED, NAMES_REFUSED

PAGE = Path(__file__).parents[2] / "docs" / "not-offered.md"

HEAD = """\
# What is not offered

In programs that run [unchanged](bring-your-program.md), all public modules of JAX can be imported.
What this page lists cannot be used: calling it raises a `NotImplementedError` that says what to
use. (The import succeeds, because libraries import names that they may never use.) Where "others"
are listed, further names of that module are missing; asking for one raises an error with the same
advice, and the name that is nearest to it. All other names exist.

## Modules

With all modules below them:

"""


def page() -> str:
    """The page, from the tables that the modules are served by."""
    rows = [f"- `{name}`: {why}" for name, why in MODULES_REFUSED.items()]
    parts = [HEAD + "\n".join(rows), "\n## Names\n"]
    for module, (why, names) in NAMES_REFUSED.items():
        listed = ", ".join("others" if name == "*" else f"`{name}`" for name in names.split())
        parts.append(_wrapped(f"**{module}**: {why}. {listed}") + "\n")
    return "\n".join(parts)


def _wrapped(text: str) -> str:
    return textwrap.fill(text, 100, break_long_words=False, break_on_hyphens=False)


if __name__ == "__main__":
    PAGE.write_text(page())
