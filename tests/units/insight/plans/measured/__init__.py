"""Training steps that processes of one computer were measured to take, and what plans say of them.

``system.toml`` is what `phalanx measure` printed there, ``steps.toml`` what `python -m
benchmarks.planned` did: seconds, by the number of processes.
"""

from __future__ import annotations

import tomllib
from pathlib import Path

import phalanx
from benchmarks.planned import MODELS, shapes, step
from phalanx.insight.plans.performance_model import Parting, load_of, timing
from phalanx.insight.systems import machine

HERE = Path(__file__).parent


def rows() -> list[tuple[str, int, float, float]]:
    """The model, how many processes, the seconds that were measured, and those of the plan."""
    found: list[tuple[str, int, float, float]] = []
    for name, seconds in tomllib.loads((HERE / "steps.toml").read_text()).items():
        load = load_of(phalanx.jit(step(MODELS[name])).trace(*shapes(MODELS[name])))
        for count, measured in seconds.items():
            chips = machine(f"{HERE / 'system.toml'}:{count}")
            planned = timing(load, chips, Parting(int(count), 1, 1)).seconds
            found.append((name, int(count), measured, planned))
    return found


def table() -> str:
    """The rows as the documentation has them."""
    lines = ["| step | processes | measured | planned | error |", "|---|---|---|---|---|"]
    for name, count, measured, planned in rows():
        figures = f"{1e3 * measured:.0f} ms | {1e3 * planned:.0f} ms"
        lines.append(f"| {name} | {count} | {figures} | {100 * (planned / measured - 1):+.0f} % |")
    return "\n".join(lines)
