"""Sorting, and positions of extrema, by the rules of accelerators, which a CPU can run as well."""

import numpy as np
import pytest

import phalanx
import phalanx.numpy as jnp
from phalanx import lax
from phalanx.core.primitive import Primitive

SPECIAL = np.array([np.nan, 0.0, -0.0, np.inf, -np.inf, 1.0, -np.nan, 1.0, -2.0], "f4")


@pytest.fixture(params=["gpu", "tpu"])
def elsewhere(request, monkeypatch):
    monkeypatch.setattr(
        Primitive, "lowering", lambda prim, _: prim.lower_on.get(request.param, prim.lower)
    )


def drawn(dtype, *shape):
    source = np.random.default_rng(0)
    if dtype == "bool":
        return source.integers(0, 2, shape).astype(bool)
    if np.dtype(dtype).kind in "iu":
        return source.integers(0, 7, shape).astype(dtype)
    return source.choice(SPECIAL, shape).astype(dtype)


@pytest.mark.parametrize("dtype", ["f4", "f2", "i4", "u1", "bool"])
@pytest.mark.parametrize("axis", [0, 1])
def test_sorting_is_that_of_numpy(elsewhere, dtype, axis):
    x = drawn(dtype, 23, 17)
    found = phalanx.jit(lambda x: jnp.argsort(x, axis))(x)
    np.testing.assert_array_equal(found, np.argsort(x, axis, kind="stable"))
    keys, places = phalanx.jit(lambda x, i: lax.sort((x, i), dimension=axis))(x, x.copy())
    np.testing.assert_array_equal(keys, np.sort(x, axis))
    np.testing.assert_array_equal(places, np.sort(x, axis))


@pytest.mark.parametrize("dtype", ["f4", "f2", "i4", "u1", "bool", "c8"])
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("name", ["argmax", "argmin"])
def test_positions_of_extrema_are_those_of_numpy(elsewhere, name, dtype, axis):
    x = drawn(dtype, 23, 17)
    for rows in (x, x[:1], x[:, :1], np.where(np.isnan(x), -np.inf, x) if dtype == "f4" else x):
        found = phalanx.jit(lambda x: getattr(jnp, name)(x, axis))(rows)
        np.testing.assert_array_equal(found, getattr(np, name)(rows, axis))
    same = np.full((3, 5), -np.inf if name == "argmax" else np.inf, "f4")
    np.testing.assert_array_equal(phalanx.jit(lambda x: getattr(jnp, name)(x, axis))(same), 0)


def test_gpus_sort_in_one_operation_and_accelerators_read_an_extremum_once():
    x = phalanx.ShapeDtypeStruct((100, 100), "float32")

    def count(f, platform, operation):
        text = phalanx.jit(f).trace(x).lower(lowering_platforms=(platform,)).as_text()
        return text.count(operation)

    assert [count(jnp.argsort, p, '"stablehlo.gather"') for p in ("cpu", "cuda", "tpu")] == [
        2,
        0,
        0,
    ]
    assert count(jnp.argsort, "cuda", "TOTALORDER") == 1
    reductions = [count(jnp.argmax, p, "stablehlo.reduce(") for p in ("cpu", "cuda", "rocm", "tpu")]
    assert reductions == [2, 1, 1, 1]
