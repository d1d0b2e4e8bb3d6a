"""Products, triangles and diagonals of matrices [..., m, n]: the words of derivatives."""

from __future__ import annotations

from typing import Any, Final

from phalanx.base import dtypes
from phalanx.base.lengths import smaller
from phalanx.core.types import typeof
from phalanx.primitives.basis import add, broadcast, mul, reduce_sum, sub, transpose, zeros
from phalanx.primitives.compare import eq, ge, select
from phalanx.primitives.complex import complex, conj, imag, real
from phalanx.primitives.contract import dot_general
from phalanx.primitives.domains import I32
from phalanx.primitives.elementwise import div
from phalanx.primitives.index import GatherDimensionNumbers, gather
from phalanx.primitives.shape import expand_dims, iota, pad, zeros_like

_EXACT: Final = ("highest", "highest")  # precision of the operands of products


def matmul(x: Any, y: Any) -> Any:
    """Σ x[..., i, k] y[..., k, j] over k, not rounded further than the dtype is."""
    ndim = typeof(x).ndim
    batch, contract = tuple(range(ndim - 2)), ((ndim - 1,), (ndim - 2,))
    return dot_general(x, y, contract=contract, batch=(batch, batch), precision=_EXACT)


def matrix_transposed(x: Any) -> Any:
    """x[..., j, i]"""
    ndim = typeof(x).ndim
    return transpose(x, perm=(*range(ndim - 2), ndim - 1, ndim - 2))


def conjugate(x: Any) -> Any:
    """``x``, conjugated if it is complex."""
    return conj(x) if dtypes.is_complex(typeof(x).dtype) else x


def adjoint(x: Any) -> Any:
    """x[..., j, i], conjugated if it is complex."""
    return conjugate(matrix_transposed(x))


def real_part(x: Any) -> Any:
    """Re x, of any dtype."""
    return real(x) if dtypes.is_complex(typeof(x).dtype) else x


def imaginary_part(x: Any) -> Any:
    """Im x, of any dtype."""
    return imag(x) if dtypes.is_complex(typeof(x).dtype) else zeros_like(x)


def as_complex(x: Any) -> Any:
    """``x`` as complex numbers."""
    return x if dtypes.is_complex(typeof(x).dtype) else complex(x, zeros_like(x))


def complex_as(x: Any, y: Any) -> Any:
    """The real ``x``, complex if ``y`` is."""
    return as_complex(x) if dtypes.is_complex(typeof(y).dtype) else x


# ---- triangles and diagonals ----------------------------------------------------------------


def _rows_and_columns(shape: tuple[int, ...]) -> tuple[Any, Any]:
    ndim = len(shape)
    rows, columns = (iota(dtype=I32, shape=shape, dim=ndim - d) for d in (2, 1))
    return rows, columns


def lower_part(x: Any, below: int = 0) -> Any:
    """The elements that lie at least ``below`` places below the diagonal, zeros elsewhere."""
    rows, columns = _rows_and_columns(typeof(x).shape)
    return select(ge(sub(rows, columns), below), x, 0)


def upper(x: Any, above: int = 0) -> Any:
    """The elements that lie at least ``above`` places above the diagonal, zeros elsewhere."""
    rows, columns = _rows_and_columns(typeof(x).shape)
    return select(ge(sub(columns, rows), above), x, 0)


def lower_half(x: Any) -> Any:
    """Φ(x), the lower triangle with half of the diagonal: of a Hermitian x, x = Φ(x) + Φ(x)ᴴ."""
    rows, columns = _rows_and_columns(typeof(x).shape)
    return select(ge(rows, columns), select(eq(rows, columns), mul(x, 0.5), x), 0)


def on_diagonal(x: Any, fill: Any) -> Any:
    """``x`` with the number ``fill`` on the diagonal."""
    return select(eq(*_rows_and_columns(typeof(x).shape)), fill, x)


def diagonal(x: Any) -> Any:
    """x[..., i, i] of square matrices."""
    entries = select(eq(*_rows_and_columns(typeof(x).shape)), x, 0)
    return reduce_sum(entries, dims=(typeof(x).ndim - 1,))


def diagonal_matrix(x: Any) -> Any:
    """Matrices with x[..., i] on the diagonal, zeros elsewhere."""
    kind = typeof(x)
    rows = broadcast(x, shape=(*kind.shape, kind.shape[-1]), dims=tuple(range(kind.ndim)))
    return select(eq(*_rows_and_columns(typeof(rows).shape)), rows, 0)


def identity_like(x: Any) -> Any:
    """Identity matrices of the shape of ``x``."""
    return on_diagonal(zeros_like(x), 1)


def identity_rows(x: Any, start: int) -> Any:
    """The rows from ``start`` on of the square identity matrix with the columns of ``x``."""
    kind = typeof(x)
    n = kind.shape[-1]
    zero = zeros(kind.update(shape=(*kind.shape[:-2], n - start, n)))
    rows, columns = _rows_and_columns(typeof(zero).shape)
    return select(eq(add(rows, start), columns), 1, zero)


def padded(x: Any, shape: tuple[int, int]) -> Any:
    """Matrices of ``shape`` with those of ``x`` in their corner, zeros elsewhere."""
    kind = typeof(x)
    if kind.shape[-2:] == shape:
        return x
    ends = zip((*kind.shape[:-2], *shape), kind.shape, strict=True)
    zero = dtypes.scalar(0, kind.dtype)
    return pad(x, zero, config=tuple((0, n - m, 0) for n, m in ends))


def symmetrized(x: Any) -> Any:
    """(x + xᴴ) / 2"""
    return mul(add(x, adjoint(x)), 0.5)


def of_lower_triangle(x: Any) -> Any:
    """The Hermitian matrices with the lower triangles of ``x``."""
    half = lower_half(x)
    return add(half, adjoint(half))


# ---- rows and columns -----------------------------------------------------------------------


def times_columns(x: Any, factors: Any) -> Any:
    """x[..., i, j] factors[..., j]"""
    return mul(x, _along_rows(factors, x))


def divided_columns(x: Any, divisors: Any) -> Any:
    """x[..., i, j] / divisors[..., j]"""
    return div(x, _along_rows(divisors, x))


def _along_rows(values: Any, x: Any) -> Any:
    shape = typeof(x).shape
    dims = (*range(len(shape) - 2), len(shape) - 1)
    return complex_as(broadcast(values, shape=shape, dims=dims), x)


def differences(x: Any) -> Any:
    """x[..., j] - x[..., i], as matrices."""
    kind = typeof(x)
    shape, batch = (*kind.shape, kind.shape[-1]), tuple(range(kind.ndim - 1))
    columns = broadcast(x, shape=shape, dims=(*batch, kind.ndim))
    return sub(columns, broadcast(x, shape=shape, dims=(*batch, kind.ndim - 1)))


def reciprocal_differences(x: Any) -> Any:
    """1 / (x[..., j] - x[..., i]), zeros on the diagonal."""
    return on_diagonal(div(1, on_diagonal(differences(x), 1)), 0)


def row_numbers(shape: tuple[int, ...]) -> tuple[GatherDimensionNumbers, tuple[int, ...]]:
    """How a gather takes rows of matrices, by an index for each, and the sizes of its slices."""
    at = len(shape) - 2
    batch = tuple(range(at))
    numbers = GatherDimensionNumbers((at + 1,), (at,), (at,), batch, batch)
    return numbers, (*(smaller(n, 1) for n in shape[:-1]), shape[-1])


def take_rows(x: Any, rows: Any) -> Any:
    """x[..., rows[..., i], j]; no row may come twice."""
    shape = typeof(x).shape
    numbers, sizes = row_numbers(shape)
    indices = expand_dims(rows, (len(shape) - 1,))
    return gather(
        x, indices, numbers=numbers, slice_sizes=sizes, mode="promise", unique_indices=True
    )


def take_columns(x: Any, columns: Any) -> Any:
    """x[..., i, columns[..., j]]; no column may come twice."""
    return matrix_transposed(take_rows(matrix_transposed(x), columns))


def inverse_permutation(permutation: Any) -> Any:
    """The rows that ``take_rows`` must take in order to undo taking those."""
    kind = typeof(permutation)
    n, batch = kind.shape[-1], tuple(range(kind.ndim - 1))
    shape = (*kind.shape, n)
    places = iota(dtype=I32, shape=shape, dim=len(shape) - 1)
    taken = broadcast(permutation, shape=shape, dims=(*batch, len(shape) - 1))
    rows = iota(dtype=I32, shape=shape, dim=len(shape) - 2)
    return reduce_sum(select(eq(taken, rows), places, 0), dims=(len(shape) - 1,))
