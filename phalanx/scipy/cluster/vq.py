"""The nearest of a few points, for each of many."""

from __future__ import annotations

import sys

import phalanx.numpy as jnp
from phalanx.base import dtypes
from phalanx.base.boundary import bound
from phalanx.base.errors import ShapeError
from phalanx.control.one_program import one_program
from phalanx.core.types import Array
from phalanx.numpy.promotion import ArrayLike, promote_inexact

__all__ = ["vq"]


@one_program
def vq(obs: ArrayLike, code_book: ArrayLike, check_finite: bool = True) -> tuple[Array, Array]:
    """The nearest row of ``code_book`` to each row of ``obs``, and the distance to it.

    Args:
        obs: [m, n]; or a vector, of m numbers.
        code_book: [k, n]; or a vector, of k numbers.
        check_finite: has no meaning.

    Returns:
        The numbers of the rows, [m], the first of equally near ones; and the distances, [m].

    Raises:
        TypeError: an argument is complex.
        ValueError: shapes do not go together, or there are no rows to choose from.

    >>> import phalanx.numpy as jnp
    >>> from phalanx.scipy.cluster.vq import vq
    >>> codes, distances = vq(jnp.array([[1.0, 1.0], [0.0, 5.0]]), jnp.array([[1, 2], [0, 3]]))
    >>> print(codes, distances)
    [0 1] [1. 2.]
    """
    x, codes = promote_inexact("vq", [obs, code_book])
    if dtypes.is_complex(x.dtype):
        raise TypeError(f"vq: real numbers are needed, got {x.aval}")
    fit = x.ndim == codes.ndim and x.ndim in (1, 2) and x.shape[1:] == codes.shape[1:]
    if not fit or not codes.shape[0]:
        raise ShapeError(
            f"vq: rows [m, n] and at least one row to choose, [k, n], are needed, got {x.aval} and "
            f"{codes.aval}"
        )
    if x.ndim == 1:
        x, codes = x[:, None], codes[:, None]
    nearest = jnp.argmin(jnp.sum(jnp.square(x[:, None] - codes), -1), -1)
    return nearest, jnp.linalg.norm(x - codes[nearest], axis=-1)


bound(sys.modules[__name__])
