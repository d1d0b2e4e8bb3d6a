"""Dimensions in another order, of other lengths, cut or put together."""

from __future__ import annotations

import math
from collections.abc import Sequence
from operator import index
from typing import Any

import numpy as np

import phalanx.numpy as jnp
from phalanx import lax
from phalanx.base.kinds import is_tuple
from phalanx.base.lengths import fits, larger
from phalanx.experimental.sparse.entries import alike
from phalanx.experimental.sparse.layouts import (
    Entries,
    Mat,
    inside,
    listed,
    with_layout,
    without_padding,
)
from phalanx.numpy.manipulation import completed

Ints = Sequence[int]


def bcoo_update_layout(
    mat: Mat,
    *,
    n_batch: int | None = None,
    n_dense: int | None = None,
    on_inefficient: str | None = "error",
) -> Mat:
    """The same array as a ``BCOO`` with other numbers of batch and dense dimensions.

    Fewer of them make the list of entries longer. For more of them the entries are read from the
    dense array, and there is room for as many as there may be.

    Args:
        mat: a ``BCOO``.
        n_batch: how many of the first dimensions are batch dimensions; None for as many as now.
        n_dense: how many of the last dimensions are dense; None for as many as now.
        on_inefficient: accepted, and ignored: no conversion is refused.

    Returns:
        A ``BCOO``.

    Raises:
        ValueError: the array has fewer dimensions than that.

    >>> from phalanx.experimental import sparse
    >>> entries = sparse.bcoo_fromdense(jnp.eye(2))
    >>> sparse.bcoo_update_layout(entries, n_dense=1, on_inefficient=None).n_dense
    1
    """
    batch = mat.n_batch if n_batch is None else n_batch
    dense = mat.n_dense if n_dense is None else n_dense
    if batch < 0 or dense < 0 or batch + dense > mat.ndim:
        raise ValueError(f"bcoo_update_layout: n_batch={batch}, n_dense={dense} do not fit {mat}")
    return with_layout(mat, batch, dense)


def bcoo_transpose(mat: Mat, *, permutation: Ints) -> Mat:
    """``BCOO`` with its axes permuted.

    Batch, sparse and dense dimensions stay such, where the permutation does not mix them; otherwise
    all become sparse.

    Args:
        mat: a ``BCOO``.
        permutation: for each axis of the result the axis of ``mat``.

    Returns:
        A ``BCOO``.

    Raises:
        ValueError: ``permutation`` is not a permutation of the axes.

    >>> from phalanx.experimental import sparse
    >>> sparse.bcoo_transpose(sparse.eye(2, 3), permutation=(1, 0)).shape
    (3, 2)
    """
    perm = [d % mat.ndim if mat.ndim else d for d in permutation]
    if sorted(perm) != list(range(mat.ndim)):
        raise ValueError(f"bcoo_transpose: {permutation} is no permutation of dimensions of {mat}")
    first, second = mat.n_batch, mat.n_batch + mat.n_sparse
    parts = perm[:first], perm[first:second], perm[second:]
    whole = range(first), range(first, second), range(second, mat.ndim)
    if any(set(p) != set(w) for p, w in zip(parts, whole, strict=True)):
        return bcoo_transpose(listed(mat), permutation=perm)
    batch, sparse, dense = parts
    data = jnp.transpose(mat.data, (*batch, first, *[d - mat.n_sparse + 1 for d in dense]))
    indices = jnp.transpose(mat.indices, (*batch, first, first + 1))
    indices = indices[..., np.array([d - first for d in sparse], int)]
    tail = [mat.shape[d] for d in (*sparse, *dense)]
    sorted_still = mat.indices_sorted and sparse == sorted(sparse)
    return mat.made(data, indices, tail, sorted_still, mat.unique_indices)


def bcoo_reshape(
    mat: Mat, *, new_sizes: Ints, dimensions: Ints | None = None, sharding: Any = None
) -> Mat:
    """``BCOO`` in another shape of the same size.

    Batch and dense dimensions stay such, where they have the same lengths in the new shape;
    otherwise all become sparse.

    Args:
        mat: a ``BCOO``.
        new_sizes: the new shape; one length may be -1, and follows from the others.
        dimensions: a permutation of the axes that is applied first; None for none.
        sharding: accepted, and ignored.

    Returns:
        A ``BCOO``.

    Raises:
        ValueError: the sizes differ.

    >>> from phalanx.experimental import sparse
    >>> sparse.bcoo_reshape(sparse.eye(2), new_sizes=(4,)).shape
    (4,)
    """
    if dimensions is not None:
        mat = bcoo_transpose(mat, permutation=dimensions)
    sizes = completed("bcoo_reshape", mat, tuple(new_sizes))
    if math.prod(sizes) != math.prod(mat.shape):
        raise ValueError(f"bcoo_reshape: {mat} does not fill shape {sizes}")
    batch, dense = mat.n_batch, mat.n_dense
    ends = len(sizes) - dense
    if batch > ends or sizes[:batch] != mat.shape[:batch] or sizes[ends:] != mat.dense_shape:
        mat, batch, ends = listed(mat), 0, len(sizes)
    lengths = sizes[batch:ends]
    if not fits(math.prod(lengths), np.iinfo(mat.indices.dtype).max):
        raise ValueError(
            f"bcoo_reshape: places among {math.prod(lengths)} elements do not fit indices of dtype "
            f"{mat.indices.dtype}; make them with index_dtype='int64'"
        )
    real, place = inside(mat), jnp.zeros(mat.indices.shape[:-1], mat.indices.dtype)
    for d, n in enumerate(mat.sparse_shape):
        place = place * n + mat.indices[..., d]
    columns: list[Any] = []
    for n in reversed(lengths):
        columns.insert(0, jnp.where(real, place % larger(n, 1), n))
        place = place // larger(n, 1)
    stacked = jnp.stack(columns, axis=-1) if columns else mat.indices[..., :0]
    data = mat.data if columns else without_padding(mat)
    return mat.made(
        data, stacked.astype(mat.indices.dtype), (*lengths, *mat.dense_shape),
        mat.indices_sorted, mat.unique_indices,
    )  # fmt: skip


def bcoo_squeeze(arr: Mat, *, dimensions: Ints) -> Mat:
    """``BCOO`` without axes of length 1.

    Args:
        arr: a ``BCOO``.
        dimensions: the axes to remove.

    Returns:
        A ``BCOO``.

    Raises:
        ValueError: one of them has another length.

    >>> from phalanx.experimental import sparse
    >>> sparse.bcoo_squeeze(sparse.eye(1, 3), dimensions=(0,)).shape
    (3,)
    """
    dims = sorted(d % arr.ndim for d in dimensions)
    if any(arr.shape[d] != 1 for d in dims):
        raise ValueError(f"bcoo_squeeze: dimensions {dimensions} of {arr} are not of length 1")
    first, second = arr.n_batch, arr.n_batch + arr.n_sparse
    batch = tuple(d for d in dims if d < first)
    dense = tuple(d - arr.n_sparse + 1 for d in dims if d >= second)
    gone = [d - first for d in dims if first <= d < second]
    remaining = np.array([d for d in range(arr.n_sparse) if d not in gone], int)
    data = jnp.squeeze(without_padding(arr) if gone else arr.data, (*batch, *dense))
    indices = jnp.squeeze(arr.indices, batch)[..., remaining]
    tail = [n for d, n in enumerate(arr.tail) if d + first not in dims]
    still = not gone
    return arr.made(data, indices, tail, arr.indices_sorted and still, arr.unique_indices and still)


def bcoo_broadcast_in_dim(
    mat: Mat, *, shape: Ints, broadcast_dimensions: Ints, sharding: Any = None
) -> Mat:
    """``BCOO`` repeated along new axes, and along those of length 1.

    New axes in front of all others become batch dimensions; with others all dimensions become
    sparse.

    Args:
        mat: a ``BCOO``.
        shape: the shape of the result.
        broadcast_dimensions: for each axis of ``mat`` its axis in the result.
        sharding: accepted, and ignored.

    Returns:
        A ``BCOO``.

    Raises:
        ValueError: the lengths do not fit.

    >>> from phalanx.experimental import sparse
    >>> one = sparse.eye(2)
    >>> sparse.bcoo_broadcast_in_dim(one, shape=(3, 2, 2), broadcast_dimensions=(1, 2)).shape
    (3, 2, 2)
    """
    shape, dims = tuple(shape), tuple(broadcast_dimensions)
    fits = len(dims) == mat.ndim and all(mat.shape[i] in (1, shape[d]) for i, d in enumerate(dims))
    if not fits:
        raise ValueError(f"bcoo_broadcast_in_dim: {mat} does not become {shape} along {dims}")
    new = len(shape) - mat.ndim
    if dims == tuple(range(new, len(shape))) and shape[new:] == mat.shape:
        data = jnp.broadcast_to(mat.data, (*shape[:new], *mat.data.shape))
        indices = jnp.broadcast_to(mat.indices, (*shape[:new], *mat.indices.shape))
        return mat.made(data, indices, mat.tail, mat.indices_sorted, mat.unique_indices)
    mat = listed(mat)
    own = {d: i for i, d in enumerate(dims) if mat.shape[i] == shape[d]}
    repeated = [d for d in range(len(shape)) if d not in own]
    grid = np.indices([shape[d] for d in repeated]).reshape(len(repeated), -1)
    real = inside(mat)[:, None]
    columns: list[Any] = []
    for d, n in enumerate(shape):
        at = mat.indices[:, own[d], None] if d in own else grid[repeated.index(d)][None, :]
        columns.append(jnp.where(real, at, n).astype(mat.indices.dtype))
    every = jnp.broadcast_arrays(*columns, real)[:-1]
    stacked = jnp.stack(every, axis=-1).reshape(-1, len(shape))
    return mat.made(jnp.repeat(mat.data, grid.shape[1]), stacked, shape)


def bcoo_concatenate(operands: Sequence[Mat], *, dimension: int) -> Mat:
    """Several ``BCOO`` joined along an existing axis.

    Args:
        operands: the ``BCOO``, of the same shape but for ``dimension``.
        dimension: the axis.

    Returns:
        A ``BCOO``.

    Raises:
        ValueError: there are none, or their shapes do not fit.

    >>> from phalanx.experimental import sparse
    >>> sparse.bcoo_concatenate([sparse.eye(2), sparse.eye(2)], dimension=0).shape
    (4, 2)
    """
    if not operands:
        raise ValueError("bcoo_concatenate: there are no arrays")
    mats = alike(list(operands))
    first, d = mats[0], dimension % mats[0].ndim
    rest = [(*m.shape[:d], *m.shape[d + 1 :]) for m in mats]
    if len(set(rest)) > 1:
        raise ValueError(
            f"bcoo_concatenate: shapes must agree but for dimension {dimension}, got "
            f"{', '.join(str(m.shape) for m in mats)}"
        )
    if d >= first.n_batch + first.n_sparse or d < first.n_batch:
        n_batch, n_dense = min(first.n_batch, d), min(first.n_dense, first.ndim - 1 - d)
        mats = [with_layout(m, n_batch, n_dense) for m in mats]
    batch, column = mats[0].n_batch, d - mats[0].n_batch
    lengths = list(mats[0].tail)
    lengths[column] = sum(m.tail[column] for m in mats)
    positions: np.dtype = mats[0].indices.dtype
    ends = np.asarray(lengths[: mats[0].n_sparse], positions)
    before = 0
    lists: list[Any] = []
    for m in mats:
        moved = m.indices.at[..., column].add(before)
        lists.append(jnp.where(inside(m)[..., None], moved, ends))
        before += m.tail[column]
    dtype = jnp.result_type(*[m.dtype for m in mats])
    data = jnp.concatenate([m.data.astype(dtype) for m in mats], axis=batch)
    unique = all(m.unique_indices for m in mats)
    return first.made(data, jnp.concatenate(lists, axis=batch), lengths, False, unique)


def bcoo_slice(
    mat: Mat, *, start_indices: Ints, limit_indices: Ints, strides: Ints | None = None
) -> Mat:
    """Slice of a ``BCOO``, with static bounds, as ``lax.slice``.

    Args:
        mat: a ``BCOO``.
        start_indices: the first index, per axis.
        limit_indices: the index to stop before, per axis.
        strides: the steps, per axis; None for 1.

    Returns:
        A ``BCOO``.

    Raises:
        ValueError: the slice is not within the array.

    >>> from phalanx.experimental import sparse
    >>> part = sparse.bcoo_slice(sparse.eye(3), start_indices=(1, 1), limit_indices=(3, 3))
    >>> print(part.todense())
    [[1. 0.] [0. 1.]]
    """
    starts, limits = tuple(start_indices), tuple(limit_indices)
    steps = (1,) * mat.ndim if strides is None else tuple(strides)
    bounds = list(zip(starts, limits, mat.shape, strict=True))
    if any(not 0 <= a <= b <= n for a, b, n in bounds) or min(steps, default=1) < 1:
        raise ValueError(f"bcoo_slice: {starts} to {limits} by {steps} is no part of {mat}")
    every = tuple(slice(*bounds) for bounds in zip(starts, limits, steps, strict=True))
    batch, dense = every[: mat.n_batch], every[mat.n_batch + mat.n_sparse :]
    data, indices = mat.data[(*batch, slice(None), *dense)], mat.indices[batch]
    lengths = [len(range(*bounds)) for bounds in zip(starts, limits, steps, strict=True)]
    cut = mat.made(data, indices, mat.tail[: mat.n_sparse] + tuple(
        lengths[mat.n_batch + mat.n_sparse :]), mat.indices_sorted, mat.unique_indices)  # fmt: skip
    middle = slice(mat.n_batch, mat.n_batch + mat.n_sparse)
    return _shifted(cut, starts[middle], lengths[middle], steps[middle])


def _shifted(mat: Mat, starts: Sequence[Any], lengths: Ints, steps: Ints) -> Mat:
    """The entries from ``starts`` on, counted from there; the others become padding."""
    kind = mat.indices.dtype
    if not mat.n_sparse:
        return mat
    origin = jnp.stack([jnp.asarray(s).astype(kind) for s in starts])
    moved, step = mat.indices - origin, np.asarray(steps, kind)
    ends = np.asarray(lengths, kind)
    places = moved // step
    here = (moved >= 0) & (moved % step == 0) & (places < ends) & inside(mat)[..., None]
    real = jnp.all(here, axis=-1, keepdims=True)
    tail = (*lengths, *mat.dense_shape)
    indices = jnp.where(real, places, ends)
    return mat.made(mat.data, indices, tail, False, mat.unique_indices)


def bcoo_dynamic_slice(mat: Mat, start_indices: Sequence[Any], slice_sizes: Ints) -> Mat:
    """Slice of a ``BCOO`` of static size from indices that may be traced, as ``lax.dynamic_slice``.

    A slice that would reach beyond the array begins earlier, so that it fits.

    Args:
        mat: a ``BCOO``.
        start_indices: the first index, per axis, integers or arrays of them.
        slice_sizes: the lengths, per axis.

    Returns:
        A ``BCOO``.

    Raises:
        ValueError: the slice is larger than the array.

    >>> from phalanx.experimental import sparse
    >>> print(sparse.bcoo_dynamic_slice(sparse.eye(3), (1, 1), (2, 2)).todense())
    [[1. 0.] [0. 1.]]
    """
    sizes = tuple(slice_sizes)
    if any(n > m for n, m in zip(sizes, mat.shape, strict=True)):
        raise ValueError(f"bcoo_dynamic_slice: {sizes} is larger than {mat}")
    starts = [
        jnp.clip(jnp.asarray(s), 0, m - n)
        for s, n, m in zip(start_indices, sizes, mat.shape, strict=True)
    ]
    first, second = mat.n_batch, mat.n_batch + mat.n_sparse
    data = lax.dynamic_slice(
        mat.data, (*starts[:first], 0, *starts[second:]), (*sizes[:first], mat.nse, *sizes[second:])
    )
    indices = lax.dynamic_slice(
        mat.indices, (*starts[:first], 0, 0), (*sizes[:first], mat.nse, mat.n_sparse)
    )
    cut = mat.made(data, indices, (*mat.sparse_shape, *sizes[second:]), False, mat.unique_indices)
    return _shifted(cut, starts[first:second], sizes[first:second], (1,) * mat.n_sparse)


def bcoo_rev(operand: Mat, dimensions: Ints) -> Mat:
    """``BCOO`` reversed along axes.

    Args:
        operand: a ``BCOO``.
        dimensions: the axes to reverse.

    Returns:
        A ``BCOO``.

    >>> from phalanx.experimental import sparse
    >>> print(sparse.bcoo_rev(sparse.eye(2), dimensions=(0,)).todense())
    [[0. 1.] [1. 0.]]
    """
    dims = {d % operand.ndim for d in dimensions}
    first, second = operand.n_batch, operand.n_batch + operand.n_sparse
    batch = [d for d in dims if d < first]
    dense = [d - operand.n_sparse + 1 for d in dims if d >= second]
    data, indices = jnp.flip(operand.data, (*batch, *dense)), jnp.flip(operand.indices, batch)
    turned = operand.made(data, indices, operand.tail, False, operand.unique_indices)
    real = inside(turned)
    for d in range(operand.n_sparse):
        if d + first in dims:
            back = jnp.where(real, operand.tail[d] - 1 - indices[..., d], operand.tail[d])
            indices = indices.at[..., d].set(back)
    return operand.made(data, indices, operand.tail, False, operand.unique_indices)


def part(mat: Mat, key: Any) -> Mat:
    """``mat[key]`` of integers, slices, None and Ellipsis.

    Raises:
        IndexError: it is something else, or beyond the array.
    """
    keys: list[Any] = list(key) if is_tuple(key) else [key]
    indexed = sum(k is not None and k is not Ellipsis for k in keys)
    if keys.count(Ellipsis) > 1 or indexed > mat.ndim:
        raise IndexError(f"{type(mat).__name__}: the index {key!r} does not fit {mat}")
    at = keys.index(Ellipsis) if Ellipsis in keys else len(keys)
    keys[at : at + 1] = [slice(None)] * (mat.ndim - indexed)
    bounds: list[tuple[int, int, int]] = []
    gone: list[int] = []
    new: list[int] = []
    for k in keys:
        if k is None:
            new.append(len(bounds) - len(gone) + len(new))
            continue
        start, stop, step, single = _bounds(mat, len(bounds), k)
        gone += [len(bounds)] if single else []
        bounds.append((start, stop, step))
    starts, stops, steps = zip(*bounds, strict=True) if bounds else ((), (), ())
    cut = bcoo_slice(mat, start_indices=starts, limit_indices=stops, strides=steps)
    made = bcoo_squeeze(cut, dimensions=gone)
    if not new:
        return made
    shape = list(made.shape)
    for d in new:
        shape.insert(d, 1)
    kept = [d for d in range(len(shape)) if d not in new]
    return bcoo_broadcast_in_dim(made, shape=shape, broadcast_dimensions=kept)


_INTEGERS: tuple[type, ...] = (int, np.integer)


def _bounds(mat: Entries, d: int, key: Any) -> tuple[int, int, int, bool]:
    """Where a key begins and ends, by what steps, and whether the dimension goes."""
    n = mat.shape[d]
    if isinstance(key, slice):
        start, stop, step = key.indices(n)
        if step > 0:
            return start, max(start, stop), step, False
    elif isinstance(key, _INTEGERS) and not isinstance(key, bool):
        at = index(key)
        if -n <= at < n:
            return at % n, at % n + 1, 1, True
        raise IndexError(f"{type(mat).__name__}: index {key} is beyond dimension {d} of {mat}")
    raise IndexError(
        f"{type(mat).__name__}: entries are read at integers and slices that go forward, got "
        f"{key!r}; bcoo_rev turns dimensions round, todense() gives what takes other indices"
    )
