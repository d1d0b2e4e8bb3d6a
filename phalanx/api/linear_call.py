"""``linear_call``: a linear function, with a transpose of the user's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from phalanx.api.arguments import check_callable, check_leaf
from phalanx.api.custom import defined_at, same_kind, zero_like
from phalanx.base import tree
from phalanx.base.source import name_of
from phalanx.base.tree import shown
from phalanx.control.call_with_transpose import LinearRule
from phalanx.control.call_with_transpose import linear_call as linear_call_primitive
from phalanx.control.custom_derivatives import bind_program
from phalanx.core.types import ArrayType, typeof
from phalanx.lax.bodies import flatten_results
from phalanx.transforms.stage import is_value


def linear_call(
    fun: Callable[[Any, Any], Any],
    fun_transpose: Callable[[Any, Any], Any],
    residual_args: Any,
    linear_args: Any,
) -> Any:
    """Call fun(residual_args, linear_args), a linear function that ``fun_transpose`` transposes.

    Args:
        fun: of two trees of arrays; linear in the second.
        fun_transpose: of ``residual_args`` and cotangents like the result of ``fun``, to cotangents
            like ``linear_args``; its own transpose is ``fun``.
        residual_args: what neither is linear in. Derivatives by it are those of ``fun``.
        linear_args: what ``fun`` is linear in.

    Returns:
        What ``fun`` returns.

    Raises:
        TypeError: an argument is no array, or cotangents are not like ``linear_args``.

    >>> import phalanx
    >>> def half(r, x):
    ...     return x / r
    >>> def doubled(r, ct):
    ...     return 100 * ct
    >>> f = lambda x: phalanx.custom_derivatives.linear_call(half, doubled, 2.0, x)
    >>> print(f(3.0), phalanx.grad(f)(3.0))
    1.5 100.0
    """
    check_callable(fun, "linear_call")
    check_callable(fun_transpose, "linear_call")
    who = f"linear_call({name_of(fun)})"
    residuals, residual_tree = tree.flatten(residual_args)
    linear, linear_tree = tree.flatten(linear_args)
    for x in (*residuals, *linear):
        if not is_value(x):
            check_leaf(x, "an argument", who)
    types = [typeof(x) for x in linear]
    count = len(residuals)
    out_tree: Any = None

    def function(*xs: Any) -> list[Any]:
        nonlocal out_tree
        args = residual_tree.unflatten(xs[:count]), linear_tree.unflatten(xs[count:])
        results, out_tree = flatten_results(fun(*args), who)
        return results

    def transposed(residuals: Sequence[Any], cts: Sequence[Any]) -> list[Any]:
        out = linear_call(
            fun_transpose, fun, residual_tree.unflatten(residuals), out_tree.unflatten(cts)
        )
        leaves, structure = tree.flatten(out)
        if structure != linear_tree or not _alike(leaves, types):
            raise TypeError(
                f"{who}: {defined_at(fun_transpose)} must return cotangents like the linear "
                f"arguments, {shown(linear_tree)} of {', '.join(map(str, types))}, got {out!r}"
            )
        return leaves

    results = bind_program(
        linear_call_primitive,
        function,
        [*residuals, *linear],
        partial(LinearRule.of, name_of(fun), transposed, len(linear)),
        (fun, fun_transpose),
        name_of(fun),
    )
    return out_tree.unflatten(results)


def _alike(leaves: Sequence[Any], types: Sequence[ArrayType]) -> bool:
    pairs = zip(leaves, types, strict=True)
    return all(is_value(x) and same_kind(typeof(x), t) for x, t in pairs)


def zero_from_primal(val: Any, symbolic_zeros: bool = False) -> Any:
    """The tangent of ``val`` that is zero: zeros like its leaves, or of dtype float0.

    Args:
        val: a tree of arrays and numbers.
        symbolic_zeros: whether its leaves are each a ``SymbolicZero``.

    Returns:
        A tree like ``val``.

    >>> import phalanx
    >>> phalanx.custom_derivatives.zero_from_primal(jnp.ones(2))
    Array([0., 0.], dtype=float32)
    """

    def zero(x: Any) -> Any:
        if not is_value(x):
            check_leaf(x, "val", "zero_from_primal")
        return zero_like(typeof(x), symbolic_zeros)

    return tree.map(zero, val)
