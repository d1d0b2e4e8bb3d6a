"""Python called from programs: with which values, how often, and in which order."""

import functools
import gc
import threading
import weakref
from contextlib import nullcontext

import numpy as np
import pytest

import phalanx as px
import phalanx.numpy as jnp
from phalanx import debug, lax
from tests.sending import devices_that_send

XS = np.arange(4, dtype=np.float32)
EAGER_AND_COMPILED = pytest.mark.parametrize("how", [lambda f: f, px.jit], ids=["eager", "jit"])


@pytest.fixture(autouse=True, params=["calling", "sending"])
def _devices(request):
    """Devices that call Python, as CPUs and GPUs do, or ones that send and receive, as TPUs."""
    with devices_that_send() if request.param == "sending" else nullcontext():
        yield


@pytest.fixture
def lines(capfd):
    """What has been printed since the last call, a list of lines."""
    return lambda: capfd.readouterr().out.splitlines()


@pytest.fixture
def log():
    """A list, and a function that adds an array to it as Python numbers."""
    seen = []
    return seen, lambda x: seen.append(x.tolist())


# ---- debug.print --------------------------------------------------------------------------------


@EAGER_AND_COMPILED
def test_print_fills_in_fields(how, lines):
    def f(x, tree):
        debug.print("{0} {1:.1f} {name} {tree[a]} {{}}", x, 1.25, name="n", tree=tree)

    how(f)(np.int32([1, 2]), {"a": np.float32(3)})
    assert lines() == ["[1 2] 1.2 n 3.0 {}"]


def test_options_may_be_given_in_a_call_of_their_own(lines, log, caplog):
    seen, keep = log

    @px.jit
    def f(x):
        debug.print(ordered=True)("{} {ordered}", x, ordered=x + 1)
        debug.callback(ordered=True)(lambda x, ordered: keep(x + ordered), x, ordered=x)
        debug.log("{x}", x=x)
        return debug.log(skip_format_check=True)("{}", -x)

    with caplog.at_level("INFO", logger="phalanx.debug"):
        f(np.int32(2))
        px.effects_barrier()
    assert (lines(), seen, sorted(caplog.messages)) == (["2 3"], [4], ["-2", "2"])
    for one in (debug.print, debug.log, debug.callback):
        with pytest.raises(NotImplementedError, match=r"partitioned=True .*shard_map"):
            one("{}", XS, partitioned=True)
    with pytest.raises(IndexError, match=r"debug.log: '{}' has field 0"):
        debug.log("{}")


def test_print_once_under_derivatives(lines):
    def f(x):
        debug.print("x={}", x)
        return jnp.sin(x) * x

    for g in (px.grad(f), px.jit(px.grad(f)), px.grad(px.jit(f)), lambda x: px.jvp(f, (x,), (x,))):
        g(1.5)
        assert lines() == ["x=1.5"]
    px.hessian(f)(1.5)
    assert lines() == ["x=1.5"]


def test_print_names_the_lane(lines):
    def f(x):
        debug.print("{}", x)
        return x

    def g(x):
        debug.print("here")
        return lax.psum(x, "i")

    px.vmap(f)(XS[:2])
    assert lines() == ["[lane 0] 0.0", "[lane 1] 1.0"]
    px.jit(px.vmap(px.vmap(f), axis_name="row"))(XS.reshape(2, 2))
    assert lines() == [f"[row={i}, lane {j}] {2.0 * i + j}" for i in (0, 1) for j in (0, 1)]
    px.vmap(g, axis_name="i")(XS[:3])
    assert lines() == [f"[i={i}] here" for i in range(3)]


@pytest.mark.spmd
@pytest.mark.parametrize("count", [4, 11])
def test_every_lane_of_pmap_speaks_once(count, lines):
    def f(x):
        total = lax.psum(x, "i")
        debug.print("{} of {}", x, total)
        return total

    def unnamed(x):
        debug.print("{}", x)
        return x

    xs = np.arange(count)
    px.pmap(f, axis_name="i")(xs)
    assert sorted(lines()) == sorted(f"[i={i}] {i} of {xs.sum()}" for i in xs)
    px.pmap(unnamed)(xs)
    assert sorted(lines()) == sorted(f"[lane {i}] {i}" for i in xs)
    with px.disable_jit():
        px.pmap(f, axis_name="i")(xs)
    assert sorted(lines()) == sorted(f"[i={i}] {i} of {xs.sum()}" for i in xs)


def test_a_mapped_function_that_is_printed_around(lines):
    @px.jit
    def f(x):
        debug.print("before {}", x[0], ordered=True)
        y = px.pmap(lambda x: x * 2)(x)
        debug.print("after {}", y[1], ordered=True)
        return y

    np.testing.assert_array_equal(f(XS), XS * 2)
    assert lines() == ["before 0.0", "after 2.0"]


def test_ordered_lanes_on_one_device(lines):
    def f(x):
        debug.print("{} and", x, ordered=True)
        debug.print("{} again", x, ordered=True)
        return x

    px.pmap(f, axis_name="i", devices=px.devices()[:1])(np.arange(2))
    wanted = ["[i=0] 0 and", "[i=1] 1 and", "[i=0] 0 again", "[i=1] 1 again"]
    assert lines() == wanted
    px.jit(px.vmap(f, axis_name="i"))(np.arange(2))
    assert lines() == wanted


# ---- loops and branches -------------------------------------------------------------------------


def speak(log, name, x, ordered=True):
    debug.callback(lambda x: log.append((name, float(x))), x, ordered=ordered)
    return x


@EAGER_AND_COMPILED
def test_ordered_calls_in_loops_and_branches(how):
    def program(x, log):
        def step(c, i):
            c = speak(log, "step", c)
            c = lax.cond(i % 2 == 0, lambda c: speak(log, "even", c), lambda c: c, c)
            return c + 1, c

        x = speak(log, "start", x)
        x, _ = lax.scan(step, x, np.arange(3))
        x = px.jit(lambda x: speak(log, "call", x))(x)
        x = lax.while_loop(
            lambda c: speak(log, "test", c) < 5, lambda c: speak(log, "body", c) + 1, x
        )
        return speak(log, "end", x)

    found, wanted = [], []
    assert float(how(lambda x: program(x, found))(np.float32(0))) == 5.0
    px.effects_barrier()
    with px.disable_jit():
        program(np.float32(0), wanted)
    assert found == wanted
    assert [name for name, _ in found] == [
        "start", "step", "even", "step", "step", "even", "call",
        "test", "body", "test", "body", "test", "end",
    ]  # fmt: skip


def test_calls_in_loops_that_are_differentiated():
    def program(x, log):
        def step(c, w):
            speak(log, "fixed", x, ordered=False)
            return jnp.sin(c) * speak(log, "step", c, ordered=False), w

        c, _ = lax.scan(step, x, np.ones(2, np.float32))
        return c

    found = []
    px.jit(px.grad(lambda x: program(x, found)))(np.float32(1))
    assert sorted(name for name, _ in found) == ["fixed"] * 2 + ["step"] * 2
    found.clear()
    body = lambda c: speak(found, "body", c) + 1  # noqa: E731
    test = lambda c: speak(found, "test", c) < 2  # noqa: E731
    px.jvp(lambda x: lax.while_loop(test, body, x), (0.0,), (1.0,))
    assert found == [("test", 0), ("body", 0), ("test", 1), ("body", 1), ("test", 2)]


@pytest.mark.parametrize("nested", [lambda f: f, px.jit], ids=["plain", "jit"])
def test_what_is_computed_again_is_not_called_again(nested):
    log = []

    def count(x):
        log.append("io")
        return x + 1

    def block(x):
        y = jnp.sin(speak(log, "start", x))
        y = lax.cond(x > -9, lambda y: jnp.exp(speak(log, "cond", y)), lambda y: y, y)
        return jnp.cos(y) * px.io_callback(count, px.ShapeDtypeStruct((), "float32"), np.float32(1))

    def f(x):
        return lax.scan(lambda c, _: (px.checkpoint(nested(block))(c), None), x, length=2)[0]

    px.jit(px.grad(f))(np.float32(1))
    names = sorted(entry if entry == "io" else entry[0] for entry in log)
    assert names == ["cond"] * 2 + ["io"] * 2 + ["start"] * 2


def test_only_the_lanes_that_take_a_branch_speak(lines):
    def f(x):
        def inner(x):
            debug.print("{}", x)
            return -x

        return lax.cond(x > 1, px.jit(inner), lambda x: x, x)

    for g in (px.vmap(f), px.jit(px.vmap(f)), px.vmap(px.grad(f))):
        g(XS)
        assert lines() == ["[lane 2] 2.0", "[lane 3] 3.0"]
    np.testing.assert_array_equal(px.vmap(f)(XS), [0, 1, -2, -3])


def test_only_the_lanes_whose_loop_goes_on_speak():
    found = []

    def f(n):
        body = lambda i: speak(found, "body", i, ordered=False) + 1  # noqa: E731
        test = lambda i: speak(found, "test", i, ordered=False) < n  # noqa: E731
        return lax.while_loop(test, body, jnp.float32(0))

    np.testing.assert_array_equal(px.jit(px.vmap(f))(XS[:3]), XS[:3])
    wanted = [("test", i) for n in range(3) for i in range(n + 1)]
    wanted += [("body", i) for n in range(3) for i in range(n)]
    assert sorted(found) == sorted(wanted)


@pytest.mark.spmd
def test_lanes_of_pmap_under_conditions(lines):
    def f(x):
        lax.cond(x % 2 == 0, lambda: debug.print("even {}", x), lambda: None)
        return lax.psum(x, "i")

    px.pmap(f, axis_name="i")(np.arange(6))
    assert sorted(lines()) == [f"[i={i}] even {i}" for i in (0, 2, 4)]


# ---- results ------------------------------------------------------------------------------------


def like(x):
    return px.ShapeDtypeStruct(x.shape, x.dtype)


@pytest.mark.parametrize("dtype", ["bool_", "int8", "uint16", "bfloat16", "float16", "complex64"])
def test_every_dtype_comes_and_goes(dtype):
    x = np.array([0, 1, 1]).astype(getattr(jnp, dtype))
    f = px.jit(lambda x: px.pure_callback(lambda x: x[::-1], like(x), x))
    np.testing.assert_array_equal(np.asarray(f(x)), x[::-1])


@EAGER_AND_COMPILED
def test_trees_and_numbers_come_back(how):
    def python(a, *, b):
        assert isinstance(a[0], px.Array) and isinstance(b, px.Array)
        assert not np.asarray(a[0]).flags.writeable
        return {"sum": (a[0] + b).sum(), "n": 3, "x": 2, "flag": True}

    def f(a, b):
        kinds = {"sum": "float32", "n": "int32", "x": "float32", "flag": "bool"}
        out = {k: px.ShapeDtypeStruct((), d) for k, d in kinds.items()}
        return px.pure_callback(python, out, [a], b=b)

    found = px.device_get(how(f)(XS, XS))
    assert found == {"sum": 12.0, "n": 3, "x": 2.0, "flag": True}


@EAGER_AND_COMPILED
def test_results_are_compared_by_their_leaves(how):
    def f(x):
        out = {"y": [like(x)], "z": like(x)}
        return px.pure_callback(lambda x: (x[0], {"other": 2 * x[0]}), out, [x])

    found = px.device_get(how(f)(XS))
    assert list(found) == ["y", "z"] and len(found["y"]) == 1
    np.testing.assert_array_equal([found["y"][0], found["z"]], [XS, 2 * XS])


@EAGER_AND_COMPILED
def test_functions_of_arrays_are_called_back(how):
    def python(x):
        return jnp.sin(x).at[0].set(7) + np.cos(x)

    found = how(lambda x: px.pure_callback(python, like(x), x))(XS)
    expected = np.sin(XS) + np.cos(XS)
    expected[0] = 7 + np.cos(XS[0])
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_debug_callbacks_are_given_arrays_too():
    seen = []

    def python(x, text):
        seen.append((x.at[0].set(7), text))

    px.jit(lambda x: debug.callback(python, x, "as it is"))(XS)
    px.effects_barrier()
    ((found, text),) = seen
    assert isinstance(found, px.Array) and text == "as it is"
    np.testing.assert_array_equal(found, [7, *XS[1:]])


def test_arguments_outlive_the_call():
    kept = []
    f = px.jit(lambda x: debug.callback(kept.append, x * 2))
    for i in range(5):
        f(XS + i)
    np.testing.assert_array_equal(kept, [2 * (XS + i) for i in range(5)])


METHODS = {
    "sequential": [((), ())] * 4,
    "expand_dims": [((4,), (1,))],
    "broadcast_all": [((4,), (4,))],
    "legacy_vectorized": [((4,), ())],
}


@pytest.mark.parametrize("method", METHODS)
def test_vmap_methods(method):
    shapes = []

    def python(x, y):
        shapes.append((x.shape, y.shape))
        return x + y

    def f(x, y):
        return px.pure_callback(python, like(x), x, y, vmap_method=method)

    for how in (lambda f: f, px.jit):
        shapes.clear()
        found = how(px.vmap(f, in_axes=(0, None)))(XS, np.float32(1))
        np.testing.assert_array_equal(found, XS + 1)
        assert shapes == METHODS[method]
    grid = px.vmap(px.vmap(f, in_axes=(None, 0)), in_axes=(0, None))
    if method != "legacy_vectorized":
        np.testing.assert_array_equal(grid(XS, XS[:3]), XS[:, None] + XS[:3])


def test_io_callback_in_lanes_and_turns(log):
    seen, add = log

    def count(x):
        add(x)
        return np.int32(len(seen))

    def f(x):
        return px.experimental.io_callback(count, px.ShapeDtypeStruct((), "int32"), x)

    np.testing.assert_array_equal(px.jit(px.vmap(f))(XS), [1, 2, 3, 4])
    _, rows = px.jit(lambda: lax.scan(lambda c, x: (c, f(x)), 0, XS))()
    np.testing.assert_array_equal(rows, [5, 6, 7, 8])
    px.jit(lambda x: (f(x), None)[1])(XS[3])  # nothing needs the result
    assert seen == [*XS.tolist() * 2, 3.0]


@pytest.mark.spmd
def test_pure_callback_on_devices_between_collectives():
    def f(x):
        y = px.pure_callback(lambda x: x * 10, like(x), lax.pmax(x, "i") + x)
        return lax.psum(y, "i")

    np.testing.assert_array_equal(px.pmap(f, axis_name="i")(XS), [180.0] * 4)
    xs = np.arange(11, dtype=np.float32)
    np.testing.assert_array_equal(px.pmap(f, axis_name="i")(xs), [10 * (110 + 55.0)] * 11)
    with px.disable_jit():
        np.testing.assert_array_equal(px.pmap(f, axis_name="i")(XS), [180.0] * 4)


def test_values_that_callbacks_depend_on_can_be_cut_from_derivatives():
    def f(x):
        y = px.pure_callback(np.cos, like(x), lax.stop_gradient(x))
        return x * y

    x = np.float32(0.5)
    assert float(px.jit(px.grad(f))(x)) == pytest.approx(np.cos(0.5), rel=1e-5)


# ---- life ---------------------------------------------------------------------------------------


def test_a_function_lives_as_long_as_the_program():
    class Python:
        def __call__(self, x):
            return x + 1

    python = Python()
    alive = weakref.ref(python)
    call = functools.partial(lambda python, x: px.pure_callback(python, like(x), x), python)
    compiled = px.jit(call).lower(XS).compile()
    del python, call
    gc.collect()
    np.testing.assert_array_equal(compiled(XS), XS + 1)
    del compiled
    gc.collect()
    assert alive() is None


def test_the_barrier_waits_for_programs_of_other_threads():
    started, go, done = threading.Event(), threading.Event(), []

    def python(x):
        started.set()
        go.wait(10)
        done.append(1)

    f = px.jit(lambda x: debug.callback(python, x))
    thread = threading.Thread(target=f, args=(XS,))
    thread.start()
    started.wait(10)
    threading.Timer(0.05, go.set).start()
    px.effects_barrier()
    assert done == [1]
    thread.join()


def test_a_prompt_sees_local_variables(monkeypatch, lines):
    answers = iter(["print(x + 1, y['a'])"])

    def answer(_):
        try:
            return next(answers)
        except StopIteration:
            raise EOFError from None

    monkeypatch.setattr("builtins.input", answer)

    @px.jit
    def f(x):
        y = {"a": x * 3}
        text = "not an array"  # noqa: F841
        debug.breakpoint()
        return y

    f(np.float32(2))
    assert "3.0 6.0" in lines()
