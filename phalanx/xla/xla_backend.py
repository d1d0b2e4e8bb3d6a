"""The backend protocol on XLA."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from phalanx import xla
from phalanx.base.recent import memoized
from phalanx.core.program import Program
from phalanx.core.types import Types
from phalanx.spmd.plan import Plan
from phalanx.xla import capsules, ffi_targets, transfer
from phalanx.xla import compile as compiling
from phalanx.xla.client import absences, client, libraries, local_device_ids, started
from phalanx.xla.flight import complete, end_anyway
from phalanx.xla.host_callbacks import wait_for_callbacks
from phalanx.xla.jaxlib_versions import VERSION, ends_the_compiler
from phalanx.xla.memory import free_memory
from phalanx.xla.module import XlaModule
from phalanx.xla.processes import Service, client_for_libraries, connect, leave
from phalanx.xla.sharded import held, is_deleted, is_in_parts
from phalanx.xla.topology import described


@memoized(8)
def _all_devices(client: Any) -> tuple[Any, ...]:
    return tuple(client.devices())


@memoized(8)
def _own_devices(client: Any) -> tuple[Any, ...]:
    return tuple(client.local_devices())


class XlaBackend:
    """XLA through jaxlib. Nothing starts before it is used."""

    def devices(self, platform: str | None = None) -> tuple[Any, ...]:
        return _all_devices(client(platform))

    def local_devices(self, platform: str | None = None) -> tuple[Any, ...]:
        return _own_devices(client(platform))

    absences = staticmethod(absences)
    libraries = staticmethod(libraries)
    topology = staticmethod(described)

    def platform(self) -> str:
        return client().platform

    started = staticmethod(started)
    coordinate = staticmethod(Service)
    local_device_ids = staticmethod(local_device_ids)
    meet = staticmethod(connect)
    client_for_libraries = staticmethod(client_for_libraries)
    complete = staticmethod(complete)
    end_anyway = staticmethod(end_anyway)
    part = staticmethod(leave)

    def version(self) -> str:
        return ".".join(map(str, VERSION))

    def process_index(self) -> int:
        return client().process_index()

    def process_count(self) -> int:
        return len({d.process_index for d in client().devices()})

    @staticmethod
    def lower(
        program: Program, plan: Plan, donate: tuple[int, ...] = (), name: str | None = None
    ) -> XlaModule:
        return xla.lower.lower(program, plan, donate, name)

    @staticmethod
    def lower_for_each(program: Program, plan: Plan, platforms: Sequence[str]) -> XlaModule:
        return xla.portable.lower_for_each(program, plan, platforms)

    @staticmethod
    def export(
        program: Program, constants: Sequence[np.ndarray], plans: Sequence[Plan], name: str
    ) -> bytes:
        return xla.portable.export(program, constants, plans, name)

    @staticmethod
    def refined(artifact: bytes, types: Types) -> bytes:
        return xla.portable.refined(artifact, types)

    @staticmethod
    def try_exported(artifacts: Sequence[bytes]) -> str:
        return xla.trial.check(artifacts)

    @staticmethod
    def check_exported(artifact: bytes, ins: Types, outs: Types, foreign: Collection[str]) -> None:
        xla.portable.check(artifact, ins, outs, foreign)

    @staticmethod
    def exported_text(artifact: bytes) -> str:
        return xla.artifacts.text_of(artifact)

    register_foreign = staticmethod(ffi_targets.register)
    register_foreign_type = staticmethod(ffi_targets.register_type)
    register_foreign_batched = staticmethod(ffi_targets.register_batched)
    foreign_headers = staticmethod(ffi_targets.headers)
    compile = staticmethod(compiling.compile)
    put = staticmethod(transfer.put)
    putting = staticmethod(transfer.putting)
    fetch = staticmethod(transfer.fetch)
    shards = staticmethod(transfer.shards)
    assemble = staticmethod(transfer.assemble)
    move = staticmethod(transfer.move)
    block = staticmethod(transfer.block)
    free_memory = staticmethod(free_memory)
    ends_the_compiler = staticmethod(ends_the_compiler)
    wait_for_callbacks = staticmethod(wait_for_callbacks)
    dlpack_device = staticmethod(capsules.dlpack_device)
    to_dlpack = staticmethod(capsules.to_dlpack)
    from_dlpack = staticmethod(capsules.from_dlpack)
    is_deleted = staticmethod(is_deleted)
    is_in_parts = staticmethod(is_in_parts)

    @staticmethod
    def start_fetch(raw: Any) -> None:
        for part in held(raw):
            part._copy_single_device_array_to_host_async()

    @staticmethod
    def pointer(raw: Any) -> int:
        return raw.unsafe_buffer_pointer()

    @staticmethod
    def delete(raw: Any) -> None:
        raw.delete()

    @staticmethod
    def is_ready(raw: Any) -> bool:
        return raw.is_ready()
