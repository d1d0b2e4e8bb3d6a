"""Taylor coefficients of functions along curves: ``jet``.

A program is run on truncated series in place of numbers. What is linear acts on each coefficient,
what is linear in each of two operands on each pair; for a few functions there is a recurrence
(Griewank and Walther, "Evaluating Derivatives", 2008, chapter 13); of any other operation the
coefficients are its derivatives along the curve, one taken of the other.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from msgspec import Struct

import phalanx.numpy as jnp
from phalanx.api.arguments import check_callable
from phalanx.api.derivatives import jvp
from phalanx.api.transformed import P
from phalanx.base import dtypes, tree
from phalanx.base.boundary import bound, hiding
from phalanx.control.call import call
from phalanx.core.interpret import interpret
from phalanx.core.program import Equation
from phalanx.core.types import Array, typeof
from phalanx.lax.bodies import trace_body
from phalanx.numpy.creation import asarray

__all__ = ["jet"]

Coefficients = list[Any]  # of t to the power 0, 1, 2, ...


class Series(Struct, frozen=True):
    """A polynomial in t, in place of a value.

    Args:
        terms: the coefficients, of the first order on.

    >>> from phalanx.experimental.jet import jet
    >>> value, terms = jet(jnp.sin, (0.0,), ((1.0, 0.0),))
    >>> [float(t) for t in terms]
    [1.0, 0.0]
    """

    terms: Coefficients


@hiding
def _with_arguments(f: Callable[..., Any], *args: Any) -> Any:
    return f(*args)


def jet(
    fun: Callable[P, Any],
    primals: Sequence[Any],
    series: Sequence[Sequence[Any]],
    factorial_scaled: bool = True,
    **_: Any,
) -> tuple[Any, Any]:
    """The derivatives of ``fun`` along a curve, to the order to which those of the curve are given.

    Args:
        fun: a function of arrays to a tree of arrays.
        primals: where the curve is at 0: an array for each argument.
        series: for each argument the derivatives of the curve at 0, of order 1, 2, ...; as many for
            each.
        factorial_scaled: whether the series hold derivatives; otherwise the coefficients of the
            polynomial, which are these over k!.

    Returns:
        ``fun(*primals)``, and in the same structure a list of derivatives for each result.

    Raises:
        TypeError: an argument is no array.
        ValueError: there are more or fewer series than arguments, or they differ in length.

    >>> x, derivatives = jet(jnp.sin, (0.0,), ([1.0, 0.0, 0.0],))
    >>> print(x, [float(d) for d in derivatives])
    0.0 [1.0, 0.0, -1.0]
    """
    check_callable(fun, "jet")
    values, in_tree = tree.flatten(tuple(primals))
    lengths = {len(terms) for terms in series}
    if in_tree != tree.structure((0,) * len(primals)):
        raise TypeError("jet: primals must be arrays, one for each argument; flatten trees before")
    if len(series) != len(values) or len(lengths) > 1:
        raise ValueError(
            f"jet: for each of {len(values)} arguments a series is needed, all of one length, got "
            f"lengths {[len(terms) for terms in series]}"
        )
    order = lengths.pop() if lengths else 0
    scale = [math.factorial(k) if factorial_scaled else 1 for k in range(order + 1)]
    inputs = [_series(x, terms, scale) for x, terms in zip(values, series, strict=True)]
    types = [typeof(x) for x in values]
    body = trace_body(fun, _with_arguments, in_tree, types, "jet")

    def step(e: Equation, operands: tuple[Any, ...]) -> Any:
        return _step(e, operands, order)

    found = interpret(body.program, [*body.captured, *inputs], step)
    results = [y.terms if isinstance(y, Series) else _constant(y, order) for y in found]
    heads = [terms[0] for terms in results]
    tails = [[c * s for c, s in zip(terms, scale, strict=True)][1:] for terms in results]
    return body.out_tree.unflatten(heads), body.out_tree.unflatten(tails)


def _series(x: Any, terms: Sequence[Any], scale: Sequence[int]) -> Any:
    if not dtypes.is_inexact(typeof(x).dtype) or not terms:
        return x
    x = asarray(x)
    rest = [asarray(c).astype(x.dtype) / s for c, s in zip(terms, scale[1:], strict=True)]
    return Series([x, *[jnp.broadcast_to(c, x.shape) for c in rest]])


def _constant(x: Any, order: int) -> Coefficients:
    return [asarray(x), *[jnp.zeros_like(x)] * order]


def _still(x: Any, order: int) -> Coefficients:
    """The same of an operand; a number stays one, which has no shape to agree with others."""
    if isinstance(x, Array):
        return _constant(x, order)
    return [x, *[np.zeros(np.shape(x), typeof(x).dtype)[()]] * order]


def _step(e: Equation, operands: tuple[Any, ...], order: int) -> Any:
    if not any(isinstance(x, Series) for x in operands):
        return e.prim(*operands, **e.params)
    if e.prim is call:
        return interpret(e.params["program"], operands, lambda e, xs: _step(e, xs, order))
    if not any(dtypes.is_inexact(v.type.dtype) for v in e.outputs):
        return e.prim(*[x.terms[0] if isinstance(x, Series) else x for x in operands], **e.params)
    name = e.prim.name
    if name in _LINEAR:
        terms = [x.terms if isinstance(x, Series) else _still(x, order) for x in operands]
        return Series([e.prim(*column, **e.params) for column in zip(*terms, strict=True)])
    if name in _LINEAR_IN_FIRST and isinstance(operands[0], Series) and not _any(operands[1:]):
        first, *rest = operands
        return Series([e.prim(c, *rest, **e.params) for c in first.terms])
    if name in _BILINEAR:
        return _product(lambda x, y: e.prim(x, y, **e.params), *operands)
    rule = _RULES.get(name)
    if rule is not None:
        return Series(rule(*[x.terms if isinstance(x, Series) else [x] for x in operands]))
    return _along(e, operands, order)


def _any(operands: Sequence[Any]) -> bool:
    return any(isinstance(x, Series) for x in operands)


_LINEAR = frozenset({
    "add", "sub", "neg", "broadcast", "reshape", "transpose", "reduce_sum", "slice", "reverse",
    "concatenate", "real", "imag", "conj", "complex", "cumsum", "pad",
})  # fmt: skip
_LINEAR_IN_FIRST = frozenset({"dynamic_slice", "gather", "div", "triangular_solve"})
_BILINEAR = frozenset({"mul", "dot_general", "conv_general_dilated"})


def _product(times: Callable[[Any, Any], Any], x: Any, y: Any) -> Series:
    """The coefficients of a product are sums of those of the factors."""
    if not isinstance(x, Series):
        return Series([times(x, c) for c in y.terms])
    if not isinstance(y, Series):
        return Series([times(c, y) for c in x.terms])
    count = len(x.terms)
    return Series(
        [_sum([times(x.terms[j], y.terms[k - j]) for j in range(k + 1)]) for k in range(count)]
    )


def _sum(values: Sequence[Any]) -> Any:
    total = values[0]
    for v in values[1:]:
        total = total + v
    return total


def _along(e: Equation, operands: tuple[Any, ...], order: int) -> Any:
    """The derivatives of an operation along the curve, one taken of the other."""

    def at(t: Any) -> list[Any]:
        values = [
            _sum([c * t**k if k else c for k, c in enumerate(x.terms)])
            if isinstance(x, Series)
            else x
            for x in operands
        ]
        out = e.prim(*values, **e.params)
        return list(out) if e.prim.multi else [out]

    def derivative(function: Callable[[Any], list[Any]]) -> Callable[[Any], list[Any]]:
        return lambda t: jvp(function, (t,), (1.0,))[1]

    real = [dtypes.is_inexact(v.type.dtype) for v in e.outputs]
    function: Callable[[Any], list[Any]] = at
    columns = [at(0.0)]
    for k in range(1, order + 1):
        function = derivative(function)
        columns.append([d / math.factorial(k) if r else d
                        for d, r in zip(function(0.0), real, strict=True)])  # fmt: skip
    results = [
        Series(list(terms)) if r else terms[0]
        for terms, r in zip(zip(*columns, strict=True), real, strict=True)
    ]
    return tuple(results) if e.prim.multi else results[0]


# ---- recurrences ----------------------------------------------------------------------------


def _exp(x: Coefficients) -> Coefficients:
    """y' = y x'."""
    y = [jnp.exp(x[0])]
    for k in range(1, len(x)):
        y.append(_sum([j * x[j] * y[k - j] for j in range(1, k + 1)]) / k)
    return y


def _log(x: Coefficients) -> Coefficients:
    """x y' = x'."""
    y = [jnp.log(x[0])]
    for k in range(1, len(x)):
        known = [j * y[j] * x[k - j] for j in range(1, k)]
        y.append((x[k] - _sum(known) / k if known else x[k]) / x[0])
    return y


def _circular(x: Coefficients) -> tuple[Coefficients, Coefficients]:
    """s' = c x' and c' = -s x'."""
    s, c = [jnp.sin(x[0])], [jnp.cos(x[0])]
    for k in range(1, len(x)):
        steps = range(1, k + 1)
        further = [_sum([j * x[j] * other[k - j] for j in steps]) / k for other in (c, s)]
        s.append(further[0])
        c.append(-further[1])
    return s, c


def _tanh(x: Coefficients) -> Coefficients:
    """y' = (1 - y^2) x'."""
    y, slope = [jnp.tanh(x[0])], [1 - jnp.tanh(x[0]) ** 2]
    for k in range(1, len(x)):
        y.append(_sum([j * x[j] * slope[k - j] for j in range(1, k + 1)]) / k)
        slope.append(-_sum([y[j] * y[k - j] for j in range(k + 1)]))
    return y


def _div(x: Coefficients, y: Coefficients) -> Coefficients:
    """x = q y."""
    q: Coefficients = []
    for k in range(max(len(x), len(y))):
        rest = x[k] if k < len(x) else jnp.zeros_like(q[0])
        for j in range(max(0, k - len(y) + 1), k):
            rest = rest - q[j] * y[k - j]
        q.append(rest / y[0])
    return q


def _sin(x: Coefficients) -> Coefficients:
    return _circular(x)[0]


def _cos(x: Coefficients) -> Coefficients:
    return _circular(x)[1]


_RULES: dict[str, Callable[..., Coefficients]] = {
    "exp": _exp,
    "log": _log,
    "sin": _sin,
    "cos": _cos,
    "tanh": _tanh,
    "div": _div,
}


bound(sys.modules[__name__])
