"""Sums over devices that are still to be taken, against jax: what types say, and the numbers."""

import re
from types import SimpleNamespace

import numpy as np
import pytest

import phalanx
import phalanx.nn
import phalanx.numpy
import phalanx.sharding
from tests.releases import OLDER

jax = pytest.importorskip("jax")
pytestmark = pytest.mark.skipif(
    min(jax.device_count(), phalanx.device_count()) < 8, reason="needs a mesh of 2 x 4"
)
RNG = np.random.default_rng(0)
X, Y, SUM, HAS = "x", "y", {"unreduced": {"y"}}, {"reduced": {"y"}}


def words(m):
    """The names that a case speaks of, of Phalanx or of jax."""

    def product(x, y, spec=SUM, **entries):
        spec = m.sharding.PartitionSpec(*entries.get("cut", ()), **spec)
        return m.numpy.einsum("ij,jk->ik", x, y, out_sharding=spec)

    def reshard(x, *entries, **sums):
        return m.reshard(x, m.sharding.PartitionSpec(*entries, **sums))

    return SimpleNamespace(
        m=m, np=m.numpy, lax=m.lax, nn=m.nn, P=m.sharding.PartitionSpec, product=product,
        reshard=reshard,
    )  # fmt: skip


def rows_of(w, table, numbers):
    """Rows of ``table``, some of them often, and one that is not there."""
    numbers = w.np.where(numbers > 1.4, 9, (numbers * 4).astype(int))
    return table.at[numbers].get(out_sharding=w.P(Y, None), mode="fill", fill_value=0)


TWO = [((8, 16), None, Y), ((16, 8), Y)]  # whose product sums over what `y` cuts
ONE = [((8, 8),)]

# what is done; the shapes and specs of the operands
CASES = {
    "a product": (lambda w, x, y: w.product(x, y), TWO),
    "rows and a sum": (
        lambda w, x, y: w.product(x, y, cut=(X,)), [((8, 16), X, Y), ((16, 8), Y)]
    ),
    "gradient of what is jitted": (
        lambda w, x, y: w.m.grad(
            w.m.jit(lambda x, y: w.reshard(w.product(x, y), None, None).sum()), 1
        )(x, y),
        TWO,
    ),
    "gradient of a loop": (
        lambda w, x, y: w.m.grad(
            lambda y: w.lax.scan(
                lambda s, _: (s + w.reshard(w.product(w.np.sin(x), y), None, None).sum(), None),
                0.0, None, 3,
            )[0]
        )(y),
        TWO,
    ),
    "a sum of two": (lambda w, x, y: w.product(x, y) + w.product(2 * x, y), TWO),
    "a difference": (lambda w, x, y: w.product(x, y) - w.product(2 * x, y), TWO),
    "negated": (lambda w, x, y: -w.product(x, y), TWO),
    "times what is reduced": (
        lambda w, x, y, z: w.product(x, y) * w.reshard(z, None, None, **HAS), [*TWO, ((8, 8),)]
    ),
    "by what is reduced": (
        lambda w, x, y, z: w.product(x, y) / w.reshard(z, None, None, **HAS), [*TWO, ((8, 8),)]
    ),
    "transposed": (lambda w, x, y: w.product(x, y).T, TWO),
    "reshaped": (lambda w, x, y: w.product(x, y).reshape(64), TWO),
    "summed up": (lambda w, x, y: w.product(x, y).sum(0), TWO),
    "broadcast": (lambda w, x, y: w.np.broadcast_to(w.product(x, y), (3, 8, 8)), TWO),
    "converted": (lambda w, x, y: w.product(x, y).astype("float16"), TWO),
    "sliced": (lambda w, x, y: w.product(x, y)[:4], TWO),
    "one after the other": (
        lambda w, x, y: w.np.concatenate([w.product(x, y), w.product(2 * x, y)]), TWO
    ),
    "padded": (lambda w, x, y: w.np.pad(w.product(x, y), 1), TWO),
    "zeros like it": (lambda w, x, y: w.np.zeros_like(w.product(x, y)), TWO),
    "scan": (
        lambda w, x, y: w.lax.fori_loop(0, 2, lambda i, s: s + w.product(x, y), w.product(x, y)),
        TWO,
    ),
    "cond": (
        lambda w, x, y: w.lax.cond(x.sum() > 0, lambda u: u + u, lambda u: u, w.product(x, y)), TWO
    ),
    "taken": (lambda w, x, y: w.reshard(w.product(x, y), None, None), TWO),
    "taken by rows": (lambda w, x, y: w.reshard(w.product(x, y), Y, None), TWO),
    "taken, to be left": (lambda w, x, y: w.reshard(w.product(x, y), None, None, **HAS), TWO),
    "whole, left as a sum": (lambda w, x: w.reshard(x, None, None, **SUM), ONE),
    "cut, left as a sum": (lambda w, x: w.reshard(x, None, None, **SUM), [((8, 8), Y)]),
    "sum of what is cut": (
        lambda w, x: w.lax.reduce_sum(x, (0,), out_sharding=w.P(**SUM)), [((8, 8), Y)]
    ),
    "reduced, elementwise": (lambda w, x: w.np.sin(2 * w.reshard(x, None, None, **HAS)), ONE),
    "reduced, in a product": (
        lambda w, x, y: x @ w.reshard(y, None, None, **HAS), [((8, 8), Y), ((8, 8),)]
    ),
    "reduced, softmax": (lambda w, x: w.nn.softmax(w.reshard(x, None, None, **HAS)), ONE),
    "the gradient of what is reduced": (
        lambda w, x, y: w.m.grad(lambda y: (w.np.tanh(x @ y) ** 2).sum())(
            w.reshard(y, None, None, **HAS)
        ),
        [((8, 8), Y), ((8, 8),)],
    ),
    "of what is cut, and gathered": (
        lambda w, x, y: w.m.grad(
            lambda y: (w.np.tanh(x @ w.reshard(y, None, None, **HAS)) ** 2).sum()
        )(y),
        [((8, 8), Y), ((8, 8), Y)],
    ),
    "elementwise": (
        lambda w, x: w.m.grad(lambda x: w.reshard(w.np.sin(x), None, None).sum())(
            w.reshard(x, None, None, **HAS)
        ),
        ONE,
    ),
    "of a sum that is left": (
        lambda w, x: w.m.grad(lambda x: (w.reshard(2 * x.T, None, None) ** 2).sum())(
            w.reshard(x, None, None, **HAS)
        ),
        ONE,
    ),
    "through layers": (
        lambda w, x, ys: w.m.grad(
            lambda ys: w.lax.scan(lambda h, y: (w.np.tanh(h @ y), None), x, ys)[0].sum()
        )(w.reshard(ys, None, None, None, **HAS)),
        [((8, 8), Y), ((3, 8, 8),)],
    ),
    "of a table, by rows": (
        lambda w, x, i: w.m.grad(
            lambda x: (rows_of(w, w.reshard(x, None, None, **HAS), i) ** 2).sum()
        )(x),
        [((8, 8), Y), ((16,), Y)],
    ),
    "of a table that stays reduced": (
        lambda w, x, i: w.m.grad(lambda x: (rows_of(w, x, i) ** 2).sum())(
            w.reshard(x, None, None, **HAS)
        ),
        [((8, 8),), ((16,), Y)],
    ),
    "computed again": (
        lambda w, x, y: w.m.grad(lambda y: w.m.checkpoint(lambda y: w.np.tanh(x @ y))(y).sum())(
            w.reshard(y, None, None, **HAS)
        ),
        [((8, 8), Y), ((8, 8),)],
    ),
}  # fmt: skip

# What older releases of the peer refuse, or fail at.
LATER = {"a difference", "negated", "by what is reduced", "reshaped", "reduced, softmax"}
REFUSED = {
    "sin": lambda w, u: w.np.sin(u),
    "a product of two": lambda w, u: u * u,
    "a matrix product": lambda w, u: u @ w.np.ones((8, 8)),
    "plus what is whole": lambda w, u: u + w.np.ones((8, 8)),
    "plus one": lambda w, u: u + 1.0,
    "compared": lambda w, u: u > u,
    "the largest": lambda w, u: u.max(),
    "a denominator": lambda w, u: 2.0 / u,
}


def over_mesh(m, function, operands, values):
    """``function`` of the operands, compiled under a mesh of Explicit axes."""
    kind = m.sharding.AxisType.Explicit
    with m.set_mesh(m.make_mesh((2, 4), ("x", "y"), axis_types=(kind, kind))):
        specs = [m.sharding.PartitionSpec(*spec) for _, *spec in operands]
        args = [m.device_put(v, spec) for v, spec in zip(values, specs, strict=True)]
        return function(words(m), args)


def run(m, case, values):
    """The result, all sums taken, and what its type says of how it lies."""
    function, operands = case

    def compiled(w, args):
        out = m.jit(lambda *xs: function(w, *xs))(*args)
        said = m.typeof(out).sharding.spec
        whole = w.reshard(out, *said.partitions)
        return np.asarray(whole), (said.partitions, said.unreduced, said.reduced)

    return over_mesh(m, compiled, operands, values)


def drawn(operands):
    return [RNG.uniform(0.5, 1.5, size=shape).astype("f") for shape, *_ in operands]


@pytest.mark.parametrize("case", [c for c in CASES if not (OLDER and c in LATER)])
def test_sums_are_those_of_jax(case):
    values = drawn(CASES[case][1])
    ours, wanted = run(phalanx, CASES[case], values), run(jax, CASES[case], values)
    assert ours[1] == wanted[1]
    np.testing.assert_allclose(ours[0], wanted[0], rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_not_linear_is_refused_by_both(case):
    values = drawn(TWO)

    def refused(w, args):
        return w.m.jit(lambda x, y: REFUSED[case](w, w.product(x, y)))(*args)

    with pytest.raises(phalanx.errors.ShardingTypeError, match=r"test_unreduced\.py:\d+.*reshard"):
        over_mesh(phalanx, refused, TWO, values)
    with pytest.raises(Exception, match=r"unreduced|Unreduced|Denominator|denominator"):
        over_mesh(jax, refused, TWO, values)


# ---- what devices exchange ----------------------------------------------------------------------


def fully_sharded(w, params, x):
    """Each device has a part of the weights; gathered, their gradients are left as sums."""
    for up, down in params:
        x = fully_sharded_layer(w, x, up, down)
    return (x**2).sum()


def fully_sharded_layer(w, x, up, down):
    up, down = (w.reshard(p, None, None, reduced={"x"}) for p in (up, down))
    return x + w.np.tanh(x @ up) @ down


def tensor_parallel(w, params, x):
    """Each device has some hidden units; what they add to is summed up once for two branches."""
    x = w.reshard(x, "x", None, **HAS)
    for up, down in params:
        up, down = (w.reshard(p, *cut, reduced={"x"}) for p, cut in ((up, (None, Y)), (down, (Y,))))
        left = w.product(w.np.tanh(x @ up), down, cut=(X,))
        right = w.product(w.np.sin(x @ up), down, cut=(X,))
        summed = w.reshard(x, "x", None) + w.reshard(left + right, "x", None)
        x = w.reshard(summed, "x", None, **HAS)
    return (w.reshard(x, "x", None) ** 2).sum()


def tied_embedding(w, params, x):
    """What a table of words has is used twice, and its gradient is a sum of both."""
    table, numbers = w.reshard(params[0][1], None, None, reduced={"x"}), (x * 8).astype(int) % 32
    h = table.at[numbers].get(out_sharding=w.P("x", None, None))
    for up, down in params[1:]:
        h = fully_sharded_layer(w, h, up, down)
    return (w.np.tanh(h @ table.T) ** 2).sum()


def with_biases(w, params, x):
    """The gradients of vectors that are added to rows are sums over all rows."""
    for up, down in params:
        rows = w.reshard(down, None, None)
        y = (x - x.mean(1, keepdims=True)) * rows[0] + rows[1]
        x = x + w.np.matmul(w.np.tanh(y @ up + up[0]), down, out_sharding=w.P("x")) + rows[2]
    return (x**2).sum()


STEPS = {
    "biases": (with_biases, (None, "y"), ("y",)),
    "tied embedding": (tied_embedding, ("x",), ("x",)),
    "fully sharded": (fully_sharded, ("x",), ("x",)),
    "tensor parallel": (tensor_parallel, (None, "y"), ("y",)),
}


def exchanged(m, step, of_up, of_down):
    """The gradients, and how many numbers each collective of their program gives."""

    def compiled(w, args):
        *weights, x = args
        params = list(zip(weights[::2], weights[1::2], strict=True))
        function = m.jit(m.grad(lambda params, x: step(w, params, x)))
        text = function.lower(params, x).compile().as_text()
        found = re.findall(r"= (.*?) (all-\w+|reduce-scatter|collective-permute)\(", text)
        grads = m.tree.leaves(function(params, x))
        grads = [np.asarray(w.reshard(g, None, None)) for g in grads]
        sizes = [sum(map(size, re.findall(r"\[([\d,]*)\]", of))) for of, _ in found]
        return grads, sizes

    layer = [((16, 32), *of_up), ((32, 16), *of_down)]
    operands = [*layer * 3, ((8, 16), "x")]
    return over_mesh(m, compiled, operands, [v / 10 for v in drawn_alike(operands)])


def size(dims):
    return int(np.prod([int(n) for n in dims.split(",") if n]))


def drawn_alike(operands):
    rng = np.random.default_rng(1)
    return [rng.normal(size=shape).astype("f") for shape, *_ in operands]


@pytest.mark.parametrize("step", STEPS)
def test_no_more_is_exchanged_than_by_jax(step):
    (ours, sizes), (wanted, theirs) = (exchanged(m, *STEPS[step]) for m in (phalanx, jax))
    for x, y in zip(ours, wanted, strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-3, atol=1e-4)
    assert 0 < len(sizes) <= len(theirs)
    assert sum(sizes) <= sum(theirs)
