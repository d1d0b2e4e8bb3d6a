"""Phalanx: one program, many devices, in step.

Array programs in Python, and transformations of them: ``jit`` compiles, ``grad``
differentiates, ``vmap`` vectorizes, and ``pmap`` spreads an axis over the devices there are.
"""

# some things are imported for what that does:
# ruff: noqa: F401
# pyright: reportUnusedImport=false

import sys as _sys

from phalanx.base.errors import ConfigError as _ConfigError

try:
    from phalanx.base import config as _config  # which reads the environment
except _ConfigError as _error:
    _error.__traceback__ = None  # so that the last line is the one that imports us
    raise

from phalanx.base.connecting import connect_first as _connect_first
from phalanx.base.lazily import later as _later

if "numpy" in _sys.modules:  # which knows bfloat16 by its name from then on
    import ml_dtypes as _ml_dtypes

# Old names of JAX, options that change nothing here, and what declaring primitives needs: programs
# have them, and completion does not show them.
_OLD = (
    "ad_checkpoint", "allow_f16_reductions", "device_put_replicated", "device_put_sharded",
    "host_count", "host_id", "host_ids", "jax2tf_associative_scan_reductions",
    "laws", "legacy_prng_key", "remove_size_one_mesh_axis_from_type", "softmax_custom_jvp",
)  # fmt: skip
_BELOW = "it lies below the public face; run the program as it is, python -m phalanx.as_jax"

_later(
    __name__,
    unlisted=_OLD,
    refused={
        **dict.fromkeys(["api_util", "extend", "interpreters", "lib", "linear_util"], _BELOW),
        "Inline": "the compiler says where a function becomes part of the one that calls it",
        "pallas": "write the kernel with numpy and lax, which the compiler fuses",
        "unstack": "use numpy.unstack, or lax.unstack",
    },
)
_connect_first()
