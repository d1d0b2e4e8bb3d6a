"""`phalanx info` prints what a report of an error should say of the machine."""

from __future__ import annotations

import argparse

from phalanx.environment import print_environment_info


def run(arguments: argparse.Namespace) -> int:
    """Print versions, devices and the machine."""
    del arguments
    print_environment_info()
    return 0
