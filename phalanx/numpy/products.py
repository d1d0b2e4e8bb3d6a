"""Products that sum over shared dimensions: matmul, dot, tensordot and their kind."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np

from phalanx import primitives as ops
from phalanx.base import dtypes
from phalanx.base.broadcasting import common_shape
from phalanx.base.errors import ShapeError
from phalanx.base.lengths import integer
from phalanx.control.one_program import one_program
from phalanx.core.types import Array
from phalanx.lax.layout import takes_out_sharding
from phalanx.numpy.arithmetic import multiply
from phalanx.numpy.complex_numbers import conj
from phalanx.numpy.promotion import (
    ArrayLike,
    DTypeLike,
    as_array,
    check_ranks,
    convert,
    dim,
    promote_arrays,
)

# ---- two operands whose dimensions have labels ----------------------------------------------

Labels = tuple[Any, ...]


class Options:
    """How products are computed: their precision, the dtype of the result, and by what."""

    __slots__ = ("dtype", "own", "precision", "requested_precision")

    def __init__(
        self,
        who: str,
        precision: Any,
        dtype: DTypeLike | None,
        own: Callable[..., Any] | None = None,
    ) -> None:
        self.requested_precision = precision
        self.precision = ops.canonical_precision(who, precision)
        self.dtype = None if dtype is None else dtypes.requested(dtype)
        self.own = own


def factors(who: str, xs: Sequence[Any]) -> tuple[list[Any], bool]:
    """Arrays of one dtype, and whether it was bool, of which products are counted in int32."""
    arrays = promote_arrays(who, xs)
    if arrays[0].aval.dtype != np.bool_:
        return arrays, False
    return [convert(x, np.dtype("int32")) for x in arrays], True


def finished(out: Any, was_bool: bool, options: Options) -> Any:
    if was_bool and options.dtype is None:
        return convert(out, np.dtype(bool))
    if options.dtype is None:
        return out
    return convert(out, options.dtype)


def _dot(
    x: Any, y: Any, contract: tuple[Any, ...], batch: tuple[Any, ...], options: Options
) -> Any:
    if options.own is not None:
        numbers = contract, batch
        dtype = options.dtype or x.aval.dtype
        return options.own(x, y, numbers, options.requested_precision, preferred_element_type=dtype)
    return ops.dot_general(
        x, y, contract=contract, batch=batch, precision=options.precision, dtype=options.dtype
    )


def without(x: Any, labels: Labels, summed: set[Any]) -> tuple[Any, Labels]:
    """``x`` summed over the dimensions whose labels are in ``summed``."""
    over = tuple(i for i, name in enumerate(labels) if name in summed)
    if not over:
        return x, labels
    return ops.reduce_sum(x, dims=over), tuple(n for n in labels if n not in summed)


def contracted(
    x: Any, xl: Labels, y: Any, yl: Labels, out: Labels, options: Options
) -> tuple[Any, Labels]:
    """The product of ``x`` and ``y``, summed over the labels that are not in ``out``.

    Returns:
        The result, and its labels: those of ``out`` in the order that came cheapest.
    """
    dtype = options.dtype
    if dtype is not None and x.aval.dtype != y.aval.dtype:  # one is a result, of the former
        x, y = convert(x, dtype), convert(y, dtype)
    x, xl = _squeezed(x, xl, dict(zip(yl, y.shape, strict=True)))
    y, yl = _squeezed(y, yl, dict(zip(xl, x.shape, strict=True)))
    x, xl = without(x, xl, set(xl) - set(yl) - set(out))
    y, yl = without(y, yl, set(yl) - set(xl) - set(out))
    shared = [n for n in xl if n in yl]
    batch = [n for n in shared if n in out]
    summed = [n for n in shared if n not in out]
    if not summed and options.dtype is None and options.own is None:
        return _elementwise(x, xl, y, yl)
    contract = tuple(tuple(ls.index(n) for n in summed) for ls in (xl, yl))
    beside = tuple(tuple(ls.index(n) for n in batch) for ls in (xl, yl))
    free = [n for n in (*xl, *yl) if n not in shared]
    return _dot(x, y, contract, beside, options), (*batch, *free)


def _squeezed(x: Any, labels: Labels, other: dict[Any, int]) -> tuple[Any, Labels]:
    """``x`` without the dimensions of length 1 that the other operand has longer."""
    ones = [i for i, n in enumerate(labels) if x.shape[i] == 1 and other.get(n, 1) != 1]
    if not ones:
        return x, labels
    return ops.squeeze(x, ones), tuple(n for i, n in enumerate(labels) if i not in ones)


def _elementwise(x: Any, xl: Labels, y: Any, yl: Labels) -> tuple[Any, Labels]:
    out = (*xl, *(n for n in yl if n not in xl))
    sizes = {**dict(zip(xl, x.shape, strict=True)), **dict(zip(yl, y.shape, strict=True))}
    shape = tuple(sizes[n] for n in out)
    order = sorted(range(len(yl)), key=lambda i: out.index(yl[i]))
    y = ops.reorder(y, order)
    places = tuple(out.index(yl[i]) for i in order)
    if len(xl) < len(out):
        x = ops.broadcast(x, shape=shape, dims=tuple(range(len(xl))))
    if places != tuple(range(len(out))):
        y = ops.broadcast(y, shape=shape, dims=places)
    return ops.mul(x, y), out


def arranged(x: Any, labels: Labels, out: Labels) -> Any:
    return ops.reorder(x, [labels.index(n) for n in out])


# ---- matmul and its kind --------------------------------------------------------------------


@takes_out_sharding
@one_program
def matmul(
    a: ArrayLike,
    b: ArrayLike,
    *,
    precision: Any = None,
    preferred_element_type: DTypeLike | None = None,
    out_sharding: Any = None,
) -> Array:
    """The matrix product of [..., n, k] and [..., k, m], which is [..., n, m].

    The dimensions in front broadcast. A vector is a row on the left, a column on the right,
    and its dimension of length 1 is missing in the result.

    Args:
        a: the left operand, [..., n, k], or a vector [k].
        b: the right operand, [..., k, m], or a vector [k].
        precision: how exactly float32 is multiplied where hardware has faster, coarser ways.
        preferred_element_type: the dtype of the result and of the sums.
        out_sharding: the ``NamedSharding`` or ``P`` of the result; None: the compiler decides.

    Returns:
        An array of their promoted dtype, with the dimensions that are not summed over.

    Raises:
        ValueError: an operand has no dimension, or the shapes do not fit.

    >>> print(jnp.matmul(jnp.array([[1, 2], [3, 4]]), jnp.array([1, 1])))
    [3 7]
    """
    options = Options("matmul", precision, preferred_element_type)
    (x, y), was_bool = factors("matmul", (a, b))
    if not x.ndim or not y.ndim:
        raise ValueError(
            f"matmul: operands with dimensions are needed, got {x.aval} and {y.aval}; a number "
            "multiplies with *"
        )
    inner = 0 if y.ndim == 1 else y.ndim - 2
    if x.shape[-1] != y.shape[inner]:
        raise ShapeError(
            f"matmul: the last dimension of lhs {x.aval} and dimension {inner} of rhs {y.aval} "
            f"must be equal, got {x.shape[-1]} and {y.shape[inner]}"
        )
    if y.ndim <= 2:
        out = _dot(x, y, ((x.ndim - 1,), (0,)), ((), ()), options)
    else:
        out = _batched_matmul(x, y, options)
    return finished(out, was_bool, options)


def _batched_matmul(x: Any, y: Any, options: Options) -> Any:
    outer = common_shape("matmul", x.shape[:-2], y.shape[:-2])
    names = tuple(range(len(outer)))
    rows: Labels = ("row",) if x.ndim > 1 else ()
    xl = (*names[len(names) - max(x.ndim - 2, 0) :], *rows, "sum")
    yl = (*names[len(names) - y.ndim + 2 :], "sum", "column")
    out = (*names, *rows, "column")
    product, labels = contracted(x, xl, y, yl, out, options)
    return ops.reshape(
        arranged(product, labels, tuple(n for n in out if n in labels)),
        shape=(*outer, *(x.shape[-2:-1] if rows else ()), y.shape[-1]),
    )


@takes_out_sharding
@one_program
def dot(
    a: ArrayLike,
    b: ArrayLike,
    *,
    precision: Any = None,
    preferred_element_type: DTypeLike | None = None,
    out_sharding: Any = None,
) -> Array:
    """The dot product Σ a[.., k] b[.., k, j] over k; of vectors the scalar product, of numbers
    the product.

    Args:
        a: an array.
        b: an array whose dimensions fit.
        precision: of products of float32: ``default``, ``high``, ``highest``, or a
            ``lax.Precision``; None: the option ``default_matmul_precision``.
        preferred_element_type: the dtype of sums and result; None: that of the operands.
        out_sharding: the ``NamedSharding`` or ``P`` of the result; None: the compiler decides.

    Returns:
        An array of their promoted dtype, with the dimensions that are not summed over.

    Raises:
        ShapeError: the lengths that are summed over differ.

    >>> print(jnp.dot(jnp.arange(3), jnp.arange(3)))
    5
    """
    options = Options("dot", precision, preferred_element_type)
    (x, y), was_bool = factors("dot", (a, b))
    if not x.ndim or not y.ndim:
        return finished(multiply(x, y), was_bool, options)
    inner = max(y.ndim - 2, 0)
    if x.shape[-1] != y.shape[inner]:
        raise ShapeError(
            f"dot: the last dimension of lhs {x.aval} and dimension {inner} of rhs {y.aval} must "
            f"be equal, got {x.shape[-1]} and {y.shape[inner]}"
        )
    out = _dot(x, y, ((x.ndim - 1,), (inner,)), ((), ()), options)
    return finished(out, was_bool, options)


@one_program
def vdot(
    a: ArrayLike,
    b: ArrayLike,
    *,
    precision: Any = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """The scalar product Σ conj(a) b over all elements of two arrays of one size.

    Args:
        a: an array.
        b: an array whose dimensions fit.
        precision: of products of float32: ``default``, ``high``, ``highest``, or a
            ``lax.Precision``; None: the option ``default_matmul_precision``.
        preferred_element_type: the dtype of sums and result; None: that of the operands.

    Returns:
        A number, as an array without dimensions.

    Raises:
        ShapeError: the lengths that are summed over differ.

    >>> print(jnp.vdot(jnp.array([1j, 2]), jnp.array([1j, 2])))
    (5+0j)
    """
    x, y = as_array("vdot", a), as_array("vdot", b)
    x, y = (ops.reshape(v, shape=(v.size,)) for v in (conj(x), y))
    return dot(x, y, precision=precision, preferred_element_type=preferred_element_type)


@one_program
def vecdot(
    x1: ArrayLike,
    x2: ArrayLike,
    /,
    *,
    axis: int = -1,
    precision: Any = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """Dot products of vectors: Σ conj(x1) x2 along ``axis``, the other dimensions broadcast.

    Args:
        x1: vectors along ``axis``; the two broadcast.
        x2: vectors along ``axis``; the two broadcast.
        axis: the axis of both that is summed over.
        precision: of products of float32: ``default``, ``high``, ``highest``, or a
            ``lax.Precision``; None: the option ``default_matmul_precision``.
        preferred_element_type: the dtype of sums and result; None: that of the operands.

    Returns:
        An array of their promoted dtype, with the dimensions that are not summed over.

    Raises:
        AxisError: there is no dimension ``axis``.
        AxisError: there is no dimension ``axis``.
        ShapeError: the vectors have different lengths.

    >>> print(jnp.vecdot(jnp.ones((2, 3)), jnp.arange(3.0)))
    [3. 3.]
    """
    options = Options("vecdot", precision, preferred_element_type)
    (x, y), was_bool = factors("vecdot", (conj(as_array("vecdot", x1)), x2))
    x, y = (ops.move(v, dim("vecdot", axis, v), v.ndim - 1) for v in (x, y))
    if x.shape[-1] != y.shape[-1]:
        raise ShapeError(
            f"vecdot: vectors along axis {axis} must have one length, got {x.shape[-1]} and "
            f"{y.shape[-1]}"
        )
    outer = common_shape("vecdot", x.shape[:-1], y.shape[:-1])
    names = tuple(range(len(outer)))
    xl, yl = ((*names[len(names) - v.ndim + 1 :], "sum") for v in (x, y))
    product, labels = contracted(x, xl, y, yl, names, options)
    out = arranged(product, labels, tuple(n for n in names if n in labels))
    return finished(ops.reshape(out, shape=outer), was_bool, options)


@one_program
def inner(
    a: ArrayLike,
    b: ArrayLike,
    *,
    precision: Any = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """Inner products Σ a[.., k] b[.., k] over the last dimensions, for all pairs of the others.

    Args:
        a: an array.
        b: an array whose dimensions fit.
        precision: of products of float32: ``default``, ``high``, ``highest``, or a
            ``lax.Precision``; None: the option ``default_matmul_precision``.
        preferred_element_type: the dtype of sums and result; None: that of the operands.

    Returns:
        An array of their promoted dtype, with the dimensions that are not summed over.

    Raises:
        ShapeError: the lengths that are summed over differ.

    >>> print(jnp.inner(jnp.arange(3), jnp.arange(3)))
    5
    """
    x, y = as_array("inner", a), as_array("inner", b)
    if not x.ndim or not y.ndim:
        return dot(x, y, preferred_element_type=preferred_element_type)
    axes = ((x.ndim - 1,), (y.ndim - 1,))
    return tensordot(x, y, axes, precision=precision, preferred_element_type=preferred_element_type)


@one_program
def outer(a: ArrayLike, b: ArrayLike, out: None = None) -> Array:
    """Outer product of two vectors, out[i, j] = a[i] b[j]; other arrays are flattened.

    Args:
        a: an array of m elements.
        b: an array of n elements.
        out: must be None: arrays are immutable, and results are returned.

    Returns:
        A matrix [m, n] of the dtype to which both are promoted.

    >>> print(jnp.outer(jnp.arange(2), jnp.arange(3)))
    [[0 0 0]
     [0 1 2]]
    """
    x, y = as_array("outer", a), as_array("outer", b)
    return multiply(ops.reshape(x, shape=(x.size, 1)), ops.reshape(y, shape=(1, y.size)))


@takes_out_sharding
@one_program
def tensordot(
    a: ArrayLike,
    b: ArrayLike,
    axes: int | Sequence[Any] = 2,
    *,
    precision: Any = None,
    preferred_element_type: DTypeLike | None = None,
    out_sharding: Any = None,
) -> Array:
    """A tensor contraction: the sum of products over pairs of axes, for all pairs of the others.

    Args:
        a: the left operand.
        b: the right one.
        axes: how many of the last axes of ``a`` to pair with the first of ``b``; or the axes
            of both.
        precision: how exactly float32 is multiplied where hardware has faster, coarser ways.
        preferred_element_type: the dtype of the result and of the sums.
        out_sharding: the ``NamedSharding`` or ``P`` of the result; None: the compiler decides.

    Returns:
        An array of their promoted dtype, with the dimensions that are not summed over.

    Raises:
        ShapeError: axes that are paired have different lengths.
        ValueError: ``axes`` is neither a number nor a pair, or more than there are.

    >>> print(jnp.tensordot(jnp.ones((2, 3)), jnp.ones((3, 4)), 1))
    [[3. 3. 3. 3.]
     [3. 3. 3. 3.]]
    """
    options = Options("tensordot", precision, preferred_element_type)
    (x, y), was_bool = factors("tensordot", (a, b))
    if getattr(axes, "ndim", 0):  # an array of two rows is a pair of several dimensions
        axes = [*cast(Any, axes)]
    if isinstance(axes, (tuple, list)):
        if len(axes) != 2:
            raise ValueError(f"tensordot: axes must be a number or a pair, got {axes}")
        left = ops.dimensions("tensordot", axes[0], x.ndim)
        right = ops.dimensions("tensordot", axes[1], y.ndim)
    else:
        count = integer("tensordot", "axes", axes)
        if not 0 <= count <= min(x.ndim, y.ndim):
            raise ValueError(
                f"tensordot: {count} axes cannot be paired of operands {x.aval} and {y.aval}"
            )
        left, right = tuple(range(x.ndim - count, x.ndim)), tuple(range(count))
    lengths = [tuple(v.shape[d] for d in ds) for v, ds in ((x, left), (y, right))]
    if lengths[0] != lengths[1]:
        raise ShapeError(
            f"tensordot: axes {left} of lhs {x.aval} and {right} of rhs {y.aval} must have equal "
            f"lengths, got {lengths[0]} and {lengths[1]}"
        )
    return finished(_dot(x, y, (left, right), ((), ()), options), was_bool, options)


@one_program
def kron(a: ArrayLike, b: ArrayLike) -> Array:
    """The Kronecker product: every element of ``a`` times all of ``b``, as blocks.

    Args:
        a: an array; with fewer dimensions than ``b``, ones are put in front.
        b: an array, treated alike.

    Returns:
        An array of the dtype to which both are promoted, as long in each dimension as the product
        of both lengths: [m, n] and [p, q] give [m p, n q].

    >>> print(jnp.kron(jnp.array([1, 10]), jnp.array([1, 2])))
    [ 1  2 10 20]
    """
    x, y = promote_arrays("kron", [a, b])
    ndim = max(x.ndim, y.ndim)
    x, y = (ops.reshape(v, shape=(1,) * (ndim - v.ndim) + v.shape) for v in (x, y))
    shape = tuple(n * m for n, m in zip(x.shape, y.shape, strict=True))
    x = ops.expand_dims(x, range(1, 2 * ndim, 2))
    y = ops.expand_dims(y, range(0, 2 * ndim, 2))
    return ops.reshape(multiply(x, y), shape=shape)


@one_program
def cross(
    a: ArrayLike,
    b: ArrayLike,
    axisa: int = -1,
    axisb: int = -1,
    axisc: int = -1,
    axis: int | None = None,
) -> Array:
    """The vector product of vectors of length 3; of length 2, its third component.

    Args:
        a: vectors along ``axisa``.
        b: vectors along ``axisb``.
        axisa: an axis of ``a``.
        axisb: an axis of ``b``.
        axisc: the axis of the result along which its vectors lie.
        axis: all three at once.

    Returns:
        Vectors along an axis, or of two dimensions numbers, of the dtype to which both are
        promoted.

    Raises:
        ValueError: the vectors have other lengths than 2 and 3.

    >>> print(jnp.cross(jnp.array([1, 0, 0]), jnp.array([0, 1, 0])))
    [0 0 1]
    """
    if axis is not None:
        axisa = axisb = axisc = axis
    x, y = promote_arrays("cross", [a, b])
    check_ranks("cross", (x.shape, y.shape))
    x, y = (ops.move(v, dim("cross", d, v), v.ndim - 1) for v, d in ((x, axisa), (y, axisb)))
    if x.shape[-1] not in (2, 3) or y.shape[-1] not in (2, 3):
        raise ValueError(f"cross: vectors of length 2 or 3 are needed, got {x.aval} and {y.aval}")
    parts = [[ops.squeeze(p, (v.ndim - 1,)) for p in _columns(v)] for v in (x, y)]
    (x0, x1, x2), (y0, y1, y2) = ([*p, None][:3] for p in parts)
    third = ops.sub(*_both(_times(x0, y1), _times(x1, y0)))
    if x2 is None and y2 is None:
        return third
    first = _difference(_times(x1, y2), _times(x2, y1))
    second = _difference(_times(x2, y0), _times(x0, y2))
    out = ops.stack(_both(first, second, third), third.ndim)
    return ops.move(out, out.ndim - 1, ops.dimension("cross", axisc, out.ndim))


def _columns(v: Any) -> list[Any]:
    return ops.split(v, (1,) * v.shape[-1], v.ndim - 1)


def _times(x: Any, y: Any) -> Any:
    """The product, of which None, for a component that is 0, is absorbing."""
    return None if x is None or y is None else multiply(x, y)


def _difference(x: Any, y: Any) -> Any:
    if x is None:
        return ops.neg(y)
    return x if y is None else ops.sub(*_both(x, y))


def _both(*xs: Any) -> list[Any]:
    shape = common_shape("cross", *(x.shape for x in xs))
    return [ops.broadcast_to(x, shape) for x in xs]
