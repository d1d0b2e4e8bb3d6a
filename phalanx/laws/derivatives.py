"""Derivatives against finite differences, and forward mode against reverse mode.

With L the derivative of f at x, t a tangent and c a cotangent, both random:
L t = (f(x + h t) - f(x - h t)) / 2h, and <L t, c> = <t, L^T c>. Both must hold of f and then of
x -> L t and x -> L^T c, to the order that is wanted. By how much the difference changes where h
doubles bounds its own error, which must be as small as that of L t.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from msgspec import Struct

from phalanx import lax
from phalanx.api.derivatives import jvp, vjp
from phalanx.api.jit import jit
from phalanx.api.make_program import make_program
from phalanx.api.transformed import P
from phalanx.base import dtypes, tree
from phalanx.base.config import config
from phalanx.base.source import name_of
from phalanx.core.program import Program
from phalanx.core.types import ArrayType, typeof
from phalanx.laws.compare import DerivativeError, require_same, to_numpy
from phalanx.primitives.basis import add, convert, mul, reduce_sum, sub
from phalanx.primitives.complex import real
from phalanx.primitives.shape import broadcast_to
from phalanx.run.eager import as_array

MODES = ("fwd", "rev")


def check_grads(
    f: Callable[P, Any],
    args: Sequence[Any],
    order: int = 2,
    modes: Sequence[str] | str = MODES,
    eps: float | None = None,
    atol: float | None = None,
    rtol: float | None = None,
) -> None:
    """Check derivatives: L t = (f(x + h t) - f(x - h t)) / 2h and <L t, c> = <t, L^T c>.

    Where ``f`` can be computed in float64 throughout, it is, and the tolerances are narrow.

    Args:
        f: a function of trees of arrays; integers among its arguments and results are held
            fixed and left out.
        args: the point at which to check, away from kinks.
        order: how many times to differentiate.
        modes: ``"fwd"`` for jvp, ``"rev"`` for vjp, or both.
        eps: the step h; default by dtype.
        atol: the largest difference; default by dtype.
        rtol: the same, relative to the largest element; default by dtype.

    Raises:
        DerivativeError: a derivative is wrong, or the differences do not tell, since there is a
            kink close by or h is too large or too small; the message says which.
        ValueError: a mode is unknown, or the order is less than 1.

    >>> import phalanx.numpy as jnp
    >>> check_grads(lambda x: jnp.sin(x) * x, (jnp.arange(3.0),), order=2)
    """
    check_to(0.0, f, args, order, modes, eps, atol, rtol)


def check_to(
    least: float,
    f: Callable[P, Any],
    args: Sequence[Any],
    order: int,
    modes: Sequence[str] | str,
    eps: float | None,
    atol: float | None,
    rtol: float | None,
) -> None:
    """``check_grads``, with tolerances for a relative error of f that is ``least`` or larger."""
    chosen = (modes,) if isinstance(modes, str) else tuple(modes)
    if not chosen or not set(chosen) <= set(MODES):
        raise ValueError(f"check_grads: modes must be among {MODES}, got {modes!r}")
    if order < 1:
        raise ValueError(f"check_grads: order must be at least 1, got {order}")
    inner, xs = inexact_part(f, args)
    if not xs:
        raise ValueError(f"check_grads: no argument of {name_of(f)} is a floating-point number")
    program = _in_double(inner, xs)
    staged = program is not None
    with config.override(enable_x64=config.enable_x64 or staged):
        xs = [as_array(_double(x) if staged else x) for x in xs]
        outs = program.output_types if staged else [typeof(y) for y in inner(xs)]
        precision = coarsest([*map(typeof, xs), *outs])
        method = _Method(chosen, eps or precision ** (1 / 3), lax.map if staged else one_by_one)
        loose = max(precision, least) ** 0.4
        for claim in _claims(inner, xs, method, order, name_of(f), staged):
            require_same(
                DerivativeError,
                f"check_grads: {claim.who}",
                claim.actual,
                claim.expected,
                rtol=loose if rtol is None else rtol,
                atol=loose if atol is None else atol,
            )


def coarsest(types: Sequence[ArrayType]) -> float:
    """The relative rounding error of the coarsest of the dtypes."""
    return max(float(dtypes.finfo(t.dtype).eps) for t in types)


# ---- the function of its floating-point part ----------------------------------------------------


def inexact_part(
    f: Callable[..., Any], args: Sequence[Any]
) -> tuple[Callable[..., Any], list[Any]]:
    """``f`` from the list of its inexact argument leaves to that of its inexact results."""
    leaves, treedef = tree.flatten(tuple(args))
    chosen = [dtypes.is_inexact(typeof(x).dtype) for x in leaves]

    def inner(xs: list[Any]) -> list[Any]:
        rest = iter(xs)
        whole = [next(rest) if c else x for x, c in zip(leaves, chosen, strict=True)]
        outs = tree.leaves(f(*treedef.unflatten(whole)))
        return [y for y in outs if dtypes.is_inexact(typeof(y).dtype)]

    return inner, [x for x, c in zip(leaves, chosen, strict=True) if c]


def _double(x: Any) -> np.ndarray:
    wide = np.complex128 if dtypes.is_complex(typeof(x).dtype) else np.float64
    return to_numpy(x).astype(wide)


def _in_double(inner: Callable[..., Any], xs: list[Any]) -> Program | None:
    """The program of ``inner`` in 64 bits; None where it cannot be staged, or leaves them."""
    with config.override(enable_x64=True):
        try:
            program = make_program(inner)([_double(x) for x in xs])
        except (TypeError, ValueError):  # needs values while tracing, or insists on a dtype
            return None
    wide = all(t.dtype in (np.float64, np.complex128) for t in _inexact_types(program))
    return program if wide else None


def _inexact_types(program: Program) -> list[ArrayType]:
    types = [*program.input_types, *program.output_types]
    types += [v.type for e in program.walk() for v in e.outputs]
    return [t for t in types if dtypes.is_inexact(t.dtype)]


def direction(x: Any, seed: int) -> np.ndarray:
    """A fixed random array of the type of ``x``, its elements in the unit square."""
    kind = typeof(x)
    source = np.random.default_rng([seed, kind.size])
    values = source.uniform(-1.0, 1.0, kind.shape)
    if dtypes.is_complex(kind.dtype):
        values = values + 1j * source.uniform(-1.0, 1.0, kind.shape)
    return np.asarray(values).astype(kind.dtype)


# ---- what must be equal -------------------------------------------------------------------------


class _Claim(Struct, frozen=True):
    who: str
    actual: Any
    expected: Any


class _Method(Struct, frozen=True):
    modes: tuple[str, ...]
    step: float
    each: Callable[..., Any]  # how a function is called at several points


def _claims(
    inner: Callable[..., Any], xs: list[Any], method: _Method, order: int, who: str, staged: bool
) -> list[_Claim]:
    """All claims, computed by one compiled program where the function can be staged."""
    names: list[str] = []

    def pairs(xs: list[Any]) -> list[tuple[Any, Any]]:
        derived = list(_derive(inner, xs, method, order, who))
        names[:] = [c.who for c in derived]
        return [(c.actual, c.expected) for c in derived]

    claims = (jit(pairs) if staged else pairs)(xs)
    return [_Claim(n, *pair) for n, pair in zip(names, claims, strict=True)]


def _derive(
    inner: Callable[..., Any], xs: list[Any], method: _Method, order: int, who: str
) -> list[_Claim]:
    ts = [direction(x, 2 * order) for x in xs]
    claims: list[_Claim] = []
    slope, at_twice_the_step = differences(inner, xs, ts, method.step, method.each)
    claims += _pairs(f"differences of {who} with steps of 2h and of h", at_twice_the_step, slope)
    tangents = slope
    if "fwd" in method.modes:
        _, tangents = jvp(inner, (xs,), (ts,))
        claims += _pairs(f"jvp of {who} and finite differences", tangents, slope)
    cts = [direction(y, 2 * order + 1) for y in slope]
    if "rev" in method.modes:
        (pulled,) = vjp(inner, xs)[1](cts)
        left, right = pairing(tangents, cts), pairing(ts, pulled)
        claims.append(_Claim(f"<c, jvp t> and <vjp c, t> of {who}", right, left))
    if order > 1:
        if "fwd" in method.modes:
            along = f"(x -> jvp of {who} at x)"

            def forward(ys: list[Any]) -> Any:
                return jvp(inner, (ys,), (ts,))[1]

            claims += _derive(forward, xs, method, order - 1, along)
        if "rev" in method.modes:
            back = f"(x -> vjp of {who} at x)"

            def backward(ys: list[Any]) -> Any:
                return vjp(inner, ys)[1](cts)[0]

            claims += _derive(backward, xs, method, order - 1, back)
    return claims


def _pairs(who: str, actual: Sequence[Any], expected: Sequence[Any]) -> list[_Claim]:
    pairs = enumerate(zip(actual, expected, strict=True))
    return [_Claim(f"{who}, output {i}", a, e) for i, (a, e) in pairs]


def one_by_one(f: Callable[..., Any], steps: np.ndarray) -> list[Any]:
    """What ``lax.map`` gives, by a loop in Python."""
    return [list(ys) for ys in zip(*map(f, steps), strict=True)]


def differences(
    inner: Callable[..., Any],
    xs: list[Any],
    ts: list[Any],
    h: float,
    each: Callable[..., Any] = one_by_one,
) -> tuple[list[Any], list[Any]]:
    """(f(x + h t) - f(x - h t)) / 2h, and the same for twice the step.

    Args:
        inner: the function f of a list, to a list.
        xs: x, the point.
        ts: t, the direction.
        h: the step.
        each: calls a function with each row of an array: ``lax.map``, or a loop in Python.
    """

    def at(step: Any) -> list[Any]:
        steps = [convert(step, dtype=typeof(t).dtype, weak=False) for t in ts]
        moves = [mul(t, broadcast_to(s, typeof(t).shape)) for s, t in zip(steps, ts, strict=True)]
        return inner([add(x, move) for x, move in zip(xs, moves, strict=True)])

    ends = each(at, np.array([h, -h, 2 * h, -2 * h]))
    first, second = (
        [mul(sub(ys[k], ys[k + 1]), 0.5 / step) for ys in ends] for k, step in ((0, h), (2, 2 * h))
    )
    return first, second


def pairing(xs: Sequence[Any], ys: Sequence[Any]) -> Any:
    """The real part of the sum of x y, over all elements of all leaves."""
    total: Any = 0.0
    for x, y in zip(xs, ys, strict=True):
        product = mul(_widest(x), _widest(y))
        product = reduce_sum(product, dims=tuple(range(typeof(product).ndim)))
        if dtypes.is_complex(typeof(product).dtype):
            product = real(product)
        total = add(total, product)
    return total


def _widest(x: Any) -> Any:
    narrow = np.complex64 if dtypes.is_complex(typeof(x).dtype) else np.float32
    wide = np.complex128 if narrow is np.complex64 else np.float64
    dtype = np.dtype(wide if config.enable_x64 else narrow)
    return convert(x, dtype=dtype, weak=False)
