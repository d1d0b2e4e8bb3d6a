"""`./dev accelerator [--minutes 9] [--out table.md]`: everything there is, run on the devices here.

What the default devices give is compared with what a CPU gives, and some programs are timed. It
prints a table. Where there are CPUs alone it runs on them.
"""

from __future__ import annotations

import argparse
import io
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import numpy as np

import phalanx
import phalanx.numpy as jnp
from accelerators.lacks import lacked
from accelerators.subjects import Subject, subjects
from phalanx import lax, nn
from phalanx.api.devices import devices
from phalanx.errors import DeviceError, MissingRule, PhalanxError
from phalanx.laws.compare import to_numpy

SAME, DIFFERS, REFUSED, FAILED, NONE = "same", "differs", "refused", "failed", "no program"
LACKS = "the plugin lacks "
SHARE = 0.8  # of the time, for comparing
ROUNDS = 20
_NEVER_ALIKE = ("lax.rng_uniform",)  # other numbers in every run


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=9)
    parser.add_argument("--out", type=Path, help="write the table of Markdown here, too")
    given = parser.parse_args()
    print(phalanx.print_environment_info(return_string=True))
    counts: Counter[str] = Counter()
    told: list[str] = []
    left = 0
    every = list(subjects(len(devices())))
    random.Random(0).shuffle(every)  # some of each kind, if the time ends
    end = time.monotonic() + SHARE * 60 * given.minutes
    for subject in every:
        if time.monotonic() > end:
            left += 1
            continue
        with redirect_stdout(io.StringIO()):  # some print
            outcome, why = compared(subject)
        counts[outcome] += 1
        if why:
            told.append(f"- {subject.name}, {outcome}: {why}")
            print(told[-1], flush=True)
    lines = [*table(counts, left), "", *told, "", *timings()]
    print("\n".join(lines))
    if given.out:
        given.out.write_text("\n".join(lines) + "\n")
    return 1 if counts[DIFFERS] or counts[FAILED] else 0


def compared(subject: Subject) -> tuple[str, str]:
    """Whether it gives here what it gives on a CPU."""
    if subject.name in _NEVER_ALIKE or (subject.kind == "program" and len(devices()) % 2):
        return NONE, ""
    try:
        if subject.trace() is None:
            return NONE, ""
        with phalanx.default_matmul_precision("highest"):
            found = _results(subject)
            with phalanx.default_device(devices("cpu")[0]):
                expected = found if subject.kind == "program" else _results(subject)
    except (DeviceError, MissingRule, NotImplementedError) as e:
        lack = lacked(e)
        return (REFUSED, _first_line(e)) if lack is None else (f"{LACKS}{lack}", "")
    except (PhalanxError, RuntimeError, ValueError, TypeError) as e:
        return FAILED, _first_line(e)
    worst = max(map(_difference, found, expected), default=0.0)
    return (SAME, "") if worst <= 1 else (DIFFERS, f"{worst:.3g} times what rounding explains")


def _results(subject: Subject) -> list[np.ndarray]:
    f, operands = subject.make()
    return [to_numpy(x) for x in phalanx.tree.leaves(f(*operands)) if hasattr(x, "dtype")]


def _difference(x: np.ndarray, y: np.ndarray) -> float:
    """The largest one, in units of what another order of operations may bring."""
    if not jnp.issubdtype(x.dtype, jnp.inexact):
        return 0.0 if np.array_equal(x, y) else np.inf
    allowed = float(jnp.finfo(x.dtype).eps) ** 0.6
    a, b = (v.astype(complex if v.dtype.kind == "c" else float) for v in (x, y))
    with np.errstate(invalid="ignore"):  # of infinities there is no difference
        apart = np.where((a == b) | (np.isnan(a) & np.isnan(b)), 0, np.abs(a - b))
    scale = np.nanmax(np.abs(b[np.isfinite(b)]), initial=1)
    return float(
        np.max(np.nan_to_num(apart, nan=np.inf, posinf=np.inf), initial=0) / (allowed * scale)
    )


def _first_line(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error).splitlines()[0]}"


def table(counts: Counter[str], left: int) -> Iterator[str]:
    """How many there were of each outcome."""
    kinds = Counter(d.device_kind for d in devices())
    yield f"## {', '.join(f'{n} x {kind}' for kind, n in kinds.items())}"
    yield ""
    yield "| compared with a CPU | operations, functions and programs |"
    yield "|---|---|"
    for outcome in (SAME, DIFFERS, REFUSED, FAILED, *(o for o in counts if o.startswith(LACKS))):
        yield f"| {outcome} | {counts[outcome]} |"
    yield f"| not reached in the time | {left} |"


# ---- what is timed ------------------------------------------------------------------------------


def timings() -> Iterator[str]:
    """The time of some programs, the least of several rounds, in milliseconds."""
    yield "| program | ms |"
    yield "|---|---|"
    n = 512 if devices()[0].platform == "cpu" else 4096
    x, half = jnp.ones((n, n)), jnp.ones((n, n), jnp.bfloat16)
    q = jnp.ones((4, n // 4, 8, 64), jnp.bfloat16)
    definite = jnp.eye(n // 4) * 2 + 0.001
    lanes = jnp.ones((8, 64, 256))
    w = jnp.ones((256, 256)) / 256
    programs: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
        "a call of jit(x + 1), x of 8": (lambda x: x + 1, (jnp.ones(8),)),
        f"a product of {n}, float32": (jnp.matmul, (x, x)),
        f"a product of {n}, bfloat16": (jnp.matmul, (half, half)),
        f"sin of {n} x {n}": (jnp.sin, (x,)),
        f"sorting {n} x {n}": (jnp.sort, (x,)),
        f"attention, 4 x {n // 4} x 8 x 64": (nn.dot_product_attention, (q, q, q)),
        f"cholesky of {n // 4}": (jnp.linalg.cholesky, (definite,)),
        f"eigh of {n // 4}": (jnp.linalg.eigh, (definite,)),
    }
    for name, (f, operands) in programs.items():
        yield f"| {name} | {_timed(phalanx.jit(f), *operands)} |"
    step = phalanx.pmap(_step, "i", in_axes=(None, 0))
    yield f"| a training step in 8 lanes | {_timed(step, w, lanes)} |"


def _step(w: Any, x: Any) -> Any:
    slope = phalanx.grad(lambda w: jnp.mean(jnp.tanh(x @ w) ** 2))(w)
    return w - 0.1 * lax.pmean(slope, "i")


def _timed(f: Callable[..., Any], *operands: Any) -> str:
    try:
        phalanx.block_until_ready(f(*operands))
    except (DeviceError, NotImplementedError) as e:
        return _first_line(e)
    rounds = []
    for _ in range(ROUNDS):
        begin = time.perf_counter()
        phalanx.block_until_ready(f(*operands))
        rounds.append(time.perf_counter() - begin)
    return f"{1e3 * min(rounds):.3g}"


if __name__ == "__main__":
    raise SystemExit(main())
