"""``jax.experimental.hijax`` and what goes with it: classes that others derive from at import.

Types and operations of another library's own are not offered: an instance of them is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from phalanx.compat.avals import AbstractValue, ShapedArray
from phalanx.compat.zeros import ZeroTangent, instantiate_zeros
from phalanx.core.refs import AbstractRef
from phalanx.numpy.refs import RefPart

__all__ = [
    "AbstractRef",
    "AbstractValue",
    "HiPrim",
    "HiType",
    "ShapedArray",
    "Zero",
    "aval_method",
    "aval_property",
    "instantiate_zeros",
    "register_hitype",
]
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


class aval_method:
    """A method of a type of another library's, which values of that type would have."""

    def __init__(self, fun: Callable) -> None:
        self.fun = fun


class aval_property:
    """An attribute of a type of another library's, which values of that type would have."""

    def __init__(self, fget: Callable) -> None:
        self.fget = fget


def register_hitype(cls: type, rule: Any) -> None:
    """Let values of ``cls`` have such a type; refused when one is used."""


def _refuse(kind: type) -> NoReturn:
    raise NotImplementedError(
        f"{kind.__module__}.{kind.__qualname__} is a type or operation of hijax, which is not "
        "offered; register the class as a tree of arrays (jax.tree_util.register_dataclass)"
    )
