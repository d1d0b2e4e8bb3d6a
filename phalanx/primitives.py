"""Primitives of your own: the declaration that all of Phalanx is made of, and its vocabulary.

A primitive is declared once, with every rule that it needs; from then on it works under every
transformation. ``phalanx.laws.check_primitive`` checks the rules against what it computes.
"""

import sys as _sys

from phalanx.base.boundary import bound as _bound
from phalanx.base.dtypes import is_bool, is_complex, is_floating, is_inexact, is_integer
from phalanx.core.axes import Axis
from phalanx.core.builder import Builder
from phalanx.core.primitive import (
    ZERO,
    Effects,
    Elements,
    Example,
    Execution,
    Linear,
    NamedAxes,
    NoRule,
    Primitive,
    Zero,
    ZeroDerivative,
)
from phalanx.core.types import ArrayType, typeof
from phalanx.ops.basis import (
    add_tangents,
    broadcast_lanes,
    instantiate,
    move,
    pointwise,
    structural,
    zeros,
)
from phalanx.ops.domains import bools, f32, i32

__all__ = [
    # the declaration, and what stands in place of rules and operands
    "Primitive",
    "Elements",
    "NamedAxes",
    "Effects",
    "Execution",
    "Example",
    "NoRule",
    "ZeroDerivative",
    "Linear",
    "ZERO",
    "Zero",
    # families
    "pointwise",
    "structural",
    # the dtypes that a member of a family takes
    "is_bool",
    "is_complex",
    "is_floating",
    "is_inexact",
    "is_integer",
    # what rules are given
    "ArrayType",
    "Axis",
    "Builder",
    # words for rules and examples
    "add_tangents",
    "broadcast_lanes",
    "instantiate",
    "move",
    "typeof",
    "zeros",
    "bools",
    "f32",
    "i32",
]

_bound(_sys.modules[__name__])
