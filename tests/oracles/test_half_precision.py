"""Means, norms and normalizations of float16 and bfloat16, beside NumPy's in float64: what passes
through a sum, or through squares, that the dtype cannot hold."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import phalanx
import phalanx.numpy as jnp
from phalanx import lax, nn

HALVES = {"float16": np.float16, "bfloat16": ml_dtypes.bfloat16}
MANY = 70_000
LARGE = 3e4 * np.sign(np.sin(np.arange(1.0, 401)))  # with squares beyond float16
WEIGHTS = np.full(LARGE.shape, 1e3)


def softmax(x):
    terms = np.exp(x - x.max())
    return terms / terms.sum()


def spread(x):
    return (x - x.mean()) / np.sqrt(x.var() + 1e-5)


# what it is of ours, of NumPy, and of which numbers
CASES = {
    "mean": (jnp.mean, np.mean, LARGE + 3e4),
    "mean where": (lambda x: jnp.mean(x, where=x > 0), lambda x: x[x > 0].mean(), LARGE),
    "nanmean": (jnp.nanmean, np.nanmean, LARGE + 3e4),
    "std": (jnp.std, np.std, LARGE),
    "nanstd": (jnp.nanstd, np.nanstd, LARGE),
    "var": (jnp.var, np.var, LARGE / 200),
    "average": (jnp.average, np.average, LARGE + 3e4),
    "weighted": (
        lambda x: jnp.average(x, weights=WEIGHTS.astype(x.dtype)), np.average, LARGE + 3e4,
    ),
    "norm": (jnp.linalg.norm, np.linalg.norm, LARGE[:3]),
    "norm 3": (lambda x: jnp.linalg.norm(x, 3), lambda x: np.linalg.norm(x, 3), LARGE[:3]),
    "vector_norm": (jnp.linalg.vector_norm, np.linalg.norm, LARGE[:3]),
    "cov": (jnp.cov, np.cov, LARGE / 200),
    "corrcoef": (
        lambda x: jnp.corrcoef(x, x[::-1]), lambda x: np.corrcoef(x, x[::-1]), LARGE,
    ),
    "standardize": (nn.standardize, spread, LARGE),
    "logsumexp": (nn.logsumexp, lambda x: np.log(np.exp(x).sum()), np.zeros(MANY)),
    "logmeanexp": (nn.logmeanexp, lambda x: np.log(np.exp(x).mean()), np.zeros(MANY)),
    "softmax": (nn.softmax, softmax, np.zeros(MANY)),
    "softmax where": (lambda x: nn.softmax(x, where=x < 1), softmax, np.zeros(MANY)),
    "log_softmax": (nn.log_softmax, lambda x: np.log(softmax(x)), np.zeros(MANY)),
}  # fmt: skip


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("name", CASES)
def test_values(name, dtype):
    ours, theirs, numbers = CASES[name]
    x = numbers.astype(HALVES[dtype])
    wanted = np.asarray(theirs(x.astype(np.float64)))
    tolerance = 4 * float(ml_dtypes.finfo(x.dtype).eps)
    for f in (ours, lambda x: phalanx.vmap(ours)(x[None])[0]):
        out = f(jnp.asarray(x))
        assert out.dtype == x.dtype
        error = np.abs(np.asarray(out, np.float64) - wanted).max()
        assert error <= tolerance * np.abs(wanted).max() + 1e-7, (name, out, wanted)


@pytest.mark.parametrize("dtype", HALVES)
def test_slopes(dtype):
    x = jnp.zeros(MANY, HALVES[dtype])
    share = 1 / MANY
    close = {"rtol": 0.01, "atol": 1e-9}
    for f in (nn.logsumexp, nn.logmeanexp, jnp.mean):
        np.testing.assert_allclose(phalanx.grad(f)(x).astype("float32"), share, **close)
    ends = (lambda x: nn.softmax(x)[0] * 256, lambda x: nn.log_softmax(x)[0])
    for f, first in zip(ends, (256 * share, 1.0), strict=True):
        slopes = np.asarray(phalanx.grad(f)(x), np.float32)
        np.testing.assert_allclose(slopes[0], first, rtol=0.01)
        np.testing.assert_allclose(slopes[1:], -first * share, rtol=0.02, atol=6e-8)


@pytest.mark.parametrize("dtype", HALVES)
def test_means_over_lanes(dtype):
    x = jnp.full(8, 60000, HALVES[dtype])
    mesh = phalanx.make_mesh((phalanx.device_count(),), ("i",))
    spec, rtol = phalanx.P("i"), 2 * float(ml_dtypes.finfo(HALVES[dtype]).eps)

    def mean(v):
        return lax.pmean(v, "i")

    groups = [[0, 1, 2], [3, 4, 5, 6, 7]]
    ways = {
        "vmap": phalanx.vmap(mean, axis_name="i"),
        "pmap": phalanx.pmap(mean, axis_name="i"),
        "grouped": phalanx.pmap(
            lambda v: lax.pmean(v, "i", axis_index_groups=groups), axis_name="i"
        ),
        "shard_map": phalanx.shard_map(mean, mesh=mesh, in_specs=spec, out_specs=phalanx.P()),
    }
    for name, f in ways.items():
        out = f(x)
        assert out.dtype == x.dtype, name
        np.testing.assert_allclose(np.asarray(out, float), 60000, rtol=rtol, err_msg=name)
    slopes = phalanx.grad(lambda v: ways["pmap"](v).astype("float32").sum())(x)
    np.testing.assert_array_equal(slopes, np.ones(8))


# ---- methods of functions -----------------------------------------------------------------------

COUNT = 2000
LONG = {  # more, or finer, than the dtype holds on the way
    "ones": np.ones(COUNT),
    "there and back": np.tile([60000.0, 60000, -60000, -60000], COUNT // 4),
    "drawn": np.random.default_rng(49).uniform(0.5, 1.5, COUNT),
    "negative": -np.random.default_rng(50).uniform(0.5, 1.5, COUNT),
}
METHODS = {
    "reduce": lambda f, x: f.reduce(x),
    "accumulate": lambda f, x: f.accumulate(x),
    "reduceat": lambda f, x: f.reduceat(x, np.array([0, 500, 1000])),
    "at": lambda f, x: f.at(x[:3], np.zeros(COUNT, int), x, inplace=False),
}


def wanted_of(name, method, x):
    f = getattr(np, name)
    if method != "at":
        return METHODS[method](f, x)
    out = x[:3].copy()
    f.at(out, np.zeros(COUNT, int), x)
    return out


@pytest.mark.parametrize("values", LONG)
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", ["add", "subtract", "logaddexp", "logaddexp2", "multiply"])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_methods_of_functions_hold_more_than_the_dtype_on_the_way(dtype, name, method, values):
    x = LONG[values].astype(jnp.dtype(dtype))
    with np.errstate(all="ignore"):
        wanted = wanted_of(name, method, x.astype(np.float64))
        wanted = wanted.astype(x.dtype).astype(np.float64)
    got = METHODS[method](getattr(jnp, name), jnp.asarray(x))
    assert got.dtype == x.dtype
    finfo = jnp.finfo(dtype)
    np.testing.assert_allclose(
        np.asarray(got, np.float64), wanted, 4 * float(finfo.eps), 2 * float(finfo.tiny)
    )


def test_logaddexp_of_more_entries_than_float16_counts():
    got = jnp.logaddexp.reduce(np.zeros(65_520, np.float16))
    np.testing.assert_allclose(float(got), np.log(65_520), 2e-3)


def test_a_function_of_ones_own_sees_the_dtype_that_it_is_given():
    seen = []
    f = jnp.frompyfunc(lambda x, y: seen.append(x.dtype) or x + y, 2, 1)
    f.reduce(jnp.ones(3, "float16"))
    assert {*map(str, seen)} == {"float16"}
