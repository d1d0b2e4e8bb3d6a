"""Text that others have chosen, for where it is shown."""

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


def _shown(letter: str) -> str:
    obeyed = letter not in "\n\t" and unicodedata.category(letter).startswith(_OBEYED)
    return letter.encode("unicode_escape").decode() if obeyed else letter
