"""A chart of what `python -m benchmarks` measured: for each case the time of Phalanx, where JAX
takes 1."""

from __future__ import annotations

import datetime
import importlib
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

Times = Mapping[str, Mapping[str, Sequence[float]]]  # name of a case -> library -> seconds

FASTER, SLOWER, GRAY = "#2a7f9e", "#c0603a", "#888888"  # seen on white and on black


def ratios(times: Times) -> dict[str, float]:
    """The minimum of Phalanx over that of JAX, where both were measured; the smallest last."""
    found = {
        name: min(taken["phalanx"]) / min(taken["jax"])
        for name, taken in times.items()
        if taken.get("phalanx") and taken.get("jax")
    }
    return dict(sorted(found.items(), key=lambda pair: -pair[1]))


def plot(times: Times, file: Path, versions: str) -> None:
    """Bars, with the machine and the date below them."""
    shown = ratios(times)
    figure = importlib.import_module("matplotlib.figure").Figure(
        (8, 1.2 + 0.24 * len(shown)), layout="constrained"
    )
    axes = figure.subplots()
    colors = [FASTER if ratio <= 1 else SLOWER for ratio in shown.values()]
    bars = axes.barh(list(shown), list(shown.values()), color=colors)
    axes.bar_label(bars, fmt="%.2f", padding=3, color=GRAY, fontsize=8)
    axes.axvline(1, color=GRAY, lw=1)
    axes.set_title("time of Phalanx, where JAX takes 1 (shorter is faster)", fontsize=10)
    today = datetime.date.today().isoformat()
    axes.set_xlabel(f"{today}, {os.cpu_count()} CPU cores; {versions}", fontsize=8)
    axes.tick_params(labelsize=8)
    for text in (axes.title, axes.xaxis.label, *axes.get_xticklabels(), *axes.get_yticklabels()):
        text.set_color(GRAY)
    axes.spines[:].set_visible(False)
    figure.savefig(file, transparent=True)
