"""``pad``: elements before and after those of an array, in each dimension."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from phalanx import primitives as ops
from phalanx.base import dtypes
from phalanx.base.kinds import SEQUENCE, is_dict
from phalanx.base.lengths import larger, length
from phalanx.base.numpy_kinds import NDARRAY
from phalanx.control.one_program import one_program
from phalanx.core.types import Array
from phalanx.numpy.arithmetic import divmod, floor_divide
from phalanx.numpy.extrema import max as max_over
from phalanx.numpy.extrema import min as min_over
from phalanx.numpy.indexing import take
from phalanx.numpy.promotion import (
    ArrayLike,
    as_array,
    convert,
    from_host,
    is_python_scalar,
    literal,
)
from phalanx.numpy.quantiles import median as median_over
from phalanx.numpy.statistics import mean as mean_over

_I32 = np.dtype("int32")

_STATISTICS: dict[str, Callable[..., Any]] = {
    "maximum": max_over,
    "minimum": min_over,
    "mean": mean_over,
    "median": median_over,
}
_OPTIONS: dict[str, tuple[str, ...]] = {  # of each mode
    "constant": ("constant_values",),
    "empty": (),
    "edge": (),
    "wrap": (),
    "reflect": ("reflect_type",),
    "symmetric": ("reflect_type",),
    "linear_ramp": ("end_values",),
    **dict.fromkeys(_STATISTICS, ("stat_length",)),
}


def pad(
    array: ArrayLike, pad_width: Any, mode: str | Callable[..., Any] = "constant", **kwargs: Any
) -> Array:
    """``array`` with ``pad_width`` elements before and after it in each dimension.

    Args:
        array: the array.
        pad_width: a number; (before, after); or one such pair for each dimension.
        mode: what is put there. "constant": ``constant_values`` (default 0); "edge": the
            nearest element; "reflect": the array mirrored at its last element, "symmetric":
            at its edge, and with ``reflect_type`` "odd" mirrored upside down, too; "wrap":
            the array from its other end; "linear_ramp": a ramp to ``end_values``; "maximum",
            "minimum", "mean", "median": of the array along the axis, or of its ``stat_length``
            elements that are nearest; "empty": anything. Or a function of a vector padded with
            zeros, the widths of its ends, the axis and ``kwargs``, which returns the vector.
        kwargs: the options of the mode: each is a number, a pair, or a pair for each dimension.

    Returns:
        An array of the dtype of ``array``, longer in each dimension by what is padded.

    Raises:
        ValueError: a mode that does not exist, an option that is none of its own, or a mode that
            takes elements from a dimension without any.

    >>> print(jnp.pad(jnp.array([1, 2, 3]), (1, 2), mode="reflect"))
    [2 1 2 3 2 1]
    """
    x = as_array("pad", array)
    widths = _pairs(pad_width, x.ndim, "pad_width")
    if any(n < 0 for pair in widths for n in pair):
        raise ValueError(f"pad: widths must not be negative, got {pad_width}")
    if callable(mode):
        return _pad_by(mode, x, widths, kwargs)
    _check_options(mode, kwargs)
    if mode in ("constant", "empty"):
        return _pad_constant(x, widths, kwargs.get("constant_values", 0))
    return _pad_along(x, tuple(widths), mode, **kwargs)


@one_program
def _pad_along(x: Any, widths: Sequence[tuple[int, int]], mode: str, **options: Any) -> Any:
    along = _padding_along(mode, x, options)
    for d, width in enumerate(widths):
        if any(width):
            if x.shape[d] == 0:
                raise ValueError(
                    f"pad: dimension {d} of {x.aval} is empty, and mode {mode!r} needs an "
                    "element; 'constant' does not"
                )
            x = along(x, d, width)
    return x


def _check_options(mode: str, options: dict[str, Any]) -> None:
    if mode not in _OPTIONS:
        raise ValueError(f"pad: mode must be one of {', '.join(_OPTIONS)}, got {mode!r}")
    others = set(options).difference(_OPTIONS[mode])
    if others:
        known = ", ".join(_OPTIONS[mode]) or "none"
        raise ValueError(
            f"pad: unsupported keyword arguments for mode {mode!r}: {', '.join(sorted(others))}; "
            f"it has {known}"
        )


def _padding_along(mode: str, x: Any, options: dict[str, Any]) -> Callable[..., Any]:
    """What pads along one dimension: a function of the array, the dimension and two widths."""
    if mode == "linear_ramp":
        ends = _pairs(options.get("end_values", 0), x.ndim, "end_values", number=True)

        def along(x: Any, d: int, width: Any) -> Any:
            return _pad_ramp(x, d, width, ends[d])

        return along
    if mode in _STATISTICS:
        lengths = options.get("stat_length")
        near = [(n, n) for n in x.shape]
        if lengths is not None:
            near = _pairs(lengths, x.ndim, "stat_length")
            if any(n < 1 for pair in near for n in pair):
                raise ValueError(f"pad: stat_length must be positive, got {near}")

        def near_by(x: Any, d: int, width: Any) -> Any:
            return _pad_statistic(x, d, width, _STATISTICS[mode], near[d])

        return near_by
    kind = options.get("reflect_type", "even")
    if kind not in ("even", "odd"):
        raise ValueError(f"pad: reflect_type must be 'even' or 'odd', got {kind!r}")
    if kind == "odd":
        return functools.partial(_pad_odd, skipped=int(mode == "reflect"))
    return functools.partial(_pad_by_index, mode=mode)


def _pad_by(function: Callable[..., Any], x: Any, widths: Any, options: dict[str, Any]) -> Any:
    out = _pad_constant(x, widths, 0)
    for d, width in enumerate(widths):
        lines = ops.move(out, d, out.ndim - 1)
        rows = ops.reshape(lines, shape=(math.prod(lines.shape[:-1]), lines.shape[-1]))
        every = [
            function(ops.squeeze(ops.slice_dim(rows, i, i + 1, 0), (0,)), width, d, options)
            for i in range(rows.shape[0])
        ]
        rows = ops.stack([convert(as_array("pad", v), x.aval.dtype) for v in every], 0)
        out = ops.move(ops.reshape(rows, shape=lines.shape), out.ndim - 1, d)
    return out


_FEW = 16  # parts that are written down; of more, the elements are looked up


def _pad_by_index(x: Any, d: int, width: tuple[int, int], mode: str) -> Any:
    n = x.shape[d]
    if not all(isinstance(m, int) for m in (n, *width)):
        return take(x, _mirrored(n, width, mode), d, mode="clip")
    pad_places: Any = np.pad  # whose types know no mode that is a variable
    places: list[int] = pad_places(np.arange(n), width, mode).tolist()
    start, stop = _runs(places[: width[0]]), _runs(places[width[0] + n :])
    if len(start) + len(stop) > _FEW:
        return take(x, from_host(np.array(places, np.int32)), d, mode="clip")
    parts = [*(_run(x, at, d) for at in start), x, *(_run(x, at, d) for at in stop)]
    return ops.concatenate(*parts, dim=d) if len(parts) > 1 else x


def _runs(places: list[int]) -> list[list[int]]:
    """``places`` cut into parts of neighbours in order, neighbours in reverse, and equal ones."""
    runs: list[list[int]] = []
    for place in places:
        run = runs[-1] if runs else [place - 2]
        step = place - run[-1]
        if abs(step) <= 1 and step == (run[1] - run[0] if len(run) > 1 else step):
            run.append(place)
        else:
            runs.append([place])
    return runs


def _run(x: Any, places: list[int], d: int) -> Any:
    first, last = places[0], places[-1]
    part = ops.slice_dim(x, min(first, last), max(first, last) + 1, d)
    if part.shape[d] < len(places):  # all of them are one
        return ops.broadcast_to(part, (*x.shape[:d], len(places), *x.shape[d + 1 :]))
    return ops.reverse(part, dims=(d,)) if last < first else part


def _mirrored(n: Any, width: tuple[Any, Any], mode: str) -> Any:
    """The place of each element of a padded dimension of symbolic length ``n``."""
    before, after = width
    places = ops.iota(dtype=_I32, shape=(before + n + after,), dim=0)
    places = ops.sub(places, ops.constant_like(places, before))
    if mode == "edge":
        return places  # which is limited to those that there are
    period = {"wrap": n, "symmetric": 2 * n, "reflect": larger(2 * n - 2, 1)}[mode]
    count = ops.constant_like(places, period)
    places = ops.rem(ops.add(ops.rem(places, count), count), count)
    if mode == "wrap":
        return places
    last = ops.constant_like(places, 2 * n - 1 if mode == "symmetric" else 2 * n - 2)
    return ops.min(places, ops.sub(last, places))


def _pad_odd(x: Any, d: int, width: tuple[int, int], skipped: int) -> Any:
    """``x`` turned about its ends, which are not repeated if they are ``skipped``."""
    before, after = width
    while before or after:
        n = x.shape[d]
        most = n - skipped
        if not most:
            return _pad_by_index(x, d, (before, after), "edge")
        low, high = min(before, most), min(after, most)
        first, last = ops.slice_dim(x, 0, 1, d), ops.slice_dim(x, n - 1, n, d)
        start = ops.reverse(ops.slice_dim(x, skipped, skipped + low, d), dims=(d,))
        stop = ops.reverse(ops.slice_dim(x, most - high, most, d), dims=(d,))
        parts = [_turned_about(start, first), x, _turned_about(stop, last)]
        x = ops.concatenate(*[p for p in parts if p.shape[d]], dim=d)
        before, after = before - low, after - high
    return x


def _turned_about(x: Any, end: Any) -> Any:
    end = ops.broadcast_to(end, x.shape)
    return ops.sub(ops.add(end, end), x)


def _pairs(value: Any, ndim: int, what: str, number: bool = False) -> list[tuple[Any, Any]]:
    """One pair for each dimension, of what NumPy allows to be shortened."""
    if is_dict(value):
        by_dim = {ops.dimension("pad", d, ndim): p for d, p in value.items()}
        return [_pairs(by_dim.get(d, 0), 1, what, number)[0] for d in range(ndim)]
    if isinstance(value, (Array, NDARRAY)):
        value = _listed(value) if number else np.asarray(value).tolist()
    if not isinstance(value, SEQUENCE):
        return [(_entry(value, number),) * 2] * ndim
    if len(value) == 1:
        return _pairs(value[0], ndim, what, number)
    nested = [isinstance(v, SEQUENCE) for v in value]
    if len(value) == 2 and not any(nested):
        return [(_entry(value[0], number), _entry(value[1], number))] * ndim
    if len(value) == ndim and all(nested):
        return [_pairs(v, 1, what, number)[0] for v in value]
    raise ValueError(
        f"pad: {what} must be a number, a pair, or a pair for each of {ndim} dimensions, "
        f"got {value}"
    )


def _listed(values: Any) -> Any:
    return [_listed(v) for v in values] if values.ndim else values


def _entry(value: Any, number: bool) -> Any:
    return value if number else length(value)


def _pad_constant(x: Any, widths: list[tuple[int, int]], values: Any) -> Any:
    fills = _pairs(values, x.ndim, "constant_values", number=True)
    first = fills[0][0] if fills else 0
    if all(v is first for pair in fills for v in pair) or (
        is_python_scalar(first) and all(v == first for pair in fills for v in pair)
    ):
        config = tuple((low, high, 0) for low, high in widths)
        return ops.pad(x, _fill(x, first), config=config)
    for d, ((low, high), (before, after)) in enumerate(zip(widths, fills, strict=True)):
        sides = [(low, 0, before), (0, high, after)]
        for a, b, value in sides:
            config = tuple((a, b, 0) if i == d else (0, 0, 0) for i in range(x.ndim))
            x = ops.pad(x, _fill(x, value), config=config)
    return x


def _fill(x: Any, value: Any) -> Any:
    if isinstance(value, (Array, np.ndarray)):
        return convert(as_array("pad", value), x.aval.dtype)
    if isinstance(value, (float, complex)) and not dtypes.is_inexact(x.aval.dtype):
        value = int(complex(value).real)
    return literal(x, value)


def _pad_ramp(x: Any, d: int, width: tuple[int, int], ends: tuple[Any, Any]) -> Any:
    n, parts = x.shape[d], [x]
    for side, (count, end) in enumerate(zip(width, ends, strict=True)):
        if not count:
            continue
        edge = ops.slice_dim(x, 0, 1, d) if side == 0 else ops.slice_dim(x, n - 1, n, d)
        ramp = _ramp(as_array("pad", end), edge, count, d)
        if side:
            ramp = ops.reverse(ramp, dims=(d,))
        ramp = convert(ramp, x.aval.dtype, x.aval.weak)
        parts = [ramp, *parts] if side == 0 else [*parts, ramp]
    return ops.concatenate(*parts, dim=d) if len(parts) > 1 else x


def _ramp(first: Any, last: Any, count: int, d: int) -> Any:
    """``count`` elements from ``first`` on, of which the next is ``last``; integers are floored."""
    dtype = last.aval.dtype
    shape = tuple(count if i == d else m for i, m in enumerate(last.shape))
    integers = dtypes.is_integer(dtype) and dtypes.is_integer(first.aval.dtype)
    exact = integers and count < 2**15  # whose square has 32 bits
    whole = dtype if dtype.itemsize >= 4 else _I32
    inner = whole if exact else dtypes.to_inexact(dtype)
    first, last = (ops.broadcast_to(convert(v, inner), shape) for v in (first, last))
    step = ops.iota(dtype=inner, shape=shape, dim=d)
    if exact:
        return _integer_ramp(first, last, step, ops.constant_like(step, count))
    step = ops.div(step, dtypes.scalar(count, inner))  # 0, 1/count, ...: ``last`` is at 1
    ramp = ops.add(first, ops.mul(ops.sub(last, first), step))
    return ops.floor(ramp) if dtypes.is_integer(dtype) else ramp


def _integer_ramp(first: Any, last: Any, step: Any, count: Any) -> Any:
    """The floor of (first (count - step) + last step) / count, whose numerator may overflow."""
    rest = ops.sub(count, step)
    (a, b), (c, d) = divmod(first, count), divmod(last, count)
    parts = ops.add(ops.mul(b, rest), ops.mul(d, step))
    return ops.add(ops.add(ops.mul(a, rest), ops.mul(c, step)), floor_divide(parts, count))


def _pad_statistic(
    x: Any, d: int, width: tuple[int, int], reduce: Callable[..., Any], near: tuple[int, int]
) -> Any:
    n = x.shape[d]
    parts: list[Any] = []
    for count, (start, stop) in zip(width, ((0, near[0]), (n - near[1], n)), strict=True):
        value = reduce(ops.slice_dim(x, max(start, 0), min(stop, n), d), axis=d, keepdims=True)
        if dtypes.is_integer(x.aval.dtype) and not dtypes.is_integer(value.aval.dtype):
            value = ops.round(value, mode="even")
        value = convert(value, x.aval.dtype, x.aval.weak)
        shape = tuple(count if i == d else m for i, m in enumerate(x.shape))
        parts.append(ops.broadcast_to(value, shape))
    return ops.concatenate(parts[0], x, parts[1], dim=d)
