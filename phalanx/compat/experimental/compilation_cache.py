"""The folder in which compiled programs are kept, as ``jax.experimental`` has it."""

from __future__ import annotations

from phalanx import config
from phalanx.api.dispatch import clear_caches


def set_cache_dir(path: str) -> None:
    """Keep compiled programs in the folder ``path``."""
    config.update("jax_compilation_cache_dir", path)


def initialize_cache(path: str) -> None:
    """The name that ``set_cache_dir`` had before."""
    set_cache_dir(path)


def is_initialized() -> bool:
    """Whether compiled programs are kept in a folder."""
    return config.jax_compilation_cache_dir is not None


def reset_cache() -> None:
    """Programs are looked for in the folder again, and not in memory."""
    clear_caches()
