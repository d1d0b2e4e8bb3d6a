"""Sparse arrays: ``BCOO``, by coordinates, and the matrices ``BCSR``, ``COO``, ``CSR`` and ``CSC``.

They store the elements that are not zero, the *entries*, and where these are. They are pytrees, so
``jit``, ``vmap``, ``pmap`` and the others take them; ``sparsify`` makes functions of dense arrays
take them, and ``sparse.grad`` differentiates by their entries.
"""

import sys as _sys

from phalanx.base.boundary import bound as _bound
from phalanx.experimental.sparse import linalg
from phalanx.experimental.sparse.bcoo import BCOO, JAXSparse
from phalanx.experimental.sparse.bcsr import (
    BCSR,
    bcsr_concatenate,
    bcsr_dot_general,
    bcsr_extract,
    bcsr_sum_duplicates,
)
from phalanx.experimental.sparse.compressed import (
    COO,
    CSC,
    CSR,
    coo_fromdense,
    coo_matmat,
    coo_matvec,
    coo_todense,
    csr_fromdense,
    csr_matmat,
    csr_matvec,
    csr_todense,
)
from phalanx.experimental.sparse.entries import (
    bcoo_extract,
    bcoo_multiply_dense,
    bcoo_multiply_sparse,
    bcoo_sort_indices,
    bcoo_sum_duplicates,
)
from phalanx.experimental.sparse.making import empty, eye, random_bcoo
from phalanx.experimental.sparse.products import bcoo_dot_general, bcoo_reduce_sum
from phalanx.experimental.sparse.shaping import (
    bcoo_broadcast_in_dim,
    bcoo_concatenate,
    bcoo_dynamic_slice,
    bcoo_reshape,
    bcoo_rev,
    bcoo_slice,
    bcoo_squeeze,
    bcoo_transpose,
    bcoo_update_layout,
)
from phalanx.experimental.sparse.transforms import (
    grad,
    jacfwd,
    jacobian,
    jacrev,
    sparsify,
    todense,
    value_and_grad,
)

bcoo_todense = BCOO.todense
bcsr_todense = BCSR.todense
_bound(BCOO, BCSR, COO, CSR, CSC)
bcoo_fromdense = BCOO.fromdense
bcsr_fromdense = BCSR.fromdense

__all__ = [
    "BCOO",
    "BCSR",
    "COO",
    "CSC",
    "CSR",
    "JAXSparse",
    "bcoo_broadcast_in_dim",
    "bcoo_concatenate",
    "bcoo_dot_general",
    "bcoo_dynamic_slice",
    "bcoo_extract",
    "bcoo_fromdense",
    "bcoo_multiply_dense",
    "bcoo_multiply_sparse",
    "bcoo_reduce_sum",
    "bcoo_reshape",
    "bcoo_rev",
    "bcoo_slice",
    "bcoo_sort_indices",
    "bcoo_squeeze",
    "bcoo_sum_duplicates",
    "bcoo_todense",
    "bcoo_transpose",
    "bcoo_update_layout",
    "bcsr_concatenate",
    "bcsr_dot_general",
    "bcsr_extract",
    "bcsr_fromdense",
    "bcsr_sum_duplicates",
    "bcsr_todense",
    "coo_fromdense",
    "coo_matmat",
    "coo_matvec",
    "coo_todense",
    "csr_fromdense",
    "csr_matmat",
    "csr_matvec",
    "csr_todense",
    "empty",
    "eye",
    "grad",
    "jacfwd",
    "jacobian",
    "jacrev",
    "linalg",
    "random_bcoo",
    "sparsify",
    "todense",
    "value_and_grad",
]

_bound(_sys.modules[__name__], linalg)
