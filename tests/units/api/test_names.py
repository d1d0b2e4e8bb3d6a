"""Names of small modules: versions, types, events, other libraries' arrays, given derivatives."""

import functools
import importlib

import numpy as np
import pytest

import phalanx
import phalanx.numpy as jnp
from phalanx import dtypes, errors, test_util
from phalanx.laws import DerivativeError


def test_what_there_is_lazily_is_listed_and_found():
    for name in ("flatten_util", "typing", "test_util", "monitoring", "dlpack", "version"):
        assert name in dir(phalanx)
        assert getattr(phalanx, name) is importlib.import_module(f"phalanx.{name}")


def test_version_and_environment():
    assert phalanx.__version__ == ".".join(map(str, phalanx.__version_info__))
    assert phalanx.version.__version_info__ == phalanx.__version_info__
    text = phalanx.print_environment_info(return_string=True)
    assert f"{phalanx.device_count()} of" in text and np.__version__ in text


def test_processes():
    assert phalanx.host_id() == phalanx.process_index() == 0
    assert phalanx.host_count() == phalanx.process_count() == len(phalanx.host_ids()) == 1
    assert all(isinstance(d, phalanx.Device) for d in phalanx.devices(backend="cpu"))


def test_now_inside_of_a_transformation():
    @phalanx.jit
    def f(x):
        with phalanx.ensure_compile_time_eval():
            y = jnp.sum(jnp.arange(3))
            assert int(y) == 3
        return x * y

    assert f(2) == 6
    assert phalanx.grad(lambda x: f(x))(2.0) == 3

    @phalanx.jit
    def g(x):
        with phalanx.ensure_compile_time_eval():
            return x + 1

    with pytest.raises(errors.UnexpectedTracerError, match="ensure_compile_time_eval"):
        g(2)


def test_dtypes():
    assert dtypes.canonicalize_dtype(float) == np.float32
    key = phalanx.random.key(0).dtype
    assert dtypes.canonicalize_dtype(key, allow_extended_dtype=True) is key
    with pytest.raises(ValueError, match="key"):
        dtypes.canonicalize_dtype(key)
    kinds = [dtypes.scalar_type_of(x) for x in (True, 1, jnp.ones(2, "bfloat16"), "complex64")]
    assert kinds == [bool, int, float, complex]
    bits = {"bool": 8, "int4": 4, "float8_e5m2": 8, "bfloat16": 16, "complex128": 128}
    assert {name: dtypes.itemsize_bits(name) for name in bits} == bits
    assert dtypes.result_type(1, 2.0, return_weak_type_flag=True) == (np.float32, True)


def test_errors_are_those_that_programs_catch():
    def decides(x):
        return 1 if x > 0 else 2

    for caught in (errors.JAXTypeError, errors.ConcretizationTypeError, TypeError):
        with pytest.raises(caught):
            phalanx.jit(decides)(1.0)
    with pytest.raises(errors.JAXIndexError):
        phalanx.jit(lambda x: x[x > 0])(jnp.ones(3))
    with pytest.raises(dtypes.TypePromotionError):
        jnp.ones(1, "float8_e5m2") + jnp.ones(1, "float8_e4m3fn")
    assert errors.JaxRuntimeError is errors.RuntimeFailure


def test_events():
    monitoring = phalanx.monitoring
    heard = []
    listeners = {
        "event": ("event", ("e",)),
        "event_duration_secs": ("event_duration", ("d", 0.5)),
        "event_time_span": ("event_time_span", ("t", 1.0, 2.0)),
        "scalar": ("scalar", ("s", 3)),
    }
    for what, (short, args) in listeners.items():
        def listener(*given, **kwargs):
            heard.append((given, kwargs))

        getattr(monitoring, f"register_{what}_listener")(listener)
        getattr(monitoring, f"record_{what}")(*args, place="here")
        assert heard.pop() == (args, {"place": "here"})
        unregister = getattr(monitoring, f"unregister_{short}_listener")
        unregister(listener)
        getattr(monitoring, f"record_{what}")(*args)
        assert not heard
        with pytest.raises(ValueError, match="not registered"):
            unregister(listener)
    monitoring.register_event_listener(heard.append)
    monitoring.clear_event_listeners()
    monitoring.record_event("e")
    assert not heard


def test_arrays_of_other_libraries():
    from_dlpack = phalanx.dlpack.from_dlpack
    x = np.arange(6.0, dtype=np.float32).reshape(2, 3)
    got = from_dlpack(x, phalanx.devices()[-1])
    np.testing.assert_array_equal(got, x)
    assert got.devices() == {phalanx.devices()[-1]}
    with pytest.raises(ValueError, match="copy"):
        from_dlpack(x, copy=False)
    assert phalanx.dlpack.is_supported_dtype(bool)
    assert not phalanx.dlpack.is_supported_dtype("float8_e5m2")


def scaled(x, n):
    return {"y": jnp.sin(x["w"]) * n, "n": n}


ARGS = ({"w": jnp.arange(3.0)}, 2)


@phalanx.custom_jvp
def wrong(x):
    return jnp.sin(x)


wrong.defjvp(lambda primals, tangents: (wrong(*primals), 2 * jnp.cos(primals[0]) * tangents[0]))


def test_derivatives_that_are_given():
    test_util.check_jvp(scaled, functools.partial(phalanx.jvp, scaled), ARGS)
    test_util.check_vjp(scaled, functools.partial(phalanx.vjp, scaled), ARGS)
    test_util.check_grads(scaled, ARGS, 2, atol=1e-2, rtol=1e-2)
    for check, given in ((test_util.check_jvp, phalanx.jvp), (test_util.check_vjp, phalanx.vjp)):
        with pytest.raises(DerivativeError, match=r"mine: check_(jvp|vjp)"):
            check(wrong, functools.partial(given, wrong), (0.5,), err_msg="mine")
        check(wrong, functools.partial(given, wrong), (0.5,), atol=10.0)
