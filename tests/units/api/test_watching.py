"""Blocks that watch a program: transfers, promotion, tracing, leaks; and options of others."""

import functools
import logging

import numpy as np
import pytest

import phalanx
import phalanx.numpy as jnp
from phalanx import config
from phalanx.base import jax_options
from phalanx.errors import (
    ConfigError,
    DisallowedTransfer,
    EscapedTracer,
    JaxRuntimeError,
    NonFiniteError,
    ShapeError,
    TracingRefused,
    TypePromotionError,
)
from tests.laws.drawn import BACKWARD, EVERYTHING, FORWARD, PHALANX, Drawn


def test_implicit_transfers_are_refused_and_explicit_ones_are_not():
    double = phalanx.jit(lambda x: x + x)
    double(np.ones(3, np.float32))
    with phalanx.transfer_guard("disallow"):
        x = phalanx.device_put(np.ones(3, np.float32))
        assert phalanx.device_get(double(x)).tolist() == [2, 2, 2]
        for implicit in (lambda: double(np.ones(3, np.float32)), lambda: jnp.array([1, 2])):
            with pytest.raises(DisallowedTransfer, match="Disallowed host-to-device transfer"):
                implicit()
        with phalanx.transfer_guard_host_to_device("allow"):
            assert double(np.ones(3, np.float32)).shape == (3,)
    assert config.transfer_guard is None
    with phalanx.transfer_guard("disallow_explicit"), pytest.raises(JaxRuntimeError):
        phalanx.device_put(np.ones(3))


def test_putting_shards_on_devices_is_explicit():
    devices, row = phalanx.devices()[:2], np.ones(3, np.float32)
    puts = (
        lambda: phalanx.device_put_sharded([row] * len(devices), devices),
        lambda: phalanx.device_put_replicated(row, devices),
    )
    for put in puts:
        with phalanx.transfer_guard("disallow"):
            assert isinstance(put().sharding, phalanx.sharding.PmapSharding)
        with (
            phalanx.transfer_guard("disallow_explicit"),
            pytest.raises(DisallowedTransfer, match="'disallow_explicit'"),
        ):
            put()


@pytest.mark.parametrize("constant", [3, np.arange(3.0), jnp.zeros(3)], ids=type)
def test_a_function_of_constants_is_compiled_once(caplog, constant):
    f = phalanx.pmap(lambda x: constant)
    x = jnp.arange(len(phalanx.devices()))
    with phalanx.log_compiles():
        for _ in range(2):
            f(x)
    assert len([m for m in caplog.messages if m.startswith("Compiling")]) == 1


def test_transfers_are_logged(caplog):
    with caplog.at_level(logging.WARNING, "phalanx"), phalanx.transfer_guard("log"):
        jnp.sin(np.ones((2, 5)))
        phalanx.device_put(np.ones((2, 7)))
    assert any("f32[2,5]" in m and __file__.rpartition("/")[2] in m for m in caplog.messages)
    assert not any("f32[2,7]" in m for m in caplog.messages)
    with pytest.raises(ConfigError, match="'disallow'"):
        phalanx.transfer_guard("never")


def test_transfers_between_devices():
    devices = phalanx.devices()
    if len(devices) < 2:
        pytest.skip("needs two devices")
    x = phalanx.device_put(np.ones(4), devices[0])
    with phalanx.transfer_guard_device_to_device("disallow"):
        assert phalanx.device_put(x, devices[1]).devices() == {devices[1]}
        with pytest.raises(DisallowedTransfer, match="device-to-device"):
            phalanx.jit(lambda x: x, device=devices[1])(x)


def test_ranks():
    x, row = jnp.ones((2, 3)), jnp.ones(3)
    with phalanx.numpy_rank_promotion("raise"):
        assert (x + 1 + x[0, 0] + row[None]).shape == (2, 3)
        with pytest.raises(ShapeError, match="different ranks"):
            x + row
    with phalanx.numpy_rank_promotion("warn"), pytest.warns(UserWarning, match="add: shapes"):
        assert (x + row).shape == (2, 3)


def test_dtypes_are_not_promoted_where_that_is_strict():
    i, f, b = jnp.arange(2), jnp.ones(2), jnp.ones(2, bool)
    with phalanx.numpy_dtype_promotion("strict"):
        assert (i * 2).dtype == np.int32 and (f + 1 + 2.5).dtype == np.float32
        assert (jnp.ones(2, "bfloat16") * 2.0).dtype == jnp.bfloat16
        for x, y in ((i, f), (i, 2.5), (b, 1), (f, f.astype("bfloat16"))):
            with pytest.raises(TypePromotionError, match="strict"):
                x + y
        # what functions of the library do inside is not promotion
        assert jnp.mean(i).dtype == phalanx.nn.softmax(f).dtype == np.float32
        phalanx.grad(lambda x: jnp.sum(x**2))(f)
    assert (i + f).dtype == np.float32


def test_tracing_is_told_and_refused(caplog):
    f = phalanx.jit(lambda x: x * 2)
    with caplog.at_level(logging.WARNING, "phalanx"), phalanx.explain_cache_misses():
        f(jnp.ones(2))
        f(jnp.ones(2))
        f(jnp.ones(3))
    told = [m for m in caplog.messages if "Tracing jit" in m]
    assert all("test_watching.py" in m for m in told)
    assert [m.partition(": ")[2] for m in told] == ["never seen", "x is f32[3], and was f32[2]"]
    with phalanx.no_tracing():
        assert f(jnp.ones(3)).tolist() == [2, 2, 2]
        for new in (lambda: f(jnp.ones(4)), lambda: phalanx.pmap(lambda x: x)(jnp.ones(1))):
            with pytest.raises(TracingRefused, match="no_tracing"):
                new()


def retraced(caplog, *calls):
    """What is logged of the last of some calls, each a transformed function and its arguments."""
    with caplog.at_level(logging.WARNING, "phalanx"), phalanx.explain_cache_misses():
        for fun, *args in calls:
            fun.trace(*args)
    return caplog.messages[-1].partition(": ")[2]


@pytest.mark.parametrize(
    "first, second, why",
    [
        ((np.float32([1]),), (np.int32([1]),), "x is i32[1], and was f32[1]"),
        ((1.0,), (np.float32(1),), "x is f32[], and was f32[]~ (one is a Python number"),
        (({"a": 1.0},), ({"b": 1.0},), "the structure ({'b': *}), and had ({'a': *})"),
        ((1.0, 2), (1.0, 3), "static argument 1 is 3, and was 2"),
        ((1.0, 2), (1.0, 2.0), "static argument 1 is 2.0 of type float, and was 2 of type int"),
        ((1.0, (2,)), (1.0, (2.0,)), "a static argument has parts of other types"),
    ],
    ids=["dtype", "weak type", "structure", "static", "equal static", "parts of a static"],
)
def test_what_is_new_about_a_call_is_told(caplog, first, second, why):
    f = phalanx.jit(lambda x, n=1: x, static_argnums=1)
    assert why in retraced(caplog, (f, *first), (f, *second))


def test_what_is_new_around_a_call_is_told(caplog):
    f = phalanx.jit(lambda x: x)
    f.trace(1.0)
    with phalanx.default_matmul_precision("highest"):
        told = retraced(caplog, (f, 1.0))
    assert told == "the option default_matmul_precision is 'highest', and was None"
    with phalanx.set_mesh(phalanx.make_mesh((1,), ("d",))):
        assert retraced(caplog, (f, 1.0)).startswith("the option mesh is Mesh('d': 1")
    with caplog.at_level(logging.WARNING, "phalanx"), phalanx.explain_cache_misses():
        phalanx.eval_shape(phalanx.vmap(f, axis_name="q"), np.ones(3))
    assert caplog.messages[-1].endswith("axes in scope are 'q' of size 3, and were none")


def _one(x):
    return x


def test_functions_that_are_made_anew_are_told(caplog):
    class Model:
        def apply(self, x):
            return x

    def given(x, n):
        return x

    def made():
        return phalanx.jit(lambda x: x)

    def of(fun):
        return phalanx.jit(fun)

    def scaled(by):
        return phalanx.jit(lambda x: x * by)

    assert "in another function object" in retraced(caplog, (made(), 1.0), (made(), 1.0))
    told = retraced(caplog, (scaled(2), 1.0), (scaled(3), 1.0))
    assert told.endswith("make it once, outside, and pass it as arguments what differs of by")
    partials = (of(functools.partial(given, n=n)) for n in range(2))
    assert "in another partial" in retraced(caplog, *((f, 1.0) for f in partials))
    assert "of another object" in retraced(caplog, *((of(Model().apply), 1.0) for _ in "ab"))
    donating = phalanx.jit(_one, donate_argnums=0)
    assert "with other options" in retraced(caplog, (of(_one), 1.0), (donating, 1.0))
    gradients = (of(phalanx.grad(f)) for f in (lambda x: x * x, lambda x: x * x * x))
    assert retraced(caplog, *((f, 1.0) for f in gradients)) == "never seen"


def test_leaks_are_found():
    kept = []
    with pytest.raises(EscapedTracer, match=r"test_watching.py:\d+"), phalanx.checking_leaks():
        phalanx.jit(lambda x: kept.append(x * 2))(1.0)
    with phalanx.check_tracer_leaks():  # of before
        phalanx.grad(lambda x: jnp.sin(x) * phalanx.jit(jnp.cos)(x))(1.0)
        phalanx.vmap(jnp.sin)(jnp.ones(3))


@pytest.mark.parametrize(
    "around",
    [
        lambda f: phalanx.jit(f)(1.0),
        lambda f: phalanx.grad(f)(1.0),
        lambda f: phalanx.jvp(f, (1.0,), (1.0,)),
        lambda f: phalanx.vmap(f)(jnp.ones(2)),
        lambda f: phalanx.pmap(f)(jnp.ones(2)),
        lambda f: phalanx.eval_shape(f, 1.0),
        lambda f: phalanx.jit(lambda x: phalanx.grad(f)(x))(1.0),
        lambda f: phalanx.lax.scan(lambda c, x: (f(c), None), 1.0, None, length=2),
        lambda f: phalanx.lax.cond(True, f, lambda x: x, 1.0),
        lambda f: phalanx.checkpoint(f)(1.0),
    ],
)
def test_every_transformation_looks_for_leaks_if_the_process_wants_it(around):
    kept = []

    def keeps(x):
        kept.append(x * 2)
        return x * 2

    around(keeps)
    phalanx.config.update("jax_check_tracer_leaks", True)
    try:
        around(lambda x: jnp.sin(x) * phalanx.jit(jnp.cos)(x))
        with pytest.raises(EscapedTracer, match="Leaked value"):
            around(keeps)
    finally:
        phalanx.config.update("jax_check_tracer_leaks", False)


@pytest.mark.parametrize("name", EVERYTHING)
def test_nothing_is_kept_of_functions_that_hold_programs(name):
    """Whatever holds a program in itself, in the lanes and derivatives that it has."""
    inner = Drawn((("sin", 0), ("row", 1)))
    m, v = map(jnp.asarray, inner.arguments())
    lanes = jnp.stack([m, m])

    def program(m):
        return sum(map(jnp.sum, getattr(PHALANX, name.removesuffix(" both"))(inner, m, v)))

    def total(m):
        return phalanx.vmap(program)(lanes * m).sum()

    with phalanx.checking_leaks():
        assert phalanx.jit(program)(m).shape == ()
        if name in BACKWARD:
            phalanx.grad(total)(m)
            phalanx.jit(phalanx.vmap(phalanx.grad(program)))(lanes)
        if name in FORWARD:
            phalanx.jvp(total, (m,), (m,))


def test_a_leak_is_found_also_where_an_older_one_has_just_been():
    kept = []

    def leak(count):
        phalanx.jit(lambda x: [kept.append(x + i) for i in range(count)] and x)(1.0)

    leak(100)
    gone = {*map(id, kept)}
    with pytest.raises(EscapedTracer), phalanx.checking_leaks():
        kept.clear()
        leak(100)
        kept[:] = [x for x in kept if id(x) in gone] or kept


def test_infinities():
    with phalanx.debug_infs():
        with pytest.raises(NonFiniteError, match="infinity"):
            jnp.exp(jnp.ones(2) * 1000)
        with pytest.raises(NonFiniteError, match="infinity"):
            phalanx.jit(lambda x: 1 / x)(0.0)
        assert np.isnan(jnp.ones(2) * jnp.nan).all()  # which is no infinity


def test_programs_are_checked():
    with phalanx.enable_checks():
        cube = phalanx.grad(lambda x: phalanx.lax.fori_loop(0, 3, lambda i, y: y * x, 1.0))
        assert phalanx.jit(cube)(2.0) == 12


def test_old_keys_as_new_ones():
    with phalanx.enable_custom_prng():
        assert phalanx.random.PRNGKey(1) == phalanx.random.key(1)
    assert phalanx.random.PRNGKey(1).shape == (2,)


def test_options_that_mean_nothing_here(monkeypatch):
    monkeypatch.setattr(jax_options, "_set", {})
    for name, default in jax_options.HARMLESS.items():
        assert getattr(config, f"jax_{name}") == config.values[f"jax_{name}"] == default
    config.update("jax_raise_persistent_cache_errors", True)
    assert config.jax_raise_persistent_cache_errors is True
    for name, (value, why) in jax_options.FIXED.items():
        config.update(name, value)
        with pytest.raises(ConfigError, match=name):
            config.update(name, "else")
        assert getattr(config, name) == value and why
    with phalanx.thread_guard(True), phalanx.softmax_custom_jvp(False):
        pass
    with pytest.raises(ConfigError, match="eval_shape"):
        phalanx.no_execution()


def retracings(calls, caplog):
    """What is said of each tracing after the first one."""
    with caplog.at_level(logging.WARNING, "phalanx"), phalanx.explain_cache_misses():
        calls()
    told = [m.partition(": ")[2] for m in caplog.messages if m.startswith("Tracing")]
    return [m for m in told if m != "never seen"]


@pytest.mark.parametrize("static", [{"static_argnums": 1}, {"static_argnames": "n"}])
def test_that_a_static_argument_is_passed_in_another_way_is_told(static, caplog):
    power = phalanx.jit(lambda x, n=1: x**n, **static)
    told = retracings(lambda: [power(2.0, 3), power(2.0), power(2.0, n=2)], caplog)
    assert told[-2] == "static argument 1 is not given, and was 3"
    assert "static argument n is given" in told[-1]


def test_the_reason_of_tracing_again_is_told(caplog):
    power = phalanx.jit(lambda x, n, scale=1.0: scale * x["w"] ** n, static_argnums=1)

    def calls():
        x = {"w": jnp.ones(3), "b": jnp.ones(2)}
        power(x, 2)
        power(x, 3)
        power({"w": jnp.ones(3)}, 3)
        power({"w": jnp.ones((3, 3)), "b": jnp.ones(2)}, 2)
        power(x, 2, scale=2.0)
        power(x, 2, scale=jnp.float32(2.0))

    static, structure, shape, keyword, weak = retracings(calls, caplog)
    assert static == "static argument 1 is 3, and was 2"
    assert structure.startswith("the arguments have the structure ({'w': *}")
    assert shape == "x['w'] is f32[3,3], and was f32[3]"
    assert "structure" in keyword
    assert weak.startswith("scale is f32[], and was f32[]~") and "convert it once" in weak


def test_the_type_that_is_most_alike_is_told(caplog):
    f = phalanx.jit(lambda x: x * 2)
    told = retraced(caplog, (f, jnp.ones(2)), (f, 1.0), (f, np.float32(1)))
    assert told.startswith("x is f32[], and was f32[]~")


def test_functions_made_anew_are_told(caplog):
    def calls():
        for _ in range(2):
            phalanx.jit(lambda x: x + 3)(1.0)

    (again,) = retracings(calls, caplog)
    assert "made anew" in again


def test_a_pmap_traced_again_is_told(caplog):
    def calls():
        f = phalanx.pmap(lambda x: x + 1)
        f(jnp.ones((1, 2)))
        f(jnp.ones((1, 3)))

    assert retracings(calls, caplog) == ["x is f32[1,3], and was f32[1,2]"]


@pytest.mark.skipif(phalanx.device_count() < 2, reason="it needs another place")
def test_what_is_compiled_for_another_place_is_told(caplog):
    f = phalanx.jit(lambda x: x * 3)
    here, there = phalanx.devices()[:2]
    with caplog.at_level(logging.WARNING, "phalanx"), phalanx.explain_cache_misses():
        f(phalanx.device_put(jnp.ones(3), here))
        f(phalanx.device_put(jnp.ones(3), there))
    (told,) = [m for m in caplog.messages if m.startswith("Compiling jit")]
    assert "again at test_watching.py" in told and ": x lies as " in told and "and lay as" in told


def test_what_runs_as_before_is_not_said_to_be_compiled_again(caplog):
    f = phalanx.jit(lambda x: x * 3)
    with caplog.at_level(logging.WARNING, "phalanx"), phalanx.explain_cache_misses():
        f(f(np.ones(3, np.float32)))  # arrays of the host, and then one that lies on a device
        f(np.ones(3))  # of 64 bits, which become 32
    assert not [m for m in caplog.messages if m.startswith("Compiling jit")]
