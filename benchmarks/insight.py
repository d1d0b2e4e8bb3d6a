"""`python -m benchmarks.insight`: what `check`, `explain` and `verify` of a step take.

The step is that of a transformer with twelve layers, in eight lanes. The smallest CPU time of
several runs counts, because other programs take time, too.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks import transformer

ROUNDS = 9


def seconds(f: Callable[[], Any]) -> float:
    """CPU seconds of a call."""
    start = time.process_time()
    f()
    return time.process_time() - start


def main() -> None:
    os.environ.setdefault("PHALANX_NUM_CPU_DEVICES", "8")
    os.environ["PHALANX_CACHE_DIR"] = ""  # nothing is compiled before
    import phalanx

    params, tokens = transformer.init(np), np.zeros((8, 4, transformer.LENGTH), np.int32)

    def step() -> Any:  # traced by nobody yet
        step = transformer.training_step(phalanx)
        return phalanx.pmap(step, "batch", in_axes=(None, 0, 0), out_axes=None)

    def least(use: Callable[[Any], Any]) -> float:
        return min(seconds(lambda: use(step())) for _ in range(ROUNDS))

    tracing = least(lambda f: f.trace(params, tokens, tokens))
    checking = least(lambda f: phalanx.check(f)(params, tokens, tokens))
    print(f"tracing {1e3 * tracing:.0f} ms, check {1e3 * checking:.0f} ms")
    compiling = seconds(lambda: step().trace(params, tokens, tokens).lower().compile())
    explaining = seconds(lambda: phalanx.explain(step())(params, tokens, tokens))
    print(f"tracing and compilation {compiling:.1f} s, explain {explaining:.1f} s")
    verifying = seconds(lambda: phalanx.verify(step())(params, tokens, tokens))
    print(f"verify {verifying:.1f} s, {verifying / compiling:.1f} times as long as compilation")


if __name__ == "__main__":
    main()
