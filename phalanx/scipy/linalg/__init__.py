"""Linear algebra of matrices [..., m, n], with SciPy's names: dimensions in front are a batch.

Arguments that say what may be overwritten, or what is to be checked, change nothing: arrays are
immutable, and what is not finite gives NaN. ``phalanx.numpy.linalg`` has more.
"""

from __future__ import annotations

import sys

from phalanx.base.boundary import bound
from phalanx.scipy.linalg.forms import (
    eigh,
    eigh_tridiagonal,
    hessenberg,
    polar,
    qr,
    qr_multiply,
    rsf2csf,
    schur,
    svd,
)
from phalanx.scipy.linalg.functions import (
    expm,
    expm_frechet,
    funm,
    solve_sylvester,
    sqrtm,
)
from phalanx.scipy.linalg.structured import (
    block_diag,
    circulant,
    companion,
    convolution_matrix,
    dft,
    fiedler,
    fiedler_companion,
    hadamard,
    hankel,
    helmert,
    hilbert,
    invhilbert,
    invpascal,
    leslie,
    pascal,
    toeplitz,
)
from phalanx.scipy.linalg.systems import (
    cho_factor,
    cho_solve,
    cholesky,
    det,
    inv,
    lu,
    lu_factor,
    lu_solve,
    solve,
    solve_triangular,
)

__all__ = [
    "block_diag",
    "cho_factor",
    "cho_solve",
    "cholesky",
    "circulant",
    "companion",
    "convolution_matrix",
    "det",
    "dft",
    "eigh",
    "eigh_tridiagonal",
    "expm",
    "expm_frechet",
    "fiedler",
    "fiedler_companion",
    "funm",
    "hadamard",
    "hankel",
    "helmert",
    "hessenberg",
    "hilbert",
    "inv",
    "invhilbert",
    "invpascal",
    "leslie",
    "lu",
    "lu_factor",
    "lu_solve",
    "pascal",
    "polar",
    "qr",
    "qr_multiply",
    "rsf2csf",
    "schur",
    "solve",
    "solve_sylvester",
    "solve_triangular",
    "sqrtm",
    "svd",
    "toeplitz",
]

bound(sys.modules[__name__])
