"""The platforms that programs are written for, whether or not they are here."""

from __future__ import annotations

from collections.abc import Sequence

from phalanx.core.platforms import GPUS, platform_of
from phalanx.run.array import default_sharding

PLATFORMS = ("cpu", "cuda", "rocm", "tpu", "gpu")


def used_platform() -> str:
    """The platform of the devices that are used where none are said.

    >>> used_platform()
    'cpu'
    """
    return platform_of(default_sharding().device_list[0])


def checked_platforms(platforms: Sequence[str], who: str) -> tuple[str, ...]:
    """``given``, each once; for "gpu" the kind of GPU that is used here, or CUDA's.

    Raises:
        ValueError: one of them is not known, or there is none.

    >>> checked_platforms(["tpu", "gpu", "cuda", "tpu"], "lower")
    ('tpu', 'cuda')
    """
    names = (platforms,) if isinstance(platforms, str) else tuple(platforms)
    if not names or any(name not in PLATFORMS for name in names):
        raise ValueError(
            f"{who}: platforms must be some of {', '.join(PLATFORMS)}, got {platforms!r}"
        )
    return tuple(dict.fromkeys([_kind_of_gpu() if n == "gpu" else n for n in names]))


def _kind_of_gpu() -> str:
    platform = used_platform()
    return platform if platform in GPUS else GPUS[0]
