"""What programs for GPUs call besides the compiler's own: types and functions to be registered.

The packages of plugins do that when they are imported, and need the package jax for it.
"""

from __future__ import annotations

import functools
import importlib
import re
from typing import Any, Final

from jaxlib import version, xla_client

from phalanx import xla
from phalanx.base.errors import DeviceError
from phalanx.xla.plugins import Plugin

_MODULES: Final = ("_solver", "_hybrid", "_linalg", "_prng", "_sparse")
_BY_MATRIX: Final = re.compile(
    r"(cu|hip)(solver|hybrid)_.*|.*_lu_pivots_to_permutation|.*gtsv2_ffi"
)


def extension(plugin: Plugin, name: str) -> Any:
    """A module of the package that belongs to ``plugin``; None if none does, or it has no such.

    Raises:
        DeviceError: it is not installed, or is for another version of jaxlib.
    """
    package = f"jax_{plugin.platform}{plugin.version or ''}_plugin"
    try:
        importlib.import_module(package)
        if plugin.platform == "cuda":  # AMD releases it on its own
            _check_version(plugin, importlib.import_module(f"{package}.version").__version__)
        return importlib.import_module(f"{package}.{name}")
    except ImportError as e:
        if not plugin.version or e.name == f"{package}.{name}":
            return None
        raise DeviceError(
            f"the plugin {plugin.path} needs the package {package}: {e}; {_remedy(plugin)}"
        ) from None


def _check_version(plugin: Plugin, theirs: str) -> None:
    if _release(theirs) != _release(version.__version__):
        raise DeviceError(
            f"the plugin for CUDA {plugin.version} is for jaxlib {theirs}, and jaxlib "
            f"{version.__version__} is installed; {_remedy(plugin)}"
        )


def _release(version: str) -> str:
    """Its numbers, which builds of one's own have in common with it."""
    return re.split(r"\.?[^\d.]", version, maxsplit=1)[0]


def _remedy(plugin: Plugin) -> str:
    name = f"jax-{plugin.platform}{plugin.version}-plugin"
    if plugin.platform != "cuda":
        return f"pip install {name}"
    return f"pip install '{name}[with-cuda]=={version.__version__}'"


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
    modules = [extension(plugin, name) for name in _MODULES]
    for module in filter(None, modules):
        for target, value in module.registrations().items():
            xla_client.register_custom_call_target(target, value, platform=platform, api_version=1)
            if _BY_MATRIX.fullmatch(target):
                xla_client.register_custom_call_as_batch_partitionable(target, c_api=interface)
