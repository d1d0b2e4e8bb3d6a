"""What the compiler is told, and why: options where the user gives no others, and devices."""

from __future__ import annotations

from typing import Any

import numpy as np

from phalanx.base.config import config
from phalanx.core.platforms import platform_of
from phalanx.xla.broadcasts import sums_keep_broadcasts
from phalanx.xla.client import data_directory
from phalanx.xla.jaxlib_versions import OLD, xc
from phalanx.xla.module import XlaModule

# XLA's CPU compiler may fuse a product of matrices with what stands around it and then read memory
# that was never written (seen in 0.10 to 0.12, tests/units/xla/test_products.py). Where there are
# none, such fusions make sums and long chains of elementwise operations several times as fast.
# Products that the same library computes one by one are right, and quicker: those of few rows in a
# batch up to six times, of bfloat16 three times.
_PRODUCTS = (b"dot_general", b"convolution")
# A sum of products it takes for one, and gives other numbers where all factors are the same along a
# dimension of the result (seen in 0.12). Quotients and powers may become products.
_FACTORS = (b"multiply", b"divide", b"power")
_FUSIONS = "xla_cpu_experimental_ynn_fusion_type"
_PRODUCTS_ALONE = {_FUSIONS: "LIBRARY_FUSION_TYPE_INDIVIDUAL_DOT"}
# In programs whose parts must round alike, no operation may depend on what the library chooses.
_NONE = {_FUSIONS: ""}
# XLA's CPU runtime hands operations that wait to other threads, and orders them so that many wait.
# Those on arrays of so few bytes are done before another thread is awake, so they come in the order
# that needs least memory, in which few wait.
_DONE_AT_ONCE = 1 << 13
_IN_TURN = {"xla_cpu_scheduler_type": "CPU_SCHEDULER_TYPE_MEMORY_OPTIMIZED"}
# In 0.10 it takes barriers away before it fuses, so that what stands behind one is made again, and
# it cannot write them into the functions that it makes of small loops.
_MOVES_BARRIERS = ("cse_barrier_expander", "small-while-loop-hoisting")
# It makes products of quotients where it has seen already that divisors are the same, and functions
# of loops over few bytes, in which it rounds otherwise.
_REARRANGES = ("algsimp", "small-while-loop-hoisting")
# Most of the compiler's time goes to optimizing code, and on CPU to that of fusions; later than
# 0.10 it has no other way to make this, and in 0.10 the other way lacks operations on booleans.
_QUICK = {"xla_backend_optimization_level": 0, "xla_llvm_disable_expensive_passes": True}
QUICK_ON_CPU = {"xla_cpu_use_fusion_emitters": False} if OLD else {}
# That other way makes one module, and code of its parts apart; without optimization, some parts
# have fused multiply-adds and others, of the same operations, none.
_QUICK_ALIKE = {"xla_cpu_parallel_codegen_split_count": 1} if OLD else {}


def default_options(lowered: XlaModule, platform: str) -> dict[str, Any]:
    """The options of the compiler where the user gives no others."""
    on_cpu = platform == "cpu"
    options: dict[str, Any] = {}
    code = lowered.bytecode if on_cpu else b""
    fuses = any(product in code for product in _PRODUCTS) or _may_sum_products(lowered, code)
    if on_cpu and lowered.isolated:
        options |= _NONE
    elif fuses:
        options |= _PRODUCTS_ALONE
    if on_cpu and lowered.largest <= _DONE_AT_ONCE and not lowered.isolated:
        options |= _IN_TURN
    moves = _MOVES_BARRIERS if OLD and b"optimization_barrier" in code else ()
    rearranges = _REARRANGES if on_cpu and lowered.isolated else ()
    if without := ",".join(dict.fromkeys((*moves, *rearranges))):
        options["xla_disable_hlo_passes"] = without
    if config.disable_most_optimizations:
        alike = _QUICK_ALIKE if lowered.isolated else {}
        options = options | _QUICK | (QUICK_ON_CPU | alike if on_cpu else {})
    return options


def _may_sum_products(lowered: XlaModule, code: bytes) -> bool:
    """Whether there may be a sum of products of what is the same along a dimension of the sum."""
    if b"\0reduce\0" not in code or not any(factor in code for factor in _FACTORS):
        return False
    return sums_keep_broadcasts(lowered.module)


def settings_for(devices: tuple[Any, ...], free: list[bool]) -> Any:
    """The settings of a compilation for ``devices``; the compiler chooses the shardings of the
    parameters that are ``free``."""
    count = len(devices)
    settings = xc.CompileOptions()
    settings.num_replicas = 1
    settings.num_partitions = count
    settings.device_assignment = xc.DeviceAssignment.create(
        np.array([[d.id for d in devices]], dtype=np.int32)
    )
    build = settings.executable_build_options
    build.num_replicas = 1
    build.num_partitions = count
    build.device_assignment = settings.device_assignment
    folder = data_directory(platform_of(devices[0]))
    if folder:
        build.debug_options.xla_gpu_cuda_data_dir = folder
    if count > 1:
        build.use_spmd_partitioning = True
        build.use_shardy_partitioner = True
        build.allow_spmd_sharding_propagation_to_output = [True]
        if any(free):
            build.allow_spmd_sharding_propagation_to_parameters = free
    return settings
