"""A rule for ``vmap`` under nested transformations gives what it gives where nothing is around it.

The oracle is JAX: on all lanes a function with a rule is what the rule computes, with its
derivatives. Where JAX runs the rule under the same transformations (it cannot take gradients of
lanes one by one, and mistakes lanes where only some tangents have them), it gives the same, and
asks the rule as often, of the same operands.
"""

from itertools import product

import numpy as np
import pytest

import phalanx
from phalanx.sharding import PartitionSpec as P

jax = pytest.importorskip("jax")

X, Y = np.float32([0.3, 0.7]), np.float32([1.2, -0.4])
STRETCHED = 3  # by the rule: what it computes is not what the function does


def plain(np, x, y, factor=1):
    return factor * np.sin(x) * y


def ruled(lib, calls):
    """The function with its rule, which notes its calls."""
    f = lib.custom_batching.custom_vmap(lambda x, y: plain(lib.numpy, x, y))

    @f.def_vmap
    def rule(axis_size, in_batched, x, y):
        calls.append((axis_size, tuple(in_batched), lib.numpy.shape(x), lib.numpy.shape(y)))
        return plain(lib.numpy, x, y, STRETCHED), any(in_batched)

    return f


def several(lib, x):
    return lib.numpy.stack([x, 2 * x])


def in_rows(lib, f, x, y):
    return lib.lax.scan(lambda c, row: (c + f(row, y), None), x, several(lib, x))[0]


def on_devices(lib, f, x, y):
    """Two lanes on each device, so that there lanes lie in arrays, too."""
    size = 2 * lib.device_count()
    xs = lib.numpy.stack([x * (1 + i / size) for i in range(size)])
    if lib is phalanx:
        return phalanx.pmap(f, in_axes=(0, None))(xs, y).mean()
    return lib.vmap(f, in_axes=(0, None))(xs, y).mean()


def on_a_mesh(lib, f):
    if lib is jax:
        return f
    mesh = phalanx.make_mesh((phalanx.device_count(),), ("i",))
    return phalanx.shard_map(f, mesh=mesh, in_specs=(P(), P()), out_specs=P())


def by_a_rule(lib, f):
    """What a rule for tangents gives that is the tangents."""
    g = lib.custom_jvp(f)
    g.defjvp(lambda primals, tangents: lib.jvp(f, primals, tangents))
    return g


# of a function of two numbers to one, another; "exact" are those that JAX knows all of
EXACT = {
    "jit": lambda lib, f: lib.jit(f),
    "checkpoint": lambda lib, f: lib.checkpoint(f),
    "jvp": lambda lib, f: lambda x, y: lib.jvp(f, (x, y), (y, x))[1],
    "vmap": lambda lib, f: lambda x, y: lib.vmap(f)(several(lib, x), several(lib, y)).sum(),
}
OTHERS = {
    "jvp of one": lambda lib, f: lambda x, y: lib.jvp(lambda x: f(x, y), (x,), (x,))[1],
    "grad": lambda lib, f: lib.grad(f),
    "grad of both": lambda lib, f: lambda x, y: sum(lib.grad(f, (0, 1))(x, y)),
    "linearize": lambda lib, f: lambda x, y: lib.linearize(f, x, y)[1](y, x),
    "vjp on lanes": lambda lib, f: lambda x, y: sum(
        lib.vmap(lib.vjp(f, x, y)[1])(several(lib, y))[0]
    ),
    "transposed jvp": lambda lib, f: lambda x, y: lib.linear_transpose(
        lambda t: lib.jvp(lambda x: f(x, y), (x,), (t,))[1] * f(x, y), x
    )(y)[0],
    "vmap of one": lambda lib, f: lambda x, y: lib.vmap(f, (0, None))(several(lib, x), y).sum(),
    "scan": lambda lib, f: lambda x, y: lib.lax.scan(
        lambda c, _: (f(c, y), None), x, length=2
    )[0],
    "rows": lambda lib, f: lambda x, y: in_rows(lib, f, x, y),
    "cond": lambda lib, f: lambda x, y: lib.lax.cond(x > 0.5, f, lambda x, y: x * y, x, y),
    "vmap around": lambda lib, f: lambda x, y: lib.vmap(lambda z: f(x, y) * z)(
        several(lib, y)
    ).sum(),
    "while": lambda lib, f: lambda x, y: lib.lax.fori_loop(
        0, lib.numpy.int32(2), lambda i, c: f(c, y), x
    ),
    "shard_map": on_a_mesh,
    "custom_jvp": by_a_rule,
    "pmap": lambda lib, f: lambda x, y: on_devices(lib, f, x, y),
}  # fmt: skip
AROUND = EXACT | OTHERS
LANES = {"vmap", "vmap of one", "pmap"}
REVERSE = {"grad", "grad of both", "vjp on lanes", "transposed jvp"}


def possible(names):
    """The inner one comes first: no reverse mode through a loop of unknown length, and no meshes
    inside of what takes all devices."""
    if "shard_map" in names and {"shard_map", "pmap"} & {*names[names.index("shard_map") + 1 :]}:
        return False
    return "while" not in names or not REVERSE & {*names[names.index("while") + 1 :]}


NESTED = [*filter(possible, [*product(AROUND), *product(AROUND, AROUND)])]
NESTED += product(["jvp", "grad", "vjp on lanes"], repeat=3)


def nested(lib, f, names):
    for name in names:
        f = AROUND[name](lib, f)
    return f


@pytest.mark.parametrize("names", NESTED, ids="-".join)
@pytest.mark.parametrize("lanes", [True, False], ids=["lanes", "alone"])
def test_nested(names, lanes):
    f = nested(phalanx, ruled(phalanx, []), names)
    factor = STRETCHED if lanes or LANES.intersection(names) else 1
    wanted = nested(jax, lambda x, y: plain(jax.numpy, x, y, factor), names)
    if lanes:
        f, wanted = phalanx.vmap(f), jax.vmap(wanted)
    given = (X, Y) if lanes else (X[0], Y[0])
    np.testing.assert_allclose(f(*given), wanted(*given), rtol=2e-5, atol=1e-5)


@pytest.mark.parametrize("names", [n for n in NESTED if set(n) <= set(EXACT)], ids="-".join)
def test_calls_are_those_of_jax(names):
    calls, wanted = [], []
    found = phalanx.vmap(nested(phalanx, ruled(phalanx, calls), names))(X, Y)
    expected = jax.vmap(nested(jax, ruled(jax, wanted), names))(X, Y)
    np.testing.assert_allclose(found, expected, rtol=2e-5)
    assert calls == wanted
