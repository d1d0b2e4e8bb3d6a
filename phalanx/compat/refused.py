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

_ATTENTION: Final = [  # kernels below jax.experimental.pallas.ops
    "gpu", "gpu.attention", "tpu", "tpu.flash_attention", "tpu.paged_attention",
    "tpu.splash_attention", "tpu.splash_attention.splash_attention_kernel",
    "tpu.splash_attention.splash_attention_mask",
]  # fmt: skip

MODULES_REFUSED: Final = {
    "jax.experimental.array_serialization": "use phalanx.experimental.checkpoint",
    "jax.experimental.array_serialization.serialization": "use phalanx.experimental.checkpoint",
    "jax.experimental.buffer_callback": "use jax.ffi, or pure_callback",
    "jax.experimental.colocated_python": "use pure_callback or io_callback",
    "jax.experimental.compute_on": "what the host computes is said by pure_callback",
    "jax.experimental.fused": "the compiler fuses what jax.jit is given",
    "jax.experimental.jax2tf": "export the program instead, jax.export",
    "jax.experimental.mosaic": "write the kernel with jax.numpy and lax",
    "jax.experimental.pallas.mosaic_gpu": "write the kernel with jax.numpy and lax",
    "jax.experimental.pallas.ops": "write the kernel with jax.numpy and lax",
    **{
        f"jax.experimental.pallas.ops.{name}": "use jax.nn.dot_product_attention"
        for name in _ATTENTION
    },
    "jax.experimental.profiler": "look at what jax.profiler wrote",
    "jax.experimental.rnn": "write the cell, and lax.scan over it",
    "jax.experimental.roofline": "use phalanx plan, or jax.jit(f).lower(x).cost_analysis()",
    "jax.experimental.scheduling_groups": "the order of operations is the compiler's",
    "jax.experimental.source_mapper": "use jax.jit(f).lower(x).as_text(debug_info=True)",
    "jax.experimental.transfer": "use jax.device_put",
    "jax.experimental.xla_metadata": "the compiler is told by jax.jit(f).lower(x).compile(options)",
    "jax.extend.ifrt_programs": "compile with jax.jit(f).lower(x).compile()",
}


# of modules that are offered, the names that are not
NAMES_REFUSED: Final[dict[str, tuple[str, list[str]]]] = {
    "jax": (
        "tell jax.jit what differs by an argument that is static",
        [
            "make_user_context",
        ],
    ),
    "jax.experimental": (
        "say how it lies by a sharding",
        [
            "EArray",
            "primal_tangent_dtype",
        ],
    ),
    "jax.experimental.layout": (
        "the order of dimensions in memory is the compiler's",
        [
            "explicit_layout",
            "with_layout_constraint",
        ],
    ),
    "jax.experimental.pallas": (
        "a kernel runs as a loop over its grid, which jax.experimental.pallas.pallas_call makes",
        [
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
    "jax.extend.backend": (
        "devices are those of Phalanx, jax.devices()",
        [
            "backend_xla_version",
            "clear_in_memory_compilation_cache",
            "get_compile_options",
            "register_backend_cache",
            "register_backend_factory",
        ],
    ),
    "jax.extend.core": (
        "bind what a function does with jax.jit or jax.custom_jvp",
        [
            "create_call_primitive",
            "eval_jaxpr_transpose",
            "nonempty_axis_env_DO_NOT_USE",
            "register_call_primitive_rules",
            "unsafe_am_i_under_a_jit_DO_NOT_USE",
            "unsafe_am_i_under_a_vmap_DO_NOT_USE",
            "unsafe_get_axis_names_DO_NOT_USE",
        ],
    ),
    "jax.interpreters.ad": (
        "use jax.jvp, jax.linearize and jax.vjp",
        [
            "add_jaxvals_p",
            "backward_pass",
            "jvp",
            "jvp_jaxpr",
            "linearize",
        ],
    ),
    "jax.interpreters.batching": (
        "use jax.vmap, or register the class as a tree of arrays",
        [
            "batch_jaxpr_axes",
            "batch_subtrace",
            "zero_if_mapped",
        ],
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
        [
            "create_compile_options",
        ],
    ),
    "jax.interpreters.xla": (
        "bind the operation",
        [
            "Backend",
            "apply_primitive",
        ],
    ),
    "jax.sharding": (
        "sums to be taken are told by P(unreduced={..}), messages by f.lower(x).compile()",
        [
            "UnreducedKind",
            "no_collectives",
        ],
    ),
}


class NotOffered(type):
    """The class of classes that stand for names that are not offered."""

    why: str

    def __call__(cls, *_: Any, **__: Any) -> NoReturn:
        raise NotImplementedError(f"{cls.__module__}.{cls.__name__} is not offered: {cls.why}")

    def __getattr__(cls, name: str) -> NotOffered:
        if name.startswith("_") or cls.__module__ not in MODULES_REFUSED:
            raise AttributeError(f"{cls.__module__}.{cls.__name__} has no attribute {name!r}")
        return not_offered(cls.__module__, f"{cls.__name__}.{name}")  # it may be a module


@functools.cache
def not_offered(module: str, name: str) -> NotOffered:
    """What stands for ``name``, which is refused, or whose module is."""
    why = MODULES_REFUSED.get(module) or NAMES_REFUSED[module][0]
    return NotOffered(name, (), {"__module__": module, "why": why})
