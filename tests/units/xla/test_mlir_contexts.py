"""In which MLIR contexts modules are written, and for how long these live."""

import gc
import queue
import threading
import weakref

import numpy as np

import phalanx
from phalanx.xla.mlir_contexts import MODULES


def module_of(f, x=1.0):
    return phalanx.jit(f).lower(np.float32(x)).compiler_ir()


def test_a_context_has_one_module_at_a_time():
    one = module_of(lambda x: x + 1)
    other = module_of(lambda x: x + 2)
    assert one.context is not other.context
    kept = other.context
    del one, other
    assert module_of(lambda x: x + 3).context is kept


def test_contexts_are_left_after_many_modules():
    first = weakref.ref(module_of(lambda x: x).context)
    for n in range(MODULES):
        module_of(lambda x, n=n: x + n)
    gc.collect()
    assert first() is None


def test_threads_compile_what_others_write():
    lowered, results = queue.Queue(), {}

    def write(first):
        for n in range(first, first + 20):
            lowered.put((n, phalanx.jit(lambda x, n=n: x * n).lower(np.float32(0))))
        lowered.put(None)

    def run():
        while (given := lowered.get()) is not None:
            n, program = given
            del given
            results[n] = float(program.compile()(np.float32(3)))

    threads = [threading.Thread(target=write, args=(first,)) for first in (0, 100)]
    threads += [threading.Thread(target=run) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert results == {n: 3.0 * n for n in [*range(20), *range(100, 120)]}
