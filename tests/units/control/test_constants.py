"""Programs are closed: the arrays that functions and rules use are never lost on the way."""

import itertools

import numpy as np
import pytest

import phalanx
import phalanx.numpy as jnp
from phalanx import lax
from phalanx.laws import check_grads

FACTORS = jnp.arange(1.0, 5.0)  # on a device
AGAIN = jnp.arange(1.0, 5.0)  # the same, for a rule: the function itself does not use it
TABLE = np.linspace(0.5, 1.5, 5000).astype(np.float32)  # larger than what programs write down
X = jnp.linspace(0.1, 0.9, 4)


@phalanx.custom_vjp
def weighed(x):
    return (x * FACTORS).sum() * x


def _forward(x):
    return weighed(x), x


def _backward(x, ct):
    return ((x * AGAIN).sum() * ct + (ct * x).sum() * AGAIN,)


weighed.defvjp(_forward, _backward)


@phalanx.custom_jvp
def tabled(x):
    return jnp.sin(x) * TABLE.sum()


tabled.defjvp(lambda xs, ts: (tabled(*xs), jnp.cos(xs[0]) * ts[0] * jnp.asarray(TABLE).sum()))


def plain(x):
    return jnp.sin(x * FACTORS) * jnp.asarray(TABLE)[:4] * x


AROUND = {
    "scan": lambda f: lambda x: lax.scan(lambda c, r: (f(c) * r, c.sum()), x, FACTORS[:3])[0],
    "fori_loop": lambda f: lambda x: lax.fori_loop(0, 3, lambda i, y: f(y) * 0.1, x),
    "cond": lambda f: lambda x: lax.cond(x.sum() > 0, f, lambda y: y * FACTORS, x),
    "switch": lambda f: lambda x: lax.switch(1, [lambda y: y, f, lambda y: y * 2], x),
    "map": lambda f: lambda x: lax.map(f, jnp.stack([x, 2 * x])).sum(0),
    "jit": lambda f: lambda x: phalanx.jit(f)(x),
    "checkpoint": lambda f: lambda x: phalanx.checkpoint(f)(x),
    "vmap": lambda f: lambda x: phalanx.vmap(f)(jnp.stack([x, 2 * x])).sum(0),
    "pmap": lambda f: lambda x: phalanx.pmap(f)(jnp.stack([x, 2 * x])).sum(0),
}
USES = {"weighed": weighed, "tabled": lambda x: tabled(x) * 2e-4, "plain": plain}


@pytest.mark.parametrize("around", AROUND)
@pytest.mark.parametrize("use", USES)
def test_gradients(around, use):
    f = AROUND[around](USES[use])
    check_grads(lambda x: f(x).sum(), (X,), order=1, modes=("rev",))
    gradient = phalanx.grad(lambda x: f(x).sum())
    np.testing.assert_allclose(phalanx.jit(gradient)(X), gradient(X), rtol=2e-5)


@pytest.mark.parametrize("around", AROUND)
@pytest.mark.parametrize("use", USES)
def test_lanes(around, use):
    f = AROUND[around](USES[use])
    gradient = phalanx.grad(lambda x: f(x).sum())
    rows = jnp.stack([X, X * 0.5, X + 0.1])
    expected = np.stack([gradient(row) for row in rows])
    for mapped in (phalanx.vmap, phalanx.pmap):
        np.testing.assert_allclose(mapped(gradient)(rows), expected, rtol=2e-5)


@pytest.mark.parametrize("inner", AROUND)
@pytest.mark.parametrize("outer", AROUND)
def test_twice(inner, outer):
    f = AROUND[outer](AROUND[inner](weighed))
    check_grads(lambda x: f(x).sum(), (X,), order=1, modes=("rev",))


def test_a_permutation_of_thousands_of_lanes_in_a_loop():
    lanes = 5000
    shift = [(i, (i + 1) % lanes) for i in range(lanes)]

    def f(x):
        return lax.fori_loop(0, 2, lambda i, y: lax.ppermute(y, "i", shift), x)

    x = np.arange(lanes, dtype=np.float32)
    assert np.array_equal(phalanx.vmap(f, axis_name="i")(x), np.roll(x, 2))
    slope = phalanx.vmap(lambda x, w: phalanx.grad(lambda y: f(y) * w)(x), axis_name="i")
    assert np.array_equal(slope(x, x), np.roll(x, -2))


def test_large_constants_are_operands_of_what_is_compiled():
    big = jnp.asarray(np.arange(300_000, dtype=np.float32))

    def f(x):
        return lax.scan(lambda c, _: (c + big.sum() * 0, None), x, None, length=2)[0] + big[3]

    lowered = phalanx.jit(f).lower(1.0)
    assert len(lowered.as_text()) < 20_000
    assert float(lowered.compile()(1.0)) == 4.0


def test_a_numpy_array_is_taken_as_it_was_while_tracing():
    table = np.ones(5000, np.float32)
    f = phalanx.jit(lambda x: x + jnp.asarray(table)[0] + jnp.sum(table) * 0)
    assert float(f(1.0)) == 2.0
    table[:] = 7.0
    assert float(f(1.0)) == 2.0


def test_a_constant_that_was_deleted_is_told():
    w = jnp.ones(300) * 2
    f = phalanx.jit(lambda x: x * w)
    assert f(1.0).tolist() == [2.0] * 300
    w.delete()
    with pytest.raises(phalanx.errors.DeletedArray):
        f(1.0)


def test_a_few_numbers_are_what_they_were_when_the_function_was_compiled():
    w = jnp.ones(3) * 2
    f = phalanx.jit(lambda x: x * w)
    lowered, moved = f.lower(1.0), phalanx.jit(lambda x: x + w).lower(1.0)
    assert "dense<2.000000e+00> : tensor<3xf32>" in lowered.as_text()
    assert f(1.0).tolist() == [2.0, 2.0, 2.0]
    donated = phalanx.jit(lambda w: w + 1, donate_argnums=0)(w)
    assert w.is_deleted() and donated.tolist() == [3.0, 3.0, 3.0]
    assert f(1.0).tolist() == [2.0, 2.0, 2.0] and moved.compile()(1.0).tolist() == [3.0, 3.0, 3.0]
    with pytest.raises(phalanx.errors.DeletedArray):  # of which nobody knows the value any more
        phalanx.jit(lambda x: x - w)(1.0)


CAPTURED = {
    "an integer": jnp.int32(3),
    "a matrix": jnp.arange(6.0).reshape(2, 3).T,
    "a boolean": jnp.asarray(True),
    "a weak number": jnp.asarray(2.5),
    "few bits": jnp.asarray([1.5, 2.5], jnp.bfloat16),
    "a complex number": jnp.asarray([1 + 2j]),
    "nothing": jnp.zeros((0, 3)),
}


@pytest.mark.parametrize("what", CAPTURED)
def test_numbers_that_are_captured_are_written_as_they_are(what):
    w = CAPTURED[what]

    def f(x):
        looped = lax.fori_loop(0, 2, lambda _, c: c + w.astype(c.dtype), jnp.zeros(w.shape))
        return w, jnp.where(x, w, w * 0), looped

    lowered = phalanx.jit(f).lower(True)
    assert "@main(%arg0: tensor<i1>" in lowered.as_text() and "%arg1" not in lowered.as_text()
    for got, wanted in zip(phalanx.jit(f)(True), f(True), strict=True):
        assert got.aval == wanted.aval
        np.testing.assert_array_equal(got, wanted)


def test_what_somebody_put_somewhere_stays_there():
    device = phalanx.devices()[-1]
    w = phalanx.device_put(jnp.ones(3), device)
    assert phalanx.jit(lambda x: x * w)(2.0).devices() == {device}
    keys = phalanx.random.split(phalanx.random.key(0), 2)
    assert phalanx.jit(lambda i: keys[i])(1) == keys[1]


def test_a_traced_value_that_a_rule_hides_is_refused_in_words():
    box = itertools.repeat(0.0)

    @phalanx.custom_vjp
    def f(x):
        return x

    f.defvjp(lambda x: (x, None), lambda _, ct: (ct * next(box),))

    def loss(w, x):
        nonlocal box
        box = itertools.repeat(w)  # which does not show what it holds
        return lax.scan(lambda c, _: (f(c), None), x, None, length=2)[0]

    with pytest.raises(phalanx.errors.EscapedTracer, match="argument"):
        phalanx.jit(phalanx.grad(loss, 1))(2.0, 3.0)
