"""``jax.experimental.hijax`` and what goes with it: classes that others derive from at import.

Types and operations of another library's own are not offered: an instance of them is refused.
"""

from __future__ import annotations

from typing import Any, NoReturn

from phalanx.compat.avals import AbstractValue, ShapedArray
from phalanx.compat.zeros import ZeroTangent
from phalanx.core.refs import AbstractRef
from phalanx.numpy.refs import RefPart

__all__ = ["AbstractRef", "AbstractValue", "HiPrim", "HiType", "ShapedArray", "Zero"]
TransformedRef = RefPart
Zero = ZeroTangent


class HiType:
    """A type of another library's."""

    def __init__(self, *_: Any, **__: Any) -> NoReturn:
        _refuse(type(self))


class HiPrim:
    """An operation of another library's on such types."""

    multiple_results = False

    def __init__(self, *_: Any, **__: Any) -> None:
        """Made when a library is imported; refused when it is bound."""

    def bind(self, *_: Any, **__: Any) -> NoReturn:
        _refuse(type(self))


def register_hitype(cls: type, rule: Any) -> None:
    """Let values of ``cls`` have such a type; refused when one is used."""


def _refuse(kind: type) -> NoReturn:
    raise NotImplementedError(
        f"{kind.__module__}.{kind.__qualname__} is a type or operation of hijax, which is not "
        "offered; register the class as a tree of arrays (jax.tree_util.register_dataclass)"
    )
