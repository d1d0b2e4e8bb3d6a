"""Options of JAX that say how it works inside: what programs that set them may ask for here.

Some of them change no result and are accepted, whatever their value. Others have one value here;
what asks for another is refused, in words.
"""

from __future__ import annotations

from typing import Any

from phalanx.base.errors import ConfigError

HARMLESS: dict[str, Any] = {
    "allow_f16_reductions": True,
    "array_garbage_collection_guard": None,
    "auto_pcast": True,
    "captured_constants_report_frames": 0,
    "captured_constants_warn_bytes": 2_000_000_000,
    "check_proxy_envs": True,
    "compilation_cache_check_contents": False,
    "compilation_cache_expect_pgle": False,
    "compilation_cache_include_metadata_in_key": False,
    "compiler_detailed_logging_min_ops": 10,
    "compiler_enable_remat_pass": True,
    "cpu_collectives_implementation": "gloo",
    "cpu_enable_async_dispatch": True,
    "debug_log_modules": "",
    "disable_bwd_checks": False,
    "disable_vmap_shmap_error": False,
    "embedded_constants_max_bytes": 32,
    "enable_preemption_service": True,
    "hlo_source_file_canonicalization_regex": None,
    "include_debug_info_in_dumps": True,
    "include_full_tracebacks_in_locations": True,
    "jax2tf_associative_scan_reductions": False,
    "log_checkpoint_residuals": False,
    "logging_level": "NOTSET",
    "memory_fitting_level": "O2",
    "mutable_array_checks": True,
    "optimization_level": "UNKNOWN",
    "persistent_cache_enable_xla_caches": "",
    "persistent_cache_min_entry_size_bytes": 0,
    "pprint_use_color": True,
    "raise_on_ppermute_sort_diff": True,
    "raise_persistent_cache_errors": False,
    "remove_custom_partitioning_ptr_from_cache_key": False,
    "remove_size_one_mesh_axis_from_type": False,
    "send_traceback_to_runtime": "off",
    "share_binary_between_hosts": False,
    "softmax_custom_jvp": True,
    "source_url_schema": None,
    "thread_guard": False,
    "threefry_gpu_kernel_lowering": False,
    "traceback_in_locations_limit": 10,
    "tracer_error_num_traceback_frames": 5,
    "use_direct_linearize": True,
    "use_simplified_jaxpr_constants": False,
    "xla_profile_version": 0,
}
"""Options that change no result, and what they say until somebody sets them."""

FIXED: dict[str, tuple[Any, str]] = {
    "debug_key_reuse": (False, "nothing looks for keys that are used twice"),
    "disallow_mesh_context_manager": (False, "`with mesh:` stays allowed"),
    "dump_ir_to": ("", "jit(f).lower(x).as_text() gives the module"),
    "error_checking_behavior_divide": ("ignore", "debug_nans finds a division of zero by zero"),
    "error_checking_behavior_nan": ("ignore", "use debug_nans"),
    "error_checking_behavior_oob": ("ignore", "an index outside an array raises no error"),
    "high_dynamic_range_gumbel": (False, "there is one way to draw Gumbel numbers"),
    "no_execution": (False, "eval_shape and jit(f).lower(x) run nothing"),
    "random_seed_offset": (0, "add it to the seed"),
    "use_shardy_partitioner": (True, "there is no other partitioner"),
}
"""Options that have one value, and why, or what to do instead."""

_set: dict[str, Any] = {}


def is_foreign(name: str) -> bool:
    """Whether ``name`` is an option of these."""
    return name in HARMLESS or name in FIXED


def value(name: str) -> Any:
    """What the option says."""
    return FIXED[name][0] if name in FIXED else _set.get(name, HARMLESS[name])


def update(name: str, new: Any) -> None:
    """Set the option, if it may have that value.

    Raises:
        ConfigError: it may not.
    """
    check(name, new)
    if name in HARMLESS:
        _set[name] = new


def check(name: str, new: Any) -> None:
    """Whether the option may have that value.

    Raises:
        ConfigError: it may not.
    """
    if name in FIXED and new != FIXED[name][0]:
        only, why = FIXED[name]
        raise ConfigError(f"config: {name} is {only!r} here and cannot be {new!r}: {why}")
