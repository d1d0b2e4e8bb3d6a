"""What is lowered around products: sums over their batch, and the long chains that they read."""

import re

import numpy as np
import pytest

import phalanx
import phalanx.numpy as jnp
from phalanx import lax
from phalanx import primitives as ops
from tests.laws.slopes import along

RNG = np.random.default_rng(0)
BARRIER = "stablehlo.optimization_barrier"


def lowered(function, *args):
    return phalanx.jit(function).lower(*args).as_text()


def products(text):
    """The batch dimensions of lhs, and the type of the result, of every product in ``text``."""
    lines = [line for line in text.splitlines() if "stablehlo.dot_general" in line]
    batch = [re.search(r"batching_dims = \[([\d, ]*)\]", line) for line in lines]
    types = [re.search(r"-> tensor<(\w+)>", line) for line in lines]
    return [(b[1] if b else "", t[1] if t else "") for b, t in zip(batch, types, strict=True)]


# ---- sums over batch dimensions -------------------------------------------------------------

# a product with its batch dimensions in any place, what of it is summed, what is left of batch
SUMS = [
    ("bmk,bkn->bmn", (0,), ""),
    ("mbk,nkb->bmn", (0,), ""),
    ("bm,nb->bmn", (0,), ""),
    ("abmk,bkan->abmn", (0, 1), ""),
    ("abmk,bkan->abmn", (1,), "0"),
    ("abmk,bkan->abmn", (2, 0), "1"),
    ("abmk,bkan->abmn", (0, 1, 2, 3), ""),
    ("abmk,bkan->abmn", (3,), "0, 1"),
]
LENGTHS = {"a": 2, "b": 3, "m": 4, "k": 2, "n": 5}


def drawn(spec, dtype=np.float32):
    """Operands for ``spec``, and the parameters of the product."""
    (lhs, rhs), out = (sides := spec.split("->"))[0].split(","), sides[1]
    batch = [c for c in out if c in lhs and c in rhs]
    summed = [c for c in lhs if c in rhs and c not in out]
    params = {
        key: (tuple(map(lhs.index, letters)), tuple(map(rhs.index, letters)))
        for key, letters in (("contract", summed), ("batch", batch))
    }
    x, y = (RNG.integers(-4, 5, [LENGTHS[c] for c in side]).astype(dtype) for side in (lhs, rhs))
    return x, y, params


@pytest.mark.parametrize(("spec", "dims", "left"), SUMS)
def test_a_sum_over_the_batch_is_a_contraction(spec, dims, left):
    x, y, params = drawn(spec)

    def total(x, y):
        return ops.reduce_sum(ops.dot_general(x, y, **params), dims=dims)

    np.testing.assert_array_equal(phalanx.jit(total)(x, y), np.einsum(spec, x, y).sum(dims))
    text = lowered(total, x, y)
    assert [batch for batch, _ in products(text)] == [left]
    batch = spec.split("->")[1].count("a") + 1
    assert ("stablehlo.reduce" in text) == any(d >= batch for d in dims)


BF16 = phalanx.dtypes.bfloat16
DTYPES = [(np.int32, None), (np.int8, np.int32), (BF16, None), (BF16, np.float32)]


@pytest.mark.parametrize(("dtype", "out"), [*DTYPES, (np.complex64, None)])
def test_sums_keep_their_dtype(dtype, out):
    out = None if out is None else np.dtype(out)
    x, y, params = drawn("bmk,bkn->bmn", dtype)
    found = phalanx.jit(
        lambda x, y: ops.reduce_sum(ops.dot_general(x, y, **params, dtype=out), dims=(0,))
    )(x, y)
    assert found.dtype == (out or dtype)
    wide = np.complex128 if dtype is np.complex64 else np.float64
    expected = np.einsum("bmk,bkn->mn", x.astype(wide), y.astype(wide))
    np.testing.assert_array_equal(np.asarray(found).astype(wide), expected)


def test_products_with_other_uses_stay():
    x, y, params = drawn("bmk,bkn->bmn")
    z = np.einsum("bmk,bkn->bmn", x, y)

    def given(x, y):
        p = ops.dot_general(x, y, **params)
        return p, ops.reduce_sum(p, dims=(0,))

    def used(x, y):
        p = ops.dot_general(x, y, **params)
        return ops.reduce_sum(p, dims=(0,)), ops.reduce_sum(p, dims=(0, 1))

    for function, wanted in ((given, (z, z.sum(0))), (used, (z.sum(0), z.sum((0, 1))))):
        assert [batch for batch, _ in products(lowered(function, x, y))] == ["0"]
        for found, expected in zip(phalanx.jit(function)(x, y), wanted, strict=True):
            np.testing.assert_array_equal(found, expected)


def test_small_products_stay():
    """A contraction would lay out the matrices anew, and they are larger than the products."""
    x, y = np.ones((3, 4, 5), np.float32), np.ones((3, 5), np.float32)
    text = lowered(lambda x, y: jnp.sum(jnp.einsum("bij,bj->bi", x, y), axis=0), x, y)
    assert [batch for batch, _ in products(text)] == ["0"]


def step(w, x, y):
    """A step of least squares, and what it is descending on."""
    value, slope = phalanx.value_and_grad(lambda w: jnp.mean((x @ w - y) ** 2))(w)
    value, slope = lax.pmean((value, slope), "lane")
    return w - 0.1 * slope, value


@pytest.mark.parametrize("over", [phalanx.vmap, phalanx.pmap])
def test_gradients_of_weights_are_summed_over_lanes_by_the_product(over):
    lanes, rows = 16, 2
    w = RNG.normal(size=(4, 3)).astype(np.float32)
    x, y = (RNG.normal(size=(lanes, rows, n)).astype(np.float32) for n in (4, 3))
    mapped = over(step, axis_name="lane", in_axes=(None, 0, 0), out_axes=None)
    text = lowered(mapped, w, x, y)
    assert ("", "4x3xf32") in products(text)
    assert not re.search(r"stablehlo.reduce\(.*tensor<\d+x4x3xf32>", text)

    every, wanted = x.reshape(-1, 4), y.reshape(-1, 3)
    error = every @ w - wanted
    found, value = mapped(w, x, y)
    np.testing.assert_allclose(value, np.mean(error**2), rtol=1e-5)
    slope = 2 * every.T @ error / error.size
    np.testing.assert_allclose(found, w - 0.1 * slope, rtol=1e-5, atol=1e-6)


# ---- what products read ---------------------------------------------------------------------


def network(np, x, layers):
    """A deep residual network: each layer adds to the stream what it makes of it."""
    for weights in layers:
        h = x - np.mean(x, axis=-1, keepdims=True)
        x = x + np.tanh(h * (1.0 + 0.1 * h)) @ weights
    return np.mean(x * x)


LAYERS = RNG.normal(size=(8, 6, 6)) / 3
POINT = RNG.normal(size=(4, 6))


def test_long_chains_are_read_where_products_read_them():
    single = (POINT.astype(np.float32), list(LAYERS.astype(np.float32)))
    slopes = phalanx.jit(phalanx.grad(lambda *args: network(jnp, *args), argnums=(0, 1)))
    barriers = slopes.lower(*single).as_text().count(BARRIER)
    assert len(LAYERS) // 2 <= barriers <= 2 * len(LAYERS)

    by_x, by_layers = slopes(*single)
    direction = RNG.normal(size=POINT.shape), RNG.normal(size=LAYERS.shape)
    wanted = along(lambda *args: network(np, *args), (POINT, LAYERS), direction)
    found = sum(np.vdot(a, d) for a, d in zip((by_x, jnp.stack(by_layers)), direction, strict=True))
    np.testing.assert_allclose(found, wanted, rtol=1e-4)


def test_no_barriers_without_products():
    def chain(x):
        for _ in range(40):
            x = x + jnp.tanh(x) * x
        return jnp.sum(x), x

    assert BARRIER not in lowered(chain, np.float32(1.0))


def test_short_chains_are_made_again():
    def short(x, w):
        y = jnp.tanh(x) * x
        return y @ w, jnp.exp(y)

    assert BARRIER not in lowered(short, np.ones((2, 3), "f4"), np.ones((3, 2), "f4"))


def test_what_programs_print_is_what_was_written():
    x, y, params = drawn("bmk,bkn->bmn")
    program = phalanx.make_program(
        lambda x, y: ops.reduce_sum(ops.dot_general(x, y, **params), dims=(0,))
    )
    before = str(program(x, y))
    assert "batch=((0,), (0,))" in before and "reduce_sum" in before


# ---- what the compiler makes of them --------------------------------------------------------


@pytest.mark.parametrize("size", [64, 200, 256])
def test_a_product_between_other_operations_is_computed_from_what_was_written(size):
    """Such a chain gave values of memory that nobody had written, in libraries that XLA calls."""
    x = RNG.standard_normal((4, size)).astype(np.float32)
    ones = np.ones((size, size))
    expected = np.einsum("im,in,nk->k", x.astype(float), x.astype(float), ones) / size

    def f(x):
        return lax.psum(jnp.outer(x, x) @ (jnp.ones((size, size)) / size), "i").sum(0)

    sums = phalanx.jit(phalanx.vmap(f, axis_name="i"))(x)
    np.testing.assert_allclose(sums, np.broadcast_to(expected, (4, size)), rtol=1e-4, atol=1e-4)
