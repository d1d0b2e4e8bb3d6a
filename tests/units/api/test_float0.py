"""Values of dtype float0, the tangents of integers: they go where other arrays go."""

import functools

import numpy as np
import pytest

import phalanx
import phalanx.numpy as jnp
from phalanx import lax

FLOAT0 = phalanx.dtypes.float0
Z = np.zeros(2, FLOAT0)
N = np.arange(2, dtype=np.int32)


def same(found, expected=Z):
    assert found.dtype == FLOAT0 and found.shape == expected.shape
    host = np.asarray(found)
    assert host.dtype == FLOAT0 and host.shape == expected.shape


PLACES = {
    "jit": lambda: phalanx.jit(lambda x: x)(Z),
    "jit of a constant": lambda: phalanx.jit(lambda: Z)(),
    "jit within jit": lambda: phalanx.jit(lambda x: phalanx.jit(lambda x: x)(x))(Z),
    "pmap": lambda: phalanx.pmap(lambda x: x)(Z),
    "pmap of a constant": lambda: phalanx.pmap(lambda x: Z[0], axis_size=2)(N),
    "vmap": lambda: phalanx.vmap(lambda x: x)(Z),
    "vmap of shared": lambda: phalanx.vmap(lambda x, n: x, in_axes=(None, 0))(Z[0], N),
    "cond": lambda: lax.cond(True, lambda: Z, lambda: Z),
    "scan": lambda: lax.scan(lambda c, x: (c, x), 0.0, Z)[1],
    "carry": lambda: lax.fori_loop(0, 3, lambda i, c: c, Z),
    "device_put": lambda: phalanx.device_put(Z, phalanx.devices()[-1]),
    "array": lambda: jnp.asarray(Z),
    "checkpoint": lambda: phalanx.checkpoint(lambda x: x)(Z),
}


@pytest.mark.parametrize("function", [jnp.add, jnp.subtract, jnp.multiply])
@pytest.mark.parametrize("other", [N, N.astype(np.float32), 0.1])
def test_arithmetic_on_them_is_told_what_they_are(function, other):
    words = r"float0 is the dtype of a derivative with respect to an integer .*x\.astype\(float\)"
    with pytest.raises(TypeError, match=words):
        function(Z, other)


ARITHMETIC = {
    "neg": lambda: lax.neg(Z),
    "neg under jit": lambda: phalanx.jit(lax.neg)(Z),
    "neg under vmap": lambda: phalanx.vmap(lax.neg)(Z),
    "abs": lambda: jnp.abs(Z),
    "sign": lambda: lax.sign(Z),
    "square": lambda: jnp.square(Z),
    "exp": lambda: jnp.exp(Z),
    "divide": lambda: jnp.divide(Z, Z),
    "mean": lambda: jnp.mean(Z),
    "dot": lambda: jnp.dot(Z, Z),
    "sort": lambda: jnp.sort(Z),
    "argmax": lambda: jnp.argmax(Z),
    **{f"lax.{f.__name__}": functools.partial(f, Z, Z) for f in (
        lax.add, lax.sub, lax.mul, lax.div, lax.rem, lax.pow, lax.max, lax.eq, lax.lt)},
    **{f"jnp.{f.__name__}": functools.partial(f, Z) for f in (
        jnp.sum, jnp.prod, jnp.max, jnp.cumsum, jnp.isnan)},
}  # fmt: skip


@pytest.mark.parametrize("operation", ARITHMETIC)
def test_nothing_is_computed_with_them(operation):
    with pytest.raises(TypeError, match=r"(operand|array of) float0.*; float0 is the dtype of"):
        ARITHMETIC[operation]()


@pytest.mark.parametrize("place", PLACES)
def test_they_are_arguments_and_results(place):
    same(PLACES[place]())


SLOPES = {
    "grad": lambda n: phalanx.grad(lambda n, x: (n * x).sum(), allow_int=True)(n, np.float32(2)),
    "vjp": lambda n: phalanx.vjp(lambda n: n * 2.0, n)[1](jnp.ones(2))[0],
    "jvp": lambda n: phalanx.jvp(lambda n: n * 2, (n,), (Z,))[1],
    "linearize": lambda n: phalanx.linearize(lambda n: n * 2, n)[1](Z),
}


@pytest.mark.parametrize("around", ["nothing", "jit", "vmap", "pmap", "pmap of vmap"])
@pytest.mark.parametrize("slope", SLOPES)
def test_derivatives_of_integers_within_transformations(slope, around):
    function = SLOPES[slope]
    if around == "nothing":
        return same(function(N))
    if around == "jit":
        return same(phalanx.jit(function)(N))
    rows = np.stack([N, N + 1])
    every = {
        "vmap": phalanx.vmap(function),
        "pmap": phalanx.pmap(function),
        "pmap of vmap": lambda x: phalanx.pmap(phalanx.vmap(function))(x[None])[0],
    }[around]
    return same(every(rows), np.zeros((2, 2), FLOAT0))


def test_a_step_leaves_integers_as_they_are():
    params = {"n": jnp.int32(3), "w": jnp.float32(2)}

    @phalanx.jit
    def step(params):
        slopes = phalanx.grad(lambda p: p["n"] * p["w"] ** 2, allow_int=True)(params)
        moved = phalanx.tree.map(lambda p, g: p if g.dtype == FLOAT0 else p - g, params, slopes)
        return moved, slopes

    moved, slopes = step(params)
    assert (int(moved["n"]), float(moved["w"])) == (3, 2 - 12.0)
    same(slopes["n"], Z[0])
    again = phalanx.jit(lambda slopes: slopes)(slopes)
    same(again["n"], Z[0])


def test_a_compiled_pullback_takes_and_gives_them():
    value, pullback = phalanx.vjp(lambda x, y: x + y, 2, 1)
    assert value == 3
    for slope in phalanx.jit(pullback)(np.zeros((), FLOAT0)):
        same(slope, Z[0])


def test_jacobians_by_keys_and_integers():
    key = phalanx.random.key(0)
    same(phalanx.grad(lambda k: phalanx.random.normal(k), allow_int=True)(key), Z[0])
    same(phalanx.jacrev(lambda k: phalanx.random.normal(k, (2,)), allow_int=True)(key))
    same(phalanx.jacrev(lambda n: n * jnp.ones(2), allow_int=True)(3))
    same(phalanx.jacrev(lambda n: n * jnp.ones(2), allow_int=True)(N), np.zeros((2, 2), FLOAT0))


def test_integers_have_no_jacobian():
    with pytest.raises(TypeError, match=r"returned i32\[\], which has no derivative"):
        phalanx.jacrev(lambda x: x.astype(int))(2.0)


@pytest.mark.parametrize("t", [np.zeros(3, FLOAT0), jnp.ones(2), jnp.arange(2), 0, False])
def test_other_tangents_of_integers_are_refused(t):
    with pytest.raises(TypeError, match=r"x is i32\[2\], .* float0 and shape \(2,\), got"):
        phalanx.jvp(lambda x: x * 2, (N,), (t,))


@pytest.mark.parametrize("ct", [jnp.ones((7, 7)), np.zeros(3, FLOAT0), 0])
def test_cotangents_of_integers_have_their_shape(ct):
    _, pullback = phalanx.vjp(lambda n: (n + 1, 2.0), N)
    with pytest.raises(ValueError, match=r"result 0 is i32\[2\], .* float0 and shape \(2,\), got"):
        pullback((ct, 1.0))
    for taken in (Z, jnp.arange(2), np.ones(2)):
        same(pullback((taken, 1.0))[0])


@pytest.mark.parametrize("given", [jnp.float32(1), jnp.int32(0), 1.0, Z])
def test_a_rule_gives_float0_for_an_integer(given):
    @phalanx.custom_jvp
    def f(x):
        return x, jnp.int32(3)

    f.defjvp(lambda p, t: (f(*p), (t[0], given)))
    for slope in (lambda f: phalanx.jvp(f, (1.0,), (1.0,)), lambda f: phalanx.vjp(f, 1.0)):
        with pytest.raises(TypeError, match=r"i32\[\] is expected, got .*float0"):
            slope(f)
    f.defjvp(lambda p, t: (f(*p), (t[0], Z[0] if given is Z else np.zeros((), FLOAT0))))
    assert phalanx.grad(lambda x: f(x)[0])(1.0) == 1.0


def test_numbers_are_not_made_of_them():
    with pytest.raises(TypeError):
        jnp.add(Z, 1)
