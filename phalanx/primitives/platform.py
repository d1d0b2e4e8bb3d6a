"""Which platform a program is compiled for, as a number."""

from __future__ import annotations

from typing import Any

from phalanx.core.builder import Builder
from phalanx.core.platforms import names_of
from phalanx.core.primitive import Elements, Example, NoRule, Primitive, ZeroDerivative
from phalanx.core.types import ArrayType
from phalanx.primitives.domains import I32


def _type(*, platforms: tuple[str, ...], default: bool) -> ArrayType:
    return ArrayType((), I32)


def _lower(b: Builder, platforms: tuple[str, ...], default: bool) -> Any:
    # It asks, rather than having a rule for each: whatever is chosen by it is to be a constant.
    platform = b.target.platform
    fitting = [name for name in names_of(platform) if name in platforms]
    if not fitting and not default:
        raise NotImplementedError(
            f"platform_dependent: there is a function for {', '.join(platforms)}, and no "
            f"default, but the program is compiled for {platform}"
        )
    return b.constant(platforms.index(fitting[0]) if fitting else len(platforms), I32)


platform_index = Primitive(
    "platform_index",
    _type,
    _lower,
    linearize=ZeroDerivative("it has no operands"),
    transpose=NoRule("it has no operands"),
    batch=NoRule("it has no operands"),
    elements=Elements(operations=0),
    doc="the first of the platforms that this one is, or how many there are; a constant",
    examples=[Example((), {"platforms": ("tpu", "cpu"), "default": False})],
)
