"""Phalanx: one program, many devices, in step.

Array programs in Python, and transformations of them: ``jit`` compiles, ``grad``
differentiates, ``vmap`` vectorizes, and ``pmap`` spreads an axis over the devices there are.
"""

import sys as _sys
from typing import TYPE_CHECKING as _TYPE_CHECKING

from phalanx.base.errors import ConfigError as _ConfigError

try:
    from phalanx.base.config import config  # which reads the environment
except _ConfigError as _error:
    _error.__traceback__ = None  # so that the last line is the one that imports us
    raise

from phalanx import (
    ad_checkpoint,
    custom_derivatives,
    debug,
    dtypes,
    errors,
    lax,
    memory,
    numpy,
    ops,
    primitives,
    ref,
    sharding,
    stages,
    tree,
    tree_util,
)
from phalanx.ad_checkpoint import checkpoint, checkpoint_policies, remat
from phalanx.api.aot import ShapeDtypeStruct, typeof
from phalanx.api.callbacks import effects_barrier, io_callback, pure_callback
from phalanx.api.contexts import (
    debug_infs,
    debug_nans,
    default_device,
    default_matmul_precision,
    disable_jit,
    enable_x64,
    ensure_compile_time_eval,
    log_compiles,
)
from phalanx.api.derivatives import (
    grad,
    jvp,
    linear_transpose,
    linearize,
    value_and_grad,
    vjp,
)
from phalanx.api.devices import (
    Device,
    block_until_ready,
    default_backend,
    device_count,
    device_get,
    device_put,
    device_put_replicated,
    device_put_sharded,
    devices,
    host_count,
    host_id,
    host_ids,
    local_device_count,
    local_devices,
    process_count,
    process_index,
    process_indices,
    process_rows,
)
from phalanx.api.dispatch import clear_caches
from phalanx.api.jacobians import hessian, jacfwd, jacrev
from phalanx.api.jax_attributes import install as _install_attributes
from phalanx.api.jit import jit
from phalanx.api.live import live_arrays
from phalanx.api.make_program import (
    eval_shape,
    make_program,
    named_call,
    named_scope,
)
from phalanx.api.meshes import get_mesh, make_mesh, set_mesh
from phalanx.api.parts import (
    make_array_from_callback,
    make_array_from_process_local_data,
    make_array_from_single_device_arrays,
)
from phalanx.api.pmap import pmap
from phalanx.api.positions import get_abstract_mesh
from phalanx.api.positions import sharding_of_type as _sharding_of_type
from phalanx.api.shard_map import shard_map
from phalanx.api.smap import smap
from phalanx.api.vmap import vmap
from phalanx.base.boundary import bound as _bound
from phalanx.base.lazily import later as _later
from phalanx.base.version import __version__, __version_info__
from phalanx.core.refs import Ref
from phalanx.core.trace import ROOT as _ROOT
from phalanx.core.types import Array
from phalanx.core.types import ArrayType as _ArrayType
from phalanx.custom_derivatives import (
    closure_convert,
    custom_gradient,
    custom_jvp,
    custom_vjp,
)
from phalanx.lax import stop_gradient
from phalanx.lax.layout import reshard
from phalanx.numpy import segments as _segments
from phalanx.numpy.at import Part as _Part
from phalanx.numpy.methods import install as _install
from phalanx.numpy.refs import empty_ref, free_ref, freeze, new_ref
from phalanx.numpy.refs import install as _install_refs
from phalanx.run.eager import evaluate_eagerly as _evaluate
from phalanx.run.lay import lay_array as _lay
from phalanx.spmd.named import NamedSharding, P
from phalanx.spmd.shardings_of_types import mesh_spec_of as _mesh_spec_of

_ROOT.evaluate, _ROOT.lay = _evaluate, _lay
_ArrayType.to_sharding, _ArrayType.of_sharding = (
    staticmethod(_sharding_of_type),
    staticmethod(_mesh_spec_of),
)
_install(Array, numpy)
_install_refs()
_install_attributes()
ops.__dict__.update({_name: getattr(_segments, _name) for _name in _segments.__all__})
ops.__dict__["__all__"] = _segments.__all__  # all that is public in the room of primitives

make_jaxpr = make_program
jacobian = jacrev
float0 = dtypes.float0

_bound(debug, lax, numpy, ops, ref, tree, tree_util)
_bound(_Part, type(config), _sys.modules[__name__])
_bound(ad_checkpoint, custom_derivatives)

if _TYPE_CHECKING:
    from phalanx import (
        custom_batching,
        distributed,
        dlpack,
        example_libraries,
        experimental,
        export,
        ffi,
        flatten_util,
        image,
        insight,
        laws,
        monitoring,
        nn,
        profiler,
        random,
        scipy,
        test_util,
        training,
        typing,
        version,
    )
    from phalanx.api.watching import (
        allow_f16_reductions,
        array_garbage_collection_guard,
        auto_pcast,
        check_tracer_leaks,
        checking_leaks,
        debug_key_reuse,
        default_prng_impl,
        enable_checks,
        enable_custom_prng,
        explain_cache_misses,
        jax2tf_associative_scan_reductions,
        legacy_prng_key,
        no_execution,
        no_tracing,
        numpy_dtype_promotion,
        numpy_rank_promotion,
        remove_size_one_mesh_axis_from_type,
        softmax_custom_jvp,
        thread_guard,
        threefry_partitionable,
        transfer_guard,
        transfer_guard_device_to_device,
        transfer_guard_device_to_host,
        transfer_guard_host_to_device,
    )
    from phalanx.environment import print_environment_info
    from phalanx.insight.checking import check
    from phalanx.insight.explained import explain
    from phalanx.insight.planning import plan

# Old names of JAX, and options that change nothing here: programs have them, and completion does
# not show them.
_OLD = (
    "ad_checkpoint", "allow_f16_reductions", "device_put_replicated", "device_put_sharded",
    "host_count", "host_id", "host_ids", "jax2tf_associative_scan_reductions",
    "legacy_prng_key", "remove_size_one_mesh_axis_from_type", "softmax_custom_jvp",
)  # fmt: skip
_BELOW = "it lies below the public face; run the program as it is, python -m phalanx.as_jax"

_later(
    __name__,
    "custom_batching",
    "distributed",
    "dlpack",
    "example_libraries",
    "experimental",
    "export",
    "ffi",
    "flatten_util",
    "image",
    "insight",
    "laws",
    "monitoring",
    "nn",
    "profiler",
    "random",
    "scipy",
    "test_util",
    "training",
    "typing",
    "version",
    unlisted=_OLD,
    refused={
        **dict.fromkeys(["api_util", "extend", "interpreters", "lib", "linear_util"], _BELOW),
        "Inline": "the compiler says where a function becomes part of the one that calls it",
        "pallas": "write the kernel with numpy and lax, which the compiler fuses",
        "unstack": "use numpy.unstack, or lax.unstack",
    },
    **{
        "environment": ("print_environment_info",),
        "insight.checking": ("check",),
        "insight.explained": ("explain",),
        "insight.planning": ("plan",),
        "api.watching": (
            "allow_f16_reductions",
            "array_garbage_collection_guard",
            "auto_pcast",
            "check_tracer_leaks",
            "checking_leaks",
            "debug_key_reuse",
            "default_prng_impl",
            "enable_checks",
            "enable_custom_prng",
            "explain_cache_misses",
            "jax2tf_associative_scan_reductions",
            "legacy_prng_key",
            "no_execution",
            "no_tracing",
            "numpy_dtype_promotion",
            "numpy_rank_promotion",
            "remove_size_one_mesh_axis_from_type",
            "softmax_custom_jvp",
            "thread_guard",
            "threefry_partitionable",
            "transfer_guard",
            "transfer_guard_device_to_device",
            "transfer_guard_device_to_host",
            "transfer_guard_host_to_device",
        ),
    },
)

__all__ = [
    "Array", "Device", "NamedSharding", "P", "Ref", "ShapeDtypeStruct", "ad_checkpoint",
    "allow_f16_reductions", "array_garbage_collection_guard", "auto_pcast", "block_until_ready",
    "check", "check_tracer_leaks", "checking_leaks", "checkpoint", "checkpoint_policies",
    "clear_caches", "closure_convert", "config", "custom_batching", "custom_derivatives",
    "custom_gradient", "custom_jvp", "custom_vjp", "debug", "debug_infs", "debug_key_reuse",
    "debug_nans", "default_backend", "default_device", "default_matmul_precision",
    "default_prng_impl", "device_count", "device_get", "device_put", "device_put_replicated",
    "device_put_sharded", "devices", "disable_jit", "distributed", "dlpack", "dtypes",
    "effects_barrier", "empty_ref", "enable_checks", "enable_custom_prng", "enable_x64",
    "ensure_compile_time_eval", "errors", "eval_shape", "example_libraries", "experimental",
    "explain", "explain_cache_misses", "export", "ffi", "flatten_util", "float0", "free_ref",
    "freeze", "get_abstract_mesh", "get_mesh", "grad", "hessian", "host_count", "host_id",
    "host_ids", "image", "insight", "io_callback", "jacfwd", "jacobian", "jacrev",
    "jax2tf_associative_scan_reductions", "jit", "jvp", "laws", "lax", "legacy_prng_key",
    "linear_transpose", "linearize", "live_arrays", "local_device_count", "local_devices",
    "log_compiles", "make_array_from_callback", "make_array_from_process_local_data",
    "make_array_from_single_device_arrays", "make_jaxpr", "make_mesh", "make_program", "memory",
    "monitoring", "named_call", "named_scope", "new_ref", "nn", "no_execution", "no_tracing",
    "numpy", "numpy_dtype_promotion", "numpy_rank_promotion", "ops", "plan", "pmap", "primitives",
    "print_environment_info", "process_count", "process_index", "process_indices",
    "process_rows", "profiler", "pure_callback", "random", "ref", "remat",
    "remove_size_one_mesh_axis_from_type", "reshard",
    "scipy", "set_mesh", "shard_map", "sharding", "smap", "softmax_custom_jvp", "stages",
    "stop_gradient", "test_util", "thread_guard", "threefry_partitionable", "training",
    "transfer_guard", "transfer_guard_device_to_device", "transfer_guard_device_to_host",
    "transfer_guard_host_to_device", "tree", "tree_util", "typeof", "typing", "value_and_grad",
    "version", "vjp", "vmap", "__version__", "__version_info__",
]  # fmt: skip
