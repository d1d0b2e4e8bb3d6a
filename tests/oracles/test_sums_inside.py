"""Sums that are still to be taken inside ``shard_map``, against jax: what types say, and numbers.

Where jax refuses or fails, the numbers are those of a device alone.
"""

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
RNG = np.random.default_rng(0)
X, Y, LEFT, HAS = "x", "y", {"unreduced": {"y"}}, {"reduced": {"y"}}
SIZE = (8, 8)
WHOLE, ROWS, SUM, SAME = (SIZE, (), {}), (SIZE, (Y,), {}), (SIZE, (), LEFT), (SIZE, (), HAS)
ROWS_OF_SUM = (SIZE, (X,), LEFT)


def words(m):
    """The names that a case speaks of, of Phalanx or of jax."""
    P = m.sharding.PartitionSpec

    def blocks(f, ins, out, **options):
        """``f`` of blocks; specs are what is cut by ``y``, a sum over it, or what is reduced."""
        return m.shard_map(f, in_specs=tuple(ins), out_specs=out, **options)

    def slope(f, *args):
        return m.grad(f, argnums=tuple(range(len(args))))(*args)

    def total(x):
        return m.lax.psum(x, Y)

    return SimpleNamespace(
        m=m, np=m.numpy, lax=m.lax, P=P, blocks=blocks, slope=slope, total=total,
        cut=P(Y), whole=P(), left=P(unreduced={Y}), has=P(reduced={Y}),
    )  # fmt: skip


def both_ends(f, ins, out, **options):
    """The case of the values of ``f``, of blocks."""
    return lambda w, *xs: w.blocks(lambda *xs: f(w, *xs), ins(w), out(w), **options)(*xs)


def sloped(f, ins, out, **options):
    """The case of the derivatives by all operands of the sum of the squares of that."""
    function = both_ends(f, ins, out, **options)
    return lambda w, *xs: w.slope(lambda *xs: (function(w, *xs) ** 2).sum(), *xs)


def whole(w):
    return w.whole


def layer(w, weight, x):
    """What a layer adds up over the rows that ``y`` cuts."""
    return w.total(w.np.sin(x @ weight).sum())


def layers(w, weights, x, told):
    step = lambda h, weight: (w.np.tanh(h @ told(weight)), None)  # noqa: E731
    return w.total(w.lax.scan(step, x, weights)[0].sum())


def gathered(w, weight):
    return w.lax.all_gather(weight, Y, tiled=True, to="reduced")


def branches(w, weight, x):
    choose = w.total(x.sum()) > 0
    run = w.lax.cond(choose, lambda a, b: w.np.sin(b @ a), lambda a, b: b @ a, weight, x)
    return w.total(run.sum())


def has_and_cut(w):
    return w.has, w.cut


VALUES = {
    "a sum is passed on": (both_ends(lambda w, u: u, lambda w: [w.left], lambda w: w.left), [SUM]),
    "what is reduced is passed on": (
        both_ends(lambda w, x: x, lambda w: [w.has], lambda w: w.has), [SAME]
    ),
    "taken": (both_ends(lambda w, u: w.total(u), lambda w: [w.left], whole), [SUM]),
    "its mean": (both_ends(lambda w, u: w.lax.pmean(u, Y), lambda w: [w.left], whole), [SUM]),
    "rows of it": (
        both_ends(
            lambda w, u: w.lax.psum_scatter(u, Y, tiled=True), lambda w: [w.left], lambda w: w.cut
        ), [SUM],
    ),
    "turned, and twice": (
        both_ends(lambda w, u: w.total(u.T + u), lambda w: [w.left], whole), [SUM]
    ),
    "times what is reduced": (
        both_ends(lambda w, u, x: w.total(u * x), lambda w: [w.left, w.has], whole), [SUM, SAME]
    ),
    "left by what varies": (
        both_ends(
            lambda w, x: w.lax.pcast(x, Y, to="unreduced"), lambda w: [w.cut], lambda w: w.left
        ), [ROWS],
    ),
    "told as reduced": (
        both_ends(
            lambda w, x: w.lax.pcast(x, Y, to="reduced"), lambda w: [w.whole], lambda w: w.has
        ), [WHOLE],
    ),
    "told as varying": (
        both_ends(
            lambda w, x: w.lax.pcast(x, Y, to="varying"), lambda w: [w.has], lambda w: w.cut
        ), [SAME],
    ),
    "gathered": (
        both_ends(lambda w, x: gathered(w, x), lambda w: [w.cut], lambda w: w.has), [ROWS]
    ),
    "beside what varies": (
        both_ends(lambda w, x, y: x[:2] * y, has_and_cut, lambda w: w.cut), [SAME, ROWS]
    ),
    "summed up along another axis": (
        both_ends(lambda w, u: w.lax.psum(u, X), lambda w: [w.P(X, **LEFT)], lambda w: w.left),
        [ROWS_OF_SUM],
    ),
    "carried": (
        both_ends(
            lambda w, u: w.lax.scan(lambda c, _: (c + u, None), u, None, length=3)[0],
            lambda w: [w.left], lambda w: w.left,
        ), [SUM],
    ),
    "along some axes": (
        both_ends(lambda w, u: w.total(u), lambda w: [w.left], whole, axis_names={Y}), [SUM]
    ),
    "along the other axis": (
        both_ends(lambda w, u: u + u, lambda w: [w.P(X)], lambda w: w.P(X), axis_names={X}),
        [ROWS_OF_SUM],
    ),
    "without checks": (
        both_ends(lambda w, u: w.total(u), lambda w: [w.left], whole, check_vma=False), [SUM]
    ),
    "smap": (
        lambda w, u: w.m.smap(lambda u: u + u, in_axes=0, out_axes=0, axis_name=X)(u),
        [ROWS_OF_SUM],
    ),
    "as arguments lie": (lambda w, u: w.m.shard_map(w.total, out_specs=w.whole)(u), [SUM]),
    "smap, as they lie": (
        lambda w, u: w.m.smap(w.total, out_axes=None, axis_name=Y)(u), [SUM]
    ),
    "tangents": (
        lambda w, u: w.m.jvp(w.blocks(w.total, [w.left], w.whole), (u,), (u,)), [SUM]
    ),
}  # fmt: skip

DERIVATIVES = {
    "by what is reduced": (sloped(layer, has_and_cut, whole), [SAME, ROWS]),
    "by some rows of it": (
        sloped(lambda w, x, y: w.total(w.np.sin(x[:2] * y).sum()), has_and_cut, whole),
        [SAME, ROWS],
    ),
    "by a sum": (sloped(lambda w, u: w.total(u), lambda w: [w.left], whole), [SUM]),
    "by a sum, of rows": (
        sloped(
            lambda w, u: w.lax.psum_scatter(u, Y, tiled=True), lambda w: [w.left], lambda w: w.cut
        ), [SUM],
    ),
    "by a sum and a factor": (
        sloped(lambda w, u, x: w.total(u * x), lambda w: [w.left, w.has], whole), [SUM, SAME]
    ),
    "by rows that are gathered": (
        sloped(lambda w, x, y: layer(w, gathered(w, x), y), lambda w: [w.cut, w.cut], whole),
        [ROWS, ROWS],
    ),
    "by what is told as reduced": (
        sloped(
            lambda w, x, y: layer(w, w.lax.pcast(x, Y, to="reduced"), y),
            lambda w: [w.whole, w.cut], whole,
        ), [WHOLE, ROWS],
    ),
    "by what is left as a sum": (
        sloped(
            lambda w, x: w.total(w.lax.pcast(w.np.sin(x), Y, to="unreduced").T),
            lambda w: [w.cut], whole,
        ), [ROWS],
    ),
    "through a result that is a sum": (
        lambda w, x: w.slope(
            lambda x: (
                w.m.reshard(
                    w.blocks(
                        lambda x: w.lax.pcast(w.np.sin(x), Y, to="unreduced"), [w.cut], w.left
                    )(x), w.P(None, None),
                ) ** 3
            ).sum(), x,
        ), [ROWS],
    ),
    "through a result that is reduced": (
        lambda w, x, y: w.slope(
            lambda x, y: (
                (y @ w.blocks(lambda x: w.np.sin(gathered(w, x)), [w.cut], w.has)(x)) ** 2
            ).sum(), x, y,
        ), [ROWS, ROWS],
    ),
    "through layers that are gathered": (
        sloped(
            lambda w, x, y: layers(w, x, y, lambda x: gathered(w, x)),
            lambda w: [w.P(None, Y), w.cut], whole,
        ), [((3, 8, 8), (None, Y), {}), ROWS],
    ),
    "computed again": (
        sloped(
            lambda w, x, y: w.total(
                w.m.checkpoint(lambda x, y: w.np.sin(w.np.tanh(y @ x)))(x, y).sum()
            ), has_and_cut, whole,
        ), [SAME, ROWS],
    ),
    "of branches": (sloped(branches, has_and_cut, whole), [SAME, ROWS]),
    "of lanes": (
        sloped(
            lambda w, x, y: w.total(w.m.vmap(lambda r: w.np.sin(r @ x))(y).sum()),
            has_and_cut, whole,
        ), [SAME, ROWS],
    ),
    "along some axes": (
        sloped(layer, has_and_cut, whole, axis_names={Y}), [SAME, ROWS]
    ),
    "inside": (
        both_ends(
            lambda w, x, y: w.m.grad(lambda x: layer(w, x, y))(x), has_and_cut, lambda w: w.left
        ), [SAME, ROWS],
    ),
    "inside, and summed up": (
        both_ends(
            lambda w, x, y: w.total(w.m.grad(lambda x: layer(w, x, y))(x)), has_and_cut, whole
        ), [SAME, ROWS],
    ),
    "inside, of each position": (
        both_ends(
            lambda w, x, y: w.lax.psum_scatter(
                w.m.grad(lambda x: w.np.sin(y @ x).sum())(w.lax.pcast(x, Y, to="varying")),
                Y, tiled=True,
            ), has_and_cut, lambda w: w.cut,
        ), [SAME, ROWS],
    ),
}  # fmt: skip

REFUSED = {
    "sin": (lambda w, u: w.np.sin(u), SUM),
    "a product of two": (lambda w, u: u * u, SUM),
    "plus what is whole": (lambda w, u: u + w.np.ones(SIZE), SUM),
    "times what varies": (lambda w, u: u * w.lax.axis_index(Y).astype("float32"), SUM),
    "gathered": (lambda w, u: w.lax.all_gather(u, Y), SUM),
    "sent": (lambda w, u: w.lax.ppermute(u, Y, [(0, 1)]), SUM),
    "exchanged": (lambda w, u: w.lax.all_to_all(u, Y, 0, 0, tiled=True), SUM),
    "the largest": (lambda w, u: w.lax.pmax(u, Y), SUM),
    "told as varying": (lambda w, u: w.lax.pcast(u, Y, to="varying"), SUM),
    "told as reduced": (lambda w, u: w.lax.pcast(u, Y, to="reduced"), SUM),
    "what varies, told as reduced": (lambda w, x: w.lax.pcast(x, Y, to="reduced"), ROWS),
    "what is whole, told as a sum": (lambda w, x: w.lax.pcast(x, Y, to="unreduced"), WHOLE),
    "whole, by its spec": (lambda w, u: u, SUM),
    "a sum, by its spec": (lambda w, x: x, ROWS),
}  # fmt: skip
ENDS = {"a sum, by its spec": LEFT}  # what out_specs say, where it is not that it is whole


def over_mesh(m, function, operands, values):
    """``function`` of the operands, compiled under a mesh of Explicit axes."""
    kind, P = m.sharding.AxisType.Explicit, m.sharding.PartitionSpec
    with m.set_mesh(m.make_mesh((2, 4), (X, Y), axis_types=(kind, kind))):
        args = [
            m.reshard(m.device_put(v, P(*cut)), P(*cut, **sums))
            for v, (_, cut, sums) in zip(values, operands, strict=True)
        ]
        return function(words(m), *args)


def run(m, function, operands, values):
    """The results, all sums taken, and what their types say of how they lie."""

    def compiled(w, *args):
        results = m.tree.leaves(m.jit(lambda *xs: function(w, *xs))(*args))
        said = [m.typeof(y).sharding.spec for y in results]
        wholes = [
            np.asarray(m.reshard(y, w.P(*s.partitions))) for y, s in zip(results, said, strict=True)
        ]
        return [(s.partitions, set(s.unreduced), set(s.reduced)) for s in said], wholes

    return over_mesh(m, compiled, operands, values)


def drawn(operands):
    return [RNG.uniform(0.2, 1.0, size=shape).astype("f") for shape, *_ in operands]


# What older releases of the peer refuse, or of jaxlib do not compile.
LATER = {
    "along some axes", "along the other axis", "smap", "smap, as they lie",
    "derivatives: along some axes",
}  # fmt: skip
CASES = {**VALUES, **{f"derivatives: {name}": case for name, case in DERIVATIVES.items()}}


@pytest.mark.parametrize("case", [c for c in CASES if not (OLDER and c in LATER)])
def test_sums_inside_are_those_of_jax(case):
    function, operands = CASES[case]
    values = drawn(operands)
    ours, wanted = (run(m, function, operands, values) for m in (phalanx, jax))
    assert ours[0] == wanted[0]
    for x, y in zip(ours[1], wanted[1], strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("case", REFUSED)
def test_what_has_no_meaning_is_refused_by_both(case):
    function, operand = REFUSED[case]
    _, cut, sums = operand

    def refused(w, x):
        body = w.blocks(lambda x: function(w, x), [w.P(*cut, **sums)], w.P(**ENDS.get(case, {})))
        return w.m.jit(body)(x)

    values = drawn([operand])
    with pytest.raises(phalanx.errors.ShardingTypeError, match=r"test_sums_inside\.py:\d+"):
        over_mesh(phalanx, refused, [operand], values)
    if OLDER and case == "a sum, by its spec":
        return  # which the peer takes
    with pytest.raises(Exception, match=r"reduced|pcast|replication"):
        over_mesh(jax, refused, [operand], values)


# ---- what jax refuses, or fails at --------------------------------------------------------------


def test_a_weight_is_used_in_every_run_of_a_loop():
    def loss(w, x, y):
        step = lambda h, _: (w.np.tanh(h @ x), None)  # noqa: E731
        return w.total(w.lax.scan(step, y, None, length=3)[0].sum())

    values = drawn([SAME, ROWS])
    said, ours = run(phalanx, sloped(loss, has_and_cut, whole), [SAME, ROWS], values)
    assert said == [((None, None), {Y}, set()), ((Y, None), set(), set())]

    def alone(x, y):
        for _ in range(3):
            y = jax.numpy.tanh(y @ x)
        return y.sum() ** 2

    for x, y in zip(ours, jax.grad(alone, (0, 1))(*values), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-3, atol=1e-3)


def test_a_loop_over_weights_that_are_reduced():
    operands = [((3, 8, 8), (), HAS), ROWS]
    values = drawn(operands)
    loss = lambda w, x, y: layers(w, x, y, lambda x: x)  # noqa: E731
    said, ours = run(phalanx, sloped(loss, has_and_cut, whole), operands, values)
    assert said[0] == ((None, None, None), {Y}, set())

    def alone(x, y):
        for weight in x:
            y = jax.numpy.tanh(y @ weight)
        return y.sum() ** 2

    for x, y in zip(ours, jax.grad(alone, (0, 1))(*values), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("ends", ["whole", "along the axis"])
def test_what_is_the_same_everywhere_is_reduced_where_that_is_asked(ends):
    (x,) = drawn([WHOLE])
    if ends == "whole":
        function = both_ends(lambda w, x: x, lambda w: [w.has], lambda w: w.has)
        said, (y,) = run(phalanx, function, [WHOLE], [x])
        assert said == [((None, None), set(), {Y})]
    else:
        function = both_ends(lambda w, x: w.total(x), lambda w: [w.has], whole)
        said, (y,) = run(phalanx, function, [SAME], [x])
        x = 4 * x
    np.testing.assert_allclose(x, y, rtol=1e-5)
