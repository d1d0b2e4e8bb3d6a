"""A function is the same under all transformations: what it sees of dicts, and its constants."""

import functools
import pickle
from collections import defaultdict

import numpy as np
import pytest

import phalanx
import phalanx.numpy as jnp
from phalanx import lax

FIRST, LAST = np.float32([1, 2]), np.float32([10, 20])


def in_order(d):
    """What depends on the order in which a function sees the keys."""
    first, *others = d.values()
    return first * 100 + sum(others)


def fresh():
    """The same function once more, of which nothing was traced."""
    return lambda d: in_order(d)


CALLS = {
    "jit": lambda f: phalanx.jit(f),
    "vmap": lambda f: phalanx.vmap(f),
    "pmap": lambda f: phalanx.pmap(f),
    "jit(vmap)": lambda f: phalanx.jit(phalanx.vmap(f)),
    "vmap(jit)": lambda f: phalanx.vmap(phalanx.jit(f)),
    "checkpoint": lambda f: phalanx.checkpoint(f),
    "jvp": lambda f: lambda d: phalanx.jvp(f, (d,), (d,))[1],
    "vjp": lambda f: lambda d: phalanx.vjp(f, d)[0],
    "linearize": lambda f: lambda d: phalanx.linearize(f, d)[0],
    "scan": lambda f: lambda d: lax.scan(lambda c, row: (c, f(row)), 0.0, d)[1],
    "map": lambda f: lambda d: lax.map(f, d),
    "cond": lambda f: lambda d: lax.cond(True, f, lambda d: d["a"], d),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
@pytest.mark.parametrize("kind", [dict, lambda d: defaultdict(int, d)], ids=["dict", "defaultdict"])
def test_keys_are_seen_sorted_whatever_their_order(call, kind):
    expected = FIRST * 100 + LAST
    for again in False, True:
        f = call(fresh())
        orders = [{"b": LAST, "a": FIRST}, {"a": FIRST, "b": LAST}]
        for d in reversed(orders) if again else orders:
            np.testing.assert_array_equal(f(kind(d)), expected)


def test_keyword_arguments_are_seen_sorted():
    def f(**named):
        return in_order(named)

    expected = FIRST * 100 + LAST
    for call in phalanx.jit, phalanx.vmap, phalanx.pmap, phalanx.checkpoint:
        np.testing.assert_array_equal(call(f)(b=LAST, a=FIRST), expected)


def test_gradients_have_sorted_keys():
    grads = phalanx.grad(lambda d: in_order(d))({"b": 1.0, "a": 2.0})
    assert list(grads) == ["a", "b"]
    assert grads == {"a": 100.0, "b": 1.0}


def test_a_defaultdict_stays_one():
    made = phalanx.jit(lambda d: d)(defaultdict(list, b=1, a=2))
    assert type(made) is defaultdict and made["c"] == []


@pytest.mark.parametrize("number", [3, 3.0, 3j])
def test_numbers_that_a_function_returns_are_weak(number):
    half = jnp.ones(2, jnp.float16)
    expected = (half * number).dtype

    def f(*_):
        return number

    results = {
        "jit": phalanx.jit(f)(),
        "jit of what is unused": phalanx.jit(f)(half),
        "static": phalanx.jit(lambda x: x, static_argnums=0)(number),
        "vmap": phalanx.vmap(f)(half),
        "pmap": phalanx.pmap(f)(half),
        "checkpoint": phalanx.checkpoint(f)(half),
    }
    for name, value in results.items():
        assert value.weak_type, name
        assert (value * half).dtype == expected, name
    assert (phalanx.jit(lambda x: x * phalanx.jit(f)())(half)).dtype == expected
    assert phalanx.eval_shape(f).weak_type


@phalanx.jit
def doubled(x):
    return 2 * x


class Scale:
    def __call__(self, x):
        return 2 * x


def test_a_compiled_function_of_a_module_is_pickled_by_its_name():
    assert pickle.loads(pickle.dumps(doubled)) is doubled


@pytest.mark.parametrize("make", [phalanx.jit, phalanx.vmap, phalanx.pmap, phalanx.grad])
def test_functions_made_of_objects_are_named_after_them(make):
    assert make(Scale()).__name__ == "Scale"
    assert make(functools.partial(np.add, 1)).__name__ == "add"


def test_arrays_that_no_device_can_hold_are_named():
    for dtype in "U1", object, "datetime64[s]":
        with pytest.raises(TypeError, match=r"jit\(doubled\): x is a NumPy array of dtype"):
            doubled(np.zeros(2, dtype))
