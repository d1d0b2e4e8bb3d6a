"""``BCOO``: entries with their positions, and operators on them."""

from __future__ import annotations

from abc import ABC
from collections.abc import Iterator, Sequence
from typing import Any, get_args

import numpy as np

import phalanx.numpy as jnp
from phalanx.base.errors import MissingRule
from phalanx.base.lengths import length
from phalanx.base.source import user_location
from phalanx.core.types import ArrayLike
from phalanx.experimental.sparse.entries import (
    bcoo_multiply_dense,
    bcoo_multiply_sparse,
    bcoo_sort_indices,
    bcoo_sum_duplicates,
    plus,
)
from phalanx.experimental.sparse.layouts import Entries, entries_of, to_dense
from phalanx.experimental.sparse.products import bcoo_dot_general, bcoo_reduce_sum
from phalanx.experimental.sparse.shaping import (
    bcoo_reshape,
    bcoo_transpose,
    bcoo_update_layout,
    part,
)
from phalanx.tree_util import register_pytree_node_class

_SEQUENCES: tuple[type, ...] = (Sequence,)
_ARRAYS = get_args(ArrayLike)


class JAXSparse(ABC):
    """Base class of the sparse arrays, for ``isinstance``.

    >>> from phalanx.experimental import sparse
    >>> isinstance(sparse.BCOO.fromdense(jnp.eye(2)), sparse.JAXSparse)
    True
    """

    __array_priority__ = 100
    __hash__ = object.__hash__
    shape: Any
    dtype: Any

    def __eq__(self, other: object) -> bool:
        return _compared(self, "==", other)

    def __ne__(self, other: object) -> bool:
        return _compared(self, "!=", other)


def _compared(mat: JAXSparse, sign: str, other: object) -> bool:
    """The error for arrays, whose elements would be compared; what is none is another object."""
    if not isinstance(other, (JAXSparse, *_ARRAYS)):
        return NotImplemented
    raise would_be_dense(f"comparing a {type(mat).__name__} and a {type(other).__name__} by {sign}")


def would_be_dense(what: str) -> MissingRule:
    """The error for what has no zeros where its operands have them."""
    return MissingRule(
        f"sparse: {what}, at {user_location()}, would give a dense result; if that is wanted, "
        "convert the array before, with todense()"
    )


@register_pytree_node_class
class BCOO(Entries, JAXSparse):
    """Sparse array in coordinate format, with batch and dense dimensions.

    Its dimensions are, in order, ``n_batch`` of a batch, each element of which has a list of
    entries of its own, all of the same length ``nse``; ``n_sparse`` in which entries have
    positions; and ``n_dense`` dimensions of each entry, which is an array. By default there are no
    batch and dense dimensions, and entries are numbers.

    It is a pytree of ``data`` and ``indices``, so all transformations take it; ``vmap`` maps over a
    batch dimension. To differentiate by the entries, use ``sparse.grad``.

    Args:
        args: (data, indices), of shapes (*batch, nse, *dense) and (*batch, nse, n_sparse). Entries
            at the same position add up; those whose position is outside of the array are padding,
            and count as absent.
        shape: the shape of the whole array.
        indices_sorted: a promise that the positions are in ascending order, which saves sorting.
        unique_indices: a promise that no position occurs twice, which saves adding up.

    Raises:
        ValueError: the shapes do not fit, or the indices are not integers.

    >>> m = BCOO.fromdense(jnp.array([[1.0, 0.0, 2.0], [0.0, 3.0, 0.0]]))
    >>> m, m.data.tolist(), m.indices.tolist()
    (BCOO(float32[2, 3], nse=3), [1.0, 2.0, 3.0], [[0, 0], [0, 2], [1, 1]])
    >>> print(m @ jnp.arange(3.0), (2 * m).T.sum(axis=0).todense())
    [4. 3.] [6. 6.]
    """

    # ---- from and to arrays ----

    @classmethod
    def fromdense(
        cls,
        mat: Any,
        *,
        nse: int | None = None,
        index_dtype: Any = np.int32,
        n_dense: int = 0,
        n_batch: int = 0,
    ) -> BCOO:
        """Sparse array in coordinate format with the nonzero elements of a dense one.

        Args:
            mat: a dense array.
            nse: the number of entries to store; fewer nonzero elements are followed by padding, and
                of more the first are kept. None for as many as there are, which cannot be known
                under ``jit``.
            index_dtype: the integer dtype of the positions.
            n_dense: how many of the last dimensions are dense.
            n_batch: how many of the first dimensions are batch dimensions.

        Returns:
            A ``BCOO``.

        >>> from phalanx.experimental import sparse
        >>> m = sparse.bcoo_fromdense(jnp.array([[0.0, 2.0], [0.0, 3.0]]))
        >>> print(m.data, m.indices.tolist())
        [2. 3.] [[0, 1], [1, 1]]
        """
        return entries_of(cls, mat, nse, n_batch, n_dense, index_dtype)

    @classmethod
    def from_scipy_sparse(
        cls, mat: Any, *, index_dtype: Any = None, n_dense: int = 0, n_batch: int = 0
    ) -> BCOO:
        """The ``BCOO`` of a sparse matrix of SciPy.

        Args:
            mat: a sparse matrix of SciPy.
            index_dtype: the integer dtype of the positions; None for int32.
            n_dense: must be 0.
            n_batch: must be 0.
        """
        if n_dense or n_batch:
            raise ValueError(
                "BCOO.from_scipy_sparse: a matrix of SciPy has sparse dimensions alone"
            )
        coo = mat.tocoo()
        indices = np.stack([coo.row, coo.col], axis=-1).astype(index_dtype or np.int32)
        return cls((coo.data, indices), shape=coo.shape)

    def todense(self) -> Any:
        """The dense array of a ``BCOO``; entries at the same position are added up.

        Args:
            self: a ``BCOO``.

        Returns:
            A dense array of the same shape.

        >>> from phalanx.experimental import sparse
        >>> print(sparse.bcoo_todense(sparse.bcoo_fromdense(jnp.array([0.0, 2.0]))))
        [0. 2.]
        """
        return to_dense(self)

    # ---- the lists ----

    def sort_indices(self) -> BCOO:
        """The same array with its entries in ascending order of position."""
        return bcoo_sort_indices(self)

    def sum_duplicates(self, nse: int | None = None, remove_zeros: bool = True) -> BCOO:
        """The same array with one entry per position; see ``bcoo_sum_duplicates``.

        Args:
            nse: the number of entries to keep room for; None for as many as there are.
            remove_zeros: whether entries that are zero are left out.
        """
        return bcoo_sum_duplicates(self, nse)

    def update_layout(
        self,
        *,
        n_batch: int | None = None,
        n_dense: int | None = None,
        on_inefficient: str | None = "error",
    ) -> BCOO:
        """The same array with other numbers of batch and dense dimensions.

        Args:
            n_batch: how many of the first dimensions are batch dimensions; None for as many as now.
            n_dense: how many of the last dimensions are dense; None for as many as now.
            on_inefficient: accepted, and ignored: no conversion is refused.
        """
        return bcoo_update_layout(
            self, n_batch=n_batch, n_dense=n_dense, on_inefficient=on_inefficient
        )

    def block_until_ready(self) -> BCOO:
        """Wait for the data."""
        self.data.block_until_ready()
        self.indices.block_until_ready()
        return self

    # ---- shapes ----

    def transpose(self, axes: Sequence[int] | None = None) -> BCOO:
        """The array with its dimensions in another order, by default backwards.

        Args:
            axes: the dimensions in their new order; None for backwards.
        """
        order = range(self.ndim)[::-1] if axes is None else axes
        return bcoo_transpose(self, permutation=order)

    @property
    def T(self) -> BCOO:
        """The array with its dimensions backwards."""
        return self.transpose()

    def reshape(self, *shape: Any, order: str = "C") -> BCOO:
        """The array in another shape of the same size.

        Args:
            *shape: the lengths, as a tuple or one after the other; one may be -1.
            order: must be "C".
        """
        if order != "C":
            raise ValueError(f"BCOO.reshape: order must be 'C', got {order!r}")
        sizes = shape[0] if len(shape) == 1 and isinstance(shape[0], _SEQUENCES) else shape
        return bcoo_reshape(self, new_sizes=tuple(map(length, sizes)))

    def astype(self, dtype: Any) -> BCOO:
        """The array with entries of another dtype.

        Args:
            dtype: the dtype of the result.
        """
        return self.with_data(self.data.astype(dtype))

    def __len__(self) -> int:
        if not self.ndim:
            raise TypeError("len() of a BCOO without dimensions")
        return self.shape[0]

    def __getitem__(self, key: Any) -> BCOO:
        return part(self, key)

    def __iter__(self) -> Iterator[BCOO]:
        return (self[i] for i in range(len(self)))

    # ---- arithmetic ----

    def sum(self, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Any:
        """Sum over axes: sparse over some of them, a dense number over all.

        Args:
            axis: the axis, or several; None for all.
            dtype: the dtype of the result; None for that of the entries.
            keepdims: whether the axes stay, with length 1.
        """
        every = range(self.ndim) if axis is None else axis
        dims = [every] if isinstance(every, int) else list(every)
        source = self if dtype is None else self.astype(dtype)
        total = bcoo_reduce_sum(source, axes=dims)
        if keepdims:
            shape = [1 if d in [a % self.ndim for a in dims] else n
                     for d, n in enumerate(self.shape)]  # fmt: skip
            total = bcoo_reshape(total, new_sizes=shape)
        return total if total.ndim else total.todense()

    def __pos__(self) -> BCOO:
        return self

    def __neg__(self) -> BCOO:
        return self.with_data(-self.data)

    def __abs__(self) -> BCOO:
        return self.sum_duplicates().map_data(jnp.abs)

    def map_data(self, function: Any) -> BCOO:
        """The array with ``function`` applied to its entries.

        Args:
            function: an elementwise function with f(0) = 0. Positions must not occur twice: call
                ``sum_duplicates`` first.
        """
        return self.with_data(function(self.data))

    def __add__(self, other: Any) -> Any:
        if isinstance(other, Entries):
            return plus(self, other)
        if np.shape(other) != self.shape:
            raise would_be_dense(
                f"adding an array of shape {np.shape(other)} to a sparse one of {self.shape}"
            )
        return self.todense() + other

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        return self + -other

    def __rsub__(self, other: Any) -> Any:
        return -self + other

    def __mul__(self, other: Any) -> BCOO:
        if isinstance(other, Entries):
            return bcoo_multiply_sparse(self, other)
        return self.with_data(bcoo_multiply_dense(self, other))

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> BCOO:
        if isinstance(other, Entries):
            raise would_be_dense(f"dividing {self} by {other}")
        return self * (1 / jnp.asarray(other))

    def __pow__(self, power: Any) -> BCOO:
        if np.ndim(power) or not isinstance(power, (int, float)) or power <= 0:
            raise would_be_dense(f"{self} to the power {power!r}")

        def raised(x: Any) -> Any:
            return x**power

        return self.sum_duplicates().map_data(raised)

    def __matmul__(self, other: Any) -> Any:
        return matmul(self, other)

    def __rmatmul__(self, other: Any) -> Any:
        return matmul(other, self)


def matmul(x: Any, y: Any) -> Any:
    """``x @ y``, where one of them or both are entries with positions.

    Raises:
        ValueError: the shapes do not go together.
    """
    x, y = [v if isinstance(v, Entries) else jnp.asarray(v) for v in (x, y)]
    if not x.ndim or not y.ndim:
        raise ValueError("matmul: operands must have dimensions; multiply by numbers with *")
    row, column = x.ndim - 1, max(y.ndim - 2, 0)
    shared = max(min(x.ndim, y.ndim) - 2, 0)
    if x.shape[:-2] != y.shape[:-2] and shared:
        raise ValueError(
            f"matmul: sparse operands must have the same leading dimensions, got {x.shape} and "
            f"{y.shape}"
        )
    lead = tuple(range(shared))
    out = bcoo_dot_general(x, y, dimension_numbers=(((row,), (column,)), (lead, lead)))
    if x.ndim == 2 < y.ndim:  # the rows of one matrix, before the last dimension of many
        return out.transpose((*range(1, y.ndim - 1), 0, y.ndim - 1))
    return out
