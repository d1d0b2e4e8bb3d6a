"""Eight CPU devices, unless the environment says otherwise, and how many examples to try.

The laws of the primitives and the comparisons with oracles are thousands of small programs, each
of which XLA compiles. A run takes a part of them, the same ones each time, and has XLA optimize
little, which halves the time; with PHALANX_TESTS=all it takes all, optimized as users have it, and
PHALANX_HYPOTHESIS=heavy draws more programs.
"""

import os
import platform
import zlib

from hypothesis import HealthCheck, Phase, settings

os.environ.setdefault("PHALANX_NUM_CPU_DEVICES", "8")
ALL = os.environ.get("PHALANX_TESTS") == "all"
QUICKLY = "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true"
if platform.machine().lower() in ("x86_64", "amd64"):
    # At this level some x * y + z are one operation of the processor, and some are two: then a
    # maximum is not among the numbers that it is the maximum of. AVX has no such operation.
    QUICKLY += " --xla_cpu_max_isa=AVX"
if not ALL and QUICKLY not in os.environ.get("XLA_FLAGS", ""):
    os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {QUICKLY}".strip()

COMMON = {"deadline": None, "suppress_health_check": list(HealthCheck), "print_blob": True}

FEW = {"max_examples": 4, "derandomize": True, "database": None, "phases": [Phase.generate]}

settings.register_profile("few", **FEW, **COMMON)
settings.register_profile("heavy", max_examples=300, **COMMON)
settings.load_profile(os.environ.get("PHALANX_HYPOTHESIS", "few"))


# One in so many of the tests below these places.
SAMPLED = {"tests/laws/test_primitive": 24, "tests/laws/test_subprograms": 10, "tests/oracles": 14}


def pytest_collection_modifyitems(config, items):
    if ALL:
        return
    kept, left = [], []
    for item in items:
        place = item.path.relative_to(config.rootpath).as_posix()
        every = next((n for start, n in SAMPLED.items() if place.startswith(start)), 1)
        chosen = zlib.crc32(item.nodeid.encode()) % every == 0
        (kept if chosen else left).append(item)
    items[:] = kept
    if left:
        config.hook.pytest_deselected(items=left)
