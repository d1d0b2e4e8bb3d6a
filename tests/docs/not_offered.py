"""The page of what programs written for JAX cannot use: `python -m tests.docs.not_offered`."""

import textwrap
from pathlib import Path

from phalanx.compat.refused import MODULES_REFUSED, NAMES_REFUSED, REFUSED

PAGE = Path(__file__).parents[2] / "docs" / "not-offered.md"

HEAD = """\
# What is not offered

In programs that run [unchanged](bring-your-program.md), all public modules of JAX can be imported.
What this page lists cannot be used: calling it raises a `NotImplementedError` that says what to
use. (The import succeeds, because libraries import names that they may never use.) All other names
of these modules exist.

## Modules

With all modules below them:

"""


def page() -> str:
    """The page, from the tables that the modules are served by."""
    rows = [f"- `{name}`: {why}" for name, why in MODULES_REFUSED.items()]
    parts = [HEAD + "\n".join(rows), "\n## Names\n"]
    for module, (why, names) in NAMES_REFUSED.items():
        listed = ", ".join(f"`{name}`" for name in names)
        parts.append(_wrapped(f"**{module}**: {why}. {listed}") + "\n")
    gone = "; ".join(f"`jax.{name}`: {why}" for name, why in REFUSED.items())
    intro = "Names that JAX has removed or deprecated, and what to use instead: "
    parts.append(_wrapped(intro + gone) + "\n")
    return "\n".join(parts)


def _wrapped(text: str) -> str:
    return textwrap.fill(text, 100, break_long_words=False, break_on_hyphens=False)


if __name__ == "__main__":
    PAGE.write_text(page())
