"""Products that sum over shared dimensions: matmul, dot, tensordot and their kind."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from phalanx import primitives as ops
from phalanx.base.broadcasting import common_shape
from phalanx.base.errors import ShapeError
from phalanx.base.lengths import integer
from phalanx.control.one_program import one_program
from phalanx.core.types import Array
from phalanx.lax.layout import takes_out_sharding
from phalanx.numpy.arithmetic import multiply
from phalanx.numpy.complex_numbers import conj
from phalanx.numpy.contraction import (
    Labels,
    Options,
    arranged,
    contracted,
    dot_general,
    factors,
    finished,
)
from phalanx.numpy.promotion import ArrayLike, DTypeLike, as_array, check_ranks, dim, promote_arrays


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
        out = dot_general(x, y, ((x.ndim - 1,), (0,)), ((), ()), options)
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
    out = dot_general(x, y, ((x.ndim - 1,), (inner,)), ((), ()), options)
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
    return finished(dot_general(x, y, (left, right), ((), ()), options), was_bool, options)


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
