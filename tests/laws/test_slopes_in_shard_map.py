"""Functions over blocks have the values and derivatives that they have over lanes.

Every operand is whole, or cut along one axis of the mesh or along both, whatever the others are. So
what has no part in a derivative, or is the same at all positions, meets what differs.
"""

import numpy as np
import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st

import phalanx
import phalanx.numpy as jnp
from phalanx import P, lax
from phalanx.laws.blocks import check_blocks, drawn_cuts
from phalanx.laws.compare import LawBroken
from phalanx.sharding import AxisType

pytestmark = pytest.mark.spmd
few = settings(max_examples=max(1, settings().max_examples // 4))
N = 3
X, M = (N,), (N, N)


def ruled(f):
    g = phalanx.custom_jvp(f)
    g.defjvp(lambda xs, ts: phalanx.jvp(f, xs, ts))
    return g


def ruled_backward(f):
    g = phalanx.custom_vjp(f)
    g.defvjp(lambda *xs: (f(*xs), xs), lambda xs, ct: phalanx.vjp(f, *xs)[1](ct))
    return g


@phalanx.custom_jvp
def only_first(a, e):
    return a + e


only_first.defjvps(lambda t, out, a, e: t, None)


def each_step(a, e, w):
    return lax.scan(lambda c, r: (c * 0.5 + r, c + a), e, jnp.stack([w, e]))[1]


def carried(a, e, w):
    return lax.scan(lambda c, r: (jnp.sin(c * r) + a, None), w, jnp.stack([e, e * 2]))[0]


def counted(a, e, w):
    return lax.fori_loop(0, 3, lambda i, c: c * e + a, w)


def chosen(a, e, w):
    return lax.cond(jnp.sum(e) > 0, lambda: a * 2, lambda: w)


def switched(a, e, w):
    return lax.switch(jnp.sum(w > 0), [lambda x: x, jnp.sin, lambda x: x + e, jnp.cos], a)


def solved(a, e, w):
    matrix = jnp.diag(2 + jnp.cos(e))
    return lax.custom_linear_solve(
        lambda x: matrix @ x, a + w, lambda mv, b: jnp.linalg.solve(matrix, b), symmetric=True
    )


def rooted(a, e, w):
    return lax.custom_root(
        lambda x: x + 0.1 * jnp.sin(x) * e - a,
        a,
        lambda f, x: lax.fori_loop(0, 12, lambda i, x: x - f(x), x),
        lambda g, y: jnp.linalg.solve(phalanx.jacobian(g)(y), y),
    )


def written(a, e, w):
    ref = phalanx.new_ref(e)
    ref[0] = a[1]
    return ref[...] + w


# Of three operands, each as one position has it: vectors of N numbers.
BODIES = {
    "sum": lambda a, e, w: a + e,
    "passed": lambda a, e, w: [a, e * w],
    "two heads": lambda a, e, w: [jnp.sin(e) + a, e * w + a],
    "linear": lambda a, e, w: jnp.outer(e, w) @ e + a,
    "residual": lambda a, e, w: a + jnp.tanh(a * w) * e,
    "set": lambda a, e, w: e.at[1].set(a[0]) + w,
    "added": lambda a, e, w: a.at[jnp.array([0, 0, 2])].add(e),
    "joined": lambda a, e, w: jnp.concatenate([a, e, w]),
    "stacked": lambda a, e, w: jnp.stack([a, e]),
    "where": lambda a, e, w: jnp.where(e > 0, a, w),
    "largest": lambda a, e, w: jnp.maximum(a, e * w),
    "slice": lambda a, e, w: lax.dynamic_update_slice(a, e[:2], (1,)),
    "picked": lambda a, e, w: a[jnp.argsort(e)],
    "sorted": lambda a, e, w: lax.sort((e, a), num_keys=1)[1],
    "softmax": lambda a, e, w: phalanx.nn.softmax(a + e) * w,
    "relu": lambda a, e, w: phalanx.nn.relu(a) + e,
    "each step": each_step,
    "carried": carried,
    "counted": counted,
    "chosen": chosen,
    "switched": switched,
    "mapped": lambda a, e, w: lax.map(lambda r: r * a[0] + w[1], e),
    "prefixes": lambda a, e, w: lax.associative_scan(lambda x, y: x * y + x, a) + e,
    "solved": solved,
    "rooted": rooted,
    "written": written,
    "only first": lambda a, e, w: only_first(a, e) * w,
    "rule": lambda a, e, w: ruled(lambda x, y: x + y)(a, e) * w,
    "backward rule": lambda a, e, w: ruled_backward(lambda x, y: x + jnp.sin(y))(a, e) * w,
    "closed over": lambda a, e, w: ruled(lambda x: x + a)(e) * w,
    "named lanes": lambda a, e, w: (
        phalanx.vmap(lambda x: x - lax.pmean(x, "i") + a, axis_name="i")(e) + w[0]
    ),
    "pmap": lambda a, e, w: phalanx.pmap(lambda x: x * a + e, axis_name="i")(w),
    "lane by lane": lambda a, e, w: phalanx.vmap(lambda x: a + x, in_axes=0)(e),
    "slope": lambda a, e, w: phalanx.jvp(lambda x: jnp.sin(x) + w, (e,), (a,))[1] + a,
    "meeting": lambda a, e, w: a + lax.psum(differing(w) * e, ("x", "y")),
    "mean": lambda a, e, w: lax.pmean(differing(a * e), "x") * w,
    "gathered": lambda a, e, w: lax.all_gather(differing(a), "y").sum(0) + e,
    "shifted": lambda a, e, w: a + lax.ppermute(differing(e), "y", [(0, 0)]) * w,
    "meeting in a loop": lambda a, e, w: lax.scan(
        lambda c, r: (c + a, lax.psum(differing(c * r), "x")), e, jnp.stack([w, e])
    )[1],
    "meeting in a branch": lambda a, e, w: (
        lax.cond(
            lax.pmax(differing(a.sum()), ("x", "y")) > 0,
            lambda: lax.psum(differing(a * w), "x"),
            lambda: jnp.cos(lax.psum(differing(w), "x")) * a,
        )
        * e
    ),
}
BACKWARD_ONLY = {"backward rule"}
INSIDE = {
    "": lambda f: f,
    "jit": phalanx.jit,
    "checkpoint": phalanx.checkpoint,
    "scan": lambda f: lambda *xs: lax.scan(lambda c, s: (c, f(*[x * s for x in xs])), 0, SCALES)[1],
    "vmap": lambda f: lambda *xs: phalanx.vmap(lambda s: f(*[x * s for x in xs]))(SCALES),
    "vmap of one": lambda f: lambda a, *xs: phalanx.vmap(lambda s: f(a * s, *xs))(SCALES),
}
OUTSIDE = {**INSIDE, "": phalanx.jit, "none": lambda f: f}
SCALES = jnp.array([1.0, 0.5])


def differing(x):
    """``x``, made to differ along both axes of the mesh, where types count with that, too."""
    return x * (1 + 0.25 * lax.axis_index("x") + 0.125 * lax.axis_index("y"))


def mesh_of(two, kind):
    count = phalanx.device_count()
    sizes = ((2, 2) if two else (1, 4)) if count > 3 else (1, count)
    return phalanx.make_mesh(sizes, ("x", "y"), (kind, kind))


def at_positions(mesh, seed):
    random = np.random.default_rng(seed)
    return [[random.normal(size=N).astype("f") for _ in range(3)] for _ in range(mesh.size)]


@pytest.mark.parametrize("name", BODIES)
@few
@given(
    st.sampled_from(sorted(INSIDE)),
    st.sampled_from(sorted(OUTSIDE)),
    st.booleans(),
    st.sampled_from([AxisType.Auto, AxisType.Explicit]),
    st.integers(0, 2**30),
)
def test_blocks_and_lanes(name, inside, outside, two, kind, seed):
    note((inside, outside, two, kind, seed))
    mesh = mesh_of(two, kind)
    positions = at_positions(mesh, seed)
    f = INSIDE[inside](BODIES[name])

    def leaves(*xs):
        return phalanx.tree.leaves(f(*xs))

    modes = ("rev",) if name in BACKWARD_ONLY else ("fwd", "rev")
    order = 1 if name in BACKWARD_ONLY else 2  # a second derivative in reverse is forward in part
    cuts = drawn_cuts(3, mesh, 1, seed)
    check_blocks(
        LawBroken, name, leaves, positions, mesh, cuts, order, modes, around=OUTSIDE[outside]
    )


@pytest.mark.parametrize("name", ["sum", "linear", "each step", "rule", "meeting"])
@few
@given(st.booleans(), st.sampled_from([AxisType.Auto, AxisType.Explicit]), st.integers(0, 2**30))
def test_jacobians(name, two, kind, seed):
    mesh = mesh_of(two, kind)

    def leaves(*xs):
        return phalanx.tree.leaves(BODIES[name](*xs))

    cuts = drawn_cuts(3, mesh, 1, seed)
    for jacobian in (phalanx.jacfwd, phalanx.jacrev):
        check_blocks(
            LawBroken, name, leaves, at_positions(mesh, seed), mesh, cuts, order=0,
            around=lambda f, jacobian=jacobian: phalanx.jit(
                lambda *xs: [jacobian(f, i)(*xs) for i in range(len(xs))]
            ),
        )  # fmt: skip


@pytest.mark.parametrize("kind", [AxisType.Auto, AxisType.Explicit])
def test_what_is_whole_in_a_sum_with_what_is_cut(kind):
    count = phalanx.device_count()
    mesh = phalanx.make_mesh((count,), ("y",), (kind,))
    f = phalanx.shard_map(lambda a, e: a + e, mesh=mesh, in_specs=(P(), P("y")), out_specs=P("y"))
    assert phalanx.grad(lambda a: f(a, jnp.ones(count)).sum())(1.0) == count
    assert phalanx.jacrev(lambda a: f(a, jnp.ones(count)))(1.0).tolist() == [1] * count


def test_slopes_of_slopes_of_branches():
    """What only one of the branches makes differ does so in the result."""
    mesh = phalanx.make_mesh((phalanx.device_count(),), ("y",))

    def f(w, x):
        return lax.cond(w > 0, lambda: lax.psum(x * w, "y"), lambda: w * 2 + jnp.zeros(1)) + 0 * x

    def slope(w):
        return phalanx.grad(lambda x: jnp.sum(g(w, x) ** 2))(x)

    g = phalanx.shard_map(f, mesh=mesh, in_specs=(P(), P("y")), out_specs=P("y"))
    x = jnp.ones(mesh.size)
    # f = n w at each of n positions, and the slope by each x is 2 n (n w) w
    assert phalanx.jacrev(slope)(1.0).tolist() == [4.0 * mesh.size**2] * mesh.size
    assert phalanx.jacfwd(slope)(1.0).tolist() == [4.0 * mesh.size**2] * mesh.size
