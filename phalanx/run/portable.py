"""Programs as portable modules."""

# What an array holds is private to users, not to what runs programs on arrays.
# pyright: reportPrivateUsage=false

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from phalanx.core.program import Literal, Program
from phalanx.run.array import DeviceArray
from phalanx.run.runtime import backend
from phalanx.transforms.passes import ready


def export_program(program: Program, platforms: Sequence[str]) -> bytes:
    """``program``, with its constants, for one device of any of ``platforms``."""
    made = ready(program)
    constants = list(map(_on_host, made.constants))
    return backend().export(made.program, constants, platforms, program.name)


def _on_host(constant: Literal) -> np.ndarray:
    """The elements; of keys the words."""
    value = constant.value
    return value._fetched() if isinstance(value, DeviceArray) else np.asarray(value)
