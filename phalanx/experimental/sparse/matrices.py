"""Matrices whose products and sums are those of the ``BCOO`` that they convert to."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np

import phalanx.numpy as jnp
from phalanx.experimental.sparse.bcoo import BCOO, JAXSparse


class Matrix(JAXSparse):
    """A sparse matrix: a pytree of its arrays, ``data`` with the entries first."""

    n_batch = n_dense = 0
    n_sparse = ndim = 2
    arrays: ClassVar[tuple[str, ...]]
    kept: ClassVar[tuple[str, ...]] = ("shape",)
    data: Any

    @abstractmethod
    def to_bcoo(self) -> BCOO:
        """The same matrix in coordinate format."""

    @classmethod
    @abstractmethod
    def from_bcoo(cls, arr: BCOO) -> Self:
        """The matrix of a ``BCOO`` of two dimensions.

        Args:
            arr: a ``BCOO`` matrix.
        """

    @classmethod
    def fromdense(cls, mat: Any, *, nse: int | None = None, index_dtype: Any = np.int32) -> Self:
        """Sparse matrix with the nonzero elements of a dense one.

        Args:
            mat: a dense matrix.
            nse: the number of entries to store; None for as many as there are, which cannot be
                known under ``jit``.
            index_dtype: the integer dtype of the positions.
        """
        return cls.from_bcoo(BCOO.fromdense(mat, nse=nse, index_dtype=index_dtype))

    @classmethod
    def from_scipy_sparse(cls, mat: Any, *, index_dtype: Any = None) -> Self:
        """The same matrix as a sparse one of SciPy.

        Args:
            mat: a sparse matrix of SciPy.
            index_dtype: the integer dtype of the positions; None for int32.
        """
        return cls.from_bcoo(BCOO.from_scipy_sparse(mat, index_dtype=index_dtype))

    def tree_flatten(self) -> tuple[tuple[Any, ...], Any]:
        return tuple([getattr(self, name) for name in self.arrays]), tuple(
            [getattr(self, name) for name in self.kept]
        )

    @classmethod
    def tree_unflatten(cls, kept: Any, children: Any) -> Self:
        """The matrix that ``tree_flatten`` took apart.

        Args:
            kept: what is no array: lengths, and what is known of the positions.
            children: the arrays.
        """
        made = object.__new__(cls)
        vars(made).update(zip(cls.arrays, children, strict=True))
        vars(made).update(zip(cls.kept, kept, strict=True))
        return made

    def with_data(self, data: Any) -> Self:
        """The matrix with other entries at the same positions.

        Args:
            data: the entries.
        """
        (_, *positions), kept = self.tree_flatten()
        return self.tree_unflatten(kept, (data, *positions))

    @property
    def nse(self) -> int:
        """How many entries are listed."""
        return len(self.data)

    @property
    def size(self) -> int:
        """The number of elements, zeros included."""
        return self.shape[0] * self.shape[1]

    @property
    def dtype(self) -> np.dtype:
        """The dtype of the entries."""
        return self.data.dtype

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.dtype.name}{list(self.shape)}, nse={self.nse})"

    def __len__(self) -> int:
        return self.shape[0]

    def todense(self) -> Any:
        """The dense matrix; entries at the same position are added up.

        Args:
            self: a sparse matrix.

        Returns:
            A dense matrix of the same shape.
        """
        return self.to_bcoo().todense()

    def transpose(self, axes: Sequence[int] | None = None) -> Any:
        """The matrix with its dimensions in another order.

        Args:
            axes: the dimensions in their new order; None for backwards.
        """
        return self.from_bcoo(self.to_bcoo().transpose(axes))

    @property
    def T(self) -> Any:
        """The matrix with rows for columns."""
        return self.transpose()

    def sum(self, axis: Any = None) -> Any:
        """Sum over axes: a ``BCOO`` over one of them, a dense number over both.

        Args:
            axis: the axis, or several; None for all.
        """
        return self.to_bcoo().sum(axis)

    def block_until_ready(self) -> Self:
        """Wait for the data."""
        self.data.block_until_ready()
        return self

    def __matmul__(self, other: Any) -> Any:
        return self.to_bcoo() @ _as_bcoo(other)

    def __rmatmul__(self, other: Any) -> Any:
        return other @ self.to_bcoo()

    def __mul__(self, other: Any) -> Self:
        return self.from_bcoo(self.to_bcoo() * _as_bcoo(other))

    __rmul__ = __mul__

    def __neg__(self) -> Self:
        return self * -1

    def __add__(self, other: Any) -> Any:
        total = self.to_bcoo() + _as_bcoo(other)
        return self.from_bcoo(total) if isinstance(other, Matrix) else total

    __radd__ = __add__


def _as_bcoo(x: Any) -> Any:
    return x.to_bcoo() if isinstance(x, Matrix) else x


def checked(kind: str, args: Sequence[Any], shape: Sequence[int]) -> list[Any]:
    """The arrays of a matrix, each of one dimension."""
    arrays = [jnp.asarray(a) for a in args]
    if len(shape) != 2 or len(arrays) != 3 or any(a.ndim != 1 for a in arrays):
        raise ValueError(
            f"{kind}: a matrix of three arrays of one dimension is needed, got "
            f"{', '.join(str(a.aval) for a in arrays)} for the shape {tuple(shape)}; "
            "BCOO has other forms"
        )
    return arrays
