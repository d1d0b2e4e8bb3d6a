"""`phalanx profile script.py` says how long what a script runs took, by line and by device."""

from __future__ import annotations

import argparse
import sys

from phalanx.base.errors import PhalanxError
from phalanx.cli.explaining import aside, write
from phalanx.cli.options import add_profile_options, with_options_behind
from phalanx.cli.scripts import FAILED, is_there, run_reporting
from phalanx.insight.profiles.profile import profiling

__all__ = ["run"]


def run(arguments: argparse.Namespace) -> int:
    """Run the script, and report on what it ran; its status if it did not come to its end."""
    arguments = with_options_behind(arguments, add_profile_options)
    if not is_there("profile", arguments.script, arguments.module):
        return 2
    try:
        with aside(arguments.json), profiling(arguments.arrays) as profile:
            status = run_reporting(arguments.script, arguments.module, arguments.arguments)
    except PhalanxError as e:
        print(f"phalanx profile: {e}", file=sys.stderr)
        return 2
    if status == FAILED and not profile.spans:
        print("no device computed anything before the script failed", file=sys.stderr)
        return status
    write([profile.report(f"profile of {arguments.script}")], arguments.json, arguments.html)
    return status
