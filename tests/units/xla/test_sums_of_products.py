"""Sums of products of arrays that were spread over more dimensions, and how they are compiled."""

import numpy as np
import pytest

import phalanx
import phalanx.numpy as jnp
from phalanx import lax

RNG = np.random.default_rng(0)

# a shape, the dimension that is summed, and the dimensions that two factors have
SPREAD = [
    ((3, 3, 4096), 0, (0, 1), (1,)),
    ((3, 3, 4096), 1, (1, 2), (2,)),
    ((3, 512, 3), 0, (0,), (2,)),
    ((7, 33, 129), 0, (0, 2), (2,)),
    ((16, 5, 300), 0, (0,), (0, 2)),
    ((64, 64, 64), 0, (0,), (0, 2)),
    ((64, 64, 64), 1, (0, 1), (1, 2)),
]
FACTORS = {
    "product": lambda np, x, y: x * y,
    "quotient": lambda np, x, y: x / (y * y + 1),
    "exponential": lambda np, x, y: np.exp(x) * y,
}


def fused(compiled):
    return "ynn_fusion" in compiled.as_text()


@pytest.mark.parametrize("kind", FACTORS)
@pytest.mark.parametrize(("shape", "dim", "dims_x", "dims_y"), SPREAD)
def test_a_sum_of_products_is_right_along_dimensions_that_no_factor_has(
    kind, shape, dim, dims_x, dims_y
):
    def spread(x, dims):
        return x.reshape([n if d in dims else 1 for d, n in enumerate(shape)])

    def total(np, x, y):
        factors = (np.broadcast_to(spread(v, d), shape) for v, d in ((x, dims_x), (y, dims_y)))
        return FACTORS[kind](np, *factors).sum(dim)

    x, y = (RNG.normal(size=[shape[d] for d in dims]) for dims in (dims_x, dims_y))
    got = phalanx.jit(lambda x, y: total(jnp, x, y))(np.float32(x), np.float32(y))
    np.testing.assert_allclose(got, total(np, x, y), rtol=1e-4, atol=1e-4)


def test_a_factor_may_be_a_number_for_each_place():
    def total():
        places = lax.broadcasted_iota("float32", (3, 3, 4096), 1)
        return (places * jnp.diag(jnp.arange(1.0, 4.0))[:, :, None]).sum(1)

    wanted = np.broadcast_to(np.array([[0.0], [2.0], [6.0]]), (3, 4096))
    assert np.array_equal(phalanx.jit(total)(), wanted)


def test_other_sums_are_fused_as_the_compiler_likes():
    x = jnp.ones((256, 256))
    plain = phalanx.jit(lambda x: jnp.max(x, 0)).lower(x).compile()
    squares = phalanx.jit(lambda x: (x * x).sum(0)).lower(x).compile()
    spread = phalanx.jit(lambda x: (x[:, :1] * x[:1, :]).sum(0)).lower(x).compile()
    assert fused(plain) == fused(squares) and not fused(spread)


CENTRED = {
    "variance": lambda np, x, dim: np.var(x, dim),
    "variance of all": lambda np, x, dim: np.var(x),
    "softmax": lambda np, x, dim: (np.exp(x) / np.exp(x).sum(dim, keepdims=True)).sum(dim),
    "squares of unit vectors": lambda np, x, dim: (
        (x / np.sqrt((x * x).sum(dim, keepdims=True))) ** 2
    ).sum(dim),
}


@pytest.mark.parametrize("dim", [0, 1, 2])
@pytest.mark.parametrize("kind", CENTRED)
def test_what_is_broadcast_only_along_what_is_summed_is_fused(kind, dim):
    x = RNG.normal(size=(33, 64, 65)).astype(np.float32)
    compiled = phalanx.jit(lambda x: CENTRED[kind](jnp, x, dim)).lower(x).compile()
    plain = phalanx.jit(lambda x: jnp.sum(x * x, dim)).lower(x).compile()
    assert fused(compiled) or not fused(plain)
    np.testing.assert_allclose(compiled(x), CENTRED[kind](np, np.float64(x), dim), rtol=1e-4)
