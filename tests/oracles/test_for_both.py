"""The table of the page on explicit sharding: what Phalanx alone accepts, and what both do."""

import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import phalanx
import phalanx.numpy
import phalanx.sharding
from tests.releases import OLDER

jax = pytest.importorskip("jax")
pytestmark = pytest.mark.skipif(
    min(jax.device_count(), phalanx.device_count()) < 8, reason="needs a mesh of 2 x 4"
)
PAGE = Path(__file__).parents[2] / "docs" / "explicit-sharding.md"


def words(m):
    """The names that a case speaks of, of Phalanx or of jax, and arrays over a mesh of 2 x 4."""
    kind, P = m.sharding.AxisType, m.sharding.PartitionSpec
    mesh = m.make_mesh((2, 4), ("x", "y"), axis_types=(kind.Explicit, kind.Explicit))

    def placed(*spec, like=None):
        values = np.arange(64, dtype="f").reshape(8, 8) / 8 if like is None else like
        return m.device_put(values, m.sharding.NamedSharding(mesh, P(*spec)))

    return SimpleNamespace(
        m=m, np=m.numpy, lax=m.lax, P=P, mesh=mesh, placed=placed, reshard=m.reshard,
        auto=m.make_mesh((8,), ("a",), axis_types=(kind.Auto,)), Named=m.sharding.NamedSharding,
        rows=placed("x"), whole=placed(), line=placed("x", like=np.arange(8, dtype="f")),
        order=placed("x", like=np.arange(8)[::-1].copy()),
    )  # fmt: skip


def mapped(w, f, ins, outs, mesh=None):
    return w.m.jit(w.m.shard_map(f, mesh=mesh or w.mesh, in_specs=ins, out_specs=outs))


def under(w, mesh, call):
    with w.m.set_mesh(mesh):
        return call()


def without_casts(w, f):
    """What ``f`` computes of a line's parts, where nothing is cast for it."""
    w.m.config.update("jax_auto_pcast", False)
    try:
        return mapped(w, f, w.P("x"), w.P("x"))(w.line)
    finally:
        w.m.config.update("jax_auto_pcast", True)


def summed(w):
    columns, rows = w.placed(None, "x"), w.placed("x")
    return w.np.matmul(columns, rows, out_sharding=w.P(unreduced={"x"}))


def window(w, x):
    return w.lax.reduce_window(x, 0.0, w.lax.add, (3,), (1,), "SAME")


def chosen(w, outs):
    """A branch by the number of a position, of which the results are the same everywhere."""

    def f(v):
        return w.lax.cond(w.lax.axis_index("x") > 0, lambda: v, lambda: v + 1)

    return mapped(w, f, w.P(), outs)(w.whole)


def carried(w, start):
    def f(v):
        return w.lax.fori_loop(0, 3, lambda i, c: c + v.sum(), start(w.np.float32(0)))[None]

    return mapped(w, f, w.P("x"), w.P("x"))(w.line)


def with_rule(w, cotangent):
    @w.m.custom_vjp
    def f(a, b):
        return a * b.sum()

    f.defvjp(lambda a, b: (f(a, b), (a, b)), lambda kept, ct: cotangent(w, *kept, ct))

    def loss(a, b):
        return mapped(w, lambda a, b: f(a, b)[None], (w.P(), w.P("x")), w.P("x"))(a, b).sum()

    return w.m.jit(w.m.grad(loss))(w.np.float32(2), w.line)


def nested(w, **options):
    def f(v):
        inside = w.m.shard_map(
            lambda u: u * w.lax.axis_index("y"), in_specs=w.P(), out_specs=w.P("y"), **options
        )
        return inside(v)

    f = w.m.shard_map(f, in_specs=w.P("x"), out_specs=w.P("x"), axis_names={"x"})
    return w.m.jit(f)(w.line)


def turned(i):
    """The number of a position, counted along `x` first, of that with the number `i` otherwise."""
    return i % 2 * 4 + i // 2


def shifted(w, axes, perm):
    around = w.P(("y", "x"))
    return mapped(w, lambda v: w.lax.ppermute(v, axes, perm), around, around)(
        w.reshard(w.line, around)
    )


def transposed(w, primal, cotangent):
    def f(t):
        p = primal(w.np.ones(t.shape, "f"))
        _, linear = w.m.linearize(lambda p: (p**2).sum(), p)
        (ct,) = w.m.linear_transpose(linear, p)(linear(t))
        return cotangent(ct)

    return mapped(w, f, w.P("x"), w.P())(w.line)


def held(w):
    def f(v):
        ref = w.m.new_ref(v)
        return w.m.freeze(ref)

    return f


# by the beginning of the row: what only Phalanx accepts, None where nothing is refused or can be
# told; what both accept, of which both give the same
ROWS = {
    "a whole operand beside": [
        (
            lambda w: w.np.concatenate([w.rows, w.whole]),
            lambda w: w.np.concatenate([w.rows, w.reshard(w.whole, w.P("x", None))]),
        ),
        (
            lambda w: w.lax.select(w.rows > 3, w.rows, w.whole),
            lambda w: w.lax.select(w.rows > 3, w.rows, w.reshard(w.whole, w.P("x", None))),
        ),
        (
            lambda w: w.np.einsum("bi,bi->b", w.rows, w.whole),
            lambda w: w.np.einsum("bi,bi->b", w.rows, w.reshard(w.whole, w.P("x", None))),
        ),
        (
            lambda w: w.m.vmap(lambda a, b: a + b)(w.rows, w.whole),
            lambda w: w.m.vmap(lambda a, b: a + b)(w.rows, w.reshard(w.whole, w.P("x", None))),
        ),
    ],
    "`reshape` that leaves": [
        (
            lambda w: w.placed("x", like=np.ones((4, 6, 8), "f")).reshape(4, 4, 2, 6),
            lambda w: w.lax.reshape(
                w.placed("x", like=np.ones((4, 6, 8), "f")), (4, 4, 2, 6),
                out_sharding=w.P("x", None, None, None),
            ),
        ),
    ],
    "windows over": [
        (
            None,
            lambda w: w.m.sharding.auto_axes(
                lambda v: window(w, v), out_sharding=w.P("x")
            )(w.line),
        ),
    ],
    "gathers by indices": [
        (
            lambda w: w.whole[w.order],
            lambda w: w.whole.at[w.order].get(out_sharding=w.P("x", None)),
        ),
    ],
    "a row of a dimension": [
        (lambda w: w.rows[0], lambda w: w.rows.at[0].get(out_sharding=w.P(None))),
    ],
    "`with_sharding_constraint` along": [
        (
            lambda w: w.lax.with_sharding_constraint(w.rows, w.P(None, "y")),
            lambda w: w.reshard(w.rows, w.P(None, "y")),
        ),
    ],
    "`reshard` and `out_sharding` along Auto": [
        (
            lambda w: under(w, w.auto, lambda: w.m.jit(
                lambda v: w.reshard(v, w.P("a")))(np.ones(8, "f"))),
            lambda w: under(w, w.auto, lambda: w.m.jit(
                lambda v: w.lax.with_sharding_constraint(v, w.P("a")))(np.ones(8, "f"))),
        ),
    ],
    "a replicated factor": [
        (
            lambda w: w.reshard(summed(w) * w.whole, w.P()),
            lambda w: w.reshard(summed(w) * w.reshard(w.whole, w.P(reduced={"x"})), w.P()),
        ),
    ],
    "values over a mesh other": [
        (
            lambda w: under(w, w.auto, lambda: w.m.jit(lambda x: x + x)(w.rows)),
            lambda w: under(w, w.mesh, lambda: w.m.jit(lambda x: x + x)(w.rows)),
        ),
    ],
    "`shard_map` that closes": [
        (
            lambda w: mapped(w, lambda v: v + w.line.sum(), w.P("x"), w.P("x"))(w.line),
            lambda w: mapped(w, lambda v, u: v + u.sum(), (w.P("x"), w.P()), w.P("x"))(
                w.line, w.reshard(w.line, w.P())
            ),
        ),
    ],
    "`shard_map` with `in_specs`": [
        (
            lambda w: mapped(w, lambda v: v + 1, w.P("x"), w.P("x"))(w.reshard(w.line, w.P("y"))),
            lambda w: mapped(w, lambda v: v + 1, w.P("x"), w.P("x"))(
                w.reshard(w.reshard(w.line, w.P("y")), w.P("x"))
            ),
        ),
    ],
    "`shard_map`: a branch": [(None, lambda w: chosen(w, w.P("x")))],
    "`shard_map`: branches and carries": [
        (
            lambda w: carried(w, lambda c: c),
            lambda w: carried(w, lambda c: w.lax.pcast(c, "x", to="varying")),
        ),
    ],
    "`shard_map` where `auto_pcast` is off": [
        (
            lambda w: without_casts(w, lambda v: v * w.np.ones(v.shape)),
            lambda w: without_casts(
                w, lambda v: v * w.lax.pcast(w.np.ones(v.shape), "x", to="varying")
            ),
        ),
    ],
    "`device_put` to a device": [
        (
            lambda w: w.m.shard_map(
                lambda v: w.m.device_put(v, w.m.devices()[0]) + 1, out_specs=w.P("x")
            )(w.line),
            lambda w: mapped(w, lambda v: v + 1, w.P("x"), w.P("x"))(w.line),
        ),
    ],
    "`shard_map` over an `AbstractMesh`": [
        (
            lambda w: under(w, w.auto, lambda: w.m.shard_map(
                lambda v: v + 1, mesh=w.mesh.abstract_mesh, in_specs=w.P("x"), out_specs=w.P("x")
            )(np.arange(8, dtype="f"))),
            lambda w: w.m.shard_map(
                lambda v: v + 1, mesh=w.mesh.abstract_mesh, in_specs=w.P("x"), out_specs=w.P("x")
            )(w.line),
        ),
    ],
    "`shard_map` inside another": [
        (
            lambda w: nested(w, mesh=w.mesh),
            lambda w: nested(w),
        ),
    ],
    "`ppermute` over": [
        (
            lambda w: shifted(w, ("y", "x"), [(i, (i + 1) % 8) for i in range(8)]),
            lambda w: shifted(
                w, ("x", "y"), [(turned(i), turned((i + 1) % 8)) for i in range(8)]
            ),
        ),
    ],
    "`linearize` inside": [
        (
            lambda w: transposed(w, lambda p: p, lambda ct: ct),
            lambda w: transposed(
                w, lambda p: w.lax.pcast(p, "x", to="varying"), lambda ct: w.lax.psum(ct, "x")
            ),
        ),
    ],
    "`new_ref` inside": [
        (
            lambda w: w.m.shard_map(held(w), out_specs=w.P("x"), check_vma=False)(w.line),
            lambda w: w.m.shard_map(w.m.jit(held(w)), out_specs=w.P("x"), check_vma=False)(w.line),
        ),
    ],
    "a backward rule inside": [
        (
            lambda w: with_rule(w, lambda w, a, b, ct: (ct * b.sum(), ct * a + 0 * b)),
            lambda w: with_rule(
                w, lambda w, a, b, ct: (w.lax.psum(ct * b.sum(), "x"), ct * a + 0 * b)
            ),
        ),
    ],
    "errors of ambiguous": [],
    "an axis twice": [],
    "the order of dimensions": [(None, lambda w: w.np.transpose(w.placed("x", "y")))],
    "axes of length 1": [
        (
            None,
            lambda w: np.array(w.rows.sharding.is_equivalent_to(w.Named(w.mesh, w.P("x")), 2)),
        ),
    ],
}  # fmt: skip
CASES = [(row, i) for row, cases in ROWS.items() for i in range(len(cases))]


def run(m, case):
    """The values that ``case`` gives, and how they lie."""
    w = words(m)
    with m.set_mesh(w.mesh):
        made = case(w)
        lying = [] if isinstance(made, np.ndarray) else [*made.sharding.spec]
    while lying and lying[-1] is None:
        lying.pop()
    return np.asarray(made), lying


def test_every_row_of_the_table_is_here():
    table = PAGE.read_text().partition("## Where JAX differs")[2]
    rows = re.findall(r"^\| (.*?) \|.*\| (.*?) ?\|$", table, re.M)[1:]
    assert len(rows) == len(ROWS)
    for (said, both), (row, cases) in zip(rows, ROWS.items(), strict=True):
        assert said.startswith(row) and bool(both) == bool(cases)


@pytest.mark.parametrize(("row", "number"), CASES)
def test_what_is_for_both_means_the_same_in_both(row, number):
    here, both = ROWS[row][number]
    (ours, lying), (theirs, wanted) = run(phalanx, both), run(jax, both)
    np.testing.assert_allclose(ours, theirs, rtol=1e-5)
    assert lying == wanted
    if here is not None:
        np.testing.assert_allclose(run(phalanx, here)[0], ours, rtol=1e-5)
        if not OLDER:  # which takes more than the release that the page is about
            with pytest.raises(Exception):  # noqa: B017
                run(jax, here)
