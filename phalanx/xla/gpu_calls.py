"""What programs for GPUs call besides the compiler's own: types and functions to be registered.

The packages of plugins do that when they are imported, and need the package jax for it.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from typing import Any

from jaxlib import xla_client

from phalanx import xla
from phalanx.xla.plugins import Plugin


def extension(plugin: Plugin, name: str) -> Any:
    """A module of the package that belongs to ``plugin``; None if it is not installed."""
    try:
        return importlib.import_module(f"jax_{plugin.platform}{plugin.version or ''}_plugin.{name}")
    except ImportError:
        return None


def register(plugin: Plugin, interface: Any) -> None:
    """Register what the plugin calls: types, functions of the compiler's, and of libraries.

    Args:
        plugin: the plugin, which is loaded.
        interface: what loading it gave.
    """
    xla.partitioning.register(interface)
    own = extension(plugin, f"{plugin.platform}_plugin_extension")
    if own is None:
        return
    platform = plugin.platform.upper()
    types = functools.partial(own.register_custom_type, interface)
    calls = functools.partial(own.register_custom_call_target, interface)
    xla_client.register_custom_type_handler(platform, types)
    xla_client.register_custom_call_handler(platform, calls)
    for name, value in own.ffi_types().items():
        xla_client.register_custom_type(name, value, platform=platform)
    for name, value in own.ffi_handlers().items():
        xla_client.register_custom_call_target(name, value, platform=platform, api_version=1)
    for name in ("gpu_solver", "gpu_linalg", "gpu_prng", "gpu_sparse"):
        module = importlib.import_module(f"jaxlib.{name}")
        for target, value, version in module.registrations().get(platform, []):
            xla_client.register_custom_call_target(
                target, value, platform=platform, api_version=version
            )
        targets: Callable[[], list[str]] = getattr(module, "batch_partitionable_targets", list[str])
        for target in targets():
            xla_client.register_custom_call_as_batch_partitionable(target, c_api=interface)
