"""Eight CPU devices, unless the environment says otherwise, and how many examples to try."""

import os

os.environ.setdefault("PHALANX_NUM_CPU_DEVICES", "8")

from hypothesis import HealthCheck, Phase, settings

COMMON = {"deadline": None, "suppress_health_check": list(HealthCheck), "print_blob": True}

FEW = {"max_examples": 8, "derandomize": True, "database": None, "phases": [Phase.generate]}

settings.register_profile("few", **FEW, **COMMON)
settings.register_profile("heavy", max_examples=300, **COMMON)
settings.load_profile(os.environ.get("PHALANX_HYPOTHESIS", "few"))
