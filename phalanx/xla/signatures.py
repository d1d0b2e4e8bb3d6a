"""Functions that modules may call by name, and the shapes of the arrays that they take.

Those of LAPACK and of libraries for GPUs take an array's size from another array, and write where
nobody has room if that is not so. So a module that was written elsewhere is looked at before.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from jaxlib.mlir import ir as mlir_ir

from phalanx.primitives.cudnn import KERNEL
from phalanx.xla.block_calls import BY_BLOCK
from phalanx.xla.collectives import PLACEMENT

ir: Any = mlir_ir  # of which much is asked here that is used nowhere else
Operation = Any
Shape = Sequence[int]
Sizes = dict[str, int]

# Dimensions of a matrix, the batch in front left out; for each array one word. Small letters are
# sizes; k is the smaller of m and n, and e is n - 1; t is at most n, and n at most m.
_SHAPES: Final = {
    "potrf": "nn > nn .",
    "getrf": "mn > mn k .",
    "geqrf": "mn > mn k",
    "geqp3": "mn n > mn n k",
    "gqr": "mn t > mn",
    "mqr": "at t mn > mn",
    "syevd": "nn > nn n .",
    "sytrd": "nn > nn n e e .",
    "gehrd": "nn > nn e .",
    "gtsv": "n n n nq > n n n nq .",
    "gtsv2": "n n n nq > nq",
    "trsm": "aa mn > mn",
    "svd": "mn > mn k mu vn .",
    "eig_real": "nn > n n nn nn .",
    "eig_comp": "nn > n nn nn .",
    "gees_real": "nn > nn nn n n . .",
    "gees_comp": "nn > nn nn n . .",
    "pivots": "k > p",
    "Qr": "mn > mn k",
    "Eigh": "nn > nn n",
    "LuDecomposition": "mn > mn k m",
}
_OF_COMPILER: Final = {  # which writes these out for TPUs
    "Qr": "Qr",
    "Eigh": "Eigh",
    "LuDecomposition": "LuDecomposition",
    "ProductOfElementaryHouseholderReflectors": "gqr",
}
_COMPLEX: Final = {"heevd": "syevd", "hetrd": "sytrd"}
_SVD: Final = ("gesdd", "gesvd", "gesvdj", "gesvdp")
_LIBRARY: Final = re.compile(
    r"(?:lapack_[sdcz]|(?:cu|hip)(?:solver|sparse|hybrid)_)([a-z0-9_]+?)(?:_ffi)?"
)
_PERTURBED: Final = re.compile(r"(cu_|hip_)?tridiagonal_solve_perturbed(_ffi)?")
_PIVOTS: Final = re.compile(r"(cu|hip)_lu_pivots_to_permutation")
_ANY: Final = {  # what the compiler checks itself
    "shape_assertion",
    "stablehlo.dynamic_reduce_window",
    "stablehlo.dynamic_top_k",
    "ApproxTopK",
    PLACEMENT,
}


def is_known(name: str) -> bool:
    """Whether a module that we have written may call ``name``."""
    is_ours = name in _ANY or name == BY_BLOCK or KERNEL.fullmatch(name) is not None
    return is_ours or _kind(name) in _SHAPES


def check(name: str, operation: Operation) -> None:
    """Look at the arrays of a call of ``name``, which is known.

    Raises:
        ValueError: their shapes do not belong together.
    """
    kind = _kind(name)
    if kind not in _SHAPES:
        return
    count = len(_words(kind)[0])  # others tell lengths of the results
    types = [ir.RankedTensorType(x.type) for x in (*operation.operands, *operation.results)]
    types[count : len(operation.operands)] = []
    if not all(t.has_static_shape for t in types):
        return  # it is looked at again when they are known
    if not _belongs(kind, [t.shape for t in types], _options(operation)):
        raise ValueError(f"{name} is called with {', '.join(map(str, types))}")


def _kind(name: str) -> str:
    """The entry of ``_SHAPES`` that tells of ``name``, if one does."""
    if _PIVOTS.fullmatch(name):
        return "pivots"
    if _PERTURBED.fullmatch(name):
        return "gtsv2"
    found = _LIBRARY.fullmatch(name)
    if found is None:
        return _OF_COMPILER.get(name, "")
    routine = found[1]
    if routine in _SVD:
        return "svd"
    if routine in ("orgqr", "ungqr", "ormqr", "unmqr"):
        return routine[2:]
    if routine in ("gees", "geev"):
        kind = "comp" if name.startswith(("lapack_c", "lapack_z")) else "real"
        return f"{'gees' if routine == 'gees' else 'eig'}_{kind}"
    return _COMPLEX.get(routine, routine)


def _words(kind: str) -> tuple[list[str], list[str]]:
    ins, _, outs = _SHAPES[kind].partition(" > ")
    return ins.split(), outs.split()


def _belongs(kind: str, shapes: Sequence[Shape], options: Mapping[str, Any]) -> bool:
    ins, outs = _words(kind)
    words = ["" if word == "." else word for word in (*ins, *outs)]
    if len(shapes) != len(words) or len(shapes[0]) < len(words[0]):
        return False
    batch = list(shapes[0][: len(shapes[0]) - len(words[0])])
    sizes: Sizes = {}
    for word, shape in zip(words, shapes, strict=True):
        front, own = list(shape[: len(batch)]), shape[len(batch) :]
        if front != batch or len(own) != len(word):
            return False
        for letter, size in zip(word, own, strict=True):
            if sizes.setdefault(letter, size) != size:
                return False
    return _related(kind, sizes, options)


def _related(kind: str, sizes: Sizes, options: Mapping[str, Any]) -> bool:
    """Whether sizes are as others, and as options, demand."""
    m, n = sizes.get("m", 0), sizes.get("n", 0)
    holds = sizes.get("e", max(n - 1, 0)) == max(n - 1, 0)
    holds &= kind == "pivots" or sizes.get("k", min(m, n)) == min(m, n)
    if kind == "svd":
        holds &= _vectors(sizes["u"], sizes["v"], (m, n), options)
    if kind == "pivots":
        holds &= sizes["k"] <= sizes["p"]
    if kind == "gqr":
        holds &= sizes["t"] <= n <= m
    if kind in ("mqr", "trsm"):
        holds &= sizes["a"] == (m if _is_left(options) else n)
    if kind == "mqr":
        holds &= sizes["t"] <= sizes["a"]
    return holds


def _vectors(u: int, v: int, shape: tuple[int, int], options: Mapping[str, Any]) -> bool:
    k, mode = min(shape), options.get("mode")
    full, thin = (u, v) == shape, (u, v) == (k, k)
    if mode is not None:
        return {"A": full, "S": thin, "N": full or thin}.get(chr(mode), False)
    return full if options.get("full_matrices") else thin or full


def _is_left(options: Mapping[str, Any]) -> bool:
    return options.get("side") == ord("L") or options.get("left") is True


def _options(operation: Operation) -> dict[str, Any]:
    """The letters and truths that a call is given."""
    config = operation.attributes.get("backend_config")
    if not isinstance(config, ir.DictAttr):
        return {}
    plain = [config[i] for i in range(len(config))]
    kinds = (ir.IntegerAttr, ir.BoolAttr)
    return {one.name: one.attr.value for one in plain if isinstance(one.attr, kinds)}
