"""Eight CPU devices, unless the environment says otherwise, and how many examples to try."""

import os

os.environ.setdefault("PHALANX_NUM_CPU_DEVICES", "8")

from hypothesis import HealthCheck, settings

COMMON = {"deadline": None, "suppress_health_check": list(HealthCheck), "print_blob": True}

settings.register_profile("few", max_examples=8, derandomize=True, database=None, **COMMON)
settings.register_profile("heavy", max_examples=300, **COMMON)
settings.load_profile(os.environ.get("PHALANX_HYPOTHESIS", "few"))
