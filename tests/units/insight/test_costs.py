"""What programs compute and move: counted by hand, and by XLA."""

import numpy as np
import pytest

import phalanx as ph
import phalanx.numpy as jnp
from benchmarks import transformer
from phalanx import lax
from phalanx.insight.costs import by_line, loops_in, steps
from phalanx.insight.systems import machine

X = np.ones((100,), np.float32)
A = np.ones((30, 40), np.float32)
TALL = np.ones((1000, 4), np.float32)
H100 = machine("h100")

OPERATIONS = {
    "elementwise": (lambda x: jnp.sin(x) * x, [X], 200),
    "a product": (lambda a: lax.dot(a, a.T), [A], 2 * 30 * 40 * 30),
    "a loop": (lambda x: lax.scan(lambda c, _: (c * x, None), x, None, 7)[0], [X], 700),
    "lanes": (ph.pmap(lambda x: x * x), [np.ones((8, 100), np.float32)], 800),
    "a loop in lanes": (
        ph.pmap(lambda x: lax.fori_loop(0, 5, lambda i, c: c * x, x)),
        [np.ones((8, 100), np.float32)], 8 * 5 * 100,
    ),
    "the dearer branch": (
        lambda x: lax.cond(True, lambda x: x, lambda x: x * x * x, x), [X], 200,
    ),
    "a branch of which nobody knows": (
        lambda x: lax.cond(
            x[0] > 0, lambda x: lax.while_loop(lambda c: c[0] < 9, lambda c: c, x),
            lambda x: lax.fori_loop(0, 9, lambda i, c: c * x, x), x,
        ),
        [X], 900,
    ),
    "complex numbers": (
        lambda z: lax.dot(z * z + z, z.T), [A.astype(np.complex64)],
        1200 * (6 + 2) + 30 * 40 * 30 * (6 + 2),
    ),
    "what moves": (lambda a: a.T.reshape(-1)[::-1], [A], 0),
}  # fmt: skip


@pytest.mark.parametrize("name", OPERATIONS)
def test_operations(name):
    f, args, expected = OPERATIONS[name]
    found = sum(s.operations for s in steps(ph.make_program(f)(*args)))
    assert expected <= found <= expected + 40  # counting in loops


BYTES = {
    "fused": (lambda x: jnp.sin(jnp.cos(x)) + x, [X], 2 * 400),
    "a product stores": (lambda a: lax.dot(jnp.sin(a), a.T), [A], 4 * (4 * 1200 + 1200 + 900)),
    "a sum": (lambda x: jnp.sum(x * x), [X], 400 + 4),
    "rows": (lambda t: t[:3] * 2, [TALL], 4 * 12 * 4),
    "rows of a sum": (lambda t: lax.slice(t + 1, (0, 0), (3, 4)), [TALL], 2 * 12 * 4),
    "a few of what is turned": (lambda t: t[::-1].T[:, 5:7], [TALL], 2 * 8 * 4),
    "both halves": (lambda x: x[:50] + x[50:], [X], (4 * 50 + 2 * 50) * 4),
    "rows by number": (lambda t, i: t[i], [TALL, np.arange(9)], 2 * 36 * 4 + 72 + 36),
    "what a loop writes": (
        lambda t: lax.fori_loop(0, 50, lambda i, t: t.at[i].set(1.0), t),
        [TALL],
        50 * 7 * 4 * 4,
    ),
    "what an argument is with a row": (lambda t: t.at[3].set(1.0), [TALL], 2 * 4000 * 4),
    "what is written over, and needed": (
        lambda t: lax.fori_loop(0, 5, lambda i, t: t.at[i].set(1.0) + t, t),
        [TALL],
        5 * 5 * 4000 * 4,
    ),
    "what a scan stacks": (
        lambda x: lax.scan(lambda c, _: (c, c), x, None, length=50)[1],
        [X],
        50 * 2 * 400,
    ),
}


@pytest.mark.parametrize("name", BYTES)
def test_bytes(name):
    f, args, expected = BYTES[name]
    found = sum(s.often * s.moved for s in steps(ph.make_program(f)(*args)))
    assert expected * 0.6 <= found <= expected * 1.3


def test_a_training_step_computes_what_xla_counts():
    step = ph.jit(ph.value_and_grad(lambda p, t: transformer.loss(ph, p, t, t), argnums=0))
    params = transformer.init(np, layers=2)
    traced = step.trace(params, np.zeros((2, 32), np.int32))
    theirs = traced.lower().compile().cost_analysis()
    every = list(steps(traced.program))
    ours = sum(s.operations for s in every)
    assert 0.8 < ours / theirs["flops"] < 1.25
    moved = sum(s.often * s.moved for s in every)
    assert 0.3 < moved / theirs["bytes accessed"] < 3


def test_lines_wait_for_arithmetic_or_for_memory():
    big = ph.ShapeDtypeStruct((4096, 4096), jnp.bfloat16)

    def f(a):
        b = a @ a
        return b + 1

    product, total = by_line(steps(ph.jit(f).trace(big).program), H100, 1)
    assert (product.bound, total.bound) == ("compute", "memory")
    assert product.seconds == pytest.approx(2 * 4096**3 / 989e12)
    assert total.seconds == pytest.approx(4096**2 * 2 * 2 / 3352e9)


def test_nobody_knows_how_long_some_loops_run():
    loop = ph.make_program(lambda x: lax.while_loop(lambda c: c[0] < 5, lambda c: c + 1, x))(X)
    assert [run.length for run in loops_in(loop)] == [None]
    assert not loops_in(ph.make_program(jnp.sin)(X))
