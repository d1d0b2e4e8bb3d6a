"""`phalanx demo`: the digits example in eight lanes, the same run in one, and what differs."""

from __future__ import annotations

import importlib.util
import os
import time
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, cast

import numpy as np
from matplotlib.figure import Figure
from msgspec import Struct, field
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

import phalanx

LANES = 8


class Run(Struct):
    """One training run: what it was run on and, for every epoch, what came out."""

    lanes: int
    devices: Sequence[Any]
    batch: int
    params: Any = None
    losses: list[float] = field(default_factory=list[float])
    accuracies: list[float] = field(default_factory=list[float])
    seconds: list[float] = field(default_factory=list[float])

    @property
    def name(self) -> str:
        return f"{count(self.lanes, 'lane')} on {count(len(self.devices), 'device')}"


def count(number: int, thing: str) -> str:
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"


def run(devices: int | None, epochs: int, out: Path) -> int:
    """Train in eight lanes on `devices` devices and in one lane on one; the exit status."""
    console = Console()
    chosen = choose_devices(devices)
    if devices is not None and len(chosen) < devices:
        shown = count(len(chosen), f"{chosen[0].platform} device")
        console.print(f"phalanx demo: there is no more than {shown}, not {devices}")
    job = load_example("digits")
    console.print(
        f"[bold]Handwritten digits[/bold]: {LANES} lanes x {job.BATCH // LANES} images a step, "
        f"[bold]pmap[/bold] over {count(len(chosen), f'{chosen[0].platform} device')}"
    )
    many = train(job, Run(LANES, chosen, job.BATCH), epochs, console)
    one = train(job, Run(1, chosen[:1], job.BATCH), epochs, console)
    console.print(device_table(job, many))
    console.print(run_table(job, many, one))
    console.print(
        f"Test accuracy [bold green]{many.accuracies[-1]:.2%}[/bold green]. Largest difference "
        f"of a parameter between {many.name} and {one.name}: "
        f"[bold]{largest_difference(many.params, one.params):.1e}[/bold]"
    )
    if len(chosen) > 1 and chosen[0].platform == "cpu":
        console.print(
            f"[dim]CPU devices share the {os.cpu_count()} cores of this machine: they show how a "
            "program spans devices, not how much faster it gets.[/dim]"
        )
    if len(chosen) == 1:
        console.print(
            f"[dim]On one device, {LANES} lanes compute {LANES} small products, and one lane a "
            "large one: lanes gain time where several devices share them.[/dim]"
        )
    draw(many, one, out)
    console.print(f"Loss curve: {out}")
    return 0


def choose_devices(wanted: int | None) -> Sequence[Any]:
    """The first `wanted` devices, into which a CPU is divided; None for those that there are."""
    if wanted is not None:
        phalanx.config.update("num_cpu_devices", wanted)
    return phalanx.devices()[:wanted]


def load_example(name: str) -> ModuleType:
    """The module of an example: inside the installed package, or beside it in a checkout."""
    package = Path(phalanx.__file__).parent
    places = [folder / "examples" / f"{name}.py" for folder in (package, package.parent)]
    path = next((place for place in places if place.exists()), None)
    spec = path and importlib.util.spec_from_file_location(f"phalanx_example_{name}", path)
    if not spec or not spec.loader:
        raise FileNotFoundError(
            f"phalanx demo: the example {name} is not at {places[0]} or {places[1]}; "
            "install phalanx again"
        )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def train(job: ModuleType, run: Run, epochs: int, console: Console) -> Run:
    """Runs the job to its end under a progress bar; fills in and returns `run`."""
    columns = (
        TextColumn("{task.description:>19}"),
        BarColumn(bar_width=30),
        TextColumn("epoch {task.completed:>2}/{task.total}"),
        TextColumn("loss [cyan]{task.fields[loss]:.4f}"),
        TextColumn("accuracy [green]{task.fields[accuracy]:.2%}"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console) as progress:
        task = progress.add_task(run.name, total=epochs, loss=float("nan"), accuracy=0.0)
        start = time.perf_counter()
        for params, loss, accuracy in job.train(run.lanes, run.devices, epochs, run.batch):
            now = time.perf_counter()
            run.seconds.append(now - start)
            start = now
            run.params = params
            run.losses.append(loss)
            run.accuracies.append(accuracy)
            progress.update(task, advance=1, loss=loss, accuracy=accuracy)
    return run


def device_table(job: ModuleType, run: Run) -> Table:
    """Which device works on which lanes of a batch."""
    (images, _), _ = job.load()
    batch = images[: run.batch].reshape(run.lanes, run.batch // run.lanes, -1)
    placed = phalanx.device_put(batch, run.devices)
    block = placed.sharding.shard_shape(batch.shape)
    table = Table(title=f"One batch, f32{list(batch.shape)}: {run.name}")
    for title in ("device", "lanes", "shard", "shape"):
        table.add_column(title)
    for shard in placed.addressable_shards:
        first, stop, _ = shard.index[0].indices(run.lanes)
        padding = block[0] - (stop - first)
        table.add_row(
            str(shard.device),
            spell_lanes(first, stop, padding),
            spell(shard.index, batch.shape),
            str(shard.data.shape),
        )
    return table


def spell_lanes(first: int, stop: int, padding: int) -> str:
    """The numbers of lanes, and how many places of the block stay empty."""
    numbers = " ".join(map(str, range(first, stop)))
    return f"{numbers}, and {padding} of padding" if padding else numbers


def spell(index: tuple[slice, ...], shape: tuple[int, ...]) -> str:
    """A tuple of slices as it is written in Python."""
    bounds = (part.indices(size)[:2] for part, size in zip(index, shape, strict=True))
    parts = zip(bounds, shape, strict=True)
    written = (":" if (a, b) == (0, size) else f"{a}:{b}" for (a, b), size in parts)
    return f"batch[{', '.join(written)}]"


def run_table(job: ModuleType, *runs: Run) -> Table:
    """Timings and results of the runs, side by side."""
    (images, _), _ = job.load()
    table = Table(title="The same training")
    table.add_column("")
    for run in runs:
        table.add_column(run.name, justify="right")
    steps = len(images) // runs[0].batch
    later = [np.median(run.seconds[1:] or run.seconds) / steps for run in runs]
    rows = {
        "first epoch, with compilation": [f"{run.seconds[0]:.2f} s" for run in runs],
        "a step, after that": [f"{1e3 * seconds:.2f} ms" for seconds in later],
        "images a second": [f"{run.batch / s:,.0f}" for run, s in zip(runs, later, strict=True)],
        "training in all": [f"{sum(run.seconds):.2f} s" for run in runs],
        "last training loss": [f"{run.losses[-1]:.5f}" for run in runs],
        "test accuracy": [f"{run.accuracies[-1]:.2%}" for run in runs],
    }
    for title, cells in rows.items():
        table.add_row(title, *cells)
    return table


def largest_difference(params: Any, others: Any) -> float:
    """max |p - q| over all parameters."""
    pairs = zip(phalanx.tree.leaves(params), phalanx.tree.leaves(others), strict=True)
    return max(float(np.max(np.abs(np.asarray(p) - np.asarray(q)))) for p, q in pairs)


def draw(many: Run, one: Run, out: Path) -> None:
    """Loss and accuracy over the epochs, as a PNG."""
    figure = cast(Any, Figure(figsize=(9, 3.6), layout="constrained"))  # whose types are partial
    left, right = figure.subplots(1, 2)
    for run, style in ((many, {"linewidth": 4, "alpha": 0.4}), (one, {"linestyle": "--"})):
        epochs = np.arange(1, len(run.losses) + 1)
        left.semilogy(epochs, run.losses, label=run.name, **style)
        right.plot(epochs, 100 * np.asarray(run.accuracies), label=run.name, **style)
    left.set(title="training loss", xlabel="epoch")
    right.set(title="test accuracy (%)", xlabel="epoch")
    for axes in (left, right):
        axes.grid(alpha=0.3)
        axes.legend()
    figure.suptitle("Handwritten digits, data-parallel with phalanx.pmap")
    figure.savefig(out, dpi=120)
