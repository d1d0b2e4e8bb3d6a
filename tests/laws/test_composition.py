"""Transformations in any order and depth: pmap is vmap, and jit is nothing at all."""

import itertools

import numpy as np
import pytest
from hypothesis import given, note
from hypothesis import strategies as st

import phalanx
import phalanx.numpy as jnp
from phalanx import lax
from tests.laws.slopes import along

pytestmark = [pytest.mark.spmd, pytest.mark.usefixtures("x64")]
SIZES = (2, 3, 2, 4)
W = np.linspace(0.5, 1.5, 3)


# ---- one function under a stack of transformations --------------------------------------------


def forward(f):
    return lambda x: phalanx.jvp(f, (x,), (jnp.cos(x),))[1]


def reverse(f):
    def pulled(x):
        y, pullback = phalanx.vjp(f, x)
        return pullback(jnp.sin(y))[0]

    return pulled


def replay(f):
    return lambda x: phalanx.linearize(f, x)[1](x * 0.5)


def repeat(f):
    return lambda x: lax.scan(lambda c, w: (c * w + 0.1 * f(c), None), x, W[:2])[0]


DERIVATIVES = {"forward": forward, "reverse": reverse, "replay": replay}
OTHERS = {"repeat": repeat, "jit": phalanx.jit}
MAPPINGS = {"pmap": phalanx.pmap, "vmap": phalanx.vmap}


def local(x, names):
    """Of one lane: it exchanges with the lanes over ``names``, and keeps its shape."""
    y = jnp.sin(x) * W + jnp.tanh(x).sum()
    for name in names:
        y = y - lax.pmean(y * x, name) * (1 + lax.axis_index(name))
        y = y + 0.1 * lax.ppermute(x, name, [(0, 1), (1, 0)])
    return y + lax.pmax(x, names) if names else y


def stacked(stack, plain):
    """``local`` under ``stack``, innermost first; ``plain``: without pmap and without jit."""
    mappings = [kind for kind in stack if kind in MAPPINGS]
    names = tuple(f"axis{k}" for k in range(len(mappings)))

    def f(x):
        return local(x, names)

    axes = itertools.count()
    for kind in stack:
        if kind in MAPPINGS:
            k = next(axes)
            transform = phalanx.vmap if plain else MAPPINGS[kind]
            f = transform(f, axis_name=names[k], in_axes=k % 2, out_axes=k % 2)
        elif kind in DERIVATIVES:
            f = DERIVATIVES[kind](f)
        elif not (plain and kind == "jit"):
            f = OTHERS[kind](f)
    return f, len(mappings)


stacks = st.lists(
    st.sampled_from(sorted([*MAPPINGS, *DERIVATIVES, *OTHERS, "pmap", "jit"])),
    min_size=2,
    max_size=6,
).filter(
    lambda s: (
        sum(k in MAPPINGS for k in s) <= 3
        and sum(k in DERIVATIVES for k in s) <= 2
        and s.count("repeat") <= 2
    )
)


@given(stacks)
def test_any_order(stack):
    note(" of ".join(reversed(stack)))
    found, depth = stacked(stack, plain=False)
    expected, _ = stacked(stack, plain=True)
    shape = (3,)
    for k, size in zip(range(depth), SIZES, strict=False):
        shape = (*shape[: k % 2], size, *shape[k % 2 :])
    x = np.random.default_rng(depth).uniform(-1, 1, shape)
    plain = phalanx.jit(expected)
    y = np.asarray(plain(x))
    rounding = np.abs(np.asarray(plain(x * (1 + 1e-15))) - y).max()  # some stacks amplify it
    np.testing.assert_allclose(np.asarray(found(x)), y, rtol=1e-9, atol=1e-9 + rounding)


# ---- names ------------------------------------------------------------------------------------


@pytest.mark.parametrize("outer", MAPPINGS)
@pytest.mark.parametrize("inner", MAPPINGS)
@pytest.mark.parametrize("jitted", [False, True])
def test_an_inner_axis_shadows_an_outer_one(outer, inner, jitted):
    def lane(x):
        return x / lax.psum(x, "i") + lax.axis_index("i")

    def rows(x):
        before = lax.psum(x, "i")
        inside = MAPPINGS[inner](phalanx.jit(lane) if jitted else lane, axis_name="i")(x)
        return inside * lax.axis_index("i") + before

    f = MAPPINGS[outer](phalanx.jit(rows) if jitted else rows, axis_name="i")
    x = np.arange(1.0, 7).reshape(2, 3)
    inside = x / x.sum(1, keepdims=True) + np.arange(3)
    expected = inside * np.arange(2)[:, None] + x.sum(0)
    np.testing.assert_allclose(np.asarray(f(x)), expected, rtol=1e-9)
    slope = phalanx.grad(lambda x: (f(x) ** 2).sum())(x)
    t = np.random.default_rng(0).uniform(-1, 1, x.shape)
    wanted = along(lambda x: (np.asarray(f(x)) ** 2).sum(), (x,), (t,))
    np.testing.assert_allclose(np.vdot(slope, t), wanted, rtol=1e-6)


@pytest.mark.parametrize("name", ["i", 0, ("a", 1), frozenset("x")], ids=str)
def test_any_hashable_is_a_name(name):
    x = np.arange(4.0)
    named = [name] if isinstance(name, tuple) else name
    for mapping in MAPPINGS.values():
        total = mapping(lambda x: lax.psum(x, named), axis_name=name)(x)
        np.testing.assert_allclose(np.asarray(total), np.full(4, 6.0))
