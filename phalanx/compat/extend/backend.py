"""``jax.extend.backend``: the client of the runtime."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from phalanx.api.callbacks import effects_barrier
from phalanx.api.devices import devices
from phalanx.api.dispatch import clear_caches
from phalanx.run.array import default_sharding
from phalanx.run.runtime import backend as runtime


def get_backend(platform: str | None = None) -> Any:
    """The client whose devices those of ``platform`` are."""
    return devices(platform)[0].client


def backends() -> dict[str, Any]:
    """The clients by platform."""
    return {d.platform: d.client for d in devices()}


def get_default_device() -> Any:
    """The device on which arrays lie of which nothing is said."""
    return default_sharding().device_list[0]


def clear_backends() -> None:
    """What was compiled is forgotten; the clients stay, with all arrays."""
    clear_caches()


def wait_for_tokens() -> None:
    """Wait until all that calls the host has done so."""
    effects_barrier()


class _Started(Mapping[str, Any]):
    """The clients that have started, by platform. To ask starts none."""

    def __getitem__(self, platform: str) -> Any:
        if platform not in runtime().started():
            raise KeyError(platform)
        return get_backend(platform)

    def __iter__(self) -> Iterator[str]:
        return iter(runtime().started())

    def __len__(self) -> int:
        return len(runtime().started())


_backends = _Started()
