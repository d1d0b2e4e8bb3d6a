"""Operations under the field's names, ``sin_p`` and so on, to be compared by identity."""

from __future__ import annotations

import functools
import importlib
from pkgutil import iter_modules
from typing import Any

from phalanx import primitives as ops
from phalanx.compat.names import INVARIANT, RESHARD, translation_of
from phalanx.compat.primitives import ForeignPrimitive, Ours, view
from phalanx.core.primitive import REGISTRY

# operations of the field that are functions of several here: programs never have them
_COMPOSED = [
    "add_jaxvals", "after_all", "all_to_all", "approx_top_k", "call", "cholesky", "cholesky_update",
    "closed_call", "conj", "copy", "core_call", "create_token", "custom_lin", "eig", "eigh",
    "empty2", "eq_to", "get", "hessenberg", "householder_product", "igamma_grad_a", "igammac",
    "le_to", "linear_solve", "log2", "lt_to", "lu", "mulhi", "polygamma", "polynomial", "qr",
    "ragged_all_to_all", "random_bits", "random_fold_in", "random_gamma", "random_seed",
    "random_split", "reduce", "reduce_window", "regularized_incomplete_beta", "remat_opt",
    "scatter_sub", "schur", "select_and_scatter", "split", "squeeze", "stack", "stage", "svd",
    "swap", "symmetric_product", "tile", "triangular_solve", "tridiagonal", "tridiagonal_solve",
    "unstack",
]  # fmt: skip


@functools.cache
def _by_name() -> dict[str, ForeignPrimitive]:
    for module in iter_modules(ops.__path__, f"{ops.__name__}."):
        importlib.import_module(module.name)  # some wait until a function is used
    found: dict[str, ForeignPrimitive] = {f"{name}_p": Ours(name) for name in _COMPOSED}
    found.update(
        {f"{translation_of(p).name.replace('-', '_')}_p": view(p) for p in REGISTRY.values()}
    )
    found["psum_invariant_p"] = view(REGISTRY["psum"], INVARIANT)
    found["reshard_p"] = view(REGISTRY["with_sharding_constraint"], RESHARD)
    found["remat_p"] = found["remat2_p"]
    found["add_any_p"] = found["add_jaxvals_p"]
    return found


def __getattr__(name: str) -> Any:
    if not name.endswith("_p") or name not in _by_name():
        raise AttributeError(f"there is no operation {name}")
    return _by_name()[name]


def __dir__() -> list[str]:
    return sorted(_by_name())
