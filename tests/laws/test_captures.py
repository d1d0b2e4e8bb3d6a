"""Whatever holds a program, runs it right with whatever its function and its rules close over.

``AROUND`` has every way in which a function becomes a sub-program, ``CAPTURED`` everything that it
may close over, ``USES`` where it does: in the function, or in a derivative rule of its own. All of
them, with a loop of no, one and several runs, are tried under jit, grad, vmap and pmap. The oracle
is Python and NumPy in float64, that of derivatives are its finite differences.

Every test takes all ways; how many runs each of them gets, and under what, a seed draws.
"""

from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest

import phalanx
import phalanx.numpy as jnp
from phalanx import lax, random
from phalanx.custom_batching import sequential_vmap
from phalanx.custom_derivatives import linear_call
from tests.compare import close as close_within
from tests.laws.drawn import holding_programs
from tests.laws.slopes import along

close = partial(close_within, rtol=3e-5)

SIZE = 3
MANY = 5000  # more than what programs write down
COUNTS = (0, 1, 3)
X = np.linspace(0.2, 0.9, SIZE).astype(np.float32)
LANES = np.stack([X, X * 0.5])


# ---- what a function closes over ----------------------------------------------------------------

TABLE = np.linspace(0.5, 1.5, MANY).astype(np.float32)
KEY = random.key(7)
DRAWN = np.asarray(random.uniform(KEY, (SIZE,)))

# of what is given to the whole as arguments: a function that gives factors anew at every call
CAPTURED = {
    "small": lambda given: constant(jnp.asarray(TABLE[:SIZE])),
    "large": lambda given: first_of(jnp.asarray(TABLE)),
    "small of NumPy": lambda given: constant(TABLE[:SIZE].copy()),
    "large of NumPy": lambda given: first_of(TABLE.copy()),
    "traced": lambda given: constant(given.w),
    "large and traced": lambda given: first_of(given.many),
    "key": lambda given: drawn(random.wrap_key_data(random.key_data(KEY))),
    "traced key": lambda given: drawn(given.key),
}
FACTORS = {name: DRAWN if "key" in name else TABLE[:SIZE] for name in CAPTURED}


def constant(x):
    return lambda: x


def first_of(x):
    return lambda: lax.slice_in_dim(x, 0, SIZE)


def drawn(key):
    return lambda: random.uniform(key, (SIZE,))


# ---- where it uses it ---------------------------------------------------------------------------


def plain(factors, in_rule):
    return lambda x: jnp.sin(x * factors()) + 0.1


def with_tangents(factors, in_rule):
    f = phalanx.custom_jvp(plain(factors, None))

    @f.defjvp
    def rule(primals, tangents):
        (x,), (t,) = primals, tangents
        return f(x), jnp.cos(x * in_rule()) * in_rule() * t

    return f


def with_cotangents(factors, in_rule):
    f = phalanx.custom_vjp(plain(factors, None))
    f.defvjp(lambda x: (f(x), x), lambda x, ct: (jnp.cos(x * in_rule()) * in_rule() * ct,))
    return f


USES = {"function": plain, "jvp rule": with_tangents, "vjp rule": with_cotangents}


# ---- how it becomes a program -------------------------------------------------------------------


def repeated(f, x, n):
    for _ in range(n):
        x = f(x)
    return x


def rows(f, x, n):
    return sum((f(x * i) for i in range(1, n + 1)), np.zeros_like(x))


def stacked(x, n):
    return jnp.arange(1.0, n + 1)[:, None] * x


def products(f, x, n):
    """a * b = a b f(0.1) is associative."""
    total = x
    for i in range(2, n + 1):
        total = total * (x * i) * f(0.1)
    return total


def product_scan(f, x, n):
    made = lax.associative_scan(lambda a, b: a * b * f(0.1 * jnp.ones(SIZE)), stacked(x, max(n, 1)))
    return made[-1]


def in_rows(f, x, n):
    return lax.scan(lambda c, r: (c, f(r)), x, stacked(x, n))[1].sum(0)


def counted(f, x, n):
    return lax.while_loop(lambda s: s[0] < n, lambda s: (s[0] + 1, f(s[1])), (0, x))[1]


def chosen(f, x, n):
    return lax.switch(jnp.int32(n), [lambda y: y, f, lambda y: y, lambda y: f(f(f(y)))], x)


def linear(f, x, n):
    def step(x):
        return linear_call(lambda x, one: one * f(x), lambda x, ct: ct * f(x), x, jnp.ones(SIZE))

    return repeated(step, x, n)


def by_name(f, x, n):
    return repeated(lax.composite(f, "a.function"), x, n)


def by_rule(f, x, n):
    return repeated(sequential_vmap(f), x, n)


def mapped(transform):
    return lambda f, x, n: transform(f)(stacked(x, n)).sum(0) if n else jnp.zeros(SIZE)


def mapped_twice(f, x, n):
    both = phalanx.pmap(phalanx.pmap(f))
    return both(stacked(x, n)[:, None])[:, 0].sum(0) if n else jnp.zeros(SIZE)


# the function on arrays, its oracle, and whether reverse mode goes through it
AROUND = {
    "jit": (lambda f, x, n: repeated(phalanx.jit(f), x, n), repeated),
    "checkpoint": (lambda f, x, n: repeated(phalanx.checkpoint(f), x, n), repeated),
    "cond": (lambda f, x, n: repeated(lambda y: lax.cond(n > 0, f, jnp.cos, y), x, n), repeated),
    "switch": (chosen, repeated),
    "scan": (lambda f, x, n: lax.scan(lambda c, _: (f(c), None), x, length=n)[0], repeated),
    "scan, unrolled": (
        lambda f, x, n: lax.scan(lambda c, _: (f(c), None), x, length=n, unroll=2)[0], repeated
    ),
    "rows": (in_rows, rows),
    "fori_loop": (lambda f, x, n: lax.fori_loop(0, n, lambda i, y: f(y), x), repeated),
    "fori_loop, dynamic": (
        lambda f, x, n: lax.fori_loop(0, jnp.int32(n), lambda i, y: f(y), x), repeated
    ),
    "while_loop": (counted, repeated),
    "map": (lambda f, x, n: lax.map(f, stacked(x, n)).sum(0), rows),
    "map, in batches": (lambda f, x, n: lax.map(f, stacked(x, n), batch_size=2).sum(0), rows),
    "associative_scan": (product_scan, products),
    "composite": (by_name, repeated),
    "linear_call": (linear, repeated),
    "custom_vmap": (by_rule, repeated),
    "vmap": (mapped(phalanx.vmap), rows),
    "pmap": (mapped(phalanx.pmap), rows),
    "pmap in pmap": (mapped_twice, rows),
}  # fmt: skip
FORWARD_ONLY = {"fori_loop, dynamic", "while_loop"}


def everything(use, what, ways, given):
    """``x`` to the results of ``ways`` to run the function, each with a number of runs."""
    factors, in_rule = CAPTURED[what](given), CAPTURED[what](given)
    f = USES[use](factors, in_rule)
    return lambda x: {(way, n): AROUND[way][0](f, x, n) for way, n in ways}


def expected(what, ways, x):
    f = lambda x: np.sin(x * FACTORS[what]) + 0.1  # noqa: E731
    return {(way, n): AROUND[way][1](f, np.asarray(x, float), n) for way, n in ways}


def arguments():
    return SimpleNamespace(w=TABLE[:SIZE], many=TABLE, key=KEY)


def slopes(what, ways, x):
    """The derivative along ones of all results, added up."""

    def total(x):
        return sum(y.sum(-1) for y in expected(what, ways, x).values())

    return along(total, (np.asarray(x, float),), (np.ones_like(x, float),)) if ways else 0.0


CASES = [(use, what) for use in USES for what in CAPTURED]
cases = pytest.mark.parametrize("use, what", CASES, ids=[f"{w} in the {u}" for u, w in CASES])


@pytest.fixture
def source(pytestconfig, request):
    seed = pytestconfig.option.hypothesis_seed
    return np.random.default_rng([seed, *request.node.name.encode()])


def drawn_ways(source):
    """Every way, with a number of runs."""
    return [(way, int(source.choice(COUNTS))) for way in AROUND]


@pytest.mark.spmd
@cases
def test_what_is_captured(use, what, source):
    # one program for all: of three parts, each under something else
    every, part = drawn_ways(source), source.permutation(len(AROUND)) % 3
    parts = [[way for way, p in zip(every, part, strict=True) if p == k] for k in range(3)]

    backward = [[(way, n) for way, n in ways if way not in FORWARD_ONLY] for ways in parts]
    forward = parts if use != "vjp rule" else [[], [], []]

    @phalanx.jit
    def under_all(points, given):
        def lane(k):
            def total(ways):
                f = everything(use, what, ways, SimpleNamespace(**given))
                return lambda x: sum((y.sum() for y in f(x).values()), x[0] * 0)

            def results(x):
                values = everything(use, what, parts[k], SimpleNamespace(**given))(x)
                tangent = phalanx.jvp(total(forward[k]), (x,), (jnp.ones(SIZE),))[1]
                return values, phalanx.grad(total(backward[k]))(x).sum(), tangent

            return results

        alone, batched, mapped = points
        return lane(0)(alone), phalanx.vmap(lane(1))(batched), phalanx.pmap(lane(2))(mapped)

    points = [X, LANES, LANES]
    for k, (out, x) in enumerate(zip(under_all(points, vars(arguments())), points, strict=True)):
        values, gradient, tangent = out
        close(values, expected(what, parts[k], x))
        for slope, ways in ((gradient, backward[k]), (tangent, forward[k])):
            np.testing.assert_allclose(slope, slopes(what, ways, x), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("what", CAPTURED)
def test_what_is_captured_eagerly(what, source):
    ways = drawn_ways(source)
    close(everything("function", what, ways, arguments())(X), expected(what, ways, X))


def test_every_primitive_with_a_program_is_among_them():
    used = set()
    ways = [(way, 3) for way in AROUND]
    for use in USES:
        program = phalanx.make_program(everything(use, "small", ways, arguments()))(X)
        used |= {e.prim for e in program.walk() if e.prim.subprograms is not None}
    assert used == holding_programs()
