"""The package jax in the same program: it cannot compute with our arrays, and says so in words of
its own. What it looks for in ours tells the remedy, once there is something to be told."""

from __future__ import annotations

import os
import sys
import warnings
from types import FrameType
from typing import Any, Final

REMEDY: Final = (
    "the package jax was imported beside Phalanx and was given an array of Phalanx's, with which "
    "it cannot compute. Libraries for JAX (optax, flax, equinox) run on Phalanx if they are "
    "imported after phalanx.as_jax.install(), or in python -m phalanx.as_jax script.py. "
    "For an array of jax's own: jax.numpy.asarray(x)"
)
_TRACED: Final = (
    "; the package jax traces it, and a function that jax transforms can use jax.numpy alone: let "
    "Phalanx transform it, or run the program in python -m phalanx.as_jax script.py"
)
_HELD: Final = (
    "; it is an array of the package jax: numpy.asarray(x) is one for Phalanx. A program that "
    "imports jax runs on Phalanx in python -m phalanx.as_jax script.py"
)
_MAKES_ARRAYS: Final = "jax._src.numpy.array_constructors"  # which reads ours as NumPy does
_warned = False


def is_jax(frame: FrameType) -> bool:
    """Whether code of the package runs in ``frame``: where it is served, there is none."""
    return _module(frame).startswith("jax.")


def _module(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", ""))


def advice_on(x: object) -> str:
    """What to do with an array of jax's, or with a tracer of one, after a semicolon; or nothing."""
    package = type(x).__module__.partition(".")[0]
    if package not in ("jax", "jaxlib") or not hasattr(x, "aval"):
        return ""
    return _TRACED if hasattr(x, "_trace") else _HELD


def look_for_jax(frame: FrameType) -> None:
    """Warn, once in a program, if code of jax runs in ``frame`` that cannot use our arrays."""
    global _warned
    if _warned or not is_jax(frame) or _module(frame) == _MAKES_ARRAYS:
        return
    _warned = True
    warnings.warn(REMEDY, RuntimeWarning, **_at_the_user())


def _at_the_user() -> Any:
    """Where to warn: at the line that calls jax, if Python can tell it."""
    if sys.version_info < (3, 12):
        return {"stacklevel": 3}
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    jax = os.path.dirname(str(getattr(sys.modules.get("jax"), "__file__", None) or package))
    return {"skip_file_prefixes": (package + os.sep, jax + os.sep)}
