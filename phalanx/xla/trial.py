"""Reading modules that come from elsewhere, first in a process of its own.

What reads and converts modules is made for those that a compiler writes: others may end the process
or keep it busy for ever. So a process that has nothing to lose reads them before this one does. It
is this file, run as a script, and imports of jaxlib what reads, which takes a tenth of a second.
"""

from __future__ import annotations

import importlib
import json
import os
import runpy
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

_PATIENCE = 60.0  # seconds, and as many for each so many bytes
_BYTES = 1 << 20
_REFUSED = 3  # its status where it says why
_READ = b"read"  # what it says when all are


def check(artifacts: Sequence[bytes]) -> str:
    """Have ``artifacts`` read elsewhere; why one that is read is nothing to the compiler, or "".

    Raises:
        ValueError: one cannot be read, or reading it ends a process, or does not end.
    """
    data = b"".join([len(a).to_bytes(8, "big") + a for a in artifacts])
    command = [sys.executable, "-I", "-S", __file__, json.dumps(sys.path)]
    patience = _PATIENCE * (1 + len(data) / _BYTES)
    try:
        done = subprocess.run(command, input=data, capture_output=True, timeout=patience)
    except subprocess.TimeoutExpired:
        raise ValueError(f"export: the module is not read in {patience:.0f} s") from None
    except OSError:
        return ""  # no process can be started here, or Python is part of another program
    message = done.stderr.decode(errors="replace").strip()
    if done.returncode < 0:
        message = f"whoever reads it ends with {signal.Signals(-done.returncode).name}"
    elif done.returncode != _REFUSED:
        return ""
    if done.stdout == _READ:
        return f"export: the module cannot be compiled: {message}"
    raise ValueError(f"export: the module cannot be read; it is damaged: {message}")


def _artifacts(data: bytes) -> Iterator[bytes]:
    at = 0
    while at < len(data):
        end = at + 8 + int.from_bytes(data[at : at + 8], "big")
        yield data[at + 8 : end]
        at = end


def _main() -> int:
    sys.path[:] = json.loads(sys.argv[1])
    tools: Any = importlib.import_module
    ir, stablehlo = tools("jaxlib.mlir.ir"), tools("jaxlib.mlir.dialects.stablehlo")

    contexts = runpy.run_path(str(Path(__file__).with_name("mlir_contexts.py")))
    texts: list[str] = []
    convert = tools("jaxlib._jax").mlir.mlir_module_to_xla_computation
    try:
        for artifact in _artifacts(sys.stdin.buffer.read()):
            with contexts["context_for_module"]():
                module = stablehlo.deserialize_portable_artifact(ir.Context.current, artifact)
                module.operation.verify()
                texts.append(str(module))
        os.write(1, _READ)
        for text in texts:
            if "sdy." not in text and "?" not in text:  # it is partitioned, or refined, before
                convert(text, False, False)
    except (ValueError, RuntimeError, ir.MLIRError) as e:
        print(str(e)[:400], file=sys.stderr)
        return _REFUSED
    return 0


if __name__ == "__main__":
    sys.exit(_main())
