"""Types of arrays under the field's names."""

from __future__ import annotations

from typing import Any

import numpy as np

from phalanx.core.types import ArrayType
from phalanx.spmd.named import NamedSharding
from phalanx.spmd.shardings_of_types import mesh_spec_of


class _Types(type):
    """The class of classes whose instances are our types."""

    def __instancecheck__(cls, x: object) -> bool:
        return isinstance(x, ArrayType)

    def __subclasscheck__(cls, kind: Any) -> bool:
        return kind is cls or issubclass(kind, ArrayType)


class AbstractValue(metaclass=_Types):
    """What a value is known by while tracing."""


class ShapedArray(AbstractValue):
    """A shape and a dtype.

    >>> ShapedArray((2, 3), "float32"), isinstance(ShapedArray((), "int32"), ShapedArray)
    (f32[2,3], True)
    """

    def __new__(
        cls, shape: Any, dtype: Any, weak_type: bool = False, *, sharding: Any = None, **_: Any
    ) -> Any:
        """The type. Where arrays lie is not part of it; how they lie along Explicit axes is."""
        kind = dtype if not isinstance(dtype, (str, type)) else np.dtype(dtype)
        aval = ArrayType(tuple(shape), kind, weak_type)
        if not isinstance(sharding, NamedSharding):
            return aval
        refusal = sharding.refusal(aval.shape)
        if refusal is not None:  # "does not evenly ... size" is the field's, for matching
            raise ValueError(
                f"ShapedArray: {sharding.spec} does not evenly divide the dimension size: {refusal}"
            )
        return aval.update(spec=mesh_spec_of(sharding, aval.ndim))
