"""What modules of the field have because they import it, and programs take from there."""

from __future__ import annotations

from typing import Final

_PLACES: Final = {
    "InitFn": "collections.abc:Callable",
    "Device": "jax:Device",
    "P": "jax:P",
    "ParamsFn": "collections.abc:Callable",
    "Step": "builtins:int",
    "UpdateFn": "collections.abc:Callable",
    "ad": "jax.interpreters.ad",
    "ad_util": "jax._src.ad_util",
    "add_jaxvals_p": "jax.lax:add_jaxvals_p",
    "api_util": "jax.api_util",
    "array": "jax._src.array",
    "batching": "jax.interpreters.batching",
    "core": "jax.core",
    "custom_derivatives": "jax.custom_derivatives",
    "dispatch": "jax._src.dispatch",
    "distributed": "jax._src.distributed",
    "dtypes": "jax.dtypes",
    "jax": "jax",
    "jnp": "jax.numpy",
    "jshmap": "jax.experimental.shard_map",
    "lax": "jax.lax",
    "lax_internal": "jax.lax",
    "lru_cache": "functools:lru_cache",
    "lu": "jax.extend.linear_util",
    "map": "jax._src.util:safe_map",
    "mesh_utils": "jax.experimental.mesh_utils",
    "mlir": "jax.interpreters.mlir",
    "namedtuple": "collections:namedtuple",
    "partial": "functools:partial",
    "pe": "jax.interpreters.partial_eval",
    "pjit": "jax.experimental.pjit",
    "pjit_lib": "jax.experimental.pjit",
    "prng": "jax.extend.random",
    "promote_dtypes_inexact": "jax._src.numpy.util:promote_dtypes_inexact",
    "pxla": "jax.interpreters.pxla",
    "random": "jax.random",
    "random_gamma_p": "jax.lax:random_gamma_p",
    "register_pytree_node": "jax.tree_util:register_pytree_node",
    "remat_opt_p": "jax.lax:remat_opt_p",
    "safe_map": "jax._src.util:safe_map",
    "safe_zip": "jax._src.util:safe_zip",
    "sharding_impls": "jax.sharding",
    "sparse": "jax.experimental.sparse",
    "standardize": "jax.nn:standardize",
    "traceback_util": "jax._src.traceback_util",
    "tree_flatten": "jax.tree_util:tree_flatten",
    "tree_leaves": "jax.tree_util:tree_leaves",
    "tree_map": "jax.tree_util:tree_map",
    "tree_structure": "jax.tree_util:tree_structure",
    "tree_unflatten": "jax.tree_util:tree_unflatten",
    "treedef_is_leaf": "jax.tree_util:treedef_is_leaf",
    "unzip2": "jax._src.util:unzip2",
    "xb": "jax.extend.backend",
    "xla_bridge": "jax.extend.backend",
    "zip": "jax._src.util:safe_zip",
}

_HAVE: Final = {
    "jax.custom_derivatives": "remat_opt_p",
    "jax.example_libraries.optimizers": (
        "InitFn ParamsFn Step UpdateFn jax jnp map namedtuple partial safe_map safe_zip unzip2 zip"
    ),
    "jax.example_libraries.stax": "jnp lax random standardize",
    "jax.experimental.jet": (
        "ad_util api_util core dispatch jnp lax lax_internal lu partial pe pjit "
        "register_pytree_node safe_zip sharding_impls tree_flatten tree_structure "
        "tree_unflatten treedef_is_leaf unzip2"
    ),
    "jax.experimental.multihost_utils": (
        "P ad array batching core distributed dtypes jax jnp lru_cache mlir partial "
        "pjit_lib prng pxla safe_zip sharding_impls tree_flatten tree_unflatten "
        "xla_bridge"
    ),
    "jax.experimental.ode": (
        "core custom_derivatives jax jnp lax map partial promote_dtypes_inexact safe_map "
        "safe_zip tree_leaves tree_map zip"
    ),
    "jax.experimental.serialize_executable": "jax",
    "jax.experimental.shard_map": "jshmap traceback_util",
    "jax.experimental.sparse.linalg": "ad core dispatch jax jnp mlir sparse",
    "jax.experimental.topologies": "Device jax mesh_utils xb",
    "jax.interpreters": "traceback_util",
    "jax.interpreters.ad": "add_jaxvals_p",
    "jax.random": "random_gamma_p",
}

# by module, of names the places where they are
BORROWED: Final = {
    module: {name: _PLACES[name] for name in names.split()} for module, names in _HAVE.items()
}
