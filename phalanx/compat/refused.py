"""Modules and names of JAX that are not offered, and what to use.

A module can be imported all the same, and its names be derived from or asked for by ``isinstance``:
libraries do so for what they may never use. Whoever calls one learns what to use. The same holds of
names in modules that are offered, if programs import them; of others the module's advice is given.
"""

from __future__ import annotations

import functools
from typing import Any, Final, NoReturn

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


# Of modules that are offered: what to use in place of names that are not, and those among them that
# published programs import or derive from. A star stands for all others, which are only advised on.
NAMES_REFUSED: Final[dict[str, tuple[str, str]]] = {
    "jax": ("pass what differs as a static argument of jax.jit", "make_user_context"),
    "jax.ad_checkpoint": ("call jax.ad_checkpoint.checkpoint_name", "checkpoint_name_fwd"),
    "jax.debug": (
        "see the effects of a program, jax.make_jaxpr(f)(x).effects",
        "DebugEffect OrderedDebugEffect",
    ),
    "jax.experimental": (
        "use a sharding, such as jax.sharding.NamedSharding",
        "EArray primal_tangent_dtype",
    ),
    "jax.experimental.custom_partitioning": (
        "write sharding_rule as a text, such as '... i j, ... j k -> ... i k'",
        "BATCHING ArrayMapping CompoundFactor SdyShardingRule *",
    ),
    "jax.experimental.hijax": (
        "give a VJPHiPrimitive its rules",
        "HiPspec MappingSpec NullAccum RefAccum *",
    ),
    "jax.experimental.jet": (
        "every operation has its series here, jet(f, primals, series)",
        "JetTrace JetTracer def_deriv deflinear jet_rules zero_term *",
    ),
    "jax.experimental.layout": ("the compiler orders dimensions in memory", "explicit_layout"),
    "jax.experimental.mesh_utils": ("use jax.make_mesh, or create_device_mesh", "*"),
    "jax.experimental.multihost_utils": (
        "use jax.make_array_from_process_local_data, and jax.devices()",
        "ProcessFailureError live_devices *",
    ),
    "jax.experimental.ode": ("use odeint", "*"),
    "jax.experimental.pallas": (
        "a kernel runs as a loop over its grid, which jax.experimental.pallas.pallas_call makes",
        "BoundedSlice Indirect RevisitMode kernel *",
    ),
    "jax.experimental.pallas.tpu": (
        "a kernel runs as a loop over its grid, on no core of its own",
        "BufferType BufferedRef ChipVersion CoreType SideEffectType TensorCoreMesh Tiling TpuInfo "
        "async_remote_copy get_tpu_info make_async_remote_copy prng_random_bits prng_seed *",
    ),
    "jax.experimental.pallas.triton": (
        "a kernel runs as a loop over its grid, of operations of jax.numpy",
        "*",
    ),
    "jax.experimental.serialize_executable": ("use serialize and deserialize_and_load", "*"),
    "jax.experimental.sparse": (
        "use BCOO, whose transformations are those of arrays",
        "SparseTracer bcoo_conv_general_dilated bcoo_dot_general_sampled bcoo_gather "
        "bcsr_broadcast_in_dim *",
    ),
    "jax.experimental.sparse.linalg": ("use spsolve", "*"),
    "jax.extend.backend": ("devices are those of Phalanx, jax.devices()", "*"),
    "jax.extend.core": ("bind what a function does with jax.jit or jax.custom_jvp", "*"),
    "jax.extend.core.primitives": ("bind what a function does with jax.jit or jax.custom_jvp", "*"),
    "jax.extend.sharding": ("use jax.sharding.NamedSharding", "GSPMDSharding *"),
    "jax.extend.source_info_util": (
        "name parts of programs with jax.named_scope",
        "NameStack current_name_stack new_name_stack *",
    ),
    "jax.ffi": (
        "what needs the result of another comes after it: give and take arrays",
        "abstract_token",
    ),
    "jax.interpreters.ad": (
        "use jax.jvp, jax.linearize and jax.vjp",
        "backward_pass jvp jvp_jaxpr linearize *",
    ),
    "jax.interpreters.batching": (
        "use jax.vmap, or register the class as a tree of arrays",
        "batch_jaxpr_axes batch_subtrace zero_if_mapped *",
    ),
    "jax.interpreters.mlir": (
        "lower a function of arrays, mlir.lower_fun, or call a foreign one, jax.ffi",
        "AxisContext ConstantHandler LoweringParameters LoweringResult LoweringRule Mesh "
        "SPMDAxisContext ShardingContext Token TokenSet Value aval_to_ir_type aval_to_ir_types "
        "dense_int_array dense_int_elements dtype_to_ir_type flatten_ir_types flatten_ir_values "
        "i32_attr i64_attr ir ir_attribute ir_constant ir_constants jaxpr_subcomp "
        "lower_jaxpr_to_fun lower_jaxpr_to_module lowerable_effects make_ir_context "
        "module_to_string register_constant_handler shape_tensor token_type *",
    ),
    "jax.interpreters.partial_eval": (
        "use jax.linearize, or jax.make_jaxpr",
        "custom_partial_eval_rules dce_jaxpr_consts dce_rules partial_eval_jaxpr_custom_rules "
        "partial_eval_jaxpr_nounits *",
    ),
    "jax.interpreters.pxla": ("compile with jax.jit(f).lower(x).compile(options)", "*"),
    "jax.interpreters.xla": ("bind the operation", "Backend *"),
    "jax.lax": (
        "what needs the result of another comes after it; when else, the compiler decides",
        "after_all create_token dce_sink psum_scatter_start",
    ),
    "jax.nn": (
        "use jax.nn.scaled_matmul",
        "get_scaled_dot_general_config scaled_dot_general",
    ),
    "jax.numpy": (
        "XLA does not compute with it; use float8_e4m3fn, int2 or bool",
        "float6_e2m3fn float6_e3m2fn int1 uint1",
    ),
    "jax.profiler": (
        "write what is recorded with jax.profiler.trace",
        "ProfileSession export_profile_data register_subprocess",
    ),
    "jax.sharding": (
        "sums to be taken are told by P(unreduced={..}), messages by f.lower(x).compile()",
        "UnreducedKind no_collectives",
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
