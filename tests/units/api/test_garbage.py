"""What is dropped dies at once: nothing waits for the garbage collector, and nothing is left.

Each use gets fresh arrays and makes fresh functions; it returns what it made. With the collector
switched off, arguments, results and functions must be gone when the last name of them is.
"""

import gc
import weakref

import numpy as np
import pytest

import phalanx as px
import phalanx.numpy as jnp
from phalanx import lax, tree, tree_util
from phalanx.api.dispatch import Caches
from phalanx.base.tree import broadcast_prefix
from phalanx.core.program import Program
from phalanx.xla.executables import XlaExecutable

OURS = (Program, XlaExecutable, Caches)


def smooth():
    return lambda x: jnp.sin(x) * x


def total():
    return lambda x: (jnp.sin(x) * x).sum()


def step():
    return lambda c, a: (jnp.sin(c) * a, c * a)


def doubled():
    return lambda c: (c[0] + 1, c[1] * 2)


def summed():
    return lambda x: lax.psum(x * x, "i")


def with_jvp():
    f = px.custom_jvp(smooth())

    @f.defjvp
    def rule(primals, tangents):
        return jnp.sin(primals[0]) * primals[0], jnp.cos(primals[0]) * tangents[0]

    return f


def with_jvps():
    f = px.custom_jvp(smooth())
    f.defjvps(lambda t, out, x: t * out)
    return f


def with_vjp():
    f = px.custom_vjp(smooth())
    f.defvjp(lambda x: (jnp.sin(x) * x, x), lambda x, ct: (jnp.cos(x) * ct,))
    return f


class Model:
    """A callable object whose program refers to it."""

    def __init__(self):
        self.act = px.custom_vjp(lambda x: x * 2)
        self.act.defvjp(lambda x: (x * 2, None), lambda _, ct: (2 * ct,))

    def __call__(self, x):
        return self.act(x) + 1


def counting(f, ref):
    """``f``, which closes over a reference and writes to it."""

    def g(x):
        ref[...] += 1
        return f(x) * ref[...]

    return g


def with_ref(use):
    """What is to be dropped of a ``use`` of such a function: the reference, too."""
    return lambda f, x: (ref := px.new_ref(jnp.zeros(())), g := counting(f, ref), use(g, x))


def over_a_mesh(f):
    return px.shard_map(f, mesh=px.make_mesh((1,), ("y",)), in_specs=px.P("y"), out_specs=px.P("y"))


def failing(f, *args, **kwargs):
    """An exception, dropped as soon as it is caught; pytest.raises would keep its frames."""
    try:
        f(*args, **kwargs)
    except Exception:
        return
    raise AssertionError("nothing was raised")


def scanned(f):
    return lambda x: lax.scan(f, x[0], x)


def looped(f):
    return lambda x: lax.while_loop(lambda c: c[0] < 3, f, (0, x))[1]


def chosen(f):
    return lambda x: lax.cond(x.sum() > 0, f, lambda y: y, x)


# Of a function of the second entry and an argument, what is to be dropped: results and functions.
CALLS = {
    "jit": (smooth, lambda f, x: px.jit(f)(x)),
    "jit, twice": (smooth, lambda f, x: (g := px.jit(f), g(x), g(x))),
    "jit of NumPy": (smooth, lambda f, x: px.jit(f)(np.ones((4, 3), np.float32))),
    "jit of a tree": (smooth, lambda f, x: px.jit(lambda t: [f(t["a"])])({"a": x, "b": None})),
    "jit of static": (smooth, lambda f, x: px.jit(lambda n, x: n * f(x), static_argnums=0)(2, x)),
    "jit with donation": (smooth, lambda f, x: px.jit(f, donate_argnums=0)(x)),
    "jit closes over": (smooth, lambda f, x: px.jit(lambda y: f(y) + x)(x)),
    "jit in jit": (smooth, lambda f, x: (g := px.jit(f), px.jit(lambda x: g(x) + g(x))(x))),
    "jit ahead of time": (smooth, lambda f, x: (c := px.jit(f).lower(x).compile(), c(x))),
    "pmap": (smooth, lambda f, x: px.pmap(f)(x)),
    "pmap, psum": (summed, lambda f, x: px.pmap(f, axis_name="i")(x)),
    "pmap of NumPy": (summed, lambda f, x: px.pmap(f, axis_name="i")(np.ones((4, 3)))),
    "pmap of grad": (total, lambda f, x: px.pmap(px.grad(f))(x)),
    "grad of pmap": (summed, lambda f, x: px.grad(lambda x: px.pmap(f, "i")(x).sum())(x)),
    "shards": (smooth, lambda f, x: (y := px.pmap(f)(x), y[1], y.addressable_shards[0].data)),
    "grad": (total, lambda f, x: px.grad(f)(x)),
    "value_and_grad": (total, lambda f, x: px.value_and_grad(f)(x)),
    "grad of jit": (total, lambda f, x: px.grad(px.jit(f))(x)),
    "jit of grad of jit": (total, lambda f, x: px.jit(px.grad(px.jit(f)))(x)),
    "hessian": (total, lambda f, x: px.hessian(f)(x)),
    "jvp": (smooth, lambda f, x: px.jvp(f, (x,), (x,))),
    "vjp": (smooth, lambda f, x: (pair := px.vjp(f, x), pair[1](pair[0]))),
    "linearize": (smooth, lambda f, x: (pair := px.linearize(f, x), pair[1](x))),
    "vmap": (smooth, lambda f, x: px.vmap(f)(x)),
    "vmap of jit": (smooth, lambda f, x: px.vmap(px.jit(f))(x)),
    "jit of vmap of grad": (total, lambda f, x: px.jit(px.vmap(px.grad(f)))(x)),
    "scan": (step, lambda f, x: scanned(f)(x)),
    "jit of scan": (step, lambda f, x: px.jit(scanned(f))(x)),
    "grad of scan": (step, lambda f, x: px.grad(lambda x: scanned(f)(x)[0].sum())(x)),
    "jit of grad of scan": (step, lambda f, x: px.jit(px.jacrev(lambda x: scanned(f)(x)[0]))(x)),
    "jvp of scan": (step, lambda f, x: px.jvp(scanned(f), (x,), (x,))),
    "vmap of scan": (step, lambda f, x: px.vmap(scanned(f))(x)),
    "while_loop": (doubled, lambda f, x: looped(f)(x)),
    "jit of while_loop": (doubled, lambda f, x: px.jit(looped(f))(x)),
    "jvp of while_loop": (doubled, lambda f, x: px.jvp(looped(f), (x,), (x,))),
    "vmap of while_loop": (doubled, lambda f, x: px.vmap(looped(f))(x)),
    "fori_loop": (smooth, lambda f, x: lax.fori_loop(0, 3, lambda i, c: f(c), x)),
    "cond": (smooth, lambda f, x: chosen(f)(x)),
    "jit of cond": (smooth, lambda f, x: px.jit(chosen(f))(x)),
    "grad of cond": (smooth, lambda f, x: px.jit(px.grad(lambda x: chosen(f)(x).sum()))(x)),
    "vmap of cond": (smooth, lambda f, x: px.vmap(chosen(f))(x)),
    "map": (smooth, lambda f, x: lax.map(f, x)),
    "custom_jvp": (with_jvp, lambda f, x: f(x)),
    "grad of custom_jvp": (with_jvp, lambda f, x: px.grad(lambda x: f(x).sum())(x)),
    "jit of custom_jvp": (with_jvp, lambda f, x: px.jit(f)(x)),
    "jit inside grad of custom_jvp": (with_jvp, lambda f, x: px.jacfwd(px.jit(f))(x)),
    "vmap of grad of custom_jvp": (with_jvp, lambda f, x: px.jit(px.vmap(px.jacrev(f)))(x)),
    "defjvps": (with_jvps, lambda f, x: px.jacfwd(px.jit(f))(x)),
    "custom_vjp": (with_vjp, lambda f, x: f(x)),
    "grad of custom_vjp": (with_vjp, lambda f, x: px.grad(lambda x: f(x).sum())(x)),
    "jit of custom_vjp": (with_vjp, lambda f, x: px.jit(f)(x)),
    "jit inside grad of custom_vjp": (with_vjp, lambda f, x: px.jacrev(px.jit(f))(x)),
    "an object that its program holds": (Model, lambda f, x: (px.jit(f)(x), px.jit(f.__call__)(x))),
    "checkpoint": (smooth, lambda f, x: px.jacrev(px.checkpoint(f))(x)),
    "jit of checkpoint": (total, lambda f, x: px.jit(px.grad(px.checkpoint(f)))(x)),
    "checkpoint in scan": (step, lambda f, x: px.jit(px.jacrev(scanned(px.checkpoint(f))))(x)),
    "pure_callback": (lambda: lambda y: np.asarray(y) + 1,
                      lambda f, x: px.jit(lambda x: px.pure_callback(f, x, x))(x)),
    "a reference": (smooth, with_ref(lambda f, x: f(x))),
    "jit of a reference": (smooth, with_ref(lambda f, x: (g := px.jit(f), g(x), g(x[:2])))),
    "jit given a reference": (
        smooth, lambda f, x: (ref := px.new_ref(x), px.jit(lambda r: f(r[...]))(ref))),
    "pmap of a reference": (
        smooth, with_ref(lambda f, x: px.pmap(f, in_axes=None, axis_size=2)(x))),
    "shard_map of a reference": (smooth, with_ref(lambda f, x: over_a_mesh(f)(x))),
    "scan of a reference": (
        smooth, with_ref(lambda f, x: px.jit(lambda x: lax.map(f, x))(x))),
    "grad of a reference": (
        smooth, with_ref(lambda f, x: px.grad(lambda y: f(x).sum() * y.sum())(x))),
    "make_program": (smooth, lambda f, x: px.make_program(f)(x)),
    "eval_shape": (smooth, lambda f, x: px.eval_shape(f, x)),
    "tree.map": (smooth, lambda f, x: tree.map(f, {"a": [x]})),
    "paths": (smooth, lambda f, x: tree_util.tree_map_with_path(lambda p, y: f(y), {"a": [x]})),
    "prefixes": (smooth, lambda f, x: broadcast_prefix((0, f), ((x,), [x]))),
    "error of the user's": (lambda: lambda x: 1 / 0, lambda f, x: failing(px.jit(f), x)),
    "error: no array": (smooth, lambda f, x: failing(px.jit(f), [x, "a"])),
    "error: result": (lambda: lambda x: "a", lambda f, x: failing(px.jit(f), x)),
    "error: if": (lambda: lambda x: 1 if x[0, 0] > 0 else 2, lambda f, x: failing(px.jit(f), x)),
    "error: shapes": (lambda: lambda x: x + jnp.ones(7), lambda f, x: failing(px.jit(f), x)),
    "error: axis size": (lambda: lambda x, y: x, lambda f, x: failing(px.pmap(f), x, x[:2])),
    "error: grad": (smooth, lambda f, x: failing(px.grad(f), x)),
    "error: scan": (lambda: lambda c, a: c, lambda f, x: failing(lax.scan, f, x, x)),
    "error: cond": (lambda: lambda x: x[0], lambda f, x: failing(chosen(f), x)),
    "error: trees": (smooth, lambda f, x: failing(tree.map, f, {"a": x}, {"b": x})),
    "error: rule": (smooth, lambda f, x: failing(px.grad(px.custom_vjp(f)), x)),
    "error: callback": (lambda: lambda y: 1 / 0, lambda f, x:
                        failing(px.jit(lambda x: px.pure_callback(f, x, x)), x)),
}  # fmt: skip


def nan_found(f, x):
    with px.config.override(debug_nans=True):
        failing(px.jit(f), x)


CALLS["error: NaN"] = (lambda: lambda x: jnp.log(-x), nan_found)


def used(make, call):
    """Weak references to all that a use got, made and returned."""
    x = jnp.asarray(np.random.default_rng(0).uniform(0.5, 1, (4, 3)).astype(np.float32))
    f = make()
    made = [x, f, *tree.leaves(call(f, x)), *vars(f).values()]
    return [weakref.ref(m) for m in made if type(m).__weakrefoffset__]


def count():
    return {kind.__name__: sum(isinstance(o, kind) for o in gc.get_objects()) for kind in OURS}


@pytest.mark.parametrize("name", CALLS)
def test_what_is_dropped_dies_at_once(name, collector_off):
    used(*CALLS[name])  # what is made once in a process
    gc.collect()
    before = count()
    references = used(*CALLS[name])
    assert [r() for r in references if r() is not None] == []
    assert count() == before


def test_many_dropped_functions_leave_nothing():
    def drop(n):
        for i in range(n):
            f = px.jit(lambda x, i=i: x + i)
            f.trace(X)

    X = jnp.ones(3)
    drop(20)
    gc.collect()
    before, objects = count(), len(gc.get_objects())
    drop(2000)
    assert count() == before
    gc.collect()
    assert len(gc.get_objects()) < objects + 200


def test_many_compiled_functions_leave_nothing():
    def drop(n):
        for i in range(n):
            px.jit(lambda x, i=i: x * i)(X)
            px.grad(px.jit(lambda x, i=i: (x * i).sum()))(X)

    X = jnp.ones(3)
    drop(2)
    gc.collect()
    before = count()
    drop(20)
    assert count() == before


@pytest.mark.parametrize("rules", ["jvp", "vjp"])
def test_rules_outlive_their_function_in_programs(rules):
    """The function is in its rules, which the collector sees; the program runs them later."""

    def square(x):
        if rules == "jvp":
            f = px.custom_jvp(lambda x: x * x)
            f.defjvp(lambda xs, ts: (f(*xs), 3 * xs[0] * ts[0]))
        else:
            f = px.custom_vjp(lambda x: x * x)
            f.defvjp(lambda x: (f(x), x), lambda x, ct: (3 * x * ct,))
        return f(x)

    compiled = px.jit(square)
    assert compiled(2.0) == 4
    gc.collect()
    assert px.grad(compiled)(2.0) == 6


@pytest.mark.parametrize("size", [100, 1_000_000])
def test_arrays_of_the_host_that_programs_read_go_with_pythons_garbage(size):
    x = np.zeros(size, np.float32)
    alive = weakref.ref(x)
    px.jit(smooth())(x).block_until_ready()
    del x
    gc.collect()
    assert alive() is None
