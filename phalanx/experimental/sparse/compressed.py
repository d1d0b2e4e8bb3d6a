"""``COO``, ``CSR`` and ``CSC``: matrices without batches, and products of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import phalanx.numpy as jnp
from phalanx.base.errors import ShapeError
from phalanx.base.source import user_location
from phalanx.experimental.sparse.bcoo import BCOO
from phalanx.experimental.sparse.bcsr import Rows
from phalanx.experimental.sparse.layouts import inside
from phalanx.experimental.sparse.matrices import Matrix, checked
from phalanx.tree_util import register_pytree_node_class


@register_pytree_node_class
class COO(Matrix):
    """Sparse matrix by the rows and columns of its entries.

    It is a pytree of its three arrays. Products and sums are computed as those of a ``BCOO``.

    Args:
        args: (data, row, col): the entries, and where they are.
        shape: the shape of the matrix.
        rows_sorted: a promise that rows are in ascending order.
        cols_sorted: a promise that columns are.

    >>> m = COO.fromdense(jnp.array([[1.0, 0.0, 2.0], [0.0, 3.0, 0.0]]))
    >>> m, m.row.tolist(), m.col.tolist()
    (COO(float32[2, 3], nse=3), [0, 0, 1], [0, 2, 1])
    >>> print(m @ jnp.arange(3.0))
    [4. 3.]
    """

    arrays = ("data", "row", "col")
    kept = ("shape", "_rows_sorted", "_cols_sorted")

    def __init__(
        self,
        args: tuple[Any, Any, Any],
        *,
        shape: Sequence[int],
        rows_sorted: bool = False,
        cols_sorted: bool = False,
    ) -> None:
        self.data, self.row, self.col = checked("COO", args, shape)
        self.shape = tuple(shape)
        self._rows_sorted, self._cols_sorted = rows_sorted, cols_sorted

    @classmethod
    def from_bcoo(cls, arr: BCOO) -> COO:
        """The ``COO`` of a ``BCOO`` of two dimensions.

        Args:
            arr: a ``BCOO`` matrix.
        """
        there = inside(arr)  # padding becomes zeros at the first position
        rows, columns = (jnp.where(there, arr.indices[:, d], 0) for d in (0, 1))
        data = jnp.where(there, arr.data, 0)
        return cls((data, rows, columns), shape=arr.shape, rows_sorted=arr.indices_sorted)

    def to_bcoo(self) -> BCOO:
        """The same matrix in coordinate format."""
        return BCOO((self.data, jnp.stack([self.row, self.col], axis=-1)), shape=self.shape)


@register_pytree_node_class
class CSR(Rows):
    """Sparse matrix by rows of entries.

    It is a pytree of its three arrays. Products and sums are computed as those of a ``BCOO``.

    Args:
        args: (data, indices, indptr): the entries, their columns, and where each row begins.
        shape: the shape of the matrix.

    >>> m = CSR.fromdense(jnp.array([[1.0, 0.0, 2.0], [0.0, 3.0, 0.0]]))
    >>> m.indices.tolist(), m.indptr.tolist(), m.T
    ([0, 2, 1], [0, 2, 3], CSC(float32[3, 2], nse=3))
    """

    def transpose(self, axes: Sequence[int] | None = None) -> Any:
        """The matrix with rows for columns, a ``CSC`` of the same arrays.

        Args:
            axes: must be backwards, (1, 0); None is that.
        """
        return _other(CSC, self, axes)


@register_pytree_node_class
class CSC(Matrix):
    """Sparse matrix by columns of entries.

    It is a pytree of its three arrays. Products and sums are computed as those of a ``BCOO``.

    Args:
        args: (data, indices, indptr): the entries, their rows, and where each column begins.
        shape: the shape of the matrix.

    >>> m = CSC.fromdense(jnp.array([[1.0, 0.0, 2.0], [0.0, 3.0, 0.0]]))
    >>> m.indices.tolist(), m.indptr.tolist(), m.T
    ([0, 1, 0], [0, 1, 2, 3], CSR(float32[3, 2], nse=3))
    """

    arrays = Rows.arrays

    def __init__(self, args: tuple[Any, Any, Any], *, shape: Sequence[int]) -> None:
        rows = CSR(args, shape=tuple(shape)[::-1])
        self.data, self.indices, self.indptr = rows.data, rows.indices, rows.indptr
        self.shape = tuple(shape)

    @classmethod
    def from_bcoo(cls, arr: BCOO) -> CSC:
        """The ``CSC`` of a ``BCOO`` of two dimensions.

        Args:
            arr: a ``BCOO`` matrix.
        """
        return CSR.from_bcoo(arr.T).transpose()

    def to_bcoo(self) -> BCOO:
        """The same matrix in coordinate format."""
        return self.transpose().to_bcoo().T

    def transpose(self, axes: Sequence[int] | None = None) -> Any:
        """The matrix with rows for columns, a ``CSR`` of the same arrays.

        Args:
            axes: must be backwards, (1, 0); None is that.
        """
        return _other(CSR, self, axes)


def _other(kind: type, mat: Any, axes: Sequence[int] | None) -> Any:
    if axes is not None and tuple(axes) != (1, 0):
        raise ValueError(
            f"{type(mat).__name__}.transpose: axes must be (1, 0), got {axes} at {user_location()}"
        )
    return kind((mat.data, mat.indices, mat.indptr), shape=mat.shape[::-1])


# ---- functions of them --------------------------------------------------------------------------


def coo_fromdense(mat: Any, *, nse: int | None = None, index_dtype: Any = np.int32) -> COO:
    """``COO`` with the nonzero elements of a dense matrix.

    Args:
        mat: a dense matrix.
        nse: the number of entries to store; None for as many as there are, which cannot be known
            under ``jit``.
        index_dtype: the integer dtype of the positions.

    Returns:
        A ``COO``.

    >>> coo_fromdense(jnp.array([[0.0, 2.0], [3.0, 4.0]]))
    COO(float32[2, 2], nse=3)
    """
    return COO.fromdense(mat, nse=nse, index_dtype=index_dtype)


def coo_todense(mat: COO) -> Any:
    """The dense matrix of a ``COO``; entries at the same position are added up.

    Args:
        mat: a ``COO``.

    Returns:
        A dense matrix of the same shape.

    >>> print(coo_todense(coo_fromdense(jnp.array([[0.0, 2.0]]))))
    [[0. 2.]]
    """
    return mat.todense()


def csr_fromdense(mat: Any, *, nse: int | None = None, index_dtype: Any = np.int32) -> CSR:
    """``CSR`` with the nonzero elements of a dense matrix.

    Args:
        mat: a dense matrix.
        nse: the number of entries to store; None for as many as there are, which cannot be known
            under ``jit``.
        index_dtype: the integer dtype of the positions.

    Returns:
        A ``CSR``.

    >>> csr_fromdense(jnp.array([[0.0, 2.0], [3.0, 4.0]]))
    CSR(float32[2, 2], nse=3)
    """
    return CSR.fromdense(mat, nse=nse, index_dtype=index_dtype)


def csr_todense(mat: CSR) -> Any:
    """The dense matrix of a ``CSR``; entries at the same position are added up.

    Args:
        mat: a ``CSR``.

    Returns:
        A dense matrix of the same shape.

    >>> print(csr_todense(csr_fromdense(jnp.array([[0.0, 2.0]]))))
    [[0. 2.]]
    """
    return mat.todense()


def coo_matvec(mat: COO, v: Any, transpose: bool = False) -> Any:
    """Product of a ``COO`` and a dense vector.

    Args:
        mat: a ``COO``.
        v: a vector.
        transpose: whether the matrix is taken with rows for columns.

    Returns:
        A dense vector.

    Raises:
        ValueError: ``v`` has other dimensions than one, or another length.

    >>> print(coo_matvec(COO.fromdense(jnp.array([[1.0, 2.0]])), jnp.array([3.0, 4.0])))
    [11.]
    """
    return _product("coo_matvec", mat, v, 1, transpose)


def coo_matmat(mat: COO, B: Any, *, transpose: bool = False) -> Any:
    """Product of a ``COO`` and a dense matrix.

    Args:
        mat: a ``COO``.
        B: a dense matrix.
        transpose: whether ``mat`` is taken with rows for columns.

    Returns:
        A dense matrix.

    Raises:
        ValueError: ``B`` has other dimensions than two, or the lengths differ.

    >>> print(coo_matmat(COO.fromdense(jnp.array([[1.0, 2.0]])), jnp.ones((2, 2))))
    [[3. 3.]]
    """
    return _product("coo_matmat", mat, B, 2, transpose)


def csr_matvec(mat: CSR, v: Any, transpose: bool = False) -> Any:
    """Product of a ``CSR`` and a dense vector.

    Args:
        mat: a ``CSR``.
        v: a vector.
        transpose: whether the matrix is taken with rows for columns.

    Returns:
        A dense vector.

    Raises:
        ValueError: ``v`` has other dimensions than one, or another length.

    >>> print(csr_matvec(CSR.fromdense(jnp.array([[1.0, 2.0]])), jnp.array([3.0, 4.0])))
    [11.]
    """
    return _product("csr_matvec", mat, v, 1, transpose)


def csr_matmat(mat: CSR, B: Any, *, transpose: bool = False) -> Any:
    """Product of a ``CSR`` and a dense matrix.

    Args:
        mat: a ``CSR``.
        B: a dense matrix.
        transpose: whether ``mat`` is taken with rows for columns.

    Returns:
        A dense matrix.

    Raises:
        ValueError: ``B`` has other dimensions than two, or the lengths differ.

    >>> print(csr_matmat(CSR.fromdense(jnp.array([[1.0, 2.0]])), jnp.ones((2, 2))))
    [[3. 3.]]
    """
    return _product("csr_matmat", mat, B, 2, transpose)


def _product(who: str, mat: Matrix, x: Any, ndim: int, transpose: bool) -> Any:
    x, taken = jnp.asarray(x), mat.T if transpose else mat
    if x.ndim != ndim or x.shape[0] != taken.shape[1]:
        raise ShapeError(
            f"{who}: an array of {ndim} dimensions and {taken.shape[1]} rows is needed, got "
            f"{x.aval} at {user_location()}"
        )
    return taken @ x
