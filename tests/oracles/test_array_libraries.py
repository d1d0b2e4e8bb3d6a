"""Libraries of the array API standard on our arrays, against what they give for NumPy's."""

import subprocess
import sys

import array_api_compat
import array_api_extra
import numpy as np
import pytest
import xarray
from einops import array_api as einops
from sklearn import config_context, decomposition, metrics

import phalanx
import phalanx.numpy as jnp

X = np.arange(12, dtype=np.float32).reshape(3, 4) % 5


def pack(x):
    packed, shapes = einops.pack([x, x], "* b")
    return packed, einops.unpack(packed, shapes, "* b")


EINOPS = {
    "rearrange": lambda x: einops.rearrange(x, "(two a) (b c) -> c two (b a)", a=3, c=2),
    "reduce": lambda x: einops.reduce(x, "a (b c) -> b", "mean", c=2),
    "repeat": lambda x: einops.repeat(x, "a b -> a b c", c=2),
    "pack": pack,
}
EXTRA = {
    "apply_where": lambda x: array_api_extra.apply_where(x > 2, x, lambda x: x * 2, fill_value=0),
    "atleast_nd": lambda x: array_api_extra.atleast_nd(x, ndim=4),
    "cov": array_api_extra.cov,
    "isin": lambda x: array_api_extra.isin(x, x[0, :2]),
    "kron": lambda x: array_api_extra.kron(x, x),
    "nunique": array_api_extra.nunique,
    "partition": lambda x: array_api_extra.partition(x, 2)[:, 2],
    "setdiff1d": lambda x: array_api_extra.setdiff1d(x[0], x[1, :2]),
    "sinc": array_api_extra.sinc,
}


def named(x):
    return xarray.DataArray(x, dims=("a", "b"), coords={"a": [0, 1, 2]})


XARRAY = {
    "arithmetic": lambda x: (named(x) * 2 + named(x)).data,
    "concat": lambda x: xarray.concat([named(x), named(x)], "a").data,
    "mean": lambda x: named(x).mean("a").data,
    "sel": lambda x: named(x).sel(a=[2, 0]).data,
    "where": lambda x: named(x).where(named(x) > 2).fillna(-1.0).data,
    "groupby": lambda x: named(x).groupby("a").sum().data,
    "stack": lambda x: named(x).stack(z=("b", "a")).data,
    "apply_ufunc": lambda x: xarray.apply_ufunc(lambda x: x**2, named(x)).data,
}
FUNCTIONS = {
    f"{library}.{name}": function
    for library, functions in (("einops", EINOPS), ("extra", EXTRA), ("xarray", XARRAY))
    for name, function in functions.items()
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_as_for_numpy(name):
    ours, wanted = (
        phalanx.tree.leaves(FUNCTIONS[name](make(X))) for make in (jnp.asarray, np.asarray)
    )
    assert all(isinstance(x, phalanx.Array) for x in ours) and len(ours) == len(wanted)
    for x, y in zip(ours, wanted, strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-6)


def test_array_api_compat_knows_our_arrays():
    x = jnp.asarray(X)
    assert array_api_compat.array_namespace(x, 1.0, None) is jnp
    assert array_api_compat.is_array_api_obj(x) and not array_api_compat.is_numpy_array(x)
    assert array_api_compat.size(x) == 12
    device = array_api_compat.device(x)
    assert array_api_compat.to_device(x, device).device == device


def test_scikit_learn(monkeypatch):
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")
    with config_context(array_api_dispatch=True):
        model = decomposition.PCA(2, svd_solver="full")
        ours, wanted = (np.abs(model.fit_transform(x)) for x in (jnp.asarray(X), X))
        np.testing.assert_allclose(ours, wanted, atol=1e-5)
        assert isinstance(model.fit(jnp.asarray(X)).components_, phalanx.Array)
        assert metrics.accuracy_score(jnp.arange(4), jnp.asarray([0, 1, 2, 0])) == 0.75


AS_JAX = """
import phalanx.numpy as jnp, jax, einops, array_api_extra
x = jnp.arange(6.0).reshape(2, 3)
print(einops.rearrange(x, "a b -> b a").tolist())
print(jax.grad(lambda x: einops.reduce(x**2, "a b -> ", "sum"))(x).tolist())
print(array_api_extra.at(x, 0).set(7.0).tolist(), array_api_extra.pad(x[0], 1).tolist())
"""


def test_what_knows_arrays_by_the_class_of_jax_works_where_that_is_ours():
    words = [sys.executable, "-m", "phalanx.as_jax", "-c", AS_JAX]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.stdout.splitlines() == [
        "[[0.0, 3.0], [1.0, 4.0], [2.0, 5.0]]",
        "[[0.0, 2.0, 4.0], [6.0, 8.0, 10.0]]",
        "[[7.0, 7.0, 7.0], [3.0, 4.0, 5.0]] [0.0, 0.0, 1.0, 2.0, 0.0]",
    ], done.stderr
