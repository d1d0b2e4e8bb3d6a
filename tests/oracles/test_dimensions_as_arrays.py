"""Dimensions and lengths given as arrays, lists and integers of NumPy: as a tuple of ints."""

import numpy as np
import pytest

import phalanx.numpy as jnp
from phalanx import nn, random
from phalanx.scipy import special

X = np.arange(24.0, dtype=np.float32).reshape(2, 3, 4)
KEY = random.key(0)
CASES = {
    "x.transpose": (lambda d: jnp.asarray(X).transpose(d), (2, 0, 1)),
    "transpose": (lambda d: jnp.transpose(X, d), (2, 0, 1)),
    "x.reshape": (lambda d: jnp.asarray(X).reshape(d), (6, 4)),
    "roll": (lambda d: jnp.roll(X, 1, axis=d), (0, 1)),
    "sum": (lambda d: jnp.sum(X, axis=d), (0, 2)),
    "logsumexp": (lambda d: nn.logsumexp(X, axis=d), (0, 1)),
    "logmeanexp": (lambda d: nn.logmeanexp(X, axis=d), (0, 1)),
    "softmax": (lambda d: nn.softmax(X, axis=d), (0, 1)),
    "log_softmax": (lambda d: nn.log_softmax(X, axis=d), (0, 1)),
    "standardize": (lambda d: nn.standardize(X, axis=d), (0, 1)),
    "special.softmax": (lambda d: special.softmax(X, axis=d), (0, 2)),
    "split": (lambda d: random.key_data(random.split(KEY, d)), (2, 3)),
    "normal": (lambda d: random.normal(KEY, d), (2, 3)),
    "zeros": (jnp.zeros, (2, 3)),
    **{
        name: (lambda d, name=name: getattr(jnp.fft, name)(X, s=d, axes=(1, 2)), (2, 4))
        for name in ("fft2", "ifft2", "fftn", "ifftn", "rfft2", "rfftn", "irfft2", "irfftn")
    },
}


@pytest.mark.parametrize("name", CASES)
def test_forms(name):
    f, dims = CASES[name]
    wanted = np.asarray(f(dims))
    of_numpy = tuple(map(np.int64, dims))
    for form in (list(dims), np.array(dims), np.array(dims, np.int32), of_numpy, jnp.array(dims)):
        np.testing.assert_allclose(f(form), wanted, rtol=1e-6, atol=1e-6)


def test_numbers_without_dimensions():
    np.testing.assert_array_equal(nn.one_hot(np.array([1]), np.array(3)), [[0, 1, 0]])
    np.testing.assert_allclose(nn.softmax(X, axis=np.array(1)), nn.softmax(X, axis=1))
