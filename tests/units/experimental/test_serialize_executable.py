"""Compiled functions as bytes, in the process that wrote them and in another."""

import functools
import pickle
import subprocess
import sys

import numpy as np
import pytest
from jaxlib import xla_client

import phalanx
import phalanx.numpy as jnp
from phalanx import P, errors, lax
from phalanx.base.config import config
from phalanx.experimental import serialize_executable
from phalanx.experimental.serialize_executable import deserialize_and_load, serialize
from phalanx.sharding import Mesh, NamedSharding
from phalanx.xla.jaxlib_versions import OLD

X = jnp.arange(6.0)
COUNT = len(phalanx.devices())


def by_mesh():
    mesh = phalanx.make_mesh((2, 4), ("a", "b"))
    here = phalanx.NamedSharding(mesh, P("a"))
    f = phalanx.jit(lambda x: x * x.sum(), in_shardings=here, out_shardings=here)
    return f, f


def with_trees(d, n, *, y):
    return {"sum": d["x"] + n, "product": [d["x"] * y]}


def with_key(x):
    return x + phalanx.random.normal(phalanx.random.key(3), (6,))


FUNCTIONS = {
    "jit": lambda: (phalanx.jit(jnp.sin),) * 2,
    "lanes": lambda: (phalanx.pmap(lambda x: x * x),) * 2,
    "lanes that meet": lambda: (phalanx.pmap(lambda x: x - lax.psum(x, "i"), axis_name="i"),) * 2,
    "mesh": by_mesh,
    "keys": lambda: (phalanx.jit(with_key),) * 2,
    "donated": lambda: (phalanx.jit(jnp.cos, donate_argnums=0), phalanx.jit(jnp.cos)),
}


@pytest.fixture
def without_cache():
    with_cache = config.enable_compilation_cache
    config.update("enable_compilation_cache", False)
    yield
    config.update("enable_compilation_cache", with_cache)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_it_gives_what_the_function_gives(name):
    f, plain = FUNCTIONS[name]()
    compiled = f.lower(X).compile()
    kept = serialize(compiled)
    wanted = plain(X)
    for _ in range(2):  # what was loaded can be serialized, too
        again = deserialize_and_load(*kept)
        out = again(jnp.array(X))
        np.testing.assert_array_equal(out, wanted)
        assert out.sharding == compiled(jnp.array(X)).sharding
        again._serialized = pickle.loads(pickle.dumps(again._serialized))
        kept = (serialize_executable._stored(again._serialized), *kept[1:])


def test_trees_and_names_and_numbers():
    kept = serialize(phalanx.jit(with_trees).lower({"x": X}, 2, y=X).compile())
    out = deserialize_and_load(*kept)({"x": np.arange(6, dtype="f4")}, 3, y=X)
    assert out["sum"].tolist() == [3, 4, 5, 6, 7, 8]
    assert out["product"][0].tolist() == [0, 1, 4, 9, 16, 25]


OTHER = """
import pickle, sys
import phalanx.numpy as jnp
from phalanx.experimental.serialize_executable import deserialize_and_load
print(deserialize_and_load(*pickle.loads(sys.stdin.buffer.read()))(jnp.arange(6.0)))
"""


def test_another_process_runs_it(without_cache):
    f = phalanx.pmap(lambda x: x - lax.pmean(x, "i"), axis_name="i")
    kept = pickle.dumps(serialize(f.lower(X).compile()))
    done = subprocess.run([sys.executable, "-c", OTHER], input=kept, capture_output=True)
    assert done.stdout.decode().strip() == str(f(X)), done.stderr.decode()


@pytest.fixture
def cached(tmp_path):
    """Whatever is compiled lies in a cache of its own."""
    own = {"compilation_cache_dir": tmp_path, "persistent_cache_min_compile_time_secs": 0.0}
    before = {name: getattr(config, name) for name in own}
    for options in (own, before):
        for name, value in options.items():
            config.update(name, value)
        if options is own:
            yield tmp_path


def test_what_came_from_the_cache_is_read_there(cached):
    for _ in range(2):
        compiled = phalanx.jit(lambda x: jnp.cos(x) ** 3).lower(X).compile()
        read = compiled._compiled.executable.read
        out = deserialize_and_load(*serialize(compiled))(X)
        np.testing.assert_array_equal(out, compiled(X))
    assert read is not None
    for path in cached.rglob("*"):
        path.unlink()
    with pytest.raises(errors.RuntimeFailure, match="loaded from the cache of compiled programs"):
        serialize(compiled)


def test_what_is_refused():
    kept = serialize(phalanx.jit(jnp.sin).lower(X).compile())
    sine = deserialize_and_load(*kept)
    with pytest.raises(TypeError, match=r"x was compiled as f32\[6\], got .*f32\[3\].*\.py:\d+"):
        sine(jnp.ones(3))
    with pytest.raises(TypeError, match="got a traced value"):
        phalanx.jit(sine)(X)
    with pytest.raises(TypeError, match="was compiled for arguments of the structure"):
        sine(X, X)
    with pytest.raises(ValueError, match=r"was compiled for .* cannot run on"):
        deserialize_and_load(*kept, execution_devices=phalanx.devices()[1:3])
    with pytest.raises(TypeError, match="a compiled function is needed"):
        serialize(phalanx.jit(jnp.sin))
    large, ref = jnp.ones(100_000), phalanx.new_ref(1.0)
    for f in (lambda x: x.sum() + large, lambda x: x + ref[...]):
        with pytest.raises(ValueError, match="closes over references or large arrays"):
            serialize(phalanx.jit(f).lower(X).compile())
    calling = lambda x: phalanx.pure_callback(np.sin, x, x)  # noqa: E731
    with pytest.raises(errors.RuntimeFailure, match="calls Python"):
        serialize(phalanx.jit(calling).lower(X).compile())


@functools.cache
def described():
    """The devices that are here, as if they were not: compilers for accelerators have the same."""
    topology = xla_client.get_topology_for_devices(phalanx.devices())
    return topology, topology._make_compile_only_devices()


DESCRIBED = {
    "jit": lambda d: phalanx.jit(lambda x: jnp.sin(x) * 3, device=d[-1]),
    "donated": lambda d: phalanx.jit(jnp.cos, device=d[0], donate_argnums=0),
    "keys": lambda d: phalanx.jit(with_key, device=d[0]),
    "lanes": lambda d: phalanx.pmap(jnp.sin, devices=d),
    "lanes that meet": lambda d: phalanx.pmap(lambda x: x - lax.psum(x, "i"), "i", devices=d),
    "mesh": lambda d: phalanx.jit(
        lambda x: x * x.sum(),
        in_shardings=NamedSharding(Mesh(np.array(d[: 2 - COUNT % 2]), ("a",)), P("a")),
    ),
}


@pytest.mark.skipif(OLD, reason="it compiles for no CPUs that are only described")
@pytest.mark.parametrize("name", DESCRIBED)
def test_what_was_compiled_for_described_devices_runs_on_such(name):
    here = phalanx.devices()
    compiled = DESCRIBED[name](described()[1]).lower(X).compile()
    with pytest.raises(errors.DeviceError, match="is described and not here"):
        compiled(X)
    kept = pickle.loads(pickle.dumps(serialize(compiled)))
    wanted = DESCRIBED[name](here)(jnp.array(X))
    for devices in (None, here[-len(compiled.input_shardings[0][0].device_set) :]):
        out = deserialize_and_load(*kept, execution_devices=devices)(np.asarray(X))
        np.testing.assert_allclose(out, wanted, rtol=1e-6)
        assert out.sharding.device_set == set(devices or wanted.sharding.device_set)


@pytest.mark.skipif(OLD, reason="it compiles for no CPUs that are only described")
def test_where_what_was_compiled_for_described_devices_does_not_run(monkeypatch):
    f = phalanx.jit(lambda x: x + 1, device=described()[1][0])
    kept = serialize(f.lower(X).compile())
    with pytest.raises(ValueError, match=r"<lambda> was compiled for cpu:0 and cannot run on \[\]"):
        deserialize_and_load(*kept, execution_devices=[])
    monkeypatch.setattr("phalanx.xla.packed.version.__version__", "0.1")
    with pytest.raises(
        errors.RuntimeFailure, match=r"by jaxlib .*, for 1 x cpu, and here is .* 0\.1"
    ):
        deserialize_and_load(*kept)
    monkeypatch.setattr(serialize_executable, "unpickled_devices", missing)
    with pytest.raises(
        errors.DeviceError, match=r"compiled for cpu:0, and the devices here are \["
    ):
        deserialize_and_load(*kept)
    large = jnp.ones(100_000)
    f = phalanx.jit(lambda x: x.sum() + large, device=described()[1][0])
    with pytest.raises(ValueError, match="closes over references or large arrays"):
        serialize(f.lower(X).compile())


def missing(devices):
    raise errors.DeviceError(f"no {devices}")


def test_what_another_compiler_made_is_refused(monkeypatch):
    kept = serialize(phalanx.jit(jnp.sin).lower(X).compile())
    monkeypatch.setattr("phalanx.xla.packed.origin", lambda devices: "another")
    with pytest.raises(errors.RuntimeFailure, match="compiled by another version of XLA"):
        deserialize_and_load(*kept)
