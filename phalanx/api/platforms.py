"""The platforms that programs are written for, whether or not they are here."""

from __future__ import annotations

from collections.abc import Sequence

PLATFORMS = ("cpu", "cuda", "rocm", "tpu", "gpu")


def checked_platforms(given: Sequence[str], who: str) -> tuple[str, ...]:
    """``given``, each once.

    Raises:
        ValueError: one of them is not known, or there is none.

    >>> checked_platforms(["tpu", "cuda", "tpu"], "lower")
    ('tpu', 'cuda')
    """
    names = (given,) if isinstance(given, str) else tuple(dict.fromkeys(given))
    if not names or any(name not in PLATFORMS for name in names):
        raise ValueError(f"{who}: platforms must be some of {', '.join(PLATFORMS)}, got {given!r}")
    return names
