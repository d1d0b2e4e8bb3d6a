"""Options of JAX that say how it works inside: what programs that set them may ask for here.

Some of them change no result and are accepted, whatever their value. Others have one value here;
what asks for another is refused, in words.
"""

from __future__ import annotations

from typing import Any

from phalanx.base.errors import ConfigError

HARMLESS: dict[str, Any] = {
    "accurate_erf_inv": False,
    "allow_f16_reductions": True,
    "array_garbage_collection_guard": None,
    "bcoo_cusparse_lowering": False,
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
    "cpu_get_global_topology_timeout_minutes": 5,
    "cpu_get_local_topology_timeout_minutes": 2,
    "cross_host_transfer_socket_address": "",
    "cross_host_transfer_timeout_seconds": None,
    "cross_host_transfer_transfer_size": None,
    "cross_host_transport_addresses": "",
    "custom_jvp3": False,
    "custom_vjp3": False,
    "debug_leaked_clients_on_clear_backends": False,
    "debug_log_modules": "",
    "disable_bwd_checks": False,
    "distributed_debug": False,
    "dump_ir_modes": "stablehlo",
    "eager_constant_folding": False,
    "embedded_constants_max_bytes": 32,
    "enable_pgle": False,
    "enable_preemption_service": True,
    "exec_time_optimization_effort": 0.0,
    "export_calling_convention_version": 10,
    "export_deserialize_expired_versions": False,
    "export_ignore_forward_compatibility": False,
    "force_dcn_cross_host_transfers": False,
    "hlo_source_file_canonicalization_regex": None,
    "include_debug_info_in_dumps": True,
    "include_full_tracebacks_in_locations": True,
    "jax2tf_associative_scan_reductions": False,
    "jax2tf_default_native_serialization": True,
    "log_checkpoint_residuals": False,
    "logging_level": "NOTSET",
    "memory_fitting_effort": 0.0,
    "memory_fitting_level": "O2",
    "mosaic_allow_hlo": False,
    "mosaic_unzip_debug_locations": True,
    "mutable_array_checks": True,
    "oneapi_visible_devices": "all",
    "optimization_level": "UNKNOWN",
    "pallas_auto_assign_collective_ids": "no",
    "pallas_auto_assign_collective_ids_limit": 25,
    "pallas_enable_debug_checks": False,
    "pallas_poison_buffers": False,
    "pallas_use_mosaic_gpu": True,
    "pallas_verbose_errors": False,
    "persistent_cache_enable_xla_caches": "",
    "persistent_cache_min_entry_size_bytes": 0,
    "pgle_aggregation_percentile": 90,
    "pgle_profiling_runs": 3,
    "pprint_use_color": True,
    "ragged_dot_use_gpu_pallas_triton_lowering": False,
    "ragged_dot_use_ragged_dot_instruction": True,
    "raise_on_ppermute_sort_diff": True,
    "raise_persistent_cache_errors": False,
    "refs_to_pins": False,
    "remat3": False,
    "remat_barrier_no_cotangents": False,
    "remove_custom_partitioning_ptr_from_cache_key": False,
    "scan3": False,
    "send_traceback_to_runtime": "off",
    "serialization_version": 0,
    "share_binary_between_hosts": False,
    "share_binary_between_hosts_timeout_ms": 1_200_000,
    "softmax_custom_jvp": True,
    "source_url_schema": None,
    "thread_guard": False,
    "threefry_gpu_kernel_lowering": False,
    "traceback_in_locations_limit": 10,
    "tracer_error_num_traceback_frames": 5,
    "use_cpp_shard_args": False,
    "use_direct_linearize": True,
    "use_emit_pipeline_primitive": False,
    "use_hlo_logistic_lowering": None,
    "use_magma": "auto",
    "use_rgv3": True,
    "use_simplified_jaxpr_constants": False,
    "xla_profile_version": 0,
}
"""Options that change no result, and what they say until somebody sets them."""

FIXED: dict[str, tuple[Any, str]] = {
    "backend_target": (
        "",
        "the devices are those of this machine and of the processes that compute with it",
    ),
    "check_static_indices": (False, "an index outside an array raises no error"),
    "check_vma": (False, "shard_map(..., check_vma=) says it"),
    "debug_key_reuse": (False, "phalanx check finds keys that are used twice"),
    "disallow_mesh_context_manager": (False, "`with mesh:` stays allowed"),
    "enable_recoverability": (False, "a lost process raises PeerLost in the others"),
    "error_checking_behavior_divide": ("ignore", "debug_nans finds a division of zero by zero"),
    "error_checking_behavior_nan": ("ignore", "use debug_nans"),
    "error_checking_behavior_oob": ("ignore", "an index outside an array raises no error"),
    "experimental_unsafe_xla_runtime_errors": (False, "checkify.checkify gives what went wrong"),
    "explicit_x64_dtypes": ("warn", "dtypes of 64 bits are kept where enable_x64 is set"),
    "high_dynamic_range_gumbel": (False, "there is one way to draw Gumbel numbers"),
    "mock_gpu_topology": (
        "",
        "phalanx.experimental.topologies describes devices that are not here",
    ),
    "mock_num_gpu_processes": (
        0,
        "phalanx.experimental.topologies describes devices that are not here",
    ),
    "no_execution": (False, "eval_shape and jit(f).lower(x) run nothing"),
    "random_seed_offset": (0, "add it to the seed"),
    "sort_devices_by_process_index": (True, "devices come in the order of their processes"),
    "use_shardy_partitioner": (True, "there is no other partitioner"),
    "xla_backend": ("", "platforms says which devices there have to be"),
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


def check(name: str, new: Any, who: str = "config") -> None:
    """Whether the option may have that value, which ``who`` asks for.

    Raises:
        ConfigError: it may not.
    """
    if name in FIXED and new != FIXED[name][0]:
        only, why = FIXED[name]
        raise ConfigError(f"{who}: {name} is {only!r} here and cannot be {new!r}: {why}")
