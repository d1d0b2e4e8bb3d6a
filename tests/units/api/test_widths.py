"""Arrays of 64 bits, and what was made of them, where 64 bits are not enabled (any more)."""

import numpy as np
import pytest

import phalanx
import phalanx.numpy as jnp
from phalanx import lax

VALUES = np.arange(1, 4)


def wide(values):
    with phalanx.enable_x64():
        return jnp.asarray(values)


OPERATIONS = {
    "x + 1": lambda x: x + 1,
    "2 - x": lambda x: 2 - x,
    "x * 2.5": lambda x: x * 2.5,
    "x / 2": lambda x: x / 2,
    "x % 2": lambda x: x % 2,
    "x // 2": lambda x: x // 2,
    "x ** 2": lambda x: x**2,
    "x > 1": lambda x: x > 1,
    "x == 1": lambda x: x == 1,
    "-x": lambda x: -x,
    "abs": abs,
    "x + NumPy": lambda x: x + np.ones(3),
    "x + number of NumPy": lambda x: x + np.float64(1),
    "x + narrow": lambda x: x + jnp.ones(3),
    "set": lambda x: x.at[0].set(5),
    "add": lambda x: x.at[1:].add(2),
    "where": lambda x: jnp.where(x > 1, x, 0),
    "clip": lambda x: jnp.clip(x, 1, 2),
    "maximum": lambda x: jnp.maximum(x, 2),
    "sum": lambda x: x.sum(),
    "mean": lambda x: x.mean(),
    "norm": lambda x: jnp.linalg.norm(x),
    "dot": lambda x: x @ x,
    "scan": lambda x: lax.scan(lambda c, r: (c + r, None), 0.0, x)[0],
}


@pytest.mark.parametrize("kind", [np.float64, np.int64])
@pytest.mark.parametrize("operation", OPERATIONS.values(), ids=OPERATIONS)
def test_arrays_of_64_bits_combine_with_others(operation, kind):
    with phalanx.enable_x64(False):
        expected = operation(jnp.asarray(VALUES.astype(kind)))
        x = wide(VALUES.astype(kind))
        np.testing.assert_allclose(operation(x), expected, rtol=1e-6)
        np.testing.assert_allclose(phalanx.jit(operation)(x), expected, rtol=1e-6)


def test_a_large_value_is_written_whole():
    with phalanx.enable_x64(False):
        x = wide(VALUES.astype(np.int64)).at[0].set(2**40)
    assert x.dtype == np.int64 and np.asarray(x)[0] == 2**40


@pytest.mark.parametrize("wrap", [lambda f: f, phalanx.jit], ids=["plain", "jit"])
def test_a_derivative_taken_with_64_bits_is_applied_with_them(wrap):
    f = wrap(lambda x: x**2 * 1.5 + jnp.sin(x))
    with phalanx.enable_x64():
        y, pullback = phalanx.vjp(f, 3.0)
        _, pushforward = phalanx.linearize(f, 3.0)
    expected = 9 + np.cos(3.0)
    with phalanx.enable_x64(False):
        for given in 1.0, y / y:
            for value in (*pullback(given), pushforward(given)):
                assert value.dtype == np.float64
                np.testing.assert_allclose(value, expected, rtol=1e-14)


def test_a_program_compiled_for_64_bits_takes_arrays_of_64_bits():
    with phalanx.enable_x64():
        doubled = phalanx.jit(lambda x: x * 2).lower(np.float64(1)).compile()
        x = jnp.float64(0.1)
    with phalanx.enable_x64(False):
        value = doubled(x)
    assert value.dtype == np.float64 and value == 0.2
