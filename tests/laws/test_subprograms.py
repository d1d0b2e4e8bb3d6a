"""The primitives that hold programs obey the laws, whatever the programs do."""

from functools import partial

import numpy as np
import pytest

import phalanx
import phalanx.numpy as jnp
from phalanx import lax
from phalanx.laws import JitError, check_batch, check_grads, check_jit, check_pmap
from phalanx.laws.compare import require_same

X = np.linspace(-0.9, 1.1, 4).astype(np.float32)
W = np.array([0.4, -0.7, 1.3], np.float32)


def advance(w, i, x):
    return jnp.sin(x * w) + 0.1 * i


def call(x, w):
    inner = phalanx.jit(lambda y: (jnp.sin(y) * w, y.sum()))
    first, total = inner(x)
    return phalanx.jit(lambda a: inner(a)[0] + total)(first)


def mapped(x, w):
    return phalanx.pmap(lambda r: jnp.tanh(r * w) - lax.pmean(r, "i"), "i")(jnp.stack([x, 2 * x]))


def mapped_to_one(x, w):
    f = phalanx.pmap(
        lambda r, w: (lax.psum(r * w, "i"), r + w), "i", in_axes=(1, None), out_axes=(None, 1)
    )
    return f(jnp.stack([x, 2 * x, x * x], 1), w)


def nested(x, w):
    inner = phalanx.pmap(lambda a, b: a * b + lax.psum(a, ("i", "j")), "j", in_axes=(0, None))
    return phalanx.pmap(inner, "i")(jnp.outer(jnp.ones(2), x), jnp.stack([w, w * 2]))


def scan(x, w):
    def body(carry, row):
        new = jnp.tanh(carry * row + w)
        return new, (new.sum(), carry * 2)

    return lax.scan(body, x, jnp.stack([x, x + 1, x * x]), reverse=True)


def scan_of_indices(x, w):
    return lax.scan(lambda c, i: (c * w + jnp.asarray(x)[i], c), w, jnp.arange(4), unroll=3)


def fori(x, w):
    return lax.fori_loop(0, 4, lambda i, y: advance(w, i, y), x)


def fori_of_scans(x, w):
    def body(i, y):
        return lax.scan(lambda c, r: (c + r * w, jnp.sin(c)), y, jnp.stack([y, x]))[1][1]

    return lax.fori_loop(1, 3, body, x)


def cond(x, w):
    above = lax.cond(x.sum() > 0.1, lambda a: jnp.sin(a) * w, lambda a: a**2, x)
    return lax.cond(w > 5, lambda a: a, lambda a: jnp.cos(a) + x, above)


def switch(x, w):
    index = (w > 0).astype(jnp.int32) + (w > 1).astype(jnp.int32)
    return lax.switch(index, [lambda a: a, lambda a: a * w, lambda a: jnp.sin(a) + w], x)


def while_loop(x, w):
    body = lambda s: (s[0] + 1, advance(w, 1, s[1]))  # noqa: E731
    return lax.while_loop(lambda s: s[0] < 3 + w, body, (0.0, x))


def pmap_in_a_scan(x, w):
    step = phalanx.pmap(lambda c, w: jnp.sin(c) + lax.pmean(c * w, "i"), "i", in_axes=(0, None))
    return lax.scan(lambda c, r: (step(c, w + r), c.sum()), x, x[:2])


def pmap_in_a_branch(x, w):
    step = phalanx.pmap(lambda c: c * w - lax.psum(c, "i"), "i")
    return lax.cond(w > 0, step, lambda c: c * x, x)


def map_rows(x, w):
    return lax.map(lambda r: r * w + x.sum(), x)


def vmapped(x, w):
    return phalanx.vmap(lambda r: jnp.sin(r * w) - lax.pmean(r, "i"), axis_name="i")(x)


DOTS = phalanx.checkpoint_policies.dots_saveable


def checkpointed(x, w):
    @phalanx.checkpoint
    def part(a):
        inner = phalanx.checkpoint(lambda y: jnp.sin(y) * w, policy=DOTS)
        return lax.cond(w > 0, inner, lambda y: y * x, a * a) - jnp.tanh(x).sum()

    return part(jnp.exp(part(x)))


def scan_of_checkpoints(x, w):
    @partial(phalanx.checkpoint, prevent_cse=False, policy=DOTS)
    def layer(carry, row):
        hidden = phalanx.jit(lambda a: jnp.tanh(jnp.outer(row, a) @ a * w))(carry)
        return hidden, hidden.sum()

    return lax.scan(layer, x, jnp.stack([x, x + 1, x * x]))


FUNCTIONS = [
    call, checkpointed, cond, fori, fori_of_scans, map_rows, mapped, mapped_to_one, nested,
    pmap_in_a_branch, pmap_in_a_scan, scan, scan_of_checkpoints, scan_of_indices, switch, vmapped,
    while_loop,
]  # fmt: skip
functions = pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f.__name__)


@functions
def test_jit(f):
    check_jit(f, (X, W[0]), order=0)


@functions
def test_grads(f):
    check_grads(f, (X, W[0]), order=2, modes="fwd" if f is while_loop else ("fwd", "rev"))


@functions
@pytest.mark.parametrize("in_axes", [(0, 0), (None, 0), (1, None)])
def test_batch(f, in_axes):
    xs = {0: np.stack([X, X + 0.3, -X]), 1: np.stack([X, -X, X + 0.3], 1), None: X}[in_axes[0]]
    ws = W if in_axes[1] == 0 else W[0]
    check_batch(f, (xs, ws), in_axes)


@pytest.mark.spmd
@functions
def test_pmap(f):
    order = 0 if f is while_loop else 1
    check_pmap(f, (np.stack([X, -X, X + 0.3]), W), "outer", order=order)


@pytest.mark.spmd
@functions
def test_pmap_among_lanes(f):
    """The same, with exchanges between the lanes before and after."""

    def exchanging(x, w):
        out = f(lax.ppermute(x, "lane", [(0, 1), (1, 2), (2, 0)]), w)
        return phalanx.tree.map(lambda y: y * lax.psum(w, "lane"), out)

    order = 0 if f is while_loop else 1
    check_pmap(exchanging, (np.stack([X, -X, X + 0.3]), W), "lane", order=order)


@functions
def test_eager_lanes(f):
    """Under disable_jit Python runs the branches and loops, except where lanes differ."""
    args = np.stack([X, -X, X + 0.3]), W
    with phalanx.disable_jit():
        eager = f(X, W[0]), phalanx.vmap(f)(*args)
    require_same(JitError, "eager", eager[0], f(X, W[0]))
    require_same(JitError, "eager lanes", eager[1], phalanx.vmap(f)(*args))


# ---- collectives inside -----------------------------------------------------------------------


def scan_of_collectives(x, w):
    def body(carry, row):
        return lax.pmean(jnp.sin(carry), "i") + row * w, lax.ppermute(row, "i", [(0, 1), (1, 0)])

    return lax.scan(body, x, jnp.stack([x, x * x]))


def loop_of_collectives(x, w):
    return lax.fori_loop(0, 3, lambda i, y: jnp.sin(y) + lax.psum(y * w, "i") / (i + 2), x)


def cond_of_collectives(x, w):
    same = lax.psum(w, "i") > 0
    return lax.cond(same, lambda a: lax.psum(a, "i") * w, lambda a: a, x)


def call_of_collectives(x, w):
    return phalanx.jit(lambda a: a - lax.pmean(a, "i") * lax.axis_index("i"))(x * w)


def checkpoint_of_collectives(x, w):
    part = phalanx.checkpoint(lambda a: jnp.sin(a - lax.pmean(a * w, "i") * lax.axis_index("i")))
    return lax.scan(lambda c, r: (part(c * r), c.sum()), x, jnp.stack([x, x * x]))


COLLECTING = [
    scan_of_collectives, loop_of_collectives, cond_of_collectives, call_of_collectives,
    checkpoint_of_collectives,
]  # fmt: skip


@pytest.mark.spmd
@pytest.mark.parametrize("f", COLLECTING, ids=lambda f: f.__name__)
@pytest.mark.parametrize("in_axes", [(0, 0), (0, None), (1, 0)])
def test_collectives_inside(f, in_axes):
    xs = np.stack([X, -X, X + 0.3], in_axes[0])
    if f is scan_of_collectives:
        xs, ws = xs.take([0, 1], in_axes[0]), W[:2]
    else:
        ws = W
    check_pmap(f, (xs, ws if in_axes[1] == 0 else W[0]), "i", in_axes=in_axes)
