"""The words that transformations themselves speak, and the families that state shared rules.

A transformation of a program writes new equations: it adds cotangents, multiplies tangents
by derivatives, moves and repeats lanes. What it needs for that stands here; every other
operation is declared in a module of its own, through the families of this one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any, Concatenate, Literal, Unpack

import numpy as np

from phalanx.base import dtypes, lattice
from phalanx.base.errors import DtypeError, ShapeError
from phalanx.base.extended import ADVICE, WORD, KeyType, is_key, key_type
from phalanx.base.lengths import beside_arrays, filled
from phalanx.base.recent import memoized
from phalanx.core.axes import Axis
from phalanx.core.builder import Body, Builder, Value
from phalanx.core.correspond import (
    ALL,
    Dims,
    Joined,
    LeftSums,
    LinearIn,
    Taken,
    Whole,
    alike,
    alike_but,
)
from phalanx.core.primitive import (
    OPEN,
    SUMMED,
    ZERO,
    Active,
    Batched,
    Cotangents,
    CotangentSharding,
    Derivative,
    DimsRule,
    Elements,
    Example,
    LaneDims,
    Linear,
    NoRule,
    Of,
    Operands,
    Operations,
    Primitive,
    Rule,
    TransposeRule,
    ZeroDerivative,
)
from phalanx.core.types import SCALARS, Array, ArrayType, Ints, Shape, typeof
from phalanx.primitives.domains import (
    BOOL,
    F32,
    I32,
    Domain,
    check_domain,
    common_type,
    f32,
    i32,
    number,
    number_or_bool,
)
from phalanx.primitives.resharding import unstretched, zeros_as

TYPES = 1024  # of each primitive: results of its type rule that are kept


# ---- the pointwise family: one result element from the operands' elements beside it ---------

Partials = Sequence[Of[Any] | None] | str


def fit_scalars(args: Operands) -> Operands:
    """Python scalars among elementwise operands take the dtype of the others."""
    for a in args:
        if not isinstance(a, (Array, np.generic)):
            return _fit_scalars(args)
    return args


def _fit_scalars(args: Operands) -> Operands:
    args = beside_arrays(args)
    python = [isinstance(a, SCALARS) and not isinstance(a, np.generic) for a in args]
    array_dtypes = [typeof(a).dtype for a, p in zip(args, python, strict=True) if not p]
    dtype = (
        array_dtypes[0]
        if array_dtypes
        else lattice.common(*((typeof(a).dtype, True) for a in args))[0]
    )
    return tuple(dtypes.scalar(a, dtype) if p else a for a, p in zip(args, python, strict=True))


def pointwise_lowering(lower: Body) -> Rule:
    """``lower``, with rank-0 operands repeated to the shape of the others."""

    def rule(b: Builder, *xs: Any, **params: Any) -> Any:
        shape = b.outs[0].shape
        if shape and len(xs) > 1:
            xs = tuple(
                [
                    x if t.shape else b.broadcast_in_dim(x, shape, ())
                    for x, t in zip(xs, b.ins, strict=True)
                ]
            )
        return lower(b, *xs, **params)

    return rule


def align_lanes(axis: Axis, values: Sequence[Any], dims: LaneDims) -> tuple[list[Any], int]:
    """``values`` of equal lane shape with their lanes in one dimension; scalars as they are."""
    dim = next(d for d in dims if d is not None)
    aligned: list[Any] = []
    for v, d in zip(values, dims, strict=True):
        if d is None and not isinstance(v, np.generic):
            v = broadcast_lanes(v, dim, axis.size)
        elif d is not None and d != dim:
            v = move(v, d, dim)
        aligned.append(v)
    return aligned, dim


def batch_pointwise(prim: Callable[[], Primitive]) -> Rule:
    """The batching rule of an elementwise primitive."""

    def rule(axis: Axis, values: Operands, dims: LaneDims, **params: Any) -> tuple[Any, int]:
        if len(values) == 1:
            return prim()(values[0], **params), dims[0]
        aligned, dim = align_lanes(axis, values, dims)
        return prim()(*aligned, **params), dim

    return rule


def add_tangents(*terms: Any) -> Any:
    """The sum of tangents, any of which may be ``ZERO``.

    Args:
        terms: tangents, ``ZERO`` among them.

    Returns:
        An array, or ``ZERO``.

    >>> from phalanx import primitives
    >>> print(primitives.add_tangents(jnp.ones(2), primitives.ZERO, jnp.ones(2)))
    [2. 2.]
    """
    total: Any = ZERO
    for t in terms:
        total = t if total is ZERO else total if t is ZERO else add(total, t)
    return total


def pointwise(
    name: str,
    lower: Body,
    *,
    lower_on: Mapping[str, Body] | None = None,
    on: Domain = number_or_bool,
    result: np.dtype | Callable[[np.dtype], np.dtype] | None = None,
    partials: Partials = (),
    linearize: Of[Derivative] | None = None,
    transpose: Of[Cotangents] | NoRule | None = None,
    linear: LinearIn | None = None,
    copied: bool = False,
    operations: Operations = 1,
    short: Literal["bits"] | None = None,
    params: type[Any] | None = None,
    doc: str,
    examples: Sequence[Example] = (),
) -> Primitive:
    """Declare an elementwise primitive.

    Args:
        name: its name.
        lower: ``(b, *values, **params)`` to a value.
        lower_on: how it is lowered on some platforms.
        on: the dtypes it takes.
        result: the result's dtype, or a function of the operands' dtype; default the same.
        partials: per operand ``(out, *operands, **params)`` to the partial derivative, or
            None where it is zero; a string says why all are zero.
        linearize: ``(active, *primals, **params)`` to the result and a linear function, in
            place of ``partials``.
        transpose: for the linear ones.
        linear: the operands in which it is linear; by default all together, if it can be
            transposed.
        copied: whether each number of the result is one of the operands'.
        operations: how many of arithmetic an element takes.
        short: ``"bits"`` where it is another function for each number of bits.
        params: a TypedDict of the parameters, if there are any.
        doc: the mathematics and the source, in a line.
        examples: for the tests.

    Returns:
        A ``Primitive``, to be called with arrays.
    """

    @memoized(TYPES)
    def type_rule(*types: ArrayType, **params: Any) -> ArrayType:
        common = common_type(name, types)
        check_domain(name, common, on)
        if result is None:
            return common
        dtype = result(common.dtype) if callable(result) else result
        return ArrayType(common.shape, dtype, common.weak and dtype != BOOL)

    prim = Primitive(
        name,
        type_rule,
        pointwise_lowering(lower),
        lower_on={name: pointwise_lowering(body) for name, body in (lower_on or {}).items()},
        linearize=linearize or _from_partials(lambda: prim, partials),
        transpose=transpose if transpose is not None else NoRule("it is not linear"),
        batch=batch_pointwise(lambda: prim),
        dims=alike,
        linear=(ALL if callable(transpose) else ()) if linear is None else linear,
        prepare=fit_scalars,
        params=params,
        elements=Elements(copied=copied, fused=True, operations=operations, short=short),
        doc=doc,
        examples=examples,
    )
    return prim


def _from_partials(prim: Callable[[], Primitive], partials: Partials) -> Rule | ZeroDerivative:
    if isinstance(partials, str):
        return ZeroDerivative(partials)

    def rule(active: Active, *primals: Any, **params: Any) -> Derivative:
        out = prim()(*primals, **params)
        factors = [
            p(out, *primals, **params) if a and p is not None else None
            for a, p in zip(active, partials, strict=True)
        ]
        return out, _Scaling(factors)

    return rule


class _Scaling:
    """The sum of tangents times factors; None for a factor where there is nothing to add."""

    __slots__ = ("factors",)

    def __init__(self, factors: Sequence[Any]) -> None:
        self.factors = factors

    def __call__(self, *tangents: Any) -> Any:
        pairs = zip(tangents, self.factors, strict=True)
        return add_tangents(*[ZERO if f is None else mul(t, f) for t, f in pairs])


# ---- the structural family: linear in one operand, elements only move -----------------------


def linear_in_first(prim: Callable[[], Primitive]) -> Rule:
    """The linearize rule of a primitive that is linear in its first operand alone."""

    def rule(active: Active, x: Any, *rest: Any, **params: Any) -> Derivative:
        def linear(t: Any, *_: Any) -> Any:
            return ZERO if t is ZERO else prim()(t, *rest, **params)

        return prim()(x, *rest, **params), linear

    return rule


def _transpose_one(rule: Rule) -> TransposeRule:
    def transpose(ct: Any, x: Linear, **params: Any) -> Cotangents:
        return [rule(ct, x.type, **params)]

    return transpose


def structural(
    name: str,
    type: Of[ArrayType],
    lower: Body,
    *,
    transpose: Of[Any],
    batch: Callable[Concatenate[Axis, Any, int, ...], Batched],
    dims: DimsRule,
    lower_on: Mapping[str, Body] | None = None,
    fused: bool = True,
    leaves_sums: bool = False,
    cotangent: CotangentSharding | None = None,
    operations: Operations | None = None,
    doc: str,
    examples: Sequence[Example] = (),
) -> Primitive:
    """Declare a primitive of one array operand, linear in it, whose tangent it moves likewise.

    ``transpose`` maps ``(ct, type of the operand, **params)`` to its cotangent; ``batch``
    maps ``(axis, value, dim, **params)`` to the result and the dimension of its lanes.
    Without ``fused`` an element of the result may take many elements of the operand, as a sum does.

    Args:
        name: what it is called in programs.
        type: the type of the result, from that of the operand and the parameters.
        lower: how it is lowered.
        transpose: the cotangent of the operand, from that of the result.
        batch: what it does of lanes.
        dims: which dimensions of operand and result correspond.
        lower_on: how it is lowered on some platforms.
        fused: whether an element of the result takes one element of the operand.
        leaves_sums: whether it can be told to leave sums over devices to be taken.
        cotangent: how the cotangent lies for ``transpose``, as ``Primitive`` has it.
        operations: how many of arithmetic an element takes.
        doc: a line about it.
        examples: what tests try it on.

    Returns:
        A ``Primitive``, to be called with arrays.
    """

    def batch_rule(axis: Axis, values: Operands, dims: LaneDims, /, **params: Any) -> Batched:
        return batch(axis, values[0], dims[0], **params)

    prim = Primitive(
        name,
        memoized(TYPES)(type),
        lower,
        lower_on=lower_on or {},
        linearize=linear_in_first(lambda: prim),
        transpose=_transpose_one(transpose),
        batch=batch_rule,
        dims=dims,
        linear=ALL,
        leaves_sums=leaves_sums,
        cotangent=cotangent,
        elements=Elements(copied=fused, fused=fused, operations=operations),
        doc=doc,
        examples=examples,
    )
    return prim


# ---- arithmetic -----------------------------------------------------------------------------


def _mul_transpose(ct: Any, x: Any, y: Any) -> Cotangents:
    if isinstance(x, Linear) and isinstance(y, Linear):
        return [None, None]
    return [mul(ct, y), None] if isinstance(x, Linear) else [None, mul(x, ct)]


def _mul_linearize(active: Active, x: Any, y: Any) -> Derivative:
    def linear(tx: Any, ty: Any) -> Any:
        return add_tangents(ZERO if tx is ZERO else mul(tx, y), ZERO if ty is ZERO else mul(x, ty))

    return mul(x, y), linear


add = pointwise(
    "add",
    lambda b, x, y: b.add(x, y),
    linearize=lambda active, x, y: (add(x, y), add_tangents),
    transpose=lambda ct, x, y: [ct if isinstance(o, Linear) else None for o in (x, y)],
    operations=(1, 2),
    doc="x + y; stablehlo.add",
    examples=[Example((f32(2, 3), f32(2, 3))), Example((i32(3), i32(3)))],
)

sub = pointwise(
    "sub",
    lambda b, x, y: b.subtract(x, y),
    on=number,
    linearize=lambda active, x, y: (
        sub(x, y),
        lambda tx, ty: add_tangents(tx, ZERO if ty is ZERO else neg(ty)),
    ),
    transpose=lambda ct, x, y: [
        ct if isinstance(x, Linear) else None,
        neg(ct) if isinstance(y, Linear) else None,
    ],
    operations=(1, 2),
    doc="x - y; stablehlo.subtract",
    examples=[Example((f32(2, 3), f32(2, 3))), Example((i32(3), i32(3)))],
)

mul = pointwise(
    "mul",
    lambda b, x, y: b.multiply(x, y),
    linearize=_mul_linearize,
    transpose=_mul_transpose,
    linear=((0,), (1,)),
    operations=(1, 6),
    doc="x y; stablehlo.multiply",
    examples=[Example((f32(2, 3), f32(2, 3))), Example((i32(3), i32(3)))],
)

neg = pointwise(
    "neg",
    lambda b, x: b.negate(x),
    on=number,
    linearize=lambda active, x: (neg(x), neg),
    transpose=lambda ct, x: [neg(ct)],
    copied=True,
    doc="-x; stablehlo.negate",
    examples=[Example((f32(2, 3),)), Example((i32(3),))],
)


# ---- moving and repeating elements ----------------------------------------------------------


def check_lengths(name: str, shape: Shape) -> None:
    """Raise ValueError unless arrays can have this shape."""
    if any([n < 0 for n in shape]):
        raise ValueError(f"{name}: the lengths in a shape must not be negative, got {shape}")


def _broadcast_type(x: ArrayType, shape: Shape, dims: Ints) -> ArrayType:
    check_lengths("broadcast", shape)
    fits = len(dims) == x.ndim and all(
        0 <= d < len(shape) and s in (1, shape[d]) for s, d in zip(x.shape, dims, strict=True)
    )
    if not fits or any(a >= b for a, b in pairwise(dims)):
        raise ValueError(
            f"broadcast: an array {x} cannot fill shape {shape} with its dimensions at {dims}; "
            "each must have length 1 or the length there, in increasing order"
        )
    return ArrayType(shape, x.dtype, x.weak)


def _broadcast_transpose(ct: Any, x: ArrayType, shape: Shape, dims: Ints) -> Any:
    stretched = [d for s, d in zip(x.shape, dims, strict=True) if s == 1 and shape[d] != 1]
    summed = tuple(d for d in range(len(shape)) if d not in dims or d in stretched)
    out = reduce_sum(ct, dims=summed) if summed else ct
    return reshape(out, shape=x.shape) if stretched else out


def _broadcast_batch(axis: Axis, x: Any, dim: int, shape: Shape, dims: Ints) -> Batched:
    lanes = typeof(x).shape[dim]
    if dim == len(dims):  # lanes that come last stay last, where moving them would cost a copy
        return broadcast(x, shape=(*shape, lanes), dims=(*dims, len(shape))), len(shape)
    x = move(x, dim, 0)
    return broadcast(x, shape=(lanes, *shape), dims=(0, *(d + 1 for d in dims))), 0


def _broadcast_dims(x: ArrayType, shape: Shape, dims: Ints) -> Dims:
    return Dims((dims,), (tuple(range(len(shape))),))


broadcast = structural(
    "broadcast",
    _broadcast_type,
    lambda b, x, shape, dims: b.broadcast_in_dim(*unstretched(b, x, shape, dims)),
    transpose=_broadcast_transpose,
    batch=_broadcast_batch,
    dims=_broadcast_dims,
    cotangent=SUMMED,
    doc="out[..., i_d, ...] = x[i_dims]; stablehlo.broadcast_in_dim",
    examples=[
        Example((f32(3),), {"shape": (2, 3), "dims": (1,)}),
        Example((f32(1, 3),), {"shape": (2, 4, 3), "dims": (1, 2)}),
    ],
)


def _transpose_type(x: ArrayType, perm: Ints) -> ArrayType:
    if sorted(perm) != list(range(x.ndim)):
        raise ValueError(f"transpose: {perm} is not a permutation of the dimensions of {x}")
    return ArrayType(tuple(x.shape[i] for i in perm), x.dtype, x.weak)


def _inverse(perm: Sequence[int]) -> tuple[int, ...]:
    return tuple(sorted(range(len(perm)), key=lambda i: perm[i]))


def _transpose_batch(axis: Axis, x: Any, dim: int, perm: Ints) -> Batched:
    if dim == len(perm):
        return transpose(x, perm=(*perm, dim)), dim
    shifted = tuple(i + (i >= dim) for i in perm)
    return transpose(x, perm=(dim, *shifted)), 0


def _transpose_dims(x: ArrayType, perm: Ints) -> Dims:
    return Dims((tuple(range(x.ndim)),), (perm,))


transpose = structural(
    "transpose",
    _transpose_type,
    lambda b, x, perm: b.transpose(x, perm),
    transpose=lambda ct, x, perm: transpose(ct, perm=_inverse(perm)),
    batch=_transpose_batch,
    dims=_transpose_dims,
    doc="out[i_perm] = x[i]; stablehlo.transpose",
    examples=[Example((f32(2, 3, 4),), {"perm": (2, 0, 1)})],
)


def move(x: Any, source: int, target: int) -> Any:
    """``x`` with dimension ``source`` at position ``target``, the others in order.

    Args:
        x: an array.
        source: a dimension.
        target: where it goes.

    Returns:
        An array of the dtype of ``x``.

    >>> from phalanx import primitives
    >>> primitives.move(jnp.ones((2, 3, 4)), 0, 2).shape
    (3, 4, 2)
    """
    if source == target:
        return x
    perm = [i for i in range(typeof(x).ndim) if i != source]
    perm.insert(target, source)
    return transpose(x, perm=tuple(perm))


def broadcast_lanes(x: Any, dim: int, size: int) -> Any:
    """``x`` repeated ``size`` times along a new dimension ``dim``.

    Args:
        x: an array without lanes.
        dim: where the dimension of the lanes is to be.
        size: how many lanes.

    Returns:
        An array with one dimension more.

    >>> from phalanx import primitives
    >>> primitives.broadcast_lanes(jnp.ones(3), 0, 2).shape
    (2, 3)
    """
    shape = typeof(x).shape
    dims = tuple(i + (i >= dim) for i in range(len(shape)))
    return broadcast(x, shape=(*shape[:dim], size, *shape[dim:]), dims=dims)


def _reshape_type(x: ArrayType, shape: Shape) -> ArrayType:
    out = ArrayType(shape, x.dtype, x.weak)
    if out.size != x.size:
        raise ShapeError(
            f"reshape: an array {x} has {x.size} elements, but shape {shape} needs {out.size}"
        )
    return out


def _reshape_batch(axis: Axis, x: Any, dim: int, shape: Shape) -> Batched:
    lanes = typeof(x).shape[dim]
    if dim == typeof(x).ndim - 1:
        return reshape(x, shape=(*shape, lanes)), len(shape)
    return reshape(move(x, dim, 0), shape=(lanes, *shape)), 0


def _reshape_dims(x: ArrayType, shape: Shape) -> Dims:
    """Dimensions of equal elements row by row: one that is taken apart goes on as those of its
    parts that its axes cut whole, from the first on, those that are joined as what they make. What
    is of length 1, which axes of size 1 may cut, is left out, or goes on where it is."""
    why = "it is not clear where the parts lie of what is taken apart and joined otherwise"
    operand: list[Any] = [Whole(why) if n != 1 else ("left out", d) for d, n in enumerate(x.shape)]
    result: list[Any] = [None] * len(shape)
    stays = x.shape == shape or _but_ones(x.shape) != _but_ones(shape)
    for before, after in same_elements(x.shape, shape):
        sources = [d for d in before if x.shape[d] != 1]
        targets = [d for d in after if shape[d] != 1]
        if len(sources) == 1 and targets:
            operand[sources[0]] = sources[0]
            for d, label in zip(
                targets, _split_factors(x, sources[0], shape, targets), strict=True
            ):
                result[d] = label
        elif len(targets) == 1 and sources and x.layout[sources[0]]:
            for d in sources:
                operand[d] = d
            result[targets[0]] = Joined(tuple(sources))
    for d, lengths in enumerate(zip(x.shape, shape, strict=False)):
        if stays and lengths == (1, 1):
            operand[d] = result[d] = d
    return Dims((tuple(operand),), (tuple(result),))


def _but_ones(shape: Shape) -> list[int]:
    return [n for n in shape if n != 1]


def _split_factors(x: ArrayType, dim: int, shape: Shape, targets: Sequence[int]) -> list[Any]:
    """The labels of ``targets``, dimensions of ``shape`` that dimension ``dim`` of ``x`` becomes.

    An axis goes to the first of them that those before it do not cut into single elements.
    """
    names = x.layout[dim] if x.spec is not None else ()
    sizes: Any = x.spec.mesh.shape if x.spec is not None and x.spec.mesh is not None else {}
    last = [0] * len(targets)
    at, room = 0, shape[targets[0]]
    for n, name in enumerate(names):
        if room == 1 and at + 1 < len(targets):
            at, room = at + 1, shape[targets[at + 1]]
        last[at:] = [n + 1] * (len(targets) - at)
        room //= sizes[name]
    if last[0] == len(names):
        return [dim] + [None] * (len(targets) - 1)
    pairs = zip([0, *last], last, strict=False)
    return [Taken(dim, first, until) if first < until else None for first, until in pairs]


def same_elements(shape: Shape, other: Shape) -> list[tuple[list[int], list[int]]]:
    """The dimensions of ``shape`` and those of ``other`` that have the same elements, row by row,
    as few at a time as can be.

    >>> same_elements((2, 6, 5), (4, 3, 5))
    [([0, 1], [0, 1]), ([2], [2])]
    """
    if 0 in shape:  # there are none
        return [([*range(len(shape))], [*range(len(other))])]
    groups: list[tuple[list[int], list[int]]] = []
    i = j = 0
    while i < len(shape) or j < len(other):
        before: list[int] = []
        after: list[int] = []
        product = other_product = 1
        while (not before and not after) or product != other_product:
            if (product <= other_product and i < len(shape)) or j == len(other):
                before.append(i)
                product, i = product * shape[i], i + 1
            else:
                after.append(j)
                other_product, j = other_product * other[j], j + 1
        groups.append((before, after))
    return groups


reshape = structural(
    "reshape",
    _reshape_type,
    lambda b, x, shape: b.reshape(x, shape),
    transpose=lambda ct, x, shape: reshape(ct, shape=x.shape),
    batch=_reshape_batch,
    dims=_reshape_dims,
    cotangent=OPEN,  # what is joined may not be taken apart again
    doc="the elements of x in row-major order, in another shape; stablehlo.reshape",
    examples=[Example((f32(2, 6),), {"shape": (3, 4)})],
)


def reduced_type(name: str, x: ArrayType, dims: Ints) -> ArrayType:
    """The type of ``x`` without the dimensions ``dims``."""
    if any(not 0 <= d < x.ndim for d in dims) or len(set(dims)) != len(dims):
        raise ValueError(f"{name}: {dims} are not distinct dimensions of an array {x}")
    shape = tuple(s for i, s in enumerate(x.shape) if i not in dims)
    return ArrayType(shape, x.dtype, x.weak)


def reduced_dims(x: ArrayType, dims: Ints, **sums: Unpack[LeftSums]) -> Dims:
    """The dimensions of ``x``; the result lacks ``dims``."""
    labels = tuple(range(x.ndim))
    return Dims((labels,), (tuple([d for d in labels if d not in dims]),), **sums)


def reduced_batch(dim: int, dims: Ints) -> tuple[tuple[int, ...], int]:
    """Where ``dims`` of a lane lie in the batched array, and where its lanes end up."""
    shifted = tuple(d + (d >= dim) for d in dims)
    return shifted, dim - sum(d < dim for d in shifted)


def _reduce_sum_batch(
    axis: Axis, x: Any, dim: int, dims: Ints, **sums: Unpack[LeftSums]
) -> Batched:
    shifted, out = reduced_batch(dim, dims)
    return reduce_sum(x, dims=shifted, **sums), out


def _reduce_sum_transpose(ct: Any, x: ArrayType, dims: Ints, **sums: Unpack[LeftSums]) -> Any:
    return broadcast(ct, shape=x.shape, dims=tuple([d for d in range(x.ndim) if d not in dims]))


def _reduce_sum_lower(b: Builder, x: Any, dims: Ints, **sums: Unpack[LeftSums]) -> Any:
    zero = b.constant(0, b.outs[0].dtype)
    return b.reduce([x], [zero], dims, lambda b, x, y: [b.add(x, y)])[0]


def _reduce_sum_type(x: ArrayType, dims: Ints, **sums: Unpack[LeftSums]) -> ArrayType:
    check_domain("reduce_sum", x, number_or_bool)
    return reduced_type("reduce_sum", x, dims)


reduce_sum = structural(
    "reduce_sum",
    _reduce_sum_type,
    _reduce_sum_lower,
    transpose=_reduce_sum_transpose,
    batch=_reduce_sum_batch,
    dims=reduced_dims,
    fused=False,
    leaves_sums=True,
    doc="the sum over dims; stablehlo.reduce with add",
    examples=[Example((f32(2, 3, 4),), {"dims": (0, 2)}), Example((i32(5),), {"dims": (0,)})],
)


def _convert_linearize(active: Active, x: Any, *, dtype: np.dtype, weak: bool) -> Derivative:
    source = typeof(x).dtype
    out = convert(x, dtype=dtype, weak=weak)
    if not (dtypes.is_inexact(source) and dtypes.is_inexact(dtype)):
        return out, lambda t: ZERO
    return out, lambda t: convert(t, dtype=dtype, weak=weak)


def _convert_type(x: ArrayType, *, dtype: np.dtype, weak: bool) -> ArrayType:
    if x.dtype is not dtype and (is_key(x.dtype) or is_key(dtype)):
        raise DtypeError(f"convert: {x} cannot become {dtype}; {ADVICE}")
    return ArrayType(x.shape, dtype, weak)


def _convert_lower(b: Builder, x: Value, dtype: np.dtype, weak: bool) -> Value:
    return b.convert(x, dtype)


def _convert_transpose(ct: Any, x: Linear, dtype: np.dtype, weak: bool) -> Cotangents:
    return [convert(ct, dtype=x.type.dtype, weak=x.type.weak)]


convert = Primitive(
    "convert",
    _convert_type,
    _convert_lower,
    linearize=_convert_linearize,
    transpose=_convert_transpose,
    batch=batch_pointwise(lambda: convert),
    dims=alike,
    linear=ALL,
    elements=Elements(copied=True, fused=True, operations=1),
    doc="x in another dtype; stablehlo.convert",
    examples=[
        Example((f32(3),), {"dtype": I32, "weak": False}),
        Example((f32(3),), {"dtype": np.dtype("float16"), "weak": False}),
        Example((i32(3),), {"dtype": F32, "weak": True}),
    ],
)


# ---- keys -----------------------------------------------------------------------------------

_NO_NUMBERS = ZeroDerivative("keys are no numbers to differentiate")


def _wrap_type(x: ArrayType, *, dtype: KeyType) -> ArrayType:
    if x.dtype != WORD or x.shape[-1:] != (dtype.words,):
        raise TypeError(
            f"random_wrap: the words of {dtype} are uint32, {dtype.words} in the last dimension "
            f"for each key, got {x}"
        )
    return ArrayType(x.shape[:-1], dtype)


def _wrap_batch(axis: Axis, values: Operands, dims: LaneDims, *, dtype: KeyType) -> Batched:
    x, dim = values[0], dims[0]
    if dim == typeof(x).ndim - 1:
        x, dim = move(x, dim, 0), 0
    return random_wrap(x, dtype=dtype), dim


def _same_value(b: Builder, x: Value, **_: Any) -> Value:
    return x


random_wrap = Primitive(
    "random_wrap",
    _wrap_type,
    _same_value,
    linearize=_NO_NUMBERS,
    transpose=NoRule("it is not linear"),
    batch=_wrap_batch,
    dims=alike_but("they are the words of keys"),
    elements=Elements(operations=0),
    doc="the keys whose words are the last dimension of x; no operation",
    examples=[Example((ArrayType((3, 2), WORD),), {"dtype": key_type("threefry2x32")})],
)


def _unwrap_type(x: ArrayType) -> ArrayType:
    if not is_key(x.dtype):
        raise TypeError(f"random_unwrap: keys are needed, as random.key makes them, got {x}")
    return x.physical


random_unwrap = Primitive(
    "random_unwrap",
    _unwrap_type,
    _same_value,
    linearize=_NO_NUMBERS,
    transpose=NoRule("it is not linear"),
    batch=lambda axis, values, dims: (random_unwrap(values[0]), dims[0]),
    dims=alike,
    elements=Elements(operations=0),
    doc="the words of keys, in a last dimension; no operation",
    examples=[Example((ArrayType((3,), key_type("threefry2x32")),))],
)


# ---- constants ------------------------------------------------------------------------------


def full(shape: tuple[int, ...], value: Any, dtype: np.dtype) -> Any:
    """An array of ``shape`` with ``value`` everywhere; ``value`` may be a rank-0 array."""
    if isinstance(value, (np.generic, *SCALARS)):
        is_nothing = dtype == dtypes.float0  # of which NumPy has no scalar
        value = np.zeros((), dtype) if is_nothing else dtypes.scalar(value, dtype)
    (value,) = filled((value,), (), dtype)
    with dtypes.enabled(dtype):
        return broadcast(value, shape=shape, dims=())


def zeros(type: ArrayType) -> Any:
    """The array of ``type`` with zero everywhere, in all words of keys; it lies as the type says.

    Args:
        type: the type of the array.

    Returns:
        An array of that type.

    >>> from phalanx import primitives
    >>> print(primitives.zeros(primitives.i32(2)))
    [0 0]
    """
    if is_key(type.dtype):
        return random_wrap(zeros(type.physical), dtype=type.dtype)
    return zeros_as(full(type.shape, 0, type.dtype), type)


def instantiate(value: Any, type: ArrayType) -> Any:
    """``value``, or the zeros of ``type`` that the symbol ``ZERO`` stands for.

    Args:
        value: a tangent, or ``ZERO``.
        type: its type, with which zeros are made.

    Returns:
        An array of that type.

    >>> from phalanx import primitives
    >>> print(primitives.instantiate(primitives.ZERO, primitives.f32(2)))
    [0. 0.]
    """
    return zeros(type) if value is ZERO else value
