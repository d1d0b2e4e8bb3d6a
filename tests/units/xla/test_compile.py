"""Compiled programs: layout of outputs, donation, options, errors, many launches."""

import itertools
import os
import re
import threading

import numpy as np
import pytest

import phalanx
from phalanx.base.errors import DeletedArray, OutOfMemory, RefusedOption, RuntimeFailure
from phalanx.core.primitive import REGISTRY, Primitive
from phalanx.core.types import ArrayType
from phalanx.spmd.layout import from_axes
from phalanx.spmd.named import P
from phalanx.spmd.plan import Plan
from phalanx.spmd.sharding import Sharding
from phalanx.xla import compile, executables, topology
from phalanx.xla.flight import WINDOW, in_flight
from phalanx.xla.jaxlib_versions import xc
from phalanx.xla.lower import build

F = np.dtype("f4")
X = np.arange(64, dtype=F).reshape(8, 8)
T = ArrayType((8, 8), F)
MESH = (("m0", 2), ("m1", 2), ("m2", 2))
ALL = ("m0", "m1", "m2")
ROWS = (ALL,)


def mean_over_devices(b, x):
    def body(b, x):
        (total,) = b.all_reduce([x], (tuple(range(8)),), lambda b, x, y: b.add(x, y))
        return [b.multiply(total, b.constant(0.125, F, (1, 8)))]

    return b.manual_computation([x], [ROWS], [ROWS], [T], body)


def test_the_partitioner_chooses_output_layouts(backend, devices):
    def emit(b, x):
        total = b.reduce([x], [b.constant(0, F)], (0, 1), lambda b, x, y: b.add(x, y))
        return [b.add(x, x), b.transpose(x, (1, 0)), b.slice(x, (1, 0), (8, 8), (1, 1)), *total]

    types = [T, T, ArrayType((7, 8), F), ArrayType((), F)]
    wants = [X + X, X.T, X[1:], X.sum()]
    for dims in (ROWS, (("m1",), ("m0", "m2")), ((), ("m2", "m0"))):
        plan = Plan(devices, MESH, (P.of(dims),), (None,) * 4)
        executable = backend.compile(build([T], types, plan, emit))
        source = from_axes(devices, MESH, dims)
        outs = executable([backend.put(X, T, source)])
        assert executable.out_shardings[0] is source
        assert executable.out_shardings[1] is from_axes(devices, MESH, tuple((*dims, ())[1::-1]))
        for out, t, s, want in zip(outs, types, executable.out_shardings, wants, strict=True):
            np.testing.assert_allclose(backend.fetch(out, t, s), want)
            part = ArrayType(s.shard_shape(t.shape), F)
            for i, raw in enumerate(backend.shards(out, t, s)):
                got = backend.fetch(raw, part, Sharding(s.device_list[i : i + 1]))
                np.testing.assert_allclose(got, want[s.indices(t.shape)[i]])


def test_output_layouts_that_are_asked_for(backend, devices):
    dims = ((), ("m1",))
    plan = Plan(devices, MESH, (P(ALL),), (P.of(dims), P()))
    executable = backend.compile(build([T], [T, T], plan, lambda b, x: [b.negate(x), x]))
    a, copies = executable([backend.put(X, T, from_axes(devices, MESH, ROWS))])
    first, second = executable.out_shardings
    assert first is from_axes(devices, MESH, dims) and second is Sharding(devices)
    np.testing.assert_array_equal(backend.fetch(a, T, first), -X)
    np.testing.assert_array_equal(backend.fetch(copies, T, second), X)


def test_a_layout_that_was_not_asked_for_is_an_error(backend, devices):
    """As an option of a plugin's compiler brings it: the array would be made of other parts."""
    plan = Plan(devices, MESH, (P(ALL),), (P(ALL),))
    lowered = build([T], [T], plan, lambda b, x: [b.negate(x)])
    loaded = backend.compile(lowered)._loaded
    assert executables.checked_outputs(lowered, loaded.get_output_shardings())[0].tiles == (8,)
    whole = build([T], [T], Plan(devices, MESH, (P(ALL),), (P(),)), lambda b, x: [b.negate(x)])
    chosen = backend.compile(whole)._loaded.get_output_shardings()
    with pytest.raises(RuntimeFailure, match=r"result 0 into \(1,\) parts where \(8,\) were asked"):
        executables.checked_outputs(lowered, chosen)


def test_no_outputs_and_no_inputs(backend, devices, one):
    for plan in (Plan(one.device_list), Plan(devices, MESH)):
        assert backend.compile(build([], [], plan, lambda b: []))([]) == []
    plan = Plan(devices, MESH, (), (None,))
    executable = backend.compile(build([], [T], plan, lambda b: [b.constant(2, F, (8, 8))]))
    (out,) = executable([])
    assert (backend.fetch(out, T, executable.out_shardings[0]) == 2).all()


def test_some_of_the_devices_in_another_order(backend, devices):
    chosen = (devices[5], devices[2])
    plan = Plan(chosen, (("m0", 2),), (P("m0"),), (None,))

    def emit(b, x):
        def body(b, x):
            number = b.convert(b.partition_id(), F)
            return [b.add(x, b.broadcast_in_dim(number, (4, 8), ()))]

        dims = (("m0",),)
        return b.manual_computation([x], [dims], [dims], [T], body)

    executable = backend.compile(build([T], [T], plan, emit))
    sharding = Sharding(chosen, (2,))
    (out,) = executable([backend.put(X, T, sharding)])
    assert executable.out_shardings == (sharding,)
    np.testing.assert_array_equal(
        backend.fetch(out, T, sharding), X + np.repeat([0, 1], 4)[:, None]
    )


@pytest.mark.parametrize("many", [False, True])
def test_donation(backend, devices, one, many):
    plan = Plan(devices, MESH, (P(ALL), P(ALL)), (P(ALL),)) if many else Plan(one.device_list)
    sharding = from_axes(devices, MESH, ROWS) if many else one
    lowered = build([T, T], [T], plan, lambda b, x, y: [b.add(x, y)], donate=(0,))
    executable = backend.compile(lowered)
    a, b = (backend.put(X, T, sharding) for _ in range(2))
    (out,) = executable([a, b])
    np.testing.assert_array_equal(backend.fetch(out, T, sharding), X + X)
    assert backend.is_deleted(a) and not backend.is_deleted(b)
    assert executable.memory_analysis()["aliased"] == X.nbytes // (8 if many else 1)
    with pytest.raises(DeletedArray, match="Array has been deleted"):
        executable([a, b])
    with pytest.raises(DeletedArray, match="donated and passed a second time"):
        executable([b, b])
    assert not backend.is_deleted(b)
    (again,) = executable([b, out])
    np.testing.assert_array_equal(backend.fetch(again, T, sharding), 3 * X)


def test_a_failed_call_keeps_donated_arrays(backend, one):
    lowered = build([T, T], [T], Plan(one.device_list), lambda b, x, y: [b.add(x, y)], donate=(0,))
    executable = backend.compile(lowered)
    a, b = (backend.put(X, T, one) for _ in range(2))
    backend.delete(b)
    with pytest.raises(DeletedArray):
        executable([a, b])
    np.testing.assert_array_equal(backend.fetch(a, T, one), X)


def test_a_numpy_view_survives_donation(backend, one):
    executable = backend.compile(
        build([T], [T], Plan(one.device_list), lambda b, x: [b.negate(x)], donate=(0,))
    )
    raw = backend.put(X, T, one)
    view = backend.fetch(raw, T, one)
    executable([raw])
    np.testing.assert_array_equal(view, X)


def test_compiler_options(backend, one):
    lowered = build([T], [T], Plan(one.device_list), lambda b, x: [b.negate(x)])
    with pytest.raises(RefusedOption, match="refuses the option xla_no_such_flag=True"):
        backend.compile(lowered, {"xla_no_such_flag": True})
    with pytest.raises(ValueError, match="refuses the option xla_embed_ir_in_executable='perhaps'"):
        backend.compile(lowered, {"xla_embed_ir_in_executable": "perhaps"})
    good = backend.compile(lowered, {"xla_embed_ir_in_executable": True})
    np.testing.assert_array_equal(backend.fetch(good([backend.put(X, T, one)])[0], T, one), -X)


def test_reports(backend, one):
    lowered = build([T], [T], Plan(one.device_list), lambda b, x: [b.negate(x)], name="jit(f)")
    executable = backend.compile(lowered)
    assert "module @jit_f_" in executable.as_text() and "stablehlo.negate" in executable.as_text()
    assert "negate" in executable.hlo_text()
    assert executable.cost_analysis()["flops"] == 64
    assert executable.memory_analysis()["arguments"] == X.nbytes


def test_what_is_compiled_for_a_described_device_is_told_of(one, monkeypatch):
    """The memory that its description says counts; the host estimates what a compiler does not."""

    class Silent:
        def __init__(self, made):
            self.made = made

        def __getattr__(self, name):
            return getattr(self.made, name)

        def cost_analysis(self):
            raise RuntimeError("UNIMPLEMENTED")

    lowered = build([T], [T], Plan(one.device_list), lambda b, x: [b.negate(x)], name="f")
    made = Silent(compile.compile(lowered)._loaded)
    monkeypatch.setattr(compile, "is_described", lambda _: True)
    monkeypatch.setattr(compile, "_compile_only", lambda *_: made)
    monkeypatch.setitem(topology.sizes, one.device_list[0].client, 2 * X.nbytes)
    costs = compile.compile(lowered).cost_analysis()
    assert (costs["flops"], costs["bytes accessed"]) == (64, 2 * X.nbytes)
    topology.sizes[one.device_list[0].client] -= 1
    with pytest.raises(OutOfMemory, match=r"f needs .* and cpu has"):
        compile.compile(lowered)


def test_a_runtime_error_does_not_dump_the_program(backend, one):
    bad = lambda b, x: b.custom_call("no_such_function", [x], [T])  # noqa: E731
    with pytest.raises(RuntimeError, match="no_such_function") as caught:
        backend.compile(build([T], [T], Plan(one.device_list), bad))([backend.put(X, T, one)])
    assert "stablehlo" not in str(caught.value) and str(caught.value).count("\n") < 12


def test_thousands_of_collectives_from_several_threads(backend, devices):
    plan = Plan(devices, MESH, (P(ALL),), (P(ALL),))
    executable = backend.compile(build([T], [T], plan, mean_over_devices))
    sharding = from_axes(devices, MESH, ROWS)
    results = {}

    def work(name):
        x = backend.put(X + name, T, sharding)
        for _ in range(500):
            (x,) = executable([x])
        results[name] = backend.fetch(x, T, sharding)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    for name, got in results.items():
        want = np.broadcast_to((X + name).mean(0), X.shape)
        np.testing.assert_allclose(got, want, rtol=1e-5)
    assert len(results) == 4 and len(in_flight) <= WINDOW


def test_devices_may_wait_for_each_other_for_a_day(devices):
    options = xc.CompileOptions()
    assert options.executable_build_options.debug_options is not None
    in_protobuf = bytes([0x80, 0xA3, 0x05])  # 86,400 seconds
    assert in_protobuf in options.SerializeAsString()
    assert "terminate_timeout" not in os.environ.get("XLA_FLAGS", "")


@pytest.mark.parametrize(
    "lower",
    [
        lambda b, x: b.iota(np.dtype(bool), (2,), 0),
        lambda b, x: b.reshape(x, (3,)),
    ],
)
def test_operations_that_the_compiler_refuses_name_the_users_line(lower):
    prim = Primitive("refused_by_the_compiler", lambda x: x, lower)
    try:
        with pytest.raises(RuntimeFailure, match=r"compiler refuses .* at test_compile\.py:\d+"):
            phalanx.jit(lambda x: prim(x))(np.ones(2, np.float32))
    finally:
        del REGISTRY[prim.name]


@pytest.mark.parametrize(("size", "in_turn"), [(16, True), (64, False)])
def test_what_small_arrays_wait_for_comes_just_before(size, in_turn):
    """Where many operations wait, the runtime wakes another thread for them."""
    xs = [np.eye(size, dtype=np.int32)] * 4
    made = phalanx.jit(lambda xs: [x @ x @ x for x in xs]).lower(xs).compile().as_text()
    products = re.findall(r"%(\S+) = \S+ dot\(%(\S+),", made)
    after = [operand == before for (before, _), (_, operand) in itertools.pairwise(products)]
    assert len(products) == 8
    assert (sum(after) == 4) == in_turn
