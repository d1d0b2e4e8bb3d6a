"""Mapped functions inside and around other transformations, and inside each other."""

import numpy as np
import pytest

import phalanx
import phalanx.numpy as jnp
from phalanx import lax

pytestmark = pytest.mark.spmd

N = 4
ROWS = np.arange(N * 3, dtype=np.float32).reshape(N, 3)


# ---- vmap of pmap -------------------------------------------------------------------------------


@pytest.mark.parametrize("batch_in", [0, 1, 2, -1])
@pytest.mark.parametrize("lanes_in", [0, 1])
@pytest.mark.parametrize(("lanes_out", "batch_out"), [(0, 0), (1, 0), (0, 2), (1, -1)])
def test_vmap_of_pmap_is_the_double_loop(batch_in, lanes_in, lanes_out, batch_out):
    data = np.arange(2 * N * 3, dtype=np.float32).reshape(2, N, 3)  # batch, lane, element
    whole = np.moveaxis(np.moveaxis(data, 1, lanes_in + 1), 0, batch_in)

    def f(row):
        return row - lax.pmean(row, "i")

    found = phalanx.vmap(
        phalanx.pmap(f, axis_name="i", in_axes=lanes_in, out_axes=lanes_out),
        in_axes=batch_in,
        out_axes=batch_out,
    )(whole)
    loop = data - data.mean(1, keepdims=True)
    expected = np.moveaxis(np.moveaxis(loop, 1, lanes_out + 1), 0, batch_out)
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_vmap_of_pmap_with_none_per_argument_and_shared_results():
    xs = np.arange(2 * N, dtype=np.float32).reshape(2, N)
    shifts = np.array([10.0, 20.0], np.float32)

    def f(x, shift, scale):
        return x + shift, lax.psum(x * scale, "i"), scale

    inner = phalanx.pmap(f, axis_name="i", in_axes=(0, None, 0), out_axes=(0, None, 0))
    moved, total, scales = phalanx.vmap(inner, in_axes=(0, 0, None))(
        xs, shifts, np.arange(N, dtype=np.float32)
    )
    np.testing.assert_allclose(moved, xs + shifts[:, None])
    np.testing.assert_allclose(total, (xs * np.arange(N)).sum(1))
    np.testing.assert_allclose(scales, [np.arange(N)] * 2)


# ---- jit ----------------------------------------------------------------------------------------


def test_pmap_works_inside_jit_between_other_operations():
    @phalanx.jit
    def f(x):
        y = phalanx.pmap(lambda r: r - lax.pmax(r, "i"), axis_name="i")(jnp.sin(x))
        return (y * 2).sum(0), y

    total, rows = f(ROWS)
    expected = np.sin(ROWS) - np.sin(ROWS).max(0)
    np.testing.assert_allclose(rows, expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(total, 2 * expected.sum(0), rtol=1e-5)


def test_two_pmaps_of_different_sizes_inside_one_jit():
    @phalanx.jit
    def f(x, y):
        a = phalanx.pmap(lambda r: lax.psum(r, "i"), axis_name="i")(x)
        b = phalanx.pmap(lambda r: lax.all_gather(r, "j"), axis_name="j", out_axes=None)(y)
        return a[:2] + b

    y = ROWS[:2] * 10
    np.testing.assert_allclose(f(ROWS, y), np.stack([ROWS.sum(0)] * 2) + y, rtol=1e-6)


def test_jit_works_inside_pmap_with_collectives_in_it():
    @phalanx.jit
    def centered(r):
        return r - lax.pmean(r, "i")

    found = phalanx.pmap(lambda r: centered(r) + centered(2 * r), axis_name="i")(ROWS)
    np.testing.assert_allclose(found, 3 * (ROWS - ROWS.mean(0)), rtol=1e-6)


def test_an_inner_jit_is_not_shared_between_axes_of_different_sizes():
    @phalanx.jit
    def shares(r):
        return r / lax.psum(1, "i")

    for n in (2, 4):
        found = phalanx.pmap(shares, axis_name="i")(np.ones(n, np.float32))
        np.testing.assert_allclose(found, np.full(n, 1 / n))


def test_jit_of_pmap_of_jit_is_pmap():
    def f(r):
        return jnp.cumsum(r) * lax.axis_index("i")

    expected = phalanx.pmap(f, axis_name="i")(ROWS)
    for g in (
        phalanx.jit(phalanx.pmap(f, axis_name="i")),
        phalanx.pmap(phalanx.jit(f), axis_name="i"),
        phalanx.jit(phalanx.pmap(phalanx.jit(f), axis_name="i")),
    ):
        np.testing.assert_array_equal(g(ROWS), expected)


def test_vmap_inside_pmap_and_grad_around_both():
    batches = np.arange(N * 2 * 3, dtype=np.float32).reshape(N, 2, 3) / 10

    def loss(w):
        def one(x):
            return jnp.tanh(x @ w)

        return phalanx.pmap(lambda b: lax.pmean(phalanx.vmap(one)(b), "i"), "i")(batches).sum()

    w = np.array([0.1, -0.2, 0.3], np.float32)
    slope = 1 - np.tanh(batches @ w) ** 2
    np.testing.assert_allclose(
        phalanx.grad(loss)(w), (slope[..., None] * batches).sum((0, 1)), rtol=1e-4
    )


# ---- nested -------------------------------------------------------------------------------------

GRID = np.arange(2 * 3 * 2, dtype=np.float32).reshape(2, 3, 2)


def test_nested_maps_multiply_and_lie_outer_major():
    count = phalanx.device_count()
    outer = 2 if count >= 2 else 1
    inner = count // outer
    x = np.arange(outer * inner, dtype=np.float32).reshape(outer, inner)
    found = phalanx.pmap(
        phalanx.pmap(lambda v: (v, lax.axis_index("i") * inner + lax.axis_index("j")), "j"), "i"
    )(x)
    np.testing.assert_array_equal(found[0], x)
    np.testing.assert_array_equal(found[1], x)


def test_code_before_and_after_the_inner_map_sees_the_outer_lane():
    def outer(row):
        row = row * 2 + lax.axis_index("i")
        inner = phalanx.pmap(lambda v: v - lax.psum(v, "j"), axis_name="j")(row)
        return inner * lax.psum(row, "i"), row.shape

    found, shape = phalanx.pmap(
        lambda r: (lambda a, s: (a, jnp.array(s)))(*outer(r)), axis_name="i", out_axes=(0, None)
    )(GRID)
    rows = GRID * 2 + np.arange(2)[:, None, None]
    expected = (rows - rows.sum(1, keepdims=True)) * rows.sum(0)
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    assert tuple(shape) == (3, 2)


def test_positions_differ_per_level():
    found = phalanx.pmap(
        phalanx.pmap(lambda v: 10 * v, in_axes=1, out_axes=0), in_axes=1, out_axes=2
    )(GRID)
    # outer over dimension 1 (3 long), inner over dimension 1 of what is left (2 long)
    expected = np.stack([10 * GRID[:, i].T for i in range(3)], axis=2)
    np.testing.assert_array_equal(found, expected)


def test_the_inner_closure_may_use_outer_values():
    def outer(row, w):
        total = row.sum()
        return phalanx.pmap(lambda v: v / total + w)(row)

    found = phalanx.pmap(outer, in_axes=(0, None))(1 + GRID, 5.0)
    expected = (1 + GRID) / (1 + GRID).sum((1, 2), keepdims=True) + 5
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_grad_at_any_level_of_a_nest():
    def cube(v):
        return (v**3).sum() / 3 + 0 * lax.psum(v, ("i", "j")).sum()

    def nest(level):
        inner = phalanx.grad(cube) if level == "innermost" else cube

        def row(r):
            return phalanx.pmap(inner, axis_name="j")(r)

        if level == "between":
            return phalanx.pmap(phalanx.grad(lambda r: row(r).sum()), axis_name="i")
        whole = phalanx.pmap(row, axis_name="i")
        return whole if level == "innermost" else phalanx.grad(lambda x: whole(x).sum())

    for level in ("innermost", "between", "outside"):
        np.testing.assert_allclose(nest(level)(GRID), GRID**2, rtol=1e-5, atol=1e-5, err_msg=level)


def test_three_levels():
    x = np.arange(2 * 2 * 2, dtype=np.float32).reshape(2, 2, 2)

    def f(v):
        return lax.psum(v, ("i", "k")) + 10 * lax.axis_index(("k", "j", "i"))

    found = phalanx.pmap(phalanx.pmap(phalanx.pmap(f, "k"), "j"), "i")(x)
    total = np.broadcast_to(x.sum((0, 2))[None, :, None], (2, 2, 2))
    i, j, k = np.indices((2, 2, 2))
    np.testing.assert_allclose(found, total + 10 * (4 * k + 2 * j + i))


def test_devices_on_an_inner_map_are_refused():
    inner = phalanx.pmap(lambda v: v, devices=phalanx.devices()[:1])
    with pytest.raises(ValueError, match=r"Nested pmap with explicit devices argument\."):
        phalanx.pmap(inner)(ROWS)


def test_a_nest_with_devices_on_the_outer_map(several):
    chosen = several[::-1][:2]
    found = phalanx.pmap(phalanx.pmap(lambda v: v + 1), devices=chosen)(GRID)
    np.testing.assert_array_equal(found, GRID + 1)
    assert found.devices() == set(chosen)


# ---- one function, many ways --------------------------------------------------------------------


def test_pmap_equals_vmap_at_every_size_from_one_to_beyond_the_devices():
    def f(x, w):
        y = jnp.tanh(x @ w)
        return y - lax.pmean(y, "i"), lax.all_gather(y, "i")[lax.axis_size("i") // 2]

    w = np.linspace(-1, 1, 6, dtype=np.float32).reshape(3, 2)
    for n in sorted({1, 2, 3, phalanx.device_count(), phalanx.device_count() + 1}):
        x = np.sin(np.arange(n * 3, dtype=np.float32)).reshape(n, 3)
        got = phalanx.pmap(f, axis_name="i", in_axes=(0, None))(x, w)
        want = phalanx.vmap(f, axis_name="i", in_axes=(0, None))(x, w)
        for g, v in zip(got, want, strict=True):
            np.testing.assert_allclose(g, v, rtol=1e-5, atol=1e-6)
