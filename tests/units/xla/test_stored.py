"""Executables from the cache: when they are found, and that they are what compiling gives."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from phalanx.base.config import config
from phalanx.core.types import ArrayType
from phalanx.run.cache import cache
from phalanx.spmd.layout import from_axes
from phalanx.spmd.named import P
from phalanx.spmd.plan import Plan
from phalanx.xla import stored
from phalanx.xla.lower import build

F = np.dtype("f4")
X = np.arange(64, dtype=F).reshape(8, 8)
T = ArrayType((8, 8), F)
MESH = (("m0", 2), ("m1", 2), ("m2", 2))
ROWS = (("m0", "m1", "m2"),)
ROOT = Path(__file__).parents[3]


@pytest.fixture
def kept(tmp_path):
    """An empty cache."""
    before = config.compilation_cache_dir
    config.update("compilation_cache_dir", tmp_path)
    yield cache()
    config.update("compilation_cache_dir", before)


@pytest.fixture
def compiled(backend, monkeypatch):
    """compiled(lowered, options): the executable, and whether it was compiled or found."""
    calls = []
    original = stored.load_or_compile

    def counting(lowered, devices, settings, overrides, compile):
        def anew():
            calls.append(lowered)
            return compile()

        return original(lowered, devices, settings, overrides, anew)

    monkeypatch.setattr("phalanx.xla.compile.load_or_compile", counting)

    def compiled(lowered, options=None):
        before = len(calls)
        return backend.compile(lowered, options), len(calls) > before

    return compiled


def negated(one, name="f", donate=()):
    return build([T], [T], Plan(one.device_list), lambda b, x: [b.negate(x)], donate, name)


def test_the_second_one_is_found_and_is_the_same(kept, compiled, backend, one):
    first, new = compiled(negated(one, donate=(0,)))
    second, found = compiled(negated(one, donate=(0,)))
    assert new and not found and len(kept.entries()) == 1
    for executable in (first, second):
        raw = backend.put(X, T, one)
        np.testing.assert_array_equal(backend.fetch(executable([raw])[0], T, one), -X)
        assert backend.is_deleted(raw)
    assert first.hlo_text() == second.hlo_text() and first.as_text() == second.as_text()
    assert first.cost_analysis() == second.cost_analysis()
    assert first.memory_analysis() == second.memory_analysis()


@pytest.mark.spmd
def test_over_devices_with_layouts_that_the_partitioner_chose(kept, compiled, backend, devices):
    def made(layout):
        plan = Plan(devices, MESH, (P.of(layout),), (None, P()))
        return build([T], [T, T], plan, lambda b, x: [b.transpose(x, (1, 0)), b.negate(x)])

    (first, _), (second, new), (_, other) = (compiled(made(d)) for d in (ROWS, ROWS, ((), ())))
    assert not new and other
    assert first.out_shardings == second.out_shardings
    out = second([backend.put(X, T, from_axes(devices, MESH, ROWS))])
    for raw, sharding, want in zip(out, second.out_shardings, (X.T, -X), strict=True):
        np.testing.assert_array_equal(backend.fetch(raw, T, sharding), want)


def test_what_is_told_apart(kept, compiled, backend, one, devices, monkeypatch):
    assert compiled(negated(one))[1]
    assert compiled(negated(one, "g"))[1]  # profiles and errors show the name
    assert compiled(negated(one, donate=(0,)))[1]
    assert compiled(negated(one), {"xla_embed_ir_in_executable": True})[1]
    assert compiled(negated(one), {"xla_embed_ir_in_executable": False})[1]
    other = build([T], [T], Plan(devices[3:4]), lambda b, x: [b.negate(x)], name="f")
    assert compiled(other)[1]
    for patch in (
        lambda: monkeypatch.setattr(stored.version, "__version__", "0.0"),
        lambda: monkeypatch.setattr(stored, "host", lambda: ("another", "machine")),
        lambda: monkeypatch.setenv("LIBTPU_INIT_ARGS", "--flag"),
    ):
        patch()
        stored.surroundings.cache_clear()
        assert compiled(negated(one))[1] and not compiled(negated(one))[1]
    monkeypatch.undo()
    stored.surroundings.cache_clear()


def test_a_blob_that_the_runtime_refuses_is_replaced(kept, compiled, one):
    compiled(negated(one))
    (entry,) = kept.entries()
    kept.write(Path(entry.path).stem, b"not an executable")
    assert compiled(negated(one))[1]
    assert not compiled(negated(one))[1]


def test_switched_off_or_dumping_or_quick(kept, compiled, one, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setenv("XLA_FLAGS", "--xla_dump_to=x")  # too late for XLA itself
        assert all(compiled(negated(one))[1] for _ in range(2))
    config.update("persistent_cache_min_compile_time_secs", 1000)
    try:
        assert all(compiled(negated(one))[1] for _ in range(2))
    finally:
        config.update("persistent_cache_min_compile_time_secs", 0)
    config.update("compilation_cache_dir", None)
    assert all(compiled(negated(one))[1] for _ in range(2))
    assert kept.entries() == []


SCRIPT = """
import numpy as np, phalanx, phalanx.numpy as jnp
{comment}
f = phalanx.jit(lambda x: phalanx.pure_callback(lambda x: x + {n}, x, x) * 2)
print(f(np.float32([1])), jnp.sin(0.5), phalanx.vmap(jnp.cumsum)(np.ones((2, 3), 'f4')))
"""


def test_a_second_process_compiles_nothing(tmp_path):
    def entries(n, comment=""):
        done = subprocess.run(
            [sys.executable, "-c", SCRIPT.format(n=n, comment=comment)],
            env=os.environ | {"PHALANX_CACHE_DIR": str(tmp_path), "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout.startswith(f"[{2.0 * (1 + n):.0f}.] 0.4794"), done.stdout
        return {path.name: path.stat().st_mtime_ns for path in tmp_path.iterdir()}

    first = entries(1)
    second = entries(2, "# another comment\\n\\n")  # and another function that is called
    assert first and set(second) == set(first)
    assert all(second[name] > first[name] for name in first)  # found, so used later
