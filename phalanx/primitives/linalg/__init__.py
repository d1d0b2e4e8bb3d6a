"""Primitives on matrices: factorizations, and systems of equations."""

# what stands here is what the package offers:
# ruff: noqa: F401
# pyright: reportUnusedImport=false

from phalanx.primitives.linalg.banded import tridiagonal_solve
from phalanx.primitives.linalg.cholesky import cholesky
from phalanx.primitives.linalg.det import det, slogdet
from phalanx.primitives.linalg.eig import eig
from phalanx.primitives.linalg.eigh import eigh
from phalanx.primitives.linalg.lu import lu, lu_pivots_to_permutation, lu_solve, solve
from phalanx.primitives.linalg.qr import geqp3, geqrf, householder_product, ormqr, qr
from phalanx.primitives.linalg.schur import hessenberg, schur, tridiagonal
from phalanx.primitives.linalg.svd import pinv, svd
from phalanx.primitives.linalg.triangular import triangular_solve
