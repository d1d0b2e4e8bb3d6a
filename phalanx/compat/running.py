"""Running scripts and modules where jax is served, as plain ``python`` runs them."""

from __future__ import annotations

import argparse
import os
import runpy
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

from phalanx.api import dispatch
from phalanx.base import boundary, dialect
from phalanx.base.config import config
from phalanx.base.main_module import compiled, is_starting, main_module
from phalanx.compat import serving
from phalanx.compat.extend.source_info_util import api_boundary
from phalanx.compat.jaxprs import ClosedJaxpr
from phalanx.compat.printed import spec_text, type_text
from phalanx.compat.raised import as_runtime_error
from phalanx.compat.worded import as_served

JAX = dialect.Dialect(type_text, spec_text, as_served, as_runtime_error, ClosedJaxpr.of)
_STARTUP = str(Path(__file__).parent / "startup")


def install() -> None:
    """Serve all later imports of ``jax``, here and in the processes that this one starts.

    These are told by ``PHALANX_AS_JAX=1`` in the environment, and by a place on ``PYTHONPATH``.

    Raises:
        ImportError: another jax was imported before.
    """
    serving.install()
    config.update("wrap_integers", True)  # programs for JAX count on it
    dialect.speak(JAX)
    for maker in (boundary, dispatch):  # by this name libraries know functions that are transformed
        vars(maker)["api_boundary"] = api_boundary
    os.environ["PHALANX_AS_JAX"] = "1"
    places = os.environ.get("PYTHONPATH", "")  # an empty one is the working directory
    if _STARTUP not in places.split(os.pathsep):
        os.environ["PYTHONPATH"] = os.pathsep.join([_STARTUP, places] if places else [_STARTUP])


def main(arguments: list[str]) -> None:
    """Run what the command line says, with its options: a script, a folder or zip file with
    ``__main__.py``, ``-m module``, ``-c code``, or ``-``, which is what is piped in."""
    parser = argparse.ArgumentParser(
        prog="python -m phalanx.as_jax",
        usage="%(prog)s [-m MODULE | -c CODE | SCRIPT | -] [options of what is run]",
        description="Run a program written for JAX on Phalanx.",
    )
    if not arguments or arguments[0] in ("-h", "--help"):
        parser.print_help(None if arguments else sys.stderr)
        sys.exit(0 if arguments else 2)
    kind, rest = arguments[0], arguments[1:]
    if kind in ("-m", "-c") and not rest:
        parser.error(f"{kind} needs an argument")
    install()
    if kind == "-m":
        sys.argv, sys.path[0] = rest, os.getcwd()
        runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
    elif kind == "-c":
        sys.argv, sys.path[0] = ["-c", *rest[1:]], ""
        _run(lambda: compiled(rest[0], "<string>"))
    elif kind == "-":
        sys.argv, sys.path[0] = arguments, ""
        _run(lambda: compiled(sys.stdin.buffer.read(), "<stdin>"))
    else:
        found = main_module(kind)
        if found is None:
            is_folder = Path(kind).is_dir()
            parser.error(f"there is no {'__main__.py in' if is_folder else 'file'} {kind}")
        sys.argv, sys.path[0] = arguments, found.place
        _run(found.code, **found.names)


def _run(code: Callable[[], Any], **known: object) -> None:
    """Run a program as the main module, which others pickle from and start processes from."""
    names: dict[str, Any] = vars(sys.modules["__main__"])
    builtins = names["__builtins__"]
    names.clear()
    names.update(__name__="__main__", __builtins__=builtins, __doc__=None, __package__=None)
    names.update(__spec__=None, __loader__=None)
    names.update(known)
    try:
        exec(code(), names)
    except (SystemExit, KeyboardInterrupt):
        raise
    except BaseException as e:
        _end_with(e)


def _end_with(e: BaseException) -> NoReturn:
    """End as Python does with an exception of the program, without the lines that ran it."""
    inside = e.__traceback__ and e.__traceback__.tb_next
    while inside is not None and is_starting(inside.tb_frame.f_code.co_filename):
        inside = inside.tb_next
    sys.excepthook(type(e), e.with_traceback(inside), inside)
    sys.exit(1)
