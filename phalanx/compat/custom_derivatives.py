"""What ``jax.custom_derivatives`` has besides."""

from typing import Any

from phalanx import tree
from phalanx.api.custom_vjp import CustomVJPPrimal
from phalanx.compat.operations import custom_jvp_call_p, custom_vjp_call_p  # type: ignore[attr-defined]

__all__ = ["custom_jvp_call_p", "custom_vjp_call_p", "custom_vjp_primal_tree_values"]


def custom_vjp_primal_tree_values(tree_of_primals: Any) -> Any:
    """The values of the arguments that a forward rule with ``symbolic_zeros=True`` gets."""
    return tree.map(_value, tree_of_primals)


def _value(leaf: Any) -> Any:
    if not isinstance(leaf, CustomVJPPrimal):
        raise TypeError(
            "custom_vjp_primal_tree_values: an argument of a forward rule with "
            f"symbolic_zeros=True is needed, got {leaf!r}"
        )
    return leaf.value
