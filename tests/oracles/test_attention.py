"""Attention and scaled products against NumPy in float64."""

import numpy as np
import pytest

import phalanx
import phalanx.numpy as jnp
from phalanx import laws, nn
from phalanx.errors import ShapeError

SOURCE = np.random.default_rng(0)
Q = SOURCE.normal(size=(2, 3, 4, 8)).astype(np.float32)
K, V = (SOURCE.normal(size=(2, 5, 2, 8)).astype(np.float32) for _ in "kv")
BIAS = SOURCE.normal(size=(1, 4, 3, 5)).astype(np.float32)
MASK = SOURCE.random((2, 1, 3, 5)) > 0.3
ROWS, COLUMNS = np.arange(3)[:, None], np.arange(5)


def expected(bias=0.0, seen=True, scale=8**-0.5):
    """Head by head; ``seen`` must show each query a key."""
    out = np.zeros(Q.shape)
    sums = np.zeros((2, 3, 4))
    bias, seen = np.broadcast_to(bias, (2, 4, 3, 5)), np.broadcast_to(seen, (2, 4, 3, 5))
    for b in range(2):
        for n in range(4):
            logits = Q[b, :, n].astype(np.float64) @ K[b, :, n // 2].T * scale + bias[b, n]
            powers = np.where(seen[b, n], np.exp(logits), 0)
            total = powers.sum(-1, keepdims=True)
            out[b, :, n] = powers / total @ V[b, :, n // 2]
            sums[b, :, n] = np.log(total[:, 0])
    return out, sums


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({}, {}),
        ({"bias": BIAS, "scale": 0.3}, {"bias": BIAS, "scale": 0.3}),
        ({"mask": MASK | (COLUMNS == 2)}, {"seen": MASK | (COLUMNS == 2)}),
        ({"is_causal": True}, {"seen": ROWS >= COLUMNS}),
        ({"local_window_size": 1}, {"seen": abs(ROWS - COLUMNS) <= 1}),
        ({"local_window_size": (2, 0)}, {"seen": (COLUMNS <= ROWS) & (COLUMNS >= ROWS - 2)}),
        (
            {"key_value_seq_lengths": np.array([2, 4])},
            {"seen": np.array([2, 4])[:, None, None, None] > COLUMNS},
        ),
    ],
)
def test_each_head_is_a_mean_of_values(options, what):
    out, sums = nn.dot_product_attention(Q, K, V, **options, return_residual=True)
    wanted = expected(**what)
    np.testing.assert_allclose(out, wanted[0], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(sums, wanted[1], rtol=1e-4, atol=1e-5)


def test_queries_that_are_not_there_give_zero():
    out = nn.dot_product_attention(Q, K, V, query_seq_lengths=np.array([1, 3]))
    wanted = expected()[0]
    wanted[0, 1:] = 0
    np.testing.assert_allclose(out, wanted, rtol=1e-4, atol=1e-5)


def test_without_a_batch_and_transformed():
    whole = nn.dot_product_attention(Q, K, V, is_causal=True)
    one = phalanx.jit(lambda q, k, v: nn.dot_product_attention(q, k, v, is_causal=True))
    np.testing.assert_allclose(one(Q[0], K[0], V[0]), whole[0], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(phalanx.vmap(one)(Q, K, V), whole, rtol=1e-5, atol=1e-6)
    laws.check_grads(one, (Q[0, :2, :2, :3], K[0, :2, :1, :3], V[0, :2, :1, :3]), order=1)
    half = [jnp.asarray(x, "bfloat16") for x in (Q, K, V)]
    assert nn.dot_product_attention(*half).dtype == jnp.bfloat16
    nothing = nn.dot_product_attention(Q, K[:, :0], V[:, :0])
    assert nothing.shape == Q.shape and not np.asarray(nothing).any()


def test_what_is_refused():
    for q, k, v in ((Q, K, V[:, :4]), (Q[:, :, :3], K, V), (Q[0, 0], K[0, 0], V[0, 0])):
        with pytest.raises(ShapeError, match="dot_product_attention"):
            nn.dot_product_attention(q, k, v)
    with pytest.raises(ValueError, match="bools"):
        nn.dot_product_attention(Q, K, V, mask=BIAS)
    with pytest.raises(ShapeError, match="bias"):
        nn.dot_product_attention(Q, K, V, BIAS[..., :4])
    with pytest.raises(ValueError, match="implementation"):
        nn.dot_product_attention(Q, K, V, implementation="mosaic")


def test_scaled_products():
    a, b = (SOURCE.normal(size=(2, n, 6)).astype(np.float32) for n in (3, 4))
    i, j = (SOURCE.uniform(1, 2, (2, *s)).astype(np.float32) for s in ((3, 3), (4, 2)))
    wanted = np.einsum("bmk,bnk->bmn", a * np.repeat(i, 2, -1), b * np.repeat(j, 3, -1))
    np.testing.assert_allclose(nn.scaled_matmul(a, b, i, j), wanted, rtol=1e-4, atol=1e-5)
    with pytest.raises(ShapeError, match="divides"):
        nn.scaled_matmul(a, b, i, j[:, :, :0])


def test_sparse_activations():
    x = np.linspace(-2, 2, 9).astype(np.float32)
    wanted = np.where(x <= -1, 0, np.where(x >= 1, x, (x + 1) ** 2 / 4))
    np.testing.assert_allclose(nn.sparse_plus(x), wanted)
    slopes = phalanx.vmap(phalanx.grad(nn.sparse_plus))(x)
    np.testing.assert_allclose(slopes, nn.sparse_sigmoid(x))
