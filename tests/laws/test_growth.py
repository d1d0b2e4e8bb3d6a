"""What tracing, lowering and checking cost grows in proportion to the program.

Cost is how often functions of Python are called, which is the same in each run. Where a program has
twice as much of something, twice as many calls are added.
"""

import cProfile
import gc
import pstats

import numpy as np
import pytest

import phalanx
import phalanx.numpy as jnp
from phalanx import P, lax

N = 15
X = np.linspace(0.5, 1.5, 4, dtype=np.float32)
LINEAR = 2.4  # calls that are added from 2 n to 4 n, by those from n to 2 n: 2, and 4 for a square


def switched(n):
    branches = [lambda x, i=i: jnp.sin(x * i) + i for i in range(n)]
    return lambda x: lax.switch(x.sum().astype(int), branches, x)


def switched_each(n):
    branches = [lambda x, i=i: jnp.sin(x * i) + i for i in range(n)]
    one = phalanx.grad(lambda x, k: lax.switch(k, branches, x))
    return lambda x: phalanx.vmap(one)(x, x.astype(int))


def chained(step):
    def make(n):
        def f(x):
            y = x
            for i in range(n):
                y = step(i, y, x)
            return y

        return f

    return make


def listed(wrap):
    """``wrap(f)``, of a function of as many operands and results."""

    def make(n):
        f = wrap(lambda *xs: [jnp.sin(x) * xs[0] for x in xs])
        return lambda x: f(*[x * i for i in range(n)])

    return make


def closing_over(wrap):
    """``wrap(f)``, where ``f`` closes over as many traced values."""

    def make(n):
        def f(x):
            values = [x * i for i in range(n)]
            return wrap(lambda y: sum([y * v for v in values], y))(x)

        return f

    return make


def carrying(n):
    def f(x):
        start = [x * i for i in range(n)]
        return lax.scan(lambda c, r: ([jnp.sin(v) * r for v in c], c[0]), start, x)

    return f


def over_one(f):
    return phalanx.shard_map(f, mesh=phalanx.make_mesh((1,), ("i",)), in_specs=P(), out_specs=P())


def ruled(f):
    g = phalanx.custom_jvp(f)
    g.defjvp(lambda xs, ts: phalanx.jvp(f, xs, ts))
    return g


def written(n):
    def f(x):
        refs = [phalanx.new_ref(x * i) for i in range(n)]
        lax.fori_loop(0, 3, lambda i, _: [ref.addupdate(x) for ref in refs] and None, None)
        return [ref[...] for ref in refs]

    return f


OF = {
    "branches": switched,
    "branches in lanes": switched_each,
    "selects": chained(lambda i, y, x: jnp.where(y > i, y * 2, x)),
    "guarded quotients": chained(lambda i, y, x: jnp.where(y > i, x / y, y)),
    "roots": chained(lambda i, y, x: jnp.sqrt(y * y + x)),
    "conditions": chained(lambda i, y, x: lax.cond(y[0] > i, jnp.sin, lambda z: z * x, y)),
    "loops": chained(lambda i, y, x: lax.fori_loop(0, 3, lambda j, z: z * x + j, y)),
    "functions": chained(lambda i, y, x: phalanx.jit(lambda z: z * x + i)(y)),
    "checkpoints": chained(lambda i, y, x: phalanx.checkpoint(lambda z: jnp.sin(z) * x)(y)),
    "rules": chained(lambda i, y, x: ruled(lambda z: jnp.sin(z) + i)(y)),
    "updates": chained(lambda i, y, x: y.at[i % 4].set(x[0])),
    "keys": chained(lambda i, y, x: y + phalanx.random.normal(phalanx.random.key(i), (4,))),
    "operands of jit": listed(phalanx.jit),
    "operands of checkpoint": listed(phalanx.checkpoint),
    "operands of vmap": listed(phalanx.vmap),
    "operands of pmap": listed(phalanx.pmap),
    "operands of shard_map": listed(over_one),
    "operands of a rule": listed(ruled),
    "values closed over by jit": closing_over(phalanx.jit),
    "values closed over by vmap": closing_over(phalanx.vmap),
    "values closed over by pmap": closing_over(phalanx.pmap),
    "values closed over by checkpoint": closing_over(phalanx.checkpoint),
    "values closed over by a rule": closing_over(ruled),
    "values closed over by a loop": closing_over(lambda f: lambda y: lax.map(f, y)),
    "values carried": carrying,
    "references": written,
}


def total(f):
    return lambda x: sum(y.sum() for y in phalanx.tree.leaves(f(x)))


STAGES = {
    "traced": lambda f: phalanx.make_program(f)(X),
    "lowered": lambda f: phalanx.jit(f).lower(X),
    "checked": lambda f: phalanx.check(f)(X),
    "differentiated": lambda f: phalanx.jit(phalanx.grad(total(f))).lower(X),
    "of lanes": lambda f: phalanx.jit(phalanx.vmap(f)).lower(np.stack([X, X])),
}


def calls(stage, f):
    gc.disable()  # what dies calls functions, too
    profile = cProfile.Profile()
    try:
        profile.enable()
        stage(f)
        profile.disable()
    finally:
        gc.enable()
    return pstats.Stats(profile).total_calls


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("name", OF)
def test_cost_is_linear(name, stage):
    STAGES[stage](OF[name](2))  # what is made once in a process
    few, some, many = (calls(STAGES[stage], OF[name](k * N)) for k in (1, 2, 4))
    assert many - some < LINEAR * (some - few) + 500, (few, some, many)
