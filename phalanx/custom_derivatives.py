"""Derivative rules of your own, and what they receive."""

from phalanx.api.custom import SymbolicZero
from phalanx.api.custom_jvp import custom_jvp
from phalanx.api.custom_vjp import CustomVJPPrimal, closure_convert, custom_gradient, custom_vjp
from phalanx.api.linear_call import linear_call, zero_from_primal

__all__ = [
    "CustomVJPPrimal",
    "SymbolicZero",
    "closure_convert",
    "custom_gradient",
    "custom_jvp",
    "custom_vjp",
    "linear_call",
    "zero_from_primal",
]
