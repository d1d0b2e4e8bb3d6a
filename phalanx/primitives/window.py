"""Reductions over sliding windows: the sums and extrema of pooling, and their derivatives.

All take the lengths ``window``, ``strides``, ``padding`` as (low, high) pairs, and dilations,
one per dimension. With base dilation d there are d - 1 holes between elements of the operand,
with window dilation d between those of a window. Padding and holes hold no element.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypedDict, Unpack, cast

import numpy as np

from phalanx.base import dtypes
from phalanx.base.lengths import larger
from phalanx.core.axes import Axis
from phalanx.core.builder import Builder, Combine
from phalanx.core.correspond import ALL, Dims, Whole, alike
from phalanx.core.primitive import (
    Active,
    Batched,
    Cotangents,
    Derivative,
    Elements,
    Example,
    LaneDims,
    Linear,
    LinearizeRule,
    LowerRule,
    NoRule,
    Operands,
    Operations,
    Primitive,
    TransposeRule,
    TypeRule,
    ZeroDerivative,
)
from phalanx.core.types import ArrayType, Ints, typeof
from phalanx.primitives.basis import add, align_lanes, linear_in_first, mul, reshape
from phalanx.primitives.compare import lt, ordered
from phalanx.primitives.compare import select as chosen
from phalanx.primitives.complex import c64
from phalanx.primitives.conv import Pairs, dilated
from phalanx.primitives.domains import I32, Domain, check_domain, f32, i32, number
from phalanx.primitives.elementwise import div, rem
from phalanx.primitives.index import GatherDimensionNumbers, gather
from phalanx.primitives.length import constant_like
from phalanx.primitives.reduce import Identity, highest, lowest
from phalanx.primitives.shape import pad

# ---- geometry -------------------------------------------------------------------------------


class Windows(TypedDict):
    """Per dimension: the length of a window, the step to the next, and what lies in between."""

    window: Ints
    strides: Ints
    padding: Pairs
    base_dilation: Ints
    window_dilation: Ints


def window_type(name: str, x: ArrayType, **windows: Unpack[Windows]) -> ArrayType:
    """The type of what a reduction over windows of ``x`` gives: one element for each."""
    values: dict[str, tuple[Any, ...]] = {name: windows[name] for name in Windows.__annotations__}
    for what, value in values.items():
        if len(value) != x.ndim:
            raise ValueError(
                f"{name}: {what} must have one entry per dimension of {x}, got {value}"
            )
        if what != "padding" and any(v < 1 for v in value):
            raise ValueError(f"{name}: {what} must be positive, got {value}")
    _check_reach(name, x, windows["window"])
    shape: list[int] = []
    for n, w, s, (low, high), bd, wd in zip(x.shape, *values.values(), strict=True):
        room = dilated(n, bd) + low + high - dilated(w, wd)
        shape.append(larger(room // s + 1, 0))
    return ArrayType(tuple(shape), x.dtype, x.weak)


def _check_reach(name: str, x: ArrayType, window: Ints) -> None:
    """XLA visits each place of each window one after the other, also where no element lies."""
    if any(type(n) is not int for n in (*window, *x.shape)):
        return  # some lengths are known when it is called
    places = math.prod(window)
    if places > max(x.size, _MOST_PLACES):
        raise ValueError(
            f"{name}: a window of {window} has {places:,} places, of which {x} fills few, and XLA "
            f"visits them one by one: of those that lie in padding there may be {_MOST_PLACES:,}. "
            "A window that ends at each element and has all before it is what lax.cumsum and "
            "lax.cummax are for; one over whole dimensions is a sum or a maximum"
        )


_MOST_PLACES = 2**26


def _with_lanes(dim: int, params: dict[str, Any]) -> dict[str, Any]:
    """``params`` for an array with lanes in dimension ``dim``, which windows do not reach over."""

    def inserted(values: Operands, value: Any) -> tuple[Any, ...]:
        return (*values[:dim], value, *values[dim:])

    return {
        k: v if isinstance(v, str) else inserted(v, (0, 0) if k == "padding" else 1)
        for k, v in params.items()
    }


def _operations(each: float) -> Operations:
    """``each`` for every element of every window."""

    def rule(results: Sequence[ArrayType], *types: ArrayType, window: Ints, **_: Any) -> float:
        return each * min([t.size for t in (*results, *types)]) * math.prod(window)

    return rule


# ---- the family -----------------------------------------------------------------------------


def _window_reduction(
    name: str,
    combine: Combine,
    identity: Identity,
    *,
    on: Domain,
    linearize: LinearizeRule,
    transpose: TransposeRule | NoRule,
    doc: str,
    examples: Sequence[Example],
) -> Primitive:
    def type_rule(x: ArrayType, **params: Unpack[Windows]) -> ArrayType:
        check_domain(name, x, on)
        return window_type(name, x, **params)

    def lower(
        b: Builder,
        x: Any,
        window: Ints,
        strides: Ints,
        padding: Pairs,
        base_dilation: Ints,
        window_dilation: Ints,
    ) -> Any:
        dtype = b.outs[0].dtype
        return b.reduce_window(
            [x],
            [b.constant(identity(dtype), dtype)],
            window,
            strides,
            base_dilation,
            window_dilation,
            padding,
            lambda b, x, y: [combine(b, x, y)],
        )[0]

    def batch(axis: Axis, values: Operands, dims: LaneDims, **params: Any) -> Batched:
        return prim(values[0], **_with_lanes(dims[0], params)), dims[0]

    prim = Primitive(
        name,
        type_rule,
        lower,
        linearize=linearize,
        transpose=transpose,
        batch=batch,
        dims=alike,
        linear=ALL if callable(transpose) else (),
        elements=Elements(operations=_operations(1)),
        doc=doc,
        examples=examples,
    )
    return prim


def plain_windows(window: Ints, **changes: Any) -> dict[str, Any]:
    """The parameters of a window reduction, with what is not given as simple as it can be."""
    ones = (1,) * len(window)
    defaults = {"strides": ones, "padding": ((0, 0),) * len(window)}
    return {
        "window": window,
        **defaults,
        "base_dilation": ones,
        "window_dilation": ones,
        **changes,
    }


# ---- sums -----------------------------------------------------------------------------------


def _sum_transpose(
    ct: Any,
    x: Linear,
    *,
    window: Ints,
    strides: Ints,
    padding: Pairs,
    base_dilation: Ints,
    window_dilation: Ints,
) -> Cotangents:
    """Sums over the mirrored windows: strides become holes, and holes strides."""
    config: list[tuple[int, int, int]] = []
    geometry = zip(
        typeof(ct).shape,
        x.type.shape,
        window,
        strides,
        padding,
        base_dilation,
        window_dilation,
        strict=True,
    )
    for m, n, w, s, (low, _), bd, wd in geometry:
        before = dilated(w, wd) - 1 - low
        total = dilated(n, bd) + dilated(w, wd) - 1
        config.append((before, total - before - dilated(m, s), s - 1))
    padded = pad(ct, dtypes.scalar(0, typeof(ct).dtype), config=tuple(config))
    windows = plain_windows(window, strides=base_dilation, window_dilation=window_dilation)
    return [reduce_window_sum(padded, **windows)]


def _pooling(*shapes: ArrayType) -> list[Example]:
    overlapping = plain_windows((1, 3, 2), strides=(1, 2, 1), padding=((0, 0), (1, 1), (0, 1)))
    plain = [Example((s,), plain_windows((2,))) for s in shapes]
    dilated = plain_windows(
        (2, 3),
        strides=(2, 3),
        padding=((2, 1), (-1, 2)),
        base_dilation=(1, 2),
        window_dilation=(3, 1),
    )
    holes = plain_windows((3,), padding=((-1, 2),), base_dilation=(2,))
    drawn = [(f32(2, 5, 4), overlapping), (f32(7, 5), dilated), (f32(4), holes)]
    return [*(Example((x,), windows) for x, windows in drawn), *plain]


reduce_window_sum = _window_reduction(
    "reduce_window_sum",
    lambda b, x, y: b.add(x, y),
    lambda dtype: 0,
    on=number,
    linearize=linear_in_first(lambda: reduce_window_sum),
    transpose=_sum_transpose,
    doc="the sum in each window; stablehlo.reduce_window with add",
    examples=_pooling(i32(5), c64(4)),
)


# ---- extrema --------------------------------------------------------------------------------


def _extremum_linearize(
    prim: Callable[[], Primitive], select: str, identity: Identity
) -> LinearizeRule:
    """The tangent of an extremum is that of the first element that attains it."""

    def rule(
        active: Active,
        x: Any,
        *,
        window: Ints,
        strides: Ints,
        padding: Pairs,
        base_dilation: Ints,
        window_dilation: Ints,
    ) -> Derivative:
        out = prim()(
            x,
            window=window,
            strides=strides,
            padding=padding,
            base_dilation=base_dilation,
            window_dilation=window_dilation,
        )
        if any(d != 1 for d in window_dilation):  # which XLA's select_and_scatter lacks
            windows = plain_windows(
                window,
                strides=strides,
                padding=padding,
                base_dilation=base_dilation,
                window_dilation=window_dilation,
            )
            places = window_places(x, **windows, select=select)
            return out, lambda t: _at_places(t, places)
        holes = zip(padding, base_dilation, strict=True)
        config = tuple((low, high, d - 1) for (low, high), d in holes)
        dtype = typeof(x).dtype
        filled = pad(x, dtypes.scalar(identity(dtype), dtype), config=config)
        zero = dtypes.scalar(0, dtype)
        windows = {"window": window, "strides": strides, "select": select}

        def linear(t: Any) -> Any:
            return select_and_gather_add(pad(t, zero, config=config), filled, **windows)

        return out, linear

    return rule


reduce_window_max = _window_reduction(
    "reduce_window_max",
    lambda b, x, y: b.maximum(x, y),
    lowest,
    on=ordered,
    linearize=_extremum_linearize(lambda: reduce_window_max, "GE", lowest),
    transpose=NoRule("it is not linear"),
    doc="the greatest element in each window; stablehlo.reduce_window with maximum",
    examples=_pooling(i32(5)),
)

reduce_window_min = _window_reduction(
    "reduce_window_min",
    lambda b, x, y: b.minimum(x, y),
    highest,
    on=ordered,
    linearize=_extremum_linearize(lambda: reduce_window_min, "LE", highest),
    transpose=NoRule("it is not linear"),
    doc="the smallest element in each window; stablehlo.reduce_window with minimum",
    examples=_pooling(i32(5)),
)


def _places_type(x: ArrayType, *, select: str, **windows: Unpack[Windows]) -> ArrayType:
    check_domain("window_places", x, ordered)
    return window_type("window_places", x, **windows).update(dtype=I32, weak=False)


def _places_lower(
    b: Builder,
    x: Any,
    select: str,
    window: Ints,
    strides: Ints,
    padding: Pairs,
    base_dilation: Ints,
    window_dilation: Ints,
) -> Any:
    kind = b.ins[0]
    places = b.reshape(b.iota(I32, (kind.size,), 0), kind.shape)
    worst = (lowest if select == "GE" else highest)(kind.dtype)
    inits = [b.constant(worst, kind.dtype), b.constant(-1, I32)]

    def body(b: Builder, x: Any, place: Any, other: Any, its_place: Any) -> list[Any]:
        none = b.constant(0, I32)
        better = b.and_(b.compare(x, other, select), b.compare(place, none, "GE"))
        is_first = b.or_(better, b.compare(its_place, none, "LT"))
        return [b.select(is_first, x, other), b.select(is_first, place, its_place)]

    dilations = base_dilation, window_dilation
    return b.reduce_window([x, places], inits, window, strides, *dilations, padding, body)[1]


def _places_batch(
    axis: Axis, values: Operands, dims: LaneDims, *, select: str, **windows: Any
) -> Batched:
    """A lane's places do not count the elements of others."""
    x, dim = values[0], dims[0]
    found = window_places(x, select=select, **_with_lanes(dim, windows))
    shape = typeof(x).shape
    inner, outer = math.prod(shape[dim + 1 :]), math.prod(shape[dim:])
    # place = (before * lanes + lane) * inner + after, of which a lane's is before * inner + after
    before = div(found, constant_like(found, larger(outer, 1)))
    after = rem(found, constant_like(found, larger(inner, 1)))
    place = add(mul(before, constant_like(before, inner)), after)
    return chosen(lt(found, np.int32(0)), np.int32(-1), place), dim


window_places = Primitive(
    "window_places",
    _places_type,
    _places_lower,
    linearize=ZeroDerivative("places are integers"),
    transpose=NoRule("it is not linear"),
    batch=_places_batch,
    dims=alike,
    elements=Elements(operations=_operations(6)),
    doc="where in x each window has its extreme element, row by row, and -1 where it has none; "
    "stablehlo.reduce_window of pairs",
    examples=[
        Example((f32(5, 4),), {**plain_windows((2, 2), window_dilation=(2, 1)), "select": "GE"}),
        Example((i32(5),), {**plain_windows((2,), padding=((2, 0),)), "select": "LE"}),
    ],
)


def _at_places(t: Any, places: Any) -> Any:
    """The elements of ``t`` at ``places``, row by row; 0 where there is none."""
    rows = GatherDimensionNumbers((), (0,), (0,))
    flat = reshape(t, shape=(typeof(t).size,))
    where = reshape(places, shape=(*typeof(places).shape, 1))
    return gather(flat, where, numbers=rows, slice_sizes=(1,), mode="fill", fill=0)


# ---- to and from the elements that windows select -------------------------------------------


def _selected_type(name: str, x: ArrayType, window: Ints, strides: Ints) -> ArrayType:
    check_domain(name, x, number)
    return window_type(name, x, **plain_windows(window, strides=strides))


def _gather_type(
    t: ArrayType, x: ArrayType, *, window: Ints, strides: Ints, select: str
) -> ArrayType:
    if t.shape != x.shape:
        raise TypeError(f"select_and_gather_add: shapes of {t} and {x} must be equal")
    return _selected_type("select_and_gather_add", t, window, strides)


def _gather_lower(b: Builder, t: Any, x: Any, window: Ints, strides: Ints, select: str) -> Any:
    if not window:  # a scalar is its own window, and XLA ends the process where it selects
        return t
    worst = (lowest if select == "GE" else highest)(b.ins[1].dtype)
    inits = [b.constant(0, b.ins[0].dtype), b.constant(worst, b.ins[1].dtype)]
    ones = (1,) * len(window)

    def body(b: Builder, t: Any, x: Any, t_new: Any, x_new: Any) -> list[Any]:
        is_first = b.compare(x, x_new, select)
        return [b.select(is_first, t, t_new), b.select(is_first, x, x_new)]

    padding = [(0, 0)] * len(window)
    return b.reduce_window([t, x], inits, window, strides, ones, ones, padding, body)[0]


def _scatter_type(
    ct: ArrayType, x: ArrayType, *, window: Ints, strides: Ints, select: str
) -> ArrayType:
    expected = _selected_type("select_and_scatter_add", x, window, strides)
    if ct.shape != expected.shape or ct.dtype != x.dtype:
        raise TypeError(
            "select_and_scatter_add: the source must be one element per window, "
            f"{expected}, got {ct}"
        )
    return ArrayType(x.shape, ct.dtype, ct.weak)


def _scatter_lower(b: Builder, ct: Any, x: Any, window: Ints, strides: Ints, select: str) -> Any:
    """Along dimensions with windows it is not cut: XLA's partitioner gets what overlaps wrong."""
    if not window:
        return ct
    dims = tuple([d for d, n in enumerate(window) if n > 1])
    scattered = b.select_and_scatter(
        b.whole_along(x, dims),
        b.whole_along(ct, dims),
        b.constant(0, b.outs[0].dtype),
        window,
        strides,
        [(0, 0)] * len(window),
        lambda b, x, y: b.compare(x, y, select),
        lambda b, x, y: b.add(x, y),
    )
    return b.gathered(scattered, dims)


def _scatter_on_tpu(b: Builder, ct: Any, x: Any, window: Ints, strides: Ints, select: str) -> Any:
    """TPUs want two dimensions at least along which windows have length 1."""
    if not window:
        return ct
    more = (1,) * max(0, 2 - sum(size == 1 for size in window))
    kinds = b.type(ct), b.type(x)
    ct, x = (b.reshape(v, (*more, *t.shape)) for v, t in zip((ct, x), kinds, strict=True))
    out = _scatter_lower(b, ct, x, (*more, *window), (*more, *strides), select)
    return b.reshape(out, kinds[1].shape)


_SELECTING = Whole("windows along it select elements")


def _selecting_dims(t: ArrayType, x: ArrayType, *, window: Ints, **_: Any) -> Dims:
    labels = tuple([d if n == 1 else _SELECTING for d, n in enumerate(window)])
    return Dims((labels, labels), (labels,))


def _selecting(
    name: str,
    type: TypeRule,
    lower: LowerRule,
    transpose: Callable[[], Primitive],
    doc: str,
    example: Example,
    lower_on: Mapping[str, LowerRule] | None = None,
) -> Primitive:
    """A primitive that is linear in its first operand, at the places the second decides."""

    def transpose_rule(ct: Any, t: Any, x: Any, **params: Any) -> Cotangents:
        return [transpose()(ct, x, **params), None]

    def batch(axis: Axis, values: Operands, dims: LaneDims, **params: Any) -> Batched:
        arrays = [cast(Any, np.asarray)(v) if isinstance(v, np.generic) else v for v in values]
        aligned, dim = align_lanes(axis, arrays, dims)  # none gives way: windows are of shapes
        return prim(*aligned, **_with_lanes(dim, params)), dim

    prim = Primitive(
        name,
        type,
        lower,
        linearize=linear_in_first(lambda: prim),
        transpose=transpose_rule,
        batch=batch,
        dims=_selecting_dims,
        elements=Elements(operations=_operations(3)),
        doc=doc,
        examples=[example],
        lower_on=dict(lower_on or {}),
    )
    return prim


_WINDOWS = {"window": (2, 3), "strides": (2, 1), "select": "GE"}
_OPERAND = (np.arange(24, dtype=np.float32) * 7 % 24).reshape(4, 6)  # in no order

select_and_gather_add = _selecting(
    "select_and_gather_add",
    _gather_type,
    _gather_lower,
    lambda: select_and_scatter_add,
    "t where x is extreme in each window; stablehlo.reduce_window of pairs",
    Example((f32(4, 6), _OPERAND), _WINDOWS),
)

select_and_scatter_add = _selecting(
    "select_and_scatter_add",
    _scatter_type,
    _scatter_lower,
    lambda: select_and_gather_add,
    "zeros, plus t added where x is extreme in each window; stablehlo.select_and_scatter",
    Example((f32(2, 4), _OPERAND), _WINDOWS),
    {"tpu": _scatter_on_tpu},
)
