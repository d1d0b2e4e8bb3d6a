"""Findings: what is wrong with a program, where, and what to do; and the codes that they have."""

from __future__ import annotations

import linecache
import re
from collections.abc import Iterator

from msgspec import Struct

from phalanx.base.source import CallOfLibrary, Location

__all__ = ["CODES", "Code", "Finding", "is_silenced"]


class Finding(Struct, frozen=True):
    """Something about a program that is probably a mistake.

    Args:
        code: of what kind it is, such as ``"P103"``.
        message: what is wrong, and why.
        file: the source file of the user's in which it is.
        line: the line, counted from one.
        remedy: what to do.

    >>> print(Finding("P109", "the mask is captured", "/home/ada/train.py", 12, "pass it"))
    /home/ada/train.py:12: P109 the mask is captured
        pass it
    """

    code: str
    message: str
    file: str
    line: int
    remedy: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.code} {self.message}\n    {self.remedy}"


class Code(Struct, frozen=True):
    """A kind of mistake.

    Args:
        name: what findings of the kind are called.
        title: the mistake.
        example: a line in which it is made.
        remedy: what to do, where a finding says nothing else.

    >>> from phalanx.insight import CODES
    >>> CODES["P106"].title
    'a random key that is used twice'
    """

    name: str
    title: str
    example: str
    remedy: str

    def __post_init__(self) -> None:
        CODES[self.name] = self

    def at(self, place: Location, message: str, remedy: str = "") -> Finding:
        """A finding of this kind at ``place``.

        Args:
            place: where it was found.
            message: what was found.
            remedy: what to do.
        """
        if isinstance(place, CallOfLibrary):
            message = f"in {place.inside}, which this line calls: {message}"
        return Finding(self.name, message, place.file, place.line, remedy or self.remedy)


CODES: dict[str, Code] = {}  # by name

_SILENCED = re.compile(r"#\s*phalanx:\s*ok\s+(P\d+(?:[\s,]+P\d+)*)")


def is_silenced(finding: Finding) -> bool:
    """Whether the user's line says of findings of this kind that they are none.

    >>> is_silenced(Finding("P109", "a mask is captured", "/nowhere.py", 1, "pass it"))
    False
    """
    linecache.checkcache(finding.file)  # it may have been edited since it was read
    return finding.code in _codes_in(linecache.getline(finding.file, finding.line))


def _codes_in(line: str) -> Iterator[str]:
    """The codes that a comment in a line silences.

    >>> [*_codes_in("x = psum(y, 'i')  # phalanx: ok P103, P105: both are wanted")]
    ['P103', 'P105']
    """
    for comment in _SILENCED.finditer(line):
        yield from re.findall(r"P\d+", comment[1])
