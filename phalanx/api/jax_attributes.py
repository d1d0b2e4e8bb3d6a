"""Attributes that objects of the engine have under JAX's names alone; nothing here asks for them.

They are set when phalanx is imported, in one place, as the methods of arrays are.
"""

from __future__ import annotations

from typing import Any

from phalanx.core.program import Literal, Var
from phalanx.core.trace import Trace
from phalanx.core.types import ArrayType
from phalanx.spmd.mesh import AnyMesh
from phalanx.spmd.sharding import Sharding


def _str_short(self: ArrayType, *_: Any, **__: Any) -> str:
    """The type as programs print it."""
    return str(self)


def _strip_weak_type(self: ArrayType) -> ArrayType:
    """The same, not weak."""
    return self.update(weak=False)


def _to_tangent_aval(self: ArrayType) -> ArrayType:
    """The type of tangents."""
    return self.tangent


_ATTRIBUTES: dict[type, dict[str, Any]] = {
    ArrayType: {
        "str_short": _str_short,
        "strip_weak_type": _strip_weak_type,
        "to_tangent_aval": _to_tangent_aval,
        "at_least_vspace": _to_tangent_aval,
    },
    Var: {"aval": property(lambda self: self.type)},
    Literal: {
        "aval": property(lambda self: self.type),
        "val": property(lambda self: self.value),
    },
    Trace: {"main": property(lambda self: self)},  # traces have no levels
    # the devices in order, and those of this process; whether types may say how arrays lie
    Sharding: {
        "_device_assignment": property(lambda self: tuple(self.device_list)),
        "_addressable_device_assignment": property(lambda self: tuple(self.local_devices)),
    },
    AnyMesh: {"_any_axis_explicit": property(lambda self: bool(self.explicit_axes))},
}


def install() -> None:
    """Set them."""
    for kind, attributes in _ATTRIBUTES.items():
        for name, value in attributes.items():
            setattr(kind, name, value)
