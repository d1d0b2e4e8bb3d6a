"""What a call needs, and what stands for its arguments in the table of calls."""

import gc
import weakref

import numpy as np
import pytest

import phalanx as ph
import phalanx.numpy as jnp
from phalanx.base import tree
from phalanx.run.array import DeviceArray
from phalanx.run.calls import Call, operand_signatures, signature
from phalanx.run.execute import compile_program

X = jnp.arange(3.0)
H = np.arange(3, dtype=np.float32)


def call(f, *leaves, kept=None, donate=()):
    """A call of ``f`` with ``leaves``, of which it takes those numbered ``kept``."""
    taken = leaves if kept is None else [leaves[i] for i in kept]
    program = ph.make_program(f)(*taken)
    prepared = compile_program(program, operand_signatures(taken), donate)
    results = tree.structure((0,) * len(program.outputs))
    return Call(prepared, leaves, results, kept, donate)


@pytest.mark.parametrize("x", [X, H, 2.0, 2, True, np.float32(2), 1j])
def test_leaves_of_every_kind_are_put_where_the_program_wants_them(x):
    (got,) = call(lambda a, b: (a * b,), X, x).run([X, x])
    assert isinstance(got, DeviceArray)
    np.testing.assert_allclose(got, np.asarray(X) * np.asarray(x))


def test_leaves_that_are_not_taken_may_be_anything():
    made = call(lambda a, b: (a - b,), object(), X, None, H, kept=[1, 3])
    (got,) = made.run(["nobody looks", X, "at these", H + 1])
    np.testing.assert_array_equal(got, [-1, -1, -1])
    assert [i for i, _ in made.operands] == [1, 3]


@pytest.mark.parametrize("x", [H, np.float32(2), 2.0])
def test_what_is_donated_is_not_shared_with_other_calls(x):
    made = call(lambda a: (a + 1,), x, donate=(0,))
    first, second = made.run([x])[0], made.run([x])[0]
    np.testing.assert_array_equal(first, np.asarray(x) + 1)
    np.testing.assert_array_equal(second, first)


def test_an_array_that_is_donated_is_gone():
    x = jnp.arange(3.0)
    (got,) = call(lambda a: (a + 1,), x, donate=(0,)).run([x])
    assert x.is_deleted() and got.tolist() == [1, 2, 3]


def test_a_call_does_not_hold_its_arguments():
    x = jnp.arange(5.0)
    made = call(lambda a: (a + 1,), x)
    gone = weakref.ref(x)
    del x
    gc.collect()
    assert gone() is None and made.prepared is not None


SAME = [(1, 2), (1.0, 2.0), (True, False), (H, H + 1), (np.int8(1), np.int8(2)), (X, X + 1)]
OTHER = [
    (1, 1.0), (1, True), (H, H.astype(np.float64)), (H, H[:2]), (np.int8(1), np.uint8(1)),
    (np.float32(1), 1.0), (X, X[:2]), (X, H), (X, jnp.arange(3)),
    (jnp.asarray(1.0), jnp.float32(1)),  # weakly typed, and not
]  # fmt: skip


@pytest.mark.parametrize(("x", "y"), SAME)
def test_one_program_serves_both(x, y):
    assert signature(x) == signature(y) is not None


@pytest.mark.parametrize(("x", "y"), OTHER)
def test_they_need_a_program_each(x, y):
    assert signature(x) != signature(y)


@pytest.mark.parametrize("x", ["text", None, object(), [1], np.array(["a"]), np.array([object()])])
def test_what_is_no_array_has_no_signature(x):
    assert signature(x) is None
