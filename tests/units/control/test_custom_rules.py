"""What rules receive and may return: arguments, symbolic zeros, values that Python can see."""

import functools
import itertools
from collections import defaultdict, deque
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest

import phalanx as px
import phalanx.numpy as jnp
from phalanx import lax
from phalanx.custom_derivatives import CustomVJPPrimal, SymbolicZero
from phalanx.errors import EscapedTracer, MissingRule
from tests.compare import SUMS, close

near = partial(close, within=SUMS)

X = np.array([0.3, 0.9, -0.8], np.float32)


# ---- arguments ----------------------------------------------------------------------------------


def test_functions_strings_keywords_and_defaults():
    @functools.partial(px.custom_jvp, nondiff_argnums=(0, 2))
    def apply(f, x, mode="once", scale=3.0):
        return f(x) * scale * (2 if mode == "twice" else 1)

    @apply.defjvp
    def rule(f, mode, primals, tangents):
        assert f is jnp.sin and mode in ("once", "twice")
        return apply(f, primals[0], mode, primals[1]), 100.0 * tangents[0]

    near(apply(jnp.sin, 1.0), 3 * np.sin(1.0))
    near(px.grad(lambda x: apply(jnp.sin, x))(1.0), 100.0)
    near(px.jit(px.grad(lambda x: apply(jnp.sin, scale=2.0, mode="twice", x=x)))(1.0), 100.0)
    near(px.jit(lambda x: apply(jnp.sin, x, "twice"))(1.0), 6 * np.sin(1.0))


def test_names_of_nondifferentiable_arguments():
    f = px.custom_vjp(lambda x, n: x**n, nondiff_argnames="n")
    f.defvjp(lambda x, n: (x**n, x), lambda n, x, ct: (10.0 * n * ct,))
    assert f.nondiff_argnums == (1,)
    near(px.jit(px.grad(lambda x: f(x, n=3)))(2.0), 30.0)


def test_traced_values_as_nondifferentiable_arguments_are_differentiated_as_usual():
    f = px.custom_jvp(lambda a, x: a * x, nondiff_argnums=0)
    f.defjvp(lambda a, primals, tangents: (f(a, *primals), 5 * a * tangents[0]))
    for g in (px.grad(f, (0, 1)), px.jit(px.grad(f, (0, 1))), px.grad(px.jit(f), (0, 1))):
        near(g(2.0, 3.0), (3.0, 10.0))
    near(px.vmap(px.grad(f, (0, 1)))(X, 2 * X), (2 * X, 5 * X))


def test_a_traced_nondifferentiable_argument_of_custom_vjp():
    f = px.custom_vjp(lambda a, x: x * lax.stop_gradient(a), nondiff_argnums=0)
    f.defvjp(lambda a, x: (f(a, x), None), lambda a, _, ct: (7 * a * ct,))
    for g in (px.grad(f, 1), px.jit(px.grad(f, 1)), px.grad(px.jit(f), 1)):
        near(g(2.0, 3.0), 14.0)
    near(px.jit(px.vmap(px.grad(f, 1)))(X, X), 7 * X)
    near(px.grad(lambda x: jnp.sum(px.jit(px.vmap(f))(X, x)))(X), 7 * X)


def test_methods():
    class Layer:
        def __init__(self, w):
            self.w = w

        @functools.partial(px.custom_vjp, nondiff_argnums=0)
        def apply(self, x):
            return lax.stop_gradient(self.w) * x

        def forward(self, x):
            return self.apply(x), None

        def backward(self, _, ct):
            return (10 * self.w * ct,)

        apply.defvjp(forward, backward)

    near(px.jit(px.grad(lambda x, w: Layer(w).apply(x)))(1.0, 3.0), 30.0)
    near(px.grad(px.jit(lambda x, w: Layer(w).apply(x)))(1.0, 3.0), 30.0)


def test_trees_integers_and_none():
    def f(params, n):
        return {"out": params["w"] * n, "count": n, "none": None}

    def check(f):
        def loss(params, n):
            return jnp.sum(f(params, n)["out"])

        args = {"w": X, "unused": (1.0, 2)}, jnp.int32(3)
        found = px.grad(loss, allow_int=True)(*args)
        near(found["w"], np.full(3, 30.0))
        near(found["unused"][0], 0.0)
        assert found["unused"][1].dtype == px.float0
        near(px.jit(lambda *a: px.grad(loss, allow_int=True)(*a)["w"])(*args), np.full(3, 30.0))

    by_jvp = px.custom_jvp(f)

    @by_jvp.defjvp
    def rule(primals, tangents):
        (params, n), (ts, tn) = primals, tangents
        assert tn.dtype == px.float0 and ts["unused"][1].dtype == px.float0
        return by_jvp(params, n), {"out": 10 * ts["w"] * n, "count": tn, "none": None}

    check(by_jvp)
    for whole in (True, False):
        by_vjp = px.custom_vjp(f)

        def backward(n, ct, whole=whole):
            assert ct["count"].dtype == px.float0 and ct["none"] is None
            return {"w": 10 * ct["out"] * n, "unused": None if whole else (None, None)}, None

        by_vjp.defvjp(lambda params, n: (f(params, n), n), backward)
        check(by_vjp)


def test_no_arguments_no_results_and_results_that_are_arguments():
    empty = px.custom_jvp(lambda: ())
    assert px.jit(empty)() == ()
    same = px.custom_vjp(lambda x, y: (y, x, 1.0))
    same.defvjp(lambda x, y: ((y, x, 1.0), None), lambda _, cts: (2 * cts[1], 3 * cts[0]))
    for f in (same, px.jit(same)):
        near(px.vjp(f, 1.0, 2.0)[1]((5.0, 7.0, 9.0)), (14.0, 15.0))
    twice = px.custom_jvp(lambda x, y: x * y)
    twice.defjvps(lambda t, out, x, y: 10 * t, lambda t, out, x, y: t)
    for g in (px.grad(lambda x: twice(x, x)), px.jit(px.grad(lambda x: twice(x, x)))):
        near(g(3.0), 11.0)


def test_complex_numbers_and_wide_ones():
    f = px.custom_jvp(lambda z: z * z)
    f.defjvps(lambda t, out, z: 4 * z * t)
    near(px.grad(f, holomorphic=True)(1 + 2j), 4 * (1 + 2j))
    with px.config.override(enable_x64=True):
        found = px.grad(f)(np.float64(0.1))
        assert found.dtype == np.float64
        near(found, 0.4, rtol=1e-12)


def test_one_rule_for_each_argument():
    f = px.custom_jvp(lambda x, tree, y: x * tree["a"] * y)
    f.defjvps(
        lambda t, out, x, tree, y: 2 * t * out / x, lambda t, out, x, tree, y: t["a"] * x * y, None
    )
    found = px.grad(f, (0, 1, 2))(3.0, {"a": 5.0}, 7.0)
    near(found, (70.0, {"a": 21.0}, 0.0))


# ---- symbolic zeros -----------------------------------------------------------------------------


def test_symbolic_zeros_of_tangents():
    seen = []
    f = px.custom_jvp(lambda x, y: (x * y, x))

    def rule(primals, tangents):
        seen[:] = tangents
        return f(*primals), (tangents[0] * primals[1], SymbolicZero(primals[0]))

    f.defjvp(rule, symbolic_zeros=True)
    slope = px.grad(lambda x, y: sum(f(x, y)))
    mapped = px.vmap(slope, (0, None))
    for g, x in ((slope, 0.5), (px.jit(slope), 0.5), (mapped, X)):
        near(g(x, 4), np.full(np.shape(x), 4.0))
        t, zero = seen
        assert not isinstance(t, SymbolicZero) and isinstance(zero, SymbolicZero)
        assert (zero.shape, zero.ndim, zero.size, zero.dtype) == ((), 0, 1, px.float0)


def test_symbolic_zeros_of_cotangents():
    seen = []
    f = px.custom_vjp(lambda x, y: (2 * x, 3 * y))

    def forward(x, y):
        assert isinstance(x, CustomVJPPrimal)
        seen.append((x.perturbed, y.perturbed))
        return (2 * x.value, 3 * y.value), None

    def backward(_, cts):
        seen.append([isinstance(ct, SymbolicZero) for ct in cts])
        return cts[0], SymbolicZero(jnp.float32(0))

    f.defvjp(forward, backward, symbolic_zeros=True)
    for g in (lambda f: f, px.jit):
        seen.clear()
        near(g(px.grad(lambda x: f(x, 4.0)[0]))(1.0), 1.0)
        assert seen == [(True, False), [False, True]]
        seen.clear()
        near(g(px.grad(lambda x, y: f(x, y)[0], (0, 1)))(1.0, 1.0), (1.0, 0.0))
        assert seen == [(True, True), [False, True]]


def test_traced_values_left_in_containers_are_not_taken_for_closed_over():
    left = []
    f = px.custom_jvp(lambda x: 2 * x)

    @f.defjvp
    def rule(primals, tangents):
        left.extend([*primals, *tangents])
        return f(*primals), 10 * tangents[0]

    for g in (px.grad(f), px.jit(px.grad(f)), px.grad(px.jit(f)), px.grad(f)):
        near(g(1.0), 10.0)
    near(px.vmap(px.grad(f))(X), np.full(3, 10.0))


# ---- Python sees values -------------------------------------------------------------------------


def test_python_control_flow_outside_jit():
    @px.custom_jvp
    def f(x, n):
        return x if x > 0 else sum([x] * n)

    @f.defjvp
    def rule(primals, tangents):
        x, n = primals
        if x > 0 and float(tangents[0]) > 0:
            return f(x, n), 10 * tangents[0]
        return f(x, n), n * tangents[0]

    near(px.jvp(lambda x: f(x, 3), (2.0,), (1.0,)), (2.0, 10.0))
    near(px.jvp(lambda x: f(x, 3), (2.0,), (-1.0,)), (2.0, -3.0))

    @px.custom_vjp
    def g(x):
        return x if x > 0 else -x

    g.defvjp(
        lambda x: (g(x), x),
        lambda x, ct: (10 * ct if x > 0 and ct == 1 else 20 * ct,),
    )
    near([px.grad(g)(v) for v in (2.0, -2.0)], [10.0, 20.0])
    near(px.grad(px.grad(lambda x: g(x) * x))(3.0), 20.0 + 10.0)
    assert g(-3.0) == 3.0


def test_the_forward_rule_runs_once():
    calls = []
    f = px.custom_vjp(lambda x: calls.append("f") or x)
    f.defvjp(lambda x: calls.append("fwd") or (x, None), lambda _, ct: calls.append("bwd") or (ct,))
    px.grad(f)(1.0)
    assert calls == ["fwd", "bwd"]
    f(1.0)
    assert calls == ["fwd", "bwd", "f"]


def test_compiled_functions_are_traced_once_and_closures_do_not_leak_into_them():
    traces = []

    def make(w):
        @px.custom_jvp
        def f(x):
            traces.append(None)
            return w * x

        f.defjvp(lambda p, t: (w * p[0], 10 * w * t[0]))
        return f

    g = px.jit(px.grad(make(2.0)))
    near([g(1.0), g(5.0)], [20.0, 20.0])
    assert len(traces) <= 1
    h = px.jit(lambda w, x: px.jit(make(w))(x))
    near([px.grad(h, (0, 1))(v, 3.0) for v in (1.0, 2.0)], [(3.0, 10.0), (3.0, 20.0)])
    near(px.vmap(px.grad(h, (0, 1)))(X, 2 * X), (2 * X, 10 * X))


def test_programs_show_the_call_by_name():
    def loss(w, x):
        @px.custom_vjp
        def scaled(x):
            return 2 * x

        scaled.defvjp(lambda x: (2 * x, x), lambda x, ct: (w * x * ct,))
        return scaled(x)

    whole = str(px.make_program(loss)(1.0, 2.0))
    assert "custom_vjp[num_consts=1, program=scaled(" in whole and "rule=scaled] a b" in whole
    assert "custom_vjp" not in str(px.make_program(px.grad(loss, 1))(1.0, 2.0))
    pull = px.jit(lambda w, x: px.vjp(lambda x: loss(w, x), x)[1])(3.0, 5.0)
    near(pull(2.0), (30.0,))


# ---- what is refused ----------------------------------------------------------------------------


def test_without_rules_only_derivatives_are_refused():
    for make in (px.custom_jvp, px.custom_vjp):
        f = make(lambda x: 2 * x)
        near([f(1.0), px.jit(f)(1.0), px.vmap(f)(X)[0]], [2.0, 2.0, 0.6])
        near(px.grad(lambda x, f=f: x * f(3.0))(1.0), 6.0)
        for g in (px.grad(f), px.jit(px.grad(f)), px.grad(px.jit(f))):
            with pytest.raises(MissingRule, match="is differentiated"):
                g(1.0)


FORWARD = {
    "jvp": lambda f: px.jvp(f, (1.0,), (1.0,)),
    "jit of jvp": lambda f: px.jit(lambda x: px.jvp(f, (x,), (x,)))(1.0),
    "jvp of jit": lambda f: px.jvp(px.jit(f), (1.0,), (1.0,)),
    "linearize": lambda f: px.linearize(f, 1.0)[1](1.0),
    "jacfwd of jit": lambda f: px.jacfwd(px.jit(f))(1.0),
    "while": lambda f: px.jvp(
        lambda x: lax.while_loop(lambda x: x < 3, f, x), (1.0,), (1.0,)
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FORWARD)
def test_forward_mode_of_custom_vjp(name):
    f = px.custom_vjp(lambda x: 2 * x)
    f.defvjp(lambda x: (2 * x, None), lambda _, ct: (2 * ct,))
    with pytest.raises(TypeError, match="use custom_jvp"):
        FORWARD[name](f)


@pytest.mark.parametrize("loop", ["while", "scan"])
def test_forward_mode_beside_a_function_without_it(loop):
    f = px.custom_vjp(lambda x: 2 * x)
    f.defvjp(lambda x: (2 * x, None), lambda _, ct: (2 * ct,))

    def step(s):
        return s[0] + 1, lax.stop_gradient(f(s[1])), 1.5 * s[2]

    def run(x):
        if loop == "scan":
            return lax.scan(lambda s, _: (step(s), None), (0, x, x), None, length=3)[0]
        return lax.while_loop(lambda s: s[0] < 3, step, (0, x, x))

    for g in (run, px.jit(run)):
        near(px.jvp(lambda x, g=g: g(x)[1:], (1.0,), (1.0,)), ((8.0, 3.375), (0.0, 3.375)))


def closing(w, x):
    f = px.custom_vjp(lambda x: w * x)
    f.defvjp(lambda x: (w * x, None), lambda _, ct: (w * ct,))
    return f(x)


CLOSING = {
    "grad": px.grad(closing, (0, 1)),
    "by it alone": px.grad(closing),
    "by it and a constant": px.grad(lambda w: closing(w, 2.0)),
    "jit of grad": px.jit(px.grad(closing, (0, 1))),
    "grad of jit": px.grad(px.jit(closing), (0, 1)),
    "grad of jit by it alone": px.grad(px.jit(closing)),
    "grad of vmap": px.grad(lambda w, x: jnp.sum(px.vmap(closing)(w, x)), (0, 1)),
}


@pytest.mark.parametrize("name", CLOSING)
def test_custom_vjp_refuses_to_be_differentiated_by_what_it_closes_over(name):
    args = (X, X) if "vmap" in name else (2.0,) if "constant" in name else (2.0, 3.0)
    with pytest.raises(px.errors.ClosureDifferentiated, match="closes over"):
        CLOSING[name](*args)
    near(px.grad(closing, 1)(2.0, 3.0), 2.0)


class Slotted:
    __slots__ = ("value",)

    def __init__(self, value):
        self.value = value


class Listed(list):
    def __init__(self, value):
        self.value = value


# what holds a traced value, and how it is read there
HELD = {
    "slot": (Slotted, lambda x: x.value),
    "attribute of a list": (Listed, lambda x: x.value),
    "namespace": (lambda w: SimpleNamespace(value=w), lambda x: x.value),
    "deque": (lambda w: deque([w]), lambda x: x[0]),
    "defaultdict": (lambda w: defaultdict(list, {0: w}), lambda x: x[0]),
    "key": (lambda w: {(Slotted(w), 0): 1}, lambda x: next(iter(x))[0].value),
    "method of a deque": (lambda w: deque([w]).copy, lambda x: x()[0]),
    "partial": (lambda w: functools.partial(getattr, Slotted(w), "value"), lambda x: x()),
}


@pytest.mark.parametrize("hold, read", HELD.values(), ids=HELD)
def test_a_traced_value_is_found_wherever_it_is_held(hold, read):
    def g(w, x):
        held = hold(w)
        f = px.custom_jvp(lambda x: x)
        f.defjvp(lambda p, t: (p[0], read(held) * t[0]))
        return f(x)

    near(px.grad(px.jit(g), 1)(3.0, 2.0), 3.0)
    near(px.grad(lambda x: jnp.sum(px.vmap(g)(X, x)))(X), X)


def test_a_traced_value_that_cannot_be_found_raises():
    def g(w, x):
        hidden = itertools.repeat(w)  # which does not show what it holds
        f = px.custom_jvp(lambda x: x)
        f.defjvp(lambda p, t: (p[0], next(hidden) * t[0]))
        return f(x)

    with pytest.raises(EscapedTracer):
        px.grad(px.jit(g), 1)(1.0, 2.0)
    with pytest.raises(EscapedTracer, match="pass it to that function"):
        px.grad(lambda x: jnp.sum(px.vmap(g)(X, x)))(X)


# ---- custom_gradient ----------------------------------------------------------------------------


def test_custom_gradient():
    @px.custom_gradient
    def f(x):
        y = jnp.sin(x)
        return y, lambda ct: 3 * ct * jnp.cos(x) * y

    near(f(1.0), np.sin(1.0))
    slope = 3 * np.cos(X) * np.sin(X)
    for g in (px.vmap(px.grad(f)), px.jit(px.vmap(px.grad(f))), px.vmap(px.grad(px.jit(f)))):
        near(g(X), slope)
    near(px.grad(lambda x: jnp.sum(px.pmap(f)(x)))(X), slope)
    near(px.grad(px.grad(f))(1.0), 3 * (np.cos(1.0) ** 2 - np.sin(1.0) ** 2))

    @px.custom_gradient
    def product(x, tree):
        return {"out": x * tree["a"]}, lambda ct: (2 * ct["out"], {"a": 3 * ct["out"]})

    near(px.grad(lambda *a: product(*a)["out"], (0, 1))(1.0, {"a": 2.0}), (2.0, {"a": 3.0}))


def test_custom_gradient_of_defaults():
    """Those that a call leaves out may have a cotangent, and need none."""
    first = px.custom_gradient(lambda x, y=3.0, mode="plain": (x * y, lambda ct: 5 * ct))
    named = px.custom_gradient(lambda x, y, name=None: (x * y, lambda ct: [5 * ct, 7 * ct]))
    every = px.custom_gradient(lambda x, y=3.0: (x * y, lambda ct: (5 * ct, 7 * ct)))
    for f in (first, lambda x: named(x, 3.0), lambda x: named(x, y=3.0), every):
        near(f(X), 3 * X)
        near(px.jit(f)(X), 3 * X)
        for g in (px.grad(f), px.jit(px.grad(f)), px.grad(px.jit(f))):
            near(g(2.0), 5.0)
        near(px.vmap(px.grad(f))(X), np.full(X.shape, 5.0))
    for f in (named, every, lambda x, y: every(x, y=y), lambda x, y: named(y=y, x=x)):
        near(px.grad(f, (0, 1))(2.0, 3.0), (5.0, 7.0))
    for f in (lambda x: first(x, 2.0), lambda x: first(x, y=2.0), lambda x: named(x, 3.0, None)):
        with pytest.raises(TypeError, match=r"custom_gradient.* must return a tuple of . cotang"):
            px.grad(f)(2.0)


# ---- closure_convert ----------------------------------------------------------------------------


def test_closure_convert():
    def integral(f):
        """The sum of f over some points, with a rule that knows what f closes over."""
        inner, values = px.closure_convert(f, 0.0)

        @functools.partial(px.custom_vjp, nondiff_argnums=0)
        def total(f, x, *values):
            return f(x, *values)

        def backward(f, residuals, ct):
            x, values = residuals
            found = px.vjp(lambda *vs: f(x, *vs), *values)[1](10 * ct)
            return (7 * ct, *found)

        total.defvjp(lambda f, x, *values: (f(x, *values), (x, values)), backward)
        return lambda x: total(inner, x, *values)

    def loss(w, x):
        return integral(lambda x: w * jnp.sin(x) + X.sum())(x)

    for g in (px.grad(loss, (0, 1)), px.jit(px.grad(loss, (0, 1))), px.grad(px.jit(loss), (0, 1))):
        near(g(2.0, 0.5), (10 * np.sin(0.5), 7.0))
    near(px.vmap(px.grad(loss))(X, X), 10 * np.sin(X))
    f, values = px.closure_convert(jnp.sin, 0.0)
    assert values == []
    with pytest.raises(ValueError, match="like the examples"):
        f((1.0, 2.0))


# ---- cotangents alone, where tangents are of no use ----------------------------------------------


@px.custom_vjp
def backward_only(x):
    return jnp.sin(x)


backward_only.defvjp(lambda x: (jnp.sin(x), x), lambda x, g: (g * jnp.cos(x),))


@px.custom_jvp
def forward_by_backward_only(x):
    return jnp.sin(x)


@forward_by_backward_only.defjvp
def _(primals, tangents):
    (x,), (t,) = primals, tangents
    return forward_by_backward_only(x), backward_only(x) * t


def halved(_, b):
    return b / 2


def thrice(step):
    def run(x):
        return lax.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, step(s[1])), (0, x))

    return run


STEPS = {
    "itself": backward_only,
    "jit": px.jit(backward_only),
    "checkpoint": px.checkpoint(backward_only),
    "grad": px.grad(backward_only),
    "vmap": lambda y: px.vmap(backward_only)(jnp.stack([y, y])).sum(),
    "pmap": lambda y: px.pmap(backward_only)(jnp.stack([y, y])).sum(),
    "cond": lambda y: lax.cond(y > 0, backward_only, jnp.cos, y),
    "scan": lambda y: lax.scan(lambda c, _: (backward_only(c), None), y, None, length=2)[0],
    "while": lambda y: thrice(backward_only)(y)[1],
    "custom_jvp": forward_by_backward_only,
    "custom_linear_solve": lambda y: lax.custom_linear_solve(
        lambda v: 2 * v, backward_only(y), halved, halved
    ),
}

AROUND = {
    "nothing": lambda loop, x: loop(x)[0] * x,
    "jit": lambda loop, x: px.jit(lambda x: loop(x)[0] * x)(x),
    "checkpoint": lambda loop, x: px.checkpoint(lambda x: loop(x)[0] * x)(x),
    "cond": lambda loop, x: lax.cond(x > 0, loop, lambda x: (0, x), x)[0] * x,
    "scan": lambda loop, x: lax.scan(lambda c, _: (loop(c)[0] * x, None), x, None, length=2)[0],
    "stop_gradient": lambda loop, x: loop(x)[0] * x + lax.stop_gradient(loop(x)[1]),
}

DERIVATIVES = {
    "grad": lambda f: px.grad(f)(1.0),
    "linearize": lambda f: px.linearize(f, 1.0)[1](1.0),
    "jit of grad": lambda f: px.jit(px.grad(f))(1.0),
    "vmap of grad": lambda f: px.vmap(px.grad(f))(jnp.ones(2)),
    "grad of vmap": lambda f: px.grad(lambda x: px.vmap(f)(x).sum())(jnp.ones(2)),
    "grad of pmap": lambda f: px.grad(lambda x: px.pmap(f)(x).sum())(jnp.ones(2)),
    "three times, grad of grad": lambda f: 3 + px.grad(px.grad(f))(1.0),
    "three times, forward over reverse": lambda f: 3 + px.jacfwd(px.grad(f))(1.0),
}


@pytest.mark.parametrize("step", STEPS)
def test_a_loop_whose_tangent_is_not_used(step):
    def f(x):
        return AROUND["nothing"](thrice(STEPS[step]), x)

    for derivative in DERIVATIVES.values():
        slope = derivative(f)
        near(slope, np.full(slope.shape, 3.0))


@pytest.mark.parametrize("around", AROUND)
def test_such_a_loop_within_something_else(around):
    def f(x):
        return AROUND[around](thrice(backward_only), x)

    near(px.grad(f)(1.0), 3.0)
    near(px.vmap(px.grad(f))(jnp.ones(2)), np.full(2, 3.0))


def test_a_loop_whose_tangent_is_used_is_refused_where_the_function_is_called():
    def f(x):
        return thrice(backward_only)(x)[1]

    for derivative in px.grad(f), px.jit(px.grad(f)):
        with pytest.raises(MissingRule, match="Reverse-mode differentiation does not work"):
            derivative(1.0)
    where = r"custom_vjp\(backward_only\).* at test_custom_rules.py:\d+ \(<lambda>\)"
    for derivative in px.jacfwd(f), px.jit(px.jacfwd(f)), px.linearize(f, 1.0)[1]:
        with pytest.raises(TypeError, match=where):
            derivative(1.0)
