"""Reductions over windows against their definition, written as loops in NumPy."""

import functools
import itertools

import numpy as np
import pytest

import phalanx
import phalanx.numpy as jnp
from phalanx import lax
from phalanx.laws import check_batch, check_grads, check_jit

X = np.random.default_rng(0).uniform(0.5, 1.5, (4, 5)).astype(np.float32)
PLAIN = {"strides": (1, 1), "padding": ((0, 0), (0, 0)), "base": (1, 1), "gaps": (1, 1)}
GEOMETRIES = {
    "plain": {},
    "strides": {"strides": (2, 3)},
    "padding": {"padding": ((1, 2), (0, 3))},
    "cropped": {"padding": ((-1, 1), (2, -2))},
    "holes": {"base": (2, 3), "strides": (2, 1)},
    "gaps": {"gaps": (2, 2), "padding": ((0, 1), (1, 1))},
    "all": {"base": (3, 1), "gaps": (1, 2), "strides": (2, 2), "padding": ((2, 1), (1, 3))},
}
COMPUTATIONS = {
    "add": (lax.add, 0.5),
    "max": (lax.max, 1.0),
    "mul": (lax.mul, 2.0),
    "own": (lambda a, b: a + b + a * b, 0.25),
}


def by_loops(x, computation, init, window, strides, padding, base, gaps):
    places = [{base[d] * i + padding[d][0]: i for i in range(n)} for d, n in enumerate(x.shape)]
    room = [
        base[d] * (n - 1) + 1 + sum(padding[d]) - gaps[d] * (window[d] - 1)
        for d, n in enumerate(x.shape)
    ]
    out = np.empty([max(0, -(-r // s)) for r, s in zip(room, strides, strict=True)], np.float32)
    for at in np.ndindex(*out.shape):
        covered = [
            [places[d].get(at[d] * strides[d] + k * gaps[d]) for k in range(window[d])]
            for d in range(x.ndim)
        ]
        elements = [x[i] for i in itertools.product(*covered) if None not in i]
        out[at] = functools.reduce(computation, elements, np.float32(init))
    return out


def ours(x, computation, init, window, strides, padding, base, gaps):
    return lax.reduce_window(x, init, computation, window, strides, padding, base, gaps)


@pytest.mark.parametrize("geometry", GEOMETRIES)
def test_windows_hold_the_elements_that_they_are_on(geometry):
    options = {**PLAIN, **GEOMETRIES[geometry]}
    run = phalanx.jit(
        lambda x: [ours(x, f, init, (2, 3), **options) for f, init in COMPUTATIONS.values()]
    )
    in_numpy = [np.add, np.maximum, np.multiply, COMPUTATIONS["own"][0]]
    for out, f, (_, init) in zip(run(X), in_numpy, COMPUTATIONS.values(), strict=True):
        expected = by_loops(X, f, init, (2, 3), **options)
        np.testing.assert_allclose(out, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", ["add", "mul", "own"])
def test_derivatives(name):
    computation, init = COMPUTATIONS[name]
    options = {**PLAIN, **GEOMETRIES["all"]}

    def f(x, i):
        return ours(x, computation, i, (2, 3), **options)

    args = X, np.float32(init)
    check_grads(f, args, order=1)
    check_batch(f, (np.stack([X, X + 1]), np.float32([1, 2])))
    check_jit(f, args)


def test_several_operands():
    def first_greatest(a, b):
        later = b[0] > a[0]
        return jnp.where(later, b[0], a[0]), jnp.where(later, b[1], a[1])

    places = np.arange(X.size, dtype=np.int32).reshape(X.shape)
    best, where = lax.reduce_window(
        (X, places), (-np.inf, -1), first_greatest, (2, 2), (2, 2), "SAME"
    )
    assert best.shape == where.shape == (2, 3)
    np.testing.assert_array_equal(
        best, lax.reduce_window(X, -np.inf, lax.max, (2, 2), (2, 2), "SAME")
    )
    np.testing.assert_array_equal(X.ravel()[where], best)


def test_same_counts_elements_that_are_not_dilated():
    out = lax.reduce_window(np.arange(4.0), 0.0, lax.add, (2,), (2,), "SAME", base_dilation=(2,))
    np.testing.assert_array_equal(out, [0.0, 1.0, 2.0])


def test_starts_of_another_dtype():
    whole = np.arange(4, dtype=np.int32)

    def pool(init, how):
        return lax.reduce_window(whole, init, how, (2,), (1,))

    np.testing.assert_array_equal(pool(0.0, lax.add), [1, 3, 5])
    np.testing.assert_array_equal(pool(-np.inf, lax.max), [1, 2, 3])
    with pytest.raises(TypeError, match=r"init_value must be a scalar of the dtype of its operand"):
        pool(0.5, lax.max)


def test_a_computation_of_another_dtype():
    with pytest.raises(TypeError, match=r"must give scalars of the operands' dtypes, f32\[\], but"):
        lax.reduce_window(X, 0.0, lambda a, b: a > b, (2, 2))


def test_complex_numbers_are_in_lexicographic_order():
    x = (np.round(X) + 1j * X[::-1]).astype(np.complex64)
    found = lax.reduce_window(x, np.complex64(-np.inf), lax.max, (2, 3), padding="SAME")
    padded = np.pad(x, ((0, 1), (1, 1)), constant_values=-np.inf)
    windows = np.lib.stride_tricks.sliding_window_view(padded, (2, 3)).reshape(4, 5, -1)
    np.testing.assert_array_equal(found, np.sort(windows, -1)[..., -1])


def test_nothing_in_the_windows():
    np.testing.assert_array_equal(
        lax.reduce_window(np.zeros(0, np.float32), 3.0, lax.mul, (2,), (1,), [(2, 2)]), [3.0] * 3
    )
    assert lax.reduce_window(X, 1.0, lax.mul, (9, 1)).shape == (0, 5)


@pytest.mark.parametrize("kind", COMPUTATIONS)
def test_windows_without_dimensions_are_the_number_itself(kind):
    """Which XLA's selection of elements of windows is not made for: it ends the process."""
    computation, _ = COMPUTATIONS[kind]
    init = {"max": -np.inf, "min": np.inf, "mul": 1.0}.get(kind, 0.0)

    def f(x):
        return lax.reduce_window(x, init, computation, (), (), "VALID") * x

    numbers = X[0]
    np.testing.assert_allclose(phalanx.vmap(f)(numbers), numbers**2, rtol=1e-6)
    for slope in (phalanx.grad(f), phalanx.jit(phalanx.grad(f)), phalanx.jacfwd(f)):
        np.testing.assert_allclose(slope(numbers[1]), 2 * numbers[1], rtol=1e-6)
        np.testing.assert_allclose(phalanx.vmap(slope)(numbers), 2 * numbers, rtol=1e-6)
        np.testing.assert_allclose(phalanx.pmap(slope)(numbers), 2 * numbers, rtol=1e-6)
    np.testing.assert_allclose(phalanx.vmap(phalanx.hessian(f))(numbers), [2.0] * 5, rtol=1e-6)


@pytest.mark.parametrize("places", [2**28, 2**32, 2**62, 2**63, 2**70])
def test_windows_whose_places_nobody_can_visit_are_refused(places):
    """XLA goes through them one by one: it would not come back."""
    padding = [(places - 1, 0)]
    with pytest.raises(ValueError, match=f"has {places:,} places.*lax.cumsum"):
        lax.reduce_window(jnp.ones(4), 0.0, lax.add, (places,), (1,), padding)
    with pytest.raises(ValueError, match=f"has {places:,} places"):
        lax.reduce_window(jnp.ones(4), -jnp.inf, lax.max, (places,), (1,), padding)


def test_a_window_as_large_as_its_array_is_no_place_too_many():
    x = phalanx.ShapeDtypeStruct((2**14, 2**14), np.int8)
    summed = phalanx.eval_shape(
        lambda x: lax.reduce_window(x, np.int8(0), lax.add, x.shape, (1, 1), "VALID"), x
    )
    assert summed.shape == (1, 1)


HUGE = 2**63  # the first integer that XLA has not


@pytest.mark.parametrize(
    "call",
    [
        lambda x: lax.reduce_window(x, 0.0, lax.add, (2,), (HUGE,), "VALID"),
        lambda x: lax.reduce_window(x, 0.0, lax.add, (2,), (HUGE,), [(HUGE, 1)]),
        lambda x: lax.reduce_window(x, 0.0, lax.add, (2,), (1,), [(HUGE, 0)], None, (HUGE,)),
        lambda x: lax.pad(x, 0.0, [(HUGE, -HUGE, 0)]),
        lambda x: lax.pad(x, 0.0, [(HUGE - 1, 1 - HUGE, 0)]),
        lambda x: lax.slice(x, (0,), (4,), (HUGE,)),
        lambda x: lax.conv_general_dilated(x[None, None], x[None, None], (HUGE,), [(0, 0)]),
        lambda x: lax.conv_general_dilated(x[None, None], x[None, None, :2], (1,), [(HUGE, HUGE)]),
    ],
)
def test_integers_that_xla_has_not_are_refused_in_words(call):
    """Whichever operation they are for; or an array of so many elements is."""
    words = f"XLA takes integers from .*2\\*\\*63.*got {HUGE}|would need 2\\*\\*"
    with pytest.raises(ValueError, match=words):
        phalanx.jit(call)(jnp.ones(4))
