"""Functions that a compiler may know by name."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any

from phalanx.base import tree
from phalanx.base.kinds import is_sequence
from phalanx.base.numpy_kinds import is_generic
from phalanx.control.composite import composite as named
from phalanx.core.types import Array, typeof
from phalanx.lax.bodies import leaves_of, remembered, trace_body


def composite(decomposition: Callable[..., Any], name: str, version: int = 0) -> Callable[..., Any]:
    """``decomposition``, as one operation that a compiler may know by ``name``.

    A compiler that does not know it compiles the function. Derivatives and lanes are those of the
    function, without the name.

    Args:
        decomposition: a function of trees of arrays; arguments by keyword are Python values,
            which the operation has as attributes, if they are not None.
        name: of the operation, with a namespace: 'my.softmax'.
        version: of what the name means.

    Returns:
        A function with the parameters and results of ``decomposition``.

    Raises:
        TypeError: an attribute is neither a number nor a string nor a sequence of integers.

    >>> import phalanx.numpy as jnp
    >>> tangent = lax.composite(lambda x: lax.sin(x) / lax.cos(x), "my.tangent")
    >>> print(tangent(jnp.float32(0.5)))
    0.5463025
    """
    version = operator.index(version)

    @functools.wraps(decomposition)
    def run(*args: Any, **kwargs: Any) -> Any:
        attributes = tuple((k, _attribute(k, v)) for k, v in kwargs.items() if v is not None)
        leaves, _ = leaves_of(args, "composite", "the arguments")
        _, in_tree = tree.flatten_call(args)
        types = [typeof(x) for x in leaves]

        def call(fun: Callable[..., Any], *operands: Any) -> Any:
            return fun(*operands, **kwargs)

        body = remembered(
            (decomposition,),
            ("composite", in_tree, repr(attributes), *types),
            lambda: trace_body(decomposition, call, in_tree, types, "composite"),
        )
        out = named(
            *body.captured,
            *leaves,
            program=body.program,
            name=name,
            version=version,
            attributes=attributes,
        )
        return body.out_tree.unflatten(out)

    return run


def _attribute(name: str, value: Any) -> Any:
    if is_generic(value) or isinstance(value, (bool, str, int, float)):
        return value
    if is_sequence(value) and all(isinstance(v, int) for v in value):
        return tuple(value)
    shown = "an array" if isinstance(value, Array) else repr(value)
    raise TypeError(
        f"lax.composite: the attribute {name} must be a number, a string or a sequence of "
        f"integers, got {shown}; pass arrays by position"
    )
