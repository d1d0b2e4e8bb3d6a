"""Text and objects that others have chosen, for where they are shown."""

from __future__ import annotations

import unicodedata

_OBEYED = ("C", "Zl", "Zp")  # characters that say how others are shown, and ends of lines


def plain(text: str) -> str:
    r"""The same text, in which nothing tells a terminal what to do: control characters, and those
    that turn the order of letters, are written as in Python.

    >>> print(plain("step\x1b[2J"), plain("a\u202eb"), plain("für x"))
    step\x1b[2J a\u202eb für x
    """
    return text if text.isprintable() else "".join(map(_shown, text))


def brief(x: object) -> str:
    """``x`` in an error: what ``repr`` says, in one line that is not long.

    >>> print(brief({"text": "one\\n" * 40}))
    {'text': 'one\\none\\none\\none\\none\\none\\none\\none\\none\\non...
    """
    text = " ".join(repr(x).split())
    return text if len(text) <= 60 else text[:57] + "..."


def _shown(letter: str) -> str:
    obeyed = letter not in "\n\t" and unicodedata.category(letter).startswith(_OBEYED)
    return letter.encode("unicode_escape").decode() if obeyed else letter
