"""What phalanx.lax takes and refuses, and the parts of it that no primitive does alone."""

import dataclasses
import inspect

import jax
import numpy as np
import pytest

import phalanx
import phalanx.numpy as jnp
from phalanx import lax

X = np.arange(6, dtype=np.float32).reshape(2, 3)
I = np.arange(3, dtype=np.int32)  # noqa: E741


@pytest.mark.parametrize("scalar", [2, 2.0, True, np.float32(2), jnp.float32(2)])
def test_scalars_fit(scalar):
    found = lax.mul(X, scalar)
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, X * np.float32(scalar))


def test_scalars_alone():
    assert float(lax.add(1, 2.5)) == 3.5
    assert lax.add(1, 2).dtype == np.int32


def test_a_scalar_of_numpy_is_not_weak_and_a_power_is_as_weak_as_both():
    weak = jnp.asarray(2.0)
    for run in (lambda f: f(), lambda f: phalanx.jit(f)()):
        assert not run(lambda: lax.sin(np.float32(2))).weak_type
        assert not run(lambda: lax.mul(np.float32(2), 3.0)).weak_type
        assert not run(lambda: lax.add(weak, np.float32(2))).weak_type
        assert not run(lambda: lax.max(True, False)).weak_type
        assert run(lambda: lax.pow(2.0, 3)).weak_type
        assert run(lambda: lax.polygamma(1.0, weak)).weak_type
        assert run(lambda: lax.add(weak, 2)).weak_type


def test_a_scalar_of_numpy_beside_an_array_stays_a_constant():
    text = str(phalanx.make_program(lambda x: lax.add(x, np.float32(2)))(X))
    assert "add a 2.0" in text
    assert "broadcast" not in text


def test_an_integer_is_a_shape():
    for made in (
        lax.full(3, 1.0),
        lax.full_like(1.0, 2.0, shape=3),
        lax.empty(3, np.int32),
        lax.broadcasted_iota(np.int32, 3, 0),
        lax.reshape(X[:1], 3),
    ):
        assert made.shape == (3,)
    assert lax.reshape(X[:1, :1], True).shape == (1,)  # a length, to the peer as well


def test_complex_numbers_are_clamped_in_lexicographic_order():
    z = np.complex64([1 + 2j, 3 - 1j, -1 + 5j, 1 + 9j])
    expected = np.clip(z, 0, 1 + 3j)  # NumPy has that order
    np.testing.assert_array_equal(lax.clamp(0, z, 1 + 3j), expected)


def test_length_one_stretches():
    found = lax.add(X, lax.expand_dims(jnp.arange(2.0), (1,)))
    np.testing.assert_array_equal(found, X + np.float32([[0], [1]]))


@pytest.mark.parametrize(
    "call, error, message",
    [
        (
            lambda: lax.add(I, 2.5),
            TypeError,
            "lax.add: the Python number 2.5 does not fit operands of dtype int32",
        ),
        (
            lambda: lax.add(X, X.astype(np.float16)),
            TypeError,
            r"lax.add: operands must have one dtype, got f32\[2,3\] and f16\[2,3\]; convert them",
        ),
        (
            lambda: lax.add(X, X[0]),
            TypeError,
            r"lax.add: got incompatible shapes for broadcasting: \(2, 3\), \(3,\), at .*scalars",
        ),
        (lambda: lax.add(X, X[:, :2]), TypeError, "incompatible shapes for broadcasting"),
        (lambda: lax.add([1, 2], X), TypeError, r"got \[1, 2\] of type list; convert it with"),
        (lambda: lax.sin(None), TypeError, "lax.sin: an array or a number is needed, got None"),
        (lambda: lax.sin(I), TypeError, "sin: the operand i32"),
        (lambda: lax.add(np.int8([1]), 300), OverflowError, "300 does not fit int8"),
        (lambda: lax.select_n(I > 0, I, I, I), ValueError, "at most 2 for a boolean"),
        (lambda: lax.reshape(X, (4,)), ValueError, r"has 6 elements, but shape \(4,\) needs 4"),
        (lambda: lax.reshape(X, X), TypeError, "new_sizes must be a sequence of Python integers"),
        (lambda: lax.full((2,), X), TypeError, "fill_value must be a scalar"),
        (lambda: lax.squeeze(X, (0,)), ValueError, r"dimension 0 of f32\[2,3\] does not have len"),
        (lambda: lax.split(X, (1, 1), 1), ValueError, "sizes must add up to the length of"),
        (lambda: lax.tile(X, (2,)), ValueError, "reps needs one entry per dimension"),
        (lambda: lax.collapse(X, 1, 1), ValueError, "no dimensions lie between 1 and 1"),
        (lambda: lax.index_in_dim(X, 2), IndexError, "index 2 is out of bounds for dimension 0"),
        (lambda: lax.concatenate([], 0), ValueError, "at least one operand is needed"),
        (lambda: lax.rev(X, (2,)), ValueError, "lax.rev: dimension 2 is out of bounds"),
        (lambda: lax.pad(X, 0.0, [(1, 1)] * 2), ValueError, r"needs \(low, high, interior\)"),
        (lambda: lax.broadcast_shapes((2,), (3,)), ValueError, r"shapes=\[\(2,\), \(3,\)\]"),
        (lambda: lax.dot(X, X), TypeError, r"as long as the first of rhs, got f32\[2,3\] and"),
        (lambda: lax.batch_matmul(X, X[0]), ValueError, "of one rank, at least 2"),
        (lambda: lax.conv(X[None], X, (1,), "SAME"), ValueError, "must have one rank"),
        (lambda: lax.conv(X, X, (1,), "SAME"), ValueError, "strides must have one entry"),
        (lambda: lax.conv(X, X, (), "WRAP"), ValueError, "must be 'SAME', 'SAME_LOWER', 'VALID'"),
        (
            lambda: lax.conv_dimension_numbers((1, 2, 3), (1, 2, 3), ("NCW", "OIH", "NCW")),
            ValueError,
            "the letters 'NCW' of the lhs must be N, C and the spatial ones of rhs, 'H'",
        ),
        (lambda: lax.dynamic_slice(X, (0,), (1, 1)), ValueError, "needs 2 start indices, got 1"),
        (lambda: lax.dynamic_slice(X, (0, 0.5), (1, 1)), TypeError, "must be an integer scalar"),
        (lambda: lax.dynamic_slice(X, I[None], (1, 1)), ValueError, "scalars or a vector"),
        (lambda: lax.gather(X, I, None, (1,)), TypeError, "must be GatherDimensionNumbers"),
        (lambda: lax.sort(X, num_keys=2), ValueError, "num_keys must be between 1 and"),
        (lambda: lax.argmax(X, 2, np.int32), ValueError, "lax.argmax: dimension 2 is out of"),
        (lambda: lax.full((-1,), 1.0), ValueError, r"lengths in a shape.*negative, got \(-1,\)"),
        (lambda: lax.empty((2, -1), "f4"), ValueError, "lengths in a shape must not be negative"),
        (lambda: lax.broadcast(X, (-1,)), ValueError, "lengths in a shape must not be negative"),
        (lambda: lax.iota("int32", -1), ValueError, "iota: the lengths in a shape must not be"),
        (
            lambda: phalanx.ShapeDtypeStruct((-1,), "float32"),
            ValueError,
            "ShapeDtypeStruct: the lengths in a shape must not be negative",
        ),
    ],
)
def test_errors(call, error, message):
    with pytest.raises(error, match=message):
        call()


# ---- reductions with a function -----------------------------------------------------------------


@pytest.mark.parametrize("plus", [lax.add, jnp.add, lambda x, y: x + y, lambda x, y: y + x])
def test_known_reductions_are_recognized(plus):
    program = str(phalanx.make_program(lambda x: lax.reduce(x, 0.0, plus, (1,)))(X))
    assert "reduce_sum" in program and program.count(" = ") == 1
    np.testing.assert_array_equal(lax.reduce(X, 0.0, plus, (1,)), X.sum(1))


def test_an_initial_value_takes_part():
    np.testing.assert_array_equal(lax.reduce(X, 10.0, lax.add, (0,)), X.sum(0) + 10)
    np.testing.assert_array_equal(lax.reduce(X, 4.0, lax.max, (0,)), np.maximum(X.max(0), 4))
    traced = phalanx.jit(lambda init: lax.reduce(X, init, lax.add, (0, 1)))(np.float32(3))
    assert float(traced) == 18


def argmax(a, b):
    """The greater of two (value, position) pairs, by value, then by position."""
    (x, i), (y, j) = a, b
    first = (x > y) | ((x == y) & (i < j))
    return jnp.where(first, x, y), jnp.where(first, i, j)


@pytest.mark.parametrize("dims", [(0,), (1,), (1, 0), ()])
def test_any_function_of_two_trees_reduces(dims):
    values = np.float32([[3, 1, 2], [3, 5, 5], [0, 0, 7]])
    positions = np.arange(9, dtype=np.int32).reshape(3, 3)
    init = (-np.inf, np.int32(99))
    top, where = lax.reduce((values, positions), init, argmax, dims)
    np.testing.assert_array_equal(top, values.max(dims) if dims else values)
    np.testing.assert_array_equal(values.ravel()[where], top)


def test_a_reduction_by_a_function_differentiates():
    def total(x):
        return lax.reduce(x, 1.0, lambda a, b: a * b + a + b, (0,))

    x = np.float32([0.5, -0.25, 2.0])
    # 1 + the result is the product of 1 + x, and 2 from the initial value.
    value, slope = phalanx.value_and_grad(total)(x)
    product = 2 * np.prod(1 + x)
    np.testing.assert_allclose(value, product - 1, rtol=1e-6)
    np.testing.assert_allclose(slope, product / (1 + x), rtol=1e-6)


# ---- the rest -----------------------------------------------------------------------------------


def test_negative_starts_count_from_the_end():
    found = lax.dynamic_slice(X, (-1, -2), (1, 2))
    np.testing.assert_array_equal(found, X[-1:, -2:])
    traced = phalanx.jit(lambda s: lax.dynamic_slice(X, s, (1, 2)))(np.int8([-1, -2]))
    np.testing.assert_array_equal(traced, X[-1:, -2:])
    kept = lax.dynamic_slice(X, (-1, -2), (1, 2), allow_negative_indices=False)
    np.testing.assert_array_equal(kept, X[:1, :2])


def test_starts_of_several_dtypes_are_promoted():
    found = lax.dynamic_slice(X, (np.int8(1), jnp.uint16(1)), (1, 2))
    np.testing.assert_array_equal(found, X[1:, 1:])


def test_stop_gradient_of_a_tree():
    grads = phalanx.grad(lambda x: (x * lax.stop_gradient({"x": x})["x"]).sum())(X)
    np.testing.assert_array_equal(grads, X)
    assert lax.stop_gradient((I, None))[0] is I


def test_a_conversion_that_changes_nothing_is_none():
    x = jnp.asarray(X)
    assert lax.convert_element_type(x, np.float32) is x


def test_names_of_the_field():
    """Nothing here has a name that users of the field do not know."""
    ours = {n for n, value in vars(lax).items() if n[0] != "_" and not inspect.ismodule(value)}
    # it had the first before it called it pcast, and does not have the others in all versions
    others = {"pvary", "log2", "one_minus_square", "polynomial"}
    assert ours - set(dir(jax.lax)) <= others


# ---- barriers -----------------------------------------------------------------------------------


def test_a_barrier_is_the_identity_of_trees():
    tree = {"a": X, "b": (I, 2.0, None)}
    found = lax.optimization_barrier(tree)
    assert phalanx.tree.structure(found) == phalanx.tree.structure(tree)
    np.testing.assert_array_equal(found["a"], X)
    np.testing.assert_array_equal(found["b"][0], I)
    assert float(found["b"][1]) == 2.0 and lax.optimization_barrier(()) == ()


def test_a_barrier_stands_in_programs_and_in_their_derivatives():
    def f(x):
        y, _ = lax.optimization_barrier((x * x, x))
        return y * 3.0

    assert float(phalanx.grad(f)(2.0)) == 12.0
    text = phalanx.jit(phalanx.value_and_grad(f)).lower(2.0).as_text()
    assert text.count("stablehlo.optimization_barrier") == 2


@pytest.mark.parametrize("lhs", ["float8_e4m3fn", "float8_e5m2"])
@pytest.mark.parametrize("rhs", ["float8_e4m3fn", "float8_e5m2"])
def test_products_of_floats_of_8_bits_are_those_of_their_values(lhs, rhs):
    x, y = jnp.array([[0.5, 3.0], [-1.75, 448.0]], lhs), jnp.array([[2.0, 1.0], [0.25, 6.0]], rhs)
    wanted = np.asarray(x, np.float32) @ np.asarray(y, np.float32)
    np.testing.assert_array_equal(lax.dot(x, y, preferred_element_type="float32"), wanted)
    further = lhs if lhs == rhs else "float8_e5m2"
    assert lax.dot(x, y).dtype == further
    slope = phalanx.grad(lambda x: lax.dot(x, y, preferred_element_type="float32").sum())(x)
    assert slope.dtype == lhs


def test_the_dtype_none_is_that_of_a_float():
    assert jnp.arange(3).astype(None).dtype == jnp.arange(3.0).dtype
    assert jnp.astype(jnp.ones(2, "bfloat16"), None).dtype == jnp.arange(3.0).dtype


class Fresh:
    """A tree that makes its leaf anew each time it is flattened."""


phalanx.tree_util.register_pytree_node(Fresh, lambda _: ((object(),), None), lambda *_: Fresh())


@pytest.mark.parametrize(
    "call",
    [
        lambda t: phalanx.jit(lambda _: t)(1.0),
        lambda t: phalanx.vmap(lambda _: t)(jnp.ones(2)),
        lambda t: lax.cond(True, lambda _: 1, lambda _: 2, t),
        lambda t: lax.scan(lambda c, _: (c, None), t, None, length=2),
    ],
)
def test_a_leaf_that_is_made_when_it_is_asked_for_is_told_with_its_path(call):
    with pytest.raises(TypeError, match=r"\['b'\].*<object object .*|<object object .*\['b'\]"):
        call({"b": [Fresh()], "a": 1.0})


def test_a_dataclass_that_a_loop_carries_is_shown_briefly_and_told_how_to_be_registered():
    @dataclasses.dataclass
    class State:
        weights: str

    told = r"^scan: init is [^\n]{60} of type State.*; call tree_util.register_dataclass\(State\)"
    with pytest.raises(TypeError, match=told):
        lax.scan(lambda c, x: (c, x), State("long " * 50), jnp.ones(3))
