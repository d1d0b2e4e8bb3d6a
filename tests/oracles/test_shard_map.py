"""Derivatives inside ``shard_map``, against jax: what is summed over positions, and what is not."""

import functools

import numpy as np
import pytest

import phalanx
import phalanx.numpy

jax = pytest.importorskip("jax")
pytestmark = pytest.mark.skipif(
    min(jax.device_count(), phalanx.device_count()) < 4, reason="needs a mesh of 2 x 2"
)

AXES = ("x", "y")
RNG = np.random.default_rng(0)
W = {k: RNG.uniform(-1, 1, s).astype("f") for k, s in {"a": (3, 4), "b": (4,), "c": (4, 2)}.items()}
X = RNG.uniform(-1, 1, (8, 3)).astype("f")


def varying(m, x):
    return m.lax.pcast(x, AXES, to="varying")


def local(m, w, x):
    np_ = m.numpy
    return np_.mean((np_.tanh(x @ w["a"] + w["b"]) @ w["c"]) ** 2)


def mean(m, w, x):
    return m.lax.pmean(local(m, w, x), AXES)


def looped(m, w, x):
    np_, start = m.numpy, varying(m, m.numpy.zeros(4))
    last, sums = m.lax.scan(lambda c, r: (np_.tanh(c + r @ w["a"]), np_.sum(r)), start, x)
    return np_.sum(last) + np_.sum(sums)


def chosen(m, w, x, which):
    return m.lax.cond(which > 0, lambda: local(m, w, x), lambda: local(m, w, 2 * x) ** 2)


def waves(m, w, x):
    return m.numpy.sum(m.numpy.sin(x @ w))


def ruled(m):
    f = m.custom_jvp(functools.partial(waves, m))
    f.defjvp(lambda p, t: m.jvp(lambda w, x: 2 * waves(m, w, x), p, t))
    return f


def ruled_backward(m):
    def backward(residuals, ct):
        w, x = residuals
        return ct * x.T @ m.numpy.cos(x @ w), ct * m.numpy.cos(x @ w) @ w.T

    f = m.custom_vjp(functools.partial(waves, m))
    f.defvjp(lambda w, x: (f(w, x), (w, x)), backward)
    return f


def by_b(m, f):
    return lambda w, x: m.grad(lambda b: f(m, {**w, "b": b}, x))(w["b"])


def second(m, f, w, x):
    return by_b(m, lambda m, w, x: m.numpy.sum(by_b(m, f)(w, x) ** 2))(w, x)


BY_PARAMETERS = {
    "a local loss": local,
    "a mean of losses": mean,
    "a loss and a sum": lambda m, w, x: local(m, w, x) + m.lax.psum(local(m, w, x) ** 2, "x"),
    "what all have": lambda m, w, x: (
        m.numpy.sum(w["a"] ** 2) + m.numpy.sum(m.lax.psum(w["c"], "x") ** 3)),
    "by position": lambda m, w, x: local(m, w, x) * (1 + m.lax.axis_index("x")),
    "a loop": looped,
    "all choose alike": lambda m, w, x: chosen(m, w, x, m.lax.psum(m.numpy.sum(x), AXES)),
    "each chooses": lambda m, w, x: chosen(m, w, x, m.numpy.sum(x)),
    "again": lambda m, w, x: m.checkpoint(functools.partial(local, m))(w, x),
    "compiled": lambda m, w, x: m.jit(functools.partial(local, m))(w, x),
    "cast": lambda m, w, x: m.numpy.sum(varying(m, w["a"])),
}  # fmt: skip
BY_ROWS = {
    "times a sum": lambda m, w, x: local(m, w, x) * m.lax.psum(m.numpy.sum(x), AXES),
    "gathered": lambda m, w, x: m.numpy.sum(
        m.lax.all_gather(x, "x", tiled=True) ** 2 * m.numpy.sum(x)),
    "scattered": lambda m, w, x: m.numpy.sum(m.lax.psum_scatter(x * x, "x", tiled=True) ** 3),
    "exchanged": lambda m, w, x: m.numpy.sum(m.lax.all_to_all(x**2, "y", 0, 0, tiled=True) * x),
    "sent": lambda m, w, x: m.numpy.sum(m.lax.ppermute(x * x, "x", [(0, 1), (1, 0)]) * x),
}  # fmt: skip
OTHERS = {
    "of copies": lambda m, w, x: m.lax.pmean(
        m.grad(lambda a: local(m, {**w, "a": a}, x))(varying(m, w["a"])), AXES),
    "second": lambda m, w, x: second(m, local, w, x),
    "second of a mean": lambda m, w, x: second(m, mean, w, x),
    "forward": lambda m, w, x: m.jvp(lambda w: mean(m, w, x), (w,), (w,))[1],
    "a rule": lambda m, w, x: m.grad(ruled(m))(w["a"], x),
    "a rule backward": lambda m, w, x: m.lax.psum(
        m.grad(ruled_backward(m))(varying(m, w["a"]), x), AXES),
}  # fmt: skip


def every(m, w, x):
    """All derivatives: those of which each position has its own, and those that are the same."""
    rows = {k: m.grad(functools.partial(f, m), 1)(w, x) for k, f in BY_ROWS.items()}
    rows["row by row"] = m.vmap(lambda r: by_b(m, local)(w, r[None]))(x)
    same = {k: m.grad(functools.partial(f, m))(w, x) for k, f in BY_PARAMETERS.items()}
    return rows, same | {k: f(m, w, x) for k, f in OTHERS.items()}


def derivatives(m, mesh, spec):
    """All of them, by one program."""
    mapped = m.shard_map(
        functools.partial(every, m),
        mesh=mesh, in_specs=(spec(), spec(AXES)), out_specs=(spec(AXES), spec()),
    )  # fmt: skip
    rows, same = m.jit(mapped)(W, X)
    return rows | same


def test_derivatives_inside_as_in_jax():
    auto = (jax.sharding.AxisType.Auto,) * 2
    wanted = derivatives(jax, jax.make_mesh((2, 2), AXES, axis_types=auto), jax.P)
    found = derivatives(phalanx, phalanx.make_mesh((2, 2), AXES), phalanx.P)
    for name in wanted:
        pairs = zip(jax.tree.leaves(wanted[name]), phalanx.tree.leaves(found[name]), strict=True)
        for theirs, ours in pairs:
            np.testing.assert_allclose(
                np.asarray(ours), np.asarray(theirs), rtol=1e-4, atol=1e-5, err_msg=name
            )


def test_derivatives_of_what_is_whole_lie_over_the_mesh():
    """Where nothing is cut, types tell no lanes: the sharding is that of the mesh, as in jax."""
    for m in (jax, phalanx):
        mesh = m.make_mesh((2, 2), AXES, axis_types=(m.sharding.AxisType.Auto,) * 2)
        f = m.shard_map(lambda x: 2 * x, mesh=mesh, in_specs=m.P(), out_specs=m.P())
        ct = m.grad(lambda x, f=f: f(x).sum())(X)
        assert ct.sharding == m.NamedSharding(mesh, m.P()), m.__name__
