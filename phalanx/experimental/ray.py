"""Ray Train starts the processes of a program, and starts them again when one is lost.

What it needs is Ray itself: ``pip install 'ray[train]'``.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import secrets
import socket
import sys
from typing import Any

from phalanx.api import distributed
from phalanx.base import log
from phalanx.base.boundary import bound
from phalanx.base.errors import PhalanxError

__all__ = ["PhalanxConfig"]

ray: Any
_Config: Any
_Base: Any
try:
    ray = importlib.import_module("ray")
    _train = importlib.import_module("ray.train.backend")
    _Config, _Base = _train.BackendConfig, _train.Backend
except ImportError:
    ray, _Config, _Base = None, object, object
_PARTING = 30.0  # seconds for which the workers are waited for at the end


class PhalanxConfig(_Config):  # pyright: ignore[reportUntypedBaseClass]: Ray may not be there
    """The ``backend_config`` of a trainer of Ray Train whose workers compute together.

    Each worker is a process: ``distributed.initialize`` has been called when its function begins,
    with a secret that is made anew whenever Ray starts the workers. The coordinator is in worker 0.
    A worker that is lost ends the calls of the others with ``PeerLost``. Ray then starts all of
    them again, as often as ``FailureConfig`` says, and where ``num_workers`` of ``ScalingConfig``
    is a range, with as many as there is room for.

    Raises:
        ImportError: Ray is not installed.

    >>> PhalanxConfig()  # doctest: +SKIP
    PhalanxConfig()
    """

    def __init__(self) -> None:
        if ray is None:
            raise ImportError(
                "experimental.ray: Ray Train is not installed; pip install 'ray[train]'"
            )

    def __repr__(self) -> str:
        return "PhalanxConfig()"

    @property
    def backend_cls(self) -> type:
        """What Ray Train calls when it has started the workers, and before it ends them."""
        return _Backend


class _Backend(_Base):  # pyright: ignore[reportUntypedBaseClass]: Ray may not be there
    def on_start(self, worker_group: Any, backend_config: PhalanxConfig) -> None:
        """Let the workers meet.

        Raises:
            RendezvousError: they do not.
        """
        address: str = worker_group.execute_single(0, _free_address)
        token, count = secrets.token_hex(16), len(worker_group)
        ray.get([
            worker_group.execute_single_async(i, _join, address, count, i, token)
            for i in range(count)
        ])  # fmt: skip

    def on_shutdown(self, worker_group: Any, backend_config: PhalanxConfig) -> None:
        """Let them part; one that is lost does not come."""
        try:
            ray.get(worker_group.execute_async(_leave), timeout=_PARTING)
        except ray.exceptions.RayError as e:
            log.warn("experimental.ray: not all workers have parted: %s", type(e).__name__)


def _free_address() -> str:
    """An address of this machine at which nobody listens."""
    host = ray.util.get_node_ip_address()
    with socket.create_server((host, 0)) as unused:
        return f"{host}:{unused.getsockname()[1]}"


def _join(address: str, count: int, index: int, token: str) -> None:
    os.environ["PHALANX_TOKEN"] = token
    distributed.initialize(address, count, index)


def _leave() -> None:
    with contextlib.suppress(PhalanxError):  # of another that is lost the training has told
        distributed.shutdown()


bound(sys.modules[__name__], PhalanxConfig)
