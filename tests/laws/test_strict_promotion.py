"""Where promotion is strict and ranks must agree, functions of operands that agree do the same.

Both options concern what users promote themselves. What a function does inside, with operands of
its own, is its own matter: its program is the same as without the options, and so is that of its
gradient.
"""

import functools

import numpy as np
import pytest

import phalanx
import phalanx.numpy as jnp
from phalanx import lax, nn, random, scipy
from phalanx.errors import ShapeError, TypePromotionError
from phalanx.example_libraries import optimizers, stax
from tests.exemptions import exempt
from tests.laws.arguments import ROOMS, calls

CALLS = [c for c in calls() if c.args is not None]
X = np.linspace(0.1, 0.9, 6, dtype=np.float32).reshape(2, 3)
V = np.float32([0.2, 0.3, 0.5])
I = np.int32([[0, 1, 2], [2, 1, 0]])  # noqa: E741
MASK = np.array([True, False, True])
Q = np.ones((2, 3, 4, 5), np.float32)
KEY = np.uint32([0, 1])
REDUCTIONS = (
    "sum", "prod", "mean", "std", "var", "max", "min", "any", "all", "nansum", "nanmean", "nanstd",
)  # fmt: skip
MORE = {
    **{
        f"{name} where": functools.partial(
            lambda f, x: f(x, where=MASK, **({"initial": 0} if f in (jnp.max, jnp.min) else {})),
            getattr(jnp, name),
        )
        for name in REDUCTIONS
    },
    "sum initial": lambda x: jnp.sum(x, initial=2),
    "integers initial": lambda x: (jnp.sum(I, initial=0.5), jnp.max(I, initial=0.5)),
    "softmax where": lambda x: (nn.softmax(x, where=MASK), nn.log_softmax(x, where=MASK)),
    "standardize where": lambda x: nn.standardize(x, where=MASK),
    "logsumexp": lambda x: scipy.special.logsumexp(x, 1, b=V[None]),
    "cov weights": lambda x: jnp.cov(x, aweights=V),
    "average weights": lambda x: jnp.average(x, axis=1, weights=V),
    "where": lambda x: jnp.where(MASK, x, V),
    "select": lambda x: jnp.select([x > 0.5, x > 0.2], [x, x], 0.0),
    "nan_to_num": lambda x: jnp.nan_to_num(x, nan=V),
    "quantile": lambda x: (jnp.quantile(x, V), jnp.quantile(I, 0.5), jnp.median(I)),
    "attention mask": lambda x: nn.dot_product_attention(Q, Q, Q, mask=np.ones((1, 1, 3, 3), bool)),
    "attention bias": lambda x: nn.dot_product_attention(Q, Q, Q, np.ones((3, 3), np.float32)),
    "attention lengths": lambda x: nn.dot_product_attention(
        Q, Q, Q, is_causal=True, query_seq_lengths=I[0, 1:], key_value_seq_lengths=I[0, 1:]
    ),
    "bincount weights": lambda x: jnp.bincount(I[0], weights=x[0], length=3),
    "histogram": lambda x: jnp.histogram(x, 3, weights=x),
    "integers": lambda x: (jnp.mean(I), jnp.var(I), jnp.linspace(0, I[0, 1], 4), I / 2, I // 2),
    "ldexp": lambda x: jnp.ldexp(x, I),
    "update": lambda x: (x.at[0].add(V), x.at[:].set(V), x.at[I[0, :1]].multiply(2)),
    "ufuncs": lambda x: (jnp.frompyfunc(lambda a, b: a + b, 2, 1).outer(V, V), jnp.pad(x, 1)),
    "random": lambda x: (
        random.gamma(KEY, V, (2, 3)), random.bernoulli(KEY, V, (2, 3)),
        random.categorical(KEY, x, shape=(4, 2)), random.uniform(KEY, (2, 3), minval=V),
        random.poisson(KEY, V, (2, 3)), random.binomial(KEY, V, 0.5, (2, 3)),
        random.choice(KEY, 3, p=V), random.randint(KEY, (2, 3), I[0], 5),
    ),
    "loops": lambda x: (
        lax.scan(lambda c, r: (c + r, None), V, x)[0], lax.fori_loop(0, 2, lambda i, c: c + i, 0),
    ),
    "layers": lambda x: stax.serial(
        stax.Dense(4), stax.Relu, stax.BatchNorm(axis=(0,)), stax.Dense(3), stax.LogSoftmax
    )[0](KEY, (2, 3)),
    "optimizer": lambda x: optimizers.adam(0.1)[1](0, x, optimizers.adam(0.1)[0](x)),
}  # fmt: skip


def strict():
    return phalanx.config.override(numpy_dtype_promotion="strict", numpy_rank_promotion="raise")


def programs(run, *operands):
    """What ``run`` does and its derivative, as text, or the name of why it cannot be traced."""

    def leaves(*xs):
        return [x for x in phalanx.tree.leaves(run(*xs)) if isinstance(x, phalanx.Array)]

    def loss(*xs):
        numbers = [x for x in leaves(*xs) if jnp.issubdtype(x.dtype, np.inexact)]
        return sum((jnp.real(x).astype(np.float32).sum() for x in numbers), jnp.float32(0))

    floats = tuple(i for i, x in enumerate(operands) if x.dtype == np.float32)
    return (
        text(leaves, *operands),
        text(phalanx.grad(loss, floats), *operands) if floats else None,
    )


def text(f, *operands):
    try:
        return str(phalanx.make_program(f)(*operands))
    except (TypePromotionError, ShapeError) as error:
        return f"{type(error).__name__}: {error}"
    except Exception as error:
        return type(error).__name__


def differing(cases):
    """Which of the named ``cases``, functions and operands, differ where promotion is strict."""
    for name, run, operands in cases:
        plain = programs(run, *operands)
        with strict():
            found = programs(run, *operands)
        for what, before, after in zip(("it", "its gradient"), plain, found, strict=True):
            if before != after:
                yield f"{name}: {what}: {after}"


@pytest.mark.parametrize("room", ROOMS)
def test_functions_do_the_same(room):
    chosen = [c for c in CALLS if c.room == room and not exempt("strict-promotion", c)]
    assert not [*differing((str(c), c, c.operands()) for c in chosen)]


@pytest.mark.parametrize("name", MORE)
def test_arguments_besides(name):
    assert not [*differing([(name, MORE[name], [X])])]


@pytest.mark.parametrize("call", [c for c in CALLS if exempt("strict-promotion", c)], ids=str)
def test_what_differs_is_refused(call):
    with strict(), pytest.raises((TypePromotionError, ShapeError), match="promot"):
        call(*call.operands())


def test_values_that_are_needed_while_tracing():
    with strict():
        np.testing.assert_array_equal(jnp.union1d(V, X), np.union1d(V, X))
        np.testing.assert_array_equal(jnp.unique(I), [0, 1, 2])
        np.testing.assert_array_equal(jnp.setdiff1d(I, I[0, :1]), [1, 2])
        assert jnp.trim_zeros(np.int32([0, 1, 0])).tolist() == [1]


# ---- what the user promotes ---------------------------------------------------------------------

USERS = {
    "operator": lambda x, y: x + y,
    "reflected": lambda x, y: np.asarray(y) * x,
    "method": lambda x, y: x.dot(y.T),
    "function": lambda x, y: jnp.maximum(x, y),
    "several functions deep": lambda x, y: jnp.hstack([x, y]),
    "density": lambda x, y: scipy.stats.norm.pdf(x, y),
    "jit": lambda x, y: phalanx.jit(jnp.add)(x, y),
    "vmap": lambda x, y: phalanx.vmap(jnp.multiply)(x, y),
    "gradient": lambda x, y: phalanx.grad(lambda x: (x * y).sum())(x),
    "loop": lambda x, y: lax.map(lambda row: row * y[0], x),
    "function of the user in one of the library": lambda x, y: jnp.vectorize(lambda a: a * y[0, 0])(
        x
    ),
    "reduce": lambda x, y: functools.reduce(jnp.add, [x, y]),
    "tree": lambda x, y: phalanx.tree.map(jnp.add, {"a": x}, {"a": y}),
    "Python's number": lambda x, y: y * 0.5,
}


@pytest.mark.parametrize("name", USERS)
def test_dtypes_that_the_user_mixes_are_refused(name):
    x, y = jnp.array(X), jnp.array(I)
    USERS[name](x, y)
    with strict(), pytest.raises(TypePromotionError, match="strict"):
        USERS[name](x, y)


@pytest.mark.parametrize(
    "mix",
    [
        lambda x, v: x + v,
        lambda x, v: jnp.arctan2(v, x),
        lambda x, v: phalanx.jit(lambda x: x * v)(x),
        lambda x, v: phalanx.vmap(lambda row: row * x)(x),
        lambda x, v: jnp.allclose(x, v),
        lambda x, v: scipy.stats.norm.logpdf(x, v),
    ],
)
def test_ranks_that_the_user_mixes_are_refused(mix):
    x, v = jnp.array(X), jnp.array(V)
    with strict(), pytest.raises(ShapeError, match="together, at test_strict_promotion"):
        mix(x, v)
