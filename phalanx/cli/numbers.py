"""Numbers among the arguments of the command line."""

from __future__ import annotations

import argparse


def positive(text: str) -> int:
    """An argument that is a number from 1 up."""
    return _from(1, text)


def natural(text: str) -> int:
    """An argument that is a number from 0 up."""
    return _from(0, text)


def at_least(text: str) -> tuple[int, int | None]:
    """An argument ``least:most``, where the second may be left out.

    >>> at_least("2:"), at_least("2:4")
    ((2, None), (2, 4))
    """
    first, colon, last = text.partition(":")
    if not colon:
        raise argparse.ArgumentTypeError(f"must be least: or least:most, got {text!r}")
    least, most = positive(first), positive(last) if last else None
    if most is not None and most < least:
        raise argparse.ArgumentTypeError(
            f"at least {least} are more than at most {most}, got {text!r}"
        )
    return least, most


def _from(least: int, text: str) -> int:
    try:
        number = int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be a number, got {text!r}") from None
    if number < least:
        raise argparse.ArgumentTypeError(f"must be at least {least}, got {number}")
    return number
