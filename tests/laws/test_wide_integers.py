"""Integers of 64 bits that do not fit into 32 are refused wherever NumPy's arrays and numbers come
in, as Python's are; they are taken with ``enable_x64``, and wrap around with ``wrap_integers``."""

from __future__ import annotations

import numpy as np
import pytest

import phalanx
import phalanx.numpy as jnp
from phalanx import lax

MESH = phalanx.make_mesh((phalanx.device_count(),), ("x",))
ROWS = phalanx.NamedSharding(MESH, phalanx.P("x"))
EIGHT = np.zeros(8, np.int32)


def identity(x):
    return x


COMPILED = phalanx.jit(identity).lower(np.zeros(8, np.int64)).compile()

# of 8 integers
DOORS = {
    "asarray": jnp.asarray,
    "array": jnp.array,
    "asarray in 32 bits": lambda x: jnp.asarray(x, dtype=x.dtype.name.replace("64", "32")),
    "list": lambda x: jnp.array([x, x]),
    "device_put": phalanx.device_put,
    "device_put over devices": lambda x: phalanx.device_put(x, ROWS),
    "from callback": lambda x: phalanx.make_array_from_callback((8,), ROWS, lambda i: x[i]),
    "from process": lambda x: phalanx.make_array_from_process_local_data(ROWS, x),
    "from_dlpack": jnp.from_dlpack,
    "jit": phalanx.jit(identity),
    "jit of a tree": lambda x: phalanx.jit(lambda tree: tree["a"][0])({"a": [x]}),
    "compiled": lambda x: COMPILED(x.astype(np.int64)),
    "closed over": lambda x: phalanx.jit(lambda y: y + x)(EIGHT),
    "made in jit": lambda x: phalanx.jit(lambda: jnp.asarray(x))(),
    "vmap": phalanx.vmap(lambda y: y + 1),
    "closed over in vmap": lambda x: phalanx.vmap(lambda y: y + x)(EIGHT),
    "pmap": phalanx.pmap(identity),
    "shard_map": phalanx.shard_map(
        identity, mesh=MESH, in_specs=phalanx.P("x"), out_specs=phalanx.P("x")
    ),
    "grad": lambda x: phalanx.grad(lambda w, y: (w * y).sum())(np.ones(8, np.float32), x),
    "scan": lambda x: lax.scan(lambda c, y: (c, y), 0, x),
    "cond": lambda x: lax.cond(True, identity, identity, x),
    "operand": lambda x: jnp.asarray(EIGHT) + x,
    "lax": lambda x: lax.neg(x),
    "set": lambda x: jnp.asarray(EIGHT).at[:].set(x),
    "full": lambda x: jnp.full((8,), x),
    "where": lambda x: jnp.where(True, x, 0),
    "sum": jnp.sum,
}
OF_NUMBERS = {
    "asarray": jnp.asarray,
    "jit": phalanx.jit(identity),
    "closed over": lambda x: phalanx.jit(lambda y: y + x)(EIGHT),
    "operand": lambda x: jnp.asarray(EIGHT) + x,
    "set": lambda x: jnp.asarray(EIGHT).at[0].set(x),
    "full": lambda x: jnp.full((8,), x),
    "scan": lambda x: lax.scan(lambda c, y: (c, y), x, EIGHT),
}
BEYOND = [(np.int64, 2**31), (np.int64, -(2**31) - 1), (np.uint64, 2**32), (np.int64, 2**62)]


@pytest.mark.parametrize("name", DOORS)
def test_arrays(name):
    door = DOORS[name]
    for dtype, number in BEYOND[: 1 if name == "compiled" else None]:
        with pytest.raises(OverflowError, match=f"{number}.* does not fit .*enable_x64"):
            door(np.array([0] * 7 + [number], dtype))
    for dtype, ends in ((np.int64, (-(2**31), 2**31 - 1)), (np.uint64, (0, 2**31 - 1))):
        door(np.array([*ends] * 4, dtype))


@pytest.mark.parametrize("name", OF_NUMBERS)
def test_numbers(name):
    for dtype, number in BEYOND:
        with pytest.raises(OverflowError, match=f"{number} does not fit .*enable_x64"):
            OF_NUMBERS[name](dtype(number))
    OF_NUMBERS[name](np.int64(2**31 - 1))


def test_the_line_is_told():
    with pytest.raises(OverflowError, match=r"int64\[2\] of NumPy .* at test_wide_integers\.py:"):
        jnp.asarray(np.array([2**40, 1]))


def test_options():
    x = np.array([2**40 + 3, 1])
    with phalanx.enable_x64(True):
        np.testing.assert_array_equal(jnp.asarray(x), x)
        np.testing.assert_array_equal(phalanx.jit(identity)(x), x)
    with phalanx.config.override(wrap_integers=True):
        np.testing.assert_array_equal(jnp.asarray(x), [3, 1])
        np.testing.assert_array_equal(phalanx.jit(identity)(x), [3, 1])
    assert jnp.asarray(np.array([-1]), dtype="uint32")[0] == 2**32 - 1  # as NumPy's cast
    assert jnp.asarray(np.zeros(0, np.int64)).shape == (0,)
