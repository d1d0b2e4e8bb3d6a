"""``jax.lib``: which version of jaxlib compiles and runs."""

from __future__ import annotations

from importlib.metadata import version

__all__ = ["__version__"]
__version__ = version("jaxlib")
