"""The `phalanx` command: a demonstration, and a look at the devices."""

from phalanx.cli.main import main

__all__ = ["main"]
