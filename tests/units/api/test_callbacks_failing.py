"""Exceptions in Python functions that programs call: they reach the caller, as themselves."""

import gc
import random
import signal
import threading
import traceback
from contextlib import nullcontext
from types import SimpleNamespace

import numpy as np
import pytest

import phalanx as px
import phalanx.numpy as jnp
from phalanx import debug, lax
from phalanx.api import callbacks
from phalanx.errors import DeviceError, RuntimeFailure
from tests.sending import devices_that_send

XS = np.arange(4, dtype=np.float32)
F = px.ShapeDtypeStruct((), "float32")


@pytest.fixture(autouse=True, params=["calling", "sending"])
def devices(request):
    """Devices that call Python, as CPUs and GPUs do, or ones that send and receive, as TPUs."""
    calling = request.param == "calling"
    with nullcontext() if calling else devices_that_send(busy=request.param == "busy"):
        yield


class Failure(Exception):
    pass


def failing_at(wanted, failures):
    """A function that raises at one argument, or at all, and keeps what it raised."""

    def python(x):
        if wanted is None or float(x) == wanted:
            failures.append(Failure(f"at {float(x)}"))
            raise failures[-1]
        return x

    return python


def lanes(python):
    def f(x):
        y = px.io_callback(python, F, lax.psum(x, "i") * 0 + x)
        return lax.psum(y, "i")

    return px.pmap(f, axis_name="i")


PROGRAMS = {
    "eager": lambda python: lambda x: px.io_callback(python, F, x[0]),
    "jit": lambda python: px.jit(lambda x: px.pure_callback(python, F, x[0])),
    "print": lambda python: px.jit(lambda x: debug.callback(python, x[0])),
    "vmap": lambda python: px.jit(px.vmap(lambda x: px.io_callback(python, F, x))),
    "scan": lambda python: px.jit(
        lambda x: lax.scan(lambda c, x: (c + px.io_callback(python, F, x), x), 0.0, x)
    ),
    "big": lambda python: px.jit(
        lambda x: px.io_callback(python, F, (jnp.ones((400, 400)) @ jnp.ones((400, 400)))[0, 0])
    ),
    "pmap": lanes,
}


@pytest.mark.spmd
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_exception_itself_is_raised(name):
    failures = []
    f = PROGRAMS[name](failing_at(400.0 if name == "big" else 0.0, failures))
    for _ in range(2):
        with pytest.raises(Failure) as found:
            px.block_until_ready(f(XS))
        assert found.value is failures[-1]
        frames = traceback.extract_tb(found.value.__traceback__)
        assert frames[-1].name == "python" and frames[-1].filename == __file__
    if name != "big":
        px.block_until_ready(f(XS + 5))  # and nothing is left of it


@pytest.mark.spmd
def test_of_several_devices_the_first_is_raised():
    failures = []
    with pytest.raises(Failure) as found:
        lanes(failing_at(None, failures))(np.arange(6, dtype=np.float32))
    assert found.value is failures[0]


def test_after_a_failure_nothing_is_called():
    seen = []

    def python(x):
        seen.append(float(x))
        raise Failure

    def f(x):
        y = px.io_callback(python, F, x, ordered=True)
        return px.io_callback(python, F, y + 1, ordered=True)

    with pytest.raises(Failure):
        px.jit(f)(np.float32(1))
    assert seen == [1.0]


@pytest.mark.spmd
@pytest.mark.parametrize("kind", ["bool", "int32", "float32"])
def test_loops_that_wait_for_a_result_end(kind):
    def python(i, x):
        if i > 2 and x == 1:
            raise Failure
        return np.asarray(0, kind)

    def f(x):
        def test(state):
            return lax.pmin(jnp.int32(state[1] < 1), "i") == 1

        def step(state):
            i, _ = state
            out = px.io_callback(python, px.ShapeDtypeStruct((), kind), i, x)
            return i + 1, out

        return lax.while_loop(test, step, (0, jnp.asarray(0, kind)))

    with pytest.raises(Failure):
        px.pmap(f, axis_name="i")(XS)


@pytest.mark.spmd
@pytest.mark.parametrize("size", [3, 11])
@pytest.mark.parametrize("loop", ["bound", "condition", "body", "unequal"])
def test_loops_that_are_as_long_as_a_result_says_end(size, loop):
    def python(x):
        raise Failure

    def call(x):
        shape = px.ShapeDtypeStruct((), "int32")
        return px.pure_callback(python, shape, x, vmap_method="sequential")

    def f(x):
        if loop == "bound":
            return lax.fori_loop(0, call(x), lambda i, y: jnp.sin(y) + i, 1.0)
        if loop == "condition":
            return lax.while_loop(lambda y: y < call(y), lambda y: y + 1, x)
        if loop == "body":
            return lax.while_loop(lambda y: y < 1000, lambda y: y + call(y), x)
        return lax.while_loop(lambda y: y != 7, call, x)

    with pytest.raises(Failure):
        px.pmap(f)(np.arange(size, dtype=np.int32))


@pytest.mark.spmd
def test_lanes_that_fill_no_device_call_functions():
    def f(x):
        return px.pure_callback(lambda x: x + 1, F, x, vmap_method="sequential")

    x = np.arange(11, dtype=np.float32)
    devices = px.devices()[:4]
    np.testing.assert_array_equal(px.pmap(f, devices=devices)(x), x + 1)


def test_interrupts_pass():
    def python(x):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        px.jit(lambda x: debug.callback(python, x))(XS)


class Late(Exception):
    pass


@pytest.fixture
def computing_between_calls():
    """A program that calls Python again and again, but computes for most of the time."""

    def step(state):
        i, x = state
        x = lax.fori_loop(0, 1000, lambda _, x: jnp.tanh(x), x)
        return i + 1, px.pure_callback(lambda x: x, F, x)

    f = px.jit(lambda n, x: lax.while_loop(lambda state: state[0] < n, step, (0, x))[1])
    f(1, XS[0])
    return lambda: f(100_000, XS[0])


@pytest.mark.parametrize(
    ("raised", "words"),
    [
        (KeyboardInterrupt(), r"\A\Z"),
        (SystemExit(3), r"\A3\Z"),
        (Late("by a second"), r"\Aby a second\Z|: .*Late: by a second\Z"),
    ],
)
@pytest.mark.parametrize("devices", ["calling"], indirect=True)  # others go on to the end
def test_a_signal_between_two_calls_interrupts_the_program(raised, words, computing_between_calls):
    """Python raises where a call begins, before anything of ours could catch it."""

    def handler(*_):
        raise raised

    before = signal.signal(signal.SIGALRM, handler)
    gc.disable()  # Hypothesis listens to it, and what is raised while it does is lost
    try:
        for i in range(8):
            signal.setitimer(signal.ITIMER_REAL, 0.02 + 0.0031 * i)
            with pytest.raises((type(raised), RuntimeFailure), match=f"(?s){words}") as found:
                computing_between_calls()
            if not isinstance(raised, Exception):
                assert found.value.args == raised.args
    finally:
        gc.enable()
        signal.signal(signal.SIGALRM, before)


def test_threads_get_what_their_own_program_raised():
    def run(i, found):
        def python(x):
            raise Failure(i)

        try:
            px.jit(lambda x: debug.callback(python, x + i))(XS)
        except Failure as e:
            found[i] = e.args[0]

    found = [None] * 8
    threads = [threading.Thread(target=run, args=(i, found)) for i in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert found == list(range(8))


def test_threads_that_run_one_program_get_what_their_own_call_raised():
    def python(x):
        if x % 2:
            raise Failure(float(x))
        return x

    def run(i, found):
        try:
            found[i] = [float(f(np.float32(i))) for _ in range(5)]
        except Failure as e:
            found[i] = e.args[0]

    f, found = px.jit(lambda x: px.io_callback(python, F, x)), [None] * 8
    f(np.float32(0))
    threads = [threading.Thread(target=run, args=(i, found)) for i in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert found == [i if i % 2 else [i] * 5 for i in range(8)]


def test_programs_inside_callbacks():
    small = px.jit(lambda x: jnp.sum(x * 2))
    wide = px.pmap(lambda x: lax.psum(x, "i"), axis_name="i")
    xs = np.ones(px.device_count(), np.float32)

    def on_one(x):
        return np.asarray(small(x), np.float32)

    def on_all(x):
        return np.asarray(wide(xs), np.float32)[0]

    f = px.jit(lambda x, python: px.pure_callback(python, F, x), static_argnums=1)
    assert float(f(XS, on_one)) == 12.0
    if len(xs) > 1:
        with pytest.raises(DeviceError, match="pmap_<lambda>: a function that a program calls"):
            f(XS, on_all)
    np.testing.assert_array_equal(wide(xs), xs * len(xs))


@pytest.mark.parametrize("devices", ["busy"], indirect=True)
def test_a_device_that_waits_runs_nothing_else():
    def python(x):
        return np.asarray(small(x), np.float32)

    small = px.jit(lambda x: jnp.sum(x * 2))
    f = px.jit(lambda x: px.pure_callback(python, F, x))
    assert float(small(XS)) == 12.0
    with pytest.raises(DeviceError, match=r"<lambda>: .* cannot run a program on .*which waits"):
        f(XS)
    assert float(small(XS)) == 12.0


def test_functions_that_programs_call_compute_on_the_cpu(monkeypatch):
    """Also where programs compute elsewhere: those devices may be waiting."""
    cpu, other = px.devices("cpu")[0], px.devices("cpu")[-1]
    accelerator = SimpleNamespace(device_list=[SimpleNamespace(platform="tpu")])

    def python(x):
        assert x.device == cpu and jnp.ones(4).device == cpu
        return jnp.sin(x)

    monkeypatch.setattr(callbacks, "default_sharding", lambda: accelerator)
    before = px.config.default_device
    px.config.update("default_device", other)
    try:
        found = px.jit(lambda x: px.pure_callback(python, F, x))(np.float32(1))
    finally:
        px.config.update("default_device", before)
    np.testing.assert_allclose(found, np.sin(1), rtol=1e-6)


def test_what_the_user_draws_does_not_depend_on_what_failed():
    random.seed(1)
    expected = random.random()
    random.seed(1)
    with pytest.raises(Failure):
        lanes(failing_at(None, []))(XS)
    assert random.random() == expected
