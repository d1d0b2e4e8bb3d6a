"""Names and modules that are not offered, and what to use.

A module can be imported all the same, and its names be derived from or asked for by ``isinstance``:
libraries do so for what they may never use. Whoever calls one learns what to use.
"""

from __future__ import annotations

import functools
from typing import Any, Final, NoReturn

REFUSED: Final = {
    "tree_map": "use jax.tree.map",
    "tree_leaves": "use jax.tree.leaves",
    "tree_flatten": "use jax.tree.flatten",
    "tree_unflatten": "use jax.tree.unflatten",
    "tree_structure": "use jax.tree.structure",
    "tree_multimap": "use jax.tree.map",
    "xla_computation": "use jax.jit(f).lower(x).compiler_ir('hlo')",
    "KeyArray": "use jax.Array",
    "PRNGKeyArray": "use jax.Array",
    "linear_util": "use jax.extend.linear_util",
    "pallas": "kernels written by hand are not offered",
}

MODULES_REFUSED: Final = {
    "jax.experimental.array_serialization": "use phalanx.experimental.checkpoint",
    "jax.experimental.array_serialization.serialization": "use phalanx.experimental.checkpoint",
    "jax.experimental.colocated_python": "use pure_callback or io_callback",
    "jax.experimental.compute_on": "what the host computes is said by pure_callback",
    "jax.experimental.jax2tf": "export the program instead, jax.export",
    "jax.experimental.pallas": "write the kernel with jax.numpy and lax: the compiler fuses it",
    "jax.experimental.pallas.mosaic_gpu": "write the kernel with jax.numpy and lax",
    "jax.experimental.pallas.ops": "write the kernel with jax.numpy and lax",
    "jax.experimental.pallas.tpu": "write the kernel with jax.numpy and lax",
    "jax.experimental.pallas.triton": "write the kernel with jax.numpy and lax",
    "jax.experimental.rnn": "write the cell, and lax.scan over it",
    "jax.experimental.sparse": "use dense arrays",
    "jax.experimental.topologies": "compile on the devices that there are",
}


class NotOffered(type):
    """The class of classes that stand for names that are not offered."""

    why: str

    def __call__(cls, *_: Any, **__: Any) -> NoReturn:
        raise NotImplementedError(f"{cls.__module__}.{cls.__name__} is not offered: {cls.why}")


@functools.cache
def not_offered(module: str, name: str) -> NotOffered:
    """What stands for ``name`` of a module that is refused."""
    return NotOffered(name, (), {"__module__": module, "why": MODULES_REFUSED[module]})
