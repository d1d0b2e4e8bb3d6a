"""The tree of modules below ``jax``, and where the names of each come from.

A name is looked for in the sources in order. What is a module there is none here: modules are
those of this table alone.
"""

from __future__ import annotations

from typing import Final

VERSION: Final = "0.12.0"  # the release whose public names these are

# modules that have the same names here and there
_SAME: Final = [
    "custom_batching", "debug", "distributed", "dlpack", "dtypes", "errors",
    "export", "ffi", "flatten_util", "image", "memory", "monitoring", "nn", "nn.initializers",
    "ops", "profiler", "random", "ref", "stages", "test_util", "tree", "typing",
    "example_libraries", "example_libraries.optimizers", "example_libraries.stax",
    "experimental.checkify", "experimental.custom_partitioning",
    "experimental.sparse.linalg",
    "experimental.mesh_utils",
    "experimental.multihost_utils", "experimental.ode", "experimental.pjit",
    "experimental.serialize_executable", "experimental.shard_map", "experimental.topologies",
    "numpy", "numpy.fft",
    "numpy.linalg", "scipy", "scipy.cluster", "scipy.cluster.vq", "scipy.fft",
    "scipy.integrate", "scipy.interpolate", "scipy.linalg", "scipy.ndimage", "scipy.optimize",
    "scipy.signal", "scipy.sparse", "scipy.sparse.linalg", "scipy.spatial",
    "scipy.spatial.transform", "scipy.special", "scipy.stats", "scipy.stats.bernoulli",
    "scipy.stats.beta", "scipy.stats.betabinom", "scipy.stats.binom", "scipy.stats.cauchy",
    "scipy.stats.chi2", "scipy.stats.dirichlet", "scipy.stats.expon", "scipy.stats.gamma",
    "scipy.stats.gennorm", "scipy.stats.geom", "scipy.stats.gumbel_l", "scipy.stats.gumbel_r",
    "scipy.stats.laplace", "scipy.stats.logistic", "scipy.stats.multinomial",
    "scipy.stats.multivariate_normal", "scipy.stats.nbinom", "scipy.stats.norm",
    "scipy.stats.pareto", "scipy.stats.poisson", "scipy.stats.t", "scipy.stats.truncnorm",
    "scipy.stats.uniform", "scipy.stats.vonmises", "scipy.stats.wrapcauchy",
]  # fmt: skip

# modules that have the same names as the package
_PARTS_OF_SPARSE: Final = [
    "", ".ad", ".api", ".bcoo", ".bcsr", ".coo", ".csr", ".random", ".transform", ".util",
]  # fmt: skip


def _here(*names: str) -> tuple[str, ...]:
    return tuple([f"phalanx.compat.{name}" for name in names])


_SPARSE: Final = ("phalanx.experimental.sparse", *_here("experimental.sparse"))

_PUBLIC: Final[dict[str, tuple[str, ...]]] = {
    **{f"jax.{name}": (f"phalanx.{name}",) for name in _SAME},
    "jax": (*_here("face"), "phalanx"),
    "jax.version": _here("face"),
    "jax.ad_checkpoint": ("phalanx.ad_checkpoint", *_here("ad_checkpoint", "operations")),
    "jax.ad_checkpoint.checkpoint_policies": ("phalanx.control.policies",),
    "jax.api_util": _here("api_util"),
    "jax.checkpoint_policies": ("phalanx.control.policies",),
    "jax.core": _here("core"),
    "jax.custom_derivatives": (*_here("custom_derivatives"), "phalanx.custom_derivatives"),
    **{f"jax.experimental.sparse{part}": _SPARSE for part in _PARTS_OF_SPARSE},
    "jax.experimental": ("phalanx.experimental",),
    "jax.experimental.compilation_cache": (),
    "jax.experimental.compilation_cache.compilation_cache": _here("experimental.compilation_cache"),
    "jax.experimental.hijax": _here("experimental.hijax"),
    "jax.experimental.jet": ("phalanx.experimental.jet", *_here("experimental.jet")),
    "jax.experimental.layout": (*_here("experimental.layout"), "phalanx.experimental.layout"),
    "jax.experimental.pallas": _here(
        *[f"experimental.pallas.{part}" for part in ("call", "specs", "within")]
    ),
    "jax.experimental.pallas.tpu": _here("experimental.pallas.tpu"),
    "jax.experimental.pallas.triton": _here("experimental.pallas.triton"),
    "jax.experimental.scheduling_groups": _here("experimental.hints"),
    "jax.experimental.xla_metadata": _here("experimental.hints"),
    "jax.extend": (),
    "jax.extend.backend": _here("extend.backend"),
    "jax.extend.core": _here("core"),
    "jax.extend.core.primitives": _here("operations"),
    "jax.extend.linear_util": _here("extend.linear_util"),
    "jax.extend.random": _here("extend.random"),
    "jax.extend.sharding": (),
    "jax.extend.source_info_util": _here("extend.source_info_util"),
    "jax.ffi": (*_here("ffi"), "phalanx.ffi"),
    "jax.interpreters": (),
    "jax.interpreters.ad": _here("interpreters.ad"),
    "jax.interpreters.batching": _here("interpreters.batching"),
    "jax.interpreters.mlir": _here("interpreters.mlir"),
    "jax.interpreters.partial_eval": _here("interpreters.partial_eval"),
    "jax.interpreters.pxla": _here("private.mesh"),
    "jax.interpreters.xla": _here("interpreters.xla"),
    "jax.lax": ("phalanx.lax", *_here("operations")),
    "jax.lax.linalg": ("phalanx.lax.linalg", *_here("operations")),
    "jax.lib": _here("lib"),
    "jax.sharding": ("phalanx.sharding",),
    "jax.tree_util": (*_here("tree_util"), "phalanx.tree_util"),
}

# Private modules that programs import, for names that a public one has: the private one, and that.
_MIRRORS: Final = {
    "ad_checkpoint": "ad_checkpoint", "api": "", "basearray": "", "callback": "",
    "config": "", "custom_batching": "custom_batching",
    "custom_derivatives": "custom_derivatives", "debugging": "debug", "environment_info": "",
    "errors": "errors", "ffi": "ffi", "image.scale": "image",
    "interpreters.ad": "interpreters.ad", "interpreters.batching": "interpreters.batching",
    "interpreters.mlir": "interpreters.mlir",
    "interpreters.partial_eval": "interpreters.partial_eval",
    "interpreters.pxla": "interpreters.pxla", "lax.control_flow": "lax",
    "lax.convolution": "lax", "lax.lax": "lax", "lax.linalg": "lax.linalg",
    "lax.parallel": "lax", "lax.slicing": "lax", "layout": "experimental.layout",
    "monitoring": "monitoring", "named_sharding": "sharding",
    "nn.functions": "nn", "nn.initializers": "nn.initializers", "numpy.lax_numpy": "numpy",
    "numpy.index_tricks": "numpy", "numpy.linalg": "numpy.linalg",
    "numpy.reductions": "numpy", "numpy.ufuncs": "numpy", "numpy.vectorize": "numpy",
    "ops.scatter": "ops", "partition_spec": "sharding",
    "profiler": "profiler", "random": "random", "scipy.linalg": "scipy.linalg",
    "scipy.special": "scipy.special", "shard_map": "",
    "sharding": "sharding", "sharding_impls": "sharding",
    "source_info_util": "extend.source_info_util", "stages": "stages", "tree": "tree",
}  # fmt: skip

_PRIVATE: Final[dict[str, tuple[str, ...]]] = {
    **{
        f"jax._src.{name}": _PUBLIC[f"jax.{public}".rstrip(".")]
        for name, public in _MIRRORS.items()
    },
    "jax._src.ad_util": _here("interpreters.ad", "operations"),
    "jax._src.api_util": _here("api_util"),
    "jax._src.array": (*_here("private.array"), "phalanx"),
    "jax._src.checkify": ("phalanx.experimental.checkify",),
    "jax._src.compiler": (),
    "jax._src.compilation_cache": _here("experimental.compilation_cache"),
    "jax._src.core": _here("core"),
    "jax._src.dispatch": _here("extend.backend", "interpreters.xla"),
    "jax._src.distributed": _here("private.distributed"),
    "jax._src.dtypes": (*_here("private.dtypes"), "phalanx.dtypes"),
    "jax._src.flatten_util": ("phalanx.flatten_util",),
    "jax._src.flattree": _here("private.flattree"),
    "jax._src.linear_util": _here("extend.linear_util"),
    "jax._src.literals": _here("core"),
    "jax._src.mesh": (*_here("private.mesh"), "phalanx.sharding"),
    "jax._src.numpy.array_methods": _here("private.array_methods"),
    "jax._src.numpy.util": _here("private.promotion"),
    "jax._src.pjit": ("phalanx.experimental.pjit", "phalanx.sharding", *_here("operations")),
    "jax._src.sharding_impls": (*_PUBLIC["jax.sharding"], *_here("private.sharding_impls")),
    "jax._src.state.types": _here("experimental.hijax"),
    "jax._src.traceback_util": _here("extend.source_info_util"),
    "jax._src.tree_util": (*_here("tree_util"), "phalanx.tree_util"),
    "jax._src.typing": (*_here("private.typing"), "phalanx.typing"),
    "jax._src.util": _here("private.lists"),
    "jax._src.xla_bridge": _here("extend.backend"),
}


def _above(name: str) -> tuple[str, ...]:
    """The modules in which the module ``name`` lies."""
    parts = name.split(".")
    return tuple([".".join(parts[:i]) for i in range(1, len(parts))])


MODULES: Final = {
    **{above: () for name in _PRIVATE for above in _above(name)},
    **_PUBLIC,
    **_PRIVATE,
}
