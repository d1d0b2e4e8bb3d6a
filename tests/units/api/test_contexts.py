"""Options for a block of code, by the names of their own."""

import asyncio

import numpy as np
import pytest

import phalanx
import phalanx.numpy as jnp
from phalanx import lax
from phalanx.errors import ConfigError, NonFiniteError


def test_arrays_and_programs_without_a_place_go_to_the_default_device():
    first, last = phalanx.devices()[0], phalanx.devices()[-1]
    double = phalanx.jit(lambda x: 2 * x + np.arange(3))
    for _ in range(2):
        with phalanx.default_device(last):
            made = [
                jnp.zeros(3), jnp.array(1.0), double(np.ones(3)), double(1.0), jnp.sin(0.5),
                phalanx.random.normal(phalanx.random.key(0), (2,)), phalanx.jit(lambda: 3)(),
                phalanx.device_put(np.ones(2)), double(jnp.ones(3)), phalanx.grad(jnp.sin)(1.0),
            ]  # fmt: skip
            with phalanx.default_device(None):
                assert jnp.ones(2).devices() == {first}
        assert [x.devices() for x in made] == [{last}] * len(made)
        assert not any(x.committed for x in made)
        assert double(np.ones(3)).devices() == jnp.zeros(3).devices() == {first}


def test_what_was_placed_stays_there_under_another_default_device():
    first, last = phalanx.devices()[0], phalanx.devices()[-1]
    x = phalanx.device_put(np.ones(3), first)
    with phalanx.default_device(last):
        assert (x + 1).devices() == phalanx.jit(jnp.sin)(x).devices() == {first}


def test_the_default_device_may_be_a_platform_and_nothing_else():
    with phalanx.default_device("cpu"):
        assert jnp.ones(1).devices() == {phalanx.devices("cpu")[0]}
    with pytest.raises(ConfigError, match="a device, the name of a platform, or None"):
        phalanx.default_device(0).__enter__()


def test_blocks_of_tasks_that_overlap_do_not_mix():
    last = phalanx.devices()[-1]

    async def wide(first, second):
        with phalanx.enable_x64():
            first.set()
            await second.wait()
            return jnp.ones(2), phalanx.jit(lambda x: x * 2)(np.ones(2))

    async def elsewhere(first, second):
        await first.wait()
        with phalanx.default_device(last):
            second.set()
            await asyncio.sleep(0)
            return jnp.ones(2), phalanx.jit(lambda x: x * 2)(np.ones(2))

    async def both():
        a, b = asyncio.Event(), asyncio.Event()
        return await asyncio.gather(wide(a, b), elsewhere(a, b))

    here, there = asyncio.run(both())
    first = phalanx.devices()[0]
    assert [(x.dtype.name, x.devices()) for x in here] == [("float64", {first})] * 2
    assert [(x.dtype.name, x.devices()) for x in there] == [("float32", {last})] * 2


def test_each_block_says_one_thing():
    with phalanx.debug_nans(), pytest.raises(NonFiniteError):
        jnp.log(-1.0)
    with phalanx.enable_x64():
        assert jnp.ones(1).dtype == np.float64
        with phalanx.experimental.disable_x64():
            assert jnp.ones(1).dtype == np.float32
    with phalanx.default_matmul_precision("highest"):
        assert "HIGHEST" in phalanx.jit(jnp.dot).lower(np.ones((2, 2)), np.ones(2)).as_text()

    @phalanx.disable_jit()
    def eagerly(seen):
        phalanx.jit(lambda x: seen.append(float(x)))(1.0)

    seen = []
    eagerly(seen)
    assert seen == [1.0]


def test_compiling_is_logged(caplog):
    f = phalanx.jit(lambda x: x * 1.25, inline=True)
    with phalanx.log_compiles():
        f(np.ones((3, 2), np.float32))
        f(np.zeros((3, 2), np.float32))
    f(np.ones(7, np.float32))
    assert [r.message for r in caplog.records] == ["Compiling <lambda> for arguments (f32[3,2])"]


def test_arrays_that_are_alive_are_found():
    x, y = jnp.arange(5.0) + 1, jnp.arange(6.0) + 1
    y.delete()
    alive = {id(a) for a in phalanx.live_arrays()}
    assert id(x) in alive and id(y) not in alive
    assert id(x) in {id(a) for a in phalanx.live_arrays("cpu")}
    assert phalanx.live_arrays("abacus") == []


def test_operands_that_calls_share_are_not_among_what_is_alive():
    x = jnp.arange(7.0)
    before = {id(a) for a in phalanx.live_arrays()}
    made = [x * 0.8125 + 5, x[3], lax.scan(lambda c, r: (c + r, r), 0.375, x)]
    phalanx.jit(lambda x: x + 1)(11)
    phalanx.pmap(lambda n: n * 0.3125)(np.arange(1))
    mine = {id(leaf) for leaf in phalanx.tree.leaves(made)}
    found = [a for a in phalanx.live_arrays() if id(a) not in before]
    assert {id(a) for a in found} == mine, found


def test_types_are_over_the_mesh_that_is_set():
    x = jnp.ones((2, 3))
    assert phalanx.typeof(x).sharding.mesh.empty
    assert jnp.zeros(2, out_sharding=phalanx.typeof(x[:, 0]).sharding).shape == (2,)
    mesh = phalanx.make_mesh((1,), ("data",))
    with phalanx.set_mesh(mesh):
        told = phalanx.jit(lambda x: phalanx.typeof(x).sharding.mesh.axis_names == ("data",) and x)
        assert told(1.0) == 1.0
        over = phalanx.typeof(x).sharding
    assert over.mesh == mesh.abstract_mesh and over.spec == phalanx.P(None, None)


def test_names_that_are_not_there_say_why():
    compiled = phalanx.jit(lambda x: x).lower(1.0).compile()
    for owner, name, why in [
        (phalanx, "device_cuont", "Did you mean 'device_count'"),
        (compiled, "input_format", "Did you mean 'input_formats'"),
        (compiled, "output_sharding", "Did you mean 'output_shardings'"),
    ]:
        with pytest.raises(AttributeError, match=why):
            getattr(owner, name)
