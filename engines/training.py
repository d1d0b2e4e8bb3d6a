"""A run that saves checkpoints and goes on from the newest, as all engines start it here."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np

STEPS = 12


def train(folder: Path, before: Callable[[int], None] = lambda step: None) -> None:
    """Twelve steps over eight lanes, with a checkpoint after each second one.

    ``before`` is called with the number of each step. Each process writes a line as it begins, and
    one for each step.
    """
    import phalanx  # where the processes have been started
    from phalanx import lax
    from phalanx.experimental import checkpoint

    me, count = phalanx.process_index(), phalanx.process_count()
    x = np.random.default_rng(0).normal(size=(8, 4)).astype(np.float32)
    mine = phalanx.process_rows(8)

    def step(w, x):
        value, slope = phalanx.value_and_grad(lambda w: (x @ w - 1) ** 2)(w)
        return w - 0.1 * lax.pmean(slope, "i"), lax.pmean(value, "i")

    step = phalanx.pmap(step, "i", in_axes=(None, 0), out_axes=None)
    state = {"w": phalanx.numpy.zeros(4), "step": 0}
    with checkpoint.Manager(folder / "saved", keep=2) as manager:
        if manager.latest() is not None:
            state = manager.restore(state)
        with open(folder / f"run-{me}", "a", buffering=1) as file:
            print(json.dumps({"of": count, "from": state["step"]}), file=file)
            while state["step"] < STEPS:
                before(state["step"])
                w, value = step(state["w"], x[mine])
                state = {"w": w, "step": state["step"] + 1}
                print(json.dumps([state["step"], float(value)]), file=file)
                if state["step"] % 2 == 0:
                    manager.save(state["step"], state)
                    manager.wait()


def attempts(folder: Path, process: int) -> list[tuple[int, int]]:
    """Of how many processes each attempt was, and after which step it began."""
    return [(one["of"], one["from"]) for one in _lines(folder, process) if isinstance(one, dict)]


def losses(folder: Path, process: int) -> list[float]:
    """The losses of all steps, of those that were done again the last."""
    found = dict(one for one in _lines(folder, process) if isinstance(one, list))
    assert [*found] == [*range(1, STEPS + 1)]
    return [*found.values()]


def _lines(folder: Path, process: int) -> list:
    return [json.loads(line) for line in (folder / f"run-{process}").read_text().splitlines()]


def alone() -> list[float]:
    """The losses of the run as NumPy computes them."""
    x = np.random.default_rng(0).normal(size=(8, 4)).astype(np.float32).astype(np.float64)
    w, found = np.zeros(4), []
    for _ in range(STEPS):
        found.append(np.mean((x @ w - 1) ** 2))
        w = w - 0.1 * np.mean(2 * (x @ w - 1)[:, None] * x, axis=0)
    return found
