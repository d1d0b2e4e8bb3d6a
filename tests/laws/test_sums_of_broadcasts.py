"""Sums of products of arrays that were broadcast are right, whatever was done to the products.

XLA's CPU compiler has a fusion that gives other numbers where no factor has a dimension of the sum;
``xla/broadcasts.py`` decides where it may be used.
"""

import random

import numpy as np
import pytest

import phalanx
import phalanx.numpy as jnp

PRODUCTS = {
    "product": lambda np, x, y: x * y,
    "quotient": lambda np, x, y: x / (y * y + 1),
    "exponential": lambda np, x, y: np.exp(-x * x) * y,  # small: rounding stays beside the bound
}
WAYS = {
    "as they are": lambda v: v,
    "transposed": lambda v: v.transpose(2, 0, 1),
    "merged": lambda v: v.reshape(v.shape[0], -1),
    "cropped": lambda v: v[1:, :-1],
    "centred": lambda v: (v - v.mean(0, keepdims=True)) ** 2,
    "squared": lambda v: v * v,
}


def program(draw, way):
    """A sum of products of arrays that have some of three dimensions, mostly none of them one, and
    the shapes of these arrays."""
    shape = [draw.choice((3, 16, 33, 64)) for _ in range(3)]
    nobody = draw.choice((None, 0, 1, 2, 1))
    factors = [
        [d for d in range(3) if d != nobody and draw.random() < 0.6]
        for _ in range(draw.randint(2, 3))
    ]
    kind, dim = draw.choice([*PRODUCTS]), draw.randrange(2 if way == "merged" else 3)

    def total(np, *xs):
        first, *others = [
            np.broadcast_to(x.reshape([n if d in f else 1 for d, n in enumerate(shape)]), shape)
            for x, f in zip(xs, factors, strict=True)
        ]
        for other in others:
            first = PRODUCTS[kind](np, first, other)
        return WAYS[way](first).sum(dim)

    return total, [[shape[d] for d in f] for f in factors]


@pytest.mark.parametrize("way", WAYS)
def test_sums_of_broadcast_products(way, request):
    seed = request.config.getoption("hypothesis_seed")
    draw, source = random.Random(seed), np.random.default_rng(seed)
    for _ in range(12):
        total, shapes = program(draw, way)
        xs = [np.float32(source.normal(size=shape)) for shape in shapes]
        wanted = total(np, *[np.float64(x) for x in xs])
        got = phalanx.jit(lambda *xs, total=total: total(jnp, *xs))(*xs)
        atol = 1e-3 * (1 + np.abs(wanted).max())
        np.testing.assert_allclose(got, wanted, rtol=1e-3, atol=atol)
