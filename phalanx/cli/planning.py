"""`phalanx plan train.py --on v5p:8x8x8` says what a script's training step would take there."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Generator
from contextlib import contextmanager

from phalanx.api.stages import Traced, on_compiled, on_lowered, watching
from phalanx.base.errors import PhalanxError
from phalanx.cli.explaining import aside, write
from phalanx.cli.options import add_plan_options, with_options_behind
from phalanx.cli.scripts import NOTHING, is_there, run_reporting
from phalanx.insight.costs import steps
from phalanx.insight.plans.performance_model import Parting
from phalanx.insight.plans.plan import plan_of
from phalanx.insight.systems import machine

__all__ = ["run"]


def run(arguments: argparse.Namespace) -> int:
    """Run the script, and plan that of its functions that computes most."""
    arguments = with_options_behind(arguments, add_plan_options)
    try:
        if arguments.machine is None:
            raise ValueError("--on says for which machine: --on v5p:8x8x8, --on h100:64")
        chips = machine(arguments.machine)
        if not is_there("plan", arguments.script, arguments.module):
            return 2
        with _traced_in() as seen, aside(arguments.json):
            status = run_reporting(arguments.script, arguments.module, arguments.arguments)
        if not seen:
            raise ValueError(NOTHING)
        step = max(seen, key=lambda t: sum([s.operations for s in steps(t.program)]))
        asked = Parting(
            *(getattr(arguments, n, None) or 0 for n in ("data", "fsdp", "tensor", "sequence"))
        )
        rows = getattr(arguments, "batch", None) or 0
        report = plan_of(step, chips, asked, arguments.compiled, rows)
    except (PhalanxError, ValueError) as e:
        print(f"phalanx plan: {str(e).removeprefix('plan: ')}", file=sys.stderr)
        return 2
    write([report], arguments.json, arguments.html)
    return status


@contextmanager
def _traced_in() -> Generator[list[Traced]]:
    """The functions that are compiled or lowered inside a block."""
    seen: list[Traced] = []
    with watching(seen.append, on_compiled, on_lowered):
        yield seen
