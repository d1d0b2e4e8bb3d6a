"""Numbers among the arguments of the command line."""

from __future__ import annotations

import argparse


def positive(text: str) -> int:
    """An argument that is a number from 1 up."""
    return _from(1, text)


def natural(text: str) -> int:
    """An argument that is a number from 0 up."""
    return _from(0, text)


def _from(least: int, text: str) -> int:
    try:
        number = int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be a number, got {text!r}") from None
    if number < least:
        raise argparse.ArgumentTypeError(f"must be at least {least}, got {number}")
    return number
