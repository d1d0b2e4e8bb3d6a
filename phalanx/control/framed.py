"""Reading the frame of an operation with sub-programs, and binding it with another one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from phalanx.core.frame import Frame
from phalanx.core.primitive import Primitive


def frame_of(prim: Primitive, params: dict[str, Any]) -> Frame:
    """The sub-programs of ``prim`` and the roles of its operands and results."""
    return prim.rule("frame")(params)


def bind(
    prim: Primitive, operands: Sequence[Any], params: dict[str, Any], frame: Frame
) -> tuple[Any, ...]:
    """The results of ``prim`` with another ``frame``, its other parameters as they are."""
    return prim(*operands, **prim.rule("reframe")(params, frame))
