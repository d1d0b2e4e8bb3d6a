"""Differences, integrals, interpolation, polynomials and convolution of sampled functions."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import Any, Literal, overload

import numpy as np

from phalanx import ops
from phalanx.base import dtypes, lattice
from phalanx.base.broadcasting import common_shape
from phalanx.base.lengths import symbolic
from phalanx.control.one_program import one_program
from phalanx.core.types import Array
from phalanx.numpy.arithmetic import (
    add,
    literal,
    maximum,
    multiply,
    remainder,
    subtract,
    true_divide,
)
from phalanx.numpy.choice import where
from phalanx.numpy.cumulative import cumsum
from phalanx.numpy.joining import trim_zeros
from phalanx.numpy.logic import conj, equal, greater, isfinite, isinf, less, logical_and
from phalanx.numpy.promotion import (
    ArrayLike,
    as_array,
    convert,
    dim,
    inexact,
    is_python_scalar,
    operand,
    promote_arrays,
    promote_inexact,
)
from phalanx.numpy.reductions import sum
from phalanx.numpy.search import searchsorted
from phalanx.numpy.selection import take
from phalanx.numpy.shaping import atleast_1d

# ---- differences and integrals --------------------------------------------------------------


@one_program
def diff(
    a: ArrayLike,
    n: int = 1,
    axis: int = -1,
    prepend: ArrayLike | None = None,
    append: ArrayLike | None = None,
) -> Array:
    """The differences of neighbours a[i + 1] - a[i] along ``axis``, taken n times.

    ``prepend`` and ``append`` are put before and behind the elements first.

    Args:
        a: an array, or a number.
        n: how many times to take differences.
        axis: the axis along which differences are taken.
        prepend: values in front of the first along the axis; None for none.
        append: values after the last; None for none.

    Returns:
        An array of the dtype of ``a``, shorter by n along ``axis``.

    Raises:
        ValueError: ``n`` is negative.

    >>> print(jnp.diff(jnp.array([1, 4, 9, 16])))
    [3 5 7]
    """
    x = as_array("diff", a)
    d = dim("diff", axis, x)
    parts = [x if v is None else _beside(x, v, d) for v in (prepend, x, append)]
    given = [p for p, v in zip(parts, (prepend, x, append), strict=True) if v is not None]
    if len(given) > 1:
        x = ops.concatenate(*promote_arrays("diff", given), dim=d)
    if n < 0:
        raise ValueError(f"diff: n must not be negative, got {n}")
    for _ in range(n):
        length = x.shape[d]
        later = ops.slice_dim(x, builtins.min(1, length), length, d)
        earlier = ops.slice_dim(x, 0, builtins.max(length - 1, 0), d)
        x = (ops.ne if x.aval.dtype == np.bool_ else ops.sub)(later, earlier)
    return x


def _beside(x: Any, v: Any, d: int) -> Any:
    """``v`` as an array to put beside ``x`` along dimension ``d``."""
    if v is x:
        return x
    v = as_array("diff", v)
    shape = tuple(1 if i == d else n for i, n in enumerate(x.shape))
    return v if v.ndim else ops.broadcast_to(v, shape)


@one_program
def ediff1d(
    ary: ArrayLike, to_end: ArrayLike | None = None, to_begin: ArrayLike | None = None
) -> Array:
    """The differences of neighbours in the flattened array, with elements around them.

    Args:
        ary: an array, which is taken as a vector.
        to_end: values after the differences.
        to_begin: values before the differences.

    Returns:
        A vector.

    >>> print(jnp.ediff1d(jnp.array([1, 4, 9])))
    [3 5]
    """
    x = as_array("ediff1d", ary)
    inside = diff(ops.reshape(x, shape=(x.size,)))
    parts = [as_array("ediff1d", v) for v in (to_begin, inside, to_end) if v is not None]
    parts = [convert(ops.reshape(p, shape=(p.size,)), x.aval.dtype) for p in parts]
    return ops.concatenate(*parts, dim=0) if len(parts) > 1 else inside


@overload
def gradient(
    f: ArrayLike, *varargs: ArrayLike, axis: int, edge_order: int | None = None
) -> Array: ...
@overload
def gradient(
    f: ArrayLike,
    *varargs: ArrayLike,
    axis: Sequence[int] | None = None,
    edge_order: int | None = None,
) -> Any: ...
@one_program
def gradient(
    f: ArrayLike,
    *varargs: ArrayLike,
    axis: int | Sequence[int] | None = None,
    edge_order: int | None = None,
) -> Any:
    """The derivative of sampled values along each axis, by differences of neighbours.

    Args:
        f: the values.
        varargs: the distance between samples: none (1), one for all axes, or one for each. A
            vector in place of a distance holds the coordinates of the samples along its axis.
        axis: the axis along which differences are taken; None is all, which gives a list.
        edge_order: of the slopes at both ends: 1, the default, of the line through two samples, or
            2, of the parabola through three.

    Returns:
        An array of the shape of ``f``; for several axes a list of them.

    Raises:
        ValueError: the number of distances is not that of the axes, or ``edge_order`` is not 1 or
            2.

    >>> print(jnp.gradient(jnp.array([1.0, 4.0, 9.0, 16.0])))
    [3. 4. 6. 7.]
    """
    x, *gaps = promote_inexact("gradient", [f, *varargs])
    given = range(x.ndim) if axis is None else axis
    over = ops.dimensions("gradient", given, x.ndim)
    gaps: list[Any] = gaps or [1.0]
    if len(gaps) == 1:
        gaps = gaps * len(over)
    fits = len(gaps) == len(over) and all(
        np.shape(g) in ((), (x.shape[d],)) for g, d in zip(gaps, over, strict=True)
    )
    if not fits:
        raise ValueError(
            f"gradient: one distance is needed or {len(over)} of them, numbers or coordinates of "
            f"each sample, got {len(varargs)}"
        )
    if edge_order not in (None, 1, 2):
        raise ValueError(f"gradient: edge_order must be 1 or 2, got {edge_order!r}")
    out = [_slope(x, g, d, edge_order or 1) for g, d in zip(gaps, over, strict=True)]
    return out[0] if len(out) == 1 else out


def _slope(x: Any, gap: Any, d: int, edge_order: int) -> Any:
    n = x.shape[d]
    if n <= edge_order:
        raise ValueError(
            f"gradient: at least {edge_order + 1} samples are needed along an axis, got {x.aval}"
        )
    if np.ndim(gap):
        return _slope_between(diff(x, axis=d), gap, d, edge_order)
    both = ops.sub(ops.slice_dim(x, 2, n, d), ops.slice_dim(x, 0, n - 2, d))
    middle = ops.mul(both, literal(both, 0.5))
    near = edge_order + 1  # so many samples the slope at an end is of
    ends = [diff(ops.slice_dim(x, at, at + near, d), axis=d) for at in (0, n - near)]
    ones = ops.full(ends[0].shape, 1, x.aval.dtype)
    first, last = (_end(e, ones, d, at, edge_order) for e, at in zip(ends, (0, -1), strict=True))
    return true_divide(ops.concatenate(first, middle, last, dim=d), gap)


def _end(slopes: Any, widths: Any, d: int, at: int, edge_order: int) -> Any:
    """The slope at the first end or, where ``at`` is -1, at the last, of those between samples."""

    def part(v: Any, inwards: int) -> Any:
        place = inwards if at == 0 else v.shape[d] - 1 - inwards
        return ops.slice_dim(v, place, place + 1, d)

    outer = part(slopes, 0)
    if edge_order == 1:
        return outer
    width = part(widths, 0)
    bend = ops.div(ops.sub(outer, part(slopes, 1)), ops.add(width, part(widths, 1)))
    return ops.add(outer, ops.mul(bend, width))


def _slope_between(steps: Any, places: Any, d: int, edge_order: int) -> Any:
    """The slopes at ``places``: inside, of the parabola through a sample and its neighbours."""
    n = places.size
    widths = ops.broadcast(diff(places), shape=steps.shape, dims=(d,))
    steps, widths = promote_arrays("gradient", [steps, widths])
    slopes = ops.div(steps, widths)
    (left, right), (low, high) = (
        (ops.slice_dim(v, 0, n - 2, d), ops.slice_dim(v, 1, n - 1, d)) for v in (slopes, widths)
    )
    weighted = ops.add(ops.mul(left, high), ops.mul(right, low))
    inside = ops.div(weighted, ops.add(low, high))
    first, last = (_end(slopes, widths, d, at, edge_order) for at in (0, -1))
    return ops.concatenate(first, inside, last, dim=d)


@one_program
def trapezoid(
    y: ArrayLike, x: ArrayLike | None = None, dx: ArrayLike = 1.0, axis: int = -1
) -> Array:
    """The integral of samples ``y`` at ``x``, or at distances ``dx``, by trapezoids.

    Args:
        y: samples of the function along the axis.
        x: where they are; None: at equal distances ``dx``.
        dx: the distance of neighbours.
        axis: the axis along which it works, counted from the end if negative.

    Returns:
        Floating-point or complex numbers, without ``axis``.

    Raises:
        AxisError: there is no dimension ``axis``.

    >>> print(jnp.trapezoid(jnp.array([0.0, 1.0, 2.0])))
    2.0
    """
    given = [y] if x is None else [y, x]
    values, *places = promote_inexact("trapezoid", given)
    last = values.ndim - 1
    values = ops.move(values, dim("trapezoid", axis, values), last)
    n = values.shape[last]
    apart: Any = dx
    if not places and np.ndim(apart) == 0 and not symbolic((n,)) and n > 1:
        return multiply(subtract(sum(values, -1), _half_of_ends(values)), dx)
    later = ops.slice_dim(values, builtins.min(1, n), n, last)
    both = ops.add(later, ops.slice_dim(values, 0, builtins.max(n - 1, 0), last))
    for at in places:
        along = at if at.ndim < 2 else ops.move(at, dim("trapezoid", axis, at), at.ndim - 1)
        dx = diff(along)
    return multiply(sum(multiply(both, dx), -1), 0.5)


def _half_of_ends(values: Array) -> Array:
    """Half the first and the last value, but for infinities: their sum is infinite, and stays."""
    n, last = values.shape[-1], values.ndim - 1
    pair = (ops.slice_dim(values, i, i + 1, last) for i in (0, n - 1))
    first, final = (where(isfinite(v), v, literal(v, 0)) for v in pair)
    return multiply(sum(add(first, final), -1), 0.5)


def interp(
    x: ArrayLike,
    xp: ArrayLike,
    fp: ArrayLike,
    left: ArrayLike | Literal["extrapolate"] | None = None,
    right: ArrayLike | Literal["extrapolate"] | None = None,
    period: ArrayLike | None = None,
) -> Array:
    """The function through the points (xp, fp), straight between them, at ``x``.

    Args:
        x: where, real numbers.
        xp: the places of the points, increasing.
        fp: their values.
        left: the value before the first point; default that of the point. "extrapolate": the line
            through the first two points goes on.
        right: the value behind the last one; default that of the point. "extrapolate": the line
            through the last two points goes on.
        period: after which the function repeats; the places need not be sorted then, and ``left``
            and ``right`` are ignored.

    Returns:
        An array of the shape of ``x``.

    Raises:
        ValueError: ``xp`` and ``fp`` are not vectors of one length, or ``left`` or ``right`` is
            another string.

    >>> xp, fp = jnp.array([1.0, 2.0]), jnp.array([10.0, 20.0])
    >>> print(jnp.interp(1.5, xp, fp))
    15.0
    >>> at = jnp.array([0.0, 1.5, 4.0])
    >>> print(jnp.interp(at, xp, fp, left="extrapolate", right="extrapolate"))
    [ 0. 15. 40.]
    """
    sides = {"left": left, "right": right}
    for name, side in sides.items():
        if isinstance(side, str) and side != "extrapolate":
            raise ValueError(f"interp: {name} must be a value, None or 'extrapolate', got {side!r}")
        if not (side is None or isinstance(side, str)):
            operand(f"interp: {name}", side)
    low, high = (None if isinstance(side, str) else side for side in sides.values())
    goes_on = isinstance(left, str), isinstance(right, str)
    return _interp(x, xp, fp, low, high, period, goes_on)


@one_program
def _interp(
    x: ArrayLike,
    xp: ArrayLike,
    fp: ArrayLike,
    left: ArrayLike | None,
    right: ArrayLike | None,
    period: ArrayLike | None,
    goes_on: tuple[bool, bool],
) -> Array:
    """``interp``, where the lines at both ends go on as ``goes_on`` says."""
    values = inexact("interp", fp)
    at, places = promote_inexact("interp", [x, xp])
    if places.ndim != 1 or values.shape != places.shape or (at.size and not places.size):
        raise ValueError(
            f"interp: two vectors of one length are needed, got {places.aval} and {values.aval}"
        )
    if not at.size:
        return ops.full(at.shape, 0, lattice.result_type(at, values))
    if period is not None:
        at, places, values = _periodic(at, places, values, period)
    n = places.size
    after = searchsorted(places, at, "right")
    after = ops.clamp(literal(after, 1), after, literal(after, builtins.max(n - 1, 1)))
    before = ops.sub(after, literal(after, 1))
    # a table of slopes takes one gather, and no division, for each of many places
    table = places, values, _slopes(places, values)
    x0, y0, slope = (take(v, before, 0, mode="clip") for v in table)
    slope = where(ops.ne(at, at), literal(slope, np.nan), slope)  # NaN lies between no two points
    step = ops.sub(at, x0)
    if any(goes_on):  # a line without a slope has its value at infinity, too
        still = logical_and(isinf(at), ops.eq(slope, literal(slope, 0)))
        step = ops.select(still, literal(step, 0), step)
    inside = add(y0, multiply(step, slope))
    if period is not None:
        return inside
    ends = (goes_on[0], left, 0, ops.lt), (goes_on[1], right, n - 1, ops.gt)
    for line, side, i, beyond in ends:
        if line:
            continue  # outside, ``before`` and ``after`` are the two nearest points
        place, value = (_element(v, i, at.shape) for v in (places, values))
        inside = where(beyond(at, place), value if side is None else side, inside)
    return inside


def _slopes(x: Any, y: Any) -> Any:
    """From each point but the last to the next; 0 where two have one place, or are one point."""
    n = builtins.max(x.size - 1, 1)
    (x0, x1), (y0, y1) = ([ops.slice_dim(v, i, i + n, 0) for i in (0, x.size - n)] for v in (x, y))
    gap = ops.sub(x1, x0)
    flat = ops.eq(gap, literal(gap, 0))
    slope = true_divide(subtract(y1, y0), ops.select(flat, literal(gap, 1), gap))
    return where(flat, literal(slope, 0), slope)


def _element(v: Any, i: int, shape: tuple[int, ...]) -> Any:
    """Element ``i`` of a vector, as an array of ``shape``."""
    return ops.broadcast_to(ops.reshape(ops.slice_dim(v, i, i + 1, 0), shape=()), shape)


def _periodic(x: Any, xp: Any, values: Any, period: Any) -> tuple[Any, Any, Any]:
    """The points in one period, sorted, with the last one before and the first one behind."""
    x, xp = remainder(x, period), remainder(xp, period)
    xp, values = ops.sort(xp, values, dim=0, num_keys=1, stable=True)
    n = xp.size
    before, behind = ops.slice_dim(xp, n - 1, n, 0), ops.slice_dim(xp, 0, 1, 0)
    xp = ops.concatenate(subtract(before, period), xp, add(behind, period), dim=0)
    values = ops.concatenate(
        ops.slice_dim(values, n - 1, n, 0), values, ops.slice_dim(values, 0, 1, 0), dim=0
    )
    return x, xp, values


@one_program
def unwrap(
    p: ArrayLike,
    discont: ArrayLike | None = None,
    axis: int = -1,
    period: ArrayLike = 2 * np.pi,
) -> Array:
    """Angles along ``axis`` with periods added so that no step is longer than half of one.

    Args:
        p: angles, or other real numbers with a period.
        discont: how long a step must be to be taken for a jump; at least half of the period.
        axis: the axis along which it works, counted from the end if negative.
        period: the period, a number or an array that broadcasts with the steps.

    Returns:
        An array of the shape of ``p``.

    Raises:
        AxisError: there is no dimension ``axis``.
        TypeError: ``p`` is complex.

    >>> print(jnp.unwrap(jnp.array([0.0, 2.0, 4.0, 0.0, 2.0]), period=6.0))
    [0. 2. 4. 6. 8.]
    """
    x = as_array("unwrap", p)
    kind = lattice.result_type(x, period)
    x = convert(x, kind, x.aval.weak and dtypes.is_weak(period))
    d = dim("unwrap", axis, x)
    steps = diff(x, axis=d)
    number = is_python_scalar(period)
    whole: Any = period if number else convert(as_array("unwrap", period), kind)
    # of an odd number, one less on one side
    half: Any = whole // 2 if dtypes.is_integer(kind) else whole / 2
    wrapped = subtract(remainder(add(steps, half), whole), half)
    on_edge = logical_and(equal(wrapped, -half), equal(2 * half, whole))
    wrapped = where(logical_and(on_edge, greater(steps, 0)), half, wrapped)
    least = whole / 2 if discont is None else maximum(discont, whole / 2)
    change = where(less(abs(steps), least), 0, subtract(wrapped, steps))
    n = x.shape[d]
    one = builtins.min(n, 1)
    start, rest = ops.slice_dim(x, 0, one, d), ops.slice_dim(x, one, n, d)
    return ops.concatenate(start, add(rest, cumsum(change, d)), dim=d)


# ---- polynomials and convolution ------------------------------------------------------------


@one_program
def polyval(p: ArrayLike, x: ArrayLike, *, unroll: int | None = None) -> Array:
    """The value of a polynomial, p[0] x^(n-1) + ... + p[n-1], elementwise, by Horner's rule.

    ``unroll`` has no meaning: there is no loop.

    Args:
        p: coefficients, that of the highest power first.
        x: the points.
        unroll: has no meaning: there is no loop.

    Returns:
        An array of the shape of ``x``.

    Raises:
        ValueError: ``p`` has no dimension.

    >>> print(jnp.polyval(jnp.array([1, 0, 2]), 3))
    11
    """
    coefficients, x = promote_arrays("polyval", [p, x])
    if not coefficients.ndim:
        raise ValueError(f"polyval: coefficients must be a vector or more, got {coefficients.aval}")
    shape = common_shape("polyval", coefficients.shape[1:], x.shape)
    out: Any = ops.full(shape, 0, x.aval.dtype)
    for i in range(coefficients.shape[0]):
        c = ops.squeeze(ops.slice_dim(coefficients, i, i + 1, 0), (0,))
        out = add(multiply(out, x), c)
    return out


@one_program
def polyadd(a1: ArrayLike, a2: ArrayLike) -> Array:
    """The sum of two polynomials, as coefficients from the highest power on.

    Args:
        a1: coefficients, that of the highest power first.
        a2: those of the other.

    Returns:
        A vector of coefficients, the highest power first.

    >>> print(jnp.polyadd(jnp.array([1, 2]), jnp.array([1, 0, 0])))
    [1 1 2]
    """
    x, y = map(atleast_1d, promote_arrays("polyadd", [a1, a2]))
    n = builtins.max(x.shape[0], y.shape[0])
    x, y = (ops.pad(v, literal(v, 0), config=((n - v.shape[0], 0, 0),)) for v in (x, y))
    return ops.add(x, y)


def polymul(a1: ArrayLike, a2: ArrayLike, *, trim_leading_zeros: bool = False) -> Array:
    """The product of two polynomials, as coefficients from the highest power on.

    With ``trim_leading_zeros`` the coefficients must be known: zeros before others are dropped.

    Args:
        a1: coefficients, that of the highest power first.
        a2: those of the other.
        trim_leading_zeros: whether zeros in front are dropped.

    Returns:
        A vector of coefficients, the highest power first.

    Raises:
        ValueError: an argument is no vector.

    >>> print(jnp.polymul(jnp.array([1.0, 2.0]), jnp.array([1.0, 3.0])))
    [1. 5. 6.]
    """
    if trim_leading_zeros:
        a1, a2 = (trim_zeros(a, "f") for a in (a1, a2))
    x, y = map(_polynomial, promote_arrays("polymul", [a1, a2]))
    return convolve(x, y)


def _polynomial(x: Any) -> Any:
    """The coefficients ``x``, at least one: without any it is the polynomial 0."""
    return atleast_1d(x) if x.size else ops.full((1,), 0, x.aval.dtype)


@one_program
def convolve(
    a: ArrayLike,
    v: ArrayLike,
    mode: str = "full",
    *,
    precision: Any = None,
    preferred_element_type: Any = None,
) -> Array:
    """The discrete convolution of two vectors, out[k] = Σ a[i] v[k - i] over i.

    Args:
        a: a vector [n].
        v: a vector [m].
        mode: "full" has all overlaps, "same" as many as the longer vector, "valid" complete ones.
        precision: of the products; see ``matmul``.
        preferred_element_type: the dtype of the sums and the result; None: that of the products.

    Returns:
        A vector of length n + m - 1 ("full"), max(n, m) ("same") or max(n, m) - min(n, m) + 1
        ("valid"), floating-point or complex: of integers float32, where NumPy gives integers.

    Raises:
        ValueError: an operand is no vector, or is empty, or there is no such mode.

    >>> print(jnp.convolve(jnp.array([1.0, 2.0]), jnp.array([1.0, 3.0])))
    [1. 5. 6.]
    """
    x, kernel = _vectors("convolve", a, v)
    if x.size < kernel.size:
        x, kernel = kernel, x
    kernel = ops.reverse(kernel, dims=(0,))
    return _slid("convolve", x, kernel, mode, precision, preferred_element_type)


@one_program
def correlate(
    a: ArrayLike,
    v: ArrayLike,
    mode: str = "valid",
    *,
    precision: Any = None,
    preferred_element_type: Any = None,
) -> Array:
    """The cross-correlation of two vectors, out[k] = Σ a[i + k] conj(v[i]) over i.

    Args:
        a: a vector [n].
        v: a vector [m].
        mode: "full" has all overlaps, "same" as many as the longer vector, "valid" complete ones.
        precision: of the products; see ``matmul``.
        preferred_element_type: the dtype of the sums and the result; None: that of the products.

    Returns:
        A vector of length n + m - 1 ("full"), max(n, m) ("same") or max(n, m) - min(n, m) + 1
        ("valid"), floating-point or complex: of integers float32, where NumPy gives integers.

    Raises:
        ValueError: an operand is no vector, or is empty, or there is no such mode.

    >>> print(jnp.correlate(jnp.array([1.0, 2.0, 3.0]), jnp.array([0.0, 1.0])))
    [2. 3.]
    """
    x, kernel = _vectors("correlate", a, v)
    kernel = conj(kernel)
    if x.size >= kernel.size:
        return _slid("correlate", x, kernel, mode, precision, preferred_element_type)
    x, kernel = kernel, x
    out = _slid("correlate", x, kernel, mode, precision, preferred_element_type)
    return ops.reverse(out, dims=(0,))


def _vectors(who: str, a: Any, v: Any) -> list[Any]:
    xs = [atleast_1d(x) for x in promote_inexact(who, [a, v])]
    if any(x.ndim != 1 or not x.size for x in xs):
        listed = " and ".join(str(x.aval) for x in xs)
        raise ValueError(f"{who}: two vectors that are not empty are needed, got {listed}")
    return xs


def _slid(who: str, x: Any, kernel: Any, mode: str, precision: Any, dtype: Any) -> Any:
    """The scalar products of ``kernel`` with the windows of ``x``, which is not shorter."""
    reach = kernel.size - 1
    paddings = {
        "full": (reach, reach),
        "same": (kernel.size // 2, reach - kernel.size // 2),
        "valid": (0, 0),
    }
    if mode not in paddings:
        raise ValueError(f"{who}: mode must be 'full', 'same' or 'valid', got {mode!r}")
    out = ops.conv_general_dilated(
        ops.reshape(x, shape=(1, 1, x.size)),
        ops.reshape(kernel, shape=(1, 1, kernel.size)),
        strides=(1,),
        padding=(paddings[mode],),
        lhs_dilation=(1,),
        rhs_dilation=(1,),
        dimension_numbers=ops.ConvDimensionNumbers((0, 1, 2), (0, 1, 2), (0, 1, 2)),
        feature_group_count=1,
        batch_group_count=1,
        precision=ops.canonical_precision(who, precision),
        dtype=None if dtype is None else dtypes.requested(dtype),
    )
    return ops.reshape(out, shape=(out.size,))
