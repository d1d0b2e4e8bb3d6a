"""The laws themselves: what is wrong is found, and said."""

import numpy as np
import pytest
from msgspec.structs import replace

import phalanx
import phalanx.numpy as jnp
from phalanx import lax
from phalanx.core.primitive import REGISTRY, Elements
from phalanx.laws import (
    BatchError,
    DerivativeError,
    JitError,
    PmapError,
    PrimitiveError,
    check_batch,
    check_grads,
    check_jit,
    check_pmap,
    check_primitive,
)
from phalanx.laws import primitives as laws
from phalanx.laws.compare import require_same
from phalanx.primitives import collective, elementwise, reduce, shape
from phalanx.primitives.basis import mul, reduce_sum

X = np.linspace(-0.9, 1.1, 4).astype(np.float32)


@pytest.fixture
def broken(monkeypatch):
    """``broken(prim, rule=...)``: the primitive with another rule, for the length of the test."""

    def make(prim, **changes):
        monkeypatch.setitem(REGISTRY, prim.name, prim)
        return replace(prim, **changes)

    return make


# ---- primitives -------------------------------------------------------------------------------


def test_a_wrong_type(broken):
    wrong = broken(reduce.argmax, type=lambda x, **params: x.update(shape=x.shape[1:]))
    with pytest.raises(PrimitiveError, match="but the type rule gives"):
        laws._check_types(laws.Case(wrong, wrong.examples[0]), *computed(reduce.argmax))


def computed(prim):
    case = laws.Case(prim, prim.examples[0])
    return case.operands(), case(*case.operands())


def test_a_wrong_derivative(broken):
    def linearize(active, x):
        slope = elementwise.cos(x)
        return wrong(x), lambda t: mul(t, elementwise.neg(slope))

    wrong = broken(elementwise.sin, linearize=linearize)
    with pytest.raises(DerivativeError, match="jvp of sin and finite differences"):
        check_primitive(wrong, ["linearize"])


def test_a_derivative_that_is_wrong_where_an_operand_is_constant(broken):
    def linearize(active, x, y):
        out, linear = mul.linearize((True, True), x, y)
        return out, linear if all(active) else lambda tx, ty: y

    wrong = broken(mul, linearize=linearize)
    with pytest.raises(PrimitiveError, match="in all operands and the sum of those in each"):
        check_primitive(wrong, ["linearize"])


def test_a_wrong_second_derivative(broken):
    def linearize(active, x):
        slope = elementwise.stop_gradient(elementwise.cos(x))
        return wrong(x), lambda t: mul(t, slope)

    wrong = broken(elementwise.sin, linearize=linearize)
    with pytest.raises(DerivativeError, match="x -> jvp of sin at x"):
        check_primitive(wrong, ["linearize"])


def test_a_wrong_transpose(broken):
    def transpose(ct, x, dims, unreduced=None):
        return [mul(zeros_like(x), 1.0)]

    wrong = broken(reduce_sum, transpose=transpose)
    with pytest.raises(PrimitiveError, match="transpose in operands"):
        check_primitive(wrong, ["transpose"])


def zeros_like(x):
    return jnp.zeros(x.type.shape, x.type.dtype)


def test_a_batch_rule_that_mixes_lanes(broken):
    def batch(axis, xs, dims):
        return shape.reverse(xs[0], dims=(dims[0],)), dims[0]

    wrong = broken(elementwise.neg, batch=batch)
    with pytest.raises(PrimitiveError, match="batch with lanes at"):
        check_primitive(wrong, ["batch"])


def test_a_batch_rule_that_forgets_an_operand(broken):
    def batch(axis, xs, dims):
        if dims[1] is None:
            return mul(xs[0], xs[0]), dims[0]
        return mul.batch(axis, xs, dims)

    wrong = broken(mul, batch=batch)
    with pytest.raises(PrimitiveError, match=r"None.* and a loop"):
        check_primitive(wrong, ["batch"])


def test_a_wrong_replication_rule(broken):
    wrong = broken(collective.ppermute, vary=lambda v, **params: v - set(params["axes"]))
    with pytest.raises(PrimitiveError, match="the rule says that it does not"):
        check_primitive(wrong, ["vary"])


def test_an_operation_that_does_more_than_move(broken):
    wrong = broken(elementwise.sin, elements=Elements(copied=True))
    with pytest.raises(PrimitiveError, match="NaN where no operand is"):
        check_primitive(wrong, ["copied"])


def test_a_wrong_lowering_for_devices(broken):
    if phalanx.device_count() < 4:
        pytest.skip("the axis must lie over devices")

    def lower(b, x, axes, size, perm):
        return b.collective_permute(x, b.partition_pairs(axes, tuple((t, s) for s, t in perm)))

    wrong = broken(collective.ppermute, lower=lower)
    with pytest.raises(PrimitiveError, match="pmap and vmap"):
        check_primitive(wrong, ["pmap"])


def test_no_examples(broken):
    with pytest.raises(ValueError, match="has no examples"):
        check_primitive(broken(reduce.argmax, examples=()))
    with pytest.raises(ValueError, match="no law 'tpye'"):
        check_primitive(elementwise.sin, ["tpye"])


# ---- functions --------------------------------------------------------------------------------


def test_derivatives_that_are_cut():
    with pytest.raises(DerivativeError, match=r"output 0.*expected .* found") as caught:
        check_grads(lambda x: jnp.sin(lax.stop_gradient(x)) * x, (X,))
    assert caught.value.expected is not None and isinstance(caught.value, AssertionError)


def test_derivatives_in_single_precision():
    def f(x):
        return jnp.sin(x.astype(jnp.float32))

    check_grads(f, (X,))
    with pytest.raises(DerivativeError):
        check_grads(lambda x: f(lax.stop_gradient(x)) * f(x), (X,), order=1)


def test_derivatives_of_code_that_looks_at_values():
    def f(x):
        return jnp.sin(x) if x[0] < 0 else jnp.cos(x)

    check_grads(f, (X,))


def test_derivatives_of_trees_with_integers():
    def f(tree, n):
        return {"y": tree["a"] * tree["b"] ** n, "n": n}

    check_grads(f, ({"a": X, "b": X + 2}, np.int32(3)))


def test_check_grads_refuses():
    with pytest.raises(ValueError, match="modes must be among"):
        check_grads(jnp.sin, (X,), modes="forward")
    with pytest.raises(ValueError, match="order must be at least 1"):
        check_grads(jnp.sin, (X,), order=0)
    with pytest.raises(ValueError, match="no argument"):
        check_grads(jnp.sin, (np.arange(3),))


def test_batches_that_differ():
    calls = []

    def f(x):  # computes something else each time
        calls.append(x)
        return x * len(calls)

    with pytest.raises(BatchError, match="vmap and loop"):
        check_batch(f, (X,))
    check_batch(lambda x, y: {"a": x * y}, (X, X[0]), in_axes=[0, None], out_axes=-1)


def test_compilation_that_differs():
    calls = []

    def f(x):
        calls.append(x)
        return x + len(calls)

    with pytest.raises(JitError, match="jit\\(f\\) and f"):
        check_jit(f, (X,))
    check_jit(lambda x: x.sum(), (X,), order=2)


def test_mappings_that_differ():
    calls = []

    def f(x):
        calls.append(x)
        return x + len(calls)

    with pytest.raises(PmapError, match="pmap\\(f\\) and vmap\\(f\\)"):
        check_pmap(f, (X,))
    check_pmap(lambda x: lax.psum(x, "i") * x, (X,), "i", order=2)


# ---- equality ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "actual, expected, message",
    [
        ((1.0,), [1.0], "structure"),
        ({"a": np.float32(1)}, {"a": np.int32(1)}, r"result\['a'\]: the type must be i32"),
        (np.arange(3), np.array([0, 1, 3]), r"element \(2,\) must be equal: expected 3, found 2"),
        (np.float32(1), np.float32(1.1), "within"),
        (np.float32(1), np.float32(np.nan), "expected nan, found 1.0"),
        (np.array([1, np.inf]), np.array([1, -np.inf]), r"element \(1,\)"),
        (np.array(True), np.array(False), "it must be equal"),
    ],
)
def test_differences_are_described(actual, expected, message):
    with pytest.raises(JitError, match=message):
        require_same(JitError, "test", actual, expected)


def test_what_counts_as_equal():
    same = {"a": np.array([np.nan, np.inf, 1.0]), "b": (np.zeros((0, 3)), np.arange(3))}
    require_same(JitError, "test", same, same)
    require_same(JitError, "test", np.float32(1), np.float32(1 + 3e-6))


def test_a_rule_that_lacks_a_parameter(broken):
    wrong = broken(shape.reverse, transpose=lambda ct, x: [ct])
    with pytest.raises(PrimitiveError, match="no parameter dims"):
        check_primitive(wrong, ["type"])


def test_an_example_with_a_parameter_of_another_type(broken):
    example = replace(shape.reverse.examples[0], params={"dims": [0]})
    wrong = broken(shape.reverse, examples=[example])
    with pytest.raises(PrimitiveError, match=r"dims=\[0\]"):
        check_primitive(wrong, ["type"])
