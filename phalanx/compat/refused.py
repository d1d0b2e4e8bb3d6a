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
    "pallas": "use jax.experimental.pallas",
}

# with all that lies below them
MODULES_REFUSED: Final = {
    "jax.experimental.array_serialization": "use phalanx.experimental.checkpoint",
    "jax.experimental.buffer_callback": "use jax.ffi, or pure_callback",
    "jax.experimental.colocated_python": "use pure_callback or io_callback",
    "jax.experimental.compute_on": "use pure_callback for what the host computes",
    "jax.experimental.fused": "use jax.jit, whose compiler fuses operations",
    "jax.experimental.jax2tf": "use jax.export",
    "jax.experimental.key_reuse": "split each key before it is used again",
    "jax.experimental.mosaic": "write the kernel with jax.numpy and lax",
    "jax.experimental.overlap": "the compiler orders operations",
    "jax.experimental.pallas.fuser": "write the kernel with jax.numpy and lax",
    "jax.experimental.pallas.mosaic_gpu": "write the kernel with jax.numpy and lax",
    "jax.experimental.pallas.ops": "use jax.nn.dot_product_attention or jax.lax.ragged_dot",
    "jax.experimental.pallas.tpu_sc": "gather and scatter with x[..] and x.at[..]",
    "jax.experimental.profiler": "read the files that jax.profiler writes",
    "jax.experimental.random": "use jax.random",
    "jax.experimental.rnn": "write the cell, and lax.scan over it",
    "jax.experimental.roofline": "use phalanx plan, or jax.jit(f).lower(x).cost_analysis()",
    "jax.experimental.source_mapper": "use jax.jit(f).lower(x).as_text(debug_info=True)",
    "jax.experimental.thunky": "compile with jax.jit(f).lower(x).compile(options)",
    "jax.experimental.transfer": "use jax.device_put",
    "jax.extend.ifrt_programs": "compile with jax.jit(f).lower(x).compile()",
    "jax.extend.lowering": "use jax.interpreters.mlir.lower_fun, with a function of arrays",
    "jax.extend.mlir": "use jax.jit(f).lower(x).as_text()",
    "jax.extend.pallas": "use a kernel of jax.experimental.pallas",
    "jax.extend.xla": "use jax.jit(f).lower(x).compile().as_text()",
}


# of modules that are offered, the names that are not
NAMES_REFUSED: Final[dict[str, tuple[str, list[str]]]] = {
    "jax": (
        "pass what differs as a static argument of jax.jit",
        ["make_user_context"],
    ),
    "jax.ad_checkpoint": (
        "call jax.ad_checkpoint.checkpoint_name",
        ["checkpoint_name_fwd"],
    ),
    "jax.debug": (
        "see the effects of a program, jax.make_jaxpr(f)(x).effects",
        ["DebugEffect", "OrderedDebugEffect"],
    ),
    "jax.experimental": (
        "use a sharding, such as jax.sharding.NamedSharding",
        ["EArray", "primal_tangent_dtype"],
    ),
    "jax.experimental.custom_partitioning": (
        "write sharding_rule as a text, such as '... i j, ... j k -> ... i k'",
        ["ArrayMapping", "BATCHING", "CompoundFactor", "SdyShardingRule", "custom_partitioning_p"],
    ),
    "jax.experimental.hijax": (
        "give a VJPHiPrimitive its rules",
        [
            "HiPspec",
            "MappingSpec",
            "NullAccum",
            "RefAccum",
            "bdims_at_front",
            "control_flow_allowed_effects",
            "is_undefined_primal",
            "jvp_from_lin",
            "linearize_from_jvp",
            "unmap_avals",
            "vjp_from_jvp",
            "vjp_from_lin",
            "vmap_rule",
        ],
    ),
    "jax.experimental.jet": (
        "every operation has its series here, jet(f, primals, series)",
        [
            "JetTrace",
            "JetTracer",
            "ZeroTerm",
            "call_param_updaters",
            "def_comp",
            "def_deriv",
            "deflinear",
            "defzero",
            "deriv_prop",
            "jet2",
            "jet_fun",
            "jet_rules",
            "jet_subtrace",
            "linear_prop",
            "traceable",
            "weakref_lru_cache",
            "zero_prop",
            "zero_term",
        ],
    ),
    "jax.experimental.layout": (
        "the compiler orders dimensions in memory",
        ["explicit_layout"],
    ),
    "jax.experimental.mesh_utils": (
        "use jax.make_mesh, or create_device_mesh",
        ["device_kind_handler_dict"],
    ),
    "jax.experimental.multihost_utils": (
        "use jax.make_array_from_process_local_data, and jax.devices()",
        [
            "ProcessFailureError",
            "global_array_to_host_local_array_impl",
            "global_array_to_host_local_array_p",
            "gtl_abstract_eval",
            "host_local_array_to_global_array_impl",
            "host_local_array_to_global_array_p",
            "live_devices",
            "ltg_abstract_eval",
            "ltg_batcher",
            "xla_client",
        ],
    ),
    "jax.experimental.ode": (
        "use odeint",
        [
            "abs2",
            "fit_4th_order_polynomial",
            "initial_step_size",
            "interp_fit_dopri",
            "mean_error_ratio",
            "optimal_step_size",
            "ravel_first_arg",
            "runge_kutta_step",
        ],
    ),
    "jax.experimental.pallas": (
        "a kernel runs as a loop over its grid, which jax.experimental.pallas.pallas_call makes",
        [
            "BlockDim",
            "BoundedSlice",
            "Indirect",
            "RevisitMode",
            "debug_check",
            "empty_ref_like",
            "enable_debug_checks",
            "enable_poison_buffers",
            "get_global",
            "kernel",
            "lower_as_mlir",
            "pallas_call_p",
            "pallas_export_experimental",
            "select_ref",
            "semaphore",
        ],
    ),
    "jax.experimental.pallas.tpu": (
        "a kernel runs as a loop over its grid, on no core of its own",
        [
            "ACC",
            "BufferType",
            "BufferedRef",
            "ChipVersion",
            "CoreType",
            "LoweringException",
            "PipelineStep",
            "SideEffectType",
            "TensorCoreMesh",
            "Tiling",
            "TpuInfo",
            "async_remote_copy",
            "conv",
            "core",
            "core_barrier",
            "create_tensorcore_mesh",
            "dma_semaphore",
            "einshape",
            "emit_pipeline_with_allocations",
            "emit_pipeline_with_async_prefetch",
            "get_barrier_semaphore",
            "get_tpu_info",
            "get_tpu_info_for_chip",
            "has_memory_space",
            "join_bits",
            "make_async_remote_copy",
            "matmul_acc_lhs",
            "matmul_lhs_fifo",
            "matmul_pop",
            "matmul_pop_fifo",
            "matmul_push_rhs",
            "pack_elementwise",
            "pack_fp6",
            "prng_random_bits",
            "prng_seed",
            "run_on_first_core",
            "sample_block",
            "split_bits",
            "stateful_bernoulli",
            "stateful_bits",
            "stateful_normal",
            "stateful_uniform",
            "stochastic_round",
            "to_pallas_key",
            "touch",
            "trace_value",
            "unpack_elementwise",
            "unpack_fp6",
        ],
    ),
    "jax.experimental.pallas.triton": (
        "a kernel runs as a loop over its grid, of operations of jax.numpy",
        [
            "CUSTOM_CALL_TARGET_NAME",
            "GpuInfo",
            "GpuVersion",
            "elementwise_inline_asm",
            "get_gpu_info",
            "get_gpu_info_from_version",
        ],
    ),
    "jax.experimental.serialize_executable": (
        "use serialize and deserialize_and_load",
        ["xc"],
    ),
    "jax.experimental.sparse": (
        "use BCOO, whose transformations are those of arrays",
        [
            "SparseTracer",
            "bcoo_conv_general_dilated",
            "bcoo_dot_general_p",
            "bcoo_dot_general_sampled",
            "bcoo_dot_general_sampled_p",
            "bcoo_extract_p",
            "bcoo_fromdense_p",
            "bcoo_gather",
            "bcoo_sort_indices_p",
            "bcoo_spdot_general_p",
            "bcoo_sum_duplicates_p",
            "bcoo_todense_p",
            "bcoo_transpose_p",
            "bcsr_broadcast_in_dim",
            "bcsr_dot_general_p",
            "bcsr_extract_p",
            "bcsr_fromdense_p",
            "bcsr_todense_p",
            "coo_fromdense_p",
            "coo_matmat_p",
            "coo_matvec_p",
            "coo_todense_p",
            "csr_fromdense_p",
            "csr_matmat_p",
            "csr_matvec_p",
            "csr_todense_p",
            "todense_p",
        ],
    ),
    "jax.experimental.sparse.linalg": (
        "use spsolve",
        ["ffi", "spsolve_p"],
    ),
    "jax.extend.backend": (
        "devices are those of Phalanx, jax.devices()",
        [
            "backend_xla_version",
            "clear_in_memory_compilation_cache",
            "get_compile_options",
            "ifrt_proxy",
            "register_backend_cache",
            "register_backend_factory",
        ],
    ),
    "jax.extend.core": (
        "bind what a function does with jax.jit or jax.custom_jvp",
        [
            "create_call_primitive",
            "eval_jaxpr_transpose",
            "register_call_primitive_rules",
        ],
    ),
    "jax.extend.core.primitives": (
        "bind what a function does with jax.jit or jax.custom_jvp",
        ["create_call_primitive", "eval_jaxpr_transpose", "register_call_primitive_rules"],
    ),
    "jax.extend.sharding": (
        "use jax.sharding.NamedSharding",
        [
            "GSPMDSharding",
            "get_hlo_sharding_from_serialized_proto",
            "get_op_sharding_from_serialized_proto",
            "get_serialized_proto_from_hlo_sharding",
            "xla_client",
        ],
    ),
    "jax.extend.source_info_util": (
        "name parts of programs with jax.named_scope",
        ["NameStack", "current_name_stack", "new_name_stack"],
    ),
    "jax.ffi": (
        "what needs the result of another comes after it: give and take arrays",
        ["abstract_token"],
    ),
    "jax.interpreters.ad": (
        "use jax.jvp, jax.linearize and jax.vjp",
        ["backward_pass", "jvp", "jvp_jaxpr", "linearize"],
    ),
    "jax.interpreters.batching": (
        "use jax.vmap, or register the class as a tree of arrays",
        ["batch_jaxpr_axes", "batch_subtrace", "zero_if_mapped"],
    ),
    "jax.interpreters.mlir": (
        "lower a function of arrays, mlir.lower_fun, or call a foreign one, jax.ffi",
        [
            "AxisContext",
            "ConstantHandler",
            "DEVICE_TO_DEVICE_TYPE",
            "LoweringParameters",
            "LoweringResult",
            "LoweringRule",
            "Mesh",
            "MeshAxisName",
            "RECV_FROM_HOST_TYPE",
            "SEND_TO_HOST_TYPE",
            "SPMDAxisContext",
            "ShapePolyLoweringState",
            "ShardingContext",
            "Token",
            "TokenSet",
            "Value",
            "aval_to_ir_type",
            "aval_to_ir_types",
            "core_call_lowering",
            "dense_int_array",
            "dense_int_elements",
            "dtype_to_ir_type",
            "flatten_ir_types",
            "flatten_ir_values",
            "i32_attr",
            "i64_attr",
            "ir",
            "ir_attribute",
            "ir_constant",
            "ir_constants",
            "ir_tree_registry",
            "ir_type_handlers",
            "jaxpr_subcomp",
            "lower_jaxpr_to_fun",
            "lower_jaxpr_to_module",
            "lowerable_effects",
            "make_ir_context",
            "merge_mlir_modules",
            "module_to_bytecode",
            "module_to_string",
            "register_constant_handler",
            "shape_tensor",
            "token_type",
            "unflatten_ir_values_like_types",
        ],
    ),
    "jax.interpreters.partial_eval": (
        "use jax.linearize, or jax.make_jaxpr",
        [
            "Val",
            "abstract_eval_fun",
            "custom_partial_eval_rules",
            "dce_jaxpr_call_rule",
            "dce_jaxpr_closed_call_rule",
            "dce_jaxpr_consts",
            "dce_rules",
            "lower_jaxpr",
            "lower_jaxpr2",
            "move_binders_to_back",
            "new_eqn_recipe",
            "partial_eval_jaxpr_custom_rules",
            "partial_eval_jaxpr_nounits",
            "prune_closed_jaxpr_outputs",
        ],
    ),
    "jax.interpreters.pxla": (
        "compile with jax.jit(f).lower(x).compile(options)",
        ["create_compile_options", "global_avals_to_results_handler"],
    ),
    "jax.interpreters.xla": (
        "bind the operation",
        ["Backend"],
    ),
    "jax.lax": (
        "what needs the result of another comes after it; when else, the compiler decides",
        ["after_all", "create_token", "dce_sink", "psum_scatter_start"],
    ),
    "jax.nn": (
        "use jax.nn.scaled_matmul",
        ["get_scaled_dot_general_config", "scaled_dot_general"],
    ),
    "jax.numpy": (
        "XLA does not compute with it; use float8_e4m3fn, int2 or bool",
        ["float6_e2m3fn", "float6_e3m2fn", "int1", "uint1"],
    ),
    "jax.profiler": (
        "write what is recorded with jax.profiler.trace",
        ["ProfileSession", "export_profile_data", "register_subprocess"],
    ),
    "jax.sharding": (
        "sums to be taken are told by P(unreduced={..}), messages by f.lower(x).compile()",
        ["UnreducedKind", "no_collectives"],
    ),
}


def why_refused(module: str) -> str | None:
    """What to use for ``module`` if it, or what it lies in, is refused."""
    while module and module not in MODULES_REFUSED:
        module = module.rpartition(".")[0]
    return MODULES_REFUSED.get(module)


class NotOffered(type):
    """The class of classes that stand for names that are not offered."""

    why: str

    def __call__(cls, *_: Any, **__: Any) -> NoReturn:
        raise NotImplementedError(f"{cls.__module__}.{cls.__name__} is not offered: {cls.why}")

    __getitem__ = __setitem__ = __delitem__ = __iter__ = __call__

    def __getattr__(cls, name: str) -> NotOffered:
        if name.startswith("_") or not why_refused(cls.__module__):
            raise AttributeError(
                f"{cls.__module__}.{cls.__name__} has no attribute {name!r}; it is not offered: "
                f"{cls.why}"
            )
        return not_offered(cls.__module__, f"{cls.__name__}.{name}")  # it may be a module


@functools.cache
def not_offered(module: str, name: str) -> NotOffered:
    """What stands for ``name``, which is refused, or whose module is."""
    why = why_refused(module) or NAMES_REFUSED[module][0]
    return NotOffered(name, (), {"__module__": module, "why": why})
