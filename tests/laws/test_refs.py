"""A program with mutable references equals its functional twin, under all transformations.

A program is drawn as a tree of statements about a number ``a`` and a vector ``b``. One reading of
it keeps both in references, which loops, branches and compiled functions write in place; the twin
passes them on as values.
"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import phalanx
import phalanx.numpy as jnp
from phalanx import lax
from tests.compare import close_to_scale

pytestmark = pytest.mark.usefixtures("x64")

SIZE = 3


places = st.integers(0, SIZE - 1)
simple = st.one_of(
    st.tuples(st.sampled_from(["number", "vector", "sum"])),
    st.tuples(st.sampled_from(["set", "add", "swap"]), places),
)


def _holding(block):
    return st.one_of(
        st.tuples(st.just("scan"), st.integers(0, 3), block),
        st.tuples(st.just("cond"), st.floats(-1, 1, width=32), block, block),
        st.tuples(st.sampled_from(["jit", "checkpoint", "rows"]), block),
    )


def _blocks(statement):
    return st.lists(statement, min_size=1, max_size=3)


programs = _blocks(st.recursive(simple, lambda s: _holding(_blocks(s)), max_leaves=5))
forward_only = _blocks(st.tuples(st.just("while"), st.integers(0, 2), _blocks(simple)))


# ---- with references ----------------------------------------------------------------------------


def run(block, a, b, x):
    for kind, *how in block:
        WRITING[kind](a, b, x, *how)


def _number(a, b, x):
    a[...] = jnp.sin(a[...]) * x


def _vector(a, b, x):
    b[...] = b[...] * x + a[...]


def _sum(a, b, x):
    a[...] += jnp.sum(b[...])


def _set(a, b, x, i):
    b[i] = a[...] * x


def _add(a, b, x, i):
    b.addupdate(jnp.cos(a[...]), i)


def _swap(a, b, x, i):
    a[...] = phalanx.ref.swap(b, i, a[...])


def _scan(a, b, x, length, block):
    lax.scan(lambda carry, _: (run(block, a, b, x), None), None, None, length=length)


def _cond(a, b, x, limit, first, second):
    lax.cond(a[...] > limit, lambda: run(first, a, b, x), lambda: run(second, a, b, x))


def _jit(a, b, x, block):
    phalanx.jit(lambda b, x: run(block, a, b, x))(b, x)


def _checkpoint(a, b, x, block):
    phalanx.checkpoint(lambda a, x: run(block, a, b, x))(a, x)


def _rows(a, b, x, block):
    def each(carry, row):
        row[...] = jnp.tanh(row[...]) * x
        own = phalanx.new_ref(jnp.ones(SIZE) * row[...])
        run(block, a, own, x)
        return carry + own[0], None

    total, _ = lax.scan(each, 0 * x, b)
    a[...] += total


def _while(a, b, x, count, block):
    def body(i):
        run(block, a, b, x)
        return i + 1

    lax.while_loop(lambda i: (i < count) & (a[...] < 1e6), body, 0)


WRITING = {
    "number": _number, "vector": _vector, "sum": _sum, "set": _set, "add": _add, "swap": _swap,
    "scan": _scan, "cond": _cond, "jit": _jit, "checkpoint": _checkpoint, "rows": _rows,
    "while": _while,
}  # fmt: skip


def in_place(block):
    def function(x):
        a, b = phalanx.new_ref(jnp.float64(0.5)), phalanx.new_ref(jnp.arange(1.0, 1.0 + SIZE))
        run(block, a, b, x)
        return a[...] + jnp.sum(b[...] * jnp.arange(1.0, 1.0 + SIZE))

    return function


# ---- the twin -----------------------------------------------------------------------------------


def twin(block, state, x):
    for kind, *how in block:
        state = PASSING[kind](*state, x, *how)
    return state


def _pass_cond(a, b, x, limit, first, second):
    return lax.cond(a > limit, lambda s: twin(first, s, x), lambda s: twin(second, s, x), (a, b))


def _pass_rows(a, b, x, block):
    total = 0 * x
    for i in range(SIZE):
        row = jnp.tanh(b[i]) * x
        b = b.at[i].set(row)
        a, own = twin(block, (a, jnp.ones(SIZE) * row), x)
        total = total + own[0]
    return a + total, b


def _pass_while(a, b, x, count, block):
    def body(state):
        i, s = state
        return i + 1, twin(block, s, x)

    return lax.while_loop(lambda s: (s[0] < count) & (s[1][0] < 1e6), body, (0, (a, b)))[1]


PASSING = {
    "number": lambda a, b, x: (jnp.sin(a) * x, b),
    "vector": lambda a, b, x: (a, b * x + a),
    "sum": lambda a, b, x: (a + jnp.sum(b), b),
    "set": lambda a, b, x, i: (a, b.at[i].set(a * x)),
    "add": lambda a, b, x, i: (a, b.at[i].add(jnp.cos(a))),
    "swap": lambda a, b, x, i: (b[i], b.at[i].set(a)),
    "scan": lambda a, b, x, n, block: lax.fori_loop(0, n, lambda _, s: twin(block, s, x), (a, b)),
    "cond": _pass_cond,
    "jit": lambda a, b, x, block: twin(block, (a, b), x),
    "checkpoint": lambda a, b, x, block: twin(block, (a, b), x),
    "rows": _pass_rows,
    "while": _pass_while,
}


def passed_on(block):
    def function(x):
        a, b = twin(block, (jnp.float64(0.5), jnp.arange(1.0, 1.0 + SIZE)), x)
        return a + jnp.sum(b * jnp.arange(1.0, 1.0 + SIZE))

    return function


# ---- the laws -----------------------------------------------------------------------------------

X = np.array([0.7, -0.4, 1.1])


def summed(f):
    return lambda x: phalanx.lax.psum(f(x), "lanes") * f(x)


FORWARD = {
    "alone": lambda f: f(X[0]),
    "jit": lambda f: phalanx.jit(f)(X[0]),
    "jvp": lambda f: phalanx.jvp(f, (X[0],), (X[1],)),
    "vmap": lambda f: phalanx.vmap(f)(X),
    "vmap of jvp": lambda f: phalanx.vmap(lambda x: phalanx.jvp(f, (x,), (x,)))(X),
    "pmap": lambda f: phalanx.pmap(summed(f), axis_name="lanes")(X),
}
REVERSE = {
    "grad": lambda f: phalanx.grad(f)(X[0]),
    "jit of grad": lambda f: phalanx.jit(phalanx.grad(f))(X[0]),
    "grad of jit": lambda f: phalanx.grad(phalanx.jit(f))(X[0]),
    "vmap of grad": lambda f: phalanx.vmap(phalanx.grad(f))(X),
    "pmap of grad": lambda f: phalanx.pmap(phalanx.grad(summed(f)), axis_name="lanes")(X),
}


@pytest.mark.parametrize("how", [*FORWARD, *REVERSE])
@given(block=programs)
def test_a_program_with_references_equals_its_twin(how, block):
    transform = (FORWARD | REVERSE)[how]
    close_to_scale(transform(in_place(block)), transform(passed_on(block)))


@pytest.mark.parametrize("how", FORWARD)
@given(block=forward_only)
def test_so_it_does_in_loops_of_unknown_length(how, block):
    close_to_scale(FORWARD[how](in_place(block)), FORWARD[how](passed_on(block)))


@given(block=programs)
def test_references_from_outside_hold_what_the_twin_gives(block):
    a, b = phalanx.new_ref(jnp.float64(0.5)), phalanx.new_ref(jnp.arange(1.0, 1.0 + SIZE))
    c, d = phalanx.new_ref(a[...]), phalanx.new_ref(b[...])
    captured = phalanx.jit(lambda x: run(block, a, b, x))
    passed = phalanx.jit(lambda refs, x: run(block, *refs, x))
    state = a[...], b[...]
    for _ in range(2):  # the second time with the program of the first
        captured(X[0])
        passed((c, d), X[0])
        state = twin(block, state, X[0])
        close_to_scale((a[...], b[...], c[...], d[...]), (*state, *state))


@given(block=programs)
def test_lanes_have_rows_of_mapped_references(block):
    a, b = phalanx.new_ref(X), phalanx.new_ref(jnp.ones((SIZE, 3)))
    expected = phalanx.vmap(lambda a, b: twin(block, (a, b), a), in_axes=(0, 1), out_axes=(0, 1))(
        a[...], b[...]
    )
    phalanx.vmap(lambda a, b, x: run(block, a, b, x), in_axes=(0, 1, 0))(a, b, X)
    close_to_scale((a[...], b[...]), expected)
