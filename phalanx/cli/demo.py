"""`phalanx demo`: what Phalanx is for, in five parts that take less than a minute."""

from __future__ import annotations

import importlib.util
import inspect
import itertools
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from msgspec import Struct, field
from rich.console import Console
from rich.padding import Padding
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

import phalanx
from phalanx.base.plain import plain
from phalanx.spmd.placement import spell_lanes

DEVICES, ROWS = 3, 13
CHIPS, ON_EACH = "v5e:8x8", 128  # the machine of the plan, and images on each of its chips
COLORS = ("cyan", "magenta", "yellow", "green", "blue", "red")


class Run(Struct):
    """One training run: what it was run on and, for every epoch, what came out."""

    devices: Sequence[Any]
    params: Any = None
    losses: list[float] = field(default_factory=list[float])
    accuracies: list[float] = field(default_factory=list[float])

    @property
    def name(self) -> str:
        return count(len(self.devices), "device")


def count(number: int, thing: str) -> str:
    return f"{number:,} {thing}" if number == 1 else f"{number:,} {thing}s"


def run(devices: int | None, epochs: int, out: Path) -> int:
    """Run the demo on `devices` devices, and save the report; the exit status."""
    console = Console(highlight=False)
    chosen = choose_devices(devices)
    if devices is not None and len(chosen) < devices:
        shown = count(len(chosen), f"{chosen[0].platform} device")
        console.print(f"phalanx demo: there is no more than {shown}, not {devices}")
    digits, planted = load_example("digits"), load_example("planted")
    part = _parts(console)
    part("A function of one image, and an axis of any size")
    source = Syntax(inspect.getsource(digits.step), "python", word_wrap=True)
    console.print(Padding(source, (0, 2)))
    console.print(lanes_drawn(digits, chosen))
    part("Training: the same numbers on one device")
    many = train(digits, Run(chosen), epochs, console)
    one = train(digits, Run(chosen[:1]), epochs, console)
    console.print(run_table(digits, many, one))
    part("Mistakes")
    console.print("  Gradients that are not averaged are refused:\n")
    console.print(Padding(_refused(planted), (0, 4)))
    console.print("\n  Dropout with the same key in all lanes runs; phalanx check finds it:\n")
    console.print(Padding(_found(planted), (0, 4)))
    part("A plan for chips that are not here: up to 64 TPU v5e")
    console.print(_planned(digits))
    phalanx.explain(digits.over_a_batch(digits.step, chosen))(*arguments(digits)).save(out)
    part("What each line of the step costs")
    console.print(f"  A report to open in a browser: [bold]{plain(str(out))}[/bold]")
    return 0


def _parts(console: Console) -> Callable[[str], None]:
    numbers = iter(range(1, 10))

    def part(title: str) -> None:
        console.print(f"\n[bold]{next(numbers)}. {title}[/bold]\n")

    return part


def choose_devices(wanted: int | None) -> Sequence[Any]:
    """The first `wanted` devices, into which a CPU is divided; if None as many as are asked for
    elsewhere, and three if none are."""
    asked = wanted or (phalanx.config.num_cpu_devices if phalanx.config.num_cpu_devices > 1 else 0)
    phalanx.config.update("num_cpu_devices", asked or DEVICES)
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


def arguments(digits: ModuleType, rows: int = ROWS) -> tuple[Any, ...]:
    """What the step takes, for so many images: parameters, velocity, rate, images and labels."""
    params = digits.init(phalanx.random.key(0))
    (images, labels), _ = digits.load()
    velocity = phalanx.tree.map(phalanx.numpy.zeros_like, params)
    return params, velocity, np.float32(digits.RATE), images[:rows], labels[:rows]


def lanes_drawn(digits: ModuleType, devices: Sequence[Any]) -> Text:
    """A line for each device, with a box for each of its lanes; empty ones for the padding."""
    step = digits.over_a_batch(digits.step, devices)
    placement = step.placement(*arguments(digits))
    drawn = Text(f"  {ROWS} images on {count(len(placement.devices), 'device')}, a lane each:\n")
    for (device, lanes), color in zip(placement.by_device(), itertools.cycle(COLORS)):
        drawn.append(f"    {device}  ").append("■ " * len(lanes), color)
        drawn.append("□ " * (placement.lanes - len(lanes)), "dim")
        drawn.append(f" {spell_lanes(lanes)}\n", "dim")
    return drawn


def train(digits: ModuleType, run: Run, epochs: int, console: Console) -> Run:
    """Runs the job to its end under a progress bar; fills in and returns `run`."""
    columns = (
        TextColumn("  {task.description:>9}"),
        BarColumn(bar_width=30),
        TextColumn("epoch {task.completed:>2}/{task.total}"),
        TextColumn("loss [cyan]{task.fields[loss]:.4f}"),
        TextColumn("accuracy [green]{task.fields[accuracy]:.2%}"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console) as progress:
        task = progress.add_task(run.name, total=epochs, loss=float("nan"), accuracy=0.0)
        for params, loss, accuracy in digits.train(run.devices, epochs):
            run.params = params
            run.losses.append(loss)
            run.accuracies.append(accuracy)
            progress.update(task, advance=1, loss=loss, accuracy=accuracy)
    return run


def run_table(digits: ModuleType, *runs: Run) -> Table:
    """Results of the runs, side by side."""
    (images, _), _ = digits.load()
    batches, last = divmod(len(images), digits.BATCH)
    sizes = f"{batches} of {digits.BATCH}" + (f", one of {last}" if last else "")
    table = Table(box=None, padding=(0, 2))
    table.add_column("")
    for run in runs:
        table.add_column(run.name, justify="right")
    rows = {
        "batches of an epoch": [sizes for _ in runs],
        "last training loss": [f"{run.losses[-1]:.6f}" for run in runs],
        "test accuracy": [f"{run.accuracies[-1]:.2%}" for run in runs],
    }
    for title, cells in rows.items():
        table.add_row(title, *cells)
    difference = largest_difference(*[run.params for run in runs])
    table.add_row("parameters differ by", "at most", f"[bold]{difference:.1e}[/bold]")
    return table


def largest_difference(params: Any, others: Any) -> float:
    """max |p - q| over all parameters."""
    pairs = zip(phalanx.tree.leaves(params), phalanx.tree.leaves(others), strict=True)
    return max(float(np.max(np.abs(np.asarray(p) - np.asarray(q)))) for p, q in pairs)


def _refused(planted: ModuleType) -> Text:
    """What is said of a step that forgets to average its gradients."""
    message = ""
    try:
        planted.mapped(planted.apart)(*planted.arguments())
    except phalanx.errors.ReplicationError as error:
        message = str(error)
    return Text(plain(message), "red")


def _found(planted: ModuleType) -> Text:
    """What `phalanx check` says of a step that drops the same pixels of each image."""
    text = Text()
    for finding in phalanx.check(planted.mapped(planted.together))(*planted.arguments()):
        place = f"{Path(finding.file).name}:{finding.line}"
        text.append(f"{place}: {finding.code} {plain(finding.message)}\n", "red")
        text.append(plain(finding.remedy), "green")
    return text


def _planned(digits: ModuleType) -> Table:
    """How long the step takes on fewer chips and on all, and what it needs of each."""
    array, rows = phalanx.ShapeDtypeStruct, 64 * ON_EACH
    params = phalanx.eval_shape(digits.init, phalanx.random.key(0))
    images, labels = array((rows, digits.SIZES[0]), "float32"), array((rows,), "int32")
    step = phalanx.plan(digits.over_a_batch(digits.step), on=CHIPS)
    report = step(params, params, array((), "float32"), images, labels)
    table = Table(box=None, padding=(0, 2))
    for title in ("chips", f"a step of {rows:,} images", "memory of a chip"):
        table.add_column(title, justify="right")
    for row in report["by number of chips"].as_json()["rows"]:
        seconds, size = (
            f"{1e6 * row['step']:,.0f} µs",
            f"{row['memory of a chip'] / 2**20:,.0f} MiB",
        )
        table.add_row(str(row["chips"]), seconds, size)
    return table
