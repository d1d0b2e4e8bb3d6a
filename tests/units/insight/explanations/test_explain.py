"""``explain``: what its reports say of programs."""

import json

import numpy as np
import pytest

import phalanx as ph
import phalanx.numpy as jnp
from phalanx import lax

W, X = np.ones((64, 32), np.float32), np.ones((8, 16, 64), np.float32)


def step(w, x):
    grads = ph.grad(lambda w: jnp.mean((x @ w) ** 2))(w)
    return w - lax.pmean(grads, "batch")


@pytest.fixture(scope="module")
def report():
    return ph.explain(ph.pmap(step, "batch", in_axes=(None, 0), out_axes=None), on="v5p")(W, X)


def rows(report, part):
    return report[part].as_json()["rows"]


def test_a_step_is_explained(report):
    facts = report["summary"].as_json()["facts"]
    assert facts["times are for"] == "TPU v5p"
    assert 2 * 2 * 8 * 16 * 64 * 32 < facts["FLOPs"] < 2.3 * 2 * 8 * 16 * 64 * 32
    hottest = max(rows(report, "hottest lines"), key=lambda row: row["FLOPs"])
    assert "x @ w" in hottest["source"] and hottest["line"].startswith("test_explain.py:")
    assert {row["array"] for row in rows(report, "shardings")} == {"w", "x", "result 0"}
    assert rows(report, "lanes")[0]["lanes"] == 8
    made = {row["instruction"] for row in rows(report, "compiled instructions")}
    assert "dot" in made or "fusion" in made


@pytest.mark.parametrize(
    "f, shape, limit, advice",
    [
        (jnp.sin, (2**24,), "memory-bound", "fewer large intermediate arrays"),
        (jnp.matmul, (4096, 4096), "compute-bound", "bfloat16"),
        (jnp.sin, (8,), "memory-bound", "do more in each call"),  # starting it takes longer
    ],
)
def test_a_verdict_names_the_limit_and_what_to_do(f, shape, limit, advice):
    x = ph.ShapeDtypeStruct(shape, "float32")
    verdict = ph.explain(lambda x: f(x, x) if f is jnp.matmul else f(x), on="v5p")(x).verdict
    assert verdict.startswith(f"It is {limit}") and advice in verdict


@pytest.mark.skipif(ph.device_count() != 8, reason="of eight devices")
def test_its_collective_is_told(report):
    (row,) = rows(report, "collectives")
    assert (row["operation"], row["axes"], row["devices"]) == ("all-reduce", "batch", 8)
    assert (row["bytes"], row["runs"], row["requested by"]) == (W.nbytes, 1, "the program")
    assert row["transfer"] == pytest.approx(2 * W.nbytes * 7 / 8 / 600e9)  # 2x2x2


@pytest.mark.skipif(ph.device_count() != 8, reason="of eight devices")
def test_what_the_compiler_puts_in_is_told():
    mesh = ph.make_mesh((8,), ("data",))
    x = ph.device_put(np.ones((16, 8), np.float32), ph.NamedSharding(mesh, ph.P("data")))
    report = ph.explain(lambda x: jnp.sum(x, axis=0))(x)
    assert {row["requested by"] for row in rows(report, "collectives")} == {"the compiler"}
    lie = {row["array"]: row for row in rows(report, "shardings")}
    assert lie["x"]["bytes on a device"] == 16 * 8 * 4 / 8 and "data" in lie["x"]["sharding"]


@pytest.mark.skipif(ph.device_count() == 1, reason="one device exchanges nothing")
def test_collectives_in_a_loop_count_for_each_run():
    def f(x):
        return lax.scan(lambda c, _: (lax.psum(c, "i") / 8, None), x, None, length=5)[0]

    found = rows(ph.explain(ph.pmap(f, "i"))(np.ones((8, 4), np.float32)), "collectives")
    assert [row["runs"] for row in found] == [5]


@pytest.mark.skipif(ph.device_count() == 1, reason="one device exchanges nothing")
def test_collectives_in_a_condition_are_counted():
    def f(x):
        return lax.while_loop(lambda c: lax.pmax(c[0], "i") < 9, lambda c: c + 1, x)

    found = rows(ph.explain(ph.pmap(f, "i"))(np.ones((8, 4), np.float32)), "collectives")
    assert [row["runs"] for row in found] == [1]


@pytest.mark.skipif(ph.device_count() == 1, reason="one device exchanges nothing")
def test_bytes_of_collectives_are_those_of_the_program():
    x = jnp.ones((8, 100), jnp.bfloat16)
    found = rows(ph.explain(ph.pmap(lambda x: lax.psum(x, "i"), "i"))(x), "collectives")
    assert [row["bytes"] for row in found] == [200]  # CPUs add float32


@pytest.mark.skipif(ph.device_count() != 8, reason="of eight devices")
def test_who_asked_for_a_collective():
    groups = [[0, 1, 2, 3], [4, 5, 6, 7]]
    summed = ph.pmap(lambda x: lax.psum(x, "i", axis_index_groups=groups), "i")
    (row,) = rows(ph.explain(summed)(np.ones((8, 4), np.float32)), "collectives")
    assert (row["axes"], row["requested by"]) == ("i", "the program")
    inside = ph.pmap(lambda x: lax.psum(x, "j"), "j")
    nested = ph.pmap(lambda x: inside(x) + x, "i")
    found = rows(ph.explain(nested)(np.ones((4, 2, 4), np.float32)), "collectives")
    by = {row["operation"]: row["requested by"] for row in found}
    assert by == {"all-reduce": "the program", "all-gather": "a mapped function"}

    def scoped(x):
        with ph.named_scope("network/dense"):
            return lax.psum(x, "i")

    (row,) = rows(ph.explain(ph.pmap(scoped, "i"))(np.ones((8, 4), np.float32)), "collectives")
    assert row["requested by"] == "the program" and row["line"].endswith(" (scoped)")


@pytest.mark.parametrize(
    "f, args",
    [
        (lambda: 3.0, ()), (lambda x: x, (1.0,)), (lambda x: x[:0], (jnp.ones(3),)),
        (lambda x: {"a": x, "b": (x.real, None)}, (jnp.ones(2, complex),)),
        (ph.vmap(ph.grad(jnp.sin)), (jnp.ones(3),)), (ph.jit(jnp.cumsum), (jnp.ones(3, "int8"),)),
        (lambda k: ph.random.normal(k, (3,)), (ph.random.key(0),)),
        (lambda x: lax.while_loop(lambda c: c < 9, lambda c: c + x, x), (1,)),
    ],
)  # fmt: skip
def test_any_function_is_explained(f, args):
    report = ph.explain(f)(*args)
    assert "summary" in str(report)
    json.loads(report.json())
    assert report.html().startswith("<!doctype html>")


def test_what_does_not_trace_is_not_explained():
    with pytest.raises(ph.errors.ConcretizationTypeError):
        ph.explain(lambda x: float(x))(1.0)
    with pytest.raises(ValueError, match="Did you mean 'v5p'"):
        ph.explain(jnp.sin, on="v5pp")
    with pytest.raises(TypeError, match="a function is needed, got int"):
        ph.explain(3)


def test_lines_are_those_of_the_code_not_of_what_a_cache_has(tmp_path):
    def compiled(lines):
        space = {}
        exec(compile("\n" * lines + "def f(x): return x @ x\n", "scale.py", "exec"), space)
        return ph.jit(space["f"]).lower(jnp.ones((8, 8))).compile()

    kept = {"compilation_cache_dir": str(tmp_path), "persistent_cache_min_compile_time_secs": 0}
    for name, value in kept.items():
        ph.config.update(name, value)
    try:
        for lines in (2, 7):
            ph.clear_caches()
            made = compiled(lines).runtime_executable()
            assert (made.read is not None) == (lines == 7)
            assert {k.line for k in made.kernels()} == {f"scale.py:{lines + 1} (f)"}
    finally:
        ph.config.update("compilation_cache_dir", None)
        ph.config.update("persistent_cache_min_compile_time_secs", 0.0)


def test_what_nothing_needs_is_not_counted():
    def loss(w, x):
        return jnp.sum(ph.checkpoint(lambda w, x: jnp.sin(jnp.sin(x @ w) @ w))(w, x))

    args = ph.ShapeDtypeStruct((16, 16), "float32"), ph.ShapeDtypeStruct((8, 16), "float32")
    facts = ph.explain(ph.jit(ph.grad(loss)))(*args)["summary"].as_json()["facts"]
    products = 5 * 2 * 8 * 16 * 16  # two to compute again, three backward; the value is not asked
    assert products < facts["FLOPs"] < 1.1 * products


def test_a_part_prints_as_it_stands_in_the_report():
    report = ph.explain(ph.jit(lambda x: x * 2))(X)
    assert str(report["summary"]).startswith("summary\n  program\n    devices")
    assert str(report["summary"]) in str(report)


def test_times_are_those_of_the_devices_unless_others_are_named():
    x = jnp.ones((64, 64))
    here = ph.explain(lambda x: x @ x)(x)["summary"].as_json()["facts"]
    there = ph.explain(lambda x: x @ x, on="v5e")(x)["summary"].as_json()["facts"]
    assert there["times are for"] == "TPU v5e" and here["times are for"].startswith("this CPU")
    assert 0 < there["computing"] < here["computing"]
