"""Random keys that are used twice: children of keys, loops, lanes."""

import itertools

import numpy as np
import pytest

import phalanx
import phalanx.numpy as jnp
from phalanx import lax, random
from tests.units.insight.checks.finding import codes

X = np.ones((4, 3), np.float32)


@pytest.mark.parametrize("first, second", [((2, 0), (2, 1)), ((3, 2), (3, 0))])
def test_children_of_a_key_that_is_split_twice_are_looked_at_each(first, second):
    def child(key, of):
        return random.normal(random.split(key, of[0])[of[1]])

    key = random.key(0)
    assert codes(lambda key: child(key, first) + child(key, second), key) == []
    assert codes(lambda key: child(key, first) + child(key, first), key) == ["P106"]
    assert codes(lambda key: child(key, first) + random.normal(key), key) == ["P106"]


def test_children_of_a_key_that_is_split_in_a_loop():
    key = random.key(0)

    def each(draw):
        return codes(lambda key: lax.fori_loop(0, 9, lambda i, x: x + draw(key, i), 0.0), key)

    assert each(lambda key, i: random.normal(random.split(key, 9)[i])) == []
    assert each(lambda key, i: random.normal(random.split(key, 9)[0])) == ["P106"]

    def rows(key):
        def of(child):
            return lax.scan(lambda x, key: (x + random.normal(key), None), 0.0, child)[0]

        return of(random.split(key, 3)) + of(random.split(key, 3))

    assert codes(rows, key) == ["P106"]


def masked(x):
    return jnp.where(random.bernoulli(random.key(3), 0.9, x.shape), x, 0)


def noisy(x, key=random.PRNGKey(0)):  # noqa: B008 it is a constant
    return x + random.normal(key, x.shape)


def with_lanes_number(x):
    return x + random.normal(random.fold_in(random.key(0), lax.axis_index("i")), x.shape)


def trained(x):
    w = random.normal(random.key(0), x.shape)
    return w - 0.1 * phalanx.grad(lambda w: (x @ w) ** 2)(w)


def features(x):
    w, b = random.normal(random.key(0), (3, 5)), random.uniform(random.key(1), (5,))
    return jnp.cos(x @ w + b)


def shuffled(x):
    return x[random.permutation(random.key(0), x.size)]


@pytest.mark.parametrize(
    "fun, told",
    [
        (masked, ["P107"]),
        (noisy, ["P107"]),
        (with_lanes_number, []),
        (trained, []),
        (features, []),
        (shuffled, []),
    ],
)
def test_keys_that_are_constants_in_lanes(fun, told):
    assert codes(phalanx.pmap(fun, "i"), np.ones((24, 3), np.float32)) == told


CHILDREN = {
    "first of two": lambda key: random.split(key)[0],
    "second of two": lambda key: random.split(key)[1],
    "first of three": lambda key: random.split(key, 3)[0],
    "second of three": lambda key: random.split(key, 3)[1],
    "third of three": lambda key: random.split(key, 3)[2],
    "one folded in": lambda key: random.fold_in(key, 1),
    "two folded in": lambda key: random.fold_in(key, 2),
}


def drawing(one, other):
    return lambda key: random.normal(one(key)) + random.uniform(other(key))


@pytest.mark.parametrize("key", [random.key(0), random.PRNGKey(0)], ids=["typed", "raw"])
def test_children_of_a_key_are_the_same_if_their_words_are(key):
    for one, other in itertools.combinations(CHILDREN.values(), 2):
        equal = np.array_equal(random.key_data(one(key)), random.key_data(other(key)))
        assert codes(drawing(one, other), key) == ["P106"] * equal
