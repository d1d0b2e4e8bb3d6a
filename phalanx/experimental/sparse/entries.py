"""The lists of entries themselves: sorted, without duplicates, read from arrays, combined."""

from __future__ import annotations

from typing import Any

import phalanx.numpy as jnp
from phalanx.base.errors import ConcretizationTypeError
from phalanx.experimental.sparse.layouts import (
    Entries,
    Mat,
    each_of_batch,
    inside,
    listed,
    positions,
    with_layout,
    without_padding,
)


def _ordered(mat: Mat) -> Mat:
    """The entries of what has no batch by their positions, padding last, where it is at the end."""
    ends = jnp.asarray(mat.sparse_shape, mat.indices.dtype)
    indices = jnp.where(inside(mat)[:, None], mat.indices, ends)
    data = without_padding(mat)
    if mat.n_sparse:
        order = jnp.lexsort([indices[:, d] for d in reversed(range(mat.n_sparse))])
        data, indices = data[order], indices[order]
    return mat.made(data, indices, mat.tail, True, mat.unique_indices)


def bcoo_sort_indices(mat: Mat) -> Mat:
    """``BCOO`` with its entries in ascending order of position.

    Args:
        mat: a ``BCOO``.

    Returns:
        A ``BCOO``.

    >>> from phalanx.experimental import sparse
    >>> m = sparse.BCOO((jnp.array([1.0, 2.0]), jnp.array([[3], [0]])), shape=(4,))
    >>> print(sparse.bcoo_sort_indices(m).indices.tolist())
    [[0], [3]]
    """
    return mat if mat.indices_sorted else each_of_batch(_ordered, mat.n_batch)(mat)


def _first_of_each(indices: Any) -> Any:
    """Which of ordered positions differ from those before."""
    changed = jnp.any(indices[1:] != indices[:-1], axis=-1)
    return jnp.concatenate([jnp.ones(min(1, len(indices)), bool), changed])


def _first_inside(mat: Any) -> Any:
    return _first_of_each(mat.indices) & inside(mat)


def bcoo_sum_duplicates(mat: Mat, nse: int | None = None) -> Mat:
    """``BCOO`` with one entry per position, in ascending order.

    Args:
        mat: a ``BCOO``.
        nse: the number of entries to keep room for; those beyond it are lost. None for as many as
            there are, or, under ``jit``, for as many as ``mat`` has.

    Returns:
        A ``BCOO``.

    >>> from phalanx.experimental import sparse
    >>> m = sparse.BCOO((jnp.array([1.0, 2.0]), jnp.array([[3], [3]])), shape=(4,))
    >>> print(sparse.bcoo_sum_duplicates(m).data)
    [3.]
    """
    if mat.unique_indices and nse in (None, mat.nse):
        return bcoo_sort_indices(mat)
    ordered = each_of_batch(_ordered, mat.n_batch)(mat)
    if nse is None:
        firsts = each_of_batch(_first_inside, mat.n_batch)
        try:
            count: Any = jnp.max(jnp.sum(firsts(ordered), axis=-1), initial=0)
            nse = int(count)
        except ConcretizationTypeError:
            nse = mat.nse

    def one(mat: Mat) -> Mat:
        number = jnp.cumsum(_first_of_each(mat.indices)) - 1
        ends = jnp.broadcast_to(
            jnp.asarray(mat.sparse_shape, mat.indices.dtype), (nse, mat.n_sparse)
        )
        sums = jnp.zeros((nse, *mat.dense_shape), mat.dtype).at[number]
        data = (sums.max if mat.dtype == bool else sums.add)(mat.data, mode="drop")
        indices = ends.at[number].set(mat.indices, mode="drop")
        return mat.made(data, indices, mat.tail, True, True)

    return each_of_batch(one, mat.n_batch)(ordered)


def bcoo_extract(sparr: Mat, arr: Any, *, assume_unique: bool | None = None) -> Mat:
    """``BCOO`` with the values that a dense array has at the positions of ``sparr``.

    Args:
        sparr: a ``BCOO``, of which the positions alone are used.
        arr: a dense array of the same shape.
        assume_unique: whether no position occurs twice; None for ``sparr.unique_indices``. Of
            positions that do occur twice, the first gets the value, the others 0.

    Returns:
        A ``BCOO`` with the positions of ``sparr``.

    Raises:
        ValueError: the shapes differ.

    >>> from phalanx.experimental import sparse
    >>> print(sparse.bcoo_extract(sparse.eye(2), jnp.array([[5.0, 6.0], [7.0, 8.0]])).data)
    [5. 8.]
    """
    arr = jnp.asarray(arr)
    if arr.shape != sparr.shape:
        raise ValueError(f"bcoo_extract: shapes must be equal, got {sparr.shape} and {arr.shape}")
    unique = sparr.unique_indices if assume_unique is None else assume_unique

    def one(mat: Mat, arr: Any) -> Mat:
        if not unique:
            mat = _ordered(mat)
        if not mat.n_sparse:
            data = jnp.broadcast_to(arr, mat.data.shape)
        else:
            data = arr.at[positions(mat)].get(mode="fill", fill_value=0)
        if not unique:
            first = _first_of_each(mat.indices)
            data = jnp.where(first.reshape(first.shape + (1,) * mat.n_dense), data, 0)
        return mat.made(data, mat.indices, mat.tail, mat.indices_sorted, mat.unique_indices)

    return each_of_batch(one, sparr.n_batch)(sparr, arr)


def alike(mats: list[Any]) -> list[Any]:
    """The same arrays, with as many batch and dense dimensions in each."""
    layouts = {(m.n_batch, m.n_dense) for m in mats}
    if len(layouts) == 1:
        return mats
    n_batch, n_dense = (min(column) for column in zip(*layouts, strict=True))
    return [with_layout(m, n_batch, n_dense) for m in mats]


def plus(x: Mat, y: Mat) -> Mat:
    """The sum of two arrays of one shape: the entries of both."""
    if x.shape != y.shape:
        raise ValueError(f"add: sparse arrays must have one shape, got {x.shape} and {y.shape}")
    x, y = alike([x, y])
    dtype = jnp.promote_types(x.dtype, y.dtype)
    data = jnp.concatenate([x.data.astype(dtype), y.data.astype(dtype)], axis=x.n_batch)
    indices = jnp.concatenate([x.indices, y.indices], axis=x.n_batch)
    return x.made(data, indices, x.tail)


def bcoo_multiply_dense(sp_mat: Entries, v: Any) -> Any:
    """Entries of a ``BCOO`` times the elements of a dense array at the same positions.

    Args:
        sp_mat: a ``BCOO``.
        v: a dense array that broadcasts to the shape of ``sp_mat``.

    Returns:
        The new ``data``, an array of the shape of ``sp_mat.data``.

    Raises:
        ValueError: ``v`` does not broadcast to ``sp_mat``.

    >>> from phalanx.experimental import sparse
    >>> print(sparse.bcoo_multiply_dense(sparse.eye(2), jnp.array([[3.0, 4.0], [5.0, 6.0]])))
    [3. 6.]
    """
    v = jnp.asarray(v)
    lengths = zip(reversed(v.shape), reversed(sp_mat.shape), strict=False)
    if v.ndim > len(sp_mat.shape) or not all(n in (1, whole) for n, whole in lengths):
        raise ValueError(
            f"bcoo_multiply_dense: an array of shape {v.shape} does not broadcast to that of "
            f"a sparse one, {sp_mat.shape}; todense() gives what takes other shapes"
        )
    v = v.reshape((1,) * (sp_mat.ndim - v.ndim) + v.shape)
    v = jnp.broadcast_to(v, (*sp_mat.shape[: sp_mat.n_batch], *v.shape[sp_mat.n_batch :]))

    def one(mat: Entries, v: Any) -> Any:
        lengths = v.shape[: mat.n_sparse]
        pairs = zip(positions(mat), lengths, strict=True)
        at = tuple([0 if n == 1 else p for p, n in pairs])
        if not at:
            return mat.data * v
        if all(n == 1 for n in lengths):
            return mat.data * v[at]
        return mat.data * v.at[at].get(mode="fill", fill_value=0)

    return each_of_batch(one, sp_mat.n_batch)(sp_mat, v)


def bcoo_multiply_sparse(lhs: Mat, rhs: Entries) -> Mat:
    """Elementwise product of two ``BCOO`` of one shape.

    Args:
        lhs: a ``BCOO``.
        rhs: another one, of the same shape.

    Returns:
        A ``BCOO``.

    Raises:
        ValueError: the shapes differ.

    >>> from phalanx.experimental import sparse
    >>> x = sparse.BCOO.fromdense(jnp.array([1.0, 0.0, 3.0]))
    >>> y = sparse.BCOO.fromdense(jnp.array([0.0, 2.0, 4.0]))
    >>> print(sparse.bcoo_multiply_sparse(x, y).todense())
    [ 0.  0. 12.]
    """
    if lhs.shape != rhs.shape:
        raise ValueError(
            f"bcoo_multiply_sparse: shapes must be equal, got {lhs.shape} and {rhs.shape}"
        )
    x, y = listed(lhs), listed(rhs)
    same = jnp.all(x.indices[:, None, :] == y.indices[None, :, :], axis=-1)
    factors = jnp.sum(jnp.where(same, without_padding(y)[None, :], 0), axis=1, dtype=y.dtype)
    product = x.with_data(without_padding(x) * factors)
    return with_layout(product, lhs.n_batch, lhs.n_dense)
