"""Arguments and subcommands of `phalanx`."""

from __future__ import annotations

import argparse
import importlib
import sys
from pathlib import Path

from rich.console import Console
from rich.table import Table

import phalanx
from phalanx.cli import cache, launch


def parser() -> argparse.ArgumentParser:
    """The grammar of the command line."""
    top = argparse.ArgumentParser(prog="phalanx", description=phalanx.__doc__)
    top.add_argument("--version", action="version", version=f"phalanx {phalanx.__version__}")
    commands = top.add_subparsers(dest="command", required=True, metavar="command")

    demo = commands.add_parser("demo", help="train a classifier of digits in eight lanes")
    demo.add_argument("--devices", type=positive, metavar="N", help="how many (default: all)")
    demo.add_argument("--epochs", type=positive, default=30, metavar="N", help="default: 30")
    demo.add_argument("--out", type=Path, default=Path("curve.png"), metavar="PNG")
    demo.set_defaults(run=run_demo)

    devices = commands.add_parser("devices", help="list the devices that phalanx sees")
    devices.set_defaults(run=run_devices)

    cache.add_command(commands)
    launch.add_command(commands)
    return top


def positive(text: str) -> int:
    """An argument that is a number from 1 up."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, got {number}")
    return number


def run_demo(arguments: argparse.Namespace) -> int:
    try:
        demo = importlib.import_module("phalanx.cli.demo")
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("phalanx"):
            raise
        print(
            f"phalanx demo: the package {error.name} is missing; "
            "install it with: pip install 'phalanx[demo]'",
            file=sys.stderr,
        )
        return 1
    return demo.run(arguments.devices, arguments.epochs, arguments.out)


def run_devices(arguments: argparse.Namespace) -> int:
    del arguments
    table = Table(title=f"backend: {phalanx.default_backend()}")
    for column in ("id", "platform", "kind", "process"):
        table.add_column(column)
    for device in phalanx.devices():
        table.add_row(
            str(device.id), device.platform, device.device_kind, str(device.process_index)
        )
    Console().print(table)
    return 0


def main(argv: list[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    arguments = parser().parse_args(argv)
    return arguments.run(arguments)
