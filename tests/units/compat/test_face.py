"""What ``jax`` itself has besides."""

import numpy as np
import pytest

import phalanx
import phalanx.numpy as jnp
from phalanx.compat.face import Shard, copy_to_host_async, fwd_and_bwd

X, W, CT = np.arange(6, dtype="f4").reshape(2, 3), np.ones((3, 2), "f4"), np.ones((2, 2), "f4")


def f(x, w):
    return jnp.sin(x @ w)


@pytest.mark.parametrize("jitted", [True, False])
@pytest.mark.parametrize("argnums", [(0, 1), (1,), 0, -1])
def test_both_halves_of_a_derivative_are_functions(argnums, jitted):
    fwd, bwd = fwd_and_bwd(f, argnums, jitted=jitted)
    of_all = phalanx.vjp(f, X, W)[1](CT)
    for scale in (1, 2):
        out, residuals = fwd(X, W)
        given = bwd(residuals, scale * CT)
        np.testing.assert_allclose(out, f(X, W), rtol=1e-6)
        several = given if isinstance(argnums, tuple) else (given,)
        numbers = argnums if isinstance(argnums, tuple) else (argnums,)
        for n, ct in zip(numbers, several, strict=True):
            np.testing.assert_allclose(ct, scale * of_all[n], rtol=1e-6)
    assert not jitted or bwd._cache_size() == 1


def test_what_is_besides_comes_last():
    fwd, bwd = fwd_and_bwd(lambda x: (x**2, {"twice": 2 * x}), 0, has_aux=True)
    out, residuals, aux = fwd(3.0)
    assert (out, aux["twice"], bwd(residuals, 1.0)) == (9, 6, 6)


def test_copies_begin_and_parts_are_known_by_class():
    tree = {"a": jnp.ones(2), "b": 1}
    assert copy_to_host_async(tree) is tree
    assert isinstance(tree["a"].addressable_shards[0], Shard)
