"""The `phalanx` command: a demonstration, a look at the devices, and the cache."""

from phalanx.cli.main import main

__all__ = ["main"]
