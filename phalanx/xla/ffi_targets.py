"""Functions of other languages: registering them with XLA, and calls of them in modules."""

from __future__ import annotations

import os
from typing import Any

import jaxlib
from jaxlib import xla_client

from phalanx.xla.jaxlib_versions import xc

registered: set[str] = set()  # by the user, or a library of the user's


def register(
    name: str, function: Any, platform: str, version: int, options: dict[str, Any]
) -> None:
    """Let programs for ``platform`` call ``function`` by ``name``."""
    registered.add(name)
    xla_client.register_custom_call_target(
        name, function, platform=platform, api_version=version, **options
    )


def register_type(name: str, registration: Any, platform: str) -> None:
    """Let functions for ``platform`` keep states of a type between their stages."""
    xla_client.register_custom_type(name, registration, platform=platform)


def register_batched(name: str) -> None:
    """Let the partitioner cut a function along the leading dimensions of all that it takes."""
    xc.register_custom_call_as_batch_partitionable(name)


def headers() -> str:
    """The directory of the headers that foreign functions are written with."""
    return os.path.join(os.path.dirname(jaxlib.__file__), "include")
