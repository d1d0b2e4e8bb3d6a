"""Primitives on matrices: factorizations, and systems of equations."""

# what stands here is what the package offers:
# ruff: noqa: F401
# pyright: reportUnusedImport=false

from phalanx.ops.linalg.banded import tridiagonal_solve
from phalanx.ops.linalg.cholesky import cholesky
from phalanx.ops.linalg.det import det, slogdet
from phalanx.ops.linalg.eig import eig
from phalanx.ops.linalg.eigh import eigh
from phalanx.ops.linalg.lu import lu, lu_pivots_to_permutation, lu_solve, solve
from phalanx.ops.linalg.qr import geqp3, geqrf, householder_product, ormqr, qr
from phalanx.ops.linalg.schur import hessenberg, schur, tridiagonal
from phalanx.ops.linalg.svd import pinv, svd
from phalanx.ops.linalg.triangular import triangular_solve
