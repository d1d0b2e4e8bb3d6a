"""Long loops, many threads, and another library of the kind in the same process.

What could hang or abort runs in a process of its own, with eight CPU devices.
"""

import gc
import importlib.util
import os
import subprocess
import sys
import textwrap
import threading
import types
import weakref
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import phalanx
import phalanx.numpy as jnp
from phalanx import lax
from phalanx.xla import jaxlib_versions

ROOT = Path(__file__).parents[2]


def run(program, devices=8, timeout=120):
    """Run ``program`` in a fresh process; returns what it prints."""
    environment = {
        **os.environ,
        "PHALANX_NUM_CPU_DEVICES": str(devices),
        "PHALANX_PLATFORMS": "cpu",
        "JAX_PLATFORMS": "cpu",
        "PYTHONPATH": str(ROOT),
    }
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


# ---- loops and threads --------------------------------------------------------------------------


@pytest.mark.slow
def test_thousands_of_mapped_sums_in_plain_loops_of_several_threads_run_through():
    out = run("""
        import threading, time
        import numpy as np
        import phalanx
        from phalanx import lax

        step = phalanx.pmap(lambda x: lax.psum(x, "i") / 8, axis_name="i")
        other = phalanx.pmap(lambda x: lax.pmean(x, "j") * 1.0, axis_name="j")
        start = phalanx.pmap(lambda x: x)(np.arange(8.0))
        counts, failures = [], []
        until = time.monotonic() + 6

        def loop(f):
            x, n = start, 0
            try:
                while n < 2000 or (n < 10000 and time.monotonic() < until):
                    x, n = f(x), n + 1
                np.testing.assert_allclose(x, np.full(8, 3.5))
            except BaseException as e:
                failures.append(e)
            counts.append(n)

        threads = [threading.Thread(target=loop, args=(f,)) for f in (step, other, step)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        assert not failures, failures
        print(sum(counts))
    """)
    assert int(out) >= 6000


@pytest.mark.slow
def test_programs_on_overlapping_devices_from_many_threads():
    out = run("""
        import random, threading, time
        import numpy as np
        import phalanx
        from phalanx import lax

        devices = phalanx.devices()

        def mean_over(chosen):
            n = len(chosen)
            f = phalanx.pmap(lambda x: lax.psum(x, "i") / n, axis_name="i", devices=chosen)
            return f, np.arange(float(n), dtype=np.float32)

        sets = [devices[:4], devices[2:6], devices, devices[::-1], devices[::2]]
        programs, failures = [mean_over(s) for s in sets], []
        until = time.monotonic() + 4

        def work(seed):
            pick = random.Random(seed)
            try:
                while time.monotonic() < until:
                    f, x = pick.choice(programs)
                    y = f(x)
                    for _ in range(pick.randrange(20)):
                        y = f(y)
                    other = phalanx.device_put(y, pick.choice(devices)) + (y * 2)[0]
                    np.testing.assert_allclose(other, np.full(len(x), 3 * x.mean()), rtol=1e-6)
            except BaseException as e:
                failures.append(e)

        threads = [threading.Thread(target=work, args=(k,)) for k in range(6)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        assert not failures, failures
        print("done")
    """)
    assert out.strip() == "done"


def test_results_that_nobody_reads_do_not_pile_up():
    out = run("""
        import numpy as np, phalanx
        from phalanx import lax
        f = phalanx.pmap(lambda x: (lax.psum(x, "i"), x + 1), axis_name="i")
        x = f(np.ones(8, np.float32))[1]
        for _ in range(1000):
            total, x = f(x)
        print(x[0], total[7])
    """)
    assert out.split() == ["1002.0", "8008.0"]


@pytest.mark.spmd
def test_one_function_first_called_in_many_threads_at_once():
    n = phalanx.device_count()
    f = phalanx.pmap(lambda x, k: lax.psum(x * k, "i"), axis_name="i", in_axes=(0, None))
    barrier = threading.Barrier(8)

    def call(k):
        barrier.wait()
        x = np.arange(float(n), dtype=np.float32)
        return [float(f(x, float(k))[0]), float(phalanx.jit(jnp.sum)(x * k))]

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(call, range(8)))
    total = n * (n - 1) / 2
    assert found == [[k * total, k * total] for k in range(8)]


def test_transformations_in_many_threads_do_not_see_each_other():
    def work(k):
        x = np.linspace(0, 1, 3 + k % 3, dtype=np.float32)
        for _ in range(3):
            slope = phalanx.grad(lambda x: (phalanx.vmap(jnp.sin)(x) * k).sum())(x)
            np.testing.assert_allclose(slope, k * np.cos(x), rtol=1e-5)
            assert str(phalanx.make_program(lambda x: x * 2)(x)).count("mul") == 1
        return True

    with ThreadPoolExecutor(6) as pool:
        assert all(pool.map(work, range(12)))


def test_options_of_one_thread_are_not_those_of_another():
    inside, outside = threading.Event(), threading.Event()

    def wide():
        with phalanx.config.override(enable_x64=True):
            inside.set()
            outside.wait(10)
            return (jnp.asarray(1.5) + np.float64(1)).dtype

    with ThreadPoolExecutor(1) as pool:
        found = pool.submit(wide)
        inside.wait(10)
        assert (jnp.asarray(1.5) + np.float64(1)).dtype == np.float32
        outside.set()
        assert found.result() == np.float64


def test_functions_dropped_in_a_loop_do_not_pile_up():
    refs = []
    for k in range(5):
        f = phalanx.pmap(lambda x, k=k: x * k)
        f(np.ones(2, np.float32))
        refs.append(weakref.ref(f.__wrapped__))
        del f
    gc.collect()
    assert [r() for r in refs] == [None] * 5


# ---- beside jax ---------------------------------------------------------------------------------

needs_jax = pytest.mark.skipif(
    importlib.util.find_spec("jax") is None, reason="the package jax is not installed"
)


def test_jax_is_not_imported_by_importing_or_running():
    run("""
        import sys
        import phalanx
        import phalanx.numpy as jnp
        import numpy as np
        assert "jax" not in sys.modules
        f = phalanx.pmap(lambda x: phalanx.lax.psum(jnp.sin(x), "i"), axis_name="i")
        y = f(np.ones((8, 2)))
        assert "jax" not in sys.modules
        np.asarray(y), y[3], str(y), y.addressable_shards[1].data, y.sharding
        phalanx.grad(lambda x: f(x).sum())(y)
        phalanx.device_put(y, phalanx.devices()[::-1])
        np.from_dlpack(y[0]), jnp.from_dlpack(np.ones(3, np.float32))
        phalanx.random.normal(phalanx.random.key(0), (3,))
        assert "jax" not in sys.modules
    """)


def test_others_can_import_jax_at_any_moment(tmp_path):
    """The module here is not the package: it takes as long to import as is needed to see it."""
    package = tmp_path / "jax"
    package.mkdir()
    package.joinpath("__init__.py").write_text("import events; events.pause(); done = True")
    package.joinpath("part.py").write_text("")
    run(f"""
        import sys, threading, types
        sys.path.insert(0, {str(tmp_path)!r})
        from phalanx.xla.jaxlib_versions import without_jax

        importing, go_on = threading.Event(), threading.Event()
        sys.modules["events"] = types.SimpleNamespace(
            pause=lambda: (importing.set(), go_on.wait(60))
        )
        looking, enough = threading.Event(), threading.Event()
        got = []

        def look():
            try:
                import jax
            except ImportError as e:
                got.append(e)
            looking.set()
            enough.wait(60)

        # while one thread is told that there is none, another one begins to import it ...
        thread = threading.Thread(target=without_jax, args=(look,))
        thread.start()
        looking.wait(60)
        assert len(got) == 1 and "jax" not in sys.modules
        other = threading.Thread(target=lambda: got.append(__import__("jax")))
        other.start()
        assert importing.wait(60)
        # ... and goes on when the first one has left
        enough.set()
        thread.join()
        assert "jax" in sys.modules
        try:
            without_jax(lambda: __import__("jax.part"))
        except ImportError:
            pass
        else:
            raise AssertionError("a part was imported here while another thread imports the whole")
        go_on.set()
        other.join()
        without_jax(lambda: __import__("jax.part"))
        assert got[1].done and sys.modules["jax"] is got[1]
        assert without_jax(lambda: __import__("jax")) is got[1]
    """)


def test_a_module_made_by_hand_is_not_waited_for(monkeypatch):
    """It has no spec, which says of others that they are being imported."""
    monkeypatch.setitem(sys.modules, "jax", types.ModuleType("jax"))
    assert not jaxlib_versions._is_being_imported("jax")


@needs_jax
def test_jax_is_imported_while_another_thread_reads_arrays():
    run("""
        import os, sys, threading, warnings
        os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"
        warnings.simplefilter("ignore")
        import numpy as np, phalanx
        import phalanx.numpy as jnp

        f = phalanx.pmap(lambda x: x - phalanx.lax.pmean(x, "i"), axis_name="i")
        x = np.arange(16, dtype=np.float32).reshape(8, 2)
        wrong, rounds, stop = [], [], threading.Event()

        def read():
            try:
                while not stop.is_set():
                    y = f(x)
                    np.testing.assert_array_equal(y[7], [7, 7])
                    np.testing.assert_array_equal(y.addressable_shards[0].data, [[-7, -7]])
                    np.testing.assert_array_equal(jnp.from_dlpack(x[0]), x[0])
                    rounds.append("jax" in sys.modules)
            except BaseException as e:
                wrong.append(e)

        readers = [threading.Thread(target=read) for _ in range(3)]
        for reader in readers:
            reader.start()
        while len(rounds) < 20 and not wrong:
            pass
        assert not any(rounds[:20])
        import jax.numpy
        assert float(jax.jit(lambda x: x.sum())(x)) == x.sum()
        seen = len(rounds)
        while len(rounds) < seen + 20 and not wrong:
            pass
        stop.set()
        for reader in readers:
            reader.join()
        assert not wrong, wrong
    """)


@needs_jax
@pytest.mark.parametrize("first", ["jax", "phalanx"])
def test_both_compute_in_one_process_whichever_comes_first(first):
    second = {"jax": "phalanx", "phalanx": "jax"}[first]
    run(f"""
        import os
        os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"
        import warnings
        warnings.simplefilter("ignore")
        import numpy as np
        import {first}, {second}

        def step(library):
            jnp = library.numpy
            f = library.pmap(lambda x: x / library.lax.psum(jnp.sin(x), "i"), axis_name="i")
            return f(np.arange(1.0, 9.0, dtype=np.float32))

        import jax.numpy, phalanx.numpy
        for _ in range(3):
            a, b = step({first}), step({second})
            np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-6)
        g = {first}.grad(lambda x: (x ** 3).sum())(np.arange(3.0, dtype=np.float32))
        h = {second}.grad(lambda x: (x ** 3).sum())(np.arange(3.0, dtype=np.float32))
        np.testing.assert_allclose(np.asarray(g), np.asarray(h))
    """)


@needs_jax
def test_arrays_are_exchanged_through_numpy_and_dlpack_both_ways():
    run("""
        import numpy as np
        import jax, phalanx
        import jax.numpy, phalanx.numpy
        host = np.arange(6, dtype=np.float32).reshape(2, 3)
        ours, theirs = phalanx.numpy.array(host), jax.numpy.array(host)
        np.testing.assert_array_equal(jax.numpy.from_dlpack(ours), host)
        np.testing.assert_array_equal(phalanx.numpy.from_dlpack(theirs), host)
        np.testing.assert_array_equal(jax.numpy.asarray(np.asarray(ours)) + 1, host + 1)
        np.testing.assert_array_equal(phalanx.numpy.asarray(np.asarray(theirs)) + 1, host + 1)
        np.testing.assert_array_equal(phalanx.numpy.asarray(theirs) + 1, host + 1)
        assert isinstance(phalanx.numpy.asarray(theirs), phalanx.Array)
        assert not isinstance(ours, jax.Array) and not isinstance(theirs, phalanx.Array)
    """)
