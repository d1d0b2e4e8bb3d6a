"""The public names: of which module each is. Read by type checkers, and by ``__init__.py``."""

from phalanx import (
    ad_checkpoint as ad_checkpoint,
    as_jax as as_jax,
    custom_batching as custom_batching,
    custom_derivatives as custom_derivatives,
    debug as debug,
    distributed as distributed,
    dlpack as dlpack,
    dtypes as dtypes,
    errors as errors,
    example_libraries as example_libraries,
    experimental as experimental,
    export as export,
    ffi as ffi,
    flatten_util as flatten_util,
    image as image,
    insight as insight,
    laws as laws,
    lax as lax,
    memory as memory,
    monitoring as monitoring,
    nn as nn,
    numpy as numpy,
    ops as ops,
    primitives as primitives,
    profiler as profiler,
    random as random,
    ref as ref,
    scipy as scipy,
    sharding as sharding,
    stages as stages,
    test_util as test_util,
    training as training,
    tree as tree,
    tree_util as tree_util,
    typing as typing,
    version as version,
)
from phalanx.ad_checkpoint import (
    checkpoint as checkpoint,
    checkpoint_policies as checkpoint_policies,
    remat as remat,
)
from phalanx.api.aot import (
    ShapeDtypeStruct as ShapeDtypeStruct,
    typeof as typeof,
)
from phalanx.api.callbacks import (
    effects_barrier as effects_barrier,
    io_callback as io_callback,
    pure_callback as pure_callback,
)
from phalanx.api.contexts import (
    debug_infs as debug_infs,
    debug_nans as debug_nans,
    default_device as default_device,
    default_matmul_precision as default_matmul_precision,
    disable_jit as disable_jit,
    enable_x64 as enable_x64,
    ensure_compile_time_eval as ensure_compile_time_eval,
    log_compiles as log_compiles,
)
from phalanx.api.derivatives import (
    grad as grad,
    jvp as jvp,
    linear_transpose as linear_transpose,
    linearize as linearize,
    value_and_grad as value_and_grad,
    vjp as vjp,
)
from phalanx.api.devices import (
    Device as Device,
    block_until_ready as block_until_ready,
    default_backend as default_backend,
    device_count as device_count,
    device_get as device_get,
    device_put as device_put,
    device_put_replicated as device_put_replicated,
    device_put_sharded as device_put_sharded,
    devices as devices,
    host_count as host_count,
    host_id as host_id,
    host_ids as host_ids,
    local_device_count as local_device_count,
    local_devices as local_devices,
    process_count as process_count,
    process_index as process_index,
    process_indices as process_indices,
    process_rows as process_rows,
)
from phalanx.api.dispatch import clear_caches as clear_caches
from phalanx.api.jacobians import (
    hessian as hessian,
    jacfwd as jacfwd,
    jacrev as jacrev,
)
from phalanx.api.jit import jit as jit
from phalanx.api.live import live_arrays as live_arrays
from phalanx.api.make_program import (
    eval_shape as eval_shape,
    make_program as make_program,
    named_call as named_call,
    named_scope as named_scope,
)
from phalanx.api.meshes import (
    get_mesh as get_mesh,
    make_mesh as make_mesh,
    set_mesh as set_mesh,
)
from phalanx.api.parts import (
    make_array_from_callback as make_array_from_callback,
    make_array_from_process_local_data as make_array_from_process_local_data,
    make_array_from_single_device_arrays as make_array_from_single_device_arrays,
)
from phalanx.api.pmap import pmap as pmap
from phalanx.api.positions import get_abstract_mesh as get_abstract_mesh
from phalanx.api.shard_map import shard_map as shard_map
from phalanx.api.smap import smap as smap
from phalanx.api.vmap import vmap as vmap
from phalanx.api.watching import (
    allow_f16_reductions as allow_f16_reductions,
    array_garbage_collection_guard as array_garbage_collection_guard,
    auto_pcast as auto_pcast,
    check_tracer_leaks as check_tracer_leaks,
    checking_leaks as checking_leaks,
    debug_key_reuse as debug_key_reuse,
    default_prng_impl as default_prng_impl,
    enable_checks as enable_checks,
    enable_custom_prng as enable_custom_prng,
    explain_cache_misses as explain_cache_misses,
    jax2tf_associative_scan_reductions as jax2tf_associative_scan_reductions,
    legacy_prng_key as legacy_prng_key,
    no_execution as no_execution,
    no_tracing as no_tracing,
    numpy_dtype_promotion as numpy_dtype_promotion,
    numpy_rank_promotion as numpy_rank_promotion,
    remove_size_one_mesh_axis_from_type as remove_size_one_mesh_axis_from_type,
    softmax_custom_jvp as softmax_custom_jvp,
    thread_guard as thread_guard,
    threefry_partitionable as threefry_partitionable,
    transfer_guard as transfer_guard,
    transfer_guard_device_to_device as transfer_guard_device_to_device,
    transfer_guard_device_to_host as transfer_guard_device_to_host,
    transfer_guard_host_to_device as transfer_guard_host_to_device,
)
from phalanx.base.config import config as config
from phalanx.base.dtypes import float0 as float0
from phalanx.base.version import (
    __version__ as __version__,
    __version_info__ as __version_info__,
)
from phalanx.core.refs import Ref as Ref
from phalanx.core.types import Array as Array
from phalanx.custom_derivatives import (
    closure_convert as closure_convert,
    custom_gradient as custom_gradient,
    custom_jvp as custom_jvp,
    custom_vjp as custom_vjp,
)
from phalanx.environment import print_environment_info as print_environment_info
from phalanx.insight.checks.check import check as check
from phalanx.insight.explanations.explain import explain as explain
from phalanx.insight.plans.plan import plan as plan
from phalanx.insight.verification.verify import verify as verify
from phalanx.lax import stop_gradient as stop_gradient
from phalanx.lax.layout import reshard as reshard
from phalanx.numpy.refs import (
    empty_ref as empty_ref,
    free_ref as free_ref,
    freeze as freeze,
    new_ref as new_ref,
)
from phalanx.spmd.named import (
    NamedSharding as NamedSharding,
    P as P,
)

make_jaxpr = make_program
jacobian = jacrev
