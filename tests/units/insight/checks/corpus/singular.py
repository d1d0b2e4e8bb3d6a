"""Derivatives that are NaN at the arguments that stand here, and others that are finite there."""

import numpy as np

import phalanx.numpy as jnp
from phalanx import grad, jit, lax, nn
from tests.units.insight.checks.corpus import correct, faulty

AT = np.float32([[-200.0, 0.0, 200.0], [-200.0, 0.0, 200.0]])
ZEROS = np.zeros((2, 3), np.float32)


def slope(f, x=AT):
    return grad(lambda x: jnp.sum(f(x))), (x,)


def square_distances(x):
    squares = jnp.sum(x * x, -1)
    return squares[:, None] + squares[None] - 2 * x @ x.T


# ---- NaN ----------------------------------------------------------------------------------------


@faulty("P116")
def exponential_linear_unit():
    return slope(lambda x: jnp.where(x > 0, x, 1.5 * (jnp.exp(x) - 1)))


@faulty("P116")
def softplus_of_a_multiple():
    return slope(lambda x: jnp.where(3 * x > 20, x, jnp.log1p(jnp.exp(3 * x)) / 3))


@faulty("P116")
def sigmoid_by_two_branches():
    return slope(lambda x: jnp.where(x >= 0, 1 / (1 + jnp.exp(-x)), jnp.exp(x) / (1 + jnp.exp(x))))


@faulty("P116")
def root_of_the_other_sign():
    return slope(lambda x: jnp.where(x > 0, x, jnp.exp(-x / 100) / jnp.sqrt(-x)))


@faulty("P116")
def distances_by_products():
    return slope(lambda x: jnp.sqrt(jnp.maximum(square_distances(x), 0.0)))


@faulty("P116")
def root_of_what_is_clipped():
    return jit(grad(lambda x: jnp.sqrt(jnp.clip(x - 1, 0, None)).sum())), (AT,)


@faulty("P116")
def angle_but_at_the_origin():
    def angle(x):
        return jnp.where((x[0] == 0) & (x[1] == 0), 0.0, jnp.arctan2(x[0], x[1]))

    return slope(lambda x: angle((x[0], x[1])))


@faulty("P116")
def exponential_of_a_multiple():
    return slope(lambda x: jnp.where(x < 0, jnp.exp(2 * x), 1.0))


@faulty("P116")
def power_of_what_is_above_zero():
    return slope(lambda x: jnp.where(x > 0, x**1.5, 0.0))


@faulty("P117")
def normalization_by_the_root_mean_square():
    return slope(lambda x: x * lax.rsqrt(jnp.mean(x * x, -1, keepdims=True)), ZEROS)


@faulty("P117")
def power_of_a_norm():
    return slope(lambda x: jnp.linalg.norm(x, axis=-1) ** 3, ZEROS)


# ---- finite -------------------------------------------------------------------------------------


@correct
def exponential_linear_unit_of_negative_numbers():
    return slope(lambda x: jnp.where(x > 0, x, jnp.exp(jnp.minimum(x, 0.0)) - 1))


@correct
def units_of_the_library():
    return slope(lambda x: nn.elu(x) + nn.softplus(x) + nn.sigmoid(x) + nn.silu(x) + nn.selu(x))


@correct
def attention_that_is_masked():
    mask = np.tri(3, dtype=bool)[:2]

    def attend(x):
        weights = jnp.where(mask, jnp.exp(x - x.max(-1, keepdims=True)), 0.0)
        return weights / (weights.sum(-1, keepdims=True) + 1e-6)

    return slope(attend)


@correct
def distances_above_a_least_one():
    return slope(lambda x: jnp.sqrt(jnp.maximum(square_distances(x), 1e-6)))


@correct
def normalization_with_a_small_number():
    return slope(lambda x: x * lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-6), ZEROS)


@correct
def powers_of_what_is_never_negative():
    def powers(x):
        return jnp.maximum(x, 0.0) ** 1.5 + (x * x) ** 2.5 + jnp.where(x > 0, x, 1.0) ** 0.5

    return slope(lambda x: jnp.where(x > 0, powers(x), 0.0))


@correct
def bell_where_it_is_felt():
    return slope(lambda x: jnp.where(x > -3, jnp.exp(-x * x), 0.0))


@correct
def power_iteration_that_nobody_differentiates():
    def step(v, _):
        return (a := np.eye(3, dtype=np.float32) @ v) / jnp.linalg.norm(a), None

    return jit(lambda v: lax.scan(step, v, length=9)[0]), (np.ones(3, np.float32),)
