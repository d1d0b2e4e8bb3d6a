"""Arrays of which the entries that are not zero are listed: how they lie, and what of that changes.

The dimensions are, in order, those of a *batch*, each element of which has a list of its own of the
same length; *sparse* ones, in which entries have positions; and *dense* ones, of which each entry
is an array. ``data`` has the shape (*batch, nse, *dense), ``indices`` (*batch, nse, n_sparse). What
lies outside of the array, at any of its positions, is padding: no entry.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

import phalanx.numpy as jnp
from phalanx.api.vmap import vmap
from phalanx.base import dtypes
from phalanx.base.lengths import length
from phalanx.core.types import ArrayType

Mat = TypeVar("Mat", bound="Entries")
Ints = Sequence[int]


class Entries:
    """Entries with their positions; what ``BCOO`` is without its operators.

    Lanes of it are made of lanes of ``data`` and ``indices``, so it keeps the lengths of dimensions
    that are no batch, and the batch is that of ``data``.
    """

    data: Any
    indices: Any
    tail: tuple[int, ...]
    indices_sorted: bool
    unique_indices: bool

    def __init__(
        self,
        args: tuple[Any, Any],
        *,
        shape: Ints,
        indices_sorted: bool = False,
        unique_indices: bool = False,
    ) -> None:
        data, indices = map(jnp.asarray, args)
        shape = tuple(map(length, shape))
        batch = indices.ndim - 2
        self.indices_sorted, self.unique_indices = bool(indices_sorted), bool(unique_indices)
        self.tail = shape[max(batch, 0) :]
        self._check(data, indices, shape)
        self.data = jnp.broadcast_to(data, (*shape[:batch], *data.shape[batch:]))
        self.indices = jnp.broadcast_to(indices, (*shape[:batch], *indices.shape[batch:]))

    def _check(self, data: Any, indices: Any, shape: tuple[int, ...]) -> None:
        who = f"{type(self).__name__}: "
        got = f"got data {data.aval} and indices {indices.aval} for the shape {shape}"
        batch = indices.ndim - 2
        if batch < 0 or not dtypes.is_integer(indices.dtype):
            raise ValueError(
                f"{who}indices must be integers of shape (*batch, nse, n_sparse), {got}"
            )
        sparse = indices.shape[-1]
        same = data.ndim > batch and data.shape[batch] == indices.shape[batch]
        dense = shape[batch + sparse :]
        if not same or data.shape[batch + 1 :] != dense or len(shape) < batch + sparse:
            raise ValueError(
                f"{who}data must be of shape (*batch, nse, *dense), with dense the last "
                f"dimensions of the whole, {got}"
            )
        for x in (data, indices):
            fits = [n in (1, m) for n, m in zip(x.shape[:batch], shape[:batch], strict=True)]
            if not all(fits):
                raise ValueError(f"{who}the batch of each must be that of the whole, or 1, {got}")

    def made(
        self: Mat, data: Any, indices: Any, tail: Ints, sorted: bool = False, unique: bool = False
    ) -> Mat:
        """Entries of the same class at other positions, in an array of other lengths.

        Args:
            data: the entries.
            indices: their positions.
            tail: the lengths of the dimensions that are sparse or dense.
            sorted: whether positions ascend.
            unique: whether none comes twice.
        """
        new = object.__new__(type(self))
        new.data, new.indices, new.tail = data, indices, tuple(tail)
        new.indices_sorted, new.unique_indices = sorted, unique
        return new

    def with_data(self: Mat, data: Any) -> Mat:
        """Other entries at the same positions.

        Args:
            data: the entries.
        """
        tail = (*self.sparse_shape, *data.shape[self.n_batch + 1 :])
        return self.made(data, self.indices, tail, self.indices_sorted, self.unique_indices)

    def tree_flatten(self) -> tuple[tuple[Any, Any], Any]:
        return (self.data, self.indices), (self.tail, self.indices_sorted, self.unique_indices)

    @classmethod
    def tree_unflatten(cls, kept: Any, children: Any) -> Any:
        """The matrix that ``tree_flatten`` took apart.

        Args:
            kept: what is no array: lengths, and what is known of the positions.
            children: the arrays.
        """
        made = object.__new__(cls)
        made.data, made.indices = children
        made.tail, made.indices_sorted, made.unique_indices = kept
        return made

    @property
    def n_batch(self) -> int:
        """The number of batch dimensions."""
        return self.indices.ndim - 2

    @property
    def n_sparse(self) -> int:
        """The number of sparse dimensions."""
        return self.indices.shape[-1]

    @property
    def n_dense(self) -> int:
        """The number of dense dimensions."""
        return self.data.ndim - 1 - self.n_batch

    @property
    def nse(self) -> int:
        """The number of stored entries, padding included; for each element of the batch."""
        return self.indices.shape[-2]

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the whole array."""
        return (*self.data.shape[: self.n_batch], *self.tail)

    @property
    def sparse_shape(self) -> tuple[int, ...]:
        """The shape of the sparse dimensions."""
        return self.tail[: self.n_sparse]

    @property
    def dense_shape(self) -> tuple[int, ...]:
        """The shape of the dense dimensions."""
        return self.tail[self.n_sparse :]

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements, zeros included."""
        return math.prod(self.shape)

    @property
    def dtype(self) -> np.dtype:
        """The dtype of the entries."""
        return self.data.dtype

    @property
    def aval(self) -> ArrayType:
        """The type of the whole array."""
        return ArrayType(self.shape, self.dtype)

    def __repr__(self) -> str:
        name = type(self).__name__
        try:
            kind, nse = f"{self.dtype.name}{list(self.shape)}", self.nse
            counts = {"n_batch": self.n_batch, "n_dense": self.n_dense}
        except (AttributeError, IndexError, TypeError):  # of leaves that are no arrays
            return f"{name}({self.data!r}, {self.indices!r})"
        words = "".join(f", {k}={n}" for k, n in counts.items() if n)
        return f"{name}({kind}, nse={nse}{words})"


def positions(mat: Entries) -> tuple[Any, ...]:
    """The positions of all entries along each sparse dimension."""
    return tuple([mat.indices[..., d] for d in range(mat.n_sparse)])


def inside(mat: Entries) -> Any:
    """Which entries lie inside the array; the others are padding."""
    return jnp.all(mat.indices < jnp.asarray(mat.sparse_shape, mat.indices.dtype), axis=-1)


def without_padding(mat: Entries) -> Any:
    """The data, zero where there is no entry."""
    real = inside(mat)
    return jnp.where(real.reshape(real.shape + (1,) * mat.n_dense), mat.data, 0)


def each_of_batch(function: Callable[..., Any], n_batch: int) -> Callable[..., Any]:
    """``function`` of what has no batch, on what has ``n_batch`` dimensions of it."""
    for _ in range(n_batch):
        function = vmap(function)
    return function


# ---- from and to arrays ---------------------------------------------------------------------


def entries_of(
    cls: type[Mat], mat: Any, nse: int | None, n_batch: int, n_dense: int, index_dtype: Any
) -> Mat:
    """The entries of an array that are not zero, or the first ``nse`` of them, and padding."""
    mat = jnp.asarray(mat)
    n_sparse = mat.ndim - n_batch - n_dense
    if n_batch < 0 or n_dense < 0 or n_sparse < 0:
        raise ValueError(
            f"{cls.__name__}.fromdense: n_batch={n_batch} and n_dense={n_dense} do not fit "
            f"{mat.aval}"
        )
    dense = tuple(range(mat.ndim - n_dense, mat.ndim))
    present = jnp.any(mat != 0, axis=dense)
    if nse is None:
        counts = jnp.sum(present, axis=tuple(range(n_batch, n_batch + n_sparse)))
        most: Any = jnp.max(counts, initial=0)
        nse = int(most)
    tail = mat.shape[n_batch:]

    def one(mat: Any, present: Any) -> tuple[Any, Any]:
        if not n_sparse:
            first_alone = jnp.where(jnp.arange(nse) < 1, 1, 0).astype(mat.dtype)
            data = jnp.expand_dims(mat, 0) * first_alone.reshape((nse,) + (1,) * n_dense)
            return data, jnp.zeros((nse, 0), index_dtype)
        at = jnp.nonzero(present, size=nse, fill_value=tail[:n_sparse])
        data = mat.at[at].get(mode="fill", fill_value=0)
        return data, jnp.stack(at, axis=-1).astype(index_dtype)

    data, indices = each_of_batch(one, n_batch)(mat, present)
    return object.__new__(cls).made(data, indices, tail, True, True)


def to_dense(mat: Entries) -> Any:
    """The whole array; entries at the same position add up."""

    def one(mat: Entries) -> Any:
        if not mat.n_sparse:
            return jnp.sum(mat.data, axis=0, dtype=mat.dtype)
        zeros = jnp.zeros(mat.tail, mat.dtype).at[positions(mat)]
        put = zeros.max if mat.dtype == bool else zeros.add
        return put(mat.data, mode="drop")

    return each_of_batch(one, mat.n_batch)(mat)


# ---- which dimensions are which -------------------------------------------------------------


def with_layout(mat: Mat, n_batch: int, n_dense: int) -> Mat:
    """The same array with so many dimensions of the batch, and dense ones.

    Where there are to be fewer, the list becomes longer; where there are to be more, it is made
    anew, and as long as it may have to be.
    """
    if (n_batch, n_dense) == (mat.n_batch, mat.n_dense):
        return mat
    if n_batch <= mat.n_batch and n_dense <= mat.n_dense:
        return _batch_as_sparse(_dense_as_sparse(mat, n_dense), n_batch)
    shape = mat.shape[n_batch : mat.ndim - n_dense]
    most = mat.nse * math.prod(mat.shape[: mat.n_batch]) * math.prod(mat.dense_shape)
    nse = min(math.prod(shape), most)
    return entries_of(type(mat), to_dense(mat), nse, n_batch, n_dense, mat.indices.dtype)


def _dense_as_sparse(mat: Mat, n_dense: int) -> Mat:
    """The first dense dimensions become sparse ones, so that ``n_dense`` are left."""
    count = mat.n_dense - n_dense
    if not count:
        return mat
    lengths = mat.dense_shape[:count]
    grid = np.indices(lengths).reshape(count, -1).T.astype(mat.indices.dtype)
    batch, total = mat.shape[: mat.n_batch], len(grid)
    shape = (*batch, mat.nse, total)
    before = jnp.broadcast_to(mat.indices[..., None, :], (*shape, mat.n_sparse))
    indices = jnp.concatenate([before, jnp.broadcast_to(grid, (*shape, count))], axis=-1)
    data = mat.data.reshape(*batch, mat.nse * total, *mat.dense_shape[count:])
    flat = indices.reshape(*batch, mat.nse * total, -1)
    return mat.made(data, flat, mat.tail, mat.indices_sorted, mat.unique_indices)


def _batch_as_sparse(mat: Mat, n_batch: int) -> Mat:
    """The last dimensions of the batch become sparse ones, so that ``n_batch`` are left."""
    count = mat.n_batch - n_batch
    if not count:
        return mat
    lengths = mat.shape[n_batch : mat.n_batch]
    shape = (*mat.shape[: mat.n_batch], mat.nse)
    own = [
        jnp.broadcast_to(
            jnp.arange(n, dtype=mat.indices.dtype).reshape(n, *(1,) * (count - d)), shape
        )
        for d, n in enumerate(lengths)
    ]
    indices = jnp.concatenate([jnp.stack(own, axis=-1), mat.indices], axis=-1)
    outer = mat.shape[:n_batch]
    nse = math.prod(lengths) * mat.nse
    return mat.made(
        mat.data.reshape(*outer, nse, *mat.dense_shape),
        indices.reshape(*outer, nse, -1),
        (*lengths, *mat.tail),
        False,
        mat.unique_indices,
    )


def listed(mat: Mat) -> Mat:
    """The same array without batch and dense dimensions: one list of numbers."""
    return with_layout(mat, 0, 0)
