"""Loops and branches against plain Python, under every transformation."""

import itertools
from functools import partial

import numpy as np
import pytest

import phalanx as px
import phalanx.numpy as jnp
from phalanx import config, lax
from tests.compare import SUMS, close

near = partial(close, within=SUMS)

W, C = 0.7, 0.3
XS = np.linspace(-1, 1, 5).astype("float32")


def step(w):
    def body(c, x):
        n = jnp.tanh(c * w + x * jnp.sin(w))
        return n, n * x

    return body


def scanned(w, c, xs, **options):
    return lax.scan(step(w), c, xs, **options)


def written_out(w, c, xs, reverse=False, **_):
    order, out = range(xs.shape[0]), []
    for i in reversed(order) if reverse else order:
        c, y = step(w)(c, xs[i])
        out.append(y)
    return c, jnp.stack(out[::-1] if reverse else out)


def loss(f, **options):
    def value(w, c, xs):
        last, rows = f(w, c, xs, **options)
        return last**2 + jnp.sum(rows**3)

    return value


@pytest.mark.parametrize("options", [{}, {"reverse": True}, {"unroll": 2}, {"unroll": True}])
def test_scan_and_its_gradient_are_those_of_the_loop_written_out(options):
    near(scanned(W, C, XS, **options), written_out(W, C, XS, **options))
    for transform in (px.grad, lambda f, n: px.jit(px.grad(f, n))):
        found = transform(loss(scanned, **options), (0, 1, 2))(W, C, XS)
        near(found, px.grad(loss(written_out, **options), (0, 1, 2))(W, C, XS))


@pytest.mark.parametrize("length", [5e3 // 1000, np.float32(5), np.int8(5)])
def test_scan_takes_lengths_that_programs_compute(length):
    assert lax.scan(lambda c, _: (c + 1, None), 0, None, length)[0] == 5


def test_scan_of_half_a_step():
    with pytest.raises(TypeError, match=r"scan: length must be an integer, got 2.5, at test_contr"):
        lax.scan(lambda c, _: (c, None), 0, length=2.5)


def test_residuals_that_do_not_change_are_computed_once():
    program = str(px.make_program(px.grad(loss(scanned)))(W, C, XS))
    before, _, backwards = program.rpartition("scan[")
    assert " cos " in before and " cos " not in backwards


@pytest.mark.parametrize("shape", [(0,), (0, 3)])
def test_loops_over_no_rows(shape):
    xs = np.zeros(shape, np.float32)
    f = lambda c, x: (c + jnp.sum(x), 2 * x)  # noqa: E731
    for run in (lax.scan, px.jit(lax.scan, static_argnums=0)):
        carry, rows = run(f, 1.0, xs)
        assert float(carry) == 1 and rows.shape == shape
    assert lax.map(jnp.sin, xs).shape == lax.map(jnp.sin, xs, batch_size=2).shape == shape
    assert px.vmap(lambda x: lax.scan(f, x, xs)[0])(XS).tolist() == XS.tolist()
    slopes = px.grad(lambda c, xs: lax.scan(f, c, xs)[0] ** 2, (0, 1))(3.0, xs)
    assert float(slopes[0]) == 6 and slopes[1].shape == shape


# ---- while ----


def collatz(n):
    def body(state):
        n, steps = state
        return jnp.where(n % 2 == 0, n // 2, 3 * n + 1), steps + 1

    return lax.while_loop(lambda s: s[0] > 1, body, (n, 0))[1]


def collatz_in_python(n):
    steps = 0
    while n > 1:
        n, steps = (n // 2 if n % 2 == 0 else 3 * n + 1), steps + 1
    return steps


def test_each_lane_stops_in_its_own_time():
    ns = np.arange(1, 17)
    wanted = [collatz_in_python(int(n)) for n in ns]
    assert px.vmap(collatz)(ns).tolist() == wanted
    assert px.jit(px.vmap(collatz))(ns).tolist() == wanted
    assert [int(collatz(int(n))) for n in ns] == wanted


@pytest.mark.spmd
def test_each_device_stops_in_its_own_time():
    ns = np.arange(1, 1 + px.device_count())
    assert px.pmap(collatz)(ns).tolist() == [collatz_in_python(int(n)) for n in ns]


def power(x, n):
    return lax.fori_loop(0, n, lambda i, y: y * x * (1 + 0.1 * i), 1.0)


def power_in_python(x, n):
    y = 1.0
    for i in range(n):
        y = y * x * (1 + 0.1 * i)
    return y


def test_dynamic_loops_differentiate_forward():
    near(px.jvp(lambda x: power(x, jnp.int32(5)), (1.3,), (1.0,)),
         px.jvp(lambda x: power_in_python(x, 5), (1.3,), (1.0,)))  # fmt: skip
    near(px.jacfwd(px.jit(power))(1.3, 5), px.jacfwd(power_in_python)(1.3, 5))
    xs, ns = np.float32([0.5, 1.0, 1.5]), np.int32([2, 0, 4])
    found = px.vmap(px.jacfwd(px.jit(power)))(xs, ns)
    wanted = [px.jacfwd(power_in_python)(float(x), int(n)) for x, n in zip(xs, ns, strict=True)]
    near(found, np.float32(wanted))


# ---- branches ----

BRANCHES = (lambda x, y: jnp.sin(x) * y, lambda x, y: x + y * y, lambda x, y: x * 0.0)


def chosen(i, x, y):
    return lax.switch(i, BRANCHES, x, y)


@pytest.mark.parametrize("i", range(3))
def test_branches_and_their_derivatives(i):
    wanted = BRANCHES[i](0.5, 2.0)
    near(chosen(i, 0.5, 2.0), wanted)
    near(px.jit(chosen)(i, 0.5, 2.0), wanted)
    for d in (px.grad(chosen, (1, 2)), px.jit(px.grad(chosen, (1, 2)))):
        near(d(i, 0.5, 2.0), px.grad(BRANCHES[i], (0, 1))(0.5, 2.0))
    near(px.hessian(chosen, (1, 2))(i, 0.5, 2.0), px.hessian(BRANCHES[i], (0, 1))(0.5, 2.0))


def test_an_index_out_of_range_takes_the_nearest_branch():
    near(chosen(7, 0.5, 2.0), BRANCHES[2](0.5, 2.0))
    near(chosen(-3, 0.5, 2.0), BRANCHES[0](0.5, 2.0))


def test_cond_over_what_it_closes():
    def f(x, k):
        return lax.cond(x > 0, lambda: x * k, lambda: -x)

    for x in (2.0, -3.0):
        near(f(x, 5.0), x * 5.0 if x > 0 else -x)
        near(px.grad(f)(x, 5.0), 5.0 if x > 0 else -1.0)
    near(px.vmap(px.grad(f), (0, None))(np.float32([2, -3]), 5.0), np.float32([5, -1]))


# ---- the rest ----


def test_without_jit_loops_are_python():
    seen = []

    def body(c, x):
        seen.append(float(x))
        return c + x, c

    with px.disable_jit():
        out = lax.scan(body, 0.0, jnp.arange(3.0))
        assert lax.cond(True, lambda: 1, lambda: 2) == 1
    assert seen == [0.0, 1.0, 2.0]
    near(out, (3.0, np.float32([0, 0, 1])))


def test_map_in_blocks():
    xs = jnp.arange(7.0)
    near(lax.map(lambda x: x**2, xs), xs**2)
    near(lax.map(lambda x: (x**2, -x), xs, batch_size=3), (xs**2, -xs))


@pytest.mark.parametrize("n", range(1, 9))
@pytest.mark.parametrize("reverse", [False, True])
def test_associative_scan(n, reverse):
    x = np.random.default_rng(n).normal(size=(2, n)).astype("float32")
    found = lax.associative_scan(lambda a, b: a * b, x, reverse=reverse, axis=1)
    wanted = np.cumprod(x[:, ::-1], 1)[:, ::-1] if reverse else np.cumprod(x, 1)
    near(found, wanted)


def test_associative_scan_keeps_signs_of_zero_and_takes_each_kind_of_number():
    x = np.float32([-1, 0, 5, -0.0, 2])
    for given in (x, x.astype("bfloat16"), x + 0j, x.astype("int8")):
        wanted = np.asarray(list(itertools.accumulate(given, lambda a, b: a * b)), given.dtype)
        found = np.asarray(lax.associative_scan(jnp.multiply, given))
        np.testing.assert_array_equal(found, wanted)
        of_found, of_wanted = (np.signbit(v.real.astype(float)) for v in (found, wanted))
        np.testing.assert_array_equal(of_found, of_wanted)
    for dtype in (bool, "int4", "uint8", "float8_e4m3fnuz"):
        held = lax.associative_scan(jnp.maximum, jnp.array([0, 0, 1, 0]).astype(dtype))
        assert held.dtype == dtype and held.tolist() == [0, 0, 1, 1]


@pytest.mark.parametrize("n", [1, 2, 5, 8])
@pytest.mark.parametrize("reverse", [False, True])
def test_associative_scan_gives_what_a_scan_in_its_direction_gives(n, reverse):
    factors, terms = np.random.default_rng(n).normal(size=(2, n)).astype("float32")
    _, both = lax.associative_scan(
        lambda a, b: (b[0] * a[0], b[0] * a[1] + b[1]), (factors, terms), reverse=reverse
    )
    order = range(n)[::-1] if reverse else range(n)
    state, wanted = 0.0, np.zeros(n)
    for i in order:
        wanted[i] = state = factors[i] * state + terms[i]
    near(both, wanted)


@pytest.mark.parametrize("axis", [0, 1, 2, -1])
@pytest.mark.parametrize("reverse", [False, True])
def test_associative_scan_leaves_the_axes_where_they_are(axis, reverse):
    rows = np.random.default_rng(0).normal(size=(5, 2, 2))
    order = {0: "nij,njk->nik", 1: "inj,jnk->ink"}.get(axis, "ijn,jkn->ikn")
    with config.override(enable_x64=True):
        found = lax.associative_scan(
            lambda a, b: jnp.einsum(order, b, a), np.moveaxis(rows, 0, axis), reverse, axis
        )
    wanted = list(itertools.accumulate(rows[::-1] if reverse else rows, lambda a, b: b @ a))
    wanted = np.stack(wanted[::-1] if reverse else wanted, axis)
    np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-12)


LOOPS = [
    lambda f: lax.scan(f, 0.0, jnp.ones(3)),
    lambda f: lax.map(f, jnp.ones(3)),
    lambda f: lax.associative_scan(f, jnp.ones(3)),
    lambda f: lax.while_loop(f, lambda x: x, 1.0),
    lambda f: lax.while_loop(lambda x: False, f, 1.0),
    lambda f: lax.fori_loop(0, 3, f, 1.0),
]


@pytest.mark.parametrize("loop", LOOPS)
def test_what_a_loop_runs_is_a_function(loop):
    with pytest.raises(TypeError, match=r"should be a callable, got 123 of type int, at test_con"):
        loop(123)


def test_the_carry_takes_the_type_that_it_turns_into():
    carry, _ = lax.scan(lambda c, x: (c + x, None), 0, jnp.arange(3.0))
    assert carry.dtype == np.float32 and float(carry) == 3.0


@pytest.mark.parametrize("count, functions", [(3, 1), (9, 2)])
def test_short_programs_are_written_where_they_are_called_and_others_once(count, functions):
    @px.jit
    def inner(x):
        for _ in range(count):
            x = jnp.sin(x)
        return x

    text = px.jit(lambda x: inner(x) + inner(inner(x))).lower(0.5).as_text()
    assert text.count("func.func") == functions
    assert text.count("stablehlo.sine") == (3 * count if functions == 1 else count)
