"""Functions with rules of their own against twins without, under every transformation.

The rules say that the derivative of sin is 2 cos. A twin has the same values and derivatives of
every order, but gets them without rules: it adds a term that is zero and has the slope cos.
"""

from functools import partial

import numpy as np
import pytest

import phalanx as px
import phalanx.numpy as jnp
from phalanx import lax
from phalanx.laws import check_jit, check_pmap
from tests.compare import SUMS, close

near = partial(close, within=SUMS)

W = np.array([0.7, -1.2, 0.4], np.float32)
X = np.array([0.3, 0.9, -0.8], np.float32)


@px.custom_jvp
def steep_sin(x):
    return jnp.sin(x)


@steep_sin.defjvp
def steep_sin_jvp(primals, tangents):
    return steep_sin(*primals), 2 * jnp.cos(primals[0]) * tangents[0]


def twin(w, x):
    y = jnp.sin(x)
    return w * (y + (y - lax.stop_gradient(y)))


@px.custom_jvp
def by_jvp(w, x):
    return w * jnp.sin(x)


@by_jvp.defjvp
def by_jvp_rule(primals, tangents):
    (w, x), (tw, tx) = primals, tangents
    return by_jvp(w, x), tw * steep_sin(x) + 2 * w * jnp.cos(x) * tx


@px.custom_vjp
def by_vjp(w, x):
    return w * jnp.sin(x)


by_vjp.defvjp(
    lambda w, x: (by_vjp(w, x), {"w": w, "rest": (x, "static", 2)}),
    lambda res, ct: (
        ct * steep_sin(res["rest"][0]), res["rest"][2] * ct * res["w"] * jnp.cos(res["rest"][0])
    ),
)  # fmt: skip


def by_closure(w, x):
    """The function and its rule close over ``w``, which is differentiated as usual."""

    @px.custom_jvp
    def inner(x):
        return w * steep_sin(x)

    @inner.defjvp
    def rule(primals, tangents):
        slope = px.jit(lambda x: 2 * w * jnp.cos(x))
        return inner(*primals), slope(primals[0]) * tangents[0]

    return inner(x)


def by_closure_vjp(w, x):
    """The rules close over ``w``; the function takes it as well."""

    @px.custom_vjp
    def inner(v, x):
        return v * jnp.sin(x)

    inner.defvjp(
        lambda v, x: (inner(v, x), x),
        lambda x, ct: (ct * steep_sin(x), 2 * ct * w * jnp.cos(x)),
    )
    return inner(w, x)


FUNCTIONS = {f.__name__: f for f in (by_jvp, by_vjp, by_closure, by_closure_vjp)}


def total(f):
    return lambda *args: jnp.sum(f(*args) ** 2)


def slope(f):
    return px.grad(total(f), (0, 1))


def curvature(f):
    return px.grad(lambda w, x: jnp.sum(px.grad(total(f), 1)(w, x) ** 2), (0, 1))


def scanned(f):
    def run(w, x):
        return lax.scan(lambda c, v: (f(v, c) + c, c), x, jnp.stack([w, w * w]))[0]

    return run


def chosen(f):
    return lambda w, x: lax.cond(jnp.sum(x) > 0, f, lambda w, x: w - x, w, x)


def rows(f):
    return lambda w, x: lax.map(lambda pair: f(*pair), (w, x))


REVERSE = {
    "grad": slope,
    "jit grad": lambda f: px.jit(slope(f)),
    "grad jit": lambda f: slope(px.jit(f)),
    "vmap grad": lambda f: px.vmap(slope(f)),
    "grad vmap": lambda f: slope(px.vmap(f)),
    "grad vmap of shared": lambda f: slope(
        lambda w, x: px.vmap(f, (None, 0), 1)(w[:2], jnp.outer(x, w[:2]))
    ),
    "grad jit vmap jit": lambda f: slope(px.jit(px.vmap(px.jit(f)))),
    "pmap grad": lambda f: px.pmap(slope(f)),
    "grad pmap of shared": lambda f: slope(
        lambda w, x: px.pmap(f, in_axes=(None, 0))(w, jnp.outer(x, w))
    ),
    "curvature": curvature,
    "jit curvature": lambda f: px.jit(curvature(f)),
    "curvature jit": lambda f: curvature(px.jit(f)),
    "vmap curvature": lambda f: px.vmap(curvature(px.jit(f))),
    "scan": lambda f: slope(scanned(f)),
    "vmap scan": lambda f: px.vmap(slope(scanned(f))),
    "cond": lambda f: px.jit(slope(chosen(f))),
    "vmap cond": lambda f: slope(px.vmap(chosen(f))),
    "map": lambda f: slope(rows(f)),
    "checkpoint": lambda f: slope(px.checkpoint(f)),
    "jacrev": lambda f: px.jacrev(f, (0, 1)),
}
FORWARD = {
    "jvp": lambda f: lambda w, x: px.jvp(f, (w, x), (x, w)),
    "jit jvp jit": lambda f: px.jit(lambda w, x: px.jvp(px.jit(f), (w, x), (x, w))),
    "vmap jvp": lambda f: px.vmap(lambda w, x: px.jvp(f, (w, x), (x, w))),
    "linearize": lambda f: lambda w, x: px.linearize(f, w, x)[1](x, w),
    "jacfwd": lambda f: px.jacfwd(f, (0, 1)),
    "hessian": lambda f: px.hessian(total(f), (0, 1)),
    "while": lambda f: lambda w, x: px.jvp(
        lambda x: lax.while_loop(lambda s: s[1] < 2, lambda s: (f(w, s[0]), s[1] + 1), (x, 0))[0],
        (x,), (w,),
    ),
}  # fmt: skip
WANTED = {}


def wanted(name, transform):
    if name not in WANTED:
        WANTED[name] = transform(twin)(W, X)
    return WANTED[name]


@pytest.mark.parametrize("name", REVERSE)
@pytest.mark.parametrize("function", ["by_jvp", "by_vjp"])
def test_reverse(function, name):
    near(REVERSE[name](FUNCTIONS[function])(W, X), wanted(name, REVERSE[name]))


CLOSURES = ("grad", "grad jit vmap jit", "pmap grad", "jit curvature", "curvature jit", "vmap scan")


@pytest.mark.parametrize("name", CLOSURES)
@pytest.mark.parametrize("function", ["by_closure", "by_closure_vjp"])
def test_reverse_with_values_closed_over(function, name):
    near(REVERSE[name](FUNCTIONS[function])(W, X), wanted(name, REVERSE[name]))


@pytest.mark.parametrize("name", FORWARD)
@pytest.mark.parametrize("function", ["by_jvp", "by_closure"])
def test_forward(function, name):
    near(FORWARD[name](FUNCTIONS[function])(W, X), wanted(name, FORWARD[name]))


@pytest.mark.parametrize("function", ["by_vjp", "by_closure"])
def test_without_jit(function):
    with px.disable_jit():
        near(px.pmap(slope(FUNCTIONS[function]))(W, X), px.vmap(slope(twin))(W, X))


@pytest.mark.parametrize("function", ["by_jvp", "by_closure"])
def test_laws(function):
    f = FUNCTIONS[function]
    check_jit(f, (W, X), order=2)
    check_pmap(f, (W, X), order=1)


# ---- collectives in functions and in rules ------------------------------------------------------


@px.custom_jvp
def mean_of_sin(x):
    return lax.pmean(jnp.sin(x), "i")


@mean_of_sin.defjvp
def mean_of_sin_jvp(primals, tangents):
    return mean_of_sin(*primals), lax.pmean(3 * jnp.cos(primals[0]) * tangents[0], "i")


@px.custom_vjp
def summed_backwards(x):
    return 2 * x


summed_backwards.defvjp(lambda x: (2 * x, None), lambda _, ct: (lax.psum(ct, "i"),))


@pytest.mark.spmd
@pytest.mark.parametrize("mapping", [px.vmap, px.pmap])
def test_collectives(mapping):
    mean = mapping(mean_of_sin, axis_name="i")
    near(mean(X), np.full(3, np.sin(X).mean()))
    near(mapping(mean_of_sin, axis_name="i", out_axes=None)(X), np.sin(X).mean())
    from_outside = 3 * np.cos(X) / 3 * W.sum()
    near(px.grad(lambda x: jnp.sum(mean(x) * W))(X), from_outside)
    near(px.jit(px.grad(lambda x: jnp.sum(mean(x) * W)))(X), from_outside)
    near(mapping(px.grad(mean_of_sin), axis_name="i")(X), 3 * np.cos(X))

    total = mapping(summed_backwards, axis_name="i")
    near(px.grad(lambda x: jnp.sum(total(x) * W))(X), np.full(3, W.sum()))
    near(mapping(px.grad(summed_backwards), axis_name="i")(X), np.full(3, 3.0))


@pytest.mark.spmd
@pytest.mark.parametrize("mapping", [px.vmap, px.pmap])
def test_rules_see_the_axis_where_no_operand_varies(mapping):
    def outside(f):
        return px.grad(lambda y: jnp.sum(mapping(lambda v: f(y) * v, axis_name="i")(X)))(1.5)

    def inside(f):
        return mapping(lambda v: px.grad(f)(1.5) * v, axis_name="i")(X)

    near(outside(summed_backwards), 3 * X.sum())
    near(inside(summed_backwards), 3 * X)
    near(outside(mean_of_sin), 3 * np.cos(1.5) * X.sum())
    near(inside(mean_of_sin), 3 * np.cos(1.5) * X)


@pytest.mark.spmd
def test_more_lanes_than_devices():
    x = np.linspace(-1, 1, px.device_count() + 1).astype(np.float32)
    for f in (mean_of_sin, summed_backwards, px.grad(mean_of_sin), px.grad(summed_backwards)):
        near(px.pmap(f, "i")(x), px.vmap(f, axis_name="i")(x))


# ---- effects ------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [px.custom_jvp, px.custom_vjp])
def test_effects_under_a_condition_keep_the_rules(make):
    seen = []

    @make
    def f(x):
        px.debug.callback(lambda x: seen.append(float(x)), x)
        return 2 * x

    if make is px.custom_jvp:
        f.defjvp(lambda p, t: (2 * p[0], 5 * t[0]))
    else:
        f.defvjp(lambda x: (2 * x, None), lambda _, ct: (5 * ct,))

    mapped = px.vmap(lambda x: lax.cond(x > 0, f, lambda x: x, x))
    near(mapped(X), np.where(X > 0, 2 * X, X))
    px.effects_barrier()
    near(sorted(seen), sorted(X[X > 0]))
    near(px.grad(lambda x: jnp.sum(mapped(x)))(X), np.where(X > 0, 5.0, 1.0))


# ---- rules see one lane -------------------------------------------------------------------------


@px.custom_vjp
def clipped(x):
    return x


clipped.defvjp(lambda x: (x, None), lambda _, ct: (jnp.clip(ct, -1.0, 1.0),))


@px.custom_vjp
def total_over_lanes(x):
    return lax.psum(x, "i")


total_over_lanes.defvjp(lambda x: (total_over_lanes(x), None), lambda _, ct: (jnp.clip(ct, -1, 1),))

ONE_LANE = {
    "clip": clipped,
    "clip in jit": px.jit(lambda y: clipped(y)),
    "clip in scan": lambda y: lax.scan(lambda c, _: (clipped(c), None), y, None, length=2)[0],
    "clip in cond": lambda y: lax.cond(y > 0, clipped, lambda y: y, y),
}


@pytest.mark.spmd
@pytest.mark.parametrize("name", ONE_LANE)
@pytest.mark.parametrize("mapping", [px.vmap, px.pmap, lambda f: px.jit(px.vmap(f))])
def test_a_backward_rule_sees_one_lane_where_lanes_share_its_argument(name, mapping):
    v = np.array([5.0, 0.5, -0.25], np.float32)
    found = px.grad(lambda y: jnp.sum(mapping(lambda v: ONE_LANE[name](y) * v)(v)))(2.0)
    near(found, 1.0 + 0.5 - 0.25)


@pytest.mark.spmd
@pytest.mark.parametrize("mapping", [px.vmap, px.pmap])
@pytest.mark.parametrize("inner", [lambda f: f, px.jit])
def test_a_backward_rule_sees_one_lane_where_lanes_share_its_result(mapping, inner):
    v = np.array([5.0, 0.5, -0.25], np.float32)
    mapped = mapping(inner(total_over_lanes), axis_name="i")
    near(px.grad(lambda x: jnp.sum(mapped(x) * v))(X), np.clip(v, -1, 1))


@pytest.mark.spmd
@pytest.mark.parametrize("outer", [px.vmap, px.pmap])
@pytest.mark.parametrize("inner", [px.vmap, px.pmap])
def test_nested_axes(outer, inner):
    f = px.custom_vjp(lambda x: 2 * lax.psum(x, "i"))
    f.defvjp(lambda x: (f(x), None), lambda _, ct: (lax.psum(ct, ("i", "j")),))
    m = np.arange(6.0, dtype=np.float32).reshape(2, 3)
    mapped = outer(inner(f, axis_name="j"), axis_name="i")
    near(px.grad(lambda x: jnp.sum(mapped(x) * m))(m), np.full((2, 3), m.sum()))


@px.tree_util.register_pytree_node_class
class Box:
    """A node of one leaf."""

    def __init__(self, value):
        self.value = value

    def tree_flatten(self):
        return (self.value,), None

    @classmethod
    def tree_unflatten(cls, _, children):
        return cls(*children)


def test_the_cotangent_of_a_leaf_stands_for_a_node_that_holds_it_alone():
    @px.custom_vjp
    def f(box, pair):
        return 2 * box.value + pair[0]

    f.defvjp(lambda box, pair: (f(box, pair), None), lambda _, ct: (5 * ct, (ct, None)))
    box, pair = px.grad(f, argnums=(0, 1))(Box(1.0), (1.0, 2.0))
    assert type(box) is Box
    assert (float(box.value), *map(float, pair)) == (5, 1, 0)
    f.defvjp(lambda box, pair: (f(box, pair), None), lambda _, ct: (ct, ct))  # of which leaf?
    with pytest.raises(TypeError, match=r"for pair structure \(\*, \*\) is expected, got \*"):
        px.grad(f, argnums=(0, 1))(Box(1.0), (1.0, 2.0))


def test_defaults_come_before_what_is_passed_by_keyword():
    @partial(px.custom_vjp, nondiff_argnums=(1, 2, 3))
    def scaled(x, by=2.0, plus=0.0, name="none"):
        return x * by + plus

    scaled.defvjp(
        lambda x, by, plus, name: (scaled(x, by, plus), None),
        lambda by, plus, name, _, ct: (ct * by * 10 + (name == "ten"),),
    )
    assert scaled(1.0, plus=3.0) == 5.0
    assert px.grad(lambda x: scaled(x, plus=3.0, name="ten"))(1.0) == 21.0
