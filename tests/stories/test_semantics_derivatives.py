"""Derivatives inside and outside of mapped functions, of first and second order.

Inside a mapped function the derivative is that of the sum over all lanes of the result, by the
value of this lane: what the same function under ``vmap`` gives.
"""

import numpy as np
import pytest

import phalanx
import phalanx.numpy as jnp
from phalanx import lax

N = 4
ROWS = np.random.RandomState(0).uniform(0.5, 1.5, (N, N)).astype(np.float32)
PAIRS = [[0, 2], [1, 3]]


# ---- inside -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reduce", "expected"),
    [
        (lambda y: lax.psum(y, "i"), [N] * N),
        (lambda y: lax.pmean(y, "i"), [1] * N),
        (lambda y: lax.all_gather(y, "i")[0], [N, 0, 0, 0]),
        (lambda y: lax.pbroadcast(y, "i", 1), [0, N, 0, 0]),
        (lambda y: lax.ppermute(y, "i", [(0, 1), (2, 3)]), [1, 0, 1, 0]),
        (lambda y: lax.psum(y, "i", axis_index_groups=[[0], [1, 2, 3]]), [1, 3, 3, 3]),
        (lambda y: lax.pmax(y, "i"), [0, 0, 0, N]),
        (lambda y: lax.pmin(y, "i"), [N, 0, 0, 0]),
        (lambda y: y * lax.psum(1, "i"), [N] * N),
        (lambda y: y, [1] * N),
    ],
)
def test_grad_inside_is_the_derivative_of_the_sum_over_all_lanes(mapped, reduce, expected):
    values = np.array([0.1, 0.2, 0.3, 0.4], np.float32)
    found = mapped(phalanx.grad(reduce), axis_name="i")(values)
    np.testing.assert_allclose(found, expected)


@pytest.mark.spmd
def test_the_mean_gradient_is_the_gradient_of_the_mean_loss():
    w = np.array([0.5, -1.0, 2.0, 0.1], np.float32)

    def loss(w, row):
        return ((row @ w - 1.0) ** 2).sum()

    found = phalanx.pmap(
        lambda w, row: lax.pmean(phalanx.grad(loss)(w, row), "i"),
        axis_name="i",
        in_axes=(None, 0),
        out_axes=None,
    )(w, ROWS)
    np.testing.assert_allclose(found, (2 * (ROWS @ w - 1) @ ROWS) / N, rtol=1e-4)


# ---- every collective, forward and reverse, first and second order ------------------------------

COLLECTIVES = {
    "psum": lambda x: lax.psum(x, "i"),
    "psum in groups": lambda x: lax.psum(x, "i", axis_index_groups=[[0, 1, 3], [2]]),
    "pmean": lambda x: lax.pmean(x, "i"),
    "all_gather": lambda x: lax.all_gather(x, "i"),
    "all_gather tiled": lambda x: lax.all_gather(x, "i", tiled=True),
    "all_gather in groups": lambda x: lax.all_gather(x, "i", axis_index_groups=PAIRS),
    "psum_scatter": lambda x: lax.psum_scatter(x, "i"),
    "psum_scatter tiled": lambda x: lax.psum_scatter(x, "i", tiled=True),
    "psum_scatter tiled in groups": lambda x: lax.psum_scatter(
        x, "i", tiled=True, axis_index_groups=PAIRS
    ),
    "ppermute": lambda x: lax.ppermute(x, "i", [(0, 2), (2, 3), (3, 0)]),
    "pshuffle": lambda x: lax.pshuffle(x, "i", [1, 3, 0, 2]),
    "all_to_all": lambda x: lax.all_to_all(x, "i", 0, 0),
    "all_to_all tiled": lambda x: lax.all_to_all(x, "i", 0, 0, tiled=True),
    "pswapaxes": lambda x: lax.pswapaxes(x, "i", 0),
    "pbroadcast": lambda x: lax.pbroadcast(x, "i", 3),
    "pmax": lambda x: lax.pmax(x, "i"),
    "pmin": lambda x: lax.pmin(x, "i"),
}


@pytest.mark.spmd
@pytest.mark.parametrize("name", COLLECTIVES)
def test_collectives_differentiate_forward_and_reverse_to_second_order(name):
    collective = COLLECTIVES[name]
    weights = np.linspace(-1.0, 2.0, N, dtype=np.float32)

    def loss(mapped, x):
        rows = mapped(lambda r: jnp.sin(collective(r * r)), axis_name="i")(x)
        return (rows.reshape(N, -1) * weights[:, None]).sum()

    def orders(mapped):
        def f(x):
            return loss(mapped, x)

        direction = np.cos(np.arange(N * N, dtype=np.float32)).reshape(N, N)

        @phalanx.jit
        def compute(x):
            slope = phalanx.grad(f)(x)
            forward = phalanx.jvp(f, (x,), (direction,))[1]
            over = phalanx.jvp(phalanx.grad(f), (x,), (direction,))[1]
            back = phalanx.grad(lambda y: (phalanx.grad(f)(y) * direction).sum())(x)
            return slope, forward, over, back

        slope, forward, over, back = map(np.asarray, compute(ROWS))
        np.testing.assert_allclose((slope * direction).sum(), forward, rtol=1e-3, atol=1e-4)
        np.testing.assert_allclose(over, back, rtol=1e-3, atol=1e-4)
        return slope, over

    slope, curvature = orders(phalanx.pmap)
    expected_slope, expected_curvature = orders(phalanx.vmap)
    np.testing.assert_allclose(slope, expected_slope, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(curvature, expected_curvature, rtol=1e-4, atol=1e-5)
    assert np.abs(curvature).max() > 0.1


@pytest.mark.spmd
@pytest.mark.parametrize("name", [n for n in COLLECTIVES if n not in ("pmax", "pmin")])
def test_the_transpose_of_a_collective_is_its_matrix_transposed(name):
    def f(x):
        return phalanx.vmap(COLLECTIVES[name], axis_name="i")(x)

    size = N * N
    columns = phalanx.vmap(f)(np.eye(size, dtype=np.float32).reshape(size, N, N))
    matrix = np.asarray(columns).reshape(size, -1).T
    shape = columns.shape[1:]
    back = phalanx.linear_transpose(
        lambda x: phalanx.pmap(COLLECTIVES[name], axis_name="i")(x), ROWS
    )
    ct = np.sin(np.arange(matrix.shape[0], dtype=np.float32))
    (found,) = back(ct.reshape(shape))
    np.testing.assert_allclose(found, (matrix.T @ ct).reshape(N, N), rtol=1e-4, atol=1e-5)


@pytest.mark.spmd
def test_pmax_differentiates_at_the_lane_that_attains_it():
    x = np.array([1.0, 3.0, 2.0, 0.0], np.float32)
    total = phalanx.grad(lambda x: phalanx.pmap(lambda v: lax.pmax(v, "i"), "i")(x).sum())(x)
    np.testing.assert_allclose(total, [0, N, 0, 0])


# ---- outside ------------------------------------------------------------------------------------


@pytest.mark.spmd
def test_the_cotangent_of_an_unmapped_argument_is_the_sum_over_the_lanes():
    w = np.array([1.0, 2.0, 3.0, 4.0], np.float32)

    def loss(w, x):
        return phalanx.pmap(lambda w, r: jnp.sin(w) * r, in_axes=(None, 0))(w, x).sum()

    found = phalanx.grad(loss)(w, ROWS)
    assert found.shape == w.shape
    np.testing.assert_allclose(found, np.cos(w) * ROWS.sum(0), rtol=1e-5)


@pytest.mark.spmd
@pytest.mark.parametrize("in_axes", [(0, 0), (0, None), (None, 0), (1, 0), (0, 1), (1, None)])
@pytest.mark.parametrize("out_axes", [0, 1, (1, None)])
def test_any_mix_of_axes_differentiates_as_under_vmap(in_axes, out_axes):
    def pair(mapped):
        def f(a, b):
            return jnp.sin(a) * b, lax.pmean(a * b, "i")

        def loss(a, b):
            found = mapped(f, axis_name="i", in_axes=in_axes, out_axes=out_axes)(a, b)
            return sum((jnp.cos(y) * jnp.arange(y.size).reshape(y.shape)).sum() for y in found)

        return phalanx.jit(phalanx.grad(loss, argnums=(0, 1)))(ROWS, ROWS.T)

    for found, expected in zip(pair(phalanx.pmap), pair(phalanx.vmap), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


# ---- closures -----------------------------------------------------------------------------------


@pytest.mark.spmd
def test_the_body_may_close_over_values_that_are_being_differentiated():
    def loss(w):
        return (phalanx.pmap(lambda r: (r * w) ** 2)(ROWS)).sum()

    w = np.float32(1.5)
    np.testing.assert_allclose(phalanx.grad(loss)(w), 2 * w * (ROWS**2).sum(), rtol=1e-5)
    second = phalanx.grad(phalanx.grad(loss))(w)
    np.testing.assert_allclose(second, 2 * (ROWS**2).sum(), rtol=1e-5)


@pytest.mark.spmd
def test_the_body_may_close_over_values_that_are_vectorized():
    scales = np.arange(3.0, dtype=np.float32)
    found = phalanx.vmap(lambda s: phalanx.pmap(lambda r: r * s)(ROWS))(scales)
    np.testing.assert_allclose(found, scales[:, None, None] * ROWS)


@pytest.mark.spmd
def test_closures_under_vmap_of_grad_and_jit():
    def loss(w):
        return phalanx.pmap(lambda r: lax.psum(jnp.sin(w * r).sum(), "i"), "i")(ROWS).mean()

    scales = np.array([0.5, 1.0], np.float32)
    found = phalanx.jit(phalanx.vmap(phalanx.grad(loss)))(scales)
    expected = [(np.cos(w * ROWS) * ROWS).sum() for w in scales]
    np.testing.assert_allclose(found, expected, rtol=1e-4)


def test_a_pmapped_function_made_anew_in_each_step_of_a_derivative_captures_that_step():
    @phalanx.pmap
    def inner(r):
        return r * factor[0]

    factor = [None]

    def loss(w):
        factor[0] = w
        return inner(ROWS).sum()

    np.testing.assert_allclose(phalanx.grad(loss)(2.0), ROWS.sum(), rtol=1e-5)
    np.testing.assert_allclose(phalanx.jit(loss)(3.0), 3 * ROWS.sum(), rtol=1e-5)
    np.testing.assert_allclose(loss(4.0), 4 * ROWS.sum(), rtol=1e-5)


# ---- through the whole family -------------------------------------------------------------------


@phalanx.pmap
def halved_squares(r):
    return r * r / 2


@pytest.mark.spmd
def test_linearize_jvp_and_vjp_go_through():
    t = np.ones_like(ROWS)
    y, derivative = phalanx.linearize(halved_squares, ROWS)
    np.testing.assert_allclose(y, ROWS**2 / 2, rtol=1e-6)
    np.testing.assert_allclose(derivative(t), ROWS, rtol=1e-6)
    np.testing.assert_allclose(phalanx.jvp(halved_squares, (ROWS,), (t,))[1], ROWS, rtol=1e-6)
    _, pull = phalanx.vjp(halved_squares, ROWS)
    np.testing.assert_allclose(pull(2 * t)[0], 2 * ROWS, rtol=1e-6)


def test_jacobians_go_through():
    x = ROWS[:, 0]
    expected = np.diag(x)
    np.testing.assert_allclose(phalanx.jacfwd(halved_squares)(x), expected, rtol=1e-6)
    np.testing.assert_allclose(phalanx.jacrev(halved_squares)(x), expected, rtol=1e-6)
    hessian = phalanx.hessian(lambda x: halved_squares(x).sum())(x)
    np.testing.assert_allclose(hessian, np.eye(N), atol=1e-6)


def test_make_program_shows_the_mapped_body():
    program = phalanx.make_program(lambda x: halved_squares(x) + 1.0)(ROWS)
    assert program.equations[0].prim.name == "mapped"
    assert "mul" in str(program) and program.output_types[0].shape == (N, N)


@pytest.mark.spmd
def test_zero_cotangents_pass_a_psum():
    def first(x):
        a, b = phalanx.pmap(lambda r: lax.psum((r, 2 * r), "i"), axis_name="i")(x)
        return a.sum() + 0 * lax.stop_gradient(b).sum()

    np.testing.assert_allclose(phalanx.grad(first)(ROWS), np.full((N, N), N), rtol=1e-6)
    constant = phalanx.grad(
        lambda x: phalanx.pmap(lambda r: lax.psum(lax.stop_gradient(r), "i"), "i")(x).sum()
    )(ROWS)
    np.testing.assert_array_equal(constant, np.zeros((N, N)))


@pytest.mark.spmd
def test_integers_pass_beside_differentiated_values():
    counts = np.arange(N)

    def loss(x):
        y, n = phalanx.pmap(lambda r, k: (r * k, k + 1), axis_name="i")(x, counts)
        return (y * n[:, None]).sum()

    expected = np.broadcast_to((counts * (counts + 1))[:, None], (N, N))
    np.testing.assert_allclose(phalanx.grad(loss)(ROWS), expected, rtol=1e-6)


def test_a_second_vjp_of_the_same_function_compiles_nothing(compilations):
    f = phalanx.pmap(lambda r: jnp.tanh(r) * lax.psum(r, "i"), axis_name="i")

    def once():
        y, pull = phalanx.vjp(f, ROWS)
        return pull(y)

    first = once()
    assert compilations
    compilations.clear()
    np.testing.assert_array_equal(first[0], once()[0])
    assert not compilations


@pytest.mark.spmd
def test_a_training_step_in_pmap_equals_the_step_on_all_data():
    rng = np.random.RandomState(1)
    x, y = rng.randn(N, 5, 3).astype(np.float32), rng.randn(N, 5).astype(np.float32)
    params = {"w": rng.randn(3).astype(np.float32), "b": np.float32(0.1)}

    def loss(p, x, y):
        return jnp.mean((jnp.tanh(x @ p["w"] + p["b"]) - y) ** 2)

    def step(p, x, y):
        value, grads = phalanx.value_and_grad(loss)(p, x, y)
        grads = lax.pmean(grads, "data")
        return phalanx.tree.map(lambda p, g: p - 0.1 * g, p, grads), lax.pmean(value, "data")

    new, value = phalanx.pmap(step, axis_name="data", in_axes=(None, 0, 0), out_axes=None)(
        params, x, y
    )
    whole, grads = phalanx.value_and_grad(loss)(params, x.reshape(-1, 3), y.reshape(-1))
    np.testing.assert_allclose(value, whole, rtol=1e-5)
    for key, p in params.items():
        np.testing.assert_allclose(new[key], p - 0.1 * np.asarray(grads[key]), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("quick", [False, True])
def test_some_lane_attains_an_extremum_whatever_the_compiler_makes_again(quick):
    """The operand is cheap to make, and its parts are of use in other loops of the gradient."""

    def loss(x, w):
        y = x * w
        return jnp.sum(lax.pmax(y + w, "i") - lax.pmin(y - w, "i")) + jnp.sum(jnp.sqrt(y * y + 1))

    rng = np.random.default_rng(0)
    x = rng.uniform(-2, 2, (4, 5, 64)).astype(np.float32)
    w = rng.uniform(0.5, 2, 64).astype(np.float32)
    slope = phalanx.grad(loss)
    wanted = phalanx.vmap(slope, in_axes=(0, None), axis_name="i")(x, w)
    with phalanx.config.override(disable_most_optimizations=quick):
        found = phalanx.pmap(slope, in_axes=(0, None), axis_name="i")(x, w)
    np.testing.assert_allclose(found, wanted, rtol=1e-5)
