"""Entries that are made of nothing, or of random numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import phalanx.numpy as jnp
from phalanx import random
from phalanx.experimental.sparse.bcoo import BCOO, JAXSparse
from phalanx.experimental.sparse.bcsr import BCSR
from phalanx.experimental.sparse.compressed import COO, CSC, CSR
from phalanx.experimental.sparse.layouts import each_of_batch
from phalanx.experimental.sparse.matrices import Matrix


def empty(
    shape: Sequence[int],
    dtype: Any = None,
    index_dtype: Any = "int32",
    sparse_format: str = "bcoo",
    *,
    nse: int = 0,
    n_batch: int = 0,
    n_dense: int = 0,
) -> JAXSparse:
    """Sparse array of zeros, with room for ``nse`` entries.

    Args:
        shape: the shape of the array.
        dtype: the dtype of the entries; None for float32, or float64 under ``enable_x64``.
        index_dtype: the integer dtype of the positions.
        sparse_format: "bcoo", "bcsr", "coo", "csr" or "csc".
        nse: the number of entries to keep room for.
        n_batch: how many of the first dimensions are batch dimensions.
        n_dense: how many of the last dimensions are dense.

    Returns:
        A sparse array in that format.

    Raises:
        ValueError: ``sparse_format`` is another word.

    >>> empty((2, 3))
    BCOO(float32[2, 3], nse=0)
    """
    shape = tuple(shape)
    tail = shape[n_batch:]
    n_sparse = len(tail) - n_dense
    ends = np.asarray(tail[:n_sparse], np.dtype(index_dtype))
    data = jnp.zeros((*shape[:n_batch], nse, *tail[n_sparse:]), dtype)
    indices = jnp.broadcast_to(ends, (*shape[:n_batch], nse, n_sparse))
    return _in_format(
        BCOO((data, indices), shape=shape, indices_sorted=True), sparse_format, "empty"
    )


def eye(
    N: int,
    M: int | None = None,
    k: int = 0,
    dtype: Any = None,
    index_dtype: Any = "int32",
    sparse_format: str = "bcoo",
    *,
    n_batch: int = 0,
    n_dense: int = 0,
) -> JAXSparse:
    """Sparse matrix of ones on a diagonal, zeros elsewhere.

    Args:
        N: the number of rows.
        M: the number of columns; None for as many as rows.
        k: which diagonal: 0 for the main one, positive above it, negative below.
        dtype: the dtype of the entries; None for float32, or float64 under ``enable_x64``.
        index_dtype: the integer dtype of the positions.
        sparse_format: "bcoo", "bcsr", "coo", "csr" or "csc".
        n_batch: how many of the first dimensions are batch dimensions.
        n_dense: how many of the last dimensions are dense.

    Returns:
        A sparse array in that format.

    Raises:
        ValueError: ``sparse_format`` is another word.

    >>> print(eye(2, 3, k=1).todense())
    [[0. 1. 0.]
     [0. 0. 1.]]
    """
    columns = N if M is None else M
    first, last = max(0, -k), min(N, columns - k)
    rows = np.arange(first, max(first, last), dtype=np.dtype(index_dtype))
    indices = np.stack([rows, rows + np.asarray(k, rows.dtype)], axis=-1)
    ones = jnp.ones(len(rows), dtype)
    matrix = BCOO((ones, indices), shape=(N, columns), indices_sorted=True, unique_indices=True)
    return _in_format(matrix.update_layout(n_batch=n_batch, n_dense=n_dense), sparse_format, "eye")


_FORMATS: dict[str, type[Matrix]] = {"bcsr": BCSR, "coo": COO, "csr": CSR, "csc": CSC}


def _in_format(matrix: BCOO, name: str, who: str) -> JAXSparse:
    if name != "bcoo" and name not in _FORMATS:
        known = ", ".join(map(repr, ["bcoo", *_FORMATS]))
        raise ValueError(f"{who}: sparse_format must be one of {known}, got {name!r}")
    return matrix if name == "bcoo" else _FORMATS[name].from_bcoo(matrix)


def random_bcoo(
    key: Any,
    shape: Sequence[int],
    *,
    dtype: Any = None,
    indices_dtype: Any = None,
    nse: float = 0.2,
    n_batch: int = 0,
    n_dense: int = 0,
    unique_indices: bool = True,
    sorted_indices: bool = False,
    generator: Callable[..., Any] = random.uniform,
    **kwds: Any,
) -> BCOO:
    """Random ``BCOO``: random entries at random positions.

    Args:
        key: a random key.
        shape: the shape of the whole array.
        dtype: the dtype of the entries; None for float32, or float64 under ``enable_x64``.
        indices_dtype: the integer dtype of the positions; None for int32.
        nse: the number of entries for each element of the batch; less than 1, the fraction of all
            elements.
        n_batch: how many of the first dimensions are batch dimensions.
        n_dense: how many of the last dimensions are dense.
        unique_indices: whether all positions are different.
        sorted_indices: whether positions are in ascending order.
        generator: what draws the entries, called as ``generator(key, shape, dtype, **kwds)``.
        **kwds: further arguments of ``generator``.

    Returns:
        A ``BCOO``.

    Raises:
        ValueError: ``nse`` is larger than the number of positions.

    >>> random_bcoo(random.key(0), (3, 4), nse=5)
    BCOO(float32[3, 4], nse=5)
    """
    shape = tuple(shape)
    batch, tail = shape[:n_batch], shape[n_batch:]
    lengths = tail[: len(tail) - n_dense]
    places = math.prod(lengths)
    count = math.ceil(nse * places) if 0 < nse < 1 else int(nse)
    if count < 0 or (unique_indices and count > places):
        raise ValueError(f"random_bcoo: nse={nse} does not fit {places} positions of {shape}")
    of_places, of_data = random.split(key)

    def one(key: Any) -> Any:
        drawn = random.choice(key, places, (count,), replace=not unique_indices)
        drawn = jnp.sort(drawn) if sorted_indices else drawn
        at = jnp.unravel_index(drawn, lengths) if lengths else ()
        found = jnp.stack(at, axis=-1) if at else jnp.zeros((count, 0), int)
        return found.astype(indices_dtype or np.int32)

    indices = each_of_batch(one, n_batch)(random.split(of_places, batch) if batch else of_places)
    kind = dtype or jnp.zeros(()).dtype
    data = generator(of_data, shape=(*batch, count, *tail[len(lengths) :]), dtype=kind, **kwds)
    return BCOO(
        (data, indices), shape=shape, indices_sorted=sorted_indices, unique_indices=unique_indices
    )
