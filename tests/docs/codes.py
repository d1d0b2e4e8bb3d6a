"""The table of what `check` looks for: `python -m tests.docs.codes` writes it into its page."""

from pathlib import Path

from phalanx.insight import CODES

PAGE = Path(__file__).parents[2] / "docs" / "checking.md"
START, END = "<!-- codes -->\n", "<!-- end of codes -->\n"


def page() -> str:
    """The page with the table as the declarations of the codes have it."""
    before, rest = PAGE.read_text(encoding="utf-8").split(START)
    _, after = rest.split(END)
    rows = [
        f"| {code.name} | {code.title} | `{code.example}` | {code.remedy} |"
        for _, code in sorted(CODES.items())
    ]
    table = ["| code | the mistake | for example | what to do |", "|---|---|---|---|", *rows]
    return before + START + "\n".join(table) + "\n" + END + after


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
