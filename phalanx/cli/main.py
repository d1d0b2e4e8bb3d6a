"""Arguments and subcommands of `phalanx`."""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NoReturn

from phalanx.base.errors import suggest
from phalanx.base.kinds import is_dict
from phalanx.base.on_demand import OnDemand
from phalanx.base.version import __version__
from phalanx.cli import options
from phalanx.cli.numbers import positive


class Grammar(argparse.ArgumentParser):
    """A parser that says of a word which it does not know which one is near."""

    def error(self, message: str) -> NoReturn:
        odd = re.search(r"invalid choice: '([^']+)'", message)
        commands = _commands(self)
        near = (self, *commands.values())
        hint = _hint(commands, near, odd[1]) if odd else ""
        super().error(f"{message}. {hint}" if hint else message)

    def refuse(self, command: str | None, words: list[str]) -> NoReturn:
        """End with what a command, or this one, says of words that it does not know."""
        commands = _commands(self)
        asked = commands.get(command or "", self)
        hint = _hint(commands, (asked,), words[0].partition("=")[0])
        message = f"unrecognized arguments: {' '.join(words)}"
        asked.error(f"{message}. {hint}" if hint else message)


def _commands(grammar: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """The commands that a parser knows, by name."""
    choices = [action.choices for action in grammar._actions if is_dict(action.choices)]
    return {name: command for each in choices for name, command in each.items()}


def _hint(
    commands: dict[str, argparse.ArgumentParser], near: Iterable[argparse.ArgumentParser], odd: str
) -> str:
    """Which commands know a word, or what is near it in some of them."""
    known = [f"phalanx {n}" for n, c in commands.items() if odd in _words(c)]
    if known:
        return f"It is an option of {' and '.join(known)}"
    return suggest(odd, [word for grammar in near for word in _words(grammar)])


def _words(grammar: argparse.ArgumentParser) -> Iterator[str]:
    """The commands, choices and options of a parser."""
    for action in grammar._actions:
        yield from action.option_strings
        yield from map(str, action.choices or ())


_demo = OnDemand("phalanx.cli.demo", "its packages may not be installed")
COMMANDS = {
    "first": {"demo": "see what Phalanx does, in a minute"},
    "run a script": {
        "launch": "in several processes, on this machine or on several",
        "compile": "and compile its functions for accelerators that are not here",
        "check": "and find probable mistakes in the functions that it compiles",
        "verify": "and compare what its functions compute on devices with one device",
        "explain": "and report the cost, communication and memory of these functions",
        "profile": "and measure the time of each line, of each device and of the host",
        "plan": "and estimate its training step on another machine",
    },
    "this machine": {
        "devices": "list the devices",
        "info": "print versions, devices and the machine, for bug reports",
        "cache": "show or clear the cache of compiled programs",
        "measure": "measure the compute rate and network of this computer, for plan",
    },
}


def _listed() -> str:
    """What the command does, and all commands in groups."""
    lines = ["Start programs on many devices, find their mistakes, and see what they cost."]
    for head, commands in COMMANDS.items():
        lines += ["", f"{head}:", *[f"  {name:9} {what}" for name, what in commands.items()]]
    return "\n".join(lines)


def parser() -> Grammar:
    """The grammar of the command line."""
    top = Grammar(
        prog="phalanx",
        usage="phalanx [-h] [--version] COMMAND ...",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description=_listed(),
        epilog="phalanx COMMAND -h shows the options of a command; example: phalanx devices",
    )
    top.add_argument("--version", action="version", version=f"phalanx {__version__}")
    commands = top.add_subparsers(
        dest="command", metavar="COMMAND", prog="phalanx", help=argparse.SUPPRESS
    )

    demo = commands.add_parser(
        "demo",
        description="Train a classifier of handwritten digits, image by image, on three devices "
        "and on one; find two mistakes; plan the same step for 64 chips. It needs scikit-learn: "
        "pip install 'phalanx[demo]'.",
        epilog="example: phalanx demo --devices 8 --epochs 5 --out report.html",
    )
    demo.add_argument(
        "--devices", type=positive, metavar="N",
        help="how many (default: 3, into which a CPU is divided, or all accelerators)",
    )  # fmt: skip
    demo.add_argument("--epochs", type=positive, default=10, metavar="N", help="default: 10")
    demo.add_argument(
        "--out", type=Path, default=Path("demo.html"), metavar="HTML",
        help="where the report is saved (default: %(default)s)",
    )  # fmt: skip
    demo.set_defaults(run=run_demo)

    devices = commands.add_parser(
        "devices",
        description="List the devices, and with --why the reason for each kind of accelerator "
        "that is not there.",
        epilog="example: PHALANX_NUM_CPU_DEVICES=8 phalanx devices",
    )
    devices.add_argument(
        "--why", action="store_true", help="say why each kind of accelerator is not there"
    )
    devices.set_defaults(run=_run_of("devices"))

    info = commands.add_parser(
        "info",
        description="Print versions, devices and the machine, to be pasted into a report.",
        epilog="example: phalanx info",
    )
    info.set_defaults(run=_run_of("info"))

    cache = commands.add_parser(
        "cache",
        description="Show or clear the folder in which compiled programs are kept, so that the "
        "next process need not compile them.",
        epilog="example: phalanx cache clear",
    )
    cache.add_argument(
        "action", nargs="?", choices=["show", "clear"], default="show",
        help="show where it is and how large, or delete what is in it (default: show)",
    )  # fmt: skip
    cache.set_defaults(run=_run_of("cache"))

    launching = commands.add_parser(
        "launch",
        usage="phalanx launch [-n N] [options] script.py [arguments ...]",
        description="Run a program in several processes, on this machine or on several, which "
        "meet in phalanx.distributed.initialize() and compute together.",
        epilog="example: phalanx launch -n 2 train.py --epochs 5",
    )
    options.add_launch_options(launching)
    options.add_script(launching, "those of the script")
    launching.set_defaults(run=_run_of("launch"))

    compiling = commands.add_parser(
        "compile",
        usage="phalanx compile --for MACHINE [--gpu NAME] [-m] script.py [arguments ...]",
        description="Run a script, and report what each of its compiled functions would need on "
        "accelerators that are not here.",
        epilog="example: phalanx compile train.py --for v5e:2x4",
    )
    options.add_compile_options(compiling)
    options.add_script(compiling, "those of the script")
    compiling.set_defaults(run=_run_of("compiling"))

    checking = commands.add_parser(
        "check",
        usage="phalanx check [--format FORMAT] [--select CODES] [--ignore CODES] [-m] script.py "
        "[arguments ...]\n       phalanx check --explain [CODES]",
        description="Run a script, and find probable mistakes in the functions that it compiles: "
        "the line, the reason and the remedy. The exit status is 1 if there are findings, and 2 if "
        "the script fails.",
        epilog="example: phalanx check train.py",
    )
    options.add_check_options(checking)
    options.add_script(checking, "those of the script")
    checking.set_defaults(run=_run_of("checking"))
    _add_reports(commands)
    return top


def _add_reports(commands: Any) -> None:
    """What runs a script, and reports on what it compiles."""
    verifying = commands.add_parser(
        "verify",
        usage="phalanx verify [--devices N] [--against float64] [--json | --html FILE] [-m] "
        "script.py [args ...]",
        description="Run a script, and run each function that it compiles for several devices "
        "again on one: whether the numbers are the same up to rounding and, if not, the first "
        "operation that differs. The exit status is 1 if something differs, and 2 if the script "
        "fails.",
        epilog="example: phalanx verify --devices 8 train.py",
    )
    options.add_verify_options(verifying)
    options.add_script(verifying, "those of the script")
    verifying.set_defaults(run=_run_of("verifying"))

    explaining = commands.add_parser(
        "explain",
        usage="phalanx explain [--on MACHINE] [--json | --html FILE] [-m] script.py [args ...]",
        description="Run a script, and report on each function that it compiles: what limits it, "
        "FLOPs and bytes by line, collectives, memory, and the compiled instructions.",
        epilog="example: phalanx explain --html report.html train.py",
    )
    options.add_explain_options(explaining)
    options.add_script(explaining, "those of the script")
    explaining.set_defaults(run=_run_of("explaining"))

    profiling = commands.add_parser(
        "profile",
        usage="phalanx profile [--arrays] [--json | --html FILE] [-m] script.py [arguments ...]",
        description="Run a script while the runtime records, and report the time of the host, of "
        "each line and device, of collectives and of gaps.",
        epilog="example: phalanx profile --html profile.html train.py",
    )
    options.add_profile_options(profiling)
    options.add_script(profiling, "those of the script")
    profiling.set_defaults(run=_run_of("profiling"))

    planning = commands.add_parser(
        "plan",
        usage="phalanx plan --on MACHINE [--compiled] [--json | --html FILE] [-m] script.py "
        "[arguments ...]",
        description="Run a script, and plan the function that computes most, of those that it "
        "compiles or lowers: seconds of a step and bytes on a chip, for each mesh and for fewer "
        "chips, the fastest first.",
        epilog="example: phalanx plan train.py --on v5p:8x8x8",
    )
    options.add_plan_options(planning)
    options.add_script(planning, "those of the script")
    planning.set_defaults(run=_run_of("planning"))

    measuring = commands.add_parser(
        "measure",
        description="Measure the FLOP/s and memory bandwidth of the CPU of this computer, and the "
        "communication of processes on it, and write them as a system for phalanx plan.",
        epilog="example: phalanx measure --out cpu.toml; phalanx plan train.py --on cpu.toml:8",
    )
    measuring.add_argument("--out", type=Path, metavar="FILE", help="where (default: the terminal)")
    measuring.add_argument(
        "--processes", type=positive, nargs="+", default=[2, 4, 8], metavar="N",
        help="numbers of processes that communicate, one after the other (default: 2 4 8)",
    )  # fmt: skip
    measuring.set_defaults(run=_run_of("measuring"))


def _run_of(module: str) -> Callable[[argparse.Namespace], int]:
    """What a module of this package runs."""
    command = OnDemand(f"phalanx.cli.{module}", "other commands need not wait for it")
    return lambda arguments: command.run(arguments)


def run_demo(arguments: argparse.Namespace) -> int:
    try:
        run = _demo.run
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("phalanx"):
            raise
        print(
            f"phalanx demo: the package {error.name} is missing; "
            "install it with: pip install 'phalanx[demo]'",
            file=sys.stderr,
        )
        return 1
    return run(arguments.devices, arguments.epochs, arguments.out)


def main(argv: list[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # it was closed before
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_WRONLY), "w"))
    try:
        status = _run(argv)
        sys.stdout.flush()
    except BrokenPipeError:  # as `head` has read enough; Python would complain at its end, too
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    return status


def _run(argv: list[str] | None) -> int:
    grammar = parser()
    arguments, unknown = grammar.parse_known_args(argv)
    if unknown:
        grammar.refuse(arguments.command, unknown)
    if arguments.command is None:
        grammar.print_help()
        return 0
    return arguments.run(arguments)
