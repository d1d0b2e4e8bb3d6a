"""Estimates of programs: how much they compute, how much memory they take. Counted by hand."""

import math

import numpy as np
import pytest

import phalanx as ph
import phalanx.numpy as jnp
from phalanx import lax
from phalanx.transforms.storage import peak
from phalanx.transforms.work import MESSAGE, work

X = np.ones((100,), np.float32)
SQUARE = np.ones((30, 40), np.float32)
IMAGE, KERNEL = np.ones((1, 3, 8, 8), np.float32), np.ones((5, 3, 3, 3), np.float32)

WORK = {
    "an operation": (jnp.sin, [X], 100),
    "two": (lambda x: jnp.sin(jnp.cos(x)), [X], 200),
    "a sum reads": (lambda x: lax.reduce_sum(x, (0,)), [X], 100),
    "a product": (lambda a: lax.dot(a, a.T), [SQUARE], 30 * 40 + 30 * 30 * 40),
    "a convolution": (
        lambda x, k: lax.conv(x, k, (1, 1), "VALID"), [IMAGE, KERNEL], 5 * 6 * 6 * 3 * 3 * 3,
    ),
    "a scan": (lambda x: lax.scan(lambda c, _: (jnp.sin(c), None), x, None, 7)[0], [X], 700),
    "the dearer branch": (
        lambda x: lax.cond(True, jnp.sin, lambda x: jnp.sin(jnp.cos(x)), x), [X], 200,
    ),
    "lanes": (ph.pmap(jnp.sin), [SQUARE], 30 * 40),
    "who knows": (
        lambda x: lax.while_loop(lambda c: c[0] < 5, lambda c: c + 1, x), [X], math.inf,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WORK)
def test_work(name):
    f, args, expected = WORK[name]
    got = work(ph.make_program(f)(*args))
    # what stands around (conversions, slices of a lane) may add to it
    assert expected <= got <= 1.5 * expected


def test_a_message_is_work():
    program = ph.make_program(ph.pmap(lambda x: lax.psum(x, "i"), axis_name="i"))(SQUARE)
    assert work(program) >= MESSAGE


N = X.nbytes
PEAK = {
    "an elementwise result": (lambda x: jnp.sin(x), N),
    "a chain is fused": (lambda x: jnp.sin(jnp.cos(jnp.exp(x))), N),
    "two results": (lambda x: (jnp.sin(x), jnp.cos(x)), 2 * N),
    "sorted, then summed": (lambda x: lax.sort(x).sum(), N + 4),
    "one after the other": (lambda x: lax.sort(lax.sort(lax.sort(x))), 2 * N),
    "a product stores its operands": (
        lambda x: lax.dot(jnp.sin(x), jnp.cos(x)), 2 * N + 4,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PEAK)
def test_peak(name):
    f, expected = PEAK[name]
    assert peak(ph.make_program(f)(X)) == expected


def test_some_values_and_inputs_do_not_count():
    program = ph.make_program(jnp.sin)(X)
    assert peak(program, frozenset(program.outputs)) == 0


def test_inside_a_loop_counts_what_a_run_takes():
    def run(c, _):
        return lax.sort(lax.sort(c)), None

    once = peak(ph.make_program(lambda x: run(x, None)[0])(X))
    for length in (1, 50):
        program = ph.make_program(lambda x, n=length: lax.scan(run, x, None, n)[0])(X)
        assert once <= peak(program) <= once + 2 * N
