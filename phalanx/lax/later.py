"""What few programs use: imported when somebody first asks for it."""

import sys

from phalanx.base.boundary import bound
from phalanx.lax.applied import scatter_apply
from phalanx.lax.composites import composite
from phalanx.lax.exchange import ragged_all_to_all
from phalanx.lax.patches import conv_general_dilated_local, conv_general_dilated_patches
from phalanx.lax.platforms import platform_dependent
from phalanx.lax.polynomials import polynomial
from phalanx.lax.ragged import RaggedDotDimensionNumbers, ragged_dot, ragged_dot_general
from phalanx.lax.shape_tuples import (
    conv_general_permutations,
    conv_general_shape_tuple,
    conv_shape_tuple,
    conv_transpose_shape_tuple,
    reduce_window_shape_tuple,
)
from phalanx.lax.solvers import custom_linear_solve, custom_root

__all__ = [
    "RaggedDotDimensionNumbers",
    "composite",
    "conv_general_dilated_local",
    "conv_general_dilated_patches",
    "conv_general_permutations",
    "conv_general_shape_tuple",
    "conv_shape_tuple",
    "conv_transpose_shape_tuple",
    "custom_linear_solve",
    "custom_root",
    "platform_dependent",
    "polynomial",
    "ragged_all_to_all",
    "ragged_dot",
    "ragged_dot_general",
    "reduce_window_shape_tuple",
    "scatter_apply",
]

bound(sys.modules[__name__])
