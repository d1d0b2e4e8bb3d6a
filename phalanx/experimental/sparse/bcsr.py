"""``BCSR``: matrices by rows of entries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np

import phalanx.numpy as jnp
from phalanx.base.source import user_location
from phalanx.experimental.sparse.bcoo import BCOO
from phalanx.experimental.sparse.layouts import inside
from phalanx.experimental.sparse.matrices import Matrix, checked
from phalanx.experimental.sparse.products import Pair, bcoo_dot_general
from phalanx.experimental.sparse.shaping import bcoo_concatenate
from phalanx.tree_util import register_pytree_node_class


class Rows(Matrix):
    """A matrix whose entries are stored row after row."""

    arrays = ("data", "indices", "indptr")
    indices_sorted = unique_indices = False

    def __init__(self, args: tuple[Any, Any, Any], *, shape: Sequence[int]) -> None:
        self.data, self.indices, self.indptr = checked(type(self).__name__, args, shape)
        self.shape = tuple(shape)
        if len(self.indptr) != self.shape[0] + 1:
            raise ValueError(
                f"{type(self).__name__}: indptr must have one number more than the shape "
                f"{self.shape} has rows, got {len(self.indptr)} at {user_location()}"
            )

    @classmethod
    def from_bcoo(cls, arr: BCOO) -> Self:
        """The matrix of a ``BCOO`` of two dimensions.

        Args:
            arr: a ``BCOO`` matrix.
        """
        if arr.n_batch or arr.n_dense or arr.ndim != 2:
            raise ValueError(
                f"{cls.__name__}.from_bcoo: a matrix of sparse dimensions is needed, got {arr}"
            )
        arr = arr.sort_indices()
        starts = jnp.arange(arr.shape[0] + 1, dtype=arr.indices.dtype)
        indptr = jnp.searchsorted(arr.indices[:, 0], starts).astype(arr.indices.dtype)
        columns = jnp.where(inside(arr), arr.indices[:, 1], 0)
        return cls((arr.data, columns, indptr), shape=arr.shape)

    def to_bcoo(self) -> BCOO:
        """The same matrix in coordinate format."""
        number = jnp.arange(self.nse, dtype=self.indptr.dtype)
        rows = jnp.searchsorted(self.indptr, number, side="right") - 1
        columns = jnp.where(number < self.indptr[-1], self.indices, self.shape[1])
        indices = jnp.stack([rows.astype(columns.dtype), columns], axis=-1)
        return BCOO(
            (self.data, indices), shape=self.shape,
            indices_sorted=self.indices_sorted, unique_indices=self.unique_indices,
        )  # fmt: skip


@register_pytree_node_class
class BCSR(Rows):
    """Sparse matrix in compressed sparse row format.

    Entries are stored row after row. It is a pytree of its three arrays. Products and sums are
    computed as those of a ``BCOO``, into which it converts; unlike JAX's it has no batch or dense
    dimensions.

    Args:
        args: (data, indices, indptr): the entries, their columns, and where each row begins: row i
            has the entries from ``indptr[i]`` to ``indptr[i + 1]``, exclusive.
        shape: the shape of the matrix.
        indices_sorted: a promise that columns are in ascending order in each row.
        unique_indices: a promise that no column occurs twice in a row.

    >>> m = BCSR.fromdense(jnp.array([[1.0, 0.0, 2.0], [0.0, 3.0, 0.0]]))
    >>> m, m.indices.tolist(), m.indptr.tolist()
    (BCSR(float32[2, 3], nse=3), [0, 2, 1], [0, 2, 3])
    >>> print(m @ jnp.arange(3.0))
    [4. 3.]
    """

    kept = ("shape", "indices_sorted", "unique_indices")

    def __init__(
        self,
        args: tuple[Any, Any, Any],
        *,
        shape: Sequence[int],
        indices_sorted: bool = False,
        unique_indices: bool = False,
    ) -> None:
        super().__init__(args, shape=shape)
        self.indices_sorted, self.unique_indices = indices_sorted, unique_indices

    @classmethod
    def from_bcoo(cls, arr: BCOO) -> Self:
        """The ``BCSR`` of a ``BCOO`` of two dimensions.

        Args:
            arr: a ``BCOO`` matrix.
        """
        matrix = super().from_bcoo(arr)
        matrix.indices_sorted, matrix.unique_indices = True, arr.unique_indices
        return matrix

    @classmethod
    def fromdense(
        cls, mat: Any, *, nse: int | None = None, index_dtype: Any = np.int32,
        n_dense: int = 0, n_batch: int = 0,
    ) -> Self:  # fmt: skip
        """Sparse matrix in row format with the nonzero elements of a dense one.

        Args:
            mat: a dense matrix.
            nse: the number of entries to store; None for as many as there are, which cannot be
                known under ``jit``.
            index_dtype: the integer dtype of the positions.
            n_dense: must be 0.
            n_batch: must be 0.

        Returns:
            A ``BCSR``.

        >>> from phalanx.experimental import sparse
        >>> m = sparse.bcsr_fromdense(jnp.array([[0.0, 2.0], [3.0, 4.0]]))
        >>> print(m.data, m.indices, m.indptr)
        [2. 3. 4.] [1 0 1] [0 1 3]
        """
        return cls.from_bcoo(
            BCOO.fromdense(mat, nse=nse, index_dtype=index_dtype, n_dense=n_dense, n_batch=n_batch)
        )

    def todense(self) -> Any:
        """The dense matrix of a ``BCSR``.

        Args:
            self: a ``BCSR``.

        Returns:
            A dense matrix of the same shape.

        >>> from phalanx.experimental import sparse
        >>> print(sparse.bcsr_todense(sparse.bcsr_fromdense(jnp.array([[0.0, 2.0]]))))
        [[0. 2.]]
        """
        return self.to_bcoo().todense()

    def sum_duplicates(self, nse: int | None = None, remove_zeros: bool = True) -> Self:
        """The same with one entry for each position.

        Args:
            nse: for how many entries there is room; None for as many as there are.
            remove_zeros: accepted, and ignored: zeros stay.
        """
        return self.from_bcoo(self.to_bcoo().sum_duplicates(nse))


def bcsr_dot_general(
    lhs: Any,
    rhs: Any,
    *,
    dimension_numbers: tuple[Pair, Pair],
    precision: Any = None,
    preferred_element_type: Any = None,
    out_sharding: Any = None,
) -> Any:
    """General product of arrays, as ``lax.dot_general``, where one or both are ``BCSR``.

    Args:
        lhs: a ``BCSR``, or a dense array.
        rhs: likewise.
        dimension_numbers: ((lhs contracting, rhs contracting), (lhs batch, rhs batch)) dimensions.
        precision: accepted, and ignored.
        preferred_element_type: the dtype of the result; None for the promoted one.
        out_sharding: accepted, and ignored.

    Returns:
        A dense array; a ``BCOO`` where both operands are sparse.

    >>> matvec = (((1,), (0,)), ((), ()))
    >>> print(bcsr_dot_general(BCSR.fromdense(jnp.eye(2)), jnp.ones(2), dimension_numbers=matvec))
    [1. 1.]
    """
    lhs, rhs = [x.to_bcoo() if isinstance(x, BCSR) else x for x in (lhs, rhs)]
    return bcoo_dot_general(
        lhs, rhs, dimension_numbers=dimension_numbers, preferred_element_type=preferred_element_type
    )


def bcsr_extract(indices: Any, indptr: Any, mat: Any) -> Any:
    """The values that a dense matrix has at the positions of a ``BCSR``.

    Args:
        indices: the columns of the entries.
        indptr: where each row begins.
        mat: a dense matrix.

    Returns:
        The entries.

    >>> m = BCSR.fromdense(jnp.eye(2))
    >>> print(bcsr_extract(m.indices, m.indptr, jnp.array([[5.0, 6.0], [7.0, 8.0]])))
    [5. 8.]
    """
    mat, indices = jnp.asarray(mat), jnp.asarray(indices)
    rows, columns = BCSR((indices, indices, indptr), shape=mat.shape).to_bcoo().indices.T
    return mat.at[rows, columns].get(mode="fill", fill_value=0)


def bcsr_concatenate(operands: Sequence[BCSR], *, dimension: int) -> BCSR:
    """``BCSR`` matrices side by side.

    Args:
        operands: the matrices.
        dimension: 0 for one below the other, 1 for one beside the other.

    Returns:
        A ``BCSR``.

    >>> m = BCSR.fromdense(jnp.eye(2))
    >>> bcsr_concatenate([m, m], dimension=0)
    BCSR(float32[4, 2], nse=4)
    """
    return BCSR.from_bcoo(bcoo_concatenate([m.to_bcoo() for m in operands], dimension=dimension))


def bcsr_sum_duplicates(mat: BCSR, nse: int | None = None) -> BCSR:
    """``BCSR`` with one entry per position.

    Args:
        mat: a ``BCSR``.
        nse: for how many entries there is room; None for as many as there are.

    Returns:
        A ``BCSR``.

    >>> twice = BCSR((jnp.ones(2), jnp.zeros(2, int), jnp.array([0, 2])), shape=(1, 1))
    >>> print(bcsr_sum_duplicates(twice).data)
    [2.]
    """
    return mat.sum_duplicates(nse)
