"""Running a script of the user's inside a command, as Python runs it."""

from __future__ import annotations

import importlib.util
import os
import runpy
import shlex
import signal
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

from phalanx.base.main_module import is_starting, main_module
from phalanx.compat.serving import is_installed

__all__ = ["FAILED", "INTERRUPTED", "NOTHING", "is_there", "run_reporting", "run_script"]

FAILED, INTERRUPTED = 2, 128 + signal.SIGINT  # as shells say it
NOTHING = "the script compiled nothing; call its step through jit or pmap"


def is_there(command: str, script: str, is_module: bool) -> bool:
    """Whether there is such a script; if not, that is said."""
    if is_module:
        sys.path.insert(0, "")
        try:
            found = importlib.util.find_spec(script)
            if found is not None and found.submodule_search_locations is not None:
                script += ".__main__"  # what Python runs of a package
                found = importlib.util.find_spec(script)
        except ModuleNotFoundError:
            found = None
        finally:
            del sys.path[0]
        if found is None:
            print(f"phalanx {command}: there is no module {script}", file=sys.stderr)
        return found is not None
    if script.endswith(".ipynb"):
        problem = "is a notebook; make a script of it, jupyter nbconvert --to script"
        print(f"phalanx {command}: {script} {problem} {script}", file=sys.stderr)
        return False
    found = main_module(script)
    if found is None:
        near = " (with -m it is the name of a module)" if not script.endswith(".py") else ""
        missing = "__main__.py in" if Path(script).is_dir() else "file"
        print(f"phalanx {command}: there is no {missing} {script}{near}", file=sys.stderr)
    return found is not None


def run_script(script: str, is_module: bool, arguments: Sequence[str]) -> None:
    """Run it as the main program."""
    sys.argv = [script, *arguments]
    if is_module:
        sys.path.insert(0, os.getcwd())
        runpy.run_module(script, run_name="__main__", alter_sys=True)
        return
    found = main_module(script)
    if found is None:
        raise FileNotFoundError(f"there is no program {script}")
    sys.path.insert(0, found.place)
    before, main = sys.modules["__main__"], ModuleType("__main__")
    vars(main).update(found.names)
    sys.modules["__main__"] = main  # sys.argv stays as it was given
    try:
        exec(found.code() or "", vars(main))
    finally:
        sys.modules["__main__"] = before


def run_reporting(script: str, is_module: bool, arguments: Sequence[str]) -> int:
    """Run it; 0 if it came to its end, else the exit status. If it fails it is said why, as Python
    does."""
    jax_before, command = "jax" in sys.modules, shlex.join(sys.argv[1:])
    try:
        run_script(script, is_module, arguments)
    except SystemExit as e:
        if isinstance(e.code, str):
            print(e.code, file=sys.stderr)
        elif e.code:
            print(f"{script} ended with exit status {e.code}", file=sys.stderr)
        return 0 if e.code in (None, 0) else FAILED
    except KeyboardInterrupt:  # as one ends what runs for long; what is known is still told
        print(f"{script} was interrupted", file=sys.stderr)
        return INTERRUPTED
    except Exception as e:
        frames = [f for f in traceback.extract_tb(e.__traceback__) if not _is_running(f.filename)]
        e.with_traceback(None)
        if frames:
            print("Traceback (most recent call last):", file=sys.stderr)
        print("".join(traceback.format_list(frames)), end="", file=sys.stderr)
        traceback.print_exception(e)
        if isinstance(e, ImportError) and "no known parent package" in str(e) and not is_module:
            name = ".".join(Path(script).with_suffix("").parts)
            print(f"a part of a package is run as a module: -m {name}", file=sys.stderr)
        return FAILED
    finally:
        if "jax" in sys.modules and not jax_before and not is_installed():
            problem = f"{script} imported jax itself, whose programs are not seen here. Run it with"
            run = f"python -m phalanx.as_jax -m phalanx {command}"
            print(f"{problem} Phalanx: {run}", file=sys.stderr)
    return 0


def _is_running(file: str) -> bool:
    """Whether a frame is of what runs the script."""
    return file == __file__ or is_starting(file)
