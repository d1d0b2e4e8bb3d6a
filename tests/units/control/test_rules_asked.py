"""Which backward rules run: they may give something else than the cotangent that they are given."""

import pytest

import phalanx as px
import phalanx.numpy as jnp
from phalanx import lax


@px.custom_vjp
def scaled(x, state):
    """x; what ``state`` is to become comes back as its cotangent."""
    return 1.0 * x


@px.custom_vjp
def blind(x, y):
    """2 x; there is no cotangent of y."""
    return 2 * x


scaled.defvjp(lambda x, s: (x, s), lambda s, ct: (None, s + 100))
blind.defvjp(lambda x, y: (2 * x, None), lambda _, ct: (2 * ct, None))

AROUND = {
    "nothing": lambda f, *args: f(*args),
    "jit": lambda f, *args: px.jit(f)(*args),
    "one of two results": lambda f, *args: px.jit(lambda *a: (f(*a), a[0]))(*args)[0],
    "checkpoint": lambda f, *args: px.checkpoint(f)(*args),
    "cond": lambda f, *args: lax.cond(args[0] > 0, f, lambda x, _: x, *args),
    "scan": lambda f, *args: lax.scan(lambda c, _: (f(c, args[1]), None), args[0], None, 1)[0],
    "rows of a scan": lambda f, x, s: lax.scan(lambda c, _: (c, f(c, s)), x, None, 1)[1][0],
    "vmap": lambda f, x, s: px.vmap(f, (0, None))(x[None], s)[0],
    "pmap": lambda f, x, s: px.pmap(f, in_axes=(0, None))(x[None], s)[0],
}


@pytest.mark.parametrize("around", AROUND)
def test_a_rule_is_asked_wherever_its_result_is_used(around):
    wrap, x, state = AROUND[around], jnp.float32(2), jnp.float32(3)
    loss = lambda x, s: blind(x, jnp.sin(wrap(scaled, x, s)))  # noqa: E731
    for f in (loss, px.jit(loss), px.checkpoint(loss)):
        assert px.tree.map(float, px.grad(f, (0, 1))(x, state)) == (2, 103)


@pytest.mark.parametrize("around", AROUND)
def test_a_rule_is_not_asked_where_nothing_uses_its_result(around):
    wrap, x, state = AROUND[around], jnp.float32(2), jnp.float32(3)
    unused = lambda x, s: (wrap(scaled, x, s), x * x)[1]  # noqa: E731
    stopped = lambda x, s: x * lax.stop_gradient(wrap(scaled, x, s))  # noqa: E731
    both = lambda x, s: px.jit(lambda x, s: (wrap(scaled, x, s), x * x))(x, s)[1]  # noqa: E731
    for f, slope in ((unused, 4), (stopped, 2), (both, 4)):
        assert px.tree.map(float, px.grad(f, (0, 1))(x, state)) == (slope, 0)
