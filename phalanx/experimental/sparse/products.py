"""Sums and contractions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import phalanx.numpy as jnp
from phalanx import lax
from phalanx.api.vmap import vmap
from phalanx.base.errors import ShapeError
from phalanx.base.source import user_location
from phalanx.experimental.sparse.layouts import (
    Entries,
    Mat,
    inside,
    listed,
    positions,
    with_layout,
    without_padding,
)

Pair = tuple[Sequence[int], Sequence[int]]


def bcoo_reduce_sum(mat: Mat, *, axes: Sequence[int]) -> Mat:
    """Sum of a ``BCOO`` over axes, as a ``BCOO``.

    Args:
        mat: a ``BCOO``.
        axes: the axes that are summed over.

    Returns:
        A ``BCOO``.

    Raises:
        ValueError: an axis does not exist, or occurs twice.

    >>> from phalanx.experimental import sparse
    >>> print(sparse.bcoo_reduce_sum(sparse.eye(2), axes=(0,)).todense())
    [1. 1.]
    """
    dims = sorted(d % mat.ndim if -mat.ndim <= d < mat.ndim else -1 for d in axes)
    if len(set(dims)) < len(dims) or -1 in dims:
        raise ValueError(f"bcoo_reduce_sum: axes {axes} do not fit {mat}")
    mat = with_layout(mat, min([mat.n_batch, *dims]), mat.n_dense)
    first = mat.n_batch + mat.n_sparse
    over = tuple([d - mat.n_sparse + 1 for d in dims if d >= first])
    gone = {d - mat.n_batch for d in dims if d < first}
    remaining = [d for d in range(mat.n_sparse) if d not in gone]
    data = jnp.sum(without_padding(mat) if gone else mat.data, axis=over, dtype=mat.dtype)
    tail = [n for d, n in enumerate(mat.tail) if d + mat.n_batch not in dims]
    unique = mat.unique_indices and not gone
    indices = mat.indices[..., jnp.array(remaining, int)] if gone else mat.indices
    return mat.made(data, indices, tail, mat.indices_sorted and not gone, unique)


def bcoo_dot_general(
    lhs: Any,
    rhs: Any,
    *,
    dimension_numbers: tuple[Pair, Pair],
    precision: Any = None,
    preferred_element_type: Any = None,
    out_sharding: Any = None,
) -> Any:
    """General product of arrays, as ``lax.dot_general``, where one or both are ``BCOO``.

    Args:
        lhs: a ``BCOO``, or a dense array.
        rhs: likewise; one of the two is a ``BCOO``.
        dimension_numbers: ((lhs contracting, rhs contracting), (lhs batch, rhs batch)) dimensions.
        precision: accepted, and ignored.
        preferred_element_type: the dtype of the result; None for the promoted one.
        out_sharding: accepted, and ignored.

    Returns:
        A dense array; a ``BCOO`` where both operands are sparse.

    Raises:
        ValueError: the dimensions do not fit.

    >>> from phalanx.experimental import sparse
    >>> m = sparse.BCOO.fromdense(jnp.array([[1.0, 0.0], [2.0, 3.0]]))
    >>> matvec = (((1,), (0,)), ((), ()))
    >>> print(sparse.bcoo_dot_general(m, jnp.array([1.0, 10.0]), dimension_numbers=matvec))
    [ 1. 32.]
    """
    (lc, rc), (lb, rb) = [tuple(map(tuple, pair)) for pair in dimension_numbers]
    pairs = zip((*lc, *lb), (*rc, *rb), strict=True)
    if any(lhs.shape[i] != rhs.shape[j] for i, j in pairs):
        raise ShapeError(
            f"bcoo_dot_general: dimensions {dimension_numbers} of {lhs.shape} and {rhs.shape} "
            f"differ in their lengths, at {user_location()}"
        )
    if isinstance(lhs, Entries) and isinstance(rhs, Entries):
        out = _of_two(listed(lhs), listed(rhs), lc, rc, lb, rb)
        dtype = preferred_element_type or out.dtype
        return out.with_data(out.data.astype(dtype))
    if isinstance(lhs, Entries):
        out = _with_dense(lhs, jnp.asarray(rhs), lc, rc, lb, rb)
    elif isinstance(rhs, Entries):
        lhs = jnp.asarray(lhs)
        out = _with_dense(rhs, lhs, rc, lc, rb, lb)
        count, free = len(lb), lhs.ndim - len(lc) - len(lb)
        out = jnp.moveaxis(out, range(out.ndim - free, out.ndim), range(count, count + free))
    else:
        out = lax.dot_general(lhs, rhs, dimension_numbers, precision=precision)
    return out if preferred_element_type is None else out.astype(preferred_element_type)


Ints = tuple[int, ...]


def _with_dense(mat: Entries, x: Any, lc: Ints, rc: Ints, lb: Ints, rb: Ints) -> Any:
    """Entries contracted with an array, one dimension of the batch after the other."""
    mat = with_layout(mat, mat.n_batch, 0)
    if not mat.n_batch:
        return _listed_with_dense(mat, x, lc, rc, lb, rb)

    def inner(dims: Ints, gone: int) -> Ints:
        return tuple([d - (d > gone) for d in dims if d != gone])

    def lane(m: Entries, y: Any) -> Any:
        partner: Any = dict(zip((*lc, *lb), (*rc, *rb), strict=True)).get(0, x.ndim)
        left, right = (inner(d, 0) for d in (lc, lb)), (inner(d, partner) for d in (rc, rb))
        (lc1, lb1), (rc1, rb1) = left, right
        return _with_dense(m, y, lc1, rc1, lb1, rb1)

    if 0 in lb:
        i = lb.index(0)
        return vmap(lane, in_axes=(0, rb[i]), out_axes=i)(mat, x)
    if 0 in lc:
        return jnp.sum(vmap(lane, in_axes=(0, rc[lc.index(0)]))(mat, x), axis=0)
    return vmap(lane, in_axes=(0, None), out_axes=len(lb))(mat, x)


def _listed_with_dense(mat: Entries, x: Any, lc: Ints, rc: Ints, lb: Ints, rb: Ints) -> Any:
    """Every entry times the part of the array that it meets, added up where the result has it."""
    at = positions(mat)
    free = [d for d in range(mat.ndim) if d not in (*lc, *lb)]
    rest = [d for d in range(x.ndim) if d not in (*rc, *rb)]
    x = jnp.transpose(x, (*rb, *rc, *rest))
    met = tuple([at[d] for d in (*lb, *lc)])
    part = x.at[met].get(mode="fill", fill_value=0) if met else x[None]
    products = mat.data.reshape(-1, *(1,) * len(rest)) * part
    to = tuple([at[d] for d in (*lb, *free)])
    if not to:
        return jnp.sum(products, axis=0)
    shape = [mat.shape[d] for d in (*lb, *free)] + [x.shape[x.ndim - len(rest) + k]
                                                    for k in range(len(rest))]  # fmt: skip
    return jnp.zeros(shape, products.dtype).at[to].add(products, mode="drop")


def _of_two(x: Mat, y: Entries, lc: Ints, rc: Ints, lb: Ints, rb: Ints) -> Mat:
    """Two lists contracted: an entry for every pair, padding for those that do not meet."""
    meet = inside(x)[:, None] & inside(y)[None, :]
    for i, j in zip((*lc, *lb), (*rc, *rb), strict=True):
        meet &= x.indices[:, None, i] == y.indices[None, :, j]
    shape = meet.shape
    left = [d for d in range(x.ndim) if d not in lc and d not in lb]
    right = [d for d in range(y.ndim) if d not in rc and d not in rb]
    columns = [jnp.broadcast_to(x.indices[:, None, d], shape) for d in (*lb, *left)]
    columns += [jnp.broadcast_to(y.indices[None, :, d], shape) for d in right]
    lengths = [x.shape[d] for d in (*lb, *left)] + [y.shape[d] for d in right]
    ends = [jnp.where(meet, c, n) for c, n in zip(columns, lengths, strict=True)]
    dtype = jnp.promote_types(x.indices.dtype, y.indices.dtype)
    count = shape[0] * shape[1]
    indices = (
        jnp.stack([c.reshape(-1).astype(dtype) for c in ends], axis=-1)
        if ends
        else jnp.zeros((count, 0), dtype)
    )
    data = jnp.where(meet, x.data[:, None] * y.data[None, :], 0).reshape(-1)
    return x.made(data, indices, lengths)
