"""``BCSR``: matrices by rows of entries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import phalanx.numpy as jnp
from phalanx.experimental.sparse.bcoo import BCOO, JAXSparse
from phalanx.tree_util import register_pytree_node_class


@register_pytree_node_class
class BCSR(JAXSparse):
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

    n_batch = n_dense = 0
    n_sparse = ndim = 2

    def __init__(
        self,
        args: tuple[Any, Any, Any],
        *,
        shape: Sequence[int],
        indices_sorted: bool = False,
        unique_indices: bool = False,
    ) -> None:
        self.data, self.indices, self.indptr = map(jnp.asarray, args)
        self.shape = tuple(shape)
        self.indices_sorted, self.unique_indices = indices_sorted, unique_indices
        flat = self.data.ndim == self.indices.ndim == self.indptr.ndim == 1
        if len(self.shape) != 2 or not flat or len(self.indptr) != self.shape[0] + 1:
            raise ValueError(
                "BCSR: a matrix without batch and dense dimensions is needed, and one number more "
                f"than it has rows, got {self.data.aval}, {self.indices.aval} and "
                f"{self.indptr.aval} for the shape {self.shape}; BCOO has other forms"
            )

    def tree_flatten(self) -> tuple[tuple[Any, ...], Any]:
        kept = self.shape, self.indices_sorted, self.unique_indices
        return (self.data, self.indices, self.indptr), kept

    @classmethod
    def tree_unflatten(cls, kept: Any, children: Any) -> BCSR:
        """The matrix that ``tree_flatten`` took apart.

        Args:
            kept: what is no array: lengths, and what is known of the positions.
            children: the arrays.
        """
        made = object.__new__(cls)
        made.data, made.indices, made.indptr = children
        made.shape, made.indices_sorted, made.unique_indices = kept
        return made

    @property
    def nse(self) -> int:
        """How many entries are listed."""
        return len(self.indices)

    @property
    def size(self) -> int:
        """The number of elements, zeros included."""
        return self.shape[0] * self.shape[1]

    @property
    def dtype(self) -> np.dtype:
        """The dtype of the entries."""
        return self.data.dtype

    def __repr__(self) -> str:
        return f"BCSR({self.dtype.name}{list(self.shape)}, nse={self.nse})"

    @classmethod
    def from_bcoo(cls, arr: BCOO) -> BCSR:
        """The ``BCSR`` of a ``BCOO`` of two dimensions.

        Args:
            arr: a ``BCOO`` matrix.
        """
        if arr.n_batch or arr.n_dense or arr.ndim != 2:
            raise ValueError(f"BCSR.from_bcoo: a matrix of sparse dimensions is needed, got {arr}")
        arr = arr.sort_indices()
        starts = jnp.arange(arr.shape[0] + 1, dtype=arr.indices.dtype)
        indptr = jnp.searchsorted(arr.indices[:, 0], starts).astype(arr.indices.dtype)
        return cls(
            (arr.data, arr.indices[:, 1], indptr), shape=arr.shape,
            indices_sorted=True, unique_indices=arr.unique_indices,
        )  # fmt: skip

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

    @classmethod
    def fromdense(
        cls, mat: Any, *, nse: int | None = None, index_dtype: Any = np.int32,
        n_dense: int = 0, n_batch: int = 0,
    ) -> BCSR:  # fmt: skip
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

    @classmethod
    def from_scipy_sparse(cls, mat: Any, *, index_dtype: Any = None) -> BCSR:
        """The ``BCSR`` of a sparse matrix of SciPy.

        Args:
            mat: a sparse matrix of SciPy.
            index_dtype: the integer dtype of the positions; None for int32.
        """
        csr = mat.tocsr()
        kind = index_dtype or np.int32
        return cls((csr.data, csr.indices.astype(kind), csr.indptr.astype(kind)), shape=csr.shape)

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

    def sum_duplicates(self, nse: int | None = None) -> BCSR:
        """The same with one entry for each position.

        Args:
            nse: for how many entries there is room; None for as many as there are.
        """
        return self.from_bcoo(self.to_bcoo().sum_duplicates(nse))

    def transpose(self, axes: Sequence[int] | None = None) -> BCSR:
        """The matrix with its dimensions in another order.

        Args:
            axes: the dimensions in their new order; None for backwards.
        """
        return self.from_bcoo(self.to_bcoo().transpose(axes))

    @property
    def T(self) -> BCSR:
        """The matrix with rows for columns."""
        return self.transpose()

    def sum(self, axis: Any = None) -> Any:
        """Sum over axes: a ``BCOO`` over one of them, a dense number over both.

        Args:
            axis: the axis, or several; None for all.
        """
        return self.to_bcoo().sum(axis)

    def block_until_ready(self) -> BCSR:
        """Wait for the data."""
        self.data.block_until_ready()
        return self

    def __matmul__(self, other: Any) -> Any:
        return self.to_bcoo() @ (other.to_bcoo() if isinstance(other, BCSR) else other)

    def __rmatmul__(self, other: Any) -> Any:
        return other @ self.to_bcoo()

    def __mul__(self, other: Any) -> BCSR:
        other = other.to_bcoo() if isinstance(other, BCSR) else other
        return self.from_bcoo(self.to_bcoo() * other)

    __rmul__ = __mul__

    def __neg__(self) -> BCSR:
        return self * -1

    def __add__(self, other: Any) -> Any:
        if isinstance(other, BCSR):
            return self.from_bcoo(self.to_bcoo() + other.to_bcoo())
        return self.to_bcoo() + other

    __radd__ = __add__
