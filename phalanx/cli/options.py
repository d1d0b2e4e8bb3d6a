"""Options of commands that run a script, which may stand before the script or behind it."""

from __future__ import annotations

import argparse
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from phalanx.base.on_demand import OnDemand
from phalanx.cli.numbers import at_least, natural, positive

__all__ = [
    "add_check_options",
    "add_compile_options",
    "add_explain_options",
    "add_launch_options",
    "add_outputs",
    "add_plan_options",
    "add_profile_options",
    "add_script",
    "add_verify_options",
    "with_options_behind",
]


_checking = OnDemand("phalanx.cli.checking", "other commands need not wait for it")


class _Explain(argparse.Action):
    """Prints what codes mean, in place of running a script."""

    def __call__(
        self, command: argparse.ArgumentParser, _: Any, codes: Any, name: Any = None
    ) -> None:
        command.exit(_checking.explain(codes))


def add_script(command: argparse.ArgumentParser, arguments: str) -> None:
    """Let a command take a script, or a module with -m, and what else it says of ``arguments``."""
    command.add_argument("-m", dest="module", action="store_true", help="script is a module")
    command.add_argument("script", help="the file of the script, or with -m its module")
    rest = command.add_argument("arguments", nargs=argparse.REMAINDER, help=arguments)
    rest.required = False  # nor named where the script is missing


def add_check_options(command: argparse.ArgumentParser) -> None:
    """Those of `phalanx check`."""
    command.add_argument(
        "--format", choices=["text", "json", "github", "sarif"], default="text",
        help="how to print the findings: for people (text, the default), as JSON, as comments of "
        "GitHub Actions, or as SARIF",
    )  # fmt: skip
    command.add_argument(
        "--json",
        dest="format",
        action="store_const",
        const="json",
        help="the same as --format json",
    )
    for option, what in (("--select", "look for these alone"), ("--ignore", "leave these out")):
        command.add_argument(option, metavar="CODES", default="", help=f"{what}, such as P104,P106")
    command.add_argument(
        "--explain", nargs="?", const="", metavar="CODES", action=_Explain,
        help="print what these codes mean, or all",
    )  # fmt: skip


def add_compile_options(command: argparse.ArgumentParser) -> None:
    """Those of `phalanx compile`."""
    command.add_argument(
        "--for", dest="machine", metavar="MACHINE",
        help="v5p:4x4x4 for a slice, v5e:16x16:4 for four of them, h100:4x8 for four hosts with "
        "eight GPUs each, cuda:1x4x8 for those that --gpu describes",
    )  # fmt: skip
    command.add_argument(
        "--gpu", metavar="NAME",
        help="which GPUs, by a name that XLA's plugin knows, or a file that describes them",
    )  # fmt: skip


def add_explain_options(command: argparse.ArgumentParser) -> None:
    """Those of `phalanx explain`."""
    command.add_argument(
        "--on", dest="machine", metavar="MACHINE",
        help="the machine whose times are modelled: v5p:4x4x4, h100:64, or a chip as v5e or h200",
    )  # fmt: skip
    add_outputs(command)


def add_launch_options(command: argparse.ArgumentParser) -> None:
    """Let a command take how many processes there are, and where."""
    command.add_argument(
        "-n", "--nproc", type=positive, default=1, metavar="N", help="processes on this machine"
    )
    command.add_argument(
        "--nnodes", type=positive, default=1, metavar="N", help="number of machines"
    )
    command.add_argument(
        "--node-rank", type=natural, default=0, metavar="I", help="which machine this is, from 0"
    )
    command.add_argument(
        "--coordinator", metavar="HOST:PORT",
        help="where the first machine listens for the others (default: this machine alone)",
    )  # fmt: skip
    command.add_argument(
        "--devices-per-process", type=positive, metavar="N",
        help="GPUs of the machine, or parts of the CPU, for each process (default: all GPUs, dealt "
        "out evenly)",
    )  # fmt: skip
    command.add_argument(
        "--max-restarts", type=natural, default=0, metavar="N",
        help="how often to start all again when one has failed (default: 0)",
    )  # fmt: skip
    command.add_argument(
        "--elastic", type=at_least, metavar="LEAST:MOST",
        help="start again with the processes that are left when some are lost, as long as there "
        "are LEAST; no more than MOST run at a time, the others are spare (default: all run)",
    )  # fmt: skip


def add_plan_options(command: argparse.ArgumentParser) -> None:
    """Those of `phalanx plan`."""
    command.add_argument(
        "--on", dest="machine", metavar="MACHINE",
        help="v5p:8x8x8 for a slice, v5e:16x16:4 for four of them, h100:64, or h100:16x4, for GPUs",
    )  # fmt: skip
    for axis, what in (
        ("data", "copies of the model"), ("fsdp", "parts of the state"),
        ("tensor", "parts of each product"), ("sequence", "parts of each sequence"),
    ):  # fmt: skip
        command.add_argument(
            f"--{axis}", type=_parts, metavar="N", help=f"number of {what} (default: the fastest)"
        )
    command.add_argument(
        "--batch", type=_rows, metavar="N",
        help="rows of the batch (default: the first dimension that most data arguments share)",
    )  # fmt: skip
    command.add_argument(
        "--compiled", action="store_true", default=_default(command, False),
        help="compile the step for the TPUs, too, which takes longer; needs the extra aot",
    )  # fmt: skip
    add_outputs(command)


def _parts(text: str) -> int:
    return _count(text, "chips")


def _rows(text: str) -> int:
    return _count(text, "rows")


def _count(text: str, of: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"a number of {of} from 1 on is needed, got {text!r}")
    return int(text)


def add_profile_options(command: argparse.ArgumentParser) -> None:
    """Those of `phalanx profile`."""
    command.add_argument(
        "--arrays", action="store_true", default=_default(command, False),
        help="watch the arrays that there are, too: which lines make them, and which leak",
    )  # fmt: skip
    add_outputs(command)


def add_verify_options(command: argparse.ArgumentParser) -> None:
    """Those of `phalanx verify`."""
    command.add_argument(
        "--devices", type=positive, metavar="N", default=_default(command, None),
        help="run on the CPU, divided into N devices",
    )  # fmt: skip
    command.add_argument(
        "--against", type=_against, metavar="WHAT", default=_default(command, "one-device"),
        help="compare with one-device (the default); tell by float64 which lines lose digits; or "
        "also compare what another Python gives, with another jaxlib: its path",
    )  # fmt: skip
    command.add_argument(  # the socket by which the other Python answers
        "--answer", type=int, default=_default(command, None), help=argparse.SUPPRESS
    )
    add_outputs(command)


def _against(text: str) -> str:
    """What `phalanx verify` compares with."""
    if text in ("one-device", "float64") or shutil.which(text):
        return text
    raise argparse.ArgumentTypeError(
        f"{text} is neither one-device nor float64, nor a Python that can be run"
    )


def _default(command: argparse.ArgumentParser, value: object) -> object:
    """``value``, or nothing where the command only overrides what was said before."""
    return argparse.SUPPRESS if command.argument_default is argparse.SUPPRESS else value


def add_outputs(command: argparse.ArgumentParser) -> None:
    """Let a command say in which form its reports are written."""
    command.add_argument(
        "--json", action="store_true", help="print the report as JSON",
        default=_default(command, False),
    )  # fmt: skip
    command.add_argument("--html", type=_page, metavar="FILE", help="write it as a page")


def _page(name: str) -> Path:
    """The file of a page; it is written last, which is late to learn that there is no folder."""
    path = Path(name)
    if path.is_dir() or not path.absolute().parent.is_dir():
        folder = name if path.is_dir() else path.parent
        problem = "is a folder, and a file is needed" if path.is_dir() else "is no folder"
        raise argparse.ArgumentTypeError(f"{folder} {problem}")
    return path


def with_options_behind(
    arguments: argparse.Namespace, add: Callable[[argparse.ArgumentParser], None]
) -> argparse.Namespace:
    """``arguments``, with those options that ``add`` knows from behind the script, too.

    What stands behind ``--`` is the script's, whatever it is.
    """
    own = argparse.ArgumentParser(
        f"phalanx {arguments.command}", argparse.SUPPRESS, add_help=False,
        argument_default=argparse.SUPPRESS,
    )  # fmt: skip
    add(own)
    rest = arguments.arguments
    cut = rest.index("--") if "--" in rest else len(rest)
    found, left = own.parse_known_args(rest[:cut])
    for word in left if "machine" in arguments else ():
        name = word.partition("=")[0]
        if name in _FOR_MACHINES:
            own.error(
                f"{name} is an option of phalanx {_FOR_MACHINES[name]}; behind -- it is the "
                "script's"
            )
    merged = {**vars(arguments), **vars(found), "arguments": [*left, *rest[cut + 1 :]]}
    return argparse.Namespace(**merged)


_FOR_MACHINES = {"--for": "compile", "--on": "explain and phalanx plan"}
