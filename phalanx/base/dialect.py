"""How Phalanx says things: in its own words, or in those that programs for JAX look for.

Packages ask ``spoken`` wherever the two differ; ``compat`` sets it, once, for a whole process.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import Struct


def _itself(x: Any, *_: Any) -> Any:
    return x


class Dialect(Struct, frozen=True):
    """What is said where programs can see it; each default is what Phalanx says.

    Attributes:
        type_text: what an ``ArrayType`` prints; None for its own text.
        spec_text: what a ``PartitionSpec`` prints; None for its own text.
        message: the message of an error that one of our functions raised, of it and of
            what it says.
        failure: what is raised in place of the exception of a function that a program calls.
        program: what ``Traced.jaxpr`` is, of the program and of what it captured.
    """

    type_text: Callable[[Any], str] | None = None
    spec_text: Callable[[Any], str] | None = None
    message: Callable[[BaseException, str], str] | None = None
    failure: Callable[[BaseException], BaseException] = _itself
    program: Callable[[Any, Any], Any] = _itself


spoken = Dialect()


def speak(dialect: Dialect) -> None:
    """From now on say everything in ``dialect``."""
    global spoken
    spoken = dialect
