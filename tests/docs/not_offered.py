"""The page of what programs written for JAX cannot use: `python -m tests.docs.not_offered`."""

import textwrap
from pathlib import Path

from phalanx.compat.refused import MODULES_REFUSED, NAMES_REFUSED, REFUSED

PAGE = Path(__file__).parents[2] / "docs" / "not-offered.md"

HEAD = """\
# What is not offered

Programs that run [as they are](bring-your-program.md) find all of JAX's public modules. What is
listed here can be imported, since libraries import what they may never use; whoever calls it gets a
`NotImplementedError` that says what to use. All other names that published packages use work; what
few know may be missing, such as the sparse formats beside BCOO and BCSR: an `AttributeError`.

## Modules

| module | instead |
|---|---|
"""


def page() -> str:
    """The page, from the tables that the modules are served by."""
    rows = [f"| `{name}` | {why} |" for name, why in MODULES_REFUSED.items()]
    parts = [HEAD + "\n".join(rows), "\n## Names\n"]
    for module, (why, names) in NAMES_REFUSED.items():
        listed = ", ".join(f"`{name}`" for name in names)
        parts.append(_wrapped(f"**{module}**: {why}. {listed}") + "\n")
    gone = "; ".join(f"`jax.{name}`: {why}" for name, why in REFUSED.items())
    intro = "Names that JAX itself has taken away, or keeps for old programs only, and instead: "
    parts.append(_wrapped(intro + gone) + "\n")
    return "\n".join(parts)


def _wrapped(text: str) -> str:
    return textwrap.fill(text, 100, break_long_words=False, break_on_hyphens=False)


if __name__ == "__main__":
    PAGE.write_text(page())
