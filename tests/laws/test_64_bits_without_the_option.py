"""What is of 64 bits stays so where ``enable_x64`` is off: for arrays, and for what was traced with
it, whatever is made of that afterwards.

The oracle is the same where the option is on.
"""

import importlib
import pkgutil

import numpy as np
import pytest

import phalanx
import phalanx.numpy as jnp
import phalanx.primitives
from phalanx.base.extended import is_key
from phalanx.core.primitive import REGISTRY
from phalanx.core.types import ArrayType
from phalanx.laws.primitives import Case

for module in pkgutil.iter_modules(phalanx.primitives.__path__, "phalanx.primitives."):
    importlib.import_module(module.name)

PAIRS = (("f4", "f8"), ("i4", "i8"), ("u4", "u8"), ("c8", "c16"))
WIDER = {np.dtype(narrow): np.dtype(wide) for narrow, wide in PAIRS}


def wide(x):
    return x if is_key(x.dtype) else jnp.asarray(np.asarray(x).astype(WIDER.get(x.dtype, x.dtype)))


def types(f, xs):
    try:
        return phalanx.make_jaxpr(f)(*xs).output_types
    except Exception as e:  # whatever it is, it has to be the same
        return type(e).__name__


def like(x):
    """A tangent of ``x``."""
    moves = not is_key(x.dtype) and jnp.issubdtype(x.dtype, jnp.inexact)
    return x if moves else np.zeros(x.shape, phalanx.dtypes.float0)


def slopes(f):
    """Tangents, and cotangents, of what ``f`` gives."""

    def both(*xs):
        out, pull = phalanx.vjp(f, *xs)
        cotangents = pull(phalanx.tree.map(like, out))
        tangents = phalanx.jvp(f, xs, phalanx.tree.map(like, xs))[1]
        return [x for x in phalanx.tree.leaves((tangents, cotangents)) if x.dtype != phalanx.float0]

    return both


@pytest.mark.parametrize("prim", [p for _, p in sorted(REGISTRY.items()) if p.examples], ids=str)
def test_rules(prim):
    case = Case(prim, prim.examples[0])
    with phalanx.enable_x64(True):
        xs = [wide(x) for x in case.operands()]
        pairs = [jnp.stack([x, x]) for x in xs]

    @phalanx.jit
    def inside(*xs):
        with phalanx.enable_x64(True):
            return case(*xs)

    for change, args in ((lambda f: f, xs), (phalanx.vmap, pairs), (slopes, xs)):
        with phalanx.enable_x64(True):
            wanted = types(change(phalanx.jit(lambda *xs: case(*xs))), args)
        assert types(change(inside), args) == wanted
        if all(isinstance(a, ArrayType) for a in case.example.args):  # numbers would be of 32 bits
            assert types(change(case), args) == wanted


TABLE = np.array([0.1, 0.2, 0.3])


def exactly(x):
    """What shows each rounding to 32 bits, as a float of 32."""
    with phalanx.enable_x64(True):
        y = jnp.asarray(x, "float64") * 0.1 + TABLE
        y = y**3 * 2 + jnp.where(y > 1, y, 0.7) - phalanx.nn.sigmoid(y) / 3
        y = phalanx.lax.fori_loop(0, 3, lambda i, c: c * 1.1 + i, y)
        return ((y * 1e8 + 1) - y * 1e8).astype("float32")


def in_numpy(x):
    y = x.astype("float64") * 0.1 + TABLE
    y = y**3 * 2 + np.where(y > 1, y, 0.7) - 1 / (1 + np.exp(-y)) / 3
    for i in range(3):
        y = y * 1.1 + i
    return (y * 1e8 + 1) - y * 1e8


WAYS = {
    "jit": lambda f, x: phalanx.jit(f)(x),
    "jit of jit": lambda f, x: phalanx.jit(lambda x: phalanx.jit(f)(x))(x),
    "vmap": lambda f, x: phalanx.vmap(phalanx.jit(f))(jnp.stack([x, x]))[1],
    "pmap": lambda f, x: phalanx.pmap(f)(jnp.stack([x, x]))[0],
    "scan": lambda f, x: phalanx.lax.scan(lambda c, x: (c, f(x)), 0, x[None])[1][0],
    "cond": lambda f, x: phalanx.lax.cond(x[0] > 0, f, lambda x: x, x),
    "vjp": lambda f, x: phalanx.vjp(phalanx.jit(f), x)[0],
    "jvp": lambda f, x: phalanx.jvp(phalanx.checkpoint(f), (x,), (x,))[0],
}


@pytest.mark.parametrize("way", WAYS)
def test_values(way):
    x = jnp.array([0.3, 2.0, 7.0])
    np.testing.assert_allclose(WAYS[way](exactly, x), in_numpy(np.asarray(x)), atol=2e-7)


def test_slopes_of_what_is_computed_in_64_bits():
    def f(x):
        with phalanx.enable_x64(True):
            return jnp.sum(jnp.where(x > 1, x, 0.5) ** 3 * 2.0).astype("float32")

    x = jnp.array([0.5, 2.0, 3.0])
    for g in (phalanx.grad(f), phalanx.grad(phalanx.jit(f)), phalanx.jit(phalanx.grad(f))):
        np.testing.assert_allclose(g(x), [0, 24, 54], rtol=1e-6)
    with phalanx.enable_x64(True):
        y = jnp.array([0.5, 2.0, 3.0])
    slope = phalanx.grad(lambda y: jnp.sum(phalanx.lax.integer_pow(y, 3)))(y)
    assert slope.dtype == np.float64
    np.testing.assert_array_equal(slope, [0.75, 12, 27])


def test_keys_are_made_inside():
    def f():
        with phalanx.enable_x64(True):
            return phalanx.random.key_data(phalanx.random.split(phalanx.random.key(1 << 40)))

    with phalanx.enable_x64(True):
        wanted = f()
    np.testing.assert_array_equal(phalanx.jit(f)(), wanted)


def test_arrays_of_64_bits_are_captured():
    with phalanx.enable_x64(True):
        x = jnp.array([0.1, 0.2])
    found = phalanx.jit(lambda: phalanx.lax.mul(x, x))()
    assert found.dtype == np.float64
    np.testing.assert_array_equal(found, np.array([0.1, 0.2]) ** 2)
